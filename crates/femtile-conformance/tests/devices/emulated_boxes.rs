//! Case files with geometric multigrid, solved on emulated CUDA.

use femtile_case::Silent;

use crate::emulated_cases::{PLENTY, agree, case_in, gpu};

/// A box for geometric multigrid, of other cells along each axis, none of which becomes thin.
pub(super) const BOX: &str = r#"
[mesh]
generate = { kind = "box", cell = "hexahedron", cells = [6, 4, 8], upper = [1.5, 1, 1] }
[space]
degree = 2
[equation]
source = "sin(3*x) + z"
[[boundary]]
where = "all"
dirichlet = "1 + y"
[solver]
preconditioner = "gmg"
device = "cuda"
[output]
functionals = [{ name = "top", kind = "max" }, { name = "energy", kind = "energy" }]
"#;

#[test]
fn geometric_multigrid_of_a_case_is_the_same_on_a_gpu() {
    let Some(device) = gpu("geometric_multigrid_of_a_case", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [
        ("", ""),
        ("\"gmg\"", "\"gmg\"\nmethod = \"gmres\""),
        ("\"gmg\"", "\"gmg\"\ngmg = { precision = \"double\" }"),
        ("\"gmg\"", "\"gmg\"\ngmg = { smoother = \"additive-patch\" }"),
        ("\"gmg\"", "\"gmg\"\ngmg = { start = \"full\" }"),
        (
            "[[boundary]]\nwhere = \"all\"",
            "[solver.gmg]\nstart = \"full\"\n[[boundary]]\nwhere = \"zmax\"\nrobin = { coefficient = 2, value = \"x\" }\n[[boundary]]\nwhere = \"xmin\"",
        ),
        ("[equation]", "[equation]\nsigma = [[2, 0, 0], [0, 1, 0], [0, 0, 9]]\nlambda = 1"),
        ("where = \"all\"", "where = \"zmax\""),
        ("[solver]", "[[boundary]]\nwhere = \"xmin\"\nneumann = \"y\"\n[solver]\nmethod = \"gmres\""),
    ] {
        let case = case_in(folder.path(), &if from.is_empty() { BOX.into() } else { BOX.replace(from, to) });
        let on_gpu = femtile_case::run_on(&case, &device, &mut Silent).unwrap();
        let mut elsewhere = case.clone();
        elsewhere.file.solver.device = "cpu".into();
        let on_cpu = femtile_case::run(&elsewhere, &mut Silent).unwrap();
        agree(&on_gpu, &on_cpu);
        assert!(on_gpu.solve.iterations <= 12, "{}", on_gpu.solve.iterations);
        assert_eq!(on_gpu.solve.levels, on_cpu.solve.levels);
        assert_eq!(on_gpu.solve.start, on_cpu.solve.start);
        assert_eq!(on_gpu.solve.start.is_some(), to.contains("full"));
        assert!(on_gpu.solve.levels.len() > 1 && on_gpu.kernel_launches > 0);
    }
    for (from, to, words) in [
        ("cells = [6, 4, 8]", "cells = [6, 1, 8]", "one layer of cells"),
        ("degree = 2", "degree = 9", "degree 9"),
    ] {
        let case = case_in(folder.path(), &BOX.replace(from, to));
        let error = femtile_case::run_on(&case, &device, &mut Silent).unwrap_err().to_string();
        assert!(error.contains("solver.device") && error.contains(words), "{error}");
        let on_cpu = femtile_case::run(
            &case_in(folder.path(), &BOX.replace(from, to).replace("cuda", "auto")),
            &mut Silent,
        );
        let reason = on_cpu.unwrap().device_reason;
        assert!(reason.contains("runs on CPUs only") && reason.contains(words), "{reason}");
    }
}

#[test]
fn geometric_multigrid_of_deformed_cells_and_regions_is_the_same_on_a_gpu() {
    let Some(device) = gpu("geometric_multigrid_of_deformed_cells", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    let deformed = BOX.replace("[6, 4, 8]", "[4, 4, 4]").replace("upper", "deform = 0.1, upper");
    let of_regions = |sigma: f64| {
        let regions = format!(
            "[[region]]\nname = \"left\"\nwhere = \"x < 0.76\"\n[equation]\nsigma = {{ by_tag = {{ left = {sigma} }}, default = 2.5 }}"
        );
        deformed.replace("[equation]", &regions)
    };
    let by_position = BOX.replace("[equation]", "[equation]\nsigma = \"1 + x\"");
    for (text, options) in [
        (deformed.clone(), "smoother = \"vertex-patch\""),
        (deformed.clone(), "smoother = \"additive-patch\", precision = \"f64\""),
        (deformed.clone(), "smoother = \"vertex-patch\", start = \"full\""),
        (of_regions(1.0).replace("where = \"all\"", "where = \"zmax\""), "smoother = \"additive-patch\""),
        (of_regions(300.0), "smoother = \"vertex-patch\""),
        (of_regions(300.0), "smoother = \"additive-patch\""),
        (by_position, "smoother = \"vertex-patch\""),
    ] {
        let with = |options: &str| text.replace("\"gmg\"", &format!("\"gmg\"\ngmg = {{ {options} }}"));
        let on_gpu =
            |text: &str| femtile_case::run_on(&case_in(folder.path(), text), &device, &mut Silent).unwrap();
        let found = on_gpu(&with(options));
        let elsewhere = with(options).replace("\"cuda\"", "\"cpu\"");
        let expected = femtile_case::run(&case_in(folder.path(), &elsewhere), &mut Silent).unwrap();
        assert!(found.solve.iterations.abs_diff(expected.solve.iterations) <= 1, "{text}");
        assert!(found.kernel_launches > 0 && found.solve.levels == expected.solve.levels);
        for (name, value) in &expected.functionals {
            let found = found.functionals[name];
            assert!((found - value).abs() <= 1e-8 * value.abs(), "{name}: {found} {value}");
        }
        if options == "smoother = \"additive-patch\"" {
            // The default on such cells.
            assert_eq!(on_gpu(&text).solve.residuals, found.solve.residuals);
        }
    }
}

//! Case files with geometric multigrid, solved on emulated CUDA.

use std::path::Path;

use femtile::device::Cuda;
use femtile_case::{Report, Silent};

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

/// The same in the plane.
const SQUARE: &str = r#"
[mesh]
generate = { kind = "square", cell = "quadrilateral", cells = [12, 8], upper = [1.5, 1] }
[space]
degree = 2
[equation]
source = "sin(3*x) + y"
[[boundary]]
where = "all"
dirichlet = "1 + y"
[solver]
preconditioner = "gmg"
device = "cuda"
[output]
functionals = [{ name = "top", kind = "max" }, { name = "energy", kind = "energy" }]
"#;

/// A case on a CPU, with the smoother of a GPU.
pub(super) fn on_a_cpu(text: &str) -> String {
    let (text, patches) = (text.replace("\"cuda\"", "\"cpu\""), "smoother = \"vertex-patch\"");
    let gmg = "preconditioner = \"gmg\"";
    if text.contains("smoother") {
        text
    } else if text.contains("gmg = {") {
        text.replace("gmg = {", &format!("gmg = {{ {patches},"))
    } else if text.contains("[solver.gmg]") {
        text.replace("[solver.gmg]", &format!("[solver.gmg]\n{patches}"))
    } else {
        text.replace(gmg, &format!("{gmg}\ngmg = {{ {patches} }}"))
    }
}

/// Solves a case on a GPU and on a CPU, in the same number of iterations up to one, with the same levels and functionals.
fn solved(device: &Cuda, folder: &Path, text: &str) -> Report {
    let found = femtile_case::run_on(&case_in(folder, text), device, &mut Silent).unwrap();
    let expected = femtile_case::run(&case_in(folder, &on_a_cpu(text)), &mut Silent).unwrap();
    assert!(found.solve.iterations.abs_diff(expected.solve.iterations) <= 1, "{text}");
    assert!(found.kernel_launches > 0 && found.solve.levels == expected.solve.levels);
    for (name, value) in &expected.functionals {
        let found = found.functionals[name];
        assert!((found - value).abs() <= 1e-8 * value.abs(), "{name}: {found} {value}");
    }
    found
}

#[test]
fn geometric_multigrid_of_quadrilaterals_is_the_same_on_a_gpu() {
    let Some(device) = gpu("geometric_multigrid_of_quadrilaterals", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    let deformed = SQUARE.replace("[12, 8]", "[8, 8]").replace("upper", "deform = 0.1, upper");
    let robin =
        "where = \"ymax\"\nrobin = { coefficient = 2, value = \"x\" }\n[[boundary]]\nwhere = \"xmin\"";
    let jump = "[[region]]\nname = \"left\"\nwhere = \"x < 0.76\"\n[equation]\nsigma = { by_tag = { left = 300 }, default = 1 }";
    for text in [
        SQUARE.to_string(),
        SQUARE.replace("degree = 2", "degree = 1"),
        SQUARE.replace("degree = 2", "degree = 5").replace("\"gmg\"", "\"gmg\"\nmethod = \"gmres\""),
        SQUARE.replace("\"gmg\"", "\"gmg\"\ngmg = { precision = \"f64\" }"),
        SQUARE.replace("\"gmg\"", "\"gmg\"\ngmg = { start = \"full\" }").replace("where = \"all\"", robin),
        SQUARE.replace("where = \"all\"", "where = \"ymax\""),
        SQUARE.replace("[equation]", "[equation]\nsigma = [[2, 0], [0, 5]]\nlambda = 1"),
        SQUARE.replace("degree = 2", "degree = 2\ncomponents = 2"),
        deformed.clone(),
        deformed.replace("\"gmg\"", "\"gmg\"\ngmg = { start = \"full\" }"),
        deformed.replace("[equation]", jump).replace("where = \"all\"", robin),
        deformed.replace("[equation]", jump),
    ] {
        let text = match text.contains("components") {
            true => text.replace("\"sin(3*x) + y\"", "[1, \"x\"]").replace("\"1 + y\"", "[\"y\", 0]"),
            false => text,
        };
        assert!(solved(&device, folder.path(), &text).solve.iterations <= 25, "{text}");
    }
}

#[test]
fn geometric_multigrid_of_a_case_is_the_same_on_a_gpu() {
    let Some(device) = gpu("geometric_multigrid_of_a_case", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [
        ("", ""),
        ("\"gmg\"", "\"gmg\"\nmethod = \"gmres\""),
        ("\"gmg\"", "\"gmg\"\ngmg = { precision = \"f64\" }"),
        ("\"gmg\"", "\"gmg\"\ngmg = { start = \"full\" }"),
        (
            "[[boundary]]\nwhere = \"all\"",
            "[solver.gmg]\nstart = \"full\"\n[[boundary]]\nwhere = \"zmax\"\nrobin = { coefficient = 2, value = \"x\" }\n[[boundary]]\nwhere = \"xmin\"",
        ),
        ("[equation]", "[equation]\nsigma = [[2, 0, 0], [0, 1, 0], [0, 0, 9]]\nlambda = 1"),
        ("where = \"all\"", "where = \"zmax\""),
        ("[solver]", "[[boundary]]\nwhere = \"xmin\"\nneumann = \"y\"\n[solver]\nmethod = \"gmres\""),
    ] {
        let text = if from.is_empty() { BOX.into() } else { BOX.replace(from, to) };
        let on_gpu = femtile_case::run_on(&case_in(folder.path(), &text), &device, &mut Silent).unwrap();
        let on_cpu = femtile_case::run(&case_in(folder.path(), &on_a_cpu(&text)), &mut Silent).unwrap();
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
        (deformed.clone(), "precision = \"f64\""),
        (deformed.clone(), "start = \"full\""),
        (of_regions(1.0).replace("where = \"all\"", "where = \"zmax\""), "smoother = \"vertex-patch\""),
        (of_regions(300.0), "smoother = \"vertex-patch\""),
        (by_position, "smoother = \"vertex-patch\""),
    ] {
        let with = |options: &str| text.replace("\"gmg\"", &format!("\"gmg\"\ngmg = {{ {options} }}"));
        let found = solved(&device, folder.path(), &with(options));
        if options == "smoother = \"vertex-patch\"" {
            // The default on a GPU.
            let by_default =
                femtile_case::run_on(&case_in(folder.path(), &text), &device, &mut Silent).unwrap();
            assert_eq!(by_default.solve.residuals, found.solve.residuals);
        }
    }
}

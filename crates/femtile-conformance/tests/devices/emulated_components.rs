//! Cases of several components on emulated CUDA.

use femtile_case::Silent;

use crate::emulated_boxes::{BOX, on_a_cpu};
use crate::emulated_cases::{HEXAHEDRA, PLENTY, agree, case_in, gpu};

/// A case with another source and other given values for each of three components.
fn of_components(text: &str, degree: usize) -> String {
    let before = text.lines().find(|line| line.starts_with("degree")).unwrap();
    text.replace(before, &format!("degree = {degree}\ncomponents = 3"))
        .replace("source = \"sin(3*x) + z\"", "source = [\"sin(3*x) + z\", 0, \"exp(y)\"]")
        .replace("dirichlet = \"1 + y\"", "dirichlet = [\"1 + y\", \"x*z\", 0]")
        .replace("neumann = \"x\"", "neumann = [0, \"x\", 2]")
        .replace("value = \"z\"", "value = [\"z\", 1, \"x\"]")
}

#[test]
fn cases_of_several_components_have_the_same_results_on_a_gpu() {
    let Some(device) = gpu("cases_of_several_components", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    let bent = of_components(HEXAHEDRA, 3);
    let straight = of_components(BOX, 2).replace("preconditioner = \"gmg\"\n", "");
    for (text, solver) in [
        (&bent, "preconditioner = \"jacobi\""),
        (&bent, "method = \"merged-cg\""),
        (&bent, "preconditioner = \"pmg\""),
        (&straight, "preconditioner = \"none\""),
        (&straight, "preconditioner = \"gmg\"\ngmg = { start = \"full\" }"),
    ] {
        let text = text.replace("[solver]", &format!("[solver]\n{solver}"));
        let on_gpu = femtile_case::run_on(&case_in(folder.path(), &text), &device, &mut Silent).unwrap();
        let on_cpu = femtile_case::run(&case_in(folder.path(), &on_a_cpu(&text)), &mut Silent).unwrap();
        agree(&on_gpu, &on_cpu);
        assert_eq!((on_gpu.space.components, on_gpu.space.n_dofs), (3, on_cpu.space.n_dofs));
        assert!(on_gpu.device.starts_with("cuda") && on_gpu.kernel_launches > 0, "{solver}");
        assert!(on_gpu.functionals.keys().any(|name| name.ends_with("[2]")), "{solver}");
    }
}

#[test]
fn components_without_conditions_have_mean_zero_each_on_a_gpu() {
    let Some(device) = gpu("components_without_conditions", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        [mesh]
        generate = { kind = "box", cell = "hexahedron", cells = [2, 2, 2] }
        [space]
        degree = 4
        components = 2
        [equation]
        source = ["pi^2*cos(pi*x)", "4*pi^2*cos(2*pi*y)"]
        [output]
        functionals = [
            { name = "mean", kind = "integral" },
            { name = "l2", kind = "error_l2", exact = ["cos(pi*x)", "cos(2*pi*y)"] },
        ]
        [solver]
        preconditioner = "jacobi"
        "#;
    for preconditioner in ["jacobi", "pmg"] {
        let case = case_in(folder.path(), &text.replace("jacobi", preconditioner));
        let report = femtile_case::run_on(&case, &device, &mut Silent).unwrap();
        assert!(report.kernel_launches > 0 && report.device.starts_with("cuda"));
        for (name, bound) in [("mean[0]", 1e-12), ("mean[1]", 1e-12), ("l2[0]", 1e-3), ("l2[1]", 2e-2)] {
            assert!(report.functionals[name].abs() < bound, "{name}: {:e}", report.functionals[name]);
        }
    }
}

//! An emulated GPU that fails after a number of launches, as a real one does when a kernel has faulted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use femtile::device::Cuda;
use femtile_case::{Case, Silent};
use femtile_conformance::emulator::Emulator;

use crate::counting::Counting;

const LINEAR: &str = r#"
[mesh]
generate = { kind = "box", cells = [5, 6, 4] }
[equation]
lambda = 0.5
source = "sin(3*x) + z"
[solver]
device = "auto"
[output]
functionals = [{ name = "top", kind = "max" }]
"#;

/// An equation in time.
const STEPS: &str = r#"
[mesh]
generate = { kind = "grid", nodes = [12, 9] }
[equation]
kind = "diffusion"
initial = "x*y"
[time]
end = 0.5
steps = 3
[output]
functionals = [{ name = "top", kind = "max" }]
"#;

#[test]
fn a_gpu_that_fails_in_the_middle_leaves_the_case_to_the_cpu_and_the_report_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let hexahedra = LINEAR.replace("\"box\"", "\"box\", cell = \"hexahedron\"");
    for text in [LINEAR, &hexahedra, STEPS] {
        let path = folder.path().join("case.toml");
        std::fs::write(&path, text).unwrap();
        let mut case = Case::load(&path).unwrap();
        case.file.output.directory = folder.path().join("out");
        let run = |case: &Case, after: usize| {
            let inner =
                Emulator::new().map_err(|error| eprintln!("SKIPPED: a GPU that fails: {error}")).ok()?;
            let driver = Arc::new(Counting::new(inner, after));
            let outcome = femtile_case::run_on(case, &Cuda::with_driver(driver.clone()), &mut Silent);
            Some((outcome, driver.n_done.load(Ordering::Relaxed)))
        };
        let Some((on_gpu, n_launches)) = run(&case, usize::MAX) else { return };
        let on_gpu = on_gpu.unwrap();
        assert!(on_gpu.device.starts_with("cuda") && n_launches > 4, "{n_launches} {}", on_gpu.device);
        for after in [0, n_launches / 2, n_launches - 1] {
            let report = run(&case, after).unwrap().0.unwrap();
            assert!(report.device.starts_with("cpu"), "{}", report.device);
            assert!(report.device_reason.contains("the GPU was lost"), "{}", report.device_reason);
            assert!(report.warnings.iter().any(|warning| warning.contains("solved on the CPU: ")));
            let (found, expected) = (report.functionals["top"], on_gpu.functionals["top"]);
            assert!((found - expected).abs() <= 1e-8 * expected.abs(), "{found} {expected}");
        }
        // Where the GPU is insisted on, its failure is an error.
        case.file.solver.device = "cuda".into();
        let error = run(&case, n_launches / 2).unwrap().0.unwrap_err();
        assert!(error.is_device_trouble(), "{error}");
    }
}

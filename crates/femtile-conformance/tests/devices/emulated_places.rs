//! Values at nodes and regions of cells on emulated CUDA.

use std::sync::Arc;

use femtile::device::Cuda;
use femtile_case::{Case, Silent};
use femtile_conformance::emulator::Emulator;

/// A case with values along two lines of nodes and data by region.
fn text(cell: &str, degree: usize, preconditioner: &str) -> String {
    format!(
        r#"
            [mesh]
            generate = {{ kind = "box", cell = "{cell}", cells = [4, 4, 3] }}
            [[region]]
            name = "core"
            where = "hypot(x - 0.5, y - 0.5) < 0.4"
            [space]
            degree = {degree}
            [equation]
            sigma = {{ by_tag = {{ core = "2 + x" }}, default = 1 }}
            source = {{ by_tag = {{ core = "1 + z" }}, default = 0 }}
            [[boundary]]
            where = "zmin"
            dirichlet = "y"
            [[boundary]]
            nodes = "abs(x - 0.5) + abs(y - 0.5) < 1e-9 && z > 0.5 or x + y < 1e-9"
            dirichlet = "2 + z"
            [solver]
            preconditioner = "{preconditioner}"
            tolerance = 1e-13
            [output]
            vtu = false
            plot = false
            functionals = [
                {{ name = "inside", kind = "value_at", point = [0.3, 0.4, 0.6] }},
                {{ name = "edge", kind = "value_at", point = [0, 0, 0.5] }},
                {{ name = "energy", kind = "energy" }},
            ]
            "#
    )
}

#[test]
fn nodes_and_regions_have_the_same_results_on_a_gpu() {
    let device = match Emulator::new() {
        Ok(emulator) => Cuda::with_driver(Arc::new(emulator.with_memory(256 << 20))),
        Err(error) => {
            eprintln!("SKIPPED: nodes_and_regions_have_the_same_results_on_a_gpu: {error}");
            return;
        }
    };
    for (cell, degree, preconditioner) in [
        ("tetrahedron", 1, "jacobi"),
        ("tetrahedron", 1, "amg"),
        ("hexahedron", 1, "jacobi"),
        ("hexahedron", 3, "jacobi"),
        ("hexahedron", 3, "pmg"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut case =
            Case::parse(&folder.path().join("case.toml"), text(cell, degree, preconditioner)).unwrap();
        case.file.output.directory = folder.path().join("out");
        let on_gpu = femtile_case::run_on(&case, &device, &mut Silent).unwrap();
        let on_cpu = femtile_case::run(&case, &mut Silent).unwrap();
        let name = format!("{cell}, degree {degree}, {preconditioner}");
        assert_eq!(on_gpu.device, "cuda:0 (host emulator)", "{name}: {}", on_gpu.device_reason);
        for (functional, value) in &on_gpu.functionals {
            let expected = on_cpu.functionals[functional];
            assert!(
                (value - expected).abs() <= 1e-9 * expected.abs(),
                "{name}, {functional}: {value}, {expected}"
            );
        }
        assert!((on_gpu.functionals["edge"] - 2.5).abs() < 1e-9, "{name}");
    }
}

//! Case files solved on emulated CUDA.

use std::path::Path;
use std::sync::Arc;

use femtile::device::{Cuda, Device};
use femtile_case::{Case, CaseError, Progress, Report, Silent, Stage};
use femtile_conformance::emulator::Emulator;
use femtile_conformance::error_study::{BOUND, Scope, study};

use crate::emulated_boxes::BOX;

/// Returns an emulated GPU with `memory` bytes, or prints that the test is skipped.
pub(super) fn gpu(test: &str, memory: usize) -> Option<Cuda> {
    match Emulator::new() {
        Ok(emulator) => Some(Cuda::with_driver(Arc::new(emulator.with_memory(memory)))),
        Err(error) => {
            eprintln!("SKIPPED: {test}: {error}");
            None
        }
    }
}

pub(super) const PLENTY: usize = 256 << 20;

fn small_case(device: &str, folder: &Path) -> Case {
    small_case_with(device, "jacobi", folder)
}

fn small_case_with(device: &str, preconditioner: &str, folder: &Path) -> Case {
    let path = folder.join("case.toml");
    let text = format!(
        r#"
        [mesh]
        generate = {{ kind = "box", cells = [5, 6, 4] }}
        [equation]
        sigma = "1 + x*y"
        lambda = 0.5
        source = "sin(3*x) + z"
        [[boundary]]
        where = "x < 1e-9"
        dirichlet = "y"
        [solver]
        device = "{device}"
        preconditioner = "{preconditioner}"
        tolerance = 1e-13
        [output]
        functionals = [{{ name = "top", kind = "max" }}, {{ name = "energy", kind = "energy" }}]
        "#
    );
    std::fs::write(&path, text).unwrap();
    let mut case = Case::load(&path).unwrap();
    case.file.output.directory = folder.join("out");
    case
}

pub(super) fn agree(found: &Report, expected: &Report) {
    assert!(found.solve.iterations.abs_diff(expected.solve.iterations) <= 1);
    for (name, value) in &found.functionals {
        let expected = expected.functionals[name];
        assert!((value - expected).abs() <= 1e-10 * expected.abs(), "{name}: {value} {expected}");
    }
}

/// Asks for a stop when a stage begins.
struct StopIn(Stage, bool);

impl Progress for StopIn {
    fn begin(&mut self, stage: Stage) {
        self.1 |= stage == self.0;
    }

    fn is_interrupted(&self) -> bool {
        self.1
    }
}

#[test]
fn the_file_begun_beside_a_gpu_is_whole_and_replaces_the_former_one_at_the_end_alone() {
    let Some(device) = gpu("the_file_begun_beside_a_gpu", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    let case = small_case("auto", folder.path());
    let out = &case.file.output.directory;
    let files = || {
        let entries = std::fs::read_dir(out).unwrap().flatten();
        let mut files: Vec<_> =
            entries.map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap())).collect();
        files.sort();
        files
    };
    let solution = || femtile::mesh::io::read(&out.join("solution.vtu")).unwrap();
    femtile_case::run(&case, &mut Silent).unwrap();
    let (former, expected) = (files(), solution());
    for stage in [Stage::Check, Stage::Assemble, Stage::Setup, Stage::Write] {
        let stopped = femtile_case::run_on(&case, &device, &mut StopIn(stage, false));
        assert!(matches!(stopped, Err(CaseError::Interrupted { .. })), "{stage:?}");
        assert!(files() == former, "{stage:?}");
    }
    let stopped = femtile_case::run_on(&case, &device, &mut StopIn(Stage::Solve, false)).unwrap();
    assert!(stopped.files.is_empty() && files() == former);
    femtile_case::run_on(&case, &device, &mut Silent).unwrap();
    assert_eq!(femtile_case::verify(out).unwrap(), []);
    let found = solution();
    let [found_u, expected_u] = [&found, &expected].map(|mesh| &mesh.node_fields["u"].values);
    assert!(found_u.iter().zip(expected_u).all(|(a, b)| (a - b).abs() < 1e-9));
    assert_eq!((found.points, found.cells), (expected.points, expected.cells));
    assert_eq!(files().len(), former.len());
}

#[test]
fn a_case_has_the_same_results_on_a_gpu_and_counts_its_launches() {
    let Some(device) = gpu("a_case_has_the_same_results_on_a_gpu", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    let case = small_case("auto", folder.path());
    let on_gpu = femtile_case::run_on(&case, &device, &mut Silent).unwrap();
    let on_cpu = femtile_case::run(&case, &mut Silent).unwrap();
    agree(&on_gpu, &on_cpu);
    assert!(on_gpu.kernel_launches > 3 * on_gpu.solve.iterations as u64);
    assert_eq!(on_gpu.device, "cuda:0 (host emulator)");
    assert_eq!(on_cpu.kernel_launches, 0);
}

#[test]
fn whatever_converges_on_a_gpu_is_within_the_bound_of_a_direct_solve() {
    let Some(device) = gpu("whatever_converges_on_a_gpu_is_within_the_bound", PLENTY) else { return };
    let findings =
        study(0..15, Scope::Emulated, &mut |case, progress| femtile_case::run_on(case, &device, progress));
    println!("largest error {:.1} tolerances", findings.worst);
    let wrong = findings.wrong.join("\n");
    assert!(findings.wrong.is_empty(), "{} beyond {BOUND} tolerances:\n{wrong}", findings.wrong.len());
    assert!(findings.n_converged > 5, "{findings:?}");
}

/// Curved hexahedra with every kind of condition.
pub(super) const HEXAHEDRA: &str = r#"
[mesh]
generate = { kind = "box", cell = "hexahedron", cells = [2, 3, 2], deform = 0.1, order = 2 }
[space]
degree = 3
[equation]
sigma = "1 + x*y"
lambda = 0.5
source = "sin(3*x) + z"
[[boundary]]
where = "xmin"
dirichlet = "1 + y"
[[boundary]]
where = "ymax"
robin = { coefficient = "2 + x", value = "z" }
[[boundary]]
where = "zmax"
neumann = "x"
[solver]
tolerance = 1e-13
device = "cuda"
[output]
functionals = [
    { name = "top", kind = "max" },
    { name = "energy", kind = "energy" },
    { name = "inside", kind = "value_at", point = [0.3, 0.4, 0.5] },
]
"#;

pub(super) fn case_in(folder: &Path, text: &str) -> Case {
    let mut case = Case::parse(&folder.join("case.toml"), text.into()).unwrap();
    case.file.output.directory = folder.join("out");
    case
}

/// The same on curved quadrilaterals.
fn quadrilaterals() -> String {
    HEXAHEDRA
        .replace(
            "\"box\", cell = \"hexahedron\", cells = [2, 3, 2]",
            "\"square\", cell = \"quadrilateral\", cells = [4, 3]",
        )
        .replace("zmax", "xmax")
        .replace("[0.3, 0.4, 0.5]", "[0.3, 0.4, 0]")
}

#[test]
fn elements_of_high_degree_have_the_same_results_on_a_gpu() {
    let Some(device) = gpu("elements_of_high_degree_have_the_same_results_on_a_gpu", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    let quadrilaterals = quadrilaterals();
    let straight = quadrilaterals.replace(", order = 2", "").replace("\"1 + x*y\"", "2");
    for (text, solver) in [
        (HEXAHEDRA, ""),
        (HEXAHEDRA, "preconditioner = \"none\""),
        (HEXAHEDRA, "method = \"merged-cg\""),
        (&HEXAHEDRA.replace(", order = 2", "").replace("\"1 + x*y\"", "2"), ""),
        (&HEXAHEDRA.replace("degree = 3", "degree = 1"), "preconditioner = \"amg\""),
        (&quadrilaterals, "operator = \"assembled\""),
        (&quadrilaterals, "preconditioner = \"jacobi\""),
        (&quadrilaterals.replace("degree = 3", "degree = 8"), "method = \"merged-cg\""),
        (&straight, "preconditioner = \"none\""),
        (&straight.replace("deform = 0.1", "deform = 0"), ""),
    ] {
        let case = case_in(folder.path(), &text.replace("[solver]", &format!("[solver]\n{solver}")));
        let on_gpu = femtile_case::run_on(&case, &device, &mut Silent).unwrap();
        let mut elsewhere = case.clone();
        elsewhere.file.solver.device = "cpu".into();
        let on_cpu = femtile_case::run(&elsewhere, &mut Silent).unwrap();
        agree(&on_gpu, &on_cpu);
        assert_eq!(
            (on_gpu.device.as_str(), on_gpu.device_reason.as_str()),
            ("cuda:0 (host emulator)", "asked for")
        );
        assert!(on_gpu.kernel_launches > 3 * on_gpu.solve.iterations as u64);
        assert!(on_gpu.solve.true_relative_residual < 1e-12, "{}", on_gpu.solve.true_relative_residual);
        assert_eq!(on_gpu.citations, on_cpu.citations);
        // Levels of multigrid are in single precision; rounding grows faster where residuals come of recurrences.
        let n_compared = match solver {
            _ if solver.contains("amg") => 1,
            _ if solver.contains("merged") => 8,
            _ => 20,
        };
        let residuals = on_gpu.solve.residuals.iter().zip(&on_cpu.solve.residuals);
        for (i, (found, expected)) in residuals.take(n_compared).enumerate() {
            assert!((found - expected).abs() <= 1e-8 * expected, "residual {i}: {found:e} {expected:e}");
        }
    }
}

#[test]
fn projections_and_metrics_of_a_case_are_the_same_on_a_gpu() {
    let Some(device) = gpu("projections_and_metrics_of_a_case", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    let projected =
        BOX.replace("[equation]", "[equation]\nsigma = 0\nlambda = \"1 + x\"").replace("\"gmg\"", "\"auto\"");
    let metric = |way: &str| BOX.replace("\"gmg\"", &format!("\"jacobi\"\nmetric = \"{way}\""));
    for (text, way) in [
        (projected.clone(), "stored"),
        (projected.replace("\"1 + x\"", "3"), "constant"),
        (projected.replace("[solver]", "[solver]\noperator = \"assembled\""), ""),
        (projected.replace("hexahedron", "tetrahedron").replace("degree = 2", "degree = 1"), ""),
        (metric("computed"), "computed"),
        (metric("stored"), "stored"),
    ] {
        let case = case_in(folder.path(), &text);
        let on_gpu = femtile_case::run_on(&case, &device, &mut Silent).unwrap();
        let mut elsewhere = case.clone();
        elsewhere.file.solver.device = "cpu".into();
        let on_cpu = femtile_case::run(&elsewhere, &mut Silent).unwrap();
        agree(&on_gpu, &on_cpu);
        let found: Vec<&str> = on_gpu.solve.geometry.keys().copied().collect();
        assert_eq!(found, if way.is_empty() { Vec::new() } else { vec![way] });
    }
    let bent = metric("constant").replace("upper", "deform = 0.1, upper");
    let error = femtile_case::run_on(&case_in(folder.path(), &bent), &device, &mut Silent);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("solver.metric") && error.contains("take computed"), "{error}");
}

#[test]
fn p_multigrid_of_a_case_is_the_same_on_a_gpu() {
    let Some(device) = gpu("p_multigrid_of_a_case", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    let quadrilaterals = quadrilaterals();
    let components = quadrilaterals
        .replace("[equation]", "components = 2\n[equation]")
        .replace("\"sin(3*x) + z\"", "[\"sin(3*x)\", 1]")
        .replace("\"1 + y\"", "[\"1 + y\", 2]")
        .replace("value = \"z\"", "value = [\"x\", 0]")
        .replace("neumann = \"x\"", "neumann = [\"x\", 0]");
    for (mesh, degree, solver) in [
        (HEXAHEDRA, 2, "preconditioner = \"pmg\""),
        (HEXAHEDRA, 3, "preconditioner = \"pmg\"\nmethod = \"gmres\""),
        (&quadrilaterals, 2, "preconditioner = \"pmg\""),
        (
            &quadrilaterals.replace(", order = 2", "").replace("\"1 + x*y\"", "2"),
            7,
            "preconditioner = \"pmg\"",
        ),
        (&components, 3, "preconditioner = \"pmg\""),
        (
            HEXAHEDRA,
            4,
            "preconditioner = \"pmg\"\npmg = { precision = \"f64\", sweeps = 2 }\namg = { precision = \"f64\" }",
        ),
    ] {
        let text = mesh
            .replace("degree = 3", &format!("degree = {degree}"))
            .replace("[solver]", &format!("[solver]\n{solver}"))
            .replace("1e-13", "1e-12");
        let case = case_in(folder.path(), &text);
        let on_gpu = femtile_case::run_on(&case, &device, &mut Silent).unwrap();
        let mut elsewhere = case.clone();
        elsewhere.file.solver.device = "cpu".into();
        let on_cpu = femtile_case::run(&elsewhere, &mut Silent).unwrap();
        agree(&on_gpu, &on_cpu);
        assert!(on_gpu.solve.iterations <= 25, "degree {degree}: {}", on_gpu.solve.iterations);
        assert_eq!((&on_gpu.solve.levels, &on_gpu.citations), (&on_cpu.solve.levels, &on_cpu.citations));
        assert!(on_gpu.device.starts_with("cuda") && on_gpu.kernel_launches > 0);
    }
}

#[test]
fn a_pure_neumann_problem_of_high_degree_is_solved_on_a_gpu() {
    let Some(device) = gpu("a_pure_neumann_problem_of_high_degree", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        [mesh]
        generate = { kind = "box", cell = "hexahedron", cells = [2, 2, 2] }
        [space]
        degree = 4
        [equation]
        source = "pi^2*cos(pi*x)"
        [output]
        functionals = [
            { name = "mean", kind = "integral" },
            { name = "l2", kind = "error_l2", exact = "cos(pi*x)" },
        ]
        [solver]
        preconditioner = "jacobi"
        "#;
    let squares = text.replace(
        "\"box\", cell = \"hexahedron\", cells = [2, 2, 2]",
        "\"square\", cell = \"quadrilateral\", cells = [3, 3]",
    );
    for (text, preconditioner) in [(text, "jacobi"), (text, "pmg"), (&squares, "jacobi"), (&squares, "pmg")] {
        let case = case_in(folder.path(), &text.replace("jacobi", preconditioner));
        let report = femtile_case::run_on(&case, &device, &mut Silent).unwrap();
        assert!(report.functionals["mean"].abs() < 1e-12 && report.functionals["l2"] < 1e-3);
        assert!(report.kernel_launches > 0 && report.device.starts_with("cuda"));
    }
}

#[test]
fn every_method_of_a_case_agrees_with_the_processor() {
    let Some(device) = gpu("every_method_of_a_case", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    for lines in
        ["pipelined-cg\"\npreconditioner = \"pmg", "pipelined-cg", "s-step-cg\"\npreconditioner = \"none"]
    {
        let text = HEXAHEDRA
            .replace("1e-13", "1e-10")
            .replace("device = \"cuda\"", &format!("device = \"cuda\"\nmethod = \"{lines}\""));
        let on_gpu = femtile_case::run_on(&case_in(folder.path(), &text), &device, &mut Silent).unwrap();
        let on_cpu =
            femtile_case::run(&case_in(folder.path(), &text.replace("cuda", "cpu")), &mut Silent).unwrap();
        assert!(on_gpu.kernel_launches > 0 && on_gpu.warnings.is_empty(), "{lines}: {:?}", on_gpu.warnings);
        let (found, expected) = (&on_gpu.solve, &on_cpu.solve);
        assert!(
            found.iterations.abs_diff(expected.iterations) <= 3 + expected.iterations / 20,
            "{lines}: {found:?} {expected:?}"
        );
        for (name, value) in &on_cpu.functionals {
            assert!((on_gpu.functionals[name] - value).abs() <= 1e-8 * value.abs(), "{lines}: {name}");
        }
    }
}

#[test]
fn too_little_memory_for_high_degree_moves_it_to_the_cpu_or_its_arrays_to_the_host() {
    let Some(device) = gpu("too_little_memory_for_high_degree", 10_000) else { return };
    let folder = tempfile::tempdir().unwrap();
    let insisted = case_in(folder.path(), HEXAHEDRA);
    let on_gpu = femtile_case::run_on(&insisted, &device, &mut Silent).unwrap();
    assert!(on_gpu.warnings.iter().any(|warning| warning.contains("the memory of the GPU was too small")));
    assert!(on_gpu.memory_bytes.gpu_on_host_peak.is_some_and(|peak| peak > 10_000));
    let case = case_in(folder.path(), &HEXAHEDRA.replace("\"cuda\"", "\"auto\""));
    let on_cpu = femtile_case::run_on(&case, &device, &mut Silent).unwrap();
    assert!(on_cpu.device.starts_with("cpu") && on_cpu.device_reason.contains("out of memory"));
    assert!(on_cpu.warnings.iter().any(|warning| warning.contains("solved on the CPU")));
    agree(&on_gpu, &on_cpu);
}

#[test]
fn an_equation_in_time_has_the_same_results_on_a_gpu() {
    let Some(device) = gpu("an_equation_in_time_has_the_same_results_on_a_gpu", PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("case.toml");
    let text = r#"
        [mesh]
        generate = { kind = "grid", nodes = [12, 9] }
        [equation]
        kind = "diffusion"
        diffusion = [["1 + y", 0.2], [0.2, 1]]
        source = "sin(t)*x"
        initial = "x*y"
        [[boundary]]
        where = "xmin"
        dirichlet = "t"
        [[boundary]]
        where = "ymax"
        neumann = "cos(t)"
        [time]
        scheme = "craig-sneyd"
        end = 0.5
        steps = 3
        rannacher_steps = 1
        [output]
        functionals = [{ name = "top", kind = "max" }, { name = "content", kind = "integral" }]
        "#;
    std::fs::write(&path, text).unwrap();
    let mut case = Case::load(&path).unwrap();
    case.file.output.directory = folder.path().join("out");
    let on_gpu = femtile_case::run_on(&case, &device, &mut Silent).unwrap();
    let on_cpu = femtile_case::run(&case, &mut Silent).unwrap();
    for (name, value) in &on_gpu.functionals {
        let expected = on_cpu.functionals[name];
        assert!((value - expected).abs() <= 1e-12 * expected.abs(), "{name}: {value} {expected}");
    }
    assert!(on_gpu.kernel_launches > 20 && on_gpu.time.is_some_and(|time| time.steps == 3));
}

#[test]
fn too_little_memory_moves_a_case_to_the_cpu_or_its_arrays_to_the_host_where_the_gpu_is_insisted_on() {
    let Some(device) = gpu("too_little_memory", 10_000) else { return };
    let folder = tempfile::tempdir().unwrap();
    let on_cpu = femtile_case::run_on(&small_case("auto", folder.path()), &device, &mut Silent).unwrap();
    assert!(on_cpu.device.starts_with("cpu") && on_cpu.device_reason.contains("out of memory"));
    assert!(on_cpu.warnings.iter().any(|warning| warning.contains("solved on the CPU")));
    assert_eq!(on_cpu.memory_bytes.gpu_peak, None);
    for preconditioner in ["jacobi", "amg"] {
        let case = small_case_with("cuda", preconditioner, folder.path());
        let on_gpu = femtile_case::run_on(&case, &device, &mut Silent).unwrap();
        assert_eq!(on_gpu.device, "cuda:0 (host emulator)");
        for (name, value) in &on_gpu.functionals {
            let expected = on_cpu.functionals[name];
            assert!((value - expected).abs() <= 1e-10 * expected.abs(), "{name}: {value} {expected}");
        }
        assert!(
            on_gpu.warnings.iter().any(|warning| warning.contains("the memory of the GPU was too small"))
        );
        let used = &on_gpu.memory_bytes;
        assert!(used.gpu_peak.is_some_and(|peak| peak <= 10_000), "{used:?}");
        assert!(used.gpu_on_host_peak.is_some_and(|peak| peak > 10_000), "{used:?}");
    }
    assert_eq!(device.memory_use().unwrap().host_peak, 0);
}

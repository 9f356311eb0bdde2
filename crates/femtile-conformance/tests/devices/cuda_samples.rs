//! Whole cases on a real GPU beside the CPU: sample meshes, the ventricle, a box of two million unknowns.

use std::path::{Path, PathBuf};

use femtile::device::Cpu;
use femtile::device::Cuda;
use femtile::linalg::sparse::matrix_market;
use femtile_case::{Case, Report, Silent};
use femtile_conformance::suite::amg_levels::matrix_is_preconditioned;
use femtile_conformance::suite::samples::{Sample, definite_matrices, tetrahedra};

/// The GPU, or a message that the test is skipped.
fn gpu() -> Option<Cuda> {
    Cuda::new(0).inspect_err(|error| eprintln!("SKIPPED: tests on a real GPU: {error}")).ok()
}

/// The folder of sample meshes, where there is one.
fn samples() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("FEMTILE_SAMPLES").map_or_else(beside, PathBuf::from);
    Some(folder.join("meshes/tet")).filter(|folder| folder.is_dir())
}

const FUNCTIONALS: &str = r#"functionals = [
    { name = "max", kind = "max" }, { name = "l2", kind = "l2_norm" }, { name = "energy", kind = "energy" }]"#;

/// A case with this mesh and equation that is solved to the last digits.
fn case_of(folder: &Path, mesh: &str, equation: &str) -> Case {
    let path = folder.join("case.toml");
    let text = format!(
        "[mesh]\n{mesh}\n{equation}\n[solver]\ntolerance = 1e-13\n[output]\nvtu = false\nplot = false\n{FUNCTIONALS}\n"
    );
    std::fs::write(&path, text).unwrap();
    let mut case = Case::load(&path).unwrap();
    case.file.output.directory = folder.join("out");
    case
}

/// Solves on both and compares; a line of the transcript.
fn compare(name: &str, case: &Case, device: &Cuda) {
    let mut beside = case.clone();
    beside.file.solver.device = "cpu".into();
    let on_cpu = match femtile_case::run(&beside, &mut Silent) {
        Ok(report) => report,
        Err(refused) => {
            let also = femtile_case::run_on(case, device, &mut Silent).unwrap_err();
            assert_eq!(also.to_string(), refused.to_string());
            println!("{name:<40} refused on both");
            return;
        }
    };
    let before = device_launches(device);
    let on_gpu = femtile_case::run_on(case, device, &mut Silent).unwrap();
    let (gpu, cpu) = (on_gpu.solve.iterations, on_cpu.solve.iterations);
    let worst = worst(&on_gpu, &on_cpu);
    let histories = on_gpu.solve.residuals.iter().zip(&on_cpu.solve.residuals).take(20);
    let residuals = histories.map(|(a, b)| (a - b).abs() / b).fold(0.0, f64::max);
    println!(
        "{name:<40} {:>8} unknowns, iterations {gpu} {cpu}, functionals {worst:.1e}, residuals {residuals:.1e}, \
         {} launches, solve {:.3} s and {:.3} s",
        on_gpu.space.n_dofs,
        on_gpu.kernel_launches - before,
        on_gpu.timings_s.solve,
        on_cpu.timings_s.solve,
    );
    assert!(gpu.abs_diff(cpu) <= 1.max(cpu / 50), "{name}: {gpu} iterations, {cpu} on the CPU");
    assert!(worst <= 1e-10, "{name}: functionals differ by {worst:e}");
    // Levels of algebraic multigrid have other groups on a GPU than on a CPU.
    let has_own_levels = on_gpu.solve.preconditioner == Some("amg");
    assert!(residuals <= 1e-8 || has_own_levels, "{name}: residuals differ by {residuals:e}");
    assert!(on_gpu.kernel_launches > before);
}

fn device_launches(device: &Cuda) -> u64 {
    femtile::device::Device::kernel_launches(device)
}

fn worst(found: &Report, expected: &Report) -> f64 {
    let errors = found.functionals.iter().map(|(name, value)| {
        let expected = expected.functionals[name];
        (value - expected).abs() / expected.abs()
    });
    errors.fold(0.0, f64::max)
}

#[test]
fn sample_meshes_have_the_same_solutions_on_a_gpu() {
    let Some(device) = gpu() else { return };
    let Some(samples) = samples() else {
        eprintln!(
            "SKIPPED: sample_meshes_have_the_same_solutions_on_a_gpu: no samples (set FEMTILE_SAMPLES)"
        );
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(samples).unwrap().flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e != "node" && e != "face"));
    files.sort();
    for file in files {
        let mesh = format!("file = {:?}", file.display().to_string());
        let equation = "[equation]\nsource = 1\n[[boundary]]\nwhere = \"all\"\ndirichlet = 0";
        let case = case_of(folder.path(), &mesh, equation);
        compare(&file.file_name().unwrap().to_string_lossy(), &case, &device);
    }
}

#[test]
fn the_ventricle_and_a_large_box_have_the_same_solutions_on_a_gpu() {
    let Some(device) = gpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ventricle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/02-ventricle/case.toml");
    let mut case = Case::load(&ventricle).unwrap();
    case.file.output.directory = folder.path().join("out");
    case.file.solver.tolerance = 1e-13;
    compare("ventricle", &case, &device);
    let mesh = "generate = { kind = \"box\", cells = [128, 128, 128] }";
    let equation = "[equation]\nsigma = \"1 + x*y\"\nlambda = 1\nsource = \"sin(3*x) + z\"\n\
                    [[boundary]]\nwhere = \"x < 1e-9\"\ndirichlet = \"y\"";
    compare("box of 129 nodes a side", &case_of(folder.path(), mesh, equation), &device);
}

#[test]
fn assemblies_of_sample_meshes_agree_with_plain_assembly_on_a_gpu() {
    let Some(device) = gpu() else { return };
    for file in tetrahedra("assemblies_of_sample_meshes_agree_with_plain_assembly_on_a_gpu") {
        let sample = Sample::read(&file);
        sample.refill_agrees(&device);
        sample.patches_agree(&device);
    }
}

#[test]
fn multigrid_of_sample_meshes_and_matrices_keeps_its_promises_on_a_gpu() {
    let test = "multigrid_of_sample_meshes_and_matrices_keeps_its_promises_on_a_gpu";
    let (Some(device), cpu) = (gpu(), Cpu::new(0).unwrap()) else { return };
    for file in tetrahedra(test) {
        let sample = Sample::read(&file);
        let Ok(system) = sample.problem.assemble::<f64, _>(&cpu) else { continue };
        matrix_is_preconditioned(&device, &system.matrix.copy_to(&device).unwrap(), 1, &sample.name);
        println!("{}: {} rows", sample.name, system.matrix.n_rows());
    }
    for (file, block_size) in definite_matrices(test) {
        let a = matrix_market::read::<f64>(&file).unwrap().matrix.copy_to(&device).unwrap();
        matrix_is_preconditioned(&device, &a, block_size, &file.display().to_string());
        println!("{}: {} rows", file.display(), a.n_rows());
    }
}

//! Carries a case out: mesh, check, solve, results.

use femtile_device::{Cpu, Cuda};
use femtile_mesh::check::{CheckConfig, CheckReport, check, check_interruptible};
use femtile_mesh::io::vtu::WriteOptions;
use femtile_mesh::{Mesh, refine};
use femtile_solve::{FieldConfig, Progress, SolverConfig, Stage, Stages, check_cells};

use crate::file::{EquationKind, FieldName};
use crate::functional::{Evaluated, prepare};
use crate::mesh_source::{self, check_config, mesh_of};
use crate::placed::placed;
use crate::{Case, CaseError, Report, diffusion, output, overlap, transient};

/// Carries out a case and writes its results, also when the solve ended without converging.
///
/// # Errors
/// Everything that [`CaseError`] names. What can be known before the solve is refused before it: a GPU that is not
/// there, a folder that cannot be written to, a point outside the mesh, an expression that does not parse.
pub fn run(case: &Case, progress: &mut dyn Progress) -> Result<Report, CaseError> {
    let mut run = || {
        case.check()?;
        let opened = case.device()?.open()?;
        run_opened(case, opened, progress)
    };
    run().map_err(|error| placed(case, error))
}

/// Carries out a case on a GPU that is open already, whatever the case says of its device.
///
/// Where the case says `auto` and the GPU fails or has not the memory, the CPU solves it and a warning says so.
///
/// # Errors
/// As [`run`].
pub fn run_on(case: &Case, device: &Cuda, progress: &mut dyn Progress) -> Result<Report, CaseError> {
    case.check()?;
    run_opened(case, Some(device.clone()), progress).map_err(|error| placed(case, error))
}

fn run_opened(case: &Case, opened: Option<Cuda>, progress: &mut dyn Progress) -> Result<Report, CaseError> {
    let config = case.solver_config()?;
    let cpu = Cpu::new(config.threads)?;
    output::prepare(case)?;
    cpu.install(|| {
        let mut stages = Stages::new(progress);
        match case.file.equation.kind {
            EquationKind::Diffusion if transient::is_on_mesh(case) => {
                let made = checked_mesh(case, opened.is_some(), &mut stages)?;
                transient::run(&cpu, case, (&config, opened), made, &mut stages)
            }
            EquationKind::Diffusion => diffusion::run(&cpu, case, config.device, opened, &mut stages),
            EquationKind::ReactionDiffusion => stationary(&cpu, case, &config, opened, &mut stages),
        }
    })
}

/// Carries out a case without steps in time.
fn stationary(
    cpu: &Cpu,
    case: &Case,
    config: &SolverConfig,
    opened: Option<Cuda>,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    let (mut mesh, checked) = checked_mesh(case, opened.is_some(), stages)?;
    check_cells(config, &case.space_config(), mesh.kind)?;
    stages.begin(Stage::Space)?;
    let mut warnings = case.warnings().to_vec();
    warnings.extend_from_slice(&checked.warnings);
    warnings.extend(overlap::warnings_of_regions(case, &case.tag_regions(&mut mesh)?));
    let discretization = case.problem(&mesh)?.discretize()?;
    warnings.extend(overlap::warnings(case, discretization.overlaps(), "facets"));
    warnings.extend(overlap::warnings(case, discretization.node_overlaps(), "nodes"));
    let functionals = prepare(case, &discretization)?;
    let solution = discretization.solve(cpu, config, opened, stages)?;

    stages.begin(Stage::Write)?;
    warnings.extend_from_slice(solution.warnings());
    let Evaluated { numbers, lines, citations } = functionals.evaluate(&solution)?;
    // What a solve that was stopped leaves has no fields that take longer than to write it.
    let fields = stages.interruptible(|stop| solution.fields_interruptible(field_config(case), stop));
    stages.go_on()?;
    warnings.extend_from_slice(fields.left_out());
    let mut report = Report::of_solution(case, &checked, &solution, (numbers, warnings))?;
    // Without conduction the energy knows no gradients, which the estimate compares.
    let is_projection = solution.discretization().form(0).sigma.as_constant() == Some(0.0);
    let estimate = fields.error_estimate().filter(|_| !is_projection);
    report.solve.discretization_error_estimate = estimate.map(|estimate| estimate.total);
    report.citations.extend(citations.iter().chain(fields.citations()).map(|key| String::from(*key)));
    output::write_results(case, report, stages, |staging| {
        if case.file.output.vtu {
            let options = WriteOptions { compress: case.file.output.compress, ..WriteOptions::default() };
            solution.write_vtu_with(staging.path(output::MESH_SOLUTION), &fields, options)?;
        }
        Ok(lines.iter().try_for_each(|line| line.write(staging))?)
    })
}

/// The fields to compute; those at nodes are for the file of the solution alone.
pub(crate) fn field_config(case: &Case) -> FieldConfig {
    let output = &case.file.output;
    FieldConfig {
        gradient: output.vtu && output.fields.contains(&FieldName::Gradient),
        flux: output.vtu && output.fields.contains(&FieldName::Flux),
        error: output.fields.contains(&FieldName::Error),
    }
}

fn checked_mesh(
    case: &Case,
    has_gpu: bool,
    stages: &mut Stages<'_>,
) -> Result<(Mesh, CheckReport), CaseError> {
    stages.begin(Stage::Read)?;
    let made = stages.interruptible(|stop| mesh_of(case, has_gpu, Some(stop)));
    stages.go_on()?;
    let mut mesh = made?;
    stages.begin(Stage::Check)?;
    let config = check_config(case);
    let found = stages.interruptible(|stop| check_interruptible(&mut mesh, &config, Some(stop)));
    stages.go_on()?;
    let mut report = found.map_err(|error| mesh_source::placed(case, error))?;
    for _ in 0..case.file.mesh.refine {
        let finer = stages.interruptible(|stop| refine::uniform_interruptible(&mesh, Some(stop)));
        stages.go_on()?;
        mesh = finer?;
    }
    if case.file.mesh.refine > 0 {
        let CheckReport { n_orphans, ref warnings, .. } = report;
        let config = CheckConfig { merge_duplicates: false, ..config };
        report = CheckReport { warnings: warnings.clone(), ..check(&mut mesh, &config)? };
        report.n_orphans = n_orphans;
    }
    Ok((mesh, report))
}

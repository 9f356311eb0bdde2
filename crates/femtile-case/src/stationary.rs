//! Runs a case of −∇·(σ∇u) + λu = f: mesh, check, solve, results.

use std::path::Path;
use std::sync::Arc;

use femtile_comm::{Comm, threads};
use femtile_device::cuda::Opening;
use femtile_device::{Cpu, part};
use femtile_mesh::check::BoundaryFacets;
use femtile_mesh::io::Staging;
use femtile_mesh::io::vtu::BegunFile;
use femtile_solve::{
    Fields, GatheredSolution, Ranks, Silent, Solution, SolverConfig, Stage, Stages, check_cells,
};

use crate::animation::Animation;
use crate::begun_output::{self, BegunOutput};
use crate::distribution::{MeshDistribution, RankMesh, RankMeshPart};
use crate::drawn_field::Exhibit;
use crate::functional::{Evaluated, SampledLine, prepare};
use crate::output::Results;
use crate::vtkhdf::Frames;
use crate::{Case, CaseError, Report, conditions, form, output, overlap, pieces};

/// Fewest threads for which the file is begun while a CPU solves.
const MANY_THREADS: usize = 8;

/// Runs the case.
pub(crate) fn run(
    cpu: &Cpu,
    case: &Case,
    config: &SolverConfig,
    opening: Option<Opening>,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    if opening.is_none() && MeshDistribution::is_for_threads(case, config) {
        return on_threads(cpu, case, config, stages);
    }
    let held = MeshDistribution::held(case, (config, opening.as_ref()), stages)?;
    if let Some(case) = case.on_mesh(&held) {
        return form::run_after_mesh(cpu, &case, held, opening, stages);
    }
    let (mut mesh, checked) = match held {
        RankMesh::Part(part) => return on_parts(cpu, case, (config, opening), *part, stages),
        RankMesh::Whole(mesh, checked) => (*mesh, *checked),
    };
    check_cells(config, &case.space_config(), mesh.kind)?;
    stages.begin(Stage::Space)?;
    let mut warnings = Vec::new();
    warnings.extend_from_slice(&checked.warnings);
    warnings.extend(overlap::warnings_of_regions(case, &case.tag_regions(&mut mesh)?));
    // With few threads, work beside the file would have to wait for it.
    let is_beside = case.embedding.writes_files && (opening.is_some() || cpu.threads() >= MANY_THREADS);
    let discretization = case.problem((&mesh, &checked.boundary))?.discretize()?;
    let file = discretization.file();
    let ((solution, functionals), early) = begun_output::beside(case, &file, is_beside, || {
        warnings.extend(overlap::warnings_of(case, &discretization));
        let functionals = prepare(case, &discretization)?;
        warnings.extend_from_slice(&functionals.warnings);
        let solution = discretization.solve(cpu, config, opening, stages)?;
        stages.begin(Stage::Write)?;
        Ok((solution, functionals))
    })?;
    let (staging, begun) = early.map(|BegunOutput { staging, file }| (staging, file)).unzip();
    warnings.extend_from_slice(solution.warnings());
    let Evaluated { numbers, lines, citations } = functionals.evaluate(&solution)?;
    let mut report = Report::of_solution(case, &checked, &solution, (numbers, warnings))?;
    report.citations.extend(citations.iter().map(|key| String::from(*key)));
    write(case, (&solution, &checked.boundary), (report, &lines), (staging, begun), stages)
}

/// Computes the output fields of a solution on the whole mesh and writes all results, which may have been
/// begun.
fn write(
    case: &Case,
    (solution, boundary): (&Solution<'_>, &Arc<BoundaryFacets>),
    (mut report, lines): (Report, &[SampledLine]),
    (staging, begun): (Option<Staging>, Option<BegunFile>),
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    // After an interrupted solve, fields that would take longer than writing are left out.
    let is_interrupted = stages.interruptible(|stop| stop());
    let fields = match pieces::agreed_interrupt(case, is_interrupted)? {
        Some(stop) => solution.fields_interruptible(case.field_config(), &|| stop),
        None => stages.interruptible(|stop| solution.fields_interruptible(case.field_config(), stop)),
    };
    stages.go_on()?;
    let data = case.deliver(|| solution.data(&fields))?;
    let conditions = || conditions::on_mesh(case, solution.discretization(), boundary);
    let exhibit = data.map(|data| Exhibit {
        data,
        animation: Animation::default(),
        frames: Frames::default(),
        equation: None,
        conditions: conditions(),
    });
    // The estimate compares gradients, which the energy norm of a projection (σ = 0) does not contain.
    let is_projection = solution.discretization().form(0).sigma.as_constant() == Some(0.0);
    report.take_fields(&fields, !is_projection);
    let pieces = pieces::names(case, solution);
    let write = |folder: &Path| match begun {
        Some(file) => Ok(solution.finish_vtu(file)?),
        None => output::write_solution(case, folder, (solution, &fields)),
    };
    output::write_results(
        case,
        (report, exhibit),
        stages,
        staging,
        Results { solution: write, lines, pieces },
    )
}

/// Runs the case on ranks that are threads, each of which generates its part of a box; the first one writes.
fn on_threads(
    cpu: &Cpu,
    case: &Case,
    config: &SolverConfig,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    let n = config.ranks.n();
    let on_rank = |comm: Comm, stages: &mut Stages<'_>| {
        let mut case = case.clone();
        case.embedding.writes_files &= comm.rank() == 0;
        let config = SolverConfig { ranks: Ranks::Of(comm.clone()), ..config.clone() };
        case.embedding.comm = Some(comm);
        let cpu = Cpu::with_simd((cpu.threads() / n).max(1), cpu.simd())?;
        cpu.install(|| run(&cpu, &case, &config, None, stages))
    };
    let first = |comm: Comm| on_rank(comm, stages);
    threads::run(n, first, |comm| on_rank(comm, &mut Stages::new(&mut Silent)).map(drop))
}

/// Runs the case on a distributed mesh. Collective.
fn on_parts(
    cpu: &Cpu,
    case: &Case,
    (config, opening): (&SolverConfig, Option<Opening>),
    part_of_rank: RankMeshPart,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    let RankMeshPart { mut mesh, checked, comm, wants_all, .. } = part_of_rank;
    check_cells(config, &case.space_config(), checked.kind)?;
    if wants_all && mesh.n_dofs(case.space_config().degree) > u32::MAX as usize {
        let message = "a solution of more than 4294967295 unknowns is written by its ranks alone: take `vtu = \"pieces\"`";
        return Err(case.wrong(&["output".into(), "vtu".into()], message));
    }
    stages.begin(Stage::Space)?;
    let mut warnings = checked.warnings.clone();
    let regions = case.tag_regions_of_ranks(&mut mesh, &comm)?;
    warnings.extend(overlap::warnings_of_regions(case, &regions));
    let discretization = case.problem_on_parts(&mesh, &comm)?.discretize()?;
    warnings.extend(overlap::warnings_of(case, &discretization));
    let functionals = prepare(case, &discretization)?;
    warnings.extend_from_slice(&functionals.warnings);
    let solution = discretization.solve(cpu, config, opening, stages)?;
    stages.begin(Stage::Write)?;
    warnings.extend_from_slice(solution.warnings());
    let Evaluated { numbers, lines, citations } = functionals.evaluate(&solution)?;
    let mut report = Report::of_solution(case, &checked, &solution, (numbers, warnings))?;
    report.citations.extend(citations.iter().map(|key| String::from(*key)));
    if !wants_all {
        let pieces = pieces::names(case, &solution);
        let write = |folder: &Path| output::write_solution(case, folder, (&solution, &Fields::default()));
        let results = Results { solution: write, lines: &lines, pieces };
        return output::write_results(case, (report, None), stages, None, results);
    }
    let collected = part("parts put together", || solution.collect())?;
    drop(mesh);
    match collected {
        Some(GatheredSolution { mesh, boundary, values }) => {
            let solution = values.on(case.problem((&mesh, &boundary))?)?;
            write(case, (&solution, &boundary), (report, &lines), (None, None), stages)
        }
        None => output::write_results(
            case,
            (report, None),
            stages,
            None,
            Results::of(|_: &Path| Ok(None), &lines),
        ),
    }
}

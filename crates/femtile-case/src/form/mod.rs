//! Runs a case that is solved as a form: mesh, check, solve, results.

mod exact;
mod formulas;
mod functional;
mod gradient;
mod in_time;
pub(crate) mod interface;
mod report;
mod settings;

pub use exact::{Convergence, ConvergenceLevel, Norms, Verdict, verify_exact};

use std::collections::BTreeMap;
use std::path::Path;

use femtile_device::Cpu;
use femtile_device::cuda::Opening;
use femtile_linalg::krylov::Stop;
use femtile_mesh::Mesh;
use femtile_mesh::check::CheckReport;
use femtile_solve::{SideFluxes, Stage, Stages};

use crate::animation::Animation;
use crate::checked_mesh::checked_mesh;
use crate::distribution::RankMesh;
use crate::drawn_field::Exhibit;
use crate::file::ModesSection;
use crate::file_names::of_solution;
use crate::functional::{Evaluated, prepare};
use crate::memory::Hosted;
use crate::output::{Results, vtu_options, write_results};
use crate::side_matrix::SideMatrix;
use crate::transient::time_report;
use crate::vtkhdf::Frames;
use crate::{Case, CaseError, Report, conditions, overlap};

pub use gradient::{Array, ByConstant, FormState};

/// Runs the case; on several ranks each process has the whole mesh, and the first one writes.
pub(crate) fn run(
    cpu: &Cpu,
    case: &Case,
    opening: Option<Opening>,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    let config = case.solver_config()?;
    let whole = checked_mesh(case, Hosted::whole(case)?, (&config, opening.as_ref()), stages)?;
    run_on(cpu, case, whole, opening, stages)
}

/// Runs a case of reaction and diffusion whose mesh, now read, makes it a form: by cells that only forms have in its degree, by a surface
/// in space, or by facets inside the mesh that have a condition; a rank that has a part of the mesh alone reads all of it.
pub(crate) fn run_after_mesh(
    cpu: &Cpu,
    case: &Case,
    held: RankMesh,
    opening: Option<Opening>,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    case.check()?;
    match held {
        RankMesh::Whole(mesh, checked) => run_on(cpu, case, (*mesh, *checked), opening, stages),
        RankMesh::Part(part) => {
            drop(part);
            run(cpu, case, opening, stages)
        }
    }
}

fn run_on(
    cpu: &Cpu,
    case: &Case,
    (mut mesh, mut checked): (Mesh, CheckReport),
    opening: Option<Opening>,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    stages.begin(Stage::Space)?;
    let mut warnings = checked.warnings.clone();
    warnings.extend(overlap::warnings_of_regions(case, &case.tag_regions(&mut mesh)?));
    let cuts = interface::cut(case, &mut mesh, &mut checked)?;
    let problem = settings::problem(case, &mesh, (&checked.boundary, &cuts))?;
    let config = settings::solver_config(case, &problem)?;
    let functionals = prepare(case, &problem)?;
    warnings.extend_from_slice(&functionals.warnings);
    let sides = &case.file.output.matrix;
    if !sides.is_empty() {
        problem.check_side_matrix(sides, &config)?;
    }
    let (solution, recorded) = match (&case.file.time, case.file.modes) {
        (None, Some(ModesSection { count })) => (problem.modes(count, cpu, &config, opening, stages)?, None),
        (None, None) => (problem.solve(cpu, &config, opening, stages)?, None),
        (Some(_), _) => {
            let by = (cpu, &config, opening);
            let (solution, outcome, series) =
                in_time::advance(case, (&mesh, &problem), &functionals, by, stages)?;
            (solution, Some((outcome, series)))
        }
    };
    if let (Some(receiver), None) = (&case.embedding.receiver, &recorded) {
        receiver.form(FormState { u: solution.u().to_vec(), time: solution.time() });
    }
    let fluxes = match sides.is_empty() || solution.outcome().stop == Stop::Interrupted {
        true => None,
        false => Some(problem.side_matrix(sides, cpu, &config, stages.progress())?),
    };
    stages.begin(Stage::Write)?;
    warnings.extend_from_slice(solution.warnings());
    let Evaluated { numbers, lines, citations } = functional::evaluate(&functionals, &solution)?;
    let (mut animation, mut frames) = (Animation::default(), Frames::default());
    let (mut time, mut files) = (None, BTreeMap::new());
    if let Some((outcome, mut series)) = recorded {
        let seconds = stages.timings().solve;
        time = Some(time_report(case, &outcome, solution.u().len(), seconds));
        (animation, frames) = (series.take_animation(), series.take_frames());
        let (written, missing) = series.finish()?;
        files = written;
        warnings.extend(missing);
    }
    let mut report = report::of_solution(&checked, &solution, (numbers, warnings))?;
    report.time = time;
    match fluxes {
        None => {}
        Some(SideFluxes::Found(fluxes)) => report.matrix = Some(SideMatrix { sides: sides.clone(), fluxes }),
        Some(SideFluxes::NotConverged { side, stop }) => {
            report.warnings.push(format!(
                "there is no matrix: the solve for the side `{}` ended before it converged: {stop}",
                sides[side]
            ));
            if stop == Stop::Interrupted {
                report.solve.stop = stop;
            }
        }
    }
    report.files.extend(files);
    report.citations.extend(citations.into_iter().map(Into::into));
    let equation = case.has_page().then(|| formulas::equation(case, &problem, &solution)).transpose()?;
    let fields = stages.interruptible(|stop| solution.fields(case.field_config(), stop));
    stages.go_on()?;
    report.take_fields(&fields, true);
    let data = case.deliver(|| solution.data(&fields))?;
    let exhibit = data.map(|data| {
        let facets = |region| problem.facets(region, &[]).ok();
        let conditions = conditions::with_facets(case, (&mesh, problem.all_facets()), &facets);
        Exhibit { data, animation, frames, equation, conditions }
    });
    let write = |folder: &Path| {
        let vtu = case.file.output.vtu;
        match vtu.is_written() {
            true => {
                Ok(solution.write_vtu(folder.join(of_solution(vtu)), &fields, vtu_options(case, true))?)
            }
            false => Ok(None),
        }
    };
    write_results(case, (report, exhibit), stages, None, Results::of(write, &lines))
}

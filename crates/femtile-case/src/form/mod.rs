//! Runs a case of elasticity, of convection and diffusion or of an equation of its own: mesh, check, solve, results.

mod exact;
mod formulas;
mod functional;
mod gradient;
mod in_time;
mod report;
mod settings;

pub use exact::{Convergence, ConvergenceLevel, Norms, Verdict, verify_exact};

use std::collections::BTreeMap;
use std::path::Path;

use femtile_device::Cpu;
use femtile_device::cuda::Opening;
use femtile_solve::{Stage, Stages};

use crate::animation::Animation;
use crate::checked_mesh::checked_mesh;
use crate::drawn_field::Exhibit;
use crate::file::ModesSection;
use crate::file_names::of_solution;
use crate::functional::{Evaluated, prepare};
use crate::memory::Hosted;
use crate::output::{Results, vtu_options, write_results};
use crate::transient::time_report;
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
    let (mut mesh, checked) = checked_mesh(case, Hosted::whole(case)?, (&config, opening.as_ref()), stages)?;
    stages.begin(Stage::Space)?;
    let mut warnings = checked.warnings.clone();
    warnings.extend(overlap::warnings_of_regions(case, &case.tag_regions(&mut mesh)?));
    let problem = settings::problem(case, &mesh, &checked.boundary)?;
    warnings.extend(problem.inner_facets().iter().map(|inner| overlap::warning_inside(case, inner)));
    let config = settings::solver_config(case, &problem)?;
    let functionals = prepare(case, &problem)?;
    warnings.extend_from_slice(&functionals.warnings);
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
    stages.begin(Stage::Write)?;
    warnings.extend_from_slice(solution.warnings());
    let Evaluated { numbers, lines, citations } = functional::evaluate(&functionals, &solution)?;
    let (mut animation, mut time, mut files) = (Animation::default(), None, BTreeMap::new());
    if let Some((outcome, mut series)) = recorded {
        let seconds = stages.timings().solve;
        time = Some(time_report(case, &outcome, solution.u().len(), seconds));
        animation = series.take_animation();
        let (written, missing) = series.finish()?;
        files = written;
        warnings.extend(missing);
    }
    let mut report = report::of_solution(&checked, &solution, (numbers, warnings))?;
    report.time = time;
    report.files.extend(files);
    report.citations.extend(citations.into_iter().map(Into::into));
    let equation = case.has_page().then(|| formulas::equation(case, &problem, &solution)).transpose()?;
    let data = case.deliver(|| solution.data())?;
    let exhibit = data.map(|data| {
        let facets = |place: &str| problem.facets(place, &[]).ok().map(|selected| selected.facets);
        let conditions = conditions::with_facets(case, (&mesh, &checked.boundary), &facets);
        Exhibit { data, animation, equation, conditions }
    });
    let write = |folder: &Path| {
        let vtu = case.file.output.vtu;
        match vtu.is_written() {
            true => Ok(solution.write_vtu(folder.join(of_solution(vtu)), vtu_options(case, true))?),
            false => Ok(None),
        }
    };
    write_results(case, (report, exhibit), stages, None, Results::of(write, &lines))
}

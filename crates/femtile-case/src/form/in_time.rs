//! The way of a form in time: steps, and the files that are written as it goes.

use std::path::Path;

use femtile_device::Cpu;
use femtile_device::cuda::Opening;
use femtile_mesh::Mesh;
use femtile_solve::{Fields, FormObserver, FormProblem, FormSolution, SolveError, SolverConfig, Stages};
use femtile_time::implicit::{Checkpoint, Outcome};

use super::functional;
use crate::functional::Prepared;
use crate::series::Series;
use crate::transient::{placed, settings};
use crate::{Case, CaseError};

/// Writes frames, traces of functionals, and checkpoints.
struct Recorder<'a> {
    functionals: &'a Prepared,
    series: Series<'a>,
}

impl FormObserver for Recorder<'_> {
    fn frame(&mut self, number: usize, solution: &FormSolution<'_>) -> Result<(), SolveError> {
        let (moment, functionals) = ((number, solution.time()), self.functionals);
        self.series.deliver(moment, || solution.data(&Fields::default()))?;
        let write = |path: &Path, options| solution.write_vtu(path, &Fields::default(), options).map(drop);
        self.series.record(moment, write, |names| {
            let numbers = functional::numbers(functionals, solution)?;
            Ok(names.iter().map(|name| numbers.get(name).copied().unwrap_or(f64::NAN)).collect())
        })
    }

    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), SolveError> {
        Ok(self.series.checkpoint(|mut out| state.write(&mut out))?)
    }
}

/// Advances a problem to the end of its time; returns also what was recorded.
pub(super) fn advance<'m, 'a>(
    case: &'a Case,
    (mesh, problem): (&Mesh, &FormProblem<'m>),
    functionals: &'a Prepared,
    (cpu, config, opening): (&Cpu, &SolverConfig, Option<Opening>),
    stages: &mut Stages<'_>,
) -> Result<(FormSolution<'m>, Outcome, Series<'a>), CaseError> {
    let fingerprint = settings::fingerprint(case, mesh);
    let state = settings::checkpoint(case, fingerprint)?;
    let resumed = state.as_ref().and_then(|state| state.history.first()).map(|(time, _)| *time);
    let series = Series::new(case, functional::names(functionals), resumed)?;
    let mut stepping = settings::stepping(case, fingerprint, state);
    stepping.set_frames(series.times().iter().copied());
    stepping.has_rates = functional::has_fluxes(functionals);
    let mut recorder = Recorder { functionals, series };
    let done = problem.integrate(&stepping, cpu, config, opening, &mut recorder, stages);
    let (solution, outcome) = done.map_err(|error| placed(case, error))?;
    Ok((solution, outcome, recorder.series))
}

//! Passes a run on to the files that it writes as it goes.

use femtile_cardiac::CardiacError;
use femtile_cardiac::monodomain::{Checkpoint, Frame, Observer};
use femtile_mesh::Field;
use femtile_solve::{Discretization, SolutionData};

use crate::functional::Prepared;
use crate::series::Series;

/// Writes frames, traces of functionals and electrodes, and checkpoints.
pub(super) struct Recorder<'a> {
    pub functionals: &'a Prepared,
    pub of_potential: &'a Discretization<'a>,
    pub series: Series<'a>,
}

impl Observer for Recorder<'_> {
    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), CardiacError> {
        let (functionals, problem) = (self.functionals, self.of_potential);
        self.series.deliver((frame.number, frame.time), || {
            let potential = Field { n_components: 1, values: frame.potential.clone() };
            Ok::<_, CardiacError>(SolutionData::at_nodes(frame.mesh, [("V".into(), potential)], []))
        })?;
        let write = |path: &std::path::Path, options| Ok(frame.write_vtu(path, options)?);
        self.series.record((frame.number, frame.time), write, |names| {
            let numbers = functionals.numbers(&[problem.component(&frame.potential)], Some(frame.time))?;
            let n_functionals = names.len() - frame.electrodes.len();
            let values =
                names[..n_functionals].iter().map(|name| numbers.get(name).copied().unwrap_or(f64::NAN));
            Ok(values.chain(frame.electrodes.iter().copied()).collect())
        })
    }

    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), CardiacError> {
        Ok(self.series.checkpoint(|mut out| state.write(&mut out))?)
    }
}

//! Passes a run on to the files that it writes as it goes.

use femtile_solve::{Frame, Observer, SolveError};
use femtile_time::implicit::Checkpoint;

use crate::functional::Prepared;
use crate::series::Series;

/// Writes frames, traces of functionals, and checkpoints.
pub(super) struct Recorder<'a> {
    pub functionals: &'a Prepared,
    pub series: Series<'a>,
}

impl Observer for Recorder<'_> {
    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), SolveError> {
        let (moment, functionals) = ((frame.number(), frame.time()), self.functionals);
        self.series.deliver(moment, || frame.data())?;
        let write = |path: &std::path::Path, options| frame.write_vtu(path, options);
        self.series.record(moment, write, |names| {
            let numbers = functionals.numbers(&[frame.component()], Some(frame.time()))?;
            Ok(names.iter().map(|name| numbers.get(name).copied().unwrap_or(f64::NAN)).collect())
        })
    }

    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), SolveError> {
        Ok(self.series.checkpoint(|mut out| state.write(&mut out))?)
    }
}

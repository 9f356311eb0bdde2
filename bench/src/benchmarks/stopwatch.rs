//! How long iterations take.

use std::ops::ControlFlow;
use std::time::Instant;

use femtile::linalg::krylov::{Monitor, Stop};

use crate::timing::Samples;

/// Notes the time of iterations but for the first; of those whose residual is not known the mean.
#[derive(Default)]
pub(super) struct Stopwatch {
    last: Option<(Instant, usize)>,
    pub samples: Samples,
}

impl Stopwatch {
    /// Begins with another solve.
    pub fn begin(&mut self) {
        self.last = None;
    }
}

impl Monitor for Stopwatch {
    fn iteration(&mut self, iteration: usize, _relative_residual: f64) -> ControlFlow<Stop> {
        let now = Instant::now();
        if let Some((last, before)) = self.last.replace((now, iteration))
            && before > 0
        {
            self.samples.push((now - last).as_secs_f64() / (iteration - before) as f64);
        }
        ControlFlow::Continue(())
    }
}

use std::ops::ControlFlow;

use super::Stop;

/// Who watches a solve and may end it, called after every iteration whose residual is known.
pub trait Monitor {
    /// Sees the relative residual after `iteration` iterations; breaking ends the solve with that stop.
    fn iteration(&mut self, iteration: usize, relative_residual: f64) -> ControlFlow<Stop>;
}

/// Nobody watches.
impl Monitor for () {
    fn iteration(&mut self, _iteration: usize, _relative_residual: f64) -> ControlFlow<Stop> {
        ControlFlow::Continue(())
    }
}

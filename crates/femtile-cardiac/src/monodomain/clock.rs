//! Begin and length of steps.

use crate::CardiacError;

/// Lengths of steps chosen by an estimate of the local error, for the implicit scheme.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdaptiveSteps {
    /// The local error of a step, root mean square over the nodes, as a share of the range of action potentials; a third of it
    /// for the states, as a share of their range.
    pub tolerance: f64,
    /// The shortest step; a run that needs shorter ones ends.
    pub shortest: f64,
    /// The longest step.
    pub longest: f64,
}

impl AdaptiveSteps {
    pub(super) fn check(&self) -> Result<(), CardiacError> {
        let Self { tolerance, shortest, longest } = *self;
        if !(tolerance > 0.0 && tolerance < 1.0) {
            let message = format!("{tolerance} does not lie between 0 and 1; 1e-3 is usual");
            return Err(CardiacError::setting("tolerance", message));
        }
        if !(shortest > 0.0 && longest >= shortest && longest.is_finite()) {
            let message = format!("{shortest} has to be positive and at most the longest step, {longest}");
            return Err(CardiacError::setting("shortest_step", message));
        }
        Ok(())
    }
}

/// The share of the tolerance that is aimed at.
const SAFETY: f64 = 0.8;
/// Bounds of the change of a length.
const CHANGE: [f64; 2] = [0.2, 2.0];
/// A length is kept unless it may grow by this factor, as another length needs another matrix.
const WORTH_A_CHANGE: f64 = 1.3;

/// The time of a run, and the length of its next step.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    start: f64,
    end: f64,
    /// Steps of a run with one length.
    count: usize,
    pub steps: usize,
    pub time: f64,
    pub length: f64,
    pub adaptive: Option<AdaptiveSteps>,
}

impl Clock {
    pub fn new(
        (start, end): (f64, f64),
        (count, length): (usize, f64),
        adaptive: Option<AdaptiveSteps>,
    ) -> Self {
        Self { start, end, count, steps: 0, time: start, length, adaptive }
    }

    pub fn is_over(&self) -> bool {
        match self.adaptive {
            None => self.steps >= self.count,
            Some(_) => self.time >= self.end,
        }
    }

    /// Returns the end and the length of the next step. An adaptive step that would pass `next` ends there.
    pub fn next(&self, next: Option<f64>) -> (f64, f64) {
        if self.adaptive.is_none() {
            let end = self.start + (self.steps + 1) as f64 * self.length;
            return (end, self.length);
        }
        let target = next.filter(|next| *next > self.time).map_or(self.end, |next| next.min(self.end));
        let remaining = target - self.time;
        if self.length >= remaining * (1.0 - 1e-9) {
            (target, remaining)
        } else if 2.0 * self.length > remaining {
            (self.time + 0.5 * remaining, 0.5 * remaining)
        } else {
            (self.time + self.length, self.length)
        }
    }

    /// Continues to the end of a step with an error, as a share of the tolerance.
    pub fn accept(&mut self, (end, length): (f64, f64), error: Option<f64>) {
        (self.time, self.steps) = (end, self.steps + 1);
        let Some(adaptive) = self.adaptive else { return };
        let factor = match error {
            None => 1.0,
            Some(error) => (SAFETY / error.max(1e-10)).sqrt().clamp(CHANGE[0], CHANGE[1]),
        };
        let factor = if (1.0..WORTH_A_CHANGE).contains(&factor) { 1.0 } else { factor };
        // A step that was cut to end at some time says little about longer ones.
        let wanted = if length < 0.9 * self.length && factor >= 1.0 { self.length } else { factor * length };
        self.length = wanted.clamp(adaptive.shortest, adaptive.longest);
    }

    /// Shortens the next step after a step of this length. `error` is the error that was too large, or none
    /// if the step has no solution. Returns whether a shorter step is possible.
    pub fn reject(&mut self, length: f64, error: Option<f64>) -> bool {
        let Some(adaptive) = self.adaptive else { return false };
        let factor = error.map_or(0.5, |error| (SAFETY / error).sqrt().clamp(CHANGE[0], 0.8));
        let is_shortest = length <= adaptive.shortest;
        self.length = (factor * length).max(adaptive.shortest);
        !is_shortest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adaptive_steps_end_at_the_times_asked_for() {
        let adaptive = AdaptiveSteps { tolerance: 1e-3, shortest: 1e-6, longest: 0.4 };
        let mut clock = Clock::new((0.0, 3.0), (10, 0.3), Some(adaptive));
        let targets = [0.1, 1.0, 1.05, 2.9];
        let mut seen = Vec::new();
        while !clock.is_over() {
            let next = targets.iter().copied().find(|target| *target > clock.time);
            let step = clock.next(next);
            assert!(step.1 > 0.0 && step.1 <= 0.4 + 1e-12);
            clock.accept(step, Some(0.5));
            seen.push(clock.time);
        }
        assert!(targets.iter().chain([&3.0]).all(|target| seen.contains(target)), "{seen:?}");
    }

    #[test]
    fn steps_of_one_length_end_at_multiples() {
        let mut clock = Clock::new((1.0, 2.0), (7, 1.0 / 7.0), None);
        while !clock.is_over() {
            clock.accept(clock.next(None), None);
        }
        assert_eq!(clock.steps, 7);
        assert!((clock.time - 2.0).abs() < 1e-14);
    }

    #[test]
    fn the_shortest_step_is_rejected_once() {
        let adaptive = AdaptiveSteps { tolerance: 1e-3, shortest: 0.1, longest: 1.0 };
        let mut clock = Clock::new((0.0, 9.0), (9, 1.0), Some(adaptive));
        assert!(clock.reject(1.0, None) && clock.length == 0.5);
        assert!(clock.reject(0.2, Some(100.0)) && clock.length == 0.1);
        assert!(!clock.reject(0.1, None));
    }
}

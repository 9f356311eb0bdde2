//! Lengths of steps: halved if Newton's method fails, or chosen by an estimate of the error.

use femtile::device::Buffer;

use super::{Implicit, StepSeconds};
use crate::activation::Interval;
use crate::monodomain::{Course, Stepper, Stop};
use crate::{CardiacDevice, CardiacError};

/// The largest number of times that a step of a fixed length is halved if Newton's method fails.
const MOST_HALVINGS: usize = 6;

/// The state before a step, on the host.
struct Before {
    v: Vec<f64>,
    activation: Vec<Vec<f64>>,
    states: Vec<Vec<f64>>,
}

impl Before {
    fn of<D: CardiacDevice>(implicit: &Implicit<D>, course: &Course<D>) -> Result<Self, CardiacError> {
        let activation = course.activation.arrays().map(Buffer::to_host);
        let activation = activation.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { v: course.v.to_host()?, activation, states: implicit.states()? })
    }

    /// Returns to the state; counts remain.
    fn restore<D: CardiacDevice>(
        &self,
        implicit: &mut Implicit<D>,
        course: &mut Course<D>,
    ) -> Result<(), CardiacError> {
        course.v.upload(&self.v)?;
        for (array, values) in course.activation.arrays_mut().into_iter().zip(&self.activation) {
            array.upload(values)?;
        }
        implicit.restore(&self.states).map(|_| ())
    }
}

impl<D: CardiacDevice> Implicit<D> {
    /// Computes a step, which is pending until it is accepted; returns what failed.
    fn attempt(
        &mut self,
        course: &mut Course<D>,
        Interval { begin, length }: Interval,
    ) -> Result<Option<Stop>, CardiacError> {
        let outcome = self.solve(&course.v, course.stimuli.rate(begin, length)?, length)?;
        course.iterations += outcome.linear_iterations;
        course.newton += outcome.iterations;
        if outcome.has_converged() {
            return Ok(None);
        }
        let (node, potential) = self.worst()?;
        Ok(Some(Stop::NewtonFailed { node, potential }))
    }

    /// Accepts a pending step.
    fn accept(&mut self, course: &mut Course<D>, step: Interval) -> Result<(), CardiacError> {
        self.take_over(&mut course.v)?;
        course.record(step)
    }

    /// Performs a step, or two halves of it if Newton's method fails. `before` receives the state before the
    /// first half.
    fn halving(
        &mut self,
        course: &mut Course<D>,
        step: Interval,
        halvings: usize,
        before: &mut Option<Before>,
    ) -> Result<Option<Stop>, CardiacError> {
        let Some(failed) = self.attempt(course, step)? else {
            self.accept(course, step)?;
            return Ok(None);
        };
        course.rejected += 1;
        if halvings == 0 {
            return Ok(Some(failed));
        }
        if before.is_none() {
            *before = Some(Before::of(self, course)?);
        }
        let half = Interval { begin: step.begin, length: 0.5 * step.length };
        match self.halving(course, half, halvings - 1, before)? {
            None => {
                let second = Interval { begin: half.begin + half.length, ..half };
                self.halving(course, second, halvings - 1, before)
            }
            failed => Ok(failed),
        }
    }
}

impl<D: CardiacDevice> Stepper<D> for Implicit<D> {
    fn description(&self) -> (String, &'static str) {
        (self.linear.format().name(), "jacobi")
    }

    fn seconds(&self) -> Option<StepSeconds> {
        self.stopwatch.seconds()
    }

    fn apply_stiffness(&self, y: &mut Buffer<f64, D>, x: &Buffer<f64, D>) -> Result<(), CardiacError> {
        Ok(D::matrix_operator(&self.stiffness).apply(y, x)?)
    }

    fn advance(
        &mut self,
        course: &mut Course<D>,
        (end, length): (f64, f64),
    ) -> Result<Option<Stop>, CardiacError> {
        let step = Interval { begin: end - length, length };
        let Some(adaptive) = course.clock.adaptive else {
            let mut before = None;
            let failed = self.halving(course, step, MOST_HALVINGS, &mut before)?;
            match (&failed, before) {
                (None, _) => course.clock.accept((end, length), None),
                (Some(_), Some(before)) => before.restore(self, course)?,
                (Some(_), None) => {}
            }
            return Ok(failed);
        };
        let failed = self.attempt(course, step)?;
        let allowed = adaptive.tolerance * self.amplitude;
        let error = match failed {
            None => self.local_error(&course.v)?.map(|error| error / allowed),
            Some(_) => None,
        };
        if failed.is_none() && error.is_none_or(|error| error <= 1.0) {
            self.accept(course, step)?;
            course.clock.accept((end, length), error);
            return Ok(None);
        }
        course.rejected += 1;
        if course.clock.reject(length, error) {
            return Ok(None);
        }
        Ok(failed.or(Some(Stop::StepTooShort)))
    }

    /// Returns the states at points, the length of the last step with the smallest Ritz value, the potential before the
    /// last step with the length of that step, and the states before it if they are kept.
    fn states(&self) -> Result<Vec<Vec<f64>>, CardiacError> {
        let mut all = vec![self.states.to_host()?, self.known.to_vec()];
        if let Some((before, length)) = &self.before {
            all.push(before.to_host()?);
            all.push(vec![*length]);
            all.extend(self.states.before()?);
        }
        Ok(all)
    }

    fn restore(&mut self, states: &[Vec<f64>]) -> Result<bool, CardiacError> {
        let [states, known, history @ ..] = states else { return Ok(false) };
        let &[length, ritz] = known.as_slice() else { return Ok(false) };
        if !(length > 0.0 && length.is_finite()) {
            return Ok(false);
        }
        let trial = &self.vectors.trial;
        let (before, of_states) = match history {
            [] => (None, None),
            [before, length, of_states @ ..] if before.len() == trial.len() && length.len() == 1 => {
                (Some((Buffer::from_host(trial.device(), before)?, length[0])), Some(of_states))
            }
            _ => return Ok(false),
        };
        if !self.states.restore(states, of_states)? {
            return Ok(false);
        }
        (self.before, self.known) = (before, [length, ritz]);
        Ok(true)
    }
}

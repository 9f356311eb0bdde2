//! Observers of time-dependent runs.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use femtile_device::Buffer;
use femtile_mesh::io::vtu::WriteOptions;
use femtile_time::implicit::{Checkpoint, Monitor, Reached, Stop};

use super::CheckpointInterval;
use crate::component::Component;
use crate::discretization::Discretization;
use crate::output;
use crate::ranks::{GlobalUnknowns, Keepers};
use crate::tensor::OperatorDevice;
use crate::{Fields, Progress, SolutionData, SolveError};

/// Receives frames and checkpoints of a run; an error ends it.
pub trait Observer: Send {
    /// Called at each time of [`frames`](crate::Transient::frames).
    ///
    /// # Errors
    /// An error ends the run.
    fn frame(&mut self, _frame: &Frame<'_>) -> Result<(), SolveError> {
        Ok(())
    }

    /// Called with the state at each checkpoint.
    ///
    /// # Errors
    /// An error ends the run.
    fn checkpoint(&mut self, _state: &Checkpoint) -> Result<(), SolveError> {
        Ok(())
    }
}

/// The solution at the time of a frame.
#[derive(Debug)]
pub struct Frame<'a> {
    problem: &'a Discretization<'a>,
    number: usize,
    time: f64,
    values: [Vec<f64>; 1],
}

impl Frame<'_> {
    /// Returns the position of this time in the list of requested times.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the time.
    pub fn time(&self) -> f64 {
        self.time
    }

    /// Returns the values at the degrees of freedom.
    pub fn values(&self) -> &[f64] {
        &self.values[0]
    }

    /// Returns the solution with its functionals.
    pub fn component(&self) -> Component<'_> {
        self.problem.component(&self.values[0])
    }

    /// Returns the mesh and u in memory, as [`Frame::write_vtu`] writes them.
    ///
    /// # Errors
    /// A cell that folds over itself.
    pub fn data(&self) -> Result<SolutionData, SolveError> {
        SolutionData::of_components(self.problem, &self.values, &Fields::default())
    }

    /// Writes the mesh and u, for ParaView.
    ///
    /// # Errors
    /// [`SolveError::Mesh`] with the path.
    pub fn write_vtu(&self, path: impl AsRef<Path>, options: WriteOptions<'_>) -> Result<(), SolveError> {
        let of = (self.problem, self.values.as_slice());
        output::write_solution(path.as_ref(), of, &Fields::default(), options).map(drop)
    }
}

/// Passes steps on to the record and to the progress of the solve, and ends the run when a limit is reached
/// or it is interrupted.
pub(super) struct Watch<'a, D: OperatorDevice> {
    pub record: &'a mut dyn Record,
    pub progress: &'a mut dyn Progress,
    /// The owned unknowns of this rank by their numbers, if there are several ranks.
    pub global: Option<&'a GlobalUnknowns<'a>>,
    /// Whether frames have the rate of u.
    pub has_rates: bool,
    /// The times of the remaining frames, with their numbers.
    pub frames: VecDeque<(usize, f64)>,
    pub checkpoints: Option<(CheckpointInterval, [u8; 32])>,
    pub last_checkpoint: Instant,
    pub span: (f64, f64),
    pub deadline: Option<(Instant, Duration)>,
    /// The solution at the time of a frame.
    pub scratch: Buffer<f64, D>,
}

/// The values of a run at a time, with their rate.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moment {
    /// The value of each unknown.
    pub values: Vec<f64>,
    /// Functions with factors, whose sum is the rate; empty if it is not asked for, and at the initial time.
    pub rate: Vec<(f64, Vec<f64>)>,
}

impl Moment {
    /// Copies values and rate to the host.
    pub fn of<D: OperatorDevice>(
        values: &Buffer<f64, D>,
        rate: &[(f64, &Buffer<f64, D>)],
    ) -> Result<Self, SolveError> {
        let term = |&(factor, v): &(f64, &Buffer<f64, D>)| Ok::<_, SolveError>((factor, v.to_host()?));
        Ok(Self { values: values.to_host()?, rate: rate.iter().map(term).collect::<Result<_, _>>()? })
    }
}

/// Receives the values of a run at all unknowns.
pub(crate) trait Record {
    /// Receives the frame with a number.
    fn frame(&mut self, number: usize, time: f64, at: Moment) -> Result<(), SolveError>;

    /// Receives a state.
    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), SolveError>;
}

/// The observer of a run of a problem.
pub(super) struct Observed<'a, 'm> {
    pub observer: &'a mut dyn Observer,
    pub problem: &'a Discretization<'m>,
}

impl Record for Observed<'_, '_> {
    fn frame(&mut self, number: usize, time: f64, at: Moment) -> Result<(), SolveError> {
        let now = self.problem.at_time(time);
        self.observer.frame(&Frame { problem: &now, number, time, values: [at.values] })
    }

    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), SolveError> {
        self.observer.checkpoint(state)
    }
}

/// The problem of the frames of a run, and the numbers of their unknowns.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a, 'm> {
    pub problem: &'a Discretization<'m>,
    /// The owned unknowns of this rank by their numbers in that problem, if there are several ranks.
    pub global: Option<&'a GlobalUnknowns<'a>>,
}

impl<D: OperatorDevice> Watch<'_, D> {
    /// Passes on the frame of the initial value, if it is requested.
    pub fn begin(&mut self, time: f64, u: &Buffer<f64, D>) -> Result<(), SolveError> {
        while let Some(&(number, asked)) = self.frames.front()
            && asked <= time
        {
            self.frames.pop_front();
            if asked == time {
                self.pass_on(number, time, Moment::of(u, &[])?)?;
            }
        }
        Ok(())
    }

    fn is_due(&self, interval: CheckpointInterval, steps: usize) -> bool {
        match interval {
            CheckpointInterval::Steps(every) => steps.is_multiple_of(every.max(1)),
            CheckpointInterval::Time(every) => self.last_checkpoint.elapsed() >= every,
        }
    }

    /// Gathers a frame of all ranks and passes it to the record, on the first rank. Collective.
    fn pass_on(&mut self, number: usize, time: f64, own: Moment) -> Result<(), SolveError> {
        let values = self.gather(own.values)?;
        let mut rate = Vec::with_capacity(own.rate.len());
        for (factor, own) in own.rate {
            rate.extend(self.gather(own)?.map(|all| (factor, all)));
        }
        match values {
            Some(values) => self.record.frame(number, time, Moment { values, rate }),
            None => Ok(()),
        }
    }
}

impl<D: OperatorDevice> Watch<'_, D> {
    /// Gathers the values of all ranks on the first one; none on the others.
    fn gather(&self, own: Vec<f64>) -> Result<Option<Vec<f64>>, SolveError> {
        let Some(global) = self.global else { return Ok(Some(own)) };
        let all = global.gather(&own, Keepers::First)?;
        Ok(Keepers::First.has(global.comm).then_some(all))
    }

    /// Gathers the state of a run and passes it to the record, on the first rank.
    pub fn keep(&mut self, own: Checkpoint) -> Result<(), SolveError> {
        let mut history = Vec::with_capacity(own.history.len());
        for (time, values) in own.history {
            history.extend(self.gather(values)?.map(|all| (time, all)));
        }
        match self.global.is_none_or(|global| global.comm.rank() == 0) {
            true => self.record.checkpoint(&Checkpoint { history, ..own }),
            false => Ok(()),
        }
    }

    /// Returns which flags are set on at least one rank; collective decisions depend on them.
    fn agreed<const N: usize>(&self, is_so: [bool; N]) -> Result<[bool; N], SolveError> {
        let Some(global) = self.global else { return Ok(is_so) };
        Ok(global.comm.any(is_so)?)
    }
}

impl<D: OperatorDevice> Monitor<D> for Watch<'_, D> {
    type Error = SolveError;

    fn step(&mut self, reached: &Reached<'_, D>) -> Result<ControlFlow<Stop>, SolveError> {
        let (time, (start, end)) = (reached.time(), self.span);
        let rounding = 1e-12 * (end - start);
        while let Some(&(number, asked)) = self.frames.front()
            && asked <= time + rounding
        {
            self.frames.pop_front();
            let is_there = (asked - time).abs() <= rounding;
            let rate = match (self.has_rates, is_there) {
                (false, _) => Vec::new(),
                (true, true) => reached.rate(),
                (true, false) => reached.rate_at(asked),
            };
            let moment = match is_there {
                true => Moment::of(reached.values(), &rate)?,
                false => {
                    reached.values_at(asked, &mut self.scratch)?;
                    Moment::of(&self.scratch, &rate)?
                }
            };
            self.pass_on(number, asked, moment)?;
        }
        self.progress.fraction((time - start) / (end - start));
        self.progress.time(time, end);
        let is_late = self.deadline.is_some_and(|(begun, limit)| begun.elapsed() >= limit);
        let is_due = self.checkpoints.is_some_and(|(interval, _)| self.is_due(interval, reached.steps()));
        let [is_interrupted, is_late, is_due] =
            self.agreed([self.progress.is_interrupted(), is_late, is_due])?;
        let stop = match is_interrupted {
            true => Some(Stop::Interrupted),
            false => is_late.then_some(Stop::TimeLimit),
        };
        if let Some((_, fingerprint)) = self.checkpoints
            && (stop.is_some() || is_due)
        {
            self.keep(reached.checkpoint(fingerprint)?)?;
            self.last_checkpoint = Instant::now();
        }
        Ok(stop.map_or(ControlFlow::Continue(()), ControlFlow::Break))
    }
}

//! Observation of a run: frames, samples, checkpoints.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use femtile::Mesh;
use femtile::mesh::io::vtu::{WriteOptions, write_with};
use femtile::mesh::{Field, MeshError};

use super::{Checkpoint, CheckpointInterval};
use crate::CardiacError;

/// Receives the events of a run; an error ends the run.
pub trait Observer: Send {
    /// A time of [`frames`](super::Monodomain::frames) was reached.
    ///
    /// # Errors
    /// An error ends the run.
    fn frame(&mut self, _frame: &Frame<'_>) -> Result<(), CardiacError> {
        Ok(())
    }

    /// The state after a number of steps.
    ///
    /// # Errors
    /// An error ends the run.
    fn checkpoint(&mut self, _state: &Checkpoint) -> Result<(), CardiacError> {
        Ok(())
    }
}

/// The potential at a time.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The mesh.
    pub mesh: &'a Mesh,
    /// The index of the time among the requested ones.
    pub number: usize,
    /// The time.
    pub time: f64,
    /// The potential at the nodes.
    pub potential: Vec<f64>,
    /// The potential of each electrode.
    pub electrodes: Vec<f64>,
}

impl Frame<'_> {
    /// Writes the mesh and the potential, for ParaView.
    ///
    /// # Errors
    /// [`MeshError`] with the path.
    pub fn write_vtu(
        &self,
        path: impl AsRef<std::path::Path>,
        options: WriteOptions<'_>,
    ) -> Result<(), MeshError> {
        let field = Field { n_components: 1, values: self.potential.clone() };
        write_with(path.as_ref(), self.mesh, &[("V", &field)], &[], options).map(drop)
    }
}

/// Frames that are to come.
pub(super) struct Agenda(VecDeque<(usize, f64)>);

impl Agenda {
    /// Creates the watch from the times of all frames. Frames up to `until` were emitted by the run before a
    /// checkpoint.
    pub fn new(frames: &[f64], until: Option<f64>) -> Self {
        let is_open = |(_, asked): &(usize, f64)| until.is_none_or(|time| *asked > time);
        Self(frames.iter().copied().enumerate().filter(is_open).collect())
    }

    /// Returns the time of the next frame.
    pub fn next(&self) -> Option<f64> {
        self.0.front().map(|(_, asked)| *asked)
    }

    /// Returns the numbers of the frames up to a time.
    pub fn due(&mut self, until: f64) -> Vec<usize> {
        let mut due = Vec::new();
        while let Some(&(number, asked)) = self.0.front()
            && asked <= until
        {
            self.0.pop_front();
            due.push(number);
        }
        due
    }
}

/// When the next checkpoint is due.
pub(super) struct CheckpointClock {
    interval: Option<CheckpointInterval>,
    last: Instant,
}

impl CheckpointClock {
    pub fn new(interval: Option<CheckpointInterval>) -> Self {
        Self { interval, last: Instant::now() }
    }

    /// Returns whether a run that ends early leaves a checkpoint.
    pub fn is_wanted(&self) -> bool {
        self.interval.is_some()
    }

    /// Returns whether a checkpoint is due after a number of steps.
    pub fn is_due(&self, steps: usize) -> bool {
        match self.interval {
            None => false,
            Some(CheckpointInterval::Steps(every)) => steps.is_multiple_of(every.max(1)),
            Some(CheckpointInterval::Time(every)) => self.last.elapsed() >= every,
        }
    }

    /// Begins the interval to the next one.
    pub fn begin_anew(&mut self) {
        self.last = Instant::now();
    }
}

/// The end of the time that a run may take.
pub(super) struct Deadline(Option<(Instant, Duration)>);

impl Deadline {
    pub fn new(limit: Option<Duration>) -> Self {
        Self(limit.map(|limit| (Instant::now(), limit)))
    }

    pub fn is_over(&self) -> bool {
        self.0.is_some_and(|(begun, limit)| begun.elapsed() >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_due_at_the_nearest_step() {
        let mut agenda = Agenda::new(&[0.0, 0.26, 1.0], None);
        assert_eq!(agenda.due(0.05), [0]);
        let due = (1..=10)
            .flat_map(|step| agenda.due(0.1 * f64::from(step) + 0.05).into_iter().map(move |n| (n, step)));
        assert_eq!(due.collect::<Vec<_>>(), [(1, 3), (2, 10)]);
    }

    #[test]
    fn a_resumed_agenda_goes_on_where_the_first_one_ended() {
        let mut whole = Agenda::new(&[0.1, 0.44, 0.7], None);
        let mut resumed = Agenda::new(&[0.1, 0.44, 0.7], Some(0.4 + 0.05));
        (0..=4).for_each(|step| drop(whole.due(0.1 * f64::from(step) + 0.05)));
        for step in 5..=10 {
            let until = 0.1 * f64::from(step) + 0.05;
            assert_eq!(whole.due(until), resumed.due(until), "step {step}");
        }
    }
}

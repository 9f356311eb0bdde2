//! Ranks as threads of one process.

mod hub;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use femtile_linalg::LinalgError;

use crate::{Comm, Incoming, Outgoing, Transport};
use hub::Hub;

/// A rank that is a thread.
struct Threads {
    hub: Arc<Hub>,
    rank: usize,
}

impl Transport for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn n_ranks(&self) -> usize {
        self.hub.n_ranks()
    }

    fn shares_memory(&self) -> bool {
        true
    }

    fn sum(&self, values: &mut [f64]) -> Result<(), LinalgError> {
        self.hub.sum(self.rank, values)
    }

    fn exchange(
        &self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), LinalgError> {
        sends.iter().for_each(|send| self.hub.send(self.rank, send.to, send.bytes));
        meanwhile();
        receives.iter_mut().try_for_each(|room| self.hub.receive(room.from, self.rank, room.bytes))
    }

    fn all_gather(&self, message: &[u8]) -> Result<Vec<Vec<u8>>, LinalgError> {
        self.hub.all_gather(self.rank, message)
    }
}

/// Notifies the others if its rank panics.
struct Guard<'a> {
    hub: &'a Hub,
    rank: usize,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.hub.fail(self.rank, "panicked");
        }
    }
}

/// Runs `first` as rank 0 on this thread, and `other` on one thread per further rank; returns the result of
/// rank 0.
///
/// ```
/// use femtile_comm::threads;
///
/// let work = |comm: femtile_comm::Comm| comm.all_gather(&[comm.rank() as u64]);
/// let seen = threads::run(3, work, |comm| work(comm).map(drop))?;
/// assert_eq!(seen, [[0], [1], [2]]);
/// # Ok::<(), femtile_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// The error of the rank that failed first; the others end at their next call of the communicator.
/// [`LinalgError::Rank`] if the system refuses a thread.
/// # Panics
/// If a rank panics.
pub fn run<R, E: From<LinalgError> + Display + Send>(
    n_ranks: usize,
    first: impl FnOnce(Comm) -> Result<R, E>,
    other: impl Fn(Comm) -> Result<(), E> + Sync,
) -> Result<R, E> {
    if n_ranks <= 1 {
        return first(Comm::alone());
    }
    let hub = Arc::new(Hub::new(n_ranks));
    let comm = |rank: usize| Comm::new(Threads { hub: Arc::clone(&hub), rank });
    let told = |rank: usize, error: &E| hub.fail(rank, &error.to_string());
    let (own, others) = thread::scope(|scope| {
        let begin = |rank: usize| {
            let (hub, other) = (&hub, &other);
            let work = move || {
                let _guard = Guard { hub, rank };
                other(comm(rank)).inspect_err(|error| told(rank, error))
            };
            thread::Builder::new().spawn_scoped(scope, work).map_err(|error| {
                let message = format!("its thread cannot be started ({error}): ask for fewer ranks");
                hub.fail(rank, &message);
                E::from(LinalgError::Rank { rank, message })
            })
        };
        let mut begun = Vec::new();
        let started = (1..n_ranks).try_for_each(|rank| begin(rank).map(|thread| begun.push(thread)));
        let own = started.and_then(|()| {
            let _guard = Guard { hub: &hub, rank: 0 };
            first(comm(0)).inspect_err(|error| told(0, error))
        });
        let ended = begun.into_iter().map(|rank| rank.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (own, ended.collect::<Vec<Result<(), E>>>())
    });
    let mut results = others.into_iter();
    match hub.failed() {
        Some(rank) if rank > 0 => match results.nth(rank - 1) {
            Some(Err(error)) => Err(error),
            _ => own,
        },
        _ => own,
    }
}

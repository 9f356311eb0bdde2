//! Work without the lock of Python that Ctrl-C ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use femtile::solve::Progress;
use pyo3::prelude::*;

/// The time from one look at the signals to the next.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A request to stop, for any thread to read.
#[derive(Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Asks for a stop.
    pub fn ask(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Returns whether a stop was asked for.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Progress for &Stop {
    fn is_interrupted(&self) -> bool {
        self.is_asked()
    }
}

/// Unknowns up to which a solve is over before anybody could interrupt it, so that a thread of its own would cost more.
const SHORT: usize = 2_000;

/// Runs a solve for `n` unknowns as [`interruptible`] does, or in this thread where it is short.
pub fn interruptible_from<R: Send>(
    py: Python<'_>,
    n: usize,
    stop: &Stop,
    work: impl FnOnce() -> R + Send,
) -> PyResult<R> {
    if n > SHORT {
        return interruptible(py, stop, work);
    }
    let result = py.detach(work);
    py.check_signals()?;
    Ok(result)
}

/// Runs `work` in a thread of its own, without the lock of Python, while this one handles signals; an exception of a
/// handler asks for a stop, and is raised when the work has ended.
pub fn interruptible<R: Send>(py: Python<'_>, stop: &Stop, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, is_done) = channel::<()>();
            let worker = scope.spawn(move || {
                let _done = done;
                work()
            });
            let mut raised = None;
            while is_done.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                if let (None, Err(error)) = (&raised, Python::attach(|py| py.check_signals())) {
                    stop.ask();
                    raised = Some(error);
                }
            }
            match (worker.join(), raised) {
                (Err(panic), _) => std::panic::resume_unwind(panic),
                (Ok(_), Some(error)) => Err(error),
                (Ok(result), None) => Ok(result),
            }
        })
    })
}

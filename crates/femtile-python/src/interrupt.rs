//! Work without the lock of Python that Ctrl-C ends.
//!
//! A solve runs in a thread without the lock of Python. The thread of the caller looks at signals every 50 ms and
//! asks for a stop by `Progress`.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use femtile::linalg::krylov::{Monitor, Stop as Reason};
use femtile::solve::Progress;
use pyo3::prelude::*;

use crate::errors::no_thread;

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

/// Messages from the threads of a solve to the one that waits, with the callback of the user.
#[derive(Default)]
pub struct Watch {
    /// The request to stop.
    pub stop: Stop,
    raised: Mutex<Option<PyErr>>,
    callback: Option<Py<PyAny>>,
}

impl Watch {
    /// Calls `callback` with the relative residual after every iteration, where there is one.
    pub fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, ..Self::default() }
    }

    /// Keeps the first exception and asks for a stop.
    pub fn keep(&self, error: PyErr) {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.ask();
    }

    /// Returns the exception that was kept as an error.
    pub fn raised(&self) -> PyResult<()> {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map_or(Ok(()), Err)
    }

    fn call(&self, relative_residual: f64) {
        if let Some(callback) = &self.callback {
            let called = called_back(|py| callback.call1(py, (relative_residual,)).map(drop));
            called.unwrap_or_else(|error| self.keep(error));
        }
    }
}

impl Monitor for &Watch {
    fn iteration(&mut self, _iteration: usize, relative_residual: f64) -> ControlFlow<Reason> {
        self.call(relative_residual);
        if self.stop.is_asked() { ControlFlow::Break(Reason::Interrupted) } else { ControlFlow::Continue(()) }
    }
}

impl Progress for &Watch {
    fn iteration(&mut self, iteration: usize, relative_residual: f64, _tolerance: f64) {
        if iteration > 0 {
            self.call(relative_residual);
        }
    }

    fn is_interrupted(&self) -> bool {
        self.stop.is_asked()
    }
}

thread_local! {
    static IS_CALLED_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function of Python from a thread of a solve.
pub fn called_back<R>(call: impl FnOnce(Python<'_>) -> R) -> R {
    let before = IS_CALLED_BACK.replace(true);
    let result = Python::attach(call);
    IS_CALLED_BACK.set(before);
    result
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
///
/// What a function of Python asks for within a solve runs in its thread: the pool of the solve may have no other.
pub fn interruptible<R: Send>(py: Python<'_>, stop: &Stop, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    if IS_CALLED_BACK.get() {
        return Ok(py.detach(work));
    }
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, is_done) = channel::<()>();
            let worker = std::thread::Builder::new().spawn_scoped(scope, move || {
                let _done = done;
                work()
            });
            let worker = worker.map_err(|error| Python::attach(|py| no_thread(py, &error)))?;
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

//! Frames of a run in time, one after the other while it goes on.

use std::sync::mpsc::{Receiver as Channel, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use femtile::solve::SolutionData;
use femtile_case::{CaseError, Receiver, run};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::case::{Given, solution};
use crate::errors::{Raise, exception, no_thread};
use crate::interrupt::Stop;
use crate::mesh::Mesh;

/// The time from one look at the signals to the next.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A frame, or the outcome of the run.
enum Sent {
    Frame(f64, Box<SolutionData>),
    End(Result<String, CaseError>),
}

/// Passes frames on, each when the one before was taken.
struct Sender(SyncSender<Sent>);

impl Receiver for Sender {
    fn frame(&self, time: f64, data: SolutionData) {
        // Nobody listens once the iterator is gone; the run is being stopped then.
        let _ = self.0.send(Sent::Frame(time, Box::new(data)));
    }
}

/// The state of a run whose frames are being taken.
struct Running {
    channel: Channel<Sent>,
    thread: JoinHandle<()>,
}

/// An iterator over the frames of a run, which ends with the run.
#[pyclass(frozen, module = "femtile._femtile")]
pub struct Frames {
    running: Mutex<Option<Running>>,
    report: Mutex<Option<String>>,
    stop: Arc<Stop>,
}

/// Begins a case in time.
#[pyfunction]
pub fn frames(py: Python<'_>, given: Given, mesh: Option<PyRef<'_, Mesh>>) -> PyResult<Frames> {
    let (sender, channel) = sync_channel(0);
    let case = given.case(py, mesh.as_deref(), Arc::new(Sender(sender.clone())))?;
    let stop = Arc::new(Stop::default());
    let own = stop.clone();
    let thread = std::thread::Builder::new().spawn(move || {
        let done = run(&case, &mut &*own).map(|report| report.to_json());
        drop(case);
        let _ = sender.send(Sent::End(done));
    });
    let thread = thread.map_err(|error| no_thread(py, &error))?;
    Ok(Frames { running: Mutex::new(Some(Running { channel, thread })), report: Mutex::default(), stop })
}

#[pymethods]
impl Frames {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Waits for the next frame: its time and its solution.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(f64, Bound<'py, PyDict>)>> {
        match self.wait(py)? {
            Some(Sent::Frame(time, data)) => Ok(Some((time, solution(py, *data)?))),
            Some(Sent::End(Ok(report))) => {
                *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
                Ok(None)
            }
            Some(Sent::End(Err(error))) => Err(error.raise(py)),
            None => Ok(None),
        }
    }

    /// Returns the report as JSON, once the run has ended.
    fn report(&self) -> Option<String> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops the run.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.end());
    }
}

impl Frames {
    /// Waits for what the run sends next, and looks at signals meanwhile; none after the end.
    fn wait(&self, py: Python<'_>) -> PyResult<Option<Sent>> {
        py.detach(|| {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                let Some(Running { channel, .. }) = &*running else { return Ok(None) };
                match channel.recv_timeout(LOOK_EVERY) {
                    Ok(sent) => {
                        if matches!(sent, Sent::End(_)) {
                            running.take().map(|ended| ended.thread.join());
                        }
                        return Ok(Some(sent));
                    }
                    Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
                    Err(RecvTimeoutError::Disconnected) => {
                        running.take();
                        return Err(Python::attach(|py| {
                            exception(py, "Error", "the run has panicked", None)
                        }));
                    }
                }
            }
        })
    }

    /// Asks for a stop and waits until the run has ended.
    fn end(&self) {
        self.stop.ask();
        if let Some(Running { channel, thread }) =
            self.running.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            drop(channel);
            let _ = thread.join();
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.end();
    }
}

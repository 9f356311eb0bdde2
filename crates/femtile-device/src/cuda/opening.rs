//! Opening a GPU while other work continues.
//!
//! `Opening` starts the driver in a thread of its own while the mesh is read, checked and numbered.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::binaries::Binaries;
use super::nvrtc::Nvrtc;
use super::{Cuda, Specialisation, start, trace};
use crate::DeviceError;

/// Programs that are announced for a GPU which may not be open yet: they wait until its architecture is known.
#[derive(Debug, Default)]
pub(super) struct Announced(Mutex<(Vec<Specialisation>, Option<Arc<Binaries>>)>);

impl Announced {
    /// Begins to compile programs, or keeps them for later.
    pub(super) fn prepare(&self, programs: Vec<Specialisation>) {
        trace::announced(&programs);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.1 {
            Some(binaries) => binaries.prepare(programs),
            None => state.0.extend(programs),
        }
    }

    /// Begins to compile the programs announced so far, in the order of their announcement; later ones follow
    /// at once.
    pub(super) fn serve(&self, binaries: &Arc<Binaries>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        binaries.prepare(std::mem::take(&mut state.0));
        state.1 = Some(binaries.clone());
    }
}

/// A GPU that a thread of its own is opening; the driver needs some 0.2 s.
///
/// Programs can be announced meanwhile; they are compiled from the moment on when the driver says for which architecture.
///
/// ```no_run
/// # use femtile_device::cuda::Opening;
/// let opening = Opening::begin(0)?;
/// opening.prepare(|| Vec::new());
/// // … read the mesh …
/// let device = opening.wait()?;
/// # Ok::<(), femtile_device::DeviceError>(())
/// ```
#[derive(Debug)]
pub struct Opening {
    state: State,
    announced: Arc<Announced>,
    /// Threads that list programs, or load the compiler.
    helpers: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
enum State {
    Begun(JoinHandle<Result<Cuda, DeviceError>>),
    /// Without a thread, the GPU is opened when it is waited for.
    Later(usize),
    Open(Cuda),
    Taken,
}

impl Opening {
    /// Begins to open the GPU with this number, and to load the compiler.
    ///
    /// # Errors
    /// [`DeviceError::Absent`] if there is no driver. [`Opening::wait`] reports other errors.
    pub fn begin(ordinal: usize) -> Result<Self, DeviceError> {
        start::check_driver(ordinal)?;
        let announced = Arc::<Announced>::default();
        let programs = announced.clone();
        let open = move || {
            let device = Cuda::opened(ordinal, &programs)?;
            device.driver().warm_up();
            Ok(device)
        };
        let thread = std::thread::Builder::new().spawn(open);
        let state = thread.map_or(State::Later(ordinal), State::Begun);
        let opening = Self { state, announced, helpers: Mutex::default() };
        // What is wrong with the compiler shows where the GPU is opened.
        opening.help(|| drop(Nvrtc::get()));
        Ok(opening)
    }

    /// Announces programs that will probably be needed. They are compiled in this order; a thread of its own
    /// lists them.
    pub fn prepare(&self, programs: impl FnOnce() -> Vec<Specialisation> + Send + 'static) {
        match &self.state {
            State::Open(device) => device.prepare(programs()),
            _ => {
                let announced = self.announced.clone();
                self.help(move || announced.prepare(programs()));
            }
        }
    }

    /// Returns whether [`Opening::wait`] would return at once, so that work for which no GPU is needed gains nothing before it.
    pub fn is_over(&self) -> bool {
        match &self.state {
            State::Begun(thread) => thread.is_finished(),
            State::Later(_) => false,
            State::Open(_) | State::Taken => true,
        }
    }

    /// Starts a thread for work that can be left out.
    fn help(&self, work: impl FnOnce() + Send + 'static) {
        let thread = std::thread::Builder::new().spawn(work);
        self.helpers.lock().unwrap_or_else(PoisonError::into_inner).extend(thread);
    }

    /// Returns the GPU once it is open.
    ///
    /// # Errors
    /// As [`Cuda::new`].
    pub fn wait(mut self) -> Result<Cuda, DeviceError> {
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Begun(thread) => match thread.join() {
                Ok(opened) => opened,
                Err(panicked) => std::panic::resume_unwind(panicked),
            },
            State::Later(ordinal) => Cuda::opened(ordinal, &self.announced),
            State::Open(device) => Ok(device),
            State::Taken => unreachable!("`wait` takes the opening"),
        }
    }
}

impl From<Cuda> for Opening {
    fn from(device: Cuda) -> Self {
        Self { state: State::Open(device), announced: Arc::default(), helpers: Mutex::default() }
    }
}

impl Drop for Opening {
    /// Waits: a process must not end while its driver starts.
    fn drop(&mut self) {
        let helpers = self.helpers.get_mut().unwrap_or_else(PoisonError::into_inner);
        helpers.drain(..).for_each(|thread| drop(thread.join()));
        if let State::Begun(thread) = std::mem::replace(&mut self.state, State::Taken) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::gpus;

    #[test]
    fn a_gpu_that_is_not_there_is_an_error_with_its_number() {
        if gpus().is_ok() {
            return;
        }
        match Opening::begin(3).and_then(Opening::wait) {
            Err(DeviceError::Absent { requested, .. }) => assert_eq!(requested, "cuda:3"),
            other => panic!("{other:?}"),
        }
    }
}

//! Opening a GPU while other work goes on.

use std::thread::JoinHandle;

use super::{Cuda, Specialisation, start};
use crate::DeviceError;

/// A GPU that is being opened by a thread of its own, which takes the driver some 0.2 s.
///
/// ```no_run
/// # use femtile_device::cuda::Opening;
/// let opening = Opening::begin(0, Vec::new())?;
/// // … read the mesh …
/// let device = opening.wait()?;
/// # Ok::<(), femtile_device::DeviceError>(())
/// ```
#[derive(Debug)]
pub struct Opening {
    state: State,
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
    /// Begins to open the GPU with this number, and to compile programs that will probably be needed, the first ones first.
    ///
    /// # Errors
    /// [`DeviceError::Absent`] where there is no driver; what else is wrong shows in [`Opening::wait`].
    pub fn begin(ordinal: usize, programs: Vec<Specialisation>) -> Result<Self, DeviceError> {
        start::check_driver(ordinal)?;
        let open = move || {
            let device = Cuda::opened(ordinal, programs)?;
            device.driver().warm_up();
            Ok(device)
        };
        let thread = std::thread::Builder::new().spawn(open);
        Ok(Self { state: thread.map_or(State::Later(ordinal), State::Begun) })
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
            State::Later(ordinal) => Cuda::new(ordinal),
            State::Open(device) => Ok(device),
            State::Taken => unreachable!("`wait` takes the opening"),
        }
    }
}

impl From<Cuda> for Opening {
    fn from(device: Cuda) -> Self {
        Self { state: State::Open(device) }
    }
}

impl Drop for Opening {
    /// Waits: a process must not end while its driver starts.
    fn drop(&mut self) {
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
        match Opening::begin(3, Vec::new()).and_then(Opening::wait) {
            Err(DeviceError::Absent { requested, .. }) => assert_eq!(requested, "cuda:3"),
            other => panic!("{other:?}"),
        }
    }
}

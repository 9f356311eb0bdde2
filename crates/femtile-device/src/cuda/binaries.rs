//! Binaries of programs, compiled ahead by threads of their own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::Specialisation;
use super::cache;
use super::compiler::{Binary, Compiler};
use crate::DeviceError;

/// The binaries of one compiler for one architecture.
///
/// Programs that are probably needed are compiled in the background ([`Binaries::prepare`]); one that is asked for in the
/// meantime is waited for, or compiled at once where no thread has begun with it.
#[derive(Debug)]
pub(super) struct Binaries {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    compiler: Arc<dyn Compiler>,
    architecture: (u32, u32),
    state: Mutex<State>,
    made: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Specialisation>,
    /// By key; none where a thread has begun.
    begun: HashMap<String, Option<Binary>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, program: &Specialisation) -> Result<Binary, DeviceError> {
        cache::binary(&*self.compiler, program, self.architecture)
    }

    /// Compiles queued programs until there are none left.
    ///
    /// A program that does not compile is forgotten: whoever asks for it compiles it again and gets the error.
    fn work(&self) {
        loop {
            let program = {
                let mut state = self.state();
                let Some(program) = state.queue.pop_front() else { return };
                state.begun.insert(program.key(), None);
                program
            };
            let made = self.make(&program);
            let mut state = self.state();
            match made {
                Ok(binary) => state.begun.insert(program.key(), Some(binary)),
                Err(_) => state.begun.remove(&program.key()),
            };
            drop(state);
            self.made.notify_all();
        }
    }
}

impl Binaries {
    pub(super) fn new(compiler: Arc<dyn Compiler>, architecture: (u32, u32)) -> Self {
        let (state, made) = Default::default();
        let shared = Arc::new(Shared { compiler, architecture, state, made });
        Self { shared, threads: Mutex::default() }
    }

    /// Compiles programs in the background, the first ones first, on as many threads as there are cores.
    pub(super) fn prepare(&self, programs: Vec<Specialisation>) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        let n_new = programs.len().min(cores.saturating_sub(threads.len()));
        {
            let mut state = self.shared.state();
            let new: Vec<_> =
                programs.into_iter().filter(|program| !state.begun.contains_key(&program.key())).collect();
            state.queue.extend(new);
        }
        for _ in 0..n_new {
            let shared = self.shared.clone();
            // Without a thread, whoever asks for a program compiles it.
            threads.extend(std::thread::Builder::new().spawn(move || shared.work()));
        }
    }

    /// Returns the binary of a program and forgets it.
    ///
    /// # Errors
    /// [`DeviceError::Compile`] with the messages of the compiler.
    pub(super) fn take(&self, program: &Specialisation) -> Result<Binary, DeviceError> {
        let key = program.key();
        let mut state = self.shared.state();
        state.queue.retain(|queued| queued.key() != key);
        while let Some(begun) = state.begun.get_mut(&key) {
            if let Some(binary) = begun.take() {
                state.begun.remove(&key);
                return Ok(binary);
            }
            state = self.shared.made.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.shared.make(program)
    }

    /// Waits for all programs of [`Binaries::prepare`].
    pub(super) fn wait(&self) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Drop for Binaries {
    /// Waits for the programs that are being compiled: a process must not end within its compiler.
    fn drop(&mut self) {
        self.shared.state().queue.clear();
        self.wait();
    }
}

//! Binaries of programs, compiled ahead by threads of their own.
//!
//! Compilation begins before a kernel is needed, in the background on all cores. A caller whose program is not
//! ready waits for it or compiles it. A case announces its programs while the driver starts (`Outline` of
//! `femtile-solve`); they wait in `Opening` until the architecture is known. Assembly and operators announce what
//! an outline cannot tell, such as coefficients by tag, when they are made (`Cuda::prepare`). A test of
//! `femtile-conformance` (`tests/devices/announced.rs`) compares the programs that whole runs load with those
//! announced.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::Specialisation;
use super::cache;
use super::compiler::{Binary, Compiler};
use crate::DeviceError;

/// The binaries of one compiler for one architecture.
///
/// Programs that are probably needed are compiled in the background ([`Binaries::prepare`]). A requested
/// program is waited for if a thread has begun with it, and compiled at once otherwise.
#[derive(Debug)]
pub(super) struct Binaries {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    compiler: Arc<dyn Compiler>,
    architecture: (u32, u32),
    /// Whether binaries are kept on disk.
    is_cached: bool,
    state: Mutex<State>,
    made: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// With their keys.
    queue: VecDeque<(String, Specialisation)>,
    /// By key; none if a thread has begun.
    begun: HashMap<String, Option<Binary>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, program: &Specialisation) -> Result<Binary, DeviceError> {
        match self.is_cached {
            true => cache::binary(&*self.compiler, program, self.architecture),
            false => self.compiler.compile(program, self.architecture),
        }
    }

    /// Compiles queued programs until there are none left.
    ///
    /// A program that does not compile is forgotten: whoever asks for it compiles it again and gets the error.
    fn work(&self) {
        loop {
            let (key, program) = {
                let mut state = self.state();
                let Some((key, program)) = state.queue.pop_front() else { return };
                state.begun.insert(key.clone(), None);
                (key, program)
            };
            let made = self.make(&program);
            let mut state = self.state();
            match made {
                Ok(binary) => state.begun.insert(key, Some(binary)),
                Err(_) => state.begun.remove(&key),
            };
            drop(state);
            self.made.notify_all();
        }
    }
}

impl Binaries {
    pub(super) fn new(compiler: Arc<dyn Compiler>, architecture: (u32, u32)) -> Self {
        let (state, made) = Default::default();
        let shared = Arc::new(Shared { compiler, architecture, is_cached: true, state, made });
        Self { shared, threads: Mutex::default() }
    }

    /// Compiles programs in the background, in order, on one thread per core.
    pub(super) fn prepare(&self, programs: Vec<Specialisation>) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        let n_queued = {
            let mut state = self.shared.state();
            for program in programs {
                let key = program.key();
                let is_known =
                    state.begun.contains_key(&key) || state.queue.iter().any(|(queued, _)| *queued == key);
                if !is_known {
                    state.queue.push_back((key, program));
                }
            }
            state.queue.len()
        };
        for _ in threads.len()..cores.min(threads.len() + n_queued) {
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
        state.queue.retain(|(queued, _)| *queued != key);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::super::Program;
    use super::super::opening::Announced;
    use super::*;

    /// Counts compilations and refuses programs with `BAD` defined.
    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    impl Compiler for Counting {
        fn version(&self) -> String {
            // No entry of the user's cache has this version.
            format!("counting {:p}", self)
        }

        fn compile(&self, program: &Specialisation, _: (u32, u32)) -> Result<Binary, DeviceError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(2));
            match program.defines().iter().any(|(name, _)| *name == "BAD") {
                true => Err(DeviceError::Compile { program: program.to_string(), message: "bad".into() }),
                false => Ok(Binary { code: program.to_string().into(), log: String::new() }),
            }
        }
    }

    static PROGRAM: Program = Program { name: "sample", source: "// nothing", headers: &[] };

    fn programs(n: usize) -> Vec<Specialisation> {
        (0..n).map(|i| PROGRAM.of::<f64>().define("N", i)).collect()
    }

    fn uncached(compiler: &Arc<Counting>) -> Binaries {
        let mut binaries = Binaries::new(compiler.clone(), (9, 0));
        Arc::get_mut(&mut binaries.shared).unwrap().is_cached = false;
        binaries
    }

    #[test]
    fn a_program_is_compiled_once_whether_or_not_it_was_announced() {
        let compiler = Arc::new(Counting::default());
        let binaries = uncached(&compiler);
        binaries.prepare(programs(23));
        binaries.prepare(programs(23));
        for program in programs(29).into_iter().rev() {
            assert_eq!(binaries.take(&program).unwrap().code, program.to_string().into_bytes());
        }
        binaries.wait();
        assert_eq!(compiler.0.load(Ordering::Relaxed), 29);
    }

    #[test]
    fn programs_announced_before_and_after_the_architecture_is_known_are_compiled_once() {
        let compiler = Arc::new(Counting::default());
        let (binaries, announced) = (Arc::new(uncached(&compiler)), Announced::default());
        announced.prepare(programs(11));
        announced.prepare(programs(13));
        assert_eq!(compiler.0.load(Ordering::Relaxed), 0);
        announced.serve(&binaries);
        announced.prepare(programs(17));
        binaries.wait();
        assert_eq!(compiler.0.load(Ordering::Relaxed), 17);
        for program in programs(17) {
            binaries.take(&program).unwrap();
        }
        assert_eq!(compiler.0.load(Ordering::Relaxed), 17);
    }

    #[test]
    fn the_error_of_an_announced_program_is_that_of_a_compilation() {
        let binaries = uncached(&Arc::default());
        let bad = PROGRAM.of::<f64>().define("BAD", 1);
        binaries.prepare(vec![bad.clone()]);
        binaries.wait();
        assert!(matches!(binaries.take(&bad), Err(DeviceError::Compile { .. })));
    }

    #[test]
    fn what_no_thread_has_begun_is_left_at_the_end() {
        let compiler = Arc::new(Counting::default());
        let binaries = uncached(&compiler);
        binaries.prepare(programs(20_000));
        drop(binaries);
        assert!(compiler.0.load(Ordering::Relaxed) < 20_000);
    }
}

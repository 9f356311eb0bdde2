//! The threads of a device. A child process made by `fork` has none of the threads of its parent, so it
//! starts its own.

use std::io;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::team::Team;
use crate::DeviceError;

/// The pool and the team of a device, in whichever process they are asked for.
pub(super) struct Workers {
    threads: usize,
    /// Those of the process that asked last. What was started before a fork is never freed: its threads cannot be joined.
    latest: AtomicPtr<Started>,
}

struct Started {
    /// [`n_forks`] in the process of the threads.
    n_forks: usize,
    /// None if a child could not start them, which then does all work in the thread of the caller.
    crews: Option<Crews>,
}

struct Crews {
    pool: rayon::ThreadPool,
    team: Team,
}

impl Workers {
    /// Starts `threads` threads of each kind.
    ///
    /// # Errors
    /// [`DeviceError::Threads`] if the system refuses one.
    pub fn start(threads: usize) -> Result<Self, DeviceError> {
        let failed = |reason| DeviceError::Threads { threads, reason };
        forks::watch().map_err(|error| failed(error.to_string()))?;
        let crews = Crews::start(threads).map_err(failed)?;
        let started = Box::new(Started { n_forks: forks::n(), crews: Some(crews) });
        Ok(Self { threads, latest: AtomicPtr::new(Box::into_raw(started)) })
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `work` inside the pool.
    pub fn install(&self, work: &mut (dyn FnMut() + Send)) {
        match self.crews() {
            Some(crews) => crews.pool.install(work),
            None => work(),
        }
    }

    /// Runs `work(t)` for every `t` below the number of threads, on the team.
    pub fn run(&self, work: &(dyn Fn(usize) + Sync)) {
        match self.crews() {
            Some(crews) => crews.team.run(work),
            None => (0..self.threads).for_each(work),
        }
    }

    fn crews(&self) -> Option<&Crews> {
        let latest = self.latest.load(Ordering::Acquire);
        // SAFETY: the pointer is that of a box, which is freed in `drop` alone.
        let started = unsafe { &*latest };
        if started.n_forks == forks::n() { started.crews.as_ref() } else { self.start_anew(latest) }
    }

    /// Starts the threads of a child process, which replace those of its parent.
    #[cold]
    fn start_anew(&self, stale: *mut Started) -> Option<&Crews> {
        let crews = Crews::start(self.threads).ok();
        let own = Box::into_raw(Box::new(Started { n_forks: forks::n(), crews }));
        let latest = match self.latest.compare_exchange(stale, own, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => own,
            Err(other) => {
                // SAFETY: another thread was first, so nothing but this function has seen ours.
                drop(unsafe { Box::from_raw(own) });
                other
            }
        };
        // SAFETY: as in `crews`.
        unsafe { &*latest }.crews.as_ref()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let latest = *self.latest.get_mut();
        // SAFETY: as in `crews`.
        if unsafe { &*latest }.n_forks == forks::n() {
            // SAFETY: nothing borrows from the workers any more, and this is their only box of this process.
            drop(unsafe { Box::from_raw(latest) });
        }
    }
}

impl Crews {
    fn start(threads: usize) -> Result<Self, String> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("femtile-{i}"))
            .build()
            .map_err(|error| error.to_string())?;
        let team = Team::new(threads).map_err(|error: io::Error| error.to_string())?;
        Ok(Self { pool, team })
    }
}

/// Counts the forks between the first process and this one.
#[cfg(all(target_os = "linux", not(miri)))]
mod forks {
    use std::io;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static N: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn count() {
        N.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts from now on.
    pub fn watch() -> io::Result<()> {
        static REGISTERED: OnceLock<i32> = OnceLock::new();
        // SAFETY: the handler changes an atomic number, which a child of a process with threads may do.
        let code = *REGISTERED.get_or_init(|| unsafe { libc::pthread_atfork(None, None, Some(count)) });
        if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
    }

    pub fn n() -> usize {
        N.load(Ordering::Relaxed)
    }
}

/// Other systems are not known to fork programs with threads, and Miri does not fork.
#[cfg(any(not(target_os = "linux"), miri))]
mod forks {
    pub fn watch() -> std::io::Result<()> {
        Ok(())
    }

    pub fn n() -> usize {
        0
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::Cpu;
    use crate::cpu::parallel;

    /// A child that has not ended after this many seconds is killed by its alarm, so that a hang is a failure.
    const LONGEST: u32 = 20;

    /// Runs `work` in a forked child; returns whether it held there.
    fn holds_in_a_child(work: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child calls no function of the test harness, and ends without what is done at an ordinary end.
        unsafe {
            let child = libc::fork();
            assert!(child >= 0, "fork");
            if child == 0 {
                libc::alarm(LONGEST);
                let holds = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
                libc::_exit(i32::from(!holds));
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            status == 0
        }
    }

    /// Both kinds of loops, with `threads` threads if they count them.
    fn works(cpu: &Cpu) -> bool {
        let n = AtomicUsize::new(0);
        cpu.install(|| {
            cpu.for_threads(|_| {
                n.fetch_add(1, Ordering::Relaxed);
            });
            let squares = parallel::map(1_000, 1, |i| i * i);
            n.load(Ordering::Relaxed) == cpu.threads() && squares[999] == 999 * 999
        })
    }

    #[test]
    fn devices_of_the_parent_work_in_forked_children_and_their_children() {
        for threads in [1, 3] {
            let cpu = Cpu::new(threads).unwrap();
            assert!(works(&cpu));
            let in_child =
                || works(&cpu) && works(&cpu.clone()) && holds_in_a_child(|| works(&cpu)) && works(&cpu);
            assert!(holds_in_a_child(in_child));
            assert!(works(&cpu));
        }
    }

    #[test]
    fn a_device_of_the_parent_is_dropped_in_a_forked_child() {
        let cpu = Cpu::new(3).unwrap();
        assert!(works(&cpu));
        assert!(holds_in_a_child(move || {
            drop(cpu);
            Cpu::new(2).is_ok_and(|own| works(&own))
        }));
    }
}

//! The protocol by which members receive jobs and wait for them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::sync::{
    AtomicBool, AtomicU64, AtomicUsize, Builder, JoinHandle, Mutex, Ordering, Thread, available_parallelism,
    park, yield_now,
};

/// The time that a member spins before it sleeps; waking it again costs about as much.
const SPIN: Duration = Duration::from_micros(10);

/// A fixed set of threads, the caller among them, that run one closure each by their number.
///
/// Members keep their numbers, so a range of memory that belongs to a number stays with one core.
pub struct Team {
    shared: Arc<Shared>,
    members: Vec<JoinHandle<()>>,
    /// Locked while a job runs; its value counts jobs.
    turn: Mutex<u64>,
}

type Work<'a> = &'a (dyn Fn(usize) + Sync);

struct Shared {
    /// Number of the current job; members wait for it to grow.
    job: AtomicU64,
    work: Mutex<Option<Work<'static>>>,
    unfinished: AtomicUsize,
    asleep: Vec<AtomicBool>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Whether members spin, which pays only if each has a core.
    spins: bool,
}

impl Team {
    /// A team of `size` threads, including the caller of [`Team::run`].
    pub fn new(size: usize) -> std::io::Result<Self> {
        let cores = available_parallelism().map_or(1, usize::from);
        let shared = Arc::new(Shared {
            job: AtomicU64::new(0),
            work: Mutex::new(None),
            unfinished: AtomicUsize::new(0),
            asleep: (1..size).map(|_| AtomicBool::new(false)).collect(),
            panic: Mutex::new(None),
            spins: size <= cores,
        });
        let mut team = Self { shared, members: Vec::new(), turn: Mutex::new(0) };
        for number in 1..size {
            let shared = team.shared.clone();
            let thread = Builder::new().name(format!("femtile-team-{number}"));
            team.members.push(thread.spawn(move || shared.serve(number))?);
        }
        Ok(team)
    }

    /// Calls `work(0)`, …, `work(size − 1)`, each on its own thread, and returns when all have ended.
    ///
    /// While another job runs (a call from inside `work`, or from a second solve on the same device), the
    /// caller runs all parts itself, one after another.
    ///
    /// # Panics
    /// When `work` panics in any part.
    pub fn run(&self, work: Work<'_>) {
        let size = self.members.len() + 1;
        let turn = if size == 1 { None } else { self.turn.try_lock().ok() };
        let Some(mut turn) = turn else {
            return (0..size).for_each(work);
        };
        // SAFETY: only the lifetime changes; members use the reference before they count themselves
        // finished, and this function does not return before all of them have.
        let lasting = unsafe { std::mem::transmute::<Work<'_>, Work<'static>>(work) };
        *lock(&self.shared.work) = Some(lasting);
        self.shared.unfinished.store(size - 1, Ordering::Relaxed);
        *turn += 1;
        self.shared.job.store(*turn, Ordering::SeqCst);
        self.wake();
        let own = catch_unwind(AssertUnwindSafe(|| work(0)));
        self.shared.wait_until(None, || self.shared.unfinished.load(Ordering::Acquire) == 0);
        *lock(&self.shared.work) = None;
        let panic = lock(&self.shared.panic).take();
        drop(turn);
        if let Some(panic) = own.err().or(panic) {
            resume_unwind(panic);
        }
    }

    fn wake(&self) {
        for (member, asleep) in self.members.iter().zip(&self.shared.asleep) {
            if asleep.load(Ordering::SeqCst) {
                Thread::unpark(member.thread());
            }
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.job.store(u64::MAX, Ordering::SeqCst);
        self.wake();
        for member in self.members.drain(..) {
            // A member catches panics of its work, so joining cannot fail.
            let _ = member.join();
        }
    }
}

impl Shared {
    fn serve(&self, number: usize) {
        let mut done = 0;
        loop {
            let asleep = &self.asleep[number - 1];
            self.wait_until(Some(asleep), || self.job.load(Ordering::SeqCst) != done);
            done = self.job.load(Ordering::SeqCst);
            if done == u64::MAX {
                return;
            }
            let work = *lock(&self.work);
            if let Some(work) = work
                && let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(number)))
            {
                *lock(&self.panic) = Some(panic);
            }
            self.unfinished.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Waits for `ready`: spins for a while, then sleeps if there is a flag for that, else yields.
    fn wait_until(&self, asleep: Option<&AtomicBool>, ready: impl Fn() -> bool) {
        let begun = Instant::now();
        while self.spins && begun.elapsed() < SPIN {
            for _ in 0..32 {
                if ready() {
                    return;
                }
                std::hint::spin_loop();
            }
        }
        while !ready() {
            let Some(asleep) = asleep else {
                yield_now();
                continue;
            };
            // The flag is raised before the last look, and whoever makes `ready` true looks at the
            // flag afterwards (both sequentially consistent): a wake-up cannot be lost.
            asleep.store(true, Ordering::SeqCst);
            if !ready() {
                park();
            }
            asleep.store(false, Ordering::SeqCst);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

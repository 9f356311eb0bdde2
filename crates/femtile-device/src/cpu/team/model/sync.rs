//! Synchronization of the protocol in the model, one step each.

use std::num::NonZero;
use std::sync::{LockResult, MutexGuard, TryLockError, TryLockResult};

use super::scheduler::{State, current, step};

pub use std::sync::atomic::Ordering;

macro_rules! atomic {
    ($($name:ident($t:ty)),*) => {
        $(
            #[derive(Debug)]
            pub struct $name(std::sync::atomic::$name);

            #[allow(dead_code)]
            impl $name {
                pub fn new(value: $t) -> Self {
                    Self(std::sync::atomic::$name::new(value))
                }

                pub fn load(&self, order: Ordering) -> $t {
                    step();
                    self.0.load(order)
                }

                pub fn store(&self, value: $t, order: Ordering) {
                    step();
                    self.0.store(value, order);
                }
            }
        )*
    };
}

atomic!(AtomicBool(bool), AtomicU64(u64), AtomicUsize(usize));

impl AtomicUsize {
    pub fn fetch_sub(&self, value: usize, order: Ordering) -> usize {
        step();
        self.0.fetch_sub(value, order)
    }
}

#[derive(Debug)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        loop {
            match self.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Err(poisoned),
                Err(TryLockError::WouldBlock) => yield_now(),
            }
        }
    }

    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        step();
        self.0.try_lock()
    }
}

/// No cores to spare, so that nobody waits in a loop.
pub fn available_parallelism() -> std::io::Result<NonZero<usize>> {
    Ok(NonZero::<usize>::MIN)
}

pub fn yield_now() {
    let (scheduler, me) = current();
    scheduler.wait(me, State::GivesWay);
}

pub fn park() {
    step();
    let (scheduler, me) = current();
    scheduler.park(me);
}

#[derive(Debug)]
pub struct Thread(usize);

impl Thread {
    pub fn unpark(&self) {
        step();
        current().0.unpark(self.0);
    }
}

#[derive(Debug)]
pub struct JoinHandle<T>(Thread, std::marker::PhantomData<T>);

impl JoinHandle<()> {
    pub fn thread(&self) -> &Thread {
        &self.0
    }

    pub fn join(self) -> Result<(), ()> {
        let (scheduler, me) = current();
        scheduler.wait(me, State::Joins(self.0.0));
        Ok(())
    }
}

pub struct Builder;

impl Builder {
    pub fn new() -> Self {
        Self
    }

    pub fn name(self, _: String) -> Self {
        self
    }

    pub fn spawn(self, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
        let number = current().0.spawn(work);
        Ok(JoinHandle(Thread(number), std::marker::PhantomData))
    }
}

//! Times of parts of a stage on the host, for profiles.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// The parts so far, once they are wanted.
static PARTS: OnceLock<Mutex<Vec<TimedPart>>> = OnceLock::new();

/// Parts that are kept; later ones are left out.
const MOST_KEPT: usize = 1 << 16;

/// A part of a stage with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedPart {
    /// The name of the work.
    pub name: &'static str,
    /// When it began.
    pub begun: Instant,
    /// When it ended.
    pub end: Instant,
}

/// Keeps the times of all parts of this process that begin from now on.
pub fn time_parts() {
    PARTS.get_or_init(Mutex::default);
}

/// Takes the parts that have ended so far.
pub fn take_parts() -> Vec<TimedPart> {
    let take = |parts: &Mutex<Vec<TimedPart>>| std::mem::take(&mut *lock(parts));
    PARTS.get().map(take).unwrap_or_default()
}

/// Runs a part of a stage, and records its time if [`time_parts`] was called.
///
/// Parts are for work of milliseconds: one costs some 100 ns if times are recorded, and a few ns if they are
/// not.
pub fn part<R>(name: &'static str, work: impl FnOnce() -> R) -> R {
    let Some(parts) = PARTS.get() else {
        return work();
    };
    let begun = Instant::now();
    let result = work();
    let mut parts = lock(parts);
    if parts.len() < MOST_KEPT {
        parts.push(TimedPart { name, begun, end: Instant::now() });
    }
    result
}

fn lock(parts: &Mutex<Vec<TimedPart>>) -> std::sync::MutexGuard<'_, Vec<TimedPart>> {
    parts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_kept_from_the_first_wish_on() {
        assert_eq!(part("before", || 3), 3);
        time_parts();
        let inner = || part("inner", || 2);
        assert_eq!(part("outer", || 1 + inner()), 3);
        let parts = take_parts();
        let names: Vec<_> = parts.iter().map(|part| part.name).collect();
        assert_eq!(names, ["inner", "outer"]);
        assert!(parts[1].begun <= parts[0].begun && parts[0].end <= parts[1].end);
        assert!(take_parts().is_empty());
    }
}

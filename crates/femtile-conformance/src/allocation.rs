//! Counts the memory that a piece of code holds at once, and bounds it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;

thread_local! {
    /// Bytes this thread holds beyond those at the start of a measurement; freeing older ones makes it negative.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// Bytes that this thread may hold.
    static LIMIT: Cell<isize> = const { Cell::new(isize::MAX) };
    /// The work of this thread, for the message when it exceeds the limit.
    static WORK: Cell<(&'static str, u64)> = const { Cell::new(("", 0)) };
}

/// The allocator of the system, counting for each thread on its own.
///
/// A test takes it as `#[global_allocator]`; then [`peak_of`] works.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator;

fn add(bytes: isize) {
    // A thread that ends has no counters any more and is not measured either.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
        if LIMIT.try_with(Cell::get).is_ok_and(|limit| held.get() > limit) {
            end(bytes);
        }
    });
}

/// Ends the program, since allocators must not unwind: the limit is for tests alone.
fn end(bytes: isize) {
    // Words need memory, too.
    LIMIT.set(isize::MAX);
    let (name, number) = WORK.get();
    let message = format!("{name}, input {number}: an allocation of {bytes} bytes passes the limit\n");
    let _ = std::io::stderr().write_all(message.as_bytes());
    std::process::abort();
}

// SAFETY: every call is handed to the allocator of the system unchanged; counting neither allocates
// (the counters are constants at first and need no destructor) nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: `pointer` came from `System` with this layout, because all of ours do.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // While the block moves, old and new exist together.
        add(new_size as isize);
        // SAFETY: `pointer` came from `System` with this layout; the caller vouches for the new size.
        let moved = unsafe { System.realloc(pointer, layout, new_size) };
        add(-(layout.size() as isize));
        moved
    }
}

/// Runs `work` on this thread; returns its result and the most bytes it held at once beyond those before it.
///
/// Allocations of other threads are not seen. Without [`CountingAllocator`] installed the figure is 0.
pub fn peak_of<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let (held, peak) = (HELD.get(), PEAK.get());
    HELD.set(0);
    PEAK.set(0);
    let result = work();
    let seen = PEAK.get();
    HELD.set(held + HELD.get());
    PEAK.set(peak.max(HELD.get()));
    (result, usize::try_from(seen).unwrap_or(0))
}

/// Measures as [`peak_of`] does, and ends the program with a message naming `work_on` when `work` would exceed `limit`.
pub fn peak_within<R>(limit: usize, work_on: (&'static str, u64), work: impl FnOnce() -> R) -> (R, usize) {
    peak_of(|| {
        LIMIT.set(isize::try_from(limit).unwrap_or(isize::MAX));
        WORK.set(work_on);
        let result = work();
        LIMIT.set(isize::MAX);
        result
    })
}

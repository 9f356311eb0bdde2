//! Arrays of other libraries as buffers.
//!
//! `Borrowed` is a buffer around memory that another library of the process owns, in the primary context that all
//! of them share. The memory is neither freed nor moved, and recordings that refer to it end with it.

use std::ops::Deref;

use super::{Cuda, CudaMemory};
use crate::{Buffer, Element};

/// An array of another library in the memory of a GPU as a buffer, without a copy.
///
/// [`Driver::wait_for_stream`](super::Driver::wait_for_stream) orders work on it after that of the library, and
/// [`Driver::hold_stream`](super::Driver::hold_stream) work of the library after it.
#[derive(Debug)]
pub struct Borrowed<T: Element>(Buffer<T, Cuda>);

impl<T: Element> Borrowed<T> {
    /// The alignment in bytes that kernels rely on.
    pub const ALIGNMENT: u64 = 16;

    /// Borrows `len` values from `address` on.
    ///
    /// # Safety
    /// - The values lie within one allocation in the memory of this GPU, aligned to [`Borrowed::ALIGNMENT`].
    /// - They stay allocated until this struct is dropped and all work queued by then is done.
    /// - Until then nobody else writes them. If [`Borrowed::buffer_mut`] is used, nobody else reads them,
    ///   except in a stream that is ordered before or after this work.
    pub unsafe fn new(device: &Cuda, address: u64, len: usize) -> Self {
        let memory = CudaMemory::borrowed(device, address, len * size_of::<T>());
        Self(Buffer::of_memory(device, memory, len))
    }

    /// Returns the buffer for writing.
    ///
    /// # Safety
    /// The buffer must not be swapped for another: the caller could keep it beyond the life of the array.
    pub unsafe fn buffer_mut(&mut self) -> &mut Buffer<T, Cuda> {
        &mut self.0
    }
}

impl<T: Element> Deref for Borrowed<T> {
    type Target = Buffer<T, Cuda>;

    fn deref(&self) -> &Buffer<T, Cuda> {
        &self.0
    }
}

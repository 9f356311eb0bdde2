//! Arrays in the memory of the host: owned, or borrowed from a slice of the caller.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::{Buffer, Cpu, Element};

/// An array on the host: a vector that it owns, or values that another owner lends.
#[derive(Debug)]
pub struct HostArray<T: Element> {
    values: NonNull<T>,
    len: usize,
    /// The capacity of the vector that the values came from; none if they are borrowed.
    capacity: Option<usize>,
}

// SAFETY: the array owns its values, or borrows them as a slice would; they are numbers.
unsafe impl<T: Element> Send for HostArray<T> {}
// SAFETY: as above; shared access reads only.
unsafe impl<T: Element> Sync for HostArray<T> {}

impl<T: Element> HostArray<T> {
    /// Borrows `len` values.
    ///
    /// # Safety
    /// The values outlive the array, and nothing else accesses them meanwhile; if the array is only read,
    /// others may read them.
    unsafe fn borrowed(values: NonNull<T>, len: usize) -> Self {
        Self { values, len, capacity: None }
    }
}

impl<T: Element> From<Vec<T>> for HostArray<T> {
    fn from(values: Vec<T>) -> Self {
        let mut values = ManuallyDrop::new(values);
        let (len, capacity) = (values.len(), values.capacity());
        // SAFETY: the pointer of a vector is never null.
        let values = unsafe { NonNull::new_unchecked(values.as_mut_ptr()) };
        Self { values, len, capacity: Some(capacity) }
    }
}

impl<T: Element> Drop for HostArray<T> {
    fn drop(&mut self) {
        if let Some(capacity) = self.capacity {
            // SAFETY: these are the parts of a vector that `from` has forgotten, and nothing uses them afterwards.
            drop(unsafe { Vec::from_raw_parts(self.values.as_ptr(), self.len, capacity) });
        }
    }
}

impl<T: Element> Deref for HostArray<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values are there, owned or borrowed for as long as the array lives.
        unsafe { std::slice::from_raw_parts(self.values.as_ptr(), self.len) }
    }
}

impl<T: Element> DerefMut for HostArray<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; an array that borrows values which others read is not lent out mutably.
        unsafe { std::slice::from_raw_parts_mut(self.values.as_ptr(), self.len) }
    }
}

/// A slice of the caller as a buffer that is only read, without a copy.
///
/// ```
/// use femtile_device::{Cpu, cpu::Borrowed};
///
/// let cpu = Cpu::new(1)?;
/// let values = [1.0, 2.0];
/// let buffer = Borrowed::new(&cpu, &values);
/// assert_eq!(buffer.address(), values.as_ptr() as u64);
/// # Ok::<(), femtile_device::DeviceError>(())
/// ```
#[derive(Debug)]
pub struct Borrowed<'a, T: Element>(Buffer<T, Cpu>, PhantomData<&'a [T]>);

impl<'a, T: Element> Borrowed<'a, T> {
    /// Borrows a slice.
    pub fn new(cpu: &Cpu, values: &'a [T]) -> Self {
        // SAFETY: the slice outlives this struct, which lends the buffer for reading alone.
        let array = unsafe { HostArray::borrowed(NonNull::from(values).cast(), values.len()) };
        Self(Buffer::of_array(cpu, array), PhantomData)
    }
}

impl<T: Element> Deref for Borrowed<'_, T> {
    type Target = Buffer<T, Cpu>;

    fn deref(&self) -> &Buffer<T, Cpu> {
        &self.0
    }
}

/// A slice of the caller as a buffer that is overwritten in place, without a copy.
///
/// The buffer cannot be taken out, so that it never outlives the slice; a function that gets it may replace it, but then
/// the slice keeps the values that it had:
///
/// ```
/// use femtile_device::{Cpu, cpu::BorrowedMut};
///
/// let cpu = Cpu::new(1)?;
/// let mut values = [1.0, 2.0];
/// let mut borrowed = BorrowedMut::new(&cpu, &mut values);
/// // SAFETY: `upload` writes into the buffer and does not take it away.
/// unsafe { borrowed.buffer() }.upload(&[3.0, 4.0])?;
/// assert_eq!(values, [3.0, 4.0]);
/// # Ok::<(), femtile_device::DeviceError>(())
/// ```
#[derive(Debug)]
pub struct BorrowedMut<'a, T: Element>(Buffer<T, Cpu>, PhantomData<&'a mut [T]>);

impl<'a, T: Element> BorrowedMut<'a, T> {
    /// Borrows a slice.
    pub fn new(cpu: &Cpu, values: &'a mut [T]) -> Self {
        let len = values.len();
        // SAFETY: the slice outlives this struct, which has it alone.
        let array = unsafe { HostArray::borrowed(NonNull::from(values).cast(), len) };
        Self(Buffer::of_array(cpu, array), PhantomData)
    }

    /// Returns the buffer.
    ///
    /// # Safety
    /// The buffer must not be swapped for another: the caller could keep it beyond the life of the slice.
    pub unsafe fn buffer(&mut self) -> &mut Buffer<T, Cpu> {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_arrays_keep_the_values_of_their_vector() {
        let mut values = Vec::with_capacity(7);
        values.extend([1.0, 2.0, 3.0]);
        let mut array = HostArray::from(values);
        array[1] = 5.0;
        assert_eq!(&array[..], [1.0, 5.0, 3.0]);
        assert!(HostArray::<f64>::from(Vec::new()).is_empty());
    }

    #[test]
    fn borrowed_values_are_read_and_written_in_place_and_survive() {
        let cpu = Cpu::new(1).unwrap();
        let mut values = vec![1.0, 2.0, 3.0];
        let mut buffer = BorrowedMut::new(&cpu, &mut values);
        // SAFETY: the slice is written in place.
        unsafe { buffer.buffer() }.as_mut_slice()[0] = 4.0;
        drop(buffer);
        assert_eq!(Borrowed::new(&cpu, &values).to_host().unwrap(), [4.0, 2.0, 3.0]);
        assert!(Borrowed::<u32>::new(&cpu, &[]).is_empty());
    }
}

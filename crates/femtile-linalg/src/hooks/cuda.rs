//! Hooks as kernels on a GPU see them.

use std::marker::PhantomData;

use femtile_device::Scalar;
use femtile_device::cuda::Structure;

use super::Hook;
use crate::{LinalgError, error::need};

/// A hook as kernels on a GPU see it: a structure that is compiled into the kernel and passed by value.
///
/// # Contract
/// `source` defines `struct Hook` with 64-bit fields and three `__device__` methods. `bool is_idle() const`
/// has the same answer in all threads; if true, the kernel does nothing.
/// `void post(u64 row, const T* x, T y)` is called by one thread once for each row, after `y` was computed
/// and stored, so that it may overwrite that entry. `void finish()` is called by all threads of a block at
/// the end. A kernel has threads in a line and at most one block per [`CudaHook::ROWS`] rows, rounded up.
///
/// With `is_product`, the hook computes only $x^\mathsf{T} y$. An operator may then pass parts of this
/// product instead of rows, by `void add(double part)`, in any number of kernels. The last two fields are the
/// number of blocks of the preceding kernels and of all kernels ([`CudaHook::in_part`]).
#[derive(Debug, Clone, PartialEq)]
pub struct CudaHook<'a> {
    source: &'static str,
    arguments: Vec<u64>,
    is_product: bool,
    n_rows: Option<usize>,
    arrays: PhantomData<&'a ()>,
}

impl<'a> CudaHook<'a> {
    /// Rows that a block of threads takes at least.
    pub const ROWS: usize = 64;

    /// A hook for operators of `n_rows` rows, or of any number: the definition of `struct Hook`, for which the kernel has
    /// included `femtile.cuh` before, and its fields in order.
    ///
    /// # Safety
    /// The definition keeps the contract above, and with these fields it accesses only arrays that live as long as `'a`
    /// and have `n_rows` entries.
    pub unsafe fn new(source: &'static str, arguments: Vec<u64>, n_rows: Option<usize>) -> Self {
        Self { source, arguments, is_product: false, n_rows, arrays: PhantomData }
    }

    /// The same hook, which also accepts parts of $x^\mathsf{T} y$ instead of rows.
    ///
    /// # Safety
    /// The definition has `add`, and the last two fields are those of parts.
    pub unsafe fn as_product(self) -> Self {
        Self { is_product: true, ..self }
    }

    /// Returns the hook that does nothing, in CUDA.
    pub fn none() -> Self {
        // SAFETY: the structure touches nothing.
        unsafe { Self::new(include_str!("../no_hook.cuh"), vec![0], None) }
    }

    /// Returns the CUDA part of a hook for an operator of `n_rows` × `n_cols`; one that does nothing if these
    /// differ.
    ///
    /// # Errors
    /// [`LinalgError::HostHook`] if it has no body for GPUs, [`LinalgError::Length`] if it is for another
    /// number of rows.
    pub fn of<T: Scalar>(hook: &'a dyn Hook<T>, [n_rows, n_cols]: [usize; 2]) -> Result<Self, LinalgError> {
        let hook = hook.cuda().ok_or(LinalgError::HostHook)?;
        if n_rows != n_cols {
            return Ok(Self::none());
        }
        need("rows of the hook", hook.n_rows.unwrap_or(n_rows), n_rows)?;
        Ok(hook)
    }

    /// The definition of `struct Hook`.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// Returns whether parts of $x^\mathsf{T} y$ serve as well as rows.
    pub fn is_product(&self) -> bool {
        self.is_product
    }

    /// The same, by rows alone.
    pub fn by_rows(self) -> Self {
        Self { is_product: false, ..self }
    }

    /// The fields.
    pub fn fields(&self) -> Structure {
        Structure(self.arguments.clone())
    }

    /// The fields for a kernel that comes after kernels of `n_before` blocks, of `n_blocks` in all; if rows
    /// are wanted, as they are.
    pub fn in_part(&self, n_before: usize, n_blocks: usize) -> Structure {
        let mut fields = self.arguments.clone();
        if let Some(part) = fields.last_chunk_mut().filter(|_| self.is_product) {
            *part = [n_before as u64, n_blocks as u64];
        }
        Structure(fields)
    }
}

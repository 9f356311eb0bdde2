use femtile_device::{Buffer, Device, DeviceError, Scalar};

use crate::{LinalgError, error::need};

/// The acts on whole vectors that algorithms share.
///
/// # Shapes
/// All vectors of one call have the same length.
/// # Errors
/// [`LinalgError::Length`] when they do not.
pub trait VectorKernels<T: Scalar>: Device {
    /// $x = \alpha$. Writes n values.
    fn fill(&self, x: &mut Buffer<T, Self>, alpha: T) -> Result<(), LinalgError>;

    /// $y = x$. Reads n, writes n values.
    fn copy(&self, y: &mut Buffer<T, Self>, x: &Buffer<T, Self>) -> Result<(), LinalgError>;

    /// $y = \alpha x + \beta y$. Reads 2n, writes n values.
    fn axpby(
        &self,
        y: &mut Buffer<T, Self>,
        alpha: T,
        x: &Buffer<T, Self>,
        beta: T,
    ) -> Result<(), LinalgError>;

    /// $y = \sum_k \alpha_k x_k$ of one to four vectors, added in their order. Reads a vector for each term, writes n values.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] for no term or more than four.
    fn combine(&self, y: &mut Buffer<T, Self>, terms: &[(T, &Buffer<T, Self>)]) -> Result<(), LinalgError>;

    /// $z_i = d_i r_i$. Reads 2n, writes n values.
    fn scale_by(
        &self,
        z: &mut Buffer<T, Self>,
        d: &Buffer<T, Self>,
        r: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// $y_i = x_{m i + c}$, component c of a field with m components, whose values at a node are consecutive. Reads and writes
    /// n values, in steps of m.
    ///
    /// # Shapes
    /// `y: [n]`, `x: [n][m]`.
    /// # Errors
    /// [`LinalgError::Setting`] unless $c < m$.
    fn take_component(
        &self,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        component: (usize, usize),
    ) -> Result<(), LinalgError>;

    /// $x_{m i + c} = y_i$, the reverse of [`Self::take_component`], with its shapes and errors.
    fn put_component(
        &self,
        x: &mut Buffer<T, Self>,
        y: &Buffer<T, Self>,
        component: (usize, usize),
    ) -> Result<(), LinalgError>;

    /// $x^\mathsf{T} y$, kept in f64. Reads 2n values.
    fn dot(&self, x: &Buffer<T, Self>, y: &Buffer<T, Self>) -> Result<f64, LinalgError>;

    /// [`VectorKernels::dot`] in memory that is kept for it: for products in each step of a run.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `sum` was made for shorter vectors.
    fn dot_in(
        &self,
        sum: &mut DeviceSum<Self>,
        x: &Buffer<T, Self>,
        y: &Buffer<T, Self>,
    ) -> Result<f64, LinalgError> {
        sum.check(x.len())?;
        self.dot(x, y)
    }

    /// $\sum_i x_i$, kept in f64. Reads n values.
    fn sum(&self, x: &Buffer<T, Self>) -> Result<f64, LinalgError>;

    /// [`VectorKernels::sum`] into memory of the device; the host does not wait.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `sum` was made for shorter vectors.
    fn sum_into(&self, sum: &mut DeviceSum<Self>, x: &Buffer<T, Self>) -> Result<(), LinalgError>;

    /// $x_i \leftarrow x_i - s / n$ for the sum s of `n` values, of which x may be a part; the host does not wait. Reads and writes
    /// the values of x.
    fn subtract_mean(
        &self,
        x: &mut Buffer<T, Self>,
        sum: &DeviceSum<Self>,
        n: usize,
    ) -> Result<(), LinalgError>;
}

/// Refuses numbers of terms that [`VectorKernels::combine`] does not take, and vectors of other lengths.
pub(super) fn check_terms<T: Scalar, D: Device>(
    n: usize,
    terms: &[(T, &Buffer<T, D>)],
) -> Result<(), LinalgError> {
    if !(1..=MOST_TERMS).contains(&terms.len()) {
        let message = format!("{} are given, where 1 to {MOST_TERMS} are possible", terms.len());
        return Err(LinalgError::Setting { field: "terms", message });
    }
    terms.iter().try_for_each(|(_, x)| need("x", n, x.len()))
}

/// Refuses a component that a field does not have, and a field `x` without `n` values of each.
pub(super) fn check_component(
    n: usize,
    x: usize,
    (component, components): (usize, usize),
) -> Result<(), LinalgError> {
    if component >= components {
        let message = format!("{component} is not below {components}, their number");
        return Err(LinalgError::Setting { field: "component", message });
    }
    need("x", n.saturating_mul(components), x)
}

/// The largest number of terms of [`VectorKernels::combine`].
pub(super) const MOST_TERMS: usize = 4;

/// Memory for a sum that stays on its device.
pub struct DeviceSum<D: Device> {
    pub(super) n: usize,
    pub(super) result: Buffer<f64, D>,
    pub(super) partials: Buffer<f64, D>,
    pub(super) counter: Buffer<u32, D>,
}

impl<D: Device> DeviceSum<D> {
    /// Entries of a vector for each partial sum, at least.
    const ENTRIES: usize = 2048;

    /// For vectors of up to `n` entries.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(device: &D, n: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            n,
            result: Buffer::zeros(device, 1)?,
            partials: Buffer::zeros(device, n.div_ceil(Self::ENTRIES))?,
            counter: Buffer::zeros(device, 1)?,
        })
    }

    /// Returns the sum, to which other ranks may add theirs.
    pub fn value_mut(&mut self) -> &mut Buffer<f64, D> {
        &mut self.result
    }

    /// Refuses vectors of more entries than it was made for.
    pub(super) fn check(&self, n: usize) -> Result<(), LinalgError> {
        if n > self.n {
            Err(LinalgError::Length { field: "sum", expected: n, found: self.n })
        } else {
            Ok(())
        }
    }
}

/// Vectors between two precisions.
pub trait Convert<T: Scalar, H: Scalar>: VectorKernels<T> + VectorKernels<H> {
    /// $y = \alpha x$, rounded.
    ///
    /// # Cost
    /// Reads and writes n values.
    /// # Errors
    /// [`LinalgError::Length`] when the vectors differ in length.
    fn convert(&self, y: &mut Buffer<H, Self>, alpha: f64, x: &Buffer<T, Self>) -> Result<(), LinalgError>;

    /// $y_i = \alpha x_{o_i}$, rounded, for an order o of all entries; NaN if x has no entry $o_i$.
    ///
    /// # Cost
    /// Reads n values and n numbers, writes n values.
    /// # Errors
    /// [`LinalgError::Length`] when the vectors and the order differ in length.
    fn gather(
        &self,
        y: &mut Buffer<H, Self>,
        alpha: f64,
        x: &Buffer<T, Self>,
        order: &Buffer<u32, Self>,
    ) -> Result<(), LinalgError>;
}

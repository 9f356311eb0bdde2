use femtile_device::{Buffer, Device, DeviceError, Scalar};

use crate::vector::VectorKernels;
use crate::{LinalgError, LinearOperator};

/// The numbers of one CG iteration; they live on the device so that no kernel waits for the host.
#[derive(Debug)]
pub struct CgScalars<D: Device> {
    /// In the order of the constants of this type.
    pub values: Buffer<f64, D>,
}

impl<D: Device> CgScalars<D> {
    /// $p^\mathsf{T} q$.
    pub const P_DOT_Q: usize = 0;
    /// $r^\mathsf{T} r$.
    pub const R_DOT_R: usize = 1;
    /// $r^\mathsf{T} z$ of the new residual.
    pub const R_DOT_Z: usize = 2;
    /// $r^\mathsf{T} z$ of the residual before.
    pub const RHO: usize = 3;
    /// $\alpha = \rho / p^\mathsf{T} q$.
    pub const ALPHA: usize = 4;
    /// $\beta = r^\mathsf{T} z / \rho$.
    pub const BETA: usize = 5;

    /// All zero.
    pub fn zeros(device: &D) -> Result<Self, DeviceError> {
        Ok(Self { values: Buffer::zeros(device, 6)? })
    }
}

/// The passes of conjugate gradients, fused so that each vector is moved as rarely as the recurrences allow.
///
/// # Cost
/// One iteration with a diagonal preconditioner moves 10n values besides the product `q = A p`:
/// `cg_residual` reads r, q, d and writes r; `cg_direction` reads x, p, r, d and writes x, p.
/// # Errors
/// [`LinalgError::Length`] when vectors of one call differ in length.
pub trait CgKernels<T: Scalar>: VectorKernels<T> {
    /// $q = A p$ and $p^\mathsf{T} q$ into `scalars`, summed while q is in cache.
    fn cg_product(
        &self,
        q: &mut Buffer<T, Self>,
        a: &dyn LinearOperator<T, Self>,
        p: &Buffer<T, Self>,
        scalars: &mut CgScalars<Self>,
    ) -> Result<(), LinalgError>;

    /// $\alpha = \rho / p^\mathsf{T} q$.
    fn cg_step_length(&self, scalars: &mut CgScalars<Self>) -> Result<(), LinalgError>;

    /// $r \mathrel{-}= \alpha q$, then $r^\mathsf{T} r$ and, with a diagonal, $r^\mathsf{T} D^{-1} r$ into `scalars`.
    fn cg_residual(
        &self,
        r: &mut Buffer<T, Self>,
        q: &Buffer<T, Self>,
        inverse_diagonal: Option<&Buffer<T, Self>>,
        scalars: &mut CgScalars<Self>,
    ) -> Result<(), LinalgError>;

    /// $r^\mathsf{T} z$ into `scalars`.
    fn cg_r_dot_z(
        &self,
        r: &Buffer<T, Self>,
        z: &Buffer<T, Self>,
        scalars: &mut CgScalars<Self>,
    ) -> Result<(), LinalgError>;

    /// $\beta = r^\mathsf{T} z / \rho$ (zero where $\rho$ is zero), then $\rho = r^\mathsf{T} z$.
    fn cg_conjugation(&self, scalars: &mut CgScalars<Self>) -> Result<(), LinalgError>;

    /// $x \mathrel{+}= \alpha p$, then $p = D^{-1} z + \beta p$ (without $D^{-1}$ where there is no diagonal).
    fn cg_direction(
        &self,
        p: &mut Buffer<T, Self>,
        x: &mut Buffer<T, Self>,
        z: &Buffer<T, Self>,
        inverse_diagonal: Option<&Buffer<T, Self>>,
        scalars: &CgScalars<Self>,
    ) -> Result<(), LinalgError>;

    /// $x \mathrel{+}= \alpha p$: the step of the last iteration, which needs no new direction.
    fn cg_solution(
        &self,
        x: &mut Buffer<T, Self>,
        p: &Buffer<T, Self>,
        scalars: &CgScalars<Self>,
    ) -> Result<(), LinalgError>;
}

//! Conjugate gradients for symmetric positive definite operators.

mod config;
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod kernels;
mod reference;
mod room;
mod scalars;

use femtile_device::{Buffer, Scalar};

use super::residual::{fits, norm, residual, scale};
use super::watch::Watch;
use super::{Monitor, Stop};
use crate::comm::Communicator;
use crate::{LinalgError, LinearOperator, Preconditioner};
pub use config::{CgConfig, CgOutcome};
pub use cuda::product_hook;
pub use kernels::CgKernels;
pub use room::{make_room, vector_bytes};
pub use scalars::{CgProgress, CgScalars};

/// Preconditioned conjugate gradients, with every vector update of an iteration in two passes.
///
/// $$ q = A p, \quad \alpha = \frac{r^\mathsf{T} z}{p^\mathsf{T} q}, \quad x \mathrel{+}= \alpha p, \quad
///    r \mathrel{-}= \alpha q, \quad z = M^{-1} r, \quad \beta = \frac{r_+^\mathsf{T} z_+}{r^\mathsf{T} z}, \quad
///    p = z + \beta p $$
///
/// With a preconditioner that is not fixed ([`Preconditioner::is_fixed`]), $\beta = -\alpha q^\mathsf{T} z_+ / r^\mathsf{T} z$,
/// which makes $p$ conjugate to the direction before whatever $z_+$ is.
///
/// # Cost
/// One product, and 10n values moved besides it with a diagonal preconditioner: the update of x waits
/// for the pass that reads p anyway, and z is never stored. The flexible $\beta$ reads 2n values more.
/// # Source
/// `[hestenes1952]`; flexible: `[notay2000]`, section 2, with one direction kept; fusing `[kronbichler2022]`, section 2.
/// Differs: x is updated together with p.
#[derive(Debug, Clone, Default)]
pub struct ConjugateGradient {
    config: CgConfig,
}

/// Iterations that are started together at most where the preconditioner is more than a diagonal.
const COSTLY_STRIDE: usize = 2;

struct Vectors<T: Scalar, D: CgKernels<T>> {
    r: Buffer<T, D>,
    p: Buffer<T, D>,
    q: Buffer<T, D>,
    z: Option<Buffer<T, D>>,
    scalars: CgScalars<D>,
}

impl ConjugateGradient {
    /// The method with these settings.
    pub fn new(config: CgConfig) -> Self {
        Self { config }
    }

    /// Solves $A x = b$, starting from the values in `x` and leaving the last iterate there.
    ///
    /// The method ends in the iteration whose residual first meets the tolerance, and `x` is the iterate of
    /// that iteration, however rarely the host looks. A right side of zeros gives `x = 0` at once. Entries
    /// of `b` below about 1e-154 count as zero and those above 1e154 break the method down: their squares
    /// leave the range of f64.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when the vectors do not fit, [`LinalgError::Setting`] when the tolerance
    /// is not positive. Not converging is no error: see [`CgOutcome::stop`].
    pub fn solve<T: Scalar, D: CgKernels<T>, C: Communicator>(
        &self,
        x: &mut Buffer<T, D>,
        a: &dyn LinearOperator<T, D>,
        m: &dyn Preconditioner<T, D>,
        b: &Buffer<T, D>,
        comm: &C,
        monitor: &mut dyn Monitor,
    ) -> Result<CgOutcome, LinalgError> {
        self.config.check()?;
        fits(a, x, b)?;
        let device = b.device().clone();
        let Some(b_norm) = scale(x, b, comm)? else { return Ok(CgOutcome::at_once()) };
        let threshold = (self.config.tolerance * b_norm).powi(2);
        let (n_addends, n_partials) = (device.cg_addends(), device.cg_partials(b.len()));
        let limit = self.config.max_iterations;
        let scalars = CgScalars::new(&device, threshold, limit, n_addends, n_partials)?;
        let is_flexible = m.diagonal().is_none() && !m.is_fixed();
        let scalars = CgScalars { is_flexible, ..scalars };
        let mut v = Vectors::new(x, a, b, m.diagonal().is_none(), scalars)?;
        let mut watch = Watch::new(&self.config, b_norm);
        let r_norm = norm(&v.r, comm)?;
        let mut stop = watch.start(r_norm * r_norm, monitor);
        m.expect(r_norm);
        if stop.is_continue() {
            start(&device, &mut v, m, comm)?;
        }
        let stride = self.config.look_every.unwrap_or_else(|| stride(&device, m));
        let stride = stride.clamp(1, CgScalars::<D>::RING / 2);
        let mut recording = D::Recording::default();
        while stop.is_continue() {
            device.repeat(&mut recording, stride, &mut || iterate(&device, x, a, m, &mut v, comm))?;
            let progress = device.cg_poll(&mut v.scalars, &mut watch.history)?;
            stop = watch.look(progress, monitor);
        }
        let settled = device.cg_settle(&mut v.scalars, &mut watch.history)?;
        let stop = watch.settle(settled, stop.break_value().unwrap_or(Stop::Converged), monitor);
        residual(&mut v.q, a, x, b)?;
        let true_residual = norm(&v.q, comm)? / b_norm;
        Ok(watch.outcome(stop, true_residual))
    }
}

impl<T: Scalar, D: CgKernels<T>> Vectors<T, D> {
    /// r = b − A x and zeros.
    fn new(
        x: &Buffer<T, D>,
        a: &dyn LinearOperator<T, D>,
        b: &Buffer<T, D>,
        with_z: bool,
        scalars: CgScalars<D>,
    ) -> Result<Self, LinalgError> {
        let (n, device) = (b.len(), b.device());
        let z = if with_z { Some(Buffer::zeros(device, n)?) } else { None };
        let mut r = Buffer::zeros(device, n)?;
        residual(&mut r, a, x, b)?;
        let (p, q) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
        Ok(Self { r, p, q, z, scalars })
    }
}

/// Iterations that are started together. Those that come after the end do nothing but apply the preconditioner: where
/// that is more than a diagonal, few of them cost more than looking often does.
fn stride<T: Scalar, D: CgKernels<T>>(device: &D, m: &dyn Preconditioner<T, D>) -> usize {
    let stride = CgKernels::<T>::cg_stride(device);
    if m.diagonal().is_some() { stride } else { stride.min(COSTLY_STRIDE) }
}

/// ρ = r·z and p = z.
fn start<T: Scalar, D: CgKernels<T>, C: Communicator>(
    device: &D,
    v: &mut Vectors<T, D>,
    m: &dyn Preconditioner<T, D>,
    comm: &C,
) -> Result<(), LinalgError> {
    m.apply(&mut v.p, &v.r)?;
    device.cg_r_dot_z(&v.r, &v.p, &mut v.scalars)?;
    comm.sum(&mut v.scalars.r_sums)?;
    device.cg_start(&mut v.scalars)
}

/// One iteration; nothing in it waits for the host.
fn iterate<T: Scalar, D: CgKernels<T>, C: Communicator>(
    device: &D,
    x: &mut Buffer<T, D>,
    a: &dyn LinearOperator<T, D>,
    m: &dyn Preconditioner<T, D>,
    v: &mut Vectors<T, D>,
    comm: &C,
) -> Result<(), LinalgError> {
    device.cg_product(&mut v.q, a, &v.p, &mut v.scalars)?;
    comm.sum(&mut v.scalars.p_dot_q)?;
    device.cg_step_length(&mut v.scalars)?;
    device.cg_residual(&mut v.r, &v.q, m.diagonal(), &mut v.scalars)?;
    if let Some(z) = &mut v.z {
        m.apply(z, &v.r)?;
        device.cg_r_dot_z(&v.r, z, &mut v.scalars)?;
        if v.scalars.is_flexible {
            device.cg_q_dot_z(&v.q, z, &mut v.scalars)?;
        }
    }
    comm.sum(&mut v.scalars.r_sums)?;
    device.cg_conjugation(&mut v.scalars)?;
    let z = v.z.as_ref().unwrap_or(&v.r);
    device.cg_direction(&mut v.p, x, z, m.diagonal(), &mut v.scalars)
}

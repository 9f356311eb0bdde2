//! Conjugate gradients for symmetric positive definite operators.

mod config;
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod kernels;
mod reference;
mod scalars;
pub mod solver;

use femtile_device::{Buffer, Scalar};

use super::Monitor;
use super::acceptance::{self, Run, RunEnd, Size, System};
use super::residual::{norm, residual};
use super::watch::Watch;
use crate::comm::Communicator;
use crate::{LinalgError, LinearOperator, Preconditioner};
pub use config::{CgOutcome, KrylovConfig};
pub use cuda::product_hook;
pub use kernels::CgKernels;
pub use scalars::{CgHistory, CgProgress, CgScalars, CgStep};
pub use solver::{CgExtrapolate, CgSolver, CgSolverKernels, CgSums, Target};

/// Preconditioned conjugate gradients, with all vector updates of an iteration in two passes.
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
    config: KrylovConfig,
}

/// Vectors of a solve besides the right side: x, r, z, p and q.
const N_VECTORS: usize = 5;

/// Returns the bytes of the vectors of a solve with `n` unknowns, besides the right side.
pub fn vector_bytes<T: Scalar>(n: usize) -> usize {
    N_VECTORS * n * size_of::<T>()
}

/// Iterations that are started together at most if the preconditioner is more than a diagonal.
const COSTLY_STRIDE: usize = 2;

struct Vectors<T: Scalar, D: CgKernels<T>> {
    r: Buffer<T, D>,
    p: Buffer<T, D>,
    q: Buffer<T, D>,
    z: Option<Buffer<T, D>>,
    scalars: CgScalars<D>,
}

impl ConjugateGradient {
    /// Creates the method with the given settings.
    pub fn new(config: KrylovConfig) -> Self {
        Self { config }
    }

    /// Solves $A x = b$, starting from the values in `x` and leaving the last iterate there.
    ///
    /// The method ends in the first iteration whose residual is below the tolerance, and `x` is the iterate
    /// of that iteration, however rarely the host checks. It continues if the error may be larger than the
    /// residual suggests (docs/krylov-methods.md). A right side of zeros gives `x = 0` at once.
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
        let system = System { a, m, b, comm };
        acceptance::solve(x, system, &self.config, monitor, &mut run)
    }
}

/// Runs from `x` until the recurrence meets the tolerance.
fn run<T: Scalar, D: CgKernels<T>, C: Communicator>(
    x: &mut Buffer<T, D>,
    System { a, m, b, comm }: System<'_, T, D, C>,
    Run { config, b_norm, monitor }: Run<'_>,
) -> Result<RunEnd, LinalgError> {
    let mut v = Vectors::new(b.device(), b.len(), m)?;
    run_in(&mut v, x, System { a, m, b, comm }, Run { config, b_norm, monitor })
}

/// The same with vectors whose sums are zero.
fn run_in<T: Scalar, D: CgKernels<T>, C: Communicator>(
    v: &mut Vectors<T, D>,
    x: &mut Buffer<T, D>,
    System { a, m, b, comm }: System<'_, T, D, C>,
    Run { config, b_norm, monitor }: Run<'_>,
) -> Result<RunEnd, LinalgError> {
    let device = b.device().clone();
    v.scalars.begin((config.tolerance * b_norm).powi(2), config.max_iterations)?;
    residual(&mut v.r, a, x, b)?;
    let r_norm = norm(&v.r, comm)?;
    let (mut watch, stop) = Watch::begin(&config, b_norm, r_norm * r_norm, monitor);
    m.set_residual_norm(r_norm);
    let mut first = None;
    if stop.is_continue() {
        start(&device, v, m, comm)?;
        first = v.z.is_some().then(|| norm(&v.p, comm)).transpose()?;
    }
    let iteration = |v: &mut Vectors<T, D>| iterate(&device, x, a, m, v, comm);
    let on_device = (&device, stride(&device, m), comm.n_ranks() == 1);
    let stop = watch.iterate((stop, monitor), on_device, v, |v| &mut v.scalars, iteration)?;
    let preconditioned = sizes(first, v, &watch, comm)?;
    Ok(watch.end(stop, preconditioned))
}

/// The residual at the start, whose $\|M^{-1} r\|$ is `first`, and at the end, as a preconditioner that is
/// not diagonal has left them.
fn sizes<T: Scalar, D: CgKernels<T>, C: Communicator>(
    first: Option<f64>,
    v: &Vectors<T, D>,
    watch: &Watch<'_>,
    comm: &C,
) -> Result<Option<[Size; 2]>, LinalgError> {
    let (Some(z_norm), Some(z), Some(step)) = (first, &v.z, watch.history.steps.first()) else {
        return Ok(None);
    };
    let rho = v.scalars.state.to_host()?[CgScalars::<D>::RHO];
    Ok(Some([Size { rho: step.rho, z_norm }, Size { rho, z_norm: norm(z, comm)? }]))
}

impl<T: Scalar, D: CgKernels<T>> Vectors<T, D> {
    /// Zeros of `n` entries, for a preconditioner.
    fn new(device: &D, n: usize, m: &dyn Preconditioner<T, D>) -> Result<Self, LinalgError> {
        let has_diagonal = m.diagonal().is_some();
        let scalars = CgScalars::new(device, 0.0, 0, device.cg_addends(), device.cg_partials(n))?;
        let scalars = CgScalars { is_flexible: !has_diagonal && !m.is_fixed(), ..scalars };
        let zeros = || Buffer::zeros(device, n);
        let z = if has_diagonal { None } else { Some(zeros()?) };
        Ok(Self { r: zeros()?, p: zeros()?, q: zeros()?, z, scalars })
    }
}

/// Iterations that are started together. Those that come after the end do nothing but apply the
/// preconditioner: if that is more than a diagonal, few of them cost more than looking often does.
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

//! Conjugate gradients for symmetric positive definite operators.

mod config;
mod cpu;
mod kernels;
mod reference;
mod scalars;
mod watch;

use std::ops::ControlFlow;

use femtile_device::{Buffer, Scalar};

use super::{Monitor, Stop};
use crate::comm::Communicator;
use crate::{LinalgError, LinearOperator, Preconditioner, error::need};
pub use config::{CgConfig, CgOutcome};
pub use kernels::{CgKernels, CgScalars};
use watch::Watch;

/// Preconditioned conjugate gradients, with every vector update of an iteration in two passes.
///
/// $$ q = A p, \quad \alpha = \frac{r^\mathsf{T} z}{p^\mathsf{T} q}, \quad x \mathrel{+}= \alpha p, \quad
///    r \mathrel{-}= \alpha q, \quad z = M^{-1} r, \quad \beta = \frac{r_+^\mathsf{T} z_+}{r^\mathsf{T} z}, \quad
///    p = z + \beta p $$
///
/// # Cost
/// One product, and 10n values moved besides it with a diagonal preconditioner: the update of x waits
/// for the pass that reads p anyway, and z is never stored.
/// # Source
/// `[hestenes1952]`; fusing `[kronbichler2022]`, section 2. Differs: x is updated together with p.
#[derive(Debug, Clone, Default)]
pub struct ConjugateGradient {
    config: CgConfig,
}

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
        need("b", a.n_rows(), b.len())?;
        need("x", a.n_rows(), x.len())?;
        need("a", a.n_rows(), a.n_cols())?;
        let device = b.device().clone();
        let b_norm = norm(&device, b, comm)?;
        let mut v = Vectors::new(&device, x, a, b, m.diagonal().is_none())?;
        if b_norm == 0.0 {
            device.fill(x, T::ZERO)?;
            return Ok(CgOutcome::at_once());
        }
        let r_norm = norm(&device, &v.r, comm)?;
        let mut watch = Watch::new(&self.config, b_norm);
        let mut stop = watch.see(0, r_norm, monitor);
        if stop.is_continue() {
            start(&device, &mut v, m, comm)?;
        }
        let mut iteration = 0;
        while stop.is_continue() {
            iteration += 1;
            stop = iterate(&device, x, a, m, &mut v, comm, &mut |scalars| {
                read_back(scalars).map(|s| watch.step(iteration, s, monitor))
            })?;
        }
        let stop = stop.break_value().unwrap_or(Stop::Converged);
        let true_residual = residual(&device, &mut v, x, a, b, comm)? / b_norm;
        Ok(watch.outcome(stop, true_residual))
    }
}

impl<T: Scalar, D: CgKernels<T>> Vectors<T, D> {
    /// r = b − A x and zeros.
    fn new(
        device: &D,
        x: &Buffer<T, D>,
        a: &dyn LinearOperator<T, D>,
        b: &Buffer<T, D>,
        with_z: bool,
    ) -> Result<Self, LinalgError> {
        let n = b.len();
        let z = if with_z { Some(Buffer::zeros(device, n)?) } else { None };
        let mut r = Buffer::zeros(device, n)?;
        a.apply(&mut r, x)?;
        device.axpby(&mut r, T::ONE, b, -T::ONE)?;
        let (p, q) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
        Ok(Self { r, p, q, z, scalars: CgScalars::zeros(device)? })
    }
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
    comm.sum(&mut v.scalars.values)?;
    device.cg_conjugation(&mut v.scalars)
}

/// Reads the scalars of an iteration and says whether to go on.
type See<'a, D> = dyn FnMut(&CgScalars<D>) -> Result<ControlFlow<Stop>, LinalgError> + 'a;

/// One iteration; `see` reads the scalars once the new residual is known and says whether to go on.
fn iterate<T: Scalar, D: CgKernels<T>, C: Communicator>(
    device: &D,
    x: &mut Buffer<T, D>,
    a: &dyn LinearOperator<T, D>,
    m: &dyn Preconditioner<T, D>,
    v: &mut Vectors<T, D>,
    comm: &C,
    see: &mut See<'_, D>,
) -> Result<ControlFlow<Stop>, LinalgError> {
    device.cg_product(&mut v.q, a, &v.p, &mut v.scalars)?;
    comm.sum(&mut v.scalars.values)?;
    device.cg_step_length(&mut v.scalars)?;
    device.cg_residual(&mut v.r, &v.q, m.diagonal(), &mut v.scalars)?;
    if let Some(z) = &mut v.z {
        m.apply(z, &v.r)?;
        device.cg_r_dot_z(&v.r, z, &mut v.scalars)?;
    }
    comm.sum(&mut v.scalars.values)?;
    let stop = see(&v.scalars)?;
    match stop {
        ControlFlow::Break(Stop::Breakdown { .. }) => {}
        ControlFlow::Break(_) => device.cg_solution(x, &v.p, &v.scalars)?,
        ControlFlow::Continue(()) => {
            device.cg_conjugation(&mut v.scalars)?;
            let z = v.z.as_ref().unwrap_or(&v.r);
            device.cg_direction(&mut v.p, x, z, m.diagonal(), &v.scalars)?;
        }
    }
    Ok(stop)
}

/// ‖b − A x‖, through r and q.
fn residual<T: Scalar, D: CgKernels<T>, C: Communicator>(
    device: &D,
    v: &mut Vectors<T, D>,
    x: &Buffer<T, D>,
    a: &dyn LinearOperator<T, D>,
    b: &Buffer<T, D>,
    comm: &C,
) -> Result<f64, LinalgError> {
    a.apply(&mut v.q, x)?;
    device.axpby(&mut v.q, T::ONE, b, -T::ONE)?;
    norm(device, &v.q, comm)
}

fn norm<T: Scalar, D: CgKernels<T>, C: Communicator>(
    device: &D,
    x: &Buffer<T, D>,
    comm: &C,
) -> Result<f64, LinalgError> {
    let mut square = Buffer::from_host(device, &[device.dot(x, x)?])?;
    comm.sum(&mut square)?;
    Ok(square.to_host()?[0].sqrt())
}

/// What the host wants to know of an iteration.
struct Sums {
    p_dot_q: f64,
    r_dot_r: f64,
    r_dot_z: f64,
}

fn read_back<D: femtile_device::Device>(scalars: &CgScalars<D>) -> Result<Sums, LinalgError> {
    let s = scalars.values.to_host()?;
    Ok(Sums {
        p_dot_q: s[CgScalars::<D>::P_DOT_Q],
        r_dot_r: s[CgScalars::<D>::R_DOT_R],
        r_dot_z: s[CgScalars::<D>::R_DOT_Z],
    })
}

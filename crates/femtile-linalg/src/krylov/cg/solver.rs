//! Conjugate gradients for many right sides with one operator.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use femtile_device::{Buffer, Scalar};

use super::attempt::Attempt;
use super::extrapolation::Extrapolation;
use super::plan::Past;
use super::recordings::Recordings;
use super::workspace::Workspace;
use super::{CgKernels, CgOutcome, KrylovConfig, Target};
use crate::comm::{Communicator, SingleRank};
use crate::error::need;
use crate::krylov::acceptance::{self, PreconditionedSystem};
use crate::krylov::residual::fits;
use crate::krylov::{Monitor, Stop};
use crate::{LinalgError, LinearOperator, Preconditioner};

/// Conjugate gradients for many right sides with one operator: vectors and recordings are kept between solves.
///
/// Iterates, residuals and stop of a solve are those of [`super::ConjugateGradient::solve`], to the last bit, as both
/// run the same passes.
/// A GPU runs the start, the iteration count of the last solves and the acceptance tests as one recording.
/// The host reads the result once. The acceptance tests know the smallest Ritz value of earlier solves. A
/// preconditioner that is not diagonal is compared at the first guess instead of the right side. If the tests
/// refuse an iterate, it is judged as by [`super::ConjugateGradient`], which continues from there.
///
/// ```
/// use std::sync::Arc;
///
/// use femtile_device::{Buffer, Cpu};
/// use femtile_linalg::comm::SingleRank;
/// use femtile_linalg::hooks::Hook;
/// use femtile_linalg::krylov::cg::{CgSolver, KrylovConfig, Target};
/// use femtile_linalg::precondition::Diagonal;
/// use femtile_linalg::{LinalgError, LinearOperator};
///
/// /// The matrix 2 I.
/// struct Twice(Cpu);
///
/// impl LinearOperator<f64, Cpu> for Twice {
///     fn n_rows(&self) -> usize {
///         3
///     }
///     fn n_cols(&self) -> usize {
///         3
///     }
///     fn device(&self) -> &Cpu {
///         &self.0
///     }
///     fn apply_with(
///         &self,
///         y: &mut Buffer<f64, Cpu>,
///         x: &Buffer<f64, Cpu>,
///         hook: &dyn Hook<f64>,
///     ) -> Result<(), LinalgError> {
///         y.as_mut_slice().iter_mut().zip(x.as_slice()).for_each(|(y, x)| *y = 2.0 * x);
///         hook.post(0..3, x.as_slice(), y.as_mut_slice());
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), LinalgError> {
/// let cpu = Cpu::new(1)?;
/// let m = Diagonal::identity(&cpu, 3)?;
/// let mut solver = CgSolver::new(Arc::new(Twice(cpu)), Arc::new(m))?;
/// for step in 1..=4 {
///     solver.b_mut().upload(&[1.0, 2.0, f64::from(step)])?;
///     let outcome = solver.solve(&KrylovConfig::default(), Target::RightSide, &SingleRank, &mut ())?;
///     assert_eq!(outcome.stop, femtile_linalg::krylov::Stop::Converged);
/// }
/// assert_eq!(solver.x().to_host()?, [0.5, 1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Cost
/// k iterations with a diagonal preconditioner: k + 2 products, 10n values moved each iteration and 14n besides. Seven
/// vectors are kept, eight with any other preconditioner. On a GPU a solve of at most 32 expected iterations is one replay and
/// two copies to the host, waited for together.
/// # Source
/// As [`super::ConjugateGradient`].
pub struct CgSolver<T: Scalar, D: CgKernels<T>> {
    pub(super) a: Arc<dyn LinearOperator<T, D>>,
    /// The operator of iterations, if it differs.
    pub(super) of_iterations: Option<Arc<dyn LinearOperator<T, D>>>,
    pub(super) m: Arc<dyn Preconditioner<T, D>>,
    pub(super) x: Buffer<T, D>,
    pub(super) b: Buffer<T, D>,
    /// The start of the current solve.
    pub(super) start: Buffer<T, D>,
    pub(super) w: Workspace<T, D>,
    /// The diagonal by which residuals are tested, if it is not that of the preconditioner.
    pub(super) test: Option<Buffer<T, D>>,
    pub(super) is_identity: bool,
    pub(super) recordings: Recordings<D>,
    /// Addresses of x and b in the recordings.
    addresses: [u64; 2],
    pub(super) past: Past,
    pub(super) extrapolation: Option<Extrapolation<T, D>>,
    /// The norm of a residual that the preconditioner, other than a diagonal, knows.
    pub(super) scale: Option<f64>,
    pub(super) smallest_ritz: Option<f64>,
    /// The norm of rounding errors in b.
    pub(super) rounding: f64,
}

impl<T: Scalar, D: CgKernels<T>> fmt::Debug for CgSolver<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CgSolver").field("n", &self.x.len()).finish_non_exhaustive()
    }
}

impl<T: Scalar, D: CgKernels<T>> CgSolver<T, D> {
    /// Prepares solves with a symmetric positive definite operator and a preconditioner; x and b are zero.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when the operator is not square or the preconditioner does not fit; errors of the device.
    pub fn new(
        a: Arc<dyn LinearOperator<T, D>>,
        m: Arc<dyn Preconditioner<T, D>>,
    ) -> Result<Self, LinalgError> {
        Self::with_communicator(a, m, &SingleRank)
    }

    /// As [`CgSolver::new`], for the rows of one of several ranks, which solve together; all of them call it, and then
    /// [`CgSolver::solve`] with the same ranks. Their work is not recorded.
    ///
    /// # Errors
    /// As [`CgSolver::new`]; [`LinalgError::Rank`].
    pub fn with_communicator<C: Communicator>(
        a: Arc<dyn LinearOperator<T, D>>,
        m: Arc<dyn Preconditioner<T, D>>,
        comm: &C,
    ) -> Result<Self, LinalgError> {
        let (device, n) = (a.device().clone(), a.n_rows());
        let (x, b, start) =
            (Buffer::zeros(&device, n)?, Buffer::zeros(&device, n)?, Buffer::zeros(&device, n)?);
        fits(a.as_ref(), &x, &b)?;
        let (is_identity, test) = examine(a.as_ref(), m.as_ref(), comm)?;
        let w = Workspace::new(&device, n, m.as_ref())?;
        Ok(Self {
            addresses: [x.address(), b.address()],
            a,
            of_iterations: None,
            m,
            x,
            b,
            start,
            w,
            test,
            is_identity,
            recordings: Recordings::default(),
            past: Past::default(),
            extrapolation: None,
            scale: None,
            smallest_ritz: None,
            rounding: 0.0,
        })
    }

    /// Applies another operator in iterations, A with values of fewer bits; residuals at the start and at the end are those
    /// of A.
    ///
    /// With a relative error ε of the entries, an iteration that corrects the guess by d ends with a residual
    /// error of about $\epsilon \|A d\|$. This is useful if a guess is close or the tolerance far above ε. A
    /// solve whose residual is not that small continues with A.
    ///
    /// # Errors
    /// [`LinalgError::Length`] for an operator of another size.
    pub fn iterate_with(&mut self, a: Arc<dyn LinearOperator<T, D>>) -> Result<(), LinalgError> {
        fits(a.as_ref(), &self.x, &self.b)?;
        (self.of_iterations, self.recordings) = (Some(a), Recordings::default());
        Ok(())
    }

    /// Lets solves begin with the line through the last two solutions, $2 x_1 - x_0$, for right sides that change smoothly.
    ///
    /// The products of both are known, so such a solve needs one product less. Two more vectors are kept. A
    /// guess written to x has priority.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn extrapolate(&mut self) -> Result<(), LinalgError> {
        self.extrapolation = Some(Extrapolation::new(self.x.device(), self.x.len())?);
        Ok(())
    }

    /// Returns the solutions that the next solve begins with, the last one first: at most two, none if it
    /// begins with x.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn solutions(&self) -> Result<Vec<Vec<T>>, LinalgError> {
        let Some(extrapolation) = &self.extrapolation else { return Ok(Vec::new()) };
        let all = [&self.x, &extrapolation.previous_x];
        Ok(all[..extrapolation.known].iter().map(|x| x.to_host()).collect::<Result<_, _>>()?)
    }

    /// Restores the result of [`CgSolver::solutions`], so that the next solve has the same bits.
    ///
    /// # Errors
    /// [`LinalgError::Length`] for vectors of another length or more than two; errors of the device.
    pub fn set_solutions(&mut self, solutions: &[Vec<T>]) -> Result<(), LinalgError> {
        need("solutions", solutions.len().min(2), solutions.len())?;
        let n = self.x.len();
        solutions.iter().try_for_each(|solution| need("solutions", n, solution.len()))?;
        let Some(extrapolation) = &mut self.extrapolation else { return Ok(()) };
        if let [_, before] = solutions {
            extrapolation.previous_x.upload(before)?;
            self.a.apply(&mut extrapolation.previous_q, &extrapolation.previous_x)?;
        }
        if let [last, ..] = solutions {
            self.x.upload(last)?;
            self.a.apply(&mut self.w.q, &self.x)?;
        }
        extrapolation.known = solutions.len();
        Ok(())
    }

    /// Takes another operator of the same size and its preconditioner; x, b and all memory remain, and the next solves record their
    /// work again. All of several ranks call it.
    ///
    /// # Errors
    /// As [`CgSolver::with_communicator`].
    pub fn set_operator<C: Communicator>(
        &mut self,
        a: Arc<dyn LinearOperator<T, D>>,
        m: Arc<dyn Preconditioner<T, D>>,
        comm: &C,
    ) -> Result<(), LinalgError> {
        fits(a.as_ref(), &self.x, &self.b)?;
        (self.is_identity, self.test) = examine(a.as_ref(), m.as_ref(), comm)?;
        if m.diagonal().is_some() != self.w.z.is_none() {
            self.w = Workspace::new(a.device(), a.n_rows(), m.as_ref())?;
        }
        self.w.scalars.is_flexible = m.diagonal().is_none() && !m.is_fixed();
        (self.a, self.m, self.of_iterations) = (a, m, None);
        (self.recordings, self.scale, self.smallest_ritz) = (Recordings::default(), None, None);
        self.forget_solutions();
        Ok(())
    }

    /// Returns the operator.
    pub fn operator(&self) -> &Arc<dyn LinearOperator<T, D>> {
        &self.a
    }

    /// Returns the preconditioner.
    pub fn preconditioner(&self) -> &Arc<dyn Preconditioner<T, D>> {
        &self.m
    }

    /// Returns the solution, or the first guess of the next solve.
    pub fn x(&self) -> &Buffer<T, D> {
        &self.x
    }

    /// Returns the first guess of the next solve, to be overwritten. A buffer of the same length may replace it; the next
    /// solves then record their work again.
    pub fn x_mut(&mut self) -> &mut Buffer<T, D> {
        self.forget_solutions();
        &mut self.x
    }

    /// Returns the right side.
    pub fn b(&self) -> &Buffer<T, D> {
        &self.b
    }

    /// Returns the right side of the next solve, to be overwritten; as for [`CgSolver::x_mut`].
    pub fn b_mut(&mut self) -> &mut Buffer<T, D> {
        &mut self.b
    }

    /// Returns x and b together.
    pub fn vectors_mut(&mut self) -> (&mut Buffer<T, D>, &mut Buffer<T, D>) {
        self.forget_solutions();
        (&mut self.x, &mut self.b)
    }

    fn forget_solutions(&mut self) {
        if let Some(extrapolation) = &mut self.extrapolation {
            extrapolation.known = 0;
        }
    }

    /// Returns the smallest Ritz value of $M^{-1} A$ that acceptance tests use, if one is known.
    pub fn smallest_ritz_value(&self) -> Option<f64> {
        self.smallest_ritz
    }

    /// Sets the smallest Ritz value, such as that of a previous solver with the same operator. Results then
    /// do not depend on which of the two solves.
    pub fn set_smallest_ritz_value(&mut self, value: Option<f64>) {
        self.smallest_ritz = value.filter(|value| *value > 0.0);
    }

    /// Sets the norm of rounding errors in b, such as those of a difference of large terms; 0 if b is exact.
    ///
    /// A solve leaves a residual of this size, up to a tenth of b, whatever its target asks for.
    pub fn set_rounding(&mut self, norm: f64) {
        self.rounding = if norm.is_finite() { norm } else { 0.0 };
    }

    /// Solves $A x = b$ from the values in x, and leaves the last iterate there.
    ///
    /// The settings and the target may differ from solve to solve at no cost.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when x or b were replaced by vectors of another length, [`LinalgError::Setting`] when the
    /// tolerance does not lie between 0 and 1 or a number of the target is not positive. Not converging is no error: see
    /// [`CgOutcome::stop`].
    pub fn solve<C: Communicator>(
        &mut self,
        config: &KrylovConfig,
        target: Target,
        comm: &C,
        monitor: &mut dyn Monitor,
    ) -> Result<CgOutcome, LinalgError> {
        config.check()?;
        target.check()?;
        let begun = Instant::now();
        self.follow_vectors()?;
        let attempt = self.attempt(config, target, comm, monitor)?;
        let Self { a, m, x, b, w, start, .. } = self;
        let system = PreconditionedSystem { a: a.as_ref(), m: m.as_ref(), b, comm };
        let outcome = match attempt {
            Attempt::Accepted(outcome) => outcome,
            Attempt::Ended { end, b_norm, tolerance } => {
                let config = KrylovConfig { tolerance, ..config.clone() };
                let (outcome, ritz) = acceptance::resume(
                    x,
                    system,
                    (&config, b_norm, begun),
                    (start, end),
                    monitor,
                    &mut |x, system, asked| w.run(x, system, asked),
                )?;
                self.smallest_ritz = ritz;
                outcome
            }
            Attempt::NotBegun { tolerance, .. } => {
                // A target far below a huge or infinite right side may be zero relative to it.
                let tolerance = tolerance.max(f64::MIN_POSITIVE);
                let config = KrylovConfig { tolerance, ..config.clone() };
                acceptance::solve(x, system, &config, monitor, &mut |x, system, asked| {
                    w.run(x, system, asked)
                })?
            }
        };
        if matches!(outcome.stop, Stop::Converged) {
            self.past.push(outcome.iterations);
        }
        Ok(outcome)
    }

    /// Checks x and b, and forgets recordings of others.
    fn follow_vectors(&mut self) -> Result<(), LinalgError> {
        fits(self.a.as_ref(), &self.x, &self.b)?;
        let addresses = [self.x.address(), self.b.address()];
        if self.addresses != addresses {
            self.addresses = addresses;
            self.recordings = Recordings::default();
        }
        Ok(())
    }
}

/// Returns whether the preconditioner is the identity on all ranks, and the diagonal by which residuals are
/// tested if it is not its own.
fn examine<T: Scalar, D: CgKernels<T>, C: Communicator>(
    a: &dyn LinearOperator<T, D>,
    m: &dyn Preconditioner<T, D>,
    comm: &C,
) -> Result<(bool, Option<Buffer<T, D>>), LinalgError> {
    let device = a.device();
    // A rank with another answer than the others would wait for sums that they do not make.
    let on_all = |is_so: bool| -> Result<bool, LinalgError> {
        let mut others = Buffer::from_vec(device, vec![f64::from(u8::from(!is_so))])?;
        comm.sum(&mut others)?;
        Ok(others.to_host()?[0] == 0.0)
    };
    let is_identity = match m.diagonal() {
        // Numbers whose sum and sum of squares are n are ones.
        Some(d) => {
            let n = d.len() as f64;
            d.is_empty() || device.sum(d)? == n && device.dot(d, d)? == n
        }
        None => false,
    };
    let is_identity = on_all(is_identity)?;
    if m.diagonal().is_some() && !is_identity {
        return Ok((is_identity, None));
    }
    let found = match a.inverse_diagonal() {
        Err(LinalgError::Diagonal { .. }) => None,
        found => found?,
    };
    let is_known = on_all(found.is_some())?;
    Ok((is_identity, found.filter(|_| is_known)))
}

//! The tests of an iterate.

use femtile_device::{Buffer, Scalar};

use super::{PreconditionedSystem, RESIDUAL_SLACK, RunEnd, Size, Solve, Verdict, copy};
use crate::LinalgError;
use crate::comm::Communicator;
use crate::krylov::Stop;
use crate::krylov::cg::CgStep;
use crate::krylov::energy::{energy_error, smallest_ritz_value};
use crate::krylov::failed_test::{AcceptanceTest, FailedTest};
use crate::krylov::residual::{dot, norm, residual};
use crate::krylov::rounding::RowTerms;
use crate::vector::VectorKernels;

/// Factor over the tolerance that the preconditioned residual may reach.
pub(super) const PRECONDITIONED_SLACK: f64 = 5.0;

/// Factors over the tolerance that the bound of the energy error may reach; the second if the residual is
/// rounding and the bound holds for any residual of its size.
pub(super) const ENERGY_SLACK: [f64; 2] = [20.0, 50.0];

/// Minimum number of steps for an error bound from the coefficients: with a diagonal preconditioner, and with any other.
pub(in crate::krylov) const MIN_STEPS: [usize; 2] = [8, 3];

/// Maximum number of steps on the residual equation, which bound the energy error if a run has fewer steps.
const PROBE: [usize; 2] = [32, 3];

/// Maximum number of steps on the residual equation of a system that is verified, beyond those of the run.
const VERIFYING: usize = 1000;

/// Reduction of $r^\mathsf{T} M^{-1} r$ that ends the steps of a run with few, and that a verified system needs at least.
const PROBED: [f64; 2] = [1e-8, 1e-4];

/// Multiple of the machine epsilon and of the largest eigenvalue of $M^{-1} A$ below which no eigenvalue hides an error.
const ROUNDED_EIGENVALUE: f64 = 500.0;

/// Factor by which rounding may hide a part of the residual, in a system so small that few steps solve it.
const ROUNDED: f64 = 25.0;

/// Ratio to the largest pivot below which a Ritz value counts as zero, of a null space.
const SINGULAR: f64 = 1e-13;

/// Ratio to the largest curvature $p^\mathsf{T} A p / p^\mathsf{T} p$ seen beyond which a negative one is none of rounding.
const INDEFINITE: f64 = 1e-8;

/// The size of a residual s that rounding may hide.
#[derive(Debug, Clone, Copy)]
struct Hidden {
    /// $s^\mathsf{T} M^{-1} s$.
    rho: f64,
    s_dot_s: f64,
}

impl<T: Scalar, D: VectorKernels<T>, C: Communicator> Solve<'_, T, D, C> {
    pub(super) fn judge(&mut self, x: &Buffer<T, D>, end: &RunEnd) -> Result<Verdict, LinalgError> {
        let PreconditionedSystem { a, b, comm, .. } = self.system;
        let n = b.len();
        let mut r = Buffer::zeros(b.device(), n)?;
        residual(&mut r, a, x, b)?;
        let r_norm = norm(&r, comm)?;
        let tolerance = self.config.tolerance;
        let recurred = end.history.r_dot_r.last().map_or(f64::INFINITY, |r_dot_r| r_dot_r.sqrt());
        let is_rounded = r_norm > RESIDUAL_SLACK * recurred.max(tolerance * self.b_norm);
        let known = end.preconditioned.map(|[_, last]| last).filter(|_| !is_rounded);
        let mut workspace =
            Buffer::zeros(b.device(), if known.is_some() && self.of_b.is_some() { 0 } else { n })?;
        let of_b = match self.of_b {
            Some(size) => size,
            None => self.size_of_b(&mut workspace)?,
        };
        let size = match known {
            Some(size) => size,
            None => self.size(&r, &mut workspace)?,
        };
        let terms = if is_rounded { Some(RowTerms::of(x, self.system)?) } else { None };
        let rest = match &terms {
            Some(terms) if !self.is_diagonal() => Some(terms.unexplained(&r)?),
            _ => None,
        };
        let of_rest = match &rest {
            Some(rest) => self.size(rest, &mut workspace)?,
            None => size,
        };
        let hidden = match &terms {
            Some(terms) => {
                let s = terms.rounding(b.device())?;
                Some(Hidden { rho: self.size(&s, &mut workspace)?.rho, s_dot_s: dot(&s, &s, comm)? })
            }
            None => None,
        };
        drop((workspace, terms));
        self.energy_norm = (dot(x, b, comm)? - dot(x, &r, comm)?).max(0.0).sqrt();
        let by_diagonal = self.by_diagonal(rest.as_ref().unwrap_or(&r))?;
        drop(rest);
        self.energy_error = self.bound(end, (&mut r, r_norm), size, hidden)?;
        let test = |test, value, slack| FailedTest { test, value, bound: slack * tolerance, tolerance };
        let of_preconditioner = match (self.is_diagonal(), &self.diagonal) {
            (true, Some(_)) => AcceptanceTest::ScaledResidual,
            _ => AcceptanceTest::PreconditionedResidual,
        };
        let of_energy = self.energy_error.map(|error| error / self.energy_norm);
        let energy_slack = ENERGY_SLACK[usize::from(is_rounded)];
        let mut tests = vec![
            test(of_preconditioner, of_rest.over(of_b), PRECONDITIONED_SLACK),
            test(AcceptanceTest::ScaledResidual, by_diagonal, PRECONDITIONED_SLACK),
        ];
        tests.extend(of_energy.map(|error| test(AcceptanceTest::EnergyError, error, energy_slack)));
        let passes_by_energy =
            is_rounded && of_energy.is_some() && tests.iter().all(|test| !test.is_failed());
        if !passes_by_energy {
            tests.push(test(AcceptanceTest::Residual, r_norm / self.b_norm, RESIDUAL_SLACK));
        }
        let worst = tests.iter().map(FailedTest::ratio).fold(0.0, f64::max);
        let failed = tests.into_iter().filter(FailedTest::is_failed).find(|test| test.ratio() == worst);
        Ok(Verdict { r_norm, worst: if r_norm.is_finite() { worst } else { f64::INFINITY }, failed })
    }

    /// The bound of the energy error, from the steps of the run or of a few on the residual equation; r is used up.
    ///
    /// `hidden` is what rounding may hide, if r is no more than rounding.
    fn bound(
        &mut self,
        end: &RunEnd,
        (r, r_norm): (&mut Buffer<T, D>, f64),
        size: Size,
        hidden: Option<Hidden>,
    ) -> Result<Option<f64>, LinalgError> {
        let kind = usize::from(!self.is_diagonal());
        let steps = &end.history.steps;
        let has_few = steps.len() < MIN_STEPS[kind];
        let rounded = hidden.map(|hidden| (if has_few { ROUNDED } else { 1.0 }, hidden.rho));
        // Conjugate gradients break down if a matrix is indefinite; other methods solve, and there is no
        // energy.
        let may_be_indefinite = steps.is_empty();
        if self.is_verified && end.stop == Stop::Converged {
            let unchanged = if has_few { Some(copy(r)?) } else { None };
            let most = end.history.r_dot_r.len() + VERIFYING;
            let (bound, is_singular) = self.probe(r, (most, true), rounded, may_be_indefinite)?;
            if !is_singular {
                return Ok(bound);
            }
            // So many steps see what rounding leaves of r along a null space, and take it for an error.
            if let Some(unchanged) = unchanged {
                *r = unchanged;
            }
        }
        if has_few {
            return Ok(self.probe(r, (PROBE[kind], false), rounded, may_be_indefinite)?.0);
        }
        self.bounding_ritz = self.smallest_ritz.filter(|_| self.diagonal.is_none());
        // The coefficients are those of a run without preconditioner if the diagonal of the operator stands in for it.
        let is_own = self.diagonal.is_none();
        let rho = if is_own { size.rho } else { r_norm * r_norm };
        Ok(self.smallest_ritz.map(|ritz| match hidden {
            Some(Hidden { rho: of_hidden, s_dot_s }) => {
                ((rho + if is_own { of_hidden } else { s_dot_s }) / ritz).sqrt()
            }
            None => energy_error(steps, rho, ritz),
        }))
    }

    /// Runs steps of conjugate gradients on $A e = r$. Returns the energy of e that they find, and the bound
    /// of the rest.
    ///
    /// An eigenvector that the right side hardly contains may be missing in the Krylov space of the run. In r
    /// it stands beside the others, which the run has reduced to its size. A verified system runs steps until
    /// ρ is so small that no eigenvalue above rounding makes a large error of it.
    ///
    /// If r is no more than rounding, its direction says nothing. The bound is then that of any residual as
    /// large as r and what rounding hides (the second of `rounded`), times the first of `rounded`. Also
    /// returns whether the matrix is singular to the precision of its products. There is no bound if the
    /// matrix may be indefinite and turns out to be.
    fn probe(
        &mut self,
        r: &mut Buffer<T, D>,
        (n_steps, is_verified): (usize, bool),
        rounded: Option<(f64, f64)>,
        may_be_indefinite: bool,
    ) -> Result<(Option<f64>, bool), LinalgError> {
        let PreconditionedSystem { a, b, comm, .. } = self.system;
        let (device, n) = (b.device(), b.len());
        let (mut z, mut q) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
        let mut rho = self.size(r, &mut z)?.rho;
        let first = rho;
        let mut p = copy(&z)?;
        let (mut steps, mut largest) = (Vec::new(), 0.0_f64);
        let least = ROUNDED_EIGENVALUE
            * T::EPSILON.to_f64()
            * (ENERGY_SLACK[0] * self.config.tolerance * self.energy_norm).powi(2);
        let enough = |largest: f64| match is_verified {
            true => (least * largest).min(PROBED[1] * first),
            false => PROBED[0] * first,
        };
        let (mut is_singular, mut steepest) = (false, 0.0_f64);
        while steps.len() < n_steps && rho > enough(largest) {
            a.apply(&mut q, &p)?;
            let p_dot_q = dot(&p, &q, comm)?;
            if may_be_indefinite {
                let curvature = p_dot_q / dot(&p, &p, comm)?;
                steepest = steepest.max(curvature.abs());
                if curvature < -INDEFINITE * steepest {
                    return Ok((None, false));
                }
            }
            let alpha = rho / p_dot_q;
            if !(alpha > 0.0 && alpha.is_finite()) {
                is_singular = true;
                break;
            }
            steps.push(CgStep { rho, alpha });
            largest = largest.max(1.0 / alpha);
            if 1.0 / alpha < SINGULAR * largest {
                break;
            }
            device.axpby(r, T::from_f64(-alpha), &q, T::ONE)?;
            let next = self.size(r, &mut z)?.rho;
            device.axpby(&mut p, T::ONE, &z, T::from_f64(next / rho))?;
            rho = next;
        }
        // A component along the null space of a singular matrix that rounding leaves is no error.
        while smallest_ritz_value(&steps).is_some_and(|ritz| ritz < SINGULAR * largest) {
            is_singular = true;
            rho = steps.pop().map_or(rho, |step| step.rho);
        }
        // The values of a run without preconditioner are not those of the diagonal, which the probe has in its place.
        let of_run = self.smallest_ritz.filter(|_| self.diagonal.is_none());
        let ritz = [of_run, smallest_ritz_value(&steps)].into_iter().flatten().reduce(f64::min);
        self.bounding_ritz = ritz.filter(|_| self.diagonal.is_none());
        let found: f64 = steps.iter().map(|step| step.alpha * step.rho).sum();
        let bound = ritz.map(|ritz| match rounded {
            Some((factor, hidden)) => factor * ((first + hidden) / ritz).sqrt(),
            None => found.sqrt().hypot(energy_error(&steps, rho.max(0.0), ritz)),
        });
        Ok((bound, is_singular))
    }

    /// The size of the right side; if the preconditioner turns out to be the identity, as the diagonal of the
    /// operator sees it, if the operator tells.
    fn size_of_b(&mut self, workspace: &mut Buffer<T, D>) -> Result<Size, LinalgError> {
        let b = self.system.b;
        let mut size = self.size(b, workspace)?;
        if size.z_norm == self.b_norm && self.system.m.diagonal().is_some() {
            self.diagonal = self.inverse_diagonal()?;
            size = self.size(b, workspace)?;
        }
        self.of_b = Some(size);
        Ok(size)
    }

    fn is_diagonal(&self) -> bool {
        self.system.m.shared_diagonal().is_some()
    }

    /// The residual over the right side in the norm of the diagonal of the operator, if the preconditioner is
    /// different and the operator has a diagonal. Levels in single precision do not see all that a row can
    /// hide.
    fn by_diagonal(&self, r: &Buffer<T, D>) -> Result<f64, LinalgError> {
        if self.is_diagonal() {
            return Ok(0.0);
        }
        let Some(diagonal) = self.inverse_diagonal()? else { return Ok(0.0) };
        let PreconditionedSystem { b, comm, .. } = self.system;
        let mut z = Buffer::zeros(b.device(), b.len())?;
        let [of_r, of_b] = [r, b].map(|v| -> Result<Size, LinalgError> {
            v.device().scale_by(&mut z, &diagonal, v)?;
            Ok(Size { rho: dot(v, &z, comm)?, z_norm: norm(&z, comm)? })
        });
        Ok(of_r?.over(of_b?))
    }

    /// Returns the reciprocals of the diagonal of the operator, if it provides them and they are positive.
    fn inverse_diagonal(&self) -> Result<Option<Buffer<T, D>>, LinalgError> {
        match self.system.a.inverse_diagonal() {
            Err(LinalgError::Diagonal { .. }) => Ok(None),
            found => found,
        }
    }

    fn size(&self, r: &Buffer<T, D>, z: &mut Buffer<T, D>) -> Result<Size, LinalgError> {
        let PreconditionedSystem { m, comm, .. } = self.system;
        match &self.diagonal {
            Some(diagonal) => r.device().scale_by(z, diagonal, r)?,
            None => m.apply(z, r)?,
        }
        Ok(Size { rho: dot(r, z, comm)?, z_norm: norm(z, comm)? })
    }
}

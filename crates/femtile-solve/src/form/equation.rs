//! A nonlinear form at a time, as an equation for Newton's method.

use femtile_device::Buffer;
use femtile_fem::FemError;
use femtile_fem::recovery::IsInterrupted;
use femtile_form::FormError;
use femtile_linalg::newton::{CorrectionOutcome, NonlinearEquation, ResidualNorm};
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_operator::State;
use femtile_space::LinearConstraints;

use super::rank_form::{CellMatrix, RankForm};
use super::taylor;
use crate::nonlinear::{LARGEST_ROUNDING, Solved, TangentSolver};
use crate::ranks::RankDevice;
use crate::ranks::rows::agreed;
use crate::{SolveError, SolverConfig, rounding};

/// The tolerance of the linear solve for the first iterate.
const PREDICTION: f64 = 1e-3;

/// A nonlinear form at a time on a rank. Functions are collective.
///
/// The equation is $-r(u) = 0$ at the unknowns without Dirichlet values, with the tangent $A(u) = r'(u)$.
pub(super) struct FormEquation<'a, D: RankDevice> {
    form: &'a RankForm<'a, D>,
    time: f64,
    /// The Dirichlet values at that time.
    given: LinearConstraints,
    /// The last function, at the unknowns of the cells.
    at: Vec<f64>,
    /// $-r$ there.
    residual: Buffer<f64, D>,
    /// The norm of the terms of the residual, $\max(\|A u - r\|, \|A u\|)$.
    terms: f64,
    cells: CellMatrix,
    /// None unless it is the tangent at the last function.
    tangent: Option<Box<dyn LinearOperator<f64, D>>>,
    is_symmetric: bool,
    pub linear: TangentSolver<D>,
    /// The last reason why the residual or the tangent has no value at a function, on the ranks that have one.
    refusal: Option<Refusal>,
    /// Whether that was the tangent, which ends an iteration.
    pub is_tangent_refused: bool,
    /// Tangents with a value since the load step began.
    pub n_tangents: usize,
    is_interrupted: IsInterrupted<'a>,
}

/// Why a residual or a tangent has no value.
enum Refusal {
    /// The error that names the place.
    Error(SolveError),
    /// The function, whose residual has a place that is not yet known.
    Function(Vec<f64>),
}

impl<'a, D: RankDevice> FormEquation<'a, D> {
    /// Begins without a time.
    pub fn new(
        form: &'a RankForm<'a, D>,
        is_symmetric: bool,
        config: &SolverConfig,
        is_interrupted: IsInterrupted<'a>,
    ) -> Result<Self, SolveError> {
        Ok(Self {
            form,
            time: f64::NAN,
            given: LinearConstraints::none(0),
            at: Vec::new(),
            residual: form.owned(&vec![0.0; form.n_of_cells()])?,
            terms: 0.0,
            cells: CellMatrix::new(form.cpu)?,
            tangent: None,
            is_symmetric,
            linear: TangentSolver::new(config, is_symmetric),
            refusal: None,
            is_tangent_refused: false,
            n_tangents: 0,
            is_interrupted,
        })
    }

    /// Takes a time and the Dirichlet values at it, those of the whole mesh.
    pub fn bring_time(&mut self, time: f64, given: &LinearConstraints) -> Result<(), SolveError> {
        self.given = agreed(&self.form.comm, self.form.constraints(given))?;
        (self.time, self.refusal, self.is_tangent_refused) = (time, None, false);
        Ok(())
    }

    /// Puts the Dirichlet values g into `u`: with the change along the tangent at u that they ask for,
    ///
    /// $$ A(u)\,\delta = -(r(u) + A(u)\,(g - u)), $$
    ///
    /// if the residual is smaller with it, else alone. Returns the iterations of the linear solve.
    pub fn begin(&mut self, u: &mut Buffer<f64, D>) -> Result<usize, SolveError> {
        let before = self.form.with_ghosts(u.host_view().map_err(LinalgError::from)?)?.into_owned();
        let mut jump = before.clone();
        self.given.impose(&mut jump);
        let plain = self.form.owned(&jump)?;
        jump.iter_mut().zip(&before).for_each(|(jump, before)| *jump -= before);
        if !self.form.comm.any([jump.iter().any(|jump| *jump != 0.0)])?[0] {
            return Ok(0);
        }
        let Some(iterations) = self.predict(u, before, &jump)? else {
            self.refusal = None;
            *u = plain;
            return Ok(0);
        };
        // A residual without a value is larger than all others.
        let comparable = |norm: f64| if norm.is_finite() { norm } else { f64::INFINITY };
        let [of_plain, of_predicted] = [self.residual(&plain)?.norm, self.residual(u)?.norm].map(comparable);
        if of_plain <= of_predicted {
            *u = plain;
        }
        self.refusal = None;
        Ok(iterations)
    }

    /// Adds to `u` a change of its Dirichlet values and that of the tangent, if it has one; returns the iterations. `at` are the
    /// values of u at the unknowns of the cells.
    fn predict(
        &mut self,
        u: &mut Buffer<f64, D>,
        at: Vec<f64>,
        jump: &[f64],
    ) -> Result<Option<usize>, SolveError> {
        (self.at, self.tangent) = (at, None);
        let terms = self.terms_along(jump);
        let Some([r, product]) = self.accepted(terms)? else { return Ok(None) };
        let sum: Vec<f64> = r.iter().zip(&product).map(|(r, product)| -(r + product)).collect();
        self.residual = self.form.owned(&sum)?;
        if !self.fill_tangent()? {
            self.is_tangent_refused = false;
            return Ok(None);
        }
        let device = self.form.device;
        let mut delta = Buffer::zeros(device, self.residual.len()).map_err(LinalgError::from)?;
        let solved = self.solve(&mut delta, PREDICTION, false)?;
        if !solved.has_converged {
            self.linear.forget();
            return Ok(None);
        }
        device.axpby(u, 1.0, &delta, 1.0)?;
        device.axpby(u, 1.0, &self.form.owned(jump)?, 1.0)?;
        Ok(Some(solved.iterations))
    }

    /// Returns r and the product of A with a direction at the last function, both zero at Dirichlet unknowns; none if r has no
    /// value on the cells of the rank.
    fn terms_along(&self, direction: &[f64]) -> Result<Option<[Vec<f64>; 2]>, SolveError> {
        let mut terms = [vec![0.0; self.at.len()], vec![0.0; self.at.len()]];
        if let Some(operator) = &self.form.operator {
            if !operator.residual_is_finite(&self.state(), &mut terms[0])? {
                return Ok(None);
            }
            operator.apply(&self.state(), direction, &mut terms[1])?;
            terms.iter_mut().for_each(|term| self.given.distribute_transpose(term));
        }
        Ok(Some(terms))
    }

    fn state(&self) -> State<'_> {
        State { time: self.time, ..State::of(&self.at) }
    }

    /// Assembles the tangent at the last function; returns whether it has a value there.
    fn fill_tangent(&mut self) -> Result<bool, SolveError> {
        if self.tangent.is_some() {
            return Ok(true);
        }
        let state = State { time: self.time, ..State::of(&self.at) };
        let filled = self.cells.fill(self.form, &state, &self.given).map(Some);
        if self.accepted(filled)?.is_none() {
            self.is_tangent_refused = true;
            return Ok(false);
        }
        let brought = self.cells.operator(self.form).map_err(SolveError::from);
        self.tangent = Some(agreed(&self.form.comm, brought)?);
        self.n_tangents += 1;
        Ok(true)
    }

    /// Returns a result; none, on all ranks, if one of them has none or an integrand without a value, which is kept as refusal.
    fn accepted<R>(&mut self, result: Result<Option<R>, SolveError>) -> Result<Option<R>, SolveError> {
        let (result, refusal) = match result.map_err(|error| self.form.in_global_numbers(error)) {
            Err(error) if is_of_values(&error) => (Ok(None), Some(Refusal::Error(error))),
            Ok(None) => (Ok(None), Some(Refusal::Function(self.at.clone()))),
            other => (other, None),
        };
        let found = agreed(&self.form.comm, result)?;
        let [is_refused] = self.form.comm.any([refusal.is_some()])?;
        if is_refused {
            self.refusal = refusal;
            return Ok(None);
        }
        Ok(found)
    }

    /// Returns the last reason why the residual or the tangent has no value on the cells of the rank.
    fn take_refusal(&mut self) -> Option<SolveError> {
        match self.refusal.take()? {
            Refusal::Error(error) => Some(error),
            Refusal::Function(u) => {
                let operator = self.form.operator.as_ref()?;
                let state = State { time: self.time, ..State::of(&u) };
                let error = operator.residual(&state, &mut vec![0.0; u.len()]).err()?;
                Some(self.form.in_global_numbers(error.into()))
            }
        }
    }

    /// Makes a preconditioner; of a matrix that is not positive definite the diagonal for GMRES, if `may_change_method`.
    fn make_preconditioner(&mut self, may_change_method: bool) -> Result<bool, SolveError> {
        let (form, cells, is_symmetric) = (self.form, &self.cells, self.is_symmetric);
        let make = |linear: &mut TangentSolver<D>| {
            linear.make(|config, warnings| cells.preconditioning(form, is_symmetric, config, warnings))
        };
        match make(&mut self.linear) {
            Err(error) if self.form.is_of_definiteness(&error) && !may_change_method => Ok(false),
            Err(error) if self.form.is_of_definiteness(&error) => {
                self.linear.take_gmres();
                let warning = "a linearization is not positive definite, and multigrid or cg need one: gmres took over, \
                               with the diagonal as preconditioner";
                self.linear.take_diagonal(warning.into());
                make(&mut self.linear).map(|()| true)
            }
            made => made.map(|()| true),
        }
    }

    /// Solves $A \delta = -r$ with the tangent that was filled.
    fn solve(
        &mut self,
        delta: &mut Buffer<f64, D>,
        tolerance: f64,
        may_change_method: bool,
    ) -> Result<CorrectionOutcome, SolveError> {
        let mut before = 0;
        loop {
            let is_made =
                !self.linear.needs_preconditioner() || self.make_preconditioner(may_change_method)?;
            let Some(tangent) = self.tangent.as_ref().filter(|_| is_made) else {
                return Ok(CorrectionOutcome { iterations: before, has_converged: false });
            };
            let system = (tangent.as_ref(), &self.residual);
            match self.linear.solve(&self.form.comm, delta, system, tolerance, self.is_interrupted)? {
                Solved::Done(outcome) => {
                    return Ok(CorrectionOutcome { iterations: outcome.iterations + before, ..outcome });
                }
                Solved::NeedsPreconditioner(iterations) => before += iterations,
            }
        }
    }

    /// Checks that the tangent at a function is the derivative of the residual.
    pub fn check_tangent(&mut self, u: &Buffer<f64, D>) -> Result<(), SolveError> {
        if !self.residual(u)?.norm.is_finite() {
            return Ok(());
        }
        let checked = match &self.form.operator {
            Some(operator) => taylor::check(operator, &self.state(), &self.given),
            None => Ok(()),
        };
        agreed(&self.form.comm, checked)
    }

    /// Returns residual, number on the whole mesh and value of the owned unknown of all ranks with the largest residual at a
    /// function; none if the residual has no value there.
    pub fn worst(&mut self, u: &Buffer<f64, D>) -> Result<Option<[f64; 3]>, SolveError> {
        if !self.residual(u)?.norm.is_finite() {
            return Ok(None);
        }
        let [residual, u] = [&self.residual, u].map(|v| v.to_host().map_err(LinalgError::from));
        let (residual, u) = (residual?, u?);
        let largest = (0..u.len()).max_by(|&a, &b| residual[a].abs().total_cmp(&residual[b].abs()));
        let own: Vec<[f64; 3]> =
            largest.map(|at| [residual[at], self.form.in_whole(at) as f64, u[at]]).into_iter().collect();
        let all = self.form.comm.all_gather(&own)?.into_iter().flatten();
        Ok(all.max_by(|a, b| a[0].abs().total_cmp(&b[0].abs())))
    }

    /// Returns the last reason why the residual or the tangent has no value, in words on all ranks.
    pub fn told_refusal(&mut self) -> Result<Option<String>, LinalgError> {
        let own = self.take_refusal().map(|error| error.to_string()).unwrap_or_default();
        let all = self.form.comm.all_gather(own.as_bytes())?;
        let first = all.into_iter().find(|text| !text.is_empty());
        Ok(first.map(|text| String::from_utf8_lossy(&text).into_owned()))
    }

    /// Refuses an energy without a value at a function, where its derivatives may have one. Collective.
    pub fn check_energy(&self, u: &Buffer<f64, D>) -> Result<(), SolveError> {
        let at = self.form.with_ghosts(u.host_view().map_err(LinalgError::from)?)?;
        let state = State { time: self.time, ..State::of(&at) };
        let energy = self.form.operator.as_ref().map_or(Ok(0.0), |operator| operator.energy(&state));
        agreed(&self.form.comm, energy.map_err(|error| self.form.in_global_numbers(error.into())))?;
        Ok(())
    }

    /// Returns the error of a residual or a tangent without a value at the last function.
    pub fn without_value(&mut self) -> Result<SolveError, SolveError> {
        if !self.form.comm.any([self.refusal.is_some()])?[0] {
            // The matrix names the place of values that products do not.
            self.fill_tangent()?;
        }
        let refusal = self.take_refusal();
        agreed(&self.form.comm, refusal.map_or(Ok(()), Err))?;
        Ok(SolveError::setting(&["equation".into()], "the residual is not finite at the first function"))
    }
}

/// Returns the error that ends an iteration whose tangent has no value; the refusal has the reason.
fn ended() -> SolveError {
    LinalgError::Setting { field: "tangent", message: "it is not finite".into() }.into()
}

/// Returns whether an integrand has no value at a point, which another function may mend.
pub(super) fn is_of_values(error: &SolveError) -> bool {
    matches!(error, SolveError::Fem(FemError::Form(FormError::IntegrandNotFinite { .. })))
}

impl<D: RankDevice> NonlinearEquation<D> for FormEquation<'_, D> {
    type Error = SolveError;

    fn residual(&mut self, u: &Buffer<f64, D>) -> Result<ResidualNorm, SolveError> {
        self.tangent = None;
        self.at = self.form.with_ghosts(u.host_view().map_err(LinalgError::from)?)?.into_owned();
        let mut free = self.at.clone();
        self.given.distribute(&mut free);
        let terms = self.terms_along(&free);
        let Some([mut r, product]) = self.accepted(terms)? else {
            return Ok(ResidualNorm { norm: f64::NAN, size: f64::NAN });
        };
        r.iter_mut().for_each(|r| *r = -*r);
        let form = self.form;
        self.residual = form.owned(&r)?;
        let mut product = form.owned(&product)?;
        let of_product = form.norm(&product)?;
        form.device.axpby(&mut product, 1.0, &self.residual, 1.0)?;
        self.terms = form.norm(&product)?.max(of_product);
        Ok(ResidualNorm { norm: form.norm(&self.residual)?, size: self.terms })
    }

    fn rounding(&mut self, u: &Buffer<f64, D>, at: ResidualNorm) -> Result<f64, SolveError> {
        if at.norm > LARGEST_ROUNDING * self.terms {
            return Ok(0.0);
        }
        let (device, n) = (self.form.device, u.len());
        let mut signed = Buffer::zeros(device, n).map_err(LinalgError::from)?;
        device.scale_by(&mut signed, &rounding::signs(device, n)?, u)?;
        let mut signed = self.form.with_ghosts(signed.host_view().map_err(LinalgError::from)?)?.into_owned();
        self.given.distribute(&mut signed);
        let terms = self.terms_along(&signed);
        let Some([_, product]) = self.accepted(terms)? else { return Ok(0.0) };
        Ok(rounding::of_terms(self.form.norm(&self.form.owned(&product)?)?.max(self.terms)))
    }

    fn correction(
        &mut self,
        delta: &mut Buffer<f64, D>,
        tolerance: f64,
    ) -> Result<CorrectionOutcome, SolveError> {
        match self.fill_tangent()? {
            true => self.solve(delta, tolerance, true),
            false => Err(ended()),
        }
    }

    fn norm(&self, v: &Buffer<f64, D>) -> Result<f64, SolveError> {
        Ok(self.form.norm(v)?)
    }
}

//! A form at a time, or in a stage of a run in time, as an equation for Newton's method.

use std::borrow::Cow;

use femtile_device::Buffer;
use femtile_fem::FemError;
use femtile_fem::recovery::IsInterrupted;
use femtile_form::FormError;
use femtile_linalg::newton::{CorrectionOutcome, NonlinearEquation, ResidualNorm};
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_operator::State;
use femtile_space::LinearConstraints;

use super::approximation::Approximation;
use super::evaluation::{At, Evaluate, Evaluation};
use super::rank_form::RankForm;
use super::stage::{FormStage, Making};
use super::taylor;
use crate::nonlinear::{LARGEST_ROUNDING, Solved, TangentSolver};
use crate::ranks::RankDevice;
use crate::ranks::rows::agreed;
use crate::{SolveError, SolverConfig, rounding};

/// The tolerance of the linear solve for the first iterate.
const PREDICTION: f64 = 1e-3;

/// The share of a residual at most with which a step is taken without a further test.
const SURELY_LESS: f64 = 0.99;

/// A nonlinear form at a time on a rank. Functions are collective.
///
/// The equation is $-r(u) = 0$ at the unknowns without Dirichlet values, with the tangent $A(u) = r'(u)$. In a stage of a run in
/// time r has the rate $\dot u = a u - b$ as well, and the equation is $d - r(u, \dot u) = 0$ with
/// $A = \partial r/\partial u + a\,\partial r/\partial\dot u$.
pub(super) struct FormEquation<'a, D: RankDevice> {
    pub(super) form: &'a RankForm<'a, D>,
    time: f64,
    /// The constraints at that time, of the unknowns of the cells.
    given: LinearConstraints,
    /// Whether those of the whole mesh combine unknowns.
    combines_unknowns: bool,
    /// The right side of sources at points, zero at unknowns with Dirichlet values; none without sources.
    loads: Option<Buffer<f64, D>>,
    /// The stage of a run in time.
    pub(super) stage: Option<FormStage<D>>,
    /// Whether the capacity of the form is its content.
    pub(super) has_content: bool,
    is_linear: bool,
    /// Whether entries of the tangent depend on t.
    is_tangent_in_time: bool,
    /// The last function.
    at: Buffer<f64, D>,
    /// Its rate, in a stage.
    rate: Option<Buffer<f64, D>>,
    /// $d - r$ there.
    pub(super) residual: Buffer<f64, D>,
    /// Its norm.
    norm: f64,
    /// That at the last correction, infinite before the first of a load step.
    corrected: f64,
    /// The norm of the terms of the residual, $\max(\|A u - r\|, \|A u\|)$.
    terms: f64,
    evaluation: Box<dyn Evaluation<D> + 'a>,
    /// The tangent at the function of the last correction.
    tangent: Option<Box<dyn LinearOperator<f64, D>>>,
    /// Whether that is the tangent at the last function.
    is_tangent_there: bool,
    /// Where the preconditioner that is kept was made, in a run in time.
    pub(super) made: Option<Making>,
    /// Shift and time of the last tangent.
    filled_at: [f64; 2],
    approximation: &'a Approximation,
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
    /// The function and its rate at the unknowns of the cells; the place is not yet known.
    Function([Vec<f64>; 2]),
}

impl<'a, D: RankDevice> FormEquation<'a, D> {
    /// Begins without a time.
    pub fn new(
        form: &'a RankForm<'a, D>,
        approximation: &'a Approximation,
        (config, evaluate): (&SolverConfig, Evaluate<D>),
        is_interrupted: IsInterrupted<'a>,
    ) -> Result<Self, SolveError> {
        Ok(Self {
            form,
            time: f64::NAN,
            given: LinearConstraints::none(0),
            combines_unknowns: false,
            loads: None,
            stage: None,
            has_content: false,
            is_linear: form.is_linear()?,
            is_tangent_in_time: form.is_tangent_in_time()?,
            at: form.owned(&vec![0.0; form.n_of_cells()])?,
            rate: None,
            residual: form.owned(&vec![0.0; form.n_of_cells()])?,
            norm: f64::NAN,
            corrected: f64::INFINITY,
            terms: 0.0,
            evaluation: evaluate(form)?,
            tangent: None,
            is_tangent_there: false,
            made: None,
            filled_at: [f64::NAN; 2],
            approximation,
            linear: TangentSolver::new(config, approximation.takes_cg),
            refusal: None,
            is_tangent_refused: false,
            n_tangents: 0,
            is_interrupted,
        })
    }

    /// Takes a time and the Dirichlet values at it, those of the whole mesh.
    pub fn bring_time(&mut self, time: f64, given: &LinearConstraints) -> Result<(), SolveError> {
        self.given = agreed(&self.form.comm, self.form.constraints(given))?;
        self.loads = self.loads()?;
        (self.time, self.refusal, self.is_tangent_refused) = (time, None, false);
        (self.corrected, self.combines_unknowns) = (f64::INFINITY, given.combines_dofs());
        self.evaluation.bring_time(time, &self.given)
    }

    /// Returns the right side of sources at points.
    fn loads(&self) -> Result<Option<Buffer<f64, D>>, LinalgError> {
        if self.form.loads.is_empty() {
            return Ok(None);
        }
        let mut r = vec![0.0; self.form.n_of_cells()];
        self.form.loads.iter().for_each(|&(unknown, load)| r[unknown as usize] += load);
        self.given.distribute_transpose(&mut r);
        self.form.owned(&r).map(Some)
    }

    /// Adds the right side of sources at points.
    fn add_loads(&self, to: &mut Buffer<f64, D>) -> Result<(), LinalgError> {
        match &self.loads {
            Some(loads) => self.form.device.axpby(to, 1.0, loads, 1.0),
            None => Ok(()),
        }
    }

    /// Puts the Dirichlet values g into `u`: with the change along the tangent at u that they ask for,
    ///
    /// $$ A(u)\,\delta = -(r(u) + A(u)\,(g - u)), $$
    ///
    /// if the residual is smaller with it, else alone. Returns the iterations of the linear solve.
    pub fn begin(&mut self, u: &mut Buffer<f64, D>) -> Result<usize, SolveError> {
        let plain = self.evaluation.with_dirichlet_values(u)?;
        let mut jump = self.copied(&plain)?;
        self.form.device.axpby(&mut jump, -1.0, u, 1.0)?;
        if self.form.norm(&jump)? == 0.0 {
            return Ok(0);
        }
        let Some(iterations) = self.predict(u, &jump)? else {
            self.refusal = None;
            *u = plain;
            return Ok(0);
        };
        // A residual without a value is larger than all others.
        let mut norm = |u: &_| Ok::<_, SolveError>(self.take_residual(u)?.unwrap_or(f64::INFINITY));
        if norm(&plain)? <= norm(u)? {
            *u = plain;
        }
        self.refusal = None;
        Ok(iterations)
    }

    /// Adds to `u` a change of its Dirichlet values and that of the tangent, if it has one; returns the iterations.
    fn predict(
        &mut self,
        u: &mut Buffer<f64, D>,
        jump: &Buffer<f64, D>,
    ) -> Result<Option<usize>, SolveError> {
        self.move_to(u)?;
        let products = self.evaluation.products(&self.place(), jump);
        let Some([mut r, product]) = self.accepted(products)? else { return Ok(None) };
        self.form.device.axpby(&mut r, -1.0, &product, -1.0)?;
        self.add_loads(&mut r)?;
        self.residual = r;
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
        *u = self.evaluation.with_dirichlet_values(u)?;
        Ok(Some(solved.iterations))
    }

    pub(super) fn copied(&self, v: &Buffer<f64, D>) -> Result<Buffer<f64, D>, LinalgError> {
        let mut copy = Buffer::zeros(self.form.device, v.len())?;
        self.form.device.copy(&mut copy, v)?;
        Ok(copy)
    }

    /// Takes a function.
    fn move_to(&mut self, u: &Buffer<f64, D>) -> Result<(), LinalgError> {
        self.is_tangent_there = false;
        self.rate = self.stage.as_ref().map(|stage| stage.rate(u)).transpose()?;
        self.at = self.copied(u)?;
        Ok(())
    }

    /// Takes $-r$ at a function, and returns its norm; none if it has no value.
    fn take_residual(&mut self, u: &Buffer<f64, D>) -> Result<Option<f64>, SolveError> {
        self.move_to(u)?;
        let r = self.evaluation.residual(&self.place());
        let Some(r) = self.accepted(r)? else { return Ok(None) };
        self.residual = self.opposite(&r)?;
        Ok(Some(self.form.norm(&self.residual)?).filter(|norm| norm.is_finite()))
    }

    /// Returns $-r$ with the sources at points.
    fn opposite(&self, r: &Buffer<f64, D>) -> Result<Buffer<f64, D>, LinalgError> {
        let mut opposite = Buffer::zeros(self.form.device, r.len())?;
        self.form.device.combine(&mut opposite, &[(-1.0, r)])?;
        self.add_loads(&mut opposite)?;
        Ok(opposite)
    }

    /// Takes $d - r$ at a function, and returns the product of the tangent with its values at free unknowns; none if one of them has
    /// no value.
    ///
    /// The tangent is assembled for it where a step is taken for sure, as the next correction needs it.
    fn take_terms(&mut self, u: &Buffer<f64, D>) -> Result<Option<Buffer<f64, D>>, SolveError> {
        let free = self.evaluation.free(u)?;
        let Some(stage) = &self.stage else {
            let Some(norm) = self.take_residual(u)? else { return Ok(None) };
            if norm <= SURELY_LESS * self.corrected && !self.fill_tangent()? {
                self.is_tangent_refused = false;
                return Ok(None);
            }
            return self.times_tangent(&free);
        };
        let defect = stage.defect.as_ref().map(|defect| self.copied(defect)).transpose()?;
        self.move_to(u)?;
        let products = self.evaluation.products(&self.place(), &free);
        let Some([r, product]) = self.accepted(products)? else { return Ok(None) };
        self.residual = self.opposite(&r)?;
        if let Some(defect) = defect {
            self.form.device.axpby(&mut self.residual, 1.0, &defect, 1.0)?;
        }
        Ok(Some(product))
    }

    /// Returns the product of the tangent at the last function with a direction that is zero at Dirichlet unknowns, by its matrix if
    /// that is there; none if it has no value.
    fn times_tangent(&mut self, direction: &Buffer<f64, D>) -> Result<Option<Buffer<f64, D>>, SolveError> {
        // The matrix has ones on the diagonal of unknowns that combine others, where the direction is not zero.
        let is_there = self.is_tangent_there && !self.combines_unknowns;
        let Some(tangent) = self.tangent.as_ref().filter(|_| is_there) else {
            let product = self.evaluation.product(&self.place(), direction).map(Some);
            return self.accepted(product);
        };
        let mut product = Buffer::zeros(self.form.device, direction.len()).map_err(LinalgError::from)?;
        tangent.apply(&mut product, direction)?;
        Ok(Some(product))
    }

    /// Returns $-r(t, u, 0)$, zero at unknowns with Dirichlet values.
    ///
    /// # Errors
    /// An integrand without a value.
    pub(super) fn without_rate(&mut self, u: &Buffer<f64, D>) -> Result<Buffer<f64, D>, SolveError> {
        self.stage = None;
        match self.take_residual(u)? {
            Some(_) => self.copied(&self.residual).map_err(SolveError::from),
            None => Err(self.without_value()?),
        }
    }

    /// Returns r at a function with a rate, none of it for zero, without a stage.
    ///
    /// # Errors
    /// An integrand without a value.
    pub(super) fn residual_with(
        &mut self,
        u: &Buffer<f64, D>,
        rate: Option<Buffer<f64, D>>,
    ) -> Result<Buffer<f64, D>, SolveError> {
        self.stage = None;
        self.move_to(u)?;
        self.rate = rate;
        let r = self.evaluation.residual(&self.place());
        match self.accepted(r)? {
            Some(r) => Ok(r),
            None => Err(self.without_value()?),
        }
    }

    fn shift(&self) -> f64 {
        self.stage.as_ref().map_or(0.0, FormStage::slope)
    }

    /// Returns the last function with its rate.
    fn place(&self) -> At<'_, D> {
        At { u: &self.at, rate: self.rate.as_ref(), shift: self.shift() }
    }

    /// Assembles the tangent at the last function; returns whether it has a value there.
    fn fill_tangent(&mut self) -> Result<bool, SolveError> {
        let (shift, time) = (self.shift(), self.time);
        let is_same = shift == self.filled_at[0] && (time == self.filled_at[1] || !self.is_tangent_in_time);
        if self.is_tangent_there || self.tangent.is_some() && self.is_linear && is_same {
            return Ok(true);
        }
        self.tangent = None;
        let at = At { u: &self.at, rate: self.rate.as_ref(), shift };
        let filled = self.evaluation.assemble(&at).map(Some);
        if self.accepted(filled)?.is_none() {
            self.is_tangent_refused = true;
            return Ok(false);
        }
        let brought = self.evaluation.operator();
        (self.tangent, self.filled_at) = (Some(agreed(&self.form.comm, brought)?), [shift, time]);
        (self.is_tangent_there, self.n_tangents) = (true, self.n_tangents + 1);
        Ok(true)
    }

    /// Returns a result; none, on all ranks, if one of them has none or an integrand without a value, which is kept as refusal.
    fn accepted<R>(&mut self, result: Result<Option<R>, SolveError>) -> Result<Option<R>, SolveError> {
        let (result, refusal) = match result.map_err(|error| self.form.in_global_numbers(error)) {
            Err(error) if is_of_values(&error) => (Ok(None), Some(Some(error))),
            Ok(None) => (Ok(None), Some(None)),
            other => (other, None),
        };
        let found = agreed(&self.form.comm, result)?;
        let [is_refused] = self.form.comm.any([refusal.is_some()])?;
        if is_refused {
            let at = self.place().of_cells(self.form)?.map(Cow::into_owned);
            self.refusal = refusal.map(|error| error.map_or(Refusal::Function(at), Refusal::Error));
            return Ok(None);
        }
        Ok(found)
    }

    /// Returns the last reason why the residual or the tangent has no value on the cells of the rank.
    fn take_refusal(&mut self) -> Option<SolveError> {
        match self.refusal.take()? {
            Refusal::Error(error) => Some(error),
            Refusal::Function([u, rate]) => {
                let operator = self.form.operator.as_ref()?;
                let state = State { u: &u, rate: &rate, time: self.time, shift: self.shift() };
                let error = operator.residual(&state, &mut vec![0.0; u.len()]).err()?;
                Some(self.form.in_global_numbers(error.into()))
            }
        }
    }

    /// Makes a preconditioner; of a matrix that is not positive definite the diagonal for GMRES, if `may_change_method`.
    fn make_preconditioner(&mut self, may_change_method: bool) -> Result<bool, SolveError> {
        self.made = match &self.stage {
            Some(FormStage { shift, history, .. }) if self.linear.keeps_preconditioners() => {
                let [history, u] = [history, &self.at].map(|v| v.to_host().map_err(LinalgError::from));
                Some(Making { shift: *shift, time: self.time, history: history?, u: u? })
            }
            _ => None,
        };
        let (evaluation, approximation) = (&mut self.evaluation, self.approximation);
        let mut make = |linear: &mut TangentSolver<D>| {
            linear.make(|config, warnings| evaluation.preconditioning(approximation, config, warnings))
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
                    if self.combines_unknowns {
                        *delta = self.evaluation.free(delta)?;
                    }
                    return Ok(CorrectionOutcome { iterations: outcome.iterations + before, ..outcome });
                }
                Solved::NeedsPreconditioner(iterations) => before += iterations,
            }
        }
    }

    /// Makes the preconditioner again that was made at a function in the stage.
    pub(super) fn make_again(&mut self, time: f64, u: &Buffer<f64, D>) -> Result<(), SolveError> {
        self.evaluation.bring_time(time, &self.given)?;
        self.time = time;
        self.move_to(u)?;
        if self.fill_tangent()? {
            self.make_preconditioner(true)?;
        }
        Ok(())
    }

    /// Forgets why a residual had no value.
    pub(super) fn forget_refusal(&mut self) {
        (self.refusal, self.is_tangent_refused) = (None, false);
    }

    /// Puts the Dirichlet values into `u`.
    pub fn impose(&self, u: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        *u = self.evaluation.with_dirichlet_values(u)?;
        Ok(())
    }

    /// Sets entries at unknowns with Dirichlet values to zero.
    pub fn clear_given(&self, v: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        *v = self.evaluation.free(v)?;
        Ok(())
    }

    /// Checks that the tangent at a function is the derivative of the residual.
    pub fn check_tangent(&mut self, u: &Buffer<f64, D>) -> Result<(), SolveError> {
        if !self.residual(u)?.norm.is_finite() {
            return Ok(());
        }
        let [u, rate] = self.place().of_cells(self.form)?;
        let state = State { u: &u, rate: &rate, time: self.time, shift: self.shift() };
        let checked = match &self.form.operator {
            Some(operator) => taylor::check(operator, &state, &self.given),
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
        let nothing = ResidualNorm { norm: f64::NAN, size: f64::NAN };
        let Some(mut product) = self.take_terms(u)? else { return Ok(nothing) };
        let form = self.form;
        let of_product = form.norm(&product)?;
        form.device.axpby(&mut product, 1.0, &self.residual, 1.0)?;
        self.terms = form.norm(&product)?.max(of_product);
        if !(self.terms.is_finite() && of_product.is_finite()) {
            // A tangent without a value, whose place its matrix names.
            return Ok(nothing);
        }
        self.norm = form.norm(&self.residual)?;
        let size = self.stage.as_ref().map_or(self.terms, |stage| stage.size(self.terms));
        Ok(ResidualNorm { norm: self.norm, size })
    }

    fn rounding(&mut self, u: &Buffer<f64, D>, at: ResidualNorm) -> Result<f64, SolveError> {
        if at.norm > LARGEST_ROUNDING * self.terms {
            return Ok(0.0);
        }
        let (device, n) = (self.form.device, u.len());
        let mut signed = Buffer::zeros(device, n).map_err(LinalgError::from)?;
        device.scale_by(&mut signed, &rounding::signs(device, n)?, u)?;
        let signed = self.evaluation.free(&signed)?;
        let Some(product) = self.times_tangent(&signed)? else { return Ok(0.0) };
        Ok(rounding::of_terms(self.form.norm(&product)?.max(self.terms)))
    }

    fn correction(
        &mut self,
        delta: &mut Buffer<f64, D>,
        tolerance: f64,
    ) -> Result<CorrectionOutcome, SolveError> {
        self.corrected = self.norm;
        match self.fill_tangent()? {
            true => self.solve(delta, tolerance, true),
            false => Err(ended()),
        }
    }

    fn simplified_correction(
        &mut self,
        delta: &mut Buffer<f64, D>,
        tolerance: f64,
    ) -> Result<Option<CorrectionOutcome>, SolveError> {
        // A restart of a run in time makes the preconditioner again, at the function of a correction. A tangent that had no value
        // took the place of that of the last correction.
        if self.stage.is_some() || self.tangent.is_none() {
            return Ok(None);
        }
        self.solve(delta, tolerance, false).map(Some)
    }

    fn norm(&self, v: &Buffer<f64, D>) -> Result<f64, SolveError> {
        Ok(self.form.norm(v)?)
    }

    fn is_linear(&self) -> bool {
        self.is_linear
    }
}

//! The nonlinear equations of a steady problem and of the stages of a problem in time.

use femtile_amg::AmgError;
use femtile_device::Buffer;
use femtile_fem::recovery::IsInterrupted;
use femtile_fem::{Coefficient, FemError, Form, Slopes};
use femtile_form::FormError;
use femtile_linalg::LinalgError;
use femtile_linalg::newton::{CorrectionOutcome, NonlinearEquation, ResidualNorm};
use femtile_time::implicit::StageEquation;

use super::domain::Domain;
use super::linear::{Solved, TangentSolver};
use super::mass::{Content, ContentData, Mass, MassMatrix, Storage};
use super::report::Worst;
use super::tangent::{Derivatives, Given, Tangent};
use crate::ranks::RankDevice;
use crate::{NonlinearMethod, SolveError, SolverConfig, rounding};

impl Derivatives {
    /// Returns the derivatives that a method takes of the coefficients of a problem. Collective.
    pub fn of<D: RankDevice>(domain: &Domain<'_, D>, method: NonlinearMethod) -> Result<Self, LinalgError> {
        let problem = domain.problem;
        let all = match method {
            NonlinearMethod::Picard => Slopes::default(),
            NonlinearMethod::Newton => Slopes::of(&problem.form(0)),
        };
        let symmetric = Slopes { sigma: None, ..all.clone() };
        // A part may lack the cells whose capacity depends on u.
        let [has_content] = domain.comm.any([problem.capacity.uses_unknown()])?;
        Ok(Self { all, symmetric, content: has_content.then(|| ContentData::of(problem, method)) })
    }
}

/// The terms of a stage $a E(u) + K(u) = F + \sum_i \alpha_i E(u_i) + d$ besides the linearization of K and F.
pub(crate) struct Stage<'a, D: RankDevice> {
    pub storage: Storage<'a, D>,
    shift: f64,
    /// $\sum_i \alpha_i E(u_i) + d$, with a mass matrix less $a M g$ of the Dirichlet values g; zero at their unknowns.
    fixed: Buffer<f64, D>,
    /// $b / a$, with the Dirichlet values: residuals are relative to the one there, which is what the stage
    /// changes.
    before: Buffer<f64, D>,
}

/// A residual above this share of its terms is not rounding.
pub(crate) const LARGEST_ROUNDING: f64 = 1e-8;

/// The point of the linearization that a preconditioner was made from.
struct Making {
    shift: f64,
    time: f64,
    unknown: Vec<f64>,
}

/// A nonlinear equation on a device, or the owned unknowns of one on a rank. Functions are then collective.
///
/// $$ r(u) = b + M (h - a u) + d - A u, \qquad J = A + a M $$
///
/// with the linearization $A u = b$ at u; without a stage $a = 0$. If the capacity depends on u, $M (h - a u)$ is
/// $\sum_i \alpha_i E(u_i) - a E(u)$.
pub(crate) struct DiscreteEquation<'a, D: RankDevice> {
    domain: &'a Domain<'a, D>,
    derivatives: &'a Derivatives,
    tangent: Tangent<'a, D>,
    pub given: Given<D>,
    pub linear: TangentSolver<D>,
    stage: Option<Stage<'a, D>>,
    time: f64,
    is_linear: bool,
    /// Whether the linearization is symmetric.
    is_symmetric: bool,
    residual: Buffer<f64, D>,
    product: Buffer<f64, D>,
    /// The norm of the terms of the residual, $\max(\|b\|, \|J u\|)$.
    terms: f64,
    /// The last function, if a preconditioner needs the symmetric part of the linearization at it, or is
    /// kept.
    at: Option<Buffer<f64, D>>,
    /// Where the preconditioner that is kept was made.
    made: Option<Making>,
    /// The last reason why r has no value at a function.
    pub refusal: Option<FemError>,
    is_interrupted: IsInterrupted<'a>,
}

impl<'a, D: RankDevice> DiscreteEquation<'a, D> {
    /// Prepares the equation at a time, with a mass matrix if it has stages.
    pub fn new(
        domain: &'a Domain<'a, D>,
        derivatives: &'a Derivatives,
        config: &SolverConfig,
        (time, mass): (f64, Option<MassMatrix>),
        is_interrupted: IsInterrupted<'a>,
    ) -> Result<Self, SolveError> {
        let (device, problem) = (domain.device, domain.problem);
        let form = problem.form(0);
        let at_time = |source| SolveError::AtTime { time, source };
        let place = |source: FemError| if time.is_nan() { source.into() } else { at_time(source) };
        let tangent = Tangent::new(domain, form, &derivatives.all, time).map_err(place)?;
        let zeros = || domain.zeros();
        let stage = match mass {
            None => None,
            Some(kind) => {
                let storage = match &derivatives.content {
                    None => Storage::Linear(Mass::new(domain, kind, &problem.capacity)?),
                    Some(data) => {
                        Storage::Nonlinear(Box::new(Content::new(domain, data, time).map_err(place)?))
                    }
                };
                Some(Stage { storage, shift: 0.0, fixed: zeros()?, before: zeros()? })
            }
        };
        let coefficients = [form.sigma, form.lambda, form.source];
        let depend_on_u = coefficients.iter().any(|coefficient| coefficient.uses_unknown());
        let [is_nonsymmetric, depend_on_u] =
            domain.comm.any([!derivatives.all.is_symmetric(), depend_on_u])?;
        let (is_symmetric, is_linear) = (!is_nonsymmetric, derivatives.content.is_none() && !depend_on_u);
        let linear = TangentSolver::new(config, is_symmetric);
        let is_kept = stage.is_some() && linear.keeps_preconditioners();
        Ok(Self {
            given: Given::new(device, domain.n_owned(), tangent.constraints())?,
            linear,
            stage,
            time,
            is_linear,
            is_symmetric,
            residual: zeros()?,
            product: zeros()?,
            terms: 0.0,
            at: if is_symmetric && !is_kept { None } else { Some(zeros()?) },
            made: None,
            refusal: None,
            is_interrupted,
            domain,
            derivatives,
            tangent,
        })
    }

    /// Evaluates the Dirichlet values at a given time.
    pub fn bring_time(&mut self, time: f64) -> Result<(), SolveError> {
        let changed = self.tangent.bring_conditions(time);
        if changed.map_err(|source| SolveError::AtTime { time, source })? {
            self.given.assign(self.tangent.constraints())?;
        }
        if let Some(Stage { storage: Storage::Nonlinear(content), .. }) = &mut self.stage {
            content.bring_conditions(time).map_err(|source| SolveError::AtTime { time, source })?;
        }
        self.time = time;
        Ok(())
    }

    /// Begins a stage at the time that was brought.
    pub fn begin_stage(&mut self, of: &StageEquation<'_, D>) -> Result<(), SolveError> {
        let &StageEquation { shift, history, summands, defect, .. } = of;
        let Some(stage) = &mut self.stage else { return Ok(()) };
        if self.made.as_ref().is_some_and(|made| !(0.25..=4.0).contains(&(shift / made.shift))) {
            self.linear.forget();
        }
        stage.shift = shift;
        self.domain.device.combine(&mut stage.before, &[(1.0 / shift, history)])?;
        self.given.impose(&mut stage.before)?;
        match &mut stage.storage {
            Storage::Linear(mass) => {
                self.domain.device.copy(&mut self.product, history)?;
                if let Some(values) = self.given.values() {
                    self.domain.device.axpby(&mut self.product, -shift, values, 1.0)?;
                }
                mass.apply(&mut stage.fixed, &self.product)?;
            }
            Storage::Nonlinear(content) => {
                content.sum(self.time, summands, (&mut stage.fixed, &mut self.product))?;
            }
        }
        if let Some(defect) = defect {
            self.domain.device.axpby(&mut stage.fixed, 1.0, defect, 1.0)?;
        }
        Ok(self.given.clear(&mut stage.fixed)?)
    }

    /// Writes $F - K(u)$ at the time that was brought into `d`, zero at Dirichlet unknowns.
    pub fn defect(&mut self, u: &Buffer<f64, D>, d: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        let filled = self.tangent.fill(self.time, u, None);
        filled.map_err(|source| SolveError::AtTime { time: self.time, source })?;
        self.tangent.operator().apply(d, u)?;
        self.domain.device.axpby(d, 1.0, self.tangent.rhs(), -1.0)?;
        Ok(self.given.clear(d)?)
    }

    /// Returns what later solves depend on, as numbers. On several ranks preconditioners are not part of it.
    pub fn memory(&self) -> Vec<f64> {
        let mut memory = vec![f64::from(u8::from(self.linear.takes_gmres()))];
        let made = self.made.as_ref().filter(|_| self.domain.is_whole());
        if let (Some(made), Some(per_digit)) = (made, self.linear.per_digit()) {
            memory.extend([per_digit, made.shift, made.time]);
            memory.extend_from_slice(&made.unknown);
        }
        memory
    }

    /// Restores the memory of a run: makes its preconditioner again.
    pub fn restore(&mut self, memory: &[f64]) -> Result<(), SolveError> {
        if memory.first() == Some(&1.0) {
            self.linear.take_gmres();
        }
        let [_, per_digit, shift, time, unknown @ ..] = memory else { return Ok(()) };
        if !self.domain.is_whole() {
            return Ok(());
        }
        let u = Buffer::from_host(self.domain.device, unknown).map_err(LinalgError::from)?;
        if let (Some(stage), true) = (&mut self.stage, u.len() == self.domain.n_owned()) {
            stage.shift = *shift;
            self.bring_time(*time)?;
            self.residual(&u)?;
            self.make_preconditioner()?;
            self.linear.restore_per_digit(*per_digit);
        }
        Ok(())
    }

    /// Returns the mass matrix of a problem in time; none if the capacity depends on u.
    pub fn mass(&self) -> Option<&Mass<D>> {
        match &self.stage {
            Some(Stage { storage: Storage::Linear(mass), .. }) => Some(mass),
            _ => None,
        }
    }

    /// Returns the unknown with the largest residual at a function.
    pub fn worst(&mut self, u: &Buffer<f64, D>) -> Result<Option<Worst>, SolveError> {
        let refusal = self.refusal.take();
        self.residual(u)?;
        self.refusal = refusal;
        self.domain.worst(&self.residual, u)
    }

    /// Fills the matrix with $J$ at a function, and the right side of K.
    fn fill(&mut self, u: &Buffer<f64, D>) -> Result<(), FemError> {
        let plus = match &mut self.stage {
            Some(stage) => {
                if let Storage::Nonlinear(content) = &mut stage.storage {
                    content.fill(self.time, u)?;
                }
                Some((stage.shift, stage.storage.values()))
            }
            None => None,
        };
        self.tangent.fill(self.time, u, plus)
    }

    /// Makes a preconditioner from the symmetric part of $J$, without a reaction if it is not positive
    /// definite with it.
    fn make_preconditioner(&mut self) -> Result<(), SolveError> {
        if let (Some(at), Some(stage), true) = (&self.at, &self.stage, self.linear.keeps_preconditioners()) {
            let unknown = at.to_host().map_err(LinalgError::from)?;
            self.made = Some(Making { shift: stage.shift, time: self.time, unknown });
        }
        if self.is_symmetric {
            let made = self.linear.make(|config, warnings| self.tangent.preconditioning(config, warnings));
            return match made {
                Err(error) if self.is_of_definiteness(&error) => self.make_without_reaction(),
                made => made,
            };
        }
        let Some(at) = self.at.take() else { return Ok(()) };
        self.tangent.take_slopes(&self.derivatives.symmetric)?;
        self.fill(&at)?;
        let made = self.linear.make(|config, warnings| self.tangent.preconditioning(config, warnings));
        self.tangent.take_slopes(&self.derivatives.all)?;
        let made = match made {
            Err(error) if self.is_of_definiteness(&error) => self.make_without_reaction(),
            made => made,
        };
        self.fill(&at)?;
        self.at = Some(at);
        made
    }

    /// Makes a preconditioner from the conduction and the mass at the last function of a linearization.
    fn make_without_reaction(&mut self) -> Result<(), SolveError> {
        let [zero, one] = [0.0, 1.0].map(Coefficient::Constant);
        let (form, slopes) = (self.domain.problem.form(0), Slopes::default());
        // By tag, σ may depend on u in some parts of the mesh alone.
        let [depends] = self.domain.comm.any([form.sigma.uses_unknown()])?;
        let sigma = if depends { &one } else { form.sigma };
        let form = Form { sigma, lambda: &zero, source: &zero, ..form };
        let mut plain = Tangent::new(self.domain, form, &slopes, self.time)?;
        let plus = self.stage.as_ref().map(|stage| (stage.shift, stage.storage.values()));
        plain.fill(self.time, &self.residual, plus)?;
        self.linear.make(|config, warnings| plain.preconditioning(config, warnings))
    }

    /// Returns whether a matrix is not positive definite enough for a preconditioner. On several ranks these are the errors that
    /// all of them have.
    fn is_of_definiteness(&self, error: &SolveError) -> bool {
        match error {
            SolveError::Linalg(LinalgError::Diagonal { .. })
            | SolveError::Amg(AmgError::Indefinite { .. }) => true,
            SolveError::Amg(_) => self.domain.is_whole() && !error.is_device_trouble(),
            _ => false,
        }
    }
}

/// Returns whether a coefficient has no admissible value, which another function may mend.
fn is_of_values(error: &FemError) -> bool {
    use FormError::{Indefinite, Negative, NotFinite};
    matches!(error, FemError::Form(NotFinite { .. } | Indefinite { .. } | Negative { .. }))
}

impl<D: RankDevice> NonlinearEquation<D> for DiscreteEquation<'_, D> {
    type Error = SolveError;

    fn residual(&mut self, u: &Buffer<f64, D>) -> Result<ResidualNorm, SolveError> {
        match self.fill(u) {
            Err(error) if is_of_values(&error) => {
                self.refusal = Some(error);
                return Ok(ResidualNorm { norm: f64::NAN, size: f64::NAN });
            }
            filled => filled?,
        }
        let (domain, device) = (self.domain, self.domain.device);
        if let Some(at) = &mut self.at {
            device.copy(at, u)?;
        }
        device.copy(&mut self.residual, self.tangent.rhs())?;
        let mut change = None;
        if let Some(stage) = &self.stage {
            device.axpby(&mut self.residual, 1.0, &stage.fixed, 1.0)?;
            if let Storage::Nonlinear(content) = &stage.storage {
                device.axpby(&mut self.residual, stage.shift, content.rhs(), 1.0)?;
            }
            self.tangent.operator().apply(&mut self.product, &stage.before)?;
            self.given.clear(&mut self.product)?;
            device.axpby(&mut self.product, 1.0, &self.residual, -1.0)?;
            change = Some(domain.norm(&self.product)?);
        }
        self.tangent.operator().apply(&mut self.product, u)?;
        self.given.clear(&mut self.product)?;
        self.terms = domain.norm(&self.residual)?.max(domain.norm(&self.product)?);
        let size = change.map_or(self.terms, |change| change.max(f64::EPSILON * self.terms));
        device.axpby(&mut self.residual, -1.0, &self.product, 1.0)?;
        Ok(ResidualNorm { norm: domain.norm(&self.residual)?, size })
    }

    fn rounding(&mut self, u: &Buffer<f64, D>, at: ResidualNorm) -> Result<f64, SolveError> {
        if at.norm > LARGEST_ROUNDING * self.terms {
            return Ok(0.0);
        }
        let (device, n) = (self.domain.device, u.len());
        let mut signed = Buffer::zeros(device, n).map_err(LinalgError::from)?;
        device.scale_by(&mut signed, &rounding::signs(device, n)?, u)?;
        self.tangent.operator().apply(&mut self.product, &signed)?;
        self.given.clear(&mut self.product)?;
        Ok(rounding::of_terms(self.domain.norm(&self.product)?.max(self.terms)))
    }

    fn correction(
        &mut self,
        delta: &mut Buffer<f64, D>,
        tolerance: f64,
    ) -> Result<CorrectionOutcome, SolveError> {
        let mut before = 0;
        loop {
            if self.linear.needs_preconditioner() {
                self.make_preconditioner()?;
            }
            let system = (self.tangent.operator(), &self.residual);
            match self.linear.solve(&self.domain.comm, delta, system, tolerance, self.is_interrupted)? {
                Solved::Done(outcome) => {
                    return Ok(CorrectionOutcome { iterations: outcome.iterations + before, ..outcome });
                }
                Solved::NeedsPreconditioner(iterations) => before += iterations,
            }
        }
    }

    fn norm(&self, v: &Buffer<f64, D>) -> Result<f64, SolveError> {
        Ok(self.domain.norm(v)?)
    }

    fn is_linear(&self) -> bool {
        self.is_linear
    }
}

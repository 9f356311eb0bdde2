//! Verifies the equation of a case: with data made for a given solution the errors on refined meshes fall at the orders of theory.

use std::fmt;

use femtile_device::Cpu;
use femtile_expression::{Expression, Shape, Variable};
use femtile_fem::FemError;
use femtile_form::FormError;
use femtile_linalg::krylov::Stop;
use femtile_mesh::check::CheckReport;
use femtile_solve::{
    ErrorNorms, FormProblem, FormSolution, Key, ManufacturedBoundary, Progress, Stage, Stages,
};
use serde::Serialize;

use super::{interface, settings};
use crate::checked_mesh::checked_mesh;
use crate::memory::Hosted;
use crate::placed::placed;
use crate::route::Route;
use crate::study::observed_order;
use crate::{Case, CaseError};

/// The least orders lie this much below those of theory.
const SLACK: f64 = 0.25;

/// Errors that may be those of the solver and of rounding, relative to the function.
const ROUNDING: f64 = 1e-9;

/// The largest tolerances of the linear solver and of Newton's method, so that the errors are those of the mesh.
const TOLERANCE: f64 = 1e-12;
const NONLINEAR_TOLERANCE: f64 = 1e-11;

/// The errors of a case against a given solution on meshes that are refined again and again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Convergence {
    /// The degree of the elements.
    pub degree: usize,
    /// The orders of theory: p + 1 and p.
    pub expected: Norms,
    /// From the mesh of the case to the finest one.
    pub levels: Vec<ConvergenceLevel>,
    /// Whether the orders are those of theory, and why not.
    pub verdict: Verdict,
}

/// The errors on a mesh.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConvergenceLevel {
    /// Cells of the mesh.
    pub n_cells: usize,
    /// Unknowns, those with Dirichlet values among them.
    pub n_unknowns: usize,
    /// The linearizations of all load steps; none of a linear equation.
    pub newton_iterations: Option<usize>,
    /// The errors.
    pub error: Norms,
    /// The orders between the coarser mesh and this one; none on the coarsest.
    pub order: Option<Norms>,
}

/// A number for the norm in L² and one for that of the gradient.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Norms {
    /// In L².
    pub l2: f64,
    /// Of the gradient in L².
    pub h1: f64,
}

/// The result of a study of convergence.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Verdict {
    /// The orders are at least those of theory, less 0.25.
    Verified,
    /// The function lies in the space of the coarsest mesh: all errors are rounding, and there are no orders.
    Rounding,
    /// A solve did not converge.
    NotConverged {
        /// The level, from 0.
        level: usize,
        /// The reason.
        reason: String,
    },
    /// The orders are too low because the function is not smooth: those of its interpolant are.
    NotSmooth,
    /// The orders are too low because of conditions: with values of the function on the whole boundary they are not.
    Boundary {
        /// Keys of the conditions that are not Dirichlet values, and of the interfaces.
        conditions: Vec<String>,
    },
    /// The orders are too low because of the integrals over the cells.
    Cells,
}

impl Verdict {
    /// Returns whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Verified | Self::Rounding)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verified => f.write_str("verified: the errors fall at the orders of theory"),
            Self::Rounding => f.write_str(
                "verified: the errors are rounding, since elements of this degree contain the function; for orders take one that \
                 is no polynomial",
            ),
            Self::NotConverged { level, reason } => {
                write!(f, "no verdict: the solve on level {level} did not converge: {reason}")
            }
            Self::NotSmooth => f.write_str(
                "the orders are too low, and so are those of the interpolant: the function is not smooth enough for this degree, \
                 or the meshes are too coarse for it; take a smoother function, or more levels",
            ),
            Self::Boundary { conditions } => {
                let which = match conditions.is_empty() {
                    true => "the boundary without a condition".to_owned(),
                    false => conditions.join(", "),
                };
                write!(
                    f,
                    "the orders are too low, but not with values of the function on the whole boundary: the likely reason is {which}; a flux \
                     that grows as u does, or that depends on the gradient of u, can make a problem that is not well posed"
                )
            }
            Self::Cells => f.write_str(
                "the orders are too low, also with values of the function on the whole boundary, and its interpolant has them: the \
                 likely reason is in `flux`, `source` or `energy`, such as a tangent that is singular at the function, convection or \
                 incompressibility that the meshes do not resolve; if the orders rise, take more levels",
            ),
        }
    }
}

/// Solves a case with data made for a given solution, on its mesh and on `n_levels` − 1 uniform refinements of it, and compares
/// the orders of the errors with those of theory, p + 1 in L² and p of the gradient for elements of degree p.
///
/// `exact` has a text `u = formula` for each unknown, with the formula of a number or a vector in x, y, z, with load steps also in
/// t. The residual R of the equation of the case stays as it is: solved is $R(u; v) = R(w; v)$ for the function w, and Dirichlet
/// values are those of w. Nothing is written.
///
/// # Errors
/// All of [`CaseError`]; [`CaseError::Option`] for `--exact` and `--levels`; [`CaseError::Input`] for cases in time and for
/// equations that are no forms.
pub fn verify_exact(
    case: &Case,
    exact: &[String],
    n_levels: u32,
    progress: &mut dyn Progress,
) -> Result<Convergence, CaseError> {
    let mut run = || {
        case.check()?;
        refuse_others(case)?;
        if n_levels < 2 {
            let message = "orders need two levels: take 2 or more, 3 are a good choice";
            return Err(CaseError::option(&format!("--levels {n_levels}"), message));
        }
        let cpu = Cpu::new(case.solver_config()?.threads)?;
        cpu.install(|| Study { case, exact, cpu: &cpu, progress }.converge(n_levels))
    };
    run().map_err(|error| placed(case, of_option(error)))
}

/// Refuses cases that are no steady forms.
fn refuse_others(case: &Case) -> Result<(), CaseError> {
    // A mesh file that was not read may make it a form.
    let is_open = case.route() == Route::Stationary && case.file.mesh.file.is_some();
    if !is_open {
        refuse_no_form(case)?;
    }
    if case.file.time.is_some() {
        let message =
            "--exact makes data for steady problems: leave [time] and `capacity` out to verify the rest";
        return Err(case.wrong(&["time".into()], message));
    }
    if case.file.modes.is_some() {
        let message = "--exact makes data for a solution: leave [modes] out to verify the equation";
        return Err(case.wrong(&["modes".into()], message));
    }
    let of_space = case.file.space.degree;
    let mut degrees = case.file.unknown.values().map(|unknown| unknown.degree.unwrap_or(of_space));
    let first = degrees.next();
    if degrees.any(|degree| Some(degree) != first) {
        let message =
            "--exact compares the orders of unknowns of one degree: give all the same to verify the formulas";
        return Err(case.wrong(&["unknown".into()], message));
    }
    Ok(())
}

/// Refuses cases that are no forms.
fn refuse_no_form(case: &Case) -> Result<(), CaseError> {
    if case.route() != Route::Form {
        let message = "--exact makes data for `form`, `elasticity`, `convection-diffusion`, and reaction and diffusion with conditions of \
                       forms: write the equation as kind = \"form\", or give source and values and take the functionals `error_l2` \
                       and `error_h1`";
        return Err(case.wrong(&["equation".into(), "kind".into()], message));
    }
    Ok(())
}

/// Returns an error about the function as one of the option that gives it.
fn of_option(error: CaseError) -> CaseError {
    match error {
        CaseError::Setting { path, message, .. } if path == [Key::from("exact")] => {
            CaseError::option("--exact", format!("the function {message}"))
        }
        CaseError::Fem(FemError::Form(FormError::NotFinite { field, ref point, value, .. }))
            if field.contains("exact") =>
        {
            let what = if field == "exact" { "the function" } else { "the gradient of the function" };
            let [x, y, z] = point;
            CaseError::option("--exact", format!("{what} is {value} at ({x}, {y}, {z}); it must be finite"))
        }
        other => other,
    }
}

/// A case with the function that is to be its solution.
struct Study<'a> {
    case: &'a Case,
    exact: &'a [String],
    cpu: &'a Cpu,
    progress: &'a mut dyn Progress,
}

/// The problem of a case on one mesh.
struct Level<'a, 'm> {
    case: &'a Case,
    problem: FormProblem<'m>,
    exact: Vec<Expression>,
    checked: &'a CheckReport,
}

/// A solve on one mesh.
struct Solved {
    n_cells: usize,
    n_unknowns: usize,
    newton_iterations: Option<usize>,
    /// Why it did not converge.
    failure: Option<String>,
    degree: usize,
    error: ErrorNorms,
    of_interpolant: ErrorNorms,
    /// Errors that count as rounding.
    rounding: ErrorNorms,
}

impl Study<'_> {
    fn converge(&mut self, n_levels: u32) -> Result<Convergence, CaseError> {
        let mut all: Vec<Solved> = Vec::new();
        for level in 0..n_levels {
            let solved = self.solve(level, ManufacturedBoundary::Own)?;
            let has_failed = solved.failure.is_some();
            all.push(solved);
            if has_failed {
                break;
            }
        }
        let degree = all[0].degree;
        let expected = Norms { l2: degree as f64 + 1.0, h1: degree as f64 };
        let level = |at: usize| {
            let Solved { n_cells, n_unknowns, newton_iterations, error, .. } = all[at];
            let order = (at > 0).then(|| orders(all[at - 1].error, error));
            let error = Norms { l2: error.l2, h1: error.h1 };
            ConvergenceLevel { n_cells, n_unknowns, newton_iterations, error, order }
        };
        let levels = (0..all.len()).map(level).collect();
        let verdict = self.verdict(&all, expected)?;
        Ok(Convergence { degree, expected, levels, verdict })
    }

    fn verdict(&mut self, all: &[Solved], expected: Norms) -> Result<Verdict, CaseError> {
        if let Some(level) = all.iter().position(|solved| solved.failure.is_some()) {
            let reason = all[level].failure.clone().unwrap_or_default();
            return Ok(Verdict::NotConverged { level, reason });
        }
        // Of each norm the finest pair of meshes counts whose errors are those of the mesh.
        let pair = |of: fn(&ErrorNorms) -> f64| {
            let is_rounding = |at: usize| of(&all[at].error) <= of(&all[at].rounding);
            (1..all.len()).rev().find(|&at| !is_rounding(at))
        };
        let (l2, h1) = (pair(|norms| norms.l2), pair(|norms| norms.h1));
        let is_low = |errors: &dyn Fn(usize) -> ErrorNorms| {
            let order = |at: usize| orders(errors(at - 1), errors(at));
            let is_enough = |order: f64, expected: f64| order >= expected - SLACK;
            l2.is_some_and(|at| !is_enough(order(at).l2, expected.l2))
                || h1.is_some_and(|at| !is_enough(order(at).h1, expected.h1))
        };
        if !is_low(&|at| all[at].error) {
            return Ok(if l2.or(h1).is_none() { Verdict::Rounding } else { Verdict::Verified });
        }
        if is_low(&|at| all[at].of_interpolant) || self.is_interpolant_low(all, expected)? {
            return Ok(Verdict::NotSmooth);
        }
        let mut with_values = Vec::new();
        for level in 0..all.len() as u32 {
            let solved = self.solve(level, ManufacturedBoundary::Values)?;
            if solved.failure.is_some() {
                return Ok(Verdict::Cells);
            }
            with_values.push(solved.error);
        }
        Ok(match is_low(&|at| with_values[at]) {
            true => Verdict::Cells,
            false => Verdict::Boundary { conditions: self.fluxes() },
        })
    }

    /// Returns whether the interpolant has low orders from the coarsest mesh to one that is finer than all: a kink can lie so in the
    /// cells of two meshes that their errors fall by chance.
    fn is_interpolant_low(&mut self, all: &[Solved], expected: Norms) -> Result<bool, CaseError> {
        let found = self.on_level(all.len() as u32, |Level { problem, exact, .. }, _| {
            Ok(problem.error_of_interpolant(&exact)?)
        });
        let (finest, n) = match found {
            Ok(error) => (error, all.len()),
            Err(error @ CaseError::Interrupted { .. }) => return Err(error),
            // Such a mesh may be too large for the memory.
            Err(_) => (all[all.len() - 1].of_interpolant, all.len() - 1),
        };
        let (sum, n) = (orders(all[0].of_interpolant, finest), n as f64);
        Ok(sum.l2 / n < expected.l2 - SLACK || sum.h1 / n < expected.h1 - SLACK)
    }

    /// Returns the keys of the conditions that are no Dirichlet values, and of the interfaces.
    fn fluxes(&self) -> Vec<String> {
        let sections = self.case.file.boundary.iter().enumerate();
        let fluxes = sections.filter(|(_, section)| section.dirichlet.is_none());
        let of_boundary = fluxes.map(|(i, section)| format!("`boundary[{i}].{}`", section.condition()));
        let of_interfaces = (0..self.case.file.interface.len()).map(|i| format!("`interface[{i}]`"));
        of_boundary.chain(of_interfaces).collect()
    }

    /// Solves the case on its mesh refined further.
    fn solve(&mut self, level: u32, boundary: ManufacturedBoundary) -> Result<Solved, CaseError> {
        let cpu = self.cpu;
        self.on_level(level, |Level { case, mut problem, exact, checked }, stages| {
            // These refuse a function that is not finite.
            let (of_interpolant, size) = (problem.error_of_interpolant(&exact)?, problem.size_of(&exact)?);
            problem.manufacture(&exact, boundary)?;
            let mut config = settings::solver_config(case, &problem)?;
            config.tolerance = config.tolerance.min(TOLERANCE);
            config.nonlinear.tolerance = config.nonlinear.tolerance.min(NONLINEAR_TOLERANCE);
            let solution = problem.solve(cpu, &config, None, stages)?;
            let mesh = solution.space().mesh();
            let length = checked.volume.powf(1.0 / mesh.dimension() as f64);
            Ok(Solved {
                n_cells: mesh.n_cells(),
                n_unknowns: solution.u().len(),
                newton_iterations: solution.nonlinear().map(|report| report.iterations),
                failure: failure(&solution)?,
                degree: solution.space().element().degree(),
                error: solution.error(&exact)?,
                of_interpolant,
                rounding: ErrorNorms { l2: ROUNDING * size.l2, h1: ROUNDING * (size.h1 + size.l2 / length) },
            })
        })
    }

    /// Makes the problem of the case on its mesh refined further.
    fn on_level<R>(
        &mut self,
        level: u32,
        work: impl FnOnce(Level<'_, '_>, &mut Stages<'_>) -> Result<R, CaseError>,
    ) -> Result<R, CaseError> {
        let mut case = self.case.clone();
        case.file.mesh.refine += level;
        let mut stages = Stages::new(self.progress);
        let (hosted, config) = (Hosted::whole(&case)?, case.solver_config()?);
        let (mut mesh, mut checked) = checked_mesh(&case, hosted, (&config, None), &mut stages)?;
        let case = &case.on_whole(&mesh);
        refuse_no_form(case)?;
        case.check()?;
        stages.begin(Stage::Space)?;
        case.tag_regions(&mut mesh)?;
        let cuts = interface::cut(case, &mut mesh, &mut checked)?;
        let problem = settings::problem(case, &mesh, (&checked.boundary, &cuts))?;
        let exact = expressions(case, &problem, self.exact)?;
        work(Level { case, problem, exact, checked: &checked }, &mut stages)
    }
}

/// Returns the orders between the errors on a mesh and on its refinement.
fn orders(coarse: ErrorNorms, fine: ErrorNorms) -> Norms {
    Norms { l2: observed_order(coarse.l2, fine.l2, 2.0), h1: observed_order(coarse.h1, fine.h1, 2.0) }
}

/// Returns why a solve has not converged.
fn failure(solution: &FormSolution<'_>) -> Result<Option<String>, CaseError> {
    let outcome = solution.outcome();
    match outcome.stop {
        Stop::Converged => Ok(None),
        Stop::Interrupted => Err(CaseError::Interrupted { stage: Stage::Solve }),
        stop if solution.nonlinear().is_some() => {
            Ok(Some(solution.warnings().last().cloned().unwrap_or_else(|| stop.name().into())))
        }
        stop => Ok(Some(format!(
            "{} after {} iterations, ‖r‖/‖b‖ = {:.1e}, where {TOLERANCE:e} is wanted: take another preconditioner, or fewer \
             levels",
            stop.name(),
            outcome.iterations,
            outcome.relative_residual
        ))),
    }
}

/// Reads the formulas of the unknowns; returns an expression for each component.
fn expressions(
    case: &Case,
    problem: &FormProblem<'_>,
    texts: &[String],
) -> Result<Vec<Expression>, CaseError> {
    let unknowns = problem.unknowns();
    let names: Vec<String> = unknowns.iter().map(|(name, _)| format!("`{name}`")).collect();
    let names = names.join(", ");
    let mut given: Vec<Option<Vec<Expression>>> = vec![None; unknowns.len()];
    for text in texts {
        let refuse = |message: String| Err(CaseError::option(&format!("--exact \"{text}\""), message));
        let Some((name, formula)) = text.split_once('=') else {
            let name = unknowns.first().map_or("u", |(name, _)| name);
            return refuse(format!("write NAME = FORMULA, such as {name} = sin(pi*x)*y"));
        };
        let (name, formula) = (name.trim(), formula.trim());
        let Some(at) = unknowns.iter().position(|(own, _)| *own == name) else {
            return refuse(format!("there is no unknown `{name}`; the case has {names}"));
        };
        let (shape, entries) = match Expression::parse_array(formula) {
            Ok(read) => read,
            Err(error) => return refuse(format!("{error}\n{}", error.pointed(formula))),
        };
        let wanted = unknowns[at].1;
        if shape != wanted {
            let example = match wanted {
                Shape::Number => "",
                _ => ": give an entry for each component, as in u = [x*y, x^2]",
            };
            return refuse(format!("this is {shape}, where `{name}` is {wanted}{example}"));
        }
        if case.file.continuation.is_none() && entries.iter().any(|entry| entry.uses(Variable::T)) {
            return refuse(
                "t is raised from 0 to 1 by load steps: give [continuation], or leave t out".into(),
            );
        }
        if given[at].replace(entries).is_some() {
            return refuse(format!("`{name}` is given twice"));
        }
    }
    match given.iter().position(Option::is_none) {
        None => Ok(given.into_iter().flatten().flatten().collect()),
        Some(at) => {
            Err(CaseError::option("--exact", format!("give also a function for `{}`", unknowns[at].0)))
        }
    }
}

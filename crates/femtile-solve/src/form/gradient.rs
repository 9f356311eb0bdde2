//! Functionals of functions on the mesh of a form, and their gradients by coefficients of the equation.

use std::collections::BTreeMap;

use femtile_device::Cpu;
use femtile_form::{Argument, Coefficient, Equation, Form};
use femtile_linalg::krylov::Stop;
use femtile_mesh::{Field, Mesh};
use femtile_operator::{CpuOperator, Differentiated, DiscreteForm, State};
use femtile_space::Space;

use super::approximation::Approximation;
use super::kernel::Motions;
use super::lower_degree::with_lower_degree;
use super::solve::{config_for, takes_motions};
use super::{FormProblem, FormSolution};
use crate::matrix::Given;
use crate::{Key, Progress, Ranks, SolveError, SolverConfig, Value};

/// A functional of the unknown: the integral over the cells of a formula, of which the unknown, its gradient, the point,
/// coefficients and definitions of the equation are names.
#[derive(Debug, Clone)]
pub struct Functional {
    formula: String,
    scalars: Vec<(String, Value)>,
}

impl Functional {
    /// Begins with a formula.
    pub fn new(formula: impl Into<String>) -> Self {
        Self { formula: formula.into(), scalars: Vec::new() }
    }

    /// Gives the formula a name for a scalar of its own, such as a field of measured values.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.scalars.push((name.into(), value.into()));
        self
    }
}

/// A function on the mesh of a problem at a time, such as the solution of the problem.
#[derive(Debug, Clone, Copy)]
pub struct FormAt<'a, 'm> {
    pub(super) problem: &'a FormProblem<'m>,
    pub(super) u: &'a [f64],
    pub(super) time: f64,
}

impl<'m> FormProblem<'m> {
    /// Returns a function on the mesh, as [`FormSolution::u`] has it, for functionals of it.
    pub fn at<'a>(&'a self, u: &'a [f64], time: f64) -> FormAt<'a, 'm> {
        FormAt { problem: self, u, time }
    }

    /// Returns the problem whose energy is a functional.
    pub(super) fn of_functional(&self, functional: &Functional) -> Result<Self, SolveError> {
        let names: Vec<&str> = functional.scalars.iter().map(|(name, _)| name.as_str()).collect();
        let equation = self.equation.functional(&functional.formula, &names);
        let mut problem = self.without_conditions(equation.map_err(|error| self.at_its_setting(error))?);
        for (name, value) in &functional.scalars {
            problem.scalar(name, value)?;
        }
        Ok(problem)
    }

    /// Returns the problem with another equation, which has some of the coefficients, and without conditions.
    pub(super) fn without_conditions(&self, equation: Equation) -> Self {
        let mut problem = self.clone();
        (problem.equation, problem.given, problem.terms) = (equation, Vec::new(), Vec::new());
        (problem.exact, problem.interfaces) = (None, Vec::new());
        problem.coefficients.retain(|(name, _)| problem.equation.coefficient_shape(name).is_some());
        problem
    }

    /// Returns a coefficient as a cell field.
    fn parameter(&self, name: &str) -> Result<(&Argument, Field), SolveError> {
        let Some(argument) = self.coefficient(name) else {
            let known: Vec<&str> = self.coefficients.iter().map(|(name, _)| name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let message = format!("no coefficient `{name}` was given a value; those with a value: {known}");
            return Err(SolveError::setting(&parameter_path(), message));
        };
        let field = match argument {
            Argument::One(Coefficient::CellField(field)) => Some(field.clone()),
            Argument::One(one) if is_of_numbers(one) => Some(match one.is_scalar() {
                true => by_cell(self.mesh, 1, |cell, tag| vec![one.scalar_at(cell, tag, [0.0; 3])]),
                false => by_cell(self.mesh, 9, |cell, tag| {
                    one.tensor_at(cell, tag, [0.0; 3]).as_flattened().to_vec()
                }),
            }),
            Argument::Vector(parts) if parts.iter().all(|part| is_of_numbers(part) || is_field(part)) => {
                let values =
                    |cell, tag| parts.iter().map(|part| part.scalar_at(cell, tag, [0.0; 3])).collect();
                Some(by_cell(self.mesh, parts.len(), values))
            }
            _ => None,
        };
        let refusal = || {
            let message = format!(
                "`{name}` is a formula of the point: a number, a value for each tag or a cell field is needed; such a number \
                 may be a factor in the formula of the equation"
            );
            SolveError::setting(&parameter_path(), message)
        };
        field.map(|field| (argument, field)).ok_or_else(refusal)
    }
}

impl FormAt<'_, '_> {
    /// Returns the value of a functional.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for a formula that cannot be read, [`SolveError::Fem`] if it is not finite.
    pub fn integral(&self, functional: &Functional) -> Result<f64, SolveError> {
        let of = self.problem.of_functional(functional)?;
        let space = self.problem.space()?;
        let form = of.form()?;
        Ok(self.operator(&space, &form)?.energy(&self.state())?)
    }

    /// Returns the derivatives of a functional j of the solution u by coefficients p of a steady equation r(u; p) = 0, by one
    /// adjoint solve on one rank:
    ///
    /// $$ \frac{dj}{dp} = \frac{\partial j}{\partial p} - \lambda^\mathsf{T} \frac{\partial r}{\partial p}, \qquad
    ///    A^\mathsf{T} \lambda = \frac{\partial j}{\partial u}, $$
    ///
    /// with the tangent A at u, which has to be the solution. Dirichlet values are taken as independent of p. A derivative is what
    /// the coefficient is: a number, a vector, a tensor, one of these for each tag, or a cell field with the derivative by the
    /// value in each cell.
    ///
    /// # Errors
    /// As [`Self::integral`]; [`SolveError::Setting`] for coefficients that are formulas of the point, for an equation in time, if u
    /// is kept by another rank, and if the adjoint solve does not converge; as [`LinearSolver::new`](crate::LinearSolver::new).
    pub fn gradient(
        &self,
        functional: &Functional,
        parameters: &[&str],
        config: &SolverConfig,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Argument>, SolveError> {
        let (problem, state) = (self.problem.at_time(self.time), self.state());
        if problem.is_in_time {
            let message = "the equation is one in time, and gradients are of steady ones";
            return Err(SolveError::setting(&["time".into()], message));
        }
        if self.u.is_empty() {
            return Err(SolveError::solver("ranks", "the solution is kept by another rank: take one rank"));
        }
        let parameters: Vec<(&str, &Argument, Field)> = parameters
            .iter()
            .map(|name| problem.parameter(name).map(|(argument, values)| (*name, argument, values)))
            .collect::<Result<_, _>>()?;
        let space = problem.space()?;
        let of = problem.of_functional(functional)?;
        let form = of.form()?;
        let mut slope = vec![0.0; self.u.len()];
        self.operator(&space, &form)?.residual(&state, &mut slope)?;
        let adjoint = self.adjoint(&space, slope, config, progress)?;
        let derivative = |(name, argument, values): (&str, &Argument, Field)| {
            let form = problem.form_by(name, &values)?;
            let of_residual =
                self.operator(&space, &form)?.by_parameter(&state, Differentiated::Residual(&adjoint))?;
            let form = of.form_by(name, &values)?;
            let of_functional = self.operator(&space, &form)?.by_parameter(&state, Differentiated::Energy)?;
            let mut slopes = Field { values: vec![0.0; values.values.len()], ..values };
            slopes.values.iter_mut().zip(of_functional).for_each(|(slope, own)| *slope += own);
            slopes.values.iter_mut().zip(of_residual).for_each(|(slope, own)| *slope -= own);
            Ok(like(argument, &slopes, problem.mesh))
        };
        parameters.into_iter().map(derivative).collect()
    }

    /// Solves $A^\mathsf{T} \lambda = b$ with zeros at the unknowns that have Dirichlet values.
    fn adjoint(
        &self,
        space: &Space<'_>,
        mut b: Vec<f64>,
        config: &SolverConfig,
        progress: &mut dyn Progress,
    ) -> Result<Vec<f64>, SolveError> {
        let form = self.problem.form()?;
        let approximation = Approximation::new(self.problem, &form, config);
        let operator = self.operator(space, &form)?;
        let config = SolverConfig { ranks: Ranks::One, ..config.clone() };
        let mut config = config_for(&config, &form)?;
        let constraints = self.problem.constraints_at(space, b.len(), self.time)?;
        let motions = Motions::new(space, &form, &self.problem.unknowns())?;
        with_lower_degree(&mut config, (space, &form), &motions, &constraints)?;
        constraints.distribute_transpose(&mut b);
        let mut matrix = operator.assemble(&self.state(), operator.pattern(&constraints)?)?;
        if !form.is_symmetric() {
            matrix = matrix.transpose()?;
        }
        let approximated = approximation.of(&matrix, &config)?;
        let near_nullspace =
            takes_motions(&config, &form, &motions).then(|| motions.near_nullspace(&constraints));
        let given = Given { near_nullspace: near_nullspace.as_deref(), approximation: approximated.as_ref() };
        let (solver, _) = approximation.solver(&matrix, given, &config, None)?;
        let solved = solver.solve_from(vec![0.0; b.len()], &b, progress)?;
        let mut x = solved.x;
        constraints.distribute(&mut x);
        let stop = solved.outcome.stop;
        match stop {
            Stop::Converged => Ok(x),
            stop => {
                let message = format!("the adjoint solve of the gradient ended before it converged: {stop}");
                Err(SolveError::setting(&["solver".into()], message))
            }
        }
    }

    fn state(&self) -> State<'_> {
        State { time: self.time, ..State::of(self.u) }
    }

    fn operator<'o>(&self, space: &'o Space<'o>, form: &'o Form) -> Result<CpuOperator<'o>, SolveError>
    where
        Self: 'o,
    {
        let discrete = DiscreteForm::new(space, form, &self.problem.facets)?;
        Ok(CpuOperator::new(discrete, &Cpu::of_current_pool()?)?)
    }
}

impl FormSolution<'_> {
    /// Returns the value of a functional of the solution.
    ///
    /// # Errors
    /// As [`FormAt::integral`].
    pub fn integral(&self, functional: &Functional) -> Result<f64, SolveError> {
        self.problem.at(&self.u, self.time).integral(functional)
    }

    /// Returns the derivatives of a functional of the solution by coefficients of the equation, by one adjoint solve with the
    /// settings; see [`FormAt::gradient`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use femtile_device::Cpu;
    /// use femtile_form::{Argument, Equation};
    /// use femtile_mesh::check::boundary_facets;
    /// use femtile_mesh::generate::{SquareConfig, square};
    /// use femtile_solve::{FormProblem, Functional, Silent, SolverConfig, Stages, Value};
    ///
    /// let text = r#"
    ///     unknown = { u = {} }
    ///     coefficients = { k = {} }
    ///     cells = { flux = "k*grad(u)", source = "1" }
    /// "#;
    /// let mesh = square(&SquareConfig::default())?;
    /// let equation = Equation::from_toml("heat", text)?;
    /// let mut plate = FormProblem::new(&mesh, Arc::new(boundary_facets(&mesh)), equation);
    /// plate.scalar("k", &Value::from(2.0))?;
    /// plate.dirichlet("all", &[Some(Value::from(0))])?;
    /// let (cpu, config) = (Cpu::new(1)?, SolverConfig::default());
    /// let solution = plate.solve(&cpu, &config, None, &mut Stages::new(&mut Silent))?;
    /// let heat = Functional::new("u");
    /// let slopes = solution.gradient(&heat, &["k"], &config, &mut Silent)?;
    /// // u is inversely proportional to k.
    /// let Argument::One(slope) = &slopes[0] else { unreachable!() };
    /// assert!((slope.as_constant().unwrap() + solution.integral(&heat)? / 2.0).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`FormAt::gradient`].
    pub fn gradient(
        &self,
        functional: &Functional,
        parameters: &[&str],
        config: &SolverConfig,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Argument>, SolveError> {
        self.problem.at(&self.u, self.time).gradient(functional, parameters, config, progress)
    }
}

fn parameter_path() -> [Key; 1] {
    ["parameter".into()]
}

fn is_field(coefficient: &Coefficient) -> bool {
    matches!(coefficient, Coefficient::CellField(_))
}

/// Returns whether a coefficient is a number or a tensor of numbers, of the whole mesh or for each tag.
fn is_of_numbers(coefficient: &Coefficient) -> bool {
    let is_number = |one: &Coefficient| {
        one.is_constant_by_cell() && !is_field(one) && !matches!(one, Coefficient::ByTag(_))
    };
    match coefficient {
        Coefficient::ByTag(parts) => parts.values().all(is_number),
        one => is_number(one),
    }
}

/// Returns the cell field of a function of the cell and its tag.
fn by_cell(mesh: &Mesh, n_components: usize, values: impl Fn(usize, i32) -> Vec<f64>) -> Field {
    let values = (0..mesh.n_cells()).flat_map(|cell| values(cell, tag(mesh, cell))).collect();
    Field { n_components, values }
}

fn tag(mesh: &Mesh, cell: usize) -> i32 {
    mesh.cell_tags.get(cell).copied().unwrap_or(0)
}

/// Returns the derivative by a coefficient in its form, from those by the values in each cell.
fn like(argument: &Argument, slopes: &Field, mesh: &Mesh) -> Argument {
    match argument {
        Argument::One(one) => Argument::One(like_one(one, slopes, mesh)),
        Argument::Vector(parts) => {
            let of_part = |(i, part): (usize, &Coefficient)| {
                let values = slopes.values.iter().skip(i).step_by(slopes.n_components).copied().collect();
                like_one(part, &Field { n_components: 1, values }, mesh)
            };
            Argument::Vector(parts.iter().enumerate().map(of_part).collect())
        }
    }
}

fn like_one(coefficient: &Coefficient, slopes: &Field, mesh: &Mesh) -> Coefficient {
    let sum = |wanted: &dyn Fn(usize) -> bool| {
        let mut sum = vec![0.0; slopes.n_components];
        let cells = slopes.values.chunks_exact(slopes.n_components).enumerate();
        for (_, slopes) in cells.filter(|(cell, _)| wanted(*cell)) {
            sum.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += slope);
        }
        sum
    };
    let number = |of: &Coefficient, sum: &[f64]| match sum {
        [one] => Coefficient::Constant(*one),
        // A number among tensors is that of the diagonal.
        entries if of.is_scalar() => Coefficient::Constant(entries.iter().step_by(4).sum()),
        entries => Coefficient::Tensor(std::array::from_fn(|i| std::array::from_fn(|j| entries[3 * i + j]))),
    };
    match coefficient {
        Coefficient::CellField(_) => Coefficient::CellField(slopes.clone()),
        Coefficient::ByTag(parts) => {
            let parts: BTreeMap<i32, Coefficient> = parts
                .iter()
                .map(|(&of, part)| (of, number(part, &sum(&|cell| tag(mesh, cell) == of))))
                .collect();
            Coefficient::ByTag(parts)
        }
        one => number(one, &sum(&|_| true)),
    }
}

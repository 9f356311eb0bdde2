//! Eigenvalues of a form: frequencies, rates of decay.

use femtile_comm::Comm;
use femtile_device::cuda::Opening;
use femtile_device::{Buffer, Cpu, parallel};
use femtile_form::{Equation, Form};
use femtile_linalg::eigen::{BlockKernels, Eigenpairs, Lobpcg, LobpcgConfig, Pencil};
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_linalg::{LinalgError, Preconditioner};
use femtile_operator::{CpuOperator, DiscreteForm, State};
use femtile_space::{LinearConstraints, Space};
use femtile_sparse::csr::Csr;

use super::approximation::{is_convective, is_of_definiteness};
use super::kernel::Motions;
use super::lower_degree::with_lower_degree;
use super::problem::{DENSITY, of_equation};
use super::solution::{FormSolution, SolvedBy};
use super::solve::{config_for, takes_motions};
use super::{FormProblem, diffusion, stress};
use crate::auto::Solves;
use crate::device::{Choice, Chosen};
use crate::format::product_matrix;
use crate::matrix::{check_preconditioner, resolved};
use crate::matrix_preconditioner::MatrixPreconditioner;
use crate::memory::{Estimate, excess};
use crate::method::SolveDevice;
use crate::ranks::{Agreed, RankDevice};
use crate::system::SystemSummary;
use crate::{DeviceChoice, Key, Method, SolveError, SolverConfig, Stage, Stages, below};

/// An eigenvalue with its function.
#[derive(Debug, Clone, PartialEq)]
pub struct Mode {
    /// λ; zero if it is no larger than rounding.
    pub value: f64,
    /// $\|A u - \lambda M u\|$, relative to $\max(|\lambda_1|, \dots, |\lambda_{count}|)\,\|M u\|$.
    pub residual: f64,
    /// u with $u^\mathsf{T} M u = 1$, interleaved by components.
    pub u: Vec<f64>,
}

impl Mode {
    /// Returns the frequency $\sqrt\lambda / 2\pi$ of a vibration with the mass density as capacity; none of a negative eigenvalue.
    pub fn frequency(&self) -> Option<f64> {
        (self.value >= 0.0).then(|| self.value.sqrt() / std::f64::consts::TAU)
    }
}

/// Power of two so large that a tangent with this shift is a multiple of the mass matrix, to rounding.
const LARGE: f64 = (1_u128 << 100) as f64 * (1_u128 << 100) as f64;

/// The shift of the preconditioner, relative to an estimate of the smallest eigenvalue from the mean of all: it makes the matrix of a free
/// body definite and hardly changes others.
const SHIFT: f64 = 1e-3;

/// Growth of the shift, and how often it grows, until the matrix is positive definite.
const GROWTH: f64 = 100.0;
const MOST_SHIFTS: usize = 5;

/// Guard vectors of the block beyond `count`: two, and one for every four modes.
const GUARDS: usize = 2;
const MODES_A_GUARD: usize = 4;

/// Vectors in memory for each vector of the block.
const VECTORS_OF_EACH: usize = 13;

/// Multiple of the rounding of A x up to which an eigenvalue counts as zero.
const ZERO: f64 = 16.0;

impl<'m> FormProblem<'m> {
    /// Computes the smallest eigenvalues of the form, $A u = \lambda M u$ with the tangent A and the mass matrix M of the capacity, 1 if the
    /// equation has none, on one rank. In time each function decays as $e^{-\lambda t}$ or, with the mass density as capacity of a
    /// body, vibrates with [`Mode::frequency`].
    ///
    /// The method is that of [`Lobpcg`], with the preconditioner of a solve and [`SolverConfig::tolerance`]. Bodies may be free: the
    /// eigenvalue of a motion that nothing holds is zero.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use femtile_device::Cpu;
    /// use femtile_form::Equation;
    /// use femtile_mesh::check::boundary_facets;
    /// use femtile_mesh::generate::{SquareConfig, square};
    /// use femtile_solve::{FormProblem, Silent, SolverConfig, Stages, Value};
    ///
    /// let mesh = square(&SquareConfig { cells: [24, 24], ..SquareConfig::default() })?;
    /// let boundary = Arc::new(boundary_facets(&mesh));
    /// let mut drum = FormProblem::new(&mesh, boundary, Equation::named("diffusion")?);
    /// drum.dirichlet("all", &[Some(Value::from(0))])?;
    /// let (cpu, mut silent) = (Cpu::new(1)?, Silent);
    /// let solution = drum.modes(3, &cpu, &SolverConfig::default(), None, &mut Stages::new(&mut silent))?;
    /// let exact = 2.0 * std::f64::consts::PI.powi(2);
    /// assert!((solution.modes()[0].value / exact - 1.0).abs() < 0.01);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::solve`]; [`SolveError::Setting`] for forms that are not linear or not symmetric, for a capacity that is not positive, for a
    /// part without the unknown such as a source, also one at a point, for Dirichlet values other than zero, for more modes than free unknowns, and for
    /// several ranks. Not converging is an outcome.
    pub fn modes(
        &self,
        count: usize,
        cpu: &Cpu,
        config: &SolverConfig,
        opening: Option<Opening>,
        stages: &mut Stages<'_>,
    ) -> Result<FormSolution<'m>, SolveError> {
        if config.ranks.n() > 1 {
            return Err(SolveError::solver("ranks", "modes are computed by one rank: take ranks = 1"));
        }
        if !self.sources.is_empty() {
            let message = "modes have no source: leave sources at points out";
            return Err(wrong(&["source".into(), 0.into()], message.into()));
        }
        let mut problem = self.clone().in_time();
        problem.continuation = None;
        if !problem.form()?.storage().components.contains(&true) {
            problem.equation.set_capacity("1", &[]);
        }
        stress::check(&problem)?;
        diffusion::check(&problem, false)?;
        let space = self.space()?;
        let form = problem.form()?;
        problem.check_formulas(&form)?;
        check(&form)?;
        let mut config = config_for(&SolverConfig { method: Method::Cg, ..config.clone() }, &form)?;
        config = resolved(&config);
        config.check()?;
        check_preconditioner(&config)?;
        let constraints = problem.constraints_at(&space, space.n_dofs() * form.n_components(), 0.0)?;
        problem.check_values(&constraints)?;
        let motions = Motions::new(&space, &form, &problem.unknowns())?;
        with_lower_degree(&mut config, (&space, &form), &motions, &constraints)?;
        let n_free = constraints.n_dofs() - constraints.dofs().len();
        if count == 0 || count > n_free {
            let message = format!("{count} modes, where {n_free} unknowns are free: take 1 to {n_free}");
            return Err(wrong(&["modes".into(), "count".into()], message));
        }
        self.check_memory(block_size(count) * constraints.n_dofs(), config.memory_limit)?;
        stages.begin(Stage::Assemble)?;
        let opened = match opening {
            Some(opening) => Some(opening.wait()?),
            None => config.device.open()?,
        };
        let Choice { device, mut reason } = config.device.choose(opened, constraints.n_dofs(), cpu.threads());
        let mut warnings = problem.warnings();
        let eigen = Eigenproblem {
            problem: &problem,
            space: &space,
            form: &form,
            constraints: &constraints,
            motions: &motions,
            config: &config,
            count,
        };
        let matrices = eigen.assemble(cpu)?;
        if let Chosen::Cuda(gpu) = &device {
            let gpu = config.device.with_overflow(gpu);
            match eigen.solve((&gpu, &reason), &matrices, warnings.clone(), stages) {
                Err(error) if config.device == DeviceChoice::Auto && error.is_device_trouble() => {
                    reason = error.to_string();
                    warnings.push(format!("solved on the CPU: {reason}"));
                }
                done => return done,
            }
        }
        eigen.solve((cpu, &reason), &matrices, warnings, stages)
    }

    /// Refuses blocks of more entries than there is memory for.
    fn check_memory(&self, n_entries: usize, asked: Option<u64>) -> Result<(), SolveError> {
        let bytes = (n_entries * VECTORS_OF_EACH * size_of::<f64>()) as f64;
        let estimate = Estimate::of_parts(&[("vectors of modes", bytes)]);
        let advice = "take fewer modes or a coarser mesh, or raise solver.memory_limit";
        match excess(&estimate, asked, advice) {
            Some(message) => Err(wrong(&["modes".into(), "count".into()], message)),
            None => Ok(()),
        }
    }

    /// Refuses Dirichlet values other than zero.
    fn check_values(&self, constraints: &LinearConstraints) -> Result<(), SolveError> {
        let is_given = |dof: &u32| constraints.value(*dof).is_some_and(|value| value != 0.0);
        for pair in self.pairs.iter().filter(|pair| !pair.jump.is_empty()) {
            if pair.jump.iter().any(|jump| jump.as_constant() != Some(0.0)) {
                return Err(wrong(&below(&pair.path, "jump"), "modes have no jump: leave this out".into()));
            }
        }
        if let Some(floating) =
            self.floating.iter().find(|own| own.totals.iter().flatten().any(|t| *t != 0.0))
        {
            return Err(wrong(&below(&floating.path, "total"), "modes have no load: leave this out".into()));
        }
        if !self.has_values_in_time() && !constraints.dofs().iter().any(is_given) {
            return Ok(());
        }
        let is_zero = |value: &femtile_form::Coefficient| value.as_constant() == Some(0.0);
        let path = self.given.iter().find(|given| !given.values.iter().flatten().all(is_zero));
        let path = path.map_or_else(|| vec!["boundary".into()], |given| given.path.clone());
        Err(wrong(&path, "modes have the value zero here: take 0".into()))
    }

    /// Returns the path of the capacity: that of [`Self::density`] if it was set.
    fn of_capacity(&self) -> Vec<Key> {
        let is_built_in = Equation::text_of(self.equation.name()).is_some();
        let name = if is_built_in && self.coefficient(DENSITY).is_some() { DENSITY } else { "capacity" };
        of_equation(name)
    }
}

/// Returns the number of vectors of a block for this many modes.
fn block_size(count: usize) -> usize {
    count + GUARDS + count / MODES_A_GUARD
}

fn wrong(path: &[Key], message: String) -> SolveError {
    SolveError::setting(path, message)
}

/// Refuses forms whose eigenvalues the method does not find.
fn check(form: &Form) -> Result<(), SolveError> {
    let refuse = |message: &str| Err(wrong(&["equation".into()], message.into()));
    if !form.is_linear() {
        return refuse(
            "modes are those of a linear form: a formula depends on the unknown by more than a factor",
        );
    }
    if is_convective(form) {
        return refuse(
            "modes are those of a symmetric form: convection, a source with the gradient or a flux with the value, makes it nonsymmetric",
        );
    }
    if !form.is_symmetric() {
        return refuse(
            "modes are those of a symmetric form: components are not coupled alike in both directions",
        );
    }
    if form.is_saddle_point() {
        return refuse(
            "modes need a form that is bounded from below: this one is a saddle point, by an unknown that is not in its own equation",
        );
    }
    if form.is_in_time() {
        return refuse("modes do not depend on t, and a formula does");
    }
    let of_component = form.storage().components;
    if let Some(component) = of_component.iter().position(|has_rate| !has_rate) {
        let message = format!("component {component} has no capacity: modes need a positive one of each");
        return Err(wrong(&of_equation("capacity"), message));
    }
    Ok(())
}

/// The eigenvalue problem of a form on a space.
struct Eigenproblem<'a, 'm> {
    problem: &'a FormProblem<'m>,
    space: &'a Space<'m>,
    form: &'a Form,
    constraints: &'a LinearConstraints,
    motions: &'a Motions,
    config: &'a SolverConfig,
    count: usize,
}

/// A and M with the identity and nearly zero in rows and columns of constrained unknowns, where iterates are zero.
struct Matrices {
    a: Csr<f64, Cpu>,
    m: Csr<f64, Cpu>,
    /// An estimate of the smallest eigenvalue by its order of magnitude.
    scale: f64,
}

/// A preconditioner whose results are zero at constrained unknowns.
struct Projected<'a, D: SolveDevice> {
    inner: &'a dyn Preconditioner<f64, D>,
    /// One at free unknowns, zero at others.
    free: &'a Buffer<f64, D>,
}

impl<D: SolveDevice> Preconditioner<f64, D> for Projected<'_, D> {
    fn apply(&self, z: &mut Buffer<f64, D>, r: &Buffer<f64, D>) -> Result<(), LinalgError> {
        let (device, mut w) = (r.device(), Buffer::zeros(r.device(), r.len())?);
        self.inner.apply(&mut w, r)?;
        device.scale_by(z, self.free, &w)
    }

    fn is_fixed(&self) -> bool {
        self.inner.is_fixed()
    }

    fn set_residual_norm(&self, norm: f64) {
        self.inner.set_residual_norm(norm);
    }
}

impl<'m> Eigenproblem<'_, 'm> {
    /// Assembles both matrices; refuses a part of the form without the unknown, and a capacity that is not positive.
    fn assemble(&self, cpu: &Cpu) -> Result<Matrices, SolveError> {
        let &Self { problem, space, form, constraints, .. } = self;
        let operator = CpuOperator::new(DiscreteForm::new(space, form, &problem.facets)?, cpu)?;
        let mut constant = vec![0.0; constraints.n_dofs()];
        operator.residual(&State::default(), &mut constant)?;
        constraints.distribute_transpose(&mut constant);
        if constant.iter().any(|&entry| entry != 0.0) {
            let message = "modes have no source: leave `source`, and fluxes through the boundary, without a part that the unknown is not in";
            return Err(wrong(&["equation".into()], message.into()));
        }
        let pattern = operator.pattern(constraints)?;
        let a = operator.assemble(&State::default(), pattern.clone())?;
        let shifted = operator.assemble(&State { shift: LARGE, ..State::default() }, pattern)?;
        let m = shifted.combined(1.0 / LARGE, &a, 0.0)?;
        let [of_a, of_m] = [&a, &m].map(diagonal);
        let (mut traces, n) = ([0.0; 2], form.n_components());
        for dof in (0..of_m.len()).filter(|&dof| !constraints.contains(dof as u32)) {
            if of_m[dof].is_nan() || of_m[dof] <= 0.0 {
                let [x, y, z] = space.node_points()[dof / n];
                let message = format!("is not positive at ({x}, {y}, {z}), where modes need it to be");
                return Err(wrong(&problem.of_capacity(), message));
            }
            traces = [traces[0] + of_a[dof].abs(), traces[1] + of_m[dof]];
        }
        if n > 1 && !is_symmetric(&m)? {
            return Err(wrong(&problem.of_capacity(), "modes need a symmetric matrix".into()));
        }
        let points = (space.n_dofs() as f64).powf(-2.0 / space.mesh().dimension() as f64);
        Ok(Matrices { a, m, scale: traces[0] / traces[1] * points })
    }

    fn solve<D: SolveDevice + RankDevice + BlockKernels>(
        &self,
        (device, reason): (&D, &str),
        Matrices { a, m, scale }: &Matrices,
        mut warnings: Vec<String>,
        stages: &mut Stages<'_>,
    ) -> Result<FormSolution<'m>, SolveError> {
        let &Self { problem, space, form, constraints, config, count, .. } = self;
        stages.begin(Stage::Setup)?;
        let preconditioner = self.preconditioner(device, (a, m, *scale), &mut warnings)?;
        let (a, format_reason) = product_matrix(a.copy_to(device)?, config, Solves::One)?;
        let (m, _) = product_matrix(m.copy_to(device)?, config, Solves::One)?;
        let of_dof = |dof: usize| f64::from(u8::from(!constraints.contains(dof as u32)));
        let free = Buffer::from_vec(device, parallel::map(constraints.n_dofs(), 1 << 14, of_dof))?;
        let projected = Projected { inner: preconditioner.as_dyn(), free: &free };
        stages.begin(Stage::Solve)?;
        let (comm, start) = (Comm::alone(), self.start(device)?);
        let mut monitor = Agreed::new(&comm, config, stages.progress());
        let lobpcg = Lobpcg::new(LobpcgConfig {
            count,
            tolerance: config.tolerance,
            max_iterations: config.max_iterations,
            time_limit: config.time_limit,
        });
        let (product, of_mass) = (D::matrix_operator(&a), D::matrix_operator(&m));
        let pencil = Pencil { a: product, m: of_mass, preconditioner: &projected, comm: &comm };
        let found = lobpcg.solve(start, pencil, &mut monitor)?;
        monitor.ended()?;
        if found.values.len() < count {
            return Err(match found.stop {
                Stop::Breakdown { .. } => {
                    let message = "the mass matrix is not positive definite: modes need a positive capacity";
                    wrong(&problem.of_capacity(), message.into())
                }
                _ => {
                    let message = format!("{} of {count} modes were found: take fewer", found.values.len());
                    wrong(&["modes".into(), "count".into()], message)
                }
            });
        }
        let relative_residual = found.history.last().copied().unwrap_or(f64::NAN);
        let outcome = CgOutcome {
            stop: found.stop,
            iterations: found.history.len().saturating_sub(1),
            relative_residual,
            true_relative_residual: relative_residual,
            residuals: found.history.clone(),
            energy_error: None,
            energy_norm: f64::NAN,
            failed_test: None,
        };
        let modes = self.modes(found)?;
        let mut citations = vec!["knyazev2001", "duersch2018", "stathopoulos2002"];
        citations.extend(config.preconditioner.citations());
        let parts = SystemSummary::of_refilled_matrix(preconditioner.levels(), Vec::new());
        let by = SolvedBy {
            format: a.format().name(),
            format_reason,
            citations,
            ..SolvedBy::new((device, reason), parts, config)
        };
        Ok(FormSolution {
            problem: problem.clone(),
            space: space.clone(),
            form: form.clone(),
            time: 0.0,
            u: modes[0].u.clone(),
            rate: Vec::new(),
            nonlinear: None,
            load_steps: Vec::new(),
            modes,
            outcome,
            by,
            warnings,
        })
    }

    /// Makes the preconditioner of A + s M for a small s, a larger one if that is not positive definite.
    fn preconditioner<D: SolveDevice>(
        &self,
        device: &D,
        (a, m, scale): (&Csr<f64, Cpu>, &Csr<f64, Cpu>, f64),
        warnings: &mut Vec<String>,
    ) -> Result<MatrixPreconditioner<D>, SolveError> {
        let &Self { form, constraints, motions, config, .. } = self;
        let all: Vec<u32> = (0..constraints.n_dofs() as u32).collect();
        let near_nullspace = takes_motions(config, form, motions).then(|| motions.rows_of(&all, constraints));
        let mut shift = if scale > 0.0 { SHIFT * scale } else { 1.0 };
        for attempt in 1.. {
            let mut shifted = a.combined(1.0, m, shift)?.copy_to(device)?;
            let made = MatrixPreconditioner::new(
                &mut shifted,
                near_nullspace.as_deref(),
                &config.preconditioner,
                warnings,
            );
            match made {
                Err(error) if attempt < MOST_SHIFTS && is_of_definiteness(&error) => shift *= GROWTH,
                made => return made,
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Returns the vectors that the method begins with: the motions of a body without constraints, and random ones.
    fn start<D: SolveDevice>(&self, device: &D) -> Result<Vec<Buffer<f64, D>>, LinalgError> {
        let (n, count) = (self.constraints.n_dofs(), self.count);
        let is_free = |dof: usize| !self.constraints.contains(dof as u32);
        let mut start: Vec<Vec<f64>> = match self.constraints.dofs().is_empty() {
            true => {
                self.motions.near_nullspace(self.constraints).chunks_exact(n).map(<[f64]>::to_vec).collect()
            }
            false => Vec::new(),
        };
        let n_random = block_size(count).saturating_sub(start.len()).max(GUARDS);
        let of = |j: usize| parallel::map(n, 1 << 14, |i| if is_free(i) { random(i, j) } else { 0.0 });
        start.extend((0..n_random).map(of));
        start.into_iter().map(|x| Ok(Buffer::from_vec(device, x)?)).collect()
    }

    /// Brings the vectors to the host, each with the same sign in all runs.
    fn modes<D: SolveDevice + BlockKernels>(&self, found: Eigenpairs<D>) -> Result<Vec<Mode>, LinalgError> {
        let Eigenpairs { values, vectors, residuals, size, .. } = found;
        let mode = |((x, value), residual): ((&Buffer<f64, D>, f64), f64)| {
            let rounding = ZERO * f64::EPSILON * size * x.device().dot(x, x)?;
            let mut u = x.to_host()?;
            let largest = u.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            if u.iter().find(|x| x.abs() > 0.5 * largest).is_some_and(|x| *x < 0.0) {
                u.iter_mut().for_each(|x| *x = -*x);
            }
            self.constraints.distribute(&mut u);
            let value = if value.abs() <= rounding { 0.0 } else { value };
            Ok(Mode { value, residual, u })
        };
        vectors.iter().zip(values).zip(residuals).map(mode).collect()
    }
}

fn diagonal(a: &Csr<f64, Cpu>) -> Vec<f64> {
    let own = |row: usize| a.row(row).find(|(column, _)| *column == row).map_or(0.0, |(_, value)| value);
    parallel::map(a.n_rows(), 1 << 12, own)
}

/// Returns whether mirrored entries agree to rounding.
fn is_symmetric(a: &Csr<f64, Cpu>) -> Result<bool, LinalgError> {
    let (transposed, sizes) = (a.transpose()?, diagonal(a));
    let is_mirrored = |row: usize| {
        let mut both = a.row(row).zip(transposed.row(row));
        both.all(|((_, value), (_, mirrored))| (value - mirrored).abs() <= 1e-12 * sizes[row].abs())
    };
    Ok(!parallel::map(a.n_rows(), 1 << 12, is_mirrored).contains(&false))
}

/// Returns a random number between −1 and 1 that is always the same.
fn random(i: usize, j: usize) -> f64 {
    let mut state = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state ^= (j as u64 + 1).wrapping_mul(0xd1b5_4a32_d192_ed03);
    for _ in 0..2 {
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

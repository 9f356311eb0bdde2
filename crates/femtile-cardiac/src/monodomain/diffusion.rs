//! The implicit step of diffusion.
//!
//! A kept `CgSolver` solves for the increment of the potential, whose right side is one product with K. It begins
//! with the line through the last two increments. Iterations multiply by values of 32 bits if the matrix is in
//! slices.

use femtile::comm::Comm;
use femtile::device::Buffer;
use femtile::fem::assembly::assemble_matrix;
use femtile::fem::{Coefficient, Form};
use femtile::linalg::LinearOperator;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{CgSolver, KrylovConfig, Target};
use femtile::linalg::sparse::{Csr, SparseDevice};
use femtile::solve::{Discretization, MassMatrix, PreconditionedOperator, Stages};
use femtile::{SolverConfig, Value};

use super::site::Site;
use crate::{CardiacDevice, CardiacError};

/// Products with an operator in a run, enough for any format to pay.
pub(crate) const MANY: usize = 10_000;
/// The share of the size of the residual that a solve leaves; the size is chosen by the error that is accepted.
const TOLERANCE: f64 = 1e-6;

/// The coefficients of $c\, \partial V/\partial t = \nabla\cdot(D \nabla V)$.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DiffusionConfig<'a> {
    pub conductivity: &'a Value,
    /// The factor $c = \chi C_m$.
    pub storage: f64,
    /// The share of the new time in the flux: 1 for backward Euler, ½ for Crank–Nicolson.
    pub theta: f64,
    pub length: f64,
    pub mass: MassMatrix,
    /// The root mean square of the error of the potential that a solve may leave.
    pub error: f64,
}

/// One step of diffusion: solves $(\tfrac{c}{\theta h} M + K)\, w = K V$ and subtracts $w/\theta$ from V.
///
/// The solve begins with the extrapolation by a line through the last two w. It ends when the residual is
/// that of an error of the given size in V at all nodes, $\|r\|_2 \le \epsilon\, \tfrac{c}{h} \|M 1\|_2$
/// ([`Target::Norm`]). The bound is at most half the right side, so that no step leaves V unchanged.
pub(super) struct Diffusion<D: CardiacDevice> {
    stiffness: Box<dyn LinearOperator<f64, D>>,
    solver: CgSolver<f64, D>,
    config: KrylovConfig,
    target: Target,
    theta: f64,
    comm: Comm,
    /// The format of the operator.
    pub format: String,
    pub preconditioner_name: &'static str,
}

impl<D: CardiacDevice> Diffusion<D> {
    /// Assembles the operators.
    ///
    /// # Errors
    /// Errors of the settings, the mesh and the device.
    pub fn new(
        site: &Site<'_, D>,
        (problem, of): (&Discretization<'_>, &DiffusionConfig<'_>),
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<Self, CardiacError> {
        let (device, comm) = (site.device, site.nodes.comm().clone());
        let Made { operators, stiffness, preconditioner_name } = match site.rank {
            None => alone(site, (problem, of.mass), config, stages)?,
            Some(rank) => Made {
                operators: rank.operators(device, of.mass, stages)?,
                stiffness: rank.stiffness(device)?,
                preconditioner_name: config.preconditioner.name(),
            },
        };
        let PreconditionedOperator { operator, rounded, preconditioner, format } = operators;
        let n = site.nodes.n();
        let (mut ones, mut mass_of_ones) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
        device.fill(&mut ones, 1.0)?;
        // K 1 = 0, so this is the shift times M 1.
        operator.apply(&mut mass_of_ones, &ones)?;
        let threshold =
            of.theta * of.error * site.nodes.sum(device.dot(&mass_of_ones, &mass_of_ones)?)?.sqrt();
        let max_iterations = config.max_iterations;
        let config = KrylovConfig { tolerance: TOLERANCE, max_iterations, ..KrylovConfig::default() };
        let mut solver = D::cg_solver(operator, preconditioner, &comm)?;
        solver.extrapolate()?;
        if let Some(rounded) = rounded {
            solver.iterate_with(rounded)?;
        }
        let target = Target::Norm(threshold / TOLERANCE);
        Ok(Self { stiffness, solver, config, target, theta: of.theta, comm, format, preconditioner_name })
    }

    /// Returns the operator $K$.
    pub fn stiffness(&self) -> &dyn LinearOperator<f64, D> {
        self.stiffness.as_ref()
    }

    /// Performs one step; returns the iterations and whether the solve converged.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn step(&mut self, v: &mut Buffer<f64, D>) -> Result<(usize, bool), CardiacError> {
        self.stiffness.apply(self.solver.b_mut(), v)?;
        let outcome = D::cg_solve(&mut self.solver, &self.config, self.target, &self.comm, &mut ())?;
        v.device().clone().axpby(v, -1.0 / self.theta, self.solver.x(), 1.0)?;
        Ok((outcome.iterations, outcome.stop == Stop::Converged))
    }

    /// Returns on the host what the next solve begins with: numbers, the last solution, and the one before if
    /// the guess is the line through both.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn state(&self) -> Result<[Vec<f64>; 3], CardiacError> {
        let ritz = self.solver.smallest_ritz_value().unwrap_or(0.0);
        let mut known = self.solver.solutions()?;
        let numbers = vec![ritz, known.len() as f64];
        if known.is_empty() {
            known.push(self.solver.x().to_host()?);
        }
        known.resize(2, Vec::new());
        let [last, before] = [0, 1].map(|i| std::mem::take(&mut known[i]));
        Ok([numbers, last, before])
    }

    /// Restores the result of [`Diffusion::state`]; returns whether the lengths fit.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn restore(&mut self, [numbers, last, before]: [&Vec<f64>; 3]) -> Result<bool, CardiacError> {
        let n = self.solver.x().len();
        let &[ritz, known] = numbers.as_slice() else { return Ok(false) };
        if last.len() != n || before.len() != if known < 2.0 { 0 } else { n } {
            return Ok(false);
        }
        self.solver.x_mut().upload(last)?;
        if known > 0.0 {
            // Of ranks without nodes both are empty.
            let solutions = [last, before].map(Clone::clone);
            self.solver.set_solutions(if known < 2.0 { &solutions[..1] } else { &solutions })?;
        }
        self.solver.set_smallest_ritz_value(Some(ritz));
        Ok(true)
    }
}

/// The operators of a run.
struct Made<D: CardiacDevice> {
    operators: PreconditionedOperator<D>,
    stiffness: Box<dyn LinearOperator<f64, D>>,
    preconditioner_name: &'static str,
}

/// Makes the operators of one rank alone.
fn alone<D: CardiacDevice>(
    site: &Site<'_, D>,
    (problem, mass): (&Discretization<'_>, MassMatrix),
    config: &SolverConfig,
    stages: &mut Stages<'_>,
) -> Result<Made<D>, CardiacError> {
    let weak = problem.weak_form(config, site.opened, site.cpu.threads())?;
    let preconditioner_name = weak.config().preconditioner.name();
    let operators = weak.operators((site.cpu, site.device), mass, stages)?;
    let stiffness = stiffness(site.device, &problem.form(0))?;
    let stiffness = D::product_matrix(stiffness, config.format, MANY, &config.remembered)?.0;
    Ok(Made { operators, stiffness: <D as SparseDevice>::into_operator(stiffness), preconditioner_name })
}

/// Assembles the matrix of $\int \sigma \nabla u \cdot \nabla v$, whatever the reaction of the form is.
///
/// # Errors
/// Errors of the form and the device.
pub(crate) fn stiffness<D: CardiacDevice>(device: &D, form: &Form<'_>) -> Result<Csr<f64, D>, CardiacError> {
    check_conductivity(form)?;
    let zero = &Coefficient::ZERO;
    Ok(assemble_matrix(device, &Form { lambda: zero, source: zero, conditions: &[], ..*form })?)
}

/// Refuses a conductivity that changes in a run.
pub(super) fn check_conductivity(form: &Form<'_>) -> Result<(), CardiacError> {
    if form.sigma.uses_unknown() || form.sigma.uses_time() {
        let message = "the conductivity of tissue cannot depend on u or t: use x, y and z alone";
        return Err(CardiacError::setting("conductivity", message));
    }
    Ok(())
}

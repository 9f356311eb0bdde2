//! The fully implicit scheme of `[wong2015]`: recovery variables at integration points, two nested Newton iterations.
//!
//! `local` solves for the states at a point at a given potential, `equation` for the potential of a step, and `steps`
//! chooses the lengths of steps. The monodomain problem reaches all of it as a `Stepper`.
//!
//! Residual and tangent use products with three sparse matrices (`sums`). The tangent is refilled in place, in the
//! format of its products, so its `CgSolver` and the recordings in it are kept.

mod equation;
mod local;
mod steps;
mod stopwatch;
mod sums;
mod tangent;

use std::sync::Arc;

use femtile::comm::Comm;
use femtile::device::{Buffer, Reference};
use femtile::fem::assembly::assemble_matrix;
use femtile::fem::{Coefficient, Form};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::cg::CgSolver;
use femtile::linalg::newton::{Newton, NewtonConfig, NewtonOutcome};
use femtile::linalg::precondition::Diagonal;
use femtile::linalg::sparse::{Csr, Format, ProductMatrix, StoredMatrix};
use femtile::solve::{MassMatrix, SolveError, Stage, Stages};
use femtile::{Poisson, SolverConfig};

use crate::ionic::GatePrecision;
use crate::monodomain::{DiffusionConfig, MANY, Monodomain, stiffness};
use crate::{CardiacDevice, CardiacError};
use equation::StepEquation;
pub(crate) use local::cuda::specialisations as cuda_specialisations;
pub use local::{
    CpuImplicitProgram, CudaImplicitProgram, ImplicitKernels, LocalStates, MAX_STATES, RightSide,
};
pub use stopwatch::StepSeconds;
use stopwatch::Stopwatch;
use sums::Sums;
use tangent::Tangent;

/// The share of the size of the residual that Newton's method leaves; the size is chosen by the residual that is accepted.
const TOLERANCE: f64 = 1e-6;
/// The share of the change of a step that Newton's method leaves at most: errors of all steps add up to this share of all
/// changes, however short the steps are.
const OF_CHANGE: f64 = 1e-4;
/// Rounding of the terms of a residual, relative to the range of action potentials: of the mass, at the end
/// of the local iterations, and of the stiffness.
const ROUNDING: [f64; 2] = [1e-12, 1e-14];
/// The weight of errors of states beside those of V: V returns to its place between the currents, while errors of recovery add
/// up until the end of an action potential.
const STATES: f64 = 3.0;
/// The largest number of global iterations per step.
const MOST: usize = 20;

/// The implicit Euler method for potential and states together.
///
/// $$ \tfrac{c}{h} M (V - V_n) + K V + c\,G\, I(PV, w) = c M s, \qquad w - w_n = h\, g(PV, w), $$
///
/// with states w at one integration point per cell. A local Newton iteration eliminates them there, so that
/// the tangent $\tfrac{c}{h} M + K + c\, S\, \tfrac{dI}{dV}$ is symmetric. P, G and S are sparse ([`Sums`]),
/// so residual and tangent are assembled by products.
///
/// # Cost
/// Per global iteration: a local iteration at each cell, products with P, G, S and the linear part, and a
/// linear solve. The tangent is refilled in place in the format of its products: S has one row per stored
/// value.
/// # Source
/// `[wong2015]`, Table 1; one-point integration as there. Differs: linear solves are inexact, and a line search guards them; with
/// lengths by an error estimate, accepted states move by it (local extrapolation).
pub(crate) struct Implicit<D: CardiacDevice> {
    states: LocalStates<D>,
    sums: Sums<D>,
    mass: ProductMatrix<f64, D>,
    stiffness: ProductMatrix<f64, D>,
    /// The diagonals of M and K.
    diagonals: [Vec<f64>; 2],
    /// $\tfrac{c}{h} M + K$ for the length of the last step, with the same pattern and layout as the tangent.
    linear: ProductMatrix<f64, D>,
    /// The operator of the solver.
    tangent: Arc<Tangent<D>>,
    /// Preconditioned by the diagonal of the linear part; its right side is the residual.
    solver: CgSolver<f64, D>,
    storage: f64,
    length: f64,
    /// $\|M 1\|_2$ and $\|\mathrm{diag}\,K\|_2$.
    norms: [f64; 2],
    /// The range of action potentials.
    amplitude: f64,
    /// The root mean square of the error of V that is left.
    error: f64,
    max_iterations: usize,
    /// The potential before the last step, and the length of that step.
    before: Option<(Buffer<f64, D>, f64)>,
    /// The share of the distance to the extrapolation that is the error of the pending step, if it was
    /// estimated.
    share: Option<f64>,
    /// The length of the last step with the smallest Ritz value after it, zero if none is known: attempts
    /// begin with them, so that those which are rejected leave no trace.
    known: [f64; 2],
    vectors: Vectors<D>,
    stopwatch: Stopwatch<D>,
}

/// Vectors of a step.
struct Vectors<D: CardiacDevice> {
    /// $\tfrac{c}{h} M (V_n + h s)$.
    old: Buffer<f64, D>,
    /// The potential of the step that waits.
    trial: Buffer<f64, D>,
    of_nodes: Buffer<f64, D>,
    at_cells: Buffer<f64, D>,
    current: Buffer<f64, D>,
    slope: Buffer<f64, D>,
    of_values: Buffer<f64, D>,
}

impl<D: CardiacDevice> Implicit<D> {
    /// Assembles the parts that are constant in time; the model is at rest.
    ///
    /// # Errors
    /// [`CardiacError::Setting`] for a model with too many states; errors of the settings, the mesh and the device.
    pub fn new(
        device: &D,
        (of_run, of): (&Monodomain<'_>, &DiffusionConfig<'_>),
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<Self, CardiacError> {
        let (mesh, model) = (of_run.mesh, &of_run.tissues[0].model);
        stages.begin(Stage::Assemble)?;
        let problem = Poisson::new(mesh).sigma(of.conductivity.clone()).lambda(1.0).discretize()?;
        let form = problem.form(0);
        let in_rows = stiffness(device, &form)?;
        let mass = assemble_matrix(device, &Form { sigma: &Coefficient::ZERO, ..form })?;
        let on_host = in_rows.copy_to(&Reference)?;
        let diagonal = |matrix: &Csr<f64, Reference>| -> Vec<f64> {
            let entry =
                |row: usize| matrix.row(row).find(|entry| entry.0 == row).map_or(0.0, |entry| entry.1);
            (0..matrix.n_rows()).map(entry).collect()
        };
        let diagonals = [diagonal(&mass.copy_to(&Reference)?), diagonal(&on_host)];
        let [linear, tangent] = [in_rows.copy_to(device)?, in_rows.copy_to(device)?];
        let stiffness = D::product_matrix(in_rows, config.format, MANY, &config.remembered)?.0;
        let layout = match stiffness.format() {
            Format::Csr => None,
            Format::EllWarp(layout) => Some(layout),
        };
        let alike = |matrix| D::in_slices(matrix, layout.as_ref());
        let (mass, linear, tangent) = (alike(mass)?, alike(linear)?, Arc::new(Tangent::new(alike(tangent)?)));
        let sums = Sums::new((device, config), mesh, &on_host, &stiffness)?;
        let (n, n_cells) = (mesh.n_nodes(), mesh.n_cells());
        let zeros = |n: usize| Buffer::zeros(device, n);
        let (mut ones, mut mass_of_ones) = (zeros(n)?, zeros(n)?);
        device.fill(&mut ones, 1.0)?;
        D::matrix_operator(&mass).apply(&mut mass_of_ones, &ones)?;
        let mass_norm = device.dot(&mass_of_ones, &mass_of_ones)?.sqrt();
        let stiffness_norm = diagonals[1].iter().map(|k| k * k).sum::<f64>().sqrt();
        let states = LocalStates::new(device, model, n_cells, of_run.adaptive.is_some())?;
        let vectors = Vectors {
            old: zeros(n)?,
            trial: zeros(n)?,
            of_nodes: zeros(n)?,
            at_cells: zeros(n_cells)?,
            current: zeros(n_cells)?,
            slope: zeros(n_cells)?,
            of_values: zeros(stiffness.n_stored())?,
        };
        let solver = D::cg_solver(tangent.clone(), Arc::new(Diagonal::identity(device, n)?), &Comm::alone())?;
        let mut implicit = Self {
            states,
            sums,
            mass,
            stiffness,
            diagonals,
            linear,
            tangent,
            solver,
            storage: of.storage,
            length: f64::NAN,
            norms: [mass_norm, stiffness_norm],
            amplitude: of_run.amplitude(),
            error: of.error,
            max_iterations: config.max_iterations,
            before: None,
            share: None,
            known: [of.length, 0.0],
            vectors,
            stopwatch: Stopwatch::new(device, of_run.timed)?,
        };
        implicit.set_length(of.length)?;
        Ok(implicit)
    }

    /// Solves the equation of a step; the result is pending until [`Implicit::take_over`].
    ///
    /// # Errors
    /// Errors of the device.
    fn solve(
        &mut self,
        v: &Buffer<f64, D>,
        stimulus: Option<&Buffer<f64, D>>,
        length: f64,
    ) -> Result<NewtonOutcome, CardiacError> {
        self.set_length(length)?;
        self.recall(length);
        self.share = None;
        let device = v.device();
        let Vectors { old, trial, of_nodes, .. } = &mut self.vectors;
        device.copy(trial, v)?;
        device.copy(of_nodes, v)?;
        if let Some(stimulus) = stimulus {
            device.axpby(of_nodes, length, stimulus, 1.0)?;
        }
        D::matrix_operator(&self.mass).apply(old, of_nodes)?;
        device.axpby(of_nodes, self.storage / length, old, 0.0)?;
        std::mem::swap(old, of_nodes);
        let mut u = std::mem::replace(trial, Buffer::zeros(device, 0)?);
        let config = NewtonConfig { tolerance: TOLERANCE, max_iterations: MOST, ..NewtonConfig::default() };
        let outcome = Newton::new(config).solve(
            &mut StepEquation { of: self, length, accepted: None },
            &mut u,
            &mut (),
        );
        self.vectors.trial = u;
        outcome
    }

    /// Returns the local error of the step that waits, from its distance to the line through the last two potentials and states
    /// (Milne's device); none before the second step.
    ///
    /// The error is the larger of two root mean squares: that of the potential over the nodes, and that of
    /// the states over the cells. Each is relative to its range; states count by their weight.
    ///
    /// # Errors
    /// Errors of the device.
    fn local_error(&mut self, v: &Buffer<f64, D>) -> Result<Option<f64>, CardiacError> {
        let Some((before, length_before)) = &self.before else { return Ok(None) };
        let device = v.device();
        let Vectors { trial, of_nodes, .. } = &mut self.vectors;
        let ratio = self.length / length_before;
        // V_{n+1} − V_n − ratio (V_n − V_{n−1}).
        device.copy(of_nodes, trial)?;
        device.axpby(of_nodes, -1.0 - ratio, v, 1.0)?;
        device.axpby(of_nodes, ratio, before, 1.0)?;
        let share = self.length / (2.0 * self.length + length_before);
        let of_potential = (device.dot(of_nodes, of_nodes)? / v.len().max(1) as f64).sqrt();
        let of_states = self.states.distance_to_line(ratio)?.unwrap_or(0.0);
        self.share = Some(share);
        Ok(Some(share * of_potential.max(STATES * self.amplitude * of_states)))
    }

    /// Takes the step that waits over into `v`.
    ///
    /// If its error was estimated, the states are corrected by the estimate. They are then of second order,
    /// with less error in slow phases. The potential is not corrected, because the extrapolation by a line
    /// overshoots at fronts.
    ///
    /// # Errors
    /// Errors of the device.
    fn take_over(&mut self, v: &mut Buffer<f64, D>) -> Result<(), CardiacError> {
        if let Some(share) = self.share.take() {
            self.states.move_to_line(share)?;
        }
        self.states.accept();
        self.known = [self.length, self.solver.smallest_ritz_value().unwrap_or(0.0)];
        let device = v.device().clone();
        if self.before.is_none() {
            self.before = Some((Buffer::zeros(&device, v.len())?, self.length));
        }
        if let Some((before, length)) = &mut self.before {
            std::mem::swap(before, v);
            std::mem::swap(v, &mut self.vectors.trial);
            *length = self.length;
        }
        Ok(())
    }

    /// Returns the norm at which a residual is accepted, from the first residual of a step, which is the
    /// change of the step. The error that it leaves is small beside the change and absolutely; the norm is
    /// not below rounding.
    fn accepted_residual(&self, first: f64) -> f64 {
        let [mass, stiffness] = self.norms;
        // The residual of an error of 1 at all nodes.
        let unit = self.storage / self.length * mass;
        let rounding = self.amplitude * (ROUNDING[0] * unit + ROUNDING[1] * stiffness);
        (self.error * unit).min(OF_CHANGE * first).max(rounding)
    }

    /// Combines the linear part and its preconditioner for a length of steps.
    fn set_length(&mut self, length: f64) -> Result<(), CardiacError> {
        if length == self.length {
            return Ok(());
        }
        let shift = self.storage / length;
        self.linear.combine_values(1.0, self.stiffness.values(), 0.0)?;
        self.linear.combine_values(shift, self.mass.values(), 1.0)?;
        let [of_mass, of_stiffness] = &self.diagonals;
        let entries = of_stiffness.iter().zip(of_mass).map(|(k, m)| k + shift * m).collect();
        let preconditioner = Diagonal::of_entries(self.vectors.trial.device(), entries)?;
        self.solver.set_operator(self.tangent.clone(), Arc::new(preconditioner), &SingleRank)?;
        self.length = length;
        Ok(())
    }

    /// Gives the solver the smallest Ritz value after the last step, for another length its bound: with A and its diagonal D of
    /// both lengths, $D'^{-1} A' \ge \min(h/h', h'/h)\, D^{-1} A$.
    fn recall(&mut self, length: f64) {
        let [last, ritz] = self.known;
        let ratio = length / last;
        self.solver.set_smallest_ritz_value(Some(ritz * ratio.min(1.0 / ratio)));
    }

    /// Returns the node with the largest residual, and its potential.
    fn worst(&self) -> Result<(usize, f64), CardiacError> {
        let (residual, u) = (self.solver.b().to_host()?, self.vectors.trial.to_host()?);
        let size = |value: f64| if value.is_nan() { f64::INFINITY } else { value.abs() };
        let largest = residual.iter().enumerate().max_by(|a, b| size(*a.1).total_cmp(&size(*b.1)));
        Ok(largest.map_or((0, f64::NAN), |(node, _)| (node, u[node])))
    }
}

/// Refuses what the scheme does not have.
///
/// # Errors
/// [`CardiacError::Setting`]; [`SolveError::Setting`] for several ranks.
pub(crate) fn check(problem: &Monodomain<'_>, config: &SolverConfig) -> Result<(), CardiacError> {
    let wrong = |field, message| Err(CardiacError::setting(field, message));
    if problem.mass == MassMatrix::Lumped {
        return wrong("mass", "the implicit scheme has the consistent mass matrix; take splitting");
    }
    if problem.gates == GatePrecision::Single {
        return wrong("gates", "the implicit scheme keeps all states with 64 bits; take splitting");
    }
    if problem.tissues.len() != 1 {
        return wrong("tissue", "the implicit scheme has one model for all cells; use splitting");
    }
    if config.ranks.n() > 1 || problem.parts.is_some() {
        let message = "several ranks advance hearts by splitting: use \"godunov\" or \"strang\", or one rank";
        return Err(SolveError::setting(&["solver".into(), "ranks".into()], message).into());
    }
    Ok(())
}

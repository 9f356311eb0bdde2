//! The implicit step of diffusion.

use std::sync::Arc;

use femtile::device::{Buffer, Cpu, Cuda};
use femtile::linalg::comm::Alone;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile::linalg::{LinearOperator, Preconditioner};
use femtile::solve::{OperatorDevice, Operators, Stages};
use femtile::{Mesh, Poisson, PreconditionerConfig, SolverConfig, Value};

use crate::CardiacError;

/// The coefficients of $c\, \partial V/\partial t = \nabla\cdot(D \nabla V)$.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DiffusionConfig<'a> {
    pub conductivity: &'a Value,
    /// The factor $c = \chi C_m$.
    pub storage: f64,
    /// The share of the new time in the flux: 1 for backward Euler, ½ for Crank–Nicolson.
    pub theta: f64,
    pub length: f64,
    /// The root mean square of the error of the potential that a solve may leave.
    pub error: f64,
}

/// One step of diffusion: solves $(\tfrac{c}{\theta h} M + K)\,\delta = -\tfrac1\theta K V$ and adds δ to V.
///
/// The solve ends when the residual is that of an error of the given size in V at all nodes,
/// $\|r\|_2 \le \epsilon\, \tfrac{c}{\theta h} \|M 1\|_2$.
pub(super) struct Diffusion<D: OperatorDevice> {
    stiffness: Arc<dyn LinearOperator<f64, D>>,
    operator: Arc<dyn LinearOperator<f64, D>>,
    preconditioner: Arc<dyn Preconditioner<f64, D>>,
    theta: f64,
    /// The largest residual that a solve may leave.
    threshold: f64,
    max_iterations: usize,
    increment: Buffer<f64, D>,
    right: Buffer<f64, D>,
    /// The format of the operator.
    pub format: String,
    pub preconditioner_name: &'static str,
}

impl<D: OperatorDevice> Diffusion<D> {
    /// Assembles the operators.
    ///
    /// # Errors
    /// Errors of the settings, the mesh and the device.
    pub fn new(
        (cpu, device, opened): (&Cpu, &D, Option<&Cuda>),
        (mesh, of): (&Mesh, &DiffusionConfig<'_>),
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<Self, CardiacError> {
        let shift = of.storage / (of.theta * of.length);
        let problem = |lambda: f64| Poisson::new(mesh).sigma(of.conductivity.clone()).lambda(lambda);
        let bare = SolverConfig { preconditioner: PreconditionerConfig::None, ..config.clone() };
        let mut make = |lambda: f64, config: &SolverConfig| {
            let problem = problem(lambda).discretize()?;
            let weak = problem.weak_form(config, opened, cpu.threads())?;
            let system = weak.system((cpu, device), stages)?;
            let names = (system.format().to_owned(), weak.config().preconditioner.name());
            Ok::<_, CardiacError>((system.into_operators(), names))
        };
        let (Operators { operator: stiffness, .. }, _) = make(0.0, &bare)?;
        let (Operators { operator, preconditioner }, (format, preconditioner_name)) = make(shift, config)?;
        let n = mesh.n_nodes();
        let (mut ones, mut right) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
        device.fill(&mut ones, 1.0)?;
        // K 1 = 0, so this is the shift times M 1.
        operator.apply(&mut right, &ones)?;
        let threshold = of.error * device.dot(&right, &right)?.sqrt();
        Ok(Self {
            stiffness,
            operator,
            preconditioner,
            theta: of.theta,
            threshold,
            max_iterations: config.max_iterations,
            increment: ones,
            right,
            format,
            preconditioner_name,
        })
    }

    /// Returns the operator $K$.
    pub fn stiffness(&self) -> &dyn LinearOperator<f64, D> {
        self.stiffness.as_ref()
    }

    /// Carries out a step; returns the iterations and whether the solve met its tolerance.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn step(&mut self, v: &mut Buffer<f64, D>) -> Result<(usize, bool), CardiacError> {
        let device = v.device().clone();
        self.stiffness.apply(&mut self.right, v)?;
        let size = device.dot(&self.right, &self.right)?.sqrt() / self.theta;
        if size == 0.0 {
            return Ok((0, true));
        }
        // δ = −w/θ with A w = K V: the sign and θ enter where δ is added.
        let tolerance = (self.threshold / size).min(0.5);
        let config =
            KrylovConfig { tolerance, max_iterations: self.max_iterations, ..KrylovConfig::default() };
        device.fill(&mut self.increment, 0.0)?;
        let (a, m) = (self.operator.as_ref(), self.preconditioner.as_ref());
        let method = ConjugateGradient::new(config);
        let outcome = method.solve(&mut self.increment, a, m, &self.right, &Alone, &mut ())?;
        device.axpby(v, -1.0 / self.theta, &self.increment, 1.0)?;
        Ok((outcome.iterations, outcome.stop == Stop::Converged))
    }
}

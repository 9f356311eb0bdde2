//! The choice of a preconditioner for a problem on its mesh.
//!
//! docs/choosing-a-solver.md derives the rules and has the measurements behind the constants.

use femtile_device::Cuda;
use femtile_device::cuda::gpus;
use femtile_fem::tensor::TensorProblem;
use femtile_fem::{Coefficient, Condition, Form};
use femtile_mesh::{CellKind, Mesh};

use crate::check::lack_of_gpus;
use crate::device::worth_a_gpu;
use crate::discretization::Discretization;
use crate::tensor::{self, Boxes};
use crate::{
    AmgOptions, DeviceChoice, GmgOptions, Method, OperatorKind, PmgOptions, PreconditionerConfig, SolveError,
    SolverConfig, SpaceConfig,
};

/// Cells whose coefficients are looked at, at most.
const SAMPLES: usize = 4096;
/// The share of the energy of the smoothest mode that reaction or exchange may add before geometric multigrid, which
/// leaves both out, is no longer the choice.
const LEFT_OUT: f64 = 3.0;
/// Largest over smallest coefficient of cells that geometric multigrid is chosen for.
const CONTRAST: f64 = 100.0;
/// Jacobi's method is chosen up to this many expected iterations, on simplices or a matrix and on cells without one:
/// multigrid takes longer to set up.
const JACOBI_ITERATIONS: f64 = 60.0;

/// A preconditioner with the reason for it.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub preconditioner: PreconditionerConfig,
    /// The boxes of geometric multigrid, which were found on the way.
    pub boxes: Option<Boxes>,
    pub reason: String,
}

/// Returns the most demanding preconditioner that may be chosen on such cells: for estimates before there is a mesh.
pub(crate) fn heaviest(config: &SolverConfig, space: &SpaceConfig, kind: CellKind) -> PreconditionerConfig {
    match only(config, space) {
        Some((preconditioner, _)) => preconditioner,
        None if !tensor::is_for(kind) || config.operator == OperatorKind::Assembled => amg(),
        None => PreconditionerConfig::Pmg(PmgOptions::default()),
    }
}

fn amg() -> PreconditionerConfig {
    PreconditionerConfig::Amg(AmgOptions::default())
}

/// Returns the preconditioner that alone goes with the method or the operator, if there is but one.
fn only(config: &SolverConfig, space: &SpaceConfig) -> Option<(PreconditionerConfig, String)> {
    if matches!(config.method, Method::MergedCg | Method::SStepCg { .. }) {
        let reason = format!("{} takes the diagonal alone", config.method.name());
        return Some((PreconditionerConfig::Jacobi, reason));
    }
    (config.operator == OperatorKind::Assembled && space.degree > 1).then(|| {
        let reason = "multigrid on matrices is for degree 1".into();
        (PreconditionerConfig::Jacobi, reason)
    })
}

/// Chooses for a problem; `problem` is that of the first component on quadrilaterals and hexahedra.
///
/// # Errors
/// What the data of the problem are to blame for.
pub(crate) fn choose(
    config: &SolverConfig,
    discretization: &Discretization<'_>,
    problem: Option<&TensorProblem<'_>>,
    opened: Option<&Cuda>,
    n_threads: usize,
) -> Result<Chosen, SolveError> {
    let space = &discretization.config;
    if let Some((preconditioner, reason)) = only(config, space) {
        return Ok(Chosen { preconditioner, boxes: None, reason });
    }
    let form = discretization.form(0);
    let data = Data::of(&form);
    let expected = data.jacobi_iterations(space.degree, config.tolerance);
    if expected <= JACOBI_ITERATIONS {
        let reason = format!("about {expected:.0} iterations are expected with the diagonal");
        return Ok(Chosen { preconditioner: PreconditionerConfig::Jacobi, boxes: None, reason });
    }
    let (Some(problem), false) = (problem, config.operator == OperatorKind::Assembled) else {
        return Ok(Chosen { preconditioner: amg(), boxes: None, reason: "for linear elements".into() });
    };
    let n = discretization.n_dofs() * space.components;
    let has_gpu = opened.is_some()
        || config.device == DeviceChoice::Auto && n >= worth_a_gpu(n_threads) && gpus().is_ok();
    let why_not = match geometric(config, &data, problem, has_gpu.then_some(space)) {
        Ok(boxes) => {
            let preconditioner = PreconditionerConfig::Gmg(GmgOptions::default());
            let reason = "the cells stand in rows like those of a box".into();
            return Ok(Chosen { preconditioner, boxes: Some(boxes), reason });
        }
        Err(why_not) => format!("geometric multigrid does not serve: {why_not}"),
    };
    let is_plain = space.degree == 1 && space.components == 1 && config.operator == OperatorKind::Auto;
    let preconditioner = if is_plain { amg() } else { PreconditionerConfig::Pmg(PmgOptions::default()) };
    Ok(Chosen { preconditioner, boxes: None, reason: why_not })
}

/// Returns the boxes of geometric multigrid, or why it is not the choice.
fn geometric(
    config: &SolverConfig,
    data: &Data,
    problem: &TensorProblem<'_>,
    on_gpu: Option<&SpaceConfig>,
) -> Result<Boxes, String> {
    data.allow_geometric()?;
    let options = GmgOptions::default();
    let boxes = Boxes::of(&options, problem).map_err(|error| match error {
        SolveError::Setting { message, .. } => message,
        other => other.to_string(),
    })?;
    let Some(space) = on_gpu else { return Ok(boxes) };
    let with_gmg = SolverConfig { preconditioner: PreconditionerConfig::Gmg(options), ..config.clone() };
    let lack = lack_of_gpus(&with_gmg, space, problem.space().mesh().kind).or_else(|| boxes.lack_of_gpus());
    match lack {
        Some(lack) => Err(lack),
        None => Ok(boxes),
    }
}

/// Sizes of the mesh and its coefficients, from a sample of the cells.
#[derive(Debug, Clone, Copy)]
struct Data {
    dimension: usize,
    n_cells: usize,
    is_simplicial: bool,
    /// The longest extent of the mesh.
    length: f64,
    /// Smallest and largest eigenvalue of σ, as far as the diagonal and the absolute sums of rows tell.
    sigma: [f64; 2],
    /// Smallest and largest ratio of an entry of the diagonal of σ to its mean over the cells, within a cell.
    is_oblique: bool,
    lambda: [f64; 2],
    /// The largest coefficient of exchange on the boundary.
    exchange: f64,
}

impl Data {
    fn of(form: &Form<'_>) -> Self {
        let mesh = form.mesh;
        let d = mesh.dimension();
        let (mut sigma, mut lambda) = ([f64::INFINITY, 0.0_f64], [f64::INFINITY, 0.0_f64]);
        let mut is_oblique = false;
        let step = mesh.n_cells().div_ceil(SAMPLES).max(1);
        for cell in (0..mesh.n_cells()).step_by(step) {
            let (tag, middle) = (mesh.cell_tags.get(cell).copied().unwrap_or(0), middle(mesh, cell));
            let tensor = form.sigma.tensor_at(cell, tag, middle);
            let trace = (0..d).map(|i| tensor[i][i]).sum::<f64>() / d as f64;
            sigma = [sigma[0].min(trace), sigma[1].max(trace)];
            let aside = (0..d).flat_map(|i| (0..d).map(move |j| (i, j))).filter(|(i, j)| i != j);
            is_oblique |= aside.map(|(i, j)| tensor[i][j].abs()).fold(0.0, f64::max) > 0.1 * trace;
            let value = form.lambda.scalar_at(cell, tag, middle);
            lambda = [lambda[0].min(value), lambda[1].max(value)];
        }
        let coefficient = |condition: &Condition| match condition {
            Condition::Robin { coefficient: Coefficient::Constant(value), .. } => *value,
            // Unknown without evaluation.
            Condition::Robin { .. } => f64::INFINITY,
            _ => 0.0,
        };
        let exchange = form.conditions.iter().map(|given| coefficient(&given.condition)).fold(0.0, f64::max);
        let n_cells = mesh.n_cells();
        let is_simplicial = !tensor::is_for(mesh.kind);
        Self {
            dimension: d,
            n_cells,
            is_simplicial,
            length: extent(mesh),
            sigma,
            is_oblique,
            lambda,
            exchange,
        }
    }

    /// Estimates the iterations of conjugate gradients with the diagonal, from below.
    ///
    /// With N cells along an axis, $\kappa \approx (4 p^4 N^2 \sigma + L^2 \lambda) / (\pi^2 \sigma + L^2 \lambda)$ and
    /// $k \approx \tfrac{1}{2} \sqrt{\kappa} \ln(2 / \varepsilon)$.
    fn jacobi_iterations(&self, degree: usize, tolerance: f64) -> f64 {
        let per_box = if self.is_simplicial { [1.0, 1.0, 2.0, 6.0][self.dimension] } else { 1.0 };
        let along = (self.n_cells as f64 / per_box).powf(1.0 / self.dimension as f64);
        let reaction = self.length * self.length * self.lambda[0] / self.sigma[1];
        let steep = 4.0 * (degree as f64).powi(4) * along * along;
        let kappa = (steep + reaction) / (std::f64::consts::PI.powi(2) + reaction);
        0.5 * kappa.sqrt() * (2.0 / tolerance).ln()
    }

    /// Says why geometric multigrid, which knows −∇·(σ̄∇u) alone, is not the choice.
    fn allow_geometric(&self) -> Result<(), String> {
        let smoothest = std::f64::consts::PI.powi(2) * self.sigma[0];
        if self.lambda[1] * self.length * self.length > LEFT_OUT * smoothest {
            return Err("it leaves out lambda, which is large here".into());
        }
        if self.exchange * self.length > LEFT_OUT * smoothest {
            return Err("it leaves out the exchange on the boundary, which is large or varies here".into());
        }
        if self.sigma[1] > CONTRAST * self.sigma[0] {
            return Err(format!("sigma varies by more than {CONTRAST}"));
        }
        if self.is_oblique {
            return Err("the axes of sigma are not those of the box".into());
        }
        Ok(())
    }
}

fn middle(mesh: &Mesh, cell: usize) -> [f64; 3] {
    let nodes = mesh.cell(cell);
    let sum = |axis: usize| nodes.iter().map(|&node| mesh.points[node as usize][axis]).sum::<f64>();
    [0, 1, 2].map(|axis| sum(axis) / nodes.len() as f64)
}

fn extent(mesh: &Mesh) -> f64 {
    let along = |axis: usize| {
        let values = mesh.points.iter().map(|point| point[axis]);
        let (least, most) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), x| (least.min(x), most.max(x)));
        most - least
    };
    (0..mesh.dimension()).map(along).fold(0.0, f64::max)
}

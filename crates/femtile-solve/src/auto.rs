//! The choice of a preconditioner for a problem on its mesh.
//!
//! docs/choosing-a-solver.md derives the rules and has the measurements behind the constants.

use femtile_device::cuda::gpus;
use femtile_device::{Cpu, parallel};
use femtile_fem::{Coefficient, Form};
use femtile_linalg::LinalgError;
use femtile_mesh::Mesh;

use crate::boundary_areas::BoundaryAreas;
use crate::device::worth_a_gpu;
use crate::discretization::Discretization;
use crate::method::SolveDevice;
use crate::tensor::{self, Boxes};
use crate::{
    AmgOptions, DeviceChoice, GmgOptions, Method, OperatorKind, PmgOptions, PreconditionerConfig, SolveError,
    SolverConfig, SpaceConfig,
};

/// The most cells whose coefficients are sampled.
const SAMPLES: usize = 4096;
/// Points that a thread visits at least.
const PIECE: usize = 1 << 14;
/// The largest share of the energy of the smoothest mode from reaction or exchange with which geometric multigrid, which
/// neglects both, is chosen.
const LEFT_OUT: f64 = 3.0;
/// The largest ratio of coefficients of cells with which geometric multigrid is chosen.
const CONTRAST: f64 = 100.0;
/// Expected iterations with the diagonal from which multigrid is faster, its setup included: on CPUs, on GPUs.
const WORTH_AMG: [f64; 2] = [100.0, 170.0];
/// For elements of degree 1 on quadrilaterals and hexahedra, whose iterations cost more.
const WORTH_AMG_CELLS: [f64; 2] = [45.0, 450.0];
const WORTH_GMG: [f64; 2] = [50.0, 150.0];
/// For p-multigrid, most of which the host sets up, for GPUs too.
const WORTH_PMG: [f64; 2] = [60.0, 2000.0];
/// For p-multigrid with elements of degree 5 and more.
const WORTH_GMG_HIGH: [f64; 2] = [150.0, 300.0];
const WORTH_PMG_HIGH: [f64; 2] = [60.0, 1000.0];
/// Factor of both if σ jumps within cells, as p-multigrid then takes up to five times its iterations.
const JUMPS_WITHIN_CELLS: f64 = 4.0;

/// These grow by the factor 1 + `SMALL` / n if n unknowns are few, on CPUs for each of up to [`GAINING`]
/// threads, on GPUs: much of the setup of multigrid takes as long on many threads as on one, and all launches
/// of a cycle on coarse levels take as long.
const SMALL: [f64; 2] = [3000.0, 400_000.0];
/// Threads from which so few unknowns gain in either solve.
const GAINING: usize = 2;
/// On CPUs for elements of degree 1 on quadrilaterals and hexahedra.
const SMALL_CELLS: f64 = 750.0;

/// Both numbers for multigrid whose setup serves many solves: a solve by some eight cycles moves as much memory as 40
/// iterations with the diagonal, and launches 15 times as many kernels an iteration.
const WORTH_KEPT: [f64; 2] = [45.0, 40.0];
const SMALL_KEPT: [f64; 2] = [3000.0, 100_000.0];

/// Solves with one matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Solves {
    /// One, which has to make up for all setup.
    One,
    /// So many that the setup does not count.
    Many,
}

/// A chosen preconditioner and the reason.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub preconditioner: PreconditionerConfig,
    /// The boxes of geometric multigrid, found during the choice.
    pub boxes: Option<Boxes>,
    pub reason: String,
    /// For the diagonal if multigrid could replace it: iterations after which it has cost as much as a solve
    /// by multigrid and twice what was expected.
    pub patience: Option<usize>,
}

impl Chosen {
    /// A preconditioner that neither needs boxes nor is given up.
    pub fn of(preconditioner: PreconditionerConfig, reason: impl Into<String>) -> Self {
        Self { preconditioner, boxes: None, reason: reason.into(), patience: None }
    }
}

/// What a choice is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances {
    /// Whether a GPU is open, or about to be.
    pub is_open: bool,
    /// Threads of the processor.
    pub n_threads: usize,
    pub solves: Solves,
    /// Whether the diagonal was tried and has cost as much as a solve by multigrid.
    pub is_diagonal_slow: bool,
}

impl Circumstances {
    /// Those in which nothing has been tried yet.
    pub fn new(is_open: bool, n_threads: usize, solves: Solves) -> Self {
        Self { is_open, n_threads, solves, is_diagonal_slow: false }
    }

    /// Those on a device that is open.
    pub fn on<D: SolveDevice>(cpu: &Cpu, _: &D, solves: Solves) -> Self {
        Self::new(D::IS_GPU, cpu.threads(), solves)
    }
}

/// Algebraic multigrid by default.
pub(crate) fn amg() -> PreconditionerConfig {
    PreconditionerConfig::Amg(AmgOptions::default())
}

/// Returns the only preconditioner that the method or the operator supports, if there is only one.
pub(crate) fn only(config: &SolverConfig, space: &SpaceConfig) -> Option<(PreconditionerConfig, String)> {
    if matches!(config.method, Method::MergedCg | Method::SStepCg { .. }) {
        let reason = format!("{} takes the diagonal alone", config.method.name());
        return Some((PreconditionerConfig::Jacobi, reason));
    }
    (config.operator == OperatorKind::Assembled && space.degree > 1).then(|| {
        let reason = "multigrid on matrices is for degree 1".into();
        (PreconditionerConfig::Jacobi, reason)
    })
}

/// Finds the boxes of geometric multigrid for quadrilaterals and hexahedra, or none if the caller has them.
pub(crate) type Boxed<'a> = dyn Fn(&GmgOptions) -> Result<Option<Boxes>, SolveError> + 'a;

/// Chooses a preconditioner; without `boxed` none that needs boxes.
///
/// # Errors
/// Errors in the data of the problem.
pub(crate) fn choose(
    config: &SolverConfig,
    discretization: &Discretization<'_>,
    boxed: Option<&Boxed<'_>>,
    circumstances: Circumstances,
) -> Result<Chosen, SolveError> {
    let Circumstances { is_open, n_threads, solves, is_diagonal_slow } = circumstances;
    let space = &discretization.config;
    if discretization.sigma.as_constant() == Some(0.0) {
        let reason = "sigma is 0, and a mass matrix over its diagonal is well conditioned";
        return Ok(Chosen::of(PreconditionerConfig::Jacobi, reason));
    }
    if let Some((preconditioner, reason)) = only(config, space) {
        return Ok(Chosen::of(preconditioner, reason));
    }
    let data = Data::of(discretization)?;
    let expected = match is_diagonal_slow {
        true => f64::INFINITY,
        false => data.jacobi_iterations(space.degree, config.tolerance),
    };
    let n = discretization.n_global_dofs() * space.components;
    let has_gpu =
        is_open || config.device == DeviceChoice::Auto && n >= worth_a_gpu(n_threads) && gpus().is_ok();
    let is_of_cells = discretization.space().is_some() && space.degree == 1;
    let small = match solves {
        Solves::One if is_of_cells => [SMALL_CELLS, SMALL[1]],
        Solves::One => SMALL,
        Solves::Many => SMALL_KEPT,
    };
    let serial = if has_gpu { small[1] } else { small[0] * n_threads.min(GAINING) as f64 };
    let slack = 1.0 + serial / n.max(1) as f64;
    // The diagonal, if its expected iterations cost no more than multigrid.
    let jacobi = |worth: [f64; 2]| {
        let worth = if solves == Solves::One { worth } else { WORTH_KEPT };
        let most = slack * worth[usize::from(has_gpu)];
        (expected <= most).then(|| Chosen {
            patience: Some(most.max(2.0 * expected).ceil() as usize),
            ..Chosen::of(
                PreconditionerConfig::Jacobi,
                format!("about {expected:.0} iterations are expected with the diagonal"),
            )
        })
    };
    let is_high = space.degree > 4;
    let worth_amg = if is_of_cells { WORTH_AMG_CELLS } else { WORTH_AMG };
    let amg_or_jacobi = |reason: String| jacobi(worth_amg).unwrap_or_else(|| Chosen::of(amg(), reason));
    if discretization.space().is_none() || config.operator == OperatorKind::Assembled {
        return Ok(amg_or_jacobi("for linear elements".into()));
    }
    if let Some(jacobi) = jacobi(if is_high { WORTH_GMG_HIGH } else { WORTH_GMG }) {
        return Ok(jacobi);
    }
    let geometric = |boxed| match is_high && !has_gpu {
        true => Err("p-multigrid is faster for degree 5 and more on processors".into()),
        false => geometric(&data, boxed, has_gpu),
    };
    let why_not = match boxed.map(geometric) {
        Some(Ok(boxes)) => {
            let preconditioner = PreconditionerConfig::Gmg(GmgOptions::default());
            let reason = "the cells stand in rows like those of a box";
            return Ok(Chosen { boxes, ..Chosen::of(preconditioner, reason) });
        }
        Some(Err(why_not)) => format!("geometric multigrid does not serve: {why_not}"),
        None => "there is no geometric multigrid here".into(),
    };
    if space.degree == 1
        && space.components == 1
        && config.operator == OperatorKind::Auto
        && config.metric.is_none()
    {
        return Ok(amg_or_jacobi(why_not));
    }
    let worth_pmg = if is_high { WORTH_PMG_HIGH } else { WORTH_PMG };
    let factor = if data.jumps_within_cells(&discretization.sigma) { JUMPS_WITHIN_CELLS } else { 1.0 };
    if let Some(jacobi) = jacobi(worth_pmg.map(|worth| factor * worth)) {
        return Ok(jacobi);
    }
    Ok(Chosen::of(PreconditionerConfig::Pmg(PmgOptions::default()), why_not))
}

/// Returns the boxes of geometric multigrid, or why it is not the choice.
fn geometric(data: &Data, boxed: &Boxed<'_>, on_gpu: bool) -> Result<Option<Boxes>, String> {
    data.allow_geometric()?;
    let boxes = boxed(&GmgOptions::default()).map_err(|error| match error {
        SolveError::Setting { message, .. } => message,
        other => other.to_string(),
    })?;
    match boxes.as_ref().filter(|_| on_gpu).and_then(Boxes::lack_of_gpus) {
        Some(lack) => Err(lack),
        None => Ok(boxes),
    }
}

/// Sizes of the mesh and its coefficients, from a sample of the cells.
#[derive(Debug, Clone, Copy)]
struct Data {
    /// The length of an edge of the cells of a lattice, of which six tetrahedra or two triangles fill one.
    width: f64,
    /// The volume of the mesh.
    volume: f64,
    measured: Measured,
}

/// Sizes and coefficients of a mesh, or of the part of a rank.
#[derive(Debug, Clone, Copy)]
struct Measured {
    /// The mean volume of a cell.
    mean: f64,
    /// The facets that hold u.
    held: BoundaryAreas,
    /// The longest extent of the mesh.
    length: f64,
    /// Smallest and largest mean of the diagonal of σ.
    sigma: [f64; 2],
    /// Whether σ has off-diagonal entries.
    is_oblique: bool,
    /// Smallest and largest λ.
    lambda: [f64; 2],
}

impl Measured {
    /// Measures a problem, with the same result on all ranks. Collective if the mesh is distributed.
    fn of_all(problem: &Discretization<'_>) -> Result<Self, LinalgError> {
        let form = problem.form(0);
        let Some(divided) = &problem.divided else { return Ok(Self::of(&form, |_| true)) };
        let Self { mean, held, length: _, sigma, is_oblique, lambda } =
            Self::of(&form, |facet| divided.has_facet(facet));
        let own = [mean, sigma[0], sigma[1], f64::from(u8::from(is_oblique)), lambda[0], lambda[1]];
        let all = divided.comm.all_gather(&own)?;
        let each = |which: usize| all.iter().map(move |numbers| numbers[which]);
        let least = |which: usize| each(which).fold(f64::INFINITY, f64::min);
        let most = |which: usize| each(which).fold(0.0, f64::max);
        let [lower, upper] = divided.mesh.extents;
        Ok(Self {
            mean: each(0).sum::<f64>() / all.len() as f64,
            held: held.of_all(&divided.comm)?,
            length: (0..form.mesh.dimension()).map(|axis| upper[axis] - lower[axis]).fold(0.0, f64::max),
            sigma: [least(1), most(2)],
            is_oblique: most(3) > 0.0,
            lambda: [least(4), most(5)],
        })
    }

    /// Measures a form, with the facets that count.
    fn of(form: &Form<'_>, counts: impl Fn(u32) -> bool) -> Self {
        let mesh = form.mesh;
        let d = mesh.dimension();
        let (mut volume, mut n_samples) = (0.0, 0_usize);
        let (mut sigma, mut lambda) = ([f64::INFINITY, 0.0_f64], [f64::INFINITY, 0.0_f64]);
        let mut is_oblique = false;
        let step = mesh.n_cells().div_ceil(SAMPLES).max(1);
        for cell in (0..mesh.n_cells()).step_by(step) {
            let (tag, middle) = (mesh.cell_tags.get(cell).copied().unwrap_or(0), mesh.middle(cell));
            let tensor = form.sigma.tensor_at(cell, tag, middle);
            let trace = (0..d).map(|i| tensor[i][i]).sum::<f64>() / d as f64;
            sigma = [sigma[0].min(trace), sigma[1].max(trace)];
            let aside = (0..d).flat_map(|i| (0..d).map(move |j| (i, j))).filter(|(i, j)| i != j);
            is_oblique |= aside.map(|(i, j)| tensor[i][j].abs()).fold(0.0, f64::max) > 0.1 * trace;
            volume += mesh.volume_by_corners(cell);
            n_samples += 1;
            let value = form.lambda.scalar_at(cell, tag, middle);
            lambda = [lambda[0].min(value), lambda[1].max(value)];
        }
        let mean = volume / n_samples.max(1) as f64;
        Self { mean, held: BoundaryAreas::of(form, counts), length: extent(mesh), sigma, is_oblique, lambda }
    }
}

impl Data {
    /// Those of a problem. Collective if the mesh is distributed.
    fn of(problem: &Discretization<'_>) -> Result<Self, LinalgError> {
        let measured = Measured::of_all(problem)?;
        let (mesh, d) = (problem.mesh, problem.mesh.dimension());
        let per_box = if tensor::is_for(mesh.kind) { 1.0 } else { [1.0, 1.0, 2.0, 6.0][d] };
        let n_cells =
            problem.divided.as_ref().map_or(mesh.n_cells() as f64, |divided| divided.mesh.counts.n_cells);
        let width = (per_box * measured.mean).powf(1.0 / d as f64);
        Ok(Self { width, volume: measured.mean * n_cells, measured })
    }

    /// Estimates the iterations of conjugate gradients with the diagonal, to about a factor of two.
    ///
    /// Elements of degree p and width h have modes up to about $4 m p^3 / h^2$ relative to the diagonal that vary along m
    /// axes, and the smoothest one that the boundary conditions leave has [`BoundaryAreas::smoothest`]; λ/σ adds to both.
    /// $k \approx 0.25 \sqrt{\kappa} \ln(2 / \varepsilon)$ is half of the bound by the condition number, as measured.
    fn jacobi_iterations(&self, degree: usize, tolerance: f64) -> f64 {
        let Measured { sigma, lambda, held, length, .. } = self.measured;
        let reaction = lambda[0].max(0.0) / sigma[1];
        let (smoothest, axes) = held.smoothest(self.volume, length, sigma[1]);
        let steepest = 4.0 * axes * (degree as f64).powi(3) / self.width.powi(2) + reaction;
        0.25 * (steepest / (smoothest + reaction)).sqrt() * (2.0 / tolerance).ln()
    }

    /// Returns whether σ varies strongly, and not only from cell to cell.
    fn jumps_within_cells(&self, sigma: &Coefficient) -> bool {
        let [least, most] = self.measured.sigma;
        most > CONTRAST * least && !sigma.is_constant_by_cell()
    }

    /// Returns the reason why geometric multigrid, an approximation by −∇·(σ̄∇u), is not chosen.
    fn allow_geometric(&self) -> Result<(), String> {
        let Measured { length, sigma, is_oblique, lambda, held, .. } = self.measured;
        let smoothest = std::f64::consts::PI.powi(2) * sigma[0];
        if lambda[1] * length * length > LEFT_OUT * smoothest {
            return Err("it leaves out lambda, which is large here".into());
        }
        if held.largest_exchange * length > LEFT_OUT * smoothest {
            return Err("it leaves out the exchange on the boundary, which is large here".into());
        }
        if sigma[1] > CONTRAST * sigma[0] {
            return Err(format!("sigma varies by more than {CONTRAST}"));
        }
        if is_oblique {
            return Err("the axes of sigma are not those of the box".into());
        }
        Ok(())
    }
}

/// Returns the longest extent of a mesh along the axes.
fn extent(mesh: &Mesh) -> f64 {
    let nothing = [(f64::INFINITY, f64::NEG_INFINITY); 3];
    let joined = |all: [(f64, f64); 3], own: [(f64, f64); 3]| {
        std::array::from_fn(|axis| (all[axis].0.min(own[axis].0), all[axis].1.max(own[axis].1)))
    };
    let n = mesh.points.len();
    let pieces = parallel::map(n.div_ceil(PIECE), 1, |piece| {
        let points = &mesh.points[PIECE * piece..n.min(PIECE * (piece + 1))];
        points.iter().map(|point| point.map(|x| (x, x))).fold(nothing, joined)
    });
    let along = pieces.into_iter().fold(nothing, joined);
    along[..mesh.dimension()].iter().map(|(least, most)| most - least).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{
        BallConfig, BoxConfig, BoxSplit, HexahedralBallConfig, ball, box_mesh, hexahedral_ball,
    };

    use super::*;
    use crate::Poisson;

    /// Returns the name of the choice on a CPU and its reason.
    fn chosen(problem: &Poisson<'_>, config: &SolverConfig) -> (&'static str, String) {
        let config = SolverConfig { device: DeviceChoice::Cpu, ..config.clone() };
        let discretization = problem.discretize().unwrap();
        let weak = discretization.weak_form(&config, None, 1).unwrap();
        (weak.config().preconditioner.name(), weak.preconditioner_reason().into())
    }

    fn by_default(problem: &Poisson<'_>) -> &'static str {
        chosen(problem, &SolverConfig::default()).0
    }

    fn cubes(n: usize, split: BoxSplit) -> Mesh {
        box_mesh(&BoxConfig { cells: [n; 3], split, ..BoxConfig::default() }).unwrap()
    }

    #[test]
    fn multigrid_is_chosen_by_cells_and_degree() {
        let (tetrahedra, hexahedra) = (cubes(20, BoxSplit::Kuhn), cubes(16, BoxSplit::Hexahedron));
        let round =
            hexahedral_ball(&HexahedralBallConfig { cells: 8, layers: 4, ..Default::default() }).unwrap();
        let held = |mesh| Poisson::new(mesh).source(1.0);
        assert_eq!(by_default(&held(&tetrahedra).dirichlet("xmin", 0.0).unwrap()), "amg");
        for degree in [1, 3] {
            let problem = held(&hexahedra).degree(degree).dirichlet("xmin", 0.0).unwrap();
            assert_eq!(by_default(&problem), "gmg");
        }
        let problem = held(&hexahedra).degree(6).dirichlet("xmin", 0.0).unwrap();
        assert_eq!(by_default(&problem), "pmg");
        let problem = held(&round).degree(4).dirichlet("z < 0", 0.0).unwrap();
        let (name, reason) = chosen(&problem, &SolverConfig::default());
        assert_eq!(name, "pmg");
        assert!(reason.contains("in rows"), "{reason}");
    }

    #[test]
    fn the_diagonal_is_chosen_where_few_iterations_are_expected() {
        let small = ball(&BallConfig { radius: 1.0, h: 0.4 }).unwrap();
        assert_eq!(by_default(&Poisson::new(&small).source(1.0).dirichlet("all", 0.0).unwrap()), "jacobi");
        let fine = cubes(20, BoxSplit::Kuhn);
        assert_eq!(by_default(&Poisson::new(&fine).source(1.0).lambda(1e6)), "jacobi");
    }

    #[test]
    fn geometric_multigrid_gives_way_to_what_it_leaves_out() {
        let mesh = cubes(32, BoxSplit::Hexahedron);
        let problem = || Poisson::new(&mesh).source(1.0).degree(3).dirichlet("xmin", 0.0).unwrap();
        assert_eq!(by_default(&problem()), "gmg");
        for (changed, word) in [
            (problem().lambda("if(x < 0.5, 0, 1000)"), "lambda"),
            (problem().sigma("if(x < 0.5, 1, 1000)"), "sigma varies"),
            (problem().robin("xmax", 100.0, 1.0).unwrap(), "exchange"),
            (problem().dirichlet("x > 0.3", 1.0).unwrap(), "on a part of the side"),
        ] {
            let (name, reason) = chosen(&changed, &SolverConfig::default());
            assert!(name != "gmg" && reason.contains(word), "{word}: {name}, {reason}");
        }
        let odd = cubes(70, BoxSplit::Hexahedron);
        let (name, reason) = chosen(
            &Poisson::new(&odd).degree(2).source(1.0).dirichlet("xmin", 0.0).unwrap(),
            &SolverConfig::default(),
        );
        assert!(name == "pmg" && reason.contains("joins cells in pairs"), "{name}, {reason}");
    }

    #[test]
    fn methods_and_operators_that_take_the_diagonal_alone_get_it() {
        let mesh = cubes(20, BoxSplit::Hexahedron);
        let problem = Poisson::new(&mesh).degree(2).source(1.0).dirichlet("xmin", 0.0).unwrap();
        let merged = SolverConfig { method: Method::MergedCg, ..SolverConfig::default() };
        let assembled = SolverConfig { operator: OperatorKind::Assembled, ..SolverConfig::default() };
        for config in [merged, assembled] {
            assert_eq!(chosen(&problem, &config).0, "jacobi");
        }
    }

    #[test]
    fn a_body_that_exchanges_little_takes_multigrid() {
        let mesh = cubes(20, BoxSplit::Kuhn);
        let cooled = |h: f64| Poisson::new(&mesh).source(1.0).robin("all", h, 0.0).unwrap();
        assert_eq!(by_default(&cooled(1e-3)), "amg");
        assert_eq!(by_default(&cooled(1e3)), by_default(&Poisson::new(&mesh).dirichlet("all", 0.0).unwrap()));
    }

    #[test]
    fn multigrid_takes_over_from_a_diagonal_that_is_slower_than_expected() {
        let mesh = cubes(12, BoxSplit::Kuhn);
        let problem = Poisson::new(&mesh)
            .sigma(Coefficient::Tensor([[1.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 1e5]]))
            .source("1 + sin(3*x + 4*y + 5*z)")
            .dirichlet("xmin", 0.0)
            .unwrap();
        let config = SolverConfig { device: DeviceChoice::Cpu, threads: 1, ..SolverConfig::default() };
        let by_diagonal = SolverConfig { preconditioner: PreconditionerConfig::Jacobi, ..config.clone() };
        let expected = problem.solve(&by_diagonal).unwrap();
        let found = problem.solve(&config).unwrap();
        assert_eq!(found.preconditioner(), "amg");
        assert!(found.has_converged());
        let outcome = found.outcome();
        assert_eq!(outcome.residuals.len(), outcome.iterations + 1);
        assert!(outcome.iterations < expected.outcome().iterations);
        let said = found.warnings().join("\n");
        assert!(said.contains("iterations are expected") && said.contains("\"amg\""), "{said}");
        let scale = expected.values().iter().fold(0.0, |most: f64, u| most.max(u.abs()));
        for (a, b) in found.values().iter().zip(expected.values()) {
            assert!((a - b).abs() < 1e-7 * scale, "{a} {b}");
        }
    }
}

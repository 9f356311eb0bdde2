//! Programs of GPUs that a solve will probably need, to be compiled while the mesh is read.

use femtile_device::Scalar;
use femtile_device::cuda::Specialisation;
use femtile_fem::Coefficient;
use femtile_fem::assembly::cuda_programs;
use femtile_matrix_free::{
    CellField, CellRule, MetricEvaluation, Terms, diagonal_programs, operator_programs, transfer_program,
};
use femtile_mesh::{CellKind, Mesh};
use femtile_multigrid::{BoxGrid, multigrid_programs};

use crate::check::lack_of_gpus;
use crate::coefficient::coefficient;
use crate::{
    GmgOptions, LevelPrecision, Method, PreconditionerConfig, SolverConfig, SpaceConfig, Value, auto, tensor,
};

/// Of every solve.
const COMMON: [&str; 6] = [
    "vector FEMTILE_T=double",
    "convert FEMTILE_T=float FEMTILE_FROM=double",
    "convert FEMTILE_T=double FEMTILE_FROM=float",
    "cg FEMTILE_T=double FEMTILE_DIAGONAL=1 FEMTILE_FLEXIBLE=0",
    "cg FEMTILE_T=double FEMTILE_DIAGONAL=0 FEMTILE_FLEXIBLE=0",
    "vector FEMTILE_T=float",
];

/// Of products with a matrix.
const MATRIX: [&str; 1] = ["csr FEMTILE_T=double FEMTILE_OFFSET=unsigned int"];

/// Of assembly on triangles and tetrahedra.
const ASSEMBLY: [&str; 1] = ["scan FEMTILE_T=unsigned int FEMTILE_TILE=1024"];

/// Of algebraic multigrid, in the order in which it needs them.
const AMG: [&str; 18] = [
    "copies FEMTILE_T=float FEMTILE_FROM=double",
    "copies FEMTILE_T=float FEMTILE_FROM=float",
    "amg_matrix FEMTILE_T=float FEMTILE_LANES=4",
    "amg_evolution FEMTILE_T=float FEMTILE_LANES=32",
    "amg_aggregate FEMTILE_T=float FEMTILE_LANES=4",
    "scan FEMTILE_T=unsigned int FEMTILE_TILE=1024",
    "amg_prolong FEMTILE_T=float FEMTILE_LANES=32",
    "amg_product FEMTILE_T=float FEMTILE_LANES=4",
    "amg_product FEMTILE_T=float FEMTILE_LANES=32",
    "amg_matrix FEMTILE_T=float FEMTILE_LANES=32",
    "amg_aggregate FEMTILE_T=float FEMTILE_LANES=32",
    "ell_warp_slices FEMTILE_T=unsigned int",
    "polynomial FEMTILE_T=float",
    "csr FEMTILE_T=float FEMTILE_OFFSET=unsigned int",
    "convert FEMTILE_T=float FEMTILE_FROM=float",
    "amg_correct FEMTILE_T=float FEMTILE_LANES=4",
    "amg_tail FEMTILE_T=float FEMTILE_LANES=8 FEMTILE_LEVELS=1 FEMTILE_DEGREE=2",
    "amg_tail FEMTILE_T=float FEMTILE_LANES=8 FEMTILE_LEVELS=2 FEMTILE_DEGREE=2",
];

/// Of pipelined conjugate gradients without a preconditioner, with a diagonal and with any other.
const PIPELINED: [&str; 3] = [
    "pipelined_cg FEMTILE_T=double FEMTILE_KIND=0",
    "pipelined_cg FEMTILE_T=double FEMTILE_KIND=1",
    "pipelined_cg FEMTILE_T=double FEMTILE_KIND=2",
];

/// Of s-step conjugate gradients, for few steps and for many.
const S_STEP: [&str; 2] =
    ["s_step_cg FEMTILE_T=double FEMTILE_STEPS=3", "s_step_cg FEMTILE_T=double FEMTILE_STEPS=6"];

/// The part of a problem that programs of a GPU depend on, known before its mesh.
#[derive(Debug, Clone)]
pub struct Outline {
    kind: CellKind,
    space: SpaceConfig,
    /// σ, λ and f; none if they depend on tags, on fields of the mesh, or on u.
    coefficients: Option<[Coefficient; 3]>,
    cells: Cells,
}

/// Shapes of cells.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// A rectangle or box of rectangular cells, with their widths along each axis.
    Box(Vec<Vec<f64>>),
    /// Cells with straight edges.
    Straight,
    /// Curved cells.
    Curved,
}

impl Outline {
    /// Returns the outline of −∇·(σ∇u) + λu = f with these values of σ, λ and f.
    pub fn new(kind: CellKind, cells: Cells, space: SpaceConfig, values: [&Value; 3]) -> Self {
        // What depends on the mesh is an error on a cell without tags and fields.
        let n = kind.n_nodes();
        let cell = Mesh::new(vec![[0.0; 3]; n], kind, (0..n as u32).collect());
        let resolve = |value: &Value| coefficient(cell.as_ref().ok()?, value, &[]).ok();
        let [sigma, lambda, source] = values.map(resolve);
        // No program of quadrilaterals and hexahedra depends on the source, of which there is one per component.
        let source = if tensor::is_for(kind) { Some(Coefficient::Constant(0.0)) } else { source };
        let coefficients =
            sigma.zip(lambda).zip(source).map(|((sigma, lambda), source)| [sigma, lambda, source]);
        Self { kind, space, coefficients, cells }
    }

    /// Returns the evaluation of metrics that a GPU will choose.
    fn metric(&self, terms: Terms<'_>) -> MetricEvaluation {
        terms.metric_on_gpus(match self.cells {
            Cells::Box(_) => MetricEvaluation::Constant,
            Cells::Straight => MetricEvaluation::Computed,
            Cells::Curved => MetricEvaluation::Stored,
        })
    }

    /// Returns the programs of operators without a matrix, and of multigrid on them.
    fn without_matrix(&self, config: &SolverConfig) -> Vec<Specialisation> {
        let Some([sigma, lambda, _]) = &self.coefficients else { return Vec::new() };
        let SpaceConfig { degree, components, quadrature } = self.space;
        let field = CellField { dimension: self.kind.dimension(), degree, components };
        let rule = tensor::rule(quadrature);
        let unless_zero = |of| Some(of).filter(|of: &&Coefficient| of.as_constant() != Some(0.0));
        let terms = Terms { sigma: unless_zero(sigma), lambda: unless_zero(lambda) };
        let cheapest = self.metric(terms);
        let finest = || operator_programs::<f64>(field, terms, rule, config.metric.unwrap_or(cheapest));
        match (&config.preconditioner, &self.cells) {
            (PreconditionerConfig::Gmg(options), Cells::Box(widths)) => {
                [self.of_grids(options, widths), finest()].concat()
            }
            (PreconditionerConfig::Pmg(options), _) => {
                let degrees = tensor::degrees::degrees(degree);
                let of_level = |pair: &[usize]| {
                    let level = CellField { degree: pair[0], components: 1, ..field };
                    match options.precision {
                        LevelPrecision::F32 => of_level::<f32>((level, pair[1]), terms, rule, cheapest),
                        LevelPrecision::F64 => of_level::<f64>((level, pair[1]), terms, rule, cheapest),
                    }
                };
                degrees.windows(2).flat_map(of_level).chain(finest()).collect()
            }
            (PreconditionerConfig::Jacobi, _) => {
                let metric = config.metric.unwrap_or(cheapest);
                [finest(), diagonal_programs::<f64>(field, terms, rule, metric).into()].concat()
            }
            _ => finest(),
        }
    }

    fn of_grids(&self, options: &GmgOptions, widths: &[Vec<f64>]) -> Vec<Specialisation> {
        let Ok(grid) = BoxGrid::new(self.space.degree, widths) else { return Vec::new() };
        let varies = self.coefficients.as_ref().is_some_and(|[sigma, ..]| !sigma.is_constant_by_cell());
        match options.precision {
            LevelPrecision::F32 => multigrid_programs::<f32>(&grid, options.smoother, varies),
            LevelPrecision::F64 => multigrid_programs::<f64>(&grid, options.smoother, varies),
        }
    }
}

/// Returns the programs of a level of p-multigrid: its field, and the next lower degree.
fn of_level<T: Scalar>(
    (field, lower): (CellField, usize),
    terms: Terms<'_>,
    rule: CellRule,
    metric: MetricEvaluation,
) -> Vec<Specialisation> {
    let mut programs = operator_programs::<T>(field, terms, rule, metric);
    programs.push(transfer_program::<T>(field.dimension, [lower, field.degree]));
    programs
}

/// Returns programs that a solve with these settings will probably need, those needed first first.
///
/// Without an outline, and for values that depend on the mesh, programs that depend on cells or form are not among them: their
/// operators announce them when they are made.
pub fn likely_programs(config: &SolverConfig, outline: Option<&Outline>) -> Vec<Specialisation> {
    let mut config = config.clone();
    if let (PreconditionerConfig::Auto, Some(outline)) = (&config.preconditioner, outline) {
        config.preconditioner = match (auto::heaviest(&config, &outline.space, outline.kind), &outline.cells)
        {
            (PreconditionerConfig::Pmg(_), Cells::Box(_)) => PreconditionerConfig::Gmg(GmgOptions::default()),
            (heaviest, _) => heaviest,
        };
    }
    let (uses_matrix, uses_amg) = match config.preconditioner {
        PreconditionerConfig::Gmg(_) => (false, false),
        PreconditionerConfig::Amg(_) | PreconditionerConfig::Auto | PreconditionerConfig::Pmg(_) => {
            (true, true)
        }
        _ => (true, false),
    };
    let of_outline = match outline {
        Some(outline) if tensor::is_for(outline.kind) => {
            match config.is_assembled() || lack_of_gpus(&config).is_some() {
                true => Vec::new(),
                false => outline.without_matrix(&config),
            }
        }
        Some(Outline { kind, coefficients: Some([sigma, lambda, source]), .. }) => {
            [named(ASSEMBLY.iter()), cuda_programs(*kind, [sigma, lambda, source])].concat()
        }
        _ => Vec::new(),
    };
    let amg = if uses_amg { &AMG[..] } else { &[] };
    let matrix = if uses_matrix { &MATRIX[..] } else { &[] };
    let method = of_method(&config);
    [of_outline, named(amg.iter().chain(&COMMON).chain(method).chain(matrix))].concat()
}

/// Returns the names of the programs of a variant of conjugate gradients.
fn of_method(config: &SolverConfig) -> &'static [&'static str] {
    match (config.method, &config.preconditioner) {
        (Method::PipelinedCg, PreconditionerConfig::None) => &PIPELINED[..1],
        (Method::PipelinedCg, PreconditionerConfig::Jacobi) => &PIPELINED[1..2],
        (Method::PipelinedCg, _) => &PIPELINED[1..],
        (Method::SStepCg { steps }, _) if steps <= 3 => &S_STEP[..1],
        // A last block may have few steps.
        (Method::SStepCg { .. }, _) => &S_STEP,
        _ => &[],
    }
}

/// Returns the programs of some names, with every hook.
fn named<'a>(names: impl Iterator<Item = &'a &'a str>) -> Vec<Specialisation> {
    let lists = [
        femtile_linalg::cuda_specialisations(),
        femtile_sparse::cuda_specialisations(),
        femtile_amg::cuda_specialisations(),
    ];
    let all: Vec<(String, Specialisation)> =
        lists.into_iter().flatten().map(|program| (program.to_string(), program)).collect();
    let of_name = |name: &&str| {
        let name = String::from(*name);
        all.iter().filter(move |(found, _)| *found == name).map(|(_, program)| program.clone())
    };
    names.flat_map(of_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_a_program() {
        let methods = PIPELINED.iter().chain(&S_STEP);
        for name in AMG.iter().chain(&COMMON).chain(&MATRIX).chain(&ASSEMBLY).chain(methods) {
            assert!(!named([name].into_iter()).is_empty(), "{name}");
        }
    }

    /// Returns the names of the likely programs that begin with `start`.
    fn likely(outline: &Outline, preconditioner: PreconditionerConfig, start: &str) -> Vec<String> {
        let config = SolverConfig { preconditioner, ..SolverConfig::default() };
        let names = likely_programs(&config, Some(outline)).into_iter().map(|program| program.to_string());
        names.filter(|name| name.starts_with(start)).collect()
    }

    #[test]
    fn formulas_are_announced_and_values_of_the_mesh_are_not() {
        let of_source = |source: Value| {
            let [one, zero] = [Value::from(1.0), Value::from(0.0)];
            let space = SpaceConfig::default();
            let outline = Outline::new(CellKind::Tetrahedron, Cells::Straight, space, [&one, &zero, &source]);
            ["assembly", "pattern"].map(|name| likely(&outline, PreconditionerConfig::Jacobi, name).len())
        };
        assert_eq!(of_source("sin(x) + y".into()), [1, 1]);
        assert_eq!(of_source(2.0.into()), [1, 1]);
        assert_eq!(of_source(Value::field("k")), [0, 0]);
        assert_eq!(of_source("u + 1".into()), [0, 0]);
    }

    #[test]
    fn multigrid_has_the_programs_of_its_degrees_or_of_its_grids() {
        let [one, zero] = [Value::from(1.0), Value::from(0.0)];
        let space = SpaceConfig { degree: 5, ..SpaceConfig::default() };
        let outline = |cells| Outline::new(CellKind::Hexahedron, cells, space, [&one, &zero, &one]);
        let (ball, pmg) =
            (outline(Cells::Straight), || PreconditionerConfig::Pmg(crate::PmgOptions::default()));
        assert_eq!(likely(&ball, pmg(), "degree_transfer").len(), 3, "5 to 3 to 2 to 1");
        let operators = likely(&ball, pmg(), "matrix_free ");
        let n = |word: &str| operators.iter().filter(|name| name.contains(word)).count();
        assert_eq!(["=double", "DEGREE=5", "DEGREE=3", "DEGREE=2", "METRIC=2"].map(n), [2, 5, 3, 3, 11]);
        let in_rows = || Cells::Box(vec![vec![0.25; 4]; 3]);
        let cube = outline(in_rows());
        for preconditioner in [PreconditionerConfig::Auto, PreconditionerConfig::Gmg(GmgOptions::default())] {
            assert!(likely(&cube, preconditioner.clone(), "box_transfer").len() > 1);
            assert!(likely(&cube, preconditioner, "degree_transfer").is_empty());
        }
        let varying = Value::from("1 + x");
        let varying = Outline::new(CellKind::Hexahedron, in_rows(), space, [&varying, &zero, &one]);
        let operators = likely(&varying, pmg(), "matrix_free ");
        let n = |word: &str| operators.iter().filter(|name| name.contains(word)).count();
        assert_eq!([n("METRIC=1"), n("AT_POINTS=1")], [operators.len(); 2]);
    }
}

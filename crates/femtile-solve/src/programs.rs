//! Programs of GPUs that a solve will probably need, to be compiled while the mesh is read.

use femtile_device::Scalar;
use femtile_device::cuda::Specialisation;
use femtile_fem::Coefficient;
use femtile_fem::assembly;
use femtile_linalg::hooks::CudaHook;
use femtile_linalg::krylov::PreconditioningKind;
use femtile_linalg::krylov::cg::product_hook;
use femtile_linalg::vector;
use femtile_matrix_free::{
    CellField, MetricEvaluation, Terms, diagonal_programs, operator_programs, transfer_program,
};
use femtile_mesh::{CellKind, Mesh};
use femtile_multigrid::{BoxGrid, multigrid_programs};
use femtile_sparse::csr;

use crate::coefficient::coefficient;
use crate::method::krylov_method;
use crate::plan::Plan;
use crate::{
    AmgOptions, GmgOptions, LevelPrecision, PmgOptions, PreconditionerConfig, SolverConfig, SpaceConfig,
    Value, tensor,
};

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

    /// Returns the programs of the operator and of what is made from cells.
    fn programs(&self, plan: &Plan) -> Vec<Specialisation> {
        let Some([sigma, lambda, source]) = &self.coefficients else { return Vec::new() };
        if !tensor::is_for(self.kind) {
            return assembly::cuda_programs(self.kind, [sigma, lambda, source]);
        }
        if plan.has_matrix {
            return Vec::new();
        }
        let unless_zero = |of| Some(of).filter(|of: &&Coefficient| of.as_constant() != Some(0.0));
        let terms = Terms { sigma: unless_zero(sigma), lambda: unless_zero(lambda) };
        let (field, rule) = (self.field(self.space.degree), tensor::rule(self.space.quadrature));
        let field = CellField { components: self.space.components, ..field };
        let metric = plan.config.metric.unwrap_or(self.metric(terms));
        let finest = operator_programs::<f64>(field, terms, rule, metric);
        let beside = match &plan.config.preconditioner {
            PreconditionerConfig::Jacobi => diagonal_programs::<f64>(field, terms, rule, metric).into(),
            PreconditionerConfig::Gmg(options) => match options.precision {
                LevelPrecision::F32 => self.of_grids::<f32>(options),
                LevelPrecision::F64 => self.of_grids::<f64>(options),
            },
            PreconditionerConfig::Pmg(options) => match options.precision {
                LevelPrecision::F32 => self.of_degrees::<f32>(terms),
                LevelPrecision::F64 => self.of_degrees::<f64>(terms),
            },
            _ => Vec::new(),
        };
        [beside, finest].concat()
    }

    fn field(&self, degree: usize) -> CellField {
        CellField { dimension: self.kind.dimension(), degree, components: 1 }
    }

    /// Returns the evaluation of metrics that a GPU will choose.
    fn metric(&self, terms: Terms<'_>) -> MetricEvaluation {
        terms.metric_on_gpus(match self.cells {
            Cells::Box(_) => MetricEvaluation::Constant,
            Cells::Straight => MetricEvaluation::Computed,
            Cells::Curved => MetricEvaluation::Stored,
        })
    }

    /// Returns the programs of geometric multigrid; none for cells that are not known to fill a box.
    fn of_grids<T: Scalar>(&self, options: &GmgOptions) -> Vec<Specialisation> {
        let Cells::Box(widths) = &self.cells else { return Vec::new() };
        let Ok(grid) = BoxGrid::new(self.space.degree, widths) else { return Vec::new() };
        let varies = self.coefficients.as_ref().is_some_and(|[sigma, ..]| !sigma.is_constant_by_cell());
        multigrid_programs::<T>(&grid, options.smoother, varies)
    }

    /// Returns the programs of p-multigrid above degree 1.
    fn of_degrees<T: Scalar>(&self, terms: Terms<'_>) -> Vec<Specialisation> {
        let (metric, rule) = (self.metric(terms), tensor::rule(self.space.quadrature));
        let degrees = tensor::degrees::degrees(self.space.degree);
        let of_level = |pair: &[usize]| {
            let field = self.field(pair[0]);
            let mut programs = operator_programs::<T>(field, terms, rule, metric);
            programs.push(transfer_program::<T>(field.dimension, [pair[1], pair[0]]));
            programs
        };
        degrees.windows(2).flat_map(of_level).collect()
    }
}

/// Returns programs that a solve with these settings will probably need, those needed first first.
///
/// Without an outline, and for values that depend on the mesh, programs that depend on cells or form are not among them: their
/// operators announce them when they are made.
pub fn likely_programs(config: &SolverConfig, outline: Option<&Outline>) -> Vec<Specialisation> {
    let plan = match outline {
        Some(Outline { space, kind, cells, .. }) => {
            Plan::before_mesh(config, space, *kind, matches!(cells, Cells::Box(_)))
        }
        None => {
            let is_of_cells = config.preconditioner.of_cells().is_some();
            let kind = if is_of_cells { CellKind::Hexahedron } else { CellKind::Tetrahedron };
            Plan::before_mesh(config, &SpaceConfig::default(), kind, false)
        }
    };
    if plan.lack_of_gpus().is_some() {
        return Vec::new();
    }
    let of_cells = outline.map_or(Vec::new(), |outline| outline.programs(&plan));
    let (amg, kinds) = match &plan.config.preconditioner {
        PreconditionerConfig::None => (Vec::new(), &[PreconditioningKind::Identity][..]),
        PreconditionerConfig::Jacobi => (Vec::new(), &[PreconditioningKind::Diagonal][..]),
        // `auto` may choose the diagonal.
        other => (of_amg(other), &[PreconditioningKind::Diagonal, PreconditioningKind::General][..]),
    };
    let method = krylov_method(&plan.config).cuda_programs(kinds);
    let hooks = [CudaHook::none(), product_hook()].into_iter().filter(|_| plan.has_matrix);
    let products = hooks.map(|hook| csr::cuda_program::<f64>(&hook)).collect();
    [of_cells, amg, vector::cuda_programs(), method, products].concat()
}

/// Returns the programs of the algebraic multigrid of a preconditioner, if it is a part.
fn of_amg(preconditioner: &PreconditionerConfig) -> Vec<Specialisation> {
    match preconditioner {
        PreconditionerConfig::Amg(amg) => of_hierarchy::<f64>(amg),
        PreconditionerConfig::Pmg(PmgOptions { amg, precision: LevelPrecision::F32, .. }) => {
            of_hierarchy::<f32>(amg)
        }
        PreconditionerConfig::Pmg(PmgOptions { amg, precision: LevelPrecision::F64, .. }) => {
            of_hierarchy::<f64>(amg)
        }
        _ => Vec::new(),
    }
}

/// Returns the programs of algebraic multigrid for a matrix in precision T.
fn of_hierarchy<T: Scalar>(options: &AmgOptions) -> Vec<Specialisation> {
    match options.precision {
        LevelPrecision::F32 => femtile_amg::cuda_programs::<T, f32>(&options.config),
        LevelPrecision::F64 => femtile_amg::cuda_programs::<T, f64>(&options.config),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

//! Compilation of the kernels.

use femtile_device::cuda::{Header, Program, RECIPROCAL_HEADER, STRIDED_HEADER, Specialisation};
use femtile_device::{Element, Scalar};
use femtile_linalg::hooks::CudaHook;
use femtile_linalg::krylov::cg::product_hook;
use femtile_linalg::precondition::polynomial::product_hooks;

use super::config::{LaunchShape, tensors, together};
use super::{degree_transfer, facets, tables};
use crate::metric::Terms;
use femtile_fem::Coefficient;
use femtile_fem::geometry::CellRule;
use femtile_fem::geometry::MetricEvaluation;

static APPLY: Program =
    Program { name: "matrix_free", source: include_str!("matrix_free.cu"), headers: &HEADERS };
static DIAGONAL: Program =
    Program { name: "matrix_free_diagonal", source: include_str!("diagonal.cu"), headers: &HEADERS };
const HEADERS: [Header; 8] = [
    RECIPROCAL_HEADER,
    STRIDED_HEADER,
    CONTRACT_HEADER,
    COLUMNS_HEADER,
    Header { name: "lines.cuh", text: include_str!("lines.cuh") },
    Header { name: "gather_scatter.cuh", text: include_str!("gather_scatter.cuh") },
    Header { name: "metric.cuh", text: include_str!("metric.cuh") },
    Header { name: "fields.cuh", text: include_str!("fields.cuh") },
];
/// Tables along lines.
pub(super) const CONTRACT_HEADER: Header =
    Header { name: "contract.cuh", text: include_str!("contract.cuh") };
/// Columns of nodes and their entities.
pub(super) const COLUMNS_HEADER: Header = Header { name: "columns.cuh", text: include_str!("columns.cuh") };
static SUMS: Program = Program { name: "matrix_free_sums", source: include_str!("sums.cu"), headers: &[] };

/// Rows per block of the hook kernel.
pub(super) const ROWS: usize = 2048;

/// Parameters of the compiled kernel of an operator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variant {
    pub degree: usize,
    /// Components of the field, and those that are computed at the same time.
    pub components: usize,
    pub together: usize,
    pub rule: CellRule,
    pub has_stiffness: bool,
    pub has_mass: bool,
    pub is_isotropic: bool,
    /// Whether there are irregular cells, with lists of their unknowns.
    pub has_lists: bool,
    /// Constant, trilinear or stored.
    pub metric: MetricEvaluation,
    pub shape: LaunchShape,
}

impl Variant {
    /// Returns the variant of a degree and a number of components for terms of a form, in the shape that is best for it.
    pub fn of(
        (degree, components): (usize, usize),
        terms: Terms<'_>,
        rule: CellRule,
        (metric, has_lists): (MetricEvaluation, bool),
    ) -> Self {
        let (has_stiffness, has_mass) = (terms.sigma.is_some(), terms.lambda.is_some());
        let n = rule.n_points(degree);
        let of_one = tensors(has_stiffness, has_mass) * tensor_len(n) * size_of::<f64>();
        let variant = Self {
            degree,
            components,
            together: together(n, components, of_one),
            rule,
            has_stiffness,
            has_mass,
            is_isotropic: terms.sigma.is_none_or(Coefficient::is_isotropic),
            has_lists,
            metric,
            shape: LaunchShape { cells: 1, blocks: 1 },
        };
        Self { shape: LaunchShape::of(&variant), ..variant }
    }

    /// Returns whether it has two terms, irregular cells or an anisotropic σ.
    pub fn has_more(&self) -> bool {
        (self.has_stiffness && self.has_mass) || self.has_lists || !self.is_isotropic
    }

    /// Returns the points along an axis.
    pub fn n_points(&self) -> usize {
        self.rule.n_points(self.degree)
    }

    /// Returns the entries of a metric stored at points.
    pub fn n_entries(&self) -> usize {
        6 * usize::from(self.has_stiffness) + usize::from(self.has_mass)
    }

    /// Returns the numbers of the metric per cell.
    pub fn cell_numbers(&self) -> usize {
        match self.metric {
            MetricEvaluation::Constant => 8,
            MetricEvaluation::Trilinear => 32,
            _ => self.n_points().pow(3) * self.n_entries(),
        }
    }

    /// Returns whether the metric is stored in single precision, whatever that of the vectors.
    pub fn is_single(&self) -> bool {
        self.metric == MetricEvaluation::StoredSingle
    }

    /// Returns the threads of a block.
    pub fn threads(&self) -> usize {
        self.shape.threads(self.n_points())
    }

    /// Returns the variant of one component, in the same shape.
    pub fn of_one(&self) -> Self {
        Self { components: 1, together: 1, ..*self }
    }

    /// Returns the bytes of shared memory of a cell.
    pub fn shared_bytes_of_cell<T>(&self) -> usize {
        let tensors = if self.together == 1 { 3 } else { tensors(self.has_stiffness, self.has_mass) };
        self.together * tensors * tensor_len(self.n_points()) * size_of::<T>()
    }

    /// Returns the bytes of shared memory of a block.
    pub fn shared_bytes<T>(&self) -> usize {
        self.shape.cells * self.shared_bytes_of_cell::<T>()
    }

    /// Returns the program that applies the operator.
    pub fn program<T: Scalar>(&self, hook: &CudaHook<'_>) -> Specialisation {
        self.define::<T>(&APPLY.of::<T>())
            .define("FEMTILE_COLLOCATED", u8::from(tables::is_collocated(self.degree, self.rule)))
            .define("FEMTILE_BLOCKS", self.shape.blocks)
            .define("FEMTILE_PRODUCT", u8::from(hook.is_product()))
            .header("hook.cuh", hook.source())
    }

    /// Returns the program that computes the diagonal of a component.
    pub fn diagonal<T: Scalar>(&self) -> Specialisation {
        self.of_one()
            .define::<T>(&DIAGONAL.of::<T>())
            .header("diagonal_tables.cuh", tables::of_diagonal(self.degree, self.rule))
    }

    /// Defines what both programs depend on.
    fn define<T: Scalar>(&self, program: &Specialisation) -> Specialisation {
        let metric = match self.metric {
            MetricEvaluation::Constant => 1,
            MetricEvaluation::Trilinear => 2,
            _ => 0,
        };
        program
            .clone()
            .define("FEMTILE_DEGREE", self.degree)
            .define("FEMTILE_POINTS", self.n_points())
            .define("FEMTILE_STIFFNESS", u8::from(self.has_stiffness))
            .define("FEMTILE_MASS", u8::from(self.has_mass))
            .define("FEMTILE_ISOTROPIC", u8::from(self.is_isotropic))
            .define("FEMTILE_LISTS", u8::from(self.has_lists))
            .define("FEMTILE_COMPONENTS", self.components)
            .define("FEMTILE_TOGETHER", self.together)
            .define("FEMTILE_METRIC", metric)
            .define("FEMTILE_METRIC_T", if self.is_single() { f32::C_NAME } else { T::C_NAME })
            .define("FEMTILE_CELLS", self.shape.cells)
            .define("FEMTILE_THREADS", self.threads())
            .header("tables.cuh", tables::text(self.degree, self.rule))
    }
}

/// Returns the entries of a tensor in shared memory.
fn tensor_len(n_points: usize) -> usize {
    n_points * n_points * (n_points | 1)
}

/// Returns the program of the kernels after the cells, of a number of components.
pub(super) fn sums<T: Scalar>(components: usize, hook: &CudaHook<'_>) -> Specialisation {
    SUMS.of::<T>()
        .define("FEMTILE_COMPONENTS", components)
        .define("FEMTILE_ROWS", ROWS)
        .define("FEMTILE_PRODUCT", u8::from(hook.is_product()))
        .header("hook.cuh", hook.source())
}

/// Returns the programs of an operator that solves use: with the hook of conjugate gradients in double precision, with those
/// of smoothers in single precision.
pub(super) fn all<T: Scalar>(variant: &Variant) -> Vec<Specialisation> {
    let [residual, step] = product_hooks();
    let is_double = T::C_NAME == f64::C_NAME;
    let hooks = if is_double { vec![product_hook()] } else { vec![residual, step] };
    let hooks = [vec![CudaHook::none()], hooks].concat();
    let products =
        hooks.iter().flat_map(|hook| [variant.program::<T>(hook), sums::<T>(variant.components, hook)]);
    // Levels of p-multigrid are smoothed with their diagonals.
    products.chain((!is_double).then(|| variant.diagonal::<T>())).collect()
}

/// Returns the programs of a [`CudaMatrixFree`](super::CudaMatrixFree) on cells with consistent axes; `space` is the degree and
/// the number of components.
pub fn operator_programs<T: Scalar>(
    space: (usize, usize),
    terms: Terms<'_>,
    rule: CellRule,
    metric: MetricEvaluation,
) -> Vec<Specialisation> {
    all::<T>(&Variant::of(space, terms, rule, (metric, false)))
}

/// Returns the programs of [`CudaMatrixFree::diagonal`](super::CudaMatrixFree::diagonal) on cells with consistent axes;
/// `space` is the degree and the number of components.
pub fn diagonal_programs<T: Scalar>(
    space: (usize, usize),
    terms: Terms<'_>,
    rule: CellRule,
    metric: MetricEvaluation,
) -> [Specialisation; 2] {
    [Variant::of(space, terms, rule, (metric, false)).diagonal::<T>(), sums::<T>(1, &CudaHook::none())]
}

/// Returns the programs of this crate, for checks that compile them: all degrees, and one of each kind of operator.
pub fn specialisations() -> Vec<Specialisation> {
    let hook = &CudaHook::none();
    let variant = |degree, rule: CellRule, metric, has_mass: bool| {
        let shape = LaunchShape { cells: 1, blocks: 1 };
        let of_one = Variant {
            degree,
            components: 1,
            together: 1,
            rule,
            has_stiffness: true,
            has_mass,
            is_isotropic: !has_mass,
            has_lists: has_mass,
            metric,
            shape,
        };
        Variant { shape: LaunchShape::of(&of_one), ..of_one }
    };
    let more = CellRule::Gauss { extra: 1 };
    let product = &product_hook();
    let mut programs = vec![sums::<f64>(1, hook), sums::<f32>(1, hook), sums::<f64>(3, product)];
    programs.extend([facets::program::<f64>(3, product), facets::program::<f32>(1, hook)]);
    for degree in 1..=10 {
        let bp5 = variant(degree, CellRule::GaussLobatto, MetricEvaluation::Stored, false);
        programs.extend([bp5.program::<f64>(hook), bp5.program::<f64>(product)]);
        if degree == 5 {
            programs.push(Variant { metric: MetricEvaluation::StoredSingle, ..bp5 }.program::<f64>(product));
        }
    }
    for degree in [3, 5, 8] {
        let bp3 = variant(degree, more, MetricEvaluation::Stored, false);
        programs.extend([bp3.program::<f64>(hook), bp3.diagonal::<f64>()]);
        programs.push(Variant { has_stiffness: false, has_mass: true, ..bp3 }.program::<f64>(product));
    }
    for (degree, metric) in
        [3, 5].into_iter().flat_map(|p| [(p, MetricEvaluation::Constant), (p, MetricEvaluation::Trilinear)])
    {
        programs.push(variant(degree, CellRule::default(), metric, false).program::<f64>(hook));
        programs.push(variant(degree, CellRule::GaussLobatto, metric, false).program::<f32>(hook));
        programs.push(variant(degree, more, metric, true).program::<f64>(product));
        programs.push(variant(degree, more, metric, true).diagonal::<f64>());
        programs.push(variant(degree, CellRule::default(), metric, false).diagonal::<f32>());
    }
    programs.extend(vector_fields());
    programs.extend(degree_transfer::specialisations());
    programs
}

/// Returns programs of operators on fields of several components.
fn vector_fields() -> Vec<Specialisation> {
    let one = Coefficient::Constant(1.0);
    let (stiffness, mass) =
        (Terms { sigma: Some(&one), lambda: None }, Terms { sigma: None, lambda: Some(&one) });
    let (stored, more) = (MetricEvaluation::Stored, CellRule::Gauss { extra: 1 });
    let hook = product_hook();
    let program =
        |space, terms, rule, metric| Variant::of(space, terms, rule, (metric, false)).program::<f64>(&hook);
    let lobatto = CellRule::GaussLobatto;
    let mut programs =
        vec![program((3, 5), stiffness, lobatto, stored), program((10, 3), stiffness, lobatto, stored)];
    for degree in [2, 3, 5, 8] {
        programs.push(program((degree, 3), mass, more, stored));
        programs.push(program((degree, 3), stiffness, more, stored));
        programs.push(program((degree, 3), stiffness, lobatto, stored));
        programs.push(program((degree, 3), stiffness, CellRule::default(), MetricEvaluation::Trilinear));
        programs.push(program((degree, 2), Terms { lambda: Some(&one), ..stiffness }, more, stored));
    }
    programs
}

//! Compilation of the kernels.

use femtile_device::cuda::{Header, Program, RECIPROCAL_HEADER, STRIDED_HEADER, Specialisation};
use femtile_device::{Element, Scalar};
use femtile_linalg::hooks::CudaHook;
use femtile_linalg::krylov::cg::product_hook;
use femtile_linalg::precondition::polynomial::product_hooks;
use femtile_space::geometry::{CellRule, MetricEvaluation};

use super::config::{CellField, LaunchShape, tensors, together};
use super::point_tangent::TangentText;
use super::{degree_transfer, facets, tables};
use crate::metric::Terms;
use femtile_fem::Coefficient;

static APPLY: Program =
    Program { name: "matrix_free", source: include_str!("matrix_free.cu"), headers: &HEADERS };
static DIAGONAL: Program =
    Program { name: "matrix_free_diagonal", source: include_str!("diagonal.cu"), headers: &HEADERS };
const HEADERS: [Header; 16] = [
    RECIPROCAL_HEADER,
    STRIDED_HEADER,
    CONTRACT_HEADER,
    COLUMNS_HEADER,
    Header { name: "lines.cuh", text: include_str!("lines.cuh") },
    Header { name: "gather_scatter.cuh", text: include_str!("gather_scatter.cuh") },
    Header { name: "metric.cuh", text: include_str!("metric.cuh") },
    Header { name: "point_tangent.cuh", text: include_str!("point_tangent.cuh") },
    TANGENT_HEADER,
    Header { name: "bilinear.cuh", text: include_str!("bilinear.cuh") },
    Header { name: "trilinear.cuh", text: include_str!("trilinear.cuh") },
    Header { name: "product.cuh", text: include_str!("product.cuh") },
    Header { name: "quadrilaterals.cuh", text: include_str!("quadrilaterals.cuh") },
    Header { name: "hexahedron_places.cuh", text: include_str!("hexahedron_places.cuh") },
    Header { name: "hexahedra.cuh", text: include_str!("hexahedra.cuh") },
    Header { name: "fields.cuh", text: include_str!("fields.cuh") },
];
/// The tangent of a form at one point.
pub(super) const TANGENT_HEADER: Header =
    Header { name: "tangent_action.cuh", text: include_str!("tangent_action.cuh") };
/// Tables along lines.
pub(super) const CONTRACT_HEADER: Header =
    Header { name: "contract.cuh", text: include_str!("contract.cuh") };
/// Columns of nodes and their entities.
pub(super) const COLUMNS_HEADER: Header = Header { name: "columns.cuh", text: include_str!("columns.cuh") };
static SUMS: Program = Program { name: "matrix_free_sums", source: include_str!("sums.cu"), headers: &[] };

/// Rows per block of the hook kernel.
pub(super) const ROWS: usize = 2048;

/// Parameters of the compiled kernel of an operator.
#[derive(Debug, Clone)]
pub(super) struct Variant {
    /// Axes of the cells.
    pub dimension: usize,
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
    /// Whether some unknowns are those of other ranks.
    pub has_ghosts: bool,
    pub metric: MetricEvaluation,
    /// Whether coefficients at points lie beside a metric that is constant or computed.
    pub is_at_points: bool,
    /// The tangent of a form, in place of σ and λ.
    pub tangent: Option<TangentText>,
    pub shape: LaunchShape,
}

impl Variant {
    /// Returns the variant of a field for terms of a form, in the shape that is best for it.
    pub fn of(
        field: CellField,
        terms: Terms<'_>,
        rule: CellRule,
        (metric, has_lists): (MetricEvaluation, bool),
    ) -> Self {
        let (has_stiffness, has_mass) = (terms.sigma.is_some(), terms.lambda.is_some());
        let CellField { dimension, degree, components } = field;
        let n = rule.n_points(degree);
        let of_one =
            tensors(dimension, has_stiffness, has_mass) * tensor_len(n, dimension) * size_of::<f64>();
        let variant = Self {
            dimension,
            degree,
            components,
            together: together(n, field, of_one),
            rule,
            has_stiffness,
            has_mass,
            is_isotropic: terms.sigma.is_none_or(Coefficient::is_isotropic),
            has_lists,
            has_ghosts: false,
            metric,
            is_at_points: terms.are_at_points() && metric != MetricEvaluation::Stored,
            tangent: None,
            shape: LaunchShape { cells: 1, blocks: 1 },
        };
        Self { shape: LaunchShape::of(&variant), ..variant }
    }

    /// Returns whether it has two terms, irregular cells or an anisotropic σ.
    pub fn has_more(&self) -> bool {
        (self.has_stiffness && self.has_mass) || self.has_lists || !self.is_isotropic
    }

    /// Returns whether x·Ax may be summed by cells: on a part, those whose inner unknowns the rank owns, which there are from
    /// degree 2 on.
    pub fn may_sum_cells(&self) -> bool {
        !self.has_ghosts || self.degree > 1
    }

    /// Returns the points along an axis.
    pub fn n_points(&self) -> usize {
        self.rule.n_points(self.degree)
    }

    /// Returns the points of a layer across the last axis, each with a column of a thread.
    pub fn layer_points(&self) -> usize {
        self.n_points().pow(self.dimension as u32 - 1)
    }

    /// Returns the entries of a symmetric tensor and of λ, by their places in [`Entries`](crate::metric::Entries).
    pub fn entries(&self) -> &'static [usize] {
        if self.dimension == 2 { &[0, 1, 5, 6] } else { &[0, 1, 2, 3, 4, 5, 6] }
    }

    /// Returns those of a metric stored at points.
    pub fn stored_entries(&self) -> &'static [usize] {
        let (all, of_tensor) = (self.entries(), self.entries().len() - 1);
        let begin = if self.has_stiffness { 0 } else { of_tensor };
        &all[begin..of_tensor + usize::from(self.has_mass)]
    }

    /// Returns the numbers of the metric per cell, and those of coefficients at its points, which follow.
    pub fn cell_numbers(&self) -> [usize; 2] {
        let n_points = self.n_points() * self.layer_points();
        if let Some(tangent) = &self.tangent {
            let [of_cell, of_point] = tangent.with_geometry(self.metric == MetricEvaluation::Constant);
            return [of_cell, n_points * of_point];
        }
        let of_metric = match self.metric {
            MetricEvaluation::Constant => [4, 8][self.dimension - 2],
            MetricEvaluation::Computed => [12, 32][self.dimension - 2],
            MetricEvaluation::Stored => n_points * self.stored_entries().len(),
        };
        let n_terms = usize::from(self.has_stiffness) + usize::from(self.has_mass);
        [of_metric, if self.is_at_points { n_points * n_terms } else { 0 }]
    }

    /// Returns the threads of a block.
    pub fn threads(&self) -> usize {
        self.shape.threads(self.layer_points())
    }

    /// Returns the variant of one component, in the same shape.
    pub fn of_one(&self) -> Self {
        Self { components: 1, together: 1, ..self.clone() }
    }

    /// Returns the bytes of shared memory of a cell.
    pub fn shared_bytes_of_cell<T>(&self) -> usize {
        let tensors = match (self.dimension, self.together) {
            (3, 1) if self.tangent.is_none() => 3,
            _ => tensors(self.dimension, self.has_stiffness, self.has_mass),
        };
        self.together * tensors * tensor_len(self.n_points(), self.dimension) * size_of::<T>()
    }

    /// Returns the bytes of shared memory of a block.
    pub fn shared_bytes<T>(&self) -> usize {
        self.shape.cells * self.shared_bytes_of_cell::<T>()
    }

    /// Returns the program that applies the operator.
    pub fn program<T: Scalar>(&self, hook: &CudaHook<'_>) -> Specialisation {
        self.define::<T>(&APPLY)
            .define("FEMTILE_COLLOCATED", u8::from(tables::is_collocated(self.degree, self.rule)))
            .define("FEMTILE_BLOCKS", self.shape.blocks)
            .define("FEMTILE_PRODUCT", u8::from(hook.is_product()))
            .header("hook.cuh", hook.source())
    }

    /// Returns the program that computes the diagonal of a component.
    pub fn diagonal<T: Scalar>(&self) -> Specialisation {
        self.of_one()
            .define::<T>(&DIAGONAL)
            .header("diagonal_tables.cuh", tables::of_diagonal(self.degree, self.rule))
    }

    /// Defines the macros of both programs.
    fn define<T: Scalar>(&self, program: &'static Program) -> Specialisation {
        let metric = match self.metric {
            MetricEvaluation::Constant => 1,
            MetricEvaluation::Computed => 2,
            MetricEvaluation::Stored => 0,
        };
        let [of_cell, of_point] = self.tangent.as_ref().map_or([0, 0], |tangent| tangent.n_numbers);
        let program = match &self.tangent {
            Some(tangent) => program.of::<T>().header("tangent.cuh", tangent.of::<T>().to_string()),
            None => program.of::<T>(),
        };
        program
            .define("FEMTILE_TANGENT", u8::from(self.tangent.is_some()))
            .define("FEMTILE_TANGENT_CELL", of_cell)
            .define("FEMTILE_TANGENT_POINT", of_point)
            .define("FEMTILE_DIMENSION", self.dimension)
            .define("FEMTILE_DEGREE", self.degree)
            .define("FEMTILE_POINTS", self.n_points())
            .define("FEMTILE_STIFFNESS", u8::from(self.has_stiffness))
            .define("FEMTILE_MASS", u8::from(self.has_mass))
            .define("FEMTILE_ISOTROPIC", u8::from(self.is_isotropic))
            .define("FEMTILE_LISTS", u8::from(self.has_lists))
            .define("FEMTILE_GHOSTS", u8::from(self.has_ghosts))
            .define("FEMTILE_COMPONENTS", self.components)
            .define("FEMTILE_TOGETHER", self.together)
            .define("FEMTILE_METRIC", metric)
            .define("FEMTILE_AT_POINTS", u8::from(self.is_at_points))
            .define("FEMTILE_CELLS", self.shape.cells)
            .define("FEMTILE_THREADS", self.threads())
            .header("tables.cuh", tables::text(self.degree, self.rule))
    }
}

/// Returns the entries of a tensor in shared memory.
fn tensor_len(n_points: usize, dimension: usize) -> usize {
    n_points.pow(dimension as u32 - 1) * (n_points | 1)
}

/// Returns the program of the kernels after the cells, of a number of components.
pub(super) fn sums<T: Scalar>(components: usize, hook: &CudaHook<'_>) -> Specialisation {
    SUMS.of::<T>()
        .define("FEMTILE_COMPONENTS", components)
        .define("FEMTILE_ROWS", ROWS)
        .define("FEMTILE_PRODUCT", u8::from(hook.is_product()))
        .header("hook.cuh", hook.source())
}

/// Returns the hooks of solvers: that of conjugate gradients in double precision, those of smoothers in single precision.
pub(super) fn hooks<T: Scalar>() -> Vec<CudaHook<'static>> {
    let of_precision = match T::C_NAME == f64::C_NAME {
        true => vec![product_hook()],
        false => product_hooks().into(),
    };
    [vec![CudaHook::none()], of_precision].concat()
}

/// Returns the programs of an operator that solves use: with the hook of conjugate gradients in double precision, with those
/// of smoothers in single precision.
pub(super) fn all<T: Scalar>(variant: &Variant) -> Vec<Specialisation> {
    let is_double = T::C_NAME == f64::C_NAME;
    let of_variant = |hook: CudaHook<'static>| if variant.may_sum_cells() { hook } else { hook.by_rows() };
    let hooks: Vec<_> = hooks::<T>().into_iter().map(of_variant).collect();
    let products =
        hooks.iter().flat_map(|hook| [variant.program::<T>(hook), sums::<T>(variant.components, hook)]);
    // Levels of p-multigrid are smoothed with their diagonals; those of tangents come from the host.
    products.chain((!is_double && variant.tangent.is_none()).then(|| variant.diagonal::<T>())).collect()
}

/// Returns the programs of a [`CudaMatrixFree`](super::CudaMatrixFree) on cells with consistent axes.
pub fn operator_programs<T: Scalar>(
    field: CellField,
    terms: Terms<'_>,
    rule: CellRule,
    metric: MetricEvaluation,
) -> Vec<Specialisation> {
    all::<T>(&Variant::of(field, terms, rule, (metric, false)))
}

/// Returns the programs of [`CudaMatrixFree::diagonal`](super::CudaMatrixFree::diagonal) on cells with consistent axes.
pub fn diagonal_programs<T: Scalar>(
    field: CellField,
    terms: Terms<'_>,
    rule: CellRule,
    metric: MetricEvaluation,
) -> [Specialisation; 2] {
    [Variant::of(field, terms, rule, (metric, false)).diagonal::<T>(), sums::<T>(1, &CudaHook::none())]
}

/// Returns the programs of this crate, for checks that compile them: all degrees, and one of each kind of operator.
pub fn specialisations() -> Vec<Specialisation> {
    let hook = &CudaHook::none();
    let variant = |degree, rule: CellRule, metric, has_mass: bool| {
        let shape = LaunchShape { cells: 1, blocks: 1 };
        let of_one = Variant {
            dimension: 3,
            degree,
            components: 1,
            together: 1,
            rule,
            has_stiffness: true,
            has_mass,
            is_isotropic: !has_mass,
            has_lists: has_mass,
            has_ghosts: false,
            metric,
            is_at_points: false,
            tangent: None,
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
            programs.extend(
                [hook, product].map(|hook| Variant { has_ghosts: true, ..bp5.clone() }.program::<f64>(hook)),
            );
        }
    }
    for degree in [3, 5, 8] {
        let bp3 = variant(degree, more, MetricEvaluation::Stored, false);
        programs.extend([bp3.program::<f64>(hook), bp3.diagonal::<f64>()]);
        programs.push(Variant { has_stiffness: false, has_mass: true, ..bp3 }.program::<f64>(product));
    }
    for (degree, metric) in
        [3, 5].into_iter().flat_map(|p| [(p, MetricEvaluation::Constant), (p, MetricEvaluation::Computed)])
    {
        programs.push(variant(degree, CellRule::default(), metric, false).program::<f64>(hook));
        programs.push(variant(degree, CellRule::GaussLobatto, metric, false).program::<f32>(hook));
        programs.push(variant(degree, more, metric, true).program::<f64>(product));
        let at_points = Variant { is_at_points: true, ..variant(degree, more, metric, degree == 3) };
        let at_points = Variant { is_isotropic: true, ..at_points };
        programs.extend([at_points.program::<f64>(product), at_points.diagonal::<f32>()]);
        programs.push(variant(degree, more, metric, true).diagonal::<f64>());
        programs.push(variant(degree, CellRule::default(), metric, false).diagonal::<f32>());
    }
    programs.extend(vector_fields());
    programs.extend(quadrilaterals());
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
    let program = |(degree, components), terms, rule, metric| {
        let field = CellField { dimension: 3, degree, components };
        Variant::of(field, terms, rule, (metric, false)).program::<f64>(&hook)
    };
    let lobatto = CellRule::GaussLobatto;
    let mut programs =
        vec![program((3, 5), stiffness, lobatto, stored), program((10, 3), stiffness, lobatto, stored)];
    for degree in [2, 3, 5, 8] {
        programs.push(program((degree, 3), mass, more, stored));
        programs.push(program((degree, 3), stiffness, more, stored));
        programs.push(program((degree, 3), stiffness, lobatto, stored));
        programs.push(program((degree, 3), stiffness, CellRule::default(), MetricEvaluation::Computed));
        programs.push(program((degree, 2), Terms { lambda: Some(&one), ..stiffness }, more, stored));
    }
    programs
}

/// Returns programs of operators on quadrilaterals: all degrees with each number of components that is computed at the same time,
/// and both precisions.
fn quadrilaterals() -> Vec<Specialisation> {
    let (one, product) = (Coefficient::Constant(1.0), product_hook());
    let tensor = Coefficient::Tensor([[1.0; 3]; 3]);
    let stiffness = Terms { sigma: Some(&one), lambda: None };
    let (both, mass) =
        (Terms { sigma: Some(&tensor), lambda: Some(&one) }, Terms { sigma: None, lambda: Some(&one) });
    let (more, lobatto) = (CellRule::Gauss { extra: 1 }, CellRule::GaussLobatto);
    let (stored, bilinear) = (MetricEvaluation::Stored, MetricEvaluation::Computed);
    let variant = |(degree, components), terms, rule, metric, has_lists| {
        Variant::of(CellField { dimension: 2, degree, components }, terms, rule, (metric, has_lists))
    };
    let mut programs = Vec::new();
    for degree in 1..=10 {
        let scalar = variant((degree, 1), stiffness, CellRule::default(), bilinear, false);
        let curved = variant((degree, 1), both, more, stored, true);
        let components = variant((degree, 1 + degree % 4), both, more, stored, true);
        let diagonal = variant((degree, 1), both, more, bilinear, false).diagonal::<f32>();
        programs.extend([scalar.program::<f64>(&product), curved.program::<f64>(&product), diagonal]);
        programs.extend([components.program::<f64>(&product), scalar.program::<f32>(&CudaHook::none())]);
    }
    for degree in [2, 5, 8] {
        let constant = variant((degree, 2), both, CellRule::default(), MetricEvaluation::Constant, false);
        let of_nodes = variant((degree, 3), mass, lobatto, stored, false);
        let of_points = variant((degree, 1), mass, more, stored, false);
        for variant in [constant, of_nodes, of_points] {
            programs.extend([variant.program::<f64>(&product), variant.diagonal::<f64>()]);
        }
    }
    programs
}

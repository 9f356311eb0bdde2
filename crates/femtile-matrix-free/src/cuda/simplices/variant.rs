//! Compilation of the kernels on simplices.

use femtile_device::Scalar;
use femtile_device::cuda::{Header, Program, Specialisation};
use femtile_linalg::LinalgError;
use femtile_linalg::hooks::CudaHook;
use femtile_space::{Element, SpaceError};

use super::super::config::LaunchShape;
use super::super::point_tangent::TangentText;
use super::super::program::{TANGENT_HEADER, hooks, sums};
use super::super::tables::header;
use super::tables::Table;
use femtile_fem::FemError;

static SIMPLICES: Program =
    Program { name: "simplices", source: include_str!("simplices.cu"), headers: &HEADERS };
const HEADERS: [Header; 1] = [TANGENT_HEADER];

/// Values and sums of a cell that a thread holds in registers.
const MOST_IN_REGISTERS: usize = 34;
/// Entries of a table up to which the loop over points is unrolled: tables are then operands.
const MOST_UNROLLED: usize = 3000;
/// Bytes of tables in constant memory, which has 64 KiB.
const MOST_CONSTANT: usize = 60 << 10;
/// Bytes of shared memory up to which a block takes more cells, of which three fit a multiprocessor.
const MOST_OF_BLOCK: usize = 72 << 10;

/// The integrand of the operator, between gradients on the reference cell and their transpose.
#[derive(Debug, Clone)]
pub(super) enum Action {
    /// One metric for each cell, of slopes and values.
    Metric { has_terms: [bool; 2] },
    /// The tangent of a form, on affine cells or with geometry at all points.
    Text { text: TangentText, is_affine: bool },
}

/// Parameters of the compiled kernel.
#[derive(Debug, Clone)]
pub(super) struct Variant {
    pub dimension: usize,
    pub n_nodes: usize,
    pub components: usize,
    pub action: Action,
    pub table: Table,
    pub shape: LaunchShape,
}

impl Variant {
    /// Returns the variant on an element, in the shape that is best for it.
    ///
    /// # Errors
    /// [`FemError::Linalg`] if a cell does not fit the shared memory of a block.
    pub fn new(element: &Element, action: Action, shape: Option<LaunchShape>) -> Result<Self, FemError> {
        let table = action.table(element)?;
        let components = match &action {
            Action::Metric { .. } => 1,
            Action::Text { text, .. } => text.components,
        };
        let (dimension, n_nodes) = (element.dimension(), element.n_dofs());
        let shape_of_one = LaunchShape { cells: 1, blocks: 1 };
        let mut variant = Self { dimension, n_nodes, components, action, table, shape: shape_of_one };
        let of_cell = variant.shared_bytes::<f64>();
        if of_cell > LaunchShape::MOST_OF_TANGENT {
            let message = format!(
                "{components} components of degree {} take {of_cell} bytes of fast memory per cell; {} are there: take a smaller degree",
                element.degree(),
                LaunchShape::MOST_OF_TANGENT,
            );
            return Err(LinalgError::Setting { field: "degree", message }.into());
        }
        variant.shape = shape.unwrap_or_else(|| variant.best_shape());
        if variant.shape.cells == 0 || variant.shape.blocks == 0 {
            return Err(LinalgError::Setting {
                field: "shape",
                message: "at least one cell and one block".into(),
            }
            .into());
        }
        Ok(variant)
    }

    fn best_shape(&self) -> LaunchShape {
        let most = match self.n_nodes * self.components {
            ..=12 => 256,
            _ => 128,
        };
        let fits = |cells: &usize| {
            cells * self.shared_bytes::<f64>() <= MOST_OF_BLOCK
                && cells * self.n_nodes * self.components <= usize::from(u16::MAX)
        };
        let cells = (0..).map(|half| most >> half).take_while(|&cells| cells > 1).find(fits);
        LaunchShape { cells: cells.unwrap_or(1), blocks: 1 }
    }

    /// Returns whether D′ acts on values in shared memory, because the values of a cell do not fit registers.
    fn is_staged(&self) -> bool {
        self.n_nodes * self.components > MOST_IN_REGISTERS
    }

    /// Returns whether values and derivatives are wanted.
    fn terms(&self) -> [bool; 2] {
        match &self.action {
            Action::Metric { has_terms } => *has_terms,
            Action::Text { text, .. } => [true, text.has_values],
        }
    }

    /// Returns the numbers of a cell, and those that are there for each point.
    pub fn cell_numbers(&self) -> [usize; 2] {
        match &self.action {
            Action::Metric { has_terms: [has_sigma, has_lambda] } => {
                let of_tensor = self.dimension * (self.dimension + 1) / 2;
                [of_tensor * usize::from(*has_sigma) + usize::from(*has_lambda), 0]
            }
            Action::Text { text, is_affine } => text.with_geometry(*is_affine),
        }
    }

    /// Returns the threads of a block.
    pub fn threads(&self) -> usize {
        let Self { shape: LaunchShape { cells, .. }, components, .. } = self;
        match self.is_staged() {
            true => (components * cells).max(128).next_multiple_of(32),
            false => cells.next_multiple_of(32),
        }
    }

    /// Returns the bytes of shared memory of a block: values, and places of 16 bits.
    pub fn shared_bytes<T>(&self) -> usize {
        let [has_slopes, has_values] = self.terms().map(usize::from);
        let at_points = match self.is_staged() {
            true => self.table.n_points * (has_values + self.dimension * has_slopes),
            false => 0,
        };
        let values = self.shape.cells * self.components * (self.n_nodes + at_points) * size_of::<T>();
        values + self.shape.cells * self.n_nodes * size_of::<u16>()
    }

    /// Returns whether tables are constants of the program.
    pub fn has_constant_table(&self) -> bool {
        size_of_val(&self.table.entries[..]) <= MOST_CONSTANT
    }

    /// Returns the program.
    pub fn program<T: Scalar>(&self, hook: &CudaHook<'_>) -> Specialisation {
        let [has_slopes, has_values] = self.terms();
        let program = SIMPLICES.of::<T>();
        let (program, numbers, is_affine) = match &self.action {
            Action::Metric { .. } => (program, None, true),
            Action::Text { text, is_affine } => {
                let program = program.header("tangent.cuh", text.of::<T>().to_string());
                (program, Some(text.n_numbers), *is_affine)
            }
        };
        let unroll = if self.table.entries.len() <= MOST_UNROLLED { self.table.n_points } else { 1 };
        let [of_cell, of_point] = numbers.unwrap_or_default();
        let tables: &[(&str, &[f64])] =
            if self.has_constant_table() { &[("TABLES", &self.table.entries)] } else { &[] };
        program
            .define("FEMTILE_TANGENT", u8::from(numbers.is_some()))
            .define("FEMTILE_TANGENT_CELL", of_cell)
            .define("FEMTILE_TANGENT_POINT", of_point)
            .define("FEMTILE_AFFINE", u8::from(is_affine))
            .define("FEMTILE_DIMENSION", self.dimension)
            .define("FEMTILE_NODES", self.n_nodes)
            .define("FEMTILE_POINTS", self.table.n_points)
            .define("FEMTILE_COMPONENTS", self.components)
            .define("FEMTILE_STIFFNESS", u8::from(has_slopes))
            .define("FEMTILE_MASS", u8::from(has_values))
            .define("FEMTILE_UNIT_WEIGHTS", u8::from(self.table.has_unit_weights))
            .define("FEMTILE_CONSTANT", u8::from(self.has_constant_table()))
            .define("FEMTILE_STAGED", u8::from(self.is_staged()))
            .define("FEMTILE_UNROLL", unroll)
            .define("FEMTILE_CELLS", self.shape.cells)
            .define("FEMTILE_THREADS", self.threads())
            .define("FEMTILE_BLOCKS", self.shape.blocks)
            .header("tables.cuh", header(tables))
            .header("hook.cuh", hook.source())
    }

    /// Returns the programs that solves use.
    pub fn all<T: Scalar>(&self) -> Vec<Specialisation> {
        let hooks = hooks::<T>().into_iter().map(CudaHook::by_rows);
        hooks.flat_map(|hook| [self.program::<T>(&hook), sums::<T>(self.components, &hook)]).collect()
    }
}

impl Action {
    /// Returns the table of an element: in modes if the tangent is constant in each cell.
    fn table(&self, element: &Element) -> Result<Table, SpaceError> {
        match self {
            Self::Metric { has_terms: [_, has_values] } => Table::in_modes(element, *has_values),
            Self::Text { text, is_affine: true } if text.n_numbers[1] == 0 => {
                Table::in_modes(element, text.has_values)
            }
            Self::Text { .. } => Ok(Table::at_points(element, &element.quadrature(2 * element.degree()))),
        }
    }
}

use femtile_device::cuda::{
    Header, Kernel, Launch, Program, Read, STRIDED_HEADER, Specialisation, Structure, Write,
};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::hooks::{CudaHook, Hook};
use femtile_linalg::krylov::cg::product_hook;
use femtile_linalg::{LinalgError, LinearOperator, need};

use super::cells::{CELLS_HEADER, Cells};
use super::constants::text;
use super::plane::operator::PlaneKind;
use super::shape::PatchShape;
use super::smoother::colour;
use super::{HIGHEST_DEGREE, check, equal_widths, mapped, plane, scales, stencil};
use crate::axis::matrices;
use crate::grid::BoxGrid;
use crate::mapped::ShapeKind;
use crate::{MultigridError, PostOrder};

static OPERATOR: Program = Program {
    name: "box_operator",
    source: include_str!("operator.cu"),
    headers: &[STRIDED_HEADER, CELLS_HEADER, SYMMETRIC_HEADER],
};

/// The header `symmetric.cuh`: products of mass and stiffness with lines.
pub(super) const SYMMETRIC_HEADER: Header =
    Header { name: "symmetric.cuh", text: include_str!("symmetric.cuh") };

static PRODUCT: Program = Program { name: "box_product", source: include_str!("product.cu"), headers: &[] };
const THREADS: u32 = 256;

/// Most and fewest cells per team along a row; it computes the shared face of one more.
const ROW_CELLS: [usize; 2] = [16, 2];
/// Teams of a launch that keep a GPU busy; rows are shorter if there are fewer.
const TEAMS: usize = 2048;

type Product<T> = (Write<T>, Read<T>, u64, Structure);
type ByWeights<T> = (Write<T>, Read<T>, Read<T>, Structure);
type Residual<T> = (Write<T>, Read<T>, Read<T>, Read<T>, Structure);

/// The matrix-free operator on a box, as [`BoxOperator`](crate::BoxOperator), on a GPU.
///
/// # Cost
/// In the plane one launch. Its blocks process tiles of cells with one more layer on two sides. It reads x
/// and b and writes r once, and reads nine numbers per mapped cell, two per rectangle with a coefficient.
///
/// On hexahedra one launch for each of four colours of rows of cells. Each launch reads x and b and reads and
/// writes r at the nodes of its cells. Rectangles need seven products with 1-D matrices per cell. Mapped
/// cells need fourteen, and about 40 multiplications and additions for the metric at each of $(k+1)^3$
/// points. The metric is computed from 25 numbers per cell. Stored metrics would be $6 (k+1)^3$ numbers, five
/// times the bytes of the vectors for degree 3. Rectangles with a coefficient each read 3 numbers per cell.
/// As an operator of Krylov methods it reads x and y and writes y once more.
#[derive(Debug)]
pub struct CudaBoxOperator<T: Scalar> {
    device: Cuda,
    grid: BoxGrid,
    kind: Kind,
    /// Widths of cells along each axis, or the data of all cells.
    numbers: Buffer<T, Cuda>,
    program: Specialisation,
    /// Cells per team along a row.
    row_cells: usize,
}

/// The kernel by the kind of cells.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Degree 1 on equal cells: a 27-point stencil with these factors of stiffness.
    Stencil([f64; 3]),
    /// Rectangles with coefficient one.
    Plain,
    /// Rectangles with a coefficient each.
    ByCell,
    Mapped,
    /// Quadrilaterals.
    Plane(PlaneKind),
}

impl Kind {
    fn of<T: Scalar>(grid: &BoxGrid) -> Self {
        match grid.mapping() {
            _ if grid.dimension() == 2 => Self::Plane(match grid.mapping() {
                Some(geometry) if geometry.is_rectangular() => PlaneKind::ByCell,
                Some(_) => PlaneKind::Mapped,
                None => PlaneKind::Plain,
            }),
            Some(geometry) if geometry.is_rectangular() => Self::ByCell,
            Some(_) => Self::Mapped,
            None => scales_of_stencil::<T>(grid).map_or(Self::Plain, Self::Stencil),
        }
    }

    /// Returns widths of cells along each axis, or the data of all cells.
    fn numbers<T: Scalar>(self, grid: &BoxGrid) -> Vec<T> {
        let of_cells = |kind| mapped::operator::numbers(&grid.geometry(), grid.dimension(), kind);
        match self {
            Self::Stencil(_) | Self::Plain | Self::Plane(PlaneKind::Plain) => {
                (0..3).flat_map(|axis| grid.widths(axis)).map(|&width| T::from_f64(width)).collect()
            }
            Self::ByCell | Self::Plane(PlaneKind::ByCell) => of_cells(ShapeKind::Rectangular),
            Self::Mapped => of_cells(ShapeKind::Trilinear),
            Self::Plane(PlaneKind::Mapped) => of_cells(ShapeKind::Bilinear),
        }
    }

    fn program<T: Scalar>(self, grid: &BoxGrid) -> Specialisation {
        match self {
            Self::Stencil(_) => stencil::program::<T>(grid.nodes()[0]),
            Self::Plain => program::<T>(grid.degree(), false),
            Self::ByCell => program::<T>(grid.degree(), true),
            Self::Mapped => mapped::operator::program::<T>(grid.degree()),
            Self::Plane(kind) => kind.program::<T>(grid.degree()),
        }
    }
}

impl<T: Scalar> CudaBoxOperator<T> {
    /// Creates the operator on a grid.
    ///
    /// # Errors
    /// [`MultigridError::Gpu`] for too high a degree, and device errors.
    pub fn new(device: &Cuda, grid: &BoxGrid) -> Result<Self, MultigridError> {
        check(grid)?;
        let kind = Kind::of::<T>(grid);
        let program = kind.program::<T>(grid);
        device.prepare(vec![program.clone()]);
        let numbers = Buffer::from_vec(device, kind.numbers(grid))?;
        Ok(Self {
            device: device.clone(),
            grid: grid.clone(),
            kind,
            numbers,
            program,
            row_cells: row_cells(grid),
        })
    }

    /// Sets the number of hexahedra that a team of threads processes along a row, at least one. The default
    /// is long rows on large grids, and short ones, with more work at their ends, on small grids. Results
    /// have the same bits.
    #[must_use]
    pub fn with_row_cells(self, row_cells: usize) -> Self {
        Self { row_cells: row_cells.max(1), ..self }
    }

    /// $r = b - A x$, zero at Dirichlet nodes.
    ///
    /// # Errors
    /// [`LinalgError::Length`] for a vector of another length, and device errors.
    pub fn residual(
        &self,
        r: &mut Buffer<T, Cuda>,
        b: &Buffer<T, Cuda>,
        x: &Buffer<T, Cuda>,
    ) -> Result<(), LinalgError> {
        need("b", self.grid.n_nodes(), b.len())?;
        self.subtract(r, b.read(), x)
    }

    /// $r = b - A x$, or $-A x$ without b.
    fn subtract(&self, r: &mut Buffer<T, Cuda>, b: Read<T>, x: &Buffer<T, Cuda>) -> Result<(), LinalgError> {
        need("r", self.grid.n_nodes(), r.len())?;
        need("x", self.grid.n_nodes(), x.len())?;
        let degree = self.grid.degree();
        let (name, shape, bytes) = match self.kind {
            Kind::Stencil(scales) => return self.by_weights(scales, r, b, x),
            Kind::Plane(kind) => return self.by_tiles(kind, r, b, x),
            Kind::Plain | Kind::ByCell => ("box_residual", shape(degree), bytes::<T>(degree)),
            Kind::Mapped => (
                "box_mapped_residual",
                mapped::operator::shape::<T>(degree),
                mapped::operator::bytes::<T>(degree),
            ),
        };
        let kernel = Kernel::<Residual<T>>::new(name);
        for cells in Cells::rows(&self.grid, self.row_cells) {
            let arguments = (r.write(), b, x.read(), self.numbers.read(), cells.structure());
            let launch = shape.launch(cells.n, bytes);
            // SAFETY: rows lie in the grid, for whose nodes all vectors have values and for whose cells there are numbers of
            // the kind; rows of a colour share no node, and each part of a row writes its own nodes.
            unsafe { self.device.launch(&self.program, &kernel, launch, arguments) }?;
        }
        Ok(())
    }

    fn by_tiles(
        &self,
        kind: PlaneKind,
        r: &mut Buffer<T, Cuda>,
        b: Read<T>,
        x: &Buffer<T, Cuda>,
    ) -> Result<(), LinalgError> {
        let (tiles, launch) = plane::operator::tiles::<T>(&self.grid);
        let arguments = (r.write(), b, x.read(), self.numbers.read(), tiles.structure());
        let kernel = Kernel::<Residual<T>>::new(kind.name());
        // SAFETY: tiles cover the grid, for whose nodes all vectors have values and for whose cells there are numbers of the
        // kind; each tile writes its own nodes.
        Ok(unsafe { self.device.launch(&self.program, &kernel, launch, arguments) }?)
    }

    fn by_weights(
        &self,
        scales: [f64; 3],
        r: &mut Buffer<T, Cuda>,
        b: Read<T>,
        x: &Buffer<T, Cuda>,
    ) -> Result<(), LinalgError> {
        let [n, n_rows, n_layers] = self.grid.nodes();
        let all = colour(&self.grid, [0; 3], [0; 3], PostOrder::Same, scales);
        let arguments = (r.write(), b, x.read(), all);
        let kernel = Kernel::<ByWeights<T>>::new("box_stencil_residual");
        let launch = stencil::launch::<T>(n_rows * n_layers, n);
        // SAFETY: rows are those of the grid, for whose nodes all vectors have values.
        Ok(unsafe { self.device.launch(&self.program, &kernel, launch, arguments) }?)
    }
}

impl<T: Scalar> LinearOperator<T, Cuda> for CudaBoxOperator<T> {
    fn n_rows(&self) -> usize {
        self.grid.n_nodes()
    }

    fn n_cols(&self) -> usize {
        self.grid.n_nodes()
    }

    fn device(&self) -> &Cuda {
        &self.device
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, Cuda>,
        x: &Buffer<T, Cuda>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        let hook = CudaHook::of(hook, [self.grid.n_nodes(); 2])?;
        self.subtract(y, Read::none(), x)?;
        let n = y.len();
        let (program, kernel) = (of_product::<T>(&hook), Kernel::<Product<T>>::new("box_product"));
        let arguments = (y.write(), x.read(), n as u64, hook.fields());
        // SAFETY: both vectors have n values; the creator of the hook is responsible for its accesses.
        Ok(unsafe { self.device.launch(&program, &kernel, Launch::over(n, THREADS), arguments) }?)
    }
}

/// Returns the program of the end of a product.
pub(super) fn of_product<T: Scalar>(hook: &CudaHook<'_>) -> Specialisation {
    PRODUCT.of::<T>().header("hook.cuh", hook.source())
}

/// Returns the largest power of two of cells per row for which there are enough teams.
fn row_cells(grid: &BoxGrid) -> usize {
    let [n, m, l] = [0, 1, 2].map(|axis| grid.widths(axis).len());
    let [most, fewest] = ROW_CELLS;
    let n_teams = |row_cells: usize| n.div_ceil(row_cells) * m.div_ceil(2) * l.div_ceil(2);
    let halves = std::iter::successors(Some(most), |row_cells| Some(row_cells / 2));
    halves
        .take_while(|&row_cells| row_cells > fewest)
        .find(|&row_cells| n_teams(row_cells) >= TEAMS)
        .unwrap_or(fewest)
}

fn shape(degree: usize) -> PatchShape {
    let team = (degree + 1) * (degree + 1);
    PatchShape { team, teams: (128 / team).max(1), blocks: 1 }
}

/// Returns the shared memory of a team in bytes.
fn bytes<T>(degree: usize) -> usize {
    let n = degree + 1;
    2 * (n + 1) * n * (n | 1) * size_of::<T>()
}

/// Returns the factors of stiffness if a 27-point stencil applies.
fn scales_of_stencil<T: Scalar>(grid: &BoxGrid) -> Option<[f64; 3]> {
    let is_stencil = grid.degree() == 1 && stencil::fits::<T>(grid.nodes()[0]);
    equal_widths(grid).ok().filter(|_| is_stencil).map(scales)
}

/// Returns the program for a grid, or for its rectangles with a coefficient that varies.
pub(super) fn of_grid<T: Scalar>(grid: &BoxGrid, varies: bool) -> Specialisation {
    let kind = match grid.dimension() {
        _ if !varies || grid.mapping().is_some() => Kind::of::<T>(grid),
        2 => Kind::Plane(PlaneKind::ByCell),
        _ => Kind::ByCell,
    };
    kind.program::<T>(grid)
}

/// Returns the header `tables.cuh` with even and odd parts of mass and stiffness of a cell of width one.
pub(super) fn symmetric_tables(degree: usize) -> String {
    let n = degree + 1;
    let [mass, stiffness] = matrices(degree, &[1.0]).map(|table| table.entries);
    let halves = |a: &[f64], n_rows: usize, sign: f64| -> Vec<f64> {
        let entry =
            |row: usize, column: usize| 0.5 * (a[row * n + column] + sign * a[row * n + n - 1 - column]);
        (0..n_rows * n_rows).map(|at| entry(at / n_rows, at % n_rows)).collect()
    };
    text(&[
        ("MASS_EVEN", halves(&mass, n.div_ceil(2), 1.0)),
        ("MASS_ODD", halves(&mass, n / 2, -1.0)),
        ("STIFFNESS_EVEN", halves(&stiffness, n.div_ceil(2), 1.0)),
        ("STIFFNESS_ODD", halves(&stiffness, n / 2, -1.0)),
    ])
}

fn program<T: Scalar>(degree: usize, is_by_cell: bool) -> Specialisation {
    let program = OPERATOR
        .of::<T>()
        .define("FEMTILE_DEGREE", degree)
        .define("FEMTILE_BY_CELL", u8::from(is_by_cell))
        .header("tables.cuh", symmetric_tables(degree));
    shape(degree).define(program)
}

pub(super) fn specialisations() -> Vec<Specialisation> {
    let of_degree = |degree| {
        [false, true]
            .map(|by_cell| [program::<f64>(degree, by_cell), program::<f32>(degree, by_cell)])
            .concat()
    };
    let hooks = [product_hook(), CudaHook::none()];
    let of_hook = |hook: CudaHook<'_>| [of_product::<f64>(&hook), of_product::<f32>(&hook)];
    let of_hooks = hooks.into_iter().flat_map(of_hook);
    (1..=HIGHEST_DEGREE).flat_map(of_degree).chain(of_hooks).collect()
}

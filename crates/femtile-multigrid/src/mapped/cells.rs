use femtile_device::Cpu;
use femtile_device::cpu::{SharedMut, Source};
use femtile_sum_factorization::{SumFactorization, lanes};

use super::CellGeometry;
use super::product::{CellProduct, ProductWorkspace};
use super::shapes::{ShapeKind, Shapes};
use crate::cell_patches::{self, CellPatches, Rows, gather, scatter};
use crate::grid::{BoxGrid, all};
use crate::smoother::PostOrder;

/// Largest cube edge, in nodes, with a kernel compiled for all products of a cell.
const MAX_CUBE: usize = 9;

/// Returns the kind of data of the cells of a grid.
pub(crate) fn kind_of(grid: &BoxGrid, geometry: &CellGeometry) -> ShapeKind {
    ShapeKind::of(geometry, grid.dimension(), grid.degree() < MAX_CUBE)
}

/// Mapped cells with their coefficients.
#[derive(Debug, Clone)]
pub(crate) struct MappedCells<T> {
    pub shapes: Shapes<T>,
    pub product: CellProduct<T>,
    cell_patches: CellPatches<()>,
}

impl<T: SumFactorization> MappedCells<T> {
    pub fn new(grid: &BoxGrid, geometry: &CellGeometry) -> Self {
        let shapes = Shapes::new(geometry, kind_of(grid, geometry));
        Self {
            product: CellProduct::new(grid.degree(), shapes.kind()),
            shapes,
            cell_patches: CellPatches::new(grid, &cell_patches::cells(grid), |_, _, _| ())
                .with_other_grid(geometry.corner_strides()),
        }
    }

    /// Computes $y \leftarrow y + \alpha A x$ for one cell; `rows` are its nodes.
    pub fn add(&self, cpu: &Cpu, rows: &Rows, y: &SharedMut<'_, T>, x: Source<'_, T>, alpha: T) {
        let n_lanes = lanes::<T>(cpu);
        let workspace = || (vec![T::ZERO; rows.n_nodes() * n_lanes], Vec::new(), ProductWorkspace::default());
        self.cell_patches.sweep::<T, _>(cpu, PostOrder::Same, workspace, |(u, shape, workspace), batch| {
            #[allow(unsafe_code)]
            // SAFETY: x is not written.
            unsafe {
                gather(cpu, rows, batch.firsts, u, x);
            }
            self.shapes.load(batch.others, 0, n_lanes, shape);
            self.product.apply(cpu, shape, u, workspace);
            #[allow(unsafe_code)]
            // SAFETY: cells processed at the same time share no node.
            unsafe {
                scatter(cpu, rows, batch.firsts, u, y, |to, value| *to += alpha * value);
            }
        });
    }
}

/// Calls `work` with each cell of a grid, its first node, and its f64 matrix.
pub(crate) fn for_matrices(
    cpu: &Cpu,
    grid: &BoxGrid,
    geometry: &CellGeometry,
    mut work: impl FnMut(usize, &[f64]),
) {
    let cells = MappedCells::<f64>::new(grid, geometry);
    let (strides, of_corners) = (grid.strides(), geometry.corner_strides());
    let mut workspace = ProductWorkspace::default();
    for cell in all(geometry.cells()) {
        let number = |strides: [usize; 3]| (0..3).map(|axis| strides[axis] * cell[axis]).sum::<usize>();
        let matrix = cells.product.matrix(cpu, cells.shapes.of(number(of_corners)), &mut workspace);
        work(grid.degree() * number(strides), &matrix);
    }
}

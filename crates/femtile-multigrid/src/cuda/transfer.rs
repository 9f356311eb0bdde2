use femtile_device::cuda::{Kernel, Program, Read, STRIDED_HEADER, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::{LinalgError, need};

use super::cells::{CELLS_HEADER, Cells};
use super::constants::text;
use super::shape::PatchShape;
use super::{HIGHEST_DEGREE, check};
use crate::MultigridError;
use crate::axis::embedding;
use crate::grid::BoxGrid;

static TRANSFER: Program = Program {
    name: "box_transfer",
    source: include_str!("transfer.cu"),
    headers: &[STRIDED_HEADER, CELLS_HEADER],
};

type Transfer<T> = (Write<T>, Read<T>, Structure);

/// The embedding of functions on a box of hexahedra into those on one with cells halved along some axes, and its transpose, on a
/// GPU.
///
/// # Cost
/// Up in one launch, down in one for each of eight colours of coarse cells; fine values are read once, and written once on
/// the way up.
/// # Source
/// `[cui2024]`, section 2.1.
#[derive(Debug)]
pub struct CudaTransfer<T: Scalar> {
    device: Cuda,
    coarse: BoxGrid,
    n_fine: usize,
    program: Specialisation,
    precision: std::marker::PhantomData<T>,
}

impl<T: Scalar> CudaTransfer<T> {
    /// From a grid to one with as many cells along some axes and twice as many along the others.
    ///
    /// # Errors
    /// [`MultigridError::Gpu`] for grids with two axes or of too high a degree, and where the second does not refine the first so.
    pub fn new(device: &Cuda, coarse: &BoxGrid, fine: &BoxGrid) -> Result<Self, MultigridError> {
        check(coarse)?;
        let cells = |grid: &BoxGrid, axis: usize| grid.widths(axis).len();
        let parts = [0, 1, 2].map(|axis| cells(fine, axis) / cells(coarse, axis));
        let is_refined = |axis: usize| {
            (1..=2).contains(&parts[axis]) && cells(fine, axis) == parts[axis] * cells(coarse, axis)
        };
        if !(0..3).all(is_refined) || fine.degree() != coarse.degree() {
            let message = "a grid that is none of halves of the coarser one's cells: choose one with as many cells along each \
                           axis, or twice as many";
            return Err(MultigridError::Gpu { message: message.into() });
        }
        Ok(Self {
            device: device.clone(),
            coarse: coarse.clone(),
            n_fine: fine.n_nodes(),
            program: program::<T>(coarse.degree(), parts),
            precision: std::marker::PhantomData,
        })
    }

    /// $x_\ell \leftarrow x_\ell + I x_{\ell-1}$; both are zero on the boundary.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when a vector does not fit, and what the device reports.
    pub fn prolongate(
        &self,
        fine: &mut Buffer<T, Cuda>,
        coarse: &Buffer<T, Cuda>,
    ) -> Result<(), LinalgError> {
        self.fits(fine, coarse)?;
        let cells = Cells::all(&self.coarse);
        let arguments = (fine.write(), coarse.read(), cells.structure());
        let launch = shape(self.coarse.degree()).launch(cells.n, bytes::<T>(self.coarse.degree()));
        let kernel = Kernel::<Transfer<T>>::new("box_prolong");
        // SAFETY: cells lie in the grid, of whose nodes both vectors have values; each fine node that is written is in one cell.
        Ok(unsafe { self.device.launch(&self.program, &kernel, launch, arguments) }?)
    }

    /// $r_{\ell-1} = I^\mathsf{T} r_\ell$ on nodes inside.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when a vector does not fit, and what the device reports.
    pub fn restrict(&self, coarse: &mut Buffer<T, Cuda>, fine: &Buffer<T, Cuda>) -> Result<(), LinalgError> {
        self.fits(fine, coarse)?;
        let kernel = Kernel::<Transfer<T>>::new("box_restrict");
        for cells in Cells::colours(&self.coarse) {
            let arguments = (coarse.write(), fine.read(), cells.structure());
            let launch = shape(self.coarse.degree()).launch(cells.n, bytes::<T>(self.coarse.degree()));
            // SAFETY: as above; coarse cells of a colour have no node in common.
            unsafe { self.device.launch(&self.program, &kernel, launch, arguments) }?;
        }
        Ok(())
    }

    fn fits(&self, fine: &Buffer<T, Cuda>, coarse: &Buffer<T, Cuda>) -> Result<(), LinalgError> {
        need("fine", self.n_fine, fine.len())?;
        need("coarse", self.coarse.n_nodes(), coarse.len())
    }
}

fn shape(degree: usize) -> PatchShape {
    let team = 4 * degree * degree;
    PatchShape { team, teams: (128 / team).max(1), blocks: 1 }
}

/// Shared memory of a team.
fn bytes<T>(degree: usize) -> usize {
    let fine = 2 * degree;
    (degree + 1) * fine * (fine | 1) * size_of::<T>()
}

/// For coarse cells of so many parts along each axis.
fn program<T: Scalar>(degree: usize, parts: [usize; 3]) -> Specialisation {
    let mut values = embedding(degree, 2).entries;
    values.truncate(2 * degree * (degree + 1));
    let program = TRANSFER
        .of::<T>()
        .define("FEMTILE_DEGREE", degree)
        .define("FEMTILE_PARTS_X", parts[0])
        .define("FEMTILE_PARTS_Y", parts[1])
        .define("FEMTILE_PARTS_Z", parts[2])
        .header("tables.cuh", text(&[("VALUES", values)]));
    shape(degree).define(program)
}

/// Of these, cells in halves along all axes, along the first and along the others stand for what levels of stretched boxes take.
pub(super) fn specialisations() -> Vec<Specialisation> {
    let of_degree = |degree: usize| {
        [[2; 3], [2, 1, 1], [1, 2, 2]]
            .map(|parts| [program::<f64>(degree, parts), program::<f32>(degree, parts)])
            .concat()
    };
    (1..=HIGHEST_DEGREE).flat_map(of_degree).collect()
}

use femtile_device::cuda::{
    Header, Kernel, Launch, Program, Read, STRIDED_HEADER, Specialisation, Structure, Write,
};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::{LinalgError, need};

use super::cells::{CELLS_HEADER, Cells};
use super::constants::text;
use super::shape::PatchShape;
use super::{HIGHEST_DEGREE, check, plane};
use crate::MultigridError;
use crate::axis::embedding;
use crate::grid::BoxGrid;

static TRANSFER: Program = Program {
    name: "box_transfer",
    source: include_str!("transfer.cu"),
    headers: &[STRIDED_HEADER, CELLS_HEADER, EMBEDDING_HEADER],
};

/// The header `embedding.cuh`: coarse shape functions along a line of fine nodes.
pub(super) const EMBEDDING_HEADER: Header =
    Header { name: "embedding.cuh", text: include_str!("embedding.cuh") };

type BoxTransfer<T> = (Write<T>, Read<T>, Structure);

/// Prolongation between a box of cells and its refinement along some axes, and restriction, its transpose, on a GPU.
///
/// # Cost
/// Prolongation in one launch, restriction in one for each of $2^d$ colours of coarse cells. Fine values are read once,
/// and written once in prolongation.
/// # Source
/// `[cui2024]`, section 2.1.
#[derive(Debug)]
pub struct CudaTransfer<T: Scalar> {
    device: Cuda,
    coarse: BoxGrid,
    n_fine: usize,
    /// Whether some upper side is free, so that the last cells own nodes there.
    has_far: bool,
    program: Specialisation,
    precision: std::marker::PhantomData<T>,
}

impl<T: Scalar> CudaTransfer<T> {
    /// Creates the transfer; each axis of `fine` has the same number of cells as that of `coarse`, or twice
    /// the number.
    ///
    /// # Errors
    /// [`MultigridError::Gpu`] for too high a degree, or a `fine` that is no such refinement; and device
    /// errors.
    pub fn new(device: &Cuda, coarse: &BoxGrid, fine: &BoxGrid) -> Result<Self, MultigridError> {
        check(coarse)?;
        let cells = |grid: &BoxGrid, axis: usize| grid.widths(axis).len();
        let parts = parts(coarse, fine);
        let is_refined = |axis: usize| {
            (1..=2).contains(&parts[axis]) && cells(fine, axis) == parts[axis] * cells(coarse, axis)
        };
        if !(0..3).all(is_refined)
            || [fine.degree(), fine.dimension()] != [coarse.degree(), coarse.dimension()]
        {
            let message = "a grid that is none of halves of the coarser one's cells: choose one with as many cells along each \
                           axis, or twice as many";
            return Err(MultigridError::Gpu { message: message.into() });
        }
        let has_far = coarse.free_sides().iter().any(|[_, is_free]| *is_free);
        let program = of_grid::<T>(coarse, parts, has_far);
        device.prepare(vec![program.clone()]);
        Ok(Self {
            device: device.clone(),
            coarse: coarse.clone(),
            n_fine: fine.n_nodes(),
            program,
            has_far,
            precision: std::marker::PhantomData,
        })
    }

    /// $x_\ell \leftarrow x_\ell + I x_{\ell-1}$; both are zero at Dirichlet nodes.
    ///
    /// # Errors
    /// [`LinalgError::Length`] for a vector of another length, and device errors.
    pub fn prolongate(
        &self,
        fine: &mut Buffer<T, Cuda>,
        coarse: &Buffer<T, Cuda>,
    ) -> Result<(), LinalgError> {
        self.fits(fine, coarse)?;
        let cells = Cells::all(&self.coarse);
        let arguments = (fine.write(), coarse.read(), cells.structure());
        let launch = self.launch(cells.n);
        let kernel = Kernel::<BoxTransfer<T>>::new(self.name("box_prolong", "plane_prolong"));
        // SAFETY: cells lie in the grid, for whose nodes both vectors have values; one cell writes each fine node.
        Ok(unsafe { self.device.launch(&self.program, &kernel, launch, arguments) }?)
    }

    /// $r_{\ell-1} = I^\mathsf{T} r_\ell$ on unknowns.
    ///
    /// # Errors
    /// [`LinalgError::Length`] for a vector of another length, and device errors.
    pub fn restrict(&self, coarse: &mut Buffer<T, Cuda>, fine: &Buffer<T, Cuda>) -> Result<(), LinalgError> {
        self.fits(fine, coarse)?;
        let kernel = Kernel::<BoxTransfer<T>>::new(self.name("box_restrict", "plane_restrict"));
        for cells in Cells::colours(&self.coarse) {
            let arguments = (coarse.write(), fine.read(), cells.structure());
            let launch = self.launch(cells.n);
            // SAFETY: as above; coarse cells of a colour share no node.
            unsafe { self.device.launch(&self.program, &kernel, launch, arguments) }?;
        }
        Ok(())
    }

    /// Returns the launch for `n` coarse cells.
    fn launch(&self, n: usize) -> Launch {
        let (degree, has_far) = (self.coarse.degree(), self.has_far);
        match self.coarse.dimension() {
            2 => plane::transfer::shape(degree, has_far)
                .launch(n, plane::transfer::bytes::<T>(degree, has_far)),
            _ => shape(degree, has_far).launch(n, bytes::<T>(degree, has_far)),
        }
    }

    /// Returns the name of a kernel in space or in the plane.
    fn name(&self, in_space: &'static str, in_plane: &'static str) -> &'static str {
        if self.coarse.dimension() == 2 { in_plane } else { in_space }
    }

    fn fits(&self, fine: &Buffer<T, Cuda>, coarse: &Buffer<T, Cuda>) -> Result<(), LinalgError> {
        need("fine", self.n_fine, fine.len())?;
        need("coarse", self.coarse.n_nodes(), coarse.len())
    }
}

/// Returns the largest number of fine nodes of a coarse cell along an axis.
pub(super) fn n_fine(degree: usize, has_far: bool) -> usize {
    2 * degree + usize::from(has_far)
}

fn shape(degree: usize, has_far: bool) -> PatchShape {
    let team = n_fine(degree, has_far).pow(2);
    PatchShape { team, teams: (128 / team).max(1), blocks: 1 }
}

/// Returns the shared memory of a team in bytes.
fn bytes<T>(degree: usize, has_far: bool) -> usize {
    let fine = n_fine(degree, has_far);
    (degree + 1) * fine * (fine | 1) * size_of::<T>()
}

/// Returns the number of fine cells per coarse cell along each axis, one along an absent axis.
pub(super) fn parts(coarse: &BoxGrid, fine: &BoxGrid) -> [usize; 3] {
    [0, 1, 2].map(|axis| fine.widths(axis).len().max(1) / coarse.widths(axis).len().max(1))
}

/// Returns the program for parts of a cell of a coarser grid along each axis, with or without nodes on free upper sides.
pub(super) fn of_grid<T: Scalar>(coarse: &BoxGrid, parts: [usize; 3], has_far: bool) -> Specialisation {
    match coarse.dimension() {
        2 => plane::transfer::program::<T>(coarse.degree(), parts, has_far),
        _ => program::<T>(coarse.degree(), parts, has_far),
    }
}

fn program<T: Scalar>(degree: usize, parts: [usize; 3], has_far: bool) -> Specialisation {
    shape(degree, has_far).define(with_tables(TRANSFER.of::<T>(), degree, parts, has_far))
}

/// Adds macros and tables of the embedding of coarse cells.
pub(super) fn with_tables(
    program: Specialisation,
    degree: usize,
    parts: [usize; 3],
    has_far: bool,
) -> Specialisation {
    let mut values = embedding(degree, 2).entries;
    values.truncate(n_fine(degree, has_far) * (degree + 1));
    program
        .define("FEMTILE_DEGREE", degree)
        .define("FEMTILE_FAR", u8::from(has_far))
        .define("FEMTILE_PARTS_X", parts[0])
        .define("FEMTILE_PARTS_Y", parts[1])
        .define("FEMTILE_PARTS_Z", parts[2])
        .header("tables.cuh", text(&[("VALUES", values)]))
}

/// Halves along all axes, along the first and along the others represent all semicoarsenings.
pub(super) fn specialisations() -> Vec<Specialisation> {
    let of_degree = |degree: usize| {
        [([2; 3], false), ([2, 1, 1], false), ([1, 2, 2], false), ([2; 3], true)]
            .map(|(parts, far)| [program::<f64>(degree, parts, far), program::<f32>(degree, parts, far)])
            .concat()
    };
    (1..=HIGHEST_DEGREE).flat_map(of_degree).collect()
}

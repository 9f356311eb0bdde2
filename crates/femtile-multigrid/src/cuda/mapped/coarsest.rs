use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile_device::{Buffer, Cpu, Cuda, Scalar};
use femtile_linalg::{LinalgError, need};

use super::super::check;
use crate::MultigridError;
use crate::grid::BoxGrid;
use crate::smoother::{for_entries, unknowns};

static DENSE: Program = Program { name: "box_dense", source: include_str!("coarsest.cu"), headers: &[] };
const THREADS: u32 = 256;
/// Threads of a row of a product: a warp.
const ROW_THREADS: usize = 32;
/// Most unknowns: 200 MB for the inverse.
const MOST_UNKNOWNS: usize = 5_000;

type Eliminate = (Write<f64>, Read<f64>, u64, u64);
type Solve<T> = (Write<T>, Read<T>, Read<f64>, Read<u32>, u64);

/// Returns the program of the solver.
pub(in super::super) fn program<T: Scalar>() -> Specialisation {
    DENSE.of::<T>()
}

pub(in super::super) fn specialisations() -> Vec<Specialisation> {
    vec![program::<f64>(), program::<f32>()]
}

/// The exact solver of a coarsest grid of mapped hexahedra, or of quadrilaterals, by the inverse of its matrix, in f64.
///
/// # Cost
/// With n unknowns, $n^2$ numbers, read once in one launch per solve; $n^3$ multiplications in n launches, and twice the
/// memory, at set-up.
#[derive(Debug)]
pub struct CudaInverse<T: Scalar> {
    device: Cuda,
    /// Nodes of the grid.
    n_nodes: usize,
    /// The node of each unknown.
    nodes: Buffer<u32, Cuda>,
    /// $-A^{-1}$.
    inverse: Buffer<f64, Cuda>,
    program: Specialisation,
    precision: std::marker::PhantomData<T>,
}

impl<T: Scalar> CudaInverse<T> {
    /// Assembles the matrix on the host and inverts it.
    ///
    /// # Errors
    /// [`MultigridError::Gpu`] for grids without kernels or with too many unknowns, and device errors.
    pub fn new(device: &Cuda, grid: &BoxGrid) -> Result<Self, MultigridError> {
        check(grid)?;
        check_unknowns(grid)?;
        let program = program::<T>();
        device.prepare(vec![program.clone()]);
        let nodes = unknowns(grid);
        let n = nodes.len();
        let mut entries = vec![0.0; n * n];
        for_entries(&Cpu::new(1)?, grid, &grid.geometry(), &nodes, |row, column, entry| {
            entries[row * n + column] += entry;
        });
        for row in 0..n {
            (0..row).for_each(|column| entries[column * n + row] = entries[row * n + column]);
        }
        let mut inverse = Buffer::from_vec(device, entries)?;
        let mut other = Buffer::zeros(device, n * n)?;
        let kernel = Kernel::<Eliminate>::new("dense_eliminate");
        for pivot in 0..n {
            let arguments = (other.write(), inverse.read(), n as u64, pivot as u64);
            // SAFETY: both copies have n² entries.
            unsafe { device.launch(&program, &kernel, Launch::over(n * n, THREADS), arguments) }?;
            std::mem::swap(&mut inverse, &mut other);
        }
        Ok(Self {
            device: device.clone(),
            n_nodes: grid.n_nodes(),
            nodes: Buffer::from_vec(device, nodes)?,
            inverse,
            program,
            precision: std::marker::PhantomData,
        })
    }

    /// Solves A x = b; both are zero at Dirichlet nodes.
    pub(in super::super) fn solve(
        &self,
        x: &mut Buffer<T, Cuda>,
        b: &Buffer<T, Cuda>,
    ) -> Result<(), LinalgError> {
        need("x", self.n_nodes, x.len())?;
        need("b", self.n_nodes, b.len())?;
        let n = self.nodes.len();
        let kernel = Kernel::<Solve<T>>::new("dense_solve");
        let arguments = (x.write(), b.read(), self.inverse.read(), self.nodes.read(), n as u64);
        // SAFETY: unknowns are nodes of the grid, for which both vectors have values; the inverse has n² entries.
        Ok(unsafe {
            self.device.launch(&self.program, &kernel, Launch::over(n * ROW_THREADS, THREADS), arguments)
        }?)
    }
}

/// Checks that the inverse of the matrix of a coarsest grid is not too large.
pub(in super::super) fn check_unknowns(grid: &BoxGrid) -> Result<(), MultigridError> {
    let n = grid.n_unknowns();
    if n <= MOST_UNKNOWNS {
        return Ok(());
    }
    let message = format!(
        "{n} unknowns on the coarsest level, at most {MOST_UNKNOWNS} where cells are not rectangles with coefficient one: \
         choose numbers of cells that can be halved more often"
    );
    Err(MultigridError::Gpu { message })
}

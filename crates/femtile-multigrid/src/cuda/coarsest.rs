use std::sync::{Mutex, PoisonError};

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, need};

use super::check_hexahedra;
use crate::MultigridError;
use crate::axis::{matrices, modes};
use crate::grid::{BoxGrid, all};

static CONTRACT: Program =
    Program { name: "box_contract", source: include_str!("coarsest.cu"), headers: &[] };
const THREADS: u32 = 128;

/// Returns the program of the solver.
pub(super) fn program<T: Scalar>() -> Specialisation {
    CONTRACT.of::<T>()
}

type SumFactorization<T> = (Write<T>, Read<T>, Read<T>, Structure);

/// The exact solver of a coarsest grid of hexahedra by the fast diagonalization method.
///
/// # Cost
/// One launch per product with a 1-D matrix: along each axis, forward and back.
/// # Source
/// `[cui2024]`, eqs. (2.13)–(2.15), with one patch of all cells.
#[derive(Debug)]
pub struct CudaCoarsest<T: Scalar> {
    device: Cuda,
    /// Nodes of the grid.
    n_nodes: usize,
    /// Unknowns along each axis.
    n: [usize; 3],
    /// Their positions among the nodes of the grid.
    inside: Places,
    /// $S^\mathsf{T}$ and S of each axis.
    matrices: [[Buffer<T, Cuda>; 3]; 2],
    /// $1 / (\lambda_i + \lambda_j + \lambda_l)$.
    inverse: Buffer<T, Cuda>,
    workspace: Mutex<[Buffer<T, Cuda>; 2]>,
}

/// Positions of values along each axis: the first one, and the strides.
#[derive(Debug, Clone, Copy)]
struct Places {
    first: usize,
    strides: [usize; 3],
}

impl<T: Scalar> CudaCoarsest<T> {
    /// Sets up the solver; at least two cells along an axis for degree 1.
    ///
    /// # Errors
    /// [`MultigridError::Gpu`] for grids without kernels, and device errors.
    pub fn new(device: &Cuda, grid: &BoxGrid) -> Result<Self, MultigridError> {
        check_hexahedra(grid)?;
        if grid.mapping().is_some() {
            let message = "the eigenvectors of axes solve on rectangles with coefficient one alone".into();
            return Err(MultigridError::Gpu { message });
        }
        let free = grid.free_sides();
        let of_axes = [0, 1, 2].map(|axis| modes(&matrices(grid.degree(), grid.widths(axis)), free[axis]));
        let strides = grid.strides();
        let n = of_axes.each_ref().map(|(values, _)| values.len());
        let sum = |at: [usize; 3]| of_axes.iter().zip(at).map(|((values, _), at)| values[at]).sum::<f64>();
        let inverse: Vec<T> = all(n).map(|at| T::from_f64(1.0 / sum(at))).collect();
        let upload =
            |entries: Vec<f64>| Buffer::from_vec(device, entries.into_iter().map(T::from_f64).collect());
        let [x, y, z] = of_axes.each_ref().map(|(_, s)| upload(s.transpose().entries));
        let forward = [x?, y?, z?];
        let [x, y, z] = of_axes.map(|(_, s)| upload(s.entries));
        let inverse = Buffer::from_vec(device, inverse)?;
        let workspace = [Buffer::zeros(device, inverse.len())?, Buffer::zeros(device, inverse.len())?];
        Ok(Self {
            device: device.clone(),
            n_nodes: grid.n_nodes(),
            n,
            inside: Places {
                first: (0..3).filter(|&axis| !free[axis][0]).map(|axis| strides[axis]).sum(),
                strides,
            },
            matrices: [forward, [x?, y?, z?]],
            inverse,
            workspace: Mutex::new(workspace),
        })
    }

    /// Solves A x = b; both are zero at Dirichlet nodes.
    pub(super) fn solve(&self, x: &mut Buffer<T, Cuda>, b: &Buffer<T, Cuda>) -> Result<(), LinalgError> {
        need("x", self.n_nodes, x.len())?;
        need("b", self.n_nodes, b.len())?;
        let [forward, back] = &self.matrices;
        let mut workspace = self.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        let [one, other] = &mut *workspace;
        let close = Places { first: 0, strides: [1, self.n[0], self.n[0] * self.n[1]] };
        self.contract((one, close), (b, self.inside), forward, 0)?;
        self.contract((other, close), (one, close), forward, 1)?;
        self.contract((one, close), (other, close), forward, 2)?;
        self.device.scale_by(other, &self.inverse, one)?;
        self.contract((one, close), (other, close), back, 0)?;
        self.contract((other, close), (one, close), back, 1)?;
        self.contract((x, self.inside), (other, close), back, 2)
    }

    /// Applies the matrix of an axis along it.
    fn contract(
        &self,
        (y, to): (&mut Buffer<T, Cuda>, Places),
        (x, from): (&Buffer<T, Cuda>, Places),
        matrices: &[Buffer<T, Cuda>; 3],
        axis: usize,
    ) -> Result<(), LinalgError> {
        let sides =
            [from, to].into_iter().flat_map(|Places { first, strides }| [first].into_iter().chain(strides));
        let words = self.n.into_iter().chain([axis]).chain(sides).map(|word| word as u64);
        let kernel = Kernel::<SumFactorization<T>>::new("box_contract");
        let arguments = (y.write(), x.read(), matrices[axis].read(), Structure(words.collect()));
        let launch = Launch::over(self.n.iter().product(), THREADS);
        // SAFETY: both vectors have the inner values of the grid, and the matrix has a row and a column for each along
        // the axis.
        Ok(unsafe { self.device.launch(&program::<T>(), &kernel, launch, arguments) }?)
    }
}

pub(super) fn specialisations() -> Vec<Specialisation> {
    vec![program::<f64>(), program::<f32>()]
}

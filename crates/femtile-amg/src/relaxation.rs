//! Smoothers of a level.

use femtile_device::{Buffer, Device, Scalar, parallel};
use femtile_linalg::LinalgError;
use femtile_linalg::precondition::polynomial::{Step, chebyshev};

use crate::Smoother;
use crate::patches::{PatchSmoother, Patches};
use crate::setup::rows::{RowAccess, Rows};
use crate::setup::spectrum::{DAMPING, Scaling};

/// The interval of Chebyshev polynomials relative to the estimate of the largest eigenvalue. It has the centre of $[0.3, 1]$,
/// so that the polynomials stay below one in magnitude as far, and is wider, to reduce more of the middle of the spectrum,
/// which aggregates represent badly on irregular meshes.
const INTERVAL: [f64; 2] = [0.15, 1.15];
/// The number of Gauss–Seidel blocks of a level, within bounds on their rows; independent of the number of threads.
const BLOCKS: usize = 16;
const BLOCK_ROWS: [usize; 2] = [4_096, 32_768];
/// Rows of a parallel task.
const PIECE: usize = 4_096;

/// The smoother of one matrix. Reciprocals of the diagonal are raised if necessary.
#[derive(Debug)]
pub(crate) enum Relaxation<H: Scalar, D: Device> {
    /// A polynomial with these steps.
    Polynomial { steps: Vec<Step<H>>, inverse_diagonal: Buffer<H, D> },
    /// Gauss–Seidel sweeps in blocks of `block` rows.
    GaussSeidel { sweeps: usize, block: usize, inverse_diagonal: Buffer<H, D> },
    /// Additive Schwarz on patches.
    Patches(Box<PatchSmoother<H, D>>),
}

impl<H: Scalar, D: Device> Relaxation<H, D> {
    /// Sets up the smoother of a matrix with this diagonal and scaling; with patches, rows are in the order of the patches.
    pub fn new(
        device: &D,
        smoother: Smoother,
        (a, diagonal): (&Rows<H>, &[H]),
        patches: Option<&Patches>,
        scaling: Scaling<H>,
    ) -> Result<Self, LinalgError> {
        Ok(match smoother {
            Smoother::GaussSeidel { sweeps } => {
                let block = (a.n_rows() / BLOCKS).clamp(BLOCK_ROWS[0], BLOCK_ROWS[1]);
                let inverse_diagonal = Buffer::from_vec(device, blocked_diagonal(a, diagonal, block))?;
                Self::GaussSeidel { sweeps, block, inverse_diagonal }
            }
            Smoother::Jacobi { .. } | Smoother::Chebyshev { .. } => {
                let inverse_diagonal = Buffer::from_vec(device, scaling.inverse_diagonal)?;
                Self::polynomial(smoother, inverse_diagonal, scaling.largest)
            }
            Smoother::Patch { inner, format } => {
                let level = (a, diagonal);
                let by = PatchSmoother::new(device, (inner, format), level, patches, scaling)?;
                Self::Patches(Box::new(by))
            }
        })
    }

    /// Makes a polynomial smoother from reciprocals of the diagonal on the device.
    pub fn polynomial(smoother: Smoother, inverse_diagonal: Buffer<H, D>, largest: f64) -> Self {
        Self::Polynomial { steps: steps(smoother, largest), inverse_diagonal }
    }

    /// Returns the number of patches; 0 for other smoothers.
    pub fn n_patches(&self) -> usize {
        if let Self::Patches(by) = self { by.matrix.n_patches() } else { 0 }
    }
}

/// Returns the steps of a polynomial smoother; none of others.
pub(crate) fn steps<H: Scalar>(smoother: Smoother, largest: f64) -> Vec<Step<H>> {
    match smoother {
        Smoother::Jacobi { sweeps } => {
            vec![Step { alpha: H::from_f64(DAMPING / largest), beta: H::ZERO, is_kept: false }; sweeps]
        }
        Smoother::Chebyshev { degree } => chebyshev(degree, INTERVAL.map(|end| end * largest)),
        Smoother::GaussSeidel { .. } | Smoother::Patch { .. } => Vec::new(),
    }
}

/// Returns the reciprocals of a diagonal $\tilde D$ with which sweeps in blocks converge: with M, the lower triangle in the
/// blocks and $\tilde D$, the matrix $M + M^\mathsf{T} - A = 2 \tilde D - D - A_\text{outside}$ is diagonally dominant.
///
/// # Source
/// `[baker2011]`, section 5, adds all entries outside the block; here only the part that diagonal dominance
/// lacks.
fn blocked_diagonal<H: Scalar>(a: &Rows<H>, diagonal: &[H], block: usize) -> Vec<H> {
    let of_row = |row: usize| {
        let own = row / block;
        let (columns, values) = a.row(row);
        let outside = columns.iter().zip(values).filter(|(column, _)| **column as usize / block != own);
        let outside: H = outside.map(|(_, value)| value.abs()).sum();
        let least = H::from_f64(0.5) * (diagonal[row] + outside);
        H::ONE / if least > diagonal[row] { least } else { diagonal[row] }
    };
    parallel::map(a.n_rows(), PIECE, of_row)
}

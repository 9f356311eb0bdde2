//! Smoothers of a level.

use femtile_device::{Buffer, Device, Scalar, parallel};
use femtile_linalg::LinalgError;
use femtile_linalg::precondition::polynomial::{Step, chebyshev};

use crate::Smoother;
use crate::patch::{PatchMatrix, PatchSmoother, outer_damping};
use crate::setup::patches::Patches;
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

/// The smoother of one matrix.
#[derive(Debug)]
pub(crate) struct Relaxation<H: Scalar, D: Device> {
    pub kind: Kind<H, D>,
    /// The reciprocals of the diagonal, raised if necessary; with patches times the inner damping.
    pub inverse_diagonal: Buffer<H, D>,
}

/// The method of a smoother.
#[derive(Debug)]
pub(crate) enum Kind<H: Scalar, D: Device> {
    /// A polynomial with these steps.
    Polynomial(Vec<Step<H>>),
    /// Gauss–Seidel sweeps in blocks of `block` rows.
    GaussSeidel { sweeps: usize, block: usize },
    /// Additive Schwarz on patches.
    Patch(Patch<H, D>),
}

/// Data of the patch smoother.
#[derive(Debug)]
pub(crate) struct Patch<H: Scalar, D: Device> {
    pub matrix: PatchMatrix<H, D>,
    inner: usize,
    omega: H,
}

impl<H: Scalar, D: Device> Patch<H, D> {
    /// Returns the smoother with damped reciprocals of the diagonal.
    pub fn smoother<'a>(&'a self, scale: &'a Buffer<H, D>) -> PatchSmoother<'a, H, D> {
        PatchSmoother { matrix: &self.matrix, scale, inner: self.inner, omega: self.omega }
    }
}

impl<H: Scalar, D: Device> Relaxation<H, D> {
    /// Sets up the smoother of a matrix with this diagonal and scaling; with patches, rows are in the order of the patches.
    pub fn new(
        device: &D,
        smoother: Smoother,
        a: &Rows<H>,
        diagonal: &[H],
        patches: Option<&Patches>,
        Scaling { inverse_diagonal, largest, .. }: Scaling<H>,
    ) -> Result<Self, LinalgError> {
        let (kind, inverse) = match smoother {
            Smoother::GaussSeidel { sweeps } => {
                let block = (a.n_rows() / BLOCKS).clamp(BLOCK_ROWS[0], BLOCK_ROWS[1]);
                (Kind::GaussSeidel { sweeps, block }, blocked_diagonal(a, diagonal, block))
            }
            Smoother::Jacobi { .. } | Smoother::Chebyshev { .. } => {
                (Kind::Polynomial(steps(smoother, largest)), inverse_diagonal)
            }
            Smoother::Patch { inner, format } => {
                let starts = patches.map_or(&[0][..], |patches| &patches.starts);
                let damping = H::from_f64(DAMPING / largest);
                let scale: Vec<H> = inverse_diagonal.into_iter().map(|inverse| damping * inverse).collect();
                let omega = H::from_f64(outer_damping(a, &scale, starts, inner));
                let matrix = PatchMatrix::new(device, a, diagonal.to_vec(), starts, format)?;
                (Kind::Patch(Patch { matrix, inner, omega }), scale)
            }
        };
        Ok(Self { kind, inverse_diagonal: Buffer::from_vec(device, inverse)? })
    }

    /// Makes a patch smoother from a matrix in three parts and damped reciprocals of its diagonal on the device.
    pub fn by_patches(
        smoother: Smoother,
        scale: Buffer<H, D>,
        matrix: PatchMatrix<H, D>,
        omega: f64,
    ) -> Self {
        let inner = if let Smoother::Patch { inner, .. } = smoother { inner } else { 1 };
        let kind = Kind::Patch(Patch { matrix, inner, omega: H::from_f64(omega) });
        Self { kind, inverse_diagonal: scale }
    }

    /// Makes a polynomial smoother from reciprocals of the diagonal on the device.
    pub fn polynomial(smoother: Smoother, inverse_diagonal: Buffer<H, D>, largest: f64) -> Self {
        Self { kind: Kind::Polynomial(steps(smoother, largest)), inverse_diagonal }
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

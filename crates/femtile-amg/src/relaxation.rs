//! What smooths on a level.

use femtile_device::{Buffer, Device, Scalar, parallel};
use femtile_linalg::LinalgError;
use femtile_linalg::precondition::polynomial::{Step, chebyshev};

use crate::Smoother;
use crate::patch::{PatchMatrix, PatchSmoother, outer_damping};
use crate::setup::patches::Patches;
use crate::setup::rows::{RowAccess, Rows};
use crate::setup::spectrum::{DAMPING, Scaling};

/// The eigenvalues that Chebyshev polynomials act on, relative to the estimate of the largest one. The interval is centred
/// where $[0.3, 1]$ is, so that they stay below one in magnitude as far, and wider: more of the middle of the spectrum, which
/// aggregates represent badly on irregular meshes, is reduced.
const INTERVAL: [f64; 2] = [0.15, 1.15];
/// Gauss–Seidel's blocks: so many of a level, but for bounds on their rows. They do not depend on the number of threads.
const BLOCKS: usize = 16;
const BLOCK_ROWS: [usize; 2] = [4_096, 32_768];
/// Rows that one piece of work takes.
const PIECE: usize = 4_096;

/// A smoother made for one matrix.
#[derive(Debug)]
pub(crate) struct Relaxation<H: Scalar, D: Device> {
    pub kind: Kind<H, D>,
    /// The reciprocals of the diagonal, raised where that is needed; with patches times the damping within them.
    pub inverse_diagonal: Buffer<H, D>,
}

/// How it smooths.
#[derive(Debug)]
pub(crate) enum Kind<H: Scalar, D: Device> {
    /// By these steps.
    Polynomial(Vec<Step<H>>),
    /// By sweeps in blocks of so many rows.
    GaussSeidel { sweeps: usize, block: usize },
    /// By patches.
    Patch(Patch<H, D>),
}

/// What smooths by patches.
#[derive(Debug)]
pub(crate) struct Patch<H: Scalar, D: Device> {
    pub matrix: PatchMatrix<H, D>,
    inner: usize,
    omega: H,
}

impl<H: Scalar, D: Device> Patch<H, D> {
    /// With the damped reciprocals of the diagonal.
    pub fn smoother<'a>(&'a self, scale: &'a Buffer<H, D>) -> PatchSmoother<'a, H, D> {
        PatchSmoother { matrix: &self.matrix, scale, inner: self.inner, omega: self.omega }
    }
}

impl<H: Scalar, D: Device> Relaxation<H, D> {
    /// For a matrix with this diagonal and scaling; its rows follow each other patch by patch where these smooth.
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

    /// By patches, for a matrix in three parts and damped reciprocals of its diagonal that lie where the matrix does.
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

    /// By a polynomial, for reciprocals of a diagonal that lie where the matrix does.
    pub fn polynomial(smoother: Smoother, inverse_diagonal: Buffer<H, D>, largest: f64) -> Self {
        Self { kind: Kind::Polynomial(steps(smoother, largest)), inverse_diagonal }
    }
}

/// The steps of a smoother that is a polynomial; none of others.
fn steps<H: Scalar>(smoother: Smoother, largest: f64) -> Vec<Step<H>> {
    match smoother {
        Smoother::Jacobi { sweeps } => {
            vec![Step { alpha: H::from_f64(DAMPING / largest), beta: H::ZERO, is_kept: false }; sweeps]
        }
        Smoother::Chebyshev { degree } => chebyshev(degree, INTERVAL.map(|end| end * largest)),
        Smoother::GaussSeidel { .. } | Smoother::Patch { .. } => Vec::new(),
    }
}

/// Reciprocals of a diagonal $\tilde D$ with which sweeps in blocks reduce the error: with M, its lower part in the
/// blocks and $\tilde D$, the matrix $M + M^\mathsf{T} - A = 2 \tilde D - D - A_\text{outside}$ is diagonally dominant.
///
/// # Source
/// `[baker2011]`, section 5, adds all that is outside; here only what dominance lacks.
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

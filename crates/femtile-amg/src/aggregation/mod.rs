//! Algebraic multigrid by plain aggregation for matrices that are not symmetric.

mod config;
mod couplings;
mod cycle;
mod dense_factor;
mod downstream;
mod incomplete_factor;
mod pairs;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};

use femtile_device::{Buffer, Cpu, parallel};
use femtile_linalg::{LinalgError, Preconditioner, need};
use femtile_sparse::csr::Csr;

use crate::hierarchy::operator_complexity;
use crate::setup::galerkin::galerkin;
use crate::setup::rows::{RowAccess, Rows, inverse};
use crate::{AmgError, LevelShape, check};
pub use config::AggregationConfig;
use couplings::Couplings;
use cycle::{Level, Levels, Transfer, Vectors};
use dense_factor::DenseFactor;
use downstream::downstream_order;
use incomplete_factor::IncompleteFactor;
use pairs::aggregates;

/// Coarsening ends if the next level would have more than this share of the rows.
const STALLED: f64 = 0.8;

/// Algebraic multigrid for matrices that need not be symmetric, such as those of convection–diffusion, as a preconditioner
/// of GMRES.
///
/// Rows are aggregated in pairs along their strongest couplings in $(A + A^\mathsf{T})/2$, the pairs in pairs, and so on. With
/// $P_{ig} = 1$ if row i belongs to aggregate g, the matrix of the next level is $P^\mathsf{T} A P$. The rows of each level
/// are numbered downstream, and incomplete factors $L U \approx A$ in that order smooth before and after the
/// correction. So convection, where A is nearly triangular, is left to the smoother, and diffusion to the levels. Gauss–Seidel
/// sweeps fail with streamline diffusion in recirculating flows at high cell Péclet numbers. Coarser levels are solved by up
/// to two steps of GCR preconditioned by the cycle (K cycle), the coarsest by a dense LU factorization.
///
/// Rows without couplings, as those of Dirichlet values, and rows with a dominant diagonal belong to no aggregate; the
/// smoother solves them.
///
/// # Cost
/// Memory of 20 bytes per entry of all levels, which have 1.3 to 1.4 times the entries of A. A cycle passes over the matrix of its
/// level and over the factors twice each; level l is visited up to $2^l$ times, and each visit of a coarser level takes one
/// more product. Factors are solved by one thread; the bits are the same for any number of threads.
/// # Source
/// `[notay2012]`, with the K cycle of `[notay2010]`. Differs: incomplete factors in the place of Gauss–Seidel, rows numbered
/// downstream, and the quality of a pair only orders the candidates.
#[derive(Debug)]
pub struct AggregationAmg {
    levels: Levels,
    /// The row of the given matrix for each row of the first level, and the inverse of that.
    order: Vec<u32>,
    places: Vec<u32>,
    shapes: Vec<LevelShape>,
    vectors: Mutex<Vec<Vectors>>,
}

impl AggregationAmg {
    /// Sets up the levels of a square matrix whose diagonal entries are positive.
    ///
    /// # Errors
    /// [`AmgError::NotSquare`]; [`AmgError::NotFinite`] and [`AmgError::Diagonal`] naming the row; [`AmgError::Setting`] for a
    /// setting out of its range; [`AmgError::Linalg`] if memory is short.
    pub fn new(matrix: &Csr<f64, Cpu>, config: &AggregationConfig) -> Result<Self, AmgError> {
        config.check()?;
        let (n_rows, n_cols) = (matrix.n_rows(), matrix.n_cols());
        if n_rows != n_cols {
            return Err(AmgError::NotSquare { n_rows, n_cols });
        }
        let cpu = matrix.values().device();
        cpu.install(|| Self::of(cpu, Rows::as_is(matrix)?, config))
    }

    fn of(cpu: &Cpu, mut a: Rows<f64>, config: &AggregationConfig) -> Result<Self, AmgError> {
        let (mut smoothed, mut shapes) = (Vec::<Level>::new(), Vec::new());
        let mut order: Vec<u32> = (0..a.n_rows() as u32).collect();
        let mut diagonal = check::diagonal(&a, 1.0)?;
        let mut coarsest = None;
        while coarsest.is_none() {
            let n = a.n_rows();
            let mut shape = LevelShape {
                n_rows: n,
                n_nonzeros: a.values.len(),
                n_aggregates: 0,
                n_patches: 0,
                n_prolongator: 0,
            };
            if n <= config.coarse_rows {
                shapes.push(shape);
                coarsest = Some(DenseFactor::new(&a));
                break;
            }
            let couplings = Couplings::new(a);
            let downstream = downstream_order(&couplings, &diagonal);
            match smoothed.last_mut().and_then(|finer| finer.transfer.as_mut()) {
                Some(transfer) => transfer.renumber(&inverse(&downstream)),
                None => order.clone_from(&downstream),
            }
            let p = aggregates(&couplings.symmetric_part(), &downstream, config.passes);
            a = couplings.a;
            let fine = a.permuted(&downstream);
            let (factor, transfer) = (IncompleteFactor::new(&fine), Transfer::new(p.with_rows(&downstream)));
            (shape.n_aggregates, shape.n_prolongator) = (p.n_cols, p.values.len());
            shapes.push(shape);
            let is_last = p.n_cols == 0 || p.n_cols as f64 > STALLED * n as f64;
            let transfer = (!is_last).then_some(transfer);
            smoothed.push(Level { a: fine.into_device(cpu)?, factor, transfer });
            if is_last {
                break;
            }
            a = galerkin(&a, &p, &p.transpose());
            diagonal = (0..a.n_rows()).map(|row| check::diagonal_entry(&a, row)).collect();
            if let Some(row) = diagonal.iter().position(|&pivot| pivot <= 0.0) {
                return Err(AmgError::Indefinite { n_rows: a.n_rows(), row, pivot: diagonal[row] });
            }
        }
        let levels = Levels { smoothed, coarsest };
        let vectors = Mutex::new(levels.vectors(cpu)?);
        Ok(Self { levels, places: inverse(&order), order, shapes, vectors })
    }

    /// Returns the sizes of the levels, the finest first.
    pub fn shapes(&self) -> &[LevelShape] {
        &self.shapes
    }

    /// Returns the non-zeros of all levels over those of the first.
    pub fn operator_complexity(&self) -> f64 {
        operator_complexity(&self.shapes)
    }
}

impl Preconditioner<f64, Cpu> for AggregationAmg {
    fn apply(&self, z: &mut Buffer<f64, Cpu>, r: &Buffer<f64, Cpu>) -> Result<(), LinalgError> {
        need("z", self.order.len(), z.len())?;
        need("r", self.order.len(), r.len())?;
        let mut vectors = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let vectors = &mut *vectors;
        r.device().install(|| {
            gather(vectors[0].b.as_mut_slice(), r.as_slice(), &self.order);
            self.levels.cycle(r.device(), 0, vectors)?;
            gather(z.as_mut_slice(), vectors[0].x.as_slice(), &self.places);
            Ok(())
        })
    }

    fn is_fixed(&self) -> bool {
        self.levels.is_fixed()
    }
}

/// Computes $y_i = x_{\text{of}_i}$.
fn gather(y: &mut [f64], x: &[f64], of: &[u32]) {
    parallel::for_chunks_mut(y, parallel::CHEAP, |begin, y| {
        y.iter_mut().zip(&of[begin..]).for_each(|(y, &at)| *y = x[at as usize]);
    });
}

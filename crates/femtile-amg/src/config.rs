use femtile_sparse::MatrixFormat;

use crate::AmgError;
use crate::setup::patches::MOST_ROWS;

/// Settings of a hierarchy.
#[derive(Debug, Clone, PartialEq)]
pub struct AmgConfig {
    /// Rows of the matrix that belong to one node, such as 3 for displacements; their numbers follow each other. Default 1.
    pub block_size: usize,
    /// Neighbours may be grouped where $\|A_{ij}\| > \theta \sqrt{\|A_{ii}\| \|A_{jj}\|}$; with 0 all may. Default 0.04; a
    /// quarter of it on coarser levels. Prolongators are smoothed by entries above a quarter of it, halved from level to
    /// level.
    pub strength: f64,
    /// Aggregates of fewer nodes are dealt out to others. Default 9.
    pub least_aggregate: u32,
    /// The coarsest level has at most so many rows and is solved directly. Default 200.
    pub coarse_rows: usize,
    /// Levels at most. Default 20.
    pub max_levels: usize,
    /// What smooths on every level.
    pub smoother: Smoother,
    /// How levels are visited.
    pub cycle: Cycle,
    /// The format of the matrices of levels on which a polynomial smooths; by default the one that is expected to be the
    /// fastest of all with its conversion. The matrices of other levels, and transfers, which are applied once a cycle, are
    /// kept in compressed sparse rows.
    pub format: MatrixFormat,
}

/// What smooths errors that coarser levels cannot see; the same before and after the coarser level, so that the cycle
/// is symmetric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Smoother {
    /// Jacobi's method, damped by $\omega = 4 / (3 \lambda_\max(D^{-1} A))$.
    Jacobi {
        /// Times before and after.
        sweeps: usize,
    },
    /// Gauss–Seidel's method in blocks of rows, ascending before the coarser level and descending after it; on CPUs.
    GaussSeidel {
        /// Sweeps before and after.
        sweeps: usize,
    },
    /// A Chebyshev polynomial in $D^{-1} A$ for the upper part of its spectrum.
    Chebyshev {
        /// Products before and after.
        degree: usize,
    },
    /// One damped step before and after by blocks of at most 400 rows, patches, each solved inexactly.
    Patch {
        /// Jacobi iterations on each block.
        inner: usize,
        /// How blocks are kept.
        format: PatchFormat,
    },
}

/// How the blocks of patches are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PatchFormat {
    /// All entries, the rows of a block filled to the length of its longest.
    #[default]
    FullRowEll,
    /// All entries, row by row.
    Csr,
    /// The entries above the diagonal: the least memory, but a GPU adds them in any order, so that bits differ from run to
    /// run.
    SymmetricCoo,
}

impl Smoother {
    /// Products with the matrix of a level in a V cycle, the residual included; 0 where it is no polynomial.
    pub(crate) fn n_products(self) -> usize {
        match self {
            Self::Jacobi { sweeps: n } | Self::Chebyshev { degree: n } => 2 * n,
            Self::GaussSeidel { .. } | Self::Patch { .. } => 0,
        }
    }
}

/// How often a cycle visits the next coarser level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cycle {
    /// Once.
    V,
    /// Twice.
    W,
    /// Twice, as two steps of flexible conjugate gradients on that level; on CPUs. The cycle is no fixed linear map: see
    /// [`femtile_linalg::Preconditioner::is_fixed`].
    K,
}

impl Default for AmgConfig {
    fn default() -> Self {
        Self {
            block_size: 1,
            strength: 0.04,
            least_aggregate: 9,
            coarse_rows: 200,
            max_levels: 20,
            smoother: Smoother::Chebyshev { degree: 2 },
            cycle: Cycle::V,
            format: MatrixFormat::Auto,
        }
    }
}

impl AmgConfig {
    /// Settings for displacements in `dimension` directions, to be used with the rigid motions as near-nullspace.
    pub fn displacements(dimension: usize) -> Self {
        Self { block_size: dimension, strength: 0.08, coarse_rows: 600, ..Self::default() }
    }
}

/// Rows that are inverted at most: the inverse has as many entries as their square.
pub(crate) const MOST_COARSE_ROWS: usize = 2_000;

impl AmgConfig {
    /// Whether the settings make sense for any matrix.
    ///
    /// # Errors
    /// [`AmgError::Setting`] with the one that does not, and what to choose.
    pub fn check(&self) -> Result<(), AmgError> {
        let wrong = |field, message: String| Err(AmgError::Setting { field, message });
        if self.block_size == 0 {
            return wrong("block_size", "0 rows a node are none: 1 is the default".into());
        }
        if !(0.0..1.0).contains(&self.strength) {
            return wrong("strength", format!("{} is not in [0, 1): 0.04 is a good choice", self.strength));
        }
        if self.max_levels == 0 {
            return wrong("max_levels", "0 leaves no level: 20 are more than enough".into());
        }
        if self.coarse_rows > MOST_COARSE_ROWS {
            let message =
                format!("{} rows are too many to invert: at most {MOST_COARSE_ROWS}", self.coarse_rows);
            return wrong("coarse_rows", message);
        }
        let n = match self.smoother {
            Smoother::Jacobi { sweeps } | Smoother::GaussSeidel { sweeps } => sweeps,
            Smoother::Chebyshev { degree } => degree,
            Smoother::Patch { inner, .. } => inner,
        };
        if !(1..=16).contains(&n) {
            return wrong("smoother", format!("{n} times are not between 1 and 16"));
        }
        Ok(())
    }

    /// The same for a matrix of so many rows.
    pub(crate) fn check_for(&self, n_rows: usize) -> Result<(), AmgError> {
        self.check()?;
        if n_rows.is_multiple_of(self.block_size) {
            return Ok(());
        }
        let message = format!("{} does not divide the {n_rows} rows of the matrix", self.block_size);
        Err(AmgError::Setting { field: "block_size", message })
    }

    /// The same for a near-nullspace of so many vectors, which are the rows of a node on coarser levels.
    pub(crate) fn check_nodes(&self, n_vectors: usize) -> Result<(), AmgError> {
        let n_rows = self.block_size.max(n_vectors);
        if !matches!(self.smoother, Smoother::Patch { .. }) || n_rows <= MOST_ROWS as usize {
            return Ok(());
        }
        let message =
            format!("a patch has at most {MOST_ROWS} rows, a node up to {n_rows}: choose Chebyshev");
        Err(AmgError::Setting { field: "smoother", message })
    }
}

use std::sync::Arc;

use femtile_sparse::MatrixFormat;

use crate::patches::PatchFormat;
use crate::{AmgError, CoarseSpace};

/// Settings of a hierarchy.
#[derive(Debug, Clone, PartialEq)]
pub struct AmgConfig {
    /// Rows of the matrix that belong to one node, such as 3 for displacements; their numbers follow each other. Default 1.
    pub block_size: usize,
    /// Strength of connection θ: neighbours may be aggregated if
    /// $\|A_{ij}\| > \theta \sqrt{\|A_{ii}\| \|A_{jj}\|}$. Default 0.04; a quarter of it on coarser levels.
    /// Prolongators are smoothed by entries above a quarter of θ, halved from level to level.
    pub strength: f64,
    /// The nodes of smaller aggregates are moved to neighbouring aggregates. Default 9.
    pub least_aggregate: u32,
    /// The most rows of the coarsest level, which is solved directly. Default 200.
    pub coarse_rows: usize,
    /// The most levels. Default 20.
    pub max_levels: usize,
    /// The smoother of all levels.
    pub smoother: Smoother,
    /// The cycle.
    pub cycle: Cycle,
    /// The format of the matrices of levels with a polynomial smoother; by default the one that is expected to be the
    /// fastest, conversion included. Other matrices, and transfers, are kept in compressed sparse rows.
    pub format: MatrixFormat,
    /// The space of the second level, if it is known, on one rank and without patch smoothers; ignored for matrices that are scaled
    /// first. None by default: aggregates.
    pub coarse_space: Option<Arc<CoarseSpace>>,
}

/// The smoother of a level; post-smoothing is the adjoint of pre-smoothing, so that the cycle is symmetric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Smoother {
    /// Jacobi's method, damped by $\omega = 4 / (3 \lambda_\max(D^{-1} A))$.
    Jacobi {
        /// Steps before and after the coarse-grid correction.
        sweeps: usize,
    },
    /// Gauss–Seidel's method in blocks of rows, ascending before the coarse-grid correction and descending after it; on CPUs.
    GaussSeidel {
        /// Sweeps before and after the coarse-grid correction.
        sweeps: usize,
    },
    /// A Chebyshev polynomial in $D^{-1} A$ for the upper part of its spectrum.
    Chebyshev {
        /// Degree of the polynomial before and after the coarse-grid correction.
        degree: usize,
    },
    /// One damped step of additive Schwarz without overlap, with inexact solves on patches of at most 400 rows, before and
    /// after the coarse-grid correction.
    Patch {
        /// Jacobi iterations on each patch.
        inner: usize,
        /// Storage of the patches.
        format: PatchFormat,
    },
}

impl Smoother {
    /// Returns the products with the matrix of a level in a V cycle, residual included; 0 for smoothers that are not polynomials.
    pub(crate) fn n_products(self) -> usize {
        match self {
            Self::Jacobi { sweeps: n } | Self::Chebyshev { degree: n } => 2 * n,
            Self::GaussSeidel { .. } | Self::Patch { .. } => 0,
        }
    }
}

/// Visits of the next coarser level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cycle {
    /// Once.
    V,
    /// Twice.
    W,
    /// Twice, as two steps of flexible conjugate gradients on that level; on CPUs. The cycle is not a fixed linear map: see
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
            coarse_space: None,
        }
    }
}

impl AmgConfig {
    /// Returns settings for displacements in `dimension` directions, for use with the rigid motions as near-nullspace.
    pub fn displacements(dimension: usize) -> Self {
        Self { block_size: dimension, strength: 0.08, coarse_rows: 600, ..Self::default() }
    }
}

/// The most rows of a coarsest level that is inverted: the inverse is dense.
pub(crate) const MOST_COARSE_ROWS: usize = 2_000;

impl AmgConfig {
    /// Checks the settings without a matrix.
    ///
    /// # Errors
    /// [`AmgError::Setting`] with the invalid setting and a valid choice.
    pub fn check(&self) -> Result<(), AmgError> {
        let wrong = |field, message: String| Err(AmgError::Setting { field, message });
        if self.block_size == 0 {
            return wrong("block_size", "a node needs at least 1 row, the default".into());
        }
        if !(0.0..1.0).contains(&self.strength) {
            return wrong("strength", format!("{} is not in [0, 1): 0.04 is a good choice", self.strength));
        }
        if self.max_levels == 0 {
            return wrong("max_levels", "at least 1 level is needed; 20 is the default".into());
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
            return wrong("smoother", format!("{n} is not between 1 and 16"));
        }
        if self.coarse_space.is_some() && self.smoother.has_patches() {
            return wrong("coarse_space", "patches need aggregates: choose another smoother".into());
        }
        Ok(())
    }

    /// Checks the settings for a matrix of `n_rows` rows.
    pub(crate) fn check_for(&self, n_rows: usize) -> Result<(), AmgError> {
        self.check()?;
        if let Some([n, n_coarse]) = self.coarse_space.as_ref().map(|space| space.n_rows())
            && (n != n_rows || !n_coarse.is_multiple_of(self.block_size))
        {
            let message = format!(
                "the prolongator of {n} rows and {n_coarse} columns is not for {n_rows} rows of nodes of {}",
                self.block_size
            );
            return Err(AmgError::Setting { field: "coarse_space", message });
        }
        if n_rows.is_multiple_of(self.block_size) {
            return Ok(());
        }
        let message = format!("{} does not divide the {n_rows} rows of the matrix", self.block_size);
        Err(AmgError::Setting { field: "block_size", message })
    }

    /// Checks the settings for a near-nullspace of `n_vectors` vectors, which are the rows of a node on coarser levels.
    pub(crate) fn check_nodes(&self, n_vectors: usize) -> Result<(), AmgError> {
        self.smoother.check_node(self.block_size.max(n_vectors))
    }
}

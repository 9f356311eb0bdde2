use femtile_device::{Buffer, Scalar};
use femtile_linalg::comm::SingleRank;
use femtile_linalg::krylov::cg::{CgKernels, CgOutcome, ConjugateGradient, KrylovConfig};
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::csr::Csr;

use crate::kernels::AmgKernels;
use crate::{Amg, AmgConfig, AmgError, Graph, Hierarchy};

/// Conjugate gradients preconditioned by multigrid, set up once for many right sides.
///
/// ```
/// use femtile_amg::{AmgConfig, AmgSolver};
/// use femtile_device::{Buffer, Cpu};
/// use femtile_sparse::Triplets;
///
/// let (cpu, n) = (Cpu::new(0)?, 1_000);
/// let mut triplets = Triplets::new(n, n);
/// for i in 0..n {
///     triplets.push(i, i, 2.0)?;
///     if i > 0 {
///         triplets.push(i, i - 1, -1.0)?;
///         triplets.push(i - 1, i, -1.0)?;
///     }
/// }
/// let a = triplets.into_csr(&cpu)?.matrix;
/// let solver = AmgSolver::<f32, _>::from_matrix(&a, None, &AmgConfig::default())?;
/// println!("{}", solver.hierarchy());
///
/// let b = Buffer::from_vec(&cpu, vec![1.0; n])?;
/// let mut x = Buffer::zeros(&cpu, n)?;
/// let outcome = solver.solve(&mut x, &a, &b)?;
/// assert!(outcome.iterations < 30);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AmgSolver<H: Scalar, D: AmgKernels<H>> {
    pub(crate) amg: Amg<H, D>,
    near_nullspace: Option<Vec<f64>>,
    /// Settings of the solves.
    pub cg: KrylovConfig,
}

impl<H: Scalar, D: AmgKernels<H>> AmgSolver<H, D> {
    /// Sets up the levels from the matrix alone; arguments as in [`Amg::new`].
    ///
    /// # Errors
    /// As [`Amg::new`].
    pub fn from_matrix<T: Scalar>(
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        Self::of(a, None, near_nullspace, config)
    }

    /// Sets up the levels with aggregates of the first one from a graph, see [`Graph::from_cells`]; other arguments as in
    /// [`Amg::new`].
    ///
    /// # Errors
    /// As [`Amg::with_memory_limit`].
    pub fn from_graph<T: Scalar>(
        a: &Csr<T, D>,
        graph: &Graph,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        Self::of(a, Some(graph), near_nullspace, config)
    }

    fn of<T: Scalar>(
        a: &Csr<T, D>,
        graph: Option<&Graph>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        let amg = Amg::on_graph(a, graph, near_nullspace, config)?;
        Ok(Self { amg, near_nullspace: near_nullspace.map(<[f64]>::to_vec), cg: KrylovConfig::default() })
    }

    /// Solves $A x = b$ from the values in `x`, with the matrix of the levels or one close to it.
    ///
    /// # Errors
    /// As [`ConjugateGradient::solve`].
    pub fn solve<T: Scalar>(
        &self,
        x: &mut Buffer<T, D>,
        a: &dyn LinearOperator<T, D>,
        b: &Buffer<T, D>,
    ) -> Result<CgOutcome, LinalgError>
    where
        D: CgKernels<T> + Convert<T, H> + Convert<H, T>,
    {
        ConjugateGradient::new(self.cg.clone()).solve(x, a, &self.amg, b, &SingleRank, &mut ())
    }

    /// Replaces the values on the same pattern, with the same near-nullspace and aggregates.
    ///
    /// # Errors
    /// As [`Amg::refill`].
    pub fn refill<T: Scalar>(&mut self, a: &Csr<T, D>) -> Result<(), AmgError> {
        self.amg.refill(a, self.near_nullspace.as_deref())
    }

    /// Returns the sizes of the levels, whose `Display` is a table.
    pub fn hierarchy(&self) -> &Hierarchy {
        self.amg.hierarchy()
    }
}

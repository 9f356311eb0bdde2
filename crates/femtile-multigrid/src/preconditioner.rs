use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use femtile_device::{Buffer, Cpu, Device, Scalar, parallel};
use femtile_linalg::precondition::ResidualSize;
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, Preconditioner, need};

use crate::kernels::BoxKernels;
use crate::level::Workspace;
use crate::{BoxGrid, Multigrid, MultigridConfig, MultigridError, PostOrder, Smoother};

/// One V-cycle with a zero initial guess as a preconditioner, in the precision `T`, for f64 Krylov solvers. It is
/// symmetric positive definite with reversed post-smoothing, the default of all constructors but
/// [`GeometricMultigrid::from_multigrid`].
///
/// # Cost
/// Two smoothing steps and one residual on the finest level, times $2^d / (2^d - 1)$ for all levels.
/// # Source
/// `[cui2024]`, section 4.2.
#[derive(Debug)]
pub struct GeometricMultigrid<T: Scalar, D: BoxKernels<T> = Cpu> {
    multigrid: Multigrid<T, D>,
    workspace: Mutex<Workspace<T, D>>,
    size: ResidualSize,
    /// The numbering of vectors that are not in node order.
    order: Option<Numbering<D>>,
}

impl<T: Scalar, D: BoxKernels<T>> GeometricMultigrid<T, D> {
    /// Sets up levels as [`Multigrid::new`].
    ///
    /// # Errors
    /// As [`Multigrid::new`].
    pub fn new(device: &D, coarse: &BoxGrid, n_levels: usize) -> Result<Self, MultigridError> {
        Self::with_smoother(device, coarse, n_levels, Smoother::default())
    }

    /// As [`GeometricMultigrid::new`], with a given smoother.
    ///
    /// # Errors
    /// As [`Multigrid::new`].
    pub fn with_smoother(
        device: &D,
        coarse: &BoxGrid,
        n_levels: usize,
        smoother: Smoother,
    ) -> Result<Self, MultigridError> {
        Self::from_multigrid(Multigrid::new(device, coarse, n_levels, symmetric(smoother))?)
    }

    /// Sets up levels below a finest grid as [`Multigrid::from_finest`].
    ///
    /// # Errors
    /// As [`Multigrid::from_finest`].
    pub fn from_finest(device: &D, finest: &BoxGrid, smoother: Smoother) -> Result<Self, MultigridError> {
        Self::from_multigrid(Multigrid::from_finest(device, finest, symmetric(smoother))?)
    }

    /// Wraps existing levels. Conjugate gradients need [reversed](PostOrder::Reversed) post-smoothing; GMRES also accepts
    /// the same order, which converges faster.
    ///
    /// # Errors
    /// Device errors.
    pub fn from_multigrid(multigrid: Multigrid<T, D>) -> Result<Self, MultigridError> {
        let workspace = Mutex::new(multigrid.workspace()?);
        Ok(Self { multigrid, workspace, size: ResidualSize::default(), order: None })
    }

    /// Sets another numbering of vectors: `nodes` holds the grid node of each entry. Entries of Dirichlet nodes are zero
    /// as well.
    ///
    /// # Errors
    /// [`MultigridError::Entries`] if `nodes` is no permutation, and device errors.
    pub fn with_numbering(mut self, nodes: &[u32]) -> Result<Self, MultigridError> {
        let n = self.multigrid.grid().n_nodes();
        self.order = Some(Numbering::new(self.multigrid.device(), nodes, n)?);
        Ok(self)
    }

    /// Adds to `w` an approximation of $A^{-1} r$ from the coarser levels: full multigrid below the finest level, on which only
    /// its prolongation is added. Both vectors are zero at Dirichlet nodes.
    ///
    /// The approximation has the scale of the box operator. For a multiple of that operator, the caller
    /// scales.
    ///
    /// # Cost
    /// A fifth of the work of an application in three dimensions, half of it in two. Measured on one core, it
    /// took the time of one to two applications.
    /// # Errors
    /// [`LinalgError::Length`] for a vector of another length, and device errors.
    /// # Source
    /// `[cui2024]`, Alg. 2.2.
    pub fn add_start(&self, w: &mut Buffer<f64, D>, r: &Buffer<f64, D>) -> Result<(), LinalgError>
    where
        D: BoxKernels<f64> + Convert<f64, f64>,
    {
        let n = self.multigrid.grid().n_nodes();
        need("w", n, w.len())?;
        need("r", n, r.len())?;
        let device = self.multigrid.device();
        let size = self.multigrid.norm(r)?;
        if size == 0.0 {
            return Ok(());
        }
        let mut workspace = self.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        let b = &mut self.multigrid.finest(&mut workspace).b;
        match &self.order {
            Some(order) => order.to_nodes(device, b, 1.0 / size, r)?,
            None => Convert::<f64, T>::convert(device, b, 1.0 / size, r)?,
        }
        self.multigrid.prolonged(&mut workspace)?;
        let x = &self.multigrid.finest(&mut workspace).x;
        let mut found = Buffer::zeros(device, n)?;
        match &self.order {
            Some(order) => order.to_entries(device, &mut found, size, x)?,
            None => Convert::<T, f64>::convert(device, &mut found, size, x)?,
        }
        device.axpby(w, 1.0, &found, 1.0)
    }

    /// Returns the levels.
    pub fn multigrid(&self) -> &Multigrid<T, D> {
        &self.multigrid
    }
}

/// Nodes that a thread numbers at least.
const NODES: usize = 1 << 12;

/// A permutation between vector entries and grid nodes.
#[derive(Debug)]
pub(crate) struct Numbering<D: Device> {
    /// The entry of each node.
    entries: Buffer<u32, D>,
    /// The node of each entry.
    nodes: Buffer<u32, D>,
}

impl<D: Device> Numbering<D> {
    /// Checks that `nodes` is a permutation of 0 to n − 1, and copies it to the device.
    pub fn new(device: &D, nodes: &[u32], n: usize) -> Result<Self, MultigridError> {
        let entries = parallel::map(n, NODES, |_| AtomicU32::new(u32::MAX));
        parallel::for_each(nodes.len(), NODES, |entry| {
            if let Some(found) = entries.get(nodes[entry] as usize) {
                found.store(entry as u32, Relaxed);
            }
        });
        let entries: Vec<u32> = entries.into_iter().map(AtomicU32::into_inner).collect();
        let n_found = entries.iter().filter(|&&entry| entry != u32::MAX).count();
        if nodes.len() != n || n_found != n {
            return Err(MultigridError::Entries { field: "nodes", expected: n, found: n_found });
        }
        let (entries, nodes) = (Buffer::from_vec(device, entries), Buffer::from_host(device, nodes));
        Ok(Self { entries: entries.map_err(LinalgError::from)?, nodes: nodes.map_err(LinalgError::from)? })
    }

    /// Returns the number of nodes.
    pub fn n(&self) -> usize {
        self.nodes.len()
    }

    /// Gathers a multiple of a vector into node order.
    pub fn to_nodes<T: Scalar, H: Scalar>(
        &self,
        device: &D,
        y: &mut Buffer<H, D>,
        alpha: f64,
        x: &Buffer<T, D>,
    ) -> Result<(), LinalgError>
    where
        D: Convert<T, H>,
    {
        device.gather(y, alpha, x, &self.entries)
    }

    /// Scatters a multiple of a vector from node order.
    pub fn to_entries<T: Scalar, H: Scalar>(
        &self,
        device: &D,
        y: &mut Buffer<H, D>,
        alpha: f64,
        x: &Buffer<T, D>,
    ) -> Result<(), LinalgError>
    where
        D: Convert<T, H>,
    {
        device.gather(y, alpha, x, &self.nodes)
    }
}

/// Returns the settings of a symmetric cycle.
fn symmetric(smoother: Smoother) -> MultigridConfig {
    MultigridConfig { smoother, post: PostOrder::Reversed }
}

impl<T: Scalar, D: BoxKernels<T> + BoxKernels<f64>> Preconditioner<f64, D> for GeometricMultigrid<T, D> {
    fn apply(&self, z: &mut Buffer<f64, D>, r: &Buffer<f64, D>) -> Result<(), LinalgError> {
        let n = self.multigrid.grid().n_nodes();
        need("z", n, z.len())?;
        need("r", n, r.len())?;
        let mut workspace = self.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        let (device, size) = (self.multigrid.device(), self.size.get());
        let b = &mut self.multigrid.finest(&mut workspace).b;
        match &self.order {
            Some(order) => order.to_nodes(device, b, 1.0 / size, r)?,
            None => Convert::<f64, T>::convert(device, b, 1.0 / size, r)?,
        }
        self.multigrid.recorded_cycle(&mut workspace)?;
        let x = &self.multigrid.finest(&mut workspace).x;
        match &self.order {
            Some(order) => order.to_entries(device, z, size, x),
            None => Convert::<T, f64>::convert(device, z, size, x),
        }
    }

    /// The last call applies to all concurrent solves, whose residual norms should be similar.
    fn set_residual_norm(&self, norm: f64) {
        self.size.set(norm);
    }
}

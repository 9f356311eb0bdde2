use std::sync::{Mutex, PoisonError};

use femtile_device::{Buffer, Cpu, Device, Scalar};
use femtile_linalg::precondition::ResidualSize;
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, Preconditioner, need};

use crate::kernels::BoxKernels;
use crate::level::Workspace;
use crate::{BoxGrid, Multigrid, MultigridConfig, MultigridError, PostOrder, Smoother};

/// One V-cycle from zero as a preconditioner, in the precision `T`, for solves in double precision: symmetric and positive
/// definite where it smooths in reversed order afterwards, as all do but those that [`GeometricMultigrid::of`] is given others.
///
/// # Cost
/// Two steps of the smoother and one product on the finest level, times $2^d / (2^d - 1)$ for all others.
/// # Source
/// `[cui2024]`, section 4.2.
#[derive(Debug)]
pub struct GeometricMultigrid<T: Scalar, D: BoxKernels<T> = Cpu> {
    multigrid: Multigrid<T, D>,
    workspace: Mutex<Workspace<T, D>>,
    size: ResidualSize,
    /// For vectors in another order.
    order: Option<Numbering<D>>,
}

impl<T: Scalar, D: BoxKernels<T>> GeometricMultigrid<T, D> {
    /// Levels as in [`Multigrid::new`].
    ///
    /// # Errors
    /// As [`Multigrid::new`].
    pub fn new(device: &D, coarse: &BoxGrid, n_levels: usize) -> Result<Self, MultigridError> {
        Self::with_smoother(device, coarse, n_levels, Smoother::default())
    }

    /// The same with a smoother of choice.
    ///
    /// # Errors
    /// As [`Multigrid::new`].
    pub fn with_smoother(
        device: &D,
        coarse: &BoxGrid,
        n_levels: usize,
        smoother: Smoother,
    ) -> Result<Self, MultigridError> {
        Self::of(Multigrid::new(device, coarse, n_levels, symmetric(smoother))?)
    }

    /// The same for a given finest grid, with levels as in [`Multigrid::from_finest`].
    ///
    /// # Errors
    /// As [`Multigrid::from_finest`].
    pub fn from_finest(device: &D, finest: &BoxGrid, smoother: Smoother) -> Result<Self, MultigridError> {
        Self::of(Multigrid::from_finest(device, finest, symmetric(smoother))?)
    }

    /// The cycle of these levels; conjugate gradients take it where it smooths in [reversed order](PostOrder::Reversed)
    /// afterwards, other methods in the same as well, which leaves less.
    ///
    /// # Errors
    /// What the device reports.
    pub fn of(multigrid: Multigrid<T, D>) -> Result<Self, MultigridError> {
        let workspace = Mutex::new(multigrid.workspace()?);
        Ok(Self { multigrid, workspace, size: ResidualSize::default(), order: None })
    }

    /// The same for vectors whose entries stand in another order than the nodes of the grid: `nodes` has the node of each. They are
    /// zero on the boundary as well.
    ///
    /// # Errors
    /// [`MultigridError::Entries`] where `nodes` has not each node once, and what the device reports.
    pub fn numbered(mut self, nodes: &[u32]) -> Result<Self, MultigridError> {
        let n = self.multigrid.grid().n_nodes();
        self.order = Some(Numbering::new(self.multigrid.device(), nodes, n)?);
        Ok(self)
    }

    /// The levels.
    pub fn multigrid(&self) -> &Multigrid<T, D> {
        &self.multigrid
    }
}

/// The order of vectors whose entries are not numbered as the nodes of a grid.
#[derive(Debug)]
pub(crate) struct Numbering<D: Device> {
    /// The entry of each node.
    entries: Buffer<u32, D>,
    /// The node of each entry.
    nodes: Buffer<u32, D>,
}

impl<D: Device> Numbering<D> {
    /// Checks that `nodes` has each of `n` nodes once.
    pub fn new(device: &D, nodes: &[u32], n: usize) -> Result<Self, MultigridError> {
        let mut entries = vec![u32::MAX; n];
        for (entry, &node) in nodes.iter().enumerate() {
            if let Some(found) = entries.get_mut(node as usize) {
                *found = entry as u32;
            }
        }
        let n_found = entries.iter().filter(|&&entry| entry != u32::MAX).count();
        if nodes.len() != n || n_found != n {
            return Err(MultigridError::Entries { field: "nodes", expected: n, found: n_found });
        }
        let (entries, nodes) = (Buffer::from_vec(device, entries), Buffer::from_host(device, nodes));
        Ok(Self { entries: entries.map_err(LinalgError::from)?, nodes: nodes.map_err(LinalgError::from)? })
    }

    /// The number of nodes.
    pub fn n(&self) -> usize {
        self.nodes.len()
    }

    /// Takes a multiple of a vector to the order of nodes.
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

    /// Takes a multiple of a vector in the order of nodes to that of entries.
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

/// Cycles that conjugate gradients take.
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

    /// Solves that run at the same time should have residuals of like size: the last one that begins sets it.
    fn set_residual_norm(&self, norm: f64) {
        self.size.set(norm);
    }
}

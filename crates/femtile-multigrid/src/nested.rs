//! Nested iteration (`start = "full"`): coarser levels give the initial iterate of a solve.
//!
//! On each coarser level conjugate gradients solve the operator of the problem, preconditioned by the cycle of that
//! level; `femtile-solve` discretizes it (`tensor/start.rs`). Terms that the cycle ignores (λ, Robin, tensors)
//! therefore cost iterations on coarse levels only.

use std::sync::{Mutex, PoisonError};

use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::precondition::ResidualSize;
use femtile_linalg::vector::{Convert, VectorKernels};
use femtile_linalg::{LinalgError, LinearOperator, need};

use crate::kernels::BoxKernels;
use crate::level::Workspace;
use crate::preconditioner::Numbering;
use crate::{BoxGrid, Multigrid, MultigridConfig, MultigridError, PostOrder, Smoother};

/// Most iterations per level.
const MAX_ITERATIONS: usize = 8;

/// The operator of a level, its rows in the order of a finite-element space.
pub struct NestedOperator<D: BoxKernels<f64>> {
    /// The operator; the identity on Dirichlet rows.
    pub operator: Box<dyn LinearOperator<f64, D>>,
    /// The grid node of each row.
    pub nodes: Vec<u32>,
}

/// Nested iteration (full multigrid) for an operator that the V-cycle approximates. From the coarsest level
/// up, each level is solved by a few conjugate gradient iterations with its own operator, preconditioned by
/// the V-cycle of that level. The result is prolongated to the initial guess of the next level.
///
/// The cycle covers −∇·(c∇u) only; reaction, Robin terms and the full tensor σ are in the operators. The result is as
/// accurate as a solution on the second finest level.
///
/// # Source
/// `[cui2024]`, Alg. 2.2. Differs: iterations instead of cycles, operators of the problem instead of those of
/// boxes.
pub struct NestedIteration<T: Scalar, D: BoxKernels<T> + BoxKernels<f64> = Cpu> {
    multigrid: Multigrid<T, D>,
    workspace: Mutex<Workspace<T, D>>,
    /// All levels but the finest, the coarsest first.
    levels: Vec<NestedLevel<D>>,
    finest: Numbering<D>,
}

/// A level below the finest.
struct NestedLevel<D: BoxKernels<f64>> {
    operator: Box<dyn LinearOperator<f64, D>>,
    order: Numbering<D>,
    /// Transfer to the next finer level.
    transfer: <D as BoxKernels<f64>>::BoxTransfer,
}

/// Vectors of conjugate gradients on a level.
struct Directions<D: BoxKernels<f64>> {
    r: Buffer<f64, D>,
    z: Buffer<f64, D>,
    p: Buffer<f64, D>,
    q: Buffer<f64, D>,
}

impl<T: Scalar, D: BoxKernels<T> + BoxKernels<f64> + Convert<f64, f64>> NestedIteration<T, D> {
    /// Sets up levels below `finest`. `nodes` holds the grid node of each vector entry; `operators` those of all coarser
    /// levels, the coarsest first, one for each grid of [`BoxGrid::coarsened`].
    ///
    /// # Errors
    /// [`MultigridError::Levels`] without a coarser level or with another number of operators,
    /// [`MultigridError::Entries`] if `nodes` is no permutation, and as [`Multigrid::from_finest`].
    pub fn new(
        device: &D,
        (finest, nodes): (&BoxGrid, &[u32]),
        smoother: Smoother,
        operators: Vec<NestedOperator<D>>,
    ) -> Result<Self, MultigridError> {
        let none = || MultigridError::Levels { levels: 1, message: "at least two are required".into() };
        let below = finest.coarsened().ok_or_else(none)?;
        let multigrid =
            Multigrid::from_finest(device, &below, MultigridConfig { smoother, post: PostOrder::Reversed })?;
        let mut grids: Vec<&BoxGrid> = multigrid.grids().collect();
        if operators.len() != grids.len() {
            let message = format!("there are {} operators", operators.len());
            return Err(MultigridError::Levels { levels: grids.len() + 1, message });
        }
        grids.push(finest);
        let level = |(NestedOperator { operator, nodes }, pair): (NestedOperator<D>, &[&BoxGrid])| {
            let order = Numbering::new(device, &nodes, pair[0].n_nodes())?;
            let transfer = BoxKernels::<f64>::box_transfer(device, pair[0], pair[1])?;
            Ok(NestedLevel { operator, order, transfer })
        };
        let levels = operators.into_iter().zip(grids.windows(2)).map(level);
        let levels = levels.collect::<Result<_, MultigridError>>()?;
        let finest = Numbering::new(device, nodes, finest.n_nodes())?;
        Ok(Self { workspace: Mutex::new(multigrid.workspace()?), multigrid, levels, finest })
    }

    /// Adds to `w` the prolonged solution of the coarser levels for the residual `r` of the finest; both are zero at
    /// Dirichlet nodes.
    ///
    /// # Cost
    /// In three dimensions about 0.4 iterations on the finest level; vectors of $2^{-d}$ of its length.
    /// # Errors
    /// [`LinalgError::Length`] for a vector of another length, and device errors.
    pub fn add(&self, w: &mut Buffer<f64, D>, r: &Buffer<f64, D>) -> Result<(), LinalgError> {
        let device = self.multigrid.device();
        need("w", self.finest.n(), w.len())?;
        need("r", self.finest.n(), r.len())?;
        let mut workspace = self.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        let sides = self.right_sides(r)?;
        let mut x = Buffer::zeros(device, sides[0].len())?;
        for (level, (NestedLevel { order, transfer, .. }, side)) in self.levels.iter().zip(&sides).enumerate()
        {
            let n = side.len();
            let (mut own, mut b) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
            order.to_entries(device, &mut own, 1.0, &x)?;
            order.to_entries(device, &mut b, 1.0, side)?;
            self.solve_level(level, &mut workspace, &mut own, b)?;
            order.to_nodes(device, &mut x, 1.0, &own)?;
            let n_finer = sides.get(level + 1).map_or(self.finest.n(), Buffer::len);
            let mut finer = Buffer::zeros(device, n_finer)?;
            BoxKernels::<f64>::box_prolongate(device, transfer, &mut finer, &x)?;
            x = finer;
        }
        let mut own = Buffer::zeros(device, x.len())?;
        self.finest.to_entries(device, &mut own, 1.0, &x)?;
        device.axpby(w, 1.0, &own, 1.0)
    }

    /// Restricts a residual to all levels below the finest, the coarsest first, in node order.
    fn right_sides(&self, r: &Buffer<f64, D>) -> Result<Vec<Buffer<f64, D>>, LinalgError> {
        let device = self.multigrid.device();
        let mut finer = Buffer::zeros(device, r.len())?;
        self.finest.to_nodes(device, &mut finer, 1.0, r)?;
        let mut sides = Vec::new();
        for NestedLevel { order, transfer, .. } in self.levels.iter().rev() {
            let mut side = Buffer::zeros(device, order.n())?;
            BoxKernels::<f64>::box_restrict(device, transfer, &mut side, &finer)?;
            sides.push(std::mem::replace(&mut finer, side));
        }
        sides.push(finer);
        sides.reverse();
        sides.pop();
        Ok(sides)
    }

    /// Runs conjugate gradients for A x = b from x. Ends when an iteration reduces the energy by less than
    /// $4^{-p}$ times the first reduction, the accuracy gained on the next level.
    fn solve_level(
        &self,
        level: usize,
        workspace: &mut Workspace<T, D>,
        x: &mut Buffer<f64, D>,
        b: Buffer<f64, D>,
    ) -> Result<(), LinalgError> {
        let device = self.multigrid.device();
        let NestedLevel { operator, order, .. } = &self.levels[level];
        let zeros = || Buffer::zeros(device, b.len());
        let Directions { r, z, p, q } = &mut Directions { z: zeros()?, p: zeros()?, q: zeros()?, r: b };
        operator.apply(q, x)?;
        device.axpby(r, -1.0, q, 1.0)?;
        let size = ResidualSize::default();
        size.set(VectorKernels::<f64>::dot(device, r, r)?.sqrt());
        let enough = 0.25_f64.powi(self.multigrid.grid().degree() as i32);
        let (mut before, mut first) = (0.0, 0.0);
        for iteration in 0..MAX_ITERATIONS {
            order.to_nodes(device, &mut workspace.vectors[level].b, 1.0 / size.get(), r)?;
            self.multigrid.cycle_from_zero(&mut workspace.vectors[..=level])?;
            order.to_entries(device, z, size.get(), &workspace.vectors[level].x)?;
            let rho = VectorKernels::<f64>::dot(device, r, z)?;
            device.axpby(p, 1.0, z, if iteration == 0 { 0.0 } else { rho / before })?;
            operator.apply(q, p)?;
            let curvature = VectorKernels::<f64>::dot(device, p, q)?;
            let alpha = rho / curvature;
            if !(rho > 0.0 && curvature > 0.0 && alpha.is_finite()) {
                break;
            }
            device.axpby(x, alpha, p, 1.0)?;
            device.axpby(r, -alpha, q, 1.0)?;
            let taken = alpha * rho;
            first = if iteration == 0 { taken } else { first };
            if iteration > 0 && taken <= enough * first {
                break;
            }
            before = rho;
        }
        Ok(())
    }
}

impl<T: Scalar, D: BoxKernels<T> + BoxKernels<f64>> std::fmt::Debug for NestedIteration<T, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NestedIteration").field("n_levels", &(self.levels.len() + 1)).finish_non_exhaustive()
    }
}

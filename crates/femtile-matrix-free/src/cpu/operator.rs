use femtile_device::cpu::vector::Lanes;
use femtile_device::{Buffer, Cpu};
use femtile_linalg::hooks::{Hook, MergedHook, MergedOperator, MergedRows};
use femtile_linalg::vector::sum::BLOCK;
use femtile_linalg::{GhostedOperator, LinalgError, LinearOperator, need};
use femtile_space::TensorSpace;
use femtile_space::geometry::{CellRule, MetricEvaluation};
use femtile_sum_factorization::{SumFactorization, lanes};

use super::batch_metrics::BatchMetrics;
use super::cell_loop::{CellLoop, Constrained};
use super::cells::Cells;
use super::diagonal::DiagonalTables;
use super::metric_choice::MetricChoice;
use crate::local_numbering::LocalNumbering;
use crate::metric::{Metrics, Terms};
use femtile_fem::FemError;
use femtile_fem::tensor::FacetMatrix;

/// The matrix-free operator of ∫ σ∇u·∇v + λuv on a [`TensorSpace`].
///
/// Constrained rows and columns are those of the identity. For a field with several components, the operator acts on
/// each; the values at a node are consecutive rows.
///
/// # Cost
/// Reads x and the metric of every cell, or the data it is computed from ([`MetricEvaluation`]), writes y once or
/// twice; $O(p)$ operations per unknown.
/// # Source
/// `[kronbichler2022]`, section 2.
#[derive(Debug)]
pub struct MatrixFree<T: SumFactorization + Lanes> {
    cpu: Cpu,
    cells: Cells<T>,
    metrics: BatchMetrics<T>,
    cell_loop: CellLoop<T>,
    components: usize,
}

/// Settings of [`MatrixFree`].
#[derive(Debug, Clone, Copy)]
pub struct MatrixFreeConfig<'a> {
    /// The quadrature rule of cells.
    pub rule: CellRule,
    /// Constrained degrees of freedom, whole entities, ascending: a vertex, or the interior of an edge or face.
    pub constrained: &'a [u32],
    /// Facet matrices of Robin conditions, added to the operator.
    pub facets: &'a [FacetMatrix],
    /// Components of the field.
    pub components: usize,
    /// Evaluation of the metrics of all cells; by default the cheapest for each batch.
    pub metric: Option<MetricEvaluation>,
}

impl Default for MatrixFreeConfig<'_> {
    /// One component, Gauss quadrature with p + 1 points, no constraints, no facets, cheapest metrics.
    fn default() -> Self {
        Self { rule: CellRule::default(), constrained: &[], facets: &[], components: 1, metric: None }
    }
}

impl<T: SumFactorization + Lanes> MatrixFree<T> {
    /// Creates the operator of `terms`.
    ///
    /// # Errors
    /// [`FemError::Space`] for folded cells and if the requested metric evaluation does not
    /// fit a cell, errors of coefficients.
    pub fn new(
        cpu: &Cpu,
        space: &TensorSpace<'_>,
        terms: Terms<'_>,
        config: MatrixFreeConfig<'_>,
    ) -> Result<Self, FemError> {
        let MatrixFreeConfig { constrained, facets, components, .. } = config;
        let cell_loop = |n| CellLoop::new(cpu, space, components, constrained, facets, n);
        Self::of_loop(cpu, (space, terms), config, cell_loop)
    }

    /// Creates the rows of a rank of the operator from the cells that touch its unknowns.
    ///
    /// `numbers` has the position in vectors of each unknown of the space, or, from `n_owned` on, that of a ghost behind them;
    /// those of each vertex, edge, face and cell follow each other. The components of an unknown are consecutive rows. Other
    /// ranks need unknowns from `first_exported` on. Constraints and facets are in the numbers of the space. Use it as a
    /// [`GhostedOperator`].
    ///
    /// # Errors
    /// As [`MatrixFree::new`]; [`FemError::Linalg`] for numbers that are not so.
    pub fn local(
        cpu: &Cpu,
        space: &TensorSpace<'_>,
        terms: Terms<'_>,
        config: MatrixFreeConfig<'_>,
        (numbers, [first_exported, n_owned]): (&[u32], [usize; 2]),
    ) -> Result<Self, FemError> {
        let MatrixFreeConfig { constrained, facets, components, .. } = config;
        need("first_exported", first_exported.min(n_owned), first_exported)?;
        let numbers = (LocalNumbering { of: numbers, n_owned }, first_exported);
        let cell_loop = |n| CellLoop::local(cpu, (space, components), numbers, constrained, facets, n);
        Self::of_loop(cpu, (space, terms), config, cell_loop)
    }

    /// Creates the operator with the loop that `cell_loop` makes for an amount of workspace.
    fn of_loop(
        cpu: &Cpu,
        (space, terms): (&TensorSpace<'_>, Terms<'_>),
        MatrixFreeConfig { rule, components, metric, .. }: MatrixFreeConfig<'_>,
        cell_loop: impl FnOnce(usize) -> Result<CellLoop<T>, FemError>,
    ) -> Result<Self, FemError> {
        let cells = Cells::new(space, terms, rule);
        let cell_loop = cell_loop(cells.workspace_len(lanes::<T>(cpu)))?;
        let metrics = Metrics::new(space, terms, rule)?;
        let choice = MetricChoice {
            metric,
            dimension: space.dimension(),
            n_points: cells.m,
            n_stored: cells.stored_entries().len(),
            n_sigma: cells.n_coefficients()[0],
            components,
            number: size_of::<T>(),
        };
        let metrics = cpu.install(|| BatchMetrics::new(&metrics, &cells, cell_loop.numbers(), &choice))?;
        Ok(Self { cpu: cpu.clone(), cells, metrics, cell_loop, components })
    }

    /// Returns the bytes of metrics and numbers of unknowns.
    pub fn bytes(&self) -> usize {
        self.metrics.bytes() + self.cell_loop.bytes()
    }

    /// Returns the number of cells per metric evaluation; it is the same for all cells of a batch.
    pub fn metric_evaluations(&self) -> Vec<(MetricEvaluation, usize)> {
        self.metrics.metric_evaluations(self.cell_loop.numbers())
    }

    /// Returns the loop over cells.
    pub fn cell_loop(&self) -> &CellLoop<T> {
        &self.cell_loop
    }

    /// Returns the diagonal of the operator.
    pub fn diagonal(&self) -> Vec<T> {
        let mut diagonal = vec![T::ZERO; self.cell_loop.n_rows()];
        let tables = DiagonalTables::new(&self.cells);
        let ones = vec![T::ONE; diagonal.len()];
        let of_ghosts = vec![T::ONE; self.cell_loop.n_ghosts()];
        self.cell_loop.apply(&mut diagonal, (&ones, &of_ghosts), Constrained::Given, &|batch, local, _| {
            let (metric, len) = (self.metrics.of(batch), local.len() / self.components);
            for local in local.chunks_exact_mut(len) {
                self.cells.diagonal(&tables, &self.cpu, metric, local);
            }
        });
        for FacetMatrix { dofs, entries } in self.cell_loop.facets() {
            for (&row, entry) in dofs.iter().zip(entries.iter().step_by(dofs.len() + 1)) {
                if let Some(of_row) = diagonal.get_mut(row as usize) {
                    *of_row += T::from_f64(*entry);
                }
            }
        }
        self.cell_loop.constrained().iter().for_each(|&row| diagonal[row as usize] = T::ONE);
        diagonal
    }

    /// Applies the operator to the cells of a batch.
    fn on_batch(&self, batch: usize, local: &mut [T], workspace: &mut [T]) {
        let (metric, len) = (self.metrics.of(batch), local.len() / self.components);
        for local in local.chunks_exact_mut(len) {
            self.cells.apply(&self.cpu, metric, local, workspace);
        }
    }

    /// Computes $y = A (x, g)$ for ghosts $g$, with a hook before and after.
    fn product(
        &self,
        y: &mut Buffer<T, Cpu>,
        (x, ghosts): (&Buffer<T, Cpu>, &[T]),
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        self.check_lengths(y.len(), x.len(), ghosts.len())?;
        let n = x.len();
        let rows = |block: usize| block * BLOCK..((block + 1) * BLOCK).min(n);
        let blocks = n.div_ceil(BLOCK);
        self.cpu.for_ranges(blocks, 8, |blocks| blocks.for_each(|block| hook.pre(rows(block))));
        let on_batch =
            |batch: usize, local: &mut [T], workspace: &mut [T]| self.on_batch(batch, local, workspace);
        let given = (x.as_slice(), ghosts);
        self.cell_loop.apply(y.as_mut_slice(), given, Constrained::Identity, &on_batch);
        let (x, y) = (x.as_slice(), y.as_slice());
        let post = |block: usize| hook.post(rows(block), &x[rows(block)], &y[rows(block)]);
        self.cpu.for_ranges(blocks, 8, |blocks| blocks.for_each(post));
        Ok(())
    }

    fn check_lengths(&self, y: usize, x: usize, ghosts: usize) -> Result<(), LinalgError> {
        let n = self.cell_loop.n_rows();
        need("y", n, y)?;
        need("x", n, x)?;
        need("ghosts", self.cell_loop.n_ghosts(), ghosts)
    }
}

impl MatrixFree<f64> {
    /// Applies the operator to Dirichlet values, for lifting: $y_F = A_{FF} x_F + A_{FC} x_C$ and $y_C = 0$.
    ///
    /// # Panics
    /// Unless the lengths match the operator, and for the operator of one rank.
    pub fn apply_to_given(&self, y: &mut [f64], x: &[f64]) {
        self.cell_loop.apply(y, (x, &[]), Constrained::Given, &|batch, local, workspace| {
            self.on_batch(batch, local, workspace)
        });
    }
}

impl<T: SumFactorization + Lanes> LinearOperator<T, Cpu> for MatrixFree<T> {
    fn n_rows(&self) -> usize {
        self.cell_loop.n_rows()
    }

    fn n_cols(&self) -> usize {
        self.cell_loop.n_rows()
    }

    fn device(&self) -> &Cpu {
        &self.cpu
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, Cpu>,
        x: &Buffer<T, Cpu>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        self.product(y, (x, &[]), hook)
    }

    fn merged(&self) -> Option<&dyn MergedOperator<T, Cpu>> {
        (self.cell_loop.n_ghosts() == 0).then_some(self as _)
    }
}

impl<T: SumFactorization + Lanes> GhostedOperator<T, Cpu> for MatrixFree<T> {
    fn n_owned(&self) -> usize {
        self.cell_loop.n_rows()
    }

    fn n_ghosts(&self) -> usize {
        self.cell_loop.n_ghosts()
    }

    fn device(&self) -> &Cpu {
        &self.cpu
    }

    fn apply_ghosted(
        &self,
        y: &mut Buffer<T, Cpu>,
        x: &Buffer<T, Cpu>,
        ghosts: &Buffer<T, Cpu>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        self.product(y, (x, ghosts.as_slice()), hook)
    }

    fn merged(&self) -> Option<&dyn MergedRows<T, Cpu>> {
        Some(self)
    }
}

// SAFETY: as below; rows that other ranks need are begun first.
unsafe impl<T: SumFactorization + Lanes> MergedRows<T, Cpu> for MatrixFree<T> {
    fn n_tiles(&self) -> usize {
        self.cell_loop.n_tiles()
    }

    fn begin_merged(
        &self,
        y: &mut Buffer<T, Cpu>,
        x: &mut Buffer<T, Cpu>,
        hook: &dyn MergedHook<T>,
    ) -> Result<(), LinalgError> {
        self.check_lengths(y.len(), x.len(), self.cell_loop.n_ghosts())?;
        self.cell_loop.begin_with(y.as_mut_slice(), x.as_mut_slice(), hook);
        Ok(())
    }

    fn finish_merged(
        &self,
        y: &mut Buffer<T, Cpu>,
        x: &mut Buffer<T, Cpu>,
        ghosts: &Buffer<T, Cpu>,
        hook: &dyn MergedHook<T>,
    ) -> Result<(), LinalgError> {
        self.check_lengths(y.len(), x.len(), ghosts.len())?;
        let on_batch =
            |batch: usize, local: &mut [T], workspace: &mut [T]| self.on_batch(batch, local, workspace);
        let given = (x.as_mut_slice(), ghosts.as_slice());
        self.cell_loop.finish_with(y.as_mut_slice(), given, &on_batch, hook);
        Ok(())
    }
}

// SAFETY: the loop over cells calls `pre` and `post` for each range once, as `schedule.rs` has it.
unsafe impl<T: SumFactorization + Lanes> MergedOperator<T, Cpu> for MatrixFree<T> {
    fn n_tiles(&self) -> usize {
        self.cell_loop.n_tiles()
    }

    fn apply_merged(
        &self,
        y: &mut Buffer<T, Cpu>,
        x: &mut Buffer<T, Cpu>,
        hook: &dyn MergedHook<T>,
    ) -> Result<(), LinalgError> {
        self.check_lengths(y.len(), x.len(), 0)?;
        let on_batch =
            |batch: usize, local: &mut [T], workspace: &mut [T]| self.on_batch(batch, local, workspace);
        self.cell_loop.apply_with(y.as_mut_slice(), x.as_mut_slice(), &on_batch, hook);
        Ok(())
    }
}

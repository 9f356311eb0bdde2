use femtile_device::cpu::vector::Lanes;
use femtile_device::{Buffer, Cpu};
use femtile_linalg::hooks::{Hook, MergedHook, MergedOperator};
use femtile_linalg::vector::sum::BLOCK;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sum_factorization::{SumFactorization, lanes};

use super::batch_metrics::BatchMetrics;
use super::cell_loop::{CellLoop, Constrained};
use super::cells::Cells;
use super::choice::Choice;
use super::diagonal::DiagonalTables;
use crate::metric::{Metrics, Terms};
use femtile_fem::FemError;
use femtile_fem::dofs::TensorSpace;
use femtile_fem::geometry::CellRule;
use femtile_fem::geometry::MetricEvaluation;
use femtile_fem::tensor::FacetMatrix;

/// The operator of ∫ σ∇u·∇v + λuv on a [`TensorSpace`], computed anew in every product and never stored.
///
/// Constrained rows and columns are those of the identity. Of a field with several components, each of them has this
/// operator; its values at a node are consecutive rows.
///
/// # Cost
/// Reads x and the metric of every cell, or what it is computed from ([`MetricEvaluation`]), writes y once or twice; $O(p)$ operations
/// an unknown.
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

/// What beside its terms makes an operator.
#[derive(Debug, Clone, Copy)]
pub struct MatrixFreeConfig<'a> {
    /// The rule of cells.
    pub rule: CellRule,
    /// Constrained degrees of freedom, whole entities, ascending: a vertex, or all of what lies inside an edge or face.
    pub constrained: &'a [u32],
    /// Matrices on facets, of Robin conditions, that are added.
    pub facets: &'a [FacetMatrix],
    /// Components of the field.
    pub components: usize,
    /// How the metrics of all cells are come by; by default the cheapest way for each batch of them.
    pub metric: Option<MetricEvaluation>,
}

impl Default for MatrixFreeConfig<'_> {
    /// One component, Gauss's rule with p + 1 points, nothing constrained and no facets, metrics as it is cheapest.
    fn default() -> Self {
        Self { rule: CellRule::default(), constrained: &[], facets: &[], components: 1, metric: None }
    }
}

impl<T: SumFactorization + Lanes> MatrixFree<T> {
    /// The operator of `terms`.
    ///
    /// # Errors
    /// [`FemError::Inverted`] for cells that fold over, [`FemError::UnfitMetric`] for those that are not served by what
    /// `config` asks for, and what is wrong with a coefficient.
    pub fn new(
        cpu: &Cpu,
        space: &TensorSpace<'_>,
        terms: Terms<'_>,
        config: MatrixFreeConfig<'_>,
    ) -> Result<Self, FemError> {
        let MatrixFreeConfig { rule, constrained, facets, components, metric } = config;
        let cells = Cells::new(space, terms, rule);
        let room_len = cells.room_len(lanes::<T>(cpu));
        let cell_loop = CellLoop::new(cpu, space, components, constrained, facets, room_len)?;
        let metrics = Metrics::new(space, terms, rule)?;
        let choice = Choice {
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

    /// Bytes of metrics and numbers of unknowns.
    pub fn bytes(&self) -> usize {
        self.metrics.bytes() + self.cell_loop.bytes()
    }

    /// How many cells come by their metric in which way; cells side by side have one way.
    pub fn metric_evaluations(&self) -> Vec<(MetricEvaluation, usize)> {
        self.metrics.metric_evaluations(self.cell_loop.numbers())
    }

    /// The loop over cells.
    pub fn cell_loop(&self) -> &CellLoop<T> {
        &self.cell_loop
    }

    /// The diagonal of the operator.
    pub fn diagonal(&self) -> Vec<T> {
        let mut diagonal = vec![T::ZERO; self.cell_loop.n_rows()];
        let tables = DiagonalTables::new(&self.cells);
        let ones = vec![T::ONE; diagonal.len()];
        self.cell_loop.apply(&mut diagonal, &ones, Constrained::Given, &|batch, local, _| {
            let (metric, len) = (self.metrics.of(batch), local.len() / self.components);
            for local in local.chunks_exact_mut(len) {
                self.cells.diagonal(&tables, &self.cpu, metric, local);
            }
        });
        for FacetMatrix { dofs, entries } in self.cell_loop.facets() {
            for (&row, entry) in dofs.iter().zip(entries.iter().step_by(dofs.len() + 1)) {
                diagonal[row as usize] += T::from_f64(*entry);
            }
        }
        self.cell_loop.constrained().iter().for_each(|&row| diagonal[row as usize] = T::ONE);
        diagonal
    }

    /// What the cells make of given values, for a right side: $y_F = A_{FF} x_F + A_{FC} x_C$ and $y_C = 0$.
    ///
    /// # Panics
    /// When the lengths are not those of the operator.
    pub fn apply_to_given(&self, y: &mut [T], x: &[T]) {
        self.cell_loop.apply(y, x, Constrained::Given, &|batch, local, workspace| {
            self.on_batch(batch, local, workspace)
        });
    }

    /// The product of the cells of a batch.
    fn on_batch(&self, batch: usize, local: &mut [T], workspace: &mut [T]) {
        let (metric, len) = (self.metrics.of(batch), local.len() / self.components);
        for local in local.chunks_exact_mut(len) {
            self.cells.apply(&self.cpu, metric, local, workspace);
        }
    }

    fn check_lengths(&self, y: usize, x: usize) -> Result<(), LinalgError> {
        let expected = self.cell_loop.n_rows();
        for (field, found) in [("y", y), ("x", x)] {
            if found != expected {
                return Err(LinalgError::Length { field, expected, found });
            }
        }
        Ok(())
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
        self.check_lengths(y.len(), x.len())?;
        let n = x.len();
        let rows = |block: usize| block * BLOCK..((block + 1) * BLOCK).min(n);
        let blocks = n.div_ceil(BLOCK);
        self.cpu.for_ranges(blocks, 8, |blocks| blocks.for_each(|block| hook.pre(rows(block))));
        let on_batch =
            |batch: usize, local: &mut [T], workspace: &mut [T]| self.on_batch(batch, local, workspace);
        self.cell_loop.apply(y.as_mut_slice(), x.as_slice(), Constrained::Identity, &on_batch);
        let (x, y) = (x.as_slice(), y.as_slice());
        let post = |block: usize| hook.post(rows(block), &x[rows(block)], &y[rows(block)]);
        self.cpu.for_ranges(blocks, 8, |blocks| blocks.for_each(post));
        Ok(())
    }

    fn merged(&self) -> Option<&dyn MergedOperator<T, Cpu>> {
        Some(self)
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
        self.check_lengths(y.len(), x.len())?;
        let on_batch =
            |batch: usize, local: &mut [T], workspace: &mut [T]| self.on_batch(batch, local, workspace);
        self.cell_loop.apply_with(y.as_mut_slice(), x.as_mut_slice(), &on_batch, hook);
        Ok(())
    }
}

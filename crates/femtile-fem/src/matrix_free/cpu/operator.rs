use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use femtile_device::cpu::vector::{Lanes, prefetch};
use femtile_device::cpu::{Aligned, SharedMut};
use femtile_device::{Buffer, Cpu};
use femtile_linalg::hooks::Hook;
use femtile_linalg::vector::sum::BLOCK;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_tensor::{Contract, lanes};

use super::batches::Batches;
use super::cells::Cells;
use super::diagonal::DiagonalTables;
use super::exchange::{clear_constrained, gather, scatter, share};
use super::layout::Layout;
use super::parts::Parts;
use crate::FemError;
use crate::dofs::{Group, TensorSpace};
use crate::matrix_free::metric::{Metrics, Terms};
use crate::matrix_free::quadrature::CellRule;
use crate::tensor::FacetMatrix;

/// The operator of ∫ σ∇u·∇v + λuv on a [`TensorSpace`], computed anew in every product and never stored.
///
/// Constrained rows and columns are those of the identity. Cells stand side by side, a lane each; every thread takes groups
/// of them in order, and what cells of several threads share is summed afterwards in the order of the cells, so that
/// products have the same bits on any number of threads.
///
/// # Cost
/// Reads x and the metric of every cell, writes y once or twice; $O(p)$ operations an unknown.
/// # Source
/// `[kronbichler2022]`, section 2.
#[derive(Debug)]
pub struct MatrixFree<T: Contract + Lanes> {
    cpu: Cpu,
    n_dofs: usize,
    cells: Cells<T>,
    layout: Layout,
    batches: Batches<T>,
    groups: Vec<Group>,
    parts: Parts,
    /// Constrained degrees of freedom, ascending.
    constrained: Vec<u32>,
    /// What facets add, without what is constrained.
    facets: Vec<FacetMatrix>,
    /// Of each thread, and of all.
    scratch: Vec<Mutex<Aligned<T>>>,
    shares: Mutex<Vec<T>>,
}

impl<T: Contract + Lanes> MatrixFree<T> {
    /// The operator of `terms` by a rule.
    ///
    /// `constrained` are whole entities, ascending: a vertex, or all of what lies inside an edge or face.
    ///
    /// # Errors
    /// [`FemError::Inverted`] for cells that fold over, and what is wrong with a coefficient.
    pub fn new(
        cpu: &Cpu,
        space: &TensorSpace<'_>,
        terms: Terms<'_>,
        rule: CellRule,
        constrained: &[u32],
    ) -> Result<Self, FemError> {
        let n_lanes = lanes::<T>(cpu);
        let cells = Cells::new(
            space.degree(),
            space.dimension(),
            rule,
            terms.sigma.is_some(),
            terms.lambda.is_some(),
        );
        let layout = Layout::new(space.degree(), space.dimension());
        let metrics = Metrics::new(space, terms, rule)?;
        let batches = cpu.install(|| Batches::new(space, &metrics, &cells, &layout, n_lanes))?;
        let is_constrained = |dof: usize| constrained.binary_search(&(dof as u32)).is_ok();
        let parts = Parts::new(space, &batches, &layout, cpu.threads(), is_constrained);
        let scratch = || Mutex::new(Aligned::zeros(cells.scratch_len(n_lanes)));
        Ok(Self {
            n_dofs: space.n_dofs(),
            scratch: parts.groups.iter().map(|_| scratch()).collect(),
            shares: Mutex::new(vec![T::ZERO; parts.n_shares]),
            groups: space.groups().to_vec(),
            constrained: constrained.to_vec(),
            facets: Vec::new(),
            cpu: cpu.clone(),
            cells,
            layout,
            batches,
            parts,
        })
    }

    /// With matrices on facets, of Robin conditions, added.
    #[must_use]
    pub fn with_facets(mut self, facets: &[FacetMatrix]) -> Self {
        let is_free = |dof: u32| self.constrained.binary_search(&dof).is_err();
        self.facets = facets.to_vec();
        for FacetMatrix { dofs, entries } in &mut self.facets {
            for (row, entries) in dofs.iter().zip(entries.chunks_exact_mut(dofs.len())) {
                for (column, entry) in dofs.iter().zip(entries) {
                    if !(is_free(*row) && is_free(*column)) {
                        *entry = 0.0;
                    }
                }
            }
        }
        self
    }

    /// Bytes of metrics and numbers of unknowns.
    pub fn bytes(&self) -> usize {
        self.batches.bytes()
    }

    /// The diagonal of the operator.
    pub fn diagonal(&self) -> Vec<T> {
        let mut diagonal = vec![T::ZERO; self.n_dofs];
        let tables = DiagonalTables::new(&self.cells);
        self.sum(&mut diagonal, &[], &|batch, scratch| {
            self.cells.diagonal(&tables, &self.cpu, self.batches.metric(batch), scratch);
        });
        for FacetMatrix { dofs, entries } in &self.facets {
            for (i, &dof) in dofs.iter().enumerate() {
                diagonal[dof as usize] += T::from_f64(entries[i * dofs.len() + i]);
            }
        }
        self.constrained.iter().for_each(|&dof| diagonal[dof as usize] = T::ONE);
        diagonal
    }

    /// What the cells make of given values, for a right side: $y_F = A_{FF} x_F + A_{FC} x_C$ and $y_C = 0$.
    ///
    /// # Panics
    /// When the lengths are not those of the operator.
    pub fn apply_to_given(&self, y: &mut [T], x: &[T]) {
        assert!(
            y.len() == self.n_dofs && x.len() == self.n_dofs,
            "vectors of {} entries are needed",
            self.n_dofs
        );
        self.sum(y, x, &|batch, scratch| self.on_batch(batch, scratch, x));
        self.constrained.iter().for_each(|&dof| y[dof as usize] = T::ZERO);
    }

    /// $y = A x$.
    fn product(&self, y: &mut [T], x: &[T]) {
        if self.constrained.is_empty() {
            self.sum(y, x, &|batch, scratch| self.on_batch(batch, scratch, x));
        } else {
            self.sum(y, x, &|batch, scratch| self.on_free(batch, scratch, x));
        }
        for FacetMatrix { dofs, entries } in &self.facets {
            for (&dof, row) in dofs.iter().zip(entries.chunks_exact(dofs.len())) {
                let products =
                    row.iter().zip(dofs).map(|(&entry, &dof)| T::from_f64(entry) * x[dof as usize]);
                y[dof as usize] = products.fold(y[dof as usize], |sum, product| sum + product);
            }
        }
        self.constrained.iter().for_each(|&dof| y[dof as usize] = x[dof as usize]);
    }

    /// The product of the cells of a batch.
    fn on_batch(&self, batch: usize, scratch: &mut [T], x: &[T]) {
        self.gather(batch, scratch, x);
        self.cells.apply(&self.cpu, self.batches.metric(batch), scratch);
    }

    /// The same with constrained unknowns taken for zero.
    fn on_free(&self, batch: usize, scratch: &mut [T], x: &[T]) {
        self.gather(batch, scratch, x);
        clear_constrained(scratch, self.parts.marks(batch), &self.layout, self.batches.lanes);
        self.cells.apply(&self.cpu, self.batches.metric(batch), scratch);
    }

    fn gather(&self, batch: usize, scratch: &mut [T], x: &[T]) {
        let lanes = self.batches.lanes;
        let local = &mut scratch[..self.layout.places.len() * lanes];
        gather(&self.cpu, local, x, self.batches.unknowns(batch), &self.layout, lanes);
    }

    /// The sum of what `work` leaves for each batch at the beginning of its scratch; `x` is what it reads.
    fn sum(&self, y: &mut [T], x: &[T], work: &(dyn Fn(usize, &mut [T]) + Sync)) {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let (y, shares) = (SharedMut::new(y), SharedMut::new(&mut shares[..]));
        self.cpu.for_threads(|thread| {
            if let Some(groups) = self.parts.groups.get(thread) {
                // SAFETY: a thread writes what its groups meet first, and adds to what no other thread's cells have;
                // shares belong to a cell.
                unsafe { self.sum_groups(groups.clone(), (&y, x), &shares, thread, work) };
            }
        });
        self.cpu.for_ranges(self.parts.shared.len(), 64, |range| {
            for shared in &self.parts.shared[range] {
                // SAFETY: entities do not overlap, and shares are read alone from now on.
                let to = unsafe { y.range(shared.dofs.clone()) };
                to.fill(T::ZERO);
                for &begin in &shared.shares {
                    // SAFETY: as above.
                    let from = unsafe { shares.range(begin as usize..begin as usize + to.len()) };
                    to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
                }
            }
        });
    }

    /// The part of [`Self::sum`] of some groups, on one thread.
    ///
    /// # Safety
    /// No other thread has the same groups or the same number.
    unsafe fn sum_groups(
        &self,
        groups: Range<usize>,
        (y, x): (&SharedMut<'_, T>, &[T]),
        shares: &SharedMut<'_, T>,
        thread: usize,
        work: &(dyn Fn(usize, &mut [T]) + Sync),
    ) {
        let mut scratch = self.scratch[thread].lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = &mut scratch[..];
        for number in groups {
            let group = &self.groups[number];
            let ahead = self.groups.get(number + 1).map_or(0..0, |next| next.dofs.clone());
            // SAFETY: no other group meets these first.
            unsafe { y.range(group.dofs.clone()) }.fill(T::ZERO);
            let batches = self.batches.of_cells(&group.cells);
            let n_batches = batches.len();
            for (done, batch) in batches.enumerate() {
                let part = |done: usize| ahead.start + ahead.len() * done / n_batches;
                for dof in (part(done)..part(done + 1)).step_by(64 / size_of::<T>()) {
                    prefetch(x.as_ptr().wrapping_add(dof));
                    prefetch(y.address(dof));
                }
                work(batch, scratch);
                let unknowns = (self.batches.unknowns(batch), self.batches.firsts(batch));
                let (marks, lanes) = (self.parts.marks(batch), self.batches.lanes);
                let sizes = (lanes, self.batches.n_active(batch));
                // SAFETY: entities that other threads have are marked, and shares are those of this batch.
                unsafe {
                    scatter(&self.cpu, y, scratch, unknowns, marks, &self.layout, sizes);
                    share(shares, scratch, unknowns, marks, &self.layout, lanes);
                }
            }
        }
    }
}

impl<T: Contract + Lanes> LinearOperator<T, Cpu> for MatrixFree<T> {
    fn n_rows(&self) -> usize {
        self.n_dofs
    }

    fn n_cols(&self) -> usize {
        self.n_dofs
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
        for (field, len) in [("y", y.len()), ("x", x.len())] {
            if len != self.n_dofs {
                return Err(LinalgError::Length { field, expected: self.n_dofs, found: len });
            }
        }
        let n_blocks = self.n_dofs.div_ceil(BLOCK);
        let rows = |block: usize| block * BLOCK..((block + 1) * BLOCK).min(self.n_dofs);
        self.cpu.for_ranges(n_blocks, 8, |blocks| blocks.for_each(|block| hook.pre(rows(block))));
        self.product(y.as_mut_slice(), x.as_slice());
        let (x, y) = (x.as_slice(), y.as_slice());
        let post = |block: usize| hook.post(rows(block), &x[rows(block)], &y[rows(block)]);
        self.cpu.for_ranges(n_blocks, 8, |blocks| blocks.for_each(post));
        Ok(())
    }
}

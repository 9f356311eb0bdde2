//! The loop over cells, with work on ranges of the vectors before their first and after their last access.
//!
//! `CellLoop` handles rows, groups and threads; `MatrixFree` handles the values of a batch. `schedule` finds the
//! first and the last group that touches each range of 64 unknowns. A `MergedHook` receives a range in `pre` before
//! its first read, where it may change x, and in `post` after its last write. Merged conjugate gradients are such a
//! hook. For operators without this loop (`LinearOperator::merged`) their three parts run one after another.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use femtile_device::Cpu;
use femtile_device::cpu::vector::Lanes;
use femtile_device::cpu::{Aligned, SharedMut, Source};
use femtile_linalg::hooks::MergedHook;
use femtile_space::{Group, SpaceError, TensorSpace};
use femtile_sum_factorization::{SumFactorization, lanes};

use super::cell_unknowns::{CellUnknowns, Unknowns};
use super::gather_scatter::{clear_constrained, gather, gather_ghosts, marked, scatter, share};
use super::layout::Layout;
use super::partition::Partition;
use super::prefetch::Prefetch;
use super::rows::Rows;
use super::schedule::{RANGE, Schedule};
use crate::local_numbering::LocalNumbering;
use femtile_fem::FemError;
use femtile_fem::tensor::FacetMatrix;

/// Work on the unknowns of the cells of a batch, `[components][(p + 1)^d][lanes]`, in place; arguments are the number
/// of the batch, the unknowns, and a workspace of the requested length.
pub type CellWork<'a, T> = &'a (dyn Fn(usize, &mut [T], &mut [T]) + Sync);

/// Computes $y = \sum_e P_e^\mathsf{T} A_e P_e x$ for any work $A_e$ on batches of cells.
///
/// A vector has `components` consecutive rows per degree of freedom of the space. SIMD lanes hold neighbouring cells.
/// Constrained rows and columns are those of the identity. Every thread visits groups of cells in order. Contributions
/// to unknowns that several threads share are summed afterwards in the order of cells, so results have the same bits on
/// any number of threads.
///
/// # Source
/// `[kronbichler2022]`, section 5.
#[derive(Debug)]
pub struct CellLoop<T: Lanes> {
    cpu: Cpu,
    n_rows: usize,
    /// Unknowns of other ranks, which are read and not written.
    n_ghosts: usize,
    layout: Layout,
    numbers: CellUnknowns,
    groups: Vec<Group>,
    parts: Partition,
    schedule: Schedule,
    /// Constrained rows, ascending, and the offset of those of each tile.
    constrained: Vec<u32>,
    constrained_begins: Vec<usize>,
    /// Facet matrices without constrained rows and columns.
    facets: Vec<FacetMatrix>,
    /// A workspace for each thread, and one for shared contributions.
    scratch: Vec<Mutex<Aligned<T>>>,
    shares: Mutex<Vec<T>>,
}

/// Returns the number of rows of a field, which have numbers of 32 bits.
fn check_rows(space: &TensorSpace<'_>, components: usize) -> Result<usize, FemError> {
    let n_rows = space.n_dofs().saturating_mul(components);
    match n_rows < u32::MAX as usize {
        true => Ok(n_rows),
        false => Err(SpaceError::TooManyDofs { n_dofs: n_rows as f64 }.into()),
    }
}

/// Treatment of constrained unknowns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Constrained {
    /// Read as zero; their rows are those of the identity.
    Identity,
    /// Read like others; their rows of the result are zero.
    Given,
}

impl<T: SumFactorization + Lanes> CellLoop<T> {
    /// Creates the loop over all cells of a space, with `workspace_len` values of workspace for the work on a batch.
    ///
    /// `constrained` are ascending degrees of freedom of whole entities: a vertex, or the interior of an edge or face.
    /// `facets` are added after all cells, to every component.
    ///
    /// # Errors
    /// [`FemError::Space`] if rows cannot be numbered with 32 bits.
    ///
    /// # Panics
    /// If constrained unknowns do not ascend, or unknowns lie outside the space.
    pub fn new(
        cpu: &Cpu,
        space: &TensorSpace<'_>,
        components: usize,
        constrained: &[u32],
        facets: &[FacetMatrix],
        workspace_len: usize,
    ) -> Result<Self, FemError> {
        let n_rows = check_rows(space, components)?;
        let rows = (&Rows::of_all(space, components), n_rows);
        Ok(Self::of_rows(cpu, (space, components), rows, constrained, facets, workspace_len))
    }

    /// Creates the loop over the cells of a part of a mesh, with the owned rows. Other ranks need the unknowns from
    /// `first_exported` on.
    ///
    /// # Errors
    /// [`LinalgError`](femtile_linalg::LinalgError) for numbers that do not fit the space, and as [`CellLoop::new`].
    ///
    /// # Panics
    /// As [`CellLoop::new`].
    pub(super) fn local(
        cpu: &Cpu,
        (space, components): (&TensorSpace<'_>, usize),
        (numbers, first_exported): (LocalNumbering<'_>, usize),
        constrained: &[u32],
        facets: &[FacetMatrix],
        workspace_len: usize,
    ) -> Result<Self, FemError> {
        numbers.check(space)?;
        check_rows(space, components)?;
        let rows = (&Rows::local(space, components, numbers), first_exported * components);
        Ok(Self::of_rows(cpu, (space, components), rows, constrained, facets, workspace_len))
    }

    fn of_rows(
        cpu: &Cpu,
        (space, components): (&TensorSpace<'_>, usize),
        (rows, first_exported): (&Rows<'_>, usize),
        constrained: &[u32],
        facets: &[FacetMatrix],
        workspace_len: usize,
    ) -> Self {
        let n_rows = rows.n();
        // Vectors are indexed by these without later checks.
        let is_unknown = |&dof: &u32| (dof as usize) < space.n_dofs();
        assert!(constrained.is_sorted() && constrained.iter().all(is_unknown), "constrained unknowns");
        assert!(facets.iter().all(|facet| facet.dofs.iter().all(is_unknown)), "unknowns of facets");
        let n_lanes = lanes::<T>(cpu);
        let layout = Layout::new(space.degree(), space.dimension(), components, n_lanes);
        let mut numbers = cpu.install(|| CellUnknowns::new(space, rows, &layout, n_lanes));
        let mut marks = vec![false; rows.n_with_ghosts() / components];
        constrained.iter().for_each(|&dof| marks[rows.of(dof) as usize / components] = true);
        let constrained = rows.of_list(constrained);
        let is_constrained = |row: usize| marks[row / components];
        let parts =
            cpu.install(|| Partition::new(space, rows, &numbers, &layout, cpu.threads(), is_constrained));
        let facets: Vec<FacetMatrix> = (0..components as u32)
            .flat_map(|component| facets.iter().map(move |facet| (component, facet)))
            .map(|(component, facet)| free_facet(facet, rows, component, is_constrained))
            .collect();
        let late = facets.iter().flat_map(|facet| facet.dofs.iter().copied());
        let late: Vec<u32> = late.filter(|&row| (row as usize) < n_rows).collect();
        let schedule = cpu.install(|| Schedule::new(space, rows, &layout, &parts, (&late, first_exported)));
        if rows.n_with_ghosts() > n_rows {
            cpu.install(|| numbers.hide_ghosts(&layout, n_rows));
        }
        let begin = |row: usize| constrained.partition_point(|&other| (other as usize) < row);
        let mut constrained_begins: Vec<usize> =
            schedule.tiles.iter().map(|tile| begin(tile.start)).collect();
        constrained_begins.push(constrained.len());
        let scratch_len = layout.places.len() * n_lanes + workspace_len;
        let groups = space.groups().iter().map(|group| Group { dofs: rows.begun_by(group), ..group.clone() });
        Self {
            n_rows,
            n_ghosts: rows.n_with_ghosts() - n_rows,
            scratch: parts.groups.iter().map(|_| Mutex::new(Aligned::zeros(scratch_len))).collect(),
            shares: Mutex::new(vec![T::ZERO; parts.n_shares]),
            groups: groups.collect(),
            cpu: cpu.clone(),
            layout,
            numbers,
            parts,
            schedule,
            constrained,
            constrained_begins,
            facets,
        }
    }

    /// Computes $y = A x$ and calls `hook` around ranges of rows as [`MergedHook`] promises; `op_cell` is $A_e$.
    ///
    /// # Panics
    /// Unless all lengths equal [`Self::n_rows`], and if there are ghosts.
    pub fn apply_with(&self, y: &mut [T], x: &mut [T], op_cell: CellWork<'_, T>, hook: &dyn MergedHook<T>) {
        self.begin_with(y, x, hook);
        self.finish_with(y, (x, &[]), op_cell, hook);
    }

    /// Begins [`Self::apply_with`]: calls `hook` before rows of several threads, and before those that other ranks need.
    ///
    /// # Panics
    /// Unless all lengths equal [`Self::n_rows`].
    pub(super) fn begin_with(&self, y: &mut [T], x: &mut [T], hook: &dyn MergedHook<T>) {
        assert_eq!([y.len(), x.len()], [self.n_rows; 2], "entries of vectors");
        let (y, x) = (SharedMut::new(y), SharedMut::new(x));
        self.begin(&y, &before(hook, &x, &y));
    }

    /// Completes [`Self::begin_with`], with the ghosts of x.
    ///
    /// # Panics
    /// Unless the lengths are those of the loop.
    pub(super) fn finish_with(
        &self,
        y: &mut [T],
        (x, ghosts): (&mut [T], &[T]),
        op_cell: CellWork<'_, T>,
        hook: &dyn MergedHook<T>,
    ) {
        self.assert_lengths(y, x, ghosts);
        let (y, x) = (SharedMut::new(y), SharedMut::new(x));
        let pre = before(hook, &x, &y);
        let post = |tile: usize| {
            let rows = self.schedule.tiles[tile].clone();
            // SAFETY: all cells that access these rows are done.
            let (x, y) = unsafe { (&*x.range(rows.clone()), &*y.range(rows.clone())) };
            hook.post(tile, rows, x, y);
        };
        let around = Around { reads: &|| hook.reads(), pre: &pre, post: &post };
        self.finish(&y, (Source::of_shared(&x), ghosts), Constrained::Identity, op_cell, &around);
    }

    /// Computes $y = A (x, g)$ for ghosts $g$, without a hook.
    pub(super) fn apply(
        &self,
        y: &mut [T],
        (x, ghosts): (&[T], &[T]),
        constrained: Constrained,
        op_cell: CellWork<'_, T>,
    ) {
        self.assert_lengths(y, x, ghosts);
        let around = Around { reads: &Vec::new, pre: &|_| (), post: &|_| () };
        let y = SharedMut::new(y);
        self.begin(&y, around.pre);
        self.finish(&y, (Source::new(x), ghosts), constrained, op_cell, &around);
    }

    /// Returns the number of unknowns of other ranks.
    pub(super) fn n_ghosts(&self) -> usize {
        self.n_ghosts
    }

    /// Returns the number of rows of all components.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Returns the number of tiles, the ranges of calls of [`MergedHook::post`].
    pub fn n_tiles(&self) -> usize {
        self.schedule.tiles.len()
    }

    /// Iterates over ranges of 64 unknowns; yields the number of groups of cells from the first to the last access,
    /// inclusive.
    pub fn liveliness(&self) -> impl Iterator<Item = usize> + '_ {
        self.schedule.spans.iter().map(|[first, last]| (last - first) as usize + 1)
    }

    /// Unknowns per range of [`Self::liveliness`].
    pub const RANGE: usize = RANGE;

    /// Returns the bytes of the numbers of unknowns.
    pub fn bytes(&self) -> usize {
        self.numbers.bytes()
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub(super) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub(super) fn numbers(&self) -> &CellUnknowns {
        &self.numbers
    }

    pub(super) fn facets(&self) -> &[FacetMatrix] {
        &self.facets
    }

    /// Sets constrained unknowns of the cells of a batch to zero.
    pub(super) fn clear_constrained(&self, batch: usize, local: &mut [T]) {
        clear_constrained(local, self.parts.marks(batch), &self.layout, self.numbers.lanes);
    }

    pub(super) fn constrained(&self) -> &[u32] {
        &self.constrained
    }

    fn assert_lengths(&self, y: &[T], x: &[T], ghosts: &[T]) {
        let (n, n_ghosts) = (self.n_rows, self.n_ghosts);
        let fit = y.len() == n && x.len() == n && ghosts.len() == n_ghosts;
        assert!(fit, "vectors of {n} entries and {n_ghosts} ghosts are needed");
    }

    /// Begins rows that are accessed by several threads, or needed by other ranks.
    fn begin(&self, y: &SharedMut<'_, T>, pre: &(dyn Fn(Range<usize>) + Sync)) {
        self.cpu.for_ranges(self.schedule.shared_rows.len(), 1, |runs| {
            for rows in &self.schedule.shared_rows[runs] {
                pre(rows.clone());
                // SAFETY: runs do not overlap.
                unsafe { y.range(rows.clone()) }.fill(T::ZERO);
            }
        });
    }

    /// Visits all cells, after [`Self::begin`].
    fn finish(
        &self,
        y: &SharedMut<'_, T>,
        (x, ghosts): (Source<'_, T>, &[T]),
        constrained: Constrained,
        op_cell: CellWork<'_, T>,
        around: &Around<'_, T>,
    ) {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let shares = SharedMut::new(&mut shares[..]);
        let schedule = &self.schedule;
        self.cpu.for_threads(|thread| {
            let Some(groups) = self.parts.groups.get(thread) else { return };
            let mut scratch = self.scratch[thread].lock().unwrap_or_else(PoisonError::into_inner);
            let mut prefetch =
                Prefetch::new([x.address(0), y.address(0)].into_iter().chain((around.reads)()).collect());
            for group in groups.clone() {
                let workspace = (&mut scratch[..], &mut prefetch);
                // SAFETY: a thread writes only rows of its own groups; rows that other threads access as well are
                // marked and go to shares, which belong to a cell. Rows of several threads have been prepared above.
                unsafe {
                    self.run_group(group, (y, x, ghosts), &shares, constrained, op_cell, around, workspace)
                };
                let completed = schedule.completed.of(group);
                completed.iter().for_each(|&tile| self.complete(tile as usize, (y, x), constrained, around));
            }
        });
        // SAFETY: all threads have finished their groups.
        unsafe { self.add_shares(y, &shares) };
        if constrained == Constrained::Identity {
            // SAFETY: as above.
            unsafe { self.add_facets(y, (x, ghosts)) };
        }
        self.cpu.for_ranges(schedule.shared_tiles.len(), 1, |tiles| {
            let tiles = schedule.shared_tiles[tiles].iter();
            tiles.for_each(|&tile| self.complete(tile as usize, (y, x), constrained, around));
        });
    }

    /// Visits the cells of a group.
    ///
    /// # Safety
    /// No other thread has the same group, and all groups that share rows with this one belong to this thread, except
    /// for marked rows.
    #[expect(clippy::too_many_arguments, reason = "the state of one product")]
    unsafe fn run_group(
        &self,
        number: usize,
        (y, x, ghosts): (&SharedMut<'_, T>, Source<'_, T>, &[T]),
        shares: &SharedMut<'_, T>,
        constrained: Constrained,
        op_cell: CellWork<'_, T>,
        around: &Around<'_, T>,
        (scratch, prefetch): (&mut [T], &mut Prefetch<T>),
    ) {
        for rows in self.schedule.begun.of(number) {
            (around.pre)(rows.clone());
            // SAFETY: no cell of another thread accesses these rows.
            unsafe { y.range(rows.clone()) }.fill(T::ZERO);
        }
        let next = self.groups.get(number + 1).map_or(0..0, |next| next.dofs.clone());
        let batches = self.numbers.of_cells(&self.groups[number].cells);
        let n_batches = batches.len();
        let lanes = self.numbers.lanes;
        let (local, workspace) = scratch.split_at_mut(self.layout.places.len() * lanes);
        for (done, batch) in batches.enumerate() {
            let part = |done: usize| next.start + next.len() * done / n_batches;
            // Gather and scatter of a run are one step each.
            prefetch.begin(part(done)..part(done + 1), 2 * self.layout.runs.n());
            let (unknowns, marks) = (self.numbers.unknowns(batch), self.parts.marks(batch));
            // SAFETY: no other thread writes the rows of this batch.
            unsafe { gather(&self.cpu, local, (x, ghosts), unknowns, &self.layout, (lanes, prefetch)) };
            if !ghosts.is_empty() && matches!(unknowns, Unknowns::Firsts(_)) {
                gather_ghosts(local, ghosts, marks, &self.layout, lanes);
            }
            if constrained == Constrained::Identity {
                clear_constrained(local, marks, &self.layout, lanes);
            }
            op_cell(batch, local, workspace);
            let unknowns = (unknowns, self.numbers.firsts(batch));
            let sizes = (lanes, self.numbers.n_active(batch));
            // SAFETY: entities shared with other threads are marked, and the shares are those of this batch.
            unsafe {
                scatter(&self.cpu, y, local, unknowns, &marked(marks), &self.layout, (sizes, prefetch));
                share(shares, local, unknowns, marks, &self.layout, lanes);
            }
        }
    }

    /// Completes a tile: constrained rows, then the hook.
    fn complete(
        &self,
        tile: usize,
        (y, x): (&SharedMut<'_, T>, Source<'_, T>),
        constrained: Constrained,
        around: &Around<'_, T>,
    ) {
        for &row in &self.constrained[self.constrained_begins[tile]..self.constrained_begins[tile + 1]] {
            // SAFETY: the row lies in the tile, which belongs to this thread now.
            unsafe {
                let value = if constrained == Constrained::Identity { x.read(row as usize) } else { T::ZERO };
                y.write(row as usize, value);
            }
        }
        (around.post)(tile);
    }

    /// Adds the contributions that cells of several threads share.
    ///
    /// # Safety
    /// No other thread uses the vectors.
    unsafe fn add_shares(&self, y: &SharedMut<'_, T>, shares: &SharedMut<'_, T>) {
        self.cpu.for_ranges(self.parts.shared.len(), 64, |range| {
            for shared in &self.parts.shared[range] {
                // SAFETY: entities do not overlap, and shares are only read from now on.
                let to = unsafe { y.range(shared.rows.clone()) };
                for &begin in &shared.shares {
                    // SAFETY: as above.
                    let from = unsafe { shares.range(begin as usize..begin as usize + to.len()) };
                    to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
                }
            }
        });
    }

    /// Adds the facet matrices.
    ///
    /// # Safety
    /// No other thread uses the vectors.
    unsafe fn add_facets(&self, y: &SharedMut<'_, T>, (x, ghosts): (Source<'_, T>, &[T])) {
        for FacetMatrix { dofs, entries } in &self.facets {
            let values = dofs.iter().map(|&dof| match (dof as usize).checked_sub(self.n_rows) {
                Some(ghost) => ghosts[ghost],
                // SAFETY: rows of facets lie within the vector, and no other thread uses them.
                None => unsafe { x.read(dof as usize) },
            });
            let values: Vec<T> = values.collect();
            let of_rows = dofs.iter().zip(entries.chunks_exact(dofs.len()));
            for (&row, entries) in of_rows.filter(|(row, _)| (**row as usize) < self.n_rows) {
                // SAFETY: as above.
                let to = unsafe { &mut y.range(row as usize..row as usize + 1)[0] };
                entries.iter().zip(&values).for_each(|(&entry, &value)| *to += T::from_f64(entry) * value);
            }
        }
    }
}

/// Work around the cells of one product.
struct Around<'a, T> {
    reads: &'a (dyn Fn() -> Vec<*const T> + Sync),
    pre: &'a (dyn Fn(Range<usize>) + Sync),
    post: &'a (dyn Fn(usize) + Sync),
}

/// The work of a hook before the first access to rows.
fn before<'a, T: Lanes>(
    hook: &'a dyn MergedHook<T>,
    x: &'a SharedMut<'_, T>,
    y: &'a SharedMut<'_, T>,
) -> impl Fn(Range<usize>) + Sync + 'a {
    |rows: Range<usize>| {
        // SAFETY: this is the first access to these rows, so no thread uses them yet.
        let (x, y) = unsafe { (x.range(rows.clone()), &*y.range(rows.clone())) };
        hook.pre(rows, x, y);
    }
}

/// Returns the matrix of a facet in the rows of one component, without constrained rows and columns.
fn free_facet(
    facet: &FacetMatrix,
    rows: &Rows<'_>,
    component: u32,
    is_constrained: impl Fn(usize) -> bool,
) -> FacetMatrix {
    let mut facet = facet.clone();
    facet.dofs.iter_mut().for_each(|dof| *dof = rows.of(*dof) + component);
    let is_free: Vec<bool> = facet.dofs.iter().map(|&row| !is_constrained(row as usize)).collect();
    for (entries, &row) in facet.entries.chunks_exact_mut(is_free.len()).zip(&is_free) {
        for (entry, &column) in entries.iter_mut().zip(&is_free) {
            if !(row && column) {
                *entry = 0.0;
            }
        }
    }
    facet
}

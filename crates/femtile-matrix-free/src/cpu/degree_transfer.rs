//! Prolongation and restriction between spaces of two degrees on one mesh, cell by cell.

use std::ops::Range;

use femtile_device::cpu::vector::Lanes;
use femtile_device::cpu::{Aligned, SharedMut, Source};
use femtile_device::{Buffer, Cpu};
use femtile_linalg::{LinalgError, Transfer, need};
use femtile_space::TensorSpace;
use femtile_sum_factorization::{Factor, SumFactorization, contract, lanes};

use super::cell_loop::{CellLoop, Constrained};
use super::cell_unknowns::CellUnknowns;
use super::gather_scatter::{Marked, gather, scatter};
use super::layout::Layout;
use super::prefetch::Prefetch;
use super::rows::Rows;
use femtile_fem::FemError;

/// Fewest batches per thread.
const MIN_BATCHES: usize = 16;

/// Interpolation from a space to one of higher degree on the same mesh, and its transpose.
///
/// A finer unknown is written by the first cell that has its node: 1-D interpolation tables are applied along every
/// axis. Constrained unknowns are read as zero; on the finer level they stay unchanged, on the coarser level they
/// become zero. Results have the same bits on any number of threads.
///
/// # Cost
/// Reads one vector and writes the other, about once; $O(p)$ operations per unknown.
/// # Source
/// `[fehn2020]`.
#[derive(Debug)]
pub struct DegreeTransfer<T: Lanes> {
    cpu: Cpu,
    /// Cells with the unknowns of the lower degree.
    coarse: CellLoop<T>,
    /// Unknowns of the higher degree.
    numbers: CellUnknowns,
    layout: Layout,
    n_fine: usize,
    /// Entities of the cells of each batch that an earlier cell has as well, or that are constrained.
    marked: Vec<Marked>,
    /// Values of the coarser shape functions at the finer nodes, and the transpose.
    factors: [Factor<T>; 2],
    /// Input of the coarser cell loop if only the finer cells are read.
    zeros: Vec<T>,
}

impl<T: SumFactorization + Lanes> DegreeTransfer<T> {
    /// Creates the transfer to a space of higher degree. Constrained degrees of freedom are whole entities, ascending.
    ///
    /// # Errors
    /// [`FemError::Space`] if rows cannot be numbered with 32 bits.
    ///
    /// # Panics
    /// If the spaces have different cells, or constrained unknowns lie outside their space.
    pub fn new(
        cpu: &Cpu,
        (coarse, coarse_constrained): (&TensorSpace<'_>, &[u32]),
        (fine, fine_constrained): (&TensorSpace<'_>, &[u32]),
    ) -> Result<Self, FemError> {
        assert!(coarse.order() == fine.order(), "spaces on one mesh");
        let n_lanes = lanes::<T>(cpu);
        let layout = Layout::new(fine.degree(), fine.dimension(), 1, n_lanes);
        let numbers = cpu.install(|| CellUnknowns::new(fine, &Rows::of_all(fine, 1), &layout, n_lanes));
        let rise = coarse.shapes().values(fine.shapes().nodes());
        let workspace_len = 2 * layout.places.len() * n_lanes;
        Ok(Self {
            coarse: CellLoop::new(cpu, coarse, 1, coarse_constrained, &[], workspace_len)?,
            marked: marked(fine, &numbers, &layout, fine_constrained),
            factors: [Factor::new(&rise), Factor::new(&rise.transpose())],
            zeros: vec![T::ZERO; coarse.n_dofs()],
            n_fine: fine.n_dofs(),
            cpu: cpu.clone(),
            numbers,
            layout,
        })
    }

    /// Returns the number of entries of a batch on the finer level.
    fn local_len(&self) -> usize {
        self.layout.places.len() * self.numbers.lanes
    }

    /// Gathers the finer values of a batch; marked entities become zero.
    fn read(&self, batch: usize, local: &mut [T], r: Source<'_, T>) {
        let n_lanes = self.numbers.lanes;
        let workspace = (n_lanes, &mut Prefetch::new(Vec::new()));
        // SAFETY: no thread writes the vector meanwhile.
        unsafe { gather(&self.cpu, local, (r, &[]), self.numbers.unknowns(batch), &self.layout, workspace) };
        for (lane, marked) in self.marked[batch][..n_lanes].iter().enumerate() {
            for entity in (0..self.layout.n_entities()).filter(|entity| marked >> entity & 1 == 1) {
                let places = self.layout.places(entity).iter();
                places.for_each(|&place| local[place as usize * n_lanes + lane] = T::ZERO);
            }
        }
    }

    /// Applies a table along every axis of the tensors at the start of the first of two buffers; returns the result.
    fn along_all<'a>(&self, factor: &Factor<T>, [mut x, mut y]: [&'a mut [T]; 2]) -> &'a [T] {
        let d = self.dimension();
        let mut len = factor.n_cols().pow(d as u32) * self.numbers.lanes;
        for axis in 0..d {
            let next = len / factor.n_cols() * factor.n_rows();
            contract(&self.cpu, factor, factor.n_rows().pow(axis as u32), &x[..len], &mut y[..next]);
            (x, y, len) = (y, x, next);
        }
        &x[..len]
    }

    fn dimension(&self) -> usize {
        if self.layout.n_entities() == 27 { 3 } else { 2 }
    }

    /// Adds the interpolation on some batches.
    fn raise(&self, batches: Range<usize>, x: &SharedMut<'_, T>, e: Source<'_, T>) {
        let n_lanes = self.numbers.lanes;
        let (coarse, prefetch) = (&self.coarse, &mut Prefetch::new(Vec::new()));
        let n_coarse = coarse.layout().places.len() * n_lanes;
        let mut workspaces = [(); 2].map(|()| Aligned::zeros(self.local_len()));
        for batch in batches {
            let [own, other] = &mut workspaces;
            let local = &mut own[..n_coarse];
            let numbers = coarse.numbers();
            // SAFETY: no thread writes the coarser vector meanwhile.
            unsafe {
                gather(
                    &self.cpu,
                    local,
                    (e, &[]),
                    numbers.unknowns(batch),
                    coarse.layout(),
                    (n_lanes, prefetch),
                )
            };
            coarse.clear_constrained(batch, local);
            let found = self.along_all(&self.factors[0], [own, other]);
            let unknowns = (self.numbers.unknowns(batch), self.numbers.firsts(batch));
            let sizes = (n_lanes, self.numbers.n_active(batch));
            // SAFETY: every entity is unmarked in at most one cell, so no other thread writes it.
            unsafe {
                scatter(&self.cpu, x, found, unknowns, &self.marked[batch], &self.layout, (sizes, prefetch));
            }
        }
    }
}

impl<T: SumFactorization + Lanes> Transfer<T, Cpu> for DegreeTransfer<T> {
    fn n_fine(&self) -> usize {
        self.n_fine
    }

    fn n_coarse(&self) -> usize {
        self.coarse.n_rows()
    }

    fn prolongate(&self, x: &mut Buffer<T, Cpu>, e: &Buffer<T, Cpu>) -> Result<(), LinalgError> {
        need("x", self.n_fine, x.len())?;
        need("e", self.n_coarse(), e.len())?;
        let (x, e) = (SharedMut::new(x.as_mut_slice()), Source::new(e.as_slice()));
        self.cpu.for_ranges(self.numbers.n_batches(), MIN_BATCHES, |batches| self.raise(batches, &x, e));
        Ok(())
    }

    fn restrict(&self, b: &mut Buffer<T, Cpu>, r: &Buffer<T, Cpu>) -> Result<(), LinalgError> {
        need("b", self.n_coarse(), b.len())?;
        need("r", self.n_fine, r.len())?;
        let r = Source::new(r.as_slice());
        let lower = |batch: usize, local: &mut [T], workspace: &mut [T]| {
            let (own, other) = workspace.split_at_mut(self.local_len());
            self.read(batch, own, r);
            local.copy_from_slice(self.along_all(&self.factors[1], [own, other]));
        };
        self.coarse.apply(b.as_mut_slice(), (&self.zeros, &[]), Constrained::Given, &lower);
        Ok(())
    }
}

/// Marks entities of the cells of each batch that an earlier cell has as well, or that are constrained.
fn marked(
    space: &TensorSpace<'_>,
    numbers: &CellUnknowns,
    layout: &Layout,
    constrained: &[u32],
) -> Vec<Marked> {
    let mut is_taken = space.marks(constrained);
    let mut of_batches = vec![Marked::default(); numbers.n_batches()];
    for (batch, marked) in of_batches.iter_mut().enumerate() {
        let firsts = numbers.firsts(batch).chunks_exact(numbers.lanes);
        for (entity, firsts) in firsts.enumerate().filter(|(entity, _)| layout.len(*entity) > 0) {
            for (lane, &first) in firsts.iter().enumerate() {
                // A cell repeated to fill the lanes comes after itself.
                marked[lane] |= u32::from(std::mem::replace(&mut is_taken[first as usize], true)) << entity;
            }
        }
    }
    of_batches
}

//! Rows of the unknowns of batches of cells.

use std::ops::Range;

use super::layout::Layout;
use super::rows::Rows;
use femtile_device::parallel;
use femtile_space::TensorSpace;

/// Rows of the unknowns of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unknowns<'a> {
    /// First row of each entity: `[3^d][lanes]`.
    Firsts(&'a [u32]),
    /// Every row: `[components][(p + 1)^d][lanes]`.
    All(&'a [u32]),
}

/// Rows of all cells, in batches of one cell per SIMD lane; the last batch repeats its last cell.
#[derive(Debug)]
pub(super) struct CellUnknowns {
    pub lanes: usize,
    n_cells: usize,
    n_entities: usize,
    firsts: Vec<u32>,
    /// Lists of batches with an irregular cell, their length, and the offset of each.
    lists: Vec<u32>,
    list_len: usize,
    list_of: Vec<Option<usize>>,
}

impl CellUnknowns {
    /// Numbers the rows of the cells of a space.
    ///
    /// # Panics
    /// If an entity ends behind the last row: gather and scatter rely on it.
    pub fn new(space: &TensorSpace<'_>, rows: &Rows<'_>, layout: &Layout, lanes: usize) -> Self {
        let n_batches = space.n_cells().div_ceil(lanes);
        let n_entities = layout.n_entities();
        let mut numbers = Self {
            lanes,
            n_cells: space.n_cells(),
            n_entities,
            firsts: vec![0; n_batches * n_entities * lanes],
            lists: Vec::new(),
            list_len: layout.places.len() * lanes,
            list_of: vec![None; n_batches],
        };
        let n_cells = numbers.n_cells;
        parallel::for_chunks_mut(&mut numbers.firsts, n_entities * lanes, |begin, firsts| {
            let batch = begin / (n_entities * lanes);
            for lane in 0..lanes {
                let of_cell = space.firsts(position(n_cells, lanes, batch, lane));
                for entity in (0..n_entities).filter(|&entity| layout.len(entity) > 0) {
                    firsts[entity * lanes + lane] = rows.of(of_cell[entity]);
                }
            }
        });
        for (entity, firsts) in numbers.firsts.chunks_exact(lanes).enumerate() {
            let last = firsts.iter().fold(0, |last, &first| last.max(first)) as usize;
            assert!(last + layout.len(entity % n_entities) <= rows.n_with_ghosts(), "rows of a cell");
        }
        numbers.find_lists(space, rows, layout);
        numbers
    }

    fn find_lists(&mut self, space: &TensorSpace<'_>, rows: &Rows<'_>, layout: &Layout) {
        let (lanes, components) = (self.lanes, layout.components);
        let mut dofs = vec![0; space.dofs_per_cell()];
        let may_have_ghosts = rows.n_with_ghosts() > rows.n();
        for batch in 0..self.n_batches() {
            let firsts = self.firsts(batch);
            let has_ghosts = may_have_ghosts && firsts.iter().any(|&first| first as usize >= rows.n());
            let is_regular = |lane: usize| {
                space.irregular(self.position(batch, lane)).is_none()
                    && (!has_ghosts || stand_in(firsts, (lanes, lane), layout, rows.n()).is_some())
            };
            if (0..lanes).all(is_regular) {
                continue;
            }
            let begin = self.lists.len();
            self.list_of[batch] = Some(begin);
            self.lists.resize(begin + self.list_len, 0);
            for lane in 0..lanes {
                space.cell_dofs(self.position(batch, lane), &mut dofs);
                for component in 0..components {
                    let list = self.lists[begin..].chunks_exact_mut(lanes).skip(component * dofs.len());
                    list.zip(&dofs).for_each(|(rows_of_lane, &dof)| {
                        rows_of_lane[lane] = rows.of(dof) + component as u32;
                    });
                }
            }
        }
    }

    /// Sets the first row of ghost entities to that of an owned entity of the same cell, which is read
    /// instead.
    pub fn hide_ghosts(&mut self, layout: &Layout, n_rows: usize) {
        let lanes = self.lanes;
        let is_ghost = |first: &u32| *first as usize >= n_rows;
        parallel::for_chunks_mut(&mut self.firsts, self.n_entities * lanes, |_, firsts| {
            if !firsts.iter().any(is_ghost) {
                return;
            }
            for lane in 0..lanes {
                // Those of batches with a list are not read.
                let stand_in = stand_in(firsts, (lanes, lane), layout, n_rows).unwrap_or(0);
                let of_lane = firsts.iter_mut().skip(lane).step_by(lanes);
                of_lane.filter(|first| is_ghost(first)).for_each(|first| *first = stand_in);
            }
        });
    }

    /// Returns the number of cells.
    pub fn n_cells(&self) -> usize {
        self.n_cells
    }

    /// Returns the number of batches.
    pub fn n_batches(&self) -> usize {
        self.list_of.len()
    }

    /// Returns the position, in the order of visits, of the cell in a lane.
    pub fn position(&self, batch: usize, lane: usize) -> usize {
        position(self.n_cells, self.lanes, batch, lane)
    }

    /// Returns the batches of a range of positions that starts with a batch.
    pub fn of_cells(&self, positions: &Range<usize>) -> Range<usize> {
        positions.start / self.lanes..positions.end.div_ceil(self.lanes)
    }

    /// Returns the number of cells of a batch, without repeated ones.
    pub fn n_active(&self, batch: usize) -> usize {
        (self.n_cells - batch * self.lanes).min(self.lanes)
    }

    /// Returns the rows of the unknowns of a batch.
    pub fn unknowns(&self, batch: usize) -> Unknowns<'_> {
        match self.list_of[batch] {
            None => Unknowns::Firsts(self.firsts(batch)),
            Some(begin) => Unknowns::All(&self.lists[begin..begin + self.list_len]),
        }
    }

    /// Returns the first row of each entity, also for batches with a list: `[3^d][lanes]`.
    pub fn firsts(&self, batch: usize) -> &[u32] {
        let per_batch = self.n_entities * self.lanes;
        &self.firsts[batch * per_batch..(batch + 1) * per_batch]
    }

    /// Returns the bytes of all numbers.
    pub fn bytes(&self) -> usize {
        size_of::<u32>() * (self.firsts.len() + self.lists.len())
    }
}

fn position(n_cells: usize, lanes: usize, batch: usize, lane: usize) -> usize {
    (batch * lanes + lane).min(n_cells - 1)
}

/// Returns the first row of an entity of the cell in a lane that can be read instead of each ghost entity: it
/// has no fewer rows. None if there is no such entity.
fn stand_in(firsts: &[u32], (lanes, lane): (usize, usize), layout: &Layout, n_rows: usize) -> Option<u32> {
    let of_lane = firsts.iter().skip(lane).step_by(lanes).enumerate();
    let entities = of_lane.map(|(entity, &first)| (layout.len(entity), first));
    let needed = entities.clone().filter(|(_, first)| *first as usize >= n_rows).map(|(len, _)| len).max();
    let mut owned = entities.filter(|(len, first)| Some(*len) >= needed && (*first as usize) < n_rows);
    owned.next().map(|(_, first)| first)
}

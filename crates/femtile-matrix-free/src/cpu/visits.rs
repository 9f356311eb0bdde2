//! Accesses of the loop over cells, in order.

use std::ops::Range;

use femtile_device::cpu::vector::Lanes;
use femtile_sum_factorization::SumFactorization;

use super::cell_loop::CellLoop;

/// A step of the loop over cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visit {
    /// First access to rows: [`femtile_linalg::hooks::MergedHook::pre`].
    Before(Range<usize>),
    /// Rows of x are read for a cell.
    Read(Range<usize>),
    /// A cell adds to rows of y.
    Add(Range<usize>),
    /// Rows are complete: [`femtile_linalg::hooks::MergedHook::post`].
    After(Range<usize>),
}

impl<T: SumFactorization + Lanes> CellLoop<T> {
    /// Calls `see` for all steps of the loop in the order of a single thread, for models of memory traffic.
    pub fn visits(&self, see: &mut dyn FnMut(Visit)) {
        let schedule = self.schedule();
        schedule.shared_rows.iter().for_each(|rows| see(Visit::Before(rows.clone())));
        for (number, group) in self.groups().iter().enumerate() {
            schedule.begun.of(number).iter().for_each(|rows| see(Visit::Before(rows.clone())));
            for batch in self.numbers().of_cells(&group.cells) {
                self.rows_of(batch, &mut |rows| see(Visit::Read(rows)));
                self.rows_of(batch, &mut |rows| see(Visit::Add(rows)));
            }
            let tiles = schedule.completed.of(number).iter();
            tiles.for_each(|&tile| see(Visit::After(schedule.tiles[tile as usize].clone())));
        }
        schedule
            .shared_tiles
            .iter()
            .for_each(|&tile| see(Visit::After(schedule.tiles[tile as usize].clone())));
    }

    /// Calls `see` with the rows of the entities of the cells of a batch.
    fn rows_of(&self, batch: usize, see: &mut dyn FnMut(Range<usize>)) {
        let numbers = self.numbers();
        for (entity, firsts) in numbers.firsts(batch).chunks_exact(numbers.lanes).enumerate() {
            let len = self.layout().len(entity);
            for &first in firsts.iter().take(numbers.n_active(batch)).filter(|_| len > 0) {
                see(first as usize..first as usize + len);
            }
        }
    }
}

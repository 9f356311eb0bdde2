//! Entities that a group of cells has visited.

use super::batches::NONE;

/// A table of entities by their first unknown, each with the last unit of cells that visited it and a target.
#[derive(Debug, Default)]
pub(super) struct VisitedEntities {
    /// Key, unit and target; a power of two of them, at most half of them taken.
    entries: Vec<[u32; 3]>,
}

impl VisitedEntities {
    /// Empties the table and makes room for some entities.
    pub fn reset(&mut self, most: usize) {
        self.entries.clear();
        self.entries.resize((2 * most).max(2).next_power_of_two(), [NONE; 3]);
    }

    /// Returns the unit and target of an entity; both are [`NONE`] before the first visit.
    pub fn entry(&mut self, first: u32) -> &mut [u32; 3] {
        let last = self.entries.len() - 1;
        // The upper bits of the product are the mixed ones.
        let mut at = (first.wrapping_mul(0x9e37_79b1) >> 8) as usize & last;
        while self.entries[at][0] != first && self.entries[at][0] != NONE {
            at = (at + 1) & last;
        }
        self.entries[at][0] = first;
        &mut self.entries[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_kept_until_the_table_is_emptied() {
        let mut visited = VisitedEntities::default();
        for round in 0..3 {
            visited.reset(1000);
            for i in 0..1000u32 {
                assert_eq!(visited.entry(17 * i)[1..], [NONE; 2], "round {round}");
                visited.entry(17 * i)[2] = i;
            }
            assert!((0..1000u32).all(|i| visited.entry(17 * i)[2] == i));
        }
    }
}

//! The rows of the unknowns of a space.
//!
//! On several ranks, ghost entities are marked like constrained ones. A batch reads another entity of its
//! cell instead, gets the ghost values afterwards and does not add to them. A cell without such an entity has
//! a list of all rows. Updates are merged into the loop in two parts (`MergedRows`): rows that other ranks
//! need are begun first, their values are sent, and the loop does the rest.

use std::ops::Range;

use femtile_space::{Group, TensorSpace};

use crate::local_numbering::LocalNumbering;

/// Rows of a vector, a number of consecutive rows per unknown; on a distributed mesh the owned rows, followed
/// by ghosts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    part: Option<LocalNumbering<'a>>,
    components: usize,
    n_dofs: usize,
}

impl<'a> Rows<'a> {
    /// Of all unknowns, `components` for each.
    pub fn of_all(space: &TensorSpace<'_>, components: usize) -> Self {
        Self { part: None, components, n_dofs: space.n_dofs() }
    }

    /// Of the unknowns of a rank and its ghosts, in these numbers, which have been checked; `components` for each.
    pub fn local(space: &TensorSpace<'_>, components: usize, numbers: LocalNumbering<'a>) -> Self {
        Self { part: Some(numbers), components, n_dofs: space.n_dofs() }
    }

    /// Returns the first row of an unknown, or, behind all rows, of a ghost.
    pub fn of(&self, dof: u32) -> u32 {
        self.part.map_or(dof, |numbers| numbers.of[dof as usize]) * self.components as u32
    }

    /// Returns the number of rows.
    pub fn n(&self) -> usize {
        self.part.map_or(self.n_dofs, |numbers| numbers.n_owned) * self.components
    }

    /// Returns the number of rows and ghosts.
    pub fn n_with_ghosts(&self) -> usize {
        self.n_dofs * self.components
    }

    /// Returns the rows that a group of cells is the first to access, for prefetching; approximate on a
    /// distributed mesh.
    pub fn begun_by(&self, group: &Group) -> Range<usize> {
        let c = self.components;
        let Some(numbers) = self.part else { return group.dofs.start * c..group.dofs.end * c };
        let rows = || numbers.of[group.dofs.clone()].iter().filter(|&&row| (row as usize) < numbers.n_owned);
        let begin = rows().next().map_or(0, |&row| row as usize);
        begin * c..(begin + rows().count()).min(numbers.n_owned) * c
    }

    /// Returns the rows of unknowns, ascending, without ghosts.
    pub fn of_list(&self, dofs: &[u32]) -> Vec<u32> {
        let c = self.components as u32;
        let rows = dofs.iter().flat_map(|&dof| self.of(dof)..self.of(dof) + c);
        let mut rows: Vec<u32> = rows.filter(|&row| (row as usize) < self.n()).collect();
        if self.part.is_some() {
            rows.sort_unstable();
        }
        rows
    }
}

//! The degrees of freedom of cells as the mesh numbers them.

use femtile_fem::dofs::TensorSpace;

use super::numbering::places;

/// The degrees of freedom of a space by the number that each cell has in the mesh, in the axes of the cell there: the same for all
/// ranks.
pub(super) struct CellDofs<'a> {
    space: &'a TensorSpace<'a>,
    position_of: Vec<u32>,
    dofs: Vec<u32>,
    /// Those of the cell that was asked for last.
    given: Vec<u32>,
    last: Option<usize>,
}

impl<'a> CellDofs<'a> {
    pub fn new(space: &'a TensorSpace<'a>) -> Self {
        let position_of = positions(space);
        let zeros = vec![0; space.dofs_per_cell()];
        Self { space, position_of, dofs: zeros.clone(), given: zeros, last: None }
    }

    /// Returns the number of cells.
    pub fn n_cells(&self) -> usize {
        self.position_of.len()
    }

    /// Returns those of a cell.
    pub fn of(&mut self, cell: usize) -> &[u32] {
        if self.last == Some(cell) {
            return &self.given;
        }
        self.last = Some(cell);
        let position = self.position_of[cell] as usize;
        in_given_axes(self.space, position, &mut self.dofs, |at, dof| self.given[at] = dof);
        &self.given
    }
}

/// Returns the position in a space of each cell by its number in the mesh.
pub(super) fn positions(space: &TensorSpace<'_>) -> Vec<u32> {
    let mut position_of = vec![0; space.n_cells()];
    space.order().iter().zip(0..).for_each(|(&cell, position)| position_of[cell as usize] = position);
    position_of
}

/// Shows the degrees of freedom of the cell at a position, each with its place in the axes of the mesh.
pub(super) fn in_given_axes(
    space: &TensorSpace<'_>,
    position: usize,
    dofs: &mut [u32],
    mut show: impl FnMut(usize, u32),
) {
    let n = space.degree() + 1;
    space.cell_dofs(position, dofs);
    let orientation = space.orientation(position);
    dofs.iter().enumerate().for_each(|(at, &dof)| show(orientation.given(places(at, n), n), dof));
}

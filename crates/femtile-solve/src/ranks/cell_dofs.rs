//! Degrees of freedom of cells in the numbering and orientation of the mesh.

use femtile_space::TensorSpace;

use super::numbering::places;

/// The degrees of freedom of each cell, by the cell's number in the mesh and in the cell's axes there. All
/// ranks see the same order.
pub(super) struct CellDofs<'a> {
    space: &'a TensorSpace<'a>,
    position_of: Vec<u32>,
    dofs: Vec<u32>,
    /// The degrees of freedom of the cell that was requested last.
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

    /// Returns the degrees of freedom of a cell.
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

/// Returns the position of each cell in the order of the space.
pub(super) fn positions(space: &TensorSpace<'_>) -> Vec<u32> {
    let mut position_of = vec![0; space.n_cells()];
    space.order().iter().zip(0..).for_each(|(&cell, position)| position_of[cell as usize] = position);
    position_of
}

/// Calls `show` with each degree of freedom of a cell and its place in the axes of the mesh. `position` is
/// that of the cell in the space.
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

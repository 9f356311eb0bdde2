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
        let mut position_of = vec![0; space.n_cells()];
        space.order().iter().zip(0..).for_each(|(&cell, position)| position_of[cell as usize] = position);
        let zeros = vec![0; space.dofs_per_cell()];
        Self { space, position_of, dofs: zeros.clone(), given: zeros, last: None }
    }

    /// Returns those of a cell.
    pub fn of(&mut self, cell: usize) -> &[u32] {
        if self.last == Some(cell) {
            return &self.given;
        }
        self.last = Some(cell);
        let (position, n) = (self.position_of[cell] as usize, self.space.degree() + 1);
        self.space.cell_dofs(position, &mut self.dofs);
        let orientation = self.space.orientation(position);
        for (at, &dof) in self.dofs.iter().enumerate() {
            self.given[orientation.given(places(at, n), n)] = dof;
        }
        &self.given
    }
}

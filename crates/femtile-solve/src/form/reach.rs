//! The cells whose integrals reach the rows of a rank through relations of unknowns and facets with two sides.

use femtile_device::parallel;
use femtile_form::{Domain, Form};
use femtile_space::{LinearConstraints, Space};

use super::FormProblem;
use crate::SolveError;
use crate::ranks::owners_of_dofs;

/// Cells per parallel task.
const CELLS: usize = 1 << 10;

/// The cells that the rows of a rank need beyond those that touch its nodes.
///
/// With relations $u = C w + g$ the row of an unknown in $C^\mathsf{T} A C$ has the integrals over the cells of all unknowns that
/// follow it. An integral over a facet with two sides couples all unknowns of both cells. A part has a cell of each unknown that
/// one of its own follows, so that it knows the values of all its unknowns.
pub(super) struct Reach<'r, 'm> {
    space: &'r Space<'m>,
    n_components: usize,
    constraints: &'r LinearConstraints,
    /// The owner of each degree of freedom.
    owners: Vec<u32>,
    /// The position of a cell of each degree of freedom; empty if no unknown follows others.
    cell_of: Vec<u32>,
    /// The positions of the cells on the two sides of facets.
    across: Vec<[usize; 2]>,
}

impl<'r, 'm> Reach<'r, 'm> {
    /// Prepares the search on the whole mesh, whose nodes have these owners; none if no rank needs further cells.
    ///
    /// # Cost
    /// 4 bytes per degree of freedom, 4 more for relations, and 16 per facet with two sides.
    pub fn new(
        problem: &FormProblem<'_>,
        (space, form): (&'r Space<'m>, &Form),
        constraints: &'r LinearConstraints,
        of_nodes: &[u32],
    ) -> Result<Option<Self>, SolveError> {
        let across = across(problem, space, form);
        if across.is_empty() && !constraints.combines_dofs() {
            return Ok(None);
        }
        let mut cell_of = Vec::new();
        if constraints.combines_dofs() {
            cell_of = vec![u32::MAX; space.n_dofs()];
            let mut dofs = vec![0; space.element().n_dofs()];
            for position in (0..space.n_cells()).rev() {
                space.cell_dofs(position, &mut dofs);
                dofs.iter().for_each(|&dof| cell_of[dof as usize] = position as u32);
            }
        }
        let owners = owners_of_dofs(space, of_nodes)?;
        Ok(Some(Self { space, n_components: form.n_components(), constraints, owners, cell_of, across }))
    }

    /// Returns for each cell of the mesh whether the part of a rank has it; none has if the rank owns no node.
    ///
    /// # Cost
    /// A pass over all cells, and one over the relations for each layer of cells that the relations add.
    pub fn cells(&self, rank: usize) -> Vec<bool> {
        let (space, n, rank) = (self.space, self.n_components as u32, rank as u32);
        let mut has_row: Vec<bool> = self.owners.iter().map(|&owner| owner == rank).collect();
        for &follower in self.constraints.dofs() {
            let terms = self.constraints.terms(follower).unwrap_or_default();
            if terms.iter().any(|&(other, _)| self.owners[(other / n) as usize] == rank) {
                has_row[(follower / n) as usize] = true;
            }
        }
        let zeros = || vec![0; space.element().n_dofs()];
        let with_row = parallel::map_with(space.n_cells(), CELLS, zeros, |dofs, position| {
            space.cell_dofs(position, dofs);
            dofs.iter().any(|&dof| has_row[dof as usize])
        });
        let mut is_here = with_row.clone();
        for sides in &self.across {
            if sides.iter().any(|&side| with_row[side]) {
                sides.iter().for_each(|&side| is_here[side] = true);
            }
        }
        self.add_followed(&mut is_here);
        let mut of_cells = vec![false; space.n_cells()];
        (0..space.n_cells()).for_each(|position| of_cells[space.cell(position)] = is_here[position]);
        of_cells
    }

    /// Adds a cell for each unknown that one of some cells follows and none of them has.
    fn add_followed(&self, is_here: &mut [bool]) {
        if self.cell_of.is_empty() {
            return;
        }
        let (space, n) = (self.space, self.n_components as u32);
        let (mut has_dof, mut dofs) = (vec![false; space.n_dofs()], vec![0; space.element().n_dofs()]);
        let mut add = |position: usize, has_dof: &mut [bool]| {
            space.cell_dofs(position, &mut dofs);
            dofs.iter().for_each(|&dof| has_dof[dof as usize] = true);
        };
        (0..is_here.len()).filter(|&at| is_here[at]).for_each(|position| add(position, &mut has_dof));
        let mut is_changed = true;
        while std::mem::take(&mut is_changed) {
            for &follower in self.constraints.dofs() {
                if !has_dof[(follower / n) as usize] {
                    continue;
                }
                for &(other, _) in self.constraints.terms(follower).unwrap_or_default() {
                    let dof = (other / n) as usize;
                    if !has_dof[dof] {
                        let position = self.cell_of[dof] as usize;
                        (is_here[position], is_changed) = (true, true);
                        add(position, &mut has_dof);
                    }
                }
            }
        }
    }
}

/// Returns the positions of the cells on the two sides of the facets over which a form has integrals.
fn across(problem: &FormProblem<'_>, space: &Space<'_>, form: &Form) -> Vec<[usize; 2]> {
    let mut across = Vec::new();
    for integral in form.integrals() {
        match &integral.domain {
            Domain::Cells | Domain::Boundary(_) => {}
            Domain::Interior => {
                across.extend(space.interior_facets().iter().map(|sides| sides.map(|side| side.position)));
            }
            Domain::Interface(pairs) => {
                let facets = space.boundary_facets(&problem.facets);
                across.extend(pairs.iter().map(|pair| pair.map(|facet| facets[facet as usize].position)));
            }
        }
    }
    across
}

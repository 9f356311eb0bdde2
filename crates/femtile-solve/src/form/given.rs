//! Dirichlet values by component.

use femtile_form::Coefficient;
use femtile_mesh::check::BoundaryFacets;
use femtile_space::{Element, LinearConstraints, LinearRelation, PointMap, Space, SpaceError};

use super::relations::Unknowns;
use crate::{Key, SolveError};

/// Values of components of u at a place.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub place: Place,
    /// For each component a value or none.
    pub values: Vec<Option<Coefficient>>,
    /// The setting that gives them.
    pub path: Vec<Key>,
}

#[derive(Debug, Clone)]
pub(super) enum Place {
    /// Boundary facets.
    Facets(Vec<u32>),
    /// Nodes of the mesh, with edges, faces and cells whose corners are all among them.
    Nodes(Vec<u32>),
}

/// A degree of freedom with a cell that has it.
pub(super) struct GivenDof {
    pub dof: u32,
    pub cell: usize,
    pub tag: i32,
    pub point: [f64; 3],
}

/// Returns the Dirichlet value of each unknown, where later values override earlier ones, of `n` components.
pub(super) fn dirichlet_values(
    space: &Space<'_>,
    boundary: &BoundaryFacets,
    given: &[Given],
    n: usize,
) -> Result<Vec<Option<f64>>, SolveError> {
    let mut values: Vec<Option<f64>> = vec![None; space.n_dofs() * n];
    for Given { place, values: of_components, path } in given {
        let mut set = |at: GivenDof| {
            for (component, value) in of_components.iter().enumerate() {
                let Some(value) = value else { continue };
                let value = value.scalar_at(at.cell, at.tag, at.point);
                if !value.is_finite() {
                    let [x, y, z] = at.point;
                    let message = format!("is {value} at ({x}, {y}, {z}); it must be finite");
                    return Err(SolveError::setting(path, message));
                }
                values[at.dof as usize * n + component] = Some(value);
            }
            Ok(())
        };
        match place {
            Place::Facets(facets) => for_dofs_on(space, boundary, facets, &mut set)?,
            Place::Nodes(nodes) => for_dofs_at(space, nodes, &mut set)?,
        }
    }
    Ok(values)
}

/// Returns the constraints of Dirichlet values, and of components with elements of degree 1 in a space of a higher degree.
pub(super) fn constraints(unknowns: &Unknowns<'_>) -> Result<LinearConstraints, SolveError> {
    let n = unknowns.is_linear.len();
    let is_own = |unknown: usize| !unknowns.follows_corners((unknown / n) as u32, unknown % n);
    let relation = |(unknown, value): (usize, &Option<f64>)| {
        let constant = value.filter(|_| is_own(unknown))?;
        Some(LinearRelation { dof: unknown as u32, terms: Vec::new(), constant })
    };
    let mut relations: Vec<LinearRelation> =
        unknowns.values.iter().enumerate().filter_map(relation).collect();
    relations.extend(unknowns.of_corners());
    Ok(LinearConstraints::new(unknowns.values.len(), &relations)?)
}

/// Degrees of freedom with factors.
pub(super) type Terms = Vec<(u32, f64)>;

/// For each degree of freedom that is not at a corner, the degrees of freedom at corners that a function of degree 1 has its value
/// from, with their factors: $u(x_i) = \sum_c \lambda_c(x_i) u_c$ with the linear shape functions λ.
pub(super) fn interpolated(space: &Space<'_>) -> Result<Vec<Option<Terms>>, SolveError> {
    let table = Element::new(space.mesh().kind, 1)?.tabulate(space.element().nodes());
    let is_at = |local: usize, corner: usize| table.values(local)[corner] > 1.0 - NEAR;
    let n_local = space.element().n_dofs();
    let n_corners = if n_local == 0 { 0 } else { table.values(0).len() };
    let corners: Vec<usize> =
        (0..n_corners).filter_map(|corner| (0..n_local).find(|&local| is_at(local, corner))).collect();
    let mut found = vec![None; space.n_dofs()];
    let mut dofs = vec![0; n_local];
    for position in 0..space.n_cells() {
        space.cell_dofs(position, &mut dofs);
        for local in (0..n_local).filter(|local| !corners.contains(local)) {
            let of_dof = &mut found[dofs[local] as usize];
            if of_dof.is_none() {
                let terms = corners.iter().zip(table.values(local));
                let terms = terms.filter(|(_, factor)| factor.abs() > NEAR);
                *of_dof = Some(terms.map(|(&corner, &factor)| (dofs[corner], factor)).collect());
            }
        }
    }
    Ok(found)
}

/// The size up to which a value of a shape function is rounding.
const NEAR: f64 = 1e-9;

/// Calls a function for the degrees of freedom on boundary facets.
fn for_dofs_on(
    space: &Space<'_>,
    boundary: &BoundaryFacets,
    facets: &[u32],
    found: &mut dyn FnMut(GivenDof) -> Result<(), SolveError>,
) -> Result<(), SolveError> {
    let (sides, element) = (space.boundary_facets(boundary), space.element());
    let mut at = AtNodes::new(space);
    for &facet in facets {
        let side = sides[facet as usize];
        at.move_to(side.position)?;
        element.facets()[side.facet].dofs.iter().try_for_each(|&local| found(at.dof(local)))?;
    }
    Ok(())
}

/// Calls a function for the degrees of freedom at nodes of the mesh, and on edges, faces and in cells between them.
fn for_dofs_at(
    space: &Space<'_>,
    nodes: &[u32],
    found: &mut dyn FnMut(GivenDof) -> Result<(), SolveError>,
) -> Result<(), SolveError> {
    let mut is_named = vec![false; space.mesh().n_nodes()];
    nodes.iter().for_each(|&node| is_named[node as usize] = true);
    // The linear shape functions that do not vanish at a node are those of the corners of its edge, face or cell.
    let table = Element::new(space.mesh().kind, 1)?.tabulate(space.element().nodes());
    let mut at = AtNodes::new(space);
    for position in 0..space.n_cells() {
        let corners = space.corners(position);
        if !corners.iter().any(|&corner| is_named[corner as usize]) {
            continue;
        }
        at.move_to(position)?;
        for local in 0..space.element().n_dofs() {
            let mut own = corners.iter().zip(table.values(local)).filter(|(_, shape)| shape.abs() > NEAR);
            if own.all(|(&corner, _)| is_named[corner as usize]) {
                found(at.dof(local))?;
            }
        }
    }
    Ok(())
}

/// The nodes of one cell after the other.
pub(super) struct AtNodes<'s, 'm> {
    space: &'s Space<'m>,
    mapping: femtile_space::CellMapping<'s, 'm>,
    position: usize,
    dofs: Vec<u32>,
    map: PointMap,
}

impl<'s, 'm> AtNodes<'s, 'm> {
    pub fn new(space: &'s Space<'m>) -> Self {
        let element = space.element();
        let (mapping, dofs) = (space.mapping(element.nodes()), vec![0; element.n_dofs()]);
        Self { space, mapping, position: 0, dofs, map: PointMap::default() }
    }

    /// Goes to the cell at a position.
    pub fn move_to(&mut self, position: usize) -> Result<(), SpaceError> {
        self.position = position;
        self.space.cell_dofs(position, &mut self.dofs);
        self.mapping.of_cell(position, &mut self.map)
    }

    /// Returns a degree of freedom of the cell.
    pub fn dof(&self, local: usize) -> GivenDof {
        let cell = self.space.cell(self.position);
        let tag = self.space.mesh().cell_tags.get(cell).copied().unwrap_or(0);
        GivenDof { dof: self.dofs[local], cell, tag, point: self.map.points[local] }
    }
}

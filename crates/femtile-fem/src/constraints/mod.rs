//! Degrees of freedom with Dirichlet values, and lifting.
//!
//! Vectors keep their full size. With the free unknowns $F$ and the constrained ones $C$, the system is
//!
//! $$ \begin{pmatrix} A_{FF} & 0 \\ 0 & I \end{pmatrix} w = \begin{pmatrix} b_F - A_{FC}\, g \\ 0 \end{pmatrix},
//!    \qquad u = w + \begin{pmatrix} 0 \\ g \end{pmatrix}, $$
//!
//! symmetric and positive definite if the original is; the norm of its right side is the norm after lifting.
//!
//! Numbering and symmetry are preserved. The tolerance of a solve is relative to the norm of the right side after
//! lifting.

use femtile_expression::TapeScratch;
use femtile_mesh::Mesh;
use femtile_space::geometry::{CellMap, CellMaps, Sides};
use femtile_space::{Space, SpaceError, TensorSpace};
use rayon::prelude::*;

use crate::FemError;
use crate::forms::{Compiled, Condition, Conditions, Form, Points};

/// The constrained degrees of freedom and their values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Constraints {
    n_dofs: usize,
    dofs: Vec<u32>,
    values: Vec<f64>,
    /// One bit per degree of freedom.
    mask: Vec<u64>,
    /// Number of constrained degrees of freedom before each word of the mask.
    rank: Vec<u32>,
}

impl Constraints {
    /// Constrains none of `n_dofs` degrees of freedom.
    pub fn none(n_dofs: usize) -> Self {
        let n_words = n_dofs.div_ceil(64);
        Self { n_dofs, dofs: Vec::new(), values: Vec::new(), mask: vec![0; n_words], rank: vec![0; n_words] }
    }

    /// Constrains the degrees of freedom for which `value` returns a value.
    pub fn of_values(n_dofs: usize, value: impl Fn(usize) -> Option<f64> + Sync) -> Self {
        let mut constraints = Self::none(n_dofs);
        let all = (0..n_dofs).into_par_iter().with_min_len(1 << 12);
        let given: Vec<(u32, f64)> = all.filter_map(|dof| Some((dof as u32, value(dof)?))).collect();
        (constraints.dofs, constraints.values) = given.into_iter().unzip();
        constraints.index();
        constraints
    }

    /// Returns the number of degrees of freedom, constrained or not.
    pub fn n_dofs(&self) -> usize {
        self.n_dofs
    }

    /// Evaluates the Dirichlet conditions of a form on a space of its mesh, of degree 1 on simplices.
    ///
    /// # Errors
    /// Conditions on facets or nodes that do not exist; errors of [`Constraints::new`].
    pub fn of_form(space: &Space<'_>, form: &Form<'_>) -> Result<Self, FemError> {
        Self::new(space, &form.holding_conditions()?)
    }

    /// Evaluates the Dirichlet conditions on a space, of degree 1 on simplices: at the nodes of closed facets, and of entities
    /// whose corners are all named. If several conditions name a node, the last one holds.
    ///
    /// # Errors
    /// A boundary value that is not finite, reported by a cell at that node; [`SpaceError::Degree`] on simplices.
    pub fn new(space: &Space<'_>, conditions: &Conditions<'_>) -> Result<Self, FemError> {
        match space.tensor() {
            Some(space) => Self::of_any_degree(space, conditions),
            None if space.element().degree() > 1 => {
                let (kind, degree) = (conditions.mesh.kind, space.element().degree());
                Err(SpaceError::Degree { kind, degree, highest: 1 }.into())
            }
            None => Self::of_nodes(conditions),
        }
    }

    fn of_nodes(conditions: &Conditions<'_>) -> Result<Self, FemError> {
        let boundary = conditions.boundary;
        let claims = conditions.dirichlet_facets().flat_map(|(facet, number)| {
            let cell = boundary.cells[facet as usize];
            boundary.facet(facet as usize).iter().map(move |&node| (node, number, cell))
        });
        let place = |node: u32, cell: u32| (cell, conditions.mesh.points[node as usize]);
        let claims = claims.chain(claims_at_nodes(conditions)).collect();
        Self::from_claims(conditions, conditions.mesh.n_nodes(), claims, place)
    }

    fn of_any_degree(space: &TensorSpace<'_>, conditions: &Conditions<'_>) -> Result<Self, FemError> {
        let sides = Sides::new(space, space.shapes().nodes());
        let facets: Vec<(u32, u32)> = conditions.dirichlet_facets().collect();
        let of_facet = |&(facet, number): &(u32, u32)| {
            let side = sides.of_facet(conditions.boundary, facet as usize);
            let nodes = sides.dofs(side).into_iter().zip(sides.map(side).points);
            nodes.map(move |(dof, point)| ((dof, number), (conditions.boundary.cells[facet as usize], point)))
        };
        let (mut claims, mut places): (Vec<_>, Vec<_>) = facets.par_iter().flat_map_iter(of_facet).unzip();
        for (entry, number) in conditions.list.iter().zip(0..) {
            if let Condition::DirichletAtNodes { nodes, .. } = &entry.condition {
                let (more, places_of_more) = claims_on_entities(space, nodes, number);
                claims.extend(more);
                places.extend(places_of_more);
            }
        }
        let claims = claims.into_iter().zip(0..).map(|((dof, number), place)| (dof, number, place));
        Self::from_claims(conditions, space.n_dofs(), claims.collect(), |_, place| places[place as usize])
    }

    /// Keeps the last claim of each degree of freedom. A claim is (degree of freedom, condition, place
    /// index); `place` returns the cell and point of a place index.
    fn from_claims(
        conditions: &Conditions<'_>,
        n_dofs: usize,
        mut claims: Vec<(u32, u32, u32)>,
        place: impl Fn(u32, u32) -> (u32, [f64; 3]),
    ) -> Result<Self, FemError> {
        claims.par_sort_unstable();
        let mut constraints = Self::none(n_dofs);
        let mut points = vec![Points::default(); conditions.list.len()];
        let mut holding = Vec::new();
        for group in claims.chunk_by(|a, b| a.0 == b.0) {
            let (dof, number, key) = group[group.len() - 1];
            let (cell, point) = place(dof, key);
            holding.push(number as usize);
            constraints.dofs.push(dof);
            points[number as usize].push(cell, point);
        }
        let mut values = Vec::with_capacity(points.len());
        for (points, entry) in points.iter().zip(conditions.list) {
            values.push(dirichlet_values(conditions.mesh, &entry.condition, points)?.into_iter());
        }
        constraints.values =
            holding.iter().map(|&number| values[number].next().unwrap_or(f64::NAN)).collect();
        constraints.index();
        Ok(constraints)
    }

    /// Returns the bit mask, and the number of constrained degrees of freedom before each word: the tables of
    /// [`Self::value`].
    pub(crate) fn tables(&self) -> (&[u64], &[u32]) {
        (&self.mask, &self.rank)
    }

    fn index(&mut self) {
        for &dof in &self.dofs {
            self.mask[dof as usize / 64] |= 1 << (dof % 64);
        }
        let mut before = 0;
        for (rank, word) in self.rank.iter_mut().zip(&self.mask) {
            *rank = before;
            before += word.count_ones();
        }
    }

    /// Returns the number of constrained degrees of freedom.
    pub fn len(&self) -> usize {
        self.dofs.len()
    }

    /// Returns whether nothing is constrained.
    pub fn is_empty(&self) -> bool {
        self.dofs.is_empty()
    }

    /// Returns the constrained degrees of freedom, ascending.
    pub fn dofs(&self) -> &[u32] {
        &self.dofs
    }

    /// Returns their values, in the same order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns whether a degree of freedom is constrained.
    #[inline]
    pub fn contains(&self, dof: usize) -> bool {
        self.mask[dof / 64] >> (dof % 64) & 1 == 1
    }

    /// Returns the value of a degree of freedom if it is constrained.
    #[inline]
    pub fn value(&self, dof: usize) -> Option<f64> {
        let (word, bit) = (self.mask[dof / 64], dof % 64);
        let before = (word & ((1 << bit) - 1)).count_ones();
        (word >> bit & 1 == 1).then(|| self.values[(self.rank[dof / 64] + before) as usize])
    }

    /// Inserts the Dirichlet values into a vector of full size.
    pub fn impose(&self, u: &mut [f64]) {
        for (&dof, &value) in self.dofs.iter().zip(&self.values) {
            u[dof as usize] = value;
        }
    }
}

/// Returns the claims of conditions at nodes: node, condition, and the first cell of the node.
fn claims_at_nodes(conditions: &Conditions<'_>) -> Vec<(u32, u32, u32)> {
    let (mesh, mut cells) = (conditions.mesh, Vec::new());
    if conditions.dirichlet_nodes().next().is_some() {
        cells = vec![u32::MAX; mesh.n_nodes()];
        for cell in (0..mesh.n_cells()).rev() {
            mesh.cell(cell).iter().for_each(|&node| cells[node as usize] = cell as u32);
        }
    }
    // A node without a cell has no equation.
    let claims = conditions.dirichlet_nodes().map(|(node, number)| (node, number, cells[node as usize]));
    claims.filter(|&(_, _, cell)| cell != u32::MAX).collect()
}

/// Returns the claims of one condition at nodes: each degree of freedom on an entity whose corners are all named, with
/// its cell and point.
fn claims_on_entities(space: &TensorSpace<'_>, nodes: &[u32], number: u32) -> (Vec<Claim>, Vec<Place>) {
    let mut is_named = vec![false; space.mesh().n_nodes()];
    nodes.iter().for_each(|&node| is_named[node as usize] = true);
    let maps = CellMaps::new(space, space.shapes().nodes());
    // In the order of the mesh, which a part of it has as well.
    let mut positions: Vec<u32> = (0..space.n_cells() as u32).collect();
    positions.par_sort_unstable_by_key(|&position| space.order()[position as usize]);
    let of_cell = |&position: &u32| {
        let position = position as usize;
        let spanned = space.spanned_by(position, &is_named);
        let (mut dofs, mut map) = (vec![0; space.dofs_per_cell()], CellMap::default());
        if !spanned.is_empty() {
            space.cell_dofs(position, &mut dofs);
            maps.of_cell(position, &mut map);
        }
        let cell = space.order()[position];
        spanned.into_iter().map(move |at| ((dofs[at], number), (cell, map.points[at])))
    };
    positions.par_iter().flat_map_iter(of_cell).unzip()
}

/// A degree of freedom and the condition that gives its value.
type Claim = (u32, u32);

/// A cell and a point in it.
type Place = (u32, [f64; 3]);

fn dirichlet_values(mesh: &Mesh, condition: &Condition, points: &Points) -> Result<Vec<f64>, FemError> {
    let mut values = vec![0.0; points.len()];
    if let Some(coefficient) = condition.given_value() {
        let compiled = Compiled::scalar("dirichlet", coefficient, mesh)?;
        compiled.eval_scalar(&mut values, points, &mut TapeScratch::default())?;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_rank_across_words() {
        let mut constraints = Constraints::none(200);
        constraints.dofs = vec![0, 63, 64, 65, 127, 191, 199];
        constraints.values = constraints.dofs.iter().map(|&dof| f64::from(dof) + 0.5).collect();
        constraints.index();
        for dof in 0..200 {
            let expected = constraints.dofs.contains(&(dof as u32)).then_some(dof as f64 + 0.5);
            assert_eq!(constraints.value(dof), expected);
            assert_eq!(constraints.contains(dof), expected.is_some());
        }
    }
}

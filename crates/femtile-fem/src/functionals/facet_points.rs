//! Functions of a space at points of boundary facets.

use femtile_mesh::check::BoundaryFacets;
use femtile_space::geometry::inverse;
use femtile_space::{CellFacet, CellMapping, PointMap, ReferenceRule, Space, SpaceError, Tabulation};

use crate::forms::Points;

/// Evaluation at the points of a rule on boundary facets.
pub(super) struct FacetEvaluation<'a> {
    space: &'a Space<'a>,
    rule: ReferenceRule,
    /// The sides that the boundary facets are.
    facets: Vec<CellFacet>,
    /// Of each side of a cell.
    sides: Vec<(CellMapping<'a, 'a>, Tabulation)>,
}

/// A function at the points of a facet.
#[derive(Debug, Default)]
pub(super) struct FacetPoints<'a> {
    /// Degrees of freedom on the closed facet.
    pub dofs: Vec<u32>,
    /// The points, with the values of the function.
    pub points: Points,
    pub gradients: Vec<[f64; 3]>,
    /// Outward normals times the area of the facet for each point.
    pub areas: Vec<[f64; 3]>,
    /// All shape functions of the cell, and those on the facet.
    table: Option<(&'a Tabulation, &'a [usize])>,
    cell_dofs: Vec<u32>,
    map: PointMap,
}

impl<'a> FacetEvaluation<'a> {
    /// Prepares a rule that is exact for products of data of degree p + 2 with a shape function.
    pub fn new(space: &'a Space<'a>, boundary: &BoundaryFacets) -> Self {
        let element = space.element();
        let rule = element.facet_quadrature(2 * element.degree() + 2);
        let side = |side: &femtile_space::ElementFacet| {
            let points: Vec<[f64; 3]> = rule.points.iter().map(|&point| side.point(point)).collect();
            (space.mapping(&points), element.tabulate(&points))
        };
        let sides = element.facets().iter().map(side).collect();
        Self { space, facets: space.boundary_facets(boundary), sides, rule }
    }

    /// Evaluates a function at the points of a facet.
    ///
    /// # Errors
    /// [`SpaceError`] for a cell that is folded there.
    pub fn at(&'a self, found: &mut FacetPoints<'a>, facet: u32, u: &[f64]) -> Result<(), SpaceError> {
        let CellFacet { position, facet } = self.facets[facet as usize];
        let (side, (mapping, table)) = (&self.space.element().facets()[facet], &self.sides[facet]);
        let FacetPoints { dofs, points, gradients, areas, table: shapes, cell_dofs, map } = found;
        mapping.of_cell(position, map)?;
        cell_dofs.resize(table.n_dofs, 0);
        self.space.cell_dofs(position, cell_dofs);
        dofs.clear();
        dofs.extend(side.dofs.iter().map(|&local| cell_dofs[local]));
        *shapes = Some((table, &side.dofs));
        points.clear();
        points.extend(self.space.cell(position) as u32, &map.points);
        gradients.clear();
        areas.clear();
        for (q, weight) in self.rule.weights.iter().enumerate() {
            let (mut value, mut slopes, back) = (0.0, [0.0; 3], inverse(&map.jacobians[q]));
            for (&dof, (shape, slope)) in cell_dofs.iter().zip(table.values(q).iter().zip(table.gradients(q)))
            {
                value += u[dof as usize] * shape;
                (0..3).for_each(|axis| slopes[axis] += u[dof as usize] * slope[axis]);
            }
            points.unknown.push(value);
            let times = |v: [f64; 3]| [0, 1, 2].map(|i| (0..3).map(|a| back[a][i] * v[a]).sum::<f64>());
            gradients.push(times(slopes));
            areas.push(times(side.normal).map(|x| weight * map.determinants[q].abs() * x));
        }
        Ok(())
    }
}

impl FacetPoints<'_> {
    /// Returns the length or area of each point.
    pub fn measures(&self) -> impl Iterator<Item = f64> {
        self.areas.iter().map(|[x, y, z]| (x * x + y * y + z * z).sqrt())
    }

    /// Returns $\sum_q f_q \varphi_i(x_q)$ for the degrees of freedom on the facet.
    pub fn moments(&self, f: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.dofs.len()];
        let Some((table, locals)) = self.table else { return sums };
        for (q, f) in f.enumerate() {
            let shapes = table.values(q);
            sums.iter_mut().zip(locals).for_each(|(sum, &local)| *sum += f * shapes[local]);
        }
        sums
    }
}

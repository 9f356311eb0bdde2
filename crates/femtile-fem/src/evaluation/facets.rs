//! Functions of a space at points of boundary facets.

use femtile_device::parallel;
use femtile_expression::TapeScratch;
use femtile_mesh::check::BoundaryFacets;
use femtile_space::geometry::inverse;
use femtile_space::{CellFacet, CellMapping, PointMap, ReferenceRule, Space, SpaceError, Tabulation};

use crate::FemError;
use crate::forms::Points;

/// Evaluation at the points of a rule on boundary facets.
pub(crate) struct FacetEvaluation<'a> {
    space: &'a Space<'a>,
    rule: ReferenceRule,
    /// The sides that the boundary facets are.
    facets: Vec<CellFacet>,
    /// Of each side of a cell.
    sides: Vec<(CellMapping<'a, 'a>, Tabulation)>,
}

/// The points of a facet, and a function there.
#[derive(Debug, Default)]
pub(crate) struct FacetPoints<'a> {
    /// Degrees of freedom on the closed facet.
    pub dofs: Vec<u32>,
    /// The points, with the values of a function after [`FacetPoints::evaluate`].
    pub points: Points,
    /// Result of [`FacetPoints::evaluate`].
    pub gradients: Vec<[f64; 3]>,
    /// Outward normals times the area of the facet for each point.
    pub areas: Vec<[f64; 3]>,
    /// All shape functions of the cell, and those on the facet.
    table: Option<(&'a Tabulation, &'a [usize])>,
    cell_dofs: Vec<u32>,
    map: PointMap,
    /// Inverses of the Jacobians.
    inverses: Vec<[[f64; 3]; 3]>,
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

    /// Collects `of_facet` over some facets, from their points and a workspace.
    pub fn map<'s, R: Send>(
        &'s self,
        facets: &[u32],
        of_facet: impl Fn(&mut FacetPoints<'s>, &mut TapeScratch, u32) -> Result<R, FemError> + Sync,
    ) -> Result<Vec<R>, FemError> {
        let one = |(found, tape): &mut (FacetPoints<'s>, TapeScratch), i: usize| {
            self.at(found, facets[i])?;
            of_facet(found, tape, facets[i])
        };
        parallel::map_with(facets.len(), 1, Default::default, one).into_iter().collect()
    }

    /// Computes the points of a facet.
    ///
    /// # Errors
    /// [`SpaceError`] for a cell that is folded there.
    fn at(&'a self, found: &mut FacetPoints<'a>, facet: u32) -> Result<(), SpaceError> {
        let CellFacet { position, facet } = self.facets[facet as usize];
        let (side, (mapping, table)) = (&self.space.element().facets()[facet], &self.sides[facet]);
        let FacetPoints { dofs, points, areas, table: shapes, cell_dofs, map, inverses, .. } = found;
        mapping.of_cell(position, map)?;
        cell_dofs.resize(table.n_dofs, 0);
        self.space.cell_dofs(position, cell_dofs);
        dofs.clear();
        dofs.extend(side.dofs.iter().map(|&local| cell_dofs[local]));
        *shapes = Some((table, &side.dofs));
        points.clear();
        points.extend(self.space.cell(position) as u32, &map.points);
        inverses.clear();
        inverses.extend(map.jacobians.iter().map(inverse));
        areas.clear();
        for ((weight, back), determinant) in self.rule.weights.iter().zip(&*inverses).zip(&map.determinants) {
            areas.push(transposed_times(back, side.normal).map(|x| weight * determinant.abs() * x));
        }
        Ok(())
    }
}

impl FacetPoints<'_> {
    /// Evaluates a function and its gradients at the points.
    pub fn evaluate(&mut self, u: &[f64]) {
        let Some((table, _)) = self.table else { return };
        self.gradients.clear();
        for (q, back) in self.inverses.iter().enumerate() {
            let (mut value, mut slopes) = (0.0, [0.0; 3]);
            let shapes = table.values(q).iter().zip(table.gradients(q));
            for (&dof, (shape, slope)) in self.cell_dofs.iter().zip(shapes) {
                value += u[dof as usize] * shape;
                (0..3).for_each(|axis| slopes[axis] += u[dof as usize] * slope[axis]);
            }
            self.points.unknown.push(value);
            self.gradients.push(transposed_times(back, slopes));
        }
    }

    /// Returns the length or area of each point.
    pub fn measures(&self) -> impl Iterator<Item = f64> {
        self.areas.iter().map(|[x, y, z]| (x * x + y * y + z * z).sqrt())
    }

    /// Returns $\sum_q f_q \varphi_i(x_q)$ for the degrees of freedom on the facet.
    pub fn moments(&self, f: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.dofs.len()];
        let Some((table, locals)) = self.table else { return sums };
        for (q, f) in f.iter().enumerate() {
            let shapes = table.values(q);
            sums.iter_mut().zip(locals).for_each(|(sum, &local)| *sum += f * shapes[local]);
        }
        sums
    }

    /// Returns $\sum_q f_q \varphi_i(x_q) \varphi_j(x_q)$ for the degrees of freedom on the facet: symmetric to the bit.
    pub fn matrix(&self, f: &[f64]) -> Vec<f64> {
        let n = self.dofs.len();
        let mut sums = vec![0.0; n * n];
        let Some((table, locals)) = self.table else { return sums };
        for (q, f) in f.iter().enumerate() {
            let shapes = table.values(q);
            for (row, &local) in sums.chunks_exact_mut(n).zip(locals) {
                let own = shapes[local];
                row.iter_mut().zip(locals).for_each(|(sum, &other)| *sum += f * (own * shapes[other]));
            }
        }
        sums
    }
}

/// Returns $M^\mathsf{T} v$.
fn transposed_times(matrix: &[[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|i| (0..3).map(|a| matrix[a][i] * v[a]).sum())
}

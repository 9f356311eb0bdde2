//! Functions of a space at points of boundary facets.

use femtile_device::parallel;
use femtile_expression::TapeScratch;
use femtile_mesh::check::BoundaryFacets;
use femtile_space::geometry::{determinant, inverse};
use femtile_space::{CellFacet, CellMapping, PointMap, ReferenceRule, Space, SpaceError, Tabulation};

use super::dot;
use super::simplex::{jacobian, nodes};
use crate::FemError;
use crate::forms::Points;

/// Evaluation at the points of a rule on boundary facets.
pub(crate) struct FacetEvaluation<'a> {
    space: &'a Space<'a>,
    rule: ReferenceRule,
    /// The sides that the boundary facets are.
    facets: Vec<CellFacet>,
    /// Of each side of a cell.
    sides: Vec<Side<'a>>,
}

/// The points of the rule on a side of the reference cell.
struct Side<'a> {
    points: Vec<[f64; 3]>,
    mapping: CellMapping<'a, 'a>,
    table: Tabulation,
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
    /// Data and coefficients of the caller.
    pub given: Vec<f64>,
    pub factors: Vec<f64>,
    pub sigma: Vec<[[f64; 3]; 3]>,
    /// All shape functions of the cell, and those on the facet.
    table: Option<(&'a Tabulation, &'a [usize])>,
    cell_dofs: Vec<u32>,
    map: PointMap,
    /// Inverses of the Jacobians; one for linear functions on simplices.
    inverses: Vec<[[f64; 3]; 3]>,
}

impl<'a> FacetEvaluation<'a> {
    /// Prepares a rule that is exact for products of data of degree p + 2 with a shape function.
    pub fn new(space: &'a Space<'a>, boundary: &BoundaryFacets) -> Self {
        let element = space.element();
        let rule = element.facet_quadrature(2 * element.degree() + 2);
        let side = |side: &femtile_space::ElementFacet| {
            let points: Vec<[f64; 3]> = rule.points.iter().map(|&point| side.point(point)).collect();
            Side { mapping: space.mapping(&points), table: element.tabulate(&points), points }
        };
        let sides = element.facets().iter().map(side).collect();
        Self { space, facets: space.boundary_facets(boundary), sides, rule }
    }

    /// Collects results of blocks of some facets, to which `add` adds each facet from its points and a workspace.
    pub fn blocks<'s, R: Default + Send>(
        &'s self,
        facets: &[u32],
        add: impl Fn(&mut R, &mut FacetPoints<'s>, &mut TapeScratch, u32) -> Result<(), FemError> + Sync,
    ) -> Result<Vec<R>, FemError> {
        let of_block = |(found, tape): &mut (FacetPoints<'s>, TapeScratch), block: usize| {
            let mut result = R::default();
            for &facet in &facets[block * FACETS..facets.len().min((block + 1) * FACETS)] {
                self.at(found, facet)?;
                add(&mut result, found, tape, facet)?;
            }
            Ok(result)
        };
        let n_blocks = facets.len().div_ceil(FACETS);
        parallel::map_with(n_blocks, 1, Default::default, of_block).into_iter().collect()
    }

    /// Computes the points of a facet.
    ///
    /// # Errors
    /// [`SpaceError`] for a cell that is folded there.
    fn at(&'a self, found: &mut FacetPoints<'a>, facet: u32) -> Result<(), SpaceError> {
        let CellFacet { position, facet } = self.facets[facet as usize];
        if self.space.is_linear() {
            return match self.space.mesh().dimension() {
                2 => self.at_linear::<3>(found, position, facet),
                _ => self.at_linear::<4>(found, position, facet),
            };
        }
        let (side, Side { mapping, table, .. }) = (&self.space.element().facets()[facet], &self.sides[facet]);
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

    /// As [`Self::at`], with the same bits, for linear functions in a cell with N corners, which have one gradient and one normal:
    /// by loops of a fixed length.
    fn at_linear<const N: usize>(
        &'a self,
        found: &mut FacetPoints<'a>,
        position: usize,
        facet: usize,
    ) -> Result<(), SpaceError> {
        let (side, own) = (&self.space.element().facets()[facet], &self.sides[facet]);
        let mesh = self.space.mesh();
        let nodes = nodes::<N>(mesh, position);
        let corners = nodes.map(|node| mesh.points[node as usize]);
        let (jacobian, n_axes) = (jacobian(mesh, &corners), mesh.space_dimension());
        let determinant = determinant(&jacobian);
        if determinant == 0.0 || determinant.is_nan() {
            return own.mapping.of_cell(position, &mut found.map);
        }
        found.cell_dofs.clear();
        found.cell_dofs.extend(nodes);
        found.dofs.clear();
        found.dofs.extend(side.dofs.iter().map(|&local| nodes[local]));
        found.table = Some((&own.table, &side.dofs));
        found.points.clear();
        found.points.extend_with(self.space.cell(position) as u32, |i| {
            let along = move |at: &[f64; 3]| (0..N - 1).map(|axis| jacobian[i][axis] * at[axis]).sum::<f64>();
            own.points.iter().map(move |at| corners[0][i] + if i < n_axes { along(at) } else { 0.0 })
        });
        let back = inverse(&jacobian);
        found.inverses.clear();
        found.inverses.push(back);
        let normal = transposed_times(&back, side.normal);
        found.areas.clear();
        let area = |weight: &f64| normal.map(|x| weight * determinant.abs() * x);
        found.areas.extend(self.rule.weights.iter().map(area));
        Ok(())
    }
}

/// Facets per task of a thread.
const FACETS: usize = 64;

impl FacetPoints<'_> {
    /// Evaluates a function and its gradients at the points.
    pub fn evaluate(&mut self, u: &[f64]) {
        let Some((table, _)) = self.table else { return };
        self.gradients.clear();
        for q in 0..self.areas.len() {
            let (mut value, mut slopes) = (0.0, [0.0; 3]);
            let shapes = table.values(q).iter().zip(table.gradients(q));
            for (&dof, (shape, slope)) in self.cell_dofs.iter().zip(shapes) {
                value += u[dof as usize] * shape;
                (0..3).for_each(|axis| slopes[axis] += u[dof as usize] * slope[axis]);
            }
            self.points.unknown.push(value);
            // Linear functions have one gradient.
            let gradient = self.inverses.get(q).map(|back| transposed_times(back, slopes));
            self.gradients.push(gradient.unwrap_or_else(|| self.gradients[0]));
        }
    }

    /// Returns the length or area of each point.
    pub fn measures(&self) -> impl Iterator<Item = f64> {
        self.areas.iter().map(|&area| dot(area, area).sqrt())
    }

    /// Multiplies the values and the factors of the conditions by the measures of the points.
    pub fn weigh(&mut self) {
        for ((given, factor), area) in self.given.iter_mut().zip(&mut self.factors).zip(&self.areas) {
            let measure = dot(*area, *area).sqrt();
            (*given, *factor) = (*given * measure, *factor * measure);
        }
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

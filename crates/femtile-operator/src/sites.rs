//! Quadrature points of cells, boundary facets and interior facets, with the shape functions there.

use femtile_form::Domain;
use femtile_mesh::Mesh;
use femtile_space::{
    CellFacet, CellMapping, Element, ElementFacet, FacetMap, PointMap, ReferenceRule, Space, Tabulation,
};

use crate::discrete_form::DiscreteForm;
use crate::error::OperatorError;

/// The largest rounding error of a shape function at a point where it is zero, as those of nodes off a facet are on it.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// A cell or a facet: its quadrature points and what its cells have there.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// Number of the (first) cell in the mesh.
    pub cell: usize,
    /// Its tag.
    pub tag: i32,
    /// `[n_q]`.
    pub points: Vec<[f64; 3]>,
    /// Unit normals out of the first cell; on cells zero: `[n_q]`.
    pub normals: Vec<[f64; 3]>,
    /// Weights times the measure: `[n_q]`.
    pub weights: Vec<f64>,
    /// One cell, or the two of an interior facet.
    pub sides: Vec<SiteSide>,
}

/// The shape functions of one cell at the points of a site.
#[derive(Debug, Clone)]
pub(crate) struct SiteSide {
    /// Degrees of freedom of the cell: `[n]`.
    pub dofs: Vec<u32>,
    /// Value and derivatives in space of each shape function: `[n_q][n]`.
    shapes: Vec<[f64; 4]>,
}

impl SiteSide {
    /// Returns value and derivatives of the shape functions at a point.
    pub fn shapes(&self, q: usize) -> &[[f64; 4]] {
        let n = self.dofs.len();
        &self.shapes[q * n..(q + 1) * n]
    }

    fn new(space: &Space<'_>, position: usize, table: &Tabulation, map: &PointMap) -> Self {
        let n = space.element().n_dofs();
        let mut dofs = vec![0; n];
        space.cell_dofs(position, &mut dofs);
        let mut shapes = Vec::with_capacity(table.n_points() * n);
        for q in 0..table.n_points() {
            let inverse = inverse(&map.jacobians[q], map.determinants[q]);
            for (value, slopes) in table.values(q).iter().zip(table.gradients(q)) {
                let along = |axis: usize| (0..3).map(|a| inverse[a][axis] * slopes[a]).sum::<f64>();
                let value = if value.abs() > ROUNDING { *value } else { 0.0 };
                shapes.push([value, along(0), along(1), along(2)]);
            }
        }
        Self { dofs, shapes }
    }
}

/// Returns the quadrature rule of the cells of a form: exact for polynomials of degree 2p on simplices, p + 1 Gauss points
/// along each axis of other cells.
pub(crate) fn cell_rule(element: &Element) -> ReferenceRule {
    element.quadrature(2 * element.degree())
}

/// Calls a function for each cell or facet of a domain.
pub(crate) fn for_sites(
    discrete: &DiscreteForm<'_>,
    domain: &Domain,
    found: &mut dyn FnMut(&Site) -> Result<(), OperatorError>,
) -> Result<(), OperatorError> {
    let space = discrete.space();
    match domain {
        Domain::Cells => {
            let rule = cell_rule(space.element());
            let (table, mapping) = (space.element().tabulate(&rule.points), space.mapping(&rule.points));
            for position in 0..space.n_cells() {
                found(&cell_site(space, position, &rule, &table, &mapping)?)?;
            }
        }
        Domain::Boundary(facets) => {
            let (sides, element) = (space.boundary_facets(discrete.boundary()), space.element());
            let rule = facet_rule(element);
            let points = |side: &ElementFacet| -> Vec<_> {
                rule.points.iter().map(|&point| side.point(point)).collect()
            };
            let tables = |side| (space.mapping(&points(side)), element.tabulate(&points(side)));
            let tables: Vec<_> = element.facets().iter().map(tables).collect();
            for &facet in facets {
                let facet = sides[facet as usize];
                let ((mapping, table), mut map) = (&tables[facet.facet], PointMap::default());
                mapping.of_cell(facet.position, &mut map)?;
                let side = SiteSide::new(space, facet.position, table, &map);
                found(&facet_site(space, facet, &rule, map, vec![side]))?;
            }
        }
        Domain::Interior => {
            for sides in space.interior_facets() {
                found(&two_sided_site(space, sides.map(|side| (side, space.facet(side))))?)?;
            }
        }
        Domain::Interface(pairs) => {
            let sides = space.boundary_facets(discrete.boundary());
            for &[first, second] in pairs {
                let [first, second] = [first, second].map(|facet| sides[facet as usize]);
                let map = space.facet(first);
                let coinciding = space.coinciding_facet(second, first, &map);
                found(&two_sided_site(space, [(first, map), (second, coinciding)])?)?;
            }
        }
    }
    Ok(())
}

fn cell_site(
    space: &Space<'_>,
    position: usize,
    rule: &ReferenceRule,
    table: &Tabulation,
    mapping: &CellMapping<'_, '_>,
) -> Result<Site, OperatorError> {
    let mut map = PointMap::default();
    mapping.of_cell(position, &mut map)?;
    let cell = space.cell(position);
    Ok(Site {
        cell,
        tag: tag(space.mesh(), cell),
        normals: vec![[0.0; 3]; rule.n_q()],
        weights: rule.weights.iter().zip(&map.determinants).map(|(w, det)| w * det.abs()).collect(),
        sides: vec![SiteSide::new(space, position, table, &map)],
        points: map.points,
    })
}

fn facet_rule(element: &Element) -> ReferenceRule {
    element.facet_quadrature(2 * element.degree())
}

/// The site of a facet that two cells share, or of two that coincide.
fn two_sided_site(space: &Space<'_>, facets: [(CellFacet, FacetMap); 2]) -> Result<Site, OperatorError> {
    let element = space.element();
    let rule = facet_rule(element);
    let (mut sides, mut maps) = (Vec::new(), Vec::new());
    let first = facets[0].0;
    for (facet, on_facet) in facets {
        let points: Vec<[f64; 3]> = rule.points.iter().map(|&point| on_facet.point(point)).collect();
        let mut map = PointMap::default();
        space.map(facet.position, &points, &mut map)?;
        sides.push(SiteSide::new(space, facet.position, &element.tabulate(&points), &map));
        maps.push(map);
    }
    Ok(facet_site(space, first, &rule, maps.swap_remove(0), sides))
}

/// The site of a facet with the map of its first cell.
fn facet_site(
    space: &Space<'_>,
    CellFacet { position, facet }: CellFacet,
    rule: &ReferenceRule,
    map: PointMap,
    sides: Vec<SiteSide>,
) -> Site {
    let reference = space.element().facets()[facet].normal;
    let (mut normals, mut weights) = (Vec::new(), Vec::new());
    for (q, weight) in rule.weights.iter().enumerate() {
        // Nanson's formula: n ds = |det J| J⁻ᵀ N dS.
        let (det, inverse) = (map.determinants[q], inverse(&map.jacobians[q], map.determinants[q]));
        let component =
            |axis: usize| (0..3).map(|a| inverse[a][axis] * reference[a]).sum::<f64>() * det.abs();
        let area: [f64; 3] = std::array::from_fn(component);
        let size = area.iter().map(|x| x * x).sum::<f64>().sqrt();
        normals.push(area.map(|x| x / size));
        weights.push(weight * size);
    }
    let cell = space.cell(position);
    Site { cell, tag: tag(space.mesh(), cell), points: map.points, normals, weights, sides }
}

fn tag(mesh: &Mesh, cell: usize) -> i32 {
    mesh.cell_tags.get(cell).copied().unwrap_or(0)
}

/// The inverse of a Jacobian by rows, $\partial\xi_a/\partial x_i$.
pub(crate) fn inverse(j: &[[f64; 3]; 3], determinant: f64) -> [[f64; 3]; 3] {
    let cofactor = |r: usize, c: usize| {
        let [a, b] = [(r + 1) % 3, (r + 2) % 3];
        let [p, q] = [(c + 1) % 3, (c + 2) % 3];
        j[a][p] * j[b][q] - j[a][q] * j[b][p]
    };
    std::array::from_fn(|a| std::array::from_fn(|i| cofactor(i, a) / determinant))
}

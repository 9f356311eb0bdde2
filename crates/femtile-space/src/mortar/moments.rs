//! Integrals over the parts of a side that lie on another one.

use std::collections::BTreeMap;

use femtile_device::parallel;

use super::SidePair;
use super::clip::{Convex, Polygon, clipped};
use crate::box_tree::BoxTree;
use crate::element::ReferenceRule;
use crate::space::locate::Maps;
use crate::space::nearest::Side;
use crate::space::{CellFacet, Space};

/// Integrals over a facet of products of shape functions, where the other side covers it.
pub(super) struct Moments {
    /// Those of its own functions, by rows: `[n][n]` in the order of [`crate::ElementFacet::dofs`].
    pub own: Vec<f64>,
    /// The projection of the functions of the other side onto its own ones: for each degree of freedom the values at its nodes. None if
    /// the other side misses a part of it or covers it twice.
    pub projection: Option<Vec<(u32, Vec<f64>)>>,
}

/// Distance from a facet up to which others lie on it, relative to its size.
const NEAR: f64 = 1e-2;

/// Distance of an arc of 45° from its chord, relative to that.
const BENT: f64 = 0.1;

/// The share of a facet by which the other side may miss it or cover it twice; beyond that its nodes are interpolated.
const MISSED: f64 = 0.1;

/// The share of a facet that is covered twice by rounding.
const ROUNDING: f64 = 1e-6;

/// Parts of a facet that are rounding, relative to it.
const SMALL: f64 = 1e-12;

/// Most degrees of the rule on triangles.
const MAX_DEGREE: usize = femtile_element::quadrature::MAX_DEGREE;

impl Space<'_> {
    /// Integrates over each facet of the side that follows.
    ///
    /// Facets are clipped in the plane of the corners of the one that follows, and the parts cut into triangles. Its own integrals
    /// have the same points, so that constants are kept on parts that are not quite covered and on curved facets.
    ///
    /// # Cost
    /// A tree of the boxes of `from`. For each facet about $n_v$ triangles for each facet of `from` on it, of $n_v$ corners; the
    /// rule of degree 2p on triangles, 4p on quadrilaterals, one more with a density; $4 n^2$ flops a point for n functions of a facet.
    pub(super) fn moments(&self, sides: &SidePair<'_>) -> Vec<Moments> {
        let maps = Maps::new(self);
        let other = |i: usize| {
            let side = Side::new(&maps, sides.from[i]);
            Other { facet: sides.from[i], polygon: Polygon::of(side.corners()), side }
        };
        let from = parallel::map(sides.from.len(), 64, other);
        let reach =
            |Other { side, .. }: &Other<'_>| side.bounds.widened([sides.gap.unwrap_or(NEAR * side.size); 3]);
        let tree = BoxTree::new(&from.iter().map(reach).collect::<Vec<_>>());
        let (d, p) = (self.element().dimension() - 1, self.element().degree());
        let is_product = d == 2 && !self.element().kind().is_simplex();
        let degree = 2 * p * (1 + usize::from(is_product)) + usize::from(sides.density.is_some());
        let rule = ReferenceRule::new(true, d, degree.min(MAX_DEGREE));
        let of_facet = |i: usize| {
            let side = Side::new(&maps, sides.to[i]).moved(sides.motion);
            let polygon = Polygon::of(side.corners());
            let whole = polygon.whole();
            let mut parts = Vec::new();
            for number in tree.meeting(side.bounds.widened([BENT * side.size; 3])) {
                let other = &from[number as usize];
                if !polygon.is_along(&other.polygon) {
                    continue;
                }
                let shape = clipped(&whole, &polygon.project(&other.polygon));
                if shape.measure() > SMALL * whole.measure() {
                    parts.push(Part { other, shape });
                }
            }
            if covered(&parts) > (1.0 + ROUNDING) * whole.measure() {
                parts = nearest(parts, &polygon);
            }
            let facet = &self.element().facets()[sides.to[i].facet];
            let own =
                Own { space: self, rule: &rule, density: sides.density, side, polygon, dofs: &facet.dofs };
            own.moments(&parts, covered(&parts) / whole.measure())
        };
        parallel::map(sides.to.len(), 4, of_facet)
    }
}

/// A facet of the other side.
struct Other<'m> {
    facet: CellFacet,
    side: Side<'m>,
    polygon: Polygon,
}

/// The part of a facet that one of the other side covers.
struct Part<'o, 'm> {
    other: &'o Other<'m>,
    shape: Convex,
}

/// Returns the sum of the measures.
fn covered(parts: &[Part<'_, '_>]) -> f64 {
    parts.iter().map(|part| part.shape.measure()).sum()
}

/// Returns the parts without those that nearer ones cover by more than half.
fn nearest<'o, 'm>(mut parts: Vec<Part<'o, 'm>>, polygon: &Polygon) -> Vec<Part<'o, 'm>> {
    let distance = |part: &Part<'_, '_>| part.other.side.foot(polygon.point(part.shape.middle())).1;
    parts.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    let mut kept: Vec<Part<'o, 'm>> = Vec::new();
    for part in parts {
        let shared: f64 = kept.iter().map(|nearer| clipped(&part.shape, &nearer.shape).measure()).sum();
        if shared <= 0.5 * part.shape.measure() {
            kept.push(part);
        }
    }
    kept
}

/// A facet that follows, with the functions on it.
struct Own<'w, 'm> {
    space: &'w Space<'w>,
    rule: &'w ReferenceRule,
    density: Option<&'w (dyn Fn(CellFacet, [f64; 3]) -> f64 + Sync)>,
    side: Side<'m>,
    polygon: Polygon,
    dofs: &'w [usize],
}

impl Own<'_, '_> {
    /// Integrates over the parts, which cover a share of the facet.
    fn moments(&self, parts: &[Part<'_, '_>], covered: f64) -> Moments {
        let n = self.dofs.len();
        let (mut own, mut of_others) = (vec![0.0; n * n], BTreeMap::new());
        let mut dofs = vec![0; self.space.element().n_dofs()];
        for Part { other, shape, .. } in parts {
            let mut of_other = vec![0.0; n * n];
            for piece in shape.simplices() {
                self.add(&piece, other, &mut own, &mut of_other);
            }
            self.space.cell_dofs(other.facet.position, &mut dofs);
            for (column, &local) in self.on(other.facet).iter().enumerate() {
                let sums = of_others.entry(dofs[local]).or_insert_with(|| vec![0.0; n]);
                sums.iter_mut().enumerate().for_each(|(row, sum)| *sum += of_other[row * n + column]);
            }
        }
        let factor = cholesky(&own, n).filter(|_| (covered - 1.0).abs() < MISSED);
        let projection = factor.map(|factor| {
            of_others.into_iter().map(|(dof, products)| (dof, solved(&factor, products))).collect()
        });
        Moments { own, projection }
    }

    /// Returns the degrees of freedom of the cell that lie on a facet.
    fn on(&self, facet: CellFacet) -> &[usize] {
        &self.space.element().facets()[facet.facet].dofs
    }

    /// Adds the integrals over a segment or triangle in the plane of the facet.
    fn add(&self, piece: &[[f64; 2]], other: &Other<'_>, of_own: &mut [f64], of_other: &mut [f64]) {
        let edge = |end: usize| piece.get(end).map_or([0.0; 2], |x| [x[0] - piece[0][0], x[1] - piece[0][1]]);
        let (a, b) = (edge(1), edge(2));
        let scale = if piece.len() == 2 { a[0].hypot(a[1]) } else { (a[0] * b[1] - a[1] * b[0]).abs() };
        let place = |s: f64, t: f64| self.polygon.point([0, 1].map(|i| piece[0][i] + s * a[i] + t * b[i]));
        let points: Vec<[f64; 3]> = self.rule.points.iter().map(|&[s, t, _]| place(s, t)).collect();
        let values = |side: &Side<'_>, dofs: &[usize]| -> Vec<f64> {
            let at: Vec<[f64; 3]> = points.iter().map(|&point| side.reference(point)).collect();
            self.space.element().values_of(dofs, &at)
        };
        let n = self.dofs.len();
        let (own, others) = (values(&self.side, self.dofs), values(&other.side, self.on(other.facet)));
        let of_points = own.chunks_exact(n).zip(others.chunks_exact(n)).zip(&self.rule.weights);
        for (((own, others), weight), &point) in of_points.zip(&points) {
            let weight = weight * self.density.map_or(1.0, |density| density(other.facet, point));
            for (i, row) in own.iter().enumerate() {
                let weighted = scale * weight * row;
                for j in 0..n {
                    of_own[i * n + j] += weighted * own[j];
                    of_other[i * n + j] += weighted * others[j];
                }
            }
        }
    }
}

/// Returns the lower factor of a symmetric matrix, by rows; none if it is not positive definite.
fn cholesky(matrix: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut factor = matrix.to_vec();
    for i in 0..n {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| factor[i * n + k] * factor[j * n + k]).sum();
            let left = factor[i * n + j] - sum;
            factor[i * n + j] = match i == j {
                true if left > 0.0 => left.sqrt(),
                true => return None,
                false => left / factor[j * n + j],
            };
        }
    }
    Some(factor)
}

/// Solves with the factor of a matrix.
fn solved(factor: &[f64], mut x: Vec<f64>) -> Vec<f64> {
    let n = x.len();
    for i in 0..n {
        let sum: f64 = (0..i).map(|k| factor[i * n + k] * x[k]).sum();
        x[i] = (x[i] - sum) / factor[i * n + i];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|k| factor[k * n + i] * x[k]).sum();
        x[i] = (x[i] - sum) / factor[i * n + i];
    }
    x
}

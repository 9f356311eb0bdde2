//! The nearest points of a side.

use femtile_device::parallel;

use super::locate::Maps;
use super::{CellFacet, CellPoint, FacetMap, Space};
use crate::box_tree::{Bounds, BoxTree};
use crate::element::Element;

/// The nearest point of some facets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Foot {
    /// The point, on the cell of its facet.
    pub at: CellPoint,
    /// Its distance.
    pub distance: f64,
    /// The diagonal of the bounding box of the facet.
    pub size: f64,
}

/// Most steps of the Gauss-Newton method; one or two are taken on straight facets.
const MAX_STEPS: usize = 30;

/// Steps on the reference facet after which the next one would be rounding.
const SMALL: f64 = 1e-12;

/// Difference of the distances of facets that meet at a point, relative to the size, that is rounding of coordinates in files.
const SAME: f64 = 1e-6;

/// The corners of a triangle in their order around it.
const TRIANGLE: &[[f64; 2]] = &[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]];

/// Those of a square.
const SQUARE: &[[f64; 2]] = &[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]];

/// Distance of the fourth corner from that of a parallelogram, relative to the size, that is rounding.
const STRAIGHT: f64 = 1e-13;

impl Space<'_> {
    /// Returns for each point the nearest one on some facets, the first of several facets; none without facets.
    ///
    /// # Cost
    /// A tree of the bounding boxes of the facets; the Gauss-Newton method for those that are nearer than the best one so far.
    pub fn nearest(&self, facets: &[CellFacet], points: &[[f64; 3]]) -> Vec<Option<Foot>> {
        self.feet(facets, points.len(), |i| (points[i], None))
    }

    /// As [`Self::nearest`] for the first point of each pair; of several facets it is the one that is nearest to the second point. At the
    /// two sides of a cut, where facets have different degrees of freedom at the same point, the second point tells which side is meant.
    ///
    /// # Cost
    /// Two searches for each pair.
    pub fn nearest_beside(&self, facets: &[CellFacet], pairs: &[[[f64; 3]; 2]]) -> Vec<Option<Foot>> {
        self.feet(facets, pairs.len(), |i| (pairs[i][0], Some(pairs[i][1])))
    }

    fn feet(
        &self,
        facets: &[CellFacet],
        n: usize,
        sought: impl Fn(usize) -> ([f64; 3], Option<[f64; 3]>) + Sync,
    ) -> Vec<Option<Foot>> {
        let maps = Maps::new(self);
        let sides = parallel::map(facets.len(), 64, |i| Side::new(&maps, facets[i]));
        let tree = BoxTree::new(&sides.iter().map(|side| side.bounds).collect::<Vec<_>>());
        let nearest = |point: [f64; 3]| tree.nearest(point, |side| sides[side as usize].foot(point).1);
        let on = |side: u32, point: [f64; 3]| {
            let side = &sides[side as usize];
            let (reference, distance) = side.foot(point);
            Foot { at: CellPoint { position: side.position, reference }, distance, size: side.size }
        };
        let foot = |(point, beside): ([f64; 3], Option<[f64; 3]>)| {
            let first = on(nearest(point)?.0, point);
            let other = beside.and_then(nearest).map(|(side, _)| on(side, point));
            Some(other.filter(|other| other.distance <= first.distance + SAME * other.size).unwrap_or(first))
        };
        parallel::map(n, 16, |i| foot(sought(i)))
    }
}

/// A facet with the map of its cell.
pub(crate) struct Side<'m> {
    element: &'m Element,
    position: usize,
    map: FacetMap,
    nodes: Vec<[f64; 3]>,
    /// The numbers of the nodes that lie on the facet.
    on_facet: &'m [usize],
    is_curved: bool,
    /// The place of the first corner and the derivatives along the axes, if these are the same everywhere.
    affine: Option<([f64; 3], [[f64; 3]; 2])>,
    pub bounds: Bounds,
    /// The diagonal of the bounding box of its nodes.
    pub size: f64,
    is_surface: bool,
}

impl<'m> Side<'m> {
    pub fn new(maps: &'m Maps<'_>, facet: CellFacet) -> Self {
        let (space, map, nodes) = (maps.space(), maps.space().facet(facet), maps.nodes(facet.position));
        let mut side = Self {
            element: &maps.element,
            position: facet.position,
            map,
            nodes,
            on_facet: &maps.element.facets()[facet.facet].dofs,
            is_curved: space.mesh().curved.is_some(),
            affine: None,
            bounds: Bounds::EMPTY,
            size: 0.0,
            is_surface: space.mesh().is_surface,
        };
        side.measure();
        side
    }

    /// Finds the box and the affine map of the nodes.
    fn measure(&mut self) {
        let own = self.on_facet.iter().map(|&node| self.nodes[node]);
        let bounds = own.fold(Bounds::EMPTY, Bounds::with);
        self.size = length(bounds.size());
        // Curved facets may leave the box of their nodes by less than half of its size, if they are sound.
        let share = if self.is_curved { 0.5 } else { 0.0 };
        self.bounds = bounds.widened([share * self.size; 3]);
        self.affine = None;
        self.affine = self.straight();
    }

    /// Moves the facet.
    pub fn moved(mut self, motion: &dyn Fn([f64; 3]) -> [f64; 3]) -> Self {
        self.nodes.iter_mut().for_each(|node| *node = motion(*node));
        self.measure();
        self
    }

    /// Returns the corners in their order around the facet.
    pub fn corners(&self) -> Vec<[f64; 3]> {
        let corners: &[[f64; 2]] = match (self.element.dimension(), self.element.kind().is_simplex()) {
            (2, _) => &[[0.0, 0.0], [1.0, 0.0]],
            (_, true) => TRIANGLE,
            (_, false) => SQUARE,
        };
        corners.iter().map(|&corner| self.gap(corner, [0.0; 3]).1.map(|x| -x)).collect()
    }

    /// Returns the point of the reference cell for a point on the facet or near it.
    pub fn reference(&self, point: [f64; 3]) -> [f64; 3] {
        let Some((origin, [a, b])) = self.affine else { return self.foot(point).0 };
        let gap = std::array::from_fn(|i| point[i] - origin[i]);
        let [s, t] = match self.element.dimension() {
            2 => [dot(gap, a) / dot(a, a), 0.0],
            _ => in_plane(gap, [a, b]),
        };
        self.map.point([s, t, 0.0])
    }

    fn straight(&self) -> Option<([f64; 3], [[f64; 3]; 2])> {
        if self.element.degree() > 1 {
            return None;
        }
        let place = |s, t| -> [f64; 3] {
            let gap = self.gap([s, t], [0.0; 3]).1;
            gap.map(|x| -x)
        };
        let (origin, slopes) = (place(0.0, 0.0), self.gap([0.0, 0.0], [0.0; 3]).2);
        let last = place(1.0, 1.0);
        let is_straight = self.element.kind().is_simplex()
            || self.element.dimension() == 2
            || (0..3)
                .all(|i| (last[i] - origin[i] - slopes[0][i] - slopes[1][i]).abs() <= STRAIGHT * self.size);
        is_straight.then_some((origin, slopes))
    }

    /// Returns the nearest point of the reference cell on the facet, and its distance.
    pub fn foot(&self, point: [f64; 3]) -> ([f64; 3], f64) {
        let d = self.element.dimension();
        let (first, along) = ([0.0; 2], |a, b| [a, b]);
        if d == 2 {
            return self.nearest_on(first, along(1.0, 0.0), point);
        }
        let is_simplex = self.element.kind().is_simplex();
        if let Some(found) = self.nearest_inside(is_simplex, point) {
            return found;
        }
        let corners = if is_simplex { TRIANGLE } else { SQUARE };
        let edges = corners.iter().zip(corners.iter().cycle().skip(1));
        let feet = edges.map(|(&[a, b], &[c, d])| self.nearest_on([a, b], along(c - a, d - b), point));
        feet.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(([0.0; 3], f64::INFINITY))
    }

    /// Returns a point of the reference cell for one of the reference facet, the vector from its place to `point`, and the derivatives
    /// of the place along the axes of the facet.
    fn gap(&self, [s, t]: [f64; 2], point: [f64; 3]) -> ([f64; 3], [f64; 3], [[f64; 3]; 2]) {
        let of_facet = |s, t| self.map.point([s, t, 0.0]);
        let at = of_facet(s, t);
        if let Some((origin, [a, b])) = self.affine {
            let gap = std::array::from_fn(|i| point[i] - origin[i] - s * a[i] - t * b[i]);
            return (at, gap, [a, b]);
        }
        let (place, jacobian) = self.element.image(&self.nodes, at, self.is_surface);
        let d = self.element.dimension();
        let n_axes = if self.is_surface { 3 } else { d };
        let gap = std::array::from_fn(|i| if i < n_axes { point[i] - place[i] } else { 0.0 });
        let origin = of_facet(0.0, 0.0);
        let slope = |end: [f64; 3]| -> [f64; 3] {
            std::array::from_fn(|i| (0..d).map(|a| jacobian[i][a] * (end[a] - origin[a])).sum())
        };
        (at, gap, [slope(of_facet(1.0, 0.0)), slope(of_facet(0.0, 1.0))])
    }

    /// Returns the nearest point of the interior of the face; none if that of its continuation lies outside.
    fn nearest_inside(&self, is_simplex: bool, point: [f64; 3]) -> Option<([f64; 3], f64)> {
        let mut at = if is_simplex { [1.0 / 3.0; 2] } else { [0.5; 2] };
        for _ in 0..MAX_STEPS {
            let (_, gap, axes) = self.gap(at, point);
            let step = in_plane(gap, axes);
            at = [0, 1].map(|i| (at[i] + step[i]).clamp(-1.0, 2.0));
            if step.iter().all(|step| step.abs() < SMALL) {
                break;
            }
        }
        let largest = if is_simplex { at[0] + at[1] } else { at[0].max(at[1]) };
        let (reference, gap, _) = self.gap(at, point);
        (at[0] >= 0.0 && at[1] >= 0.0 && largest <= 1.0).then(|| (reference, dot(gap, gap).sqrt()))
    }

    /// Returns the nearest point of a straight edge of the reference facet.
    fn nearest_on(&self, from: [f64; 2], along: [f64; 2], point: [f64; 3]) -> ([f64; 3], f64) {
        let place = |share: f64| [from[0] + share * along[0], from[1] + share * along[1]];
        let mut share: f64 = 0.5;
        for _ in 0..MAX_STEPS {
            let (_, gap, [a, b]) = self.gap(place(share), point);
            let tangent: [f64; 3] = std::array::from_fn(|i| along[0] * a[i] + along[1] * b[i]);
            let next = (share + dot(gap, tangent) / dot(tangent, tangent)).clamp(0.0, 1.0);
            let step = next - share;
            share = next;
            if step.abs() < SMALL {
                break;
            }
        }
        let (reference, gap, _) = self.gap(place(share), point);
        (reference, dot(gap, gap).sqrt())
    }
}

/// Returns the shares of two axes in the part of a vector in their plane.
fn in_plane(gap: [f64; 3], [a, b]: [[f64; 3]; 2]) -> [f64; 2] {
    let (aa, ab, bb) = (dot(a, a), dot(a, b), dot(b, b));
    let (ga, gb, det) = (dot(gap, a), dot(gap, b), aa * bb - ab * ab);
    [(bb * ga - ab * gb) / det, (aa * gb - ab * ga) / det]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn length(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile_mesh::Mesh;
    use femtile_mesh::check::boundary_facets;
    use femtile_mesh::generate::{
        BoxConfig, BoxSplit, DeformConfig, SphereConfig, SquareConfig, SquareSplit, box_mesh, deform, sphere,
        square,
    };

    #[test]
    fn feet_on_a_side_of_a_box_are_projections_with_the_basis_of_the_facet() {
        for split in [BoxSplit::Hexahedron, BoxSplit::Kuhn] {
            let mesh = box_mesh(&BoxConfig { cells: [2, 3, 2], split, ..BoxConfig::default() }).unwrap();
            let (space, boundary) = (Space::new(&mesh, 2).unwrap(), boundary_facets(&mesh));
            let is_on_it = |facet: &usize| {
                boundary.facet(*facet).iter().all(|&node| mesh.points[node as usize][0] == 1.0)
            };
            let all = space.boundary_facets(&boundary);
            let side: Vec<CellFacet> = (0..boundary.len()).filter(is_on_it).map(|f| all[f]).collect();
            let points =
                [[1.2, 0.37, 0.81], [0.9, 0.5, 0.5], [1.0, 1.0, 0.0], [1.0, 1.3, 0.4], [1.3, -0.4, 1.1]];
            for (point, foot) in points.iter().zip(space.nearest(&side, &points)) {
                let foot = foot.unwrap();
                let expected = [1.0, point[1].clamp(0.0, 1.0), point[2].clamp(0.0, 1.0)];
                let table = space.element().tabulate(&[foot.at.reference]);
                let mut dofs = vec![0; space.element().n_dofs()];
                space.cell_dofs(foot.at.position, &mut dofs);
                let nodes = space.node_points();
                let place = |i: usize| -> f64 {
                    dofs.iter().zip(table.values(0)).map(|(&dof, shape)| shape * nodes[dof as usize][i]).sum()
                };
                for i in 0..3 {
                    assert!((place(i) - expected[i]).abs() < 1e-13, "{point:?} {foot:?}");
                }
                let distance = (0..3).map(|i| (point[i] - expected[i]).powi(2)).sum::<f64>().sqrt();
                assert!((foot.distance - distance).abs() < 1e-13);
                for (&dof, shape) in dofs.iter().zip(table.values(0)) {
                    assert!(nodes[dof as usize][0] == 1.0 || shape.abs() < 1e-14);
                }
            }
        }
    }

    #[test]
    fn feet_on_a_curved_side_of_a_plane_mesh_are_nearest() {
        let config =
            SquareConfig { cells: [4, 3], split: SquareSplit::Quadrilateral, ..SquareConfig::default() };
        let mut mesh = square(&config).unwrap();
        mesh.points.iter_mut().for_each(|[x, y, _]| *y += 0.2 * *x * *x);
        let (space, boundary) = (Space::new(&mesh, 1).unwrap(), boundary_facets(&mesh));
        let facets = space.boundary_facets(&boundary);
        let point = [0.4, 1.5, 0.0];
        let foot = space.nearest(&facets, &[point])[0].unwrap();
        let ends = |facet: usize| boundary.facet(facet).iter().map(|&node| mesh.points[node as usize]);
        let distance = |facet: usize| {
            let ends: Vec<[f64; 3]> = ends(facet).collect();
            let at = |s: f64| {
                let gap = |i: usize| point[i] - ends[0][i] - s * (ends[1][i] - ends[0][i]);
                gap(0).hypot(gap(1))
            };
            (0..=10_000).map(|i| at(f64::from(i) / 1e4)).fold(f64::INFINITY, f64::min)
        };
        let least = (0..boundary.len()).map(distance).fold(f64::INFINITY, f64::min);
        assert!((foot.distance - least).abs() < 1e-8, "{foot:?} {least}");
        assert!(space.nearest(&[], &[point])[0].is_none());
    }

    /// Checks feet on the boundary of a mesh: their distance is that of the place that is reported, and no sample of a facet is nearer.
    fn are_nearest(mesh: &Mesh, points: &[[f64; 3]]) {
        let (space, boundary) = (Space::new(mesh, 1).unwrap(), boundary_facets(mesh));
        let facets = space.boundary_facets(&boundary);
        let distance = |a: [f64; 3], b: [f64; 3]| (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt();
        let place = |position: usize, at: [f64; 3]| {
            let mut map = crate::PointMap::default();
            space.mapping(&[at]).of_cell(position, &mut map).unwrap();
            map.points[0]
        };
        let n = if mesh.dimension() == 2 { 0 } else { 24 };
        let mut samples = Vec::new();
        for &facet in &facets {
            let map = space.facet(facet);
            let ticks =
                (0..=24).flat_map(|i| (0..=n).map(move |j| [f64::from(i) / 24.0, f64::from(j) / 24.0]));
            samples.extend(ticks.map(|[s, t]| place(facet.position, map.point([s, t, 0.0]))));
        }
        for (point, foot) in points.iter().zip(space.nearest(&facets, points)) {
            let foot = foot.unwrap();
            let found = place(foot.at.position, foot.at.reference);
            assert!((distance(found, *point) - foot.distance).abs() < 1e-12, "{point:?} {foot:?}");
            let least = samples.iter().map(|&sample| distance(sample, *point)).fold(f64::INFINITY, f64::min);
            // Samples lie up to 1/48 of a facet from the foot along both axes.
            let gap = 0.03 * foot.size;
            assert!(foot.distance <= least + 1e-12, "{point:?} {foot:?} {least}");
            assert!(least <= foot.distance.hypot(gap) + gap * gap / foot.size, "{point:?} {foot:?} {least}");
        }
    }

    #[test]
    fn feet_on_curved_and_bent_facets_are_nearest() {
        let flat =
            SquareConfig { cells: [3, 2], split: SquareSplit::Quadrilateral, ..SquareConfig::default() };
        let solid = BoxConfig { cells: [2, 2, 1], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        for (order, is_flat) in [(3, true), (3, false), (1, false)] {
            let mut mesh = if is_flat { square(&flat) } else { box_mesh(&solid) }.unwrap();
            deform(&mut mesh, &DeformConfig { amplitude: 0.1, order }).unwrap();
            // Sides of deformed boxes are plane: bend them.
            let bend = |[x, y, z]: [f64; 3]| match is_flat {
                true => [x + 0.15 * y * y, y - 0.2 * x * (1.0 - x), 0.0],
                false => [x + 0.15 * y * z, y - 0.2 * x * z, z + 0.2 * x * y],
            };
            let curved = mesh.curved.iter_mut().flat_map(|curved| &mut curved.points);
            mesh.points.iter_mut().chain(curved).for_each(|point| *point = bend(*point));
            let height = if is_flat { 0.0 } else { 1.0 };
            let points =
                [[0.3, 1.1, 1.3], [1.3, 0.6, 0.4], [-0.2, 0.3, 0.7], [0.6, -0.2, -0.1], [1.2, 1.2, 1.4]];
            are_nearest(&mesh, &points.map(|[x, y, z]| [x, y, z * height]));
        }
    }

    #[test]
    fn feet_on_the_rim_of_a_part_of_a_sphere_are_nearest() {
        for (split, order) in
            [(SquareSplit::Quadrilateral, 3), (SquareSplit::Quadrilateral, 1), (SquareSplit::Triangles, 1)]
        {
            let mut mesh = sphere(&SphereConfig { radius: 1.0, cells: 2, split, order }).unwrap();
            let is_upper =
                |cell: &usize| mesh.cell(*cell).iter().all(|&node| mesh.points[node as usize][2] > -0.1);
            let kept: Vec<usize> = (0..mesh.n_cells()).filter(is_upper).collect();
            mesh.cells = kept.iter().flat_map(|&cell| mesh.cell(cell).to_vec()).collect();
            if let Some(curved) = &mut mesh.curved {
                let n = curved.n_points(2);
                curved.cells = kept.iter().flat_map(|&cell| curved.cells[cell * n..][..n].to_vec()).collect();
            }
            are_nearest(&mesh, &[[1.1, 0.2, 0.1], [-0.5, 0.9, -0.2], [0.2, -0.8, 0.3], [0.7, 0.7, 0.05]]);
        }
    }

    #[test]
    fn a_point_beside_tells_the_sides_of_a_cut_apart() {
        let mut mesh = square(&SquareConfig { cells: [1, 2], ..SquareConfig::default() }).unwrap();
        mesh.cell_tags = (0..4).map(|cell| if cell < 2 { 1 } else { 2 }).collect();
        let pairs = mesh.facets_between([&[1], &[2]]).unwrap();
        assert_eq!(pairs.len(), 1);
        mesh.split(&pairs).unwrap();
        let (space, boundary) = (Space::new(&mesh, 1).unwrap(), boundary_facets(&mesh));
        let is_left =
            |&facet: &usize| boundary.facet(facet).iter().all(|&node| mesh.points[node as usize][0] == 0.0);
        let all = space.boundary_facets(&boundary);
        let mut facets: Vec<CellFacet> =
            (0..boundary.len()).filter(is_left).map(|facet| all[facet]).collect();
        assert_eq!(facets.len(), 2);
        for _ in 0..2 {
            for (y, tag) in [(0.4, 1), (0.6, 2)] {
                let foot = space.nearest_beside(&facets, &[[[0.0, 0.5, 0.0], [0.0, y, 0.0]]])[0].unwrap();
                let cell = space.cell(foot.at.position);
                assert_eq!((mesh.cell_tags[cell], foot.distance), (tag, 0.0), "{y}");
            }
            // The second point chooses among the nearest facets alone.
            let foot = space.nearest_beside(&facets, &[[[0.0, 0.45, 0.0], [0.0, 0.9, 0.0]]])[0].unwrap();
            assert!(foot.distance < 1e-14, "{foot:?}");
            facets.reverse();
        }
    }
}

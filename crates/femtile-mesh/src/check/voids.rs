//! Thin tetrahedra that four boundary facets enclose.
//!
//! If the facets face inwards, a cell is missing: a gap. If they face outwards, cells overlap. A lost sliver
//! leaves one gap. If neighbours cut a curved face of four corners along different diagonals, each face has a
//! gap or an overlap, side by side. In a plane they overlap without enclosing anything.

use femtile_device::parallel;

use super::boundary::BoundaryFacets;
use super::geometry::{cross, dot, square_of, sub};
use crate::{CellKind, Mesh};

/// A tetrahedron counts as thin below this share of the height of two neighbours.
const THIN: f64 = 0.25;
/// A gap counts as thin below this quality as well.
const THIN_QUALITY: f64 = 0.1;
/// The least number of edges of a gap that no other boundary facet touches, if one cell is missing. A face of
/// four corners that joins two parts by itself and is cut along different diagonals has two.
const LONE_EDGES: usize = 3;

/// Orientation of the facets around a tetrahedron: into it or out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Gap,
    Overlap,
}

/// A thin tetrahedron that is not a cell.
#[derive(Debug, Clone)]
pub(super) struct Void {
    pub(super) side: Side,
    /// Facets around it, ascending.
    pub(super) facets: [usize; 4],
    /// True if it is a gap without neighbouring gaps.
    pub(super) is_lone: bool,
    pub(super) at: [f64; 3],
    pub(super) volume: f64,
    pub(super) longest_edge: f64,
    nodes: [u32; 4],
}

/// Boundary facets and their edges by ascending nodes, nodes that coincide being one.
struct Surface<'a> {
    mesh: &'a Mesh,
    boundary: &'a BoundaryFacets,
    representative: &'a (dyn Fn(u32) -> u32 + Sync),
    /// The [parts](parts) of each: its nodes and its number.
    faces: Vec<u128>,
    /// Each edge with the third node of each facet that has it, and zero.
    edges: Vec<u128>,
}

/// The thin tetrahedra without a cell that four boundary facets enclose, by their facets.
///
/// `representative` maps coincident nodes to the same number.
///
/// # Cost
/// $O(n \log n)$ for $n$ boundary facets, about 70 bytes each.
pub(super) fn voids(
    mesh: &Mesh,
    boundary: &BoundaryFacets,
    representative: &(dyn Fn(u32) -> u32 + Sync),
) -> Vec<Void> {
    if mesh.kind != CellKind::Tetrahedron {
        return Vec::new();
    }
    let surface = Surface::new(mesh, boundary, representative);
    let is_start = |i: usize| i == 0 || surface.faces[i - 1] >> 32 != surface.faces[i] >> 32;
    let starts = parallel::filter(surface.faces.len(), is_start);
    let of_face = |i: usize| {
        let [a, b, c, _] = parts(surface.faces[starts[i] as usize]);
        let apexes = surface.apexes([a, b, c]).into_iter();
        apexes.filter_map(|d| surface.void([a, b, c, d])).collect::<Vec<Void>>()
    };
    let mut found = parallel::map(starts.len(), 1 << 6, of_face).concat();
    find_lone(&surface, &mut found);
    found.sort_unstable_by_key(|void| void.facets);
    found
}

/// One number that is in the order of its parts.
fn join(parts: [u32; 4]) -> u128 {
    parts.into_iter().fold(0, |all, part| all << 32 | u128::from(part))
}

fn parts(all: u128) -> [u32; 4] {
    [96, 64, 32, 0].map(|shift| (all >> shift) as u32)
}

impl<'a> Surface<'a> {
    fn new(
        mesh: &'a Mesh,
        boundary: &'a BoundaryFacets,
        representative: &'a (dyn Fn(u32) -> u32 + Sync),
    ) -> Self {
        let face = |facet: usize| {
            let nodes = boundary.facet(facet);
            let mut face: [u32; 3] = std::array::from_fn(|i| representative(nodes[i]));
            face.sort_unstable();
            join([face[0], face[1], face[2], facet as u32])
        };
        let mut faces = parallel::map(boundary.len(), parallel::CHEAP, face);
        let edge = |i: usize| {
            let [a, b, c, _] = parts(faces[i / 3]);
            join([[a, b, c, 0], [a, c, b, 0], [b, c, a, 0]][i % 3])
        };
        let mut edges = parallel::map(3 * faces.len(), parallel::CHEAP, edge);
        parallel::sort(&mut edges);
        parallel::sort(&mut faces);
        Self { mesh, boundary, representative, faces, edges }
    }

    /// Facets with some nodes, ascending.
    fn facets_of(&self, mut face: [u32; 3]) -> impl Iterator<Item = usize> {
        face.sort_unstable();
        let first = join([face[0], face[1], face[2], 0]);
        let rest = &self.faces[self.faces.partition_point(|entry| *entry < first)..];
        rest.iter().take_while(move |entry| **entry >> 32 == first >> 32).map(|entry| *entry as u32 as usize)
    }

    /// Third nodes of the facets that have an edge, as often as there are such facets.
    fn around(&self, edge: [u32; 2]) -> &[u128] {
        let first = join([edge[0], edge[1], 0, 0]);
        let rest = &self.edges[self.edges.partition_point(|entry| *entry < first)..];
        &rest[..rest.partition_point(|entry| entry >> 64 == first >> 64)]
    }

    /// Nodes of larger number that form a facet with each edge of an ascending face: each tetrahedron is
    /// found once.
    fn apexes(&self, [a, b, c]: [u32; 3]) -> Vec<u32> {
        let groups = [[a, b], [a, c], [b, c]].map(|edge| self.around(edge));
        let fewest = groups.iter().min_by_key(|group| group.len()).copied().unwrap_or_default();
        let third = |entry: &u128| parts(*entry)[2];
        let has = |group: &[u128], node| group.binary_search_by_key(&node, third).is_ok();
        let mut apexes: Vec<u32> = fewest.iter().map(third).filter(|&node| node > c).collect();
        apexes.dedup();
        apexes.retain(|&node| groups.iter().all(|group| has(group, node)));
        apexes
    }

    /// Returns whether a cell with facets on the boundary has these nodes, ascending, or nodes that coincide with them.
    fn is_cell(&self, nodes: [u32; 4]) -> bool {
        self.facets_of([nodes[0], nodes[1], nodes[2]]).any(|facet| {
            let cell = self.mesh.cell(self.boundary.cells[facet] as usize);
            let mut own: [u32; 4] = std::array::from_fn(|i| (self.representative)(cell[i]));
            own.sort_unstable();
            own == nodes
        })
    }

    /// Returns the void that the facets around a tetrahedron enclose, if it is thin and no cell.
    fn void(&self, nodes: [u32; 4]) -> Option<Void> {
        if self.is_cell(nodes) {
            return None;
        }
        let points = nodes.map(|node| self.mesh.points[node as usize]);
        let [a, b, c] = [1, 2, 3].map(|i| sub(points[i], points[0]));
        let volume = dot(a, cross(b, c)).abs() / 6.0;
        let lengths = [a, b, c, sub(b, a), sub(c, a), sub(c, b)].map(square_of);
        let sum: f64 = lengths.iter().sum();
        let quality = 12.0 * (3.0 * volume).powf(2.0 / 3.0) / sum;
        let side = |side: Side| {
            let mut facets = [0; 4];
            let mut n_thin = 0;
            for (left_out, to) in facets.iter_mut().enumerate() {
                let face: Vec<u32> = (0..4).filter(|&i| i != left_out).map(|i| nodes[i]).collect();
                let of_face = self.facets_of([face[0], face[1], face[2]]);
                let seen = of_face.map(|facet| (facet, self.share_of_height(facet, points[left_out])));
                let (facet, share) = seen
                    .filter(|(_, share)| match side {
                        Side::Gap => *share > 0.0,
                        Side::Overlap => *share < 0.0,
                    })
                    .min_by(|a, b| a.1.abs().total_cmp(&b.1.abs()).then(a.0.cmp(&b.0)))?;
                *to = facet;
                n_thin += usize::from(share.abs() < THIN);
            }
            facets.sort_unstable();
            let is_thin = n_thin >= 2 || side == Side::Gap && quality < THIN_QUALITY;
            is_thin.then_some((side, facets))
        };
        let (side, facets) = side(Side::Gap).or_else(|| side(Side::Overlap))?;
        let at = std::array::from_fn(|d| 0.25 * points.iter().map(|p| p[d]).sum::<f64>());
        let longest_edge = lengths.iter().copied().fold(0.0, f64::max).sqrt();
        Some(Void { side, facets, is_lone: false, at, volume, longest_edge, nodes })
    }

    /// Returns the distance of a point in front of a facet, in heights of the facet's cell: negative behind it, zero
    /// in its plane up to rounding.
    fn share_of_height(&self, facet: usize, point: [f64; 3]) -> f64 {
        let [a, b, c] = std::array::from_fn(|i| self.mesh.points[self.boundary.facet(facet)[i] as usize]);
        let normal = cross(sub(b, a), sub(c, a));
        let away = sub(point, a);
        let distance = dot(normal, away);
        if distance.abs() <= 64.0 * f64::EPSILON * (square_of(normal) * square_of(away)).sqrt() {
            return 0.0;
        }
        // A facet of a tetrahedron has the number of the node that it leaves out.
        let cell = self.mesh.cell(self.boundary.cells[facet] as usize);
        let opposite = cell[self.boundary.local[facet] as usize];
        distance / dot(normal, sub(self.mesh.points[opposite as usize], a)).abs()
    }
}

/// Marks the gaps that share no edge with another thin tetrahedron and have cells around most of their edges.
fn find_lone(surface: &Surface<'_>, voids: &mut [Void]) {
    let edges_of = |nodes: [u32; 4]| {
        let pairs = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
        pairs.map(|pair: [usize; 2]| pair.map(|i| nodes[i]))
    };
    let mut edges: Vec<[u32; 2]> = voids.iter().flat_map(|void| edges_of(void.nodes)).collect();
    edges.sort_unstable();
    let n_voids = |edge| edges.partition_point(|e| *e <= edge) - edges.partition_point(|e| *e < edge);
    for void in voids {
        let edges = edges_of(void.nodes);
        let n_free = edges.iter().filter(|&&edge| surface.around(edge).len() == 2).count();
        let is_alone = edges.iter().all(|&edge| n_voids(edge) == 1);
        void.is_lone = void.side == Side::Gap && is_alone && n_free >= LONE_EDGES;
    }
}

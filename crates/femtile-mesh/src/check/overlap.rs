//! Boundary facets that overlap in part without being the same facet.
//!
//! A hierarchy of grids finds candidates. Each facet belongs to the level whose cells are just larger than
//! it. It is compared with the facets of its own and coarser levels in the cells that it touches.

use femtile_device::parallel;

use super::boundary::BoundaryFacets;
use super::geometry::{cross, dot, square_of, sub};
use super::nodes::hash;
use crate::Mesh;
use crate::alike::for_each_alike;
use crate::interrupt::Interrupt;

/// Largest distance of facets, and smallest overlap, in units of their size.
const TOLERANCE: f64 = 1e-6;

/// The same in units of the height of their cells and of their own width, which are smaller for flat cells.
const TOLERANCE_ACROSS: f64 = 1e-3;

/// The largest number of corners of a facet.
const MAX_CORNERS: usize = 4;

type Corners = [[f64; 3]; MAX_CORNERS];

/// A facet with data for comparisons.
struct Patch {
    facet: u32,
    level: i32,
    lower: [f64; 3],
    upper: [f64; 3],
    /// Unit normal, outwards.
    normal: [f64; 3],
    size: f64,
    /// Extent of the facet's cell behind it.
    height: f64,
}

/// Equivalence of facets with coincident nodes.
pub(super) struct Identity<'a> {
    /// Maps coincident nodes to the same number, so that a crack is not an overlap.
    pub representative: &'a (dyn Fn(u32) -> u32 + Sync),
    /// True if any nodes coincide.
    pub has_duplicates: bool,
    /// True if two facets enclose the same gap.
    pub share_a_gap: &'a (dyn Fn(usize, usize) -> bool + Sync),
}

/// Returns the first overlapping pair of facets (smaller, larger) of straight cells.
///
/// Facets of curved cells are not compared: their corners do not determine whether they meet in between.
/// Faces of hexahedra that are not plane are not compared either.
///
/// After an interrupt pairs are missing.
///
/// # Cost
/// $O(n \log n)$ for $n$ facets of similar shape, any number of them in the same place; a few hundred bytes each.
pub(super) fn overlapping_facets(
    mesh: &Mesh,
    boundary: &BoundaryFacets,
    identity: &Identity<'_>,
    interrupt: Interrupt<'_>,
) -> Option<(usize, usize)> {
    if mesh.curved.is_some() {
        return None;
    }
    let facets = match identity.has_duplicates {
        true => different_facets(boundary, identity.representative),
        false => (0..boundary.len()).collect(),
    };
    let patches = parallel::map(facets.len(), 1 << 8, |i| patch(mesh, boundary, facets[i]));
    let patches: Vec<Patch> = patches.into_iter().flatten().collect();
    let of_patches = |first: usize, patches: &[Patch]| {
        let mut buckets = Vec::new();
        for (i, patch) in (first as u128..).zip(patches) {
            buckets.extend(touched(patch, patch.level).map(|bucket| u128::from(bucket) << 32 | i));
        }
        buckets
    };
    // Of each touched cell its hash, and the number of the patch.
    let mut buckets = parallel::map_chunks(&patches, 1 << 8, of_patches).concat();
    parallel::sort(&mut buckets);
    let groups: Vec<&[u128]> = buckets.chunk_by(|a, b| a >> 32 == b >> 32).collect();
    let compare = |a: u32, b: u32| {
        let (a, b) = (&patches[a as usize], &patches[b as usize]);
        let pair = (a.facet.min(b.facet) as usize, a.facet.max(b.facet) as usize);
        let overlap = may_overlap(a, b)
            && !is_legitimate(boundary, identity, pair)
            && cover_each_other((a, &corners(mesh, boundary, a)), (b, &corners(mesh, boundary, b)));
        overlap.then_some(pair)
    };
    let first_of_group = |group: &[u128]| {
        if interrupt.is_set() || face_alike(&patches, group) {
            return None;
        }
        let mut members: Vec<u32> = group.iter().map(|entry| *entry as u32).collect();
        near_pairs(&patches, &mut members).filter_map(|(a, b)| compare(a, b)).min()
    };
    let among_alike = parallel::map(groups.len(), 1 << 6, |i| first_of_group(groups[i]));

    let mut levels: Vec<i32> = patches.iter().map(|patch| patch.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let first_coarser = |i: usize| {
        let patch = &patches[i];
        if levels.last() == Some(&patch.level) || interrupt.is_set() {
            return None;
        }
        let coarser = levels.iter().filter(|&&level| level > patch.level);
        let others = coarser.flat_map(|&level| touched(patch, level)).map(u128::from).flat_map(|bucket| {
            let start = groups.partition_point(|group| group[0] >> 32 < bucket);
            groups[start..].first().filter(|group| group[0] >> 32 == bucket).copied().unwrap_or_default()
        });
        others.filter_map(|entry| compare(i as u32, *entry as u32)).min()
    };
    let with_coarser = parallel::map(patches.len(), 1 << 6, first_coarser);
    among_alike.into_iter().chain(with_coarser).flatten().min()
}

/// Returns whether all normals lie within 60° of the first, so that no two are opposed; true of most places of a surface.
fn face_alike(patches: &[Patch], group: &[u128]) -> bool {
    let normal = |entry: &u128| patches[*entry as u32 as usize].normal;
    group.first().map(normal).is_none_or(|first| group.iter().all(|of| dot(normal(of), first) > 0.5))
}

/// Pairs of patches whose boxes meet along one axis: the axis on which boxes are smallest relative to the
/// bounding box of all.
fn near_pairs<'a>(patches: &'a [Patch], members: &'a mut [u32]) -> impl Iterator<Item = (u32, u32)> + 'a {
    let spread = |axis: usize| {
        let (mut low, mut high, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
        for patch in members.iter().map(|&i| &patches[i as usize]) {
            (low, high) = (low.min(patch.lower[axis]), high.max(patch.upper[axis]));
            sum += patch.upper[axis] - patch.lower[axis];
        }
        (high - low) / sum
    };
    let axis = (0..3).max_by(|&a, &b| spread(a).total_cmp(&spread(b))).unwrap_or(0);
    let lower = move |i: u32| patches[i as usize].lower[axis];
    members.sort_unstable_by(|&a, &b| lower(a).total_cmp(&lower(b)));
    let members = &*members;
    members.iter().enumerate().flat_map(move |(place, &i)| {
        let upper = patches[i as usize].upper[axis];
        members[place + 1..].iter().take_while(move |&&j| lower(j) <= upper).map(move |&j| (i, j))
    })
}

/// Returns the facets without duplicates: of facets with the same nodes and the same side, the first ones of
/// two cells.
fn different_facets(boundary: &BoundaryFacets, representative: &(dyn Fn(u32) -> u32 + Sync)) -> Vec<usize> {
    let key = |facet: u32| {
        let [a, b, c, d] = sorted_nodes(boundary, representative, facet as usize);
        [a, b, c, d, u32::from(is_odd(boundary, representative, facet as usize)), 0, 0, 0]
    };
    let mut is_kept = vec![true; boundary.len()];
    for_each_alike(boundary.len(), &key, &mut |alike| {
        let cell = |facet: u32| boundary.cells[facet as usize];
        let other = alike.iter().copied().find(|&facet| cell(facet) != cell(alike[0]));
        let further = alike[1..].iter().filter(|facet| Some(**facet) != other);
        further.for_each(|&facet| is_kept[facet as usize] = false);
    });
    (0..boundary.len()).filter(|&facet| is_kept[facet]).collect()
}

fn sorted_nodes(
    boundary: &BoundaryFacets,
    representative: &(dyn Fn(u32) -> u32 + Sync),
    facet: usize,
) -> [u32; MAX_CORNERS] {
    let mut nodes = [u32::MAX; MAX_CORNERS];
    nodes.iter_mut().zip(boundary.facet(facet)).for_each(|(to, &node)| *to = representative(node));
    nodes.sort_unstable();
    nodes
}

/// Returns the orientation of a facet's nodes; it differs for facets of the same nodes that face opposite ways.
fn is_odd(boundary: &BoundaryFacets, representative: &(dyn Fn(u32) -> u32 + Sync), facet: usize) -> bool {
    let nodes = boundary.facet(facet);
    let n = nodes.len();
    let node = |i: usize| representative(nodes[i % n]);
    let start = (0..n).min_by_key(|&i| node(i)).unwrap_or(0);
    if n == 2 { start == 1 } else { node(start + 1) > node(start + n - 1) }
}

/// Returns whether two facets are the faces of a crack or of a gap, or of a cell so flat that its own facets meet.
fn is_legitimate(boundary: &BoundaryFacets, identity: &Identity<'_>, (a, b): (usize, usize)) -> bool {
    let nodes = |facet| sorted_nodes(boundary, identity.representative, facet);
    boundary.cells[a] == boundary.cells[b] || nodes(a) == nodes(b) || (identity.share_a_gap)(a, b)
}

/// Corners of a facet in their order around it, which begins again if there are fewer.
fn corners(mesh: &Mesh, boundary: &BoundaryFacets, patch: &Patch) -> Corners {
    let nodes = boundary.facet(patch.facet as usize);
    std::array::from_fn(|i| mesh.points[nodes[i % nodes.len()] as usize])
}

fn patch(mesh: &Mesh, boundary: &BoundaryFacets, facet: usize) -> Option<Patch> {
    let nodes = boundary.facet(facet);
    let p = |i: usize| mesh.points[nodes[i] as usize];
    let (mut lower, mut upper) = (p(0), p(0));
    for i in 1..nodes.len() {
        for d in 0..3 {
            (lower[d], upper[d]) = (lower[d].min(p(i)[d]), upper[d].max(p(i)[d]));
        }
    }
    let size = (0..3).map(|d| upper[d] - lower[d]).fold(0.0, f64::max);
    let a = sub(p(1), p(0));
    let normal = if nodes.len() == 2 { [a[1], -a[0], 0.0] } else { cross(a, sub(p(2), p(0))) };
    let length = square_of(normal).sqrt();
    let depth = |&node: &u32| dot(normal, sub(mesh.points[node as usize], p(0))).abs() / length;
    let cell = mesh.cell(boundary.cells[facet] as usize);
    // A facet without extent or normal covers nothing.
    (size > 0.0 && length > 0.0).then(|| Patch {
        facet: facet as u32,
        level: size.log2().ceil() as i32,
        lower: lower.map(|x| x - TOLERANCE * size),
        upper: upper.map(|x| x + TOLERANCE * size),
        normal: normal.map(|x| x / length),
        size,
        height: cell.iter().map(depth).fold(0.0, f64::max),
    })
}

/// The cells of a grid that a facet's box touches, hashed; cells of the same hash only cost time.
fn touched(patch: &Patch, level: i32) -> impl Iterator<Item = u64> {
    // The offset keeps facets of round coordinates away from the borders of cells, where they would touch more of them.
    let (width, offset) = (2f64.powi(level), 0.382);
    let index = |x: f64| (x / width + offset).floor() as i64;
    let (lower, upper) = (patch.lower.map(index), patch.upper.map(index));
    (lower[2]..=upper[2]).flat_map(move |z| {
        (lower[1]..=upper[1])
            .flat_map(move |y| (lower[0]..=upper[0]).map(move |x| hash(&[i64::from(level), x, y, z])))
    })
}

/// Returns whether boxes meet and outward normals are opposed, as for cells on opposite sides.
fn may_overlap(a: &Patch, b: &Patch) -> bool {
    dot(a.normal, b.normal) < -0.999 && (0..3).all(|d| a.lower[d] <= b.upper[d] && b.lower[d] <= a.upper[d])
}

/// Returns whether two facets lie in one plane (line) and overlap by more than the tolerance.
///
/// For flat cells, whose opposite sides are nearer than the tolerance, their height and width
/// count.
///
/// Separating axes: the facets are apart when their shadows on the normal of some edge are.
fn cover_each_other((a, a_points): (&Patch, &Corners), (b, b_points): (&Patch, &Corners)) -> bool {
    let slack = TOLERANCE * a.size.min(b.size);
    let across = slack.min(TOLERANCE_ACROSS * a.height.min(b.height));
    let (larger, origin, points) =
        if a.size >= b.size { (a, a_points[0], b_points) } else { (b, b_points[0], a_points) };
    if points.iter().any(|&p| dot(larger.normal, sub(p, origin)).abs() > across) {
        return false;
    }
    let axes = [(a, a_points), (b, b_points)].into_iter().flat_map(|(patch, points)| {
        let edges = (0..MAX_CORNERS).map(|i| sub(points[(i + 1) % MAX_CORNERS], points[i]));
        let is_segment = points[2] == points[0];
        edges.map(move |edge| if is_segment { edge } else { cross(patch.normal, edge) })
    });
    axes.filter(|&axis| axis != [0.0; 3]).all(|axis| {
        let length = square_of(axis).sqrt();
        let shadow = |points: &Corners| {
            let along = points.map(|p| dot(axis, sub(p, origin)) / length);
            (
                along.iter().copied().fold(f64::INFINITY, f64::min),
                along.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            )
        };
        let ((a_low, a_high), (b_low, b_high)) = (shadow(a_points), shadow(b_points));
        let width = (a_high - a_low).min(b_high - b_low);
        a_high.min(b_high) - a_low.max(b_low) > slack.min(TOLERANCE_ACROSS * width)
    })
}

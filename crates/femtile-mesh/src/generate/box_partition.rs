//! Parts of boxes that ranks make for themselves.

use std::ops::Range;

use femtile_device::parallel;

use super::box_mesh::{BoxConfig, Window, facets_on_sides, window_of};
use super::deform::{DeformConfig, deform_within};
use super::grid::ticks;
use crate::check::BoundaryFacets;
use crate::interrupt::Interrupt;
use crate::partition::{BoxCubes, DistributedMesh, GlobalMeshSize, MeshPart};
use crate::{Facets, IsInterrupted, MeshError};

/// The cubes of a box that a rank works on, along each axis.
type Cubes = [Range<usize>; 3];

/// How the cubes of a box are dealt out to ranks: to each those of a box within it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxPartition {
    n: [usize; 3],
    parts: Vec<Cubes>,
    way: &'static str,
}

impl BoxPartition {
    /// Cuts a box of `n` cubes across its longest axis, in proportion to the ranks on both sides, until each
    /// rank has its part; none if there are too few cubes along an axis.
    ///
    /// # Source
    /// `[berger1987]`.
    pub fn bisected(n: [usize; 3], n_ranks: usize) -> Option<Self> {
        let mut parts = Vec::with_capacity(n_ranks);
        bisect(n.map(|n| 0..n), n_ranks, &mut parts)?;
        Some(Self { n, parts, way: "boxes" })
    }

    /// Distributes layers of cubes across an axis; none if there are fewer layers than ranks, or no such
    /// axis.
    pub fn layers(n: [usize; 3], axis: usize, n_ranks: usize) -> Option<Self> {
        let n_layers = *n.get(axis)?;
        let cut = |rank: usize| rank * n_layers / n_ranks;
        let part = |rank: usize| {
            let mut part = n.map(|n| 0..n);
            part[axis] = cut(rank)..cut(rank + 1);
            part
        };
        let enough = n_ranks > 0 && n_ranks <= n_layers;
        enough.then(|| Self { n, parts: (0..n_ranks).map(part).collect(), way: "layers" })
    }

    /// Returns the number of ranks.
    pub fn n_ranks(&self) -> usize {
        self.parts.len()
    }

    /// The rank of each cube of a window.
    fn ranks_in(&self, window: &Window) -> Vec<u32> {
        let [n_x, n_y, n_z] = window.n;
        let mut ranks = vec![0; n_x * n_y * n_z];
        for (part, rank) in self.parts.iter().zip(0..) {
            let within = |axis: usize| {
                let (first, end) = (window.first[axis], window.first[axis] + window.n[axis]);
                // Empty if the part lies beside the window.
                let end = part[axis].end.clamp(first, end);
                part[axis].start.clamp(first, end) - first..end - first
            };
            for z in within(2) {
                for y in within(1) {
                    ranks[(z * n_y + y) * n_x..][within(0)].fill(rank);
                }
            }
        }
        ranks
    }
}

/// Divides cubes among `n_ranks`.
fn bisect(cubes: Cubes, n_ranks: usize, parts: &mut Vec<Cubes>) -> Option<()> {
    if n_ranks == 1 {
        parts.push(cubes);
        return Some(());
    }
    let axis =
        (1..3).fold(0, |longest, axis| if cubes[axis].len() > cubes[longest].len() { axis } else { longest });
    let (len, low_ranks) = (cubes[axis].len(), n_ranks / 2);
    if len < 2 || low_ranks == 0 {
        return None;
    }
    let n_low = (len * low_ranks + n_ranks / 2) / n_ranks;
    let middle = cubes[axis].start + n_low.clamp(1, len - 1);
    let (mut low, mut high) = (cubes.clone(), cubes);
    (low[axis].end, high[axis].start) = (middle, middle);
    bisect(low, low_ranks, parts)?;
    bisect(high, n_ranks - low_ranks, parts)
}

/// Returns the window with `by` more cubes on each side, within the box.
fn widened(window: &Window, by: usize, n: [usize; 3]) -> Window {
    let first = window.first.map(|first| first.saturating_sub(by));
    let end = |axis: usize| (window.first[axis] + window.n[axis] + by).min(n[axis]);
    Window { first, n: [0, 1, 2].map(|axis| end(axis) - first[axis]) }
}

/// Makes the part of a rank of a box, with nodes, cells and shapes as [`super::box_mesh`] and [`super::deform`] make them, and
/// nothing of the box but its surroundings.
///
/// # Cost
/// The cost of a box of the cubes of the rank and one more layer on each side.
/// # Errors
/// As [`super::box_mesh`] and [`super::deform`]; [`MeshError::Invalid`] of `ranks` if the box is divided
/// otherwise.
pub fn part_of_box(
    config: &BoxConfig,
    deform: Option<&DeformConfig>,
    (parts, rank): (&BoxPartition, usize),
    is_interrupted: IsInterrupted<'_>,
) -> Result<DistributedMesh, MeshError> {
    let interrupt = Interrupt(is_interrupted);
    let order = deform.map_or(1, |deform| deform.order);
    let counts = config.counts()?.with_order(order);
    let lacking = |message: String| MeshError::Invalid { field: "ranks", message };
    let cubes = parts.parts.get(rank).filter(|_| parts.n == config.cells);
    let cubes = cubes.ok_or_else(|| lacking(format!("rank {rank} has no part of this box")))?;
    let own =
        Window { first: [0, 1, 2].map(|axis| cubes[axis].start), n: [0, 1, 2].map(|axis| cubes[axis].len()) };
    let around = widened(&own, 1, config.cells);
    let mut mesh = window_of(config, &around, interrupt)?;
    if let Some(deform) = deform {
        deform_within(&mut mesh, deform, [config.lower, config.upper])?;
    }
    interrupt.go_on()?;
    let (boundary, tags) = boundary_of(config, &around, &mesh);
    let wider = widened(&own, 2, config.cells);
    let (owners, is_shared) = owners(parts, &around, &wider);
    let part = MeshPart::new(&mesh, &boundary, &owners, rank);
    drop((mesh, boundary));
    let mut part = part.ok_or_else(|| lacking(format!("rank {rank} would own no node: take fewer ranks")))?;
    let n_shared = part.nodes[..part.n_owned].iter().filter(|&&node| is_shared[node as usize]).count();
    let facets = &part.facets;
    part.mesh.facets = Facets {
        nodes: part.boundary.nodes.clone(),
        tags: facets.iter().map(|&facet| tags[facet as usize]).collect(),
    };
    let per_cube = config.split.cells(0).len() / counts.kind.n_nodes();
    number_in_box(&mut part, config.cells, &around, per_cube);
    let along = |axis: usize| ticks(config.lower[axis], config.upper[axis], config.cells[axis]);
    let lines = [0, 1, 2].map(along);
    let cubes = BoxCubes { n: config.cells, per_cube, lines, deform: deform.copied() };
    let whole = GlobalMeshSize { counts, entities: cubes.entities(), extents: [config.lower, config.upper] };
    let mut mesh = DistributedMesh::new(part, (rank, parts.n_ranks()), n_shared, whole, parts.way);
    mesh.cubes = Some(cubes);
    Ok(mesh)
}

/// The facets of a window on the boundary of the box, and the tag of each.
fn boundary_of(config: &BoxConfig, window: &Window, mesh: &crate::Mesh) -> (BoundaryFacets, Vec<i32>) {
    let sides = facets_on_sides(config, window);
    // Of each facet its cell, its number in the cell and its tag, in the order of facets of the boundary.
    let mut tagged: Vec<u64> = sides
        .into_iter()
        .zip(1..)
        .flat_map(|(side, tag): (_, u64)| {
            side.into_iter().map(move |(cell, local)| u64::from(cell) << 16 | u64::from(local) << 8 | tag)
        })
        .collect();
    parallel::sort(&mut tagged);
    let facets = tagged.iter().map(|key| ((key >> 16) as u32, (key >> 8) as u8)).collect();
    (BoundaryFacets::collect(mesh, facets), tagged.into_iter().map(|key| i32::from(key as u8)).collect())
}

/// The owner of each node of a window, the lowest rank of the cubes around it, and whether these are of several ranks; `wider` has
/// all of these cubes.
fn owners(parts: &BoxPartition, window: &Window, wider: &Window) -> (Vec<u32>, Vec<bool>) {
    let ranks = parts.ranks_in(wider);
    let (n, w) = (window.n.map(|n| n + 1), wider.n);
    let before = [0, 1, 2].map(|axis| window.first[axis] - wider.first[axis]);
    let around = |node: usize| {
        let at = [node % n[0], node / n[0] % n[1], node / (n[0] * n[1])];
        // The cubes at both sides of the node along an axis.
        let along = |axis: usize| {
            (at[axis] + before[axis]).saturating_sub(1)..(at[axis] + before[axis] + 1).min(w[axis])
        };
        let (mut lowest, mut highest) = (u32::MAX, 0);
        for z in along(2) {
            for y in along(1) {
                for x in along(0) {
                    let rank = ranks[(z * w[1] + y) * w[0] + x];
                    (lowest, highest) = (lowest.min(rank), highest.max(rank));
                }
            }
        }
        (lowest, lowest != highest)
    };
    parallel::map(n.iter().product(), parallel::CHEAP, around).into_iter().unzip()
}

/// Gives nodes and cells their numbers in the box of `n` cubes instead of those in a window.
fn number_in_box(part: &mut MeshPart, n: [usize; 3], window: &Window, per_cube: usize) {
    let place = |number: usize, of: [usize; 3]| {
        let at = [number % of[0], number / of[0] % of[1], number / (of[0] * of[1])];
        [0, 1, 2].map(|axis| at[axis] + window.first[axis])
    };
    let number = |at: [usize; 3], of: [usize; 3]| (at[2] * of[1] + at[1]) * of[0] + at[0];
    let [nodes, nodes_of_window] = [n, window.n].map(|n| n.map(|n| n + 1));
    parallel::for_each_mut(&mut part.nodes, parallel::CHEAP, |node| {
        *node = number(place(*node as usize, nodes_of_window), nodes) as u32;
    });
    parallel::for_each_mut(&mut part.cells, parallel::CHEAP, |cell| {
        let (cube, within) = (*cell as usize / per_cube, *cell as usize % per_cube);
        *cell = (number(place(cube, window.n), n) * per_cube + within) as u32;
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mesh;
    use crate::check::boundary_facets;
    use crate::generate::{BoxSplit, box_mesh, deform};
    use crate::partition::Partition;

    /// The parts of all ranks of a box.
    fn parts_of(
        config: &BoxConfig,
        bend: Option<&DeformConfig>,
        parts: &BoxPartition,
    ) -> Vec<DistributedMesh> {
        (0..parts.n_ranks()).map(|rank| part_of_box(config, bend, (parts, rank), None).unwrap()).collect()
    }

    fn divisions(n: [usize; 3]) -> Vec<BoxPartition> {
        let boxes = [1, 2, 3, 5, 7].map(|n_ranks| BoxPartition::bisected(n, n_ranks).unwrap());
        let longest = (0..3).max_by_key(|&axis| n[axis]).unwrap();
        boxes.into_iter().chain([BoxPartition::layers(n, longest, 3).unwrap()]).collect()
    }

    /// Checks that each cell of the whole mesh is the own one of one rank.
    fn check_own_cells(made: &[DistributedMesh], whole: &Mesh) {
        let mut n_own = vec![0; whole.n_cells()];
        for mesh in made {
            mesh.own().cells.iter().for_each(|&cell| n_own[mesh.part.cells[cell as usize] as usize] += 1);
        }
        assert!(n_own.iter().all(|&n| n == 1), "{n_own:?}");
    }

    #[test]
    fn parts_are_those_of_the_whole_box() {
        // Along an axis of 21 cubes most parts are no neighbours.
        let along = |axis: usize| [0, 1, 2].map(|other| if other == axis { 21 } else { 2 });
        let [x, y, z] = [0, 1, 2].map(along);
        let splits = [BoxSplit::Kuhn, BoxSplit::Five, BoxSplit::Hexahedron];
        let long = [x, y, z].map(|n| (n, BoxSplit::Hexahedron));
        for (n, split) in splits.map(|split| ([4, 3, 5], split)).into_iter().chain(long) {
            let config = BoxConfig { lower: [-1.0, 0.0, 2.0], upper: [1.0, 0.7, 3.0], cells: n, split };
            let order = if split == BoxSplit::Hexahedron { 3 } else { 1 };
            let bend = DeformConfig { amplitude: 0.1, order };
            let mut whole = box_mesh(&config).unwrap();
            deform(&mut whole, &bend).unwrap();
            let boundary = boundary_facets(&whole);
            for parts in divisions(n) {
                let made = parts_of(&config, Some(&bend), &parts);
                check_own_cells(&made, &whole);
                let of_cubes = parts.ranks_in(&Window { first: [0; 3], n });
                let per_cube = whole.n_cells() / of_cubes.len();
                let ranks = (0..whole.n_cells()).map(|cell| of_cubes[cell / per_cube]).collect();
                let partition = Partition::new(ranks, parts.n_ranks()).unwrap();
                let owners = partition.owners(&whole);
                let quality = partition.quality(&whole, &owners);
                assert_eq!(
                    made.iter().map(|mesh| mesh.n_shared_nodes).sum::<usize>(),
                    quality.n_shared_nodes
                );
                for (rank, mesh) in made.iter().enumerate() {
                    let expected = MeshPart::new(&whole, &boundary, &owners, rank).unwrap();
                    let DistributedMesh { part, .. } = mesh;
                    assert_eq!((&part.cells, part.n_owned), (&expected.cells, expected.n_owned));
                    assert_eq!(part.nodes, expected.nodes, "{split:?}, rank {rank} of {}", parts.n_ranks());
                    assert_eq!((&part.owners, &part.mesh.points), (&expected.owners, &expected.mesh.points));
                    assert_eq!(
                        (&part.mesh.cells, &part.boundary),
                        (&expected.mesh.cells, &expected.boundary)
                    );
                    let sides = |mesh: &Mesh| {
                        let of = |tag: i32| mesh.facets.tags.iter().filter(|&&found| found == tag).count();
                        (1..7).map(of).collect::<Vec<_>>()
                    };
                    let middle = |facet: usize| {
                        let nodes = part.boundary.facet(facet);
                        [0, 1, 2].map(|d| {
                            nodes.iter().map(|&i| part.mesh.points[i as usize][d]).sum::<f64>()
                                / nodes.len() as f64
                        })
                    };
                    let ends = [config.lower, config.upper];
                    for (facet, &tag) in part.mesh.facets.tags.iter().enumerate() {
                        let side = tag as usize - 1;
                        assert!(
                            (middle(facet)[side / 2] - ends[side % 2][side / 2]).abs() < 1e-12,
                            "{:?}",
                            sides(&part.mesh)
                        );
                    }
                    assert_eq!(part.mesh.curved.is_some(), order > 1);
                    let cubes = mesh.cubes.as_ref().unwrap();
                    let corners = cubes.corners();
                    let at = |(&node, point): (&u32, &[f64; 3])| corners[node as usize] == *point;
                    assert!(part.nodes.iter().zip(&part.mesh.points).all(at));
                    let is_within = |cell: &u32| cubes.cube_of(*cell).iter().zip(n).all(|(at, n)| *at < n);
                    assert!(part.cells.iter().all(is_within));
                    let own = mesh.own();
                    assert_eq!(own.mesh.n_cells(), own.cells.len());
                    assert!(own.mesh.validate().is_ok() && own.boundary.belong_to(&own.mesh).is_ok());
                    let of_part =
                        |(&node, point): (&u32, &[f64; 3])| part.mesh.points[node as usize] == *point;
                    assert!(own.nodes.iter().zip(&own.mesh.points).all(of_part));
                }
                let n_facets: usize = made.iter().map(|mesh| mesh.own().boundary.len()).sum();
                assert_eq!(n_facets, boundary.len());
            }
        }
    }

    #[test]
    fn too_many_ranks_have_no_parts() {
        assert!(
            BoxPartition::bisected([2, 2, 1], 5).is_none() && BoxPartition::bisected([1; 3], 0).is_none()
        );
        assert!(
            BoxPartition::layers([9, 9, 2], 2, 3).is_none()
                && BoxPartition::layers([9, 9, 2], 2, 0).is_none()
        );
        assert!(BoxPartition::layers([9, 9, 2], 3, 1).is_none());
        let parts = BoxPartition::bisected([3, 4, 5], 2).unwrap();
        let other = BoxConfig { cells: [4; 3], ..BoxConfig::default() };
        for (config, rank) in [(other, 0), (BoxConfig { cells: [3, 4, 5], ..BoxConfig::default() }, 2)] {
            let found = part_of_box(&config, None, (&parts, rank), None).unwrap_err().to_string();
            assert!(found.contains("has no part of this box"), "{found}");
        }
    }
}

use femtile_device::parallel;

use crate::{CellKind, Mesh};

/// A facet of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellSide {
    /// The cell.
    pub cell: u32,
    /// The number of the facet in the cell, as [`CellKind::facets`] counts.
    pub local: u8,
}

impl Mesh {
    /// Returns the nodes of a facet of a cell, outward.
    ///
    /// # Panics
    /// When there is no such cell or facet.
    pub fn side(&self, side: CellSide) -> impl Iterator<Item = u32> {
        let nodes = self.cell(side.cell as usize);
        self.kind.facets()[usize::from(side.local)].iter().map(|&i| nodes[i])
    }

    /// Returns both sides of each facet with a wanted tag that two cells share, the lower cell first; ascending, each facet once.
    ///
    /// # Cost
    /// One pass over the cells by all threads, and a binary search for each facet of a cell whose nodes are all on tagged facets.
    pub fn tagged_inner_facets(&self, is_wanted: impl Fn(i32) -> bool) -> Vec<[CellSide; 2]> {
        self.inner_facets(&self.keys_of_tagged(is_wanted))
    }

    /// Returns the number of facets with a wanted tag, each counted once.
    pub fn n_tagged(&self, is_wanted: impl Fn(i32) -> bool) -> usize {
        self.keys_of_tagged(is_wanted).len()
    }

    fn keys_of_tagged(&self, is_wanted: impl Fn(i32) -> bool) -> Vec<[u32; 4]> {
        let tagged = (0..self.facets.tags.len()).filter(|&facet| is_wanted(self.facets.tags[facet]));
        let mut keys: Vec<[u32; 4]> = tagged.map(|facet| key(self.facet(facet).iter().copied())).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Returns both sides of each facet of a list that two cells share; the list has [keys](key), ascending.
    pub(crate) fn inner_facets(&self, wanted: &[[u32; 4]]) -> Vec<[CellSide; 2]> {
        let mut is_near = vec![false; self.n_nodes()];
        wanted.iter().flatten().filter(|&&node| node != NONE).for_each(|&node| is_near[node as usize] = true);
        let n_facets = self.kind.facet_kind().map_or(1, CellKind::n_nodes);
        let touches =
            |cell: usize| self.cell(cell).iter().filter(|&&node| is_near[node as usize]).count() >= n_facets;
        let mut found: Vec<([u32; 4], CellSide)> = Vec::new();
        for cell in parallel::filter(self.n_cells(), touches) {
            for local in 0..self.kind.facets().len() as u8 {
                let side = CellSide { cell, local };
                if self.side(side).all(|node| is_near[node as usize]) {
                    let key = key(self.side(side));
                    found.extend(wanted.binary_search(&key).ok().map(|_| (key, side)));
                }
            }
        }
        found.sort_unstable();
        let pairs = found.chunk_by(|a, b| a.0 == b.0);
        let mut pairs: Vec<[CellSide; 2]> = pairs
            .filter_map(|group| match group {
                [(_, first), (_, second)] => Some([*first, *second]),
                _ => None,
            })
            .collect();
        pairs.sort_unstable();
        pairs
    }
}

/// The place of a node that a facet does not have.
pub(crate) const NONE: u32 = u32::MAX;

/// Returns the nodes of a facet in ascending order, by which facets are found.
pub(crate) fn key(nodes: impl Iterator<Item = u32>) -> [u32; 4] {
    let mut key = [NONE; 4];
    key.iter_mut().zip(nodes).for_each(|(to, node)| *to = node);
    key.sort_unstable();
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{BoxConfig, BoxSplit, box_mesh};

    #[test]
    fn inner_tagged_facets_have_two_cells_and_those_of_the_boundary_are_left_out() {
        let config = BoxConfig { cells: [2, 1, 1], ..BoxConfig::default() };
        for mut mesh in [
            box_mesh(&config).unwrap(),
            box_mesh(&BoxConfig { split: BoxSplit::Hexahedron, ..config }).unwrap(),
        ] {
            // All facets of the first cell, one of them twice.
            let sides = (0..mesh.kind.facets().len() as u8).map(|local| CellSide { cell: 0, local });
            let nodes: Vec<Vec<u32>> = sides.map(|side| mesh.side(side).collect()).collect();
            mesh.facets.tags = vec![7; nodes.len() + 1];
            mesh.facets.nodes = [nodes.concat(), nodes[0].clone()].concat();
            let found = mesh.tagged_inner_facets(|tag| tag == 7);
            let outer = crate::check::boundary_facets(&mesh);
            let n_outer = outer.cells.iter().filter(|&&cell| cell == 0).count();
            assert!(!found.is_empty());
            assert_eq!(found.len() + n_outer, nodes.len());
            for [first, second] in found {
                assert_eq!((first.cell, second.cell > 0), (0, true));
                assert_eq!(key(mesh.side(first)), key(mesh.side(second)));
            }
        }
    }
}

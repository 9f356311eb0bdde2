//! Cuts a mesh along facets between cells.

use std::collections::BTreeMap;

use crate::facet_sides::{NONE, key};
use crate::{CellSide, Field, Mesh, MeshError};

impl Mesh {
    /// Gives the cells on the two sides of facets nodes of their own, at the same points. Cells that are joined around the end of the
    /// facets by others keep a common node; where several regions meet each has its own. Cells keep their numbers, and tagged facets
    /// among the cut ones are repeated on both sides.
    ///
    /// # Cost
    /// One pass over the cells; a sort of the facets at the nodes of the cut.
    /// # Errors
    /// [`MeshError::Invalid`] if a facet keeps all of its nodes, as it ends in the mesh on all sides; the mesh is left as it was.
    pub fn split(&mut self, facets: &[[CellSide; 2]]) -> Result<(), MeshError> {
        let mut cut: Vec<[u32; 4]> = facets.iter().map(|[first, _]| key(self.side(*first))).collect();
        cut.sort_unstable();
        let tagged = self.sides_of_tagged_near(&cut);
        let (n_nodes, n) = (self.n_nodes(), self.kind.n_nodes());
        let mut is_cut = vec![false; n_nodes];
        cut.iter().flatten().filter(|&&node| node != NONE).for_each(|&node| is_cut[node as usize] = true);

        // Corners of cells at cut nodes, by node, and the facets between cells that hold them together.
        let mut corners: Vec<(u32, u32)> = Vec::new();
        let mut joints: Vec<(u32, [u32; 4], u32)> = Vec::new();
        for cell in 0..self.n_cells() as u32 {
            let nodes = self.cell(cell as usize);
            if !nodes.iter().any(|&node| is_cut[node as usize]) {
                continue;
            }
            corners.extend(nodes.iter().filter(|&&node| is_cut[node as usize]).map(|&node| (node, cell)));
            for local in 0..self.kind.facets().len() as u8 {
                let side = CellSide { cell, local };
                let key = key(self.side(side));
                if cut.binary_search(&key).is_err() {
                    let own = self.side(side).filter(|&node| is_cut[node as usize]);
                    joints.extend(own.map(|node| (node, key, cell)));
                }
            }
        }
        corners.sort_unstable();
        joints.sort_unstable();
        let mut new_cells = self.cells.clone();
        let (mut origins, mut joints) = (Vec::new(), joints.chunk_by(|a, b| a.0 == b.0).peekable());
        for around in corners.chunk_by(|a, b| a.0 == b.0) {
            let node = around[0].0;
            let cells: Vec<u32> = around.iter().map(|(_, cell)| *cell).collect();
            let mut group: Vec<usize> = (0..cells.len()).collect();
            if let Some(own) = joints.next_if(|own| own[0].0 == node) {
                for pair in own.windows(2).filter(|pair| pair[0].1 == pair[1].1) {
                    // Both cells are around the node.
                    let at = |cell| group[cells.binary_search(&cell).unwrap_or_default()];
                    let (from, to) = (at(pair[1].2), at(pair[0].2));
                    let (from, to) = (from.max(to), from.min(to));
                    group.iter_mut().filter(|own| **own == from).for_each(|own| *own = to);
                }
            }
            // The group of the first cell keeps the node.
            let mut numbers = BTreeMap::from([(0, node)]);
            for (&cell, group) in cells.iter().zip(group) {
                let number = *numbers.entry(group).or_insert_with(|| {
                    origins.push(node);
                    (n_nodes + origins.len() - 1) as u32
                });
                let nodes = &mut new_cells[cell as usize * n..][..n];
                nodes.iter_mut().filter(|own| **own == node).for_each(|own| *own = number);
            }
        }
        let new_key = |CellSide { cell, local }: CellSide| {
            let nodes = &new_cells[cell as usize * n..][..n];
            key(self.kind.facets()[usize::from(local)].iter().map(|&i| nodes[i]))
        };
        if let Some([first, _]) = facets.iter().find(|[first, second]| new_key(*first) == new_key(*second)) {
            let [x, y, z] = self.middle_of_side(*first);
            let message = format!(
                "the facet at ({x}, {y}, {z}) ends inside the mesh on all sides, so that its cells keep common values: refine the mesh"
            );
            return Err(MeshError::Invalid { field: "interface", message });
        }
        self.cells = new_cells;
        self.points.extend(origins.iter().map(|&node| self.points[node as usize]).collect::<Vec<_>>());
        for Field { n_components, values } in self.node_fields.values_mut() {
            let copies: Vec<f64> = origins
                .iter()
                .flat_map(|&node| &values[node as usize * *n_components..][..*n_components])
                .copied()
                .collect();
            values.extend(copies);
        }
        self.renumber_tagged(&tagged);
        Ok(())
    }

    /// Returns the mean of the corners of a facet of a cell.
    ///
    /// # Panics
    /// When there is no such cell or facet.
    pub fn middle_of_side(&self, side: CellSide) -> [f64; 3] {
        let n = self.side(side).count() as f64;
        let points = self.side(side).map(|node| self.points[node as usize]);
        points.fold([0.0; 3], |sum, point| std::array::from_fn(|axis| sum[axis] + point[axis] / n))
    }

    /// Returns the facets of cells with the keys of tagged facets that have a node of the cut ones, and whether they are among these.
    fn sides_of_tagged_near(&self, cut: &[[u32; 4]]) -> BTreeMap<[u32; 4], (Vec<CellSide>, bool)> {
        let mut is_near = vec![false; self.n_nodes()];
        cut.iter().flatten().filter(|&&node| node != NONE).for_each(|&node| is_near[node as usize] = true);
        let facets = (0..self.facets.tags.len()).map(|facet| self.facet(facet));
        let near = facets.filter(|nodes| nodes.iter().any(|&node| is_near[node as usize]));
        let of = |nodes: &[u32]| {
            let key = key(nodes.iter().copied());
            (key, (Vec::new(), cut.binary_search(&key).is_ok()))
        };
        let mut found: BTreeMap<[u32; 4], (Vec<CellSide>, bool)> = near.map(of).collect();
        for cell in 0..self.n_cells() as u32 {
            if self.cell(cell as usize).iter().any(|&node| is_near[node as usize]) {
                for local in 0..self.kind.facets().len() as u8 {
                    let side = CellSide { cell, local };
                    if let Some((sides, _)) = found.get_mut(&key(self.side(side))) {
                        sides.push(side);
                    }
                }
            }
        }
        found
    }

    /// Gives tagged facets the nodes of their cells, cut ones on both sides.
    fn renumber_tagged(&mut self, sides: &BTreeMap<[u32; 4], (Vec<CellSide>, bool)>) {
        let old = std::mem::take(&mut self.facets);
        let n = old.nodes.len() / old.tags.len().max(1);
        for (nodes, &tag) in old.nodes.chunks_exact(n.max(1)).zip(&old.tags) {
            let own: &[CellSide] = match sides.get(&key(nodes.iter().copied())) {
                Some((sides, true)) => sides,
                Some((sides, false)) => &sides[..sides.len().min(1)],
                None => &[],
            };
            if own.is_empty() {
                self.facets.nodes.extend(nodes);
                self.facets.tags.push(tag);
            }
            for side in own {
                let nodes: Vec<u32> = self.side(*side).collect();
                self.facets.nodes.extend(nodes);
                self.facets.tags.push(tag);
            }
        }
    }

    /// Returns both sides of each facet between cells with tags of two lists without a common one, that of the first list first;
    /// ascending.
    ///
    /// # Errors
    /// [`MeshError::Invalid`] for a facet with more than two cells, such as a seam of three sheets.
    pub fn facets_between(&self, [first, second]: [&[i32]; 2]) -> Result<Vec<[CellSide; 2]>, MeshError> {
        let tag = |cell: u32| self.cell_tags.get(cell as usize).copied().unwrap_or(0);
        let sides = |tags: &[i32]| {
            let mut found: Vec<([u32; 4], CellSide)> = Vec::new();
            for cell in (0..self.n_cells() as u32).filter(|&cell| tags.contains(&tag(cell))) {
                let sides = (0..self.kind.facets().len() as u8).map(|local| CellSide { cell, local });
                found.extend(sides.map(|side| (key(self.side(side)), side)));
            }
            found.sort_unstable();
            found
        };
        let (own, others) = (sides(first), sides(second));
        let has_other = |key: &[u32; 4]| others.binary_search_by(|(other, _)| other.cmp(key)).is_ok();
        let mut shared = own;
        shared.retain(|(key, _)| has_other(key));
        shared.dedup_by(|a, b| a.0 == b.0);
        let keys: Vec<[u32; 4]> = shared.iter().map(|(key, _)| *key).collect();
        let mut pairs = self.inner_facets(&keys);
        if pairs.len() < keys.len() {
            let mut of_two: Vec<[u32; 4]> = pairs.iter().map(|[side, _]| key(self.side(*side))).collect();
            of_two.sort_unstable();
            if let Some((_, side)) = shared.iter().find(|(key, _)| of_two.binary_search(key).is_err()) {
                let [x, y, z] = self.middle_of_side(*side);
                let message = format!(
                    "the facet at ({x}, {y}, {z}) has more than two cells, so that it has no two sides: give its sheets other tags"
                );
                return Err(MeshError::Invalid { field: "interface", message });
            }
        }
        for pair in &mut pairs {
            if second.contains(&tag(pair[0].cell)) {
                pair.reverse();
            }
        }
        pairs.sort_unstable();
        Ok(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CellKind;
    use crate::check::{CheckConfig, boundary_facets, check};
    use crate::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};

    /// Returns the facets at x = 1 of a mesh whose cells have the tags 1 and 2 on its sides, below a height.
    fn wall(mesh: &mut Mesh, height: f64) -> Vec<[CellSide; 2]> {
        let mean = |mesh: &Mesh, cell: usize| {
            let nodes = mesh.cell(cell);
            nodes.iter().map(|&node| mesh.points[node as usize][0]).sum::<f64>() / nodes.len() as f64
        };
        mesh.cell_tags = (0..mesh.n_cells()).map(|cell| if mean(mesh, cell) < 1.0 { 1 } else { 2 }).collect();
        let mut found = mesh.facets_between([&[1], &[2]]).unwrap();
        found.retain(|[first, _]| mesh.middle_of_side(*first)[1] < height);
        found
    }

    #[test]
    fn a_cut_through_a_mesh_leaves_two_parts_and_one_that_ends_inside_none() {
        let flat = SquareConfig { upper: [2.0, 1.0], cells: [4, 4], ..SquareConfig::default() };
        let solid = BoxConfig { upper: [2.0, 1.0, 1.0], cells: [4, 4, 3], ..BoxConfig::default() };
        for (mesh, n_line) in [
            (square(&flat), 1),
            (square(&SquareConfig { split: SquareSplit::Quadrilateral, ..flat.clone() }), 1),
            (box_mesh(&solid), 4),
            (box_mesh(&BoxConfig { split: BoxSplit::Hexahedron, ..solid.clone() }), 4),
        ] {
            let whole = mesh.unwrap();
            let n_boundary = boundary_facets(&whole).len();
            for (height, n_nodes) in [(2.0, 5), (0.55, 2)] {
                let mut mesh = whole.clone();
                let facets = wall(&mut mesh, height);
                mesh.split(&facets).unwrap();
                mesh.validate().unwrap();
                assert_eq!(mesh.n_nodes() - whole.n_nodes(), n_nodes * n_line, "{height}");
                assert_eq!(boundary_facets(&mesh).len(), n_boundary + 2 * facets.len());
                for [first, second] in facets {
                    let points = |side| {
                        mesh.side(side)
                            .map(|node| mesh.points[node as usize].map(f64::to_bits))
                            .collect::<std::collections::BTreeSet<_>>()
                    };
                    assert_eq!(points(first), points(second));
                    assert_eq!(
                        (mesh.cell_tags[first.cell as usize], mesh.cell_tags[second.cell as usize]),
                        (1, 2)
                    );
                }
                // Tagged sides are still those of cells.
                let outer = boundary_facets(&mesh);
                let sides: std::collections::BTreeSet<_> =
                    (0..outer.len()).map(|i| key(outer.facet(i).iter().copied())).collect();
                assert!(
                    (0..mesh.facets.tags.len()).all(|i| sides.contains(&key(mesh.facet(i).iter().copied())))
                );
            }
        }
    }

    #[test]
    fn where_three_regions_meet_each_has_its_own_node() {
        let mut mesh = square(&SquareConfig { cells: [2, 2], ..SquareConfig::default() }).unwrap();
        let below = |mesh: &Mesh, cell: usize, axis: usize| {
            mesh.cell(cell).iter().map(|&node| mesh.points[node as usize][axis]).sum::<f64>() < 1.5
        };
        mesh.cell_tags = (0..8)
            .map(|cell| {
                if below(&mesh, cell, 0) {
                    1
                } else if below(&mesh, cell, 1) {
                    2
                } else {
                    3
                }
            })
            .collect();
        let pairs = [[1, 2], [1, 3], [2, 3]].map(|[a, b]| mesh.facets_between([&[a], &[b]]).unwrap());
        mesh.split(&pairs.concat()).unwrap();
        // Two ends on the boundary once each at the left region, the middle twice, the end of the third.
        assert_eq!(mesh.n_nodes(), 9 + 1 + 1 + 2 + 1);
        assert_eq!(mesh.points.iter().filter(|point| **point == [0.5, 0.5, 0.0]).count(), 3);
    }

    #[test]
    fn a_facet_that_ends_inside_on_all_sides_is_refused_with_its_place() {
        let mut mesh =
            square(&SquareConfig { upper: [2.0, 1.0], cells: [4, 4], ..SquareConfig::default() }).unwrap();
        check(&mut mesh, &CheckConfig::default()).unwrap();
        let facets = wall(&mut mesh, 2.0);
        let before = mesh.clone();
        let message = mesh.split(&facets[1..2]).unwrap_err().to_string();
        assert!(message.contains("the facet at (1, 0.375, 0) ends inside"), "{message}");
        assert_eq!(mesh, before);
    }

    #[test]
    fn a_seam_of_three_sheets_has_no_two_sides() {
        let points = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.5], [-1.0, 0.5], [0.5, 0.5]];
        let points = points.iter().zip([0.0, 0.0, 0.0, 0.0, 1.0]).map(|(&[x, y], z)| [x, y, z]).collect();
        let mut mesh = Mesh::new(points, CellKind::Triangle, vec![0, 1, 2, 0, 1, 3, 0, 1, 4]).unwrap();
        for tags in [[1, 2, 2], [1, 1, 2], [1, 2, 3]] {
            mesh.cell_tags = tags.to_vec();
            let message = mesh.facets_between([&[1], &[2]]).unwrap_err().to_string();
            assert!(message.contains("the facet at (0, 0.5, 0) has more than two cells"), "{message}");
        }
        mesh.cell_tags.pop();
        mesh.cells.truncate(6);
        let pairs = mesh.facets_between([&[2], &[1]]).unwrap();
        assert_eq!(pairs.iter().map(|pair| pair.map(|side| side.cell)).collect::<Vec<_>>(), [[1, 0]]);
    }
}

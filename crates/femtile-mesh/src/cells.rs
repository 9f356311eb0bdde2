//! Middles, slopes and volumes of cells by their corners, and tags of cells.

use std::collections::BTreeSet;

use femtile_device::parallel;

use crate::{CellKind, Mesh, MeshError};

/// VTK's number of each corner of a quadrilateral or hexahedron, by the bits of its place.
const VTK_CORNERS: [usize; 8] = [0, 1, 3, 2, 4, 5, 7, 6];

/// The middle of a quadrilateral or hexahedron, and the columns of the Jacobian of its map from the unit square or cube there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MiddleMap {
    /// The mean of the corners.
    pub middle: [f64; 3],
    /// $\partial x / \partial \xi_a$ for each axis; in two dimensions the third is that of z.
    pub columns: [[f64; 3]; 3],
}

impl MiddleMap {
    /// Evaluates the map of a cell with 4 or 8 corners, the first axis fastest.
    pub fn of_corners(corners: &[[f64; 3]]) -> Self {
        let share = 1.0 / corners.len() as f64;
        let sum = |sign: &dyn Fn(usize) -> f64| {
            let terms = corners.iter().enumerate().map(|(bits, corner)| (sign(bits), corner));
            terms.fold([0.0; 3], |sum, (sign, corner)| [0, 1, 2].map(|i| sum[i] + share * sign * corner[i]))
        };
        let middle = sum(&|_| 1.0);
        let mut columns = [0, 1, 2].map(|axis| sum(&|bits| if bits >> axis & 1 == 1 { 2.0 } else { -2.0 }));
        if corners.len() == 4 {
            columns[2] = [0.0, 0.0, 1.0];
        }
        Self { middle, columns }
    }

    /// Returns the absolute determinant of the Jacobian.
    pub fn volume(&self) -> f64 {
        let [x, y, z] = self.columns;
        let cross = [y[1] * z[2] - y[2] * z[1], y[2] * z[0] - y[0] * z[2], y[0] * z[1] - y[1] * z[0]];
        (x[0] * cross[0] + x[1] * cross[1] + x[2] * cross[2]).abs()
    }
}

impl Mesh {
    /// Returns the mean of the corners of a cell.
    pub fn middle(&self, cell: usize) -> [f64; 3] {
        let nodes = self.cell(cell);
        let sum = |axis: usize| nodes.iter().map(|&node| self.points[node as usize][axis]).sum::<f64>();
        [0, 1, 2].map(|axis| sum(axis) / nodes.len() as f64)
    }

    /// Returns the length, area or volume of a cell by its corners; of quadrilaterals and hexahedra by the map in the
    /// middle, which is exact for planar quadrilaterals and parallelepipeds.
    pub fn volume_by_corners(&self, cell: usize) -> f64 {
        match self.kind {
            CellKind::Quadrilateral | CellKind::Hexahedron => {
                let nodes = self.cell(cell);
                let corner = |i: usize| self.points[nodes[VTK_CORNERS[i]] as usize];
                let corners: Vec<[f64; 3]> = (0..nodes.len()).map(corner).collect();
                MiddleMap::of_corners(&corners).volume()
            }
            _ => self.signed_measure(cell).abs(),
        }
    }

    /// Replaces the tags of cells by a new named tag and returns it. Cells of a mesh without tags have tag 0; names of tags
    /// that no cell has are dropped.
    ///
    /// # Errors
    /// [`MeshError::Invalid`] when there is no cell, a cell does not exist, or a tag of cells already has the name.
    pub fn tag_cells(&mut self, name: &str, cells: &[u32]) -> Result<i32, MeshError> {
        match cells.is_empty() {
            true => {
                let message = format!("`{name}` would be a tag of no cell");
                Err(MeshError::Invalid { field: "cell_tags", message })
            }
            false => {
                let tag = self.tag_any_cells(name, cells)?;
                self.drop_names_of_no_cell();
                Ok(tag)
            }
        }
    }

    /// Drops the names of tags that no cell has, so that a name of cells stands for one at least.
    pub(crate) fn drop_names_of_no_cell(&mut self) {
        let dimension = self.dimension();
        if !self.tag_names.keys().any(|(d, _)| *d == dimension) {
            return;
        }
        let held = if self.cell_tags.is_empty() { BTreeSet::from([0]) } else { different(&self.cell_tags) };
        self.tag_names.retain(|(d, tag), _| *d != dimension || held.contains(tag));
    }

    /// As [`Mesh::tag_cells`], of no cell too.
    pub(crate) fn tag_any_cells(&mut self, name: &str, cells: &[u32]) -> Result<i32, MeshError> {
        let invalid = |message| Err(MeshError::Invalid { field: "cell_tags", message });
        let (dimension, n) = (self.dimension(), self.n_cells());
        if let Some(cell) = cells.iter().find(|&&cell| cell as usize >= n) {
            return invalid(format!("there is no cell {cell}: the mesh has {n}"));
        }
        let names = || self.tag_names.iter().filter(|((d, _), _)| *d == dimension);
        if names().any(|(_, known)| known == name) {
            return invalid(format!("cells have a tag `{name}` already"));
        }
        let largest = self.cell_tags.iter().copied().chain(names().map(|((_, tag), _)| *tag)).max();
        let Some(tag) = largest.unwrap_or(0).max(0).checked_add(1) else {
            return invalid(format!("{} is the largest tag", i32::MAX));
        };
        self.cell_tags.resize(n, 0);
        cells.iter().for_each(|&cell| self.cell_tags[cell as usize] = tag);
        self.tag_names.insert((dimension, tag), name.into());
        Ok(tag)
    }
}

/// The different ones of some tags, most of which are those of their neighbours.
pub(crate) fn different(tags: &[i32]) -> BTreeSet<i32> {
    let of_block =
        |_, block: &[i32]| block.chunk_by(|a, b| a == b).map(|alike| alike[0]).collect::<BTreeSet<i32>>();
    parallel::map_chunks(tags, 1 << 16, of_block).into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};

    #[test]
    fn volumes_of_cells_add_up_and_middles_lie_halfway() {
        let mut meshes: Vec<Mesh> = [SquareSplit::Triangles, SquareSplit::Quadrilateral]
            .map(|split| {
                square(&SquareConfig { upper: [6.0, 5.0], split, ..SquareConfig::default() }).unwrap()
            })
            .into();
        for split in [BoxSplit::Kuhn, BoxSplit::Hexahedron] {
            let upper = [2.0, 3.0, 5.0];
            let config = BoxConfig { cells: [3, 2, 4], upper, split, ..BoxConfig::default() };
            meshes.push(box_mesh(&config).unwrap());
        }
        for mesh in meshes {
            let volumes = || (0..mesh.n_cells()).map(|cell| mesh.volume_by_corners(cell));
            assert!((volumes().sum::<f64>() - 30.0).abs() < 1e-12, "{}", mesh.kind);
            let moment: f64 = volumes().enumerate().map(|(cell, volume)| volume * mesh.middle(cell)[1]).sum();
            let height = mesh.points.iter().map(|point| point[1]).fold(0.0, f64::max);
            assert!((moment - 15.0 * height).abs() < 1e-12, "{}", mesh.kind);
        }
    }

    #[test]
    fn new_tags_of_cells_are_free_and_replace_what_cells_had() {
        let mut mesh = square(&SquareConfig { cells: [2, 1], ..SquareConfig::default() }).unwrap();
        mesh.cell_tags = vec![7, 7, 3, 3];
        mesh.tag_names.insert((2, 9), "unused".into());
        mesh.tag_names.insert((1, 40), "side".into());
        assert_eq!(mesh.tag_cells("core", &[1, 2]).unwrap(), 10);
        assert_eq!(mesh.cell_tags, [7, 10, 10, 3]);
        assert_eq!(mesh.tag_cells("side", &[3]).unwrap(), 11, "names of facets are others");
        for (name, cells, words) in
            [("core", &[0][..], "`core` already"), ("none", &[], "no cell"), ("far", &[4], "no cell 4")]
        {
            let message = mesh.tag_cells(name, cells).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
        mesh.cell_tags = Vec::new();
        mesh.tag_cells("left", &[0]).unwrap();
        assert_eq!(mesh.cell_tags, [12, 0, 0, 0]);
    }
}

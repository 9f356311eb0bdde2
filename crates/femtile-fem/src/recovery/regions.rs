//! Regions of a mesh in which the coefficients, and of a surface in space its normals, are smooth.

use std::collections::HashMap;
use std::hash::Hash;

use femtile_mesh::Mesh;
use femtile_space::Space;

use crate::evaluation::dot;
use crate::forms::Coefficient;

/// Most distinct values of a cell field for which each value is a region; a field with more is taken to be smooth.
const MAX_VALUES: usize = 64;

/// The region of each cell of a space.
///
/// Tags with different coefficients are different regions, and so are cells with different values of a cell field with
/// few values. Formulas are taken to be smooth within their region.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Regions(Option<Vec<u32>>);

/// The coefficient of a tag and the bits of a cell's field value.
type Key = (usize, Vec<u64>);

impl Regions {
    /// Finds the regions of a coefficient.
    pub(super) fn new(space: &Space<'_>, sigma: &Coefficient) -> Self {
        if !matches!(sigma, Coefficient::ByTag(_) | Coefficient::CellField(_)) {
            return Self(None);
        }
        let tags = &space.mesh().cell_tags;
        Self::by_key(space, |cell, with_fields| {
            key(sigma, cell, tags.get(cell).copied().unwrap_or(0), with_fields)
        })
    }

    /// Takes cells with the same key together: of a cell of the mesh, and of whether the key has the values of cell fields, which are
    /// left out if there are too many of them.
    pub fn by_key<K: Eq + Hash>(space: &Space<'_>, key: impl Fn(usize, bool) -> K) -> Self {
        let n = space.n_cells();
        let found = numbered(n, |cell| key(cell, true), MAX_VALUES)
            .or_else(|| numbered(n, |cell| key(cell, false), usize::MAX));
        let found = found.filter(|regions| regions.iter().any(|&region| region != 0));
        Self(found.map(|regions| (0..n).map(|position| regions[space.cell(position)]).collect()))
    }

    /// Ends the regions of a surface in space at its folds, and where more than two cells meet.
    ///
    /// # Cost
    /// Sorts the edges of all cells, 16 bytes each.
    pub(super) fn at_folds(self, space: &Space<'_>) -> Self {
        let mesh = space.mesh();
        let mut edges = Vec::new();
        let normals: Vec<[f64; 3]> = (0..space.n_cells())
            .map(|position| {
                let nodes = mesh.cell(space.cell(position));
                for edge in mesh.kind.facets() {
                    let (a, b) = (nodes[edge[0]], nodes[edge[edge.len() - 1]]);
                    edges.push(([a.min(b), a.max(b)], position as u32, a < b));
                }
                normal(mesh, nodes)
            })
            .collect();
        edges.sort_unstable();
        let mut sheets = Sheets((0..space.n_cells() as u32).collect());
        for around in edges.chunk_by(|(edge, ..), (other, ..)| edge == other) {
            let [(_, first, is_along), (_, second, other_is_along)] = *around else { continue };
            let [n, m] = [first, second].map(|cell| normals[cell as usize]);
            // Cells of one orientation pass along a common edge in opposite directions.
            let along = if is_along == other_is_along { -dot(n, m) } else { dot(n, m) };
            if self.of(first) == self.of(second) && along >= SMOOTH * (dot(n, n) * dot(m, m)).sqrt() {
                sheets.join(first, second);
            }
        }
        Self(Some((0..space.n_cells() as u32).map(|cell| sheets.root(cell)).collect()))
    }

    /// Returns the region of the cell at a position.
    #[inline]
    pub fn of(&self, cell: u32) -> u32 {
        self.0.as_ref().map_or(0, |regions| regions[cell as usize])
    }
}

/// The least cosine of the angle between the normals of two cells of a smooth surface.
const SMOOTH: f64 = 0.7;

/// Disjoint sets of cells, each with a cell of the same set, which comes no later.
struct Sheets(Vec<u32>);

impl Sheets {
    fn root(&mut self, mut cell: u32) -> u32 {
        while self.0[cell as usize] != cell {
            self.0[cell as usize] = self.0[self.0[cell as usize] as usize];
            cell = self.0[cell as usize];
        }
        cell
    }

    fn join(&mut self, first: u32, second: u32) {
        let (first, second) = (self.root(first), self.root(second));
        self.0[first.max(second) as usize] = first.min(second);
    }
}

/// Returns a normal of a cell of a surface by its first three corners, as long as their parallelogram is large.
pub(super) fn normal(mesh: &Mesh, corners: &[u32]) -> [f64; 3] {
    let [origin, a, b] = [0, 1, 2].map(|i| mesh.points[corners[i] as usize]);
    let [a, b]: [[f64; 3]; 2] = [a, b].map(|end| std::array::from_fn(|i| end[i] - origin[i]));
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Numbers the regions by cell; none if there are more than `most`.
fn numbered<K: Eq + Hash>(n_cells: usize, key: impl Fn(usize) -> K, most: usize) -> Option<Vec<u32>> {
    let mut numbers: HashMap<K, u32> = HashMap::new();
    let mut regions = Vec::with_capacity(n_cells);
    for cell in 0..n_cells {
        let next = numbers.len() as u32;
        regions.push(*numbers.entry(key(cell)).or_insert(next));
        if numbers.len() > most {
            return None;
        }
    }
    Some(regions)
}

fn key(sigma: &Coefficient, cell: usize, tag: i32, with_fields: bool) -> Key {
    match sigma {
        Coefficient::ByTag(parts) => {
            let Some(own) = parts.get(&tag) else { return (usize::MAX, Vec::new()) };
            // Tags with equal coefficients are one region.
            let first = parts.values().position(|part| part == own).unwrap_or(0);
            (first, key(own, cell, tag, with_fields).1)
        }
        Coefficient::CellField(field) if with_fields => {
            let n = field.n_components;
            let own = field.values.get(cell * n..(cell + 1) * n).unwrap_or(&[]);
            (0, own.iter().map(|value| value.to_bits()).collect())
        }
        _ => (0, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile_mesh::generate::{SquareConfig, square};
    use femtile_mesh::{Field, Mesh};

    fn strips() -> Mesh {
        let mut mesh = square(&SquareConfig { cells: [10, 10], ..SquareConfig::default() }).unwrap();
        mesh.cell_tags = (0..mesh.n_cells()).map(|cell| (cell / 50) as i32).collect();
        mesh
    }

    fn n_regions(mesh: &Mesh, sigma: &Coefficient) -> usize {
        let regions = Regions::new(&Space::new(mesh, 1).unwrap(), sigma);
        let mut found: Vec<u32> = (0..mesh.n_cells() as u32).map(|cell| regions.of(cell)).collect();
        found.sort_unstable();
        found.dedup();
        found.len()
    }

    fn field(mesh: &Mesh, value: impl Fn(usize) -> f64) -> Coefficient {
        Coefficient::CellField(Field { n_components: 1, values: (0..mesh.n_cells()).map(value).collect() })
    }

    #[test]
    fn regions_are_tags_with_other_coefficients_and_few_values_of_fields() {
        let mesh = strips();
        let constant = Coefficient::Constant;
        let by_tag = |values: [f64; 4]| Coefficient::ByTag((0..4).zip(values.map(constant)).collect());
        assert_eq!(n_regions(&mesh, &constant(2.0)), 1);
        assert_eq!(n_regions(&mesh, &by_tag([1.0, 2.0, 3.0, 4.0])), 4);
        assert_eq!(n_regions(&mesh, &by_tag([1.0, 2.0, 1.0, 2.0])), 2);
        assert_eq!(n_regions(&mesh, &field(&mesh, |cell| (cell % 3) as f64)), 3);
        assert_eq!(n_regions(&mesh, &field(&mesh, |cell| cell as f64)), 1);
        let parts =
            [constant(1.0), field(&mesh, |cell| (cell % 2) as f64), constant(1.0), field(&mesh, |_| 7.0)];
        assert_eq!(n_regions(&mesh, &Coefficient::ByTag((0..4).zip(parts).collect())), 4);
    }
}

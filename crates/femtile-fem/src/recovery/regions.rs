//! Regions of a mesh in which the conductivity is smooth.

use std::collections::HashMap;

use femtile_mesh::Mesh;
use femtile_space::Space;

use crate::forms::Coefficient;

/// Most distinct values of a cell field for which each value is a region; a field with more is taken to be smooth.
const MAX_VALUES: usize = 64;

/// The region of each cell of a space.
///
/// Tags with different coefficients are different regions, and so are cells with different values of a cell field with
/// few values. Formulas are taken to be smooth within their region.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Regions(Option<Vec<u32>>);

/// The coefficient of a tag and the bits of a cell's field value.
type Key = (usize, Vec<u64>);

impl Regions {
    /// Finds the regions of a coefficient.
    pub fn new(space: &Space<'_>, sigma: &Coefficient) -> Self {
        if !matches!(sigma, Coefficient::ByTag(_) | Coefficient::CellField(_)) {
            return Self(None);
        }
        let mesh = space.mesh();
        let found = numbered(mesh, sigma, true).or_else(|| numbered(mesh, sigma, false));
        let found = found.filter(|regions| regions.iter().any(|&region| region != 0));
        Self(found.map(|regions| (0..regions.len()).map(|position| regions[space.cell(position)]).collect()))
    }

    /// Returns the region of the cell at a position.
    #[inline]
    pub fn of(&self, cell: u32) -> u32 {
        self.0.as_ref().map_or(0, |regions| regions[cell as usize])
    }
}

/// Numbers the regions by cell, with or without the values of cell fields; none if there are too many.
fn numbered(mesh: &Mesh, sigma: &Coefficient, with_fields: bool) -> Option<Vec<u32>> {
    let mut numbers: HashMap<Key, u32> = HashMap::new();
    let mut regions = Vec::with_capacity(mesh.n_cells());
    for cell in 0..mesh.n_cells() {
        let tag = mesh.cell_tags.get(cell).copied().unwrap_or(0);
        let next = numbers.len() as u32;
        regions.push(*numbers.entry(key(sigma, cell, tag, with_fields)).or_insert(next));
        if with_fields && numbers.len() > MAX_VALUES {
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

//! Sides of elements as Abaqus numbers them.

use crate::CellShape;

/// Corners of side `side`, counted from 1; none if a cell has no such side.
pub(super) fn corners(shape: CellShape, side: usize) -> Option<&'static [usize]> {
    const TRIANGLE: [&[usize]; 3] = [&[0, 1], &[1, 2], &[2, 0]];
    const QUADRILATERAL: [&[usize]; 4] = [&[0, 1], &[1, 2], &[2, 3], &[3, 0]];
    const TETRAHEDRON: [&[usize]; 4] = [&[0, 1, 2], &[0, 3, 1], &[1, 3, 2], &[2, 3, 0]];
    const PYRAMID: [&[usize]; 5] = [&[0, 1, 2, 3], &[0, 4, 1], &[1, 4, 2], &[2, 4, 3], &[3, 4, 0]];
    const PRISM: [&[usize]; 5] = [&[0, 1, 2], &[3, 5, 4], &[0, 3, 4, 1], &[1, 4, 5, 2], &[2, 5, 3, 0]];
    const HEXAHEDRON: [&[usize]; 6] =
        [&[0, 1, 2, 3], &[4, 7, 6, 5], &[0, 4, 5, 1], &[1, 5, 6, 2], &[2, 6, 7, 3], &[3, 7, 4, 0]];
    let sides: &'static [&'static [usize]] = match shape {
        CellShape::Segment => &[],
        CellShape::Triangle => &TRIANGLE,
        CellShape::Quadrilateral => &QUADRILATERAL,
        CellShape::Tetrahedron => &TETRAHEDRON,
        CellShape::Pyramid => &PYRAMID,
        CellShape::Prism => &PRISM,
        CellShape::Hexahedron => &HEXAHEDRON,
    };
    sides.get(side.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_is_a_facet_of_its_cell_and_none_comes_twice() {
        for shape in [
            CellShape::Triangle,
            CellShape::Quadrilateral,
            CellShape::Tetrahedron,
            CellShape::Pyramid,
            CellShape::Prism,
            CellShape::Hexahedron,
        ] {
            let sorted = |facet: &[usize]| {
                let mut facet = facet.to_vec();
                facet.sort_unstable();
                facet
            };
            let n = shape.facets().len();
            let mut sides: Vec<_> = (1..=n).map(|side| sorted(corners(shape, side).unwrap())).collect();
            let mut facets: Vec<_> = shape.facets().iter().map(|facet| sorted(facet)).collect();
            sides.sort();
            facets.sort();
            assert_eq!(sides, facets, "{shape}");
            assert_eq!((corners(shape, 0), corners(shape, n + 1)), (None, None));
        }
    }
}

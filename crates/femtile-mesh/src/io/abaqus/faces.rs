//! Sides of elements as Abaqus numbers them.

use crate::CellKind;

/// Corners of side `side`, counted from 1; none if a cell has no such side.
pub(super) fn corners(kind: CellKind, side: usize) -> Option<&'static [usize]> {
    const TRIANGLE: [&[usize]; 3] = [&[0, 1], &[1, 2], &[2, 0]];
    const QUADRILATERAL: [&[usize]; 4] = [&[0, 1], &[1, 2], &[2, 3], &[3, 0]];
    const TETRAHEDRON: [&[usize]; 4] = [&[0, 1, 2], &[0, 3, 1], &[1, 3, 2], &[2, 3, 0]];
    const HEXAHEDRON: [&[usize]; 6] =
        [&[0, 1, 2, 3], &[4, 7, 6, 5], &[0, 4, 5, 1], &[1, 5, 6, 2], &[2, 6, 7, 3], &[3, 7, 4, 0]];
    let sides: &'static [&'static [usize]] = match kind {
        CellKind::Segment => &[],
        CellKind::Triangle => &TRIANGLE,
        CellKind::Quadrilateral => &QUADRILATERAL,
        CellKind::Tetrahedron => &TETRAHEDRON,
        CellKind::Hexahedron => &HEXAHEDRON,
    };
    sides.get(side.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_is_a_facet_of_its_cell_and_none_comes_twice() {
        for kind in [CellKind::Triangle, CellKind::Quadrilateral, CellKind::Tetrahedron, CellKind::Hexahedron]
        {
            let sorted = |facet: &[usize]| {
                let mut facet = facet.to_vec();
                facet.sort_unstable();
                facet
            };
            let n = kind.facets().len();
            let mut sides: Vec<_> = (1..=n).map(|side| sorted(corners(kind, side).unwrap())).collect();
            let mut facets: Vec<_> = kind.facets().iter().map(|facet| sorted(facet)).collect();
            sides.sort();
            facets.sort();
            assert_eq!(sides, facets, "{kind}");
            assert_eq!((corners(kind, 0), corners(kind, n + 1)), (None, None));
        }
    }
}

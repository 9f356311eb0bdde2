//! Completes serendipity cells of order 2, which have points on corners and edges only.

use std::collections::HashMap;

use super::numbering::MISSING;
use crate::CellKind;

/// Adds the [`MISSING`] middles of faces and cells, shared by neighbours.
///
/// The map of a serendipity cell takes the middle of a face to
/// $-\tfrac14 \sum_4 \text{corners} + \tfrac12 \sum_4 \text{middles of edges}$ and the middle of a cube to
/// $-\tfrac14 \sum_8 + \tfrac14 \sum_{12}$. So the completed cell is the same cell.
pub(in crate::io) fn complete(kind: CellKind, cells: &mut [u32], points: &mut Vec<[f64; 3]>) {
    let n = 3usize.pow(kind.dimension() as u32);
    let mut middles = HashMap::new();
    for cell in cells.chunks_exact_mut(n) {
        for place in (0..n).filter(|&place| is_middle(kind, place)) {
            if cell[place] != MISSING {
                continue;
            }
            let (corners, edges) = around(kind, place);
            let mut key: Vec<u32> = corners.iter().map(|&corner| cell[corner]).collect();
            key.sort_unstable();
            cell[place] = *middles.entry(key).or_insert_with(|| {
                let (of_corners, of_edges) = (sum(&corners, cell, points), sum(&edges, cell, points));
                let weight = if edges.len() == 4 { 0.5 } else { 0.25 };
                points.push(std::array::from_fn(|d| weight * of_edges[d] - 0.25 * of_corners[d]));
                (points.len() - 1) as u32
            });
        }
    }
}

/// Coordinates of a place of the 3 × 3 or 3 × 3 × 3 lattice.
fn lattice(place: usize) -> [usize; 3] {
    [place % 3, place / 3 % 3, place / 9]
}

/// Returns the number of axes along which a place is halfway: 0 at corners, 1 on edges.
fn n_halfway(place: usize) -> usize {
    lattice(place).iter().filter(|&&i| i == 1).count()
}

fn is_middle(kind: CellKind, place: usize) -> bool {
    n_halfway(place) >= 2 && place < 3usize.pow(kind.dimension() as u32)
}

/// Corners and middles of edges of the face or cube that `place` is the middle of.
fn around(kind: CellKind, place: usize) -> (Vec<usize>, Vec<usize>) {
    let middle = lattice(place);
    let belongs = |&other: &usize| {
        let other = lattice(other);
        (0..3).all(|d| middle[d] == 1 || other[d] == middle[d])
    };
    let n = 3usize.pow(kind.dimension() as u32);
    let found =
        |halfway: usize| (0..n).filter(belongs).filter(|&other| n_halfway(other) == halfway).collect();
    (found(0), found(1))
}

fn sum(places: &[usize], cell: &[u32], points: &[[f64; 3]]) -> [f64; 3] {
    let of = |place: &usize| points[cell[*place] as usize];
    places.iter().map(of).fold([0.0; 3], |sum, p| std::array::from_fn(|d| sum[d] + p[d]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serendipity_cube_keeps_quadratic_maps() {
        // Serendipity shapes of 20 nodes reproduce all polynomials of degree two.
        let map = |[x, y, z]: [f64; 3]| [x + 0.3 * x * y - z * z, y + x * z + 0.1, z * z - y * y + x * x];
        let at = |place: usize| map(lattice(place).map(|i| i as f64 / 2.0));
        let (mut points, mut cells) = (Vec::new(), vec![MISSING; 54]);
        for (place, slot) in cells[..27].iter_mut().enumerate().filter(|(place, _)| n_halfway(*place) < 2) {
            *slot = points.len() as u32;
            points.push(at(place));
        }
        let first = cells[..27].to_vec();
        cells[27..].copy_from_slice(&first);
        complete(CellKind::Hexahedron, &mut cells, &mut points);
        assert_eq!(points.len(), 27, "both cells share all points");
        for (place, &point) in cells[..27].iter().enumerate() {
            let found = points[point as usize];
            assert!((0..3).all(|d| (found[d] - at(place)[d]).abs() < 1e-14), "{place}: {found:?}");
        }
        assert_eq!(cells[..27], cells[27..]);
    }

    #[test]
    fn a_serendipity_square_gets_its_middle() {
        let mut points: Vec<[f64; 3]> =
            [0, 1, 2, 3, 5, 6, 7, 8].map(|i| lattice(i).map(|x| x as f64)).to_vec();
        points[1][1] = -0.5;
        let mut cells = vec![0, 1, 2, 3, MISSING, 4, 5, 6, 7];
        complete(CellKind::Quadrilateral, &mut cells, &mut points);
        assert_eq!((cells[4], points[8]), (8, [1.0, 0.75, 0.0]));
    }
}

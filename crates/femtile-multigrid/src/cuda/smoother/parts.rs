//! Vertex patches of a colour, those on free sides apart.

use crate::grid::BoxGrid;

/// Patches of a colour: their number along each axis, the cells before the first (−1 at a lower free side), and whether
/// they lie on a free side.
pub struct Part {
    pub counts: [usize; 3],
    pub places: [usize; 3],
    pub is_mirrored: bool,
}

/// Returns the patches of a colour. The colour is given by the parities of the patch index along each axis.
/// In the plane, where patches are small, the patches of a box with free sides are not split.
pub fn parts(grid: &BoxGrid, parities: [usize; 3]) -> Vec<Part> {
    let of_all = [0, 1, 2].map(|axis| every_other(grid, axis, parities[axis]));
    if grid.dimension() == 2 {
        let (counts, places) = (of_all.map(|(_, n)| n), of_all.map(|(place, _)| place));
        let is_mirrored = grid.free_sides().as_flattened().contains(&true);
        return if counts.contains(&0) { Vec::new() } else { vec![Part { counts, places, is_mirrored }] };
    }
    let inside = [0, 1, 2].map(|axis| every_other_inside(grid, axis, parities[axis]));
    let part = |along: [(usize, usize); 3], is_mirrored| Part {
        counts: along.map(|(_, n)| n),
        places: along.map(|(place, _)| place),
        is_mirrored,
    };
    let mut parts = vec![part(inside, false)];
    for (axis, &parity) in parities.iter().enumerate() {
        for place in ends(grid, axis, parity) {
            // A patch on sides across several axes belongs to the first of these.
            let along = [0, 1, 2].map(|other| match other {
                _ if other < axis => inside[other],
                _ if other > axis => of_all[other],
                _ => (place, 1),
            });
            parts.push(part(along, true));
        }
    }
    parts.retain(|part| !part.counts.contains(&0));
    parts
}

/// Returns the rows of patches along x of a colour; none lie on free sides.
pub fn rows(grid: &BoxGrid, parities: [usize; 3]) -> Option<Part> {
    let [y, z] = [1, 2].map(|axis| every_other(grid, axis, parities[axis]));
    let part = Part { counts: [1, y.1, z.1], places: [0, y.0, z.0], is_mirrored: false };
    (y.1 * z.1 > 0).then_some(part)
}

/// Returns the first and the last vertex with a patch along an axis; zero for an absent one.
pub fn vertices(grid: &BoxGrid, axis: usize) -> [usize; 2] {
    if grid.widths(axis).is_empty() {
        return [0; 2];
    }
    let [low, high] = grid.free_sides()[axis].map(usize::from);
    [1 - low, grid.widths(axis).len() + high - 1]
}

/// Returns the patches of one parity along an axis: the cells before the first, and their number. An absent axis has an
/// even one.
fn every_other(grid: &BoxGrid, axis: usize, parity: usize) -> (usize, usize) {
    if grid.widths(axis).is_empty() {
        return (0, 1 - parity);
    }
    let [first, last] = vertices(grid, axis);
    ((first + parity).wrapping_sub(1), (last + 2 - first - parity) / 2)
}

/// As [`every_other`], without vertices on sides.
fn every_other_inside(grid: &BoxGrid, axis: usize, parity: usize) -> (usize, usize) {
    let place = (vertices(grid, axis)[0] + parity + 1) % 2;
    (place, (grid.widths(axis).len() - place) / 2)
}

/// Returns the cells before each patch of one parity on a free side across an axis.
fn ends(grid: &BoxGrid, axis: usize, parity: usize) -> impl Iterator<Item = usize> {
    let [first, last] = vertices(grid, axis);
    let sides = [0, grid.widths(axis).len()].into_iter();
    let has_patch = move |vertex: &usize| (first..=last).contains(vertex) && (vertex - first) % 2 == parity;
    sides.filter(has_patch).map(|vertex| vertex.wrapping_sub(1))
}

use crate::CellShape;

/// Corners of openCARP's hexahedra in the order of a mesh: there the upper side runs the other way round.
pub(super) const OPPOSITE: [usize; 8] = [0, 1, 2, 3, 4, 7, 6, 5];

/// Puts the corners of hexahedra or prisms in the order of a mesh. Programs that write `.elem` files differ in the direction of the
/// upper side: the one with which the edges between lower and upper sides are shorter, all cells together, is taken.
pub(super) fn put_in_order(shape: CellShape, cells: &mut [u32], points: &[[f64; 3]]) {
    // Corners of the lower side, with those above them, that change places with the direction.
    let (lower, upper) = if shape == CellShape::Prism { ([1, 2], [4, 5]) } else { ([1, 3], [5, 7]) };
    let length = |nodes: &[u32], a: usize, b: usize| {
        let [p, q] = [a, b].map(|corner| points[nodes[corner] as usize]);
        (0..3).map(|axis| (p[axis] - q[axis]).powi(2)).sum::<f64>().sqrt()
    };
    let sum = |upper: [usize; 2]| -> f64 {
        let of_cell = |nodes: &[u32]| length(nodes, lower[0], upper[0]) + length(nodes, lower[1], upper[1]);
        cells.chunks_exact(shape.n_nodes()).map(of_cell).sum()
    };
    if sum([upper[1], upper[0]]) <= sum(upper) {
        for nodes in cells.chunks_exact_mut(shape.n_nodes()) {
            nodes.swap(upper[0], upper[1]);
        }
    }
}

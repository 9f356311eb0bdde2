use crate::Mesh;

/// Corners of openCARP's hexahedra in the order of a mesh: there the upper side runs the other way round.
pub(super) const OPPOSITE: [usize; 8] = [0, 1, 2, 3, 4, 7, 6, 5];

/// Puts the corners of hexahedra in the order of a mesh. Programs that write `.elem` files differ in the direction of the upper side:
/// the one with which the edges between lower and upper sides are shorter, all cells together, is taken.
pub(super) fn put_in_order(mesh: &mut Mesh) {
    let length = |nodes: &[u32], a: usize, b: usize| {
        let [p, q] = [a, b].map(|corner| mesh.points[nodes[corner] as usize]);
        (0..3).map(|axis| (p[axis] - q[axis]).powi(2)).sum::<f64>().sqrt()
    };
    let sum = |upper: [usize; 2]| -> f64 {
        let of_cell = |nodes: &[u32]| length(nodes, 1, upper[0]) + length(nodes, 3, upper[1]);
        mesh.cells.chunks_exact(8).map(of_cell).sum()
    };
    if sum([7, 5]) <= sum([5, 7]) {
        for nodes in mesh.cells.chunks_exact_mut(8) {
            nodes.swap(5, 7);
        }
    }
}

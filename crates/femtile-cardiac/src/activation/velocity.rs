use femtile::Mesh;
use femtile::element::Affine;

/// Returns the speed of the front in each cell, $1 / |\nabla t|$ with the activation times t of its nodes;
/// NaN if a node was not activated or the gradient is zero.
///
/// # Shapes
/// `times: [n_nodes]`; the result has one entry for each cell of triangles or tetrahedra.
/// # Panics
/// When there are fewer times than nodes.
pub fn conduction_velocity(mesh: &Mesh, times: &[f64]) -> Vec<f64> {
    let speed = |cell: usize| {
        let nodes = mesh.cell(cell);
        let corners: Vec<[f64; 3]> = nodes.iter().map(|&node| mesh.points[node as usize]).collect();
        let values: Vec<f64> = nodes.iter().map(|&node| times[node as usize]).collect();
        let gradient = Affine::simplex(&corners).gradient(&values);
        let size = gradient.iter().map(|x| x * x).sum::<f64>().sqrt();
        if size > 0.0 { 1.0 / size } else { f64::NAN }
    };
    femtile::device::parallel::map(mesh.n_cells(), 1024, speed)
}

#[cfg(test)]
mod tests {
    use femtile::mesh::generate::{BoxConfig, box_mesh};

    use super::*;

    #[test]
    fn a_plane_front_has_its_speed_in_every_cell() {
        let mesh = box_mesh(&BoxConfig { cells: [3, 2, 2], ..BoxConfig::default() }).unwrap();
        let times: Vec<f64> = mesh.points.iter().map(|[x, y, _]| (0.6 * x + 0.8 * y) / 0.7).collect();
        let speeds = conduction_velocity(&mesh, &times);
        assert!(speeds.iter().all(|speed| (speed - 0.7).abs() < 1e-12));
        let still = conduction_velocity(&mesh, &vec![3.0; times.len()]);
        assert!(still.iter().all(|speed| speed.is_nan()));
    }
}

//! The metric of cells, from which formulas have their size.

use femtile_form::Coefficient;
use femtile_mesh::{Field, Mesh};
use femtile_space::{PointMap, Space, SpaceError};

/// Returns the metric of each cell, a tensor by rows.
///
/// $$ G = J^{-\mathsf{T}} J^{-1},\qquad G = \tfrac12 \sum_a \nabla\lambda_a\nabla\lambda_a^\mathsf{T}, $$
///
/// the first with the Jacobian of quadrilaterals and hexahedra in their middle, the second with the barycentric coordinates of
/// simplices, whose numbering it does not depend on. Cubes of edges h, and regular simplices of edges h, have $G = I/h^2$.
pub(super) fn cell_metric(mesh: &Mesh) -> Result<Coefficient, SpaceError> {
    let space = Space::new(mesh, 1)?;
    let (d, n_axes) = (mesh.dimension(), mesh.space_dimension());
    let is_simplex = space.tensor().is_none();
    let mapping = space.mapping(&[[0.5; 3].map(|x| if is_simplex { 0.25 } else { x })]);
    let mut values = vec![0.0; 9 * mesh.n_cells()];
    let mut map = PointMap::default();
    for position in 0..space.n_cells() {
        mapping.of_cell(position, &mut map)?;
        let inverse = inverse(&map.jacobians[0], map.determinants[0]);
        // The derivatives of the coordinates of the reference cell; of simplices those of the first corner follow from them.
        let mut gradients: Vec<[f64; 3]> = inverse[..d].to_vec();
        if is_simplex {
            gradients.push(std::array::from_fn(|i| -inverse[..d].iter().map(|row| row[i]).sum::<f64>()));
        }
        let factor = if is_simplex { 0.5 } else { 1.0 };
        let cell = space.cell(position);
        for (i, row) in values[9 * cell..][..9].chunks_exact_mut(3).enumerate().take(n_axes) {
            for (j, entry) in row.iter_mut().enumerate().take(n_axes) {
                *entry = factor * gradients.iter().map(|gradient| gradient[i] * gradient[j]).sum::<f64>();
            }
        }
    }
    Ok(Coefficient::CellField(Field { n_components: 9, values }))
}

/// Returns the inverse of a matrix with a determinant; its rows are $\nabla\xi_a$ for a Jacobian.
fn inverse(j: &[[f64; 3]; 3], determinant: f64) -> [[f64; 3]; 3] {
    let minor = |a: usize, i: usize| {
        let ([p, q], [r, s]) = ([(a + 1) % 3, (a + 2) % 3], [(i + 1) % 3, (i + 2) % 3]);
        j[r][p] * j[s][q] - j[r][q] * j[s][p]
    };
    std::array::from_fn(|a| std::array::from_fn(|i| minor(a, i) / determinant))
}

#[cfg(test)]
mod tests {
    use femtile_mesh::CellKind;
    use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, box_mesh, square};

    use super::*;

    fn metric(mesh: &Mesh) -> Vec<f64> {
        match cell_metric(mesh).unwrap() {
            Coefficient::CellField(field) => field.values,
            _ => unreachable!(),
        }
    }

    #[test]
    fn triangles_of_a_rectangle_have_its_edges() {
        let config = SquareConfig { cells: [2, 4], ..SquareConfig::default() };
        for cell in metric(&square(&config).unwrap()).chunks_exact(9) {
            // Legs 1/2 and 1/4 along the axes.
            assert!((cell[0] - 4.0).abs() < 1e-12 && (cell[4] - 16.0).abs() < 1e-12, "{cell:?}");
            assert!((cell[1].abs() - 4.0).abs() < 1e-12 && cell[1] == cell[3] && cell[8] == 0.0);
        }
    }

    #[test]
    fn a_regular_tetrahedron_and_a_sheared_hexahedron_have_their_metrics() {
        let h = 0.5;
        let points = vec![[0.0; 3], [h, h, 0.0], [h, 0.0, h], [0.0, h, h]];
        let tetrahedron = Mesh::new(points, CellKind::Tetrahedron, vec![0, 1, 2, 3]).unwrap();
        let expected = 1.0 / (2.0 * h * h);
        for (at, entry) in metric(&tetrahedron).into_iter().enumerate() {
            let wanted = if at % 4 == 0 { expected } else { 0.0 };
            assert!((entry - wanted).abs() < 1e-12, "{at}: {entry}");
        }
        // x = (ξ + η/2, 2η, ζ): ∇ξ = (1, −1/4, 0), ∇η = (0, 1/2, 0).
        let config = BoxConfig { cells: [1; 3], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        let mut hexahedron = box_mesh(&config).unwrap();
        for point in &mut hexahedron.points {
            *point = [point[0] + 0.5 * point[1], 2.0 * point[1], point[2]];
        }
        let found = metric(&hexahedron);
        let expected = [1.0, -0.25, 0.0, -0.25, 1.0 / 16.0 + 0.25, 0.0, 0.0, 0.0, 1.0];
        assert!(
            found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12),
            "{found:?}"
        );
    }
}

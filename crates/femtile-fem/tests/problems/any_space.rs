//! Functionals on every kind of cell and degree, for polynomials that the space has.

use crate::common;

use common::curved::blocks;
use common::{Problem, Random, expression, unit_mesh};
use femtile_expression::Expression;
use femtile_fem::{Condition, functionals};
use femtile_mesh::Mesh;
use femtile_space::geometry::CellRule;
use femtile_space::{PointMap, Space};

/// Meshes of the unit square or cube with cells of each kind.
fn meshes() -> [Mesh; 4] {
    [unit_mesh(2, 3), unit_mesh(3, 2), blocks(2, 3), blocks(3, 2)]
}

/// The slopes of a linear function.
const SLOPES: [f64; 3] = [1.0, -2.0, 0.5];

/// Returns a factor times a power of the linear function, as text.
fn power(dimension: usize, factor: f64, power: usize) -> String {
    let inner = if dimension == 2 { "1 + x - 2*y" } else { "1 + x - 2*y + 0.5*z" };
    format!("{factor}*({inner})^{power}")
}

/// Returns a polynomial of a total degree.
fn polynomial(dimension: usize, degree: usize) -> Expression {
    Expression::parse(&power(dimension, 1.0, degree)).unwrap()
}

fn nodal(space: &Space<'_>, f: &Expression) -> Vec<f64> {
    let element = space.element();
    let mapping = space.mapping(element.nodes());
    let (mut map, mut dofs) = (PointMap::default(), vec![0; element.n_dofs()]);
    let mut u = vec![f64::NAN; space.n_dofs()];
    for position in 0..space.n_cells() {
        mapping.of_cell(position, &mut map).unwrap();
        space.cell_dofs(position, &mut dofs);
        dofs.iter().zip(&map.points).for_each(|(&dof, &point)| u[dof as usize] = f.eval(point));
    }
    u
}

#[test]
fn polynomials_have_their_values_integrals_and_no_error() {
    let mut random = Random(7);
    for mesh in meshes() {
        for degree in 1..=4 {
            let (d, space) = (mesh.dimension(), Space::new(&mesh, degree).unwrap());
            let exact = polynomial(d, degree);
            let u = nodal(&space, &exact);
            let name = format!("degree {degree} on {}", mesh.kind);
            assert!((functionals::measure(&space).unwrap() - 1.0).abs() < 1e-13, "{name}");
            assert!(functionals::error_l2(&space, &u, &exact).unwrap() < 1e-12, "{name}");
            assert!(functionals::error_h1(&space, &u, &exact).unwrap() < 1e-10, "{name}");
            // Both rules integrate the square exactly.
            let zero = Expression::parse("0").unwrap();
            let norm = functionals::error_l2(&space, &u, &zero).unwrap();
            assert!((functionals::l2_norm(&space, &u).unwrap() - norm).abs() < 1e-12 * norm, "{name}");
            let points: Vec<[f64; 3]> =
                (0..20).map(|_| [0, 1, 2].map(|axis| if axis < d { random.unit() } else { 0.0 })).collect();
            for (point, value) in points.iter().zip(functionals::values_at(&space, &u, &points).unwrap()) {
                assert!((value.unwrap() - exact.eval(*point)).abs() < 1e-11, "{name} at {point:?}");
            }
        }
    }
}

#[test]
fn consistent_fluxes_of_polynomials_are_those_of_their_gradient() {
    for mesh in meshes() {
        for degree in 1..=3 {
            let d = mesh.dimension();
            let exact = polynomial(d, degree);
            let p = degree as f64;
            let mut problem = Problem::new(mesh.clone());
            let squares: f64 = SLOPES[..d].iter().map(|slope| slope * slope).sum();
            problem.source = expression(&power(d, -p * (p - 1.0) * squares, degree.max(2) - 2));
            problem.on(|_| true, Condition::Dirichlet(expression("0")));
            let all = 0..problem.boundary.len() as u32;
            problem.conditions[0].facets = all.collect();
            let space = Space::new(&mesh, degree).unwrap();
            let u = nodal(&space, &exact);
            let rule = CellRule::default();
            let found = functionals::facet_fluxes(&space, &problem.form(), rule, &u).unwrap();
            problem.conditions.clear();
            for (axis, slope) in SLOPES[..d].iter().enumerate() {
                for (end, sign) in [(0.0, -1.0), (1.0, 1.0)] {
                    let outer = expression(&power(d, sign * p * slope, degree - 1));
                    problem.on(|p| (p[axis] - end).abs() < 1e-9, Condition::Neumann(outer));
                }
            }
            let expected = functionals::facet_fluxes(&space, &problem.form(), rule, &u).unwrap();
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-11, "degree {degree} on {}: {found}", mesh.kind);
            }
            let source = functionals::source_integral(&space, &problem.form(), rule, &u).unwrap();
            assert!((found.iter().sum::<f64>() + source).abs() < 1e-11, "degree {degree} on {}", mesh.kind);
        }
    }
}

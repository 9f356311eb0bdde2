//! Linear elasticity: rigid motions, the patch test, orders of convergence.

use femtile_device::Cpu;
use femtile_expression::Expression;
use femtile_form::{Coefficient, Equation, Form};
use femtile_mesh::CellKind;
use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::DeformConfig;
use femtile_operator::{CpuOperator, DiscreteForm, State, reference};
use femtile_space::Space;

use crate::meshes::{KINDS, mesh};
use crate::problems::{AXES, errors, formula, nodes, orders};

const YOUNG: f64 = 2.5;
const POISSON: f64 = 0.3;

fn elasticity(dimension: usize, source: Vec<Coefficient>) -> Form {
    let equation = Equation::named("elasticity").unwrap();
    let builder = equation.form(dimension).with("young", YOUNG).unwrap().with("poisson", POISSON).unwrap();
    builder.with("source", source).unwrap().build().unwrap()
}

/// Returns $-\nabla\cdot\sigma(u)$ of a displacement in plane strain or space.
fn source_of(exact: &[Expression]) -> Vec<Coefficient> {
    let d = exact.len();
    let (mu, lambda) = (
        Expression::constant(YOUNG / (2.0 * (1.0 + POISSON))),
        Expression::constant(YOUNG * POISSON / ((1.0 + POISSON) * (1.0 - 2.0 * POISSON))),
    );
    let zero = || Expression::constant(0.0);
    let trace = (0..d).fold(zero(), |sum, i| &sum + &exact[i].derivative(AXES[i]));
    let stress = |i: usize, j: usize| {
        let shear = &mu * &(&exact[i].derivative(AXES[j]) + &exact[j].derivative(AXES[i]));
        if i == j { &shear + &(&lambda * &trace) } else { shear }
    };
    let component = |i: usize| -&(0..d).fold(zero(), |sum, j| &sum + &stress(i, j).derivative(AXES[j]));
    (0..d).map(|i| Coefficient::Expression(component(i))).collect()
}

#[test]
fn rigid_motions_have_no_residual() {
    for kind in KINDS {
        for degree in 1..=3 {
            let order = if kind.is_simplex() { 1 } else { 2.min(degree) };
            let mesh = mesh(kind, [3, 2, 2], Some(DeformConfig { amplitude: 0.1, order }));
            let d = mesh.dimension();
            let (boundary, space) = (boundary_facets(&mesh), Space::new(&mesh, degree).unwrap());
            let form = elasticity(d, vec![0.0.into(); d]);
            let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
            let operator = CpuOperator::new(discrete, &Cpu::new(2).unwrap()).unwrap();
            let spin = [[0.0, -0.7, 0.2], [0.7, 0.0, -1.1], [-0.2, 1.1, 0.0]];
            let move_point = |x: [f64; 3]| {
                let component =
                    move |i: usize| 0.5 + i as f64 + (0..d).map(|j| spin[i][j] * x[j]).sum::<f64>();
                (0..d).map(component)
            };
            let u: Vec<f64> = nodes(&space).into_iter().flat_map(move_point).collect();
            let mut r = vec![f64::NAN; u.len()];
            operator.residual(&State::of(&u), &mut r).unwrap();
            let largest = r.iter().fold(0.0f64, |size, r| size.max(r.abs()));
            assert!(largest < 1e-13, "{kind}, degree {degree}: {largest}");
            assert!(reference::matrix(&discrete, &State::default()).unwrap()[0][0] > 1e-2);
        }
    }
}

#[test]
fn linear_displacements_are_exact_on_deformed_meshes() {
    for kind in KINDS {
        for degree in [1, 2] {
            let mesh = mesh(kind, [3, 2, 2], Some(DeformConfig { amplitude: 0.08, order: 1 }));
            let exact = [formula("0.3 + x - 2*y"), formula("0.5*x + y"), formula("x - z + y")];
            let exact = if mesh.dimension() == 2 { &exact[..2] } else { &exact[..] };
            let form = elasticity(mesh.dimension(), vec![0.0.into(); mesh.dimension()]);
            let [value, slope] = errors(&mesh, degree, &form, exact);
            assert!(value < 1e-10 && slope < 1e-9, "{kind}, degree {degree}: {value}, {slope}");
        }
    }
}

#[test]
fn displacements_converge_with_the_orders_of_theory() {
    let exact = [
        formula("sin(2*x + y)*cos(y)"),
        formula("x*exp(-y) + cos(3*x*y)/3"),
        formula("sin(x - 2*z)*(1 + y^2)"),
    ];
    for kind in KINDS {
        let d = kind.dimension();
        let exact: Vec<Expression> = match d {
            2 => exact[..2].to_vec(),
            _ => vec![&exact[0] + &formula("sin(2*z)"), &exact[1] + &formula("z*x"), exact[2].clone()],
        };
        let form = elasticity(d, source_of(&exact));
        for degree in 1..=4 {
            let cells = match (d, degree) {
                (2, 1) => [16, 32],
                (2, 2) => [8, 16],
                (2, _) => [4, 8],
                (_, 1) => [6, 12],
                _ if degree == 2 || kind == CellKind::Tetrahedron => [3, 6],
                _ => [2, 4],
            };
            for is_curved in [false, true] {
                if is_curved && (kind.is_simplex() || d == 3 && degree > 3) {
                    continue;
                }
                let deformation = is_curved.then_some(DeformConfig { amplitude: 0.05, order: degree });
                let of = |n: usize| errors(&mesh(kind, [n; 3], deformation), degree, &form, &exact);
                let found = orders(of(cells[0]), of(cells[1]), 2.0);
                let p = degree as f64;
                assert!(
                    found[0] > p + 0.8 && found[1] > p - 0.2,
                    "{kind}, degree {degree}, curved {is_curved}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn the_energy_is_half_the_work() {
    let mesh = mesh(CellKind::Hexahedron, [2, 1, 3], None);
    let (boundary, space) = (boundary_facets(&mesh), Space::new(&mesh, 2).unwrap());
    let form = elasticity(3, vec![0.0.into(); 3]);
    let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
    let u: Vec<f64> = (0..discrete.n_unknowns()).map(|i| (i * i % 17) as f64 / 17.0).collect();
    let mut r = vec![f64::NAN; u.len()];
    reference::residual(&discrete, &State::of(&u), &mut r).unwrap();
    let work: f64 = r.iter().zip(&u).map(|(r, u)| r * u).sum();
    let energy = reference::energy(&discrete, &State::of(&u)).unwrap();
    assert!((energy - 0.5 * work).abs() < 1e-12 * energy, "{energy}, {work}");
    let found: Vec<f64> = [1, 3]
        .map(|threads| {
            let operator = CpuOperator::new(discrete, &Cpu::new(threads).unwrap()).unwrap();
            operator.energy(&State::of(&u)).unwrap()
        })
        .to_vec();
    assert!((found[0] - energy).abs() < 1e-12 * energy && found[0] == found[1], "{found:?}, {energy}");
}

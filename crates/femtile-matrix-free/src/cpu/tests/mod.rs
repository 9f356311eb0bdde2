mod degree_transfer;
mod merged;
mod metric;
mod part;
#[path = "../../../../femtile-space/src/tensor_space/test_meshes.rs"]
mod test_meshes;

use femtile_device::cpu::SimdLevel;
use femtile_device::cpu::vector::Lanes;
use femtile_device::{Buffer, Cpu};
use femtile_expression::Expression;
use femtile_linalg::LinearOperator;
use femtile_mesh::Mesh;
use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};
use femtile_space::TensorSpace;
use femtile_sum_factorization::SumFactorization;

use super::*;
use crate::{CellRule, Terms};
use femtile_fem::forms::Coefficient;
use femtile_fem::tensor::CellMatrices;
use test_meshes::{ring, squares};

fn cubes(cells: [usize; 3]) -> Mesh {
    box_mesh(&BoxConfig {
        cells,
        upper: [1.0, 2.0, 1.5],
        split: BoxSplit::Hexahedron,
        ..BoxConfig::default()
    })
    .unwrap()
}

fn deformed(mut mesh: Mesh, shift: impl Fn([f64; 3]) -> [f64; 3]) -> Mesh {
    mesh.points.iter_mut().for_each(|point| *point = shift(*point));
    mesh
}

/// Returns the product by dense quadrature.
fn product(space: &TensorSpace<'_>, terms: Terms<'_>, rule: CellRule, x: &[f64]) -> Vec<f64> {
    // A conductivity that vanishes beside any mass leaves only the mass.
    let (vanishing, zero) = (Coefficient::Constant(1e-100), Coefficient::Constant(0.0));
    let (sigma, lambda) = (terms.sigma.unwrap_or(&vanishing), terms.lambda.unwrap_or(&zero));
    let mut y = vec![f64::NAN; x.len()];
    CellMatrices::new(space, sigma, lambda, rule).unwrap().apply(&mut y, x).unwrap();
    y
}

fn values(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 % 1013) as f64 / 1013.0 - 0.4) * 1.7).collect()
}

fn check<T: SumFactorization + Lanes>(
    mesh: &Mesh,
    degree: usize,
    terms: Terms<'_>,
    rule: CellRule,
    tolerance: f64,
) {
    let space = TensorSpace::new(mesh, degree).unwrap();
    let x = values(space.n_dofs());
    let expected = product(&space, terms, rule, &x);
    let size = expected.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
    for level in SimdLevel::available() {
        let mut first: Option<Vec<T>> = None;
        for threads in [1, 2, 3] {
            let cpu = Cpu::with_simd(threads, level).unwrap();
            let a = MatrixFree::<T>::new(
                &cpu,
                &space,
                terms,
                MatrixFreeConfig { rule, ..MatrixFreeConfig::default() },
            )
            .unwrap();
            let from = Buffer::from_vec(&cpu, x.iter().map(|&x| T::from_f64(x)).collect()).unwrap();
            let mut y = Buffer::from_vec(&cpu, vec![T::from_f64(f64::NAN); x.len()]).unwrap();
            a.apply(&mut y, &from).unwrap();
            for (i, (y, e)) in y.as_slice().iter().zip(&expected).enumerate() {
                let error = (y.to_f64() - e).abs() / size;
                assert!(error <= tolerance, "degree {degree}, {rule:?}, {cpu:?}: entry {i} off by {error:e}");
            }
            if space.n_dofs() < 200 {
                check_diagonal(&a, &cpu, tolerance);
            }
            let first = first.get_or_insert_with(|| y.as_slice().to_vec());
            assert!(first == y.as_slice(), "bits differ with {threads} threads");
        }
    }
}

/// Compares the diagonal with products with unit vectors.
fn check_diagonal<T: SumFactorization + Lanes>(a: &MatrixFree<T>, cpu: &Cpu, tolerance: f64) {
    let diagonal = a.diagonal();
    let size = diagonal.iter().fold(0.0_f64, |size, x| size.max(x.to_f64().abs()));
    let mut y = Buffer::from_vec(cpu, diagonal.clone()).unwrap();
    for (i, entry) in diagonal.iter().enumerate().step_by(7) {
        let mut unit = vec![T::ZERO; diagonal.len()];
        unit[i] = T::ONE;
        a.apply(&mut y, &Buffer::from_vec(cpu, unit).unwrap()).unwrap();
        assert!(
            (y.as_slice()[i].to_f64() - entry.to_f64()).abs() <= tolerance * size,
            "entry {i} of the diagonal"
        );
    }
}

const RULES: [CellRule; 3] =
    [CellRule::Gauss { extra: 0 }, CellRule::Gauss { extra: 1 }, CellRule::GaussLobatto];

fn skew([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x + 0.3 * y + 0.1 * z, y - 0.2 * x, z + 0.4 * y]
}

fn bend([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x + 0.1 * (3.0 * y).sin() * (1.0 + z), y + 0.07 * (4.0 * x).cos(), z * (1.0 + 0.2 * x * y)]
}

#[test]
fn products_are_those_of_the_definition() {
    let (one, two) = (Coefficient::Constant(1.0), Coefficient::Constant(2.0));
    let tensor = Coefficient::Tensor([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]]);
    let varying = Coefficient::from(Expression::parse("1 + 0.3*x*y").unwrap());
    let laplace = Terms { sigma: Some(&one), lambda: None };
    let helmholtz = Terms { sigma: Some(&two), lambda: Some(&varying) };
    let anisotropic = Terms { sigma: Some(&tensor), lambda: Some(&two) };
    let mass = Terms { sigma: None, lambda: Some(&two) };
    let graded = Terms { sigma: Some(&varying), lambda: None };
    for degree in 1..=4 {
        for mesh in [
            cubes([3, 2, 3]),
            deformed(cubes([2, 3, 1]), skew),
            deformed(cubes([2, 2, 2]), bend),
            squares(4, 3),
            deformed(squares(3, 2), bend),
        ] {
            let mesh = if mesh.dimension() == 2 { deformed(mesh, |[x, y, _]| [x, y, 0.0]) } else { mesh };
            for terms in [laplace, helmholtz, anisotropic, mass, graded] {
                let rule = RULES[(degree + mesh.n_cells()) % 3];
                check::<f64>(&mesh, degree, terms, rule, 1e-13);
            }
            check::<f32>(&mesh, degree, helmholtz, CellRule::default(), 2e-6);
        }
    }
}

#[test]
fn all_rules_and_higher_degrees_agree_with_the_definition() {
    let one = Coefficient::Constant(1.0);
    let terms = Terms { sigma: Some(&one), lambda: Some(&one) };
    for degree in 1..=10 {
        let square = deformed(squares(2, 2), |[x, y, _]| [x + 0.1 * y * y, y, 0.0]);
        for rule in RULES {
            check::<f64>(&square, degree, terms, rule, 1e-12);
            if degree <= 4 {
                check::<f64>(&cubes([1, 1, 2]), degree, terms, rule, 1e-12);
            }
        }
        let mesh = if degree % 2 == 0 { deformed(cubes([1, 1, 1]), bend) } else { cubes([1, 1, 1]) };
        check::<f64>(&mesh, degree, terms, RULES[degree % 3], 1e-12);
    }
}

#[test]
fn cells_that_see_faces_otherwise_have_products_as_well() {
    let two = Coefficient::Constant(2.0);
    let terms = Terms { sigma: Some(&two), lambda: Some(&two) };
    for quarters in 1..4 {
        let mesh = ring(9, quarters);
        for degree in [2, 3, 4] {
            let n_irregular = TensorSpace::new(&mesh, degree).unwrap().n_irregular();
            assert_eq!(n_irregular > 0, degree > 2);
            check::<f64>(&mesh, degree, terms, CellRule::default(), 1e-12);
        }
    }
}

#[test]
fn groups_and_threads_share_unknowns() {
    let one = Coefficient::Constant(1.0);
    for degree in [1, 2, 5] {
        let n = if degree == 1 { 17 } else { 9 };
        let mesh = deformed(cubes([n, n, n - 2]), skew);
        let space = TensorSpace::new(&mesh, degree).unwrap();
        assert!(space.groups().len() > 1);
        let terms = Terms { sigma: Some(&one), lambda: None };
        let mut found: Vec<Vec<f64>> = Vec::new();
        for threads in [1, 2, 5] {
            let cpu = Cpu::new(threads).unwrap();
            let a = MatrixFree::<f64>::new(&cpu, &space, terms, MatrixFreeConfig::default()).unwrap();
            let x = Buffer::from_vec(&cpu, values(space.n_dofs())).unwrap();
            let mut y = Buffer::from_vec(&cpu, vec![f64::NAN; space.n_dofs()]).unwrap();
            a.apply(&mut y, &x).unwrap();
            assert!(y.as_slice().iter().all(|y| y.is_finite()));
            found.push(y.as_slice().to_vec());
            let ones = Buffer::from_vec(&cpu, vec![1.0; space.n_dofs()]).unwrap();
            a.apply(&mut y, &ones).unwrap();
            assert!(y.as_slice().iter().all(|y| y.abs() < 1e-13), "constants have no slope");
        }
        assert!(found.iter().all(|y| *y == found[0]), "bits differ");
    }
}

#[test]
fn constrained_rows_are_those_of_the_identity() {
    let one = Coefficient::Constant(1.0);
    let mesh = cubes([3, 3, 3]);
    for degree in [1, 3] {
        let space = TensorSpace::new(&mesh, degree).unwrap();
        // All unknowns in the plane x = 0.
        let mut constrained: Vec<u32> = (0..space.n_cells())
            .filter(|&position| space.order()[position].is_multiple_of(3))
            .flat_map(|position| {
                let mut dofs = vec![0; space.dofs_per_cell()];
                space.cell_dofs(position, &mut dofs);
                dofs.into_iter().step_by(degree + 1)
            })
            .collect();
        constrained.sort_unstable();
        constrained.dedup();
        assert_eq!(constrained.len(), (3 * degree + 1).pow(2));
        let terms = Terms { sigma: Some(&one), lambda: Some(&one) };
        let x = values(space.n_dofs());
        let mut free = x.clone();
        constrained.iter().for_each(|&dof| free[dof as usize] = 0.0);
        let mut expected = product(&space, terms, CellRule::default(), &free);
        constrained.iter().for_each(|&dof| expected[dof as usize] = x[dof as usize]);
        for threads in [1, 2] {
            let cpu = Cpu::new(threads).unwrap();
            let a = MatrixFree::<f64>::new(
                &cpu,
                &space,
                terms,
                MatrixFreeConfig { constrained: &constrained, ..MatrixFreeConfig::default() },
            )
            .unwrap();
            let x = Buffer::from_vec(&cpu, x.clone()).unwrap();
            let mut y = Buffer::zeros(&cpu, space.n_dofs()).unwrap();
            a.apply(&mut y, &x).unwrap();
            assert!(y.as_slice().iter().zip(&expected).all(|(y, e)| (y - e).abs() < 1e-12));
        }
    }
}

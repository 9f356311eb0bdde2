//! Properties of CPUs only, and matrices computed by hand; the suite of all devices is in femtile-conformance.

use crate::common;

use std::collections::BTreeMap;

use common::{Problem, Random, constant, cpus, disturbed, entries, expression, unit_mesh};
use femtile_device::{Cpu, HostDevice, Reference};
use femtile_expression::Expression;
use femtile_fem::{AssembledSystem, AssemblyKernels, Coefficient, Condition};
use femtile_mesh::{CellKind, Mesh};

fn compare<D: HostDevice + AssemblyKernels<f64>>(problem: &Problem, device: &D, what: &str) {
    let expected: AssembledSystem<f64, Reference> = problem.assemble(&Reference);
    let found: AssembledSystem<f64, D> = problem.assemble(device);
    let (expected_entries, found_entries) = (entries(&expected.matrix), entries(&found.matrix));
    assert_eq!(expected_entries.len(), found_entries.len(), "{what}: number of entries");
    let scale = expected_entries.iter().map(|e| e.2.abs()).fold(0.0, f64::max);
    for (e, f) in expected_entries.iter().zip(&found_entries) {
        assert_eq!((e.0, e.1), (f.0, f.1), "{what}: pattern");
        assert!((e.2 - f.2).abs() <= 1e-13 * scale, "{what}: entry ({}, {}): {} and {}", e.0, e.1, e.2, f.2);
    }
    let scale = expected.rhs.as_slice().iter().map(|b| b.abs()).fold(0.0, f64::max);
    for (i, (e, f)) in expected.rhs.as_slice().iter().zip(found.rhs.as_slice()).enumerate() {
        assert!((e - f).abs() <= 1e-13 * scale, "{what}: right side {i}: {e} and {f}");
    }
    assert_eq!(expected.constraints, found.constraints, "{what}");
    assert_eq!(expected.is_pure_neumann, found.is_pure_neumann, "{what}");
}

fn compare_all(problem: &Problem, what: &str) {
    for device in cpus() {
        compare(problem, &device, &format!("{what}, {}", common::description(&device)));
    }
}

fn tensor(texts: [[&str; 3]; 3]) -> Coefficient {
    let entry = |text: &str| Expression::parse(text).unwrap();
    Coefficient::TensorExpression(Box::new(texts.map(|row| row.map(entry))))
}

#[test]
fn a_mesh_of_several_blocks_agrees_with_the_reference_in_any_numbering() {
    let mut random = Random(3);
    let mesh = unit_mesh(3, 23);
    assert!(mesh.n_nodes() > 8192);
    for mesh in [disturbed(mesh.clone(), 23, 0.3, &mut random), mesh] {
        let mut problem = Problem::new(mesh);
        problem.on(|p| p[2] < 1e-9, Condition::Dirichlet(expression("x")));
        problem.on(|p| p[2] > 1.0 - 1e-9, Condition::Neumann(constant(2.0)));
        compare_all(&problem, "several blocks");
    }
}

#[test]
fn reversed_numbering_gives_the_reversed_matrix() {
    let mesh = unit_mesh(3, 5);
    let n = mesh.n_nodes();
    let points = mesh.points.iter().rev().copied().collect();
    let cells = mesh.cells.iter().rev().map(|&node| n as u32 - 1 - node).collect();
    let reversed = Mesh::new(points, mesh.kind, cells).unwrap();
    let device = Cpu::new(2).unwrap();
    let assembled = |mesh| {
        let mut problem = Problem::new(mesh);
        problem.lambda = constant(1.0);
        let system: AssembledSystem<f64, Cpu> = problem.assemble(&device);
        entries(&system.matrix)
    };
    let (a, mut b) = (assembled(mesh), assembled(reversed));
    b.reverse();
    for (a, b) in a.iter().zip(&b) {
        assert_eq!((a.0, a.1), (n - 1 - b.0, n - 1 - b.1));
        assert!((a.2 - b.2).abs() < 1e-13);
    }
}

#[test]
fn a_mesh_of_one_cell_has_the_element_matrix_that_a_person_computes() {
    let corners = vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let triangle = Mesh::new(corners[..3].to_vec(), CellKind::Triangle, vec![0, 1, 2]).unwrap();
    let tetrahedron = Mesh::new(corners, CellKind::Tetrahedron, vec![0, 1, 2, 3]).unwrap();
    let (half, sixth) = (0.5, 1.0 / 6.0);
    let expected: [&[f64]; 2] = [
        &[1.0, -half, -half, -half, half, 0.0, -half, 0.0, half],
        &[
            half, -sixth, -sixth, -sixth, -sixth, sixth, 0.0, 0.0, -sixth, 0.0, sixth, 0.0, -sixth, 0.0, 0.0,
            sixth,
        ],
    ];
    for (mesh, expected) in [triangle, tetrahedron].into_iter().zip(expected) {
        let volume = mesh.signed_measure(0);
        let n = mesh.n_nodes();
        let mut problem = Problem::new(mesh);
        problem.source = constant(0.0);
        let system: AssembledSystem<f64, Reference> = problem.assemble(&Reference);
        let found: Vec<f64> = entries(&system.matrix).iter().map(|e| e.2).collect();
        assert!(found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-16), "{found:?}");
        compare_all(&problem, "one cell");

        problem.lambda = constant(1.0);
        problem.source = constant(1.0);
        let system: AssembledSystem<f64, Reference> = problem.assemble(&Reference);
        let mass = entries(&system.matrix).iter().zip(expected).map(|(e, k)| e.2 - k).sum::<f64>();
        assert!((mass - volume).abs() < 1e-15);
        assert!(system.rhs.as_slice().iter().all(|b| (b - volume / n as f64).abs() < 1e-16));
        compare_all(&problem, "one cell");
    }
}

#[test]
fn single_precision_is_the_rounded_double_precision() {
    let mut random = Random(5);
    let mut problem = Problem::new(disturbed(unit_mesh(3, 4), 4, 0.3, &mut random));
    problem.on(|p| p[2] < 1e-9, Condition::Dirichlet(expression("x")));
    let device = Cpu::new(2).unwrap();
    let double: AssembledSystem<f64, Cpu> = problem.assemble(&device);
    let single: AssembledSystem<f32, Cpu> = problem.assemble(&device);
    for (d, s) in double.matrix.values().as_slice().iter().zip(single.matrix.values().as_slice()) {
        assert_eq!(*d as f32, *s);
    }
    for (d, s) in double.rhs.as_slice().iter().zip(single.rhs.as_slice()) {
        assert_eq!(*d as f32, *s);
    }
}

#[test]
fn matrices_are_symmetric_to_the_bit_and_stiffness_rows_sum_to_zero() {
    let mut random = Random(13);
    for dimension in [2, 3] {
        let mut problem = Problem::new(disturbed(unit_mesh(dimension, 6), 6, 0.5, &mut random));
        problem.sigma = tensor([["2+x", "0.3*y", "0"], ["0.3*y", "1+x*x", "0.1"], ["0", "0.1", "3"]]);
        problem.source = constant(0.0);
        for device in cpus() {
            let system: AssembledSystem<f64, Cpu> = problem.assemble(&device);
            let entries = entries(&system.matrix);
            let by_place: BTreeMap<_, _> = entries.iter().map(|&(i, j, v)| ((i, j), v)).collect();
            assert!(entries.iter().all(|&(i, j, v)| by_place[&(j, i)].to_bits() == v.to_bits()));
            let mut sums = vec![0.0; problem.mesh.n_nodes()];
            entries.iter().for_each(|&(i, _, v)| sums[i] += v);
            assert!(sums.iter().all(|sum| sum.abs() < 1e-14), "{sums:?}");
            assert!(system.is_pure_neumann);
        }
    }
}

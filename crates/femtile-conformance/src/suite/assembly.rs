//! Assembly of linear elements, held to the reference.

use femtile::device::{Device, Reference, Scalar};
use femtile::fem::{AssembledSystem, AssemblyKernels, Coefficient, Condition};
use femtile::linalg::sparse::csr::{Csr, Offsets};
use femtile::mesh::{CellKind, Field, Mesh};

use super::Scope;
use super::forms::{
    Problem, by_tag, disturbed_mesh, field, formula, mixed_coefficients, shuffled, single_coefficients,
};
use super::problems::Random;

/// A device that assembles in both precisions.
pub trait AssemblyDevice: AssemblyKernels<f64> + AssemblyKernels<f32> {}

impl<D: AssemblyKernels<f64> + AssemblyKernels<f32>> AssemblyDevice for D {}

/// Pattern and values of a matrix, and a right side, on the host.
pub(super) struct OnHost {
    pub offsets: Vec<u64>,
    pub columns: Vec<u32>,
    pub values: Vec<f64>,
    pub rhs: Vec<f64>,
}

pub(super) fn to_host<T: Scalar, D: Device>(system: &AssembledSystem<T, D>) -> OnHost {
    let matrix: &Csr<T, D> = &system.matrix;
    let offsets = match matrix.offsets() {
        Offsets::Narrow(offsets) => offsets.to_host().unwrap().into_iter().map(u64::from).collect(),
        Offsets::Wide(offsets) => offsets.to_host().unwrap(),
    };
    let numbers = |values: Vec<T>| values.into_iter().map(T::to_f64).collect();
    OnHost {
        offsets,
        columns: matrix.columns().to_host().unwrap(),
        values: numbers(matrix.values().to_host().unwrap()),
        rhs: numbers(system.rhs.to_host().unwrap()),
    }
}

/// Compares two arrays relative to the largest number in the first.
pub(super) fn close(expected: &[f64], found: &[f64], tolerance: f64, what: &str) {
    assert_eq!(expected.len(), found.len(), "{what}");
    let scale = expected.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    for (i, (e, f)) in expected.iter().zip(found).enumerate() {
        assert!((e - f).abs() <= tolerance * scale, "{what} {i}: {e} and {f}");
    }
}

fn agree<D: AssemblyDevice>(problem: &Problem, device: &D, what: &str) {
    let expected: AssembledSystem<f64, Reference> = problem.assemble(&Reference).unwrap();
    let found: AssembledSystem<f64, D> = problem.assemble(device).unwrap();
    assert_eq!(expected.constraints, found.constraints, "{what}");
    assert_eq!(expected.is_pure_neumann, found.is_pure_neumann, "{what}");
    let (expected, found) = (to_host(&expected), to_host(&found));
    assert_eq!(expected.offsets, found.offsets, "{what}");
    assert_eq!(expected.columns, found.columns, "{what}");
    close(&expected.values, &found.values, 1e-13, &format!("{what}: value"));
    close(&expected.rhs, &found.rhs, 1e-13, &format!("{what}: right side"));
}

/// Dimension and cells a side of the meshes of a run.
fn meshes(scope: &Scope) -> [(usize, usize); 5] {
    [(2, 1), (2, scope.side / 2), (3, 1), (3, 2), (3, scope.side / 6)]
}

/// Constants, formulas, tensors, fields and choices by tag, with all conditions, in both dimensions.
pub fn systems_agree_with_the_reference<D: AssemblyDevice>(device: &D, scope: &Scope) {
    let mut random = Random::new(7);
    for (dimension, n) in meshes(scope) {
        let mesh = disturbed_mesh(dimension, n, &mut random);
        let mut sets = mixed_coefficients(&mesh, &mut random);
        if scope.has_every_kind {
            sets.extend(single_coefficients(&mesh, &mut random));
        }
        for (name, [sigma, lambda, source]) in sets {
            let problem = Problem { sigma, lambda, source, ..Problem::new(mesh.clone()) };
            agree(&problem.with_all_conditions(), device, &format!("{dimension}-D, {n}, {name}"));
        }
    }
}

/// A mesh that nothing holds, with λ = 0 found cell by cell.
pub fn pure_neumann_problems_are_known_as_such<D: AssemblyDevice>(device: &D, _: &Scope) {
    let mut random = Random::new(9);
    let mut problem = Problem::new(disturbed_mesh(2, 5, &mut random));
    problem.source = 3.0.into();
    problem.on(|_| true, Condition::Neumann((-0.75).into()));
    for lambda in ["max(0, x - 2)", "max(0, x - 0.9)"] {
        problem.lambda = formula(lambda);
        agree(&problem, device, lambda);
    }
}

/// A node with more cells than any ordinary one, in random order.
pub fn a_node_with_many_cells_agrees_with_the_reference<D: AssemblyDevice>(device: &D, _: &Scope) {
    // The tables of a GPU have room for the neighbours of some hundred cells.
    for n in [151u32, 1103] {
        let at = |i: u32| (f64::from(i) / f64::from(n) * std::f64::consts::TAU).sin_cos();
        let rim = (0..n).map(|i| [1.5 * at(i).0, at(i).1, 0.0]);
        let points = std::iter::once([0.01, 0.02, 0.0]).chain(rim).collect();
        let cells = (0..n).flat_map(|i| [0, 1 + i, 1 + (i + 1) % n]).collect();
        let fan = Mesh::new(points, CellKind::Triangle, cells).unwrap();
        let mut problem = Problem::new(shuffled(&fan, &mut Random::new(13)));
        problem.lambda = 1.0.into();
        agree(&problem, device, &format!("fan of {n}"));
    }
}

/// Rounding happens once: f32 is what f64 rounds to.
pub fn single_precision_is_the_rounded_double_precision<D: AssemblyDevice>(device: &D, _: &Scope) {
    let mut random = Random::new(5);
    for dimension in [2, 3] {
        let mesh = disturbed_mesh(dimension, 3, &mut random);
        let [sigma, lambda, source] = mixed_coefficients(&mesh, &mut random).swap_remove(2).1;
        let problem = Problem { sigma, lambda, source, ..Problem::new(mesh) }.with_all_conditions();
        let double: AssembledSystem<f64, D> = problem.assemble(device).unwrap();
        let single: AssembledSystem<f32, D> = problem.assemble(device).unwrap();
        let (double, single) = (to_host(&double), to_host(&single));
        let rounded = |values: &[f64]| values.iter().map(|&v| f64::from(v as f32)).collect::<Vec<_>>();
        assert_eq!(rounded(&double.values), single.values);
        assert_eq!(rounded(&double.rhs), single.rhs);
    }
}

/// An entry and its mirror image have the same bits, and so has a second run.
pub fn matrices_are_symmetric_to_the_bit<D: AssemblyDevice>(device: &D, scope: &Scope) {
    let mut random = Random::new(17);
    for (dimension, n) in meshes(scope) {
        let mesh = disturbed_mesh(dimension, n, &mut random);
        let [sigma, lambda, source] = mixed_coefficients(&mesh, &mut random).swap_remove(4).1;
        let problem = Problem { sigma, lambda, source, ..Problem::new(mesh) }.with_all_conditions();
        let run = || to_host::<f64, D>(&problem.assemble(device).unwrap());
        let (a, again) = (run(), run());
        assert_eq!(a.values, again.values);
        assert_eq!(a.rhs, again.rhs);
        let row = |i: usize| a.offsets[i] as usize..a.offsets[i + 1] as usize;
        let entry = |i: usize, j: usize| {
            let place = row(i).find(|&k| a.columns[k] as usize == j);
            place.map(|k| a.values[k].to_bits())
        };
        for i in 0..problem.mesh.n_nodes() {
            for k in row(i) {
                let j = a.columns[k] as usize;
                assert_eq!(Some(a.values[k].to_bits()), entry(j, i), "({i}, {j})");
            }
        }
    }
}

/// Faults have the same message on every device: kind, place and numbers.
pub fn bad_cells_are_named_as_by_the_reference<D: AssemblyDevice>(device: &D, _: &Scope) {
    let mut random = Random::new(19);
    for dimension in [2, 3] {
        let mut mesh = disturbed_mesh(dimension, 3, &mut random);
        mesh.cell_tags.fill(0);
        let refused = |change: &dyn Fn(&mut Problem), words: &str| {
            let mut problem = fragile(mesh.clone());
            change(&mut problem);
            let expected = problem.assemble::<f64, _>(&Reference).unwrap_err().to_string();
            assert!(expected.contains(words), "{expected}");
            assert_eq!(problem.assemble::<f64, _>(device).unwrap_err().to_string(), expected);
        };
        refused(&|p| set(&mut p.sigma, -2.0), "sigma is not symmetric positive definite in cell 11 at");
        refused(&|p| set(&mut p.sigma, f64::INFINITY), "sigma is inf in cell 11 at");
        refused(&|p| set(&mut p.lambda, -2.0), "lambda is -2 in cell 11 at");
        refused(&|p| set(&mut p.source, f64::NAN), "source is NaN in cell 11 at");
        for (tag, words) in [
            (1, "sigma is not symmetric positive definite in cell"),
            (2, "it must not be negative"),
            (3, "it must be finite everywhere"),
            (4, "sigma has no value for tag 4 of cell 0"),
        ] {
            refused(&|p| p.mesh.cell_tags.fill(tag), words);
        }
        refused(&|p| p.sigma = skew(&p.mesh), "not symmetric positive definite in cell 5 at");
        refused(&|p| p.mesh = with_flat_cell(&p.mesh), "is degenerate");
        refused(&|p| p.mesh.points.push([9.0; 3]), "belongs to no cell");
    }
}

/// Sound where the tag is 0; one of its coefficients is out of range for the tags 1, 2 and 3.
fn fragile(mesh: Mesh) -> Problem {
    let ones = Coefficient::CellField(Field { n_components: 1, values: vec![1.0; mesh.n_cells()] });
    let parts = |tag: usize, bad: &str| {
        let mut parts = vec![ones.clone(), 1.0.into(), 1.0.into(), 1.0.into()];
        parts[tag] = formula(bad);
        by_tag(parts)
    };
    let (sigma, lambda, source) = (parts(1, "x - 0.6"), parts(2, "y - 0.5"), parts(3, "log(x - 0.5)"));
    Problem { sigma, lambda, source, ..Problem::new(mesh) }
}

/// Gives the cells 11 and 13 a value.
fn set(coefficient: &mut Coefficient, value: f64) {
    let Coefficient::ByTag(parts) = coefficient else { panic!("chosen by tag") };
    let Some(Coefficient::CellField(field)) = parts.get_mut(&0) else { panic!("a field") };
    (field.values[11], field.values[13]) = (value, value);
}

/// Symmetric tensors but for one cell.
fn skew(mesh: &Mesh) -> Coefficient {
    let mut values = [2.0, 0.5, 0.0, 0.5, 2.0, 0.0, 0.0, 0.0, 1.0].repeat(mesh.n_cells());
    values[9 * 5 + 1] = 0.25;
    Coefficient::CellField(Field { n_components: 9, values })
}

/// The same mesh with its seventh cell on a line.
fn with_flat_cell(mesh: &Mesh) -> Mesh {
    let mut flat = mesh.clone();
    let n = mesh.kind.n_nodes();
    flat.cells[7 * n + 1] = flat.cells[7 * n];
    flat
}

/// Variable parts are data where possible: another constant, another field.
pub fn another_mesh_and_other_constants_give_other_systems<D: AssemblyDevice>(device: &D, _: &Scope) {
    let mut random = Random::new(23);
    for (n, constant) in [(3, 1.0), (4, 2.0), (4, 0.5)] {
        let mesh = disturbed_mesh(2, n, &mut random);
        let sigma =
            by_tag(vec![constant.into(), field(&mesh, &[constant], &mut random), 1.0.into(), 7.0.into()]);
        let problem = Problem { sigma, ..Problem::new(mesh) }.with_all_conditions();
        agree(&problem, device, &format!("{n} cells a side, {constant}"));
    }
}

/// The host assembles what a kernel cannot: too many fields, and numbers too small for the GPU.
pub fn forms_that_kernels_leave_to_the_host_agree_as_well<D: AssemblyDevice>(device: &D, _: &Scope) {
    let mut random = Random::new(29);
    let mesh = disturbed_mesh(2, 3, &mut random);
    let fields = (0..300).map(|_| field(&mesh, &[1.0], &mut random)).collect();
    let problem = Problem { sigma: by_tag(fields), ..Problem::new(mesh.clone()) };
    agree(&problem.with_all_conditions(), device, "300 fields");
    let tiny = Coefficient::Tensor([[1e-310, 0.0, 0.0], [0.0, 1e-310, 0.0], [0.0, 0.0, 1e-310]]);
    let problem = Problem { sigma: tiny, lambda: 1.0.into(), ..Problem::new(mesh) };
    agree(&problem, device, "a conductivity below all normal numbers");
}

//! Assembly by patches on a GPU, real or emulated, held to the upper half of what the reference assembles.

use femtile::device::{Cuda, Reference, Scalar};
use femtile::fem::assembly::Assembled;
use femtile::fem::{Assembly, AssemblyKernels, Coefficient, FemError};
use femtile::mesh::generate::{BoxConfig, box_mesh};
use femtile::mesh::{CellKind, Field, Mesh};
use femtile_research::patch_assembly::PatchAssembly;

use super::Scope;
use super::assembly::{OnHost, close};
use super::forms::{
    Problem, by_tag, disturbed_mesh, field, formula, mixed_coefficients, shuffled, single_coefficients,
};
use super::problems::Random;

/// The upper half of the reference's matrix without constraints, and its right side, in another order of the
/// nodes.
pub(super) fn upper_of_reference(problem: &Problem, order: &[u32]) -> OnHost {
    let mut assembly = Assembly::<f64, Reference>::new(&Reference, &problem.mesh).unwrap();
    let prepared = assembly.prepare(&problem.form()).unwrap();
    let whole: Assembled<f64, Reference> = Reference.assemble_system(&prepared).unwrap();
    let mut new_number = vec![usize::MAX; order.len()];
    order.iter().enumerate().for_each(|(new, &node)| new_number[node as usize] = new);
    assert!(!new_number.contains(&usize::MAX), "every node has a number");
    let mut upper = OnHost { offsets: vec![0], columns: vec![], values: vec![], rhs: vec![] };
    for (row, &node) in order.iter().enumerate() {
        let entries = whole.matrix.row(node as usize).map(|(j, value)| (new_number[j], value));
        let mut entries: Vec<_> = entries.filter(|entry| entry.0 >= row).collect();
        entries.sort_by_key(|entry| entry.0);
        upper.columns.extend(entries.iter().map(|entry| entry.0 as u32));
        upper.values.extend(entries.iter().map(|entry| entry.1));
        upper.offsets.push(upper.columns.len() as u64);
        upper.rhs.push(whole.rhs[node as usize]);
    }
    upper
}

/// Pattern and values of an upper half, and its right side, on the host.
pub(super) fn to_host<T: Scalar>(assembly: &PatchAssembly<T>) -> OnHost {
    let upper = assembly.upper().copy_to(&Reference).unwrap();
    let numbers = |values: Vec<T>| values.into_iter().map(T::to_f64).collect();
    OnHost {
        offsets: upper.offsets_as_u64(),
        columns: upper.columns().as_slice().to_vec(),
        values: numbers(upper.values().as_slice().to_vec()),
        rhs: numbers(assembly.rhs().to_host().unwrap()),
    }
}

fn agree<T: Scalar>(problem: &Problem, assembly: &PatchAssembly<T>, tolerance: f64, what: &str) {
    let (expected, found) = (upper_of_reference(problem, assembly.order()), to_host(assembly));
    assert_eq!(expected.offsets, found.offsets, "{what}");
    assert_eq!(expected.columns, found.columns, "{what}");
    close(&expected.values, &found.values, tolerance, &format!("{what}: value"));
    close(&expected.rhs, &found.rhs, tolerance, &format!("{what}: right side"));
}

/// Assembles by patches and holds the result to the reference.
fn upper_half_agrees_with_the_reference(device: &Cuda, problem: &Problem, what: &str) {
    let mut assembly = PatchAssembly::<f64>::new(device, &problem.mesh).unwrap();
    assembly.assemble(&problem.form()).unwrap();
    agree(problem, &assembly, 1e-13, what);
}

/// Constants, formulas, tensors, fields and choices by tag, in both dimensions, one after another.
pub fn upper_halves_agree_with_the_reference(device: &Cuda, scope: &Scope) {
    let mut random = Random::new(53);
    for (dimension, n) in [(2, 1), (2, scope.side / 2), (3, 1), (3, scope.side / 6)] {
        let mesh = disturbed_mesh(dimension, n, &mut random);
        let mut sets = mixed_coefficients(&mesh, &mut random);
        if scope.has_every_kind {
            sets.extend(single_coefficients(&mesh, &mut random));
        }
        let mut assembly = PatchAssembly::<f64>::new(device, &mesh).unwrap();
        for (name, [sigma, lambda, source]) in sets {
            let problem = Problem { sigma, lambda, source, ..Problem::new(mesh.clone()) };
            assembly.assemble(&problem.form()).unwrap();
            agree(&problem, &assembly, 1e-13, &format!("{dimension}-D, {n}, {name}"));
        }
    }
}

/// Many patches, most rows on a rim, nodes at random and along the axes; a second run finds the first one's
/// rims cleared.
pub fn patches_share_rows_that_agree_with_the_reference(device: &Cuda, scope: &Scope) {
    let n = if scope.has_every_kind { 14 } else { 7 };
    let ordered = box_mesh(&BoxConfig { cells: [n, n + 1, n - 1], ..BoxConfig::default() }).unwrap();
    for mesh in [shuffled(&ordered, &mut Random::new(59)), ordered] {
        let [sigma, lambda, source] = ["1 + x*y", "1 + z", "x - y"].map(formula);
        let problem = Problem { sigma, lambda, source, ..Problem::new(mesh) };
        let mut assembly = PatchAssembly::<f64>::new(device, &problem.mesh).unwrap();
        assembly.assemble(&problem.form()).unwrap();
        agree(&problem, &assembly, 1e-13, "box");
        let first = to_host(&assembly);
        assembly.assemble(&problem.form()).unwrap();
        let again = to_host(&assembly);
        close(&first.values, &again.values, 1e-13, "value");
        close(&first.rhs, &again.rhs, 1e-13, "right side");
    }
}

/// Sums are in f64; in f32 they are rounded when a patch writes them, and where another one adds to them.
pub fn single_precision_upper_halves_are_rounded_twice_at_most(device: &Cuda, _: &Scope) {
    let mut random = Random::new(61);
    for (dimension, n) in [(2, 13), (3, 5)] {
        let mesh = disturbed_mesh(dimension, n, &mut random);
        let [sigma, lambda, source] = mixed_coefficients(&mesh, &mut random).swap_remove(2).1;
        let problem = Problem { sigma, lambda, source, ..Problem::new(mesh) };
        let mut assembly = PatchAssembly::<f32>::new(device, &problem.mesh).unwrap();
        assembly.assemble(&problem.form()).unwrap();
        agree(&problem, &assembly, f64::from(f32::EPSILON), &format!("{dimension}-D"));
    }
}

/// Faults have the message of the reference, and a valid form can be assembled afterwards.
pub fn bad_cells_of_patches_are_named_as_by_the_reference(device: &Cuda, _: &Scope) {
    let mut random = Random::new(67);
    for dimension in [2, 3] {
        let mesh = disturbed_mesh(dimension, 3, &mut random);
        let sound = Problem { lambda: 1.0.into(), ..Problem::new(mesh.clone()) };
        let mut assembly = PatchAssembly::<f64>::new(device, &mesh).unwrap();
        let mut numbers = vec![1.0; mesh.n_cells()];
        (numbers[11], numbers[13]) = (-2.0, f64::NAN);
        let numbers = Coefficient::CellField(Field { n_components: 1, values: numbers });
        let same = || sound.clone();
        for (bad, words) in [
            (
                Problem { sigma: formula("x - 0.5"), ..same() },
                "sigma is not symmetric positive definite in cell",
            ),
            (Problem { lambda: formula("y - 0.7"), ..same() }, "it must not be negative"),
            (Problem { source: formula("log(x - 0.5)"), ..same() }, "it must be finite everywhere"),
            (Problem { sigma: by_tag(vec![1.0.into(), 2.0.into()]), ..same() }, "sigma has no value for tag"),
            (Problem { lambda: numbers.clone(), ..same() }, "lambda is -2 in cell 11 at"),
        ] {
            let expected = bad.assemble::<f64, _>(&Reference).unwrap_err().to_string();
            assert!(expected.contains(words), "{expected}");
            assert_eq!(assembly.assemble(&bad.form()).unwrap_err().to_string(), expected);
            assembly.assemble(&sound.form()).unwrap();
            agree(&sound, &assembly, 1e-13, words);
        }
        flat_cells_and_orphans_are_refused(device, &mesh);
    }
}

fn flat_cells_and_orphans_are_refused(device: &Cuda, mesh: &Mesh) {
    let refused = |mesh: Mesh, words: &str| {
        let problem = Problem { lambda: 1.0.into(), ..Problem::new(mesh) };
        let expected = problem.assemble::<f64, _>(&Reference).unwrap_err().to_string();
        assert!(expected.contains(words), "{expected}");
        let assembled =
            PatchAssembly::<f64>::new(device, &problem.mesh).and_then(|mut a| a.assemble(&problem.form()));
        assert_eq!(assembled.unwrap_err().to_string(), expected);
    };
    let mut flat = mesh.clone();
    let n = mesh.kind.n_nodes();
    flat.cells[7 * n + 1] = flat.cells[7 * n];
    refused(flat, "is degenerate");
    let mut orphaned = mesh.clone();
    orphaned.points.push([9.0; 3]);
    refused(orphaned, "belongs to no cell");
}

/// Forms that patch assembly does not support are refused with a reason.
pub fn conditions_and_other_meshes_are_refused(device: &Cuda, _: &Scope) {
    let mesh = disturbed_mesh(2, 3, &mut Random::new(71));
    let held = Problem::new(mesh.clone()).with_all_conditions();
    let mut assembly = PatchAssembly::<f64>::new(device, &mesh).unwrap();
    let error = assembly.assemble(&held.form()).unwrap_err();
    assert!(matches!(error, FemError::HasConditions { n_conditions: 3 }), "{error}");
    let other = Problem::new(disturbed_mesh(2, 4, &mut Random::new(71)));
    assert!(matches!(assembly.assemble(&other.form()), Err(FemError::OtherMesh { .. })));
}

/// The host assembles what kernels cannot: a node with a thousand cells, three hundred fields, numbers that the
/// GPU doubts.
pub fn what_patches_leave_to_the_host_agrees_as_well(device: &Cuda, _: &Scope) {
    let mut random = Random::new(73);
    let fan = Problem { lambda: 1.0.into(), ..Problem::new(fan(1009)) };
    upper_half_agrees_with_the_reference(device, &fan, "fan");
    let mesh = disturbed_mesh(2, 3, &mut random);
    let fields = (0..300).map(|_| field(&mesh, &[1.0], &mut random)).collect();
    let problem = Problem { sigma: by_tag(fields), ..Problem::new(mesh.clone()) };
    upper_half_agrees_with_the_reference(device, &problem, "300 fields");
    let tiny = Coefficient::Tensor([[1e-310, 0.0, 0.0], [0.0, 1e-310, 0.0], [0.0, 0.0, 1e-310]]);
    let problem = Problem { sigma: tiny, lambda: 1.0.into(), ..Problem::new(mesh) };
    upper_half_agrees_with_the_reference(device, &problem, "a conductivity below all normal numbers");
}

/// Triangles around one node, which is the first of all of them.
fn fan(n: u32) -> Mesh {
    let at = |i: u32| (f64::from(i) / f64::from(n) * std::f64::consts::TAU).sin_cos();
    let rim = (0..n).map(|i| [at(i).1, at(i).0, 0.0]);
    let points = std::iter::once([0.0; 3]).chain(rim).collect();
    let cells = (0..n).flat_map(|i| [0, 1 + i, 1 + (i + 1) % n]).collect();
    Mesh::new(points, CellKind::Triangle, cells).unwrap()
}

//! Systems filled in again and again on one pattern, in every format, held to the reference.

use femtile::device::{Buffer, Reference, Scalar};
use femtile::expression::{Expression, Names};
use femtile::fem::{AssembledSystem, Assembly, Coefficient, Condition, DeviceState, FemError, Form, Slopes};
use femtile::linalg::sparse::Csr;
use femtile::linalg::sparse::ell_warp::{EllWarp, EllWarpConfig, EllWarpKernels, IndexKind, Numbering};
use femtile::mesh::generate::{BoxConfig, box_mesh};

use super::assembly::{AssemblyDevice, close, to_host};
use super::forms::{Problem, disturbed_mesh, formula, mixed_coefficients, shuffled, single_coefficients};
use super::problems::Random;
use super::{Scope, SparseDevice};

/// Holds a filled system to what the reference assembles.
fn agree<D: AssemblyDevice>(problem: &Problem, found: &AssembledSystem<f64, D>, what: &str) {
    let expected: AssembledSystem<f64, Reference> = problem.assemble(&Reference).unwrap();
    assert_eq!(expected.constraints, found.constraints, "{what}");
    assert_eq!(expected.is_pure_neumann, found.is_pure_neumann, "{what}");
    let (expected, found) = (to_host(&expected), to_host(found));
    assert_eq!(expected.offsets, found.offsets, "{what}");
    assert_eq!(expected.columns, found.columns, "{what}");
    close(&expected.values, &found.values, 1e-13, &format!("{what}: value"));
    close(&expected.rhs, &found.rhs, 1e-13, &format!("{what}: right side"));
}

/// One assembly of a mesh serves every form on it, with and without conditions, in any order.
pub fn one_assembly_serves_every_form_on_a_mesh<D: AssemblyDevice>(device: &D, scope: &Scope) {
    let mut random = Random::new(31);
    for (dimension, n) in [(2, 1), (2, scope.side / 2), (3, 1), (3, scope.side / 6)] {
        let mesh = disturbed_mesh(dimension, n, &mut random);
        let mut sets = mixed_coefficients(&mesh, &mut random);
        if scope.has_every_kind {
            sets.extend(single_coefficients(&mesh, &mut random));
        }
        let mut assembly = Assembly::new(device, &mesh).unwrap();
        let mut system = None;
        for (name, [sigma, lambda, source]) in sets {
            let plain = Problem { sigma, lambda, source, ..Problem::new(mesh.clone()) };
            for problem in [plain.clone().with_all_conditions(), plain] {
                let what = format!("{dimension}-D, {n}, {name}, {} conditions", problem.conditions.len());
                if problem.conditions.is_empty() && name == "constants" {
                    continue;
                }
                match &mut system {
                    None => system = Some(assembly.system(&problem.form()).unwrap()),
                    Some(system) => assembly.refill(system, &problem.form()).unwrap(),
                }
                agree(&problem, system.as_ref().unwrap(), &what);
            }
        }
    }
}

/// A mesh of several patches, numbered at random and along its axes: the values are the reference's, an entry has the
/// bits of its mirror image, and a second filling those of the first.
pub fn patches_that_meet_agree_with_the_reference<D: AssemblyDevice>(device: &D, scope: &Scope) {
    let n = if scope.has_every_kind { 14 } else { 7 };
    let ordered = box_mesh(&BoxConfig { cells: [n, n + 1, n - 1], ..BoxConfig::default() }).unwrap();
    for mesh in [shuffled(&ordered, &mut Random::new(37)), ordered] {
        let [sigma, lambda] = ["1 + x*y", "1 + z"].map(formula);
        let problem = Problem { sigma, lambda, ..Problem::new(mesh) }.with_all_conditions();
        let mut assembly = Assembly::new(device, &problem.mesh).unwrap();
        let mut system: AssembledSystem<f64, D> = assembly.system(&problem.form()).unwrap();
        agree(&problem, &system, "box");
        let first = to_host(&system);
        assembly.refill(&mut system, &problem.form()).unwrap();
        let again = to_host(&system);
        assert_eq!((&first.values, &first.rhs), (&again.values, &again.rhs));
        let row = |i: usize| first.offsets[i] as usize..first.offsets[i + 1] as usize;
        for i in 0..problem.mesh.n_nodes() {
            for k in row(i) {
                let j = first.columns[k] as usize;
                let mirrored = row(j).find(|&k| first.columns[k] as usize == i).unwrap();
                assert_eq!(first.values[k].to_bits(), first.values[mirrored].to_bits(), "({i}, {j})");
            }
        }
    }
}

/// Rounding happens once, in the matrix and in the right side, and what a pure Neumann problem subtracts is exact.
pub fn single_precision_refills_are_rounded_double_precision<D: AssemblyDevice>(device: &D, _: &Scope) {
    let mut random = Random::new(41);
    for dimension in [2, 3] {
        let mesh = disturbed_mesh(dimension, 3, &mut random);
        let [sigma, lambda, source] = mixed_coefficients(&mesh, &mut random).swap_remove(2).1;
        let held = Problem { sigma, lambda, source, ..Problem::new(mesh.clone()) }.with_all_conditions();
        let mut floating = Problem::new(mesh);
        (floating.source, floating.lambda) = (1.0.into(), formula("max(0, x - 2)"));
        let flux = -(if dimension == 2 { 0.25 } else { 1.0 / 6.0 });
        floating.on(|_| true, Condition::Neumann(flux.into()));
        for problem in [held, floating] {
            let mut double = Assembly::<f64, D>::new(device, &problem.mesh).unwrap();
            let mut single = Assembly::<f32, D>::new(device, &problem.mesh).unwrap();
            let double = double.system(&problem.form()).unwrap();
            let single = single.system(&problem.form()).unwrap();
            agree(&problem, &double, "double");
            assert_eq!(single.is_pure_neumann, double.is_pure_neumann);
            let (double, single) = (to_host(&double), to_host(&single));
            let rounded = |values: &[f64]| values.iter().map(|&v| f64::from(v as f32)).collect::<Vec<_>>();
            assert_eq!(rounded(&double.values), single.values);
            assert_eq!(rounded(&double.rhs), single.rhs);
        }
    }
}

/// The system of a problem in slices, first filled with other values.
fn in_slices<T: Scalar, V: Scalar, D: femtile::fem::AssemblyKernels<T> + EllWarpKernels<T, V>>(
    device: &D,
    problem: &Problem,
    config: EllWarpConfig,
) -> Csr<V, Reference> {
    let mut assembly = Assembly::<T, D, EllWarp<T, D, V>>::in_format(device, &problem.mesh, config).unwrap();
    let doubled: Coefficient = 7.0.into();
    let other = Form { sigma: &doubled, ..problem.form() };
    let mut system = assembly.system(&other).unwrap();
    assembly.refill(&mut system, &problem.form()).unwrap();
    system.matrix.to_csr().unwrap()
}

/// Values go straight to their places in slices of rows, sorted or not, folded or not, with columns in any order.
pub fn values_are_filled_straight_into_slices<D: AssemblyDevice + SparseDevice>(device: &D, scope: &Scope) {
    let mut random = Random::new(43);
    let mesh = disturbed_mesh(3, scope.side / 4, &mut random);
    let problem = Problem { sigma: formula("1 + x*y"), ..Problem::new(mesh) }.with_all_conditions();
    let expected: AssembledSystem<f64, Reference> = problem.assemble(&Reference).unwrap();
    for &lanes in <D as EllWarpKernels<f64, f64>>::LANES {
        let new = EllWarpConfig::new(lanes);
        let all_rows = EllWarpConfig::ALL_ROWS;
        let (numbering, indices) = (Numbering::SortedColumns, IndexKind::Delta);
        for config in [
            new,
            EllWarpConfig { window: 64, ..new },
            EllWarpConfig { window: all_rows, numbering, indices, ..new },
            EllWarpConfig { threshold: Some(3), ..new },
            EllWarpConfig { threshold: Some(1), window: all_rows, numbering: Numbering::Sorted, ..new },
        ] {
            let what = format!("{lanes} lanes, {}", config.name());
            let found = in_slices::<f64, f64, D>(device, &problem, config);
            assert_eq!(expected.matrix.columns().as_slice(), found.columns().as_slice(), "{what}");
            close(expected.matrix.values().as_slice(), found.values().as_slice(), 1e-13, &what);
            let mixed = in_slices::<f64, f32, D>(device, &problem, config);
            let rounded: Vec<f32> = found.values().as_slice().iter().map(|&v| v as f32).collect();
            assert_eq!(rounded, mixed.values().as_slice(), "{what}");
        }
    }
}

/// Faults have the message of the reference, and the system can be filled again afterwards.
pub fn a_refused_form_leaves_an_assembly_that_works<D: AssemblyDevice>(device: &D, _: &Scope) {
    let mesh = disturbed_mesh(3, 2, &mut Random::new(47));
    let sound = Problem::new(mesh.clone()).with_all_conditions();
    let mut assembly = Assembly::new(device, &mesh).unwrap();
    let mut system: AssembledSystem<f64, D> = assembly.system(&sound.form()).unwrap();
    for (sigma, lambda) in [("x - 0.5", "1"), ("1", "y - 0.7"), ("1/(z - z)", "0")] {
        let bad = Problem { sigma: formula(sigma), lambda: formula(lambda), ..sound.clone() };
        let expected = bad.assemble::<f64, _>(&Reference).unwrap_err().to_string();
        assert_eq!(assembly.refill(&mut system, &bad.form()).unwrap_err().to_string(), expected);
        assembly.refill(&mut system, &sound.form()).unwrap();
        agree(&sound, &system, sigma);
    }
    let other = Problem::new(disturbed_mesh(3, 3, &mut Random::new(47)));
    assert!(matches!(assembly.refill(&mut system, &other.form()), Err(FemError::OtherMesh { .. })));
}

/// The host assembles what patches cannot hold: a node with ten thousand cells.
pub fn a_node_with_too_many_cells_is_left_to_the_host<D: AssemblyDevice>(device: &D, scope: &Scope) {
    let n = if scope.has_every_kind { 10_007u32 } else { 5_003 };
    let mut points = vec![[0.0; 3]];
    points.extend((0..n).map(|i| {
        let angle = f64::from(i) / f64::from(n) * std::f64::consts::TAU;
        [angle.cos(), angle.sin(), 0.0]
    }));
    let cells = (0..n).flat_map(|i| [0, 1 + i, 1 + (i + 1) % n]).collect();
    let fan = femtile::mesh::Mesh::new(points, femtile::mesh::CellKind::Triangle, cells).unwrap();
    let problem = Problem { lambda: 1.0.into(), ..Problem::new(fan) };
    let mut assembly = Assembly::new(device, &problem.mesh).unwrap();
    let system: AssembledSystem<f64, D> = assembly.system(&problem.form()).unwrap();
    agree(&problem, &system, "fan");
}

/// A coefficient that depends on the time and on u.
fn in_state(text: &str) -> Coefficient {
    Expression::parse_with(text, &Names { time: true, others: &["u"] }).expect("a formula").into()
}

/// Coefficients that depend on u and on the time in every way.
fn coefficients_in_state() -> Vec<[Coefficient; 3]> {
    let entry =
        |text| Expression::parse_with(text, &Names { time: true, others: &["u"] }).expect("a formula");
    let rows = [
        ["2 + u^2", "0.3*sin(u)", "0.1*t"],
        ["0.3*sin(u)", "3 + x*u", "0.2"],
        ["0.1*t", "0.2", "2 + exp(-u)"],
    ];
    let by_tag = |of: [&str; 4]| super::forms::by_tag(of.map(in_state).to_vec());
    vec![
        [in_state("1 + x*u^2"), in_state("-1 + t*u"), in_state("x*t - u^3")],
        [Coefficient::TensorExpression(Box::new(rows.map(|row| row.map(entry)))), 0.5.into(), in_state("u")],
        [2.0.into(), (-1.0).into(), in_state("exp(u)")],
        [by_tag(["1 + u^2", "3", "2 + t", "1 + u"]), by_tag(["1", "u^2", "0", "x"]), in_state("t")],
        [in_state("1 + t*x"), in_state("t"), in_state("sin(t)*y")],
    ]
}

/// Fills a linearization at a function that is positive.
fn linearized<D: AssemblyDevice>(device: &D, problem: &Problem) -> Result<AssembledSystem<f64, D>, FemError> {
    let form = problem.form();
    let mut random = Random::new(5);
    let u: Vec<f64> = (0..form.mesh.n_nodes()).map(|_| 1.5 + random.unit()).collect();
    let u = Buffer::from_host(device, &u)?;
    let slopes = Slopes::of(&form);
    let mut assembly = Assembly::<f64, D>::new(device, form.mesh)?;
    let mut system = assembly.zero_system()?;
    let mut prepared = assembly.prepare_linearized(&form, &slopes, &[])?;
    assembly.replace_conditions(&mut prepared, form.conditions)?;
    let state = DeviceState { time: 0.7, unknown: Some(&u) };
    // The second filling is independent of the first.
    assembly.fill(&mut system, &prepared, DeviceState { time: 0.3, ..state })?;
    assembly.fill(&mut system, &prepared, state)?;
    Ok(system)
}

/// Linearizations at a time and a function are the reference's, with every derivative and every condition.
pub fn linearizations_agree_with_the_reference<D: AssemblyDevice>(device: &D, _: &Scope) {
    let mut random = Random::new(43);
    for (dimension, n) in [(2, 6), (3, 3)] {
        let mesh = disturbed_mesh(dimension, n, &mut random);
        for (k, [sigma, lambda, source]) in coefficients_in_state().into_iter().enumerate() {
            let plain = Problem { sigma, lambda, source, ..Problem::new(mesh.clone()) };
            for problem in [plain.clone().with_all_conditions(), plain] {
                let what = format!("{dimension}-D, {k}, {} conditions", problem.conditions.len());
                let expected = to_host(&linearized(&Reference, &problem).unwrap());
                let found = to_host(&linearized(device, &problem).unwrap());
                close(&expected.values, &found.values, 1e-12, &format!("{what}: value"));
                close(&expected.rhs, &found.rhs, 1e-12, &format!("{what}: right side"));
            }
        }
    }
}

/// A coefficient that is out of its range at some u is an error with the words of the reference.
pub fn bad_values_of_linearizations_are_named_as_by_the_reference<D: AssemblyDevice>(device: &D, _: &Scope) {
    let mesh = disturbed_mesh(3, 3, &mut Random::new(47));
    for [sigma, lambda, source] in [
        [in_state("2.2 - u"), 0.0.into(), 1.0.into()],
        [1.0.into(), in_state("log(2.3 - u)"), 1.0.into()],
        [1.0.into(), 0.0.into(), in_state("log(2.3 - u)")],
    ] {
        let problem = Problem { sigma, lambda, source, ..Problem::new(mesh.clone()) };
        let expected = linearized(&Reference, &problem).unwrap_err().to_string();
        assert!(expected.contains("where u is"), "{expected}");
        assert_eq!(linearized(device, &problem).unwrap_err().to_string(), expected);
    }
}

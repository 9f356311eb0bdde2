//! The general path agrees with the reference, and the reference with finite differences, for random equations.

use femtile_device::Cpu;
use femtile_device::cpu::SimdLevel;
use femtile_form::Equation;
use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::DeformConfig;
use femtile_mesh::{CellKind, Field};
use femtile_operator::{CpuOperator, Differentiated, DiscreteForm, OperatorError, Pattern, State, reference};
use femtile_space::{LinearConstraints, LinearRelation, Space};
use proptest::prelude::*;

use crate::meshes::{KINDS, into_space, mesh};
use crate::random::{coefficient, equation, form_of, numbers};

/// Fails unless two vectors agree relative to the largest entry.
fn near(found: &[f64], expected: &[f64], tolerance: f64, what: &str) -> Result<(), TestCaseError> {
    let size = expected.iter().fold(1e-3f64, |size, value| size.max(value.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        prop_assert!((found - expected).abs() <= tolerance * size, "{what}: {found} and {expected} at {i}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn residual_tangent_and_matrix_agree(
        (_, text) in equation(),
        kind in proptest::sample::select(KINDS.to_vec()),
        degree in 1usize..=3,
        cells in (1usize..=3, 1usize..=2),
        (is_curved, is_bent) in any::<(bool, bool)>(),
        c in 0usize..3,
        seed in any::<u64>(),
    ) {
        let is_tensor = !kind.is_simplex();
        let order = if is_curved && is_tensor { 2 } else { 1 };
        let mut mesh = mesh(kind, [cells.0, cells.1, 1], Some(DeformConfig { amplitude: 0.05, order }));
        mesh.cell_tags = (0..mesh.n_cells()).map(|cell| if cell % 2 == 0 { 0 } else { 3 }).collect();
        if is_bent && mesh.dimension() == 2 {
            mesh = into_space(&mesh, |[x, y, _]| [x - 0.3 * y * y, y, 0.5 * x * x + 0.2 * y]);
        }
        let boundary = boundary_facets(&mesh);
        let facets: Vec<u32> = (0..boundary.len() as u32).step_by(2).collect();
        let form = form_of(&text, mesh.space_dimension(), coefficient(c), &facets);
        let space = Space::new(&mesh, degree).unwrap();
        let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
        let n = discrete.n_unknowns();
        let (u, rate, direction) = (numbers(n, seed), numbers(n, !seed), numbers(n, seed ^ 77));
        let state = State { u: &u, rate: &rate, time: 0.3, shift: 1.5 };

        let poisoned = || vec![f64::NAN; n];
        let (mut r, mut y, mut diagonal) = (poisoned(), poisoned(), poisoned());
        reference::residual(&discrete, &state, &mut r).unwrap();
        reference::apply(&discrete, &state, &direction, &mut y).unwrap();
        reference::diagonal(&discrete, &state, &mut diagonal).unwrap();

        // Differences of the residual.
        let moved = |step: f64| {
            let along = |from: &[f64], step: f64| -> Vec<f64> {
                from.iter().zip(&direction).map(|(at, by)| at + step * by).collect()
            };
            let (u, rate) = (along(&u, step), along(&rate, 1.5 * step));
            let mut r = poisoned();
            reference::residual(&discrete, &State { u: &u, rate: &rate, ..state }, &mut r).unwrap();
            r
        };
        const STEP: f64 = 1e-6;
        let differences: Vec<f64> = moved(STEP).iter().zip(moved(-STEP)).map(|(a, b)| (a - b) / (2.0 * STEP)).collect();
        near(&y, &differences, 1e-4, "product and differences")?;

        let widest = SimdLevel::available().into_iter().next_back().unwrap_or(SimdLevel::Scalar);
        let mut bits: Option<Vec<u64>> = None;
        for (threads, simd) in [(1, SimdLevel::Scalar), (1, widest), (2, widest), (3, widest)] {
            let cpu = Cpu::with_simd(threads, simd).unwrap();
            let operator = CpuOperator::new(discrete, &cpu).unwrap();
            let mut found = poisoned();
            operator.residual(&state, &mut found).unwrap();
            near(&found, &r, 1e-12, "residual")?;
            let mut found = poisoned();
            operator.diagonal(&state, &mut found).unwrap();
            near(&found, &diagonal, 1e-12, "diagonal")?;
            let mut found = poisoned();
            operator.apply(&state, &direction, &mut found).unwrap();
            near(&found, &y, 1e-12, "product")?;
            if simd == widest {
                let found: Vec<u64> = found.iter().map(|value| value.to_bits()).collect();
                prop_assert!(bits.get_or_insert(found.clone()) == &found, "the bits depend on the number of threads");
            }
            let pattern = operator.pattern(&LinearConstraints::none(n)).unwrap();
            let matrix = operator.assemble(&state, pattern).unwrap();
            let product: Vec<f64> = (0..n)
                .map(|row| matrix.row(row).map(|(column, entry)| entry * direction[column]).sum())
                .collect();
            near(&product, &y, 1e-12, "matrix")?;
        }
    }

    #[test]
    fn refills_at_kept_places_have_the_same_bits(
        (_, text) in equation(),
        kind in proptest::sample::select(KINDS.to_vec()),
        threads in 1usize..=3,
        seed in any::<u64>(),
    ) {
        let mesh = mesh(kind, [3, 2, 2], None);
        let boundary = boundary_facets(&mesh);
        let form = form_of(&text, mesh.dimension(), coefficient(0), &[0]);
        let space = Space::new(&mesh, 1).unwrap();
        let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
        let n = discrete.n_unknowns();
        let relation = |dof| LinearRelation { dof: dof as u32, terms: Vec::new(), constant: 1.0 };
        let relations: Vec<LinearRelation> = (0..n).filter(|dof| dof % 5 == 1).map(relation).collect();
        let operator = CpuOperator::new(discrete, &Cpu::new(threads).unwrap()).unwrap();
        let mut pattern = operator.pattern(&LinearConstraints::new(n, &relations).unwrap()).unwrap();
        let u = numbers(n, seed);
        let state = State { u: &u, rate: &u, ..State::default() };
        let refill = |pattern: &Pattern| {
            let mut values = vec![f64::NAN; pattern.n_nonzeros()];
            operator.refill(&state, pattern, &mut values).unwrap();
            values.into_iter().map(f64::to_bits).collect::<Vec<u64>>()
        };
        let searched = refill(&pattern);
        operator.keep_places(&mut pattern);
        prop_assert!(refill(&pattern) == searched);
    }

    #[test]
    fn constrained_matrices_are_those_of_the_unconstrained_unknowns(
        (_, text) in equation(),
        kind in proptest::sample::select(KINDS.to_vec()),
        degree in 1usize..=2,
        seed in any::<u64>(),
    ) {
        let mesh = mesh(kind, [2, 2, 1], None);
        let boundary = boundary_facets(&mesh);
        let form = form_of(&text, mesh.dimension(), coefficient(0), &[0]);
        let space = Space::new(&mesh, degree).unwrap();
        let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
        let n = discrete.n_unknowns();
        // Every fifth unknown has a value, every seventh is a sum of others.
        let relation = |dof: usize| {
            let terms = if dof % 7 == 3 { vec![(dof as u32 / 2, 0.5), ((dof as u32 + 1) % n as u32, -2.0)] } else { vec![] };
            LinearRelation { dof: dof as u32, terms, constant: dof as f64 }
        };
        let relations: Vec<LinearRelation> = (0..n).filter(|dof| dof % 5 == 1 || dof % 7 == 3).map(relation).collect();
        let Ok(constraints) = LinearConstraints::new(n, &relations) else { return Ok(()) };
        let u = numbers(n, seed);
        let state = State { u: &u, rate: &u, ..State::default() };
        let operator = CpuOperator::new(discrete, &Cpu::new(2).unwrap()).unwrap();
        let matrix = operator.assemble(&state, operator.pattern(&constraints).unwrap()).unwrap();
        let mut w = numbers(n, !seed);
        constraints.dofs().iter().for_each(|&dof| w[dof as usize] = 0.0);
        let found: Vec<f64> =
            (0..n).map(|row| matrix.row(row).map(|(column, entry)| entry * w[column]).sum()).collect();
        let mut distributed = w.clone();
        constraints.distribute(&mut distributed);
        let mut expected = vec![f64::NAN; n];
        reference::apply(&discrete, &state, &distributed, &mut expected).unwrap();
        constraints.distribute_transpose(&mut expected);
        near(&found, &expected, 1e-12, "constrained matrix")?;
        for &dof in constraints.dofs() {
            prop_assert_eq!(matrix.row(dof as usize).collect::<Vec<_>>(), [(dof as usize, 1.0)]);
        }
    }
}

#[test]
fn derivatives_by_a_cell_field_agree() {
    let text = r#"
        unknown = { u = { components = 2 } }
        coefficients = { k = { shape = "vector" }, c = { default = 3 } }
        cells = { energy = "exp(k[0]*u[1])*x + c*u.u", flux = "k[1]^2*u[0]*grad(u)", source = "c*k*t" }
        boundary = { out = { flux = "-k[0]*u.normal*u" } }
    "#;
    let equation = Equation::from_toml("test", text).unwrap();
    for kind in [CellKind::Triangle, CellKind::Quadrilateral] {
        let mesh = mesh(kind, [3, 2, 1], Some(DeformConfig { amplitude: 0.05, order: 1 }));
        let boundary = boundary_facets(&mesh);
        let facets: Vec<u32> = (0..boundary.len() as u32).step_by(2).collect();
        let space = Space::new(&mesh, 2).unwrap();
        let values = numbers(2 * mesh.n_cells(), 5);
        let form = |values: &[f64]| {
            let field = Field { n_components: 2, values: values.to_vec() };
            let builder = equation.form(2).parameter("k", field).unwrap();
            builder.on_boundary("out", &facets, &[]).unwrap().build().unwrap()
        };
        let own = form(&values);
        let discrete = DiscreteForm::new(&space, &own, &boundary).unwrap();
        let (u, test) = (numbers(discrete.n_unknowns(), 1), numbers(discrete.n_unknowns(), 2));
        let state = State { time: 0.4, ..State::of(&u) };
        for of in [Differentiated::Residual(&test), Differentiated::Energy] {
            let found = reference::by_parameter(&discrete, &state, of).unwrap();
            assert_eq!(found.len(), values.len());
            let at = |place: usize, step: f64| {
                let mut values = values.clone();
                values[place] += step;
                let form = form(&values);
                let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
                if let Differentiated::Energy = of {
                    return reference::energy(&discrete, &state).unwrap();
                }
                let mut r = vec![f64::NAN; u.len()];
                reference::residual(&discrete, &state, &mut r).unwrap();
                r.iter().zip(&test).map(|(r, v)| r * v).sum()
            };
            let difference = |place| (at(place, 1e-5) - at(place, -1e-5)) / 2e-5;
            let expected: Vec<f64> = (0..values.len()).map(difference).collect();
            near(&found, &expected, 1e-7, "derivatives and differences").unwrap();
            for threads in [1, 3] {
                let operator = CpuOperator::new(discrete, &Cpu::new(threads).unwrap()).unwrap();
                near(&operator.by_parameter(&state, of).unwrap(), &found, 1e-13, "derivatives").unwrap();
            }
        }
    }
}

#[test]
fn products_of_linear_diffusion_follow_time_and_shift() {
    let text = r#"
        unknown = { u = {} }
        coefficients = { c = {} }
        define = "D = [[2 + t, 0.5, -0.25], [0.5, 1 + y, t], [-0.25, t, 3]]"
        cells = { flux = "D*grad(u)", source = "-t*u", capacity = "c" }
    "#;
    let equation = Equation::from_toml("diffusion", text).unwrap();
    let form = equation.form(3).with("c", 0.75).unwrap().build().unwrap();
    let mesh = mesh(CellKind::Hexahedron, [3, 2, 2], Some(DeformConfig { amplitude: 0.05, order: 2 }));
    let boundary = boundary_facets(&mesh);
    for degree in 1..=3 {
        let space = Space::new(&mesh, degree).unwrap();
        let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
        let n = discrete.n_unknowns();
        let direction = numbers(n, 5);
        for simd in SimdLevel::available() {
            let cpu = Cpu::with_simd(2, simd).unwrap();
            let operator = CpuOperator::new(discrete, &cpu).unwrap();
            for (time, shift) in [(0.0, 1.0), (0.0, 1.0), (0.5, 1.0), (0.5, 0.0)] {
                let state = State { time, shift, ..State::default() };
                let (mut found, mut expected) = (vec![f64::NAN; n], vec![f64::NAN; n]);
                operator.apply(&state, &direction, &mut found).unwrap();
                reference::apply(&discrete, &state, &direction, &mut expected).unwrap();
                near(&found, &expected, 1e-12, &format!("degree {degree}, {simd:?}, time {time}")).unwrap();
            }
        }
    }
}

#[test]
fn places_of_another_operator_are_refused() {
    let equation =
        Equation::from_toml("own", "unknown = { u = {} }\ncells = { flux = \"grad(u)\" }").unwrap();
    let form = equation.form(2).build().unwrap();
    // The same unknowns, but two cells in place of one.
    let meshes = [CellKind::Quadrilateral, CellKind::Triangle].map(|kind| mesh(kind, [3, 2, 1], None));
    let boundaries = meshes.each_ref().map(boundary_facets);
    let spaces = meshes.each_ref().map(|mesh| Space::new(mesh, 1).unwrap());
    let cpu = Cpu::new(1).unwrap();
    let [own, other] = [0, 1].map(|i| {
        CpuOperator::new(DiscreteForm::new(&spaces[i], &form, &boundaries[i]).unwrap(), &cpu).unwrap()
    });
    let n = own.discrete().n_unknowns();
    assert_eq!(n, other.discrete().n_unknowns());
    let mut pattern = own.pattern(&LinearConstraints::none(n)).unwrap();
    own.keep_places(&mut pattern);
    let mut values = vec![0.0; pattern.n_nonzeros()];
    own.refill(&State::default(), &pattern, &mut values).unwrap();
    let error = other.refill(&State::default(), &pattern, &mut values).unwrap_err();
    let expected = OperatorError::Length { field: "places of the pattern", found: 6 * 16, expected: 12 * 9 };
    assert_eq!(error.to_string(), expected.to_string());
}

//! Metric evaluations: each gives the same products, and refuses cells it does not fit.

use femtile_device::cpu::SimdLevel;
use femtile_device::cpu::vector::Lanes;
use femtile_device::{Buffer, Cpu};
use femtile_expression::Expression;
use femtile_linalg::LinearOperator;
use femtile_mesh::generate::{DeformConfig, deform};
use femtile_mesh::{Field, Mesh};
use femtile_space::{SpaceError, TensorSpace};
use femtile_sum_factorization::SumFactorization;

use super::super::*;
use super::{bend, cubes, deformed, product, values};
use crate::cpu::tests::test_meshes::{ring, squares};
use crate::{CellRule, MetricEvaluation, Terms};
use femtile_fem::FemError;
use femtile_fem::forms::Coefficient;

const RULES: [CellRule; 4] = [
    CellRule::Gauss { extra: 0 },
    CellRule::GaussLobatto,
    CellRule::Gauss { extra: 1 },
    CellRule::Gauss { extra: 2 },
];

/// Bent cells whose maps have a given order.
fn curved(cells: [usize; 3], order: usize) -> Mesh {
    let mut mesh = deformed(cubes(cells), bend);
    // Trilinear cells with points of this order, which are then moved.
    deform(&mut mesh, &DeformConfig { amplitude: 0.0, order }).unwrap();
    if let Some(curved) = &mut mesh.curved {
        curved.points.iter_mut().for_each(|p| *p = [p[0], p[1] + 0.05 * (3.0 * p[0]).sin() * p[2], p[2]]);
    }
    mesh
}

/// Returns products on some threads at a SIMD level.
fn products<T: SumFactorization + Lanes>(
    cpu: &Cpu,
    space: &TensorSpace<'_>,
    terms: Terms<'_>,
    config: MatrixFreeConfig<'_>,
    x: &[f64],
) -> (MatrixFree<T>, Vec<f64>) {
    let a = MatrixFree::<T>::new(cpu, space, terms, config).unwrap();
    let from = Buffer::from_vec(cpu, x.iter().map(|&x| T::from_f64(x)).collect()).unwrap();
    let mut y = Buffer::from_vec(cpu, vec![T::from_f64(f64::NAN); x.len()]).unwrap();
    a.apply(&mut y, &from).unwrap();
    let y = y.as_slice().iter().map(|y| y.to_f64()).collect();
    (a, y)
}

fn check_close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    let size = expected.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (found - expected).abs() / size;
        assert!(error <= tolerance, "{what}: entry {i} off by {error:e}");
    }
}

/// Compares metric evaluations with stored metrics and, in low degrees, with dense quadrature.
fn check<T: SumFactorization + Lanes>(
    mesh: &Mesh,
    degree: usize,
    terms: Terms<'_>,
    rule: CellRule,
    ways: &[MetricEvaluation],
    tolerance: f64,
) {
    let space = TensorSpace::new(mesh, degree).unwrap();
    let x = values(space.n_dofs());
    let components = 3;
    let interleaved: Vec<f64> =
        x.iter().flat_map(|x| (0..components).map(move |c| x * (c + 1) as f64)).collect();
    for level in SimdLevel::available() {
        let cpu = Cpu::with_simd(1, level).unwrap();
        let config = |metric, components| MatrixFreeConfig {
            rule,
            metric: Some(metric),
            components,
            ..MatrixFreeConfig::default()
        };
        let (stored, expected) = products::<T>(&cpu, &space, terms, config(MetricEvaluation::Stored, 1), &x);
        assert_eq!(stored.metric_evaluations(), [(MetricEvaluation::Stored, mesh.n_cells())]);
        if degree <= 4 {
            check_close(&expected, &product(&space, terms, rule, &x), tolerance, "stored");
        }
        let diagonal: Vec<f64> = stored.diagonal().iter().map(|d| d.to_f64()).collect();
        for &way in ways {
            let what = format!("{way:?}, degree {degree}, {rule:?}, {cpu:?}");
            let (a, found) = products::<T>(&cpu, &space, terms, config(way, 1), &x);
            check_close(&found, &expected, tolerance, &what);
            let of_way: Vec<f64> = a.diagonal().iter().map(|d| d.to_f64()).collect();
            check_close(&of_way, &diagonal, tolerance, &what);
            let (_, of_three) = products::<T>(&cpu, &space, terms, config(way, components), &interleaved);
            for c in 0..components {
                let component: Vec<f64> = of_three.iter().skip(c).step_by(components).copied().collect();
                let times: Vec<f64> = expected.iter().map(|y| y * (c + 1) as f64).collect();
                check_close(&component, &times, tolerance, &what);
            }
        }
    }
}

const COMPUTED: [MetricEvaluation; 1] = [MetricEvaluation::Computed];

#[test]
fn computed_metrics_are_the_stored_ones() {
    let (one, two) = (Coefficient::Constant(1.0), Coefficient::Constant(2.0));
    let tensor = Coefficient::Tensor([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]]);
    let of_cells = |n: usize| {
        let values = (0..n).map(|cell| 1.0 + 0.3 * cell as f64).collect();
        Coefficient::CellField(Field { n_components: 1, values })
    };
    for degree in 1..=8 {
        for (at, rule) in RULES.into_iter().enumerate() {
            let order = 1 + (degree + at) % 4;
            let mesh = curved(if degree < 4 { [3, 2, 2] } else { [2, 1, 1] }, order);
            let by_cell = of_cells(mesh.n_cells());
            let terms = [
                Terms { sigma: Some(&one), lambda: None },
                Terms { sigma: Some(&by_cell), lambda: Some(&two) },
                Terms { sigma: Some(&tensor), lambda: Some(&by_cell) },
                Terms { sigma: None, lambda: Some(&by_cell) },
            ];
            let terms = terms[(degree + at / 2) % 4];
            check::<f64>(&mesh, degree, terms, rule, &COMPUTED, 1e-12);
            check::<f32>(&mesh, degree, terms, rule, &COMPUTED, 1e-5);
        }
    }
}

#[test]
fn maps_of_high_order_and_mirrored_cells_are_served() {
    let two = Coefficient::Constant(2.0);
    let terms = Terms { sigma: Some(&two), lambda: Some(&two) };
    for (order, degree) in [(6, 2), (9, 3), (5, 9)] {
        check::<f64>(&curved([1, 2, 1], order), degree, terms, CellRule::default(), &COMPUTED, 1e-12);
    }
    for quarters in 0..3 {
        check::<f64>(&ring(9, quarters), 3, terms, CellRule::GaussLobatto, &COMPUTED, 1e-12);
    }
    check::<f64>(
        &cubes([2, 3, 2]),
        3,
        terms,
        CellRule::default(),
        &[MetricEvaluation::Constant, MetricEvaluation::Computed],
        1e-12,
    );
}

#[test]
fn cells_of_one_mesh_are_treated_as_each_needs_it() {
    // Constant below, straight in the middle, of order 3 above.
    let mut mesh = deformed(cubes([4, 4, 6]), |[x, y, z]| {
        let lift = (z - 0.5).max(0.0);
        [x + 0.2 * lift * y, y, z + 0.1 * lift * x]
    });
    deform(&mut mesh, &DeformConfig { amplitude: 0.0, order: 3 }).unwrap();
    for point in &mut mesh.curved.as_mut().unwrap().points {
        point[0] += 0.1 * (point[2] - 1.25).max(0.0).powi(3);
    }
    let one = Coefficient::Constant(1.0);
    let terms = Terms { sigma: Some(&one), lambda: None };
    let space = TensorSpace::new(&mesh, 4).unwrap();
    let x = values(space.n_dofs());
    let config = |metric| MatrixFreeConfig { metric, ..MatrixFreeConfig::default() };
    for level in SimdLevel::available() {
        let mut first: Option<Vec<f64>> = None;
        for threads in [1, 2] {
            let cpu = Cpu::with_simd(threads, level).unwrap();
            let (a, found) = products::<f64>(&cpu, &space, terms, config(None), &x);
            let ways = a.metric_evaluations();
            assert_eq!(ways.iter().map(|(_, n_cells)| n_cells).sum::<usize>(), mesh.n_cells());
            assert!(ways.iter().any(|(way, _)| *way == MetricEvaluation::Constant), "{ways:?}");
            let is_wide = femtile_sum_factorization::lanes::<f64>(&cpu) == 8;
            assert_eq!(ways.iter().any(|(way, _)| *way == MetricEvaluation::Computed), is_wide, "{ways:?}");
            let (_, expected) =
                products::<f64>(&cpu, &space, terms, config(Some(MetricEvaluation::Stored)), &x);
            check_close(&found, &expected, 1e-12, "mixed");
            assert!(*first.get_or_insert_with(|| found.clone()) == found, "bits differ");
        }
    }
}

#[test]
fn numbers_of_a_computed_metric_are_those_of_its_cells() {
    let one = Coefficient::Constant(1.0);
    let terms = Terms { sigma: Some(&one), lambda: None };
    let cpu = Cpu::new(1).unwrap();
    let bytes = |mesh: &Mesh, metric| {
        let space = TensorSpace::new(mesh, 5).unwrap();
        let config = MatrixFreeConfig { metric: Some(metric), ..MatrixFreeConfig::default() };
        MatrixFree::<f64>::new(&cpu, &space, terms, config).unwrap().bytes()
    };
    let n_lanes = femtile_sum_factorization::lanes::<f64>(&cpu);
    let n_places = 8 * 27_usize.next_multiple_of(n_lanes);
    // Straight cells of a curved mesh have the map of straight ones.
    let mut straight = deformed(cubes([3, 3, 3]), bend);
    deform(&mut straight, &DeformConfig { amplitude: 0.0, order: 3 }).unwrap();
    for (mesh, numbers) in [
        (deformed(cubes([3, 3, 3]), bend), 24 + 1),
        (straight, 24 + 1),
        (curved([3, 3, 3], 2), 81 + 1),
        (curved([3, 3, 3], 3), 192 + 1),
    ] {
        let [computed, stored] =
            [MetricEvaluation::Computed, MetricEvaluation::Stored].map(|metric| bytes(&mesh, metric));
        assert_eq!(computed + n_places * 6 * 216, stored + n_places * numbers);
    }
}

#[test]
fn cells_that_a_metric_does_not_fit_are_named_with_advice() {
    let (one, varying) =
        (Coefficient::Constant(1.0), Coefficient::from(Expression::parse("1 + x*x").unwrap()));
    let refused = |mesh: &Mesh, sigma: &Coefficient, metric| {
        let space = TensorSpace::new(mesh, 2).unwrap();
        let config = MatrixFreeConfig { metric: Some(metric), ..MatrixFreeConfig::default() };
        let terms = Terms { sigma: Some(sigma), lambda: None };
        MatrixFree::<f64>::new(&Cpu::new(1).unwrap(), &space, terms, config).unwrap_err()
    };
    // Cells from the fourth on are bent.
    let partly = deformed(cubes([4, 1, 3]), |[x, y, z]| [x + 0.1 * y * (z - 0.5).max(0.0).powi(3), y, z]);
    let error = refused(&partly, &one, MetricEvaluation::Constant);
    assert_eq!(error.cell(), Some(4));
    let said = error.to_string();
    assert!(said.contains("metric constant does not fit cell 4"), "{said}");
    assert!(said.contains("take computed"), "{said}");
    let said = refused(&cubes([1, 1, 2]), &varying, MetricEvaluation::Computed).to_string();
    assert!(said.contains("coefficients vary inside it; take stored"), "{said}");
    let said = refused(&squares(2, 2), &one, MetricEvaluation::Computed).to_string();
    assert!(said.contains("it is for hexahedra only; take stored"), "{said}");
    let folded = deformed(cubes([2, 1, 1]), |[x, y, z]| [x - 1.2 * x * y, y, z]);
    for metric in [MetricEvaluation::Computed, MetricEvaluation::Stored] {
        assert!(matches!(refused(&folded, &one, metric), FemError::Space(SpaceError::Inverted { .. })));
    }
}

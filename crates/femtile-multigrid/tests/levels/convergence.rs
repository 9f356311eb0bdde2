use std::f64::consts::PI;

use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::comm::SingleRank;
use femtile_linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile_multigrid::{
    BoxGrid, BoxKernels, BoxOperator, GeometricMultigrid, Multigrid, MultigridConfig, Smoother,
};

const SMOOTHERS: [Smoother; 2] = [Smoother::VertexPatch, Smoother::Chebyshev];

fn wave([x, y, z]: [f64; 3]) -> f64 {
    (PI * x).sin() * (PI * y).sin() * if z == 0.0 { 1.0 } else { (PI * z).sin() }
}

/// Returns the error of a sine on the unit square or cube with `n_levels` levels.
fn error<T: Scalar>(dimension: usize, degree: usize, n_levels: usize) -> f64
where
    Cpu: BoxKernels<T>,
{
    let coarse = BoxGrid::unit(dimension, degree, 2).unwrap();
    let cpu = Cpu::new(0).unwrap();
    let multigrid = Multigrid::<T>::new(&cpu, &coarse, n_levels, MultigridConfig::default()).unwrap();
    let b = multigrid.grid().load(|at| dimension as f64 * PI * PI * wave(at));
    let b = Buffer::from_vec(&cpu, b).unwrap();
    let mut u = Buffer::from_vec(&cpu, vec![f64::NAN; b.len()]).unwrap();
    let outcome = multigrid.solve_full(&mut u, &b, 1e-11, 30).unwrap();
    assert!(outcome.is_converged, "{outcome:?}");
    multigrid.grid().error_l2(u.as_slice(), wave, degree + 3)
}

#[test]
fn errors_fall_with_the_order_of_the_elements() {
    for (dimension, degree, n_levels) in
        [(2, 1, 5), (2, 2, 4), (2, 3, 4), (2, 5, 3), (3, 1, 4), (3, 2, 3), (3, 3, 3)]
    {
        let [coarse, fine] = [n_levels - 1, n_levels].map(|levels| error::<f64>(dimension, degree, levels));
        let order = (coarse / fine).log2();
        assert!(order > degree as f64 + 0.8, "dimension {dimension}, degree {degree}: order {order}");
        let single = error::<f32>(dimension, degree, n_levels);
        assert!(
            (single / fine - 1.0).abs() < 1e-5,
            "dimension {dimension}, degree {degree}: {single}, {fine}"
        );
    }
}

/// Free sides: none, or pairs of opposite sides.
const FREE: [[[bool; 2]; 3]; 3] = [
    [[true, false], [false, true], [false; 2]],
    [[true; 2], [false; 2], [true, false]],
    [[true; 2], [true, false], [true; 2]],
];

#[test]
fn errors_fall_with_the_order_of_the_elements_where_sides_are_free() {
    for ((dimension, degree, n_levels), free) in
        [(2, 1, 5), (2, 3, 4), (3, 1, 4), (3, 2, 3)].into_iter().flat_map(|of| FREE.map(|free| (of, free)))
    {
        // A quarter wave between different ends, half a wave between equal ones.
        let factor = move |axis: usize, x: f64| match free[axis] {
            [false, false] => (PI * x).sin(),
            [true, false] => (0.5 * PI * x).cos(),
            [false, true] => (0.5 * PI * x).sin(),
            [true, true] => (PI * x).cos(),
        };
        let square = |axis: usize| if free[axis][0] == free[axis][1] { PI * PI } else { 0.25 * PI * PI };
        let wave = |at: [f64; 3]| (0..dimension).map(|axis| factor(axis, at[axis])).product::<f64>();
        let energy: f64 = (0..dimension).map(square).sum();
        let error = |n_levels: usize| {
            let coarse = BoxGrid::unit(dimension, degree, 2).unwrap().with_free_sides(free).unwrap();
            let cpu = Cpu::new(0).unwrap();
            let multigrid =
                Multigrid::<f64>::new(&cpu, &coarse, n_levels, MultigridConfig::default()).unwrap();
            let b = Buffer::from_vec(&cpu, multigrid.grid().load(|at| energy * wave(at))).unwrap();
            let product = multigrid.grid().load_of_product(factor);
            let off =
                product.iter().zip(b.as_slice()).map(|(p, b)| (energy * p - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-14, "{off}");
            let mut u = Buffer::from_vec(&cpu, vec![f64::NAN; b.len()]).unwrap();
            let outcome = multigrid.solve_full(&mut u, &b, 1e-11, 30).unwrap();
            assert!(outcome.is_converged, "{outcome:?}");
            multigrid.grid().error_l2(u.as_slice(), wave, degree + 3)
        };
        let order = (error(n_levels - 1) / error(n_levels)).log2();
        assert!(order > degree as f64 + 0.8, "{dimension}, {degree}, {free:?}: order {order}");
    }
}

#[test]
fn free_sides_take_as_many_iterations() {
    for (dimension, degree, n_levels) in [(2, 1, 5), (2, 2, 4), (2, 4, 4), (3, 1, 4), (3, 2, 3), (3, 3, 3)] {
        for smoother in SMOOTHERS {
            let closed = BoxGrid::unit(dimension, degree, 2).unwrap();
            let expected = preconditioned::<f64>(&closed, n_levels, smoother).0;
            for free in FREE {
                let grid = closed.clone().with_free_sides(free).unwrap();
                let found = preconditioned::<f64>(&grid, n_levels, smoother).0;
                let single = preconditioned::<f32>(&grid, n_levels, smoother).0;
                assert!(found <= expected + 1, "{dimension} {degree} {smoother:?}: {found}, {expected}");
                assert!(single <= found + 1, "{dimension} {degree} {smoother:?}: {single}, {found}");
            }
        }
    }
}

/// Returns iterations of conjugate gradients with a cycle in the precision `T`, and the solution.
fn preconditioned<T: Scalar>(coarse: &BoxGrid, n_levels: usize, smoother: Smoother) -> (usize, Vec<f64>)
where
    Cpu: BoxKernels<T>,
{
    let cpu = Cpu::new(0).unwrap();
    iterations(&GeometricMultigrid::<T>::with_smoother(&cpu, coarse, n_levels, smoother).unwrap())
}

/// As [`preconditioned`], with a given cycle.
fn iterations<T: Scalar>(cycle: &GeometricMultigrid<T>) -> (usize, Vec<f64>)
where
    Cpu: BoxKernels<T>,
{
    let (cpu, grid) = (cycle.multigrid().device(), cycle.multigrid().grid());
    let b = Buffer::from_vec(cpu, grid.load(|[x, y, z]| 1.0 + x - y * y + z)).unwrap();
    let mut x = Buffer::zeros(cpu, b.len()).unwrap();
    let method = ConjugateGradient::new(KrylovConfig { tolerance: 1e-10, ..KrylovConfig::default() });
    let outcome =
        method.solve(&mut x, &BoxOperator::new(cpu, grid), cycle, &b, &SingleRank, &mut ()).unwrap();
    assert!(outcome.true_relative_residual < 2e-10, "{outcome:?}");
    (outcome.iterations, x.to_host().unwrap())
}

/// Returns iterations on a box with `cells` cells per axis and these width ratios, with semicoarsening.
fn below(degree: usize, cells: usize, widths: &[f64], smoother: Smoother) -> usize {
    let widths: Vec<_> = widths.iter().map(|width| vec![width / cells as f64; cells]).collect();
    let grid = BoxGrid::new(degree, &widths).unwrap();
    let cycle = GeometricMultigrid::<f64>::from_finest(&Cpu::new(0).unwrap(), &grid, smoother);
    iterations(&cycle.unwrap()).0
}

#[test]
fn stretched_cells_take_at_most_twice_the_iterations() {
    let stretched: [&[f64]; 5] =
        [&[1.0, 100.0], &[100.0, 1.0], &[1.0, 1.0, 100.0], &[100.0, 1.0, 1.0], &[10.0, 1.0, 100.0]];
    for degree in 1..=3 {
        for widths in stretched {
            let cells = if widths.len() == 2 { 32 } else { 8 };
            for smoother in SMOOTHERS {
                let of = |of: &[f64]| below(degree, cells, of, smoother);
                let (expected, found) = (of(&vec![1.0; widths.len()]), of(widths));
                assert!(found <= 2 * expected, "{smoother:?} {degree}, {widths:?}: {found}, {expected}");
            }
        }
    }
    // One axis with many cells, the others as coarse as on the coarsest grid.
    assert!(below(2, 4, &[1.0, 1.0, 4.0], Smoother::VertexPatch) <= 8);
}

#[test]
fn thin_boxes_held_on_one_side_take_few_iterations() {
    let held = |all: bool| [[false, !all], [!all; 2], [!all; 2]];
    let cases: [(&[usize], &[f64]); 5] = [
        (&[16, 16, 2], &[1.0, 1.0, 0.02]),
        (&[8, 8, 3], &[1.0, 1.0, 0.03]),
        (&[32, 2, 2], &[16.0, 1.0, 1.0]),
        (&[16, 2, 2], &[30.0, 1.0, 1.0]),
        (&[32, 1], &[32.0, 1.0]),
    ];
    for (cells, lengths) in cases {
        for degree in 1..=3 {
            let widths = cells.iter().zip(lengths).map(|(&n, length)| vec![length / n as f64; n]);
            let widths: Vec<_> = widths.collect();
            for free in [held(false), held(true)] {
                if degree == 1 && cells.contains(&1) && free == held(true) {
                    continue;
                }
                let grid = BoxGrid::new(degree, &widths).unwrap().with_free_sides(free).unwrap();
                let cycle =
                    GeometricMultigrid::<f32>::from_finest(&Cpu::new(1).unwrap(), &grid, Smoother::Auto);
                let found = iterations(&cycle.unwrap()).0;
                assert!(found <= 12, "{cells:?}, degree {degree}, {free:?}: {found}");
            }
        }
    }
}

#[test]
fn levels_join_narrow_cells_until_they_are_as_wide() {
    let grid = BoxGrid::new(2, &[vec![1.0 / 16.0; 16], vec![0.5 / 32.0; 32], vec![1.0; 2]]).unwrap();
    let cycle =
        Multigrid::<f32>::from_finest(&Cpu::new(1).unwrap(), &grid, MultigridConfig::default()).unwrap();
    let cells = |grid: &BoxGrid| [0, 1, 2].map(|axis| grid.widths(axis).len());
    let expected = [[2, 2, 2], [4, 2, 2], [8, 4, 2], [16, 8, 2], [16, 16, 2], [16, 32, 2]];
    assert_eq!(cycle.grids().map(cells).collect::<Vec<_>>(), expected);
}

#[test]
fn cycles_in_either_precision_precondition_alike() {
    for (dimension, degree, n_levels, most) in
        [(2, 1, 5, 9), (2, 4, 4, 6), (3, 1, 4, 9), (3, 3, 3, 6), (3, 4, 2, 6)]
    {
        let coarse = BoxGrid::unit(dimension, degree, 2).unwrap();
        let (double, expected) = preconditioned::<f64>(&coarse, n_levels, Smoother::VertexPatch);
        let (single, found) = preconditioned::<f32>(&coarse, n_levels, Smoother::VertexPatch);
        assert!(double <= most && single <= double + 1, "{dimension} {degree}: {double}, {single}");
        let size = expected.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-9 * size);
        }
    }
}

#[test]
fn iterations_do_not_grow_with_the_level() {
    for (dimension, degree, levels) in [(2, 2, [3, 6]), (2, 4, [2, 5]), (3, 2, [2, 4])] {
        let coarse = BoxGrid::unit(dimension, degree, 2).unwrap();
        for smoother in SMOOTHERS {
            let [few, many] = levels.map(|n_levels| preconditioned::<f64>(&coarse, n_levels, smoother).0);
            assert!(many <= few + 2, "{dimension} {degree} {smoother:?}: {few}, {many}");
        }
    }
}

#[test]
fn polynomials_take_at_most_two_iterations_more_than_patches() {
    for (dimension, degree, n_levels) in
        [(2, 1, 6), (2, 2, 5), (2, 3, 5), (2, 5, 4), (2, 7, 4), (3, 1, 4), (3, 2, 3), (3, 3, 3), (3, 5, 2)]
    {
        let coarse = BoxGrid::unit(dimension, degree, 2).unwrap();
        let [patches, polynomials] =
            SMOOTHERS.map(|smoother| preconditioned::<f64>(&coarse, n_levels, smoother).0);
        assert!(polynomials <= patches + 2, "{dimension} {degree}: {patches}, {polynomials}");
        let single = preconditioned::<f32>(&coarse, n_levels, Smoother::Chebyshev).0;
        assert!(single <= polynomials + 1, "{dimension} {degree}: {single}, {polynomials}");
    }
}

#[test]
fn full_multigrid_ends_where_nothing_but_rounding_is_left() {
    let cpu = Cpu::new(0).unwrap();
    let coarse = BoxGrid::unit(2, 4, 2).unwrap();
    let multigrid = Multigrid::<f64>::new(&cpu, &coarse, 5, MultigridConfig::default()).unwrap();
    let b = Buffer::from_vec(&cpu, multigrid.grid().load(|_| 1.0)).unwrap();
    let mut u = Buffer::zeros(&cpu, b.len()).unwrap();
    let outcome = multigrid.solve_full(&mut u, &b, 1e-30, 100).unwrap();
    assert!(!outcome.is_converged && outcome.cycles() < 12, "{outcome:?}");
    assert!(outcome.residuals.last().unwrap() < &1e-11);
}

//! Mapped cells with coefficients.

use std::f64::consts::PI;

use femtile_device::{Buffer, Cpu, Scalar};
use femtile_element::quadrature::gauss_legendre;
use femtile_element::tensor::Lagrange;
use femtile_linalg::comm::SingleRank;
use femtile_linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile_linalg::{LinearOperator, Preconditioner};
use femtile_multigrid::{
    BoxGrid, BoxKernels, BoxOperator, GeometricMultigrid, Multigrid, MultigridConfig, MultigridError,
    PostOrder, Smoother,
};

use crate::dense::{dot, inside, largest, on, random};
use crate::parts::{adds_up_what_patches_find, devices};

/// Returns a unit square or cube with `n` cells per axis, moved corners and a coefficient by place.
fn mapped(
    degree: usize,
    cells: &[usize],
    map: impl Fn([f64; 3]) -> [f64; 3],
    coefficient: impl Fn([usize; 3]) -> f64,
) -> BoxGrid {
    let n: [usize; 3] = std::array::from_fn(|axis| cells.get(axis).copied().unwrap_or(0));
    let places = |n: [usize; 3]| {
        let n = n.map(|n| n.max(1));
        (0..n[0] * n[1] * n[2]).map(move |i| [i % n[0], i / n[0] % n[1], i / (n[0] * n[1])])
    };
    let corner = |at: [usize; 3]| map([0, 1, 2].map(|axis| at[axis] as f64 / n[axis].max(1) as f64));
    let corners = places(n.map(|n| if n == 0 { 1 } else { n + 1 })).map(corner).collect();
    BoxGrid::mapped(degree, cells, corners, places(n).map(coefficient).collect()).unwrap()
}

/// A box bent in and out by up to 15 % of its sides.
fn bent(dimension: usize) -> impl Fn([f64; 3]) -> [f64; 3] {
    move |at| {
        let by: f64 = 0.15 * at[..dimension].iter().map(|t| (PI * t).sin()).product::<f64>();
        let [x, y, z] = at;
        [x + by, y - by, if dimension == 3 { z + by } else { 0.0 }]
    }
}

/// Bent everywhere, sides included.
fn wavy([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x + 0.1 * (3.0 * y + z).sin(), y + 0.08 * (4.0 * x).sin(), z + 0.05 * z * (5.0 * x + y).cos()]
}

/// Twisted by up to 45° along z; in two dimensions around the centre.
fn twisted([x, y, z]: [f64; 3]) -> [f64; 3] {
    let (x, y) = (x - 0.5, y - 0.5);
    let (sine, cosine) = (0.25 * PI * z + 0.8 * (x * x + y * y)).sin_cos();
    [cosine * x - sine * y, sine * x + cosine * y, z]
}

/// Returns the grid, and two with free sides.
fn with_free_sides(grid: &BoxGrid) -> [BoxGrid; 3] {
    let sides =
        [[[false; 2]; 3], [[true, false], [true; 2], [false, true]], [[false, true], [false; 2], [true; 2]]];
    sides.map(|free| grid.clone().with_free_sides(free).unwrap())
}

fn straight(at: [f64; 3]) -> [f64; 3] {
    at
}

fn one(_: [usize; 3]) -> f64 {
    1.0
}

/// A coefficient between 1 and 10⁴, by place.
fn rough([x, y, z]: [usize; 3]) -> f64 {
    10.0_f64.powf(2.0 + 2.0 * (12.9 * x as f64 + 78.2 * y as f64 + 37.7 * z as f64).sin())
}

/// Applies the operator by plain quadrature; x is zero at Dirichlet nodes.
fn product(
    (degree, cells): (usize, &[usize]),
    map: impl Fn([f64; 3]) -> [f64; 3],
    coefficient: impl Fn([usize; 3]) -> f64,
    (grid, x): (&BoxGrid, &[f64]),
) -> Vec<f64> {
    let (d, m, [n_x, n_y, _]) = (cells.len(), degree + 1, grid.nodes());
    let (points, weights) = gauss_legendre(m);
    let shapes = Lagrange::gauss_lobatto(degree);
    let (values, slopes) = (shapes.values(&points), shapes.slopes(&points));
    let split = |i: usize| [i % m, i / m % m, i / (m * m)];
    let mut y = vec![0.0; x.len()];
    for cell in 0..cells.iter().product() {
        let at = [cell % cells[0], cell / cells[0] % cells[1], cell / (cells[0] * cells[1])];
        let number = |node: usize| {
            let node = split(node);
            let along = [0, 1, 2].map(|axis| degree * at[axis] + node[axis]);
            (along[2] * n_y + along[1]) * n_x + along[0]
        };
        for q in (0..m.pow(d as u32)).map(split) {
            // Columns of J.
            let mut columns = [[0.0; 3], [0.0; 3], [0.0, 0.0, if d == 3 { 0.0 } else { 1.0 }]];
            for bits in 0..1 << d {
                let up = [0, 1, 2].map(|axis| bits >> axis & 1);
                let n = |axis: usize| cells.get(axis).copied().unwrap_or(1) as f64;
                let corner = map([0, 1, 2].map(|axis| (at[axis] + up[axis]) as f64 / n(axis)));
                for (a, column) in columns.iter_mut().enumerate().take(d) {
                    let factor = |axis: usize| match (axis == a, up[axis] == 1) {
                        (true, up) => [-1.0, 1.0][usize::from(up)],
                        (false, true) => points[q[axis]],
                        (false, false) => 1.0 - points[q[axis]],
                    };
                    let factor: f64 = (0..d).map(factor).product();
                    (0..d).for_each(|i| column[i] += factor * corner[i]);
                }
            }
            let minor = |i: usize, a: usize| {
                let [[p, q], [r, s]] =
                    [1, 2].map(|row| [1, 2].map(|column| columns[(a + column) % 3][(i + row) % 3]));
                p * s - q * r
            };
            let determinant: f64 = (0..3).map(|a| columns[a][0] * minor(0, a)).sum();
            let weight = (0..d).map(|axis| weights[q[axis]]).product::<f64>();
            let scale = coefficient(at) * weight * determinant;
            let gradient = |node: usize| {
                let node = split(node);
                let of_cell = [0, 1, 2].map(|a| {
                    let table = |axis: usize| if axis == a { &slopes } else { &values };
                    let factor = |axis: usize| table(axis).row(q[axis])[node[axis]];
                    if a < d { (0..d).map(factor).product() } else { 0.0 }
                });
                [0, 1, 2].map(|i| (0..3).map(|a| minor(i, a) / determinant * of_cell[a]).sum::<f64>())
            };
            let gradients: Vec<[f64; 3]> = (0..m.pow(d as u32)).map(gradient).collect();
            let mut flux = [0.0; 3];
            for (node, gradient) in gradients.iter().enumerate() {
                (0..3).for_each(|i| flux[i] += scale * gradient[i] * x[number(node)]);
            }
            for (node, gradient) in gradients.iter().enumerate() {
                y[number(node)] += dot(gradient, &flux);
            }
        }
    }
    let nodes = inside(grid);
    let mut inner = vec![0.0; y.len()];
    nodes.into_iter().for_each(|node| inner[node] = y[node]);
    inner
}

fn difference(a: &[f64], b: &[f64]) -> f64 {
    largest(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
}

#[test]
fn the_operator_is_that_of_plain_quadrature() {
    let shapes: [(usize, &[usize]); 7] = [
        (1, &[5, 4]),
        (3, &[2, 3]),
        (7, &[1, 2]),
        (1, &[3, 5, 2]),
        (2, &[2, 3, 2]),
        (4, &[1, 2, 1]),
        (9, &[1, 1, 1]),
    ];
    for (degree, cells) in shapes {
        for is_straight in [true, false] {
            let map = |at| if is_straight { straight(at) } else { wavy(at) };
            for (grid, cpu) in devices().flat_map(|cpu| {
                with_free_sides(&mapped(degree, cells, map, rough)).map(move |grid| (grid, cpu.clone()))
            }) {
                let x = random(&grid, 3);
                let ax = product((degree, cells), map, rough, (&grid, &x));
                let (n, size) = (grid.n_nodes(), largest(&ax));
                let a = BoxOperator::<f64>::new(&cpu, &grid);
                let mut y = Buffer::from_vec(&cpu, vec![f64::NAN; n]).unwrap();
                a.apply(&mut y, &on(&cpu, &x)).unwrap();
                assert!(difference(y.as_slice(), &ax) < 1e-12 * size, "degree {degree}, {cpu:?}");
                let single = BoxOperator::<f32>::new(&cpu, &grid);
                let mut y = Buffer::from_vec(&cpu, vec![f32::NAN; n]).unwrap();
                let narrow: Vec<f32> = x.iter().map(|x| *x as f32).collect();
                single.apply(&mut y, &on(&cpu, &narrow)).unwrap();
                let wide: Vec<f64> = y.as_slice().iter().map(|y| f64::from(*y)).collect();
                assert!(difference(&wide, &ax) < 1e-4 * size, "degree {degree}, {cpu:?}, f32");
            }
        }
    }
}

/// Applies one smoothing step on the refined grid.
fn smoothed(cpu: &Cpu, coarse: &BoxGrid, x: &[f64], b: &[f64]) -> Vec<f64> {
    let config = MultigridConfig { smoother: Smoother::VertexPatch, ..MultigridConfig::default() };
    let multigrid = Multigrid::<f64>::new(cpu, coarse, 2, config).unwrap();
    let mut x = on(cpu, x);
    multigrid.smooth(&mut x, &on(cpu, b), PostOrder::Same).unwrap();
    x.as_slice().to_vec()
}

#[test]
fn rectangles_with_coefficient_one_are_smoothed_as_without() {
    for (degree, cells) in [(3, &[2, 3][..]), (1, &[2, 2, 3]), (2, &[1, 2, 2])] {
        let of_one = mapped(degree, cells, straight, |_| 1.0);
        let fine = of_one.refined();
        let (x, b) = (random(&fine, 1), random(&fine, 2));
        let widths: Vec<Vec<f64>> = cells.iter().map(|&n| vec![1.0 / n as f64; n]).collect();
        let cpu = Cpu::new(1).unwrap();
        let expected = smoothed(&cpu, &BoxGrid::new(degree, &widths).unwrap(), &x, &b);
        assert_eq!(smoothed(&cpu, &of_one, &x, &b), expected);
    }
}

#[test]
fn a_step_does_not_depend_on_the_size_of_the_coefficient() {
    for (degree, cells) in [(3, &[2, 3][..]), (1, &[2, 2, 3]), (2, &[2, 2, 2])] {
        let [one, other] = [3.0, 3e4].map(|size| mapped(degree, cells, wavy, |at| size * rough(at)));
        let fine = one.refined();
        let (x, b) = (random(&fine, 1), random(&fine, 2));
        let scaled: Vec<f64> = b.iter().map(|b| b * 1e4).collect();
        for cpu in devices() {
            let (expected, found) = (smoothed(&cpu, &one, &x, &b), smoothed(&cpu, &other, &x, &scaled));
            assert!(difference(&found, &expected) < 1e-9 * largest(&expected), "{degree} {cpu:?}");
        }
    }
}

#[test]
fn patches_with_jumps_are_solved_exactly() {
    // Every patch of the fine grid has at least three different coefficients.
    let jumps = |[x, y, z]: [usize; 3]| [1.0, 1e4, 30.0][(x + 2 * y + z) % 3];
    for (degree, cells) in [(1, &[5, 4][..]), (3, &[3, 2]), (1, &[2, 3, 4]), (2, &[2, 2, 3])] {
        for is_straight in [true, false] {
            let map = |at| if is_straight { straight(at) } else { wavy(at) };
            // A coarser grid, so that the smoother is that of these cells.
            let doubled: Vec<usize> = cells.iter().map(|n| 2 * n).collect();
            let grid = mapped(degree, &doubled, map, jumps);
            if grid.n_nodes() > 1300 {
                continue;
            }
            let coarse = grid.coarsened().unwrap();
            assert_eq!(coarse.refined(), grid);
            for coarse in with_free_sides(&coarse) {
                adds_up_what_patches_find(&coarse.refined(), 1e-9);
            }
        }
    }
}

#[test]
fn a_cycle_on_cells_of_any_shape_is_symmetric_and_positive_and_has_the_same_bits_on_all_threads() {
    for (degree, cells) in [(1, &[3, 4][..]), (3, &[2, 2]), (1, &[2, 3, 2]), (2, &[2, 1, 2])] {
        let smoothers = [Smoother::VertexPatch, Smoother::Chebyshev];
        let grids = with_free_sides(&mapped(degree, cells, wavy, rough));
        for (coarse, smoother) in grids.into_iter().flat_map(|grid| smoothers.map(|own| (grid.clone(), own)))
        {
            let mut bits = None;
            for threads in [1, 2, 3] {
                let cpu = Cpu::new(threads).unwrap();
                let cycle = GeometricMultigrid::<f64>::with_smoother(&cpu, &coarse, 2, smoother).unwrap();
                let grid = cycle.multigrid().grid().clone();
                let (x, y) = (random(&grid, 8), random(&grid, 9));
                let apply = |r: &[f64]| {
                    let mut z = Buffer::from_vec(&cpu, vec![f64::NAN; r.len()]).unwrap();
                    cycle.apply(&mut z, &on(&cpu, r)).unwrap();
                    z.to_host().unwrap()
                };
                let (mx, my) = (apply(&x), apply(&y));
                let size = dot(&mx, &x).max(dot(&my, &y));
                assert!((dot(&mx, &y) - dot(&x, &my)).abs() < 1e-11 * size);
                assert!(dot(&mx, &x) > 0.0 && dot(&my, &y) > 0.0);
                assert_eq!(bits.get_or_insert_with(|| mx.clone()), &mx, "{threads} threads");
            }
        }
    }
}

/// Returns iterations of conjugate gradients with a cycle in the precision `T`.
fn iterations<T: Scalar>(coarse: &BoxGrid, n_levels: usize, smoother: Smoother) -> usize
where
    Cpu: BoxKernels<T>,
{
    let cpu = Cpu::new(0).unwrap();
    let cycle = GeometricMultigrid::<T>::with_smoother(&cpu, coarse, n_levels, smoother).unwrap();
    let grid = cycle.multigrid().grid();
    let operator = BoxOperator::<f64>::new(&cpu, grid);
    let b = Buffer::from_vec(&cpu, grid.load(|[x, y, z]| 1.0 + x - y * y + z)).unwrap();
    let mut x = Buffer::zeros(&cpu, b.len()).unwrap();
    let method = ConjugateGradient::new(KrylovConfig { tolerance: 1e-8, ..KrylovConfig::default() });
    let outcome = method.solve(&mut x, &operator, &cycle, &b, &SingleRank, &mut ()).unwrap();
    assert!(outcome.true_relative_residual < 2e-8, "{outcome:?}");
    outcome.iterations
}

/// Returns named grids with bounded iteration counts: bent, twisted, and with a coefficient of 10⁴ beyond a plane, within
/// an inclusion with corners, and in a checkerboard.
fn bounded(dimension: usize, degree: usize) -> [(&'static str, BoxGrid); 5] {
    let high = |is_high: bool| if is_high { 1e4 } else { 1.0 };
    let parts = |n: usize| vec![n; dimension];
    [
        ("bent", mapped(degree, &parts(2), bent(dimension), one)),
        ("turned", mapped(degree, &parts(2), twisted, one)),
        ("plane", mapped(degree, &parts(2), straight, |[x, ..]| high(x == 1))),
        (
            "inclusion",
            mapped(degree, &parts(3), straight, |at| high(at[..dimension].iter().all(|&at| at == 1))),
        ),
        ("checkerboard", mapped(degree, &parts(2), straight, |[x, y, z]| high((x + y + z) % 2 == 1))),
    ]
}

#[test]
fn iterations_are_bounded_by_those_of_cubes() {
    for (dimension, degree, n_levels) in
        [(2, 1, 5), (2, 2, 4), (2, 3, 4), (2, 4, 3), (3, 1, 4), (3, 2, 3), (3, 3, 2), (3, 4, 2)]
    {
        let cubes = BoxGrid::unit(dimension, degree, 2).unwrap();
        let expected = iterations::<f64>(&cubes, n_levels, Smoother::VertexPatch);
        for (name, grid) in bounded(dimension, degree) {
            for (smoother, most) in
                [(Smoother::VertexPatch, 3 * expected), (Smoother::Chebyshev, 2 * expected)]
            {
                let double = iterations::<f64>(&grid, n_levels, smoother);
                let single = iterations::<f32>(&grid, n_levels, smoother);
                assert!(
                    double <= most && single <= most,
                    "{smoother:?}, {name}, dimension {dimension}, degree {degree}: {double}, {single}, cubes {expected}"
                );
            }
        }
    }
}

#[test]
fn free_sides_of_any_shape_take_few_more_iterations() {
    for (dimension, degree, n_levels) in [(2, 1, 4), (2, 3, 3), (3, 1, 3), (3, 2, 2)] {
        for (name, grid) in bounded(dimension, degree) {
            for smoother in [Smoother::VertexPatch, Smoother::Chebyshev] {
                let [closed, one, other] =
                    with_free_sides(&grid).map(|grid| iterations::<f64>(&grid, n_levels, smoother));
                let found = one.max(other);
                let most = closed + if smoother == Smoother::VertexPatch { 3 } else { 2 };
                assert!(found <= most, "{name} {dimension} {degree} {smoother:?}: {found}, {closed}");
            }
        }
    }
}

#[test]
fn thin_boxes_of_any_shape_held_on_one_side_take_few_iterations() {
    let coefficient = |[x, y, _]: [usize; 3]| 1.0 + 0.1 * (x * y % 5) as f64;
    for (degree, cells, lengths) in [
        (1, [16, 16, 2], [1.0, 1.0, 0.01]),
        (2, [16, 8, 2], [1.0, 1.0, 0.01]),
        (1, [64, 2, 2], [64.0, 1.0, 1.0]),
    ] {
        let bend = |[x, y, z]: [f64; 3]| {
            let [a, b, c] = lengths;
            [a * x + 0.03 * (5.0 * y).sin(), b * y, c * (z + 0.1 * z * (1.0 - z) * (6.0 * x).sin())]
        };
        let grid = mapped(degree, &cells, bend, coefficient);
        let grid = grid.with_free_sides([[false, true], [true; 2], [true; 2]]).unwrap();
        for smoother in [Smoother::VertexPatch, Smoother::Auto] {
            let cpu = Cpu::new(2).unwrap();
            let cycle = GeometricMultigrid::<f32>::from_finest(&cpu, &grid, smoother).unwrap();
            let b = on(&cpu, &grid.load(|[x, y, z]| 1.0 + x - y + z));
            let mut x = on(&cpu, &vec![0.0; b.len()]);
            let method = ConjugateGradient::new(KrylovConfig { tolerance: 1e-9, ..KrylovConfig::default() });
            let operator = BoxOperator::<f64>::new(&cpu, &grid);
            let found = method.solve(&mut x, &operator, &cycle, &b, &SingleRank, &mut ()).unwrap().iterations;
            assert!(found <= 30, "{cells:?}, degree {degree}, {smoother:?}: {found}");
        }
    }
}

#[test]
fn iterations_on_cells_of_any_shape_do_not_grow_with_the_level() {
    for (dimension, degree, levels) in [(2, 1, [3, 5]), (2, 3, [2, 4]), (3, 1, [3, 4])] {
        for (name, grid) in bounded(dimension, degree) {
            for smoother in [Smoother::VertexPatch, Smoother::Chebyshev] {
                let [few, many] = levels.map(|n_levels| iterations::<f64>(&grid, n_levels, smoother));
                assert!(many <= few + 3, "{name} {dimension} {degree} {smoother:?}: {few}, {many}");
            }
        }
    }
}

#[test]
fn rough_coefficients_stay_ahead_of_none() {
    for cells in [&[4, 4][..], &[4, 3, 2]] {
        let grid = mapped(2, cells, wavy, rough);
        for smoother in [Smoother::VertexPatch, Smoother::Chebyshev] {
            let found = iterations::<f64>(&grid, 2, smoother);
            assert!(found < 40, "{smoother:?}: {found}");
        }
    }
}

#[test]
fn errors_on_bent_boxes_fall_with_the_order_of_the_elements() {
    for (dimension, degree, n_cells) in [(2, 1, 8), (2, 2, 8), (2, 4, 4), (3, 1, 8), (3, 2, 4), (3, 3, 4)] {
        let wave = |at: [f64; 3]| at[..dimension].iter().map(|x| (PI * x).sin()).product::<f64>();
        let error = |n: usize| {
            let mut grid = mapped(degree, &vec![n; dimension], bent(dimension), |_| 2.0);
            let mut n_levels = 1;
            while let Some(coarse) = grid.coarsened() {
                (grid, n_levels) = (coarse, n_levels + 1);
            }
            let cpu = Cpu::new(0).unwrap();
            let multigrid = Multigrid::<f64>::new(&cpu, &grid, n_levels, MultigridConfig::default()).unwrap();
            let f = |at| 2.0 * dimension as f64 * PI * PI * wave(at);
            let b = on(&cpu, &multigrid.grid().load(f));
            let mut u = Buffer::from_vec(&cpu, vec![f64::NAN; b.len()]).unwrap();
            assert!(multigrid.solve_full(&mut u, &b, 1e-9, 60).unwrap().is_converged);
            multigrid.grid().error_l2(u.as_slice(), wave, degree + 3)
        };
        let order = (error(n_cells) / error(2 * n_cells)).log2();
        assert!(order > degree as f64 + 0.75, "dimension {dimension}, degree {degree}: order {order}");
    }
}

#[test]
fn cells_that_cannot_be_are_named() {
    let corners = || (0..12).map(|i| [f64::from(i % 4), f64::from(i / 4), 0.0]).collect::<Vec<_>>();
    let refused = |corners, coefficients| BoxGrid::mapped(2, &[3, 2], corners, coefficients).unwrap_err();
    assert_eq!(
        refused(corners()[1..].to_vec(), vec![1.0; 6]),
        MultigridError::Entries { field: "corners", expected: 12, found: 11 }
    );
    assert_eq!(
        refused(corners(), vec![1.0; 7]),
        MultigridError::Entries { field: "coefficients", expected: 6, found: 7 }
    );
    for bad in [0.0, -1.0, f64::INFINITY] {
        let mut coefficients = vec![1.0; 6];
        coefficients[4] = bad;
        assert_eq!(
            refused(corners(), coefficients),
            MultigridError::Coefficient { cell: [1, 1, 0], coefficient: bad }
        );
    }
    let mut turned = corners();
    turned.swap(5, 6);
    assert!(matches!(refused(turned, vec![1.0; 6]), MultigridError::Inverted { cell: [1, 0, 0] }));
    assert_eq!(BoxGrid::mapped(2, &[3], corners(), vec![1.0; 3]).unwrap_err(), MultigridError::Dimension(1));
}

#[test]
fn a_coarsest_level_that_is_too_large_is_refused() {
    let (cpu, config) = (Cpu::new(1).unwrap(), MultigridConfig::default());
    let large = mapped(1, &[32, 32, 32], bent(3), one);
    let error = Multigrid::<f64>::new(&cpu, &large, 1, config).err().unwrap();
    assert!(matches!(error, MultigridError::Direct { unknowns: 29791, .. }), "{error}");
}

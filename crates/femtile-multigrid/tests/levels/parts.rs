use std::collections::BTreeMap;
use std::ops::Range;

use femtile_device::cpu::SimdLevel;
use femtile_device::{Buffer, Cpu};
use femtile_element::tensor::Lagrange;
use femtile_linalg::{LinearOperator, Preconditioner};
use femtile_multigrid::{
    BoxGrid, BoxOperator, GeometricMultigrid, Multigrid, MultigridConfig, PostOrder, Smoother,
};

use crate::dense::{dot, inside, largest, matrix, on, random, solve};

#[test]
fn boxes_whose_cells_come_in_pairs_are_refinements() {
    let uneven = [vec![0.3, 0.4, 0.7], vec![0.4; 2], vec![0.4, 0.5]];
    for grid in [&uneven[..2], &uneven].map(|widths| BoxGrid::new(4, widths).unwrap()) {
        assert_eq!(grid.refined().coarsened(), Some(grid));
    }
    let coarsened = |widths: &[&[f64]]| {
        let widths: Vec<_> = widths.iter().map(|widths| widths.to_vec()).collect();
        let coarse = BoxGrid::new(3, &widths).unwrap().coarsened()?;
        Some([0, 1, 2].map(|axis| coarse.widths(axis).to_vec()))
    };
    // Semicoarsening: only axes with narrow cells.
    assert_eq!(coarsened(&[&[1.0; 4], &[0.8; 4]]), Some([vec![2.0; 2], vec![1.6; 2], vec![]]));
    assert_eq!(coarsened(&[&[1.0; 4], &[0.5; 4]]), Some([vec![1.0; 4], vec![1.0; 2], vec![]]));
    assert_eq!(coarsened(&[&[1.0; 4], &[0.1; 5]]), Some([vec![2.0; 2], vec![0.1; 5], vec![]]));
    assert_eq!(coarsened(&[&[1.0; 4], &[0.1; 2]]), Some([vec![2.0; 2], vec![0.1; 2], vec![]]));
    assert_eq!(coarsened(&[&[1.0; 5], &[1.0; 2]]), None);
    assert_eq!(coarsened(&[&[1.0, 1.0, 2.0, 1.0], &[1.0; 2]]), None);
}

/// Grids with odd and even numbers of cells, equal and unequal widths, some with free sides.
fn grids() -> Vec<BoxGrid> {
    let (low, high, both, none) = ([true, false], [false, true], [true; 2], [false; 2]);
    let sides = [
        [low, both, none],
        [both, high, none],
        [high, none, none],
        [low, none, none],
        [both, low, high],
        [low, both, high],
        [low, high, both],
        [none, both, both],
    ];
    let free = |(grid, free): (BoxGrid, _)| grid.with_free_sides(free).unwrap();
    closed_grids().into_iter().chain(closed_grids().into_iter().zip(sides).map(free)).collect()
}

fn closed_grids() -> Vec<BoxGrid> {
    let uneven = |n: usize| (0..n).map(|i| 0.3 + 0.1 * (i * i % 5) as f64).collect::<Vec<_>>();
    vec![
        BoxGrid::new(1, &[uneven(5), vec![0.5; 4]]).unwrap(),
        BoxGrid::new(2, &[vec![0.25; 4], uneven(3)]).unwrap(),
        BoxGrid::new(5, &[uneven(2), vec![0.5; 3]]).unwrap(),
        BoxGrid::new(4, &[vec![0.7], vec![0.5; 3]]).unwrap(),
        BoxGrid::new(1, &[vec![0.2; 5], uneven(3), vec![0.25; 4]]).unwrap(),
        // Some slabs of a thread between two of its own.
        BoxGrid::new(1, &[vec![0.3; 3], uneven(4), vec![0.25; 9]]).unwrap(),
        BoxGrid::new(2, &[uneven(3), vec![0.4; 2], vec![0.25; 3]]).unwrap(),
        BoxGrid::new(3, &[vec![0.5; 2], uneven(2), vec![0.25; 3]]).unwrap(),
    ]
}

pub fn devices() -> impl Iterator<Item = Cpu> {
    SimdLevel::available()
        .into_iter()
        .flat_map(|level| [1, 3].map(|threads| Cpu::with_simd(threads, level).unwrap()))
}

#[test]
fn the_operator_has_the_energy_of_polynomials() {
    // u = x (1 − x) y (1 − y) on the unit square: ∫|∇u|² = 2 · 1/3 · 1/30.
    for degree in [2, 5, 8] {
        let grid = BoxGrid::new(degree, &[vec![0.5, 0.2, 0.3], vec![0.25; 4]]).unwrap();
        let cpu = Cpu::new(1).unwrap();
        let a = BoxOperator::<f64>::new(&cpu, &grid);
        // Quadratic along each axis; u follows from the load of −Δu = 2 (x − x² + y − y²) by symmetry.
        let b = grid.load(|[x, y, _]| 2.0 * (x - x * x + y - y * y));
        let multigrid = Multigrid::<f64>::new(&cpu, &grid, 1, MultigridConfig::default()).unwrap();
        let mut u = on(&cpu, &vec![0.0; b.len()]);
        multigrid.v_cycle(&mut u, &on(&cpu, &b)).unwrap();
        let u = u.as_slice();
        let exact = |[x, y, _]: [f64; 3]| x * (1.0 - x) * y * (1.0 - y);
        assert!(grid.error_l2(u, exact, degree + 2) < 1e-13, "degree {degree}");
        let x = on(&cpu, u);
        let mut y = Buffer::from_vec(&cpu, vec![f64::NAN; u.len()]).unwrap();
        a.apply(&mut y, &x).unwrap();
        assert!((dot(u, y.as_slice()) - 1.0 / 45.0).abs() < 1e-14, "degree {degree}");
    }
}

#[test]
fn the_operator_is_symmetric_and_positive_and_the_same_on_every_device() {
    for grid in grids() {
        let plain = Cpu::with_simd(1, SimdLevel::Scalar).unwrap();
        let expected = matrix(&BoxOperator::<f64>::new(&plain, &grid));
        let (n, size) = (grid.n_nodes(), largest(&expected));
        let nodes = inside(&grid);
        for &row in &nodes {
            for &column in &nodes {
                assert!((expected[row * n + column] - expected[column * n + row]).abs() < 1e-13 * size);
            }
        }
        let x = random(&grid, 7);
        let ax: Vec<f64> = expected.chunks_exact(n).map(|row| dot(row, &x)).collect();
        assert!(dot(&x, &ax) > 0.0);
        for cpu in devices() {
            let found = matrix(&BoxOperator::<f64>::new(&cpu, &grid));
            let difference: Vec<f64> = found.iter().zip(&expected).map(|(f, e)| f - e).collect();
            assert!(largest(&difference) < 1e-13 * size, "{cpu:?}");
            let single = BoxOperator::<f32>::new(&cpu, &grid);
            let mut r = vec![f32::NAN; n];
            let narrow: Vec<f32> = x.iter().map(|x| *x as f32).collect();
            single.residual(&mut r, &vec![0.0; n], &narrow);
            let difference: Vec<f64> = r.iter().zip(&ax).map(|(r, ax)| f64::from(*r) + ax).collect();
            assert!(largest(&difference) < 2e-5 * size, "{cpu:?}");
        }
    }
}

/// Returns thin axes: not coarsened on the next level though their cells are the narrowest, by 3/2.
fn thin(grid: &BoxGrid) -> [bool; 3] {
    let next = grid.coarsened();
    let is_stuck = |axis: usize| next.as_ref().is_some_and(|next| next.widths(axis) == grid.widths(axis));
    let joined = (0..grid.dimension()).filter(|&axis| !is_stuck(axis)).map(|axis| grid.widths(axis)[0]);
    let narrowest = joined.fold(f64::INFINITY, f64::min);
    [0, 1, 2].map(|axis| is_stuck(axis) && grid.widths(axis).first().is_some_and(|w| 1.5 * w <= narrowest))
}

/// Returns vertices with an unknown, and the inner nodes of their patches, in the order of colours: parities of the
/// vertex index along x, y and z are the bits of the colour. An axis with one cell and no such vertex, or a thin axis,
/// has one patch of all cells.
fn patches_with_vertices(grid: &BoxGrid) -> Vec<(usize, Vec<usize>)> {
    let [n, m, _] = grid.nodes();
    let (degree, nodes, free, thin) = (grid.degree(), grid.nodes(), grid.free_sides(), thin(grid));
    // The node of each vertex, and the nodes of its patch.
    let of_axis = |axis: usize| -> Vec<(usize, Range<usize>)> {
        let cells = grid.widths(axis).len();
        let [low, high] = free[axis].map(usize::from);
        let unknowns = 1 - low..degree * cells + high;
        let around = |vertex: usize| {
            let node = degree * vertex;
            (node, unknowns.start.max((node + 1).saturating_sub(degree))..unknowns.end.min(node + degree))
        };
        match (cells, 1 - low..cells + high) {
            (0, _) => vec![(0, 0..1)],
            (_, vertices) if vertices.is_empty() || thin[axis] => vec![(nodes[axis] / 2, unknowns)],
            (_, vertices) => vertices.map(around).collect(),
        }
    };
    let axes = [0, 1, 2].map(of_axis);
    let mut found = Vec::new();
    for colour in 0..8 {
        for (z, of_z) in axes[2].iter().enumerate() {
            for (y, of_y) in axes[1].iter().enumerate() {
                for (x, of_x) in axes[0].iter().enumerate() {
                    if (x % 2) + 2 * (y % 2) + 4 * (z % 2) != colour {
                        continue;
                    }
                    let row = |j: usize, k: usize| of_x.1.clone().map(move |i| (k * m + j) * n + i);
                    let nodes = of_z.1.clone().flat_map(|k| of_y.1.clone().flat_map(move |j| row(j, k)));
                    found.push(((of_z.0 * m + of_y.0) * n + of_x.0, nodes.collect()));
                }
            }
        }
    }
    found
}

/// Returns the nodes of these patches.
pub fn patches(grid: &BoxGrid) -> Vec<Vec<usize>> {
    patches_with_vertices(grid).into_iter().map(|(_, nodes)| nodes).collect()
}

/// `[cui2024]`, eq. (2.7) by dense solves.
pub fn sequential(a: &[f64], patches: &[Vec<usize>], x: &mut [f64], b: &[f64]) {
    let n = b.len();
    for patch in patches {
        let r: Vec<f64> = patch.iter().map(|&i| b[i] - dot(&a[i * n..(i + 1) * n], x)).collect();
        for (&node, correction) in patch.iter().zip(solve(a, n, patch, &r)) {
            x[node] += correction;
        }
    }
}

/// Boxes with one layer of cells across an axis.
fn layers() -> impl Iterator<Item = BoxGrid> {
    let layer = |(degree, counts): (usize, [usize; 3])| {
        let widths = [0, 1, 2].map(|axis| vec![0.3; counts[axis]]);
        let n_axes = widths.iter().filter(|widths| !widths.is_empty()).count();
        BoxGrid::new(degree, &widths[..n_axes]).unwrap()
    };
    let layers =
        [(2, [4, 1, 0]), (3, [1, 8, 0]), (2, [4, 1, 4]), (3, [1, 4, 2]), (2, [4, 6, 1]), (4, [1, 1, 4])];
    let free = |grid: BoxGrid| {
        let sides = grid.free_sides().map(|_| [false, true]);
        grid.with_free_sides(sides).unwrap()
    };
    layers.map(layer).into_iter().chain(layers.map(layer).map(free))
}

/// Thin boxes, with Dirichlet values on one side, on all but one, or on pairs of opposite sides.
fn thin_boxes() -> impl Iterator<Item = BoxGrid> {
    let boxes: [(usize, &[(usize, f64)]); 6] = [
        (1, &[(4, 0.3), (3, 0.05)]),
        (3, &[(2, 0.05), (4, 0.3)]),
        (2, &[(4, 0.3), (1, 0.05)]),
        (1, &[(4, 0.3), (4, 0.3), (2, 0.05)]),
        (2, &[(2, 0.05), (2, 0.05), (4, 0.3)]),
        (2, &[(4, 0.2), (2, 0.01), (2, 0.05)]),
    ];
    let sides = [
        [[false, true], [true; 2], [true; 2]],
        [[true, false], [false; 2], [false, true]],
        [[true; 2], [true, false], [false; 2]],
    ];
    boxes.into_iter().flat_map(move |(degree, axes)| {
        let widths: Vec<Vec<f64>> = axes.iter().map(|&(n, width)| vec![width; n]).collect();
        sides.map(|free| BoxGrid::new(degree, &widths).unwrap().with_free_sides(free).unwrap())
    })
}

#[test]
fn a_step_of_a_polynomial_is_that_of_the_definition() {
    let config = MultigridConfig { smoother: Smoother::Chebyshev, ..MultigridConfig::default() };
    for grid in grids().iter().map(BoxGrid::refined).filter(|grid| grid.n_nodes() <= 1500) {
        let plain = Cpu::with_simd(1, SimdLevel::Scalar).unwrap();
        let a = matrix(&BoxOperator::<f64>::new(&plain, &grid));
        let (n, begin, b) = (grid.n_nodes(), random(&grid, 1), random(&grid, 2));
        let zeros = vec![0.0; n];
        let mut steps = Vec::new();
        for cpu in devices() {
            let multigrid = Multigrid::<f64>::from_finest(&cpu, &grid, config).unwrap();
            let smooth = |x: &[f64], b: &[f64]| {
                let mut x = on(&cpu, x);
                multigrid.smooth(&mut x, &on(&cpu, b), PostOrder::Same).unwrap();
                x.as_slice().to_vec()
            };
            let (found, of_zero, of_begin) = (smooth(&begin, &b), smooth(&zeros, &b), smooth(&begin, &zeros));
            let sum: Vec<f64> = (0..n).map(|i| found[i] - of_zero[i] - of_begin[i]).collect();
            assert!(largest(&sum) < 1e-12 * largest(&found), "{cpu:?}: a step is affine");
            // The step leaves solutions as they are.
            let ax: Vec<f64> = a.chunks_exact(n).map(|row| dot(row, &begin)).collect();
            let same = smooth(&begin, &ax);
            let change: Vec<f64> = same.iter().zip(&begin).map(|(x, begin)| x - begin).collect();
            assert!(largest(&change) < 1e-11 * largest(&begin), "{cpu:?}: solutions stay");
            // It is symmetric: with e = S b, c · S b = b · S c.
            let (c, of_c) = (&begin, smooth(&zeros, &begin));
            let (one, other) = (dot(c, &of_zero), dot(&b, &of_c));
            assert!((one - other).abs() < 1e-11 * dot(&of_c, &of_c).sqrt() * dot(&b, &b).sqrt(), "{cpu:?}");
            let energy = |x: &[f64]| dot(x, &a.chunks_exact(n).map(|row| dot(row, x)).collect::<Vec<_>>());
            assert!(energy(&of_begin) < energy(&begin), "{cpu:?}: errors shrink");
            steps.push(found);
        }
        for step in &steps[1..] {
            let difference: Vec<f64> = step.iter().zip(&steps[0]).map(|(x, y)| x - y).collect();
            assert!(largest(&difference) < 1e-12 * largest(&steps[0]));
        }
    }
}

#[test]
fn a_step_of_patches_is_that_of_the_definition() {
    assert_eq!(thin_boxes().filter(|grid| thin(grid).contains(&true)).count(), 18);
    for grid in grids().iter().map(BoxGrid::refined).chain(layers()).chain(thin_boxes()) {
        // The smoother of a level above the coarsest, on a grid small enough for dense solves.
        let config = MultigridConfig { smoother: Smoother::VertexPatch, ..MultigridConfig::default() };
        if grid.n_nodes() > 1500 {
            continue;
        }
        let plain = Cpu::with_simd(1, SimdLevel::Scalar).unwrap();
        let a = matrix(&BoxOperator::<f64>::new(&plain, &grid));
        let (begin, b) = (random(&grid, 1), random(&grid, 2));
        let mut order = patches(&grid);
        for post in [PostOrder::Same, PostOrder::Reversed] {
            let mut expected = begin.clone();
            sequential(&a, &order, &mut expected, &b);
            for cpu in devices() {
                let multigrid = Multigrid::<f64>::from_finest(&cpu, &grid, config).unwrap();
                assert!(multigrid.grids().count() > 1);
                let mut x = on(&cpu, &begin);
                multigrid.smooth(&mut x, &on(&cpu, &b), post).unwrap();
                let difference: Vec<f64> = x.as_slice().iter().zip(&expected).map(|(x, e)| x - e).collect();
                assert!(largest(&difference) < 1e-11 * largest(&expected), "{cpu:?}, {post:?}");
                let multigrid = Multigrid::<f32>::from_finest(&cpu, &grid, config).unwrap();
                let single = |x: &[f64]| on(&cpu, &x.iter().map(|x| *x as f32).collect::<Vec<_>>());
                let mut x = single(&begin);
                multigrid.smooth(&mut x, &single(&b), post).unwrap();
                let difference: Vec<f64> =
                    x.as_slice().iter().zip(&expected).map(|(x, e)| f64::from(*x) - e).collect();
                assert!(largest(&difference) < 1e-3 * largest(&expected), "{cpu:?}, {post:?}, f32");
            }
            order.reverse();
        }
    }
}

/// Returns square roots of the hats of vertices at the inner nodes of their patches, divided by the sum of all hats.
fn weights(grid: &BoxGrid, patches: &[(usize, Vec<usize>)]) -> Vec<Vec<f64>> {
    let ([n, m, _], k) = (grid.nodes(), grid.degree());
    let line = Lagrange::gauss_lobatto(k).nodes().to_vec();
    let split = |node: usize| [node % n, node / n % m, node / (n * m)];
    let thin = thin(grid);
    let hat = |node: usize, vertex: usize| -> f64 {
        let (node, vertex) = (split(node), split(vertex));
        let along = (0..3).filter(|&axis| !thin[axis]);
        along.map(|axis| 1.0 - line[node[axis].abs_diff(vertex[axis])]).product()
    };
    let hats = |(vertex, patch): &(usize, Vec<usize>)| patch.iter().map(|&node| hat(node, *vertex)).collect();
    let mut found: Vec<Vec<f64>> = patches.iter().map(hats).collect();
    let mut sums = vec![0.0; grid.n_nodes()];
    let pairs = || patches.iter().flat_map(|(_, patch)| patch).copied();
    pairs().zip(found.iter().flatten()).for_each(|(node, hat)| sums[node] += hat);
    pairs().zip(found.iter_mut().flatten()).for_each(|(node, hat)| *hat = (*hat / sums[node]).sqrt());
    found
}

/// Compares an additive Schwarz step with its definition by dense solves, up to one factor.
pub fn adds_up_what_patches_find(grid: &BoxGrid, tolerance: f64) {
    let config = MultigridConfig { smoother: Smoother::VertexPatch, ..MultigridConfig::default() };
    let plain = Cpu::with_simd(1, SimdLevel::Scalar).unwrap();
    let (a, n) = (matrix(&BoxOperator::<f64>::new(&plain, grid)), grid.n_nodes());
    let (begin, b) = (random(grid, 1), random(grid, 2));
    let patches = patches_with_vertices(grid);
    let mut z = vec![0.0; n];
    for ((_, patch), weights) in patches.iter().zip(weights(grid, &patches)) {
        let residual = |node: usize| b[node] - dot(&a[node * n..(node + 1) * n], &begin);
        let r: Vec<f64> = patch.iter().zip(&weights).map(|(&node, w)| w * residual(node)).collect();
        let found = solve(&a, n, patch, &r);
        patch.iter().zip(weights).zip(found).for_each(|((&node, w), found)| z[node] += w * found);
    }
    let mut bits = BTreeMap::new();
    for (cpu, post) in
        devices().flat_map(|cpu| [PostOrder::Same, PostOrder::Reversed].map(|post| (cpu.clone(), post)))
    {
        let multigrid = Multigrid::<f64>::from_finest(&cpu, grid, config).unwrap();
        let mut x = on(&cpu, &begin);
        multigrid.smooth(&mut x, &on(&cpu, &b), post).unwrap();
        let step: Vec<f64> = x.as_slice().iter().zip(&begin).map(|(x, begin)| x - begin).collect();
        let damping = dot(&step, &z) / dot(&z, &z);
        let difference: Vec<f64> = step.iter().zip(&z).map(|(step, z)| step - damping * z).collect();
        assert!(largest(&difference) < tolerance * largest(&step), "{cpu:?}, {}", grid.degree());
        assert_eq!(bits.entry(cpu.simd()).or_insert_with(|| step.clone()), &step, "{cpu:?}, {post:?}");
        let multigrid = Multigrid::<f32>::from_finest(&cpu, grid, config).unwrap();
        let single = |x: &[f64]| on(&cpu, &x.iter().map(|x| *x as f32).collect::<Vec<_>>());
        let mut x = single(&begin);
        multigrid.smooth(&mut x, &single(&b), post).unwrap();
        let steps = x.as_slice().iter().zip(&begin).map(|(x, begin)| f64::from(*x) - begin);
        let difference: Vec<f64> = steps.zip(&z).map(|(step, z)| step - damping * z).collect();
        assert!(largest(&difference) < 1e5 * tolerance.max(1e-8) * largest(&step), "{cpu:?}, f32");
    }
}

/// Returns the largest eigenvalue of the preconditioned operator by the power method, and checks that no error grows in
/// energy.
fn largest_of_steps(coarse: &BoxGrid, smoother: Smoother) -> f64 {
    let cpu = Cpu::new(2).unwrap();
    let config = MultigridConfig { smoother, ..MultigridConfig::default() };
    let multigrid = Multigrid::<f64>::new(&cpu, coarse, 2, config).unwrap();
    let grid = multigrid.grid();
    let zero = on(&cpu, &vec![0.0; grid.n_nodes()]);
    let energy = |x: &[f64]| {
        let mut r = vec![f64::NAN; x.len()];
        multigrid.operator().residual(&mut r, zero.as_slice(), x);
        -dot(x, &r)
    };
    let mut x = random(grid, 11);
    let mut ratio = 0.0;
    for _ in 0..60 {
        let before = energy(&x);
        let mut after = on(&cpu, &x);
        multigrid.smooth(&mut after, &zero, PostOrder::Same).unwrap();
        assert!(energy(after.as_slice()) <= before, "an error grows");
        let off: Vec<f64> = x.iter().zip(after.as_slice()).map(|(x, after)| x - after).collect();
        ratio = (energy(&off) / before).sqrt();
        x = off;
    }
    ratio
}

/// A box of rectangles of these widths with the coefficient 2.
fn with_coefficient(degree: usize, widths: &[Vec<f64>]) -> BoxGrid {
    let n: Vec<usize> = widths.iter().map(Vec::len).collect();
    let end = |axis: usize, i: usize| widths.get(axis).map_or(0.0, |widths| widths[..i].iter().sum());
    let along = [0, 1, 2].map(|axis| n.get(axis).map_or(1, |n| n + 1));
    let corner = |i: usize| {
        let at = [i % along[0], i / along[0] % along[1], i / (along[0] * along[1])];
        [0, 1, 2].map(|axis| end(axis, at[axis]))
    };
    let corners = (0..along.iter().product()).map(corner).collect();
    BoxGrid::mapped(degree, &n, corners, vec![2.0; n.iter().product()]).unwrap()
}

#[test]
fn additive_patches_damp_all_errors_in_energy() {
    let stretched = [[1.0, 1.0, 1.0], [1.0, 10.0, 1.0], [100.0, 1.0, 7.0]];
    for (degree, n) in [(1, 8), (2, 4), (3, 3), (5, 2)] {
        for (widths, dimension) in stretched.iter().flat_map(|widths| [(widths, 2), (widths, 3)]) {
            let along =
                |axis: usize| (0..n).map(|cell| widths[axis] * [1.0, 1.3][cell % 2]).collect::<Vec<_>>();
            let widths: Vec<Vec<f64>> = (0..dimension).map(along).collect();
            let largest = largest_of_steps(&with_coefficient(degree, &widths), Smoother::VertexPatch);
            assert!((1.1..1.5).contains(&largest), "degree {degree}, {widths:?}, {dimension}: {largest}");
        }
    }
}

#[test]
fn the_coarsest_level_is_solved_exactly() {
    for grid in grids() {
        let plain = Cpu::with_simd(1, SimdLevel::Scalar).unwrap();
        let a = matrix(&BoxOperator::<f64>::new(&plain, &grid));
        let b = random(&grid, 5);
        let nodes = inside(&grid);
        let right: Vec<f64> = nodes.iter().map(|&node| b[node]).collect();
        let expected = solve(&a, grid.n_nodes(), &nodes, &right);
        for cpu in devices() {
            let multigrid = Multigrid::<f64>::new(&cpu, &grid, 1, MultigridConfig::default()).unwrap();
            let mut x = on(&cpu, &vec![0.0; b.len()]);
            multigrid.v_cycle(&mut x, &on(&cpu, &b)).unwrap();
            let x = x.as_slice();
            for (&node, expected) in nodes.iter().zip(&expected) {
                assert!((x[node] - expected).abs() < 1e-11 * largest(x), "{cpu:?}, node {node}");
            }
        }
    }
}

#[test]
fn a_cycle_is_symmetric_and_positive_and_has_the_same_bits_on_all_threads() {
    let smoothers = [Smoother::VertexPatch, Smoother::Chebyshev];
    for (coarse, smoother) in grids().into_iter().flat_map(|grid| smoothers.map(|own| (grid.clone(), own))) {
        let mut bits = None;
        for threads in [1, 2, 3] {
            let cpu = Cpu::new(threads).unwrap();
            let cycle = GeometricMultigrid::<f64>::with_smoother(&cpu, &coarse, 2, smoother).unwrap();
            let grid = cycle.multigrid().grid().clone();
            let (x, y) = (random(&grid, 8), random(&grid, 9));
            let apply = |r: &[f64]| {
                let mut z = Buffer::from_vec(&cpu, vec![f64::NAN; r.len()]).unwrap();
                cycle.apply(&mut z, &Buffer::from_host(&cpu, r).unwrap()).unwrap();
                z.to_host().unwrap()
            };
            let (mx, my) = (apply(&x), apply(&y));
            let size = dot(&mx, &x).abs().max(dot(&my, &y).abs());
            assert!((dot(&mx, &y) - dot(&x, &my)).abs() < 1e-12 * size);
            assert!(dot(&mx, &x) > 0.0 && dot(&my, &y) > 0.0);
            assert_eq!(bits.get_or_insert_with(|| mx.clone()), &mx, "{threads} threads");
        }
    }
}

#[test]
fn right_sides_of_products_are_those_of_functions() {
    for grid in grids() {
        let of_axis = |axis: usize, x: f64| [1.0 + x, 2.0 - x * x, x.cos()][axis];
        let is_flat = grid.dimension() == 2;
        let found = grid.load_of_product(of_axis);
        let expected =
            grid.load(|[x, y, z]| of_axis(0, x) * of_axis(1, y) * if is_flat { 1.0 } else { of_axis(2, z) });
        let difference: Vec<f64> = found.iter().zip(&expected).map(|(f, e)| f - e).collect();
        assert!(largest(&difference) < 1e-14 * largest(&expected));
    }
}

//! Geometric multigrid on boxes, held to what processors do.

use femtile::device::{Buffer, Cpu, Cuda, Scalar};
use femtile::linalg::comm::Alone;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile::linalg::krylov::gmres::{Gmres, GmresConfig};
use femtile::linalg::{LinalgError, LinearOperator, Preconditioner};
use femtile::multigrid::{
    BoxGrid, BoxOperator, CudaBoxOperator, CudaPatchLadder, CudaPatches, CudaTransfer, GeometricMultigrid,
    LadderKernel, Layout, Multigrid, MultigridConfig, MultigridError, Passes, PatchKernel, PatchShape,
    PostOrder, Smoother, thin_axis,
};
use femtile::tensor::SumFactorization;

use super::Scope;
use super::problems::Random;

const KERNELS: [PatchKernel; 3] = [PatchKernel::Skeleton, PatchKernel::Whole, PatchKernel::Fused];

/// The ways to solve that there are for a degree.
fn kernels(degree: usize) -> impl Iterator<Item = PatchKernel> {
    KERNELS.into_iter().chain((degree == 1).then_some(PatchKernel::Stencil))
}

/// A box of equal cells, of another width along each axis, none of them two thirds of another.
fn cells(degree: usize, counts: [usize; 3]) -> BoxGrid {
    let widths = |axis: usize| vec![[0.3, 0.21, 0.7][axis]; counts[axis]];
    BoxGrid::new(degree, &[widths(0), widths(1), widths(2)]).unwrap()
}

/// Free sides: a lower one, an upper one, opposite ones, and all but one.
const FREE: [[[bool; 2]; 3]; 4] = [
    [[true, false], [false; 2], [false; 2]],
    [[false; 2], [false, true], [false, true]],
    [[false; 2], [true; 2], [true, false]],
    [[true; 2], [true; 2], [false, true]],
];

/// The same boxes with free sides.
fn with_free_sides(grid: &BoxGrid) -> [BoxGrid; 4] {
    FREE.map(|free| grid.clone().with_free_sides(free).unwrap())
}

/// Random values with zeros where values are given.
fn values<T: Scalar>(grid: &BoxGrid, random: &mut Random) -> Vec<T> {
    let (nodes, free) = (grid.nodes(), grid.free_sides());
    let mut x = random.vector(grid.n_nodes());
    for (i, x) in x.iter_mut().enumerate() {
        let at = [i % nodes[0], i / nodes[0] % nodes[1], i / (nodes[0] * nodes[1])];
        let is_given = |axis: usize| {
            (at[axis] == 0 && !free[axis][0]) || (at[axis] + 1 == nodes[axis] && !free[axis][1])
        };
        if (0..3).any(is_given) {
            *x = T::ZERO;
        }
    }
    x
}

/// Every entry within a tolerance, relative to the largest.
fn assert_close<T: Scalar>(found: &[T], wanted: &[T], tolerance: f64, what: &str) {
    let size = wanted.iter().fold(0.0_f64, |size, x| size.max(x.to_f64().abs()));
    for (i, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let error = (found.to_f64() - wanted.to_f64()).abs();
        assert!(error <= tolerance * size, "{what}: entry {i} is off by {error:e} of {size:e}");
    }
}

/// A processor's multigrid whose finest grid is this one, with the smoother of a kernel.
fn reference<T: SumFactorization>(grid: &BoxGrid, kernel: PatchKernel) -> Multigrid<T> {
    let is_additive = kernel == PatchKernel::Additive;
    let smoother = if is_additive { Smoother::AdditivePatch } else { Smoother::VertexPatch };
    let config = MultigridConfig { smoother, ..MultigridConfig::default() };
    Multigrid::from_finest(&Cpu::new(1).unwrap(), grid, config).unwrap()
}

/// A step from random values; where nothing is read, there is no number.
fn smooths<T: SumFactorization>(
    device: &Cuda,
    degree: usize,
    counts: [usize; 3],
    kernel: PatchKernel,
    tolerance: f64,
) {
    smooths_on::<T>(device, &cells(degree, counts), kernel, tolerance);
}

fn smooths_on<T: SumFactorization>(device: &Cuda, grid: &BoxGrid, kernel: PatchKernel, tolerance: f64) {
    let mut random = Random::new(11);
    let (start, b) = (values::<T>(grid, &mut random), values::<T>(grid, &mut random));
    let on_device = Buffer::from_host(device, &b).unwrap();
    let patches = CudaPatches::new(device, grid, kernel, None).unwrap();
    for order in [PostOrder::Same, PostOrder::Reversed] {
        let (cpu, reference) = (Cpu::new(1).unwrap(), reference::<T>(grid, kernel));
        let mut wanted = Buffer::from_host(&cpu, &start).unwrap();
        reference.smooth(&mut wanted, &Buffer::from_host(&cpu, &b).unwrap(), order).unwrap();
        let mut x = Buffer::from_host(device, &start).unwrap();
        patches.step(&mut x, &on_device, order).unwrap();
        let (counts, free) = ([0, 1, 2].map(|axis| grid.widths(axis).len()), grid.free_sides());
        let what =
            format!("degree {}, {counts:?} cells, free {free:?}, {kernel:?}, {order:?}", grid.degree());
        assert_close(&x.to_host().unwrap(), wanted.as_slice(), tolerance, &what);
    }
}

/// The smoother of every degree, on few and on many cells.
pub fn steps_of_the_smoother_agree_with_the_reference(device: &Cuda, scope: &Scope) {
    for (degree, counts) in [(1, [8, 4, 12]), (2, [4, 6, 4]), (3, [4, 4, 6]), (4, [4, 4, 4])] {
        for kernel in kernels(degree) {
            smooths::<f64>(device, degree, counts, kernel, 1e-12);
            if scope.has_every_kind || degree == 3 || kernel == PatchKernel::Stencil {
                smooths::<f32>(device, degree, counts, kernel, 1e-5);
            }
        }
    }
    if scope.has_every_kind {
        for degree in 5..=8 {
            for kernel in kernels(degree) {
                smooths::<f64>(device, degree, [4, 6, 4], kernel, 1e-12);
                smooths::<f32>(device, degree, [4, 4, 4], kernel, 2e-5);
            }
        }
        // Rows that threads go along more than once.
        smooths::<f64>(device, 1, [512, 4, 4], PatchKernel::Stencil, 1e-12);
    }
}

/// Steps of all patches at once, of every degree.
pub fn steps_of_additive_patches_agree_with_the_reference(device: &Cuda, scope: &Scope) {
    let additive = PatchKernel::Additive;
    for (degree, counts) in [(1, [8, 4, 12]), (2, [4, 6, 4]), (3, [4, 4, 6]), (4, [4, 4, 4])] {
        smooths::<f64>(device, degree, counts, additive, 1e-12);
    }
    smooths::<f32>(device, 3, [4, 2, 6], additive, 1e-5);
    if scope.has_every_kind {
        for degree in 1..=8 {
            smooths::<f64>(device, degree, [4, 6, 4], additive, 1e-12);
            smooths::<f32>(device, degree, [4, 4, 4], additive, 2e-5);
        }
    }
}

/// Patches on free sides, in every kernel.
pub fn free_sides_are_smoothed_as_by_the_reference(device: &Cuda, scope: &Scope) {
    for (degree, counts) in [(1, [4, 6, 4]), (2, [4, 3, 2]), (3, [2, 4, 2])] {
        for (i, grid) in with_free_sides(&cells(degree, counts)).into_iter().enumerate() {
            for kernel in kernels(degree).chain([PatchKernel::Additive]) {
                smooths_on::<f64>(device, &grid, kernel, 1e-12);
                if scope.has_every_kind || i == 3 {
                    smooths_on::<f32>(device, &grid, kernel, 1e-5);
                }
            }
        }
    }
    // A layer of cells with a vertex on one side, or on both.
    for free in [[true, false], [false, true], [true; 2]] {
        let layer = cells(2, [4, 1, 4]).with_free_sides([[false; 2], free, [true, false]]).unwrap();
        smooths_on::<f64>(device, &layer, PatchKernel::Skeleton, 1e-12);
        smooths_on::<f64>(device, &layer, PatchKernel::Additive, 1e-12);
    }
    if scope.has_every_kind {
        for grid in (4..=8).flat_map(|degree| with_free_sides(&cells(degree, [4, 6, 4]))) {
            for kernel in KERNELS.into_iter().chain([PatchKernel::Additive]) {
                smooths_on::<f64>(device, &grid, kernel, 1e-12);
                smooths_on::<f32>(device, &grid, kernel, 2e-5);
            }
        }
        for grid in with_free_sides(&cells(1, [512, 4, 4])) {
            smooths_on::<f64>(device, &grid, PatchKernel::Stencil, 1e-12);
        }
    }
}

/// Residuals, transfers and cycles on boxes with free sides.
pub fn cycles_with_free_sides_are_those_of_the_reference(device: &Cuda, scope: &Scope) {
    let highest = if scope.has_every_kind { 8 } else { 2 };
    for degree in 1..=highest {
        for grid in with_free_sides(&uneven(degree, [4, 3, 2])) {
            residual_agrees::<f64>(device, &grid, 1e-12);
            residual_agrees::<f32>(device, &grid, 1e-5);
        }
        for grid in with_free_sides(&uneven(degree, [2, 1, 3])) {
            transfers_nest::<f64>(device, &grid, [2; 3], 1e-11);
            transfers_nest::<f64>(device, &grid, [1, 2, 1], 1e-11);
            transfers_nest::<f32>(device, &grid, [2, 1, 2], 1e-4);
        }
    }
    for grid in with_free_sides(&cells(1, [4, 3, 5])) {
        residual_agrees::<f64>(device, &grid, 1e-12);
        residual_agrees::<f32>(device, &grid, 1e-5);
    }
    for (degree, counts) in [(1, [4, 6, 2]), (2, [4, 4, 2]), (3, [4, 1, 2])] {
        for grid in with_free_sides(&cells(degree, counts)).into_iter().skip(1) {
            cycles_agree::<f64>(device, &grid, 1e-12);
        }
    }
    if scope.has_every_kind {
        for grid in (1..=8).flat_map(|degree| with_free_sides(&cells(degree, [8, 4, 6]))) {
            cycles_agree::<f64>(device, &grid, 1e-11);
            cycles_agree::<f32>(device, &grid, 1e-4);
        }
    }
}

/// All ways to solve give the same on grids of any number of cells, some without a patch of a colour or of any.
pub fn all_ways_to_solve_on_patches_agree(device: &Cuda, _scope: &Scope) {
    for (degree, counts) in [(1, [1, 2, 3]), (1, [7, 5, 3]), (2, [2, 2, 2]), (2, [3, 4, 5]), (3, [5, 2, 3])] {
        let grid = cells(degree, counts);
        let mut random = Random::new(5);
        let (start, b) = (values::<f64>(&grid, &mut random), values::<f64>(&grid, &mut random));
        let b = Buffer::from_host(device, &b).unwrap();
        let step = |kernel, order| {
            let mut x = Buffer::from_host(device, &start).unwrap();
            CudaPatches::new(device, &grid, kernel, None).unwrap().step(&mut x, &b, order).unwrap();
            x.to_host().unwrap()
        };
        for order in [PostOrder::Same, PostOrder::Reversed] {
            let wanted = step(PatchKernel::Fused, order);
            for kernel in kernels(degree) {
                let what = format!("degree {degree}, {counts:?} cells, {kernel:?}, {order:?}");
                assert_close(&step(kernel, order), &wanted, 1e-12, &what);
            }
        }
    }
}

/// The kernels that are there to compare with make the same step, on grids of any number of cells.
pub fn kernels_to_compare_with_agree(device: &Cuda, scope: &Scope) {
    for kernel in LadderKernel::all() {
        compares::<f64>(device, kernel, 2, [2, 3, 5], 1e-12);
    }
    compares::<f64>(
        device,
        LadderKernel { passes: Passes::Fused, layout: Layout::Boundary },
        1,
        [5, 2, 3],
        1e-12,
    );
    compares::<f32>(
        device,
        LadderKernel { passes: Passes::Separate, layout: Layout::Basic },
        1,
        [3, 2, 2],
        1e-5,
    );
    if scope.has_every_kind {
        for degree in 1..=8 {
            for kernel in LadderKernel::all() {
                compares::<f64>(device, kernel, degree, [3, 4, 5], 1e-12);
                compares::<f32>(device, kernel, degree, [4, 3, 4], 5e-5);
            }
        }
    }
}

/// Steps in either order beside those of the fused kernel, where the kernel is for the degree.
fn compares<T: SumFactorization>(
    device: &Cuda,
    kernel: LadderKernel,
    degree: usize,
    counts: [usize; 3],
    tolerance: f64,
) {
    if kernel.lack::<T>(degree).is_some() {
        return;
    }
    let grid = cells(degree, counts);
    let mut random = Random::new(29);
    let (start, b) = (values::<T>(&grid, &mut random), values::<T>(&grid, &mut random));
    let b = Buffer::from_host(device, &b).unwrap();
    let patches = CudaPatchLadder::new(device, &grid, kernel, None).unwrap();
    let fused = CudaPatches::new(device, &grid, PatchKernel::Fused, None).unwrap();
    for order in [PostOrder::Same, PostOrder::Reversed] {
        let [mut x, mut wanted] = [(); 2].map(|()| Buffer::from_host(device, &start).unwrap());
        fused.step(&mut wanted, &b, order).unwrap();
        patches.step(&mut x, &b, order).unwrap();
        let what = format!("degree {degree}, {counts:?} cells, {}, {order:?}", kernel.name());
        assert_close(&x.to_host().unwrap(), &wanted.to_host().unwrap(), tolerance, &what);
    }
}

/// However patches are shared out, the bits are the same.
pub fn shapes_of_blocks_change_nothing(device: &Cuda, _scope: &Scope) {
    let grid = cells(2, [4, 4, 6]);
    let mut random = Random::new(17);
    let (start, b) = (values::<f64>(&grid, &mut random), values::<f64>(&grid, &mut random));
    let b = Buffer::from_host(device, &b).unwrap();
    let step = |shape| {
        let mut x = Buffer::from_host(device, &start).unwrap();
        let patches = CudaPatches::new(device, &grid, PatchKernel::Skeleton, shape).unwrap();
        patches.step(&mut x, &b, PostOrder::Same).unwrap();
        x.to_host().unwrap()
    };
    let wanted = step(None);
    for (team, teams) in [(9, 1), (9, 7), (33, 3)] {
        assert!(step(Some(PatchShape { team, teams, blocks: 1 })) == wanted, "{teams} teams of {team}");
    }
}

/// A box of cells of many widths.
fn uneven(degree: usize, counts: [usize; 3]) -> BoxGrid {
    let widths =
        |axis: usize| (0..counts[axis]).map(|cell| 0.2 + 0.1 * ((3 * cell + axis) % 4) as f64).collect();
    BoxGrid::new(degree, &[widths(0), widths(1), widths(2)]).unwrap()
}

fn residual_agrees<T: SumFactorization>(device: &Cuda, grid: &BoxGrid, tolerance: f64) {
    let mut random = Random::new(3);
    let (x, b) = (values::<T>(grid, &mut random), values::<T>(grid, &mut random));
    let mut wanted = x.clone();
    BoxOperator::new(&Cpu::new(1).unwrap(), grid).residual(&mut wanted, &b, &x);
    let [x, b] = [x, b].map(|values| Buffer::from_host(device, &values).unwrap());
    let mut r = Buffer::from_host(device, &vec![T::from_f64(f64::NAN); x.len()]).unwrap();
    let operator = CudaBoxOperator::new(device, grid).unwrap();
    operator.residual(&mut r, &b, &x).unwrap();
    let what = format!("degree {}", grid.degree());
    assert_close(&r.to_host().unwrap(), &wanted, tolerance, &what);
    // A x = b - r.
    let wanted: Vec<T> = b.to_host().unwrap().iter().zip(&wanted).map(|(b, r)| *b - *r).collect();
    let mut y = Buffer::from_host(device, &vec![T::from_f64(f64::NAN); x.len()]).unwrap();
    operator.apply(&mut y, &x).unwrap();
    assert_close(&y.to_host().unwrap(), &wanted, tolerance, &format!("{what}, product"));
}

/// Residuals of every degree, on cells that differ.
pub fn residuals_agree_with_the_reference(device: &Cuda, scope: &Scope) {
    let highest = if scope.has_every_kind { 8 } else { 4 };
    for degree in 1..=highest {
        residual_agrees::<f64>(device, &uneven(degree, [4, 3, 5]), 1e-12);
        residual_agrees::<f32>(device, &uneven(degree, [1, 3, 2]), 1e-5);
    }
    // Equal cells, for which weights serve.
    for counts in [[4, 3, 5], [1, 2, 1], [300, 2, 2]] {
        residual_agrees::<f64>(device, &cells(1, counts), 1e-12);
        residual_agrees::<f32>(device, &cells(1, counts), 1e-5);
    }
    // Rows in several parts.
    residual_agrees::<f64>(device, &uneven(1, [37, 3, 2]), 1e-12);
    residual_agrees::<f64>(device, &uneven(2, [32, 2, 3]), 1e-12);
}

/// Returns the same box with each cell divided into `parts` along the axes.
fn parted(grid: &BoxGrid, parts: [usize; 3]) -> BoxGrid {
    let of_axis = |axis: usize| {
        let n = parts[axis];
        grid.widths(axis).iter().flat_map(|width| vec![width / n as f64; n]).collect()
    };
    let parted = BoxGrid::new(grid.degree(), &[of_axis(0), of_axis(1), of_axis(2)]).unwrap();
    parted.with_free_sides(grid.free_sides()).unwrap()
}

fn transfers_nest<T: SumFactorization>(device: &Cuda, coarse: &BoxGrid, parts: [usize; 3], tolerance: f64) {
    let (cpu, fine) = (Cpu::new(1).unwrap(), parted(coarse, parts));
    let mut random = Random::new(9);
    let (x, start) = (values::<T>(coarse, &mut random), values::<T>(&fine, &mut random));
    let transfer = CudaTransfer::new(device, coarse, &fine).unwrap();
    let on_device = Buffer::from_host(device, &x).unwrap();
    let upwards = |start: &[T]| {
        let mut on_fine = Buffer::from_host(device, start).unwrap();
        transfer.prolongate(&mut on_fine, &on_device).unwrap();
        on_fine.to_host().unwrap()
    };
    let what = format!("degree {}, {parts:?} parts", coarse.degree());
    let up = upwards(&vec![T::ZERO; fine.n_nodes()]);
    // The same function on both grids: the same distance from a polynomial.
    let exact = |[x, y, z]: [f64; 3]| 1.0 + x - 2.0 * y * z;
    let distance = |grid: &BoxGrid, x: &[T]| {
        let x: Vec<f64> = x.iter().map(|x| x.to_f64()).collect();
        grid.error_l2(&x, exact, coarse.degree() + 2)
    };
    let (found, wanted) = (distance(&fine, &up), distance(coarse, &x));
    assert!((found / wanted - 1.0).abs() <= tolerance, "{what}: {found} {wanted}");
    let added: Vec<T> = up.iter().zip(&start).map(|(up, start)| *up + *start).collect();
    assert_close(&upwards(&start), &added, tolerance, &what);
    // Spaces are nested: the coarse operator is what the fine one is on coarse functions.
    let product = |grid: &BoxGrid, x: &[T]| {
        let mut r = vec![T::ZERO; x.len()];
        BoxOperator::new(&cpu, grid).residual(&mut r, &vec![T::ZERO; x.len()], x);
        r
    };
    let of_fine = Buffer::from_host(device, &product(&fine, &up)).unwrap();
    let mut down = Buffer::from_host(device, &vec![T::from_f64(f64::NAN); x.len()]).unwrap();
    transfer.restrict(&mut down, &of_fine).unwrap();
    assert_close(&down.to_host().unwrap(), &product(coarse, &x), tolerance, &what);
}

/// Functions on a grid are the same ones on the refined grid, and so are integrals with them.
pub fn transfers_keep_functions_and_integrals(device: &Cuda, scope: &Scope) {
    let highest = if scope.has_every_kind { 8 } else { 4 };
    for degree in 1..=highest {
        transfers_nest::<f64>(device, &uneven(degree, [2, 3, 3]), [2; 3], 1e-11);
        transfers_nest::<f32>(device, &uneven(degree, [3, 1, 2]), [2; 3], 1e-4);
    }
    let highest = if scope.has_every_kind { 8 } else { 2 };
    for degree in 1..=highest {
        for parts in [[2, 1, 1], [1, 2, 1], [1, 1, 2], [2, 2, 1], [1, 2, 2]] {
            transfers_nest::<f64>(device, &uneven(degree, [3, 2, 3]), parts, 1e-11);
        }
        transfers_nest::<f32>(device, &uneven(degree, [2, 3, 2]), [2, 1, 2], 1e-4);
    }
}

/// A solve of a right side without symmetries, with cycles in the precision `T`.
fn solves<T: SumFactorization>(device: &Cuda, degree: usize, n_levels: usize, smoother: Smoother) {
    let coarse = BoxGrid::new(degree, &[vec![0.3; 2], vec![0.25; 2], vec![0.4; 2]]).unwrap();
    let cpu = Cpu::new(1).unwrap();
    let config = MultigridConfig { smoother, ..MultigridConfig::default() };
    let reference = Multigrid::<T>::new(&cpu, &coarse, n_levels, config).unwrap();
    let found = Multigrid::<T, Cuda>::new(device, &coarse, n_levels, config).unwrap();
    let b = reference.grid().load(|[x, y, z]| 1.0 + x - y * y + z);
    let mut wanted = Buffer::zeros(&cpu, b.len()).unwrap();
    let side = Buffer::from_host(&cpu, &b).unwrap();
    let expected = reference.solve_full(&mut wanted, &side, 1e-10, 60).unwrap();
    let mut x = Buffer::from_vec(device, vec![f64::NAN; b.len()]).unwrap();
    let side = Buffer::from_host(device, &b).unwrap();
    let outcome = found.solve_full(&mut x, &side, 1e-10, 60).unwrap();
    assert!(outcome.is_converged && outcome.cycles() == expected.cycles(), "{outcome:?} {expected:?}");
    let what = format!("degree {degree}, {n_levels} levels");
    assert_close(&x.to_host().unwrap(), wanted.as_slice(), 1e-8, &what);
    // A preconditioner of its own, twice, as recordings begin with the second.
    let cycle = GeometricMultigrid::<T, Cuda>::with_smoother(device, &coarse, n_levels, smoother).unwrap();
    let on_cpu = GeometricMultigrid::<T>::with_smoother(&cpu, &coarse, n_levels, smoother).unwrap();
    let mut z = Buffer::from_host(&cpu, &b).unwrap();
    on_cpu.apply(&mut z, &Buffer::from_host(&cpu, &b).unwrap()).unwrap();
    let tolerance = if size_of::<T>() == 4 { 1e-5 } else { 1e-12 };
    for _ in 0..3 {
        let mut found = Buffer::from_vec(device, vec![f64::NAN; b.len()]).unwrap();
        cycle.apply(&mut found, &side).unwrap();
        assert_close(&found.to_host().unwrap(), z.as_slice(), tolerance, &what);
    }
}

/// A cycle below a grid without thin axes, across which CPUs take other patches, beside that of the reference, with entries in the order of nodes and in the opposite one.
fn cycles_agree<T: SumFactorization>(device: &Cuda, finest: &BoxGrid, tolerance: f64) {
    let cpu = Cpu::new(1).unwrap();
    let cycle = || GeometricMultigrid::<T, Cuda>::from_finest(device, finest, Smoother::VertexPatch).unwrap();
    let reference = GeometricMultigrid::<T>::from_finest(&cpu, finest, Smoother::VertexPatch).unwrap();
    assert!(cycle().multigrid().grids().eq(reference.multigrid().grids()));
    assert_eq!(thin_axis(finest), None);
    let mut r = values::<f64>(finest, &mut Random::new(41));
    let mut z = Buffer::from_host(&cpu, &r).unwrap();
    reference.apply(&mut z, &Buffer::from_host(&cpu, &r).unwrap()).unwrap();
    let apply = |cycle: &GeometricMultigrid<T, Cuda>, r: &[f64]| {
        let mut z = Buffer::from_vec(device, vec![f64::NAN; r.len()]).unwrap();
        cycle.apply(&mut z, &Buffer::from_host(device, r).unwrap()).unwrap();
        z.to_host().unwrap()
    };
    let cells = [0, 1, 2].map(|axis| finest.widths(axis).len());
    let what = format!("degree {}, {cells:?} cells", finest.degree());
    assert_close(&apply(&cycle(), &r), z.as_slice(), tolerance, &what);
    let backwards: Vec<u32> = (0..finest.n_nodes() as u32).rev().collect();
    r.reverse();
    z.as_mut_slice().reverse();
    let found = apply(&cycle().numbered(&backwards).unwrap(), &r);
    assert_close(&found, z.as_slice(), tolerance, &what);
}

/// Boxes of any extents: levels that halve some axes alone, and coarsest ones of other than two cells a side.
pub fn boxes_of_any_extents_take_the_cycle_of_the_reference(device: &Cuda, scope: &Scope) {
    let of_widths = |degree, counts: [usize; 3], widths: [f64; 3]| {
        let along = [0, 1, 2].map(|axis| vec![widths[axis]; counts[axis]]);
        BoxGrid::new(degree, &along).unwrap()
    };
    cycles_agree::<f64>(device, &of_widths(1, [6, 4, 10], [0.2; 3]), 1e-12);
    cycles_agree::<f64>(device, &of_widths(2, [4, 2, 3], [1.0, 2.0, 1.0]), 1e-12);
    cycles_agree::<f32>(device, &of_widths(3, [2, 4, 4], [1.0, 0.3, 0.1]), 1e-5);
    cycles_agree::<f64>(device, &of_widths(2, [2, 2, 2], [1.0; 3]), 1e-12);
    if scope.has_every_kind {
        for degree in 1..=8 {
            cycles_agree::<f64>(device, &of_widths(degree, [12, 4, 2], [0.1, 0.1, 1.0]), 1e-11);
            cycles_agree::<f32>(device, &of_widths(degree, [4, 8, 8], [1.0, 0.01, 0.1]), 1e-4);
        }
        cycles_agree::<f64>(device, &of_widths(1, [62, 62, 31], [0.1, 0.1, 0.2]), 1e-12);
    }
}

/// Conjugate gradients and the generalized minimal residual method with cycles in single precision.
pub fn krylov_methods_take_cycles_and_products(device: &Cuda, _scope: &Scope) {
    let coarse = BoxGrid::unit(3, 2, 2).unwrap();
    for post in [PostOrder::Reversed, PostOrder::Same] {
        let config = MultigridConfig { post, ..MultigridConfig::default() };
        let cycle = GeometricMultigrid::of(Multigrid::<f32, Cuda>::new(device, &coarse, 3, config).unwrap());
        let cycle = cycle.unwrap();
        let grid = cycle.multigrid().grid();
        let a = CudaBoxOperator::<f64>::new(device, grid).unwrap();
        let b = Buffer::from_vec(device, grid.load(|[x, y, z]| 1.0 + x - y * y + z)).unwrap();
        let mut x = Buffer::zeros(device, b.len()).unwrap();
        let outcome = match post {
            PostOrder::Reversed => {
                let method = ConjugateGradient::new(KrylovConfig::default());
                method.solve(&mut x, &a, &cycle, &b, &Alone, &mut ()).unwrap()
            }
            PostOrder::Same => {
                let method = Gmres::new(GmresConfig::default());
                method.solve(&mut x, &a, &cycle, &b, &Alone, &mut ()).unwrap()
            }
        };
        assert!(outcome.stop == Stop::Converged && outcome.iterations <= 9, "{outcome:?}");
        assert!(outcome.true_relative_residual < 2e-10, "{outcome:?}");
    }
}

/// Full multigrid and its cycle as a preconditioner, as on processors.
pub fn full_multigrid_takes_the_cycles_of_the_reference(device: &Cuda, scope: &Scope) {
    let [patches, additive] = [Smoother::VertexPatch, Smoother::AdditivePatch];
    solves::<f64>(device, 1, 3, patches);
    solves::<f32>(device, 2, 3, patches);
    solves::<f32>(device, 3, 2, patches);
    solves::<f64>(device, 2, 3, additive);
    if scope.has_every_kind {
        for degree in 4..=8 {
            solves::<f64>(device, degree, 2, patches);
            solves::<f32>(device, degree, 3, patches);
            solves::<f32>(device, degree, 3, additive);
        }
        solves::<f32>(device, 1, 6, patches);
        solves::<f32>(device, 1, 4, additive);
    }
}

/// Grids that the kernels are not for.
pub fn grids_of_other_shapes_are_refused(device: &Cuda, _scope: &Scope) {
    let new = |grid: &BoxGrid| CudaPatches::<f64>::new(device, grid, PatchKernel::default(), None);
    let mut widths = [vec![0.5; 4], vec![0.5; 4], vec![0.5; 4]];
    widths[1][2] = 0.4;
    let grids = [BoxGrid::unit(2, 3, 4), BoxGrid::new(3, &widths), BoxGrid::unit(3, 9, 2)];
    for (grid, said) in grids.into_iter().zip(["2 axes", "axis 1", "degree 9"]) {
        let error = new(&grid.unwrap()).expect_err(said);
        assert!(matches!(error, MultigridError::Gpu { .. }) && error.to_string().contains(said), "{error}");
    }
    let (coarse, other) = (BoxGrid::unit(3, 2, 3).unwrap(), BoxGrid::unit(3, 2, 4).unwrap());
    let error = CudaTransfer::<f64>::new(device, &coarse, &other).expect_err("no halves");
    assert!(error.to_string().contains("halves"), "{error}");
    let cycle = GeometricMultigrid::<f64, Cuda>::from_finest(device, &other, Smoother::VertexPatch).unwrap();
    let mut nodes: Vec<u32> = (0..other.n_nodes() as u32).collect();
    nodes[3] = 5;
    let free = other.clone().with_free_sides(FREE[0]).unwrap();
    let kernel = LadderKernel::all().next().unwrap();
    let error = CudaPatchLadder::<f64>::new(device, &free, kernel, None).expect_err("free sides");
    assert!(error.to_string().contains("free sides"), "{error}");
    let layer = cells(2, [4, 1, 4]);
    let error = GeometricMultigrid::<f64, Cuda>::from_finest(device, &layer, Smoother::VertexPatch)
        .expect_err("one layer");
    assert!(error.to_string().contains("axis 1 has one layer"), "{error}");
    let error = cycle.numbered(&nodes).expect_err("twice");
    assert!(matches!(error, MultigridError::Entries { field: "nodes", .. }), "{error}");
    let config = MultigridConfig { smoother: Smoother::Point, ..MultigridConfig::default() };
    let coarse = BoxGrid::unit(3, 2, 2).unwrap();
    let error = Multigrid::<f32, Cuda>::new(device, &coarse, 2, config).expect_err("points");
    assert!(error.to_string().contains("vertex patches"), "{error}");
    let grid = cells(2, [4; 3]);
    for (team, teams, field) in [(8, 2, "team"), (16, 0, "teams"), (16, 65, "teams")] {
        let shape = Some(PatchShape { team, teams, blocks: 1 });
        let said = CudaPatches::<f64>::new(device, &grid, PatchKernel::Skeleton, shape).expect_err(field);
        assert!(said.to_string().contains(field), "{said}");
    }
    let mut short = Buffer::<f64, _>::zeros(device, grid.n_nodes() - 1).unwrap();
    let b = Buffer::zeros(device, grid.n_nodes()).unwrap();
    let said = new(&grid).unwrap().step(&mut short, &b, PostOrder::Same).expect_err("too short");
    assert!(matches!(said, LinalgError::Length { field: "x", .. }), "{said}");
}

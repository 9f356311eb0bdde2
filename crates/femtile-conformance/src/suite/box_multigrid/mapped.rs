//! Mapped cells, coefficients by cell and unequal widths on a GPU, compared with those on a CPU.

use femtile::device::{Buffer, Cpu, Cuda};
use femtile::linalg::Preconditioner;
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile::multigrid::{
    BoxGrid, BoxOperator, CudaBoxOperator, GeometricMultigrid, Multigrid, MultigridConfig, PostOrder,
    Smoother, unsupported_on_gpu,
};
use femtile::sum_factorization::SumFactorization;

use super::levels::residual_agrees;
use super::{FREE, assert_close, values, with_free_sides};
use crate::suite::Scope;
use crate::suite::problems::Random;

/// A coefficient from 1 to 3, by the cell.
pub(super) fn gentle([x, y, z]: [usize; 3]) -> f64 {
    1.0 + ((3 * x + 5 * y + 2 * z) % 5) as f64 / 2.0
}

/// Jumps by 10⁴ from one pair of cells to the next along each axis.
pub(super) fn checkered([x, y, z]: [usize; 3]) -> f64 {
    if (x / 2 + y / 2 + z / 2).is_multiple_of(2) { 1.0 } else { 1e4 }
}

pub(super) fn one(_: [usize; 3]) -> f64 {
    1.0
}

/// Bent everywhere, sides included.
pub(super) fn wavy([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x + 0.1 * (3.0 * y + z).sin(), y + 0.08 * (4.0 * x).sin(), z + 0.05 * z * (5.0 * x + y).cos()]
}

/// Wider along x than along y and z, by less than what leads to semicoarsening.
pub(super) fn straight([x, y, z]: [f64; 3]) -> [f64; 3] {
    [1.3 * x, y, 0.9 * z]
}

/// Returns a mapped unit cube, or square where the last count is zero, with a coefficient by the cell.
pub(super) fn mapped(
    degree: usize,
    counts: [usize; 3],
    map: impl Fn([f64; 3]) -> [f64; 3],
    coefficient: impl Fn([usize; 3]) -> f64,
) -> BoxGrid {
    let places =
        |n: [usize; 3]| (0..n[0] * n[1] * n[2]).map(move |i| [i % n[0], i / n[0] % n[1], i / (n[0] * n[1])]);
    let corner = |at: [usize; 3]| map([0, 1, 2].map(|axis| at[axis] as f64 / counts[axis].max(1) as f64));
    let dimension = if counts[2] == 0 { 2 } else { 3 };
    let corners = places(counts.map(|n| n + 1)).map(corner).collect();
    let coefficients = places(counts.map(|n| n.max(1))).map(coefficient).collect();
    BoxGrid::mapped(degree, &counts[..dimension], corners, coefficients).unwrap()
}

/// Residuals of every degree on deformed cells, and on rectangles with a coefficient each.
pub fn residuals_on_mapped_cells_agree_with_the_reference(device: &Cuda, scope: &Scope) {
    let highest = if scope.has_every_kind { 8 } else { 4 };
    for degree in 1..=highest {
        for grid in [mapped(degree, [3, 2, 3], wavy, gentle), mapped(degree, [2, 3, 1], straight, gentle)] {
            residual_agrees::<f64>(device, &grid, 1e-12);
            residual_agrees::<f32>(device, &grid, 2e-5);
            residual_agrees::<f64>(device, &grid.with_free_sides(FREE[degree % 4]).unwrap(), 1e-12);
        }
    }
    // Rows processed in several parts, one of a single cell.
    residual_agrees::<f64>(device, &mapped(1, [33, 1, 2], wavy, one), 1e-12);
    residual_agrees::<f64>(device, &mapped(2, [17, 2, 1], straight, gentle), 1e-12);
}

/// Compares steps of a smoother from random values with those of a CPU on a grid whose patches have the same surrogates.
pub(super) fn smooths<T: SumFactorization>(device: &Cuda, [grid, on_cpu]: [&BoxGrid; 2], tolerance: f64) {
    let mut random = Random::new(11);
    let (start, b) = (values::<T>(grid, &mut random), values::<T>(grid, &mut random));
    let cpu = Cpu::new(1).unwrap();
    let config = MultigridConfig { smoother: Smoother::VertexPatch, ..MultigridConfig::default() };
    let found = Multigrid::<T, Cuda>::from_finest(device, grid, config).unwrap();
    let reference = Multigrid::<T>::from_finest(&cpu, on_cpu, config).unwrap();
    for order in [PostOrder::Same, PostOrder::Reversed] {
        let mut wanted = Buffer::from_host(&cpu, &start).unwrap();
        reference.smooth(&mut wanted, &Buffer::from_host(&cpu, &b).unwrap(), order).unwrap();
        let mut x = Buffer::from_host(device, &start).unwrap();
        found.smooth(&mut x, &Buffer::from_host(device, &b).unwrap(), order).unwrap();
        let (counts, free) = ([0, 1, 2].map(|axis| grid.widths(axis).len()), grid.free_sides());
        let what = format!("degree {}, {counts:?} cells, free {free:?}, {order:?}", grid.degree());
        assert_close(&x.to_host().unwrap(), wanted.as_slice(), tolerance, &what);
    }
}

/// Returns the cells of a grid of rectangles as mapped ones, whose coefficient differs from one by rounding.
pub(super) fn as_mapped(grid: &BoxGrid) -> BoxGrid {
    let end = |axis: usize, i: usize| grid.widths(axis)[..i].iter().sum::<f64>();
    let counts = [0, 1, 2].map(|axis| grid.widths(axis).len());
    let corners =
        |at: [f64; 3]| [0, 1, 2].map(|axis| end(axis, (at[axis] * counts[axis] as f64).round() as usize));
    mapped(grid.degree(), counts, corners, |_| 1.0 + 4.0 * f64::EPSILON)
}

/// Additive steps with surrogates of every degree.
pub fn steps_on_mapped_cells_agree_with_the_reference(device: &Cuda, scope: &Scope) {
    // Beyond degree 6 the CPU takes long to factor the coarsest level.
    let highest = if scope.has_every_kind { 6 } else { 3 };
    for degree in 1..=highest {
        let counts = if degree < 3 { [4, 4, 6] } else { [4, 2, 3] };
        let grid = mapped(degree, counts, wavy, gentle);
        smooths::<f64>(device, [&grid; 2], 1e-10);
        smooths::<f32>(device, [&grid; 2], 2e-4);
    }
    let grid = mapped(2, [4, 2, 3], straight, gentle);
    smooths::<f64>(device, [&grid; 2], 1e-10);
    for grid in with_free_sides(&mapped(1, [4, 3, 4], wavy, gentle)) {
        smooths::<f64>(device, [&grid; 2], 1e-10);
    }
    for grid in with_free_sides(&mapped(2, [4, 2, 3], wavy, gentle)) {
        smooths::<f64>(device, [&grid; 2], 1e-10);
    }
    // Jumps, where patches are solved exactly.
    for degree in 1..=if scope.has_every_kind { 4 } else { 2 } {
        smooths::<f64>(device, [&mapped(degree, [4, 4, 6], straight, checkered); 2], 1e-10);
        smooths::<f32>(device, [&mapped(degree, [4; 3], straight, checkered); 2], 2e-4);
        for grid in with_free_sides(&mapped(degree, [4, 2, 3], wavy, checkered)) {
            smooths::<f64>(device, [&grid; 2], 1e-9);
        }
    }
    // Widths that differ little have surrogates, which a CPU has for mapped cells only.
    for degree in [1, 3] {
        let widths = [vec![0.3, 0.3, 0.26, 0.26], vec![0.25, 0.28, 0.24], vec![0.4, 0.4, 0.35]];
        let grid = BoxGrid::new(degree, &widths).unwrap().with_free_sides(FREE[1]).unwrap();
        let on_cpu = as_mapped(&grid).with_free_sides(grid.free_sides()).unwrap();
        smooths::<f64>(device, [&grid, &on_cpu], 1e-10);
    }
}

/// Returns a box of pairs of rectangles of these widths along each axis, one side of it free.
fn stretched(degree: usize, [one, other]: [f64; 2]) -> BoxGrid {
    let widths = [vec![one, one, other, other], vec![other, other, one, one], vec![one, one, other, other]];
    BoxGrid::new(degree, &widths).unwrap().with_free_sides(FREE[0]).unwrap()
}

/// Compares a V-cycle with that of a CPU with the same surrogates.
pub(super) fn cycles_agree<T: SumFactorization>(device: &Cuda, grid: &BoxGrid, tolerance: f64) {
    let cpu = Cpu::new(1).unwrap();
    assert_eq!(unsupported_on_gpu(grid), None);
    let r = values::<f64>(grid, &mut Random::new(41));
    let smoother = Smoother::VertexPatch;
    let cycle = GeometricMultigrid::<T, Cuda>::from_finest(device, grid, smoother).unwrap();
    let reference = GeometricMultigrid::<T>::from_finest(&cpu, grid, smoother).unwrap();
    let mut wanted = Buffer::from_host(&cpu, &r).unwrap();
    reference.apply(&mut wanted, &Buffer::from_host(&cpu, &r).unwrap()).unwrap();
    // Recordings begin with the second.
    for _ in 0..2 {
        let mut z = Buffer::from_vec(device, vec![f64::NAN; r.len()]).unwrap();
        cycle.apply(&mut z, &Buffer::from_host(device, &r).unwrap()).unwrap();
        let what = format!("degree {}, {:?} nodes", grid.degree(), grid.nodes());
        assert_close(&z.to_host().unwrap(), wanted.as_slice(), tolerance, &what);
    }
}

/// Cycles on mapped cells, with and without free sides.
pub fn cycles_on_mapped_cells_are_those_of_the_reference(device: &Cuda, scope: &Scope) {
    cycles_agree::<f64>(device, &mapped(1, [8, 4, 6], wavy, gentle), 1e-10);
    cycles_agree::<f64>(device, &mapped(2, [4, 4, 3], straight, gentle), 1e-10);
    cycles_agree::<f32>(device, &mapped(3, [4, 4, 2], wavy, gentle), 2e-4);
    // No level above the coarsest.
    cycles_agree::<f64>(device, &mapped(2, [2, 2, 1], wavy, gentle).with_free_sides(FREE[3]).unwrap(), 1e-10);
    let grid = mapped(2, [4, 2, 3], wavy, gentle);
    cycles_agree::<f64>(device, &grid.with_free_sides(FREE[2]).unwrap(), 1e-10);
    cycles_agree::<f64>(device, &mapped(2, [4, 4, 3], wavy, checkered), 1e-9);
    if scope.has_every_kind {
        for grid in (1..=5).flat_map(|degree| with_free_sides(&mapped(degree, [8, 4, 6], wavy, gentle))) {
            cycles_agree::<f64>(device, &grid, 1e-10);
            cycles_agree::<f32>(device, &grid, 1e-3);
        }
    }
}

/// Returns the iterations of conjugate gradients to 10⁻¹⁰ with f32 cycles, on a CPU and on a GPU.
pub(super) fn iterations(device: &Cuda, grid: &BoxGrid) -> [usize; 2] {
    let smoother = Smoother::VertexPatch;
    let cpu = Cpu::new(1).unwrap();
    let b = grid.load(|[x, y, z]| 1.0 + x - y * y + z);
    let method = ConjugateGradient::new(KrylovConfig::default());
    let of_cpu = {
        let cycle = GeometricMultigrid::<f32>::from_finest(&cpu, grid, smoother).unwrap();
        let a = BoxOperator::<f64>::new(&cpu, grid);
        let (mut x, b) = (Buffer::zeros(&cpu, b.len()).unwrap(), Buffer::from_host(&cpu, &b).unwrap());
        method.solve(&mut x, &a, &cycle, &b, &SingleRank, &mut ()).unwrap()
    };
    let cycle = GeometricMultigrid::<f32, Cuda>::from_finest(device, grid, smoother).unwrap();
    let a = CudaBoxOperator::<f64>::new(device, grid).unwrap();
    let mut x = Buffer::zeros(device, b.len()).unwrap();
    let of_gpu =
        method.solve(&mut x, &a, &cycle, &Buffer::from_vec(device, b).unwrap(), &SingleRank, &mut ());
    [of_cpu, of_gpu.unwrap()].map(|outcome| {
        assert!(outcome.stop == Stop::Converged, "{outcome:?}");
        outcome.iterations
    })
}

/// As many iterations as on a CPU, one more at most.
pub fn solves_on_mapped_cells_take_the_iterations_of_the_reference(device: &Cuda, scope: &Scope) {
    let n = if scope.has_every_kind { 8 } else { 4 };
    for (name, grid) in [
        ("bent", mapped(1, [n; 3], wavy, one)),
        ("bent", mapped(2, [n; 3], wavy, one)),
        ("gentle", mapped(2, [n; 3], straight, gentle)),
        ("jumps", mapped(2, [n; 3], wavy, checkered)),
        ("jumps", mapped(1, [n; 3], straight, checkered)),
    ] {
        let [wanted, found] = iterations(device, &grid);
        let what = format!("{name}, degree {}: {found}, {wanted} on a CPU", grid.degree());
        assert!(found.abs_diff(wanted) <= 1, "{what}");
    }
    // Of rectangles that are not equal a CPU has multiplicative patches.
    for degree in [1, 3] {
        let [multiplicative, additive] = iterations(device, &stretched(degree, [0.2, 0.7]));
        assert!(additive <= 2 * multiplicative, "degree {degree}: {additive}, {multiplicative}");
    }
}

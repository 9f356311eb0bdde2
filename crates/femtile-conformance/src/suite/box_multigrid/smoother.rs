//! Smoothing steps on a GPU, compared with those of a CPU.

use femtile::device::{Buffer, Cpu, Cuda};
use femtile::multigrid::{
    BoxGrid, CudaPatches, Multigrid, MultigridConfig, PatchKernel, PatchShape, PostOrder, Smoother,
};
use femtile::sum_factorization::SumFactorization;

use super::{assert_close, cells, values, with_free_sides};
use crate::suite::Scope;
use crate::suite::problems::Random;

const KERNELS: [PatchKernel; 3] = [PatchKernel::Skeleton, PatchKernel::Whole, PatchKernel::Fused];

/// Returns the kernels for a degree.
fn kernels(degree: usize) -> impl Iterator<Item = PatchKernel> {
    KERNELS.into_iter().chain((degree == 1).then_some(PatchKernel::Stencil))
}

/// Returns the multigrid of a CPU on a finest grid.
fn reference<T: SumFactorization>(grid: &BoxGrid) -> Multigrid<T> {
    let config = MultigridConfig { smoother: Smoother::VertexPatch, ..MultigridConfig::default() };
    Multigrid::from_finest(&Cpu::new(1).unwrap(), grid, config).unwrap()
}

/// Compares a smoothing step from random values.
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
        let (cpu, reference) = (Cpu::new(1).unwrap(), reference::<T>(grid));
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

/// Multiplicative Schwarz of every degree, on few and on many cells.
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
        // Rows longer than a block.
        smooths::<f64>(device, 1, [512, 4, 4], PatchKernel::Stencil, 1e-12);
    }
}

/// Patches on free sides, with every kernel.
pub fn free_sides_are_smoothed_as_by_the_reference(device: &Cuda, scope: &Scope) {
    for (degree, counts) in [(1, [4, 6, 4]), (2, [4, 3, 2]), (3, [2, 4, 2])] {
        for (i, grid) in with_free_sides(&cells(degree, counts)).into_iter().enumerate() {
            for kernel in kernels(degree) {
                smooths_on::<f64>(device, &grid, kernel, 1e-12);
                if scope.has_every_kind || i == 3 {
                    smooths_on::<f32>(device, &grid, kernel, 1e-5);
                }
            }
        }
    }
    // One layer of cells with a vertex on one side, or on both.
    for free in [[true, false], [false, true], [true; 2]] {
        let layer = cells(2, [4, 1, 4]).with_free_sides([[false; 2], free, [true, false]]).unwrap();
        smooths_on::<f64>(device, &layer, PatchKernel::Skeleton, 1e-12);
    }
    if scope.has_every_kind {
        for grid in (4..=8).flat_map(|degree| with_free_sides(&cells(degree, [4, 6, 4]))) {
            for kernel in KERNELS {
                smooths_on::<f64>(device, &grid, kernel, 1e-12);
                smooths_on::<f32>(device, &grid, kernel, 2e-5);
            }
        }
        for grid in with_free_sides(&cells(1, [512, 4, 4])) {
            smooths_on::<f64>(device, &grid, PatchKernel::Stencil, 1e-12);
        }
    }
}

/// All kernels agree on grids of any number of cells, some without a patch of some colour, or of any.
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

/// Launch shapes do not change the bits.
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

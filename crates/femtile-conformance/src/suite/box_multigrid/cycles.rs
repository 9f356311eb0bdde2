//! Cycles on a GPU, compared with those of a CPU.

use femtile::device::{Buffer, Cpu, Cuda};
use femtile::linalg::Preconditioner;
use femtile::multigrid::{BoxGrid, GeometricMultigrid, Smoother, thin_axis};
use femtile::sum_factorization::SumFactorization;

use super::levels::{residual_agrees, transfers_nest};
use super::{assert_close, cells, uneven, values, with_free_sides};
use crate::suite::Scope;
use crate::suite::problems::Random;

/// Compares a V-cycle with that of the CPU, with vectors in node order and reversed, below a grid without thin axes (on
/// which the CPU uses other patches).
pub(super) fn cycles_agree<T: SumFactorization>(device: &Cuda, finest: &BoxGrid, tolerance: f64) {
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
    let found = apply(&cycle().with_numbering(&backwards).unwrap(), &r);
    assert_close(&found, z.as_slice(), tolerance, &what);
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

/// Boxes of any extents: semicoarsening, and coarsest grids with more than two cells along an axis.
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

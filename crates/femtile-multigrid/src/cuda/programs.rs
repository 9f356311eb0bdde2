//! Programs of a hierarchy of grids.

use femtile_device::Scalar;
use femtile_device::cuda::Specialisation;

use super::{PatchKernel, coarsest, kernels, operator, smoother, transfer};
use crate::{BoxGrid, Smoother};

/// Returns the programs of multigrid below a grid of hexahedra, for all sets of sides with given values; none for smoothers
/// without kernels.
pub fn multigrid_programs<T: Scalar>(finest: &BoxGrid, smoother: Smoother) -> Vec<Specialisation> {
    let grids: Vec<BoxGrid> = std::iter::successors(Some(finest.clone()), BoxGrid::coarsened).collect();
    let has_kernels = super::check(finest).is_ok() && smoother.has_patches();
    if !has_kernels {
        return Vec::new();
    }
    let mut programs = vec![kernels::program::<T>(), operator::of_grid::<T>(finest)];
    for pair in grids.windows(2) {
        let [fine, coarse] = [&pair[0], &pair[1]];
        let kernel = match smoother {
            Smoother::AdditivePatch => PatchKernel::Additive,
            _ => PatchKernel::fastest::<T>(fine),
        };
        programs.extend(smoother::programs::<T>(fine, kernel));
        programs.push(operator::of_grid::<T>(fine));
        let parts = [0, 1, 2].map(|axis| fine.widths(axis).len() / coarse.widths(axis).len());
        programs.extend([false, true].map(|far| transfer::program::<T>(fine.degree(), parts, far)));
    }
    programs.extend(smoother::programs::<T>(&grids[grids.len() - 1], PatchKernel::Whole).into_iter().take(1));
    programs.push(coarsest::program::<T>());
    programs
}

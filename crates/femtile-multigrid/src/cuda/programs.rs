//! Programs of a hierarchy of grids.

use femtile_device::Scalar;
use femtile_device::cuda::Specialisation;

use super::{PatchKernel, coarsest, equal_widths, kernels, mapped, operator, plane, smoother, transfer};
use crate::{BoxGrid, Smoother};

/// Returns the programs of multigrid below a grid, for all sets of Dirichlet sides; none for smoothers
/// without kernels. The coefficient on rectangles may vary from cell to cell.
pub fn multigrid_programs<T: Scalar>(
    finest: &BoxGrid,
    smoother: Smoother,
    varies: bool,
) -> Vec<Specialisation> {
    let grids: Vec<BoxGrid> = std::iter::successors(Some(finest.clone()), BoxGrid::coarsened).collect();
    if super::check(finest).is_err() || smoother == Smoother::Chebyshev {
        return Vec::new();
    }
    let mut programs = vec![kernels::program::<T>(), operator::of_grid::<T>(finest, varies)];
    for pair in grids.windows(2) {
        let [fine, coarse] = [&pair[0], &pair[1]];
        let is_plane = fine.dimension() == 2;
        programs.extend(match varies || equal_widths(fine).is_err() {
            true => mapped::programs::<T>(fine),
            false if is_plane => plane_patches::<T>(fine),
            false => smoother::programs::<T>(fine, PatchKernel::fastest::<T>(fine)),
        });
        programs.push(operator::of_grid::<T>(fine, varies));
        let parts = transfer::parts(coarse, fine);
        programs.extend([false, true].map(|far| transfer::of_grid::<T>(coarse, parts, far)));
    }
    let coarsest = &grids[grids.len() - 1];
    if varies || coarsest.mapping().is_some() {
        programs.push(mapped::coarsest::program::<T>());
    } else if coarsest.dimension() == 2 {
        programs.extend(plane_patches::<T>(coarsest).into_iter().take(1));
        programs.push(mapped::coarsest::program::<T>());
    } else {
        programs.extend(smoother::programs::<T>(coarsest, PatchKernel::Whole).into_iter().take(1));
        programs.push(coarsest::program::<T>());
    }
    programs
}

/// Returns the programs of vertex patches of equal rectangles, without and with free sides.
fn plane_patches<T: Scalar>(grid: &BoxGrid) -> Vec<Specialisation> {
    [false, true].map(|is_mirrored| plane::patches::compiled::<T>(grid.degree(), is_mirrored).program).into()
}

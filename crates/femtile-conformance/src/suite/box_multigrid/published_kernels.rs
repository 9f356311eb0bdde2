//! Published kernels of the smoother, compared with the fused kernel.

use femtile::device::{Buffer, Cuda};
use femtile::multigrid::{CudaPatches, PatchKernel, PostOrder};
use femtile::sum_factorization::SumFactorization;
use femtile_research::published_kernels::{Layout, Passes, PublishedKernel, PublishedPatches};

use super::{assert_close, cells, values};
use crate::suite::Scope;
use crate::suite::problems::Random;

/// Published kernels agree with the fused kernel on grids of any number of cells.
pub fn published_kernels_agree_with_the_fused_kernel(device: &Cuda, scope: &Scope) {
    for kernel in PublishedKernel::all() {
        compares::<f64>(device, kernel, 2, [2, 3, 5], 1e-12);
    }
    compares::<f64>(
        device,
        PublishedKernel { passes: Passes::Fused, layout: Layout::Boundary },
        1,
        [5, 2, 3],
        1e-12,
    );
    compares::<f32>(
        device,
        PublishedKernel { passes: Passes::Separate, layout: Layout::Basic },
        1,
        [3, 2, 2],
        1e-5,
    );
    if scope.has_every_kind {
        for degree in 1..=8 {
            for kernel in PublishedKernel::all() {
                compares::<f64>(device, kernel, degree, [3, 4, 5], 1e-12);
                compares::<f32>(device, kernel, degree, [4, 3, 4], 5e-5);
            }
        }
    }
}

/// Compares steps in both orders with those of the fused kernel, if the variant exists for the degree.
fn compares<T: SumFactorization>(
    device: &Cuda,
    kernel: PublishedKernel,
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
    let patches = PublishedPatches::new(device, &grid, kernel, None).unwrap();
    let fused = CudaPatches::new(device, &grid, PatchKernel::Fused, None).unwrap();
    for order in [PostOrder::Same, PostOrder::Reversed] {
        let [mut x, mut wanted] = [(); 2].map(|()| Buffer::from_host(device, &start).unwrap());
        fused.step(&mut wanted, &b, order).unwrap();
        patches.step(&mut x, &b, order).unwrap();
        let what = format!("degree {degree}, {counts:?} cells, {}, {order:?}", kernel.name());
        assert_close(&x.to_host().unwrap(), &wanted.to_host().unwrap(), tolerance, &what);
    }
}

//! Grids and settings that GPU kernels refuse.

use femtile::device::{Buffer, Cuda};
use femtile::linalg::LinalgError;
use femtile::multigrid::{
    BoxGrid, CudaPatches, CudaTransfer, GeometricMultigrid, Multigrid, MultigridConfig, MultigridError,
    PatchKernel, PatchShape, PostOrder, Smoother,
};
use femtile_research::published_kernels::{PublishedKernel, PublishedPatches};

use super::{FREE, cells};
use crate::suite::Scope;

/// Grids and settings without kernels are errors.
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
    let kernel = PublishedKernel::all().next().unwrap();
    let error = PublishedPatches::<f64>::new(device, &free, kernel, None).expect_err("free sides");
    assert!(error.to_string().contains("free sides"), "{error}");
    let layer = cells(2, [4, 1, 4]);
    let error = GeometricMultigrid::<f64, Cuda>::from_finest(device, &layer, Smoother::VertexPatch)
        .expect_err("one layer");
    assert!(error.to_string().contains("axis 1 has one layer"), "{error}");
    let error = cycle.with_numbering(&nodes).expect_err("twice");
    assert!(matches!(error, MultigridError::Entries { field: "nodes", .. }), "{error}");
    let config = MultigridConfig { smoother: Smoother::Chebyshev, ..MultigridConfig::default() };
    let coarse = BoxGrid::unit(3, 2, 2).unwrap();
    let error = Multigrid::<f32, Cuda>::new(device, &coarse, 2, config).expect_err("polynomials");
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

//! The conformance suite on a real GPU; skipped with a message where there is none.

use femtile::device::Cuda;
use femtile_conformance::suite::FULL;
use femtile_conformance::suite::block_tridiagonal::FULL_BLOCKS;
use femtile_conformance::suite::formats::FULL_FORMATS;

fn devices(_check: &str) -> Vec<Cuda> {
    match Cuda::new(0) {
        Ok(device) => vec![device],
        Err(error) => {
            eprintln!("SKIPPED: tests on a real GPU: {error}");
            vec![]
        }
    }
}

femtile_conformance::linear_algebra!(devices, FULL);
femtile_conformance::merged_cg!(devices, FULL);
femtile_conformance::cg_variants!(devices, FULL);
femtile_conformance::multigrid!(devices, FULL);
femtile_conformance::multigrid_levels!(devices, FULL);
femtile_conformance::little_memory!(devices, FULL);
femtile_conformance::sparse!(devices, FULL);
femtile_conformance::sparse_formats!(devices, FULL_FORMATS);
femtile_conformance::kernel_headers!(devices, FULL);
femtile_conformance::assembly!(devices, FULL);
femtile_conformance::refill!(devices, FULL);
femtile_conformance::patch_assembly!(devices, FULL);
femtile_conformance::matrix_free!(devices, FULL);
femtile_conformance::box_multigrid!(devices, FULL);
femtile_conformance::tridiagonal!(devices, FULL);
femtile_conformance::block_tridiagonal!(devices, FULL_BLOCKS);
femtile_conformance::alternating_directions!(devices, FULL);
femtile_conformance::membranes!(devices, FULL);
femtile_conformance::runs_in_time!(devices, FULL);
femtile_conformance::several_ranks!(devices, FULL);

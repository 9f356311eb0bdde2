//! The conformance suite on emulated CUDA, which checks every access of every kernel.

use std::sync::Arc;

use femtile::amg::{Amg, AmgConfig, Cycle};
use femtile::device::{Buffer, Cuda, Device, Reference};
use femtile::linalg::Preconditioner;
use femtile::linalg::sparse::{MatrixFormat, matrix_market};
use femtile_conformance::emulator::Emulator;
use femtile_conformance::suite::amg_levels::matrix_is_preconditioned;
use femtile_conformance::suite::block_tridiagonal::SMALL_BLOCKS;
use femtile_conformance::suite::formats::SMALL_FORMATS;
use femtile_conformance::suite::problems::{Random, laplacian};
use femtile_conformance::suite::samples::{Sample, definite_matrices, tetrahedra};
use femtile_conformance::suite::{self, SMALL, Scope};

fn devices(check: &str) -> Vec<Cuda> {
    match Emulator::new() {
        Ok(emulator) => vec![Cuda::with_driver(Arc::new(emulator))],
        Err(error) => {
            eprintln!("SKIPPED: {check} on emulated CUDA: {error}");
            vec![]
        }
    }
}

femtile_conformance::linear_algebra!(devices, SMALL);
femtile_conformance::merged_cg!(devices, SMALL);
femtile_conformance::cg_variants!(devices, SMALL);
femtile_conformance::multigrid!(devices, SMALL);
femtile_conformance::multigrid_levels!(devices, SMALL);
femtile_conformance::little_memory!(devices, SMALL);
femtile_conformance::sparse!(devices, SMALL);
femtile_conformance::sparse_formats!(devices, SMALL_FORMATS);
femtile_conformance::kernel_headers!(devices, SMALL);
femtile_conformance::assembly!(devices, SMALL);
femtile_conformance::refill!(devices, SMALL);
femtile_conformance::patch_assembly!(devices, SMALL);
femtile_conformance::matrix_free!(devices, SMALL);
femtile_conformance::box_multigrid!(devices, SMALL);
femtile_conformance::tridiagonal!(devices, SMALL);
femtile_conformance::block_tridiagonal!(devices, SMALL_BLOCKS);
femtile_conformance::alternating_directions!(devices, SMALL);
femtile_conformance::membranes!(devices, SMALL);
femtile_conformance::runs_in_time!(devices, SMALL);
femtile_conformance::several_ranks!(devices, SMALL);

/// Sums of few blocks end without a last one; here they all end with it.
#[test]
fn sums_that_the_last_block_adds_agree_as_well() {
    let Ok(emulator) = Emulator::new() else { return };
    let emulator = emulator.mutate(|_, text| text.replace("n_blocks <= ADDENDS", "false"));
    let device = Cuda::with_driver(Arc::new(emulator));
    suite::cg::cg_agrees_with_the_reference(&device, &Scope { side: 50, ..SMALL });
}

/// The smallest sample mesh, as an emulator takes its time.
#[test]
fn assembly_on_a_sample_mesh_agrees_with_plain_assembly() {
    let test = "assembly_on_a_sample_mesh_agrees_with_plain_assembly";
    let size = |file: &std::path::PathBuf| file.metadata().map_or(u64::MAX, |data| data.len());
    let Some(file) = tetrahedra(test).into_iter().min_by_key(size) else { return };
    for device in devices(test) {
        let sample = Sample::read(&file);
        assert!(sample.refill_agrees(&device).is_some(), "{} is refused", sample.name);
        sample.patches_agree(&device);
    }
}

/// Runs on sample meshes, the smallest first, at most `most` of them.
fn multigrid_on_meshes(test: &str, most: usize) {
    let mut files = tetrahedra(test);
    files.sort_by_key(|file| file.metadata().map_or(u64::MAX, |data| data.len()));
    for device in devices(test) {
        for file in files.iter().take(most) {
            let sample = Sample::read(file);
            let Ok(system) = sample.problem.assemble::<f64, _>(&Reference) else { continue };
            matrix_is_preconditioned(&device, &system.matrix.copy_to(&device).unwrap(), 1, &sample.name);
            println!("{}: {} rows", sample.name, system.matrix.n_rows());
        }
    }
}

#[test]
fn multigrid_on_small_sample_meshes_keeps_its_promises() {
    multigrid_on_meshes("multigrid_on_small_sample_meshes_keeps_its_promises", 3);
}

#[test]
#[ignore = "takes minutes"]
fn multigrid_on_all_samples_keeps_its_promises() {
    let test = "multigrid_on_all_samples_keeps_its_promises";
    multigrid_on_meshes(test, usize::MAX);
    for device in devices(test) {
        for (file, block_size) in definite_matrices(test) {
            let a = matrix_market::read::<f64>(&file).unwrap().matrix.copy_to(&device).unwrap();
            matrix_is_preconditioned(&device, &a, block_size, &file.display().to_string());
            println!("{}: {} rows", file.display(), a.n_rows());
        }
    }
}

#[test]
fn levels_of_few_rows_are_one_launch_of_a_cycle() {
    for device in devices("levels_of_few_rows_are_one_launch_of_a_cycle") {
        let side = 23;
        let a = laplacian::<f64>(side, &mut Random::new(3)).on(&device);
        let r = Buffer::from_vec(&device, vec![1.0; side * side]).unwrap();
        let mut z = Buffer::zeros(&device, side * side).unwrap();
        let mut launches = |cycle, format| {
            let config = AmgConfig { cycle, format, coarse_rows: 12, ..AmgConfig::default() };
            let amg = Amg::<f32, Cuda>::new(&a, None, &config).unwrap();
            assert_eq!(amg.hierarchy().formats().len(), 2, "{}", amg.hierarchy());
            let before = device.kernel_launches();
            amg.apply(&mut z, &r).unwrap();
            device.kernel_launches() - before
        };
        // Both changes of precision, and on each level two steps before, a residual, a correction and two steps after.
        let of_finest = 2 + 6;
        assert_eq!(launches(Cycle::V, MatrixFormat::Csr), of_finest + 1);
        // One by one the next level has as many and its right side; the coarsest has a right side and a product.
        for (cycle, format) in [(Cycle::V, MatrixFormat::EllWarp), (Cycle::W, MatrixFormat::Csr)] {
            assert!(launches(cycle, format) >= of_finest + 7 + 2);
        }
    }
}

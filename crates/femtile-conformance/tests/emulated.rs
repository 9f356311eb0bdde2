//! The conformance suite on emulated CUDA, which checks every access of every kernel.

use std::sync::Arc;

use femtile::device::Cuda;
use femtile_conformance::emulator::Emulator;
use femtile_conformance::suite::SMALL;

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

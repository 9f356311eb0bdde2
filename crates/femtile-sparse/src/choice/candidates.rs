use super::Machine;
use crate::Format;
use crate::ell_warp::{EllWarpConfig, IndexKind};

/// Returns the formats that the cost model estimates and that a search times.
pub fn candidates(machine: &Machine) -> Vec<Format> {
    match *machine {
        Machine::Cpu { lanes } => cpu_candidates(lanes),
        Machine::Gpu { .. } => gpu_candidates(),
    }
}

fn gpu_candidates() -> Vec<Format> {
    let mut formats = vec![Format::Csr];
    for lanes in [32, 64] {
        let new = EllWarpConfig::new(lanes);
        formats.extend(sliced(new, &[1, 256, 4096, EllWarpConfig::ALL_ROWS], &[None]));
    }
    let thresholds = [2, 4, 8, 16, 32, 64].map(Some);
    formats.extend(sliced(EllWarpConfig::new(32), &[4096, EllWarpConfig::ALL_ROWS], &thresholds));
    formats
}

/// Returns the formats for a CPU whose SIMD vectors have `lanes` lanes.
fn cpu_candidates(lanes: usize) -> Vec<Format> {
    let mut formats = vec![Format::Csr];
    for lanes in [lanes, 2 * lanes] {
        let new = EllWarpConfig::new(lanes);
        formats.extend(sliced(new, &[1, 256, 4096, EllWarpConfig::ALL_ROWS], &[None]));
    }
    formats.extend(sliced(EllWarpConfig::new(lanes), &[4096], &[Some(8), Some(32)]));
    formats
}

fn sliced(new: EllWarpConfig, windows: &[usize], thresholds: &[Option<usize>]) -> Vec<Format> {
    let mut formats = Vec::new();
    for &window in windows {
        for &threshold in thresholds {
            for indices in [IndexKind::Full, IndexKind::Delta] {
                formats.push(Format::EllWarp(EllWarpConfig { window, threshold, indices, ..new }));
            }
        }
    }
    formats
}

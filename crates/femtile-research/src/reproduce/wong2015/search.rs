//! The fastest threads of a block of K1, threshold and threads of a block of K2.

use crate::formats::ComparedFormat;
use femtile::linalg::sparse::EllWarpConfig;

use super::machine::Timing;
use super::matrices::Case;
use super::{COUNTS, Session, once};
use femtile_bench::BenchError;

/// The fastest setting for one count of products in a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Best {
    pub seconds: f64,
    pub config: EllWarpConfig,
}

/// The fastest settings for each count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Searched {
    pub k1: [Best; COUNTS],
    pub k2: [Best; COUNTS],
}

/// All rows sorted, as the paper has them.
pub(super) fn k1(session: &Session) -> EllWarpConfig {
    EllWarpConfig { window: EllWarpConfig::ALL_ROWS, ..EllWarpConfig::new(session.measured().lanes()) }
}

/// Threads of a block that are tried; a CPU has none.
fn blocks(session: &Session) -> Vec<u32> {
    let all = if session.settings.small { vec![64, 128] } else { (1..=8).map(|warps| 32 * warps).collect() };
    if session.measured().is_gpu() { all } else { vec![EllWarpConfig::new(4).block_threads] }
}

/// Powers of two, and the longest row.
fn thresholds(session: &Session, longest: usize) -> Vec<usize> {
    let powers: &[usize] = if session.settings.small { &[2, 8] } else { &[2, 4, 8, 16, 32, 64] };
    powers.iter().copied().filter(|&power| power < longest).chain([longest.max(1)]).collect()
}

/// The fastest settings of a matrix.
///
/// K2 is tried with every threshold and one size of blocks, then with every size of blocks and the
/// thresholds that were fastest: a search of both at once takes eight times as long.
pub(super) fn searched<'a>(session: &Session, case: &'a Case) -> Result<&'a Searched, BenchError> {
    once(&case.searched, || {
        let (plain, blocks) = (k1(session), blocks(session));
        let mut k1 = Search::new(session, case, plain);
        for &block_threads in &blocks {
            k1.attempt(EllWarpConfig { block_threads, ..plain })?;
        }
        let mut k2 = Search::new(session, case, plain);
        let longest = case.a(session.settings.small)?.row_lengths().into_iter().max().unwrap_or(0);
        for threshold in thresholds(session, longest as usize) {
            k2.attempt(EllWarpConfig { threshold: Some(threshold), ..plain })?;
        }
        let mut chosen = k2.best.map(|best| best.config.threshold).to_vec();
        chosen.sort_unstable();
        chosen.dedup();
        for threshold in chosen {
            for &block_threads in blocks.iter().filter(|&&threads| threads != plain.block_threads) {
                k2.attempt(EllWarpConfig { threshold, block_threads, ..plain })?;
            }
        }
        Ok(Searched { k1: k1.best, k2: k2.best })
    })
}

struct Search<'a> {
    session: &'a Session,
    case: &'a Case,
    timing: Timing,
    best: [Best; COUNTS],
}

impl<'a> Search<'a> {
    fn new(session: &'a Session, case: &'a Case, config: EllWarpConfig) -> Self {
        let best = [Best { seconds: f64::INFINITY, config }; COUNTS];
        Self { session, case, timing: Timing::of(session), best }
    }

    fn attempt(&mut self, config: EllWarpConfig) -> Result<(), BenchError> {
        let a = self.case.a(self.session.settings.small)?;
        let format = ComparedFormat::ell_warp(config);
        let Some(products) = self.session.measured().products(a, format, &self.timing)? else {
            return Ok(());
        };
        for (best, seconds) in self.best.iter_mut().zip(products.seconds) {
            if seconds < best.seconds {
                *best = Best { seconds, config };
            }
        }
        Ok(())
    }
}

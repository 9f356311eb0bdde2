//! Linear algebra on the CPU: the conformance suite, and what only a CPU promises.

mod block_tridiagonal;
mod cg;
mod csr;
mod formats;
mod tridiagonal;
mod variants;
mod vector;

use femtile::device::{Cpu, Reference, cpu::SimdLevel};
use femtile_conformance::suite::FULL;
use femtile_conformance::suite::formats::FULL_FORMATS;

/// CPU devices of every SIMD level this processor has, with 1, 2 and 3 threads.
pub fn cpus() -> Vec<Cpu> {
    let threads = |simd| (1..=3).map(move |n| Cpu::with_simd(n, simd).expect("a level that is available"));
    SimdLevel::available().into_iter().flat_map(threads).collect()
}

fn devices(_check: &str) -> Vec<Cpu> {
    cpus()
}

femtile_conformance::linear_algebra!(devices, FULL);
femtile_conformance::merged_cg!(devices, FULL);
femtile_conformance::cg_variants!(devices, FULL);
femtile_conformance::multigrid!(devices, FULL);
femtile_conformance::sparse!(devices, FULL);
femtile_conformance::sparse_formats!(devices, FULL_FORMATS);

#[test]
fn hooks_of_sliced_products_see_what_was_written() {
    cpus().iter().for_each(femtile_conformance::suite::ell_warp::hooks_see_what_was_written);
}

#[test]
fn sliced_products_of_the_reference_agree_with_csr() {
    femtile_conformance::suite::ell_warp::ell_warp_products_agree_with_csr(&Reference, &FULL);
    femtile_conformance::suite::ell_warp::ell_warp_takes_new_values(&Reference, &FULL);
    femtile_conformance::suite::ell_warp::lanes_without_a_product_are_refused(&Reference, &FULL);
}

#[test]
fn merged_conjugate_gradients_of_the_reference_agree_with_plain_ones() {
    femtile_conformance::suite::merged_cg::merged_cg_agrees_with_plain_cg(&Reference, &FULL);
    femtile_conformance::suite::merged_cg::merged_cg_returns_the_iterate_that_it_reports(&Reference, &FULL);
}

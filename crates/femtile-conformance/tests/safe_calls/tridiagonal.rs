use femtile::device::{Buffer, Cpu};
use femtile::linalg::LinalgError;
use femtile::tridiagonal::block::{
    BlockBands, BlockOrder, BlockProblem, BlockShape, BlockTridiagonalKernels,
};
use femtile::tridiagonal::factored::{FactoredKernels, Factors};
use femtile::tridiagonal::{
    Algorithm, Bands, BatchLayout, BatchProblem, Ends, LineAxis, Lines, Stability, TridiagonalKernels, Work,
};

use crate::{cpu, refused, zeros};

/// Rows of a system.
const ROWS: usize = 65_536;

fn problem(lines: Lines, algorithm: Algorithm) -> BatchProblem {
    BatchProblem { lines, algorithm, ends: Ends::Open, stability: Stability::Unpivoted }
}

fn work(cpu: &Cpu) -> Work<f64, Cpu> {
    Work { status: Buffer::from_host(cpu, &[0, u64::MAX]).unwrap(), scratch: None }
}

#[test]
fn batches_refuse_arrays_that_their_lines_reach_beyond() {
    let cpu = cpu();
    let (whole, mut short, mut work) = (zeros(&cpu, ROWS), zeros(&cpu, 1), work(&cpu));
    let lines = BatchLayout::contiguous(&[ROWS]).unwrap().lines(0).unwrap();
    let bands = Bands::Arrays { lower: &whole, diagonal: &whole, upper: &whole };
    for algorithm in [Algorithm::Auto, Algorithm::Thomas, Algorithm::Pcr] {
        let problem = problem(lines.clone(), algorithm);
        refused(cpu.tridiagonal_solve(&problem, &mut short, bands, None, &mut work), ("u", ROWS, 1));
        let d = zeros(&cpu, 2);
        let mut u = zeros(&cpu, ROWS);
        refused(cpu.tridiagonal_solve(&problem, &mut u, bands, Some(&d), &mut work), ("d", ROWS, 2));
        let bands = Bands::Arrays { lower: &whole, diagonal: &d, upper: &whole };
        refused(cpu.tridiagonal_solve(&problem, &mut u, bands, None, &mut work), ("diagonal", ROWS, 2));
    }
    let [lower, diagonal, upper, inverse, c_star] = [(); 5].map(|()| zeros(&cpu, 3));
    let factors = Factors { lower, diagonal, upper, inverse, c_star };
    let problem = problem(lines, Algorithm::Thomas);
    let mut u = zeros(&cpu, ROWS);
    refused(cpu.factored_solve(&problem, &factors, &mut u, None, &mut work), ("lower", ROWS, 3));
}

#[test]
fn lines_that_share_places_or_reach_past_all_memory_are_refused() {
    let cpu = cpu();
    let (whole, mut u, mut work) = (zeros(&cpu, 64), zeros(&cpu, 64), work(&cpu));
    let bands = Bands::Arrays { lower: &whole, diagonal: &whole, upper: &whole };
    let side_by_side = |count, stride| {
        [LineAxis::default(), LineAxis::default(), LineAxis { count, stride, band_stride: 0 }]
    };
    for axes in [side_by_side(16, 0), side_by_side(16, 3), side_by_side(1 << 40, 1 << 40)] {
        let lines = Lines { length: 4, stride: 1, band_stride: 1, axes };
        let problem = problem(lines, Algorithm::Thomas);
        let refusal = cpu.tridiagonal_solve(&problem, &mut u, bands, None, &mut work).unwrap_err();
        assert!(matches!(refusal, LinalgError::Setting { field: "lines", .. }), "{refusal}");
    }
}

#[test]
fn blocks_refuse_arrays_that_are_not_of_their_shape() {
    let cpu = cpu();
    let (whole, mut u, mut work) = (zeros(&cpu, 4 * 1000), zeros(&cpu, 2), work(&cpu));
    let bands = BlockBands { lower: &whole, diagonal: &whole, upper: &whole };
    let shape = BlockShape { block: 2, n_rows: 10, n_systems: 100, order: BlockOrder::SystemMajor };
    let problem = BlockProblem { shape, algorithm: Algorithm::Thomas, stability: Stability::Unpivoted };
    refused(cpu.block_solve(&problem, &mut u, bands, None, &mut work), ("u", 2000, 2));
    let shape = BlockShape { block: 11, ..shape };
    let refusal = cpu.block_solve(&BlockProblem { shape, ..problem }, &mut u, bands, None, &mut work);
    assert!(matches!(refusal, Err(LinalgError::Setting { field: "block", .. })), "{refusal:?}");
}

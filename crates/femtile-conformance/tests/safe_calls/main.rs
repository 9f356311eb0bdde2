//! Calls that a program without `unsafe` can make, with arrays that do not fit: each is an error, none touches memory.
#![forbid(unsafe_code)]

mod assembly;
mod gpu;
mod kernels;
mod matrices;
mod tridiagonal;

use femtile::device::{Buffer, Cpu, Device};
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::csr::{Csr, HostOffsets};

/// Rows of the matrices that vectors of other lengths are given to.
const N: usize = 20_000;

fn cpu() -> Cpu {
    Cpu::new(2).expect("a CPU")
}

fn zeros<D: Device>(device: &D, n: usize) -> Buffer<f64, D> {
    Buffer::zeros(device, n).expect("memory")
}

/// 2 on the diagonal, −1 beside it.
fn matrix<D: Device>(device: &D, n: usize) -> Csr<f64, D> {
    let columns = |row: usize| row.saturating_sub(1)..(row + 2).min(n);
    let offsets = HostOffsets::from_row_lengths((0..n).map(|row| columns(row).len()));
    let entries = (0..n).flat_map(|row| columns(row).map(move |column| (row, column)));
    let (columns, values) =
        entries.map(|(row, column)| (column as u32, if row == column { 2.0 } else { -1.0 })).unzip();
    Csr::from_parts(device, n, offsets, columns, values).expect("a matrix")
}

/// The argument that is to blame, with what was needed and what was found.
#[track_caller]
fn refused<R>(result: Result<R, LinalgError>, wanted: (&str, usize, usize)) {
    match result.map(|_| ()) {
        Err(LinalgError::Length { field, expected, found }) => assert_eq!((field, expected, found), wanted),
        other => panic!("{other:?} where {wanted:?} is wanted"),
    }
}

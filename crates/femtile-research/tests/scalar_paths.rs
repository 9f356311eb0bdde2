//! Kernels with `unsafe` on the scalar path, for Miri: `cargo +nightly miri test -p femtile-research --test scalar_paths`.
#![forbid(unsafe_code)]

use femtile::device::cpu::SimdLevel;
use femtile::device::{Buffer, Cpu};
use femtile::linalg::sparse::csr::{Csr, HostOffsets};
use femtile::linalg::{LinalgError, LinearOperator};
use femtile_research::formats::{ComparedFormat, ComparedMatrix};

/// A matrix whose rows have 1 to 7 entries.
fn matrix(cpu: &Cpu, n: usize) -> Result<Csr<f64, Cpu>, LinalgError> {
    let length = |row: usize| 1 + row * 5 % 7;
    let offsets = HostOffsets::from_row_lengths((0..n).map(length));
    let columns: Vec<u32> = (0..n)
        .flat_map(|row| {
            let first = row.min(n - length(row));
            (first..first + length(row)).map(|column| column as u32)
        })
        .collect();
    let values = (0..columns.len()).map(|i| 1.0 + (i % 3) as f64).collect();
    Csr::from_parts(cpu, n, offsets, columns, values)
}

#[test]
fn products_of_all_formats_are_those_of_rows() -> Result<(), LinalgError> {
    let cpu = Cpu::with_simd(2, SimdLevel::Scalar)?;
    let a = matrix(&cpu, 101)?;
    let x = Buffer::from_vec(&cpu, (0..a.n_cols()).map(|i| (i % 7) as f64).collect())?;
    let mut expected = Buffer::zeros(&cpu, a.n_rows())?;
    a.apply(&mut expected, &x)?;
    for format in [ComparedFormat::Merge, ComparedFormat::Hyb] {
        let mut y = Buffer::from_vec(&cpu, vec![f64::NAN; a.n_rows()])?;
        ComparedMatrix::new(&cpu, &a, format)?.apply(&mut y, &x)?;
        // Entries are small integers: sums in any order are exact.
        assert_eq!(y.as_slice(), expected.as_slice());
    }
    Ok(())
}

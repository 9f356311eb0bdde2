use std::io::Write;
use std::path::Path;

use femtile::device::{Buffer, Device, DeviceError};
use femtile::linalg::sparse::{Csr, Offsets};

use crate::BenchError;

/// Writes a system for the scripts of other libraries, as little-endian numbers: rows and non-zeros (u64), offsets and
/// columns (u32), values and right side (f64).
pub fn write_system<D: Device>(a: &Csr<f64, D>, b: &Buffer<f64, D>, file: &Path) -> Result<(), BenchError> {
    let write = || -> std::io::Result<()> {
        let other = |error: DeviceError| std::io::Error::other(error.to_string());
        let Offsets::Narrow(offsets) = a.offsets() else {
            return Err(std::io::Error::other("the scripts of peers read 32-bit offsets only"));
        };
        let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
        for count in [a.n_rows() as u64, a.n_nonzeros() as u64] {
            out.write_all(&count.to_le_bytes())?;
        }
        out.write_all(bytemuck::cast_slice(&offsets.to_host().map_err(other)?))?;
        out.write_all(bytemuck::cast_slice(&a.columns().to_host().map_err(other)?))?;
        out.write_all(bytemuck::cast_slice(&a.values().to_host().map_err(other)?))?;
        out.write_all(bytemuck::cast_slice(&b.to_host().map_err(other)?))?;
        out.flush()
    };
    write().map_err(|source| BenchError::File { what: "matrix for the peers", source })
}

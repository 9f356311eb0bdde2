use femtile_device::{HostDevice, Scalar};
use femtile_linalg::LinalgError;

use super::{Described, candidates};
use crate::{Csr, Format, Offsets};

/// The fastest format of a matrix on a device, as a search has found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// The [`fingerprint`] of the matrix.
    pub matrix: String,
    /// The description of the device.
    pub device: String,
    /// The name of the format.
    pub format: String,
}

/// Returns rows, columns, non-zeros and a hash of the lengths of all rows in their order, FNV-1a in 64 bits.
pub fn fingerprint<T: Scalar, H: HostDevice>(a: &Csr<T, H>) -> String {
    sizes(a.n_rows(), a.n_cols(), a.n_nonzeros()) + &hash(a.row_lengths().into_iter())
}

/// Returns the format that a search has found for a matrix on its device, where it is still a candidate.
///
/// # Cost
/// Copies the offsets to the host where a search has seen a matrix of the same sizes on this device; nothing else.
/// # Errors
/// Errors of the device.
pub(crate) fn remembered<T: Scalar, D: Described>(
    known: &[Remembered],
    a: &Csr<T, D>,
) -> Result<Option<Format>, LinalgError> {
    let device = a.values().device();
    let (description, sizes) = (device.description(), sizes(a.n_rows(), a.n_cols(), a.n_nonzeros()));
    let mut alike = known
        .iter()
        .filter(|known| known.device == description && known.matrix.starts_with(&sizes))
        .peekable();
    if alike.peek().is_none() {
        return Ok(None);
    }
    let hash = match a.offsets() {
        Offsets::Narrow(offsets) => hash(offsets.to_host()?.windows(2).map(|ends| ends[1] - ends[0])),
        Offsets::Wide(offsets) => hash(offsets.to_host()?.windows(2).map(|ends| (ends[1] - ends[0]) as u32)),
    };
    let Some(found) = alike.find(|known| known.matrix[sizes.len()..] == hash) else { return Ok(None) };
    Ok(candidates(&device.machine()).into_iter().find(|format| format.name() == found.format))
}

fn sizes(n_rows: usize, n_cols: usize, n_nonzeros: usize) -> String {
    format!("{n_rows}x{n_cols}-{n_nonzeros}-")
}

fn hash(lengths: impl Iterator<Item = u32>) -> String {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = lengths.flat_map(u32::to_le_bytes);
    format!("{:016x}", bytes.fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME)))
}

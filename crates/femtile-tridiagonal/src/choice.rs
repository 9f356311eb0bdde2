//! Which algorithm is fastest, as measured: see `bench/README.md`.

use std::ops::RangeInclusive;

use femtile_device::Scalar;
use femtile_linalg::LinalgError;

use super::{Algorithm, BatchProblem, Stability, hybrid, pcr, thomas};

/// The kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// A CPU.
    Cpu,
    /// A GPU.
    Cuda,
}

/// The memory layout of the entries of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisKind {
    /// One behind the other.
    Contiguous,
    /// At a stride of more than one.
    Strided,
}

/// A default: the algorithm for some lengths along an axis, for batches of any size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceRow {
    /// The memory layout of the entries of a line.
    pub axis: AxisKind,
    /// `f32` or `f64`.
    pub precision: &'static str,
    /// Rows of a system.
    pub lengths: RangeInclusive<usize>,
    /// The algorithm that solves them.
    pub algorithm: Algorithm,
}

/// Longest line that the hybrid algorithm keeps in the registers of a GPU, contiguous and strided, f32 and f64.
const HYBRID_ROWS: [(AxisKind, &str, usize); 4] = [
    (AxisKind::Contiguous, "f32", 6144),
    (AxisKind::Contiguous, "f64", 3072),
    (AxisKind::Strided, "f32", 2048),
    (AxisKind::Strided, "f64", 1024),
];

/// The defaults of a kind of device, for systems without pivoting.
pub fn table(device: DeviceKind) -> Vec<ChoiceRow> {
    let row = |axis, precision, lengths, algorithm| ChoiceRow { axis, precision, lengths, algorithm };
    let rows = HYBRID_ROWS.into_iter().flat_map(|(axis, precision, longest)| match device {
        DeviceKind::Cpu => vec![row(axis, precision, 1..=usize::MAX, Algorithm::Thomas)],
        DeviceKind::Cuda => vec![
            row(axis, precision, 1..=longest, Algorithm::Hybrid),
            row(axis, precision, longest + 1..=usize::MAX, Algorithm::Thomas),
        ],
    });
    rows.collect()
}

/// The algorithm for a batch on a GPU.
///
/// # Errors
/// [`LinalgError::Setting`] when the requested one does not solve such a batch.
pub(super) fn on_cuda<T: Scalar>(problem: &BatchProblem) -> Result<Algorithm, LinalgError> {
    let is_pivoted = problem.stability == Stability::PartialPivoting;
    let refuse = |message: String| Err(LinalgError::Setting { field: "algorithm", message });
    match problem.algorithm {
        Algorithm::Auto if is_pivoted => Ok(Algorithm::Thomas),
        Algorithm::Auto => Ok(default::<T>(problem)),
        Algorithm::Thomas => Ok(Algorithm::Thomas),
        other if is_pivoted => refuse(format!("`{other}` does not pivot: choose `thomas`")),
        Algorithm::Hybrid if !hybrid::cuda::takes::<T>(&problem.lines) => {
            let rows = problem.lines.length;
            refuse(format!(
                "`hybrid` keeps systems on the chip, and {rows} rows are too many: choose `thomas`"
            ))
        }
        Algorithm::Pcr | Algorithm::Cr => pcr::cuda::refuse::<T>(problem).map(|()| problem.algorithm),
        Algorithm::ThomasShared | Algorithm::ThomasShuffle => {
            thomas::cuda::refuse_transposing::<T>(problem, false).map(|()| problem.algorithm)
        }
        other => Ok(other),
    }
}

fn default<T: Scalar>(problem: &BatchProblem) -> Algorithm {
    let axis = if problem.lines.stride == 1 { AxisKind::Contiguous } else { AxisKind::Strided };
    let is_meant = |row: &ChoiceRow| {
        row.axis == axis && row.precision == T::NAME && row.lengths.contains(&problem.lines.length.max(1))
    };
    table(DeviceKind::Cuda).into_iter().find(is_meant).map_or(Algorithm::Thomas, |row| row.algorithm)
}

use femtile_device::{Buffer, Device, DeviceError};

use crate::{LinalgError, error::need};

/// The sums of a solve before its first and after its last iteration, and its settings.
///
/// $t$ is the diagonal by which residuals are tested.
pub struct CgSums<D: Device> {
    /// The sums at the start.
    pub first: Buffer<f64, D>,
    /// The sums of the last iterate.
    pub last: Buffer<f64, D>,
    /// The settings, in the order of the constants of this type.
    pub settings: Buffer<f64, D>,
    /// Memory for partial sums, if the device needs it.
    pub partials: Buffer<f64, D>,
    /// Number of finished thread blocks; zero between kernels.
    pub counter: Buffer<u32, D>,
}

impl<D: Device> CgSums<D> {
    /// Index in `first` of $b^\mathsf{T} b$.
    pub const B_DOT_B: usize = 0;
    /// Index of $r^\mathsf{T} r$ in `first` and in `last`.
    pub const R_DOT_R: usize = 1;
    /// Index in `first` of $r^\mathsf{T} M^{-1} r$.
    pub const R_DOT_Z: usize = 2;
    /// Index in `first` of $b^\mathsf{T} t b$.
    pub const B_RHO: usize = 3;
    /// Index in `first` of $\|t b\|^2$.
    pub const B_NORM: usize = 4;
    /// Index in `first` of $\|M^{-1} r\|^2$, if $M^{-1}$ is not diagonal.
    pub const Z_DOT_Z: usize = 5;
    /// Number of first sums.
    pub const N_FIRST: usize = 6;

    /// Index in `last` of $r^\mathsf{T} t r$.
    pub const R_RHO: usize = 0;
    /// Index in `last` of $\|t r\|^2$.
    pub const R_NORM: usize = 2;
    /// Index in `last` of $x^\mathsf{T} b$.
    pub const X_DOT_B: usize = 3;
    /// Index in `last` of $x^\mathsf{T} r$.
    pub const X_DOT_R: usize = 4;
    /// Index in `last` of $z^\mathsf{T} z$.
    pub const LAST_Z: usize = 5;
    /// Number of last sums.
    pub const N_LAST: usize = 6;

    /// Index in the settings of the tolerance.
    pub const TOLERANCE: usize = 0;
    /// Index in the settings of the norm that it is relative to; 0 for $\|b\|$.
    pub const SIZE: usize = 1;
    /// Index in the settings of a bound relative to the first residual; 0 for none.
    pub const REDUCTION: usize = 2;
    /// Index in the settings of the maximum number of iterations.
    pub const LIMIT: usize = 3;
    /// Index in the settings of the range of $\|b\|$.
    pub const B_RANGE: usize = 4;
    /// Index in the settings of the range of the norm of the first residual.
    pub const R_RANGE: usize = 6;
    /// Index in the settings of the norm of rounding errors in b; 0 if b is exact.
    pub const ROUNDING: usize = 8;
    /// Number of settings.
    pub const SETTINGS: usize = 9;

    /// Zeros, with room for `n_partials` partial sums.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(device: &D, n_partials: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            first: Buffer::zeros(device, Self::N_FIRST)?,
            last: Buffer::zeros(device, Self::N_LAST)?,
            settings: Buffer::zeros(device, Self::SETTINGS)?,
            partials: Buffer::zeros(device, n_partials)?,
            counter: Buffer::zeros(device, 1)?,
        })
    }

    /// Refuses indices that do not belong to a sum.
    ///
    /// # Errors
    /// [`LinalgError::Length`].
    pub(super) fn check_place(place: usize) -> Result<(), LinalgError> {
        need("place", place.min(Self::N_FIRST - 1), place)
    }

    /// Refuses arrays of other lengths.
    ///
    /// # Errors
    /// [`LinalgError::Length`].
    pub(super) fn check(&self, n_partials: usize) -> Result<(), LinalgError> {
        need("first", Self::N_FIRST, self.first.len())?;
        need("last", Self::N_LAST, self.last.len())?;
        need("settings", Self::SETTINGS, self.settings.len())?;
        need("counter", 1, self.counter.len())?;
        need("partials", n_partials, self.partials.len().min(n_partials))
    }
}

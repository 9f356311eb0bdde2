//! Levels of SIMD instructions, found at run time.
//!
//! One binary serves all x86-64 processors, and pulp provides the operations. `FEMTILE_SIMD` forces a level; the
//! checks run every level of the processor. Other architectures compile to the portable level, untested.

use std::fmt;

use crate::DeviceError;

/// A set of vector instructions, chosen at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SimdLevel {
    /// No explicit vectors.
    Scalar,
    /// 128-bit vectors of an architecture other than x86-64 (through pulp; untested).
    Native,
    /// AVX2 with FMA: 256-bit vectors.
    Avx2,
    /// AVX-512 (F, BW, CD, DQ, VL): 512-bit vectors.
    Avx512,
}

impl fmt::Display for SimdLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scalar => "scalar",
            Self::Native => "native",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        })
    }
}

impl SimdLevel {
    /// The levels this processor offers, narrowest first.
    pub fn available() -> Vec<Self> {
        let mut levels = vec![Self::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            if pulp::x86::V3::is_available() {
                levels.push(Self::Avx2);
            }
            if pulp::x86::V4::is_available() {
                levels.push(Self::Avx512);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        levels.push(Self::Native);
        levels
    }

    /// The level that `FEMTILE_SIMD` names (`scalar`, `avx2`, `avx512`), else the widest available.
    ///
    /// # Errors
    /// [`DeviceError::SimdUnavailable`] when the variable names a level that is not offered.
    pub fn from_environment() -> Result<Self, DeviceError> {
        let available = Self::available();
        let Some(requested) = std::env::var_os("FEMTILE_SIMD").filter(|v| !v.is_empty()) else {
            return Ok(available.last().copied().unwrap_or(Self::Scalar));
        };
        let requested = requested.to_string_lossy().into_owned();
        let level = available.into_iter().find(|level| level.to_string() == requested);
        level.ok_or_else(|| unavailable(requested))
    }

    /// Refuses a level that this processor does not offer.
    pub(crate) fn require(self) -> Result<(), DeviceError> {
        if Self::available().contains(&self) { Ok(()) } else { Err(unavailable(self.to_string())) }
    }
}

fn unavailable(requested: String) -> DeviceError {
    let available: Vec<_> = SimdLevel::available().iter().map(ToString::to_string).collect();
    DeviceError::SimdUnavailable { requested, available: available.join(", ") }
}

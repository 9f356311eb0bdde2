use super::{Cpu, SimdLevel};

impl Cpu {
    /// Runs `work` compiled for this device's SIMD level.
    ///
    /// `work` should be a closure marked `#[inline(always)]` with plain loops over slices: they are
    /// compiled once for each level. Arithmetic is the same at every level, bit for bit, because the
    /// compiler neither reorders sums nor fuses products and sums on its own. Code that is generic over a
    /// [`Vector`](super::vector::Vector) runs through [`Vector::vectorize`](super::vector::Vector::vectorize), which
    /// compiles it for the level of that vector alone.
    #[inline(always)]
    pub fn vectorize<R>(&self, work: impl FnOnce() -> R) -> R {
        match self.simd() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Cpu` has this level only where the processor reports AVX2 and FMA.
            SimdLevel::Avx2 => unsafe { avx2(work) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Cpu` has this level only where the processor reports these parts of AVX-512.
            SimdLevel::Avx512 => unsafe { avx512(work) },
            _ => work(),
        }
    }
}

impl SimdLevel {
    /// Runs `work` compiled for this level; else as [`Cpu::vectorize`].
    ///
    /// Without vectors, fused multiply-adds are instructions if the processor has them: calls of the C
    /// library are slow. A level that the processor does not support means no vectors.
    #[inline(always)]
    pub fn vectorize<R>(self, work: impl FnOnce() -> R) -> R {
        #[cfg(target_arch = "x86_64")]
        match self {
            // SAFETY: the processor reports AVX2 and FMA.
            Self::Avx2 if pulp::x86::V3::is_available() => return unsafe { avx2(work) },
            // SAFETY: the processor reports these parts of AVX-512.
            Self::Avx512 if pulp::x86::V4::is_available() => return unsafe { avx512(work) },
            // SAFETY: the processor reports FMA.
            _ if std::arch::is_x86_feature_detected!("fma") => return unsafe { fma(work) },
            _ => {}
        }
        work()
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "fma")]
fn fma<R>(work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
pub(super) fn avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")]
pub(super) fn avx512<R>(work: impl FnOnce() -> R) -> R {
    work()
}

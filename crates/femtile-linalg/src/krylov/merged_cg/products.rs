//! The seven sums of a chunk of rows.

use std::any::TypeId;

use femtile_device::Scalar;
use femtile_device::cpu::SimdLevel;
use femtile_device::cpu::vector::{Lanes, Vector};

use super::cpu::CHUNK;

/// Lanes of a sum, the same at every SIMD level: entry i of a chunk goes to lane i modulo this number.
const LANES: usize = 8;

/// Sums of products in f64, lane by lane; products are rounded before they are added.
#[derive(Debug, Default)]
pub(super) struct Lanewise([[f64; LANES]; 7]);

impl Lanewise {
    /// Adds the terms of the rows of a chunk.
    #[inline(always)]
    pub fn add<T: Scalar>(&mut self, level: SimdLevel, [p, v, r, d]: [&[T]; 4]) {
        let n = r.len();
        assert!(n <= CHUNK && [p.len(), v.len(), d.len()] == [n; 3]);
        if TypeId::of::<T>() == TypeId::of::<f64>() && n.is_multiple_of(LANES) {
            return self.add_whole(level, [p, v, r, d].map(bytemuck::cast_slice), n);
        }
        let mut workspace = [[0.0; CHUNK]; 4];
        for (workspace, values) in workspace.iter_mut().zip([p, v, r, d]) {
            workspace.iter_mut().zip(values).for_each(|(to, from)| *to = from.to_f64());
        }
        self.add_whole(level, workspace.each_ref().map(|values| &values[..]), n.next_multiple_of(LANES));
    }

    #[inline(always)]
    fn add_whole(&mut self, level: SimdLevel, vectors: [&[f64]; 4], n: usize) {
        // SAFETY: vectors have n entries, a multiple of the lanes, and the device has the level it says.
        unsafe {
            match level {
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx512 => add_products::<<f64 as Lanes>::Avx512>(&mut self.0, vectors, n),
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx2 => add_products::<<f64 as Lanes>::Avx2>(&mut self.0, vectors, n),
                _ => add_products::<<f64 as Lanes>::Plain>(&mut self.0, vectors, n),
            }
        }
    }

    /// The sums.
    pub fn total(&self) -> [f64; 7] {
        self.0.map(|lanes| lanes.iter().sum())
    }
}

/// # Safety
/// Vectors have `n` entries, a multiple of [`LANES`], and the processor has the instructions of `V`.
#[inline(always)]
unsafe fn add_products<V: Vector<f64>>(lanes: &mut [[f64; LANES]; 7], vectors: [&[f64]; 4], n: usize) {
    for part in (0..LANES).step_by(V::LANES) {
        // SAFETY: parts lie within the lanes.
        let mut sums: [V; 7] = std::array::from_fn(|k| unsafe { V::load(lanes[k].as_ptr().add(part)) });
        for i in (part..n).step_by(LANES) {
            // SAFETY: a part of the lanes from i lies below n.
            let [p, v, r, d] = vectors.map(|vector| unsafe { V::load(vector.as_ptr().add(i)) });
            let (dr, dv) = (d.mul(r), d.mul(v));
            let factors = [(r, r), (p, v), (r, v), (v, v), (r, dr), (r, dv), (v, dv)];
            for (sum, (one, other)) in sums.iter_mut().zip(factors) {
                *sum = sum.add(one.mul(other));
            }
        }
        for (sum, lanes) in sums.into_iter().zip(lanes.iter_mut()) {
            // SAFETY: as above.
            unsafe { sum.store(lanes.as_mut_ptr().add(part)) };
        }
    }
}

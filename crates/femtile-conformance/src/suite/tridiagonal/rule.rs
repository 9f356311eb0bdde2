//! Bands that are formed where they are used, alike on every device.

use std::ops::Range;

use femtile::device::Scalar;
use femtile::tridiagonal::{BandRule, CudaBands, Ends};

/// Dominant bands in steps of a sixteenth, which both precisions hold exactly.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    shift: u64,
    last: u64,
}

/// No row is the last one of a ring.
const NONE: u64 = u64::MAX;

/// The value outside an open system: a solver that reads it is far off.
const OUTSIDE: f64 = 1e30;

impl Steps {
    /// For systems of `n` rows.
    pub fn new(shift: u64, n: usize, ends: Ends) -> Self {
        Self { shift, last: if ends == Ends::Open { n as u64 - 1 } else { NONE } }
    }

    /// Lower, diagonal and upper entry of a row.
    pub fn row(&self, line: u64, row: u64) -> [f64; 3] {
        let sixteenths = |count: u64| count as f64 * 0.0625;
        let lower = sixteenths((7 * line + 3 * row + self.shift) % 11) - 0.3125;
        let upper = sixteenths((5 * line + row) % 13) - 0.375;
        let diagonal = sixteenths((line + row) % 5) + 1.0;
        [
            if row == 0 && self.last != NONE { OUTSIDE } else { lower },
            diagonal,
            if row == self.last { OUTSIDE } else { upper },
        ]
    }
}

impl<T: Scalar> BandRule<T> for Steps {
    fn fill(
        &self,
        lines: Range<usize>,
        rows: Range<usize>,
        lower: &mut [T],
        diagonal: &mut [T],
        upper: &mut [T],
    ) {
        let width = lines.len();
        assert!(
            [lower.len(), diagonal.len(), upper.len()] == [width * rows.len(); 3],
            "slices have a value for each row and line"
        );
        for (i, row) in rows.enumerate() {
            for (j, line) in lines.clone().enumerate() {
                let values = self.row(line as u64, row as u64).map(T::from_f64);
                [lower[i * width + j], diagonal[i * width + j], upper[i * width + j]] = values;
            }
        }
    }

    fn cuda(&self) -> Option<CudaBands> {
        // SAFETY: the source computes with numbers alone.
        Some(unsafe { CudaBands::new(SOURCE.into(), vec![self.shift, self.last]) })
    }
}

const SOURCE: &str = "
struct Bands {
    u64 shift, last;

    __device__ void row(u64 line, u32 row, T &lower, T &diagonal, T &upper) const {
        const T step = T(0.0625);
        lower = T((7 * line + 3 * row + shift) % 11) * step - T(0.3125);
        upper = T((5 * line + row) % 13) * step - T(0.375);
        diagonal = T((line + row) % 5) * step + T(1);
        if (row == 0 && last != ~u64(0)) { lower = T(1e30); }
        if (row == last) { upper = T(1e30); }
    }
};
";

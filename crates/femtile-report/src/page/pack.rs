//! Numbers as text: differences, their bytes in planes, compressed, in base64.

use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;

/// The place of a value that is no number.
const NO_VALUE: u32 = u16::MAX as u32;

/// Packs whole numbers whose differences, with their sign, need `width` bytes.
pub(super) fn whole(numbers: impl ExactSizeIterator<Item = u32>, width: usize) -> String {
    let n = numbers.len();
    let mut planes = vec![0; n * width];
    let mut last = 0_i64;
    for (i, number) in numbers.enumerate() {
        let difference = i64::from(number) - last;
        last = i64::from(number);
        // Neighbours differ by little of either sign: 0, -1, 1, -2, … become 0, 1, 2, 3, …
        let folded = ((difference << 1) ^ (difference >> 63)) as u64;
        (0..width).for_each(|plane| planes[plane * n + i] = (folded >> (8 * plane)) as u8);
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to a vector does not fail.
    let packed = encoder.write_all(&planes).and_then(|()| encoder.finish()).unwrap_or_default();
    BASE64_STANDARD.encode(packed)
}

/// Packs coordinates as places between bounds in steps of 2⁻¹⁶ of them, all of x, then of y, then of z.
pub(super) fn coordinates(points: &[[f64; 3]], [low, high]: [[f64; 3]; 2]) -> String {
    let n = points.len();
    let place = |i: usize| {
        let (axis, point) = (i / n.max(1), points[i % n.max(1)]);
        place(point[axis], [low[axis], high[axis]], f64::from(u16::MAX))
    };
    whole((0..3 * n).map(place), 3)
}

/// Packs values as places in a range in steps of 2⁻¹⁶ of it.
pub(super) fn values(values: impl ExactSizeIterator<Item = f64>, range: [f64; 2]) -> String {
    let last = f64::from(NO_VALUE) - 1.0;
    whole(values.map(|value| if value.is_nan() { NO_VALUE } else { place(value, range, last) }), 3)
}

fn place(x: f64, [low, high]: [f64; 2], last: f64) -> u32 {
    let share = if high > low { (x - low) / (high - low) } else { 0.0 };
    (share.clamp(0.0, 1.0) * last).round() as u32
}

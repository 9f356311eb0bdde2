//! The scale of colours.

use super::raster::Image;
use super::text::{self, LINE};
use super::{Panel, PictureConfig};
use crate::number::short;

/// Width of the colours, and their distance from the numbers.
const BAR: usize = 18;
const GAP: usize = 6;
/// Numbers beside the colours.
const TICKS: usize = 5;
/// Letters of the longest number.
const DIGITS: usize = 9;
/// Range of a field relative to its size below which it counts as constant.
const ROUNDING: f64 = 1e-10;

/// Returns the width of the scale with its numbers.
pub(super) fn width(config: &PictureConfig) -> usize {
    (BAR + GAP + text::width(&"0".repeat(DIGITS))).max(text::width(&config.label))
}

/// Returns the range of all panels, widened where the values are constant.
pub(super) fn range_of(panels: &[Panel]) -> [f64; 2] {
    let ranges = panels.iter().filter_map(|panel| panel.surface.range());
    range_around(ranges.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]))
}

/// Returns a range, widened where it is a constant but for rounding; 0 and 1 in place of none.
pub(crate) fn range_around(range: Option<[f64; 2]>) -> [f64; 2] {
    let [least, most] = range.unwrap_or([0.0, 1.0]);
    let size = least.abs().max(most.abs());
    if most - least > ROUNDING * size {
        return [least, most];
    }
    let half = if size > 0.0 { 0.5 * size } else { 0.5 };
    [least - half, least + half]
}

/// Draws the colours with numbers and the label above.
pub(super) fn draw(
    image: &mut Image,
    [x, y]: [usize; 2],
    height: usize,
    (config, [least, most]): (&PictureConfig, [f64; 2]),
) {
    let y = y + LINE / 2;
    for row in 0..height {
        let share = 1.0 - row as f64 / (height - 1).max(1) as f64;
        (0..BAR).for_each(|column| image.mix([x + column, y + row], config.colours.at(share), 1.0));
    }
    for tick in 0..TICKS {
        let share = tick as f64 / (TICKS - 1) as f64;
        let row = y as f64 + (1.0 - share) * (height - 1) as f64;
        let number = short(least + share * (most - least));
        image.text([x + BAR + GAP, (row - LINE as f64 / 2.0).max(0.0) as usize], &number);
    }
    image.text([x, y.saturating_sub(LINE + LINE / 2 + 4)], &config.label);
}

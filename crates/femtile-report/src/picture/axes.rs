//! Directions of the axes and extents of the body.

use super::camera::Camera;
use super::raster::{Corner, Image, Raster};
use super::text::LINE;
use super::{MARGIN, Panel};
use crate::number::short;

/// Height of the axes.
pub(super) const HEIGHT: usize = 3 * LINE;
/// Length of an axis.
const LENGTH: f64 = 18.0;
const INK: [u8; 3] = [60; 3];

/// Draws the axes with an upper left corner, and the extents of all panels beside them.
pub(super) fn draw(image: &mut Image, [x, y]: [usize; 2], camera: &Camera, panels: &[Panel]) {
    let mut raster = Raster::new([HEIGHT; 2]);
    let middle = HEIGHT as f64 / 2.0;
    let place = |share: f64, [right, down, _]: [f64; 3]| [middle + share * right, middle + share * down];
    let directions = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].map(|axis| camera.turn(axis));
    // An axis along the sight would be a dot.
    let is_seen = |[right, down, _]: [f64; 3]| right.hypot(down) > 0.05;
    for direction in directions.into_iter().filter(|direction| is_seen(*direction)) {
        let end = |share: f64| Corner { at: place(share, direction), depth: 0.0, value: 0.0, light: 1.0 };
        raster.line([end(0.0), end(LENGTH)], 1.6, INK);
    }
    image.place([x, y], &raster.image());
    let points = || panels.iter().flat_map(|panel| &panel.surface.points);
    let mut row = 0;
    for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
        let along = points().map(|point| point[axis]);
        let (low, high) =
            along.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        if is_seen(directions[axis]) {
            let at = place(LENGTH + 9.0, directions[axis]);
            let corner = |i: usize, half: usize| (at[i] as usize).saturating_sub(half);
            image.text([x + corner(0, 4), y + corner(1, LINE / 2)], name);
        } else if high - low == 0.0 {
            continue;
        }
        let text = format!("{name} from {} to {}", short(low), short(high));
        image.text([x + HEIGHT + MARGIN, y + row * LINE], &text);
        row += 1;
    }
}

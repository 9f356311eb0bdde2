//! Pixels, triangles and letters.

use super::colours::{Colour, INK, PAPER};
use super::glyphs;

/// Colours by row, with depths.
pub(super) struct Raster {
    /// Width and height.
    pub size: [usize; 2],
    pub pixels: Vec<Colour>,
    depths: Vec<f64>,
}

/// A corner of a triangle: its pixel, its distance from the eye and its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Corner {
    pub at: [f64; 2],
    pub depth: f64,
    pub value: f64,
}

impl Raster {
    pub fn new(size: [usize; 2]) -> Self {
        let n = size[0] * size[1];
        Self { size, pixels: vec![PAPER; n], depths: vec![f64::INFINITY; n] }
    }

    /// Colours a pixel, if there is one.
    pub fn set(&mut self, [x, y]: [usize; 2], colour: Colour) {
        if x < self.size[0] && y < self.size[1] {
            self.pixels[y * self.size[0] + x] = colour;
        }
    }

    /// Draws a triangle where nothing nearer is drawn; `colour` maps interpolated values.
    pub fn triangle(&mut self, corners: [Corner; 3], colour: impl Fn(f64) -> Colour) {
        let [a, b, c] = corners.map(|corner| corner.at);
        let double_area = cross(a, b, c);
        if double_area == 0.0 || !double_area.is_finite() {
            return;
        }
        let bounds = |axis: usize| {
            let [p, q, r] = [a[axis], b[axis], c[axis]];
            let last = self.size[axis].saturating_sub(1) as f64;
            let (least, most) = (p.min(q).min(r).ceil(), p.max(q).max(r).floor());
            (least.clamp(0.0, last) as usize, most.clamp(-1.0, last))
        };
        let ((left, right), (top, bottom)) = (bounds(0), bounds(1));
        for y in (top..).take_while(|&y| y as f64 <= bottom) {
            for x in (left..).take_while(|&x| x as f64 <= right) {
                let p = [x as f64, y as f64];
                let weights = [cross(p, b, c), cross(a, p, c), cross(a, b, p)].map(|area| area / double_area);
                if weights.iter().any(|weight| *weight < -1e-9) {
                    continue;
                }
                let mean = |of: fn(&Corner) -> f64| -> f64 {
                    corners.iter().zip(weights).map(|(corner, weight)| weight * of(corner)).sum()
                };
                let (depth, pixel) = (mean(|corner| corner.depth), y * self.size[0] + x);
                if depth < self.depths[pixel] {
                    self.depths[pixel] = depth;
                    self.pixels[pixel] = colour(mean(|corner| corner.value));
                }
            }
        }
    }

    /// Writes from a pixel on, its upper left corner.
    pub fn text(&mut self, [x, y]: [usize; 2], text: &str) {
        for (k, letter) in text.chars().enumerate() {
            for [column, row] in glyphs::pixels(letter) {
                self.set([x + k * glyphs::WIDTH + column, y + row], INK);
            }
        }
    }
}

/// Twice the signed area of a triangle.
fn cross(a: [f64; 2], b: [f64; 2], c: [f64; 2]) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

//! Letters.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

use super::raster::Image;
use crate::colour::Colour;

/// Letters.
const INK: Colour = [30; 3];
/// Pixels from one line of text to the next.
pub(super) const LINE: usize = 18;
const HEIGHT: RasterHeight = RasterHeight::Size16;

/// A letter without dots is drawn in place of one that the font lacks.
const UNKNOWN: char = '?';

/// Returns the width of a text in pixels.
pub(super) fn width(text: &str) -> usize {
    text.chars().count() * get_raster_width(FontWeight::Regular, HEIGHT)
}

impl Image {
    /// Writes from a pixel on, the upper left corner of the line.
    pub fn text(&mut self, [x, y]: [usize; 2], text: &str) {
        let step = get_raster_width(FontWeight::Regular, HEIGHT);
        for (k, letter) in text.chars().enumerate() {
            let glyph = |letter| get_raster(letter, FontWeight::Regular, HEIGHT);
            let Some(glyph) = glyph(letter).or_else(|| glyph(UNKNOWN)) else { continue };
            for (row, dots) in glyph.rows().enumerate() {
                for (column, &share) in dots.iter().enumerate() {
                    self.mix([x + k * step + column, y + row], INK, f64::from(share) / 255.0);
                }
            }
        }
    }
}

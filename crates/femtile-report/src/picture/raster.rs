//! Pixels with depths: triangles and lines hide what lies behind them.

use crate::colour::Colour;

/// Samples of a pixel along each axis, whose mean makes edges smooth.
const SAMPLES: usize = 3;
/// The background.
pub(crate) const PAPER: Colour = [255; 3];

/// A corner of a triangle or an end of a line: its place in pixels, its distance from the eye, its value and its light.
#[derive(Debug, Clone, Copy)]
pub(super) struct Corner {
    pub at: [f64; 2],
    pub depth: f64,
    pub value: f64,
    pub light: f64,
}

/// An image by rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Image {
    /// Width and height.
    pub size: [usize; 2],
    pub pixels: Vec<Colour>,
}

/// Samples by rows, with depths.
pub(super) struct Raster {
    size: [usize; 2],
    colours: Vec<Colour>,
    depths: Vec<f32>,
}

impl Raster {
    /// Creates an empty raster of pixels.
    pub fn new(size: [usize; 2]) -> Self {
        let size = size.map(|n| n * SAMPLES);
        let n = size[0] * size[1];
        Self { size, colours: vec![PAPER; n], depths: vec![f32::INFINITY; n] }
    }

    /// Draws a triangle where nothing nearer is drawn; `colour` maps the value and the light of a place.
    pub fn triangle(&mut self, corners: [Corner; 3], colour: &impl Fn(f64, f64) -> Colour) {
        let [a, b, c] = corners.map(|corner| sample(corner.at));
        let double_area = area(a, b, c);
        if double_area == 0.0 || !double_area.is_finite() {
            return;
        }
        let (columns, rows) = (self.span([a[0], b[0], c[0]], 0), self.span([a[1], b[1], c[1]], 1));
        for y in rows {
            for x in columns.clone() {
                let p = [x as f64, y as f64];
                let weights = [area(p, b, c), area(a, p, c), area(a, b, p)].map(|part| part / double_area);
                if weights.iter().all(|weight| *weight >= -1e-9) {
                    let mean = |of: fn(&Corner) -> f64| -> f64 {
                        corners.iter().zip(weights).map(|(corner, weight)| weight * of(corner)).sum()
                    };
                    let value_and_light = (mean(|corner| corner.value), mean(|corner| corner.light));
                    self.set([x, y], mean(|corner| corner.depth), || {
                        colour(value_and_light.0, value_and_light.1)
                    });
                }
            }
        }
    }

    /// Draws a line of some width in pixels where nothing nearer is drawn.
    pub fn line(&mut self, ends: [Corner; 2], width: f64, colour: Colour) {
        let [a, b] = ends.map(|end| sample(end.at));
        let length = (b[0] - a[0]).hypot(b[1] - a[1]);
        let radius = 0.5 * width * SAMPLES as f64;
        let n_steps = length.ceil().clamp(1.0, 1e5) as usize;
        for step in 0..=n_steps {
            let share = step as f64 / n_steps as f64;
            let centre = [0, 1].map(|i| a[i] + share * (b[i] - a[i]));
            let depth = ends[0].depth + share * (ends[1].depth - ends[0].depth);
            let around =
                |axis: usize| self.span([centre[axis] - radius, centre[axis], centre[axis] + radius], axis);
            let (columns, rows) = (around(0), around(1));
            for (x, y) in rows.flat_map(|y| columns.clone().map(move |x| (x, y))) {
                if (x as f64 - centre[0]).hypot(y as f64 - centre[1]) <= radius {
                    self.set([x, y], depth, || colour);
                }
            }
        }
    }

    /// Returns the samples between the least and the largest of three coordinates.
    fn span(&self, at: [f64; 3], axis: usize) -> std::ops::Range<usize> {
        let [p, q, r] = at;
        let most = self.size[axis] as f64;
        let first = p.min(q).min(r).ceil().clamp(0.0, most);
        let end = (p.max(q).max(r).floor() + 1.0).clamp(first, most);
        first as usize..end as usize
    }

    fn set(&mut self, [x, y]: [usize; 2], depth: f64, colour: impl FnOnce() -> Colour) {
        let sample = y * self.size[0] + x;
        if (depth as f32) < self.depths[sample] {
            self.depths[sample] = depth as f32;
            self.colours[sample] = colour();
        }
    }

    /// Returns the mean colour of each pixel.
    pub fn image(&self) -> Image {
        let size = self.size.map(|n| n / SAMPLES);
        let samples = |x: usize, y: usize| {
            let rows = y * SAMPLES..(y + 1) * SAMPLES;
            rows.flat_map(move |row| &self.colours[row * self.size[0] + x * SAMPLES..][..SAMPLES])
        };
        let mean = |x: usize, y: usize| -> Colour {
            std::array::from_fn(|i| {
                let sum: usize = samples(x, y).map(|colour| usize::from(colour[i])).sum();
                ((sum + SAMPLES * SAMPLES / 2) / (SAMPLES * SAMPLES)) as u8
            })
        };
        let pixels = (0..size[1]).flat_map(|y| (0..size[0]).map(move |x| (x, y)));
        Image { size, pixels: pixels.map(|(x, y)| mean(x, y)).collect() }
    }
}

impl Image {
    /// Mixes a colour into a pixel, if there is one, by a share between 0 and 1.
    pub fn mix(&mut self, [x, y]: [usize; 2], colour: Colour, share: f64) {
        if x < self.size[0] && y < self.size[1] {
            let pixel = &mut self.pixels[y * self.size[0] + x];
            *pixel = std::array::from_fn(|i| {
                let [from, to] = [pixel[i], colour[i]].map(f64::from);
                (from + share * (to - from)).round() as u8
            });
        }
    }

    /// Copies another image with its upper left corner at a pixel.
    pub fn place(&mut self, [x, y]: [usize; 2], other: &Self) {
        for (row, pixels) in other.pixels.chunks(other.size[0].max(1)).enumerate() {
            for (column, colour) in pixels.iter().enumerate() {
                self.mix([x + column, y + row], *colour, 1.0);
            }
        }
    }
}

/// Returns the place among samples, whose centres have whole numbers, of a place among pixels.
fn sample(at: [f64; 2]) -> [f64; 2] {
    at.map(|x| x * SAMPLES as f64 + 0.5 * (SAMPLES - 1) as f64)
}

/// Twice the signed area of a triangle.
fn area(a: [f64; 2], b: [f64; 2], c: [f64; 2]) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

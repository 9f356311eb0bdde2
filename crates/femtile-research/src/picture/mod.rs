//! Pictures of a field on the surface of a mesh, for the documents: panels side by side with one scale of colours.

mod colours;
mod glyphs;
mod png;
mod raster;
mod surface;

use femtile::Mesh;
use femtile_bench::BenchError;

use raster::Raster;
use surface::{Surface, View};

/// Space around panels, in pixels.
const MARGIN: usize = 12;
/// Height of the line above a panel.
const LINE: usize = 24;
/// Width of the scale of colours, and of it with its numbers.
const SCALE: [usize; 2] = [16, 74];

/// How a picture is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureConfig {
    /// The field of the nodes.
    pub field: String,
    /// The values at both ends of the scale.
    pub range: [f64; 2],
    /// The unit above the scale; as in captions, only digits, spaces, `.`, `-`, `=`, `t`, `m`, `s` and `V` are drawn.
    pub unit: String,
    /// Direction in which the eye looks.
    pub towards: [f64; 3],
    /// Side of a panel, in pixels.
    pub panel: usize,
}

impl Default for PictureConfig {
    fn default() -> Self {
        let (field, unit) = ("V".into(), String::new());
        Self { field, range: [0.0, 1.0], unit, towards: [0.0, 0.0, -1.0], panel: 230 }
    }
}

/// Draws a mesh in each panel under its caption, all at the same scale, and returns the picture as a PNG file.
///
/// # Errors
/// [`BenchError::Setting`] for a field that is not there or has several components, and for other cells than triangles and
/// tetrahedra.
pub fn picture(panels: &[(String, Mesh)], config: &PictureConfig) -> Result<Vec<u8>, BenchError> {
    let view = View::towards(config.towards);
    let surfaces: Vec<Surface> =
        panels.iter().map(|(_, mesh)| Surface::new(mesh, &config.field, &view)).collect::<Result<_, _>>()?;
    let [width, height] = Surface::extent(&surfaces);
    let pixels_per_unit = config.panel as f64 / width.max(height).max(f64::MIN_POSITIVE);
    let size = [width, height].map(|side| (side * pixels_per_unit).ceil() as usize + 1);
    let step = size[0] + MARGIN;
    let mut raster = Raster::new([MARGIN + surfaces.len() * step + SCALE[1], size[1] + LINE + 2 * MARGIN]);
    for (k, ((caption, _), surface)) in panels.iter().zip(&surfaces).enumerate() {
        let corner = [MARGIN + k * step, MARGIN + LINE];
        surface.draw(&mut raster, (corner, size), (pixels_per_unit, config.range));
        raster.text([corner[0], MARGIN], caption);
    }
    let corner = [MARGIN + surfaces.len() * step, MARGIN + LINE];
    scale(&mut raster, (corner, size[1]), config);
    Ok(png::encode(&raster))
}

/// Draws the scale of colours with five numbers and the unit.
fn scale(raster: &mut Raster, (corner, height): ([usize; 2], usize), config: &PictureConfig) {
    let [x, y] = corner;
    for row in 0..height {
        let share = 1.0 - row as f64 / (height - 1).max(1) as f64;
        (0..SCALE[0]).for_each(|column| raster.set([x + column, y + row], colours::colour(share, 1.0)));
    }
    let [least, most] = config.range;
    for tick in 0..5 {
        let share = f64::from(tick) / 4.0;
        let row = y as f64 + (1.0 - share) * (height - 1) as f64;
        let top = (row - glyphs::HEIGHT as f64 / 2.0).max(0.0) as usize;
        raster.text([x + SCALE[0] + 6, top], &number(least + share * (most - least)));
    }
    raster.text([x, MARGIN], &config.unit);
}

fn number(value: f64) -> String {
    if value.abs() >= 10.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use femtile::mesh::Field;
    use femtile::mesh::generate::{BoxConfig, SquareConfig, box_mesh, square};

    use super::*;

    /// The width and the colours of a picture by row.
    fn decoded(png: &[u8]) -> (usize, Vec<[u8; 3]>) {
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        let (width, height) = (number(16), number(20));
        let mut data = Vec::new();
        let mut at = 8;
        while at < png.len() {
            if &png[at + 4..at + 8] == b"IDAT" {
                data.extend_from_slice(&png[at + 8..at + 8 + number(at)]);
            }
            at += 12 + number(at);
        }
        let mut rows = Vec::new();
        flate2::read::ZlibDecoder::new(data.as_slice()).read_to_end(&mut rows).unwrap();
        assert_eq!(rows.len(), height * (3 * width + 1));
        let pixels = |row: &[u8]| row[1..].chunks(3).map(|c| [c[0], c[1], c[2]]).collect::<Vec<_>>();
        (width, rows.chunks(3 * width + 1).flat_map(pixels).collect())
    }

    fn with_field(mut mesh: Mesh, value: impl Fn([f64; 3]) -> f64) -> Mesh {
        let values = mesh.points.iter().map(|&point| value(point)).collect();
        mesh.node_fields.insert("V".into(), Field { n_components: 1, values });
        mesh
    }

    #[test]
    fn a_linear_field_has_the_colours_of_its_values_everywhere() {
        let mesh = with_field(square(&SquareConfig::default()).unwrap(), |p| p[0]);
        let config = PictureConfig { panel: 101, ..PictureConfig::default() };
        let (width, pixels) = decoded(&picture(&[("t = 0".into(), mesh)], &config).unwrap());
        for row in [0, 37, 99] {
            for column in [1, 50, 99] {
                let found = pixels[(MARGIN + LINE + row) * width + MARGIN + column];
                let expected = colours::colour(column as f64 / 101.0, 1.0);
                let distance = found.iter().zip(expected).map(|(a, b)| a.abs_diff(b)).max();
                assert!(distance <= Some(6), "{row} {column}: {found:?} {expected:?}");
            }
        }
    }

    #[test]
    fn the_nearest_face_of_a_box_hides_those_behind_it() {
        let mesh = with_field(box_mesh(&BoxConfig::default()).unwrap(), |p| p[2]);
        for (towards, seen) in [([0.0, 0.0, -1.0], 1.0), ([0.0, 0.0, 1.0], 0.0)] {
            let config = PictureConfig { panel: 40, towards, ..PictureConfig::default() };
            let (width, pixels) = decoded(&picture(&[(String::new(), mesh.clone())], &config).unwrap());
            assert_eq!(pixels[(MARGIN + LINE + 20) * width + MARGIN + 20], colours::colour(seen, 1.0));
        }
    }

    #[test]
    fn a_field_that_is_not_there_is_named() {
        let mesh = square(&SquareConfig::default()).unwrap();
        let error = picture(&[(String::new(), mesh)], &PictureConfig::default()).unwrap_err();
        assert!(error.to_string().contains('V'), "{error}");
    }
}

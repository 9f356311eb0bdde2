//! Pictures of surfaces: panels side by side with one scale of colours.

mod axes;
mod camera;
mod png;
mod raster;
mod scale;
mod text;

pub(crate) use scale::range_around;

use camera::Camera;
use raster::{Corner, Image, PAPER, Raster};
use text::LINE;

use crate::colour::{Colour, ColourMap};
use crate::cut::Plane;
use crate::number::short;
use crate::surface::Surface;
use crate::vector::{Vector, dot, unit};
use crate::{Body, ReportError};

/// Space around panels, in pixels.
const MARGIN: usize = 14;
/// Places without a value.
const MISSING: Colour = [190; 3];
/// The factor of the colour of a surface that is seen from its edge.
const DARKEST: f64 = 0.62;
/// Direction of the light: to the right, down and away from the eye.
const LIGHT: Vector = [0.3, 0.4, 1.0];

/// A surface with its caption.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The line above it; may be empty.
    pub caption: String,
    /// The surface.
    pub surface: Surface,
}

/// How a picture is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureConfig {
    /// The line above all panels; may be empty.
    pub title: String,
    /// The text above the scale of colours, such as the name of the field or a unit.
    pub label: String,
    /// The values at both ends of the scale; those of the panels where none is given.
    pub range: Option<[f64; 2]>,
    /// The colours.
    pub colours: ColourMap,
    /// Direction in which the eye looks.
    pub towards: [f64; 3],
    /// The longer side of a panel, in pixels.
    pub panel: usize,
    /// Whether axes and extents stand below the panels.
    pub axes: bool,
}

impl PictureConfig {
    /// Returns the settings for bodies in a space of a dimension: plane ones are seen from above, others from the front, the right and
    /// above.
    pub fn of_dimension(dimension: usize) -> Self {
        Self {
            title: String::new(),
            label: "u".into(),
            range: None,
            colours: ColourMap::VIRIDIS,
            towards: if dimension == 3 { [-0.5, 0.75, -0.42] } else { [0.0, 0.0, -1.0] },
            panel: if dimension == 3 { 400 } else { 520 },
            axes: true,
        }
    }
}

/// Returns the panels that show a field: plane bodies and surfaces in space as they are, others by their boundary, and by the half behind a plane
/// through the middle.
///
/// # Errors
/// [`ReportError::Length`] unless there is a value for each point.
pub fn panels(body: &Body, values: &[f64], towards: [f64; 3]) -> Result<Vec<Panel>, ReportError> {
    let surface = body.surface(values)?;
    if body.dimension() < 3 {
        return Ok(vec![Panel { caption: String::new(), surface }]);
    }
    let axis = if towards[0].abs() > towards[1].abs() { 0 } else { 1 };
    let [low, high] = body.bounds();
    let origin: Vector = std::array::from_fn(|i| 0.5 * (low[i] + high[i]));
    let normal = std::array::from_fn(|i| if i == axis { -towards[axis].signum() } else { 0.0 });
    let plane = Plane { origin, normal };
    let mut half = surface.below(&plane);
    half.extend(&body.cut(&plane, values)?);
    let caption = format!("cut at {} = {}", ["x", "y"][axis], short(origin[axis]));
    Ok(vec![Panel { caption: "surface".into(), surface }, Panel { caption, surface: half }])
}

/// Draws each panel under its caption, all at the same scale, and returns the picture as a PNG file.
///
/// # Errors
/// [`ReportError::Empty`] without triangles.
pub fn picture(panels: &[Panel], config: &PictureConfig) -> Result<Vec<u8>, ReportError> {
    Ok(png::encode(&drawn(panels, config)?))
}

/// Draws the picture.
fn drawn(panels: &[Panel], config: &PictureConfig) -> Result<Image, ReportError> {
    let camera = Camera::towards(config.towards);
    let extents: Vec<_> = panels.iter().map(|panel| extents(panel, &camera)).collect();
    let [width, height] =
        [0, 1].map(|axis| extents.iter().map(|e| e[axis][1] - e[axis][0]).fold(0.0, f64::max));
    if !(width.max(height).is_finite() && width.max(height) > 0.0) {
        return Err(ReportError::Empty("no panel has a triangle"));
    }
    let scale = config.panel as f64 / width.max(height);
    let size = [width, height].map(|side| (side * scale).ceil() as usize + 2);
    let range = config.range.unwrap_or_else(|| scale::range_of(panels));
    let layout = Layout::new(panels, config, size);
    let mut image = Image { size: layout.size, pixels: vec![PAPER; layout.size[0] * layout.size[1]] };
    image.text([MARGIN, MARGIN], &config.title);
    for (k, (panel, extents)) in panels.iter().zip(&extents).enumerate() {
        let mut raster = Raster::new(size);
        draw(&mut raster, &panel.surface, (&camera.centred(*extents, size, scale), config.colours), range);
        let corner = [MARGIN + k * layout.step, layout.top];
        image.place(corner, &raster.image());
        image.text([corner[0], layout.captions], &panel.caption);
    }
    scale::draw(&mut image, layout.scale, layout.scale_height, (config, range));
    if config.axes {
        axes::draw(&mut image, [MARGIN, layout.top + size[1] + MARGIN], &camera, panels);
    }
    Ok(image)
}

/// Where the parts of a picture are, in pixels.
struct Layout {
    size: [usize; 2],
    /// From the left side of a panel to that of the next.
    step: usize,
    /// Heights of the captions and of the panels below.
    captions: usize,
    top: usize,
    /// Upper left corner of the scale of colours, and its height.
    scale: [usize; 2],
    scale_height: usize,
}

impl Layout {
    fn new(panels: &[Panel], config: &PictureConfig, size: [usize; 2]) -> Self {
        let line = |is_there: bool| if is_there { LINE + 4 } else { 0 };
        let captions = MARGIN + line(!config.title.is_empty());
        // The label of the scale is on the line of the captions.
        let top = captions + LINE + 4;
        let longest = panels.iter().map(|panel| text::width(&panel.caption)).max().unwrap_or(0);
        let step = size[0].max(longest) + 2 * MARGIN;
        let right = MARGIN + panels.len() * step;
        let scale_height = size[1].clamp(5 * LINE, 300);
        let body = size[1].max(scale_height + LINE);
        let width = (right + scale::width(config)).max(2 * MARGIN + text::width(&config.title));
        let below = if config.axes { MARGIN + axes::HEIGHT } else { 0 };
        let size = [width + MARGIN, top + body + below + MARGIN];
        Self { size, step, captions, top, scale: [right, top], scale_height }
    }
}

/// Returns the extents of the points that triangles use.
fn extents(panel: &Panel, camera: &Camera) -> [[f64; 2]; 2] {
    let Surface { points, triangles, .. } = &panel.surface;
    camera.extents(triangles.as_flattened().iter().map(|&node| points[node as usize]))
}

/// Draws a surface with light and shade.
fn draw(raster: &mut Raster, surface: &Surface, (camera, colours): (&Camera, ColourMap), range: [f64; 2]) {
    let normals = surface.normals();
    let toward_light = unit(LIGHT);
    let [least, most] = range;
    let colour = |value: f64, light: f64| -> Colour {
        if value.is_nan() {
            return MISSING;
        }
        let factor = DARKEST + (1.0 - DARKEST) * light.clamp(0.0, 1.0);
        colours.at((value - least) / (most - least)).map(|part| (factor * f64::from(part)).round() as u8)
    };
    for triangle in &surface.triangles {
        let flat = unit(surface.normal(triangle));
        let corner = |node: u32| {
            let node = node as usize;
            let (at, depth) = camera.pixel(surface.points[node]);
            let normal = if Surface::is_smooth(normals[node], flat) { normals[node] } else { flat };
            let light = light(camera.turn(normal), toward_light);
            Corner { at, depth, value: surface.values[node], light }
        };
        raster.triangle(triangle.map(corner), &colour);
    }
}

/// Returns the light on a surface with a normal, which may point to either side.
fn light(normal: Vector, toward_light: Vector) -> f64 {
    let side = if normal[2] < 0.0 { -1.0 } else { 1.0 };
    // A surface seen from the front is as light as the scale of colours.
    (side * dot(normal, toward_light) / toward_light[2]).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{BoxConfig, SphereConfig, SquareConfig, box_mesh, sphere, square};

    use super::*;

    fn of_square(value: impl Fn([f64; 3]) -> f64) -> Vec<Panel> {
        let body = Body::of_mesh(&square(&SquareConfig::default()).unwrap()).unwrap();
        let values: Vec<f64> = body.points().iter().map(|&point| value(point)).collect();
        panels(&body, &values, [0.0, 0.0, -1.0]).unwrap()
    }

    fn plain(panel: usize) -> PictureConfig {
        PictureConfig { panel, ..PictureConfig::of_dimension(2) }
    }

    fn pixel(image: &Image, [x, y]: [usize; 2]) -> Colour {
        image.pixels[(MARGIN + LINE + 4 + y) * image.size[0] + MARGIN + x]
    }

    #[test]
    fn a_linear_field_has_the_colours_of_its_values_everywhere() {
        let image = drawn(&of_square(|p| p[0]), &plain(101)).unwrap();
        for row in [3, 37, 99] {
            for column in [3, 50, 99] {
                let found = pixel(&image, [column, row]);
                let expected = ColourMap::VIRIDIS.at(column as f64 / 101.0);
                let distance = found.iter().zip(expected).map(|(a, b)| a.abs_diff(b)).max();
                assert!(distance <= Some(6), "{row} {column}: {found:?} {expected:?}");
            }
        }
    }

    #[test]
    fn a_surface_in_space_is_drawn_by_its_cells_as_a_solid_is() {
        let mesh = sphere(&SphereConfig { cells: 8, ..SphereConfig::default() }).unwrap();
        let body = Body::of_mesh(&mesh).unwrap();
        assert_eq!((body.dimension(), body.space_dimension()), (2, 3));
        let values: Vec<f64> = body.points().iter().map(|point| point[2]).collect();
        for (towards, seen) in [([0.0, 0.0, -1.0], 1.0), ([0.0, 0.0, 1.0], 0.0)] {
            let panels = panels(&body, &values, towards).unwrap();
            assert_eq!(panels.len(), 1);
            let image = drawn(&panels, &PictureConfig { towards, ..plain(41) }).unwrap();
            let (found, expected) = (pixel(&image, [20, 20]), ColourMap::VIRIDIS.at(seen));
            let distance = found.iter().zip(expected).map(|(a, b)| a.abs_diff(b)).max();
            assert!(distance <= Some(12), "{found:?} {expected:?}");
        }
    }

    #[test]
    fn the_nearest_face_of_a_box_hides_those_behind_it() {
        let body = Body::of_mesh(&box_mesh(&BoxConfig::default()).unwrap()).unwrap();
        let values: Vec<f64> = body.points().iter().map(|point| point[2]).collect();
        let surface = body.surface(&values).unwrap();
        for (towards, seen) in [([0.0, 0.0, -1.0], 1.0), ([0.0, 0.0, 1.0], 0.0)] {
            let panel = Panel { caption: String::new(), surface: surface.clone() };
            let image = drawn(&[panel], &PictureConfig { towards, ..plain(40) }).unwrap();
            assert_eq!(pixel(&image, [20, 20]), ColourMap::VIRIDIS.at(seen));
        }
    }

    #[test]
    fn a_cut_shows_values_of_the_inside() {
        let mesh = box_mesh(&BoxConfig { cells: [6; 3], ..BoxConfig::default() }).unwrap();
        let body = Body::of_mesh(&mesh).unwrap();
        let distance = |p: &[f64; 3]| p.iter().map(|x| (x - 0.5).abs()).fold(0.0, f64::max);
        let values: Vec<f64> = body.points().iter().map(distance).collect();
        let towards = [0.0, 1.0, 0.0];
        let both: [Panel; 2] = panels(&body, &values, towards).unwrap().try_into().unwrap();
        assert_eq!(both[1].caption, "cut at y = 0.5");
        let config = PictureConfig { towards, axes: false, range: Some([0.0, 0.5]), ..plain(60) };
        let centres = both.map(|panel| pixel(&drawn(&[panel], &config).unwrap(), [30, 30]));
        assert_eq!(centres[0], ColourMap::VIRIDIS.at(1.0));
        assert!(
            centres[1].iter().zip(ColourMap::VIRIDIS.at(0.0)).all(|(a, b)| a.abs_diff(b) < 16),
            "{centres:?}"
        );
    }

    #[test]
    fn places_without_a_value_are_grey_and_constants_have_a_colour() {
        let centre = |value: f64| pixel(&drawn(&of_square(|_| value), &plain(40)).unwrap(), [20, 20]);
        assert_eq!(centre(f64::NAN), MISSING);
        assert_eq!(centre(0.0), ColourMap::VIRIDIS.at(0.5));
        assert_eq!(centre(-1e300), ColourMap::VIRIDIS.at(0.5));
    }

    #[test]
    fn nothing_to_draw_is_an_error() {
        let none = Panel { caption: "a".into(), surface: Surface::default() };
        assert!(matches!(picture(&[none], &plain(40)), Err(ReportError::Empty(_))));
        assert!(matches!(picture(&[], &plain(40)), Err(ReportError::Empty(_))));
    }
}

//! The part of a solution that a page shows: the boundary, sections, and their values by time.

use serde_json::{Value, json};

use super::pack;
use crate::cut::Plane;
use crate::surface::{Source, Surface};
use crate::{Body, ColourMap, ReportError};

/// Most triangles of all sections together; they bound the size of the page and of its reading.
const TRIANGLES_OF_SLICES: usize = 1_000_000;
/// Most sections across an axis.
const SLICES: usize = 15;
/// Most values of all times together.
const VALUES: usize = 6_000_000;

/// The parts of a body that a page shows, with values for each time.
#[derive(Debug, Clone)]
pub struct View {
    /// That of space.
    dimension: usize,
    corners: usize,
    bounds: [[f64; 3]; 2],
    surface: Surface,
    slices: Vec<Slice>,
    frames: Vec<Frame>,
}

/// A section across an axis.
#[derive(Debug, Clone)]
struct Slice {
    axis: usize,
    position: f64,
    cut: Surface,
}

/// Values at a time: those of the surface, then of each section.
#[derive(Debug, Clone)]
struct Frame {
    time: Option<f64>,
    values: Vec<Vec<f32>>,
}

impl View {
    /// Extracts the boundary, and in 3-D sections normal to axes.
    ///
    /// # Errors
    /// [`ReportError::Empty`] without cells.
    pub fn new(body: &Body) -> Result<Self, ReportError> {
        let none = vec![0.0; body.points().len()];
        let surface = body.surface(&none)?;
        if surface.triangles.is_empty() {
            return Err(ReportError::Empty("the mesh has no facets"));
        }
        let [low, high] = surface.bounds();
        let corners = body.corners();
        let slices = slices(body, &none, [low, high])?;
        Ok(Self {
            dimension: body.space_dimension(),
            corners,
            bounds: [low, high],
            surface,
            slices,
            frames: Vec::new(),
        })
    }

    /// Adds the values of a field at the points of the body, at a time or of a solution without one.
    pub fn push(&mut self, time: Option<f64>, field: &[f64]) {
        let of = |surface: &Surface| {
            surface.sources.iter().map(|source: &Source| source.value(field) as f32).collect()
        };
        let values = std::iter::once(&self.surface).chain(self.slices.iter().map(|slice| &slice.cut)).map(of);
        self.frames.push(Frame { time, values: values.collect() });
    }

    /// Returns the number of times.
    pub fn n_frames(&self) -> usize {
        self.frames.len()
    }

    /// Returns the least and the largest value of all times; 0 and 1 without values.
    pub fn range(&self) -> [f64; 2] {
        let all = || self.frames.iter().flat_map(|frame| frame.values.iter().flatten()).copied();
        let finite = || all().filter(|value| value.is_finite()).map(f64::from);
        crate::picture::range_around(finite().fold(None, |range: Option<[f64; 2]>, x| {
            let [low, high] = range.unwrap_or([x, x]);
            Some([low.min(x), high.max(x)])
        }))
    }

    /// Returns the times that are kept: all, or some of equal distance and the last where they would be too many.
    fn kept(&self) -> Vec<&Frame> {
        let n_values =
            self.surface.points.len() + self.slices.iter().map(|s| s.cut.points.len()).sum::<usize>();
        let most = (VALUES / n_values.max(1)).max(2);
        let step = self.frames.len().div_ceil(most).max(1);
        let mut kept: Vec<&Frame> = self.frames.iter().rev().step_by(step).collect();
        kept.reverse();
        kept
    }

    /// Returns the data that the script of the page reads.
    pub(super) fn data(&self, label: &str) -> Value {
        let (range, frames) = (self.range(), self.kept());
        let of_frames = |part: usize| -> Vec<String> {
            let packed =
                |frame: &&Frame| pack::values(frame.values[part].iter().map(|&x| f64::from(x)), range);
            frames.iter().map(packed).collect()
        };
        let shape = |surface: &Surface, part: usize, corners: usize| {
            json!({
                "corners": corners,
                "points": pack::coordinates(&surface.points, self.bounds),
                "triangles": pack::whole(surface.triangles.as_flattened().iter().copied(), 4),
                "values": of_frames(part),
            })
        };
        let slices = self.slices.iter().enumerate().map(|(i, slice)| {
            let mut data = shape(&slice.cut, i + 1, 3);
            data["axis"] = slice.axis.into();
            data["position"] = slice.position.into();
            data
        });
        let colours = ColourMap::ALL.map(|map| json!({ "name": map.name, "colours": map.colours }));
        json!({
            "label": label,
            "dimension": self.dimension,
            "bounds": self.bounds,
            "range": range,
            "times": frames.iter().filter_map(|frame| frame.time).collect::<Vec<_>>(),
            "colours": colours,
            "surface": shape(&self.surface, 0, self.corners),
            "slices": slices.collect::<Vec<_>>(),
        })
    }
}

/// Cuts a body across each axis at equal distances, as often as the page can hold.
fn slices(body: &Body, none: &[f64], [low, high]: [[f64; 3]; 2]) -> Result<Vec<Slice>, ReportError> {
    if body.dimension() < 3 {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for axis in 0..3 {
        let across = |share: f64| -> Result<Slice, ReportError> {
            let position = low[axis] + share * (high[axis] - low[axis]);
            let along = |value: f64| std::array::from_fn(|i| if i == axis { value } else { 0.0 });
            let cut = body.cut(&Plane { origin: along(position), normal: along(1.0) }, none)?;
            Ok(Slice { axis, position, cut })
        };
        let middle = across(0.5)?;
        let n = (TRIANGLES_OF_SLICES / 3 / middle.cut.triangles.len().max(1)).clamp(1, SLICES);
        let mut middle = Some(middle);
        for i in 0..n {
            // Of an odd number the one in the middle is there already.
            let made = if 2 * i + 1 == n { middle.take() } else { None };
            all.push(made.map_or_else(|| across((i as f64 + 0.5) / n as f64), Ok)?);
        }
    }
    Ok(all)
}

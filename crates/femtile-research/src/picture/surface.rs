//! The surface of a mesh as the eye sees it.

use std::collections::HashMap;

use femtile::Mesh;
use femtile_bench::BenchError;

use super::colours;
use super::raster::{Corner, Raster};

/// A direction of the eye: axes to the right, down and away from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct View {
    axes: [[f64; 3]; 3],
}

impl View {
    /// Looks in a direction, with z upwards, or y where the direction is that of z.
    pub fn towards(direction: [f64; 3]) -> Self {
        let away = unit(direction);
        let up = if away[0].hypot(away[1]) < 1e-6 { [0.0, 1.0, 0.0] } else { [0.0, 0.0, 1.0] };
        let right = unit(product(away, up));
        Self { axes: [right, product(away, right), away] }
    }

    fn of(&self, point: [f64; 3]) -> [f64; 3] {
        self.axes.map(|axis| dot(axis, point))
    }
}

/// Triangles with a value at each corner, as the eye sees them.
pub(super) struct Surface {
    corners: Vec<[f64; 3]>,
    values: Vec<f64>,
    triangles: Vec<[u32; 3]>,
    /// Whether the triangles bound a body, and have light and shade.
    is_body: bool,
}

impl Surface {
    /// Takes the triangles of a mesh, or the faces of its tetrahedra that no two of them share.
    ///
    /// # Errors
    /// [`BenchError::Setting`] for other cells, and without the field.
    pub fn new(mesh: &Mesh, field: &str, view: &View) -> Result<Self, BenchError> {
        let invalid = |field, message: String| BenchError::Setting { field, message };
        let Some(of_field) = mesh.node_fields.get(field).filter(|of| of.n_components == 1) else {
            let names: Vec<_> = mesh.node_fields.keys().map(String::as_str).collect();
            let names = names.join(", ");
            let message = format!("there is no `{field}` with one number a node; there are: {names}");
            return Err(invalid("field", message));
        };
        let m = mesh.kind.n_nodes();
        let triangles = match (mesh.kind.dimension(), m) {
            (2, 3) => mesh.cells.chunks(3).map(|cell| [cell[0], cell[1], cell[2]]).collect(),
            (3, 4) => outer_faces(&mesh.cells),
            _ => return Err(invalid("mesh", "pictures show triangles and tetrahedra".into())),
        };
        let corners = mesh.points.iter().map(|&point| view.of(point)).collect();
        Ok(Self { corners, values: of_field.values.clone(), triangles, is_body: m == 4 })
    }

    /// Returns the width and the height that all surfaces together take.
    pub fn extent(surfaces: &[Self]) -> [f64; 2] {
        [0, 1].map(|axis| {
            surfaces
                .iter()
                .map(|surface| surface.span(axis))
                .map(|[low, high]| high - low)
                .fold(0.0, f64::max)
        })
    }

    fn span(&self, axis: usize) -> [f64; 2] {
        let along = || self.corners.iter().map(|corner| corner[axis]);
        [along().fold(f64::INFINITY, f64::min), along().fold(f64::NEG_INFINITY, f64::max)]
    }

    /// Draws into the middle of a panel.
    pub fn draw(
        &self,
        raster: &mut Raster,
        (corner, size): ([usize; 2], [usize; 2]),
        (scale, [least, most]): (f64, [f64; 2]),
    ) {
        let middle = [0, 1].map(|axis| 0.5 * self.span(axis).iter().sum::<f64>());
        let pixel = |node: u32| {
            let [x, y, depth] = self.corners[node as usize];
            let centre = |axis: usize| corner[axis] as f64 + 0.5 * (size[axis] - 1) as f64;
            let at = [centre(0) + scale * (x - middle[0]), centre(1) + scale * (y - middle[1])];
            Corner { at, depth, value: self.values[node as usize] }
        };
        for triangle in &self.triangles {
            let light = if self.is_body { self.light(triangle) } else { 1.0 };
            let colour = |value: f64| colours::colour((value - least) / (most - least), light);
            raster.triangle(triangle.map(pixel), colour);
        }
    }

    /// Returns the light of a triangle: the cosine of its angle to the eye.
    fn light(&self, triangle: &[u32; 3]) -> f64 {
        let [a, b, c] = triangle.map(|node| self.corners[node as usize]);
        let edge = |to: [f64; 3]| std::array::from_fn(|i| to[i] - a[i]);
        unit(product(edge(b), edge(c)))[2].abs()
    }
}

/// Returns the faces that belong to one tetrahedron only.
fn outer_faces(cells: &[u32]) -> Vec<[u32; 3]> {
    let mut faces: HashMap<[u32; 3], usize> = HashMap::new();
    for cell in cells.chunks(4) {
        for left_out in 0..4 {
            let mut face: [u32; 3] = std::array::from_fn(|i| cell[i + usize::from(i >= left_out)]);
            face.sort_unstable();
            *faces.entry(face).or_default() += 1;
        }
    }
    let mut outer: Vec<_> =
        faces.into_iter().filter(|(_, count)| *count == 1).map(|(face, _)| face).collect();
    outer.sort_unstable();
    outer
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn product(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn unit(a: [f64; 3]) -> [f64; 3] {
    let length = dot(a, a).sqrt();
    if length > 0.0 { a.map(|value| value / length) } else { [0.0, 0.0, 1.0] }
}

//! Parallel projection.

use crate::vector::{Vector, cross, dot, unit};

/// A direction of the eye: axes to the right, down and away from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Camera {
    axes: [Vector; 3],
    /// Coordinates of the lower left end of what is seen, in pixels of the image, and pixels of a unit of length.
    origin: [f64; 2],
    scale: f64,
}

impl Camera {
    /// Looks in a direction, with z upwards, or y where the direction is that of z.
    pub fn towards(direction: Vector) -> Self {
        let away = unit(direction);
        let up = if away[0].hypot(away[1]) < 1e-6 { [0.0, 1.0, 0.0] } else { [0.0, 0.0, 1.0] };
        let right = unit(cross(away, up));
        Self { axes: [right, cross(away, right), away], origin: [0.0; 2], scale: 1.0 }
    }

    /// Returns the extents of points to the right and down.
    pub fn extents(&self, points: impl Iterator<Item = Vector> + Clone) -> [[f64; 2]; 2] {
        [0, 1].map(|axis| {
            let along = points.clone().map(|point| dot(self.axes[axis], point));
            let range = [f64::INFINITY, f64::NEG_INFINITY];
            along.fold(range, |[low, high], x| [low.min(x), high.max(x)])
        })
    }

    /// Puts the middle of extents into the middle of an image, with a number of pixels for a unit of length.
    pub fn centred(self, extents: [[f64; 2]; 2], size: [usize; 2], scale: f64) -> Self {
        let middle = |axis: usize| 0.5 * (extents[axis][0] + extents[axis][1]);
        let origin = [0, 1].map(|axis| 0.5 * (size[axis] as f64 - 1.0) - scale * middle(axis));
        Self { origin, scale, ..self }
    }

    /// Returns the pixel of a point and its depth.
    pub fn pixel(&self, point: Vector) -> ([f64; 2], f64) {
        let [x, y, depth] = self.turn(point);
        ([self.origin[0] + self.scale * x, self.origin[1] + self.scale * y], depth)
    }

    /// Returns the components of a direction to the right, down and away.
    pub fn turn(&self, direction: Vector) -> Vector {
        self.axes.map(|axis| dot(axis, direction))
    }
}

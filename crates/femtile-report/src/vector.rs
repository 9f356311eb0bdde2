//! Vectors of three numbers.

/// A point or a direction.
pub(crate) type Vector = [f64; 3];

pub(crate) fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(crate) fn difference(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|i| a[i] - b[i])
}

/// Returns the vector with length 1, or the direction of z in place of zero.
pub(crate) fn unit(a: Vector) -> Vector {
    let length = dot(a, a).sqrt();
    if length > 0.0 { a.map(|x| x / length) } else { [0.0, 0.0, 1.0] }
}

/// Returns the point at a share of the way from one point to another.
pub(crate) fn between(a: Vector, b: Vector, share: f64) -> Vector {
    std::array::from_fn(|i| a[i] + share * (b[i] - a[i]))
}

pub(crate) fn length(a: Vector) -> f64 {
    dot(a, a).sqrt()
}

/// Returns the least and the largest coordinates.
pub(crate) fn bounds(points: &[Vector]) -> [Vector; 2] {
    let start = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];
    points.iter().fold(start, |[low, high], point| {
        [std::array::from_fn(|i| low[i].min(point[i])), std::array::from_fn(|i| high[i].max(point[i]))]
    })
}

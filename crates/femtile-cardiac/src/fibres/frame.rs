//! Axes of a cell, and directions turned against them.

use super::coordinates::Point;

/// Angles at endocardium and epicardium, in radians.
pub(super) struct Angles {
    /// Of fibres to the circumference.
    pub helix: [f64; 2],
    /// Of sheets to the direction through the wall.
    pub sheet: [f64; 2],
}

/// Returns the directions of fibre and sheet at a point; none if depth or height has no gradient.
pub(super) fn directions(at: &Point, angles: &Angles, smallest: [f64; 2]) -> Option<[[f64; 3]; 2]> {
    let between = |[endo, epi]: [f64; 2]| (1.0 - at.depth) * endo + at.depth * epi;
    let (helix, sheet) = (between(angles.helix), between(angles.sheet));
    let outwards = |gradient: [f64; 3], sign: f64| {
        let axes = axes(gradient, at.height_gradient, smallest)?;
        Some(turned(axes, sign * helix, sign * sheet))
    };
    let of_depth = outwards(at.depth_gradient, 1.0);
    let Some([(left, left_gradient), (right, right_gradient)]) = at.ventricles else { return of_depth };
    let (left, right) = (left.max(0.0), right.max(0.0));
    // From the left endocardium, 0, to the right one, 1; fibres of the septum are those of the wall of the left ventricle.
    let across = if left + right > 0.0 { right / (left + right) } else { 0.0 };
    let of_left = outwards(left_gradient.map(|x| -x), 1.0 - 2.0 * across);
    let of_right = outwards(right_gradient, 1.0 - 2.0 * across);
    let inner = 1.0 - at.depth;
    blend([(inner * (1.0 - across), of_left), (inner * across, of_right), (at.depth, of_depth)])
}

/// Axes of a cell: around, along and through the wall.
fn axes(through: [f64; 3], upwards: [f64; 3], [smallest, smallest_along]: [f64; 2]) -> Option<[[f64; 3]; 3]> {
    let t = unit(through, smallest)?;
    let along_t = dot(upwards, t);
    let l = unit([0, 1, 2].map(|i| upwards[i] - along_t * t[i]), smallest_along)?;
    Some([cross(l, t), l, t])
}

/// Returns fibre and sheet at these angles to the axes.
fn turned([c, l, t]: [[f64; 3]; 3], helix: f64, sheet: f64) -> [[f64; 3]; 2] {
    let ((sin_a, cos_a), (sin_b, cos_b)) = (helix.sin_cos(), sheet.sin_cos());
    let fibre = [0, 1, 2].map(|i| cos_a * c[i] + sin_a * l[i]);
    let sheet = [0, 1, 2].map(|i| cos_b * t[i] + sin_b * (cos_a * l[i] - sin_a * c[i]));
    [fibre, sheet]
}

/// Returns the weighted sum of directions of either sign, the sheet orthogonal to the fibre.
fn blend(parts: [(f64, Option<[[f64; 3]; 2]>); 3]) -> Option<[[f64; 3]; 2]> {
    let heaviest = |a: &(f64, [[f64; 3]; 2]), b: &(f64, [[f64; 3]; 2])| a.0.total_cmp(&b.0);
    let parts = || parts.iter().filter_map(|(weight, directions)| Some((*weight, (*directions)?)));
    let (_, main) = parts().max_by(heaviest)?;
    let sum = |which: usize| {
        parts().fold([0.0; 3], |sum, (weight, directions)| {
            let sign = if dot(directions[which], main[which]) < 0.0 { -1.0 } else { 1.0 };
            [0, 1, 2].map(|i| sum[i] + sign * weight * directions[which][i])
        })
    };
    orthonormal(sum(0), sum(1))
}

/// Returns unit vectors along the first vector, and along the second across the first.
pub(super) fn orthonormal(fibre: [f64; 3], sheet: [f64; 3]) -> Option<[[f64; 3]; 2]> {
    let f = unit(fibre, 1e-6)?;
    let along = dot(sheet, f);
    let across = [0, 1, 2].map(|i| sheet[i] - along * f[i]);
    let s = unit(across, 1e-6).or_else(|| unit(any_across(f), 0.0))?;
    Some([f, s])
}

/// Returns a vector orthogonal to a unit vector.
pub(super) fn any_across(f: [f64; 3]) -> [f64; 3] {
    let axis = (0..3).fold(0, |least, i| if f[i].abs() < f[least].abs() { i } else { least });
    let mut e = [0.0; 3];
    e[axis] = 1.0;
    cross(f, e)
}

fn unit(v: [f64; 3], smallest: f64) -> Option<[f64; 3]> {
    let length = length(v);
    (length > smallest && length.is_finite()).then(|| v.map(|x| x / length))
}

pub(super) fn length(v: [f64; 3]) -> f64 {
    dot(v, v).sqrt()
}

pub(super) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

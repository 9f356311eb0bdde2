//! Tells meshes in the plane from surfaces in space.

/// Puts a mesh whose `used` points lie in a plane z = constant at z = 0, and returns whether they do.
///
/// The plane is as thick as the distance within which the mesh check takes nodes for coincident.
pub(crate) fn flatten(points: &mut [[f64; 3]], used: &[&[u32]]) -> bool {
    // Indices out of range are refused later.
    let used = || used.iter().flat_map(|part| part.iter()).filter_map(|&i| points.get(i as usize));
    let Some(&[_, _, height]) = used().next() else { return true };
    let (mut lower, mut upper) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for point in used() {
        for d in 0..3 {
            (lower[d], upper[d]) = (lower[d].min(point[d]), upper[d].max(point[d]));
        }
    }
    let extent = (0..2).map(|d| upper[d] - lower[d]).fold(0.0, f64::max);
    let size = lower.iter().chain(&upper).fold(0.0f64, |size, x| size.max(x.abs()));
    let tolerance = (1e-10 * extent).max(1e-12 * size);
    if !used().all(|point| (point[2] - height).abs() <= tolerance) {
        return false;
    }
    // Numbers that are none are refused later.
    points.iter_mut().filter(|p| p[2].is_finite()).for_each(|p| p[2] = 0.0);
    true
}

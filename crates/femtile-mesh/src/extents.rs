use femtile_device::parallel;

/// Points that a thread looks at at a time.
const POINTS: usize = 1 << 14;

/// Returns the lowest and the highest coordinates of `n` points; NaN is ignored, infinite ones if there are none.
pub(crate) fn extents(n: usize, at: impl Fn(usize) -> [f64; 3] + Sync) -> [[f64; 3]; 2] {
    let none = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];
    let of_block = |block: usize| {
        let points = block * POINTS..n.min((block + 1) * POINTS);
        points.fold(none, |all, i| joined(all, [at(i); 2]))
    };
    parallel::map(n.div_ceil(POINTS), 1, of_block).into_iter().fold(none, joined)
}

#[inline]
fn joined([mut low, mut high]: [[f64; 3]; 2], [lower, higher]: [[f64; 3]; 2]) -> [[f64; 3]; 2] {
    for axis in 0..3 {
        low[axis] = if lower[axis] < low[axis] { lower[axis] } else { low[axis] };
        high[axis] = if higher[axis] > high[axis] { higher[axis] } else { high[axis] };
    }
    [low, high]
}

//! Recursive coordinate bisection.

/// Cells below which one thread goes on alone.
const FEW: usize = 1 << 14;

/// Returns the part of each point, of `n_parts` whose sizes differ by one at most; points at the same place are told apart by
/// their numbers.
///
/// # Source
/// `[berger1987]`.
pub(super) fn divide(points: &[[f64; 3]], n_parts: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..points.len() as u32).collect();
    let n_parts = n_parts.max(1);
    bisect(points, &mut order, n_parts);
    let mut parts = vec![0; points.len()];
    for part in 0..n_parts {
        let piece = share(order.len(), part, n_parts)..share(order.len(), part + 1, n_parts);
        order[piece].iter().for_each(|&point| parts[point as usize] = part as u32);
    }
    parts
}

/// Where a part begins of `n` things that are divided evenly.
pub(super) fn share(n: usize, part: usize, n_parts: usize) -> usize {
    (n as u128 * part as u128 / n_parts as u128) as usize
}

/// Sorts the points so far that equal pieces of `order` are the parts.
fn bisect(points: &[[f64; 3]], order: &mut [u32], n_parts: usize) {
    if n_parts < 2 || order.len() < 2 {
        return;
    }
    let axis = longest(points, order);
    let key = |point: &u32| (points[*point as usize][axis], *point);
    let half = n_parts / 2;
    let middle = share(order.len(), half, n_parts);
    if middle < order.len() {
        order.select_nth_unstable_by(middle, |a, b| {
            let ((a, i), (b, j)) = (key(a), key(b));
            a.total_cmp(&b).then(i.cmp(&j))
        });
    }
    let is_small = order.len() < FEW;
    let (low, high) = order.split_at_mut(middle);
    if is_small {
        bisect(points, low, half);
        bisect(points, high, n_parts - half);
    } else {
        rayon::join(|| bisect(points, low, half), || bisect(points, high, n_parts - half));
    }
}

/// The axis along which the points extend most.
fn longest(points: &[[f64; 3]], order: &[u32]) -> usize {
    let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for &point in order {
        for (axis, x) in points[point as usize].into_iter().enumerate() {
            (low[axis], high[axis]) = (low[axis].min(x), high[axis].max(x));
        }
    }
    let extent = |axis: usize| high[axis] - low[axis];
    (1..3).fold(0, |most, axis| if extent(axis) > extent(most) { axis } else { most })
}

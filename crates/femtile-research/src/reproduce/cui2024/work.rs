//! Operations of the algorithms: multiplications and additions each one.

/// Operations of a step on a patch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Smoothing {
    pub flop: f64,
    /// Values that threads read from shared memory and write there.
    pub shared_values: f64,
}

/// The lengths along each axis of what products are taken of, with the axis, in the order of a step; and whether a result is
/// added to the existing values.
fn products(degree: usize) -> impl Iterator<Item = ([usize; 3], usize, bool)> {
    let (n, m) = (2 * degree - 1, 2 * degree + 1);
    let residual = [
        ([m, m, m], 0, false),
        ([n, m, m], 1, false),
        ([n, n, m], 2, true),
        ([n, m, m], 1, false),
        ([m, m, m], 0, false),
        ([n, m, m], 1, true),
        ([n, n, m], 2, true),
    ];
    let solve = [2, 1, 0, 0, 1, 2].map(|axis| ([n; 3], axis, false));
    residual.into_iter().chain(solve)
}

/// The conflict-free kernel: each thread has a column of the result, and reads an entry of the matrix for each of its terms, or
/// one of the tensor where the column lies along the product.
pub(super) fn smoothing(degree: usize) -> Smoothing {
    let n = 2 * degree - 1;
    let (mut flop, mut shared_values) = (0, 0);
    for (lengths, axis, is_added) in products(degree) {
        let mut to = lengths;
        to[axis] = n;
        let (threads, results) = (to[0] * to[1], to[0] * to[1] * to[2]);
        flop += 2 * results * lengths[axis];
        shared_values += (threads + results) * lengths[axis] + results * (1 + usize::from(is_added));
    }
    // Sums of eigenvalues, and their reciprocals.
    flop += 6 * n.pow(3);
    Smoothing { flop: flop as f64, shared_values: shared_values as f64 }
}

/// Of a cell: seven products.
pub(super) fn residual(degree: usize) -> f64 {
    (14 * (degree + 1).pow(4)) as f64
}

/// Of a coarse cell: from 2k + 1 nodes a side to k + 1.
pub(super) fn restriction(degree: usize) -> f64 {
    let (low, high) = (degree + 1, 2 * degree + 1);
    (2 * low * high * (high * high + low * high + low * low)) as f64
}

/// The transpose.
pub(super) fn prolongation(degree: usize) -> f64 {
    restriction(degree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degree_one_is_counted_by_hand() {
        // Products of 3 × 3 lines, of 3 × 1 and of one, then six of one number, and six operations more.
        let terms = 2 * 27 + 3 * 9 + 2 * 3 + 6;
        assert_eq!(smoothing(1).flop, f64::from(2 * terms + 6));
        assert_eq!(residual(1), 224.0);
        assert_eq!(restriction(1), f64::from(2 * (2 * 27 + 4 * 9 + 8 * 3)));
    }
}

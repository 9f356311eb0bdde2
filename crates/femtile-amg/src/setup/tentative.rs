//! The tentative prolongator: the near-nullspace restricted to aggregates, orthonormalized on each.

use femtile_device::{Scalar, parallel};

use super::graph::{Aggregates, NONE};

/// The share of a vector that must remain after orthogonalization for it to be independent.
const INDEPENDENT: f64 = 1e-8;

/// Vectors that the smoother hardly changes, row by row: `values[n_vectors · row + vector]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NearNullspace {
    pub n_vectors: usize,
    pub values: Vec<f64>,
}

impl NearNullspace {
    /// Returns the number of first-level nodes of each node if the entries of the single vector are the
    /// square roots of such numbers. None if the vector has other entries, such as those of modes of slivers.
    pub fn weights(&self) -> Option<Vec<u32>> {
        let weight = |&b: &f64| {
            let square = (b * b).round();
            let is_root = (1.0..f64::from(u32::MAX)).contains(&square) && square.sqrt() == b;
            is_root.then_some(square as u32)
        };
        if self.n_vectors == 1 { self.values.iter().map(weight).collect() } else { None }
    }

    /// The vector of the square roots of the numbers of first-level nodes.
    pub fn of_weights(weights: Vec<u32>) -> Self {
        Self { n_vectors: 1, values: weights.into_iter().map(|weight| f64::from(weight).sqrt()).collect() }
    }

    /// The constant vector, one for each of the `block` rows of a node.
    pub fn constants(n_rows: usize, block: usize) -> Self {
        if block == 1 {
            return Self { n_vectors: 1, values: vec![1.0; n_rows] };
        }
        let value = |i: usize| if (i / block) % block == i % block { 1.0 } else { 0.0 };
        Self { n_vectors: block, values: (0..n_rows * block).map(value).collect() }
    }

    /// Returns these rows permuted: row i is row `order[i]`.
    pub fn permuted(&self, order: &[u32]) -> Self {
        let of_row = |&row: &u32| &self.values[self.n_vectors * row as usize..][..self.n_vectors];
        Self { n_vectors: self.n_vectors, values: order.iter().flat_map(of_row).copied().collect() }
    }
}

/// The tentative prolongator $\tilde P$: row i has its entries in the columns of the aggregate of node i.
#[derive(Debug)]
pub(crate) struct Tentative<T> {
    /// As [`NearNullspace::values`].
    pub values: Vec<T>,
    /// The near-nullspace of the next level: $\tilde P B_c = B$.
    pub coarse: NearNullspace,
    /// The number of zero columns, due to aggregates with too few independent rows.
    pub n_zero: usize,
}

impl<T: Scalar> Tentative<T> {
    /// Restricts `b` to aggregates of nodes of `block` rows and orthonormalizes it there. Rows of b behind those of the nodes
    /// are not read.
    ///
    /// # Source
    /// `[vanek1996]`, section 3 (Algorithm 7 of its general form); `[fu2014]`, eq. (5) is the case of one constant vector.
    pub fn new(b: &NearNullspace, aggregates: &Aggregates, block: usize) -> Self {
        let k = b.n_vectors;
        if k == 1 {
            return Self::of_one(b, aggregates, block);
        }
        let members = aggregates.members();
        let factors = parallel::map(aggregates.n, 64, |i| Factor::new(b, members.of(i), block));
        let mut values = vec![T::ZERO; aggregates.of_node.len() * block * k];
        let mut coarse = Vec::with_capacity(aggregates.n * k * k);
        for (i, factor) in factors.iter().enumerate() {
            for (&node, rows) in members.of(i).iter().zip(factor.q.chunks(block * k)) {
                let to = &mut values[block * k * node as usize..][..block * k];
                to.iter_mut().zip(rows).for_each(|(to, &q)| *to = T::from_f64(q));
            }
            coarse.extend_from_slice(&factor.r);
        }
        let n_zero = factors.iter().map(|factor| factor.n_zero).sum();
        Self { values, coarse: NearNullspace { n_vectors: k, values: coarse }, n_zero }
    }
}

impl<T: Scalar> Tentative<T> {
    /// The case of one vector, without a factorisation.
    fn of_one(b: &NearNullspace, aggregates: &Aggregates, block: usize) -> Self {
        let part = |row: usize| aggregates.of_node[if block == 1 { row } else { row / block }];
        let b = &b.values[..aggregates.of_node.len() * block];
        let mut squares = vec![0.0; aggregates.n];
        for (row, value) in b.iter().enumerate() {
            if part(row) != NONE {
                squares[part(row) as usize] += value * value;
            }
        }
        let n_zero = squares.iter().filter(|square| **square == 0.0).count();
        let lengths: Vec<f64> = squares.into_iter().map(f64::sqrt).collect();
        let inverse: Vec<f64> =
            lengths.iter().map(|&length| if length > 0.0 { 1.0 / length } else { 0.0 }).collect();
        let scaled = |(row, value): (usize, &f64)| match part(row) {
            NONE => T::ZERO,
            part => T::from_f64(value * inverse[part as usize]),
        };
        let values = b.iter().enumerate().map(scaled).collect();
        Self { values, coarse: NearNullspace { n_vectors: 1, values: lengths }, n_zero }
    }
}

/// B = Q R on one aggregate.
struct Factor {
    q: Vec<f64>,
    r: Vec<f64>,
    n_zero: usize,
}

impl Factor {
    /// Factors by Gram–Schmidt with reorthogonalization; columns that depend on those before become zero.
    fn new(b: &NearNullspace, nodes: &[u32], block: usize) -> Self {
        let k = b.n_vectors;
        let of_node = |&node: &u32| b.values[block * k * node as usize..][..block * k].iter().copied();
        let mut q: Vec<f64> = nodes.iter().flat_map(of_node).collect();
        let (n, mut r, mut n_zero) = (q.len() / k, vec![0.0; k * k], 0);
        for j in 0..k {
            let before = norm(&q, k, j);
            for _ in 0..2 {
                for i in 0..j {
                    let dot: f64 = (0..n).map(|row| q[k * row + i] * q[k * row + j]).sum();
                    r[k * i + j] += dot;
                    (0..n).for_each(|row| q[k * row + j] -= dot * q[k * row + i]);
                }
            }
            let after = norm(&q, k, j);
            let is_zero = after <= INDEPENDENT * before;
            let scale = if is_zero { 0.0 } else { 1.0 / after };
            (0..n).for_each(|row| q[k * row + j] *= scale);
            r[k * j + j] = if is_zero { 0.0 } else { after };
            n_zero += usize::from(is_zero);
        }
        Self { q, r, n_zero }
    }
}

fn norm(q: &[f64], k: usize, column: usize) -> f64 {
    q.iter().skip(column).step_by(k).map(|value| value * value).sum::<f64>().sqrt()
}

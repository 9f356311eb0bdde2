//! The sums of a block, and the directions and steps that follow from them.

use super::MAX_STEPS;
use super::small::{Factor, SmallMatrix, SmallVector};

/// Inner products with each vector of the basis, times D: a row for each of at most [`MAX_STEPS`] vectors.
pub type GramRows = [[f64; MAX_STEPS + 1]; MAX_STEPS];

/// The sums of a block: all that the host needs to take its steps.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SStepGram {
    /// $P_-^\mathsf{T} D T$ of the directions before.
    pub before: GramRows,
    /// $T^\mathsf{T} D T$: its first entry, and the entries above the diagonal.
    pub basis: GramRows,
}

impl SStepGram {
    /// Pairs (i, k) of vectors of the basis whose $t_i^\mathsf{T} D t_k$ is summed, for `n_steps` steps.
    pub fn pairs_of_basis(n_steps: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..=n_steps).flat_map(|k| (0..k.max(1)).map(move |i| (i, k)))
    }

    /// Pairs (i, k) of a direction before and a vector of the basis.
    pub fn pairs_with_before(n_before: usize, n_steps: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..n_before).flat_map(move |i| (0..=n_steps).map(move |k| (i, k)))
    }

    /// Number of sums.
    pub(super) fn n_values(n_before: usize, n_steps: usize) -> usize {
        n_before * (n_steps + 1) + 1 + n_steps * (n_steps + 1) / 2
    }

    /// The sums in one row.
    pub(super) fn values(&self, n_before: usize, n_steps: usize) -> Vec<f64> {
        let before = Self::pairs_with_before(n_before, n_steps).map(|(i, k)| self.before[i][k]);
        before.chain(Self::pairs_of_basis(n_steps).map(|(i, k)| self.basis[i][k])).collect()
    }

    /// From the sums in one row.
    pub(super) fn from_values(values: &[f64], n_before: usize, n_steps: usize) -> Self {
        let (mut gram, mut values) = (Self::default(), values.iter());
        let before = Self::pairs_with_before(n_before, n_steps);
        before.zip(&mut values).for_each(|((i, k), value)| gram.before[i][k] = *value);
        let basis = Self::pairs_of_basis(n_steps);
        basis.zip(&mut values).for_each(|((i, k), value)| gram.basis[i][k] = *value);
        gram
    }
}

/// A block made conjugate to the directions before, and its steps.
#[derive(Debug, Default)]
pub(super) struct Conjugated {
    /// $B = -W_-^{-1} C$ with $C = P_-^\mathsf{T} A R$.
    pub b: SmallMatrix,
    /// The factor of $W = P^\mathsf{T} A P$.
    pub factor: Factor,
    /// $a = W^{-1} P^\mathsf{T} r$, one entry per row of the factor.
    pub a: SmallVector,
    /// $a_- = W_-^{-1} P_-^\mathsf{T} r$.
    pub a_before: SmallVector,
}

impl Conjugated {
    /// Returns the block of these sums, and its first pivot that is no more than `tolerance` of its diagonal
    /// entry. `before` is the factor of $W_-$ of the previous directions.
    ///
    /// With $W_- = L L^\mathsf{T}$ and $Y = L^{-1} C$, $W = R^\mathsf{T} A R - Y^\mathsf{T} Y$ is symmetric whatever the rounding. In exact
    /// arithmetic $P_-^\mathsf{T} r = 0$. As W has the rounding of all blocks before, r keeps a part along $P_-$, which counts in
    /// $P^\mathsf{T} r$ and takes steps along $P_-$ again: both keep rounding from growing.
    pub fn new(gram: &SStepGram, before: &Factor, n_steps: usize, tolerance: f64) -> (Self, Option<f64>) {
        let mut block = Self::default();
        let (mut w, mut y) = (SmallMatrix::default(), [SmallVector::default(); MAX_STEPS]);
        for j in 0..n_steps {
            let mut column = gram.before.map(|row| row[j + 1]);
            before.solve_lower(&mut column);
            y[j] = column;
            before.solve_upper(&mut column);
            block.a[j] = gram.basis[0][j];
            for (l, row) in gram.before[..before.rank].iter().enumerate() {
                block.b[(l, j)] = -column[l];
                block.a[j] -= column[l] * row[0];
            }
            for i in 0..=j {
                let known: f64 = (0..before.rank).map(|l| y[i][l] * y[j][l]).sum();
                w[(i, j)] = gram.basis[i][j + 1] - known;
            }
        }
        let (factor, bad_pivot) = Factor::new(&w, n_steps, tolerance);
        factor.solve(&mut block.a);
        block.a_before = gram.before.map(|row| row[0]);
        before.solve(&mut block.a_before);
        (Self { factor, ..block }, bad_pivot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix with the eigenvalues 1 to 8, and vectors of as many entries.
    fn product(x: &[f64]) -> Vec<f64> {
        x.iter().enumerate().map(|(i, x)| (i + 1) as f64 * x).collect()
    }

    fn dot(x: &[f64], y: &[f64]) -> f64 {
        x.iter().zip(y).map(|(x, y)| x * y).sum()
    }

    fn gram_of(p: &[Vec<f64>], r: &[f64], n_steps: usize) -> (SStepGram, Vec<Vec<f64>>) {
        let mut t = vec![r.to_vec()];
        (0..n_steps).for_each(|j| t.push(product(&t[j])));
        let mut gram = SStepGram::default();
        SStepGram::pairs_with_before(p.len(), n_steps)
            .for_each(|(i, k)| gram.before[i][k] = dot(&p[i], &t[k]));
        SStepGram::pairs_of_basis(n_steps).for_each(|(i, k)| gram.basis[i][k] = dot(&t[i], &t[k]));
        (gram, t)
    }

    /// Two blocks of two steps: the second is conjugate to the first, and its residual is orthogonal to both.
    #[test]
    fn directions_are_conjugate_and_residuals_orthogonal_to_them() {
        let r = [1.0, -2.0, 0.5, 1.5, -1.0, 2.0, 0.25, -0.75];
        let (mut r, mut p, mut before) = (r.to_vec(), Vec::<Vec<f64>>::new(), Factor::default());
        for _ in 0..2 {
            let (gram, t) = gram_of(&p, &r, 2);
            let (block, bad_pivot) = Conjugated::new(&gram, &before, 2, 1e-14);
            assert_eq!((block.factor.rank, bad_pivot), (2, None));
            let column = |j: usize, i: usize| {
                t[j][i] + p.iter().enumerate().map(|(l, p)| p[i] * block.b[(l, j)]).sum::<f64>()
            };
            let next: Vec<Vec<f64>> = (0..2).map(|j| (0..8).map(|i| column(j, i)).collect()).collect();
            for next in &next {
                assert!(p.iter().all(|p| dot(p, &product(next)).abs() < 1e-11));
            }
            for (p, a) in next.iter().zip(block.a) {
                r.iter_mut().zip(product(p)).for_each(|(r, q)| *r -= a * q);
            }
            assert!(p.iter().chain(&next).all(|p| dot(p, &r).abs() < 1e-11));
            (p, before) = (next, block.factor);
        }
    }

    #[test]
    fn a_residual_with_a_part_along_the_directions_before_becomes_orthogonal_to_them() {
        let p = vec![vec![1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]];
        let before = Factor::new(&SmallMatrix::from_rows(&[&[dot(&p[0], &product(&p[0]))]]), 1, 1e-14).0;
        let mut r = vec![1.0, 3.0, -1.0, 2.0, 0.0, 0.0, 0.0, 1.0];
        let (gram, t) = gram_of(&p, &r, 1);
        let (block, _) = Conjugated::new(&gram, &before, 1, 1e-14);
        let along = block.a[0] * block.b[(0, 0)] + block.a_before[0];
        let step: Vec<f64> = t[0].iter().zip(&p[0]).map(|(t, p)| block.a[0] * t + along * p).collect();
        r.iter_mut().zip(product(&step)).for_each(|(r, q)| *r -= q);
        assert!(dot(&p[0], &r).abs() < 1e-13 && dot(&t[0], &r).abs() < 1e-13);
    }

    #[test]
    fn sums_in_one_row_are_as_many_as_said_and_come_back() {
        for (n_before, n_steps) in [(0, 1), (2, 3), (6, 6), (6, 1)] {
            let n = SStepGram::n_values(n_before, n_steps);
            let row: Vec<f64> = (0..n).map(|i| 1.0 + i as f64).collect();
            let gram = SStepGram::from_values(&row, n_before, n_steps);
            assert_eq!(gram.values(n_before, n_steps), row);
        }
    }
}

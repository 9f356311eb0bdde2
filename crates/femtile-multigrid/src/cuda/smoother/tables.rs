//! Eigenvectors of the inner nodes of two adjacent cells, as source text of kernels.

use femtile_device::Scalar;

use super::super::constants::text;
use crate::axis::matrices;
use crate::eigen::generalized;
use crate::smoother::hat;

/// $S$ and $\Lambda$ of two cells of width one, even modes first, and derived matrices.
///
/// Modes of lines with end nodes are $P = S^\mathsf{T} M$; ends couple to modes by $Q = S^\mathsf{T} K - \Lambda P$ only;
/// back at nodes the ends contribute $D = -S P$.
pub struct Modes {
    degree: usize,
    /// Mass and stiffness, `[2k + 1][2k + 1]`.
    mass: Vec<f64>,
    stiffness: Vec<f64>,
    values: Vec<f64>,
    /// One column per mode, `[2k - 1][2k - 1]`.
    s: Vec<f64>,
    /// `[2k - 1][2k + 1]`.
    p: Vec<f64>,
    /// For the first end; the last end has the same value for even modes and the opposite for odd ones.
    q: Vec<f64>,
    /// `[2k - 1][2]`.
    d: Vec<[f64; 2]>,
}

impl Modes {
    pub fn new(degree: usize) -> Self {
        let (n, m) = (2 * degree - 1, 2 * degree + 1);
        let [mass, stiffness] = matrices(degree, &[1.0; 2]).map(|table| table.entries);
        let inner =
            |a: &[f64]| -> Vec<f64> { (0..n * n).map(|at| a[(at / n + 1) * m + at % n + 1]).collect() };
        let (found, vectors) = generalized(n, &inner(&stiffness), &inner(&mass));
        let parity = |mode: usize| {
            let terms = (0..n).map(|a| vectors[a * n + mode] * vectors[(n - 1 - a) * n + mode]);
            terms.sum::<f64>().signum()
        };
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&i, &j| parity(j).total_cmp(&parity(i)).then(found[i].total_cmp(&found[j])));
        let entry = |a: usize, mode: usize| {
            let other = vectors[(n - 1 - a) * n + mode];
            0.5 * (vectors[a * n + mode] + parity(mode) * other)
        };
        let s: Vec<f64> = (0..n * n).map(|at| entry(at / n, order[at % n])).collect();
        let values: Vec<f64> = order.iter().map(|&mode| found[mode]).collect();
        let tested = |a: &[f64], mode: usize, column: usize| -> f64 {
            (0..n).map(|row| s[row * n + mode] * a[(row + 1) * m + column]).sum()
        };
        let p: Vec<f64> = (0..n * m).map(|at| tested(&mass, at / m, at % m)).collect();
        let q = (0..n).map(|mode| tested(&stiffness, mode, 0) - values[mode] * p[mode * m]).collect();
        let lifted =
            |a: usize, end: usize| -(0..n).map(|mode| s[a * n + mode] * p[mode * m + end]).sum::<f64>();
        let d = (0..n).map(|a| [lifted(a, 0), lifted(a, m - 1)]).collect();
        Self { degree, mass, stiffness, values, s, p, q, d }
    }

    /// Returns the values that a thread reads by mode: eigenvalues, then Q.
    pub fn by_thread<T: Scalar>(&self) -> Vec<T> {
        self.values.iter().chain(&self.q).map(|&value| T::from_f64(value)).collect()
    }

    /// Returns eigenvalues, then the 1-D weights of additive patches.
    pub fn with_hats<T: Scalar>(&self) -> Vec<T> {
        let hats = hat(self.degree).into_iter().map(f64::sqrt);
        self.values.iter().copied().chain(hats).map(T::from_f64).collect()
    }

    /// Returns the header `tables.cuh` with even and odd parts of the matrices.
    pub fn text(&self) -> String {
        let (k, n, m) = (self.degree, 2 * self.degree - 1, 2 * self.degree + 1);
        let half = |end: usize, mode: usize, sign: f64| {
            let (entry, other) = (self.p[mode * m + end], self.p[mode * m + m - 1 - end]);
            0.5 * (entry + sign * other)
        };
        let even = |a: usize, e: usize| self.s[a * n + e];
        let table = |rows: usize, columns: usize, entry: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            (0..rows * columns).map(|at| entry(at / columns, at % columns)).collect()
        };
        text(&[
            ("S_EVEN", table(k, k, &even)),
            ("S_ODD", table(k - 1, k - 1, &|a, o| even(a, k + o))),
            ("P_EVEN", table(k, k + 1, &|e, a| half(a, e, 1.0))),
            ("P_ODD", table(k - 1, k, &|o, a| half(a, k + o, -1.0))),
            ("D_EVEN", table(k, 1, &|a, _| 0.5 * (self.d[a][0] + self.d[a][1]))),
            ("D_ODD", table(k - 1, 1, &|a, _| 0.5 * (self.d[a][0] - self.d[a][1]))),
            ("Q_MODES", self.q.clone()),
            ("LAMBDA", self.values.clone()),
        ])
    }

    /// Returns the header `tables.cuh` with the full matrices: rows of mass and stiffness of the inner nodes, S and Λ.
    pub fn dense_text(&self) -> String {
        let names = ["MASS", "STIFFNESS", "VECTORS", "LAMBDA"];
        let tables = names.into_iter().zip(self.matrices());
        text(&tables.map(|(name, table)| (name, table.to_vec())).collect::<Vec<_>>())
    }

    fn matrices(&self) -> [&[f64]; 4] {
        let m = 2 * self.degree + 1;
        let inside = m..m * (m - 1);
        [&self.mass[inside.clone()], &self.stiffness[inside], &self.s, &self.values]
    }
}

/// Returns the matrices of two cells of width one: the mass and stiffness rows of the inner nodes,
/// `[2k - 1][2k + 1]`, the eigenvectors as columns, `[2k - 1][2k - 1]`, and the eigenvalues.
pub fn patch_matrices(degree: usize) -> [Vec<f64>; 4] {
    Modes::new(degree).matrices().map(<[f64]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transforming nodes to modes and back is the identity for any end values.
    #[test]
    fn nodes_come_back_from_modes_and_ends() {
        for degree in 1..=8 {
            let modes = Modes::new(degree);
            let (n, m) = (2 * degree - 1, 2 * degree + 1);
            let line: Vec<f64> = (0..m).map(|a| (1.7 * a as f64 + 0.3).sin()).collect();
            let of_line: Vec<f64> = modes
                .p
                .chunks_exact(m)
                .map(|row| row.iter().zip(&line).map(|(p, value)| p * value).sum())
                .collect();
            for a in 0..n {
                let inside: f64 = modes.s[a * n..][..n].iter().zip(&of_line).map(|(s, mode)| s * mode).sum();
                let found = inside + modes.d[a][0] * line[0] + modes.d[a][1] * line[m - 1];
                assert!((found - line[a + 1]).abs() < 1e-12, "degree {degree}, node {a}: {found}");
            }
        }
    }

    /// Coupling of ends to modes has the parity of the mode.
    #[test]
    fn even_modes_stand_first_and_see_both_ends_alike() {
        for degree in 1..=8 {
            let modes = Modes::new(degree);
            let (n, m) = (2 * degree - 1, 2 * degree + 1);
            for mode in 0..n {
                let sign = if mode < degree { 1.0 } else { -1.0 };
                let mirrored = |a: usize| modes.s[a * n + mode] - sign * modes.s[(n - 1 - a) * n + mode];
                assert!((0..n).all(|a| mirrored(a).abs() < 1e-14), "degree {degree}, mode {mode}");
                let last: f64 = (0..n)
                    .map(|row| modes.s[row * n + mode] * modes.stiffness[(row + 1) * m + m - 1])
                    .sum::<f64>()
                    - modes.values[mode] * modes.p[mode * m + m - 1];
                let size = modes.values[mode].max(1.0);
                assert!((last - sign * modes.q[mode]).abs() < 1e-11 * size, "degree {degree}, mode {mode}");
            }
        }
    }
}

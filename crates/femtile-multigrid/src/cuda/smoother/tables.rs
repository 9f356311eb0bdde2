//! Modes of the nodes inside two cells beside each other, as text for kernels.

use femtile_device::Scalar;

use super::super::constants::text;
use crate::axis::matrices;
use crate::eigen::generalized;

/// $S$ and $\Lambda$ of two cells of width one, even modes first, with what else kernels multiply with.
///
/// Lines with nodes at their ends have modes as well, $P = S^\mathsf{T} M$; ends meet them through stiffness alone, by
/// $Q = S^\mathsf{T} K - \Lambda P$; and from modes to nodes ends add $D = -S P$.
pub(super) struct Modes {
    degree: usize,
    /// Mass and stiffness, `[2k + 1][2k + 1]`.
    mass: Vec<f64>,
    stiffness: Vec<f64>,
    values: Vec<f64>,
    /// A column a mode, `[2k - 1][2k - 1]`.
    s: Vec<f64>,
    /// `[2k - 1][2k + 1]`.
    p: Vec<f64>,
    /// Of the first end; of the last one it is the same for even modes, and the opposite for odd ones.
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

    /// What threads of one mode each read: eigenvalues, then Q.
    pub fn by_thread<T: Scalar>(&self) -> Vec<T> {
        self.values.iter().chain(&self.q).map(|&value| T::from_f64(value)).collect()
    }

    /// The header `tables.cuh` with tables of sums and differences.
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

    /// The header `tables.cuh` with the matrices as they are: rows of mass and stiffness of the nodes inside, S and Λ.
    pub fn dense_text(&self) -> String {
        let m = 2 * self.degree + 1;
        let inside = |a: &[f64]| a[m..m * (m - 1)].to_vec();
        text(&[
            ("MASS", inside(&self.mass)),
            ("STIFFNESS", inside(&self.stiffness)),
            ("VECTORS", self.s.clone()),
            ("LAMBDA", self.values.clone()),
        ])
    }
}

//! The operator on some cells side by side, on values at their nodes.

use femtile_device::Cpu;
use femtile_element::tensor::{Lagrange, Table};
use femtile_tensor::{Contract, Factor, Metric, contract, gradient, lanes, separable};

use crate::matrix_free::quadrature::CellRule;

/// The metric of the cells of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) enum BatchMetric<'a, T> {
    /// $c_0, c_1, c_2, c_3$ of [`separable`].
    Diagonal(&'a [T]),
    /// The same at all points: `[7][lanes]`.
    Constant(&'a [T]),
    /// `[n_q^d][entries][lanes]`.
    Stored(&'a [T]),
}

/// Tables of an element with a rule.
#[derive(Debug)]
pub(super) struct Cells<T> {
    pub d: usize,
    /// Nodes and points along an axis.
    pub n: usize,
    pub m: usize,
    has_stiffness: bool,
    has_mass: bool,
    /// Shapes and their slopes at the points.
    pub tables: [Table; 2],
    /// $\int \ell_i \ell_j$ and $\int \ell_i' \ell_j'$ by the rule.
    pub matrices: [Factor<T>; 2],
    /// Values at the points, and its transpose; none where nodes and points are the same.
    values: Option<[Factor<T>; 2]>,
    /// Slopes at the points of polynomials through the points, and its transpose.
    slopes: [Factor<T>; 2],
    weights: Vec<T>,
}

impl<T: Contract> Cells<T> {
    pub fn new(degree: usize, d: usize, rule: CellRule, has_stiffness: bool, has_mass: bool) -> Self {
        let (points, weights) = rule.rule(degree);
        let shapes = Lagrange::gauss_lobatto(degree);
        let (values, slopes) = (shapes.values(&points), shapes.slopes(&points));
        let at_points = Lagrange::new(points.clone()).slopes(&points);
        let is_collocated = shapes.nodes() == points;
        Self {
            d,
            n: degree + 1,
            m: points.len(),
            has_stiffness,
            has_mass,
            matrices: [&values, &slopes].map(|table| Factor::new(&table.gram(&weights))),
            values: (!is_collocated).then(|| [Factor::new(&values), Factor::new(&values.transpose())]),
            slopes: [Factor::new(&at_points), Factor::new(&at_points.transpose())],
            weights: weights.iter().map(|&weight| T::from_f64(weight)).collect(),
            tables: [values, slopes],
        }
    }

    /// Whether a diagonal metric has a short cut.
    pub fn is_separable(&self) -> bool {
        self.d == 3
    }

    /// Which of the seven entries of a metric are stored for each point.
    pub fn stored_entries(&self) -> Vec<usize> {
        let stiffness: &[usize] = match (self.has_stiffness, self.d) {
            (false, _) => &[],
            (true, 2) => &[0, 1, 5],
            (true, _) => &[0, 1, 2, 3, 4, 5],
        };
        stiffness.iter().copied().chain(self.has_mass.then_some(6)).collect()
    }

    /// Length of the buffer that [`Self::apply`] works in, of which the first part is the tensor.
    pub fn scratch_len(&self, lanes: usize) -> usize {
        5 * self.n.max(self.m).pow(self.d as u32) * lanes
    }

    /// $v = A u$ for the cells of a batch; `u` is the beginning of `scratch`, `v` comes to lie there.
    pub fn apply(&self, cpu: &Cpu, metric: BatchMetric<'_, T>, scratch: &mut [T]) {
        let n_lanes = lanes::<T>(cpu);
        let len = self.n.pow(self.d as u32) * n_lanes;
        if let (BatchMetric::Diagonal(coefficients), true) = (metric, self.is_separable()) {
            let (u, rest) = scratch.split_at_mut(len);
            return separable(cpu, [&self.matrices[0], &self.matrices[1]], coefficients, u, rest);
        }
        let room = self.m.pow(self.d as u32) * n_lanes;
        let (u, rest) = scratch.split_at_mut(self.n.max(self.m).pow(self.d as u32) * n_lanes);
        let (at_points, rest) = rest.split_at_mut(room);
        match &self.values {
            None => at_points.copy_from_slice(&u[..len]),
            Some([values, _]) => self.along_all(cpu, values, &mut u[..], len, at_points, rest),
        }
        self.act(cpu, metric, at_points, rest);
        match &self.values {
            None => u[..len].copy_from_slice(at_points),
            Some([_, transposed]) => self.along_all(cpu, transposed, at_points, room, &mut u[..len], rest),
        }
    }

    /// A table along every axis.
    fn along_all(
        &self,
        cpu: &Cpu,
        table: &Factor<T>,
        from: &mut [T],
        len: usize,
        to: &mut [T],
        room: &mut [T],
    ) {
        let n_lanes = lanes::<T>(cpu);
        let (rows, cols) = (table.n_rows(), table.n_cols());
        // The last axis first, so that entries of the slower axes are fewer where the table makes lines longer.
        let size = |done: usize| cols.pow((self.d - done) as u32) * rows.pow(done as u32) * n_lanes;
        let from = &from[..len];
        if self.d == 2 {
            let half = &mut room[..size(1)];
            contract(cpu, table, 1, from, half);
            contract(cpu, table, rows, half, to);
            return;
        }
        let (first, second) = room.split_at_mut(size(1));
        let second = &mut second[..size(2)];
        contract(cpu, table, 1, from, first);
        contract(cpu, table, rows, first, second);
        contract(cpu, table, rows * rows, second, to);
    }

    /// The metric between slopes and their transposes, on values at the points.
    fn act(&self, cpu: &Cpu, metric: BatchMetric<'_, T>, u: &mut [T], room: &mut [T]) {
        let slopes = [&self.slopes[0], &self.slopes[1]];
        if !self.has_stiffness || self.d == 2 {
            return self.act_plainly(cpu, metric, u, room);
        }
        let metric = match metric {
            BatchMetric::Diagonal(entries) | BatchMetric::Constant(entries) => {
                Metric::Constant { entries, weights: &self.weights, has_mass: self.has_mass }
            }
            BatchMetric::Stored(entries) => Metric::Stored { entries, has_mass: self.has_mass },
        };
        gradient(cpu, slopes, metric, u, room);
    }

    /// As [`Self::act`] in two dimensions or without slopes.
    fn act_plainly(&self, cpu: &Cpu, metric: BatchMetric<'_, T>, u: &mut [T], room: &mut [T]) {
        let n_lanes = lanes::<T>(cpu);
        let (first, second) = room.split_at_mut(u.len());
        let second = &mut second[..u.len()];
        let [slope, transposed] = &self.slopes;
        if self.has_stiffness {
            contract(cpu, slope, 1, u, first);
            contract(cpu, slope, self.m, u, second);
        }
        let stored = self.stored_entries();
        let place = |entry: usize| stored.iter().position(|&other| other == entry);
        let places = [0, 1, 5, 6].map(place);
        for at in 0..u.len() / n_lanes {
            let (entries, width, scale) = match metric {
                BatchMetric::Diagonal(entries) | BatchMetric::Constant(entries) => {
                    (entries, None, self.weight(at))
                }
                BatchMetric::Stored(entries) => {
                    let width = stored.len() * n_lanes;
                    (&entries[at * width..(at + 1) * width], Some(()), T::ONE)
                }
            };
            for lane in 0..n_lanes {
                let i = at * n_lanes + lane;
                let entry = |k: usize| match (width, places[k]) {
                    (None, _) => scale * entries[[0, 1, 5, 6][k] * n_lanes + lane],
                    (Some(()), Some(place)) => entries[place * n_lanes + lane],
                    (Some(()), None) => T::ZERO,
                };
                if self.has_stiffness {
                    let (gx, gy, xy) = (first[i], second[i], entry(2));
                    (first[i], second[i]) = (entry(0) * gx + xy * gy, xy * gx + entry(1) * gy);
                }
                u[i] = if self.has_mass { entry(3) * u[i] } else { T::ZERO };
            }
        }
        if self.has_stiffness {
            let product = &mut vec![T::ZERO; u.len()];
            for (inner, slopes) in [(1, &*first), (self.m, &*second)] {
                contract(cpu, transposed, inner, slopes, product);
                u.iter_mut().zip(product.iter()).for_each(|(u, product)| *u += *product);
            }
        }
    }

    /// The weight of a point.
    pub fn weight(&self, at: usize) -> T {
        (0..self.d).fold(T::ONE, |weight, axis| weight * self.weights[at / self.m.pow(axis as u32) % self.m])
    }
}

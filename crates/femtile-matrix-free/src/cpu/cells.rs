//! The operator on a batch of cells, on values at their nodes.

use femtile_device::Cpu;
use femtile_element::tensor::{Lagrange, Table};
use femtile_space::TensorSpace;
use femtile_space::geometry::CellRule;
use femtile_sum_factorization::{
    Factor, Metric, SumFactorization, act_mapped, contract, gradient, lanes, separable,
};

use super::batch_metrics::Treatment;
use super::maps::{MapTables, MappedMetric};
use crate::metric::Terms;
use femtile_fem::forms::Coefficient;

/// The metric of the cells of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) enum BatchMetric<'a, T> {
    Stored(StoredMetric<'a, T>),
    /// Computed at each point.
    Mapped(MappedMetric<'a, T>),
}

/// A metric with stored entries.
#[derive(Debug, Clone, Copy)]
pub(super) enum StoredMetric<'a, T> {
    /// Coefficients $c_0, c_1, c_2, c_3$ of [`separable`].
    Diagonal(&'a [T]),
    /// Constant on each cell: `[7][lanes]`.
    Constant(&'a [T]),
    /// Stored at points: `[n_q^d][entries][lanes]`.
    AtPoints(&'a [T]),
}

/// One entry of the metric at a point: a weight, and a factor per lane; no factors stand for zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryAt<'a, T> {
    weight: T,
    lanes: &'a [T],
}

impl<T: SumFactorization> EntryAt<'_, T> {
    /// Returns the entry of a lane times a value.
    pub fn of(&self, lane: usize, value: T) -> T {
        self.lanes.get(lane).map_or(T::ZERO, |&factor| self.weight * factor * value)
    }

    /// Multiplies the values of all lanes by the entry.
    fn scale(&self, values: &mut [T]) {
        if self.lanes.is_empty() {
            return values.fill(T::ZERO);
        }
        values.iter_mut().zip(self.lanes).for_each(|(value, &factor)| *value *= self.weight * factor);
    }
}

/// Returns the indices of metric entries that a form needs, of seven.
fn stored_entries(d: usize, has_stiffness: bool, has_mass: bool) -> Vec<usize> {
    let stiffness: &[usize] = match (has_stiffness, d) {
        (false, _) => &[],
        (true, 2) => &[0, 1, 5],
        (true, _) => &[0, 1, 2, 3, 4, 5],
    };
    stiffness.iter().copied().chain(has_mass.then_some(6)).collect()
}

/// Tables of an element with a quadrature rule.
#[derive(Debug)]
pub(super) struct Cells<T> {
    /// Dimension.
    pub d: usize,
    /// Nodes along an axis.
    pub n: usize,
    /// Points along an axis.
    pub m: usize,
    has_stiffness: bool,
    has_mass: bool,
    /// Numbers of σ per cell if it is constant by cell: none, one or six.
    n_sigma: usize,
    /// Shape functions and their slopes at the points.
    pub tables: [Table; 2],
    /// 1-D mass and stiffness matrices $\int \ell_i \ell_j$ and $\int \ell_i' \ell_j'$ by the rule.
    pub matrices: [Factor<T>; 2],
    /// Values at the points, and the transpose; none if nodes and points coincide.
    values: Option<[Factor<T>; 2]>,
    /// Slopes at the points of polynomials through the points, and the transpose.
    slopes: [Factor<T>; 2],
    pub weights: Vec<T>,
    pub maps: MapTables<T>,
    /// Indices of metric entries stored at each point, of seven.
    stored: Vec<usize>,
}

impl<T: SumFactorization> Cells<T> {
    pub fn new(space: &TensorSpace<'_>, terms: Terms<'_>, rule: CellRule) -> Self {
        let (degree, d) = (space.degree(), space.dimension());
        let (has_stiffness, has_mass) = (terms.sigma.is_some(), terms.lambda.is_some());
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
            n_sigma: terms.sigma.map_or(0, |sigma| if Coefficient::is_isotropic(sigma) { 1 } else { 6 }),
            matrices: [&values, &slopes].map(|table| Factor::new(&table.gram(&weights))),
            values: (!is_collocated).then(|| [Factor::new(&values), Factor::new(&values.transpose())]),
            slopes: [Factor::new(&at_points), Factor::new(&at_points.transpose())],
            weights: weights.iter().map(|&weight| T::from_f64(weight)).collect(),
            maps: MapTables::new(space, &points),
            tables: [values, slopes],
            stored: stored_entries(d, has_stiffness, has_mass),
        }
    }

    /// Returns the indices of metric entries stored at each point, of seven.
    pub fn stored_entries(&self) -> &[usize] {
        &self.stored
    }

    /// Returns the numbers of σ and of λ per cell if they are constant by cell.
    pub fn n_coefficients(&self) -> [usize; 2] {
        [self.n_sigma, usize::from(self.has_mass)]
    }

    /// Returns how many numbers are stored per cell.
    pub fn n_numbers(&self, treatment: Treatment) -> usize {
        let n_coefficients: usize = self.n_coefficients().iter().sum();
        match treatment {
            Treatment::Diagonal => 4,
            Treatment::Constant => 7,
            Treatment::Polynomial(order) => 3 * (order + 1).pow(3) + n_coefficients,
            Treatment::Stored => self.stored.len() * self.n_points(),
        }
    }

    /// Returns the number of points of a cell.
    pub fn n_points(&self) -> usize {
        self.m.pow(self.d as u32)
    }

    /// Returns the workspace length of [`Self::apply`].
    pub fn workspace_len(&self, lanes: usize) -> usize {
        4 * self.n.max(self.m).pow(self.d as u32) * lanes + self.maps.workspace_len(lanes)
    }

    /// Computes $u \leftarrow A u$ for one component of the cells of a batch: `[(p + 1)^d][lanes]`.
    pub fn apply(&self, cpu: &Cpu, metric: BatchMetric<'_, T>, u: &mut [T], workspace: &mut [T]) {
        // The separable kernel is for cubes only.
        if let (BatchMetric::Stored(StoredMetric::Diagonal(coefficients)), 3) = (metric, self.d) {
            return separable(cpu, [&self.matrices[0], &self.matrices[1]], coefficients, u, workspace);
        }
        let (at_points, workspace) = workspace.split_at_mut(self.n_points() * lanes::<T>(cpu));
        match &self.values {
            None => at_points.copy_from_slice(u),
            Some([values, _]) => self.along_all(cpu, values, u, at_points, workspace),
        }
        self.act(cpu, metric, at_points, workspace);
        match &self.values {
            None => u.copy_from_slice(at_points),
            Some([_, transposed]) => self.along_all(cpu, transposed, at_points, u, workspace),
        }
    }

    /// Applies a table along every axis.
    fn along_all(&self, cpu: &Cpu, table: &Factor<T>, from: &[T], to: &mut [T], workspace: &mut [T]) {
        let n_lanes = lanes::<T>(cpu);
        let (rows, cols) = (table.n_rows(), table.n_cols());
        let size = |done: usize| cols.pow((self.d - done) as u32) * rows.pow(done as u32) * n_lanes;
        if self.d == 2 {
            let half = &mut workspace[..size(1)];
            contract(cpu, table, 1, from, half);
            contract(cpu, table, rows, half, to);
            return;
        }
        let (first, second) = workspace.split_at_mut(size(1));
        let second = &mut second[..size(2)];
        contract(cpu, table, 1, from, first);
        contract(cpu, table, rows, first, second);
        contract(cpu, table, rows * rows, second, to);
    }

    /// Applies gradients, the metric and transposed gradients to values at the points.
    fn act(&self, cpu: &Cpu, metric: BatchMetric<'_, T>, u: &mut [T], workspace: &mut [T]) {
        let slopes = [&self.slopes[0], &self.slopes[1]];
        let metric = match metric {
            BatchMetric::Mapped(mapped) => {
                let mapped = self.mapped(mapped, lanes::<T>(cpu));
                if !self.has_stiffness {
                    return act_mapped(cpu, mapped, [&mut [], &mut [], &mut []], u, workspace);
                }
                Metric::Mapped(mapped)
            }
            BatchMetric::Stored(known) if !self.has_stiffness || self.d == 2 => {
                return self.act_by_entries(cpu, known, u, workspace);
            }
            BatchMetric::Stored(StoredMetric::Diagonal(entries) | StoredMetric::Constant(entries)) => {
                Metric::Constant { entries, weights: &self.weights, has_mass: self.has_mass }
            }
            BatchMetric::Stored(StoredMetric::AtPoints(entries)) => {
                Metric::Stored { entries, has_mass: self.has_mass }
            }
        };
        gradient(cpu, slopes, metric, u, workspace);
    }

    /// [`Self::act`] in two dimensions or without the stiffness term.
    fn act_by_entries(&self, cpu: &Cpu, metric: StoredMetric<'_, T>, u: &mut [T], workspace: &mut [T]) {
        if let (false, StoredMetric::AtPoints(entries)) = (self.has_stiffness, metric) {
            // One entry per point.
            return cpu.vectorize(
                #[inline(always)]
                || u.iter_mut().zip(entries).for_each(|(u, &entry)| *u *= entry),
            );
        }
        let n_lanes = lanes::<T>(cpu);
        let [slope, transposed] = &self.slopes;
        let (first, workspace) = workspace.split_at_mut(u.len());
        let (second, workspace) = workspace.split_at_mut(u.len());
        if self.has_stiffness {
            contract(cpu, slope, 1, u, first);
            contract(cpu, slope, self.m, u, second);
        }
        for at in 0..self.n_points() {
            let lanes = at * n_lanes..(at + 1) * n_lanes;
            let entry = |entry: usize| self.entries_at(metric, entry, at, n_lanes);
            if self.has_stiffness {
                let [xx, yy, xy] = [0, 1, 5].map(entry);
                let slopes = first[lanes.clone()].iter_mut().zip(&mut second[lanes.clone()]);
                for (lane, (along_x, along_y)) in slopes.enumerate() {
                    let (x, y) = (*along_x, *along_y);
                    (*along_x, *along_y) = (xx.of(lane, x) + xy.of(lane, y), xy.of(lane, x) + yy.of(lane, y));
                }
            }
            entry(6).scale(&mut u[lanes]);
        }
        if self.has_stiffness {
            let product = &mut workspace[..u.len()];
            for (inner, slopes) in [(1, &*first), (self.m, &*second)] {
                contract(cpu, transposed, inner, slopes, product);
                u.iter_mut().zip(&*product).for_each(|(u, product)| *u += *product);
            }
        }
    }

    /// Returns one entry of the metric at a point, of all lanes.
    pub fn entries_at<'a>(
        &self,
        metric: StoredMetric<'a, T>,
        entry: usize,
        at: usize,
        n_lanes: usize,
    ) -> EntryAt<'a, T> {
        let (place, entries, weight) = match metric {
            StoredMetric::Diagonal(entries) => {
                ([0, 1, 2, 6].iter().position(|&kept| kept == entry), entries, self.weight(at))
            }
            StoredMetric::Constant(entries) => (Some(entry), entries, self.weight(at)),
            StoredMetric::AtPoints(entries) => {
                let width = self.stored.len() * n_lanes;
                let place = self.stored.iter().position(|&kept| kept == entry);
                (place, &entries[at * width..(at + 1) * width], T::ONE)
            }
        };
        EntryAt { weight, lanes: place.map_or(&[], |place| &entries[place * n_lanes..(place + 1) * n_lanes]) }
    }

    /// Returns the weight of a point.
    fn weight(&self, at: usize) -> T {
        (0..self.d).fold(T::ONE, |weight, axis| weight * self.weights[at / self.m.pow(axis as u32) % self.m])
    }
}

//! Scalar diffusion and reaction by the metric at the points.

use femtile_device::cpu::Aligned;
use femtile_device::parallel;
use femtile_form::{Dependence, Integrand};
use femtile_sum_factorization::{Metric, lanes};

use super::CpuOperator;
use super::basis::{LANES, Lanes};
use super::cells::{CellScratch, Job, Product};
use crate::discrete_form::State;

/// Rows and columns of the entries of a metric.
pub(super) const PAIRS: [[usize; 2]; 6] = [[0, 0], [1, 1], [2, 2], [1, 2], [0, 2], [0, 1]];

impl Job<'_, '_> {
    /// Computes $w J^{-1} \sigma J^{-\mathsf{T}}$ and $w\lambda$ at the points of a batch; the job is that of the derivative of
    /// a scalar form of diffusion and reaction.
    ///
    /// # Shapes
    /// `metrics: [n_points]`, each xx, yy, zz, yz, xz, xy and λ
    pub fn metrics(&self, batch: usize, metrics: &mut [[Lanes; 7]], scratch: &mut CellScratch) {
        let (n_q, d) = (self.n_points, self.operator.basis.dimension);
        let list = self.integrand.entries();
        let mut values = std::mem::take(&mut scratch.out);
        values.resize(list.len() * n_q, [0.0; LANES]);
        self.run_program(batch, &mut values, scratch);
        let geometry = self.operator.geometry.batch(batch);
        for (q, metric) in metrics.iter_mut().enumerate() {
            *metric = [[0.0; LANES]; 7];
            let inverse = &geometry.inverses[if geometry.is_affine { 0 } else { q * d * d }..][..d * d];
            let weight = &geometry.weights[q];
            for (entry, &[row, column]) in list.iter().enumerate() {
                let value = &values[entry * n_q + q];
                match (row.checked_sub(1), column.checked_sub(1)) {
                    (Some(i), Some(j)) => {
                        let pairs = PAIRS.iter().zip(&mut *metric).filter(|([a, b], _)| *a.max(b) < d);
                        for ([a, b], sum) in pairs {
                            let (one, other) = (&inverse[a * d + i], &inverse[b * d + j]);
                            for lane in 0..LANES {
                                sum[lane] += weight[lane] * one[lane] * value[lane] * other[lane];
                            }
                        }
                    }
                    _ => (0..LANES).for_each(|lane| metric[6][lane] += weight[lane] * value[lane]),
                }
            }
        }
        scratch.out = values;
    }
}

/// The metric of an integrand on hexahedra whose tangent does not depend on the state.
pub(crate) struct StoredMetric {
    has_reaction: bool,
    /// With the lanes of the SIMD level: `[n_batches][LANES / lanes][n_q][6 or 7][lanes]`.
    entries: Aligned<f64>,
}

impl StoredMetric {
    /// Returns whether the tangent has a metric on hexahedra.
    pub fn fits(operator: &CpuOperator<'_>, integrand: &Integrand) -> bool {
        let class = integrand.class();
        operator.discrete.form().n_components() == 1
            && class.is_diffusion_reaction()
            && class.is_linear()
            && class.diffusion != Dependence::Zero
            && operator.basis.of_cells == 3
            && operator.basis.is_tensor()
    }

    /// Runs the program of the derivative at all points.
    pub fn new(operator: &CpuOperator<'_>, integrand: &Integrand, state: &State<'_>) -> Self {
        let has_reaction = integrand.class().reaction != Dependence::Zero;
        let (n_q, width, n_lanes) =
            (operator.basis.n_q, 6 + usize::from(has_reaction), lanes::<f64>(&operator.cpu));
        let per_batch = n_q * width * LANES;
        let n_batches = operator.discrete.space().n_cells().div_ceil(LANES);
        let mut entries = Aligned::zeros(n_batches * per_batch);
        let job = Job::new(operator, integrand, Product::Derivative, state, &[]);
        let items: Vec<(usize, &mut [f64])> = entries.chunks_exact_mut(per_batch).enumerate().collect();
        let scratch = || (CellScratch::default(), vec![[[0.0; LANES]; 7]; n_q]);
        parallel::for_each_item_with(items, 1, scratch, |(scratch, metrics), (batch, to)| {
            job.metrics(batch, metrics, scratch);
            let from = metrics.iter().flat_map(|metric| &metric[..width]);
            for (at, entry) in from.enumerate() {
                for (to, entry) in to.chunks_exact_mut(n_q * width * n_lanes).zip(entry.chunks_exact(n_lanes))
                {
                    to[at * n_lanes..][..n_lanes].copy_from_slice(entry);
                }
            }
        });
        Self { has_reaction, entries }
    }

    /// Computes $B^\mathsf{T} G B u$ of a batch of cells in place.
    ///
    /// # Shapes
    /// `u: [n]`
    pub fn multiply(
        &self,
        operator: &CpuOperator<'_>,
        batch: usize,
        u: &mut [Lanes],
        scratch: &mut CellScratch,
    ) {
        let n_lanes = lanes::<f64>(&operator.cpu);
        let len = u.len() * n_lanes;
        let tensors = scratch.tensors.get_or_insert_with(|| Aligned::zeros(4 * len));
        let (tensor, rest) = tensors.split_at_mut(len);
        let per_batch = operator.basis.n_q * (6 + usize::from(self.has_reaction)) * LANES;
        let entries =
            self.entries[batch * per_batch..][..per_batch].chunks_exact(per_batch / LANES * n_lanes);
        for (part, entries) in entries.enumerate() {
            let lanes = part * n_lanes..(part + 1) * n_lanes;
            let pairs = tensor.chunks_exact_mut(n_lanes).zip(&*u);
            pairs.for_each(|(tensor, u)| tensor.copy_from_slice(&u[lanes.clone()]));
            let metric = Metric::Stored { entries, has_mass: self.has_reaction };
            operator.basis.multiply_metric(&operator.cpu, metric, tensor, rest);
            let pairs = tensor.chunks_exact(n_lanes).zip(&mut *u);
            pairs.for_each(|(tensor, u)| u[lanes.clone()].copy_from_slice(tensor));
        }
    }

    /// Returns its size.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.entries[..])
    }
}

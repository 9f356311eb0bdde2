//! Tangents on simplices that are constant in each cell.

use femtile_device::cpu::Aligned;
use femtile_device::parallel;
use femtile_form::{Dependence, Integrand};
use femtile_sum_factorization::lanes;

use super::CpuOperator;
use super::basis::{LANES, Lanes};
use super::bernstein::{Bernstein, CellEntries, SparseRows};
use super::cells::{CellScratch, Job, Product};
use super::gather::prefetch_ahead;
use crate::discrete_form::State;

/// A tangent of diffusion and reaction, of one component or several, that is constant in each cell.
pub(crate) enum ConstantTangent {
    /// The metric of one component, as [`Bernstein::multiply_metric`] needs it: `[n_batches][LANES / lanes][n][lanes]`.
    Metric { has_reaction: bool, entries: Aligned<f64> },
    /// The entries of D' that are not zero: `[n_batches][LANES / lanes][n][lanes]`, of one batch if they are the same in all cells.
    Entries { diffusion: SparseRows, reaction: SparseRows, is_by_cell: bool, values: Aligned<f64> },
}

impl ConstantTangent {
    /// Returns whether the tangent is of this class, on simplices.
    pub fn fits(operator: &CpuOperator<'_>, integrand: &Integrand) -> bool {
        let (class, basis) = (integrand.class(), &operator.basis);
        basis.bernstein.is_some()
            && operator.geometry.is_affine()
            && class.dependence() <= Dependence::ByCell
            && class.convection == Dependence::Zero
            && class.drift == Dependence::Zero
            && !class.couples_sides
            && (basis.of_cells == basis.dimension || Self::has_metric(operator, integrand))
    }

    /// Returns whether one symmetric matrix in each cell determines it.
    fn has_metric(operator: &CpuOperator<'_>, integrand: &Integrand) -> bool {
        let class = integrand.class();
        operator.discrete.form().n_components() == 1
            && class.is_diffusion_reaction()
            && class.diffusion != Dependence::Zero
    }

    /// Runs the program of the derivative at a point of each cell, or once.
    pub fn new(operator: &CpuOperator<'_>, integrand: &Integrand, state: &State<'_>) -> Option<Self> {
        let bernstein = operator.basis.bernstein.as_ref()?;
        let mut job = Job::new(operator, integrand, Product::Derivative, state, &[]);
        job.n_points = 1;
        Some(match Self::has_metric(operator, integrand) {
            true => Self::metric(&job, bernstein),
            false => Self::entries(&job),
        })
    }

    fn metric(job: &Job<'_, '_>, bernstein: &Bernstein) -> Self {
        let (operator, class) = (job.operator, job.integrand.class());
        let has_reaction = class.reaction != Dependence::Zero;
        // Metrics have the places of three axes.
        let (places, of_reaction): (&[usize], &[usize]) =
            (if operator.basis.of_cells == 2 { &[0, 1, 5] } else { &[0, 1, 2, 3, 4, 5] }, &[6]);
        let of_reaction = if has_reaction { of_reaction } else { &[] };
        let per_batch = (places.len() + of_reaction.len()) * LANES;
        let n_batches = operator.discrete.space().n_cells().div_ceil(LANES);
        let mut entries = Aligned::zeros(n_batches * per_batch);
        let weight = operator.basis.rule.weights[0];
        let factors = [bernstein.diffusion_factor() / weight, bernstein.reaction_factor() / weight];
        let n_lanes = lanes::<f64>(&operator.cpu);
        let items: Vec<(usize, &mut [f64])> = entries.chunks_exact_mut(per_batch).enumerate().collect();
        parallel::for_each_item_with(items, 1, CellScratch::default, |scratch, (batch, to)| {
            let mut found = [[[0.0; LANES]; 7]];
            job.metrics(batch, &mut found, scratch);
            let [metric] = found;
            let places = places.iter().map(|&at| (at, factors[0]));
            let all = places.chain(of_reaction.iter().map(|&at| (at, factors[1]))).enumerate();
            for (place, (at, factor)) in all {
                let to = to.chunks_exact_mut(per_batch / LANES * n_lanes);
                for (to, entry) in to.zip(metric[at].chunks_exact(n_lanes)) {
                    let to = &mut to[place * n_lanes..][..n_lanes];
                    to.iter_mut().zip(entry).for_each(|(to, entry)| *to = factor * entry);
                }
            }
        });
        Self::Metric { has_reaction, entries }
    }

    fn entries(job: &Job<'_, '_>) -> Self {
        let (operator, list) = (job.operator, job.integrand.entries());
        let d = operator.basis.dimension;
        let is_by_cell = job.integrand.class().dependence() == Dependence::ByCell;
        let rows = |is_value: bool| {
            let per_component = if is_value { 1 } else { d };
            let place = |slot: usize| match (slot % (1 + d), is_value) {
                (0, true) => Some(slot / (1 + d)),
                (axis @ 1.., false) => Some(slot / (1 + d) * d + axis - 1),
                _ => None,
            };
            let mut rows = SparseRows { offsets: vec![0], entries: Vec::new() };
            for row in 0..operator.discrete.form().n_components() * per_component {
                let own = list.iter().enumerate().filter(|(_, [of, _])| place(*of) == Some(row));
                let entry =
                    |(at, [_, column]): (usize, &[usize; 2])| Some([place(*column)? as u32, at as u32]);
                rows.entries.extend(own.filter_map(entry));
                rows.offsets.push(rows.entries.len() as u32);
            }
            rows
        };
        let n_batches = if is_by_cell { operator.discrete.space().n_cells().div_ceil(LANES) } else { 1 };
        let per_batch = list.len() * LANES;
        let mut values = Aligned::zeros(n_batches * per_batch);
        let n_lanes = lanes::<f64>(&operator.cpu);
        let items: Vec<(usize, &mut [f64])> = values.chunks_exact_mut(per_batch.max(1)).enumerate().collect();
        parallel::for_each_item_with(items, 1, CellScratch::default, |scratch, (batch, to)| {
            let mut found = vec![[0.0; LANES]; list.len()];
            job.run_program(batch, &mut found, scratch);
            for (place, entry) in found.iter().enumerate() {
                let to = to.chunks_exact_mut(list.len() * n_lanes);
                for (to, entry) in to.zip(entry.chunks_exact(n_lanes)) {
                    to[place * n_lanes..][..n_lanes].copy_from_slice(entry);
                }
            }
        });
        Self::Entries { diffusion: rows(false), reaction: rows(true), is_by_cell, values }
    }

    /// Multiplies a batch of cells in place.
    ///
    /// # Shapes
    /// `u: [n_components][n]`
    pub fn multiply(
        &self,
        operator: &CpuOperator<'_>,
        batch: usize,
        u: &mut [Lanes],
        scratch: &mut CellScratch,
    ) {
        let (basis, cpu) = (&operator.basis, &operator.cpu);
        let Some(bernstein) = &basis.bernstein else { return };
        match self {
            Self::Metric { has_reaction, entries } => {
                let per_batch =
                    (basis.of_cells * (basis.of_cells + 1) / 2 + usize::from(*has_reaction)) * LANES;
                prefetch_ahead(entries, batch, per_batch);
                let entries = &entries[batch * per_batch..][..per_batch];
                bernstein.multiply_metric(cpu, entries, *has_reaction, u);
            }
            Self::Entries { diffusion, reaction, is_by_cell, values } => {
                let per_batch = (diffusion.entries.len() + reaction.entries.len()) * LANES;
                let first = if *is_by_cell { batch * per_batch } else { 0 };
                let geometry = operator.geometry.batch(batch);
                let weight = basis.rule.weights[0];
                let entries = CellEntries {
                    diffusion,
                    reaction,
                    values: &values[first..][..per_batch],
                    inverses: geometry.inverses,
                    determinant: &geometry.weights[0].map(|of_cell| of_cell / weight),
                };
                let len = bernstein.scratch_len(u.len() / basis.n);
                let tensors = scratch.tensors.get_or_insert_with(|| Aligned::zeros(len));
                bernstein.multiply_entries(cpu, entries, u, tensors);
            }
        }
    }

    /// Returns the bytes that a product reads.
    pub fn bytes(&self, operator: &CpuOperator<'_>) -> usize {
        match self {
            Self::Metric { entries, .. } => size_of_val(&entries[..]),
            Self::Entries { values, .. } => {
                let d = operator.basis.dimension;
                size_of_val(&values[..]) + 8 * (d * d + 1) * operator.discrete.space().n_cells()
            }
        }
    }
}

//! The bands of $I - τA_a$, computed on the fly.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use femtile_device::Scalar;
use femtile_tridiagonal::{BandRule, CudaBands};

use super::line::{Sampler, Scratch};
use super::operator::Operator;

/// The bands $(-τl,\; 1 + τ(l + w - r/d),\; -τw)$ of the systems along one axis.
#[derive(Debug)]
pub(crate) struct AxisRule {
    operator: Arc<Operator>,
    axis: usize,
    tau: f64,
    /// Bands of the first, the inner and the last rows, if they are constant.
    constant: Option<[[f64; 3]; 3]>,
    diffusion: Sampler,
    convection: Sampler,
    reaction: Sampler,
    /// Kernel arguments on a GPU, created at first use.
    cuda: OnceLock<CudaBands>,
}

impl AxisRule {
    pub fn new(operator: &Arc<Operator>, axis: usize, tau: f64) -> Self {
        let d = operator.grid.dimension() as f64;
        let constant = operator.constant_couplings(axis).zip(operator.reaction.constant);
        let last = operator.grid.nodes()[axis] - 1;
        let constant = constant.map(|(couplings, r)| {
            std::array::from_fn(|place| {
                let held = operator.is_held(axis, [0, 1, last][place]);
                bands(couplings[place], if held { 0.0 } else { r / d }, tau)
            })
        });
        Self {
            operator: operator.clone(),
            axis,
            tau,
            constant,
            diffusion: Sampler::new(&operator.diffusion[axis]),
            convection: Sampler::new(&operator.convection[axis]),
            reaction: Sampler::new(&operator.reaction),
            cuda: OnceLock::new(),
        }
    }

    /// Returns the bands of a row if all lines have the same matrix.
    pub fn constant_row(&self, row: usize) -> Option<[f64; 3]> {
        let last = self.operator.grid.nodes()[self.axis] - 1;
        let place = usize::from(row > 0) + usize::from(row == last);
        self.constant.map(|bands| bands[place])
    }

    fn fill_from_formulas(
        &self,
        lines: &Range<usize>,
        rows: &Range<usize>,
        mut write: impl FnMut(usize, [f64; 3]),
    ) {
        let Self { operator, axis, tau, .. } = self;
        let (grid, axis) = (&operator.grid, *axis);
        let (n_lines, d) = (lines.len(), grid.dimension() as f64);
        let mut scratch = Scratch::default();
        let node = |i: usize| grid.node(axis, lines.start + i % n_lines, rows.start + i / n_lines);
        let at = |other: usize, i: usize| grid.coordinate(other, node(i)[other]);
        let n = n_lines * rows.len();
        let mut halves = vec![0.0; n + n_lines];
        self.diffusion.points(&mut halves, &mut scratch, |other, i| {
            if other == axis {
                grid.half_coordinate(axis, rows.start + i / n_lines)
            } else {
                at(other, i % n_lines)
            }
        });
        let (mut c, mut r) = (vec![0.0; n], vec![0.0; n]);
        self.convection.points(&mut c, &mut scratch, at);
        self.reaction.points(&mut r, &mut scratch, at);
        for (k, row) in rows.clone().enumerate() {
            let (place, held) = (operator.place(axis, row), operator.is_held(axis, row));
            for i in k * n_lines..(k + 1) * n_lines {
                let couplings = operator.couplings(axis, [halves[i], halves[i + n_lines]], c[i], place);
                write(i, if held { [0.0, 1.0, 0.0] } else { bands(couplings, r[i] / d, *tau) });
            }
        }
    }
}

/// Returns the bands of a row from l, w and its share of r.
#[inline(always)]
fn bands([l, w]: [f64; 2], r: f64, tau: f64) -> [f64; 3] {
    [-tau * l, 1.0 + tau * (l + w - r), -tau * w]
}

impl<T: Scalar> BandRule<T> for AxisRule {
    fn fill(
        &self,
        lines: Range<usize>,
        rows: Range<usize>,
        lower: &mut [T],
        diagonal: &mut [T],
        upper: &mut [T],
    ) {
        let n_lines = lines.len();
        if self.constant.is_none() {
            return self.fill_from_formulas(&lines, &rows, |i, values| {
                [lower[i], diagonal[i], upper[i]] = values.map(T::from_f64);
            });
        }
        for (k, row) in rows.enumerate() {
            let Some(values) = self.constant_row(row) else { continue };
            let range = k * n_lines..(k + 1) * n_lines;
            for (band, value) in [&mut *lower, &mut *diagonal, &mut *upper].into_iter().zip(values) {
                band[range.clone()].fill(T::from_f64(value));
            }
        }
    }

    fn cuda(&self) -> Option<CudaBands> {
        Some(self.cuda.get_or_init(|| super::cuda::bands(&self.operator, self.axis, self.tau)).clone())
    }
}

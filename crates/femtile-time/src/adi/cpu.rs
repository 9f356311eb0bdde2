//! Kernels on CPUs: threads over lines of x, SIMD along each line.

use femtile_device::cpu::SharedMut;
use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::need;

use super::explicit_line::{Plan, Workspace};
use super::operator::Operator;
use super::{AdiKernels, Arrays, ExplicitStage};
use crate::TimeError;

/// Fewest nodes per thread.
const MIN_NODES: usize = 8192;

impl<T: Scalar> AdiKernels<T> for Cpu {
    fn adi_prefers_arrays(&self) -> bool {
        true
    }

    fn adi_explicit(
        &self,
        w: &mut Buffer<T, Self>,
        u: &Buffer<T, Self>,
        operator: &Operator,
        arrays: &Arrays<T, Self>,
        stage: ExplicitStage,
    ) -> Result<(), TimeError> {
        arrays.check(operator, w, u)?;
        let plan = Plan::new(operator, arrays, u.as_slice(), stage);
        self.for_lines(operator, w.as_mut_slice(), |node, out, workspace| {
            self.vectorize(
                #[inline(always)]
                || plan.line(node, out, workspace),
            );
        });
        Ok(())
    }

    fn adi_mixed(
        &self,
        w: &mut Buffer<T, Self>,
        u: &Buffer<T, Self>,
        operator: &Operator,
        arrays: &Arrays<T, Self>,
        scale: f64,
    ) -> Result<(), TimeError> {
        arrays.check(operator, w, u)?;
        let stage = ExplicitStage { axis: None, scale, time: 0.0 };
        let plan = Plan::new(operator, arrays, u.as_slice(), stage);
        self.for_lines(operator, w.as_mut_slice(), |node, out, workspace| {
            if plan.is_held(node) {
                return;
            }
            let last = out.len() - 1;
            let ends = [(0, out[0]), (last, out[last])];
            self.vectorize(
                #[inline(always)]
                || plan.mixed(node, out, workspace),
            );
            for (i, value) in ends.into_iter().filter(|&(i, _)| operator.is_held(0, i)) {
                out[i] = value;
            }
        });
        Ok(())
    }

    fn adi_set(
        &self,
        w: &mut Buffer<T, Self>,
        nodes: &Buffer<u64, Self>,
        values: &Buffer<T, Self>,
    ) -> Result<(), TimeError> {
        need("values", nodes.len(), values.len())?;
        let w = w.as_mut_slice();
        for (&node, &value) in nodes.as_slice().iter().zip(values.as_slice()) {
            if let Some(w) = w.get_mut(node as usize) {
                *w = value;
            }
        }
        Ok(())
    }

    fn adi_add(
        &self,
        w: &mut Buffer<T, Self>,
        nodes: &Buffer<u64, Self>,
        values: &Buffer<T, Self>,
        scale: f64,
    ) -> Result<(), TimeError> {
        need("values", nodes.len(), values.len())?;
        let (w, scale) = (w.as_mut_slice(), T::from_f64(scale));
        for (&node, &value) in nodes.as_slice().iter().zip(values.as_slice()) {
            if let Some(w) = w.get_mut(node as usize) {
                *w += scale * value;
            }
        }
        Ok(())
    }
}

/// Distribution of lines over threads.
trait Lines {
    /// Calls `work` for every line of x with its first node and its part of `w`.
    fn for_lines<T: Scalar>(
        &self,
        operator: &Operator,
        w: &mut [T],
        work: impl Fn([usize; 3], &mut [T], &mut Workspace<T>) + Sync,
    );
}

impl Lines for Cpu {
    fn for_lines<T: Scalar>(
        &self,
        operator: &Operator,
        w: &mut [T],
        work: impl Fn([usize; 3], &mut [T], &mut Workspace<T>) + Sync,
    ) {
        let grid = operator.grid();
        let n = grid.nodes()[0];
        let w = SharedMut::new(w);
        self.for_ranges(grid.n_nodes() / n, MIN_NODES.div_ceil(n), |lines| {
            let mut workspace = Workspace::default();
            for line in lines {
                // SAFETY: lines do not overlap, and each belongs to one range.
                let out = unsafe { w.range(line * n..(line + 1) * n) };
                work(grid.node(0, line, 0), out, &mut workspace);
            }
        });
    }
}

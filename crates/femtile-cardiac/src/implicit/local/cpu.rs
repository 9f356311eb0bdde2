//! Threads over blocks of points, SIMD within a block.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use femtile::device::cpu::{SharedMut, SimdLevel};
use femtile::device::{Buffer, Cpu};
use femtile::expression::{ProgramInput, TapeScratch};

use super::kernels::check;
use super::newton::{MAX_ITERATIONS, RightSide, States, iterate, n_outputs};
use super::{ImplicitKernels, MAX_STATES};
use crate::CardiacError;
use crate::ionic::{BLOCK, Model, Pool};

/// The right side of a model with its derivatives on a CPU.
#[derive(Debug)]
pub struct CpuImplicitProgram {
    right_side: RightSide,
    workspaces: Pool<BlockNewton>,
}

impl ImplicitKernels for Cpu {
    type ImplicitProgram = CpuImplicitProgram;

    fn implicit_prepare(&self, model: &Model) -> Result<CpuImplicitProgram, CardiacError> {
        Ok(CpuImplicitProgram { right_side: RightSide::new(model)?, workspaces: Pool::new() })
    }

    fn implicit_solve(
        &self,
        CpuImplicitProgram { right_side, workspaces }: &CpuImplicitProgram,
        states: &mut Buffer<f64, Self>,
        [current, tangent]: [&mut Buffer<f64, Self>; 2],
        v: &Buffer<f64, Self>,
        old_states: &Buffer<f64, Self>,
        dt: f64,
    ) -> Result<usize, CardiacError> {
        let [n, stride] = check(right_side.n_states, [states, old_states], [current, tangent], v)?;
        let (v, old_states) = (v.as_slice(), old_states.as_slice());
        let [states, current, tangent] =
            [states, current, tangent].map(|values| SharedMut::new(values.as_mut_slice()));
        let failures = AtomicUsize::new(0);
        self.for_ranges(n.div_ceil(BLOCK), 1, |blocks| {
            let new = || BlockNewton::new(right_side, self.simd());
            workspaces.with(new, |newton| {
                for block in blocks {
                    let range = block * BLOCK..((block + 1) * BLOCK).min(n);
                    newton.gather(range.clone(), v, old_states, stride);
                    failures.fetch_add(newton.solve(right_side, dt), Ordering::Relaxed);
                    let len = range.len();
                    // SAFETY: points of this block belong to no other.
                    let (current, tangent) =
                        unsafe { (current.range(range.clone()), tangent.range(range.clone())) };
                    current.copy_from_slice(&newton.current[..len]);
                    tangent.copy_from_slice(&newton.tangent[..len]);
                    for (state, values) in newton.inputs[1..].iter().enumerate() {
                        // SAFETY: as above; a row of states has room for every point.
                        let row =
                            unsafe { states.range(state * stride + range.start..state * stride + range.end) };
                        row.copy_from_slice(&values[..len]);
                    }
                }
            });
        });
        Ok(failures.into_inner())
    }
}

/// Newton's method at the points of a block.
#[derive(Debug)]
struct BlockNewton {
    len: usize,
    /// Voltages and states, `[1 + n][BLOCK]`.
    inputs: Vec<Vec<f64>>,
    old: Vec<States>,
    outputs: Vec<Vec<f64>>,
    is_done: Vec<bool>,
    current: Vec<f64>,
    tangent: Vec<f64>,
    scratch: TapeScratch,
}

impl BlockNewton {
    fn new(right_side: &RightSide, simd: SimdLevel) -> Self {
        let n = right_side.n_states;
        Self {
            len: 0,
            inputs: vec![vec![0.0; BLOCK]; 1 + n],
            old: vec![[0.0; MAX_STATES]; BLOCK],
            outputs: vec![vec![0.0; BLOCK]; n_outputs(n)],
            is_done: vec![false; BLOCK],
            current: vec![0.0; BLOCK],
            tangent: vec![0.0; BLOCK],
            scratch: TapeScratch::with_simd(simd),
        }
    }

    /// Loads the voltages and old states of some points; the iteration starts from these states.
    fn gather(&mut self, range: Range<usize>, v: &[f64], old: &[f64], stride: usize) {
        self.len = range.len();
        for (i, point) in range.enumerate() {
            self.inputs[0][i] = v[point];
            for (state, row) in self.inputs[1..].iter_mut().enumerate() {
                self.old[i][state] = old[state * stride + point];
                row[i] = self.old[i][state];
            }
        }
    }

    /// Iterates until all points have converged; returns the number of points that have not.
    fn solve(&mut self, right_side: &RightSide, dt: f64) -> usize {
        let (n, len) = (right_side.n_states, self.len);
        self.is_done[..len].fill(false);
        let mut n_open = len;
        for iteration in 0..=MAX_ITERATIONS {
            let inputs: Vec<_> = self.inputs.iter().map(|row| ProgramInput::Values(&row[..len])).collect();
            let mut outputs: Vec<&mut [f64]> = self.outputs.iter_mut().map(|row| &mut row[..len]).collect();
            right_side.program.run(&mut outputs, &inputs, &mut self.scratch);
            for i in 0..len {
                if self.is_done[i] {
                    continue;
                }
                let mut w = [0.0; MAX_STATES];
                (0..n).for_each(|state| w[state] = self.inputs[1 + state][i]);
                let newton = iterate(n, |k| self.outputs[k][i], &w, &self.old[i], dt);
                (self.current[i], self.tangent[i]) = (newton.current, newton.tangent);
                if newton.has_converged {
                    self.is_done[i] = true;
                    n_open -= 1;
                } else if iteration < MAX_ITERATIONS {
                    (0..n).for_each(|state| self.inputs[1 + state][i] -= newton.step[state]);
                }
            }
            if n_open == 0 {
                break;
            }
        }
        n_open
    }
}

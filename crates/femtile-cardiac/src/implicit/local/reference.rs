//! Plain loops over points that evaluate the formulas: the oracle.

use femtile::device::{Buffer, Reference};

use super::kernels::check;
use super::newton::{MAX_ITERATIONS, RightSide, iterate, n_outputs};
use super::{ImplicitKernels, MAX_STATES};
use crate::CardiacError;
use crate::ionic::Model;

impl ImplicitKernels for Reference {
    type ImplicitProgram = RightSide;

    fn implicit_prepare(&self, model: &Model) -> Result<RightSide, CardiacError> {
        RightSide::new(model)
    }

    fn implicit_solve(
        &self,
        right_side: &RightSide,
        states: &mut Buffer<f64, Self>,
        [current, tangent]: [&mut Buffer<f64, Self>; 2],
        v: &Buffer<f64, Self>,
        old_states: &Buffer<f64, Self>,
        dt: f64,
    ) -> Result<usize, CardiacError> {
        let n_states = right_side.n_states;
        let [n, stride] = check(n_states, [states, old_states], [current, tangent], v)?;
        let mut outputs = vec![0.0; n_outputs(n_states)];
        let mut failures = 0;
        for point in 0..n {
            let mut inputs = [0.0; 1 + MAX_STATES];
            inputs[0] = v.as_slice()[point];
            let mut old = [0.0; MAX_STATES];
            for (i, old) in old.iter_mut().enumerate().take(n_states) {
                *old = old_states.as_slice()[i * stride + point];
            }
            let mut w = old;
            for iteration in 0..=MAX_ITERATIONS {
                inputs[1..].copy_from_slice(&w);
                right_side.program.eval(&inputs[..1 + n_states], &mut outputs);
                let newton = iterate(n_states, |k| outputs[k], &w, &old, dt);
                current.as_mut_slice()[point] = newton.current;
                tangent.as_mut_slice()[point] = newton.tangent;
                if newton.has_converged {
                    break;
                }
                if iteration == MAX_ITERATIONS {
                    failures += 1;
                    break;
                }
                w.iter_mut().zip(newton.step).for_each(|(w, step)| *w -= step);
            }
            for (i, &w) in w.iter().enumerate().take(n_states) {
                states.as_mut_slice()[i * stride + point] = w;
            }
        }
        Ok(failures)
    }
}

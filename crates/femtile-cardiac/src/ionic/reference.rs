//! Reference kernels: plain loops over points that evaluate the formulas.

use femtile::device::{Buffer, Reference};
use femtile::expression::Program;

use super::kernels::check;
use super::newton::{MAX_ITERATIONS, iterate, n_outputs};
use super::scheme::{StageInputs, right_side, stage};
use super::{IonicKernels, LocalScheme, MAX_IMPLICIT_STATES, Model, Points};
use crate::CardiacError;

/// A stage of a scheme on a host.
#[derive(Debug, Clone)]
pub struct HostProgram {
    pub(super) scheme: LocalScheme,
    pub(super) inputs: StageInputs,
    pub(super) stage: Program,
}

impl HostProgram {
    pub(super) fn new(model: &Model, scheme: LocalScheme) -> Result<Self, CardiacError> {
        let inputs = StageInputs { n_variables: 1 + model.n_states() };
        Ok(Self { scheme, inputs, stage: stage(model, scheme)? })
    }

    pub(super) fn n_states(&self) -> usize {
        self.inputs.n_variables - 1
    }
}

/// The right side of a model with its derivatives on a host.
#[derive(Debug, Clone)]
pub struct HostImplicitProgram {
    pub(super) n_states: usize,
    pub(super) right_side: Program,
}

impl HostImplicitProgram {
    pub(super) fn new(model: &Model) -> Result<Self, CardiacError> {
        Ok(Self { n_states: model.n_states(), right_side: right_side(model)? })
    }
}

/// The node of each point.
fn nodes(points: &Points<Reference>) -> impl Iterator<Item = (usize, usize)> {
    let list = points.list().map(Buffer::as_slice);
    (0..points.len()).map(move |i| (i, list.map_or(i, |list| list[i] as usize)))
}

impl IonicKernels for Reference {
    type Program = HostProgram;
    type ImplicitProgram = HostImplicitProgram;

    fn ionic_prepare(&self, model: &Model, scheme: LocalScheme) -> Result<HostProgram, CardiacError> {
        HostProgram::new(model, scheme)
    }

    fn ionic_advance(
        &self,
        program: &HostProgram,
        points: &Points<Self>,
        v: &mut Buffer<f64, Self>,
        states: &mut Buffer<f64, Self>,
        stimulus: Option<&Buffer<f64, Self>>,
        dt: f64,
    ) -> Result<(), CardiacError> {
        check(points, program.n_states(), &[("v", v)], &[("states", states)])?;
        if let Some(stimulus) = stimulus {
            check(points, 0, &[("stimulus", stimulus)], &[])?;
        }
        let (inputs, n_states, stride) = (program.inputs, program.n_states(), points.stride());
        let mut stage = vec![0.0; inputs.count()];
        let mut variables = vec![0.0; inputs.n_variables];
        for (point, node) in nodes(points) {
            variables[0] = v.as_slice()[node];
            for i in 0..n_states {
                variables[1 + i] = states.as_slice()[i * stride + point];
            }
            stage[inputs.stimulus()] = stimulus.map_or(0.0, |stimulus| stimulus.as_slice()[node]);
            stage[inputs.start()..].copy_from_slice(&variables);
            for length in program.scheme.lengths(dt).into_iter().take(program.scheme.stages()) {
                stage[..inputs.n_variables].copy_from_slice(&variables);
                stage[inputs.length()] = length;
                program.stage.eval(&stage, &mut variables);
            }
            v.as_mut_slice()[node] = variables[0];
            for i in 0..n_states {
                states.as_mut_slice()[i * stride + point] = variables[1 + i];
            }
        }
        Ok(())
    }

    fn ionic_prepare_implicit(&self, model: &Model) -> Result<HostImplicitProgram, CardiacError> {
        HostImplicitProgram::new(model)
    }

    fn ionic_implicit(
        &self,
        program: &HostImplicitProgram,
        points: &Points<Self>,
        v: &Buffer<f64, Self>,
        old_states: &Buffer<f64, Self>,
        states: &mut Buffer<f64, Self>,
        current: &mut Buffer<f64, Self>,
        tangent: &mut Buffer<f64, Self>,
        dt: f64,
    ) -> Result<usize, CardiacError> {
        let vectors = [("v", v), ("current", &*current), ("tangent", &*tangent)];
        check(points, program.n_states, &vectors, &[("old_states", old_states), ("states", states)])?;
        let (n, stride) = (program.n_states, points.stride());
        let mut outputs = vec![0.0; n_outputs(n)];
        let mut failures = 0;
        for (point, node) in nodes(points) {
            let mut inputs = [0.0; 1 + MAX_IMPLICIT_STATES];
            inputs[0] = v.as_slice()[node];
            let mut old = [0.0; MAX_IMPLICIT_STATES];
            for (i, old) in old.iter_mut().enumerate().take(n) {
                *old = old_states.as_slice()[i * stride + point];
            }
            let mut w = old;
            for iteration in 0..=MAX_ITERATIONS {
                inputs[1..].copy_from_slice(&w);
                program.right_side.eval(&inputs[..1 + n], &mut outputs);
                let newton = iterate(n, |k| outputs[k], &w, &old, dt);
                current.as_mut_slice()[node] = newton.current;
                tangent.as_mut_slice()[node] = newton.tangent;
                if newton.has_converged {
                    break;
                }
                if iteration == MAX_ITERATIONS {
                    failures += 1;
                    break;
                }
                w.iter_mut().zip(newton.step).for_each(|(w, step)| *w -= step);
            }
            for (i, &w) in w.iter().enumerate().take(n) {
                states.as_mut_slice()[i * stride + point] = w;
            }
        }
        Ok(failures)
    }
}

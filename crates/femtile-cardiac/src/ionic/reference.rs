//! Reference kernels: plain loops over points that evaluate the formulas.

use femtile::device::{Buffer, Reference};
use femtile::expression::Program;

use super::kernels::check_step;
use super::scheme::{StageInputs, stage};
use super::states::n_single;
use super::{GatePrecision, IonicKernels, LocalScheme, Model, Points, States};
use crate::CardiacError;

/// A stage of a scheme on a host.
#[derive(Debug, Clone)]
pub struct HostProgram {
    pub(super) scheme: LocalScheme,
    pub(super) inputs: StageInputs,
    /// Number of states with 32 bits.
    pub(super) n_single: usize,
    pub(super) stage: Program,
}

impl HostProgram {
    pub(super) fn new(
        model: &Model,
        scheme: LocalScheme,
        gates: GatePrecision,
    ) -> Result<Self, CardiacError> {
        let inputs = StageInputs { n_variables: 1 + model.n_states() };
        Ok(Self { scheme, inputs, n_single: n_single(model, gates), stage: stage(model, scheme)? })
    }

    pub(super) fn n_states(&self) -> usize {
        self.inputs.n_variables - 1
    }
}

/// The node of each point.
fn nodes(points: &Points<Reference>) -> impl Iterator<Item = (usize, usize)> {
    let list = points.list().map(Buffer::as_slice);
    (0..points.len()).map(move |i| (i, list.map_or(i, |list| list[i] as usize)))
}

impl IonicKernels for Reference {
    type Program = HostProgram;

    fn ionic_prepare(
        &self,
        model: &Model,
        scheme: LocalScheme,
        gates: GatePrecision,
    ) -> Result<HostProgram, CardiacError> {
        HostProgram::new(model, scheme, gates)
    }

    fn ionic_advance(
        &self,
        program: &HostProgram,
        points: &Points<Self>,
        v: &mut Buffer<f64, Self>,
        states: &mut States<Self>,
        stimulus: Option<&Buffer<f64, Self>>,
        dt: f64,
    ) -> Result<(), CardiacError> {
        check_step(points, [program.n_states(), program.n_single], v, states, stimulus)?;
        let (inputs, n_single, stride) = (program.inputs, program.n_single, points.stride());
        let (single, double) = states.parts_mut();
        let (single, double) = (single.as_mut_slice(), double.as_mut_slice());
        let mut stage = vec![0.0; inputs.count()];
        let mut variables = vec![0.0; inputs.n_variables];
        for (point, node) in nodes(points) {
            let at = |state: usize| state * stride + point;
            variables[0] = v.as_slice()[node];
            let (gates, others) = variables[1..].split_at_mut(n_single);
            gates.iter_mut().enumerate().for_each(|(i, gate)| *gate = f64::from(single[at(i)]));
            others.iter_mut().enumerate().for_each(|(i, other)| *other = double[at(i)]);
            stage[inputs.stimulus()] = stimulus.map_or(0.0, |stimulus| stimulus.as_slice()[node]);
            stage[inputs.start()..].copy_from_slice(&variables);
            for length in program.scheme.lengths(dt).into_iter().take(program.scheme.stages()) {
                stage[..inputs.n_variables].copy_from_slice(&variables);
                stage[inputs.length()] = length;
                program.stage.eval(&stage, &mut variables);
            }
            v.as_mut_slice()[node] = variables[0];
            let (gates, others) = variables[1..].split_at(n_single);
            gates.iter().enumerate().for_each(|(i, &gate)| single[at(i)] = gate as f32);
            others.iter().enumerate().for_each(|(i, &other)| double[at(i)] = other);
        }
        Ok(())
    }
}

//! Host side of the GPU kernels: generated formulas, arguments, launches.

use femtile::device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile::device::{Buffer, Cuda};
use femtile::expression::{Expression, Precision};

use super::kernels::check_step;
use super::scheme::split_stage;
use super::states::n_single;
use super::{GatePrecision, IonicKernels, LocalScheme, Model, Points, States};
use crate::CardiacError;

static IONIC: Program = Program { name: "ionic", source: include_str!("ionic.cu"), headers: &[] };
const THREADS: u32 = 128;

type Advance = (Write<f64>, Write<f64>, Write<f32>, Read<f64>, Read<u32>, u64, u64, f64);

/// A program of a model on a GPU.
#[derive(Debug, Clone)]
pub struct CudaProgram {
    n_states: usize,
    /// Number of states with 32 bits.
    n_single: usize,
    specialisation: Specialisation,
}

/// Returns the programs of this folder for all built-in models, for compile checks.
pub fn specialisations() -> Vec<Specialisation> {
    let mut programs = Vec::new();
    for model in Model::names().filter_map(|name| Model::named(name).ok()) {
        for scheme in [LocalScheme::RushLarsen, LocalScheme::RushLarsen2] {
            let precisions = [GatePrecision::Double, GatePrecision::Single];
            programs.extend(precisions.iter().filter_map(|&gates| advance(&model, scheme, gates).ok()));
        }
    }
    programs.into_iter().map(|program| program.specialisation).collect()
}

fn advance(model: &Model, scheme: LocalScheme, gates: GatePrecision) -> Result<CudaProgram, CardiacError> {
    let (n_states, n_single) = (model.n_states(), n_single(model, gates));
    let [others, single] = split_stage(model, scheme, n_single)?;
    let text = format!(
        "{}\nconst u32 VARIABLES = {}, GATES = {n_single}, STAGES = {};\n{}{}",
        Expression::CUDA_HEADER,
        1 + n_states,
        scheme.stages(),
        others.cuda_function("ionic_stage", Precision::F64),
        single.cuda_function("ionic_gates", Precision::F32),
    );
    let specialisation = IONIC.of::<f64>().header("ionic_model.cuh", text);
    Ok(CudaProgram { n_states, n_single, specialisation })
}

/// The list of nodes as an argument.
fn list(points: &Points<Cuda>) -> Read<u32> {
    points.list().map_or_else(Read::none, Buffer::read)
}

impl IonicKernels for Cuda {
    type Program = CudaProgram;

    fn ionic_prepare(
        &self,
        model: &Model,
        scheme: LocalScheme,
        gates: GatePrecision,
    ) -> Result<CudaProgram, CardiacError> {
        advance(model, scheme, gates)
    }

    fn ionic_advance(
        &self,
        program: &CudaProgram,
        points: &Points<Self>,
        v: &mut Buffer<f64, Self>,
        states: &mut States<Self>,
        stimulus: Option<&Buffer<f64, Self>>,
        dt: f64,
    ) -> Result<(), CardiacError> {
        check_step(points, [program.n_states, program.n_single], v, states, stimulus)?;
        if u32::try_from(points.n_nodes()).is_err() {
            return Err(CardiacError::setting("points", "there are 2³² nodes or more"));
        }
        let (n, stride) = (points.len(), points.stride() as u64);
        let stimulus = stimulus.map_or_else(Read::none, Buffer::read);
        let (single, double) = states.parts_mut();
        let arguments =
            (v.write(), double.write(), single.write(), stimulus, list(points), n as u64, stride, dt);
        let kernel = Kernel::<Advance>::new("ionic_advance");
        // SAFETY: vectors have an entry for every node, of which there are fewer than 2^32; numbers of a list are below that
        // and occur once, and the rows of states have room for every point.
        Ok(unsafe { self.launch(&program.specialisation, &kernel, Launch::over(n, THREADS), arguments) }?)
    }
}

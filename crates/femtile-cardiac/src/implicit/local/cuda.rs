//! Host side of the GPU kernel: generated formulas, arguments, launch.

use femtile::device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile::device::{Buffer, Cuda};
use femtile::expression::{Expression, Precision};

use super::ImplicitKernels;
use super::kernels::check;
use super::newton::{MAX_ITERATIONS, RightSide, TOLERANCE, n_outputs};
use crate::CardiacError;
use crate::ionic::Model;

static IMPLICIT: Program =
    Program { name: "ionic_implicit", source: include_str!("implicit.cu"), headers: &[] };
const THREADS: u32 = 128;

type Implicit = (Write<f64>, Write<f64>, Write<f64>, Write<u32>, Read<f64>, Read<f64>, u64, u64, f64);

/// The implicit equations of a model on a GPU.
#[derive(Debug, Clone)]
pub struct CudaImplicitProgram {
    n_states: usize,
    specialisation: Specialisation,
}

/// Returns the programs of this folder for all built-in models, for compile checks.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    let models = Model::names().filter_map(|name| Model::named(name).ok());
    let programs = models.filter_map(|model| CudaImplicitProgram::new(&model).ok());
    programs.map(|program| program.specialisation).collect()
}

impl CudaImplicitProgram {
    fn new(model: &Model) -> Result<Self, CardiacError> {
        let n_states = model.n_states();
        let text = format!(
            "{}\nconst u32 STATES = {n_states}, OUTPUTS = {}, ITERATIONS = {MAX_ITERATIONS};\n\
             const double TOLERANCE = {TOLERANCE:e};\n{}",
            Expression::CUDA_HEADER,
            n_outputs(n_states),
            RightSide::new(model)?.program.cuda_function("ionic_right_side", Precision::F64),
        );
        Ok(Self { n_states, specialisation: IMPLICIT.of::<f64>().header("ionic_model.cuh", text) })
    }
}

impl ImplicitKernels for Cuda {
    type ImplicitProgram = CudaImplicitProgram;

    fn implicit_prepare(&self, model: &Model) -> Result<CudaImplicitProgram, CardiacError> {
        CudaImplicitProgram::new(model)
    }

    fn implicit_solve(
        &self,
        CudaImplicitProgram { n_states, specialisation }: &CudaImplicitProgram,
        states: &mut Buffer<f64, Self>,
        [current, tangent]: [&mut Buffer<f64, Self>; 2],
        v: &Buffer<f64, Self>,
        old_states: &Buffer<f64, Self>,
        dt: f64,
    ) -> Result<usize, CardiacError> {
        let [n, stride] = check(*n_states, [states, old_states], [current, tangent], v)?;
        let mut failures = Buffer::<u32, Self>::zeros(self, 1)?;
        let to = (states.write(), current.write(), tangent.write(), failures.write());
        let arguments = (to.0, to.1, to.2, to.3, v.read(), old_states.read(), n as u64, stride as u64, dt);
        let kernel = Kernel::<Implicit>::new("ionic_implicit");
        // SAFETY: vectors have an entry for each point and rows of states room for it; the counter is one number.
        unsafe { self.launch(specialisation, &kernel, Launch::over(n, THREADS), arguments) }?;
        Ok(failures.to_host()?[0] as usize)
    }
}

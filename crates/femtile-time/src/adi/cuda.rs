//! Host side of the GPU kernels: generated operator source, arguments, launches.

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::{LinalgError, need};
use femtile_tridiagonal::CudaBands;

use super::cuda_text::{OperatorText, operator_text};
use super::{AdiKernels, Arrays, ExplicitStage, Operator};
use crate::TimeError;

static ADI: Program = Program { name: "adi", source: include_str!("adi.cu"), headers: &[] };
static SIDES: Program = Program { name: "adi_sides", source: include_str!("sides.cu"), headers: &[] };
const THREADS: u32 = 128;
/// Largest number of blocks along the second and third axis of a launch; kernels loop over further lines.
const MAX_BLOCKS: usize = 65_535;

type Explicit<T> = (Write<T>, Read<T>, Structure, f64, f64);
type Mixed<T> = (Write<T>, Read<T>, Structure, f64);
type Set<T> = (Write<T>, Read<u64>, Read<T>, u64, u64);
type Add<T> = (Write<T>, Read<u64>, Read<T>, f64, u64, u64);

/// Returns the programs of this folder, for compile checks.
pub fn specialisations() -> Vec<Specialisation> {
    let mut programs = vec![SIDES.of::<f32>(), SIDES.of::<f64>()];
    for text in super::cuda_text::every_kind() {
        for axis in [None, Some(1)] {
            programs.extend([program::<f32>(&text, axis), program::<f64>(&text, axis)]);
        }
    }
    programs
}

fn program<T: Scalar>(text: &str, axis: Option<usize>) -> Specialisation {
    let program = ADI.of::<T>().header("adi_operator.cuh", text);
    match axis {
        Some(axis) => program.define("FEMTILE_AXIS", axis),
        None => program,
    }
}

fn launch(operator: &Operator) -> Launch {
    let [nx, ny, nz] = operator.grid().nodes();
    let line = Launch::over(nx, THREADS);
    Launch { grid: [line.grid[0], ny.min(MAX_BLOCKS) as u32, nz.min(MAX_BLOCKS) as u32], ..line }
}

/// The coefficients that a kernel reads from arrays.
fn text_of<T: Scalar>(operator: &Operator, arrays: &Arrays<T, Cuda>) -> OperatorText {
    OperatorText {
        bands: arrays.bands.each_ref().map(Option::is_some),
        reaction: arrays.reaction.is_some(),
        mixed: std::array::from_fn(|pair| {
            let found = operator.mixed.iter().position(|mixed| pair_of(mixed.axes) == pair);
            found.is_some_and(|i| arrays.mixed.get(i).is_some_and(Option::is_some))
        }),
        source: arrays.source.is_some(),
    }
}

/// 0 for x and y, 1 for x and z, 2 for y and z.
pub(super) fn pair_of([a, b]: [usize; 2]) -> usize {
    a + b - 1
}

/// The fields of `struct Operator`, in order.
fn fields(operator: &Operator) -> Vec<u64> {
    let grid = operator.grid();
    let mut numbers: Vec<f64> = Vec::new();
    numbers.extend(grid.lower());
    numbers.extend(grid.upper());
    numbers.extend(grid.spacing());
    for axis in 0..3 {
        let couplings = (axis < grid.dimension()).then(|| operator.constant_couplings(axis)).flatten();
        numbers.extend(couplings.unwrap_or_default().as_flattened());
    }
    numbers.extend(operator.diffusion.iter().map(|c| c.constant.unwrap_or(0.0)));
    numbers.extend(operator.convection.iter().map(|c| c.constant.unwrap_or(0.0)));
    let mut mixed = [0.0; 3];
    for entry in &operator.mixed {
        mixed[pair_of(entry.axes)] = entry.coefficient.constant.unwrap_or(0.0);
    }
    numbers.extend(mixed);
    numbers.extend([&operator.reaction, &operator.source].map(|c| c.constant.unwrap_or(0.0)));
    let nodes = grid.nodes().map(|n| n as u64);
    nodes.into_iter().chain(numbers.into_iter().map(f64::to_bits)).collect()
}

/// The argument `struct Operator` of a kernel: its numbers, then the addresses of arrays.
fn argument<T: Scalar>(
    device: &Cuda,
    operator: &Operator,
    arrays: &Arrays<T, Cuda>,
) -> Result<Structure, TimeError> {
    let address = |buffer: Option<&Buffer<T, Cuda>>| buffer.map_or(Ok(0), |buffer| buffer.address_on(device));
    let mut all = fields(operator);
    all.push((-1.0 / arrays.tau).to_bits());
    for band in [0, 2] {
        for bands in &arrays.bands {
            all.push(address(bands.as_ref().map(|bands| &bands[band])).map_err(LinalgError::from)?);
        }
    }
    let mut mixed = [0; 3];
    for (entry, array) in operator.mixed.iter().zip(&arrays.mixed) {
        mixed[pair_of(entry.axes)] = address(array.as_ref()).map_err(LinalgError::from)?;
    }
    all.extend(mixed);
    for array in [&arrays.reaction, &arrays.source] {
        all.push(address(array.as_ref()).map_err(LinalgError::from)?);
    }
    Ok(Structure(all))
}

/// The bands of the systems along an axis, for the kernels that solve them.
pub(super) fn bands(operator: &Operator, axis: usize, tau: f64) -> CudaBands {
    let mut arguments = fields(operator);
    // Only explicit kernels read these fields.
    arguments.extend([0; 12]);
    arguments.push(tau.to_bits());
    let source = format!(
        "{}\nstruct Bands {{\n    Operator o;\n    double tau;\n\
         \x20   __device__ __forceinline__ void row(u64 line, u32 row, T& lower, T& diagonal, T& upper) const {{\n\
         \x20       band_row(o, {axis}, tau, line, row, lower, diagonal, upper);\n    }}\n}};\n",
        operator_text(operator, OperatorText::default())
    );
    // SAFETY: solve kernels do not dereference the null pointers of `Operator`.
    unsafe { CudaBands::new(source, arguments) }
}

impl<T: Scalar> AdiKernels<T> for Cuda {
    fn adi_explicit(
        &self,
        w: &mut Buffer<T, Self>,
        u: &Buffer<T, Self>,
        operator: &Operator,
        arrays: &Arrays<T, Self>,
        stage: ExplicitStage,
    ) -> Result<(), TimeError> {
        arrays.check(operator, w, u)?;
        let program = program::<T>(&operator_text(operator, text_of(operator, arrays)), stage.axis);
        let arguments = (w.write(), u.read(), argument(self, operator, arrays)?, stage.scale, stage.time);
        let kernel = Kernel::<Explicit<T>>::new("adi_explicit");
        // SAFETY: all arrays have one entry per node of the grid.
        Ok(unsafe { self.launch(&program, &kernel, launch(operator), arguments) }?)
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
        let program = program::<T>(&operator_text(operator, text_of(operator, arrays)), None);
        let arguments = (w.write(), u.read(), argument(self, operator, arrays)?, scale);
        let kernel = Kernel::<Mixed<T>>::new("adi_mixed");
        // SAFETY: all arrays have one entry per node of the grid.
        Ok(unsafe { self.launch(&program, &kernel, launch(operator), arguments) }?)
    }

    fn adi_set(
        &self,
        w: &mut Buffer<T, Self>,
        nodes: &Buffer<u64, Self>,
        values: &Buffer<T, Self>,
    ) -> Result<(), TimeError> {
        need("values", nodes.len(), values.len())?;
        let (n, n_nodes) = (nodes.len(), w.len() as u64);
        let arguments = (w.write(), nodes.read(), values.read(), n as u64, n_nodes);
        let kernel = Kernel::<Set<T>>::new("adi_set");
        // SAFETY: there is one value per number, and the kernel ignores numbers past the end of w.
        Ok(unsafe { self.launch(&SIDES.of::<T>(), &kernel, Launch::over(n, THREADS), arguments) }?)
    }

    fn adi_add(
        &self,
        w: &mut Buffer<T, Self>,
        nodes: &Buffer<u64, Self>,
        values: &Buffer<T, Self>,
        scale: f64,
    ) -> Result<(), TimeError> {
        need("values", nodes.len(), values.len())?;
        let (n, n_nodes) = (nodes.len(), w.len() as u64);
        let arguments = (w.write(), nodes.read(), values.read(), scale, n as u64, n_nodes);
        let kernel = Kernel::<Add<T>>::new("adi_add");
        // SAFETY: there is one value per number, and the kernel ignores numbers past the end of w.
        Ok(unsafe { self.launch(&SIDES.of::<T>(), &kernel, Launch::over(n, THREADS), arguments) }?)
    }
}

//! `femtile tridiagonal`: batches of systems from NumPy files to NumPy files.

mod batch;
mod block;
mod dominance;
mod factored;
mod input;
mod memory;
mod report;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use femtile::device::{Buffer, Cpu, Cuda, Scalar};
use femtile::mesh::io::write_atomically;
use femtile::tridiagonal::{
    Bands, BatchLayout, Ends, Stability, Tridiagonal, TridiagonalConfig, TridiagonalKernels,
    TridiagonalOutcome,
};

use crate::arguments::TridiagonalOptions;
use crate::arrays::{Announced, Output, write_archive};
use crate::failure::Failure;
use batch::{Batch, Form};
use femtile_terminal::{check_target, tell, to_json};
use input::Input;
use memory::Estimate;
use report::{LISTED, Report};

/// `femtile tridiagonal`.
pub fn run(options: &TridiagonalOptions) -> Result<ExitCode, Failure> {
    if let Some(output) = &options.output {
        check_name(output)?;
        check_target("--output", output)?;
    }
    options.json.as_deref().map_or(Ok(()), |path| check_target("--json", path))?;
    let config = TridiagonalConfig {
        algorithm: options.algorithm.parse()?,
        ends: if options.periodic { Ends::Periodic } else { Ends::Open },
        stability: if options.pivoting { Stability::PartialPivoting } else { Stability::Unpivoted },
    };
    // Its absence shows before anything is read.
    let device = match &options.output {
        Some(output) => Some((Device::open(options)?, output.as_path())),
        None => None,
    };
    let begun = Instant::now();
    let input = Input::open(&options.files)?;
    let announced = &input.announced;
    let is_wide = match options.precision.as_deref() {
        Some(precision) => precision == "f64",
        // A number given in place of a file takes the precision of the others.
        None => announced.iter().any(|array| array.size == 8 && !array.shape.is_empty()),
    };
    let is_wide = is_wide || announced.iter().all(|array| array.shape.is_empty());
    let Some((device, output)) = device else {
        return match is_wide {
            true => dominance::run::<f64>(options, config.ends, input),
            false => dominance::run::<f32>(options, config.ends, input),
        };
    };
    let task = Task { options, config, output, begun };
    let report = match (is_wide, options.block, options.factored) {
        (true, true, _) => block::solve::<f64>(&task, device, input.read()?)?,
        (false, true, _) => block::solve::<f32>(&task, device, input.read()?)?,
        (true, _, true) => factored::solve::<f64>(&task, device, input)?,
        (false, _, true) => factored::solve::<f32>(&task, device, input)?,
        (true, ..) => solve::<f64>(&task, device, input)?,
        (false, ..) => solve::<f32>(&task, device, input)?,
    };
    tell(options.json.as_deref(), options.quiet, &to_json(&report)?, &report.summary())?;
    Ok(ExitCode::from(u8::from(report.n_failed > 0)))
}

/// The options, and the start time.
struct Task<'a> {
    options: &'a TridiagonalOptions,
    config: TridiagonalConfig,
    output: &'a Path,
    begun: Instant,
}

/// Refuses an output whose format its name does not tell, before anything is solved.
fn check_name(output: &Path) -> Result<(), Failure> {
    let extension = output.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if ["npy", "npz"].contains(&extension.to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    Err(Failure::message(format!("--output {}: the name must end in .npy or .npz", output.display())))
}

/// The chosen algorithm and the reason.
enum Device {
    Cpu(Cpu, &'static str),
    Cuda(Cuda),
}

impl Device {
    fn open(options: &TridiagonalOptions) -> Result<Self, Failure> {
        let number = options.device.strip_prefix("cuda:").map(str::parse);
        match (options.device.as_str(), number) {
            ("cpu", _) => Ok(Self::Cpu(Cpu::new(options.threads)?, ASKED_FOR)),
            ("auto", _) => Ok(Self::Cpu(
                Cpu::new(options.threads)?,
                "arrays from files reach a GPU no faster than a CPU solves them",
            )),
            ("cuda", _) => Ok(Self::Cuda(Cuda::new(0)?)),
            (_, Some(Ok(ordinal))) => Ok(Self::Cuda(Cuda::new(ordinal)?)),
            (other, _) => Err(Failure::message(format!(
                "--device: there is no device `{other}`; use auto, cpu, cuda or cuda:N"
            ))),
        }
    }
}

const ASKED_FOR: &str = "asked for";

fn solve<T: Scalar>(task: &Task<'_>, device: Device, input: Input) -> Result<Report, Failure>
where
    Cpu: TridiagonalKernels<T>,
    Cuda: TridiagonalKernels<T>,
{
    match device {
        Device::Cpu(cpu, reason) => solve_on(task, &cpu, reason, input),
        Device::Cuda(cuda) => solve_on(task, &cuda, ASKED_FOR, input),
    }
}

fn axis_of(axis: isize, shape: &[usize]) -> Result<usize, Failure> {
    let n = shape.len() as isize;
    if (-n..n).contains(&axis) {
        return Ok(axis.rem_euclid(n) as usize);
    }
    let shape = batch::tuple(shape);
    Err(Failure::message(format!("--axis {axis}: the shape {shape} has the axes {} to {}", -n, n - 1)))
}

/// Returns the axis of the systems and the solver; an error where memory is short.
fn solver_of<T: Scalar, D: TridiagonalKernels<T>>(
    task: &Task<'_>,
    device: &D,
    form: &Form,
    announced: &[Announced; 4],
) -> Result<(usize, Tridiagonal<T, D>), Failure> {
    let axis = form.axis;
    let layout = BatchLayout::with_strides(&form.shape, &form.strides())?;
    let solver = Tridiagonal::new(device, &layout, axis, task.config)?;
    let solver = solver.with_band_strides(&form.band_strides())?;
    Estimate::new(form, announced, size_of::<T>())
        .with_solve(form, size_of::<T>(), solver.work_bytes()?, form.shape[axis])
        .check()?;
    Ok((axis, solver))
}

fn solve_on<T: Scalar, D: TridiagonalKernels<T>>(
    task: &Task<'_>,
    device: &D,
    device_reason: &'static str,
    input: Input,
) -> Result<Report, Failure> {
    let Task { options, config, output, begun } = *task;
    let form = Form::new(&input.announced, options.axis)?;
    let (axis, mut solver) = solver_of::<T, D>(task, device, &form, &input.announced)?;
    let batch = Batch::<T>::new(form, input.read()?)?;
    let warnings = batch.non_finite(axis, config.ends == Ends::Open);
    let read = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let Batch { shape, strides, is_fortran, bands: [lower, diagonal, upper], rhs, .. } = batch;
    let bytes = size_of::<T>() * (lower.len() + diagonal.len() + upper.len() + 2 * rhs.len());
    let lower = Buffer::from_vec(device, lower)?;
    let diagonal = Buffer::from_vec(device, diagonal)?;
    let upper = Buffer::from_vec(device, upper)?;
    let mut u = Buffer::from_vec(device, rhs)?;
    let upload = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let bands = Bands::Arrays { lower: &lower, diagonal: &diagonal, upper: &upper };
    let outcome = solver.solve_in_place(&mut u, bands)?;
    let seconds = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let u = u.to_host()?;
    let failed = failed_systems(&u, &shape, &strides, axis, &outcome);
    let others = [&shape[..axis], &shape[axis + 1..]].concat();
    write(output, &u, &shape, is_fortran, &others, &failed)?;
    let written = begun.elapsed().as_secs_f64();

    let length = shape[axis];
    let n_systems = shape.iter().enumerate().filter(|(k, _)| *k != axis).map(|(_, n)| n).product();
    Ok(Report {
        version: env!("CARGO_PKG_VERSION"),
        device: device.description(),
        device_reason,
        precision: T::NAME,
        algorithm: solver.algorithm().name(),
        periodic: options.periodic,
        pivoting: options.pivoting,
        block: None,
        axis,
        n_systems,
        length,
        timings_s: [("read", read), ("upload", upload), ("solve", seconds), ("write", written)].into(),
        gb_per_s: 1e-9 * bytes as f64 / seconds,
        n_failed: outcome.n_failed,
        failed: (0..n_systems)
            .filter(|&n| failed.get(n) == Some(&1))
            .take(LISTED)
            .map(|n| index(n, &shape, axis))
            .collect(),
        first_failure: outcome.first.map(|first| first.index),
        warnings,
        output: output.into(),
        shape,
    })
}

/// A system by its number, row-major over the other axes; none stands for the axis of the rows.
fn index(mut number: usize, shape: &[usize], axis: usize) -> Vec<Option<usize>> {
    let mut index = vec![None; shape.len()];
    for other in (0..shape.len()).rev().filter(|&k| k != axis) {
        index[other] = Some(number % shape[other]);
        number /= shape[other];
    }
    index
}

/// 1 for each system that failed, row-major over the other axes; all of it is NaN.
fn failed_systems<T: Scalar>(
    u: &[T],
    shape: &[usize],
    strides: &[usize],
    axis: usize,
    outcome: &TridiagonalOutcome,
) -> Vec<u8> {
    let others = shape.iter().enumerate().filter(|(k, _)| *k != axis).map(|(_, n)| n);
    let n_systems: usize = others.product();
    if outcome.n_failed == 0 || shape[axis] == 0 {
        return vec![0; n_systems];
    }
    let start = |number| -> usize {
        let places = index(number, shape, axis);
        places.iter().zip(strides).map(|(i, stride)| i.unwrap_or(0) * stride).sum()
    };
    (0..n_systems).map(|number| u8::from(u[start(number)].to_f64().is_nan())).collect()
}

/// Writes the solution, and where there is room for it a flag for each system; `systems` is their shape.
fn write<T: Scalar>(
    path: &Path,
    u: &[T],
    shape: &[usize],
    is_fortran: bool,
    systems: &[usize],
    failed: &[u8],
) -> Result<(), Failure> {
    let dtype = if size_of::<T>() == 4 { "f4" } else { "f8" };
    let u = Output { shape, is_fortran, dtype, bytes: bytemuck::cast_slice(u) };
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
        return Ok(write_atomically(path, |out| u.write(out))?);
    }
    let failed = Output { shape: systems, is_fortran: false, dtype: "b1", bytes: failed };
    Ok(write_atomically(path, |out| write_archive(out, &[("u", u), ("failed", failed)]))?)
}

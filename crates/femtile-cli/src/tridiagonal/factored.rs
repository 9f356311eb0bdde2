//! `femtile tridiagonal --factored`: one matrix for all right sides, eliminated once.

use std::time::Instant;

use femtile::device::{Buffer, Cpu, Cuda, DeviceError, Scalar};
use femtile::tridiagonal::factored::FactoredKernels;
use femtile::tridiagonal::{BatchLayout, Ends, FactoredTridiagonal};

use super::batch::{Batch, Form, tuple};
use super::input::Input;
use super::report::{LISTED, Report};
use super::{ASKED_FOR, Device, Task, index, write};
use crate::failure::Failure;

/// Solves the systems of four arrays, of which the bands are one matrix, and writes the solution.
pub fn solve<T: Scalar>(task: &Task<'_>, device: Device, input: Input) -> Result<Report, Failure>
where
    Cpu: FactoredKernels<T>,
    Cuda: FactoredKernels<T>,
{
    let form = Form::new(&input.announced, task.options.axis)?;
    let axis = form.axis;
    let batch = (Batch::<T>::new(form, input.read()?)?, axis);
    match device {
        Device::Cpu(cpu, reason) => solve_on(task, &cpu, reason, batch, || Ok(())),
        Device::Cuda(cuda) => solve_on(task, &cuda, ASKED_FOR, batch, || cuda.synchronize()),
    }
}

/// The bands of the matrix: one value per row.
fn matrix<T: Scalar>(batch: &Batch<T>, axis: usize) -> Result<[Vec<T>; 3], Failure> {
    if let Some(other) = (0..batch.shape.len()).find(|&k| k != axis && batch.band_strides[k] > 0) {
        return Err(Failure::message(format!(
            "--factored: the bands differ from system to system, along axis {other} of {}; one matrix has bands of \
             one entry along every axis but that of the rows, {axis}; leave --factored out",
            tuple(&batch.shape)
        )));
    }
    let stride = batch.band_strides[axis];
    let rows = 0..batch.shape[axis];
    Ok(batch.bands.each_ref().map(|band| rows.clone().map(|row| band[row * stride]).collect()))
}

fn solve_on<T: Scalar, D: FactoredKernels<T>>(
    task: &Task<'_>,
    device: &D,
    device_reason: &'static str,
    (batch, axis): (Batch<T>, usize),
    wait: impl Fn() -> Result<(), DeviceError>,
) -> Result<Report, Failure> {
    let Task { options, config, output, begun } = *task;
    let layout = BatchLayout::with_strides(&batch.shape, &batch.strides)?;
    let bands = matrix(&batch, axis)?;
    let warnings = batch.non_finite(axis, config.ends == Ends::Open);
    let read = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let bands = bands.each_ref().map(Vec::as_slice);
    let mut solver = FactoredTridiagonal::new(device, &layout, axis, config.ends, bands)?;
    let factor = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let Batch { shape, strides, is_fortran, rhs, .. } = batch;
    let bytes = size_of::<T>() * (3 * shape[axis] + 2 * rhs.len());
    let mut u = Buffer::from_vec(device, rhs)?;
    let upload = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    solver.solve_in_place(&mut u)?;
    wait()?;
    let seconds = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let mut u = u.to_host()?;
    let failed = fill_failed(&mut u, &shape, &strides, axis);
    let others = [&shape[..axis], &shape[axis + 1..]].concat();
    write(output, &u, &shape, is_fortran, &others, &failed)?;
    let written = begun.elapsed().as_secs_f64();

    let listed: Vec<_> = (0..failed.len()).filter(|&system| failed[system] == 1).collect();
    let timings =
        [("read", read), ("factor", factor), ("upload", upload), ("solve", seconds), ("write", written)];
    Ok(Report {
        version: env!("CARGO_PKG_VERSION"),
        device: device.description(),
        device_reason,
        precision: T::NAME,
        algorithm: "factored",
        periodic: options.periodic,
        pivoting: false,
        block: None,
        axis,
        n_systems: failed.len(),
        length: shape[axis],
        timings_s: timings.into(),
        gb_per_s: 1e-9 * bytes as f64 / seconds,
        n_failed: listed.len() as u64,
        failed: listed.into_iter().take(LISTED).map(|system| index(system, &shape, axis)).collect(),
        // The matrix is regular: only right sides make systems fail, and the warnings name their entries.
        first_failure: None,
        warnings,
        output: output.into(),
        shape,
    })
}

/// Fills systems that are not finite throughout with NaN; 1 for each of them, row-major over the other axes.
fn fill_failed<T: Scalar>(u: &mut [T], shape: &[usize], strides: &[usize], axis: usize) -> Vec<u8> {
    let others = shape.iter().enumerate().filter(|(k, _)| *k != axis).map(|(_, n)| n);
    let n_systems: usize = others.product();
    let mut failed = vec![0; n_systems];
    if u.iter().all(|value| value.is_finite()) {
        return failed;
    }
    for (system, failed) in failed.iter_mut().enumerate() {
        let places = index(system, shape, axis);
        let start: usize = places.iter().zip(strides).map(|(i, stride)| i.unwrap_or(0) * stride).sum();
        let rows = || (0..shape[axis]).map(|row| start + row * strides[axis]);
        if rows().any(|at| !u[at].is_finite()) {
            rows().for_each(|at| u[at] = T::from_f64(f64::NAN));
            *failed = 1;
        }
    }
    failed
}

//! The iterations of a run below the limits of the device, as far as their work is known.

use femtile_device::Cpu;
use femtile_device::cpu::SimdLevel;
use femtile_device::cuda::{self, Cuda};
use femtile_report::{Roofline, Work};

use crate::file::{EquationKind, PreconditionerName};
use crate::{Case, Report};

/// Bytes of each vector that the bandwidth is measured with, as `femtile devices` does.
const VECTOR_BYTES: usize = 64 << 20;
/// Vectors of [`Cpu::measure_bandwidth`].
const N_VECTORS: usize = 3;
/// Bytes of a non-zero of a matrix: its value and its column.
const NONZERO: f64 = 12.0;
/// Bytes of an unknown in conjugate gradients: 14 reads and writes of vectors.
const UNKNOWN: f64 = 14.0 * 8.0;
/// Operations per unknown in addition to the matrix: two dot products, three vector updates, the diagonal.
const FLOPS: f64 = 11.0;

/// Returns the bytes that the measurement for the page of a run takes.
pub(crate) fn bytes(case: &Case, on_gpu: bool) -> f64 {
    let is_measured = case.has_page() && !on_gpu && case.file.equation.kind != EquationKind::Monodomain;
    if is_measured { (N_VECTORS * VECTOR_BYTES) as f64 } else { 0.0 }
}

/// Returns the work per iteration, or per step on a grid, below the limits of the device; none if unknown.
pub(crate) fn of(case: &Case, report: &Report, dimension: usize, cpu: &Cpu) -> Option<Roofline> {
    if case.file.equation.kind == EquationKind::Monodomain {
        // The time of a heart is for the most part that of its membranes, whose work is not known.
        return None;
    }
    let mut notes = vec![String::from("The bandwidth is measured when this page is made, by long vectors.")];
    let work = iteration(report, dimension, &mut notes).or_else(|| step(report, dimension, &mut notes))?;
    if !matches!(case.file.solver.preconditioner, PreconditionerName::Jacobi | PreconditionerName::None)
        && report.solve.levels.len() > 1
    {
        notes.push(
            "The work of multigrid is not counted, its time is: the point lies below the true rate.".into(),
        );
    }
    let (gb_per_s, gflop_per_s) = limits(report, cpu)?;
    if gflop_per_s.is_some() {
        notes.push(
            "The limit of operations is estimated: two fused multiply-adds of full vectors a cycle and core."
                .into(),
        );
    }
    Some(Roofline { device: report.device.clone(), gb_per_s, gflop_per_s, work: vec![work], notes })
}

/// Returns the bandwidth of the device, and its limit of operations if it is known.
fn limits(report: &Report, cpu: &Cpu) -> Option<(f64, Option<f64>)> {
    match report.device.strip_prefix("cuda:") {
        Some(rest) => {
            let ordinal = rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()?;
            let costs = cuda::measure(&Cuda::new(ordinal).ok()?).ok()?;
            Some((1e-9 * costs.copy_bytes_per_second, None))
        }
        None => Some((cpu.measure_bandwidth(VECTOR_BYTES).ok()?.triad_gb_per_s, peak(cpu))),
    }
}

/// Estimates the operations a second of a processor from its clock, in units of 10⁹.
fn peak(cpu: &Cpu) -> Option<f64> {
    let lanes = match cpu.simd() {
        SimdLevel::Avx512 => 8.0,
        SimdLevel::Avx2 => 4.0,
        SimdLevel::Native => 2.0,
        SimdLevel::Scalar => 1.0,
    };
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let clocks = text.lines().filter(|line| line.starts_with("cpu MHz"));
    let mhz =
        clocks.filter_map(|line| line.split_once(':')?.1.trim().parse::<f64>().ok()).fold(0.0, f64::max);
    (mhz > 0.0).then(|| cpu.threads() as f64 * lanes * 4.0 * mhz * 1e-3)
}

/// Bytes and operations.
type Counts = [f64; 2];

/// Returns the work per iteration of conjugate gradients; none if there are no iterations.
fn iteration(report: &Report, dimension: usize, notes: &mut Vec<String>) -> Option<Work> {
    let n_iterations = match &report.time {
        None => report.solve.iterations,
        Some(time) => time.iterations?,
    };
    let operator = report.solve.operator.as_ref().filter(|_| n_iterations > 0)?;
    let [bytes, flops] = match operator.as_str() {
        "matrix-free" => matrix_free(report, dimension, notes),
        _ => stored(report, dimension, notes),
    };
    notes.push("The time of an iteration is the mean of the solve.".into());
    let n = report.space.n_dofs as f64;
    Some(Work {
        name: "one iteration".into(),
        bytes: bytes + UNKNOWN * n,
        flops: flops + FLOPS * n,
        seconds: report.timings_s.solve / n_iterations as f64,
    })
}

/// Returns the work of a product with a stored matrix.
fn stored(report: &Report, dimension: usize, notes: &mut Vec<String>) -> Counts {
    let n = report.space.n_dofs as f64;
    let known = report.solve.levels.first().and_then(|level| level.n_nonzeros);
    let n_nonzeros = known.map_or_else(
        || {
            let per_row = nonzeros_per_row(report, dimension);
            notes.push(format!("The non-zeros of the matrix are estimated: {per_row:.0} a row."));
            per_row * n
        },
        |n_nonzeros| n_nonzeros as f64,
    );
    [NONZERO * n_nonzeros + 4.0 * n, 2.0 * n_nonzeros]
}

/// Estimates the non-zeros of a row: a node and its neighbours.
fn nonzeros_per_row(report: &Report, dimension: usize) -> f64 {
    let degree = report.space.degree.unwrap_or(1) as f64;
    let cells_per_node = report.mesh.n_cells as f64 / report.mesh.n_nodes.max(1) as f64;
    match dimension {
        3 if cells_per_node > 2.5 => 15.0,
        2 if cells_per_node > 1.3 => 7.0,
        _ => (2.0 * degree + 1.0).powi(dimension as i32),
    }
}

/// Returns the work of a product without a matrix: by sum factorization, with the metrics that are stored.
fn matrix_free(report: &Report, dimension: usize, notes: &mut Vec<String>) -> Counts {
    let d = dimension as f64;
    let row = report.space.degree.unwrap_or(1) as f64 + 1.0;
    let n_points = row.powi(dimension as i32);
    let n_cells = (report.mesh.n_cells * report.space.components) as f64;
    let n_stored: usize =
        report.solve.geometry.iter().filter(|(name, _)| name.starts_with("stored")).map(|(_, n)| n).sum();
    notes.push(
        "Operations without a matrix are estimated: 4 sweeps along each axis of a cell, and its metrics."
            .into(),
    );
    let flops = n_cells * n_points * (8.0 * d * row + 2.0 * d * d + d);
    [24.0 * report.space.n_dofs as f64 + 4.0 * d * (d + 1.0) * n_points * n_stored as f64, flops]
}

/// Returns the work per step of an alternating-direction scheme on a grid.
fn step(report: &Report, dimension: usize, notes: &mut Vec<String>) -> Option<Work> {
    let time = report.time.as_ref().filter(|_| report.solve.operator.is_none())?;
    let note = format!(
        "Bytes and operations of a step are estimated: for each node {dimension} sweeps that read two values and write \
         one, with 14 operations each."
    );
    notes.push(note);
    let sweeps = (report.space.n_dofs * dimension) as f64;
    Some(Work {
        name: "one step".into(),
        bytes: 24.0 * sweeps,
        flops: 14.0 * sweeps,
        seconds: time.seconds_per_step,
    })
}

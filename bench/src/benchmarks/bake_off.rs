//! $y = A x$ without a matrix on a cube of hexahedra, cells cubes and cells deformed, degrees 3 to 8: unknowns a second.
//!
//! Bytes are 24 an unknown (x read, y read before it is written, and written) and those of metrics and numbers of unknowns,
//! once each. Vectors are some 24 MB each by default, and stay in a last-level cache of that size.

use femtile::device::{Buffer, Cpu};
use femtile::fem::dofs::TensorSpace;
use femtile::linalg::LinearOperator;

use super::{ROUNDS, between_bandwidths};
use crate::problems::bake_off::{BakeOff, Shape};
use crate::timing::Samples;
use crate::{BenchError, Options, Record, Work};

pub(super) fn bp1(options: &Options) -> Result<Vec<Record>, BenchError> {
    all(BakeOff::Bp1, options)
}

pub(super) fn bp3(options: &Options) -> Result<Vec<Record>, BenchError> {
    all(BakeOff::Bp3, options)
}

pub(super) fn bp5(options: &Options) -> Result<Vec<Record>, BenchError> {
    all(BakeOff::Bp5, options)
}

pub(super) fn laplace(options: &Options) -> Result<Vec<Record>, BenchError> {
    all(BakeOff::Laplace, options)
}

fn all(problem: BakeOff, options: &Options) -> Result<Vec<Record>, BenchError> {
    let degrees = options.degree.map_or(3..=8, |degree| degree..=degree);
    let mut records = Vec::new();
    for cpu in options.cpus()? {
        for shape in [Shape::Cartesian, Shape::Deformed] {
            for degree in degrees.clone() {
                records.push(product(&cpu, problem, shape, degree, options)?);
            }
        }
    }
    Ok(records)
}

fn product(
    cpu: &Cpu,
    problem: BakeOff,
    shape: Shape,
    degree: usize,
    options: &Options,
) -> Result<Record, BenchError> {
    let nodes = options.nodes(145)?;
    let mesh = shape.mesh(((nodes - 1) / degree.max(1)).max(1))?;
    let space = TensorSpace::new(&mesh, degree)?;
    let a = problem.operator(cpu, &space)?;
    let mut x = Buffer::zeros(cpu, space.n_dofs())?;
    x.as_mut_slice().iter_mut().enumerate().for_each(|(i, x)| *x = (i % 17) as f64 * 0.1);
    let mut y = Buffer::zeros(cpu, space.n_dofs())?;
    a.apply(&mut y, &x)?;
    let mut samples = Samples::default();
    let bandwidth = between_bandwidths(cpu, || {
        for _ in 0..options.repeats(60).div_ceil(ROUNDS) {
            samples.time(|| cpu.install(|| a.apply(&mut y, &x)))?;
        }
        Ok(())
    })?;
    let work = Work { bytes: (24 * space.n_dofs() + a.bytes()) as f64, flops: 0.0 };
    let bound = ("read bandwidth", bandwidth.read_gb_per_s);
    let name = format!("{} product, {}, degree {degree}", problem.name(), shape.name());
    let mut record = Record::against_bandwidth(&name, cpu, &samples, work, bound);
    record.set("degree", degree);
    record.set("n_dofs", space.n_dofs());
    record.set("n_cells", mesh.n_cells());
    record.set("threads", cpu.threads());
    record.set("mdof_per_s", 1e-6 * space.n_dofs() as f64 / record.seconds_min);
    record.set("mdof_per_s_median", 1e-6 * space.n_dofs() as f64 / record.seconds_median);
    record.set("operator_bytes_per_dof", a.bytes() as f64 / space.n_dofs() as f64);
    Ok(record)
}

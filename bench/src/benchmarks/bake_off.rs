//! The bake-off problems of CEED on a cube of hexahedra: unknowns a second of a product or of an iteration.
//!
//! Bytes of a product are 24 an unknown (x read, y read before it is written, and written) and those of metrics and numbers
//! of unknowns, once each; those of an iteration are the minimum of its method ([`Method::values`]). Vectors are some
//! 24 MB each by default, and stay in a last-level cache of that size.

use femtile::device::{Buffer, Cpu};
use femtile::linalg::LinearOperator;
use femtile::matrix_free::MatrixFree;
use femtile::space::TensorSpace;

use super::{ROUNDS, between_bandwidths};
use crate::Samples;
use crate::dealii::{Beside, DealII, Products};
use crate::iterations::{ITERATIONS, MatrixFreeSystem, wavy};
use crate::problems::bake_off::{BakeOff, Method, Shape};
use crate::{BenchError, Options, Record, Work};

pub(super) fn bp1(options: &Options) -> Result<Vec<Record>, BenchError> {
    all(BakeOff::Bp1, options)
}

pub(super) fn bp2(options: &Options) -> Result<Vec<Record>, BenchError> {
    all(BakeOff::Bp2, options)
}

pub(super) fn bp3(options: &Options) -> Result<Vec<Record>, BenchError> {
    all(BakeOff::Bp3, options)
}

pub(super) fn bp4(options: &Options) -> Result<Vec<Record>, BenchError> {
    all(BakeOff::Bp4, options)
}

pub(super) fn bp5(options: &Options) -> Result<Vec<Record>, BenchError> {
    all(BakeOff::Bp5, options)
}

pub(super) fn bp6(options: &Options) -> Result<Vec<Record>, BenchError> {
    all(BakeOff::Bp6, options)
}

pub(super) fn laplace(options: &Options) -> Result<Vec<Record>, BenchError> {
    all(BakeOff::Laplace, options)
}

fn all(problem: BakeOff, options: &Options) -> Result<Vec<Record>, BenchError> {
    let degrees = options.degree.map_or(3..=8, |degree| degree..=degree);
    let shapes = options.geometry.map_or(Shape::ALL.to_vec(), |shape| vec![shape]);
    let mut peer = if options.peers { Some(DealII::new()?) } else { None };
    if options.peers && problem.dealii_rule().is_none() {
        crate::skipped(format_args!("deal.II: it is timed beside laplace and bp5 only"));
    }
    let mut records = Vec::new();
    for cpu in options.cpus()? {
        for &shape in &shapes {
            for degree in degrees.clone() {
                let case = Case { cpu: &cpu, problem, shape, degree };
                records.extend(case.records(options, peer.as_mut())?);
            }
        }
    }
    peer.iter().for_each(DealII::report);
    Ok(records)
}

/// One problem on one mesh.
struct Case<'a> {
    cpu: &'a Cpu,
    problem: BakeOff,
    shape: Shape,
    degree: usize,
}

/// Times of a product or of an iteration of ours.
struct Timed {
    name: &'static str,
    samples: Samples,
    bytes: f64,
}

impl Case<'_> {
    /// Times the product, or an iteration of each requested method.
    fn records(&self, options: &Options, peer: Option<&mut DealII>) -> Result<Vec<Record>, BenchError> {
        let cells = self.cells(options)?;
        let mesh = self.shape.mesh(cells)?;
        let space = TensorSpace::new(&mesh, self.degree)?;
        let a = self.problem.operator(self.cpu, &space, options.metric)?;
        let mut beside = self.beside(options, peer, (cells, &a))?;
        let (timed, read_gb_per_s) = match options.methods.as_slice() {
            [] => self.product(&a, runs(options), beside.as_mut())?,
            methods => self.iterations(&a, (methods, runs(options)), beside.as_mut())?,
        };
        let named = |name: &str| {
            format!("{} {name}, {}, degree {}", self.problem.name(), self.shape.name(), self.degree)
        };
        let record = |timed: Timed| {
            let work = Work { bytes: timed.bytes, flops: 0.0 };
            let bound = ("read bandwidth", read_gb_per_s);
            let mut record =
                Record::against_bandwidth(&named(timed.name), self.cpu, &timed.samples, work, bound);
            self.describe(&mut record, &a);
            record.set("n_cells", mesh.n_cells());
            beside.iter().for_each(|beside| beside.compare(&mut record));
            record
        };
        let mut records: Vec<Record> = timed.into_iter().map(record).collect();
        compare(&options.methods, &mut records);
        records.extend(beside.iter().flat_map(|beside| beside.records(self.cpu, named)));
        Ok(records)
    }

    /// Cells a side: as many unknowns for any number of components.
    fn cells(&self, options: &Options) -> Result<usize, BenchError> {
        let nodes = options.nodes(145)?;
        let scale = (self.problem.components() as f64).cbrt();
        Ok((((nodes - 1) as f64 / scale) as usize / self.degree.max(1)).max(1))
    }

    /// deal.II on the same cells, if it is asked for and has this problem.
    fn beside<'p>(
        &self,
        options: &Options,
        peer: Option<&'p mut DealII>,
        (cells, a): (usize, &MatrixFree<f64>),
    ) -> Result<Option<Beside<'p>>, BenchError> {
        let Some((peer, rule)) = peer.zip(self.problem.dealii_rule()) else { return Ok(None) };
        let Self { shape, degree, .. } = *self;
        let iterations = (!options.methods.is_empty()).then_some(ITERATIONS + 1);
        let what = Products { rule, shape, cells, degree, runs: runs(options), iterations };
        Beside::new(peer, what, a).map(Some)
    }

    fn describe(&self, record: &mut Record, a: &MatrixFree<f64>) {
        let n_dofs = a.n_rows() as f64;
        record.set("degree", self.degree);
        record.set("n_dofs", a.n_rows());
        record.set("threads", self.cpu.threads());
        record.set("mdof_per_s", 1e-6 * n_dofs / record.seconds_min);
        record.set("mdof_per_s_median", 1e-6 * n_dofs / record.seconds_median);
        record.set("operator_bytes_per_dof", a.bytes() as f64 / n_dofs);
        let metrics: Vec<&str> = a.metric_evaluations().iter().map(|(metric, _)| metric.name()).collect();
        record.set("metrics", metrics.join(", "));
    }

    fn product(
        &self,
        a: &MatrixFree<f64>,
        runs: usize,
        mut beside: Option<&mut Beside<'_>>,
    ) -> Result<(Vec<Timed>, f64), BenchError> {
        let x = wavy(self.cpu, a.n_rows())?;
        let mut y = Buffer::zeros(self.cpu, a.n_rows())?;
        a.apply(&mut y, &x)?;
        let mut samples = Samples::default();
        let bandwidth = between_bandwidths(self.cpu, || {
            for _ in 0..runs {
                samples.time(|| self.cpu.install(|| a.apply(&mut y, &x)))?;
            }
            beside.iter_mut().for_each(|beside| beside.measure(self.cpu));
            Ok(())
        })?;
        let bytes = (24 * a.n_rows() + a.bytes()) as f64;
        Ok((vec![Timed { name: "product", samples, bytes }], bandwidth.read_gb_per_s))
    }

    /// Iterations with the diagonal as preconditioner, the mean over those of each solve.
    fn iterations(
        &self,
        a: &MatrixFree<f64>,
        (methods, runs): (&[Method], usize),
        mut beside: Option<&mut Beside<'_>>,
    ) -> Result<(Vec<Timed>, f64), BenchError> {
        let components = self.problem.components();
        let mut system = MatrixFreeSystem::new(a, components, true)?;
        let timed = |method: &Method| {
            let vectors = 8.0 * method.values(components) * a.n_rows() as f64;
            let bytes = vectors + method.products() * a.bytes() as f64;
            Timed { name: method.name(), samples: Samples::default(), bytes }
        };
        let mut all: Vec<Timed> = methods.iter().map(timed).collect();
        let bandwidth = between_bandwidths(self.cpu, || {
            for (timed, &method) in all.iter_mut().zip(methods) {
                for _ in 0..runs {
                    timed.samples.push(system.seconds(method)?);
                }
            }
            beside.iter_mut().for_each(|beside| beside.measure(self.cpu));
            Ok(())
        })?;
        Ok((all, bandwidth.read_gb_per_s))
    }
}

/// Products or solves of a round.
fn runs(options: &Options) -> usize {
    let of_one = if options.methods.is_empty() { 1 } else { ITERATIONS };
    options.repeats(60).div_ceil(ROUNDS * of_one)
}

/// Adds the speed relative to plain conjugate gradients to all records, if that was measured.
fn compare(methods: &[Method], records: &mut [Record]) {
    let Some(plain) = methods.iter().position(|&method| method == Method::Pcg) else { return };
    let seconds = records[plain].seconds_median;
    for record in records.iter_mut() {
        record.set("over_plain_pcg", seconds / record.seconds_median);
    }
}

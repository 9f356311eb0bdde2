//! The bake-off problems of CEED on a cube of hexahedra: unknowns a second of a product or of an iteration.
//!
//! Bytes of a product are 24 an unknown (x read, y read before it is written, and written) and those of metrics and numbers
//! of unknowns, once each; of an iteration what its method moves at best, which [`Method::values`] says. Vectors are some
//! 24 MB each by default, and stay in a last-level cache of that size.

use femtile::device::{Buffer, Cpu};
use femtile::fem::dofs::TensorSpace;
use femtile::fem::matrix_free::MatrixFree;
use femtile::linalg::LinearOperator;

use super::{ROUNDS, between_bandwidths};
use crate::iterations::{ITERATIONS, Stopwatch, System, wavy};
use crate::problems::bake_off::{BakeOff, Method, Shape};
use crate::{BenchError, Options, Record, Work};
use femtile_tune::Samples;

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
    let mut records = Vec::new();
    for cpu in options.cpus()? {
        for &shape in &shapes {
            for degree in degrees.clone() {
                let case = Case { cpu: &cpu, problem, shape, degree };
                records.extend(case.records(options)?);
            }
        }
    }
    Ok(records)
}

/// One problem on one mesh.
struct Case<'a> {
    cpu: &'a Cpu,
    problem: BakeOff,
    shape: Shape,
    degree: usize,
}

impl Case<'_> {
    /// The product, or an iteration of each method that is asked for.
    fn records(&self, options: &Options) -> Result<Vec<Record>, BenchError> {
        // As many unknowns for any number of components.
        let nodes = options.nodes(145)?;
        let scale = (self.problem.components() as f64).cbrt();
        let cells = (((nodes - 1) as f64 / scale) as usize / self.degree.max(1)).max(1);
        let mesh = self.shape.mesh(cells)?;
        let space = TensorSpace::new(&mesh, self.degree)?;
        let a = self.problem.operator(self.cpu, &space, options.metric)?;
        let measured = |(name, samples, bytes, bandwidth): (&str, Samples, usize, f64)| {
            let work = Work { bytes: bytes as f64, flops: 0.0 };
            let name =
                format!("{} {name}, {}, degree {}", self.problem.name(), self.shape.name(), self.degree);
            let bound = ("read bandwidth", bandwidth);
            let mut record = Record::against_bandwidth(&name, self.cpu, &samples, work, bound);
            record.set("degree", self.degree);
            record.set("n_dofs", a.n_rows());
            record.set("n_cells", mesh.n_cells());
            record.set("threads", self.cpu.threads());
            record.set("mdof_per_s", 1e-6 * a.n_rows() as f64 / record.seconds_min);
            record.set("mdof_per_s_median", 1e-6 * a.n_rows() as f64 / record.seconds_median);
            record.set("operator_bytes_per_dof", a.bytes() as f64 / a.n_rows() as f64);
            let metrics: Vec<&str> = a.geometries().iter().map(|(geometry, _)| geometry.name()).collect();
            record.set("metrics", metrics.join(", "));
            record
        };
        match options.methods.as_slice() {
            [] => Ok(vec![measured(self.product(&a, options)?)]),
            methods => {
                let found: Result<Vec<_>, BenchError> =
                    methods.iter().map(|&method| self.iteration(&a, method, options)).collect();
                let mut records: Vec<Record> = found?.into_iter().map(measured).collect();
                compare(methods, &mut records);
                Ok(records)
            }
        }
    }

    fn product(
        &self,
        a: &MatrixFree<f64>,
        options: &Options,
    ) -> Result<(&'static str, Samples, usize, f64), BenchError> {
        let x = wavy(self.cpu, a.n_rows())?;
        let mut y = Buffer::zeros(self.cpu, a.n_rows())?;
        a.apply(&mut y, &x)?;
        let mut samples = Samples::default();
        let bandwidth = between_bandwidths(self.cpu, || {
            for _ in 0..options.repeats(60).div_ceil(ROUNDS) {
                samples.time(|| self.cpu.install(|| a.apply(&mut y, &x)))?;
            }
            Ok(())
        })?;
        Ok(("product", samples, 24 * a.n_rows() + a.bytes(), bandwidth.read_gb_per_s))
    }

    /// An iteration with the diagonal as preconditioner, the mean over a few of one solve.
    fn iteration(
        &self,
        a: &MatrixFree<f64>,
        method: Method,
        options: &Options,
    ) -> Result<(&'static str, Samples, usize, f64), BenchError> {
        let components = self.problem.components();
        let mut system = System::new(a, components, true)?;
        let mut watch = Stopwatch::default();
        let bandwidth = between_bandwidths(self.cpu, || {
            let solves = options.repeats(60).div_ceil(ROUNDS * ITERATIONS);
            (0..solves).try_for_each(|_| system.solve(method, ITERATIONS, &mut watch))
        })?;
        let bytes = 8.0 * method.values(components) * a.n_rows() as f64;
        let products = method.products();
        let bytes = bytes + products * a.bytes() as f64;
        Ok((method.name(), watch.samples, bytes as usize, bandwidth.read_gb_per_s))
    }
}

/// How many times as fast as plain conjugate gradients the other methods are, where these were measured.
fn compare(methods: &[Method], records: &mut [Record]) {
    let Some(plain) = methods.iter().position(|&method| method == Method::Pcg) else { return };
    let seconds = records[plain].seconds_median;
    for record in records.iter_mut() {
        record.set("over_plain_pcg", seconds / record.seconds_median);
    }
}

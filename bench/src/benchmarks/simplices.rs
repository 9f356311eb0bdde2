//! Products of forms on tetrahedra without a matrix, beside products with the assembled matrix.
//!
//! A cube of Kuhn's tetrahedra, equations with one coefficient for all cells. Both products are timed in turn, by the same device.

use femtile::device::{Buffer, Cpu};
use femtile::form::{Equation, Form};
use femtile::linalg::LinearOperator;
use femtile::mesh::check::boundary_facets;
use femtile::mesh::generate::{BoxConfig, BoxSplit, box_mesh};
use femtile::operator::{CpuOperator, DiscreteForm, State};
use femtile::space::{LinearConstraints, Space};

use super::forms::{cells, solid};
use super::{ROUNDS, between_bandwidths};
use crate::Samples;
use crate::iterations::wavy;
use crate::{BenchError, Options, Record, Work};

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let degrees = options.degree.map_or(1..=4, |degree| degree..=degree);
    let scalar = Equation::named("reaction-diffusion")?.form(3).build()?;
    let solid = solid()?;
    let mut records = Vec::new();
    for cpu in options.cpus()? {
        for degree in degrees.clone() {
            let nodes = options.nodes(101)?;
            records.extend(products("diffusion", &scalar, &cpu, degree, nodes, options)?);
            records.extend(products("elasticity", &solid, &cpu, degree, 2 * nodes / 3, options)?);
        }
    }
    Ok(records)
}

fn products(
    name: &str,
    form: &Form,
    cpu: &Cpu,
    degree: usize,
    nodes: usize,
    options: &Options,
) -> Result<[Record; 2], BenchError> {
    let config =
        BoxConfig { cells: [cells(degree, nodes); 3], split: BoxSplit::Kuhn, ..BoxConfig::default() };
    let mesh = box_mesh(&config)?;
    let (space, boundary) = (Space::new(&mesh, degree)?, boundary_facets(&mesh));
    let operator = CpuOperator::new(DiscreteForm::new(&space, form, &boundary)?, cpu)?;
    let n = operator.discrete().n_unknowns();
    let matrix = operator.assemble(&State::default(), operator.pattern(&LinearConstraints::none(n))?)?;
    let x = wavy(cpu, n)?;
    let (mut y, mut found) = (Buffer::zeros(cpu, n)?, vec![0.0; n]);
    operator.apply(&State::default(), x.as_slice(), &mut found)?;
    let [mut without, mut with] = [Samples::default(), Samples::default()];
    let bandwidth = between_bandwidths(cpu, || {
        for _ in 0..options.repeats(5 * ROUNDS).div_ceil(ROUNDS) {
            without.time(|| operator.apply(&State::default(), x.as_slice(), &mut found))?;
            with.time(|| cpu.install(|| matrix.apply(&mut y, &x)))?;
        }
        Ok(())
    })?;
    let record = |kind: &str, samples: &Samples, bytes: usize| {
        let work = Work { bytes: bytes as f64, flops: 0.0 };
        let bound = ("read bandwidth", bandwidth.read_gb_per_s);
        let what = format!("{name} on tetrahedra, {kind}, degree {degree}");
        let mut record = Record::against_bandwidth(&what, cpu, samples, work, bound);
        record.set("degree", degree);
        record.set("n_unknowns", n);
        record.set("threads", cpu.threads());
        record.set("simd", cpu.simd().to_string());
        record.set("mdof_per_s_median", 1e-6 * n as f64 / record.seconds_median);
        record
    };
    let mut records = [
        record("without a matrix", &without, 24 * n + operator.bytes()),
        record("CSR", &with, matrix.product_bytes()),
    ];
    let ratio = records[1].seconds_median / records[0].seconds_median;
    records[0].set("speed_over_csr", ratio);
    Ok(records)
}

//! Products with the tangents of forms by the general path, beside the tuned kernels for the same Laplacian.
//!
//! Cubes of deformed hexahedra with p + 1 Gauss points. Both products of the Laplacian store the geometry at the points;
//! they are timed in turn.

use femtile::device::{Buffer, Cpu};
use femtile::form::{Coefficient, Equation, Form};
use femtile::linalg::LinearOperator;
use femtile::mesh::check::boundary_facets;
use femtile::operator::{CpuOperator, DiscreteForm, Pattern, State};
use femtile::space::{LinearConstraints, Space};

use super::{ROUNDS, between_bandwidths};
use crate::Samples;
use crate::iterations::wavy;
use crate::problems::bake_off::{BakeOff, Shape};
use crate::{BenchError, Options, Record, Work};

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let degrees = options.degree.map_or(1..=6, |degree| degree..=degree);
    let mut records = Vec::new();
    for cpu in options.cpus()? {
        for degree in degrees.clone() {
            records.extend(laplacian(&cpu, degree, options)?);
            records.extend(elasticity(&cpu, degree, options)?);
        }
    }
    Ok(records)
}

/// Cells along an axis for a number of nodes along it.
pub(super) fn cells(degree: usize, nodes: usize) -> usize {
    ((nodes - 1) / degree).max(1)
}

fn laplacian(cpu: &Cpu, degree: usize, options: &Options) -> Result<[Record; 2], BenchError> {
    let mesh = Shape::Deformed.mesh(cells(degree, options.nodes(97)?))?;
    let (space, boundary) = (Space::new(&mesh, degree)?, boundary_facets(&mesh));
    let form = Equation::named("reaction-diffusion")?.form(3).build()?;
    let general = CpuOperator::new(DiscreteForm::new(&space, &form, &boundary)?, cpu)?;
    let Some(tensor) = space.tensor() else { unreachable!("hexahedra") };
    let tuned = BakeOff::Laplace.operator(cpu, tensor, options.metric)?;
    let x = wavy(cpu, space.n_dofs())?;
    let (mut y, mut found) = (Buffer::zeros(cpu, space.n_dofs())?, vec![0.0; space.n_dofs()]);
    let [mut of_general, mut of_tuned] = [Samples::default(), Samples::default()];
    let bandwidth = between_bandwidths(cpu, || {
        for _ in 0..options.repeats(5 * ROUNDS).div_ceil(ROUNDS) {
            of_general.time(|| general.apply(&State::default(), x.as_slice(), &mut found))?;
            of_tuned.time(|| cpu.install(|| tuned.apply(&mut y, &x)))?;
        }
        Ok(())
    })?;
    let record = |name: &str, samples: &Samples, bytes: usize| {
        let work = Work { bytes: (24 * space.n_dofs() + bytes) as f64, flops: 0.0 };
        let bound = ("read bandwidth", bandwidth.read_gb_per_s);
        Record::against_bandwidth(&format!("Laplacian, {name}, degree {degree}"), cpu, samples, work, bound)
    };
    let mut records = [
        record("general path", &of_general, general.bytes()),
        record("tuned kernels", &of_tuned, tuned.bytes()),
    ];
    records.iter_mut().for_each(|record| describe(record, cpu, degree, space.n_dofs()));
    let ratio = records[1].seconds_median / records[0].seconds_median;
    records[0].set("speed_over_tuned", ratio);
    Ok(records)
}

fn elasticity(cpu: &Cpu, degree: usize, options: &Options) -> Result<Vec<Record>, BenchError> {
    let mesh = Shape::Deformed.mesh(cells(degree, 2 * options.nodes(97)? / 3))?;
    let (space, boundary) = (Space::new(&mesh, degree)?, boundary_facets(&mesh));
    let form = solid()?;
    let discrete = DiscreteForm::new(&space, &form, &boundary)?;
    let operator = CpuOperator::new(discrete, cpu)?;
    let x = wavy(cpu, discrete.n_unknowns())?;
    let mut y = vec![0.0; discrete.n_unknowns()];
    // Matrices of higher degrees take gigabytes.
    let pattern = match degree {
        ..=2 => Some(operator.pattern(&LinearConstraints::none(discrete.n_unknowns()))?),
        _ => None,
    };
    let mut values = vec![0.0; pattern.as_ref().map_or(0, Pattern::n_nonzeros)];
    let [mut of_product, mut of_matrix] = [Samples::default(), Samples::default()];
    let bandwidth = between_bandwidths(cpu, || {
        for _ in 0..options.repeats(5 * ROUNDS).div_ceil(ROUNDS) {
            of_product.time(|| operator.apply(&State::default(), x.as_slice(), &mut y))?;
        }
        if let Some(pattern) = &pattern {
            of_matrix.time(|| operator.refill(&State::default(), pattern, &mut values))?;
        }
        Ok(())
    })?;
    let record = |name: &str, samples: &Samples, bytes: usize| {
        let work = Work { bytes: bytes as f64, flops: 0.0 };
        let bound = ("read bandwidth", bandwidth.read_gb_per_s);
        Record::against_bandwidth(&format!("elasticity, {name}, degree {degree}"), cpu, samples, work, bound)
    };
    let mut records = vec![record("product", &of_product, 24 * discrete.n_unknowns() + operator.bytes())];
    if let Some(pattern) = &pattern {
        records.push(record(
            "values of the matrix",
            &of_matrix,
            12 * pattern.n_nonzeros() + operator.bytes(),
        ));
    }
    records.iter_mut().for_each(|record| describe(record, cpu, degree, discrete.n_unknowns()));
    Ok(records)
}

pub(super) fn solid() -> Result<Form, BenchError> {
    let equation = Equation::named("elasticity")?;
    let builder = equation.form(3).with("young", 1.0)?.with("poisson", 0.3)?;
    Ok(builder.with("source", vec![Coefficient::Constant(0.0); 3])?.build()?)
}

fn describe(record: &mut Record, cpu: &Cpu, degree: usize, n_unknowns: usize) {
    record.set("degree", degree);
    record.set("n_unknowns", n_unknowns);
    record.set("threads", cpu.threads());
    record.set("mdof_per_s_median", 1e-6 * n_unknowns as f64 / record.seconds_median);
}

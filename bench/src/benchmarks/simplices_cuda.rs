//! On a GPU: products with the tangents of forms on tetrahedra, without a matrix.
//!
//! Cubes divided into six tetrahedra each, affine: the Laplacian and elasticity with constant coefficients, whose tangents act on
//! coefficients of polynomials, and anisotropic diffusion with reaction.

use femtile::device::cuda::measure;
use femtile::device::{Buffer, Cpu, Cuda};
use femtile::form::{Argument, Coefficient, Equation, Form};
use femtile::linalg::LinearOperator;
use femtile::matrix_free::CudaMatrixFreeConfig;
use femtile::mesh::check::boundary_facets;
use femtile::mesh::generate::{BoxConfig, BoxSplit, box_mesh};
use femtile::operator::{CpuOperator, CudaTangent, CudaTangentData, DiscreteForm, State};
use femtile::space::Space;

use super::forms::{cells, solid};
use super::forms_cuda::{NODES, product_record};
use crate::{BenchError, Options, Record};

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let device = Cuda::new(0)?;
    let bandwidth = 1e-9 * measure(&device)?.copy_bytes_per_second;
    let cpu = Cpu::new(0)?;
    let mut records = Vec::new();
    for degree in options.degree.map_or(1..=6, |degree| degree..=degree) {
        for (name, form) in forms()? {
            let nodes = options.nodes(NODES)?;
            let nodes = match form.n_components() {
                1 => nodes,
                _ => (nodes as f64 / 3f64.cbrt()) as usize,
            };
            let cells = [cells(degree, nodes); 3];
            let mesh = box_mesh(&BoxConfig { cells, split: BoxSplit::Kuhn, ..BoxConfig::default() })?;
            let (space, boundary) = (Space::new(&mesh, degree)?, boundary_facets(&mesh));
            let operator = CpuOperator::new(DiscreteForm::new(&space, &form, &boundary)?, &cpu)?;
            let (state, config) = (State::default(), CudaMatrixFreeConfig::default());
            let data = CudaTangentData::<f64>::new(&operator, &state, &[], config)?;
            let tangent = CudaTangent::new(&device, data)?;
            let name = format!("{name} on tetrahedra, degree {degree}");
            let mut record = product_record(&device, &name, &tangent, tangent.bytes(), bandwidth, options)?;
            record.set("degree", degree);
            record.set("n_cells", space.n_cells());
            record.set("error", error(&device, &operator, &tangent)?);
            records.push(record);
        }
    }
    Ok(records)
}

fn forms() -> Result<[(&'static str, Form); 3], BenchError> {
    let laplacian = Equation::named("reaction-diffusion")?;
    let stiffness = [[1.0, 0.2, 0.1], [0.2, 1.5, 0.3], [0.1, 0.3, 2.0]];
    let anisotropic = Argument::from(Coefficient::Tensor(stiffness));
    Ok([
        ("Laplacian", laplacian.form(3).build()?),
        ("elasticity", solid()?),
        (
            "diffusion and reaction",
            laplacian.form(3).with("sigma", anisotropic)?.with("lambda", 1.0)?.build()?,
        ),
    ])
}

/// Returns the largest difference from the product on the processor, relative to its largest entry.
fn error(device: &Cuda, operator: &CpuOperator<'_>, tangent: &CudaTangent<f64>) -> Result<f64, BenchError> {
    let n = tangent.n_rows();
    let x: Vec<f64> = (0..n as u64).map(|i| (i * 2_654_435_761 % 1_000_003) as f64 * 1e-6 - 0.5).collect();
    let mut wanted = vec![0.0; n];
    operator.apply(&State::default(), &x, &mut wanted)?;
    let mut y = Buffer::from_vec(device, vec![f64::NAN; n])?;
    tangent.apply(&mut y, &Buffer::from_vec(device, x)?)?;
    let size = wanted.iter().fold(0.0f64, |size, value| size.max(value.abs()));
    let differences =
        y.to_host()?.into_iter().zip(wanted).map(|(found, wanted)| (found - wanted).abs() / size);
    // NaN is kept: it is an error.
    Ok(differences.fold(0.0, |largest, error| if error <= largest { largest } else { error }))
}

//! On a GPU: products with the tangents of forms, beside the kernels of their class for the same Laplacian; residual, product and
//! matrix of Neo-Hookean rubber.
//!
//! Cubes of deformed hexahedra with p + 1 Gauss points, geometry stored at the points by both: ten numbers by the general path,
//! six by the class. Products are timed in turn.

use femtile::device::cuda::measure;
use femtile::device::{Buffer, Cpu, Cuda};
use femtile::form::Equation;
use femtile::linalg::LinearOperator;
use femtile::matrix_free::{CudaMatrixFreeConfig, MetricEvaluation};
use femtile::mesh::check::boundary_facets;
use femtile::operator::{
    CpuOperator, CudaForm, CudaState, CudaTangent, CudaTangentData, DiscreteForm, State,
};
use femtile::space::{LinearConstraints, Space};

use super::forms::{cells, solid};
use crate::Samples;
use crate::problems::bake_off::{BakeOff, Shape};
use crate::{BenchError, Options, Record, Work};

/// Nodes along an axis of ten million unknowns.
pub(super) const NODES: usize = 216;

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let device = Cuda::new(0)?;
    let bandwidth = 1e-9 * measure(&device)?.copy_bytes_per_second;
    let cpu = Cpu::new(0)?;
    let mut records = Vec::new();
    for degree in options.degree.map_or(1..=8, |degree| degree..=degree) {
        for components in [1, 3] {
            let nodes = options.nodes(NODES)?;
            let nodes = if components == 1 { nodes } else { (nodes as f64 / 3f64.cbrt()) as usize };
            let mesh = Shape::Deformed.mesh(cells(degree, nodes))?;
            let (space, boundary) = (Space::new(&mesh, degree)?, boundary_facets(&mesh));
            let laplacian = Equation::named("reaction-diffusion")?.form(3).build()?;
            let form = if components == 1 { laplacian } else { solid()? };
            let discrete = DiscreteForm::new(&space, &form, &boundary)?;
            let operator = CpuOperator::new(discrete, &cpu)?;
            let config = CudaMatrixFreeConfig::default();
            let data = CudaTangentData::<f64>::general(&operator, &State::default(), &[], config)?;
            let general = CudaTangent::new(&device, data)?;
            let Some(tensor) = space.tensor() else { unreachable!("hexahedra") };
            let class = match components {
                1 => Some(BakeOff::Laplace.cuda_operator(&device, tensor, MetricEvaluation::Stored)?),
                _ => None,
            };
            let x: Vec<f64> = (0..discrete.n_unknowns()).map(|i| (i % 17) as f64 * 0.1).collect();
            let x = Buffer::from_vec(&device, x)?;
            let mut y = Buffer::zeros(&device, x.len())?;
            let [mut of_general, mut of_class] = [Samples::default(), Samples::default()];
            for round in 0..=options.repeats(20) {
                let seconds = device.time(|| general.apply(&mut y, &x))?;
                let of_tuned =
                    class.as_ref().map(|class| device.time(|| class.apply(&mut y, &x))).transpose()?;
                if round > 0 {
                    of_general.push(seconds);
                    of_tuned.into_iter().for_each(|seconds| of_class.push(seconds));
                }
            }
            let record = |name: &str, samples: &Samples, bytes: usize| {
                let work = Work { bytes: (16 * x.len() + bytes) as f64, flops: 0.0 };
                let bound = ("copy bandwidth", bandwidth);
                let name = format!("{name}, degree {degree}");
                let mut record = Record::against_bandwidth(&name, &device, samples, work, bound);
                record.set("degree", degree);
                record.set("n_unknowns", x.len());
                record.set("mdof_per_s_median", 1e-6 * x.len() as f64 / record.seconds_median);
                record
            };
            let name = if components == 1 { "Laplacian, general path" } else { "elasticity, general path" };
            let mut of_general = record(name, &of_general, general.bytes());
            if let Some(class) = &class {
                let of_class = record("Laplacian, kernels of its class", &of_class, class.bytes());
                of_general.set("speed_over_class", of_class.seconds_median / of_general.seconds_median);
                records.push(of_class);
            }
            records.push(of_general);
        }
    }
    let degrees = options.degree.map_or(1..=4, |degree| degree..=degree);
    degrees.filter(|degree| *degree <= 4).try_for_each(|degree| {
        records.extend(rubber(&device, degree, bandwidth, options)?);
        Ok::<_, BenchError>(())
    })?;
    Ok(records)
}

/// Products that are timed together, so that gaps between launches are a small part.
const PRODUCTS: usize = 10;

/// Times the product of an operator that moves some bytes besides reading x and writing y.
pub(super) fn product_record(
    device: &Cuda,
    name: &str,
    operator: &dyn LinearOperator<f64, Cuda>,
    bytes: usize,
    bandwidth: f64,
    options: &Options,
) -> Result<Record, BenchError> {
    let n = operator.n_rows();
    let x = Buffer::from_vec(device, (0..n).map(|i| (i % 17) as f64 * 0.1).collect())?;
    let mut y = Buffer::zeros(device, n)?;
    let mut samples = Samples::default();
    for round in 0..=options.repeats(20) {
        let seconds = device.time(|| (0..PRODUCTS).try_for_each(|_| operator.apply(&mut y, &x)))?;
        if round > 0 {
            samples.push(seconds / PRODUCTS as f64);
        }
    }
    let work = Work { bytes: (16 * n + bytes) as f64, flops: 0.0 };
    let mut record = Record::against_bandwidth(name, device, &samples, work, ("copy bandwidth", bandwidth));
    record.set("n_unknowns", n);
    record.set("mdof_per_s_median", 1e-6 * n as f64 / record.seconds_median);
    Ok(record)
}

/// Nodes along an axis of a million unknowns in three components.
const NODES_OF_RUBBER: usize = 69;

/// The energy of rubber, of which residual and tangent are derived.
const RUBBER: &str = r#"
unknown = { u = { components = "dimension" } }
define = """
F = identity + grad(u)
J = det(F)
"""

[cells]
energy = "40*(tr(F'*F) - 3) - 80*log(J) + 60*log(J)^2"
"#;

/// Residual and product of the tangent at a deformed state in one pass, and the matrix of the tangent on its pattern.
fn rubber(
    device: &Cuda,
    degree: usize,
    bandwidth: f64,
    options: &Options,
) -> Result<Vec<Record>, BenchError> {
    let cpu = Cpu::new(0)?;
    let mesh = Shape::Deformed.mesh(cells(degree, options.nodes.unwrap_or(NODES_OF_RUBBER)))?;
    let (space, boundary) = (Space::new(&mesh, degree)?, boundary_facets(&mesh));
    let form = Equation::from_toml("rubber", RUBBER)?.form(3).build()?;
    let discrete = DiscreteForm::new(&space, &form, &boundary)?;
    let operator = CpuOperator::new(discrete, &cpu)?;
    let on_gpu = CudaForm::new(device, &operator)?;
    let n = discrete.n_unknowns();
    let small = |i: usize| 1e-3 / degree as f64 * ((i % 17) as f64 / 17.0 - 0.5);
    let u = Buffer::from_vec(device, (0..n).map(small).collect())?;
    let direction = Buffer::from_vec(device, (0..n).map(|i| (i % 13) as f64 * 0.1).collect())?;
    let state = CudaState { u: &u, rate: None, time: 0.0, shift: 0.0 };
    let (mut r, mut y) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
    let pattern = operator.pattern(&LinearConstraints::none(n))?;
    let mut matrix = on_gpu.matrix(&pattern)?;
    let [mut of_products, mut of_matrix] = [Samples::default(), Samples::default()];
    for round in 0..=options.repeats(20) {
        let products = device.time(|| on_gpu.products(&state, &direction, [&mut r, &mut y]).map(|_| ()))?;
        let refill = device.time(|| on_gpu.refill(&state, &mut matrix))?;
        if round > 0 {
            of_products.push(products);
            of_matrix.push(refill);
        }
    }
    // Four vectors, and the geometry of the points.
    let of_products_bytes = 32 * n + 80 * space.n_cells() * (degree + 1).pow(3);
    let records = [
        ("Neo-Hookean residual and product", of_products, of_products_bytes),
        ("Neo-Hookean matrix", of_matrix, 8 * pattern.n_nonzeros()),
    ]
    .map(|(name, samples, bytes)| {
        let work = Work { bytes: bytes as f64, flops: 0.0 };
        let name = format!("{name}, degree {degree}");
        let mut record =
            Record::against_bandwidth(&name, device, &samples, work, ("copy bandwidth", bandwidth));
        record.set("degree", degree);
        record.set("n_unknowns", n);
        record.set("mdof_per_s_median", 1e-6 * n as f64 / record.seconds_median);
        record
    });
    Ok(records.into())
}

//! On a GPU: products with the tangents of forms, beside the kernels of their class for the same Laplacian.
//!
//! Cubes of deformed hexahedra with p + 1 Gauss points, geometry stored at the points by both: ten numbers by the general path,
//! six by the class. Products are timed in turn.

use femtile::device::cuda::measure;
use femtile::device::{Buffer, Cpu, Cuda};
use femtile::form::Equation;
use femtile::linalg::LinearOperator;
use femtile::matrix_free::{CudaMatrixFreeConfig, MetricEvaluation};
use femtile::mesh::check::boundary_facets;
use femtile::operator::{CpuOperator, CudaTangent, CudaTangentData, DiscreteForm, State};
use femtile::space::Space;

use super::forms::{cells, solid};
use crate::Samples;
use crate::problems::bake_off::{BakeOff, Shape};
use crate::{BenchError, Options, Record, Work};

/// Nodes along an axis of ten million unknowns.
const NODES: usize = 216;

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
    Ok(records)
}

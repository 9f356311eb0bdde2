//! Values filled into matrices on a fixed pattern: the box of linear tetrahedra, on processors and on a GPU; and matrices
//! brought from CSR to slices on a GPU.
//!
//! Bytes are those that a filling must move: what it reads of the mesh and of its lists, matrix and right side once.
//! On a GPU the kernel is timed by events of the device, whole refills (evaluation of conditions, coefficients brought
//! over, errors asked for) by the host's clock.

use femtile::device::cuda::measure;
use femtile::device::{Buffer, Cpu, Cuda};
use femtile::fem::{Assembly, AssemblyKernels, Coefficient, DeviceState, Form};
use femtile::linalg::LinearOperator;
use femtile::linalg::sparse::ell_warp::IndexKind;
use femtile::linalg::sparse::{Csr, EllWarp, EllWarpConfig, StoredMatrix};
use femtile::mesh::check::BoundaryFacets;
use femtile::mesh::{Field, Mesh};

use super::between_bandwidths;
use crate::Samples;
use crate::problems::kuhn_box;
use crate::{BenchError, Options, Record, Work};

/// Refills that are queued together, so that the GPU never waits for the host.
const IN_A_ROW: usize = 10;

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let nodes = options.nodes(65)?;
    let mesh = kuhn_box::mesh(nodes)?;
    let mut records = Vec::new();
    for cpu in options.cpus()? {
        let slices = EllWarpConfig { window: 256, ..EllWarpConfig::new(8) };
        records.push(on_cpu::<Csr<f64, Cpu>>(&cpu, &mesh, (), "CSR", options)?);
        records.push(on_cpu::<EllWarp<f64, Cpu>>(&cpu, &mesh, slices, "slices of 8", options)?);
    }
    match Cuda::new(0) {
        Ok(device) => {
            let slices = EllWarpConfig { window: 256, ..EllWarpConfig::new(32) };
            records.push(whole(&device, &mesh, options)?);
            records.extend(on_gpu::<Csr<f64, Cuda>>(&device, &mesh, (), "CSR", options)?);
            records.extend(on_gpu::<EllWarp<f64, Cuda>>(&device, &mesh, slices, "slices of 32", options)?);
            let compressed = EllWarpConfig { indices: IndexKind::Delta, ..slices };
            for config in [slices, compressed, EllWarpConfig { window: 1, ..slices }] {
                records.push(conversion(&device, &mesh, &config, options)?);
            }
        }
        Err(error) => crate::skipped(format_args!("refills on a GPU: {error}")),
    }
    records.iter_mut().for_each(|record| record.set("nodes", nodes));
    Ok(records)
}

/// Coefficients of a form without conditions.
struct Coefficients {
    name: &'static str,
    sigma: Coefficient,
    lambda: Coefficient,
    source: Coefficient,
}

impl Coefficients {
    /// −Δu + u = 1, as [`kuhn_box`] has it.
    fn ones() -> Self {
        Self { name: "-Δu + u = 1", sigma: 1.0.into(), lambda: 1.0.into(), source: 1.0.into() }
    }

    fn all(mesh: &Mesh) -> [Self; 3] {
        let tensor = [2.0, 1.5, 1.0, 0.1, 0.2, 0.3].repeat(mesh.n_cells());
        let tensor = Coefficient::CellField(Field { n_components: 6, values: tensor });
        [
            Self::ones(),
            Self { name: "-Δu = 0", sigma: 1.0.into(), lambda: 0.0.into(), source: 0.0.into() },
            Self { name: "a tensor in each cell", sigma: tensor, lambda: 0.0.into(), source: 0.0.into() },
        ]
    }

    /// Bytes of fields.
    fn bytes(&self) -> usize {
        match &self.sigma {
            Coefficient::CellField(field) => 8 * field.values.len(),
            _ => 0,
        }
    }

    fn form<'a>(&'a self, mesh: &'a Mesh, boundary: &'a BoundaryFacets) -> Form<'a> {
        let Self { sigma, lambda, source, .. } = self;
        Form { mesh, boundary, sigma, lambda, source, conditions: &[] }
    }
}

fn on_cpu<M: StoredMatrix<Cpu>>(
    cpu: &Cpu,
    mesh: &Mesh,
    config: M::Config,
    format: &str,
    options: &Options,
) -> Result<Record, BenchError> {
    let (ones, boundary) = (Coefficients::ones(), BoundaryFacets::default());
    let mut assembly = Assembly::<f64, Cpu, M>::in_format(cpu, mesh, config)?;
    let mut system = assembly.system(&ones.form(mesh, &boundary))?;
    let problem = assembly.prepare(&ones.form(mesh, &boundary))?;
    let mut samples = Samples::default();
    let bandwidth = between_bandwidths(cpu, || {
        for _ in 0..options.repeats(9).div_ceil(super::ROUNDS) {
            samples.time(|| assembly.fill(&mut system, &problem, DeviceState::default()))?;
        }
        Ok(())
    })?;
    let work = Work { bytes: assembly.fill_bytes(&system.matrix.values_mut()) as f64, flops: 0.0 };
    let bound = ("read bandwidth", bandwidth.read_gb_per_s);
    let name = format!("refill, {format}, {}", ones.name);
    let mut record = Record::against_bandwidth(&name, cpu, &samples, work, bound);
    record.set("threads", cpu.threads());
    describe(&mut record, mesh);
    Ok(record)
}

fn describe(record: &mut Record, mesh: &Mesh) {
    record.set("n_cells", mesh.n_cells());
    record.set("cells_per_second", mesh.n_cells() as f64 / record.seconds_min);
}

/// Pattern, matrix and right side from a mesh, once.
fn whole(device: &Cuda, mesh: &Mesh, options: &Options) -> Result<Record, BenchError> {
    let mut samples = Samples::default();
    let mut n_nonzeros = kuhn_box::system::<f64, _>(device, mesh)?.matrix.n_nonzeros();
    for _ in 0..options.repeats(9) {
        let system = samples.time(|| kuhn_box::system::<f64, _>(device, mesh))?;
        device.synchronize()?;
        n_nonzeros = system.matrix.n_nonzeros();
    }
    let bytes = 4 * mesh.cells.len() + 24 * mesh.n_nodes() + 12 * n_nonzeros + 12 * mesh.n_nodes();
    let work = Work { bytes: bytes as f64, flops: 0.0 };
    let bound = ("copy bandwidth", 1e-9 * measure(device)?.copy_bytes_per_second);
    let mut record = Record::against_bandwidth("pattern and values, CSR", device, &samples, work, bound);
    describe(&mut record, mesh);
    Ok(record)
}

/// CSR to slices on the GPU, and how many products take as long; bytes are those of both matrices.
fn conversion(
    device: &Cuda,
    mesh: &Mesh,
    config: &EllWarpConfig,
    options: &Options,
) -> Result<Record, BenchError> {
    let csr = kuhn_box::system::<f64, _>(device, mesh)?.matrix;
    let mut matrix = EllWarp::<f64, Cuda>::convert(&csr, config)?;
    let (mut conversion, mut refill) = (Samples::default(), Samples::default());
    for _ in 0..options.repeats(30) {
        conversion.push(device.time(|| EllWarp::<f64, Cuda>::convert(&csr, config).map(drop))?);
        refill.push(device.time(|| matrix.refill(&csr))?);
    }
    let x = Buffer::from_vec(device, vec![1.0; csr.n_rows()])?;
    let mut y = Buffer::zeros(device, csr.n_rows())?;
    let mut products = Samples::default();
    for _ in 0..options.repeats(30) {
        let several = || (0..IN_A_ROW).try_for_each(|_| matrix.apply(&mut y, &x));
        products.push(device.time(several)? / IN_A_ROW as f64);
    }
    let vectors = 16 * csr.n_rows();
    let bytes = csr.product_bytes() + matrix.product_bytes() - 2 * vectors;
    let work = Work { bytes: bytes as f64, flops: 0.0 };
    let bound = ("copy bandwidth", 1e-9 * measure(device)?.copy_bytes_per_second);
    let name = format!("conversion, CSR to {}", config.name());
    let mut record = Record::against_bandwidth(&name, device, &conversion, work, bound);
    record.set("seconds_product", products.median());
    record.set("seconds_refill", refill.median());
    record.set("products", conversion.median() / products.median());
    Ok(record)
}

fn on_gpu<M: StoredMatrix<Cuda>>(
    device: &Cuda,
    mesh: &Mesh,
    config: M::Config,
    format: &str,
    options: &Options,
) -> Result<Vec<Record>, BenchError>
where
    Cuda: AssemblyKernels<f64>,
{
    let bound = ("copy bandwidth", 1e-9 * measure(device)?.copy_bytes_per_second);
    let begun = std::time::Instant::now();
    let mut assembly = Assembly::<f64, Cuda, M>::in_format(device, mesh, config)?;
    let seconds_prepared = begun.elapsed().as_secs_f64();
    let boundary = BoundaryFacets::default();
    let mut system = assembly.system(&Coefficients::ones().form(mesh, &boundary))?;
    let mut records = Vec::new();
    for coefficients in Coefficients::all(mesh) {
        let form = coefficients.form(mesh, &boundary);
        let problem = assembly.prepare(&form)?;
        assembly.fill(&mut system, &problem, DeviceState::default())?;
        let (mut kernel, mut whole) = (Samples::default(), Samples::default());
        for _ in 0..options.repeats(30) {
            let several = || {
                (0..IN_A_ROW).try_for_each(|_| assembly.queue(&mut system, &problem, DeviceState::default()))
            };
            kernel.push(device.time(several)? / IN_A_ROW as f64);
        }
        assembly.check(&mut system, &problem, DeviceState::default())?;
        for _ in 0..options.repeats(30) {
            whole.time(|| assembly.refill(&mut system, &form))?;
        }
        let per_cell = coefficients.bytes();
        let bytes = assembly.fill_bytes(&system.matrix.values_mut()) + per_cell;
        let work = Work { bytes: bytes as f64, flops: 0.0 };
        let name = format!("refill, {format}, {}", coefficients.name);
        let mut record = Record::against_bandwidth(&name, device, &kernel, work, bound);
        let least =
            4 * mesh.cells.len() + 24 * mesh.n_nodes() + 8 * system.matrix.values_mut().len() + per_cell;
        record.set("bytes_of_mesh_and_values", least);
        record.set("seconds_refill_with_host", whole.median());
        record.set("seconds_prepared", seconds_prepared);
        describe(&mut record, mesh);
        records.push(record);
    }
    Ok(records)
}

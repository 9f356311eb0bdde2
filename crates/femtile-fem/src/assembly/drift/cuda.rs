use femtile_device::cuda::{Header, Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, BufferMut, Cuda, Scalar};
use femtile_mesh::Mesh;

use crate::FemError;
use crate::assembly::cuda::{ELEMENT, ROWS};
use crate::assembly::sparsity::Sparsity;
use crate::forms::{CudaForm, OPERATIONS, for_every_linearization};
use crate::incidence::Incidence;

static DRIFT: Program =
    Program { name: "assembly_drift", source: include_str!("drift.cu"), headers: &HEADERS };
const HEADERS: [Header; 3] = [OPERATIONS, ELEMENT, ROWS];

type Arguments<T, V> = (
    Write<V>,
    Write<T>,
    Write<u32>,
    Read<u64>,
    Read<u32>,
    Read<u64>,
    Read<u32>,
    Read<u32>,
    Read<f64>,
    u64,
    Structure,
    Structure,
);
/// Threads per block.
const THREADS: u32 = 128;

fn program<T: Scalar, V: Scalar>(n_corners: usize, text: &str) -> Specialisation {
    let program = DRIFT.of::<T>().define("FEMTILE_V", V::C_NAME);
    program.define("FEMTILE_CORNERS", n_corners).header("form.cuh", text)
}

/// Returns programs for linearizations of every kind, in two and three dimensions, for checks that compile them.
pub(in crate::assembly) fn specialisations() -> Vec<Specialisation> {
    let mut programs = Vec::new();
    for_every_linearization(|n_corners, form: &CudaForm<'_>| {
        if form.has_drift() {
            programs.push(program::<f64, f64>(n_corners, form.text()));
        }
    });
    programs
}

/// A mesh and the rows of its matrix on a GPU.
pub(in crate::assembly) struct Drift {
    n_rows: usize,
    n_corners: usize,
    offsets: Buffer<u64, Cuda>,
    columns: Buffer<u32, Cuda>,
    starts: Buffer<u64, Cuda>,
    list: Buffer<u32, Cuda>,
    cells: Buffer<u32, Cuda>,
    points: Buffer<f64, Cuda>,
}

impl Drift {
    /// Copies the mesh, the cells of its nodes and the pattern to a GPU.
    pub fn new(device: &Cuda, mesh: &Mesh, pattern: &Sparsity) -> Result<Self, FemError> {
        let incidence = Incidence::new(mesh.n_nodes(), &mesh.cells, mesh.kind.n_nodes());
        let offsets = (0..=mesh.n_nodes()).map(|row| pattern.offsets.get(row) as u64).collect();
        Ok(Self {
            n_rows: mesh.n_nodes(),
            n_corners: mesh.kind.n_nodes(),
            offsets: Buffer::from_vec(device, offsets)?,
            columns: Buffer::from_host(device, &pattern.columns)?,
            starts: Buffer::from_host(device, incidence.starts())?,
            list: Buffer::from_host(device, incidence.cells())?,
            cells: Buffer::from_host(device, &mesh.cells)?,
            points: Buffer::from_host(device, mesh.points.as_flattened())?,
        })
    }

    /// Queues the addition of the drift to a CSR matrix and its right side. `bad` becomes the first cell with
    /// a derivative that is not finite.
    ///
    /// # Shapes
    /// `values`: those of the pattern; `rhs: [n_nodes]`; `form`: the argument of the text of a linearization on the mesh.
    pub fn queue<T: Scalar, V: Scalar>(
        &self,
        device: &Cuda,
        (text, form): (&str, Structure),
        given: Structure,
        (values, rhs): (&mut BufferMut<'_, V, Cuda>, &mut Buffer<T, Cuda>),
        bad: &mut Buffer<u32, Cuda>,
    ) -> Result<(), FemError> {
        let arguments = (
            values.write(),
            rhs.write(),
            bad.write(),
            self.offsets.read(),
            self.columns.read(),
            self.starts.read(),
            self.list.read(),
            self.cells.read(),
            self.points.read(),
            self.n_rows as u64,
            given,
            form,
        );
        let launch = Launch::over(self.n_rows, THREADS);
        let (program, kernel) =
            (program::<T, V>(self.n_corners, text), Kernel::<Arguments<T, V>>::new("assembly_drift"));
        // SAFETY: cells, nodes and pattern belong to one mesh; the lengths of values, right side and function were compared with
        // it, and the tables of constraints and the fields of the form cover it.
        Ok(unsafe { device.launch(&program, &kernel, launch, arguments) }?)
    }
}

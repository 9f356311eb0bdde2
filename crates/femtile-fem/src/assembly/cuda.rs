//! Assembly on a GPU, the pattern included.
//!
//! Kernels only record that a cell is bad; the host then evaluates that cell to find the error, so that errors are the
//! same on every device. If the host finds no error (its functions differ from the GPU's in the last bit), or if a form
//! is too large for a kernel, the host assembles.
//!
//! The pattern is found in `pattern/`: the cells of each node, then a table of columns per row in shared memory.
//! Rows that are too long for a table are left to the host. One-off assembly fills the pattern with one thread per
//! row (`assembly.cu`).

use std::sync::Arc;

use femtile_device::cuda::{Header, Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, BufferMut, Cpu, Cuda, Element, Scalar};
use femtile_element::Affine;
use femtile_linalg::vector::scan;
use femtile_mesh::{CellKind, Mesh};
use femtile_sparse::EntryPositions;
use femtile_sparse::csr::{Csr, Offsets};

use super::drift;
use super::facet_rows::FacetRows;
use super::kernels::{Assembled, AssemblyKernels, AssemblyProblem, DeviceState};
use super::nonzero;
use super::pattern::{self as device_pattern, Incidence};
use super::sparsity::{Sparsity, pattern};
use crate::FemError;
use crate::constraints::Constraints;
use crate::forms::{ChunkScratch, Coefficient, CudaForm, CudaFormData, OPERATIONS, State, for_every_form};

/// The header of linear elements.
pub const ELEMENT: Header = Header { name: "element.cuh", text: include_str!("element.cuh") };

/// The header of kernels with a thread per row.
pub const ROWS: Header = Header { name: "rows.cuh", text: include_str!("rows.cuh") };

static ASSEMBLY: Program =
    Program { name: "assembly", source: include_str!("assembly.cu"), headers: &[OPERATIONS, ELEMENT, ROWS] };

/// Threads per block; for `assembly_cells` as in the kernel.
const THREADS: u32 = 128;

type Cells<T, O> = (
    Write<T>,
    Write<f64>,
    Write<f64>,
    Write<u32>,
    Read<O>,
    Read<u32>,
    Read<u32>,
    Read<u32>,
    Read<u32>,
    Read<f64>,
    u64,
    Structure,
);
type Facets<T, O> =
    (Write<T>, Write<f64>, Write<f64>, Read<O>, Read<u32>, Read<u32>, Read<u32>, Read<u32>, Read<f64>, u64);
type Finish<T, O> = (Write<T>, Write<f64>, Write<f64>, Read<O>, Read<u32>, u64, Structure);

fn program<T: Scalar, O: Element>(n_corners: usize, form: &CudaForm<'_>) -> Specialisation {
    ASSEMBLY
        .of::<T>()
        .define("FEMTILE_OFFSET", O::C_NAME)
        .define("FEMTILE_CORNERS", n_corners)
        .header("form.cuh", form.text())
}

/// Returns the programs that assemble a form with the coefficients σ, λ and f on triangles or tetrahedra. If
/// the form has no kernel, these are only the programs that find the sparsity pattern.
pub fn programs(kind: CellKind, [sigma, lambda, source]: [&Coefficient; 3]) -> Vec<Specialisation> {
    let form = CudaForm::new(kind.dimension(), sigma, lambda, source);
    let of_form = form.map(|form| program::<f64, u32>(kind.n_nodes(), &form));
    [scan::cuda_program(), device_pattern::program(kind.n_nodes())].into_iter().chain(of_form).collect()
}

/// Returns programs for coefficients of every kind, in two and three dimensions, for checks that compile them.
pub fn specialisations() -> Vec<Specialisation> {
    let mut programs = Vec::new();
    for_every_form(|k, n_corners, form| {
        programs.push(program::<f64, u32>(n_corners, form));
        programs.push(match k % 2 {
            0 => program::<f32, u32>(n_corners, form),
            _ => program::<f64, u64>(n_corners, form),
        });
    });
    programs.extend(device_pattern::specialisations());
    programs.extend(nonzero::specialisations());
    programs.extend(drift::specialisations());
    programs
}

impl<T: Scalar> AssemblyKernels<T> for Cuda {
    type RefillData = nonzero::RefillData;

    fn prepare_refill(
        &self,
        mesh: &Mesh,
        pattern: &Arc<Sparsity>,
        places: EntryPositions,
    ) -> Result<nonzero::RefillData, FemError> {
        nonzero::RefillData::new(self, mesh, pattern.clone(), places)
    }

    fn load(
        &self,
        refill_data: &mut nonzero::RefillData,
        problem: &AssemblyProblem<'_>,
    ) -> Result<(), FemError> {
        refill_data.load(self, problem)
    }

    fn load_conditions(
        &self,
        refill_data: &mut nonzero::RefillData,
        problem: &AssemblyProblem<'_>,
    ) -> Result<(), FemError> {
        refill_data.load_conditions(problem)
    }

    fn queue<V: Scalar>(
        &self,
        refill_data: &mut nonzero::RefillData,
        at: (&AssemblyProblem<'_>, DeviceState<'_, Self>),
        values: &mut BufferMut<'_, V, Self>,
        rhs: &mut Buffer<T, Self>,
    ) -> Result<(), FemError> {
        refill_data.queue(self, at, values, rhs)
    }

    fn check<V: Scalar>(
        &self,
        refill_data: &mut nonzero::RefillData,
        at: (&AssemblyProblem<'_>, DeviceState<'_, Self>),
        values: &mut BufferMut<'_, V, Self>,
        rhs: &mut Buffer<T, Self>,
    ) -> Result<(), FemError> {
        refill_data.check(at, values, rhs)
    }

    fn refill_bytes(&self, refill_data: &nonzero::RefillData) -> usize {
        refill_data.bytes()
    }

    fn unrounded(
        &self,
        refill_data: &nonzero::RefillData,
        rhs: &Buffer<T, Self>,
    ) -> Result<Vec<f64>, FemError> {
        refill_data.unrounded(rhs)
    }

    fn assemble_system(&self, problem: &AssemblyProblem<'_>) -> Result<Assembled<T, Self>, FemError> {
        let form = &problem.coefficients.form;
        let dimension = form.mesh.dimension();
        if let Some(form) = CudaForm::new(dimension, form.sigma, form.lambda, form.source)
            && let Some(assembled) = assemble(self, problem, &form)?
        {
            return Ok(assembled);
        }
        let host: Assembled<T, Cpu> = Cpu::of_current_pool()?.assemble_system(problem)?;
        let matrix = host.matrix.copy_to(self)?;
        Ok(Assembled { matrix, rhs: host.rhs })
    }
}

/// Assembles the system; none if the GPU reports a bad cell that is sound for the host, or the mesh is too large for its
/// numbers.
fn assemble<T: Scalar>(
    device: &Cuda,
    problem: &AssemblyProblem<'_>,
    form: &CudaForm<'_>,
) -> Result<Option<Assembled<T, Cuda>>, FemError> {
    let mesh = problem.coefficients.mesh;
    device.prepare(vec![program::<T, u32>(mesh.kind.n_nodes(), form)]);
    let Some(incidence) = Incidence::new(device, mesh)? else { return Ok(None) };
    let input = Input::new(device, problem, form, &incidence)?;
    problem.go_on(0.5)?;
    let mut out = Output::new(device, problem)?;
    let n = mesh.n_nodes();
    let matrix = match incidence.pattern()? {
        Some([offsets, columns]) => {
            let values = fill::<T, u32>(&input, &mut out, &offsets, &columns)?;
            // SAFETY: offsets are running sums of the columns of rows, which are nodes and ascend.
            unsafe { Csr::from_kernels(n, offsets, columns, values) }?
        }
        None => {
            let (_, Sparsity { offsets, columns }) = pattern(mesh)?;
            Csr::from_pattern(device, n, offsets, columns, |offsets, columns| match offsets {
                Offsets::Narrow(offsets) => fill::<T, u32>(&input, &mut out, offsets, columns),
                Offsets::Wide(offsets) => fill::<T, u64>(&input, &mut out, offsets, columns),
            })?
        }
    };
    let first_bad = out.bad.to_host()?[0];
    if first_bad != u32::MAX {
        first_error(problem, State::default(), first_bad)?;
        return Ok(None);
    }
    problem.go_on(1.0)?;
    Ok(Some(Assembled { matrix, rhs: out.rhs.to_host()? }))
}

/// Returns the error of a cell in a state, if the host finds any.
pub fn first_error(problem: &AssemblyProblem<'_>, state: State<'_>, cell: u32) -> Result<(), FemError> {
    let coefficients = &problem.coefficients;
    let mesh = coefficients.mesh;
    coefficients.eval(&mut coefficients.start_chunk(), &[cell], state, &mut ChunkScratch::default())?;
    let nodes = mesh.cell(cell as usize).iter();
    let corners: Vec<[f64; 3]> = nodes.map(|&node| mesh.points[node as usize]).collect();
    let measure = Affine::simplex(&corners).measure;
    if super::measure_is_sound(measure) {
        return Ok(());
    }
    Err(super::degenerate(mesh, cell as usize, measure))
}

/// Input of the kernels besides the pattern.
struct Input<'a> {
    device: &'a Cuda,
    problem: &'a AssemblyProblem<'a>,
    form: &'a CudaForm<'a>,
    n_corners: usize,
    n_rows: usize,
    incidence: &'a Incidence,
    points: Buffer<f64, Cuda>,
    data: CudaFormData,
}

/// Output of the kernels besides the values of the matrix.
struct Output {
    rhs: Buffer<f64, Cuda>,
    /// The first bad cell.
    bad: Buffer<u32, Cuda>,
}

impl Output {
    fn new(device: &Cuda, problem: &AssemblyProblem<'_>) -> Result<Self, FemError> {
        let n_rows = problem.coefficients.mesh.n_nodes();
        Ok(Self { rhs: Buffer::zeros(device, n_rows)?, bad: Buffer::from_host(device, &[u32::MAX])? })
    }
}

impl<'a> Input<'a> {
    fn new(
        device: &'a Cuda,
        problem: &'a AssemblyProblem<'a>,
        form: &'a CudaForm<'a>,
        incidence: &'a Incidence,
    ) -> Result<Self, FemError> {
        let mesh = problem.coefficients.mesh;
        Ok(Self {
            device,
            problem,
            form,
            n_corners: mesh.kind.n_nodes(),
            n_rows: mesh.n_nodes(),
            incidence,
            points: Buffer::from_host(device, mesh.points.as_flattened())?,
            data: form.upload(device, mesh)?,
        })
    }
}

/// A system during assembly: the pattern and the sums so far.
struct Sums<'a, T: Scalar, O: Element> {
    program: Specialisation,
    offsets: &'a Buffer<O, Cuda>,
    columns: &'a Buffer<u32, Cuda>,
    values: Buffer<T, Cuda>,
    /// The sums in f64; none if the values are f64 and hold the sums.
    scratch: Buffer<f64, Cuda>,
    out: &'a mut Output,
}

/// Computes the values of the matrix; writes the right side and other results to `out`.
fn fill<T: Scalar, O: Element>(
    input: &Input<'_>,
    out: &mut Output,
    offsets: &Buffer<O, Cuda>,
    columns: &Buffer<u32, Cuda>,
) -> Result<Buffer<T, Cuda>, FemError> {
    let device = input.device;
    let n_scratch = if size_of::<T>() == size_of::<f64>() { 0 } else { columns.len() };
    let mut sums = Sums {
        program: program::<T, O>(input.n_corners, input.form),
        offsets,
        columns,
        values: Buffer::zeros(device, columns.len())?,
        scratch: Buffer::zeros(device, n_scratch)?,
        out,
    };
    sums.add_cells(input)?;
    sums.add_facets(device, &FacetRows::new(&input.problem.facet_terms))?;
    sums.finish(device, input.n_rows, &Given::new(device, &input.problem.constraints)?)?;
    Ok(sums.values)
}

impl<T: Scalar, O: Element> Sums<'_, T, O> {
    fn add_cells(&mut self, input: &Input<'_>) -> Result<(), FemError> {
        let arguments = (
            self.values.write(),
            self.scratch.write(),
            self.out.rhs.write(),
            self.out.bad.write(),
            self.offsets.read(),
            self.columns.read(),
            input.incidence.starts.read(),
            input.incidence.list.read(),
            input.incidence.cells.read(),
            input.points.read(),
            input.n_rows as u64,
            input.data.argument(),
        );
        let kernel = Kernel::<Cells<T, O>>::new("assembly_cells");
        let launch = Launch::over(input.n_rows, THREADS);
        // SAFETY: lists, cells and pattern belong to one mesh, and every array has an entry per row, non-zero, cell or
        // node; the fields of the form have one per cell.
        Ok(unsafe { input.device.launch(&self.program, &kernel, launch, arguments) }?)
    }

    fn add_facets(&mut self, device: &Cuda, facets: &FacetRows) -> Result<(), FemError> {
        let rows = Buffer::from_host(device, &facets.rows)?;
        let begin = Buffer::from_host(device, &facets.begin)?;
        let columns = Buffer::from_host(device, &facets.columns)?;
        let values = Buffer::from_host(device, &facets.values)?;
        let arguments = (
            self.values.write(),
            self.scratch.write(),
            self.out.rhs.write(),
            self.offsets.read(),
            self.columns.read(),
            rows.read(),
            begin.read(),
            columns.read(),
            values.read(),
            facets.rows.len() as u64,
        );
        let kernel = Kernel::<Facets<T, O>>::new("assembly_facets");
        let launch = Launch::over(facets.rows.len(), THREADS);
        // SAFETY: corners of a facet are corners of its cell, so rows and columns are in the pattern, and each row
        // occurs once.
        Ok(unsafe { device.launch(&self.program, &kernel, launch, arguments) }?)
    }

    fn finish(&mut self, device: &Cuda, n_rows: usize, given: &Given) -> Result<(), FemError> {
        let arguments = (
            self.values.write(),
            self.scratch.write(),
            self.out.rhs.write(),
            self.offsets.read(),
            self.columns.read(),
            n_rows as u64,
            given.argument(),
        );
        let kernel = Kernel::<Finish<T, O>>::new("assembly_finish");
        // SAFETY: every array has an entry per row or non-zero, and the tables cover every node.
        Ok(unsafe { device.launch(&self.program, &kernel, Launch::over(n_rows, THREADS), arguments) }?)
    }
}

/// The tables of constraints on a GPU.
pub(super) struct Given {
    mask: Buffer<u64, Cuda>,
    rank: Buffer<u32, Cuda>,
    values: Buffer<f64, Cuda>,
}

impl Given {
    /// Copies the tables to a device.
    pub fn new(device: &Cuda, constraints: &Constraints) -> Result<Self, FemError> {
        let (mask, rank) = constraints.tables();
        Ok(Self {
            mask: Buffer::from_host(device, mask)?,
            rank: Buffer::from_host(device, rank)?,
            values: Buffer::from_host(device, constraints.values())?,
        })
    }

    /// Replaces the tables, in the same memory if the sizes are equal.
    pub fn assign(&mut self, constraints: &Constraints) -> Result<(), FemError> {
        let (mask, rank) = constraints.tables();
        self.mask.assign(mask)?;
        self.rank.assign(rank)?;
        Ok(self.values.assign(constraints.values())?)
    }

    /// Returns `struct Given` of the kernels.
    pub fn argument(&self) -> Structure {
        let (rank, values) = (self.rank.memory().address(), self.values.memory().address());
        Structure(vec![self.mask.memory().address(), rank, values])
    }
}

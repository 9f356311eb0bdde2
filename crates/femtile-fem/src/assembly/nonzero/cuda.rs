use std::sync::Arc;

use femtile_device::cuda::{
    COPY_HEADER, Header, Kernel, Launch, Program, RECIPROCAL_HEADER, Specialisation, Structure, Write,
};
use femtile_device::{Buffer, BufferMut, Cpu, Cuda, Element, Scalar};
use femtile_mesh::{Mesh, Patches};
use femtile_sparse::EntryPositions;

use super::lists::{Listing, Lists, Size, Values, Workspace};
use crate::FemError;
use crate::assembly::cpu;
use crate::assembly::cuda::{ELEMENT, Given, first_error};
use crate::assembly::drift::Drift;
use crate::assembly::facet_rows::{FacetRows, RIGHT_SIDE};
use crate::assembly::kernels::{AssemblyKernels, AssemblyProblem, DeviceState};
use crate::assembly::sparsity::Sparsity;
use crate::constraints::Constraints;
use crate::forms::{
    CudaForm, CudaFormData, Evaluated, OPERATIONS, State, for_every_form, for_every_linearization,
};
use crate::incidence::Incidence;

static NONZEROS: Program =
    Program { name: "assembly_nonzeros", source: include_str!("nonzero.cu"), headers: &HEADERS };
const HEADERS: [Header; 4] = [OPERATIONS, ELEMENT, COPY_HEADER, RECIPROCAL_HEADER];

type Nonzeros<T, V> =
    (Write<V>, Write<T>, Write<f64>, Write<u32>, Structure, Structure, Structure, Structure, u32, u32);

/// Threads per block, at least the number of rows of a patch; with 64 rows, four threads share the entries of
/// a row in a slice.
const THREADS: u32 = 256;

/// Returns the least number of blocks per multiprocessor, which limits registers; with 64 rows per patch shared memory
/// allows four. Forms that take more registers have fewer, so that none spills.
fn blocks_of(form: &CudaForm<'_>) -> usize {
    if form.is_evaluated_by_point() {
        1
    } else if form.has_tensors() {
        if form.reaction_and_source() == [Evaluated::Never; 2] { 3 } else { 2 }
    } else {
        4
    }
}

/// Candidates for rows per patch; the largest that fits shared memory is taken.
const PATCHES: [usize; 4] = [64, 32, 16, 8];
/// Static shared memory of a block.
const STATIC_BYTES: usize = 16;
/// Marks a row without facet terms.
const NOTHING: u32 = u32::MAX;

/// Compile-time data of the kernel besides its source.
struct FormText {
    /// The header `form.cuh`.
    text: String,
    reads_cells: bool,
    /// Whether there is a reaction or a source.
    sums_rows: bool,
    blocks: usize,
}

impl FormText {
    fn new(form: &CudaForm<'_>) -> Self {
        let sums_rows = form.reaction_and_source() != [Evaluated::Never; 2];
        Self { text: form.text().into(), reads_cells: form.reads_cells(), sums_rows, blocks: blocks_of(form) }
    }
}

fn program<T: Scalar, V: Scalar>(n_corners: usize, lanes: usize, form: &FormText) -> Specialisation {
    NONZEROS
        .of::<T>()
        .define("FEMTILE_V", V::C_NAME)
        .define("FEMTILE_CORNERS", n_corners)
        .define("FEMTILE_THREADS", THREADS)
        .define("FEMTILE_BLOCKS", form.blocks)
        .define("FEMTILE_LANES", lanes)
        .header("form.cuh", form.text.as_str())
}

/// Returns programs for coefficients of every kind, in two and three dimensions, for checks that compile them.
pub(in crate::assembly) fn specialisations() -> Vec<Specialisation> {
    let mut programs = Vec::new();
    for_every_form(|k, n_corners, form| {
        let (form, lanes) = (FormText::new(form), [0, 32, 64][k % 3]);
        programs.push(program::<f64, f64>(n_corners, lanes, &form));
        programs.push(match k % 2 {
            0 => program::<f32, f32>(n_corners, lanes, &form),
            _ => program::<f64, f32>(n_corners, lanes, &form),
        });
    });
    for_every_linearization(|n_corners, form| {
        programs.push(program::<f64, f64>(n_corners, 0, &FormText::new(form)));
    });
    programs
}

/// Data of a mesh kept between refills: patches, if they fit the GPU, and data for the host.
pub struct RefillData {
    pattern: Arc<Sparsity>,
    places: EntryPositions,
    patches: Option<OnGpu>,
    drift: Option<Drift>,
    host: Option<cpu::RefillData>,
    /// The loaded form, if the GPU assembles it.
    form: Option<FormText>,
}

impl RefillData {
    pub(in crate::assembly) fn new(
        device: &Cuda,
        mesh: &Mesh,
        pattern: Arc<Sparsity>,
        places: EntryPositions,
    ) -> Result<Self, FemError> {
        let patches = OnGpu::new(device, mesh, &pattern, &places)?;
        Ok(Self { pattern, places, patches, drift: None, host: None, form: None })
    }

    pub(in crate::assembly) fn load(
        &mut self,
        device: &Cuda,
        problem: &AssemblyProblem<'_>,
    ) -> Result<(), FemError> {
        let form = &problem.coefficients.form;
        let (dimension, coefficients) = (form.mesh.dimension(), [form.sigma, form.lambda, form.source]);
        let form = match problem.slopes {
            // A drift is added to consecutive rows.
            Some(_) if problem.coefficients.has_drift() && self.places.lanes().is_some() => None,
            Some(slopes) => CudaForm::linearized(dimension, coefficients, slopes),
            None => CudaForm::new(dimension, form.sigma, form.lambda, form.source),
        };
        self.form = None;
        if problem.coefficients.has_drift() && self.drift.is_none() {
            self.drift = Some(Drift::new(device, problem.coefficients.mesh, &self.pattern)?);
        }
        if let (Some(patches), Some(form)) = (&mut self.patches, form)
            && patches.load(device, problem, &form, (&self.pattern, &self.places))?
        {
            self.form = Some(FormText::new(&form));
        }
        Ok(())
    }

    pub(in crate::assembly) fn load_conditions(
        &mut self,
        problem: &AssemblyProblem<'_>,
    ) -> Result<(), FemError> {
        match (&mut self.patches, &self.form) {
            (Some(patches), Some(_)) => patches.load_conditions(problem, &self.pattern, &self.places),
            _ => Ok(()),
        }
    }

    pub(in crate::assembly) fn queue<T: Scalar, V: Scalar>(
        &mut self,
        device: &Cuda,
        at: (&AssemblyProblem<'_>, DeviceState<'_, Cuda>),
        values: &mut BufferMut<'_, V, Cuda>,
        rhs: &mut Buffer<T, Cuda>,
    ) -> Result<(), FemError> {
        match (&mut self.patches, &self.form) {
            (Some(patches), Some(form)) => {
                let drift = self.drift.as_ref().filter(|_| at.0.coefficients.has_drift());
                patches.launch(device, at, (form, drift), values, rhs)
            }
            _ => self.fill_on_host(at, values, rhs),
        }
    }

    /// Waits for the GPU; if it reports a bad cell that is sound for the host, the host computes the values.
    pub(in crate::assembly) fn check<T: Scalar, V: Scalar>(
        &mut self,
        at: (&AssemblyProblem<'_>, DeviceState<'_, Cuda>),
        values: &mut BufferMut<'_, V, Cuda>,
        rhs: &mut Buffer<T, Cuda>,
    ) -> Result<(), FemError> {
        let (problem, state) = at;
        if let (Some(patches), Some(_)) = (&mut self.patches, &self.form) {
            let first_bad = patches.bad.to_host()?[0];
            if first_bad == u32::MAX {
                return Ok(());
            }
            patches.bad.upload(&[u32::MAX])?;
            let unknown = unknown_on_host(state)?;
            first_error(problem, State { time: state.time, unknown: &unknown }, first_bad)?;
            self.fill_on_host(at, values, rhs)?;
        }
        Ok(())
    }

    /// Returns the bytes of lists that the kernel reads for the loaded form, inside the domain.
    pub(in crate::assembly) fn bytes(&self) -> usize {
        match (&self.patches, &self.form) {
            (Some(patches), Some(form)) => patches.lists.bytes(form, &patches.sizes),
            _ => 0,
        }
    }

    pub(in crate::assembly) fn unrounded<T: Scalar>(
        &self,
        rhs: &Buffer<T, Cuda>,
    ) -> Result<Vec<f64>, FemError> {
        Ok(match (&self.host, &self.patches) {
            (Some(host), _) if self.form.is_none() => host.rhs.clone(),
            (_, Some(patches)) if size_of::<T>() < size_of::<f64>() => patches.unrounded.to_host()?,
            _ => rhs.to_host()?.into_iter().map(T::to_f64).collect(),
        })
    }

    /// Assembles on the host and copies the values to the GPU.
    fn fill_on_host<T: Scalar, V: Scalar>(
        &mut self,
        (problem, state): (&AssemblyProblem<'_>, DeviceState<'_, Cuda>),
        values: &mut BufferMut<'_, V, Cuda>,
        rhs: &mut Buffer<T, Cuda>,
    ) -> Result<(), FemError> {
        self.form = None;
        let (cpu, mesh) = (Cpu::of_current_pool()?, problem.coefficients.mesh);
        let host = match &mut self.host {
            Some(host) => host,
            none => none.insert(AssemblyKernels::<T>::prepare_refill(
                &cpu,
                mesh,
                &self.pattern,
                self.places.clone(),
            )?),
        };
        let mut on_host = vec![V::ZERO; values.len()];
        let unknown = unknown_on_host(state)?;
        let state = State { time: state.time, unknown: &unknown };
        cpu.install(|| host.fill(&cpu, (problem, state), &mut on_host))?;
        values.upload(&on_host)?;
        let rounded: Vec<T> = host.rhs.iter().map(|&b| T::from_f64(b)).collect();
        Ok(rhs.upload(&rounded)?)
    }
}

fn unknown_on_host(state: DeviceState<'_, Cuda>) -> Result<Vec<f64>, FemError> {
    Ok(state.unknown.map(Buffer::to_host).transpose()?.unwrap_or_default())
}

/// Patches of a mesh on a GPU, and the loaded problem.
struct OnGpu {
    n_corners: usize,
    lanes: usize,
    /// Sizes of [`Lists`].
    sizes: Vec<Size>,
    /// The number of each node among the rows of all patches.
    row_of_node: Vec<u32>,
    lists: ListBuffers,
    unrounded: Buffer<f64, Cuda>,
    bad: Buffer<u32, Cuda>,
    form: Option<CudaFormData>,
    given: Given,
    facets: Facets,
    workspace: Workspace,
}

/// [`Lists`] on a GPU.
struct ListBuffers {
    heads: Buffer<u32, Cuda>,
    nodes: Buffer<u32, Cuda>,
    cells: Buffer<u32, Cuda>,
    columns: Buffer<u16, Cuda>,
    sheets: Buffer<u32, Cuda>,
}

impl ListBuffers {
    fn new(device: &Cuda, lists: &Lists) -> Result<Self, FemError> {
        Ok(Self {
            heads: Buffer::from_host(device, &lists.heads)?,
            nodes: Buffer::from_host(device, &lists.nodes)?,
            cells: Buffer::from_host(device, &lists.cells)?,
            columns: Buffer::from_host(device, &lists.columns)?,
            sheets: Buffer::from_host(device, &lists.sheets)?,
        })
    }

    /// Returns `struct Lists` of the kernel.
    fn argument(&self) -> Structure {
        Structure(vec![
            address(&self.heads),
            address(&self.nodes),
            address(&self.cells),
            address(&self.columns),
            address(&self.sheets),
        ])
    }

    /// Returns the bytes that the kernel reads for a form, except columns, which are read only for constrained
    /// unknowns.
    fn bytes(&self, form: &FormText, sizes: &[Size]) -> usize {
        let cells = if form.reads_cells { self.cells.len() } else { 0 };
        let packs: usize = sizes.iter().map(|size| size.packs[usize::from(form.sums_rows)]).sum();
        4 * (self.heads.len() + cells) + 16 * packs
    }
}

/// Facet terms: for each row of a patch its index among rows with facets, and the entries of these rows.
struct Facets {
    of_rows: Buffer<u32, Cuda>,
    begin: Buffer<u32, Cuda>,
    entries: Buffer<u32, Cuda>,
    values: Buffer<f64, Cuda>,
}

/// Returns the shared memory available per block.
fn most_shared_bytes(device: &Cuda) -> usize {
    device.properties().shared_bytes_per_block() - STATIC_BYTES
}

fn address<E: Element>(buffer: &Buffer<E, Cuda>) -> u64 {
    buffer.memory().address()
}

impl Facets {
    fn new(device: &Cuda) -> Result<Self, FemError> {
        Ok(Self {
            of_rows: Buffer::zeros(device, 0)?,
            begin: Buffer::zeros(device, 0)?,
            entries: Buffer::zeros(device, 0)?,
            values: Buffer::zeros(device, 0)?,
        })
    }

    /// Returns `struct Facets` of the kernel.
    fn argument(&self) -> Structure {
        let of_rows = if self.of_rows.is_empty() { 0 } else { address(&self.of_rows) };
        Structure(vec![of_rows, address(&self.begin), address(&self.entries), address(&self.values)])
    }
}

impl OnGpu {
    /// Creates patches that fit the GPU; none if a node has too many cells.
    fn new(
        device: &Cuda,
        mesh: &Mesh,
        pattern: &Sparsity,
        places: &EntryPositions,
    ) -> Result<Option<Self>, FemError> {
        let incidence = Incidence::new(mesh.n_nodes(), &mesh.cells, mesh.kind.n_nodes());
        let listing = Listing { mesh, incidence: &incidence, pattern, places };
        let n_corners = mesh.kind.n_nodes();
        let n_edges = n_corners * (n_corners - 1) / 2;
        let most = Values { edges: n_edges, reactions: n_corners, loads: n_corners, shares: 0 };
        let fits = |lists: &Lists| Workspace::of(&most, &lists.sizes).bytes() <= most_shared_bytes(device);
        let lists = PATCHES
            .iter()
            .find_map(|&size| Lists::new(&listing, &Patches::by_bisection(mesh, size)).filter(fits));
        lists.map(|lists| Self::upload(device, mesh, lists, places.lanes().unwrap_or(0))).transpose()
    }

    fn upload(device: &Cuda, mesh: &Mesh, lists: Lists, lanes: usize) -> Result<Self, FemError> {
        let mut row_of_node = vec![0; mesh.n_nodes()];
        let (mut nodes, mut first) = (lists.nodes.as_slice(), 0);
        for size in &lists.sizes {
            let rows = nodes[..size.n_rows].iter().zip(first..);
            rows.for_each(|(&node, row)| row_of_node[node as usize] = row);
            nodes = &nodes[size.n_nodes..];
            first += size.n_rows as u32;
        }
        let n = mesh.n_nodes();
        Ok(Self {
            n_corners: mesh.kind.n_nodes(),
            lanes,
            row_of_node,
            lists: ListBuffers::new(device, &lists)?,
            sizes: lists.sizes,
            unrounded: Buffer::zeros(device, n)?,
            bad: Buffer::from_host(device, &[u32::MAX])?,
            form: None,
            given: Given::new(device, &Constraints::none(n))?,
            facets: Facets::new(device)?,
            workspace: Workspace::default(),
        })
    }

    /// Loads a problem to the GPU; returns false if its element values exceed shared memory.
    fn load(
        &mut self,
        device: &Cuda,
        problem: &AssemblyProblem<'_>,
        form: &CudaForm<'_>,
        (pattern, places): (&Sparsity, &EntryPositions),
    ) -> Result<bool, FemError> {
        let [reactions, loads] = form.reaction_and_source().map(|when| when.n_values(self.n_corners));
        let shares = usize::from(form.reaction_and_source().contains(&Evaluated::Once));
        let values = Values { edges: self.n_corners * (self.n_corners - 1) / 2, reactions, loads, shares };
        self.workspace = Workspace::of(&values, &self.sizes);
        if self.workspace.bytes() > most_shared_bytes(device) {
            return Ok(false);
        }
        let mesh = problem.coefficients.mesh;
        match &mut self.form {
            Some(data) => form.assign(data, device, mesh)?,
            none => *none = Some(form.upload(device, mesh)?),
        }
        self.load_conditions(problem, pattern, places)?;
        Ok(true)
    }

    fn load_conditions(
        &mut self,
        problem: &AssemblyProblem<'_>,
        pattern: &Sparsity,
        places: &EntryPositions,
    ) -> Result<(), FemError> {
        self.given.assign(&problem.constraints)?;
        self.load_facets(problem, pattern, places)
    }

    fn load_facets(
        &mut self,
        problem: &AssemblyProblem<'_>,
        pattern: &Sparsity,
        places: &EntryPositions,
    ) -> Result<(), FemError> {
        let found = FacetRows::new(&problem.facet_terms);
        let mut of_rows = vec![NOTHING; if found.rows.is_empty() { 0 } else { self.row_of_node.len() }];
        let mut entries = Vec::with_capacity(found.columns.len());
        let mut columns = Vec::new();
        for (i, &node) in found.rows.iter().enumerate() {
            of_rows[self.row_of_node[node as usize] as usize] = i as u32;
            columns.clear();
            columns.extend_from_slice(pattern.row(node as usize));
            places.order(&mut columns);
            for &column in &found.columns[found.begin[i] as usize..found.begin[i + 1] as usize] {
                let entry = columns.iter().position(|&other| other == column);
                entries.push(entry.map_or(RIGHT_SIDE, |entry| entry as u32));
            }
        }
        self.facets.of_rows.assign(&of_rows)?;
        self.facets.begin.assign(&found.begin)?;
        self.facets.entries.assign(&entries)?;
        Ok(self.facets.values.assign(&found.values)?)
    }

    /// Queues the kernel for the loaded problem.
    fn launch<T: Scalar, V: Scalar>(
        &mut self,
        device: &Cuda,
        (problem, state): (&AssemblyProblem<'_>, DeviceState<'_, Cuda>),
        (form, drift): (&FormText, Option<&Drift>),
        values: &mut BufferMut<'_, V, Cuda>,
        rhs: &mut Buffer<T, Cuda>,
    ) -> Result<(), FemError> {
        let Some(data) = &self.form else { return Ok(()) };
        let argument = data.argument_at(state.time, state.unknown);
        let rounds = size_of::<T>() < size_of::<f64>();
        let given =
            if problem.constraints.is_empty() { Structure(vec![0; 3]) } else { self.given.argument() };
        let arguments = (
            values.write(),
            rhs.write(),
            if rounds { self.unrounded.write() } else { Write::none() },
            self.bad.write(),
            self.lists.argument(),
            self.facets.argument(),
            given.clone(),
            argument.clone(),
            self.workspace.values as u32,
            self.workspace.front as u32,
        );
        let kernel = Kernel::<Nonzeros<T, V>>::new("assembly_nonzeros");
        let launch = Launch::line(self.sizes.len(), THREADS).shared(self.workspace.bytes());
        let program = program::<T, V>(self.n_corners, self.lanes, form);
        // SAFETY: lists and places belong to the mesh and the matrix, whose sizes were compared; codes, nodes and
        // entries are numbers of their patch, and shared memory holds the largest one. The fields of the form have a
        // value per cell, the tables of constraints one per node.
        unsafe { device.launch(&program, &kernel, launch, arguments) }?;
        match drift {
            Some(drift) => drift.queue(device, (&form.text, argument), given, (values, rhs), &mut self.bad),
            None => Ok(()),
        }
    }
}

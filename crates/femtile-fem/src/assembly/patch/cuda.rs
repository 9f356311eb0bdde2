//! The arrays of patches on a GPU, and the launches of their kernels.

use femtile_device::cuda::{Header, Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Element, Scalar};
use femtile_mesh::Mesh;
use femtile_sparse::StoredMatrix;
use femtile_sparse::csr::{Csr, Offsets};

use super::lists::Lists;
use crate::FemError;
use crate::assembly::cuda::ELEMENT;
use crate::forms::{CudaForm, CudaFormData, OPERATIONS, for_every_form};

static PATCHES: Program =
    Program { name: "assembly_patches", source: include_str!("patch.cu"), headers: &HEADERS };
const HEADERS: [Header; 2] = [OPERATIONS, ELEMENT];

/// Threads of a block at most: no more than the registers of an element of any form allow.
const THREADS: usize = 384;
/// Threads of a warp, of which a block has whole ones.
const WARP: usize = 32;
/// Threads of a block that adds rows on rims, and how many of them share a row; as the kernel has it.
const RIM_THREADS: u32 = 256;
const RIM_LANES: usize = 8;

type Assemble<T> = (Write<T>, Write<T>, Write<u32>, Structure, Structure, Structure, Structure);
type AddRim<T> = (Write<T>, Write<T>, Structure, Structure, Read<u32>, u64);

fn program<T: Scalar, O: Element>(n_corners: usize, form: &str) -> Specialisation {
    PATCHES
        .of::<T>()
        .define("FEMTILE_OFFSET", O::C_NAME)
        .define("FEMTILE_CORNERS", n_corners)
        .define("FEMTILE_THREADS", THREADS)
        .header("form.cuh", form)
}

/// Programs for coefficients of every kind, in two and three dimensions, for checks that compile them.
pub(in crate::assembly) fn specialisations() -> Vec<Specialisation> {
    let mut programs = Vec::new();
    for_every_form(|k, n_corners, form| {
        programs.push(program::<f64, u32>(n_corners, form.text()));
        programs.push(match k % 2 {
            0 => program::<f32, u32>(n_corners, form.text()),
            _ => program::<f64, u64>(n_corners, form.text()),
        });
    });
    programs
}

/// Whether each patch of some lists fits a block: a thread an element, its rows in shared memory.
pub(super) fn fits(device: &Cuda, lists: &Lists) -> bool {
    lists.most_elements() <= THREADS && lists.shared_bytes() <= device.properties().shared_bytes_per_block()
}

/// Patches of a mesh on a GPU, and the form that was loaded last.
pub(super) struct OnGpu {
    n_corners: usize,
    n_patches: usize,
    n_threads: u32,
    shared_bytes: usize,
    rows: Buffer<u32, Cuda>,
    elements: Buffer<u32, Cuda>,
    cells: Buffer<u32, Cuda>,
    corners: Buffer<u32, Cuda>,
    points: Buffer<f64, Cuda>,
    rim: Buffer<u32, Cuda>,
    /// What elements add to rows of other patches, `values_B` of the paper; zero between launches.
    rim_values: Buffer<f64, Cuda>,
    rim_rhs: Buffer<f64, Cuda>,
    bad: Buffer<u32, Cuda>,
    /// The header `form.cuh` and what it reads.
    form: Option<(String, CudaFormData)>,
}

impl OnGpu {
    /// Brings the lists of a mesh to a device.
    pub fn new(device: &Cuda, mesh: &Mesh, lists: &Lists) -> Result<Self, FemError> {
        Ok(Self {
            n_corners: mesh.kind.n_nodes(),
            n_patches: lists.n_patches(),
            n_threads: lists.most_elements().next_multiple_of(WARP) as u32,
            shared_bytes: lists.shared_bytes(),
            rows: Buffer::from_host(device, &lists.rows)?,
            elements: Buffer::from_host(device, &lists.elements)?,
            cells: Buffer::from_host(device, &lists.cells)?,
            corners: Buffer::from_host(device, &lists.corners)?,
            points: Buffer::from_vec(device, lists.coordinates(mesh))?,
            rim: Buffer::from_host(device, &lists.rim)?,
            rim_values: Buffer::zeros(device, lists.columns.len())?,
            rim_rhs: Buffer::zeros(device, mesh.n_nodes())?,
            bad: Buffer::from_host(device, &[u32::MAX])?,
            form: None,
        })
    }

    /// Brings the coefficients of a form to the GPU; false where it is too large for a kernel.
    pub fn load(&mut self, device: &Cuda, form: &crate::Form<'_>) -> Result<bool, FemError> {
        let mesh = form.mesh;
        let Some(form) = CudaForm::new(mesh.dimension(), form.sigma, form.lambda, form.source) else {
            self.form = None;
            return Ok(false);
        };
        let data = match self.form.take() {
            Some((_, mut data)) => {
                form.assign(&mut data, device, mesh)?;
                data
            }
            None => form.upload(device, mesh)?,
        };
        self.form = Some((form.text().into(), data));
        Ok(true)
    }

    /// Queues both kernels for the form that was loaded.
    pub fn queue<T: Scalar>(
        &mut self,
        upper: &mut Csr<T, Cuda>,
        rhs: &mut Buffer<T, Cuda>,
    ) -> Result<(), FemError> {
        let values = upper.values_mut().write();
        match upper.offsets() {
            Offsets::Narrow(offsets) => self.launch(values, rhs, offsets, upper.columns()),
            Offsets::Wide(offsets) => self.launch(values, rhs, offsets, upper.columns()),
        }
    }

    fn launch<T: Scalar, O: Element>(
        &mut self,
        values: Write<T>,
        rhs: &mut Buffer<T, Cuda>,
        offsets: &Buffer<O, Cuda>,
        columns: &Buffer<u32, Cuda>,
    ) -> Result<(), FemError> {
        let Some((text, form)) = &self.form else { return Ok(()) };
        let device = self.rows.device().clone();
        let program = program::<T, O>(self.n_corners, text);
        let pattern = Structure(vec![address(offsets), address(columns)]);
        let rim = Structure(vec![address(&self.rim_values), address(&self.rim_rhs)]);
        let arguments = (
            values,
            rhs.write(),
            self.bad.write(),
            rim.clone(),
            pattern.clone(),
            self.patches(),
            form.argument(),
        );
        let kernel = Kernel::<Assemble<T>>::new("patch_assemble");
        let launch = Launch::line(self.n_patches, self.n_threads).shared(self.shared_bytes);
        // SAFETY: lists and pattern are those of one mesh; a block has a thread for each element of the
        // largest patch, and shared memory for its rows. The fields of the form have a value for each cell.
        unsafe { device.launch(&program, &kernel, launch, arguments) }?;
        let arguments = (values, rhs.write(), rim, pattern, self.rim.read(), self.rim.len() as u64);
        let kernel = Kernel::<AddRim<T>>::new("patch_add_rim");
        let launch = Launch::over(RIM_LANES * self.rim.len(), RIM_THREADS);
        // SAFETY: every array has an entry for each row or each entry of the matrix, and each row is listed
        // once.
        Ok(unsafe { device.launch(&program, &kernel, launch, arguments) }?)
    }

    /// `struct Patches` of the kernel.
    fn patches(&self) -> Structure {
        Structure(vec![
            address(&self.rows),
            address(&self.elements),
            address(&self.cells),
            address(&self.corners),
            address(&self.points),
            self.rim_rhs.len() as u64,
            self.cells.len() as u64,
        ])
    }

    /// Waits for the kernels; gives a cell that they found to be bad, the first, and forgets it.
    pub fn first_bad(&mut self) -> Result<Option<u32>, FemError> {
        let first = self.bad.to_host()?[0];
        if first == u32::MAX {
            return Ok(None);
        }
        self.bad.upload(&[u32::MAX])?;
        Ok(Some(first))
    }
}

fn address<E: Element>(buffer: &Buffer<E, Cuda>) -> u64 {
    buffer.memory().address()
}

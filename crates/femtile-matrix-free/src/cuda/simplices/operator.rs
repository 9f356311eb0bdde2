use std::sync::{Mutex, PoisonError};

use femtile_device::cuda::{Kernel, Launch, Read, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_fem::FemError;
use femtile_fem::tensor::FacetMatrix;
use femtile_linalg::hooks::{CudaHook, Hook};
use femtile_linalg::{LinalgError, LinearOperator, need};

use super::super::facets::Facets;
use super::super::operator::{Programs, THREADS, address};
use super::super::rows::{queue_constrained, queue_post};
use super::data::CudaSimplicesData;
use super::patches::Patches;
use super::variant::Variant;

type Apply<T> = (Write<T>, Write<T>, Read<T>, Structure, Structure);
type Sum<T> = (Write<T>, Read<T>, Read<u32>, Read<u32>, Read<u32>, u64, Structure);

/// The tangent of a form on triangles or tetrahedra of any degree on a GPU, $y = R'(u; x, \cdot)$, without a stored matrix.
///
/// $$ A = \sum_e R_e^\mathsf{T} B^\mathsf{T} D' B R_e $$
///
/// Constrained rows and columns are those of the identity. A block has a patch of cells, whose values lie in shared memory: each
/// unknown is read once a patch, and its sums over the cells have a fixed order. Sums of unknowns that several patches share are
/// stored separately and added by a second kernel, so products have the same bits in every run.
///
/// # Cost
/// Reads x, two bytes per cell and shape function, six per unknown of a patch and the numbers of the tangent, writes y; about 24 bytes
/// more per shared unknown and patch. Per cell and component $2 d n m$ multiplications and additions for n
/// shape functions and m points, or m polynomials if the tangent is constant in each cell.
pub struct CudaSimplices<T: Scalar> {
    device: Cuda,
    n_dofs: usize,
    n_cells: usize,
    variant: Variant,
    n_patches: usize,
    words: Buffer<u32, Cuda>,
    dofs: Buffer<u32, Cuda>,
    ends: Buffer<u16, Cuda>,
    places: Buffer<u16, Cuda>,
    numbers: Buffer<T, Cuda>,
    /// The tables, unless these are constants of the program.
    tables: Buffer<T, Cuda>,
    shares: Mutex<Buffer<T, Cuda>>,
    rows: Buffer<u32, Cuda>,
    begins: Buffer<u32, Cuda>,
    of_rows: Buffer<u32, Cuda>,
    constrained: Buffer<u32, Cuda>,
    facets: Option<Facets<T>>,
    bytes: usize,
    programs: Programs,
}

impl<T: Scalar> CudaSimplices<T> {
    /// Brings the data of an operator to a device, with matrices of facets whose unknowns are rows of the operator.
    ///
    /// # Errors
    /// [`FemError::Space`] if rows of facets cannot be numbered with 32 bits; errors of the device.
    ///
    /// # Panics
    /// If facets differ in size, or have unknowns outside the space.
    pub fn new(device: &Cuda, data: CudaSimplicesData<T>, facets: &[FacetMatrix]) -> Result<Self, FemError> {
        let CudaSimplicesData { n_dofs, n_cells, variant, patches, numbers, constrained } = data;
        device.prepare(variant.all::<T>());
        let components = variant.components;
        let n_rows = n_dofs * components;
        // Vectors are indexed by these without later checks.
        let is_row = |&row: &u32| (row as usize) < n_rows;
        assert!(facets.iter().all(|facet| facet.dofs.iter().all(is_row)), "unknowns of facets");
        let rows_of = |&dof: &u32| (0..components as u32).map(move |c| dof * components as u32 + c);
        let fixed: Vec<u32> = constrained.iter().flat_map(rows_of).collect();
        let facets = Facets::new(device, 1, facets, (&fixed, n_rows))?;
        let tables = match variant.has_constant_table() {
            true => Vec::new(),
            false => variant.table.entries.iter().map(|&entry| T::from_f64(entry)).collect(),
        };
        let of_numbers = size_of::<T>() * (numbers.len() + 2 * patches.n_shares * components);
        let bytes = of_numbers + patches.bytes() + facets.as_ref().map_or(0, Facets::bytes);
        let n_patches = patches.len();
        let Patches { words, dofs, ends, places, n_shares, rows, begins, shares, order: _ } = patches;
        Ok(Self {
            n_patches,
            words: Buffer::from_vec(device, words)?,
            dofs: Buffer::from_vec(device, dofs)?,
            ends: Buffer::from_vec(device, ends)?,
            places: Buffer::from_vec(device, places)?,
            numbers: Buffer::from_vec(device, numbers)?,
            tables: Buffer::from_vec(device, tables)?,
            shares: Mutex::new(Buffer::zeros(device, n_shares * components)?),
            rows: Buffer::from_vec(device, rows)?,
            begins: Buffer::from_vec(device, begins)?,
            of_rows: Buffer::from_vec(device, shares)?,
            constrained: Buffer::from_vec(device, constrained)?,
            facets,
            bytes,
            programs: Programs::default(),
            device: device.clone(),
            n_dofs,
            n_cells,
            variant,
        })
    }

    /// Returns the bytes that a product moves besides reading x and writing y once: numbers of the tangent, of unknowns, and
    /// separate sums.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Queues the product of the cells, without constrained rows.
    fn queue_cells(
        &self,
        y: &mut Buffer<T, Cuda>,
        x: &Buffer<T, Cuda>,
        hook: &CudaHook<'_>,
    ) -> Result<(), LinalgError> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        // `struct Patches` of the kernel.
        let patches = Structure(vec![
            address(&self.words),
            address(&self.dofs),
            address(&self.ends),
            address(&self.places),
            address(&self.numbers),
            if self.tables.is_empty() { 0 } else { address(&self.tables) },
            self.n_cells as u64,
        ]);
        let into = if shares.is_empty() { Write::none() } else { shares.write() };
        let arguments = (y.write(), into, x.read(), patches, hook.fields());
        let program = self.programs.of(hook, || self.variant.program::<T>(hook));
        let launch = Launch::line(self.n_patches, self.variant.threads() as u32)
            .shared(self.variant.shared_bytes::<T>());
        let kernel = Kernel::<Apply<T>>::new("simplices_apply");
        // SAFETY: unknowns of patches are those of the space of x and y, places lie in the shared memory of a block, separate sums
        // in the shares; no two blocks write the same.
        unsafe { self.device.launch(&program, &kernel, launch, arguments) }?;
        let n = self.rows.len();
        if n == 0 {
            return Ok(());
        }
        let shares = if shares.is_empty() { Read::none() } else { shares.read() };
        let of_rows = if self.of_rows.is_empty() { Read::none() } else { self.of_rows.read() };
        let lists = (self.rows.read(), self.begins.read(), of_rows);
        let arguments = (y.write(), shares, lists.0, lists.1, lists.2, n as u64, hook.fields());
        let launch = Launch::over(n * self.variant.components, THREADS);
        let kernel = Kernel::<Sum<T>>::new("simplices_sum");
        // SAFETY: rows are unknowns of the space of y, their places those of the shares.
        Ok(unsafe { self.device.launch(&program, &kernel, launch, arguments) }?)
    }
}

impl<T: Scalar> LinearOperator<T, Cuda> for CudaSimplices<T> {
    fn n_rows(&self) -> usize {
        self.n_dofs * self.variant.components
    }

    fn n_cols(&self) -> usize {
        self.n_rows()
    }

    fn device(&self) -> &Cuda {
        &self.device
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, Cuda>,
        x: &Buffer<T, Cuda>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        let n = self.n_rows();
        need("y", n, y.len())?;
        need("x", n, x.len())?;
        let hook = CudaHook::of(hook, [n; 2])?.by_rows();
        self.queue_cells(y, x, &hook)?;
        let components = self.variant.components;
        if !self.constrained.is_empty() {
            queue_constrained(components, y, x, &self.constrained, &hook, hook.fields())?;
        }
        if let Some(facets) = &self.facets {
            facets.queue(y, (x, None), &hook, [0, 0])?;
        }
        if hook == CudaHook::none() {
            return Ok(());
        }
        queue_post(components, y, x, &hook)
    }
}

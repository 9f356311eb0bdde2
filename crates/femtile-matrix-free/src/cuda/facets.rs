//! Facet matrices, added to the product of the cells.

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::hooks::CudaHook;
use femtile_space::SpaceError;

use super::operator::address;
use femtile_fem::FemError;
use femtile_fem::tensor::FacetMatrix;

static FACETS: Program =
    Program { name: "matrix_free_facets", source: include_str!("facets.cu"), headers: &[] };
/// Threads per block, and per row.
const THREADS: u32 = 256;
const WARP: usize = 32;

type Add<T> = (Write<T>, Read<T>, Read<T>, Structure, Structure);

/// Returns the program that adds facets to a number of components.
pub(super) fn program<T: Scalar>(components: usize, hook: &CudaHook<'_>) -> Specialisation {
    FACETS
        .of::<T>()
        .define("FEMTILE_COMPONENTS", components)
        .define("FEMTILE_PRODUCT", u8::from(hook.is_product()))
        .header("hook.cuh", hook.source())
}

/// Matrices of facets, and for each of their rows the matrix lines that belong to it.
///
/// A warp sums each row in a fixed order, without atomics.
#[derive(Debug)]
pub(super) struct Facets<T: Scalar> {
    /// Components of the field, each of which takes the matrices.
    components: usize,
    /// Unknowns of a component per facet.
    n: usize,
    rows: Buffer<u32, Cuda>,
    begins: Buffer<u32, Cuda>,
    lines: Buffer<u32, Cuda>,
    /// `[facets][n]`.
    dofs: Buffer<u32, Cuda>,
    /// `[facets][n][n]`, zero in constrained columns.
    entries: Buffer<T, Cuda>,
    /// Free rows of all facets with their diagonal entries.
    diagonal: Vec<(u32, T)>,
}

impl<T: Scalar> Facets<T> {
    /// Creates the lists for facets of one size, without the rows and columns of `constrained` (ascending)
    /// and without rows from `n_owned` on; none if no row is left.
    ///
    /// # Panics
    /// If facets differ in size.
    pub fn new(
        device: &Cuda,
        components: usize,
        facets: &[FacetMatrix],
        (constrained, n_owned): (&[u32], usize),
    ) -> Result<Option<Self>, FemError> {
        let n = facets.first().map_or(0, |facet| facet.dofs.len());
        let is_whole = |facet: &FacetMatrix| facet.dofs.len() == n && facet.entries.len() == n * n;
        assert!(facets.iter().all(is_whole), "facets of one space have {n} unknowns each");
        let dofs: Vec<u32> = facets.iter().flat_map(|facet| facet.dofs.iter().copied()).collect();
        if dofs.len() >= u32::MAX as usize {
            return Err(SpaceError::TooManyDofs { n_dofs: dofs.len() as f64 }.into());
        }
        let is_free: Vec<bool> = dofs.iter().map(|dof| constrained.binary_search(dof).is_err()).collect();
        let is_row = |dof: u32| (dof as usize) < n_owned;
        let mut lines: Vec<u32> = (0..dofs.len() as u32)
            .filter(|&line| is_free[line as usize] && is_row(dofs[line as usize]))
            .collect();
        lines.sort_by_key(|&line| dofs[line as usize]);
        if lines.is_empty() {
            return Ok(None);
        }
        let (mut rows, mut begins) = (Vec::new(), Vec::new());
        for (at, &line) in lines.iter().enumerate() {
            if rows.last() != Some(&dofs[line as usize]) {
                rows.push(dofs[line as usize]);
                begins.push(at as u32);
            }
        }
        begins.push(lines.len() as u32);
        let on_diagonal = facets.iter().flat_map(|facet| facet.entries.iter().step_by(n + 1));
        let diagonal = dofs.iter().zip(on_diagonal).zip(&is_free).filter(|(_, is_free)| **is_free);
        let diagonal = diagonal.filter(|((dof, _), _)| is_row(**dof));
        let diagonal = diagonal.map(|((&dof, &entry), _)| (dof, T::from_f64(entry))).collect();
        let columns = is_free.chunks_exact(n).flat_map(|columns| columns.iter().cycle().take(n * n));
        let entries = facets.iter().flat_map(|facet| &facet.entries).zip(columns);
        let entries = entries.map(|(&entry, &is_free)| if is_free { T::from_f64(entry) } else { T::ZERO });
        Ok(Some(Self {
            components,
            n,
            diagonal,
            rows: Buffer::from_vec(device, rows)?,
            begins: Buffer::from_vec(device, begins)?,
            lines: Buffer::from_vec(device, lines)?,
            dofs: Buffer::from_vec(device, dofs)?,
            entries: Buffer::from_vec(device, entries.collect())?,
        }))
    }

    /// Returns the bytes that a product reads of them.
    pub fn bytes(&self) -> usize {
        let numbers = self.rows.len() + self.begins.len() + self.lines.len() + self.dofs.len();
        size_of::<u32>() * numbers + size_of::<T>() * self.entries.len()
    }

    /// Adds the diagonal of all facet matrices to that of a component.
    pub fn add_diagonal(&self, diagonal: &mut [T]) {
        self.diagonal.iter().for_each(|&(dof, entry)| diagonal[dof as usize] += entry);
    }

    fn launch(&self) -> Launch {
        Launch::over(self.rows.len() * self.components * WARP, THREADS)
    }

    /// Returns the blocks of the kernel.
    pub fn n_blocks(&self) -> usize {
        self.launch().grid[0] as usize
    }

    /// Queues y += R x for the facet matrices R, on vectors of all unknowns and components.
    ///
    /// The last argument has the number of blocks of earlier kernels, and that of all kernels.
    pub fn queue(
        &self,
        y: &mut Buffer<T, Cuda>,
        (x, ghosts): (&Buffer<T, Cuda>, Option<&Buffer<T, Cuda>>),
        hook: &CudaHook<'_>,
        [n_before, n_blocks]: [usize; 2],
    ) -> Result<(), LinalgError> {
        // `struct Facets` of the kernel.
        let lists = Structure(vec![
            address(&self.rows),
            address(&self.begins),
            address(&self.lines),
            address(&self.dofs),
            self.rows.len() as u64,
            self.n as u64,
            ghosts.map_or(0, address),
            (x.len() / self.components) as u64,
        ]);
        let fields = hook.in_part(n_before, n_blocks);
        let arguments = (y.write(), x.read(), self.entries.read(), lists, fields);
        let kernel = Kernel::<Add<T>>::new("matrix_free_facets");
        let device = self.entries.device();
        // SAFETY: rows and dofs are unknowns of a component of x and y; lines are places of dofs.
        Ok(unsafe { device.launch(&program::<T>(self.components, hook), &kernel, self.launch(), arguments) }?)
    }
}

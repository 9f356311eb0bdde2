use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use femtile_device::cuda::{Kernel, Launch, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Element, Scalar};
use femtile_linalg::hooks::{CudaHook, Hook};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{GhostedOperator, LinalgError, LinearOperator, need};
use femtile_space::TensorSpace;
use femtile_space::geometry::{CellRule, MetricEvaluation};

use super::config::CudaMatrixFreeConfig;
use super::data::{CudaMatrixFreeData, OfCells};
use super::facets::Facets;
use super::program::{self, Variant, sums};
use super::rows::{queue_constrained, queue_post};
use crate::local_numbering::LocalNumbering;
use crate::metric::Terms;
use femtile_fem::FemError;
use femtile_fem::tensor::FacetMatrix;

/// Threads per block of the kernels after the cells.
pub(super) const THREADS: u32 = 256;

type Apply<T> = (Write<T>, Write<T>, Structure, Read<u32>, Read<u32>, Read<u32>, Structure, Structure);
type Sum<T> = (Write<T>, Read<T>, Structure, Structure);
type DiagonalOf<T> = (Write<T>, Write<T>, Read<u32>, Read<u32>, Read<u32>, Structure);

/// The matrix-free operator of ∫ σ∇u·∇v + λuv on the quadrilaterals or hexahedra of a [`TensorSpace`], on a GPU.
///
/// $$ A = \sum_e R_e^\mathsf{T} B^\mathsf{T} \left( D^\mathsf{T} G_e D + \mu_e \right) B R_e $$
///
/// Constrained rows and columns are those of the identity. For a field with several components, the operator acts on each; the
/// values at a node are consecutive rows, and metrics and numbers of unknowns are read once for all. A thread block visits a
/// group of cells in batches whose cells share nothing, and adds to the sums of earlier batches. Values that several groups
/// share are stored separately and summed by a second kernel. All orders are fixed: products have the same bits in every run.
///
/// # Cost
/// Reads x, the metric and 256 bytes per hexahedron or 96 per quadrilateral, writes y; for values that groups share, some 24
/// bytes more each. $4 d (p + 1)$ multiplications and additions per point for slopes in $d$ dimensions.
/// # Source
/// `[kronbichler2022]`, section 2. Differs: groups store shared values separately, instead of atomics or colouring.
#[derive(Debug)]
pub struct CudaMatrixFree<T: Scalar> {
    device: Cuda,
    /// Degrees of freedom of a component: those that a rank owns, of a part.
    n_dofs: usize,
    /// Those of other ranks.
    n_ghosts: usize,
    variant: Variant,
    n_groups: usize,
    begins: Buffer<u32, Cuda>,
    cells: Buffer<u32, Cuda>,
    lists: Buffer<u32, Cuda>,
    metric: Buffer<T, Cuda>,
    shares: Mutex<Buffer<T, Cuda>>,
    /// Faces, edges and vertices that groups share.
    shared: [usize; 3],
    /// Unknowns of a face and of an edge.
    per_shared: [usize; 2],
    rows: Buffer<u32, Cuda>,
    row_begins: Buffer<u32, Cuda>,
    places: Buffer<u32, Cuda>,
    constrained: Buffer<u32, Cuda>,
    facets: Option<Facets<T>>,
    /// Whether x·Ax is summed by cells, if possible, and not by rows.
    sums_cells: bool,
    bytes: usize,
    programs: Programs,
}

/// The programs of an operator by the source of the hook, and whether that is a product: their tables are long texts, which
/// products outside a recording would make again.
#[derive(Debug, Default)]
pub(super) struct Programs(Mutex<HashMap<(usize, bool), Arc<Specialisation>>>);

impl Programs {
    pub fn of(&self, hook: &CudaHook<'_>, make: impl FnOnce() -> Specialisation) -> Arc<Specialisation> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (hook.source().as_ptr() as usize, hook.is_product());
        Arc::clone(made.entry(key).or_insert_with(|| Arc::new(make())))
    }
}

impl<T: Scalar> CudaMatrixFree<T> {
    /// Creates the operator of `terms` with a quadrature rule.
    ///
    /// `constrained` are whole entities, ascending: a vertex, or the interior of an edge or face.
    ///
    /// # Errors
    /// [`FemError::Space`] for folded cells and if the rows of all components cannot be numbered with
    /// 32 bits; errors of coefficients, settings and the device.
    pub fn new(
        device: &Cuda,
        space: &TensorSpace<'_>,
        terms: Terms<'_>,
        rule: CellRule,
        constrained: &[u32],
        config: CudaMatrixFreeConfig,
    ) -> Result<Self, FemError> {
        let of = OfCells { space, terms, rule, constrained, numbers: None };
        // Kernels are compiled while the host continues.
        let announce = |variant: &Variant, _| {
            device.prepare(program::all::<T>(variant));
            None
        };
        Self::of_data(device, CudaMatrixFreeData::compute(of, config, &announce)?)
    }

    /// Creates the operator on a rank's part of a mesh, with the owned rows. `numbers` has the position of
    /// each unknown of the part: the `n_owned` owned ones first, then the ghosts.
    ///
    /// Sums of [`Hook`] are over the owned rows, or x·Ax [over cells](Self::with_sums_of_cells). Products
    /// read ghosts from a separate vector ([`GhostedOperator`]).
    ///
    /// # Errors
    /// As [`CudaMatrixFree::new`]; [`LinalgError::Setting`] if the unknowns of an entity are not consecutive.
    ///
    /// # Panics
    /// As [`CudaMatrixFree::with_facets`].
    pub fn local(
        device: &Cuda,
        (space, terms, rule): (&TensorSpace<'_>, Terms<'_>, CellRule),
        (constrained, facets): (&[u32], &[FacetMatrix]),
        config: CudaMatrixFreeConfig,
        (numbers, n_owned): (&[u32], usize),
    ) -> Result<Self, FemError> {
        let numbers = LocalNumbering { of: numbers, n_owned };
        numbers.check(space)?;
        let of = OfCells { space, terms, rule, constrained, numbers: Some(numbers) };
        let announce = |variant: &Variant, _| {
            device.prepare(program::all::<T>(variant));
            None
        };
        let mut made = Self::of_data(device, CudaMatrixFreeData::compute(of, config, &announce)?)?;
        let renumbered = |facet: &FacetMatrix| FacetMatrix {
            dofs: facet.dofs.iter().map(|&dof| numbers.of[dof as usize]).collect(),
            entries: facet.entries.clone(),
        };
        let facets: Vec<FacetMatrix> = facets.iter().map(renumbered).collect();
        let mut given: Vec<u32> = constrained.iter().map(|&row| numbers.of[row as usize]).collect();
        given.sort_unstable();
        made.facets = Facets::new(device, made.variant.components, &facets, (&given, n_owned))?;
        made.bytes += made.facets.as_ref().map_or(0, Facets::bytes);
        Ok(made)
    }

    /// Returns whether the rank can sum x·Ax by cells, which spares a pass over both vectors.
    pub fn can_sum_cells(&self) -> bool {
        self.variant.may_sum_cells() && self.has_room_for_parts()
    }

    /// The same operator on a part, with x·Ax summed over the cells whose inner unknowns the rank owns,
    /// instead of its rows: for the sum over all ranks, if all of them do.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] if the operator cannot sum over cells ([`CudaMatrixFree::can_sum_cells`]).
    pub fn with_sums_of_cells(self) -> Result<Self, LinalgError> {
        match self.can_sum_cells() {
            true => Ok(Self { sums_cells: true, ..self }),
            false => Err(LinalgError::Setting {
                field: "degree",
                message: format!(
                    "x·Ax is summed by cells from degree 2 on, and in at most a block for {} rows",
                    CudaHook::ROWS
                ),
            }),
        }
    }

    /// Brings the data of an operator to a device.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn of_data(device: &Cuda, data: CudaMatrixFreeData<T>) -> Result<Self, FemError> {
        let CudaMatrixFreeData { n_dofs, n_ghosts, variant, batches, metric, constrained, .. } = data;
        device.prepare(program::all::<T>(&variant));
        let metric = Buffer::from_vec(device, metric)?;
        let (shares, components) = (&batches.shares, variant.components);
        Ok(Self {
            n_dofs,
            n_ghosts,
            n_groups: batches.begins.len() - 1,
            begins: Buffer::from_host(device, &batches.begins)?,
            cells: Buffer::from_host(device, &batches.words)?,
            lists: Buffer::from_host(device, &batches.lists)?,
            shares: Mutex::new(Buffer::zeros(device, shares.len * components)?),
            shared: shares.counts,
            per_shared: shares.lengths,
            rows: Buffer::from_host(device, &shares.rows)?,
            row_begins: Buffer::from_host(device, &shares.begins)?,
            places: Buffer::from_host(device, &shares.places)?,
            constrained: Buffer::from_vec(device, constrained)?,
            facets: None,
            sums_cells: !variant.has_ghosts,
            programs: Programs::default(),
            bytes: size_of::<T>() * (metric.len() + 2 * shares.len * components) + batches.bytes(),
            metric,
            device: device.clone(),
            variant,
        })
    }

    /// Adds facet matrices of Robin conditions to every component, replacing earlier ones. On a part, x·Ax is summed by rows again.
    ///
    /// # Errors
    /// [`FemError::Space`] if rows of facets cannot be numbered with 32 bits; errors of the device.
    ///
    /// # Panics
    /// If facets differ in size, or have unknowns outside the space.
    pub fn with_facets(self, facets: &[FacetMatrix]) -> Result<Self, FemError> {
        let components = self.variant.components;
        self.with_facets_of(facets, components)
    }

    /// Adds facet matrices that couple components: their unknowns are rows of the operator. They replace earlier ones.
    ///
    /// # Errors
    /// As [`CudaMatrixFree::with_facets`].
    ///
    /// # Panics
    /// As there.
    pub fn with_coupled_facets(self, facets: &[FacetMatrix]) -> Result<Self, FemError> {
        self.with_facets_of(facets, 1)
    }

    /// Adds facet matrices that a number of components take.
    fn with_facets_of(mut self, facets: &[FacetMatrix], components: usize) -> Result<Self, FemError> {
        // Vectors are indexed by these without later checks.
        let (n_rows, per_node) = (self.n_rows() / components, (self.variant.components / components) as u32);
        let is_unknown = |&dof: &u32| (dof as usize) < n_rows;
        assert!(facets.iter().all(|facet| facet.dofs.iter().all(is_unknown)), "unknowns of facets");
        let bytes_of = |facets: &Option<Facets<T>>| facets.as_ref().map_or(0, Facets::bytes);
        let before = bytes_of(&self.facets);
        let constrained = self.constrained.to_host()?;
        let rows =
            |node: &u32| (0..per_node).map(move |component| node * per_node + component).collect::<Vec<_>>();
        let constrained: Vec<u32> = constrained.iter().flat_map(rows).collect();
        self.facets = Facets::new(&self.device, components, facets, (&constrained, n_rows))?;
        self.sums_cells = !self.variant.has_ghosts;
        self.bytes = self.bytes - before + bytes_of(&self.facets);
        Ok(self)
    }

    /// Returns the metric evaluation.
    pub fn metric(&self) -> MetricEvaluation {
        self.variant.metric
    }

    /// Returns the bytes that a product moves besides reading x and writing y once: metrics, numbers of unknowns, and
    /// shared values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the constrained rows of all components.
    fn n_constrained(&self) -> usize {
        self.constrained.len() * self.variant.components
    }

    /// Returns the blocks with partial sums of x·y.
    fn n_parts(&self) -> usize {
        let of_facets = self.facets.as_ref().map_or(0, Facets::n_blocks);
        self.n_groups + self.n_constrained().div_ceil(THREADS as usize) + of_facets
    }

    /// Returns whether partial sums of all blocks fit the buffer of a hook.
    fn has_room_for_parts(&self) -> bool {
        self.n_parts() <= self.n_rows().div_ceil(CudaHook::ROWS)
    }

    /// Queues the product of the cells, without constrained rows and shared values.
    fn queue_cells(
        &self,
        y: &mut Buffer<T, Cuda>,
        (x, ghosts): (&Buffer<T, Cuda>, Option<&Buffer<T, Cuda>>),
        hook: &CudaHook<'_>,
    ) -> Result<(), LinalgError> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let lists = if self.lists.is_empty() { Read::none() } else { self.lists.read() };
        let into = if shares.is_empty() { Write::none() } else { shares.write() };
        // `struct Source` of the kernel.
        let ghosts = ghosts.map_or(Ok(0), |ghosts| ghosts.address_on(&self.device))?;
        let source = Structure(vec![x.address_on(&self.device)?, ghosts, self.n_dofs as u64]);
        let arguments = (
            y.write(),
            into,
            source,
            self.begins.read(),
            self.cells.read(),
            lists,
            self.metrics(),
            hook.in_part(0, self.n_parts()),
        );
        let launch = Launch::line(self.n_groups, self.variant.threads() as u32)
            .shared(self.variant.shared_bytes::<T>());
        let program = self.programs.of(hook, || self.variant.program::<T>(hook));
        let kernel = Kernel::<Apply<T>>::new("matrix_free_apply");
        // SAFETY: the words of cells were made from the space of x and y; shares have places for all runs, and no two
        // blocks write the same.
        unsafe { self.device.launch(&program, &kernel, launch, arguments) }?;
        drop(shares);
        self.queue_shared(y, self.variant.components, hook)
    }

    /// `struct Metrics` of the kernels.
    fn metrics(&self) -> Structure {
        Structure(vec![address(&self.metric)])
    }

    /// Queues the sums of shared values of a number of components.
    fn queue_shared(
        &self,
        y: &mut Buffer<T, Cuda>,
        components: usize,
        hook: &CudaHook<'_>,
    ) -> Result<(), LinalgError> {
        let shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if shares.is_empty() {
            return Ok(());
        }
        let ([n_faces, n_edges, n_vertices], [per_face, per_edge]) = (self.shared, self.per_shared);
        let n_rows = n_faces * per_face + n_edges * per_edge + n_vertices;
        // `struct Shares` of the kernel.
        let entities = Structure(vec![
            address(&self.rows),
            address(&self.row_begins),
            address(&self.places),
            n_faces as u64,
            n_edges as u64,
            n_vertices as u64,
            per_face as u64,
            per_edge as u64,
        ]);
        let arguments = (y.write(), shares.read(), entities, hook.fields());
        let kernel = Kernel::<Sum<T>>::new("matrix_free_sum");
        let launch = Launch::over(n_rows * components, THREADS);
        let program = sums::<T>(components, hook);
        // SAFETY: rows begin runs of unknowns, places runs of shares, of the lengths of their kinds; y and the shares have an
        // entry per component for each.
        Ok(unsafe { self.device.launch(&program, &kernel, launch, arguments) }?)
    }

    /// Returns the diagonal of the operator, 1 in constrained rows.
    ///
    /// $$ d_i = \sum_q \sum_{ab} G_{ab}\, \partial_a\varphi_i\, \partial_b\varphi_i + \mu\, \varphi_i^2 $$
    ///
    /// # Cost
    /// Seven contractions along each axis of hexahedra, four on quadrilaterals, instead of the two of a
    /// product; metrics are read once an entry. All components have the same diagonal, which is computed
    /// once.
    /// # Errors
    /// [`LinalgError::Setting`] for the tangent of a form; errors of the device.
    pub fn diagonal(&self) -> Result<Vec<T>, LinalgError> {
        if self.variant.tangent.is_some() {
            let message = "the diagonal of a form's tangent is computed on a CPU".into();
            return Err(LinalgError::Setting { field: "diagonal", message });
        }
        let hook = CudaHook::none();
        let mut diagonal = Buffer::zeros(&self.device, self.n_dofs)?;
        self.device.fill(&mut diagonal, T::ONE)?;
        self.queue_diagonal(&mut diagonal)?;
        self.queue_shared(&mut diagonal, 1, &hook)?;
        let mut diagonal = diagonal.to_host()?;
        if let Some(facets) = &self.facets {
            facets.add_diagonal(&mut diagonal);
        }
        let components = self.variant.components;
        Ok(match components {
            1 => diagonal,
            _ => diagonal.into_iter().flat_map(|entry| std::iter::repeat_n(entry, components)).collect(),
        })
    }

    /// Queues the diagonal of the cells of a component, without shared values; constrained rows stay as they are.
    fn queue_diagonal(&self, y: &mut Buffer<T, Cuda>) -> Result<(), LinalgError> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let lists = if self.lists.is_empty() { Read::none() } else { self.lists.read() };
        let into = if shares.is_empty() { Write::none() } else { shares.write() };
        let arguments = (y.write(), into, self.begins.read(), self.cells.read(), lists, self.metrics());
        let launch = Launch::line(self.n_groups, self.variant.threads() as u32)
            .shared(self.variant.of_one().shared_bytes::<T>());
        let kernel = Kernel::<DiagonalOf<T>>::new("matrix_free_diagonal");
        // SAFETY: the words of cells were made from the space of y; shares have places for all runs, and no two blocks
        // write the same.
        Ok(unsafe { self.device.launch(&self.variant.diagonal::<T>(), &kernel, launch, arguments) }?)
    }

    /// Queues a product with the values of other ranks, on a part.
    fn queue(
        &self,
        y: &mut Buffer<T, Cuda>,
        (x, ghosts): (&Buffer<T, Cuda>, Option<&Buffer<T, Cuda>>),
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        let n = self.n_rows();
        need("y", n, y.len())?;
        need("x", n, x.len())?;
        let mut hook = CudaHook::of(hook, [n; 2])?;
        if !(self.sums_cells && self.has_room_for_parts()) {
            hook = hook.by_rows();
        }
        self.queue_cells(y, (x, ghosts), &hook)?;
        if !self.constrained.is_empty() {
            let fields = hook.in_part(self.n_groups, self.n_parts());
            queue_constrained(self.variant.components, y, x, &self.constrained, &hook, fields)?;
        }
        if let Some(facets) = &self.facets {
            let parts = [self.n_parts() - facets.n_blocks(), self.n_parts()];
            facets.queue(y, (x, ghosts), &hook, parts)?;
        }
        if hook.is_product() || hook == CudaHook::none() {
            return Ok(());
        }
        queue_post(self.variant.components, y, x, &hook)
    }
}

pub(super) fn address<E: Element>(buffer: &Buffer<E, Cuda>) -> u64 {
    buffer.memory().address()
}

impl<T: Scalar> LinearOperator<T, Cuda> for CudaMatrixFree<T> {
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
        need("ghosts", self.n_ghosts, 0)?;
        self.queue(y, (x, None), hook)
    }
}

impl<T: Scalar> GhostedOperator<T, Cuda> for CudaMatrixFree<T> {
    fn n_owned(&self) -> usize {
        self.n_rows()
    }

    fn n_ghosts(&self) -> usize {
        self.n_ghosts * self.variant.components
    }

    fn device(&self) -> &Cuda {
        &self.device
    }

    fn apply_ghosted(
        &self,
        y: &mut Buffer<T, Cuda>,
        x: &Buffer<T, Cuda>,
        ghosts: &Buffer<T, Cuda>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        need("ghosts", GhostedOperator::n_ghosts(self), ghosts.len())?;
        self.queue(y, (x, Some(ghosts)), hook)
    }
}

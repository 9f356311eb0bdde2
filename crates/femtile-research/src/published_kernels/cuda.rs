use std::sync::{Mutex, PoisonError};

use femtile::device::cuda::{Kernel, Read, Specialisation, Structure, Write};
use femtile::device::{Buffer, Cuda, Scalar};
use femtile::linalg::{LinalgError, need};
use femtile::multigrid::patch_kernels::{colour, stiffness_scales};
use femtile::multigrid::{BoxGrid, CudaBoxOperator, MultigridError, PatchShape, PostOrder};

use super::kernel::{Passes, PatchPass, PublishedKernel};
use super::program::tables;

type Arguments<T> = (Write<T>, Read<T>, Write<T>, Read<T>, Structure);

/// A pass with its program and launch shape.
#[derive(Debug)]
struct Launched {
    pass: PatchPass,
    shape: PatchShape,
    /// Shared memory of a block divided by its teams.
    bytes: usize,
    program: Specialisation,
    of_data_alone: Specialisation,
}

/// The multiplicative Schwarz smoother of [`CudaPatches`](femtile::multigrid::CudaPatches) with a published kernel.
///
/// # Cost
/// One launch per colour and pass. The fused pass reads, per patch, $(2k + 1)^3$ values of x and $(2k - 1)^3$ of b, and
/// writes $(2k - 1)^3$ of x; separate passes also write and read the residual.
/// # Source
/// `[cui2024]`, Table 4 and section 4.1. Differs: boundary rows are excluded from local residuals in all variants.
#[derive(Debug)]
pub struct PublishedPatches<T: Scalar> {
    device: Cuda,
    grid: BoxGrid,
    passes: Vec<Launched>,
    tables: Buffer<T, Cuda>,
    scales: [f64; 3],
    /// The operator of residuals on the whole grid.
    operator: Option<CudaBoxOperator<T>>,
    /// The residual between two passes.
    residual: Mutex<Buffer<T, Cuda>>,
}

impl<T: Scalar> PublishedPatches<T> {
    /// Vertex patches around every interior vertex; the default launch shape depends on the degree.
    ///
    /// # Errors
    /// [`MultigridError::Gpu`] for grids that [`CudaPatches`](femtile::multigrid::CudaPatches) refuses, for free sides,
    /// for degrees and precisions without a kernel, for patches or shapes too large for a block, and device errors.
    pub fn new(
        device: &Cuda,
        grid: &BoxGrid,
        kernel: PublishedKernel,
        shape: Option<PatchShape>,
    ) -> Result<Self, MultigridError> {
        let scales = stiffness_scales(grid)?;
        if grid.free_sides().as_flattened().contains(&true) {
            let message = "free sides: published kernels have none".into();
            return Err(MultigridError::Gpu { message });
        }
        if let Some(message) = kernel.lack::<T>(grid.degree()) {
            return Err(MultigridError::Gpu { message });
        }
        let passes =
            kernel.passes().iter().map(|&pass| Launched::new::<T>(device, grid, kernel, pass, shape));
        let of_residual = if kernel.passes == Passes::Fused { 0 } else { grid.n_nodes() };
        Ok(Self {
            device: device.clone(),
            grid: grid.clone(),
            passes: passes.collect::<Result<_, _>>()?,
            tables: Buffer::from_vec(device, tables(kernel, grid.degree(), scales))?,
            scales,
            operator: match kernel.passes {
                Passes::Global => Some(CudaBoxOperator::new(device, grid)?),
                _ => None,
            },
            residual: Mutex::new(Buffer::zeros(device, of_residual)?),
        })
    }

    /// Applies one smoothing step to A x = b.
    ///
    /// # Errors
    /// [`LinalgError::Length`] for a vector of another length, and device errors.
    pub fn step(
        &self,
        x: &mut Buffer<T, Cuda>,
        b: &Buffer<T, Cuda>,
        order: PostOrder,
    ) -> Result<(), LinalgError> {
        need("x", self.grid.n_nodes(), x.len())?;
        need("b", self.grid.n_nodes(), b.len())?;
        let mut residual = self.residual.lock().unwrap_or_else(PoisonError::into_inner);
        for (n, colour) in self.colours(order) {
            if let Some(operator) = &self.operator {
                operator.residual(&mut residual, b, x)?;
            }
            for launched in &self.passes {
                self.launch(launched, &launched.program, x, b, &mut residual, (n, colour.clone()))?;
            }
        }
        Ok(())
    }

    /// Runs one pass of a step over all colours, for timing; with `is_data_alone` it loads and stores without computing,
    /// and x is not smoothed.
    ///
    /// # Errors
    /// As [`PublishedPatches::step`]; a pass that the kernel does not have does nothing.
    pub fn pass(
        &self,
        pass: PatchPass,
        is_data_alone: bool,
        x: &mut Buffer<T, Cuda>,
        b: &Buffer<T, Cuda>,
    ) -> Result<(), LinalgError> {
        need("x", self.grid.n_nodes(), x.len())?;
        need("b", self.grid.n_nodes(), b.len())?;
        let mut residual = self.residual.lock().unwrap_or_else(PoisonError::into_inner);
        for (n, colour) in self.colours(PostOrder::Same) {
            for launched in self.passes.iter().filter(|launched| launched.pass == pass) {
                let program = if is_data_alone { &launched.of_data_alone } else { &launched.program };
                self.launch(launched, program, x, b, &mut residual, (n, colour.clone()))?;
            }
        }
        Ok(())
    }

    /// Returns the non-empty colours: number of patches, and `struct Colour` of the kernels.
    fn colours(&self, order: PostOrder) -> impl Iterator<Item = (usize, Structure)> {
        let cells = [0, 1, 2].map(|axis| self.grid.widths(axis).len());
        let mut colours: Vec<_> = (0..8).map(|bits| [bits % 2, bits / 2 % 2, bits / 4]).collect();
        if order == PostOrder::Reversed {
            colours.reverse();
        }
        let of_places = move |places: [usize; 3]| {
            let counts = [0, 1, 2].map(|axis| (cells[axis] - places[axis]) / 2);
            (counts.iter().product(), colour(&self.grid, counts, places, order, self.scales))
        };
        colours.into_iter().map(of_places).filter(|(n, _)| *n > 0)
    }

    fn launch(
        &self,
        launched: &Launched,
        program: &Specialisation,
        x: &mut Buffer<T, Cuda>,
        b: &Buffer<T, Cuda>,
        residual: &mut Buffer<T, Cuda>,
        (n, colour): (usize, Structure),
    ) -> Result<(), LinalgError> {
        let (b, r) = match launched.pass {
            PatchPass::Residual => (b.read(), residual.write()),
            PatchPass::Solve => (residual.read(), Write::none()),
            PatchPass::Fused => (b.read(), Write::none()),
        };
        let kernel = Kernel::<Arguments<T>>::new("vertex_patch_published");
        let launch = launched.shape.launch(n, launched.bytes);
        let arguments = (x.write(), b, r, self.tables.read(), colour);
        // SAFETY: patches lie in the grid, for whose nodes x and b have values, and r where a pass writes it; patches of
        // a colour write only their inner nodes, which are disjoint; tables are those of the degree.
        Ok(unsafe { self.device.launch(program, &kernel, launch, arguments) }?)
    }
}

impl Launched {
    fn new<T: Scalar>(
        device: &Cuda,
        grid: &BoxGrid,
        kernel: PublishedKernel,
        pass: PatchPass,
        shape: Option<PatchShape>,
    ) -> Result<Self, MultigridError> {
        let degree = grid.degree();
        let shape = shape.unwrap_or_else(|| kernel.shape::<T>(degree, pass));
        shape.check(kernel.team::<T>(degree, pass))?;
        let bytes = kernel.shared_bytes::<T>(degree, pass, shape.teams);
        let most = device.properties().shared_bytes_per_block();
        if bytes > most {
            let message = format!(
                "degree {degree}, {} patches a block: {bytes} bytes of shared memory, and a block has {most}: choose fewer \
                 patches or a lower degree",
                shape.teams
            );
            return Err(MultigridError::Gpu { message });
        }
        let program = |is_data_alone| kernel.program::<T>(degree, pass, shape, is_data_alone);
        let bytes = bytes.div_ceil(shape.teams);
        Ok(Self { pass, shape, bytes, program: program(false), of_data_alone: program(true) })
    }
}

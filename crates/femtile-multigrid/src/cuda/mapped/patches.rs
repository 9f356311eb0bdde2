use std::sync::{Arc, Mutex, PoisonError};

use femtile_device::cuda::Kernel;
use femtile_device::{Buffer, Cuda, Scalar, parallel};
use femtile_linalg::precondition::polynomial::{largest_preconditioned, start_of_lanczos};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, need};

use super::super::plane::corrections;
use super::super::smoother::additive;
use super::super::smoother::parts::{Part, parts};
use super::super::smoother::tables::Modes;
use super::super::smoother::{Compiled, Solve, colour};
use super::super::{CudaBoxOperator, check_patches};
use super::exact::{ExactSolves, patches_with_jumps};
use crate::cell_patches::vertex_patches;
use crate::grid::{BoxGrid, all};
use crate::smoother::{LARGEST, STEPS, patch_weights};
use crate::{MultigridError, PostOrder};

/// A factor of stiffness with which the kernel of surrogates adds nothing, so that the exact solve is the only one.
const LEFT_OUT: f64 = 1e30;
/// Nodes that a thread takes at least.
const NODES: usize = 1 << 12;

/// The additive Schwarz smoother on vertex patches on a GPU, for cells of any widths, shapes and coefficients.
///
/// The local solves are those of CPUs on mapped cells. Without a coefficient jump they use the separable surrogate
/// $\tilde A_j = \sum_a g_a\, K_a \otimes M_b \otimes M_c$. Its 1-D matrices are those of cells of width one,
/// with a factor $g_a$ per axis and patch. Patches with a coefficient jump are solved exactly.
///
/// On rectangles with coefficient one, solves are exact if widths jump by more than a fifth, and use surrogates
/// otherwise. From degree 5 on, fewer kinds of patches are solved exactly than on CPUs. Patches lie around
/// vertices also along thin axes.
///
/// # Cost
/// One residual, and one launch for each of $2^d$ colours of patches. A launch reads the residual
/// at $(2k - 1)^d$ nodes of a patch and d factors, reads and writes x at these nodes, and does 2 d products
/// with 1-D matrices of 2k − 1 rows. A patch with a jump reads $(2k - 1)^{2d}$ numbers of its inverse. Set-up
/// needs twelve Lanczos steps on the grid.
/// # Source
/// `[cui2024]`, eqs. (2.5), (2.6) and (2.15). Differs: additive with weights, separable surrogates.
#[derive(Debug)]
pub struct CudaMappedPatches<T: Scalar> {
    device: Cuda,
    grid: BoxGrid,
    operator: CudaBoxOperator<T>,
    residual: Mutex<Buffer<T, Cuda>>,
    inside: Compiled,
    /// The kernel of patches on free sides.
    mirrored: Compiled,
    /// Eigenvalues, 1-D weights, then the factors of stiffness of each patch, divided by the damping.
    modes: Buffer<T, Cuda>,
    exact: Option<ExactSolves<T>>,
    /// The largest eigenvalue that the damping is for.
    largest: f64,
}

/// Returns the kernel of local solves with factors for each patch, on free sides or for all others.
pub(super) fn local_solves<T: Scalar>(grid: &BoxGrid, is_mirrored: bool) -> Compiled {
    match grid.dimension() {
        2 => corrections::compiled::<T>(grid.degree(), is_mirrored),
        _ => additive::compiled::<T>(grid.degree(), is_mirrored),
    }
}

impl<T: Scalar> CudaMappedPatches<T> {
    /// Vertex patches around every interior or free vertex.
    ///
    /// # Errors
    /// [`MultigridError::Gpu`] for too high a degree, or one layer of cells without a vertex, and device errors.
    pub fn new(device: &Cuda, grid: &BoxGrid) -> Result<Self, MultigridError> {
        check_patches(grid)?;
        let (degree, d) = (grid.degree(), grid.dimension());
        let [inside, mirrored] = [false, true].map(|is_mirrored| local_solves::<T>(grid, is_mirrored));
        let has_free = grid.free_sides().as_flattened().contains(&true);
        let of_free = has_free.then(|| mirrored.program.clone());
        device.prepare([inside.program.clone()].into_iter().chain(of_free).collect());
        let (geometry, spans) = (grid.geometry(), vertex_patches(grid, [false; 3]));
        let mut weights = patch_weights(&geometry, &spans);
        let jumps = patches_with_jumps::<T>(grid, &geometry, &spans);
        for patch in &jumps.patches {
            let strides = geometry.corner_strides();
            weights[(0..3).map(|axis| strides[axis] * patch.vertex[axis]).sum::<usize>()] = [LEFT_OUT; 3];
        }
        let mut modes: Vec<T> = Modes::new(degree).with_hats();
        let of_axes = weights.iter().flat_map(|weights| &weights[..d]);
        modes.extend(of_axes.map(|weight| T::from_f64(weight / LARGEST)));
        let mut patches = Self {
            device: device.clone(),
            grid: grid.clone(),
            operator: CudaBoxOperator::new(device, grid)?,
            residual: Mutex::new(Buffer::zeros(device, grid.n_nodes())?),
            inside,
            mirrored,
            modes: Buffer::from_vec(device, modes)?,
            exact: match jumps.patches.is_empty() {
                true => None,
                false => Some(ExactSolves::new(device, grid, &spans, jumps)?),
            },
            largest: 1.0,
        };
        patches.exact.as_mut().map_or(Ok(()), |exact| exact.damp(LARGEST))?;
        let largest = patches.estimate()? / LARGEST;
        patches.damp(largest)?;
        Ok(patches)
    }

    /// Returns the largest eigenvalue of the preconditioned operator without damping.
    pub(in super::super) fn largest(&self) -> f64 {
        self.largest
    }

    /// Sets the damping for this largest eigenvalue.
    ///
    /// # Errors
    /// [`MultigridError::Setting`] for patches that are shared, and device errors.
    pub(in super::super) fn set_largest(self: &mut Arc<Self>, largest: f64) -> Result<(), MultigridError> {
        let message = "is shared: set its eigenvalue before";
        let shared = || MultigridError::Setting { field: "smoother", message: message.into() };
        Arc::get_mut(self).ok_or_else(shared)?.damp(largest)
    }

    fn damp(&mut self, largest: f64) -> Result<(), MultigridError> {
        let mut modes = self.modes.to_host()?;
        let ratio = T::from_f64(largest / self.largest);
        modes[2 * (2 * self.grid.degree() - 1)..].iter_mut().for_each(|factor| *factor *= ratio);
        self.modes = Buffer::from_vec(&self.device, modes)?;
        self.largest = largest;
        self.exact.as_mut().map_or(Ok(()), |exact| exact.damp(LARGEST / largest))
    }

    /// Applies one smoothing step to A x = b.
    ///
    /// # Errors
    /// [`LinalgError::Length`] for a vector of another length, and device errors.
    pub fn step(&self, x: &mut Buffer<T, Cuda>, b: &Buffer<T, Cuda>) -> Result<(), LinalgError> {
        let mut residual = self.residual.lock().unwrap_or_else(PoisonError::into_inner);
        self.operator.residual(&mut residual, b, x)?;
        self.correct(x, &residual)
    }

    /// As [`CudaMappedPatches::step`] with x = 0, so that b is the residual.
    pub(in super::super) fn step_from_zero(
        &self,
        x: &mut Buffer<T, Cuda>,
        b: &Buffer<T, Cuda>,
    ) -> Result<(), LinalgError> {
        need("x", self.grid.n_nodes(), x.len())?;
        need("b", self.grid.n_nodes(), b.len())?;
        self.correct(x, b)
    }

    /// Adds the local solutions of all patches for one residual.
    fn correct(&self, x: &mut Buffer<T, Cuda>, r: &Buffer<T, Cuda>) -> Result<(), LinalgError> {
        all([2; 3]).try_for_each(|parities| self.solve(parities, &parts(&self.grid, parities), x, r))
    }

    /// Adds the local solutions of patches of one colour.
    fn solve(
        &self,
        parities: [usize; 3],
        parts: &[Part],
        x: &mut Buffer<T, Cuda>,
        r: &Buffer<T, Cuda>,
    ) -> Result<(), LinalgError> {
        let is_plane = self.grid.dimension() == 2;
        let kernel = Kernel::<Solve<T>>::new(if is_plane { corrections::NAME } else { additive::NAME });
        for part in parts {
            let Compiled { program, shape, bytes } =
                if part.is_mirrored { &self.mirrored } else { &self.inside };
            let launch = shape.launch(part.counts.iter().product(), *bytes);
            let colour = colour(&self.grid, part.counts, part.places, PostOrder::Same, [1.0; 3]);
            let arguments = (x.write(), r.read(), self.modes.read(), colour);
            // SAFETY: patches, or their halves at free sides, lie in the grid, for whose nodes x and r have values;
            // patches of a colour write only their inner nodes, which are disjoint; modes are those of the degree, with
            // a factor per axis for each vertex of the grid.
            unsafe { self.device.launch(program, &kernel, launch, arguments) }?;
        }
        self.exact.as_ref().map_or(Ok(()), |exact| exact.solve(parities, x, r, &self.modes))
    }

    /// Estimates the largest eigenvalue of the operator preconditioned by one step.
    fn estimate(&self) -> Result<f64, LinalgError> {
        let start = parallel::map(self.grid.n_nodes(), NODES, |node| start_of_lanczos(node as u64));
        let correct = |z: &mut Buffer<T, Cuda>, r: &Buffer<T, Cuda>| {
            self.device.fill(z, T::ZERO)?;
            self.correct(z, r)
        };
        largest_preconditioned(&self.operator, start, correct, STEPS)
    }
}

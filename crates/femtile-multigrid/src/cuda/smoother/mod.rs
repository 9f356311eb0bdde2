mod additive;
mod fused;
mod ladder;
mod skeleton;
mod tables;

use femtile_device::cuda::{Kernel, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::{LinalgError, need};

use super::shape::PatchShape;
use super::{HIGHEST_DEGREE, check, equal_widths, scales, stencil};
use crate::grid::{BoxGrid, all};
use crate::{MultigridError, PostOrder};
use additive::Additive;
pub use ladder::{CudaPatchLadder, LadderKernel, Layout, Passes, PatchPass};
use tables::Modes;

type Solve<T> = (Write<T>, Read<T>, Read<T>, Structure);

/// How patches are solved on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PatchKernel {
    /// From the surfaces of patches alone, which lie between cells: no residual is computed, and what is inside cells is
    /// written once a step.
    #[default]
    Skeleton,
    /// The same, but every patch writes all inside: rows of values in place of single ones.
    Whole,
    /// For degree one, whose patches have a node each: by weights, rows along x in two colours at once.
    Stencil,
    /// The residual on a patch and the exact solve with it, as they are defined: to compare with.
    Fused,
    /// One residual for all patches and the exact solves with it, added up with weights: the step of
    /// [`Smoother::AdditivePatch`](crate::Smoother::AdditivePatch), not that of the others.
    Additive,
}

/// Exact solves on the nodes inside patches of 2 × 2 × 2 cells, one colour after another, on a GPU: what
/// [`Multigrid::smooth`](crate::Multigrid::smooth) does.
///
/// # Cost
/// A launch a colour. [`PatchKernel::Skeleton`] reads, of a patch, the $(2k - 1)^3$ values of b inside and the
/// $(2k + 1)^3 - (2k - 1)^3$ of x on the surface, and writes $3 (2k - 1)^2 - 3 (2k - 1) + 1$ of x, all inside for the last
/// patch that has a cell.
/// # Source
/// `[cui2024]`, Alg. 2.3, eqs. (2.8), (2.13) and (2.14). Differs: the solve does without the old values inside.
#[derive(Debug)]
pub struct CudaPatches<T: Scalar> {
    device: Cuda,
    grid: BoxGrid,
    kernel: PatchKernel,
    program: Specialisation,
    shape: PatchShape,
    /// Shared memory of a team.
    bytes: usize,
    /// Eigenvalues, and how modes meet the ends of a line through stiffness or what weights additive patches have.
    modes: Buffer<T, Cuda>,
    /// What stiffness along each axis is multiplied by; over the damping of additive patches, so that inverses are damped.
    scales: [f64; 3],
    additive: Option<Additive<T>>,
}

impl<T: Scalar> CudaPatches<T> {
    /// The cells around every vertex inside; shared out among threads as given, or as comes with the degree.
    ///
    /// # Errors
    /// [`MultigridError::Gpu`] for grids with two axes or with cells that differ and for shapes that cannot be, and what the
    /// device reports.
    pub fn new(
        device: &Cuda,
        grid: &BoxGrid,
        kernel: PatchKernel,
        shape: Option<PatchShape>,
    ) -> Result<Self, MultigridError> {
        check(grid)?;
        let widths = equal_widths(grid)?;
        let degree = grid.degree();
        let n_nodes = grid.nodes()[0];
        if kernel == PatchKernel::Stencil && (degree != 1 || !stencil::fits::<T>(n_nodes)) {
            let message = format!(
                "degree {degree}, {n_nodes} nodes along x: weights are for degree 1 and shorter rows"
            );
            return Err(MultigridError::Gpu { message });
        }
        let shape = shape.unwrap_or_else(|| kernel.shape::<T>(degree));
        let (lines, bytes) = match kernel {
            PatchKernel::Fused => (fused::lines(degree), fused::bytes::<T>(degree)),
            PatchKernel::Additive => (additive::lines(degree), additive::bytes::<T>(degree)),
            _ => (skeleton::lines(degree), skeleton::bytes::<T>(degree)),
        };
        shape.check(lines)?;
        let is_additive = kernel == PatchKernel::Additive;
        let additive = if is_additive { Some(Additive::new(device, grid)?) } else { None };
        let damping = additive.as_ref().map_or(1.0, |additive| additive.damping);
        let modes = Modes::new(degree);
        Ok(Self {
            device: device.clone(),
            grid: grid.clone(),
            kernel,
            program: match kernel {
                PatchKernel::Stencil => stencil::program::<T>(n_nodes),
                _ => kernel.program::<T>(degree, shape),
            },
            shape,
            bytes,
            modes: Buffer::from_vec(device, if is_additive { modes.with_hats() } else { modes.by_thread() })?,
            scales: scales(widths).map(|scale| scale / damping),
            additive,
        })
    }

    /// One step for A x = b.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when a vector does not fit, and what the device reports.
    pub fn step(
        &self,
        x: &mut Buffer<T, Cuda>,
        b: &Buffer<T, Cuda>,
        order: PostOrder,
    ) -> Result<(), LinalgError> {
        need("x", self.grid.n_nodes(), x.len())?;
        need("b", self.grid.n_nodes(), b.len())?;
        let name = match self.kernel {
            PatchKernel::Fused => "vertex_patch_fused",
            PatchKernel::Stencil => "box_stencil_solve",
            PatchKernel::Additive => "vertex_patch_additive",
            _ => "vertex_patch_skeleton",
        };
        let kernel = Kernel::<Solve<T>>::new(name);
        let residual = self.additive.as_ref().map(|additive| additive.residual(b, x)).transpose()?;
        let b = residual.as_deref().unwrap_or(b);
        let mut colours: Vec<_> = all([2; 3]).collect();
        if order == PostOrder::Reversed {
            colours.reverse();
        }
        let n_at_once = if self.kernel == PatchKernel::Stencil { 2 } else { 1 };
        for places in colours.into_iter().step_by(n_at_once) {
            let (n, colour) = self.colour(places, order);
            if n == 0 {
                continue;
            }
            let launch = match self.kernel {
                PatchKernel::Stencil => stencil::launch::<T>(n, self.grid.nodes()[0]),
                _ => self.shape.launch(n, self.bytes),
            };
            let arguments = (x.write(), b.read(), self.modes.read(), colour);
            // SAFETY: patches lie in the grid, of whose nodes x and b have values; those of a colour write the nodes inside
            // them alone, which no other of them has, two colours along a row in turn; modes are those of the degree.
            unsafe { self.device.launch(&self.program, &kernel, launch, arguments) }?;
        }
        Ok(())
    }

    /// The patches, or rows of them, with places of these parities: how many, and `struct Colour` of the kernels.
    fn colour(&self, places: [usize; 3], order: PostOrder) -> (usize, Structure) {
        let cells = [0, 1, 2].map(|axis| self.grid.widths(axis).len());
        let mut counts = [0, 1, 2].map(|axis| (cells[axis] - places[axis]) / 2);
        if self.kernel == PatchKernel::Stencil {
            counts[0] = 1;
        }
        let structure = colour(&self.grid, counts, places, order, self.scales);
        (counts.iter().product(), structure)
    }
}

impl PatchKernel {
    /// The one that took least time on an H200.
    pub fn fastest<T: Scalar>(grid: &BoxGrid) -> Self {
        let of_whole = if size_of::<T>() == 8 { 4 } else { 6 };
        match grid.degree() {
            1 if stencil::fits::<T>(grid.nodes()[0]) => Self::Stencil,
            degree if degree <= of_whole => Self::Whole,
            _ => Self::Skeleton,
        }
    }

    fn shape<T: Scalar>(self, degree: usize) -> PatchShape {
        match self {
            Self::Fused => fused::shape(degree),
            _ => skeleton::shape::<T>(degree, self),
        }
    }

    fn program<T: Scalar>(self, degree: usize, shape: PatchShape) -> Specialisation {
        match self {
            Self::Fused => fused::program::<T>(degree, shape),
            Self::Additive => additive::program::<T>(degree, shape),
            _ => skeleton::program::<T>(degree, self, shape),
        }
    }

    fn shipped<T: Scalar>(self, degree: usize) -> Specialisation {
        self.program::<T>(degree, self.shape::<T>(degree))
    }
}

/// `struct Colour` of the kernels.
pub(super) fn colour(
    grid: &BoxGrid,
    counts: [usize; 3],
    places: [usize; 3],
    order: PostOrder,
    scales: [f64; 3],
) -> Structure {
    let cells = [0, 1, 2].map(|axis| grid.widths(axis).len());
    let [_, row, layer] = grid.strides();
    let words = [counts, places, cells].into_iter().flatten();
    let mut fields: Vec<u64> = [row, layer].into_iter().chain(words).map(|word| word as u64).collect();
    fields.push(u64::from(order == PostOrder::Reversed));
    fields.extend(scales.map(f64::to_bits));
    Structure(fields)
}

/// The programs of this folder.
pub(super) fn specialisations() -> Vec<Specialisation> {
    let of_degree = |degree| {
        [PatchKernel::Skeleton, PatchKernel::Whole, PatchKernel::Fused, PatchKernel::Additive]
            .map(|kernel| [kernel.shipped::<f64>(degree), kernel.shipped::<f32>(degree)])
            .concat()
    };
    (1..=HIGHEST_DEGREE).flat_map(of_degree).chain(ladder::specialisations()).collect()
}

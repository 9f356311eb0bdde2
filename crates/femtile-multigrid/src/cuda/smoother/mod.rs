pub(super) mod additive;
mod colour;
mod fused;
pub(super) mod parts;
mod skeleton;
pub(super) mod tables;

use femtile_device::cuda::{Header, Kernel, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::{LinalgError, need};

use super::shape::PatchShape;
use super::{HIGHEST_DEGREE, check_hexahedra, equal_widths, scales, stencil};
use crate::grid::{BoxGrid, all};
use crate::{MultigridError, PostOrder};
pub use colour::{COLOUR_HEADER, colour};
use parts::Part;
use tables::Modes;
pub use tables::patch_matrices;

/// Headers of kernels on patches: modes of lines, positions of nodes, and weights of additive smoothers.
pub(super) const MODES_HEADER: Header = Header { name: "modes.cuh", text: include_str!("modes.cuh") };
pub(super) const NODES_HEADER: Header = Header { name: "nodes.cuh", text: include_str!("nodes.cuh") };
pub(super) const WEIGHTS_HEADER: Header = Header { name: "weights.cuh", text: include_str!("weights.cuh") };

pub(super) type Solve<T> = (Write<T>, Read<T>, Read<T>, Structure);

/// The kernel of the local solves on vertex patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PatchKernel {
    /// From right-hand sides inside and values on the surface of a patch: no residual is formed, and nodes inside a cell
    /// are written once per step.
    #[default]
    Skeleton,
    /// As [`PatchKernel::Skeleton`], but every patch writes all its inner nodes: rows of values instead of single ones.
    Whole,
    /// For degree 1, with one inner node per patch: a 27-point stencil, rows along x in two colours at once.
    Stencil,
    /// The residual on a patch, then the exact local solve, as in the definition; for comparison, and on free sides.
    Fused,
}

/// The multiplicative Schwarz smoother on vertex patches of 2 × 2 × 2 cells, coloured, on a GPU; see
/// [`Multigrid::smooth`](crate::Multigrid::smooth).
///
/// # Cost
/// One launch per colour. Per patch [`PatchKernel::Skeleton`] reads the $(2k - 1)^3$ inner values of b and the
/// $(2k + 1)^3 - (2k - 1)^3$ surface values of x, and writes $3 (2k - 1)^2 - 3 (2k - 1) + 1$ values of x, or all inner
/// ones for the last patch with a cell.
/// # Source
/// `[cui2024]`, Alg. 2.3, eqs. (2.8), (2.13) and (2.14). Differs: the solve does not use old inner values.
#[derive(Debug)]
pub struct CudaPatches<T: Scalar> {
    device: Cuda,
    grid: BoxGrid,
    kernel: PatchKernel,
    program: Specialisation,
    shape: PatchShape,
    /// Shared memory of a team.
    bytes: usize,
    /// Eigenvalues, then coupling of modes to the ends of a line.
    modes: Buffer<T, Cuda>,
    /// Factors of stiffness along each axis.
    scales: [f64; 3],
    /// The kernel of patches on free sides.
    mirrored: Option<Compiled>,
}

/// A program and the launch shape of its kernel.
#[derive(Debug)]
pub(super) struct Compiled {
    pub program: Specialisation,
    pub shape: PatchShape,
    /// Shared memory of a team.
    pub bytes: usize,
}

impl<T: Scalar> CudaPatches<T> {
    /// Vertex patches around every interior or free vertex; the default launch shape depends on the degree.
    ///
    /// # Errors
    /// [`MultigridError::Gpu`] for two axes, unequal cells or an invalid launch shape, and device errors.
    pub fn new(
        device: &Cuda,
        grid: &BoxGrid,
        kernel: PatchKernel,
        shape: Option<PatchShape>,
    ) -> Result<Self, MultigridError> {
        check_hexahedra(grid)?;
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
            _ => (skeleton::lines(degree), skeleton::bytes::<T>(degree)),
        };
        shape.check(lines)?;
        let program = match kernel {
            PatchKernel::Stencil => stencil::program::<T>(n_nodes),
            _ => kernel.program::<T>(degree, shape),
        };
        let has_free = grid.free_sides().as_flattened().contains(&true) && kernel != PatchKernel::Stencil;
        let mirrored = has_free.then(|| mirrored::<T>(degree));
        let of_free = mirrored.iter().map(|mirrored| mirrored.program.clone());
        device.prepare([program.clone()].into_iter().chain(of_free).collect());
        Ok(Self {
            device: device.clone(),
            grid: grid.clone(),
            kernel,
            program,
            shape,
            bytes,
            modes: Buffer::from_vec(device, Modes::new(degree).by_thread())?,
            scales: scales(widths),
            mirrored,
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
        let mut colours: Vec<_> = all([2; 3]).collect();
        if order == PostOrder::Reversed {
            colours.reverse();
        }
        let n_at_once = if self.kernel == PatchKernel::Stencil { 2 } else { 1 };
        for parities in colours.into_iter().step_by(n_at_once) {
            for part in self.parts(parities) {
                self.launch(&part, x, b, order)?;
            }
        }
        Ok(())
    }

    fn launch(
        &self,
        part: &Part,
        x: &mut Buffer<T, Cuda>,
        b: &Buffer<T, Cuda>,
        order: PostOrder,
    ) -> Result<(), LinalgError> {
        let n = part.counts.iter().product();
        let (program, name, launch) = match &self.mirrored {
            Some(mirrored) if part.is_mirrored => {
                (&mirrored.program, PatchKernel::Fused.name(), mirrored.shape.launch(n, mirrored.bytes))
            }
            _ if self.kernel == PatchKernel::Stencil => {
                (&self.program, self.kernel.name(), stencil::launch::<T>(n, self.grid.nodes()[0]))
            }
            _ => (&self.program, self.kernel.name(), self.shape.launch(n, self.bytes)),
        };
        let colour = colour(&self.grid, part.counts, part.places, order, self.scales);
        let arguments = (x.write(), b.read(), self.modes.read(), colour);
        let kernel = Kernel::<Solve<T>>::new(name);
        // SAFETY: patches, or their halves at free sides, lie in the grid, for whose nodes x and b have values; patches
        // of a colour write only their inner nodes, which are disjoint; two colours along a row run one after the other;
        // modes are those of the degree.
        Ok(unsafe { self.device.launch(program, &kernel, launch, arguments) }?)
    }

    /// Returns the patches of a colour, given by the parities of the patch index along each axis; rows of patches for the
    /// stencil.
    fn parts(&self, parities: [usize; 3]) -> Vec<Part> {
        match self.kernel {
            PatchKernel::Stencil => parts::rows(&self.grid, parities).into_iter().collect(),
            _ => parts::parts(&self.grid, parities),
        }
    }
}

impl PatchKernel {
    /// Returns the fastest kernel, as measured on an H200.
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
            _ => skeleton::shape::<T>(degree, self == Self::Skeleton),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Fused => "vertex_patch_fused",
            Self::Stencil => "box_stencil_solve",
            Self::Skeleton | Self::Whole => "vertex_patch_skeleton",
        }
    }

    fn program<T: Scalar>(self, degree: usize, shape: PatchShape) -> Specialisation {
        match self {
            Self::Fused => fused::program::<T>(degree, shape, false),
            _ => skeleton::program::<T>(degree, self, shape),
        }
    }

    fn shipped<T: Scalar>(self, degree: usize) -> Specialisation {
        self.program::<T>(degree, self.shape::<T>(degree))
    }
}

/// Returns the kernel of patches on free sides, completed by mirror images. They are few; a separate kernel keeps the
/// others small.
fn mirrored<T: Scalar>(degree: usize) -> Compiled {
    let shape = fused::shape(degree);
    Compiled { program: fused::program::<T>(degree, shape, true), shape, bytes: fused::bytes::<T>(degree) }
}

/// Returns the program of a kernel on a grid, then that of free sides.
pub(super) fn programs<T: Scalar>(grid: &BoxGrid, kernel: PatchKernel) -> Vec<Specialisation> {
    match kernel {
        PatchKernel::Stencil => vec![stencil::program::<T>(grid.nodes()[0])],
        _ => vec![kernel.shipped::<T>(grid.degree()), mirrored::<T>(grid.degree()).program],
    }
}

/// Returns the programs of this folder.
pub(super) fn specialisations() -> Vec<Specialisation> {
    (1..=HIGHEST_DEGREE)
        .flat_map(|degree| [of_degree::<f64>(degree), of_degree::<f32>(degree)].concat())
        .collect()
}

fn of_degree<T: Scalar>(degree: usize) -> Vec<Specialisation> {
    let kernels = [PatchKernel::Skeleton, PatchKernel::Whole, PatchKernel::Fused];
    let of_sides = [false, true].map(|is_mirrored| additive::compiled::<T>(degree, is_mirrored).program);
    let equal = kernels.map(|kernel| kernel.shipped::<T>(degree)).into_iter();
    equal.chain([mirrored::<T>(degree).program]).chain(of_sides).collect()
}

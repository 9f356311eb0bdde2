mod additive;
mod colour;
mod fused;
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
pub use colour::{COLOUR_HEADER, colour};
use tables::Modes;
pub use tables::patch_matrices;

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
    /// For patches on free sides.
    mirrored: Option<Mirrored>,
    additive: Option<Additive<T>>,
}

/// The kernel for patches on free sides, which are made whole by their mirror images.
#[derive(Debug)]
struct Mirrored {
    program: Specialisation,
    shape: PatchShape,
    bytes: usize,
}

/// Patches of a colour: how many along each axis, how many cells are before the first, minus one at a lower free side, and whether
/// all of them are on a free side.
struct Part {
    counts: [usize; 3],
    places: [usize; 3],
    is_mirrored: bool,
}

impl<T: Scalar> CudaPatches<T> {
    /// The cells around every vertex inside or on a free side; shared out among threads as given, or as comes with the degree.
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
        let has_free = grid.free_sides().as_flattened().contains(&true) && kernel != PatchKernel::Stencil;
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
            mirrored: has_free.then(|| kernel.mirrored::<T>(degree)),
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
        let residual = self.additive.as_ref().map(|additive| additive.residual(b, x)).transpose()?;
        let b = residual.as_deref().unwrap_or(b);
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
                (&mirrored.program, self.kernel.name_of_mirrored(), mirrored.shape.launch(n, mirrored.bytes))
            }
            _ if self.kernel == PatchKernel::Stencil => {
                (&self.program, self.kernel.name(), stencil::launch::<T>(n, self.grid.nodes()[0]))
            }
            _ => (&self.program, self.kernel.name(), self.shape.launch(n, self.bytes)),
        };
        let colour = colour(&self.grid, part.counts, part.places, order, self.scales);
        let arguments = (x.write(), b.read(), self.modes.read(), colour);
        let kernel = Kernel::<Solve<T>>::new(name);
        // SAFETY: patches, or their halves at free sides, lie in the grid, of whose nodes x and b have values; those of a colour write
        // the nodes inside them alone, which no other of them has, two colours along a row in turn; modes are those of the degree.
        Ok(unsafe { self.device.launch(program, &kernel, launch, arguments) }?)
    }

    /// The patches whose numbers along each axis, from the first one with an unknown on, have these parities; rows of them for
    /// kernels that take rows.
    fn parts(&self, parities: [usize; 3]) -> Vec<Part> {
        let of_all = [0, 1, 2].map(|axis| every_other(&self.grid, axis, parities[axis]));
        if self.kernel == PatchKernel::Stencil {
            let [_, y, z] = of_all;
            let part = Part { counts: [1, y.1, z.1], places: [0, y.0, z.0], is_mirrored: false };
            return if y.1 * z.1 > 0 { vec![part] } else { Vec::new() };
        }
        let inside = [0, 1, 2].map(|axis| every_other_inside(&self.grid, axis, parities[axis]));
        let part = |along: [(usize, usize); 3], is_mirrored| Part {
            counts: along.map(|(_, n)| n),
            places: along.map(|(place, _)| place),
            is_mirrored,
        };
        let mut parts = vec![part(inside, false)];
        for (axis, &parity) in parities.iter().enumerate() {
            for place in ends(&self.grid, axis, parity) {
                // Those on sides across several axes belong to the first of these.
                let along = [0, 1, 2].map(|other| match other {
                    _ if other < axis => inside[other],
                    _ if other > axis => of_all[other],
                    _ => (place, 1),
                });
                parts.push(part(along, true));
            }
        }
        parts.retain(|part| !part.counts.contains(&0));
        parts
    }
}

/// The first and the last vertex along an axis that has a patch.
fn vertices(grid: &BoxGrid, axis: usize) -> [usize; 2] {
    let [low, high] = grid.free_sides()[axis].map(usize::from);
    [1 - low, grid.widths(axis).len() + high - 1]
}

/// Along an axis every other vertex with a patch, from the first or second one on: the cells before the first such patch, and how
/// many there are.
fn every_other(grid: &BoxGrid, axis: usize, parity: usize) -> (usize, usize) {
    let [first, last] = vertices(grid, axis);
    ((first + parity).wrapping_sub(1), (last + 2 - first - parity) / 2)
}

/// The same without vertices on sides.
fn every_other_inside(grid: &BoxGrid, axis: usize, parity: usize) -> (usize, usize) {
    let place = (vertices(grid, axis)[0] + parity + 1) % 2;
    (place, (grid.widths(axis).len() - place) / 2)
}

/// The cells before the patches on free sides across an axis whose vertices have this parity.
fn ends(grid: &BoxGrid, axis: usize, parity: usize) -> impl Iterator<Item = usize> {
    let [first, last] = vertices(grid, axis);
    let sides = [0, grid.widths(axis).len()].into_iter();
    let has_patch = move |vertex: &usize| (first..=last).contains(vertex) && (vertex - first) % 2 == parity;
    sides.filter(has_patch).map(|vertex| vertex.wrapping_sub(1))
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

    fn name(self) -> &'static str {
        match self {
            Self::Fused => "vertex_patch_fused",
            Self::Stencil => "box_stencil_solve",
            Self::Additive => "vertex_patch_additive",
            Self::Skeleton | Self::Whole => "vertex_patch_skeleton",
        }
    }

    fn program<T: Scalar>(self, degree: usize, shape: PatchShape) -> Specialisation {
        match self {
            Self::Fused => fused::program::<T>(degree, shape, false),
            Self::Additive => additive::program::<T>(degree, shape, false),
            _ => skeleton::program::<T>(degree, self, shape),
        }
    }

    /// What patches on free sides are solved on with: few of all, so that the kernels of the others are no larger for them.
    fn mirrored<T: Scalar>(self, degree: usize) -> Mirrored {
        if self == Self::Additive {
            let shape = self.shape::<T>(degree);
            let program = additive::program::<T>(degree, shape, true);
            return Mirrored { program, shape, bytes: additive::bytes::<T>(degree) };
        }
        let shape = fused::shape(degree);
        Mirrored {
            program: fused::program::<T>(degree, shape, true),
            shape,
            bytes: fused::bytes::<T>(degree),
        }
    }

    fn name_of_mirrored(self) -> &'static str {
        if self == Self::Additive { self.name() } else { Self::Fused.name() }
    }

    fn shipped<T: Scalar>(self, degree: usize) -> Specialisation {
        self.program::<T>(degree, self.shape::<T>(degree))
    }
}

/// The programs of this folder.
pub(super) fn specialisations() -> Vec<Specialisation> {
    let of_degree = |degree| {
        [PatchKernel::Skeleton, PatchKernel::Whole, PatchKernel::Fused, PatchKernel::Additive]
            .map(|kernel| [kernel.shipped::<f64>(degree), kernel.shipped::<f32>(degree)])
            .concat()
    };
    let of_sides = |degree| {
        [PatchKernel::Fused, PatchKernel::Additive]
            .map(|kernel| [kernel.mirrored::<f64>(degree).program, kernel.mirrored::<f32>(degree).program])
            .concat()
    };
    let degrees = 1..=HIGHEST_DEGREE;
    degrees.clone().flat_map(of_degree).chain(degrees.flat_map(of_sides)).collect()
}

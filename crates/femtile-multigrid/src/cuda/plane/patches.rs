use femtile_device::cuda::{Header, Kernel, Program, RECIPROCAL_HEADER, STRIDED_HEADER, Specialisation};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::{LinalgError, need};

use super::super::smoother::parts::parts;
use super::super::smoother::tables::Modes;
use super::super::smoother::{COLOUR_HEADER, Compiled, MODES_HEADER, NODES_HEADER, Solve, colour};
use super::super::{HIGHEST_DEGREE, check, equal_widths, scales};
use super::teams_of;
use crate::grid::{BoxGrid, all};
use crate::{MultigridError, PostOrder};

static PATCHES: Program = Program { name: NAME, source: include_str!("patches.cu"), headers: &HEADERS };

const NAME: &str = "plane_patch";
const HEADERS: [Header; 5] = [RECIPROCAL_HEADER, STRIDED_HEADER, MODES_HEADER, COLOUR_HEADER, NODES_HEADER];

/// The multiplicative Schwarz smoother on vertex patches of 2 × 2 equal cells, coloured, on a GPU.
///
/// # Cost
/// One launch per colour. Per patch it reads b at $(2k - 1)^2$ inner nodes and x at $8k$ surface nodes, and
/// writes x at the inner nodes. The work is four products with 1-D matrices of 2k − 1 rows, halved by
/// symmetry, and four lines of the surface.
/// # Source
/// `[cui2024]`, Alg. 2.3, eqs. (2.8), (2.13) and (2.14). Differs: the solve does not use old inner values, so no residual is
/// formed.
#[derive(Debug)]
pub struct PlanePatches<T: Scalar> {
    device: Cuda,
    grid: BoxGrid,
    compiled: Compiled,
    /// Eigenvalues, then coupling of modes to the ends of a line.
    modes: Buffer<T, Cuda>,
    /// Factors of stiffness along each axis.
    scales: [f64; 3],
}

impl<T: Scalar> PlanePatches<T> {
    /// Vertex patches around every interior or free vertex.
    ///
    /// # Errors
    /// [`MultigridError::Gpu`] for unequal cells or too high a degree, and device errors.
    pub fn new(device: &Cuda, grid: &BoxGrid) -> Result<Self, MultigridError> {
        check(grid)?;
        let has_free = grid.free_sides().as_flattened().contains(&true);
        let compiled = compiled::<T>(grid.degree(), has_free);
        device.prepare(vec![compiled.program.clone()]);
        Ok(Self {
            device: device.clone(),
            compiled,
            modes: Buffer::from_vec(device, Modes::new(grid.degree()).by_thread())?,
            scales: scales(equal_widths(grid)?),
            grid: grid.clone(),
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
        let mut colours: Vec<_> = all([2, 2, 1]).collect();
        if order == PostOrder::Reversed {
            colours.reverse();
        }
        let Compiled { program, shape, bytes } = &self.compiled;
        let kernel = Kernel::<Solve<T>>::new(NAME);
        for part in colours.into_iter().flat_map(|parities| parts(&self.grid, parities)) {
            let launch = shape.launch(part.counts.iter().product(), *bytes);
            let colour = colour(&self.grid, part.counts, part.places, order, self.scales);
            let arguments = (x.write(), b.read(), self.modes.read(), colour);
            // SAFETY: patches, or their parts on free sides, lie in the grid, for whose nodes x and b have values; patches
            // of a colour write only their inner nodes, which are disjoint; modes are those of the degree.
            unsafe { self.device.launch(program, &kernel, launch, arguments) }?;
        }
        Ok(())
    }
}

/// Returns the program, for boxes with free sides or without, and its launch shape.
pub fn compiled<T: Scalar>(degree: usize, is_mirrored: bool) -> Compiled {
    let n = 2 * degree - 1;
    let shape = teams_of(n);
    let program = PATCHES
        .of::<T>()
        .define("FEMTILE_DEGREE", degree)
        .define("FEMTILE_IS_MIRRORED", u8::from(is_mirrored))
        .header("tables.cuh", Modes::new(degree).text());
    Compiled { program: shape.define(program), shape, bytes: n * (n + 4) * size_of::<T>() }
}

pub(super) fn specialisations() -> Vec<Specialisation> {
    let of_degree = |degree| {
        let of_sides = |is_mirrored| {
            [compiled::<f64>(degree, is_mirrored).program, compiled::<f32>(degree, is_mirrored).program]
        };
        [false, true].map(of_sides).concat()
    };
    (1..=HIGHEST_DEGREE).flat_map(of_degree).collect()
}

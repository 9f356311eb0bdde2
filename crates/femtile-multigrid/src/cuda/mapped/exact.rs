use std::ops::Range;

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cpu, Cuda, Scalar};
use femtile_linalg::{LinalgError, need};

use super::super::HIGHEST_DEGREE;
use super::super::smoother::parts::vertices;
use super::super::smoother::{COLOUR_HEADER, colour};
use crate::cell_patches::Spans;
use crate::grid::BoxGrid;
use crate::mapped::CellGeometry;
use crate::smoother::{JumpPatch, JumpPatches, MOST_BYTES};
use crate::{MultigridError, PostOrder};

static EXACT: Program =
    Program { name: "vertex_patch_exact", source: include_str!("exact.cu"), headers: &[COLOUR_HEADER] };
const THREADS: u32 = 128;
/// Most multiplications to invert all kinds on the host: some seconds on 16 cores.
const MOST_PRODUCTS: usize = 40_000_000_000;

type Solve<T> = (Write<T>, Read<T>, Read<T>, Read<u32>, Read<T>, Read<u64>, Read<T>, Structure);

/// Returns the program of the solves.
pub(super) fn program<T: Scalar>(degree: usize) -> Specialisation {
    EXACT.of::<T>().define("FEMTILE_DEGREE", degree).define("FEMTILE_THREADS", THREADS)
}

pub(in super::super) fn specialisations() -> Vec<Specialisation> {
    (1..=HIGHEST_DEGREE).flat_map(|degree| [program::<f64>(degree), program::<f32>(degree)]).collect()
}

/// Exact local solves on patches with jumps of coefficients or widths, by the inverse of each kind of patch: one for all
/// patches of the same shape up to scaling.
///
/// # Cost
/// $n^2$ numbers per kind, $n = (2k - 1)^d$, read once per patch; at most 1 GiB of them, which are inverted on the host. A
/// launch for each colour with such patches.
#[derive(Debug)]
pub struct ExactSolves<T: Scalar> {
    device: Cuda,
    grid: BoxGrid,
    program: Specialisation,
    /// Vertex and kind, by colour.
    patches: Buffer<u32, Cuda>,
    /// The patches of each colour.
    colours: Vec<Range<usize>>,
    scales: Vec<f64>,
    /// The same times the damping of additive patches.
    damped: Buffer<T, Cuda>,
    /// The first entry of the inverse of each kind.
    begins: Buffer<u64, Cuda>,
    inverses: Buffer<T, Cuda>,
}

/// Returns the patches of these spans that have coefficient jumps and a kind whose matrix is inverted. The
/// other patches use surrogates.
pub(super) fn patches_with_jumps<T>(grid: &BoxGrid, geometry: &CellGeometry, spans: &Spans) -> JumpPatches {
    let n = most_unknowns(grid);
    JumpPatches::new(
        (grid, geometry),
        (spans, [false; 3]),
        (MOST_BYTES / size_of::<T>()).min(3 * MOST_PRODUCTS / n),
    )
}

/// Returns the largest number of inner nodes of a patch.
fn most_unknowns(grid: &BoxGrid) -> usize {
    (2 * grid.degree() - 1).pow(grid.dimension() as u32)
}

impl<T: Scalar> ExactSolves<T> {
    /// Inverts the matrices of the kinds of patches that were found among these spans.
    ///
    /// # Errors
    /// Device errors.
    pub fn new(
        device: &Cuda,
        grid: &BoxGrid,
        spans: &Spans,
        mut found: JumpPatches,
    ) -> Result<Self, MultigridError> {
        let program = program::<T>(grid.degree());
        device.prepare(vec![program.clone()]);
        let firsts = [0, 1, 2].map(|axis| vertices(grid, axis)[0]);
        let colour_of = |patch: &JumpPatch| {
            (0..3).map(|axis| ((patch.vertex[axis] - firsts[axis]) % 2) << axis).sum::<usize>()
        };
        found.patches.sort_by_key(colour_of);
        let below = |colour: usize| found.patches.partition_point(|patch| colour_of(patch) < colour);
        let inverses = found.factored(&Cpu::new(1)?, (grid, &grid.geometry()), spans, |factor| -> Vec<T> {
            factor.inverse().into_iter().map(T::from_f64).collect()
        });
        let begin = |begin: &mut u64, inverse: &Vec<T>| {
            let own = *begin;
            *begin += inverse.len() as u64;
            Some(own)
        };
        let begins = inverses.iter().scan(0, begin).collect();
        let words = |patch: &JumpPatch| {
            let [x, y, z] = patch.vertex.map(|at| at as u32);
            [x, y, z, patch.kind]
        };
        let scales: Vec<f64> = found.patches.iter().map(|patch| patch.scale).collect();
        Ok(Self {
            device: device.clone(),
            grid: grid.clone(),
            program,
            patches: Buffer::from_vec(device, found.patches.iter().flat_map(words).collect())?,
            colours: (0..8).map(|colour| below(colour)..below(colour + 1)).collect(),
            damped: damped(device, &scales, 1.0)?,
            scales,
            begins: Buffer::from_vec(device, begins)?,
            inverses: Buffer::from_vec(device, inverses.concat())?,
        })
    }

    /// Multiplies all corrections by a damping factor.
    ///
    /// # Errors
    /// Device errors.
    pub fn damp(&mut self, damping: f64) -> Result<(), MultigridError> {
        self.damped = damped(&self.device, &self.scales, damping)?;
        Ok(())
    }

    /// Adds the solutions of the patches of a colour, given by the parities of the patch index along each axis, for a
    /// residual; both vectors have a value for each node of the grid. `modes` are those of the other patches.
    pub(super) fn solve(
        &self,
        parities: [usize; 3],
        x: &mut Buffer<T, Cuda>,
        r: &Buffer<T, Cuda>,
        modes: &Buffer<T, Cuda>,
    ) -> Result<(), LinalgError> {
        need("x", self.grid.n_nodes(), x.len())?;
        need("r", self.grid.n_nodes(), r.len())?;
        let [x_parity, y_parity, z_parity] = parities;
        let own = &self.colours[x_parity + 2 * y_parity + 4 * z_parity];
        if own.is_empty() {
            return Ok(());
        }
        let bytes = 2 * most_unknowns(&self.grid) * size_of::<T>();
        let launch = Launch::line(own.len(), THREADS).shared(bytes);
        let colour = colour(&self.grid, [own.len(), 1, 1], [own.start, 0, 0], PostOrder::Same, [1.0; 3]);
        let arguments = (
            x.write(),
            r.read(),
            modes.read(),
            self.patches.read(),
            self.damped.read(),
            self.begins.read(),
            self.inverses.read(),
            colour,
        );
        let kernel = Kernel::<Solve<T>>::new("vertex_patch_exact");
        // SAFETY: patches lie in the grid, for whose nodes x and r have values; those of a colour have disjoint inner nodes,
        // at most as many as pairs of values fit in shared memory; kinds have as many rows as their patches have inner nodes; modes
        // begin with eigenvalues and 1-D weights.
        Ok(unsafe { self.device.launch(&self.program, &kernel, launch, arguments) }?)
    }
}

/// Returns the factors of inverses, damped.
fn damped<T: Scalar>(device: &Cuda, scales: &[f64], damping: f64) -> Result<Buffer<T, Cuda>, MultigridError> {
    Ok(Buffer::from_vec(device, scales.iter().map(|scale| T::from_f64(scale * damping)).collect())?)
}

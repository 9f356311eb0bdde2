//! Prolongation and restriction between spaces of two degrees on one mesh of quadrilaterals or hexahedra, cell by cell.

use std::sync::{Mutex, PoisonError};

use femtile_device::cuda::{Kernel, Launch, Program, Read, STRIDED_HEADER, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar, parallel, part};
use femtile_element::tensor::Lagrange;
use femtile_linalg::{LinalgError, Transfer, need};
use femtile_space::{SpaceError, TensorSpace};

use super::batches::NONE;
use super::operator::address;
use super::program::{COLUMNS_HEADER, CONTRACT_HEADER};
use super::tables;
use crate::local_numbering::lengths;
use femtile_fem::FemError;

static TRANSFER: Program = Program {
    name: "degree_transfer",
    source: include_str!("degree_transfer.cu"),
    headers: &[STRIDED_HEADER, CONTRACT_HEADER, COLUMNS_HEADER],
};
/// Approximate threads of a block.
const THREADS: u32 = 128;

type OfCells<T> = (Write<T>, Read<T>, Structure);
type Sum<T> = (Write<T>, Read<T>, Read<u32>, Read<u32>, u64);

/// Interpolation from a space on quadrilaterals or hexahedra to one of higher degree on the same mesh, and its transpose, on a GPU.
///
/// The same map as [`DegreeTransfer`](crate::DegreeTransfer): a finer unknown is written by the first cell that has its
/// node. Constrained unknowns are read as zero; on the finer level they stay unchanged, on the coarser level they
/// become zero. A team of threads handles a cell. Contributions to coarser unknowns are stored per cell and summed by a
/// second kernel in the order of cells, so results have the same bits in every run.
///
/// # Cost
/// For degrees $q$ and $p$ and a cell of dimension $d$, prolongation reads $(q + 1)^d$ numbers of 4 bytes, as many values and
/// 112 bytes (40 on quadrilaterals), and reads and writes $p^d$ values. Restriction reads these bytes and $p^d$ values, writes
/// and reads $(q + 1)^d$ values, reads as many numbers, and writes $q^d$ values. $O(p)$ operations per unknown.
/// # Source
/// `[fehn2020]`.
#[derive(Debug)]
pub struct CudaDegreeTransfer<T: Scalar> {
    device: Cuda,
    /// Axes of the cells.
    dimension: usize,
    /// Degrees of the coarser and the finer space.
    degrees: [usize; 2],
    n_fine: usize,
    n_cells: usize,
    /// Words of the finer cells, `[n_cells][3^d + 1]`: first unknowns of entities and the start of a list; all unknowns of
    /// irregular ones.
    words: Buffer<u32, Cuda>,
    lists: Buffer<u32, Cuda>,
    /// Unknowns of the coarser cells: `[n_cells][(q + 1)^d]`.
    coarse: Buffer<u32, Cuda>,
    /// Places of each coarser unknown among these, from `begins[i]` to `begins[i + 1]`.
    begins: Buffer<u32, Cuda>,
    places: Buffer<u32, Cuda>,
    /// Contributions of cells: `[n_cells][(q + 1)^d]`.
    parts: Mutex<Buffer<T, Cuda>>,
}

impl<T: Scalar> CudaDegreeTransfer<T> {
    /// Creates the transfer to a space of at least the same degree. Constrained degrees of freedom are whole entities.
    ///
    /// # Errors
    /// [`FemError::Space`] if the unknowns of all cells cannot be numbered with 32 bits; errors of the device.
    ///
    /// # Panics
    /// If the spaces have different cells, the first has the higher degree, or constrained unknowns lie outside their
    /// space.
    pub fn new(
        device: &Cuda,
        (coarse, coarse_constrained): (&TensorSpace<'_>, &[u32]),
        (fine, fine_constrained): (&TensorSpace<'_>, &[u32]),
    ) -> Result<Self, FemError> {
        assert!(coarse.order() == fine.order(), "spaces on one mesh");
        assert!(coarse.degree() <= fine.degree(), "from the lower degree");
        let n_entries = coarse.n_cells() * coarse.dofs_per_cell();
        let n_listed = fine.n_irregular() * fine.dofs_per_cell();
        if n_entries.max(n_listed) >= NONE as usize {
            return Err(SpaceError::TooManyDofs { n_dofs: n_entries.max(n_listed) as f64 }.into());
        }
        let (dimension, degrees) = (fine.dimension(), [coarse.degree(), fine.degree()]);
        device.prepare(vec![program::<T>(dimension, degrees)]);
        let (words, lists) = part("own entities", || own(fine, fine_constrained));
        let unknowns = part("unknowns of cells", || unknowns(coarse, coarse_constrained));
        let (begins, places) = part("places of unknowns", || places(&unknowns, coarse.n_dofs()));
        Ok(Self {
            dimension,
            degrees,
            n_fine: fine.n_dofs(),
            n_cells: fine.n_cells(),
            words: Buffer::from_vec(device, words)?,
            lists: Buffer::from_vec(device, lists)?,
            begins: Buffer::from_vec(device, begins)?,
            places: Buffer::from_vec(device, places)?,
            parts: Mutex::new(Buffer::zeros(device, unknowns.len())?),
            coarse: Buffer::from_vec(device, unknowns)?,
            device: device.clone(),
        })
    }

    /// Queues a kernel on all cells, from one vector to another.
    fn queue(&self, name: &'static str, to: Write<T>, from: Read<T>) -> Result<(), LinalgError> {
        // `struct Cells` of the kernel.
        let cells = Structure(vec![
            address(&self.words),
            address(&self.lists),
            address(&self.coarse),
            self.n_cells as u64,
        ]);
        let shape = LaunchShape::of(self.dimension, self.degrees);
        let launch = Launch::line(self.n_cells.div_ceil(shape.teams), shape.threads as u32)
            .shared(shape.shared_bytes::<T>());
        let kernel = Kernel::<OfCells<T>>::new(name);
        let program = program::<T>(self.dimension, self.degrees);
        // SAFETY: words, lists and numbers are unknowns of the spaces of the vectors; `parts` has an entry per node of
        // each coarser cell; no two cells write the same finer unknown.
        Ok(unsafe { self.device.launch(&program, &kernel, launch, (to, from, cells)) }?)
    }
}

impl<T: Scalar> Transfer<T, Cuda> for CudaDegreeTransfer<T> {
    fn n_fine(&self) -> usize {
        self.n_fine
    }

    fn n_coarse(&self) -> usize {
        self.begins.len() - 1
    }

    fn prolongate(&self, x: &mut Buffer<T, Cuda>, e: &Buffer<T, Cuda>) -> Result<(), LinalgError> {
        need("x", self.n_fine, x.len())?;
        need("e", self.n_coarse(), e.len())?;
        self.queue("degree_prolong", x.write(), e.read())
    }

    fn restrict(&self, b: &mut Buffer<T, Cuda>, r: &Buffer<T, Cuda>) -> Result<(), LinalgError> {
        need("b", self.n_coarse(), b.len())?;
        need("r", self.n_fine, r.len())?;
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        self.queue("degree_restrict", parts.write(), r.read())?;
        let n = self.n_coarse();
        let arguments = (b.write(), parts.read(), self.begins.read(), self.places.read(), n as u64);
        let kernel = Kernel::<Sum<T>>::new("degree_sum");
        let program = program::<T>(self.dimension, self.degrees);
        // SAFETY: b has an entry per coarser unknown, and places lie within `parts`.
        Ok(unsafe { self.device.launch(&program, &kernel, Launch::over(n, THREADS), arguments) }?)
    }
}

/// Launch shape: the distribution of cells to threads.
struct LaunchShape {
    /// Threads per cell: one per line of the finer tensor.
    team: usize,
    /// Teams per block.
    teams: usize,
    threads: usize,
    /// Entries of a team's tensor in shared memory.
    tensor: usize,
}

impl LaunchShape {
    fn of(dimension: usize, [coarse, fine]: [usize; 2]) -> Self {
        let n = fine + 1;
        let team = n.pow(dimension as u32 - 1);
        let teams = (THREADS as usize / team).max(1);
        let layer = if dimension == 3 { n * (n | 1) } else { n | 1 };
        let tensor = (coarse + 1) * layer;
        Self { team, teams, threads: (team * teams).next_multiple_of(32), tensor }
    }

    fn shared_bytes<T>(&self) -> usize {
        self.teams * self.tensor * size_of::<T>()
    }
}

/// Returns the program of a [`CudaDegreeTransfer`] between two degrees, the lower one first, on cells of a dimension.
pub fn program<T: Scalar>(dimension: usize, [coarse, fine]: [usize; 2]) -> Specialisation {
    let values = Lagrange::gauss_lobatto(coarse).values(Lagrange::gauss_lobatto(fine).nodes());
    let shape = LaunchShape::of(dimension, [coarse, fine]);
    TRANSFER
        .of::<T>()
        .define("FEMTILE_DIMENSION", dimension)
        .define("FEMTILE_COARSE", coarse)
        .define("FEMTILE_FINE", fine)
        .define("FEMTILE_TEAM", shape.team)
        .define("FEMTILE_TEAMS", shape.teams)
        .define("FEMTILE_THREADS", shape.threads)
        .header("tables.cuh", tables::header(&[("VALUES", &values.entries)]))
}

/// Returns programs for a few pairs of degrees, for checks that compile them.
pub(super) fn specialisations() -> Vec<Specialisation> {
    let pairs = [[1, 2], [2, 3], [2, 4], [4, 8], [5, 10]];
    let of_pair = |degrees| {
        [2, 3].into_iter().flat_map(move |d| [program::<f64>(d, degrees), program::<f32>(d, degrees)])
    };
    pairs.into_iter().flat_map(of_pair).collect()
}

/// Returns the words of the cells, and lists of the irregular ones: an entity belongs to the first cell that has it, to
/// none if it is constrained.
fn own(space: &TensorSpace<'_>, constrained: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let lengths = lengths(space);
    let (n_words, mut is_taken) = (lengths.len() + 1, space.marks(constrained));
    let mut words = vec![NONE; space.n_cells() * n_words];
    let mut lists = Vec::new();
    for (position, words) in words.chunks_exact_mut(n_words).enumerate() {
        let entities = space.firsts(position).iter().zip(&lengths).enumerate();
        for (entity, (&first, _)) in entities.filter(|(_, (_, len))| **len > 0) {
            if !std::mem::replace(&mut is_taken[first as usize], true) {
                words[entity] = first;
            }
        }
        if let Some(list) = space.irregular(position) {
            words[n_words - 1] = lists.len() as u32;
            lists.extend_from_slice(list);
        }
    }
    (words, lists)
}

/// Returns the unknowns of all cells, except constrained ones.
fn unknowns(space: &TensorSpace<'_>, constrained: &[u32]) -> Vec<u32> {
    let is_constrained = space.marks(constrained);
    let n = space.dofs_per_cell();
    let mut unknowns = vec![0; space.n_cells() * n];
    parallel::for_chunks_mut(&mut unknowns, n, |begin, unknowns| {
        space.cell_dofs(begin / n, unknowns);
        let held = unknowns.iter_mut().filter(|unknown| is_constrained[**unknown as usize]);
        held.for_each(|unknown| *unknown = NONE);
    });
    unknowns
}

/// Returns the places of each of `n` unknowns among those of all cells, ascending, and the start of each unknown's
/// places.
fn places(unknowns: &[u32], n: usize) -> (Vec<u32>, Vec<u32>) {
    let found = || unknowns.iter().enumerate().filter(|(_, unknown)| **unknown != NONE);
    let mut begins = vec![0u32; n + 1];
    found().for_each(|(_, &unknown)| begins[unknown as usize + 1] += 1);
    for i in 0..n {
        begins[i + 1] += begins[i];
    }
    let mut places = vec![0; begins[n] as usize];
    let mut next = begins.clone();
    for (place, &unknown) in found() {
        let at = &mut next[unknown as usize];
        places[*at as usize] = place as u32;
        *at += 1;
    }
    (begins, places)
}

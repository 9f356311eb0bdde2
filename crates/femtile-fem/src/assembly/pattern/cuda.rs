use femtile_device::cuda::{
    Kernel, LANES_HEADER, Launch, Program, Read, Specialisation, TABLE_HEADER, Write,
};
use femtile_device::{Buffer, Cuda, parallel};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::scan;
use femtile_mesh::Mesh;

use crate::FemError;

static PATTERN: Program =
    Program { name: "pattern", source: include_str!("pattern.cu"), headers: &[LANES_HEADER, TABLE_HEADER] };

/// Threads of a block, and those of blocks with large tables.
const THREADS: usize = 128;
const FEW_THREADS: usize = 32;
/// Numbers that a thread of the host checks at a time.
const PART: usize = 1 << 16;
/// Lanes per row.
const LANES: usize = 8;
/// Bytes of the tables of a block that are given without asking, and the most that every GPU since 7.5 has.
const ROOM: usize = 32 << 10;
const MOST_ROOM: usize = 64 << 10;

const COUNT: Kernel<(Write<u32>, Read<u32>, u64)> = Kernel::new("incidence_count");
const LIST: Kernel<List> = Kernel::new("incidence_list");
const SORT: Kernel<Sort> = Kernel::new("incidence_sort");
const LENGTHS: Kernel<Lengths> = Kernel::new("pattern_count");
const FILL: Kernel<Fill> = Kernel::new("pattern_fill");
type List = (Write<u32>, Write<u32>, Read<u32>, Read<u32>, u64);
type Sort = (Write<u32>, Write<u32>, Read<u32>, u64);
type Lengths = (Write<u32>, Read<u32>, Read<u32>, Read<u32>, u64, u32);
type Fill = (Write<u32>, Read<u32>, Read<u32>, Read<u32>, Read<u32>, u64, u32);

/// Returns the program for cells with this number of corners.
pub(in crate::assembly) fn program(n_corners: usize) -> Specialisation {
    PATTERN.of::<u32>().define("FEMTILE_LANES", LANES).define("FEMTILE_CORNERS", n_corners)
}

/// Returns the programs for triangles and tetrahedra.
pub(in crate::assembly) fn specialisations() -> Vec<Specialisation> {
    vec![program(3), program(4)]
}

/// The cells of a mesh on a GPU, and the ascending list of the cells of each node.
pub(in crate::assembly) struct Incidence {
    n_corners: usize,
    /// Corners of each cell, all of them nodes.
    pub cells: Buffer<u32, Cuda>,
    /// Offset of the cells of each node, and the end of the last node.
    pub starts: Buffer<u32, Cuda>,
    pub list: Buffer<u32, Cuda>,
    /// The largest number of cells of a node.
    most: usize,
}

/// The launch of a kernel with a table for each row.
struct Tables {
    launch: Launch,
    slots: usize,
}

impl Tables {
    /// Chooses the tables for rows with at most `most` keys and `n_tables` tables per row; none if they would
    /// be too large.
    fn new(n_rows: usize, most: usize, n_tables: usize) -> Option<Self> {
        // A key that is not there is found missing at an empty slot.
        let slots = (most + 1).next_power_of_two();
        let bytes = |threads: usize| threads / LANES * n_tables * slots * size_of::<u32>();
        let threads = if bytes(THREADS) <= ROOM { THREADS } else { FEW_THREADS };
        let launch = Launch::over(n_rows * LANES, threads as u32).shared(bytes(threads));
        (bytes(threads) <= MOST_ROOM).then_some(Self { launch, slots })
    }
}

/// Returns whether all corners of cells are nodes.
fn has_sound_cells(mesh: &Mesh) -> bool {
    let n_nodes = mesh.n_nodes();
    let largest = |part: &[u32]| part.iter().fold(0, |largest, &node| largest.max(node));
    let of_parts = parallel::map_chunks(&mesh.cells, PART, |_, part| largest(part));
    of_parts.into_iter().all(|largest| (largest as usize) < n_nodes)
}

impl Incidence {
    /// Copies the cells to a GPU and lists the cells of each node. None if the corners cannot be numbered
    /// with 32 bits or are not nodes of the mesh.
    ///
    /// # Cost
    /// Two sweeps over the cells, and the sorting of short lists.
    ///
    /// # Errors
    /// [`FemError::OrphanNode`] for the first node without a cell; errors of the device.
    pub fn new(device: &Cuda, mesh: &Mesh) -> Result<Option<Self>, FemError> {
        let (n_rows, n, n_corners) = (mesh.n_nodes(), mesh.cells.len(), mesh.kind.n_nodes());
        if u32::try_from(n).is_err() || !has_sound_cells(mesh) {
            return Ok(None);
        }
        let program = program(n_corners);
        device.prepare(vec![program.clone()]);
        let cells = Buffer::from_host(device, &mesh.cells)?;
        let over = |n| Launch::over(n, THREADS as u32);
        let mut counts = Buffer::<u32, Cuda>::zeros(device, n_rows)?;
        // SAFETY: every corner is a node, and there is a count per node.
        unsafe { device.launch(&program, &COUNT, over(n), (counts.write(), cells.read(), n as u64)) }?;
        let starts = scan::starts(device, &counts, &mut Buffer::zeros(device, 1)?, 0)?;
        let mut counts = Buffer::<u32, Cuda>::zeros(device, n_rows)?;
        let mut list = Buffer::<u32, Cuda>::zeros(device, n)?;
        let arguments = (list.write(), counts.write(), starts.read(), cells.read(), n as u64);
        // SAFETY: the list has a place per corner, and each node as many as it was counted.
        unsafe { device.launch(&program, &LIST, over(n), arguments) }?;
        let mut most = Buffer::from_host(device, &[0, u32::MAX])?;
        let arguments = (list.write(), most.write(), starts.read(), n_rows as u64);
        // SAFETY: the starts belong to the list.
        unsafe { device.launch(&program, &SORT, over(n_rows), arguments) }?;
        let found = most.to_host()?;
        if let Some(&point) = mesh.points.get(found[1] as usize) {
            return Err(FemError::OrphanNode { node: found[1] as usize, point });
        }
        Ok(Some(Self { n_corners, cells, starts, list, most: found[0] as usize }))
    }

    /// Finds offsets and columns of the pattern. None if a row is too long or if the entries cannot be
    /// numbered with 32 bits.
    ///
    /// # Cost
    /// Each cell is read twice by each of its corners.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn pattern(&self) -> Result<Option<[Buffer<u32, Cuda>; 2]>, LinalgError> {
        let (device, n_rows) = (self.cells.device(), self.starts.len() - 1);
        let most = self.most * (self.n_corners - 1) + 1;
        let (Some(counting), Some(filling)) = (Tables::new(n_rows, most, 1), Tables::new(n_rows, most, 2))
        else {
            return Ok(None);
        };
        let program = program(self.n_corners);
        let (starts, list, cells) = (self.starts.read(), self.list.read(), self.cells.read());
        let mut lengths = Buffer::<u32, Cuda>::zeros(device, n_rows)?;
        let arguments = (lengths.write(), starts, list, cells, n_rows as u64, counting.slots as u32);
        // SAFETY: the starts belong to the list, which names cells; a table has more slots than a row has keys.
        unsafe { device.launch(&program, &LENGTHS, counting.launch, arguments) }?;
        let mut total = Buffer::zeros(device, 1)?;
        let offsets = scan::starts(device, &lengths, &mut total, 0)?;
        let Ok(n_entries) = u32::try_from(total.to_host()?[0]) else { return Ok(None) };
        let mut columns = Buffer::<u32, Cuda>::zeros(device, n_entries as usize)?;
        let slots = filling.slots as u32;
        let arguments = (columns.write(), offsets.read(), starts, list, cells, n_rows as u64, slots);
        // SAFETY: as above; each row has as many columns as were counted.
        unsafe { device.launch(&program, &FILL, filling.launch, arguments) }?;
        Ok(Some([offsets, columns]))
    }
}

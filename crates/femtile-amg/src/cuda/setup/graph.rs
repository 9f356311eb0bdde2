use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::scan;
use femtile_sparse::csr::Csr;

use super::prolong::sorted;
use super::{LANES, Numbers, Rows, THREADS, by_lanes};
use crate::Graph;

pub(super) static GRAPH: Program =
    Program { name: "amg_graph", source: include_str!("graph.cu"), headers: &[LANES] };
/// Lanes of a row that is copied.
const COPYING: usize = 4;

type Alone = (Write<u32>, Structure);
type Count = (Write<u32>, Read<u32>, Read<u32>, Read<u32>, u64);
type Fill = (Write<u32>, Read<u32>, Read<u32>, Read<u32>, Read<u32>, u64);
type Gather<E> = (Write<E>, Read<E>, Read<u32>, u64);
type OrderLengths = (Write<u32>, Read<u32>, Read<u32>, u64);
type OrderFill<H> = (Write<u32>, Write<H>, Read<u32>, Read<u32>, Read<u32>, Structure, u64);

fn program<H: Scalar>() -> Specialisation {
    by_lanes::<H>(&GRAPH, COPYING)
}

/// Neighbours of nodes on the device.
pub(crate) struct Lists {
    /// The first neighbour of each node, and the end.
    pub offsets: Numbers,
    pub near: Numbers,
}

impl Lists {
    /// A copy of a graph; none if it has 2³² connections or more.
    pub fn new(device: &Cuda, graph: &Graph) -> Result<Option<Self>, LinalgError> {
        let offsets = graph.offsets.iter().map(|&offset| u32::try_from(offset));
        let Ok(offsets) = offsets.collect::<Result<Vec<u32>, _>>() else { return Ok(None) };
        let (offsets, near) =
            (Buffer::from_vec(device, offsets)?, Buffer::from_host(device, &graph.neighbours)?);
        Ok(Some(Self { offsets, near }))
    }

    /// Copies a graph of the nodes of a matrix, without the connections of nodes that have no off-diagonal
    /// entry. None if it has 2³² connections or more.
    pub fn of_graph<H: Scalar>(rows: &Rows<'_, H>, graph: &Graph) -> Result<Option<Self>, LinalgError> {
        let device = rows.device;
        let Some(all) = Self::new(device, graph)? else { return Ok(None) };
        let mut is_alone = Buffer::zeros(device, rows.n())?;
        let kernel = Kernel::<Alone>::new("amg_alone");
        let arguments = (is_alone.write(), rows.structure());
        // SAFETY: each row has a mark.
        unsafe { device.launch(&program::<H>(), &kernel, Launch::over(rows.n(), THREADS), arguments) }?;
        Ok(Some(all.without::<H>(Some(&is_alone))?))
    }

    /// Returns the lists without connections of nodes to themselves and connections of marked nodes.
    pub fn without<H: Scalar>(&self, is_alone: Option<&Numbers>) -> Result<Self, LinalgError> {
        let (device, n, program) = (self.offsets.device(), self.offsets.len() - 1, program::<H>());
        let marks = is_alone.map_or(Read::none(), Buffer::read);
        let launch = Launch::over(n, THREADS);
        let mut lengths = Buffer::zeros(device, n)?;
        let arguments = (lengths.write(), marks, self.offsets.read(), self.near.read(), n as u64);
        let kernel = Kernel::<Count>::new("amg_graph_count");
        // SAFETY: each node has a length and, if there are marks, one of these; neighbours are nodes.
        unsafe { device.launch(&program, &kernel, launch, arguments) }?;
        let mut total = Buffer::zeros(device, 1)?;
        let starts = scan::starts(device, &lengths, &mut total, 0)?;
        let mut near = Buffer::zeros(device, total.to_host()?[0] as usize)?;
        let marks = is_alone.map_or(Read::none(), Buffer::read);
        let (offsets, all) = (self.offsets.read(), self.near.read());
        let arguments = (near.write(), starts.read(), marks, offsets, all, n as u64);
        let kernel = Kernel::<Fill>::new("amg_graph_fill");
        // SAFETY: as above; starts are running sums of numbers that are counted in the same way.
        unsafe { device.launch(&program, &kernel, launch, arguments) }?;
        Ok(Self { offsets: starts, near })
    }
}

/// Entry i of the result is entry `order[i]`, for the first `n` of the order.
pub(crate) fn gather(from: &Numbers, order: &Numbers, n: usize) -> Result<Numbers, LinalgError> {
    let device = from.device();
    let mut to = Buffer::zeros(device, n)?;
    let arguments = (to.write(), from.read(), order.read(), n as u64);
    let kernel = Kernel::<Gather<u32>>::new("amg_gather");
    // SAFETY: the order has n entries at least, each the number of one of `from`.
    unsafe { device.launch(&program::<f32>(), &kernel, Launch::over(n, THREADS), arguments) }?;
    Ok(to)
}

/// Entry i of the result is entry `order[i]`.
pub(crate) fn gather_values<H: Scalar>(
    from: &Buffer<H, Cuda>,
    order: &Numbers,
) -> Result<Buffer<H, Cuda>, LinalgError> {
    let (device, n) = (from.device(), order.len());
    let mut to = Buffer::zeros(device, n)?;
    let arguments = (to.write(), from.read(), order.read(), n as u64);
    let kernel = Kernel::<Gather<H>>::new("amg_gather_values");
    // SAFETY: each entry of the order is the number of one of `from`.
    unsafe { device.launch(&program::<H>(), &kernel, Launch::over(n, THREADS), arguments) }?;
    Ok(to)
}

/// Row i of the result is row `order[i]`; columns get the numbers `places`, or keep theirs, and ascend.
pub(crate) fn with_rows<H: Scalar>(
    rows: &Rows<'_, H>,
    order: &Numbers,
    places: Option<&Numbers>,
) -> Result<Csr<H, Cuda>, LinalgError> {
    let (device, n, program) = (rows.device, order.len(), program::<H>());
    let mut lengths = Buffer::zeros(device, n)?;
    let arguments = (lengths.write(), order.read(), rows.offsets.read(), n as u64);
    let kernel = Kernel::<OrderLengths>::new("amg_order_lengths");
    // SAFETY: the order holds rows of the matrix.
    unsafe { device.launch(&program, &kernel, Launch::over(n, THREADS), arguments) }?;
    let mut total = Buffer::zeros(device, 1)?;
    let starts = scan::starts(device, &lengths, &mut total, 0)?;
    let n_entries = total.to_host()?[0] as usize;
    let (mut columns, mut values) = (Buffer::zeros(device, n_entries)?, Buffer::zeros(device, n_entries)?);
    let (from, to) = (places.map_or(Read::none(), Buffer::read), (columns.write(), values.write()));
    let arguments = (to.0, to.1, starts.read(), order.read(), from, rows.structure(), n as u64);
    let kernel = Kernel::<OrderFill<H>>::new("amg_order_fill");
    // SAFETY: as above, so that rows together have as many entries as were counted; each column has a place.
    unsafe { device.launch(&program, &kernel, Launch::over(n * COPYING, THREADS), arguments) }?;
    // SAFETY: offsets are running sums, columns those of the matrix in another order, which is put right at once.
    let copied = unsafe { Csr::from_kernels(rows.a.n_cols(), starts, columns, values) }?;
    if places.is_some() { sorted(copied) } else { Ok(copied) }
}

/// Returns some rows of a matrix, or all of them, in an order; none if its offsets have 64 bits.
pub(crate) fn with_rows_of<H: Scalar>(
    a: &Csr<H, Cuda>,
    order: &Numbers,
) -> Result<Option<Csr<H, Cuda>>, LinalgError> {
    Rows::new(a).map(|rows| with_rows(&rows, order, None)).transpose()
}

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, TABLE_HEADER, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::scan;
use femtile_sparse::csr::Csr;

use super::{FEW_LANES, LANES, MANY_LANES, Rows, THREADS, by_lanes};

pub(super) static PRODUCT: Program =
    Program { name: "amg_product", source: include_str!("product.cu"), headers: &[LANES, TABLE_HEADER] };
/// Bytes of the tables of a block, so that a multiprocessor has several blocks.
const ROOM: usize = 32 << 10;
/// Bytes of the table of a block of one warp, for long rows, if the device has this much shared memory.
const MOST_ROOM: usize = 128 << 10;
/// Entries of a row of the second factor on average from which on a warp takes them together.
const WIDE: usize = 7;

type Bound = (Write<u32>, Read<u32>, Structure);
type Count = (Write<u32>, Write<u32>, Read<u32>, Read<u32>, Structure, u32);
type Fill<H> = (Write<u32>, Write<H>, Read<u32>, Structure, Structure, u32);

/// The distribution of rows over a grid with hash tables: lanes of a row, and the launch.
struct Spread {
    lanes: usize,
    launch: Launch,
    slots: usize,
}

impl Spread {
    /// Chooses the tables for rows of at most `most` entries, with `bytes` bytes per key; none if a table
    /// would be too large.
    fn new(device: &Cuda, n_rows: usize, most: u32, lanes: usize, bytes: usize) -> Option<Self> {
        // A key that is not there is found missing at an empty slot.
        let slots = (most as usize + most as usize / 4 + 1).next_power_of_two().max(32);
        let most_room = MOST_ROOM.min(device.properties().shared_bytes_per_block());
        let choices = [
            (lanes, 128, ROOM),
            (lanes, 64, ROOM),
            (32, 128, ROOM),
            (32, 64, ROOM),
            (32, 32, ROOM),
            (32, 32, most_room),
        ];
        let fits = |(lanes, threads, room): &(usize, usize, usize)| threads / lanes * slots * bytes <= *room;
        let (lanes, threads, _) = choices.into_iter().find(fits)?;
        let launch = Launch::over(n_rows * lanes, threads as u32).shared(threads / lanes * slots * bytes);
        Some(Self { lanes, launch, slots })
    }
}

/// Specialises the program for the lanes of a row and blocks of columns.
pub(super) fn program<H: Scalar>(lanes: usize, block: usize) -> Specialisation {
    by_lanes::<H>(&PRODUCT, lanes).define("FEMTILE_COLUMNS", block)
}

/// Computes A B, with the columns of each row in any order; none if a row has too many entries for a table. Rows of B have whole
/// blocks of `block` columns, the first of which is a multiple of it; so have those of the product.
///
/// # Cost
/// Reads the rows of B twice for each entry of A, mostly from caches.
/// # Source
/// Tables in shared memory: `[nagasaka2017]`. Differs: terms are added in order.
pub(crate) fn product<H: Scalar>(
    a: &Csr<H, Cuda>,
    b: &Csr<H, Cuda>,
    block: usize,
) -> Result<Option<Csr<H, Cuda>>, LinalgError> {
    let (Some(left), Some(right)) = (Rows::new(a), Rows::new(b)) else { return Ok(None) };
    let (device, n) = (left.device, left.n());
    let lanes = if b.n_nonzeros() < WIDE * b.n_rows() { FEW_LANES } else { MANY_LANES };
    let mut most = Buffer::zeros(device, 2)?;
    let arguments = (most.write(), right.offsets.read(), left.structure());
    let kernel = Kernel::<Bound>::new("amg_product_bound");
    let launch = Launch::over(n * lanes, THREADS);
    // SAFETY: columns of A are rows of B.
    unsafe { device.launch(&program::<H>(lanes, block), &kernel, launch, arguments) }?;
    let bound = most.to_host()?[0].min(u32::try_from(b.n_cols()).unwrap_or(u32::MAX).div_ceil(block as u32));
    let Some(Spread { lanes: counting, launch, slots }) = Spread::new(device, n, bound, lanes, 4) else {
        return Ok(None);
    };
    let mut lengths = Buffer::zeros(device, n)?;
    let (offsets, columns) = (right.offsets.read(), b.columns().read());
    let longest = Write::from(&mut most, 1);
    let arguments = (lengths.write(), longest, offsets, columns, left.structure(), slots as u32);
    let kernel = Kernel::<Count>::new("amg_product_count");
    // SAFETY: as above; a table has more slots than a row has terms, or B has columns.
    unsafe { device.launch(&program::<H>(counting, block), &kernel, launch, arguments) }?;
    let mut total = Buffer::zeros(device, 1)?;
    let starts = scan::starts(device, &lengths, &mut total, 0)?;
    let longest = most.to_host()?[1];
    let total = total.to_host()?[0];
    let Ok(n_entries) = u32::try_from(total) else { return Ok(None) };
    let bytes = size_of::<u32>() + block * size_of::<H>();
    let Some(Spread { lanes: filling, launch, slots }) = Spread::new(device, n, longest, lanes, bytes) else {
        return Ok(None);
    };
    let (mut columns, mut values) =
        (Buffer::zeros(device, n_entries as usize)?, Buffer::zeros(device, n_entries as usize)?);
    let arguments =
        (columns.write(), values.write(), starts.read(), left.structure(), right.structure(), slots as u32);
    let kernel = Kernel::<Fill<H>>::new("amg_product_fill");
    // SAFETY: as above; a row has as many entries as were counted, and a table room for more.
    unsafe { device.launch(&program::<H>(filling, block), &kernel, launch, arguments) }?;
    // SAFETY: offsets are running sums and columns those of B; rows are put in order before others see them.
    Ok(Some(unsafe { Csr::from_kernels(b.n_cols(), starts, columns, values) }?))
}

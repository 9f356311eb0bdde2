use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile_device::{Buffer, Cuda};

use crate::LinalgError;

static SCAN: Program = Program { name: "scan", source: include_str!("scan.cu"), headers: &[] };
/// Threads of a block.
const THREADS: u32 = 256;
/// Numbers that a block adds up.
const TILE: usize = 1024;

type Tiles = (Write<u32>, Write<u64>, Read<u32>, u64);
type Sums = (Write<u64>, Write<u64>, u64);
type Ends = (Write<u32>, Read<u64>, Read<u64>, u64);

/// Returns the program of running sums.
pub fn program() -> Specialisation {
    SCAN.of::<u32>().define("FEMTILE_TILE", TILE)
}

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    vec![program()]
}

/// $s_i = \sum_{j < i} x_j$ for i from 0 to n, without waiting for the device: the offsets of parts of given
/// sizes, and the end, modulo 2³². The sum of all is `totals[which]`, with all its bits.
///
/// # Cost
/// Reads n numbers of 32 bits, writes n twice and reads them once.
/// # Errors
/// When the device has not the memory.
/// # Panics
/// When `which` lies beyond the totals.
pub fn starts(
    device: &Cuda,
    sizes: &Buffer<u32, Cuda>,
    totals: &mut Buffer<u64, Cuda>,
    which: usize,
) -> Result<Buffer<u32, Cuda>, LinalgError> {
    assert!(which < totals.len(), "total {which} of {}", totals.len());
    let (n, n_tiles) = (sizes.len(), sizes.len().div_ceil(TILE));
    let (mut starts, mut tiles) = (Buffer::zeros(device, n + 1)?, Buffer::zeros(device, n_tiles)?);
    let program = program();
    let arguments = (starts.write(), tiles.write(), sizes.read(), n as u64);
    let kernel = Kernel::<Tiles>::new("scan_tiles");
    // SAFETY: a block takes a tile and writes its sum; there is a start for each size.
    unsafe { device.launch(&program, &kernel, Launch::line(n_tiles, THREADS), arguments) }?;
    let arguments = (tiles.write(), Write::from(totals, which), n_tiles as u64);
    let kernel = Kernel::<Sums>::new("scan_sums");
    // SAFETY: one block takes the sums of all tiles.
    unsafe { device.launch(&program, &kernel, Launch::line(1, THREADS), arguments) }?;
    let arguments = (starts.write(), tiles.read(), Read::from(totals, which), n as u64);
    let kernel = Kernel::<Ends>::new("scan_starts");
    // SAFETY: there is a start more than sizes, and a sum for each tile of them.
    unsafe { device.launch(&program, &kernel, Launch::over(n + 1, THREADS), arguments) }?;
    Ok(starts)
}

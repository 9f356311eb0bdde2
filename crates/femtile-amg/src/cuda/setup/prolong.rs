use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::scan;
use femtile_sparse::csr::Csr;

use super::{LANES, Numbers, Rows, THREADS, by_lanes};
use crate::kernels::DeviceAggregates;
use crate::setup::spectrum::{PROLONGED, share};

pub(super) static PROLONG: Program =
    Program { name: "amg_prolong", source: include_str!("prolong.cu"), headers: &[LANES] };
/// Lanes of a row that is sorted.
const SORTING: usize = 32;

type Tentative<H> = (Write<H>, Read<u32>, Read<u32>, Read<u32>, u64);
type Count = (Write<u32>, Read<u32>, Read<u32>, Read<u32>, u64);
type Fill<H> = (Write<u32>, Write<H>, Read<u32>, Read<u32>, Read<u32>, Read<H>, Read<u32>, Structure, H, H);
type ColumnLengths = (Write<u32>, Read<u32>, u64);
type Transpose<H> = (Write<u32>, Write<H>, Write<u32>, Read<u32>, Structure);
type Sort<H> = (Write<u32>, Write<H>, Structure);

pub(super) fn program<H: Scalar>() -> Specialisation {
    by_lanes::<H>(&PROLONG, SORTING)
}

/// The constant, cut to parts: `sums` are their weights, `weights` those of nodes.
pub(crate) fn tentative<H: Scalar>(
    parts: &DeviceAggregates<Cuda>,
    weights: Option<&Numbers>,
    sums: &Numbers,
) -> Result<Buffer<H, Cuda>, LinalgError> {
    let (device, n) = (sums.device(), parts.of_node.len());
    let mut q = Buffer::zeros(device, n)?;
    let weights = weights.map_or(Read::none(), Buffer::read);
    let arguments = (q.write(), parts.of_node.read(), weights, sums.read(), n as u64);
    let kernel = Kernel::<Tentative<H>>::new("amg_tentative");
    // SAFETY: each node has an entry, each part a sum.
    unsafe { device.launch(&program::<H>(), &kernel, Launch::over(n, THREADS), arguments) }?;
    Ok(q)
}

/// [`crate::setup::prolong::Smoothing::prolongator`] on the GPU; `weights` are the squares of the near-nullspace.
pub(super) fn prolongator<H: Scalar>(
    rows: &Rows<'_, H>,
    strong: &Numbers,
    parts: &DeviceAggregates<Cuda>,
    q: &Buffer<H, Cuda>,
    weights: Option<&Numbers>,
    largest: f64,
) -> Result<Csr<H, Cuda>, LinalgError> {
    let (device, n, program) = (rows.device, rows.n(), program::<H>());
    let launch = Launch::over(n, THREADS);
    let (strong, of_node) = (strong.read(), parts.of_node.read());
    let mut lengths = Buffer::zeros(device, n)?;
    let arguments = (lengths.write(), rows.offsets.read(), strong, of_node, n as u64);
    let kernel = Kernel::<Count>::new("amg_prolong_count");
    // SAFETY: each row has a length, each entry a mark, each node a part or none.
    unsafe { device.launch(&program, &kernel, launch, arguments) }?;
    let mut total = Buffer::zeros(device, 1)?;
    let starts = scan::starts(device, &lengths, &mut total, 0)?;
    let n_entries = total.to_host()?[0] as usize;
    let (mut columns, mut values) = (Buffer::zeros(device, n_entries)?, Buffer::zeros(device, n_entries)?);
    let (share, damping) = (H::from_f64(share(largest)), H::from_f64(largest / PROLONGED));
    let structure = rows.structure();
    let arguments = (
        columns.write(),
        values.write(),
        starts.read(),
        strong,
        of_node,
        q.read(),
        weights.map_or(Read::none(), Buffer::read),
        structure,
        share,
        damping,
    );
    let kernel = Kernel::<Fill<H>>::new("amg_prolong_fill");
    // SAFETY: as above; a row writes as many entries as were counted in the same way.
    unsafe { device.launch(&program, &kernel, launch, arguments) }?;
    // SAFETY: offsets are running sums; columns are parts, and kept in order.
    unsafe { Csr::from_kernels(parts.n, starts, columns, values) }
}

/// The transpose; none of a matrix whose offsets have 64 bits.
pub(crate) fn transpose<H: Scalar>(p: &Csr<H, Cuda>) -> Result<Option<Csr<H, Cuda>>, LinalgError> {
    let device = p.values().device();
    let Some(rows) = Rows::new(p) else { return Ok(None) };
    let (n_cols, n_entries, program) = (p.n_cols(), p.n_nonzeros(), program::<H>());
    let mut lengths = Buffer::zeros(device, n_cols)?;
    let arguments = (lengths.write(), p.columns().read(), n_entries as u64);
    let kernel = Kernel::<ColumnLengths>::new("amg_column_lengths");
    // SAFETY: columns are below their number.
    unsafe { device.launch(&program, &kernel, Launch::over(n_entries, THREADS), arguments) }?;
    let mut total = Buffer::zeros(device, 1)?;
    let starts = scan::starts(device, &lengths, &mut total, 0)?;
    let (mut columns, mut values) = (Buffer::zeros(device, n_entries)?, Buffer::zeros(device, n_entries)?);
    let mut taken = Buffer::zeros(device, n_cols)?;
    let arguments = (columns.write(), values.write(), taken.write(), starts.read(), rows.structure());
    let kernel = Kernel::<Transpose<H>>::new("amg_transpose");
    // SAFETY: each column takes as many entries as it has.
    unsafe { device.launch(&program, &kernel, Launch::over(rows.n(), THREADS), arguments) }?;
    // SAFETY: offsets are running sums and columns rows of p; their order is put right at once.
    let unsorted = unsafe { Csr::from_kernels(p.n_rows(), starts, columns, values) }?;
    Ok(Some(sorted(unsorted)?))
}

/// Sorts the columns of each row.
pub(crate) fn sorted<H: Scalar>(a: Csr<H, Cuda>) -> Result<Csr<H, Cuda>, LinalgError> {
    let device = a.values().device();
    let Some(rows) = Rows::new(&a) else { return Ok(a) };
    let n_entries = a.n_nonzeros();
    let (mut columns, mut values) = (Buffer::zeros(device, n_entries)?, Buffer::zeros(device, n_entries)?);
    let arguments = (columns.write(), values.write(), rows.structure());
    let kernel = Kernel::<Sort<H>>::new("amg_sort_rows");
    let launch = Launch::over(rows.n() * SORTING, THREADS);
    // SAFETY: each entry goes to a place of its row that no other one has, as columns of a row differ.
    unsafe { device.launch(&program::<H>(), &kernel, launch, arguments) }?;
    // SAFETY: columns now ascend.
    unsafe { a.with_entries(columns, values) }
}

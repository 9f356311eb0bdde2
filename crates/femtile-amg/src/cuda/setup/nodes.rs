use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_sparse::csr::Csr;

use super::aggregate::Neighbours;
use super::{LANES, Rows, THREADS, aggregates, by_lanes, matrix, product, prolong};
use crate::AmgConfig;
use crate::coarsen::energy_rounding;
use crate::kernels::{Coarsened, DeviceAggregates, Grouping};
use crate::setup::graph::{Aggregates, NONE};
use crate::setup::rescaling::LOPSIDED;
use crate::setup::spectrum::{PROLONGED, most, share};
use crate::setup::tentative::{NearNullspace, Tentative};

pub(super) static NODES: Program =
    Program { name: "amg_nodes", source: include_str!("nodes.cu"), headers: &[LANES] };
/// Lanes of a row.
const SHARING: usize = 32;

type Sums<H> = (Write<H>, Write<u32>, Read<H>, Structure, f64);
type Squares<H> = (Write<H>, Read<H>, u64);
type Norms<H> = (Write<H>, Write<H>, Structure);
type Smooth<H> = (Write<H>, Read<H>, Structure, Structure, H);
type Ones<H> = (Write<H>, Structure);
type Energies<H> = (Write<u32>, Read<H>, Structure, Structure, f64);

pub(super) fn program<H: Scalar>() -> Specialisation {
    by_lanes::<H>(&NODES, SHARING)
}

/// The next level of a matrix with several vectors as near-nullspace, and the vectors of that.
pub(crate) type CoarsenedNodes<H> = Coarsened<H, Cuda, Csr<H, Cuda>, Vec<f64>>;

/// Whether a matrix is one that [`crate::setup::rescaling`] scales; none if the host has to look at it.
pub(crate) fn is_lopsided<H: Scalar>(a: &Csr<H, Cuda>) -> Result<Option<bool>, LinalgError> {
    let Some(rows) = Rows::new(a) else { return Ok(None) };
    let Some(matrix::Matrix { diagonal, .. }) = matrix::look(&rows, None, 1)? else { return Ok(None) };
    Ok(Some(sums(&rows, &diagonal)?.1))
}

/// The sums of the sizes of the entries of rows, and whether one of them is too large: [`LOPSIDED`].
fn sums<H: Scalar>(
    rows: &Rows<'_, H>,
    diagonal: &Buffer<H, Cuda>,
) -> Result<(Buffer<H, Cuda>, bool), LinalgError> {
    let (device, n) = (rows.device, rows.n());
    let (mut sums, mut is_lopsided) = (Buffer::zeros(device, n)?, Buffer::zeros(device, 1)?);
    let arguments = (sums.write(), is_lopsided.write(), diagonal.read(), rows.structure(), LOPSIDED);
    let kernel = Kernel::<Sums<H>>::new("amg_node_sums");
    // SAFETY: the matrix is square, and each row has a sum and an entry of the diagonal.
    unsafe { device.launch(&program::<H>(), &kernel, Launch::over(n * SHARING, THREADS), arguments) }?;
    Ok((sums, is_lopsided.to_host()?[0] != 0))
}

/// Sets up the next level of a matrix whose nodes have `block` rows each. Nodes are grouped by the Frobenius norms of blocks,
/// and the near-nullspace is orthonormalized on the host, as they are few beside the entries. None as [`super::coarsen`], where
/// columns need more than 32 bits, and if a part of the matrix without a Dirichlet value is reduced to a row without energy.
pub(crate) fn coarsen<H: Scalar>(
    a: &Csr<H, Cuda>,
    (b, block): (&[f64], usize),
    thresholds: [f64; 2],
    config: &AmgConfig,
    by: &Grouping<'_, Cuda>,
) -> Result<Option<CoarsenedNodes<H>>, LinalgError> {
    if u32::try_from(b.len()).is_err() {
        return Ok(None);
    }
    let Some(rows) = Rows::new(a) else { return Ok(None) };
    let Some(matrix::Matrix { diagonal, lanczos, .. }) = matrix::look(&rows, None, block)? else {
        return Ok(None);
    };
    let Some(parts) = grouped(&rows, block, thresholds, config, by)? else { return Ok(None) };
    let (largest, inverse_diagonal) = scaling(&rows, &diagonal, lanczos, block)?;
    let n_vectors = b.len() / rows.n();
    let on_host = Aggregates { n: parts.n, of_node: parts.of_node.to_host()? };
    let b = NearNullspace { n_vectors, values: b.to_vec() };
    let Tentative { values, coarse, n_zero } = Tentative::<H>::new(&b, &on_host, block);
    let q = tentative(rows.device, values, &on_host, (block, n_vectors))?;
    let Some(aq) = product::product(a, &q, n_vectors)? else { return Ok(None) };
    let aq = prolong::sorted(aq)?;
    let Some(p) = smoothed([&q, &aq], &inverse_diagonal, PROLONGED / largest)? else { return Ok(None) };
    let Some(r) = prolong::transpose(&p)? else { return Ok(None) };
    let Some(ap) = product::product(a, &p, n_vectors)? else { return Ok(None) };
    let Some(next) = product::product(&r, &ap, n_vectors)? else { return Ok(None) };
    let mut next = prolong::sorted(next)?;
    if n_zero > 0 {
        next = with_ones(next)?;
    }
    if loses_energy([&r, &next], &diagonal)? {
        return Ok(None);
    }
    let (patched, halo) = (None, None);
    let made = Coarsened {
        inverse_diagonal,
        patched,
        largest,
        p,
        r,
        coarse: next,
        halo,
        parts,
        nodes: coarse.values,
    };
    Ok(Some(made))
}

/// Returns the largest eigenvalue, and the reciprocals of the diagonal, as [`crate::setup::spectrum::Scaling::new`].
pub(super) fn scaling<H: Scalar>(
    rows: &Rows<'_, H>,
    diagonal: &Buffer<H, Cuda>,
    lanczos: matrix::Lanczos,
    block: usize,
) -> Result<(f64, Buffer<H, Cuda>), LinalgError> {
    let sums = (block > 1).then(|| sums(rows, diagonal)).transpose()?;
    let largest = lanczos.end()?;
    let bound = match sums {
        Some((sums, _)) => {
            let ratios = sums.to_host()?.into_iter().zip(diagonal.to_host()?);
            1.0 / most(largest, ratios.map(|(sum, own)| sum.to_f64() / own.to_f64()).collect())
        }
        None => share(largest),
    };
    Ok((largest, matrix::raise(rows, diagonal, bound)?))
}

/// Groups the nodes by the first threshold of [`crate::setup::strength::Strength::new`]. None if less than half of the nodes are
/// connected: the host has a second threshold, and joins nodes that no coarser level would represent.
fn grouped<H: Scalar>(
    rows: &Rows<'_, H>,
    block: usize,
    thresholds: [f64; 2],
    config: &AmgConfig,
    by: &Grouping<'_, Cuda>,
) -> Result<Option<DeviceAggregates<Cuda>>, LinalgError> {
    let Some((norms, diagonal)) = norms(rows, block)? else { return Ok(None) };
    let Some(nodes) = Rows::new(&norms) else { return Ok(None) };
    let graph = Neighbours::new(&nodes, &diagonal, None, thresholds)?;
    if graph.linked.n_connected.is_some_and(|n| 2 * n < graph.linked.n) {
        return Ok(None);
    }
    aggregates::<H>(&graph, config, by)
}

/// The Frobenius norms of the blocks of a matrix, and those of the diagonal: S' (A ∘ A) S with ones in S for the rows of a node.
#[allow(clippy::type_complexity)]
fn norms<H: Scalar>(
    rows: &Rows<'_, H>,
    block: usize,
) -> Result<Option<(Csr<H, Cuda>, Buffer<H, Cuda>)>, LinalgError> {
    let (device, n_entries) = (rows.device, rows.a.n_nonzeros());
    let mut squares = Buffer::zeros(device, n_entries)?;
    let kernel = Kernel::<Squares<H>>::new("amg_node_squares");
    let arguments = (squares.write(), rows.a.values().read(), n_entries as u64);
    // SAFETY: there are as many squares as values.
    unsafe { device.launch(&program::<H>(), &kernel, Launch::over(n_entries, THREADS), arguments) }?;
    let squares = rows.a.with_values(squares)?;
    let (n, n_nodes) = (rows.n(), rows.n() / block);
    let numbers = |values: std::ops::RangeInclusive<u32>| Buffer::from_vec(device, values.collect());
    let (node_of, ones) = ((0..n as u32).map(|row| row / block as u32).collect(), vec![H::ONE; n]);
    let (node_of, ones) = (Buffer::from_vec(device, node_of)?, Buffer::from_vec(device, ones)?);
    // SAFETY: each row has one entry, in the column of its node.
    let members = unsafe { Csr::from_kernels(n_nodes, numbers(0..=n as u32)?, node_of, ones) }?;
    let Some(of_nodes) = prolong::transpose(&members)? else { return Ok(None) };
    let Some(by_columns) = product::product(&squares, &members, 1)? else { return Ok(None) };
    let Some(squares) = product::product(&of_nodes, &by_columns, 1)? else { return Ok(None) };
    let squares = prolong::sorted(squares)?;
    let Some(blocks) = Rows::new(&squares) else { return Ok(None) };
    let (mut norms, mut diagonal) =
        (Buffer::zeros(device, squares.n_nonzeros())?, Buffer::zeros(device, n_nodes)?);
    let kernel = Kernel::<Norms<H>>::new("amg_node_norms");
    let arguments = (norms.write(), diagonal.write(), blocks.structure());
    // SAFETY: each entry has a norm, each node an entry of the diagonal.
    unsafe { device.launch(&program::<H>(), &kernel, Launch::over(n_nodes * SHARING, THREADS), arguments) }?;
    Ok(Some((squares.with_values(norms)?, diagonal)))
}

/// The tentative prolongator from its values for all rows: a row has the columns of the vectors of its part.
fn tentative<H: Scalar>(
    device: &Cuda,
    values: Vec<H>,
    parts: &Aggregates,
    (block, n_vectors): (usize, usize),
) -> Result<Csr<H, Cuda>, LinalgError> {
    let k = n_vectors as u32;
    let (mut offsets, mut columns) = (Vec::with_capacity(values.len() / n_vectors + 1), Vec::new());
    columns.reserve(values.len());
    offsets.push(0);
    for &part in &parts.of_node {
        for _ in 0..block {
            if part != NONE {
                columns.extend(part * k..(part + 1) * k);
            }
            offsets.push(columns.len() as u32);
        }
    }
    let values = match columns.len() == values.len() {
        true => values,
        false => {
            let of_node = values.chunks(block * n_vectors).zip(&parts.of_node);
            of_node.filter(|(_, part)| **part != NONE).flat_map(|(values, _)| values).copied().collect()
        }
    };
    let (offsets, columns) = (Buffer::from_vec(device, offsets)?, Buffer::from_vec(device, columns)?);
    // SAFETY: offsets are running sums, columns those of parts, which ascend.
    unsafe { Csr::from_kernels(parts.n * n_vectors, offsets, columns, Buffer::from_vec(device, values)?) }
}

/// [`crate::setup::prolong::Smoothing::prolongator`] of several vectors, from Q and A Q.
fn smoothed<H: Scalar>(
    [q, aq]: [&Csr<H, Cuda>; 2],
    inverse_diagonal: &Buffer<H, Cuda>,
    damping: f64,
) -> Result<Option<Csr<H, Cuda>>, LinalgError> {
    let (Some(left), Some(right)) = (Rows::new(q), Rows::new(aq)) else { return Ok(None) };
    let device = left.device;
    let mut values = Buffer::zeros(device, aq.n_nonzeros())?;
    let damping = H::from_f64(damping);
    let arguments = (values.write(), inverse_diagonal.read(), left.structure(), right.structure(), damping);
    let kernel = Kernel::<Smooth<H>>::new("amg_node_smooth");
    let launch = Launch::over(right.n() * SHARING, THREADS);
    // SAFETY: both matrices have a row for each entry of the diagonal, and P has the entries of A Q.
    unsafe { device.launch(&program::<H>(), &kernel, launch, arguments) }?;
    aq.with_values(values).map(Some)
}

/// Whether a row of the next level has no energy except rounding, from the restriction and the diagonal of the level.
fn loses_energy<H: Scalar>(
    [r, next]: [&Csr<H, Cuda>; 2],
    diagonal: &Buffer<H, Cuda>,
) -> Result<bool, LinalgError> {
    let (Some(r), Some(next)) = (Rows::new(r), Rows::new(next)) else { return Ok(true) };
    let mut is_lost = Buffer::zeros(r.device, 1)?;
    let arguments =
        (is_lost.write(), diagonal.read(), r.structure(), next.structure(), energy_rounding::<H>());
    let kernel = Kernel::<Energies<H>>::new("amg_node_energies");
    let launch = Launch::over(next.n() * SHARING, THREADS);
    // SAFETY: the restriction has a row for each of the next level, and a column for each entry of the diagonal.
    unsafe { r.device.launch(&program::<H>(), &kernel, launch, arguments) }?;
    Ok(is_lost.to_host()?[0] != 0)
}

/// The matrix with ones on the diagonal of rows of zeros, of vectors that vanish on their part.
fn with_ones<H: Scalar>(a: Csr<H, Cuda>) -> Result<Csr<H, Cuda>, LinalgError> {
    let device = a.values().device();
    let mut values = Buffer::zeros(device, a.n_nonzeros())?;
    let Some(rows) = Rows::new(&a) else { return Ok(a) };
    let kernel = Kernel::<Ones<H>>::new("amg_node_ones");
    let launch = Launch::over(rows.n() * SHARING, THREADS);
    // SAFETY: there are as many values as entries.
    unsafe { device.launch(&program::<H>(), &kernel, launch, (values.write(), rows.structure())) }?;
    a.with_values(values)
}

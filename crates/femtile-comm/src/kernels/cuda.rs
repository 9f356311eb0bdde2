use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Device, Element, Scalar};
use femtile_linalg::hooks::{CudaHook, Hook};
use femtile_linalg::{LinalgError, LinearOperator, need};
use femtile_sparse::csr::Csr;

use super::peer_link::PeerLink;
use super::{RankKernels, divide};
use crate::{Halo, Incoming, LocalUnknowns, Outgoing, OwnedRows};

static RANKS: Program = Program { name: "ranks", source: include_str!("ranks.cu"), headers: &[] };
pub(super) const THREADS: u32 = 256;
/// Rows per block of a kernel that calls a hook.
const ROWS: usize = 2048;

type Pick<T> = (Write<T>, Read<T>, Read<u32>, u64, u64, u64);
type Put<T> = (Write<T>, Read<T>, u64, u64, u64);
type Spread<T> = (Write<T>, Read<T>, Read<T>, Read<u32>, u64, u64);
type Post<T> = (Read<T>, Read<T>, u64, Structure);

pub(super) fn program<T: Scalar>(hook: &CudaHook<'_>) -> Specialisation {
    RANKS.of::<T>().define("FEMTILE_ROWS", ROWS).header("hook.cuh", hook.source())
}

/// The programs of this file, for checks that compile all of them.
pub(super) fn specialisations() -> Vec<Specialisation> {
    let hook = CudaHook::none();
    vec![program::<f32>(&hook), program::<f64>(&hook)]
}

/// Data of a halo exchange on a GPU.
pub struct Link<T: Scalar> {
    /// The exported unknowns of all neighbours, concatenated.
    exports: Buffer<u32, Cuda>,
    way: Mutex<Way<T>>,
}

/// How values reach other ranks.
enum Way<T: Scalar> {
    /// Through the host: a buffer for the values of all exports.
    Host(Buffer<T, Cuda>),
    Peers(Box<PeerLink<T>>),
}

/// The numbers of a [`LocalUnknowns`], and the unknowns of the part of owned ones.
#[derive(Debug)]
pub struct Positions {
    positions: Buffer<u32, Cuda>,
    owned: Buffer<u32, Cuda>,
}

fn read<T: Element>(buffer: &Buffer<T, Cuda>) -> Read<T> {
    if buffer.is_empty() { Read::none() } else { buffer.read() }
}

/// Positions of values: entries of an index list from one of them on, or a consecutive range.
pub(super) enum Places<'a> {
    Of(&'a Buffer<u32, Cuda>, usize),
    From(usize),
}

impl Places<'_> {
    fn arguments(&self) -> (Read<u32>, u64) {
        match self {
            Self::Of(places, first) => (Read::from(places, *first), 0),
            Self::From(first) => (Read::none(), *first as u64),
        }
    }

    /// Refuses index lists with fewer than `n` entries.
    fn need(&self, n: usize) -> Result<(), LinalgError> {
        match self {
            Self::Of(places, first) => need("places", n, places.len().saturating_sub(*first).min(n)),
            Self::From(_) => Ok(()),
        }
    }
}

/// Gathers the values of `x` at some positions.
fn pick<T: Scalar>(
    out: &mut Buffer<T, Cuda>,
    x: &Buffer<T, Cuda>,
    places: &Places<'_>,
) -> Result<(), LinalgError> {
    let n = out.len();
    pick_first((out, n), x, places)
}

/// As `pick`, into the first `n` entries of `out`.
pub(super) fn pick_first<T: Scalar>(
    (out, n): (&mut Buffer<T, Cuda>, usize),
    x: &Buffer<T, Cuda>,
    places: &Places<'_>,
) -> Result<(), LinalgError> {
    if n == 0 {
        return Ok(());
    }
    need("out", n, out.len().min(n))?;
    places.need(n)?;
    let (at, first) = places.arguments();
    let arguments = (out.write(), read(x), at, first, n as u64, x.len() as u64);
    let kernel = Kernel::<Pick<T>>::new("ranks_pick");
    let device = out.device().clone();
    // SAFETY: the list has n places, and those past the end of x are not followed.
    Ok(unsafe {
        device.launch(&program::<T>(&CudaHook::none()), &kernel, Launch::over(n, THREADS), arguments)
    }?)
}

/// Adds a range of values at some positions, which must be distinct.
fn add<T: Scalar>(
    y: &mut Buffer<T, Cuda>,
    (values, range): (&Buffer<T, Cuda>, Range<usize>),
    places: &Places<'_>,
) -> Result<(), LinalgError> {
    let n = range.len();
    if n == 0 {
        return Ok(());
    }
    need("values", range.end, values.len().min(range.end))?;
    places.need(n)?;
    let (at, first) = places.arguments();
    let n_y = y.len() as u64;
    let arguments = (y.write(), Read::from(values, range.start), at, first, n as u64, n_y);
    let kernel = Kernel::<Pick<T>>::new("ranks_add");
    let device = y.device().clone();
    // SAFETY: the list has n places, and those past the end of y are not followed; no two are the same.
    Ok(unsafe {
        device.launch(&program::<T>(&CudaHook::none()), &kernel, Launch::over(n, THREADS), arguments)
    }?)
}

fn spread<T: Scalar>(
    part: &mut Buffer<T, Cuda>,
    (owned, ghosts): (&Buffer<T, Cuda>, Option<&Buffer<T, Cuda>>),
    positions: Read<u32>,
) -> Result<(), LinalgError> {
    let n = part.len();
    if n == 0 {
        return Ok(());
    }
    let ghosts = ghosts.map_or(Read::none(), read);
    let arguments = (part.write(), read(owned), ghosts, positions, owned.len() as u64, n as u64);
    let kernel = Kernel::<Spread<T>>::new("ranks_spread");
    let device = part.device().clone();
    // SAFETY: a number below the owned ones is one of them, and one below n is a ghost; no other is followed.
    Ok(unsafe {
        device.launch(&program::<T>(&CudaHook::none()), &kernel, Launch::over(n, THREADS), arguments)
    }?)
}

/// Calls a hook for all rows.
fn post<T: Scalar>(y: &Buffer<T, Cuda>, x: &Buffer<T, Cuda>, hook: &dyn Hook<T>) -> Result<(), LinalgError> {
    let n = y.len();
    need("x", n, x.len())?;
    let hook = CudaHook::of(hook, [n; 2])?.by_rows();
    if hook == CudaHook::none() {
        return Ok(());
    }
    let launch = Launch::line(n.div_ceil(ROWS), THREADS);
    let arguments = (read(y), read(x), n as u64, hook.fields());
    let kernel = Kernel::<Post<T>>::new("ranks_post");
    let device = y.device().clone();
    // SAFETY: both vectors have an entry per row; the creator of the hook guarantees its accesses.
    Ok(unsafe { device.launch(&program::<T>(&hook), &kernel, launch, arguments) }?)
}

/// The ranges of the exports, neighbour by neighbour.
fn letters<'a>(halo: &'a Halo) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
    let mut next = 0;
    halo.exports().iter().map(move |(other, places)| {
        next += places.len();
        (*other, next - places.len()..next)
    })
}

impl<T: Scalar> RankKernels<T> for Cuda {
    type Link = Link<T>;
    type Positions = Positions;

    fn link(&self, halo: &Halo) -> Result<Link<T>, LinalgError> {
        let places: Vec<u32> = halo.exports().iter().flat_map(|(_, places)| places).copied().collect();
        let way = match halo.comm().has_peers() {
            true => Way::Peers(Box::new(PeerLink::new(self, halo)?)),
            false => Way::Host(Buffer::zeros(self, places.len())?),
        };
        Ok(Link { exports: Buffer::from_vec(self, places)?, way: Mutex::new(way) })
    }

    fn positions(&self, unknowns: &LocalUnknowns) -> Result<Positions, LinalgError> {
        Ok(Positions {
            positions: Buffer::from_host(self, unknowns.positions())?,
            owned: Buffer::from_host(self, unknowns.owned())?,
        })
    }

    fn import(
        &self,
        (halo, link): (&Halo, &Link<T>),
        ghosts: &mut Buffer<T, Self>,
        owned: &Buffer<T, Self>,
        meanwhile: &mut dyn FnMut() -> Result<(), LinalgError>,
    ) -> Result<(), LinalgError> {
        need("ghosts", halo.n_ghosts(), ghosts.len())?;
        need("owned", halo.n_owned(), owned.len())?;
        need("link", halo.n_sent(), link.exports.len())?;
        let places = Places::Of(&link.exports, 0);
        match &mut *link.way.lock().unwrap_or_else(PoisonError::into_inner) {
            Way::Peers(peers) => {
                peers.give(halo.comm(), |sent, _| pick(sent, owned, &places))?;
                meanwhile()?;
                peers.pull(ghosts)
            }
            Way::Host(sent) => {
                pick(sent, owned, &places)?;
                import_by_host(self, halo, (sent, ghosts), meanwhile)
            }
        }
    }

    fn add_to_owners(
        &self,
        (halo, link): (&Halo, &Link<T>),
        owned: &mut Buffer<T, Self>,
        ghosts: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need("ghosts", halo.n_ghosts(), ghosts.len())?;
        need("owned", halo.n_owned(), owned.len())?;
        need("link", halo.n_sent(), link.exports.len())?;
        // Two neighbours may copy the same unknown: their values are added one after the other.
        match &mut *link.way.lock().unwrap_or_else(PoisonError::into_inner) {
            Way::Peers(peers) => {
                peers.give(halo.comm(), |_, given| pick(given, ghosts, &Places::From(0)))?;
                peers.wait(self)?;
                letters(halo).try_for_each(|(_, range)| peers.pull_and_add(owned, &link.exports, range))
            }
            Way::Host(received) => {
                let Some(values) = returned_by_host(halo, ghosts)? else { return Ok(()) };
                received.upload(&values)?;
                letters(halo).try_for_each(|(_, range)| {
                    add(owned, (received, range.clone()), &Places::Of(&link.exports, range.start))
                })
            }
        }
    }

    fn own_product(
        &self,
        a: &dyn LinearOperator<T, Self>,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        _: (&dyn Hook<T>, usize),
    ) -> Result<(), LinalgError> {
        a.apply(y, x)
    }

    fn complete(
        &self,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        sums: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        need("sums", sums.len().min(y.len()), sums.len())?;
        let first = y.len() - sums.len();
        add(y, (sums, 0..sums.len()), &Places::From(first))?;
        post(y, x, hook)
    }

    fn divide(&self, a: Csr<T, Self>, n_owned: usize) -> Result<OwnedRows<T, Self>, LinalgError> {
        need("rows", n_owned, a.n_rows().min(n_owned))?;
        need("columns", n_owned, a.n_cols().min(n_owned))?;
        divide::divide(self, a, n_owned)
    }

    fn join(
        &self,
        part: &mut Buffer<T, Self>,
        owned: &Buffer<T, Self>,
        ghosts: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need("part", owned.len() + ghosts.len(), part.len())?;
        spread(part, (owned, Some(ghosts)), Read::none())
    }

    fn section(&self, y: &mut Buffer<T, Self>, x: &Buffer<T, Self>, first: usize) -> Result<(), LinalgError> {
        need("x", first + y.len(), x.len().min(first + y.len()))?;
        pick(y, x, &Places::From(first))
    }

    fn put(
        &self,
        y: &mut Buffer<T, Self>,
        first: usize,
        (x, range): (&Buffer<T, Self>, Range<usize>),
    ) -> Result<(), LinalgError> {
        let (n, n_y) = (range.len(), y.len());
        if n == 0 {
            return Ok(());
        }
        let end = first.saturating_add(n);
        need("y", end, n_y.min(end))?;
        need("x", range.end, x.len().min(range.end))?;
        let arguments = (y.write(), Read::from(x, range.start), first as u64, n as u64, n_y as u64);
        let kernel = Kernel::<Put<T>>::new("ranks_put");
        // SAFETY: the range lies in x, and places past the end of y are not followed.
        Ok(unsafe {
            self.launch(&program::<T>(&CudaHook::none()), &kernel, Launch::over(n, THREADS), arguments)
        }?)
    }

    fn spread(
        &self,
        (unknowns, positions): (&LocalUnknowns, &Positions),
        part: &mut Buffer<T, Self>,
        owned: &Buffer<T, Self>,
        ghosts: Option<&Buffer<T, Self>>,
    ) -> Result<(), LinalgError> {
        unknowns.need(part.len(), owned.len(), ghosts.map(Buffer::len))?;
        need("numbers", part.len(), positions.positions.len())?;
        spread(part, (owned, ghosts), read(&positions.positions))
    }

    fn take(
        &self,
        (unknowns, positions): (&LocalUnknowns, &Positions),
        owned: &mut Buffer<T, Self>,
        part: &Buffer<T, Self>,
        hook: Option<(&dyn Hook<T>, &Buffer<T, Self>)>,
    ) -> Result<(), LinalgError> {
        unknowns.need(part.len(), owned.len(), None)?;
        pick(owned, part, &Places::Of(&positions.owned, 0))?;
        hook.map_or(Ok(()), |(hook, x)| post(owned, x, hook))
    }
}

/// Exchanges exports and ghosts through the host, while the GPU runs what `meanwhile` queues.
fn import_by_host<T: Scalar>(
    device: &Cuda,
    halo: &Halo,
    (sent, ghosts): (&Buffer<T, Cuda>, &mut Buffer<T, Cuda>),
    meanwhile: &mut dyn FnMut() -> Result<(), LinalgError>,
) -> Result<(), LinalgError> {
    let reading = (!sent.is_empty()).then(|| sent.begin_read()).transpose()?;
    meanwhile()?;
    let values: Vec<T> = reading.map_or(Ok(Vec::new()), |reading| device.end_read(reading))?;
    let sends: Vec<Outgoing<'_>> = letters(halo)
        .map(|(to, range)| Outgoing { to, bytes: bytemuck::cast_slice(&values[range]) })
        .collect();
    let mut received = vec![T::ZERO; ghosts.len()];
    let lengths = halo.imports().iter().map(|(from, range)| (*from, range.len()));
    let mut rooms = rooms(&mut received, lengths);
    halo.comm().exchange(&sends, &mut rooms, &mut || ())?;
    match received.is_empty() {
        true => Ok(()),
        false => Ok(ghosts.upload(&received)?),
    }
}

/// Sends ghosts to their owners through the host; returns the values received for the exports, if there are
/// any.
fn returned_by_host<T: Scalar>(halo: &Halo, ghosts: &Buffer<T, Cuda>) -> Result<Option<Vec<T>>, LinalgError> {
    let values = ghosts.to_host()?;
    let sends: Vec<Outgoing<'_>> = (halo.imports().iter())
        .map(|(to, range)| Outgoing { to: *to, bytes: bytemuck::cast_slice(&values[range.clone()]) })
        .collect();
    let mut received = vec![T::ZERO; halo.n_sent()];
    let lengths = halo.exports().iter().map(|(from, places)| (*from, places.len()));
    let mut rooms = rooms(&mut received, lengths);
    halo.comm().exchange(&sends, &mut rooms, &mut || ())?;
    Ok((!received.is_empty()).then_some(received))
}

/// Splits a slice into consecutive receive buffers of the given lengths.
fn rooms<T: Scalar>(values: &mut [T], lengths: impl Iterator<Item = (usize, usize)>) -> Vec<Incoming<'_>> {
    let mut rest = values;
    let mut rooms = Vec::new();
    for (from, length) in lengths {
        let (room, others) = rest.split_at_mut(length);
        rooms.push(Incoming { from, bytes: bytemuck::cast_slice_mut(room) });
        rest = others;
    }
    rooms
}

//! Halo exchange between GPUs with peer access.

use std::collections::BTreeSet;
use std::ops::Range;

use femtile_device::cuda::{Kernel, Launch, Read, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::hooks::CudaHook;
use femtile_linalg::{LinalgError, need};

use super::cuda::{THREADS, program};
use super::peers::{Marks, tell};
use crate::{Comm, Halo};

type Pull<T> = (Write<T>, Read<u64>, u64);
type PullAdd<T> = (Write<T>, Read<u64>, Read<u32>, u64, u64);

/// Buffers of a rank for a halo exchange, and addresses of those of its neighbours.
pub(super) struct PeerLink<T: Scalar> {
    /// Values of exports (`sent`) and of ghosts (`given`) that neighbours read.
    sent: [Buffer<T, Cuda>; 2],
    given: [Buffer<T, Cuda>; 2],
    marks: Marks,
    /// Ranks that this one exchanges values with in either direction, and their events.
    neighbours: Vec<usize>,
    of_neighbours: Vec<[u64; 2]>,
    /// Addresses of the value of each ghost, and of the value returned for each export.
    ghosts: [Buffer<u64, Cuda>; 2],
    returned: [Buffer<u64, Cuda>; 2],
}

impl<T: Scalar> PeerLink<T> {
    /// Exchanges the addresses of buffers with the neighbours. Collective.
    pub fn new(device: &Cuda, halo: &Halo) -> Result<Self, LinalgError> {
        let (n_sent, n_ghosts) = (halo.n_sent(), halo.n_ghosts());
        let pair =
            |n| -> Result<_, LinalgError> { Ok([Buffer::zeros(device, n)?, Buffer::zeros(device, n)?]) };
        let (sent, given) = (pair(n_sent)?, pair(n_ghosts)?);
        let marks = Marks::new(device)?;
        // Buffers must exist before another rank reads them.
        device.synchronize()?;
        let mut neighbours = BTreeSet::new();
        let mut told = vec![Vec::new(); halo.comm().n_ranks()];
        let begin = |buffers: &[Buffer<T, Cuda>; 2], first: usize| {
            buffers.each_ref().map(|buffer| buffer.address() + (first * size_of::<T>()) as u64)
        };
        let mut next = 0;
        let mut letter = |rank: usize, sent: [u64; 2], given: [u64; 2]| {
            let letter: &mut Vec<u64> = &mut told[rank];
            if letter.is_empty() {
                letter.extend([0; 6]);
                letter[..2].copy_from_slice(&marks.numbers());
            }
            (0..2).for_each(|i| letter[2 + i] |= sent[i]);
            (0..2).for_each(|i| letter[4 + i] |= given[i]);
            neighbours.insert(rank);
        };
        for (rank, places) in halo.exports() {
            letter(*rank, begin(&sent, next), [0; 2]);
            next += places.len();
        }
        for (rank, range) in halo.imports() {
            letter(*rank, [0; 2], begin(&given, range.start));
        }
        let heard = halo.comm().all_to_all(&told)?;
        let neighbours: Vec<usize> = neighbours.into_iter().collect();
        let of = |rank: usize, at: usize| heard[rank].get(at).copied().unwrap_or(0);
        let values =
            |at: usize, lengths: &mut dyn Iterator<Item = (usize, usize)>| -> Result<_, LinalgError> {
                let address = |(rank, length): (usize, usize)| {
                    (0..length).map(move |i| of(rank, at) + (i * size_of::<T>()) as u64).collect::<Vec<u64>>()
                };
                Ok(Buffer::from_vec(device, lengths.flat_map(address).collect())?)
            };
        let of_ghosts = || halo.imports().iter().map(|(rank, range)| (*rank, range.len()));
        let of_exports = || halo.exports().iter().map(|(rank, places)| (*rank, places.len()));
        Ok(Self {
            ghosts: [values(2, &mut of_ghosts())?, values(3, &mut of_ghosts())?],
            returned: [values(4, &mut of_exports())?, values(5, &mut of_exports())?],
            of_neighbours: neighbours.iter().map(|&rank| [of(rank, 0), of(rank, 1)]).collect(),
            neighbours,
            sent,
            given,
            marks,
        })
    }

    /// Begins an exchange: `write` fills the current buffer of exports or of ghosts.
    pub fn give(
        &mut self,
        comm: &Comm,
        write: impl FnOnce(&mut Buffer<T, Cuda>, &mut Buffer<T, Cuda>) -> Result<(), LinalgError>,
    ) -> Result<(), LinalgError> {
        let which = self.marks.begin();
        let device = self.sent[which].device().clone();
        write(&mut self.sent[which], &mut self.given[which])?;
        self.marks.set(&device)?;
        tell(comm, &self.neighbours)
    }

    /// Makes the stream wait for the values of all neighbours, even if this rank reads none: then they have
    /// read the previous ones of this rank.
    pub fn wait(&self, device: &Cuda) -> Result<(), LinalgError> {
        self.marks.wait(device, &self.of_neighbours)
    }

    /// Ends an exchange: reads the ghosts from their owners.
    pub fn pull(&self, ghosts: &mut Buffer<T, Cuda>) -> Result<(), LinalgError> {
        let device = ghosts.device().clone();
        self.wait(&device)?;
        let (n, addresses) = (ghosts.len(), &self.ghosts[self.marks.which()]);
        if n == 0 {
            return Ok(());
        }
        need("ghosts", addresses.len(), n)?;
        let arguments = (ghosts.write(), addresses.read(), n as u64);
        let kernel = Kernel::<Pull<T>>::new("ranks_pull");
        let program = program::<T>(&CudaHook::none());
        // SAFETY: the addresses are those of values of other ranks, whose buffers stay until all ranks have ended a solve.
        Ok(unsafe { device.launch(&program, &kernel, Launch::over(n, THREADS), arguments) }?)
    }

    /// Adds the values that a neighbour returns for its exports, after [`PeerLink::wait`].
    pub fn pull_and_add(
        &self,
        owned: &mut Buffer<T, Cuda>,
        places: &Buffer<u32, Cuda>,
        range: Range<usize>,
    ) -> Result<(), LinalgError> {
        let device = owned.device().clone();
        let (n, addresses) = (range.len(), &self.returned[self.marks.which()]);
        need("places", addresses.len(), places.len())?;
        need("places", range.end, places.len().min(range.end))?;
        let n_owned = owned.len() as u64;
        let (from, at) = (Read::from(addresses, range.start), Read::from(places, range.start));
        let arguments = (owned.write(), from, at, n as u64, n_owned);
        let kernel = Kernel::<PullAdd<T>>::new("ranks_pull_add");
        let program = program::<T>(&CudaHook::none());
        // SAFETY: as above; the places of a neighbour are different ones.
        Ok(unsafe { device.launch(&program, &kernel, Launch::over(n, THREADS), arguments) }?)
    }
}

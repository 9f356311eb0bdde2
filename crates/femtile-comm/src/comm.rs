//! Communicator: messages and reductions between ranks, with any transport.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use femtile_device::{Buffer, Cuda, Device};
use femtile_linalg::LinalgError;
use femtile_linalg::comm::Communicator;

use crate::kernels::PeerSums;

/// A message to another rank.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// The rank that receives it.
    pub to: usize,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// A receive buffer for a message from another rank.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// The rank that sends it.
    pub from: usize,
    /// The buffer, exactly as long as the message.
    pub bytes: &'a mut [u8],
}

/// Transports messages between the ranks of a run: MPI, or the memory of one process.
///
/// Methods that all ranks must call are collective: they block until every rank has called them, in the same
/// order. If a rank fails, the others get [`LinalgError::Rank`] from their pending or next call.
pub trait Transport: Send + Sync {
    /// Returns this rank, counted from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn n_ranks(&self) -> usize;

    /// Returns whether all ranks are threads of this process, which share its memory.
    fn shares_memory(&self) -> bool {
        false
    }

    /// Replaces each value by its sum over all ranks, with the same bits on all of them.
    ///
    /// # Errors
    /// [`LinalgError::Rank`].
    fn sum(&self, values: &mut [f64]) -> Result<(), LinalgError>;

    /// As [`Transport::sum`], and calls `meanwhile` once, if possible while the sum is in progress;
    /// `meanwhile` may exchange messages.
    ///
    /// # Errors
    /// [`LinalgError::Rank`].
    fn sum_during(&self, values: &mut [f64], meanwhile: &mut dyn FnMut()) -> Result<(), LinalgError> {
        self.sum(values)?;
        meanwhile();
        Ok(())
    }

    /// Sends and receives messages, at most one to and one from each rank. Calls `meanwhile` once, while
    /// messages are in transit.
    ///
    /// # Errors
    /// [`LinalgError::Rank`], also if the length of a message differs from that of its buffer.
    fn exchange(
        &self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), LinalgError>;

    /// Gathers one message of any length per rank; returns all of them on every rank.
    ///
    /// # Errors
    /// [`LinalgError::Rank`].
    fn all_gather(&self, message: &[u8]) -> Result<Vec<Vec<u8>>, LinalgError>;
}

/// A communicator: the ranks of a run, as seen by one of them.
#[derive(Clone, Default)]
pub struct Comm {
    transport: Option<Arc<dyn Transport>>,
    /// Reductions between GPUs with peer access.
    peers: Option<Arc<PeerSums>>,
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.n_ranks())
    }
}

/// Equal if both are the same rank of the same run.
impl PartialEq for Comm {
    fn eq(&self, other: &Self) -> bool {
        match (&self.transport, &other.transport) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Comm {
    /// Returns the communicator of a run with a single rank.
    pub fn alone() -> Self {
        Self::default()
    }

    /// Returns the communicator of a rank on `transport`.
    pub fn new(transport: impl Transport + 'static) -> Self {
        Self { transport: Some(Arc::new(transport)), peers: None }
    }

    /// Returns the communicator with the GPU of this rank. With peer access between all GPUs, sums and ghosts
    /// are exchanged without the host. Collective.
    ///
    /// Other ranks may read this rank's buffers until they have completed their last product or sum. So
    /// before operators over these ranks, or this communicator, are dropped, every rank must copy a result to
    /// the host, and then all must make a collective call.
    ///
    /// # Errors
    /// [`LinalgError::Rank`]; errors of the device.
    pub fn with_gpu(&self, device: &Cuda) -> Result<Self, LinalgError> {
        let Some(transport) = &self.transport else { return Ok(self.clone()) };
        let peers = PeerSums::join(transport.as_ref(), device)?.map(Arc::new);
        Ok(Self { transport: Some(Arc::clone(transport)), peers })
    }

    /// Returns whether all GPUs have peer access to each other.
    pub(crate) fn has_peers(&self) -> bool {
        self.peers.is_some()
    }

    /// Returns this rank, counted from 0.
    pub fn rank(&self) -> usize {
        self.transport.as_ref().map_or(0, |transport| transport.rank())
    }

    /// Returns whether all ranks are threads of this process.
    pub fn shares_memory(&self) -> bool {
        self.transport.as_ref().is_some_and(|transport| transport.shares_memory())
    }

    /// Returns the number of ranks.
    pub fn n_ranks(&self) -> usize {
        self.transport.as_ref().map_or(1, |transport| transport.n_ranks())
    }

    /// Replaces each value by its sum over all ranks. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Rank`].
    pub fn sum_values(&self, values: &mut [f64]) -> Result<(), LinalgError> {
        self.transport.as_ref().map_or(Ok(()), |transport| transport.sum(values))
    }

    /// Returns which flags are set on at least one rank; the result is the same on all ranks. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Rank`].
    pub fn any<const N: usize>(&self, is_so: [bool; N]) -> Result<[bool; N], LinalgError> {
        let mut counts = is_so.map(|is_so| f64::from(u8::from(is_so)));
        self.sum_values(&mut counts)?;
        Ok(counts.map(|count| count > 0.0))
    }

    /// As [`Transport::exchange`]; with a single rank, only calls `meanwhile`.
    ///
    /// # Errors
    /// [`LinalgError::Rank`].
    pub fn exchange(
        &self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), LinalgError> {
        match &self.transport {
            Some(transport) => transport.exchange(sends, receives, meanwhile),
            None => {
                meanwhile();
                Ok(())
            }
        }
    }

    /// Gathers the values of all ranks, any number from each, on every rank. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Rank`].
    pub fn all_gather<T: bytemuck::Pod>(&self, values: &[T]) -> Result<Vec<Vec<T>>, LinalgError> {
        let Some(transport) = &self.transport else { return Ok(vec![values.to_vec()]) };
        let messages = transport.all_gather(bytemuck::cast_slice(values))?;
        messages.into_iter().enumerate().map(|(rank, bytes)| numbers(rank, &bytes)).collect()
    }

    /// Gathers the values of all ranks, any number from each, on the first rank; returns nothing on the
    /// others. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Rank`].
    pub fn gather<T: bytemuck::Pod>(&self, values: &[T]) -> Result<Vec<Vec<T>>, LinalgError> {
        let lengths = self.all_gather(&[values.len() as u64])?;
        if self.rank() > 0 {
            let sends = [Outgoing { to: 0, bytes: bytemuck::cast_slice(values) }];
            let sends = if values.is_empty() { &sends[..0] } else { &sends };
            self.exchange(sends, &mut [], &mut || ())?;
            return Ok(Vec::new());
        }
        let mut all: Vec<Vec<T>> = lengths.iter().map(|n| vec![T::zeroed(); n[0] as usize]).collect();
        all[0].copy_from_slice(values);
        let rooms = all.iter_mut().enumerate().skip(1).filter(|(_, room)| !room.is_empty());
        let mut rooms: Vec<Incoming<'_>> =
            rooms.map(|(from, room)| Incoming { from, bytes: bytemuck::cast_slice_mut(room) }).collect();
        self.exchange(&[], &mut rooms, &mut || ())?;
        Ok(all)
    }

    /// Sums values over GPUs with peer access; returns whether it did.
    fn sum_of_peers<D: Device>(
        &self,
        transport: &dyn Transport,
        values: &mut Buffer<f64, D>,
    ) -> Result<bool, LinalgError> {
        // Callers are generic over devices, and only GPUs have this path.
        let on_gpu = (values as &mut dyn Any).downcast_mut::<Buffer<f64, Cuda>>();
        match (&self.peers, on_gpu) {
            (Some(peers), Some(values)) => peers.sum(transport, values),
            _ => Ok(false),
        }
    }

    /// Sends each rank its vector of values, and returns the one received from each rank. Collective.
    ///
    /// # Cost
    /// Gathers the lengths of all messages, P² numbers, on each rank; meant for setup.
    /// # Errors
    /// [`LinalgError::Rank`].
    pub fn all_to_all<T: bytemuck::Pod>(&self, sends: &[Vec<T>]) -> Result<Vec<Vec<T>>, LinalgError> {
        let (rank, n) = (self.rank(), self.n_ranks());
        if sends.len() != n {
            return Err(LinalgError::Length { field: "sends", expected: n, found: sends.len() });
        }
        let lengths: Vec<u64> = sends.iter().map(|values| values.len() as u64).collect();
        let lengths = self.all_gather(&lengths)?;
        let mut received: Vec<Vec<T>> =
            lengths.iter().map(|of_rank| vec![T::zeroed(); of_rank[rank] as usize]).collect();
        received[rank].copy_from_slice(&sends[rank]);
        let is_sent = |(to, values): &(usize, &Vec<T>)| *to != rank && !values.is_empty();
        let outgoing: Vec<Outgoing<'_>> = (sends.iter().enumerate().filter(is_sent))
            .map(|(to, values)| Outgoing { to, bytes: bytemuck::cast_slice(values) })
            .collect();
        let rooms = received.iter_mut().enumerate().filter(|(from, room)| *from != rank && !room.is_empty());
        let mut rooms: Vec<Incoming<'_>> =
            rooms.map(|(from, room)| Incoming { from, bytes: bytemuck::cast_slice_mut(room) }).collect();
        self.exchange(&outgoing, &mut rooms, &mut || ())?;
        Ok(received)
    }
}

/// Reads the values of a message.
fn numbers<T: bytemuck::Pod>(rank: usize, bytes: &[u8]) -> Result<Vec<T>, LinalgError> {
    if !bytes.len().is_multiple_of(size_of::<T>()) {
        let message = format!("sent {} bytes, which are no numbers of {} bytes", bytes.len(), size_of::<T>());
        return Err(LinalgError::Rank { rank, message });
    }
    Ok(bytemuck::pod_collect_to_vec(bytes))
}

impl Communicator for Comm {
    fn rank(&self) -> usize {
        Self::rank(self)
    }

    fn n_ranks(&self) -> usize {
        Self::n_ranks(self)
    }

    fn sum<D: Device>(&self, values: &mut Buffer<f64, D>) -> Result<(), LinalgError> {
        let Some(transport) = &self.transport else { return Ok(()) };
        match self.sum_of_peers(transport.as_ref(), values)? {
            true => Ok(()),
            false => by_host(values, |host| transport.sum(host)),
        }
    }

    /// With peer access both are queued on the GPU, one after the other.
    fn sum_during<D: Device>(
        &self,
        values: &mut Buffer<f64, D>,
        work: &mut dyn FnMut() -> Result<(), LinalgError>,
    ) -> Result<(), LinalgError> {
        let Some(transport) = &self.transport else { return work() };
        if self.sum_of_peers(transport.as_ref(), values)? {
            return work();
        }
        by_host(values, |host| {
            let mut done = Ok(());
            transport.sum_during(host, &mut || done = work())?;
            done
        })
    }
}

/// Copies values to the host, changes them and copies them back.
fn by_host<D: Device>(
    values: &mut Buffer<f64, D>,
    change: impl FnOnce(&mut [f64]) -> Result<(), LinalgError>,
) -> Result<(), LinalgError> {
    let mut host = values.to_host()?;
    change(&mut host)?;
    Ok(values.upload(&host)?)
}

//! Messages by MPI.

use std::sync::{Mutex, PoisonError};

use femtile_comm::{Incoming, Outgoing, Transport};
use femtile_linalg::LinalgError;
use mpi::Count;
use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::request::{WaitGuard, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Equivalence, Source};

/// The ranks of a communicator of MPI.
pub struct Mpi {
    rank: usize,
    n_ranks: usize,
    world: Mutex<World>,
}

struct World(SimpleCommunicator);

// SAFETY: MPI was initialized for calls from any thread, one at a time, and the lock around it lets in one at a time.
unsafe impl Send for World {}

impl Mpi {
    /// Takes a copy of a communicator, so that its messages meet no others.
    pub fn new(world: &SimpleCommunicator) -> Self {
        let (rank, n_ranks) = (world.rank() as usize, world.size() as usize);
        Self { rank, n_ranks, world: Mutex::new(World(world.duplicate())) }
    }

    fn with_world<R>(&self, work: impl FnOnce(&SimpleCommunicator) -> R) -> R {
        work(&self.world.lock().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// The bytes of a message: the address of none is a number of its own in Rust, which means something else to MPI.
    fn bytes(message: &[u8]) -> &[u8] {
        const NONE: &[u8] = &[0];
        if message.is_empty() { &NONE[..0] } else { message }
    }

    /// The length of a message as MPI counts it.
    fn count(&self, n_bytes: usize) -> Result<Count, LinalgError> {
        Count::try_from(n_bytes).map_err(|_| LinalgError::Rank {
            rank: self.rank,
            message: format!("a message of {n_bytes} bytes is more than MPI counts"),
        })
    }
}

impl Transport for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn n_ranks(&self) -> usize {
        self.n_ranks
    }

    fn sum(&self, values: &mut [f64]) -> Result<(), LinalgError> {
        self.count(size_of_val(values))?;
        let own = values.to_vec();
        self.with_world(|world| world.all_reduce_into(&own[..], values, SystemOperation::sum()));
        Ok(())
    }

    /// The lock is free meanwhile, for messages of the work.
    fn sum_during(&self, values: &mut [f64], meanwhile: &mut dyn FnMut()) -> Result<(), LinalgError> {
        self.count(size_of_val(values))?;
        let own = values.to_vec();
        scope(|scope| {
            let begun = self.with_world(|world| {
                world.immediate_all_reduce_into(scope, &own[..], values, SystemOperation::sum())
            });
            meanwhile();
            self.with_world(|_| begun.wait());
        });
        Ok(())
    }

    fn exchange(
        &self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), LinalgError> {
        sends.iter().try_for_each(|send| self.count(send.bytes.len()).map(drop))?;
        receives.iter().try_for_each(|room| self.count(room.bytes.len()).map(drop))?;
        let lengths: Vec<usize> = receives.iter().map(|room| room.bytes.len()).collect();
        self.with_world(|world| {
            scope(|scope| {
                let mut begun = Vec::with_capacity(receives.len());
                for room in receives.iter_mut() {
                    let from = world.process_at_rank(room.from as i32);
                    begun.push((room.from, from.immediate_receive_into(scope, &mut *room.bytes)));
                }
                let sent: Vec<_> = sends
                    .iter()
                    .map(|send| {
                        let to = world.process_at_rank(send.to as i32);
                        WaitGuard::from(to.immediate_send(scope, Self::bytes(send.bytes)))
                    })
                    .collect();
                meanwhile();
                let mut result = Ok(());
                for ((from, request), length) in begun.into_iter().zip(lengths) {
                    let status = request.wait();
                    let found = status.count(u8::equivalent_datatype()) as usize;
                    if found != length && result.is_ok() {
                        let message = format!("sent {found} bytes where {length} are needed");
                        result = Err(LinalgError::Rank { rank: from, message });
                    }
                }
                drop(sent);
                result
            })
        })
    }

    fn all_gather(&self, message: &[u8]) -> Result<Vec<Vec<u8>>, LinalgError> {
        let mut lengths = vec![0u64; self.n_ranks];
        self.with_world(|world| world.all_gather_into(&(message.len() as u64), &mut lengths[..]));
        let total: u64 = lengths.iter().sum();
        self.count(usize::try_from(total).unwrap_or(usize::MAX))?;
        if total == 0 {
            return Ok(vec![Vec::new(); self.n_ranks]);
        }
        let counts: Vec<Count> = lengths.iter().map(|&length| length as Count).collect();
        let begins: Vec<Count> =
            counts.iter().scan(0, |next, count| Some(std::mem::replace(next, *next + count))).collect();
        let mut all = vec![0u8; total as usize];
        let mut parts = PartitionMut::new(&mut all[..], &counts[..], &begins[..]);
        self.with_world(|world| world.all_gather_varcount_into(Self::bytes(message), &mut parts));
        let mut rest = all.as_slice();
        Ok(lengths
            .iter()
            .map(|&length| {
                let (part, others) = rest.split_at(length as usize);
                rest = others;
                part.to_vec()
            })
            .collect())
    }
}

//! Communication between GPUs with peer access, for ranks that are threads of one process. Nothing goes
//! through the host, which runs ahead of the GPUs.
//!
//! Exchanges are numbered. The data of a rank lie in one of two buffers, in turn, and an event in its stream
//! tells when they are complete. A host message tells the other ranks that the event is recorded, because a
//! stream waits for the last recording before the call. The buffer of exchange k is overwritten two
//! exchanges later. By then the stream has waited for the events of the exchange between, which the others
//! record after they have read the buffer.

use std::sync::{Mutex, PoisonError};

use femtile_device::cuda::{Event, Kernel, Launch, Read, Unrecorded, Write};
use femtile_device::{Buffer, Cuda};
use femtile_linalg::LinalgError;
use femtile_linalg::hooks::CudaHook;

use super::cuda::{Places, THREADS, pick_first, program};
use crate::{Comm, Incoming, Outgoing, Transport};

/// Most values of a sum over GPUs; longer ones go through the host.
const MOST_SUMS: usize = 1024;

type SumOf = (Write<f64>, Read<u64>, u64, u64);

/// Two events, used in turn.
#[derive(Debug)]
pub(super) struct Marks {
    marks: [Event; 2],
    round: usize,
}

impl Marks {
    pub fn new(device: &Cuda) -> Result<Self, LinalgError> {
        let driver = device.driver();
        Ok(Self { marks: [driver.mark()?, driver.mark()?], round: 0 })
    }

    pub fn numbers(&self) -> [u64; 2] {
        self.marks.map(|mark| mark.0)
    }

    /// Begins an exchange and returns which of the two buffers it uses.
    pub fn begin(&mut self) -> usize {
        self.round += 1;
        self.which()
    }

    /// Returns which of the two buffers the exchange uses.
    pub fn which(&self) -> usize {
        self.round % 2
    }

    /// Records the event: the data of this rank are complete.
    pub fn set(&self, device: &Cuda) -> Result<(), LinalgError> {
        // SAFETY: the marks are those of this driver.
        Ok(unsafe { device.driver().set_mark(self.marks[self.which()]) }?)
    }

    /// Makes the stream wait for the other ranks' events of the same exchange, which they have announced as
    /// recorded.
    pub fn wait(&self, device: &Cuda, of_others: &[[u64; 2]]) -> Result<(), LinalgError> {
        for marks in of_others {
            // SAFETY: other ranks of this process have made these marks, which are kept until it ends.
            unsafe { device.driver().await_mark(Event(marks[self.which()])) }?;
        }
        Ok(())
    }
}

/// Tells some ranks that the event is recorded, and waits until they have told this one.
pub(super) fn tell(comm: &Comm, others: &[usize]) -> Result<(), LinalgError> {
    let sends: Vec<Outgoing<'_>> = others.iter().map(|&to| Outgoing { to, bytes: &[1] }).collect();
    let mut rooms = vec![[0_u8]; others.len()];
    let rooms = others.iter().zip(&mut rooms);
    let mut rooms: Vec<Incoming<'_>> = rooms.map(|(&from, room)| Incoming { from, bytes: room }).collect();
    comm.exchange(&sends, &mut rooms, &mut || ())
}

/// Sums over the GPUs of all ranks.
#[derive(Debug)]
pub(crate) struct PeerSums {
    device: Cuda,
    state: Mutex<State>,
    of_others: Vec<[u64; 2]>,
    /// Present if another rank has the same handle of a GPU, and so the same stream.
    _unrecorded: Option<Unrecorded>,
}

#[derive(Debug)]
struct State {
    own: [Buffer<f64, Cuda>; 2],
    /// Addresses of the values of all ranks, in the order of ranks.
    all: [Buffer<u64, Cuda>; 2],
    marks: Marks,
}

impl PeerSums {
    /// Joins the GPUs of all ranks; none without peer access between all of them. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Rank`]; errors of the device.
    pub fn join(transport: &dyn Transport, device: &Cuda) -> Result<Option<Self>, LinalgError> {
        let comm = |values: &[u64]| -> Result<Vec<Vec<u64>>, LinalgError> {
            let all = transport.all_gather(bytemuck::cast_slice(values))?;
            Ok(all.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect())
        };
        let ordinals: Vec<usize> =
            comm(&[device.properties().ordinal as u64])?.into_iter().flatten().map(|n| n as usize).collect();
        let opened = transport.shares_memory() && device.driver().open_to(&ordinals)?;
        if comm(&[u64::from(opened)])?.into_iter().flatten().any(|opened| opened == 0) {
            return Ok(None);
        }
        let of_id = comm(&[device.id()])?.into_iter().flatten().filter(|id| *id == device.id()).count();
        let unrecorded = (of_id > 1).then(|| Unrecorded::new(device));
        // No rank captures before all of them know.
        transport.sum(&mut [])?;
        let own = [Buffer::zeros(device, MOST_SUMS)?, Buffer::zeros(device, MOST_SUMS)?];
        let marks = Marks::new(device)?;
        let told = comm(&[&own.each_ref().map(Buffer::address)[..], &marks.numbers()].concat())?;
        let addresses = |which: usize| told.iter().map(|of_rank| of_rank[which]).collect();
        let all = [Buffer::from_vec(device, addresses(0))?, Buffer::from_vec(device, addresses(1))?];
        let others = told.iter().enumerate().filter(|(rank, _)| *rank != transport.rank());
        let of_others = others.map(|(_, of_rank)| [of_rank[2], of_rank[3]]).collect();
        // Buffers must exist before another rank reads them.
        device.synchronize()?;
        let state = Mutex::new(State { own, all, marks });
        Ok(Some(Self { device: device.clone(), state, of_others, _unrecorded: unrecorded }))
    }

    /// Replaces each value by its sum over all ranks, added in their order; returns false if there are too
    /// many values.
    ///
    /// # Errors
    /// [`LinalgError::Rank`]; errors of the device.
    pub fn sum(
        &self,
        transport: &dyn Transport,
        values: &mut Buffer<f64, Cuda>,
    ) -> Result<bool, LinalgError> {
        let n = values.len();
        if n > MOST_SUMS {
            return Ok(false);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { own, all, marks } = &mut *state;
        let which = marks.begin();
        pick_first((&mut own[which], n), values, &Places::From(0))?;
        marks.set(&self.device)?;
        // An empty sum: all ranks have recorded their events.
        transport.sum(&mut [])?;
        marks.wait(&self.device, &self.of_others)?;
        let all = &all[which];
        let arguments = (values.write(), all.read(), all.len() as u64, n as u64);
        let kernel = Kernel::<SumOf>::new("ranks_sum");
        let program = program::<f64>(&CudaHook::none());
        // SAFETY: the addresses are those of the buffers of all ranks, which have n numbers and stay until all ranks have ended.
        unsafe { self.device.launch(&program, &kernel, Launch::over(n, THREADS), arguments) }?;
        Ok(true)
    }
}

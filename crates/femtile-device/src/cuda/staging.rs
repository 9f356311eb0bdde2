//! Pinned memory through which data passes between host and GPU.

use cudarc::driver::result::{self, DriverError as Refusal};
use cudarc::driver::sys;
use rayon::prelude::*;

use super::PendingCopy;
use super::refusal::failed;
use crate::DeviceError;

/// Bytes of each of the two areas for long copies.
const AREA: usize = 8 << 20;
/// Bytes that a thread copies at a time.
const CHUNK: usize = 1 << 20;
/// Bytes of a slot for copies that the stream does not wait for; longer ones get a slot of their own length.
const SLOT: usize = 4 << 10;

/// Two areas that long copies alternate between, and slots for short copies under way.
#[derive(Debug, Default)]
pub(super) struct Staging {
    areas: Vec<Area>,
    free: Vec<Area>,
    under_way: Vec<Option<(Area, usize)>>,
}

/// Pinned memory with the event at the end of its last copy.
#[derive(Debug)]
struct Area {
    memory: *mut u8,
    bytes: usize,
    event: sys::CUevent,
}

// SAFETY: an area is used by whoever holds the staging, which is behind a mutex.
unsafe impl Send for Area {}

impl Area {
    fn new(bytes: usize) -> Result<Self, DeviceError> {
        let pinned = || {
            let flags = sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING;
            let event = result::event::create(flags)?;
            // SAFETY: the memory is only read if it has been written.
            let memory = unsafe { result::malloc_host(bytes, 0)? }.cast();
            Ok(Self { memory, bytes, event })
        };
        pinned().map_err(|refusal: Refusal| failed("allocating pinned memory", refusal))
    }

    fn wait(&self) -> Result<(), DeviceError> {
        // SAFETY: the event lives as long as the area; one never recorded counts as over.
        unsafe { result::event::synchronize(self.event) }
            .map_err(|refusal| failed("waiting for a copy", refusal))
    }

    /// The first `n` bytes.
    fn slice(&mut self, n: usize) -> &mut [u8] {
        // SAFETY: callers ask for no more than there is, and wait for the copy that used it before.
        unsafe { std::slice::from_raw_parts_mut(self.memory, n.min(self.bytes)) }
    }

    fn release(self) {
        // SAFETY: both came from the driver and are given back once.
        unsafe {
            let _ = result::free_host(self.memory.cast());
            let _ = result::event::destroy(self.event);
        }
    }
}

impl Staging {
    fn areas(&mut self) -> Result<&mut [Area], DeviceError> {
        while self.areas.len() < 2 {
            self.areas.push(Area::new(AREA)?);
        }
        Ok(&mut self.areas)
    }

    /// Allocates the areas for long copies, which takes the driver some milliseconds.
    pub(super) fn reserve(&mut self) -> Result<(), DeviceError> {
        self.areas().map(|_| ())
    }

    /// Copies to the GPU; returns when `from` has been read.
    pub(super) fn upload(&mut self, stream: sys::CUstream, to: u64, from: &[u8]) -> Result<(), DeviceError> {
        let areas = self.areas()?;
        for (i, part) in from.chunks(AREA).enumerate() {
            let area = &mut areas[i % 2];
            area.wait()?;
            copy(area.slice(part.len()), part);
            // SAFETY: the area is not written again before its event, recorded after the copy, has come.
            unsafe {
                result::memcpy_htod_async(to + (i * AREA) as u64, area.slice(part.len()), stream)
                    .and_then(|()| result::event::record(area.event, stream))
            }
            .map_err(|refusal| failed("copying to the GPU", refusal))?;
        }
        Ok(())
    }

    /// Copies to the host; returns when all of `to` has been written.
    pub(super) fn download(
        &mut self,
        stream: sys::CUstream,
        to: &mut [u8],
        from: u64,
    ) -> Result<(), DeviceError> {
        let areas = self.areas()?;
        let parts: Vec<&mut [u8]> = to.chunks_mut(AREA).collect();
        let mut before: Option<(usize, &mut [u8])> = None;
        for (i, part) in parts.into_iter().enumerate() {
            let area = &mut areas[i % 2];
            area.wait()?;
            // SAFETY: the area is not read before its event, recorded after the copy, has come.
            unsafe {
                result::memcpy_dtoh_async(area.slice(part.len()), from + (i * AREA) as u64, stream)
                    .and_then(|()| result::event::record(area.event, stream))
            }
            .map_err(|refusal| failed("copying from the GPU", refusal))?;
            if let Some((area, part)) = before.replace((i % 2, part)) {
                take(&mut areas[area], part)?;
            }
        }
        before.map_or(Ok(()), |(area, part)| take(&mut areas[area], part))
    }

    /// Begins a copy to the host.
    pub(super) fn begin_download(
        &mut self,
        stream: sys::CUstream,
        from: u64,
        bytes: usize,
    ) -> Result<PendingCopy, DeviceError> {
        let fitting = self.free.iter().position(|slot| slot.bytes >= bytes);
        let mut slot = match fitting {
            Some(i) => self.free.swap_remove(i),
            None => Area::new(bytes.max(SLOT))?,
        };
        // SAFETY: the slot is not used again before `end_download` has waited for the event.
        unsafe {
            result::memcpy_dtoh_async(slot.slice(bytes), from, stream)
                .and_then(|()| result::event::record(slot.event, stream))
        }
        .map_err(|refusal| failed("copying from the GPU", refusal))?;
        let place = self.under_way.iter().position(Option::is_none).unwrap_or(self.under_way.len());
        self.under_way.resize_with(self.under_way.len().max(place + 1), || None);
        self.under_way[place] = Some((slot, bytes));
        Ok(PendingCopy(place as u64))
    }

    /// Waits for a copy and takes its bytes.
    pub(super) fn end_download(&mut self, transfer: PendingCopy) -> Result<Vec<u8>, DeviceError> {
        let place = usize::try_from(transfer.0).unwrap_or(usize::MAX);
        let Some((mut slot, bytes)) = self.under_way.get_mut(place).and_then(Option::take) else {
            return Ok(Vec::new());
        };
        let waited = slot.wait();
        let taken = slot.slice(bytes).to_vec();
        self.free.push(slot);
        waited.map(|()| taken)
    }

    /// Gives all memory back.
    pub(super) fn release(&mut self) {
        let under_way = self.under_way.drain(..).flatten().map(|(slot, _)| slot);
        self.areas.drain(..).chain(self.free.drain(..)).chain(under_way).for_each(Area::release);
    }
}

fn take(area: &mut Area, to: &mut [u8]) -> Result<(), DeviceError> {
    area.wait()?;
    copy(to, area.slice(to.len()));
    Ok(())
}

/// Copies on all threads: one alone reaches a fifth of the rate of the bus.
fn copy(to: &mut [u8], from: &[u8]) {
    to.par_chunks_mut(CHUNK).zip(from.par_chunks(CHUNK)).for_each(|(to, from)| to.copy_from_slice(from));
}

//! Sequences of launches recorded once and replayed, and copies that the stream does not wait for.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::{Cuda, CudaMemory, Driver, Graph, Transfer};
use crate::DeviceError;

/// What [`crate::Device::repeat`] keeps from call to call.
///
/// The first call carries the work out as it comes, which compiles and loads what it needs; the second records
/// it, and later ones replay the recording. Work that ends before that pays for no recording. Within the recording of other work
/// its launches become part of that.
#[derive(Debug, Default)]
pub struct CudaRecording {
    n_calls: usize,
    graph: Option<Recorded>,
}

#[derive(Debug)]
struct Recorded {
    driver: Arc<dyn Driver>,
    graph: Graph,
    times: usize,
    names: Vec<&'static str>,
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.driver.forget(self.graph);
    }
}

impl CudaRecording {
    pub(super) fn repeat<E: From<DeviceError>>(
        &mut self,
        device: &Cuda,
        times: usize,
        work: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let is_within_another =
            device.inner.recorded.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if is_within_another {
            return (0..times).try_for_each(|_| work());
        }
        self.n_calls += 1;
        if self.n_calls == 1 {
            return (0..times).try_for_each(|_| work());
        }
        if self.graph.as_ref().is_none_or(|recorded| recorded.times != times) {
            self.graph = None;
            self.graph = Some(record(device, times, work)?);
        }
        if let Some(recorded) = &self.graph {
            device.driver().replay(recorded.graph)?;
            device.inner.n_launches.fetch_add(recorded.names.len() as u64, Ordering::Relaxed);
            let mut recent = device.inner.recent.lock().unwrap_or_else(PoisonError::into_inner);
            recorded.names.iter().for_each(|name| recent.push(name));
        }
        Ok(())
    }
}

/// Records `times` rounds of `work`; the recording is ended also where the work fails.
fn record<E: From<DeviceError>>(
    device: &Cuda,
    times: usize,
    work: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Recorded, E> {
    let launches = |new| {
        let mut recorded = device.inner.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *recorded, new).unwrap_or_default()
    };
    device.driver().begin_recording()?;
    launches(Some(Vec::new()));
    let outcome = (0..times).try_for_each(|_| work());
    let graph = device.driver().end_recording();
    let names = launches(None);
    outcome?;
    Ok(Recorded { driver: device.driver().clone(), graph: graph?, times, names })
}

/// A copy to the host that is under way.
#[derive(Debug)]
pub struct CudaReadback {
    device: Cuda,
    transfer: Option<Transfer>,
}

impl CudaReadback {
    pub(super) fn begin(device: &Cuda, memory: &CudaMemory, bytes: usize) -> Result<Self, DeviceError> {
        let transfer =
            if bytes == 0 { None } else { Some(device.driver().begin_download(memory.address(), bytes)?) };
        Ok(Self { device: device.clone(), transfer })
    }

    pub(super) fn end(mut self) -> Result<Vec<u8>, DeviceError> {
        let transfer = self.transfer.take();
        transfer.map_or(Ok(Vec::new()), |transfer| self.device.driver().end_download(transfer))
    }
}

impl Drop for CudaReadback {
    fn drop(&mut self) {
        if let Some(transfer) = self.transfer.take() {
            // The place that the copy goes to must not be used again before it has arrived.
            let _ = self.device.driver().end_download(transfer);
        }
    }
}

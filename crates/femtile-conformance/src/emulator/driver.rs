//! The emulator as a driver.

use std::sync::Arc;
use std::time::Instant;

use femtile::device::DeviceError;
use femtile::device::cuda::{
    Driver, Event, Function, Graph, Launch, PendingCopy, Properties, Specialisation,
};

use super::launch::{Kernel, Recorded, Recording, aligned, check_launch, check_signature, launch_error};
use super::{Emulator, NAME, refused};

impl Driver for Emulator {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn memory_bytes(&self) -> Result<(usize, usize), DeviceError> {
        Ok(self.state().memory.bytes())
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        let mut state = self.state();
        state.not_recorded("allocating memory")?;
        state.memory.allocate(bytes, NAME)
    }

    unsafe fn free(&self, address: u64) {
        let mut state = self.state();
        // The error is not reported here but when the recording ends.
        let _ = state.not_recorded("giving memory back");
        state.memory.free(address);
    }

    fn allocate_on_host(&self, bytes: usize) -> Result<u64, DeviceError> {
        let mut state = self.state();
        state.not_recorded("allocating memory of the host")?;
        state.memory.allocate_on_host(bytes).ok_or_else(|| {
            refused("allocating memory of the host", format!("there is no room for {bytes} bytes"))
        })
    }

    unsafe fn free_on_host(&self, address: u64) {
        // SAFETY: both kinds of memory are given back alike, and addresses of neither are touched.
        unsafe { self.free(address) };
    }

    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        let mut state = self.state();
        state.not_recorded("clearing memory")?;
        state.memory.zero(address, bytes)
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<(), DeviceError> {
        let mut state = self.state();
        state.not_recorded("copying to the GPU")?;
        state.memory.upload(to, from)
    }

    unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<(), DeviceError> {
        let mut state = self.state();
        state.not_recorded("copying from the GPU")?;
        to.copy_from_slice(&state.memory.download(from, to.len())?);
        Ok(())
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError> {
        let mut state = self.state();
        state.not_recorded("copying on the GPU")?;
        state.memory.copy(to, from, bytes)
    }

    unsafe fn begin_download(&self, from: u64, bytes: usize) -> Result<PendingCopy, DeviceError> {
        let mut state = self.state();
        state.not_recorded("copying from the GPU")?;
        let copied = state.memory.download(from, bytes)?;
        let handle = state.handle();
        state.transfers.insert(handle, copied);
        Ok(PendingCopy(handle))
    }

    fn end_download(&self, transfer: PendingCopy) -> Result<Vec<u8>, DeviceError> {
        let copied = self.state().transfers.remove(&transfer.0);
        copied.ok_or_else(|| refused("waiting for a copy", "it was ended before"))
    }

    fn function(
        &self,
        program: &Specialisation,
        name: &'static str,
        signature: &[String],
    ) -> Result<Function, DeviceError> {
        let mut state = self.state();
        let library = self.library(&mut state, program)?;
        let failed = |message| DeviceError::Compile { program: program.to_string(), message };
        let entry = library.entry(name).ok_or_else(|| failed(format!("it has no kernel {name}")))?.clone();
        check_signature(name, signature, &entry).map_err(failed)?;
        state.kernels.push(Kernel { name, library, entry });
        Ok(Function(state.kernels.len() as u64 - 1))
    }

    unsafe fn launch(
        &self,
        function: Function,
        launch: &Launch,
        arguments: &[&[u8]],
    ) -> Result<(), DeviceError> {
        let mut state = self.state();
        let place = usize::try_from(function.0).unwrap_or(usize::MAX);
        let Some(kernel) = state.kernels.get(place) else {
            return Err(launch_error("", launch, format!("there is no {function:?}")));
        };
        check_launch(launch).map_err(|message| launch_error(kernel.name, launch, message))?;
        let found = arguments.iter().map(|bytes| bytes.len());
        if !kernel.entry.parameters.iter().map(|parameter| parameter.bytes).eq(found) {
            return Err(launch_error(
                kernel.name,
                launch,
                "the arguments have not the sizes of the parameters",
            ));
        }
        let arguments = arguments.iter().map(|bytes| aligned(bytes)).collect();
        let recorded = Recorded { kernel: place, launch: *launch, arguments };
        if let Some(recording) = &mut state.recording {
            recording.launches.push(recorded);
            return Ok(());
        }
        self.carry_out(&mut state, &recorded)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.state().not_recorded("waiting for the GPU")
    }

    fn begin_recording(&self) -> Result<(), DeviceError> {
        let mut state = self.state();
        state.not_recorded("beginning a recording")?;
        state.recording = Some(Recording::default());
        Ok(())
    }

    fn end_recording(&self) -> Result<Graph, DeviceError> {
        let mut state = self.state();
        let action = "ending a recording";
        let recording = state.recording.take().ok_or_else(|| refused(action, "none was begun"))?;
        if let Some(refusal) = recording.refusal {
            return Err(refused(action, format!("{refusal} came between")));
        }
        let handle = state.handle();
        state.graphs.insert(handle, Arc::new(recording.launches));
        Ok(Graph(handle))
    }

    unsafe fn replay(&self, graph: Graph) -> Result<(), DeviceError> {
        let mut state = self.state();
        state.not_recorded("replaying a recording")?;
        let launches = state.graphs.get(&graph.0).cloned();
        let launches = launches.ok_or_else(|| refused("replaying a recording", "it was forgotten"))?;
        launches.iter().try_for_each(|recorded| self.carry_out(&mut state, recorded))
    }

    unsafe fn forget(&self, graph: Graph) {
        self.state().graphs.remove(&graph.0);
    }

    fn record_event(&self) -> Result<Event, DeviceError> {
        let mut state = self.state();
        state.not_recorded("marking a moment")?;
        let handle = state.handle();
        state.events.insert(handle, Instant::now());
        Ok(Event(handle))
    }

    unsafe fn seconds_between(&self, first: Event, second: Event) -> Result<f64, DeviceError> {
        let mut state = self.state();
        let [first, second] = [first, second].map(|event| state.events.remove(&event.0));
        match (first, second) {
            (Some(first), Some(second)) => Ok(second.saturating_duration_since(first).as_secs_f64()),
            _ => Err(refused("waiting for a moment", "it was forgotten")),
        }
    }

    fn compiler(&self) -> String {
        self.compiler.description()
    }
}

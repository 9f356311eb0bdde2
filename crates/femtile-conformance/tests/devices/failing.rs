//! An emulated GPU that fails after a number of launches, as a real one does when a kernel has faulted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use femtile::device::cuda::{
    Driver, Event, Function, Graph, Launch, PendingCopy, Properties, Specialisation,
};
use femtile::device::{Cuda, DeviceError};
use femtile_case::{Case, Silent};
use femtile_conformance::emulator::Emulator;

/// Launches and replays that are carried out before nothing is any more.
#[derive(Debug)]
struct Failing {
    inner: Emulator,
    after: usize,
    n_done: AtomicUsize,
}

impl Failing {
    fn count(&self) -> Result<(), DeviceError> {
        self.n_done.fetch_add(1, Ordering::Relaxed);
        self.alive()
    }

    fn alive(&self) -> Result<(), DeviceError> {
        match self.n_done.load(Ordering::Relaxed) > self.after {
            true => Err(DeviceError::Fault { kernels: "any".into(), message: "the GPU was lost".into() }),
            false => Ok(()),
        }
    }
}

impl Driver for Failing {
    fn properties(&self) -> &Properties {
        self.inner.properties()
    }

    fn memory_bytes(&self) -> Result<(usize, usize), DeviceError> {
        self.inner.memory_bytes()
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.inner.allocate(bytes)
    }

    unsafe fn free(&self, address: u64) {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.free(address) };
    }

    fn allocate_on_host(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.inner.allocate_on_host(bytes)
    }

    unsafe fn free_on_host(&self, address: u64) {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.free_on_host(address) };
    }

    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.zero(address, bytes) }
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.alive()?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.upload(to, from) }
    }

    unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<(), DeviceError> {
        self.alive()?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.download(to, from) }
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.copy(to, from, bytes) }
    }

    unsafe fn begin_download(&self, from: u64, bytes: usize) -> Result<PendingCopy, DeviceError> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.begin_download(from, bytes) }
    }

    fn end_download(&self, transfer: PendingCopy) -> Result<Vec<u8>, DeviceError> {
        self.alive()?;
        self.inner.end_download(transfer)
    }

    fn function(
        &self,
        program: &Specialisation,
        name: &'static str,
        signature: &[String],
    ) -> Result<Function, DeviceError> {
        self.inner.function(program, name, signature)
    }

    unsafe fn launch(
        &self,
        function: Function,
        launch: &Launch,
        arguments: &[&[u8]],
    ) -> Result<(), DeviceError> {
        self.count()?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.launch(function, launch, arguments) }
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.alive()?;
        self.inner.synchronize()
    }

    fn begin_recording(&self) -> Result<(), DeviceError> {
        self.inner.begin_recording()
    }

    fn end_recording(&self) -> Result<Graph, DeviceError> {
        self.inner.end_recording()
    }

    unsafe fn replay(&self, graph: Graph) -> Result<(), DeviceError> {
        self.count()?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.replay(graph) }
    }

    unsafe fn forget(&self, graph: Graph) {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.forget(graph) };
    }

    fn record_event(&self) -> Result<Event, DeviceError> {
        self.inner.record_event()
    }

    unsafe fn seconds_between(&self, first: Event, second: Event) -> Result<f64, DeviceError> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.seconds_between(first, second) }
    }

    fn compiler(&self) -> String {
        self.inner.compiler()
    }
}

const LINEAR: &str = r#"
[mesh]
generate = { kind = "box", cells = [5, 6, 4] }
[equation]
lambda = 0.5
source = "sin(3*x) + z"
[solver]
device = "auto"
[output]
functionals = [{ name = "top", kind = "max" }]
"#;

/// An equation in time.
const STEPS: &str = r#"
[mesh]
generate = { kind = "grid", nodes = [12, 9] }
[equation]
kind = "diffusion"
initial = "x*y"
[time]
end = 0.5
steps = 3
[output]
functionals = [{ name = "top", kind = "max" }]
"#;

#[test]
fn a_gpu_that_fails_in_the_middle_leaves_the_case_to_the_cpu_and_the_report_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let hexahedra = LINEAR.replace("\"box\"", "\"box\", cell = \"hexahedron\"");
    for text in [LINEAR, &hexahedra, STEPS] {
        let path = folder.path().join("case.toml");
        std::fs::write(&path, text).unwrap();
        let mut case = Case::load(&path).unwrap();
        case.file.output.directory = folder.path().join("out");
        let run = |case: &Case, after: usize| {
            let inner =
                Emulator::new().map_err(|error| eprintln!("SKIPPED: a GPU that fails: {error}")).ok()?;
            let driver = Arc::new(Failing { inner, after, n_done: AtomicUsize::new(0) });
            let outcome = femtile_case::run_on(case, &Cuda::with_driver(driver.clone()), &mut Silent);
            Some((outcome, driver.n_done.load(Ordering::Relaxed)))
        };
        let Some((on_gpu, n_launches)) = run(&case, usize::MAX) else { return };
        let on_gpu = on_gpu.unwrap();
        assert!(on_gpu.device.starts_with("cuda") && n_launches > 4, "{n_launches} {}", on_gpu.device);
        for after in [0, n_launches / 2, n_launches - 1] {
            let report = run(&case, after).unwrap().0.unwrap();
            assert!(report.device.starts_with("cpu"), "{}", report.device);
            assert!(report.device_reason.contains("the GPU was lost"), "{}", report.device_reason);
            assert!(report.warnings.iter().any(|warning| warning.contains("solved on the CPU: ")));
            let (found, expected) = (report.functionals["top"], on_gpu.functionals["top"]);
            assert!((found - expected).abs() <= 1e-8 * expected.abs(), "{found} {expected}");
        }
        // Where the GPU is insisted on, its failure is an error.
        case.file.solver.device = "cuda".into();
        let error = run(&case, n_launches / 2).unwrap().0.unwrap_err();
        assert!(error.is_device_trouble(), "{error}");
    }
}

//! Launches: what is checked before, how they run, what becomes of what they find.

use std::ffi::c_void;
use std::sync::Arc;

use femtile::device::DeviceError;
use femtile::device::cuda::Launch;

use super::library::{Entry, Finding, Library, MAX_FINDINGS, RawLaunch};
use super::report::Scene;
use super::{Emulator, State};

/// Threads of the largest block, and bytes of shared memory it may have, as on a GPU.
const MAX_BLOCK: u64 = 1024;
const MAX_SHARED_BYTES: u32 = 227 << 10;
/// Blocks along y and z; and in all, which have numbers of 32 bits.
const MAX_GRID_BEYOND_X: u32 = 65_535;
const MAX_GRID: u64 = 1 << 31;
/// The numbers of segments end at 2^27; the notes on accesses are cleared when half of them are gone.
const FORGET_AT: u32 = 1 << 26;

#[derive(Clone)]
pub(super) struct Kernel {
    pub name: &'static str,
    pub library: Arc<Library>,
    pub entry: Entry,
}

/// A launch with copies of its arguments, aligned as any type may be.
#[derive(Clone)]
pub(super) struct Recorded {
    pub kernel: usize,
    pub launch: Launch,
    pub arguments: Vec<Vec<u128>>,
}

#[derive(Default)]
pub(super) struct Recording {
    pub launches: Vec<Recorded>,
    /// A requested operation that cannot be recorded.
    pub refusal: Option<&'static str>,
}

pub(super) fn launch_error(kernel: &str, launch: &Launch, message: impl Into<String>) -> DeviceError {
    DeviceError::Launch { kernel: kernel.into(), launch: launch.to_string(), message: message.into() }
}

pub(super) fn aligned(bytes: &[u8]) -> Vec<u128> {
    let word = |part: &[u8]| {
        let mut word = [0; 16];
        word[..part.len()].copy_from_slice(part);
        u128::from_ne_bytes(word)
    };
    bytes.chunks(16).map(word).collect()
}

/// Refuses a launch that a GPU would refuse.
pub(super) fn check_launch(launch: &Launch) -> Result<(), String> {
    let product = |sizes: [u32; 3]| sizes.iter().fold(1u64, |all, &n| all.saturating_mul(n.into()));
    let (blocks, threads) = (product(launch.grid), product(launch.block));
    if blocks == 0 || threads == 0 {
        return Err("it has no thread".into());
    }
    if threads > MAX_BLOCK {
        return Err(format!("a block has {threads} threads, and {MAX_BLOCK} are the most"));
    }
    if launch.grid[1] > MAX_GRID_BEYOND_X || launch.grid[2] > MAX_GRID_BEYOND_X || blocks >= MAX_GRID {
        return Err("the grid is too large".into());
    }
    if launch.shared_bytes > MAX_SHARED_BYTES {
        return Err(format!("{MAX_SHARED_BYTES} bytes of shared memory are the most"));
    }
    Ok(())
}

/// The first difference between the parameters that the host declares and those of the source.
pub(super) fn check_signature(name: &str, declared: &[String], entry: &Entry) -> Result<(), String> {
    if declared.len() != entry.parameters.len() {
        let found = entry.parameters.len();
        return Err(format!("{name} has {found} parameters, {} are declared", declared.len()));
    }
    for (index, (declared, found)) in declared.iter().zip(&entry.parameters).enumerate() {
        if *declared != found.c_type {
            let found = &found.c_type;
            return Err(format!("parameter {index} of {name} is `{found}`, declared as `{declared}`"));
        }
    }
    Ok(())
}

impl Emulator {
    /// Runs a launch now.
    pub(super) fn carry_out(&self, state: &mut State, recorded: &Recorded) -> Result<(), DeviceError> {
        let Kernel { name, library, entry } = state.kernels[recorded.kernel].clone();
        if state.next_segment >= FORGET_AT {
            state.memory.forget_accesses();
            state.next_segment = 1;
        }
        state.n_launches += 1;
        let Recorded { launch, arguments, .. } = recorded;
        let mut pointers: Vec<*mut c_void> =
            arguments.iter().map(|words| words.as_ptr().cast_mut().cast()).collect();
        let layout = state.memory.layout();
        let mut raw = RawLaunch {
            kernel: entry.kernel,
            arguments: pointers.as_mut_ptr(),
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            n_findings: 0,
            seed: self.seed ^ state.n_launches.rotate_left(32),
            memory: layout.memory,
            bytes: layout.bytes as u64,
            state: layout.state,
            granules: layout.granules,
            first_segment: state.next_segment,
            unused: 0,
            findings: [Finding::NONE; MAX_FINDINGS],
        };
        // SAFETY: the kernel is of this library, `launch` has compared the sizes of its arguments, and the memory
        // is locked meanwhile.
        unsafe { library.launch(&mut raw) }.map_err(|message| launch_error(name, launch, message))?;
        state.next_segment = raw.first_segment;
        let findings = &raw.findings[..raw.n_findings as usize];
        if findings.is_empty() {
            return Ok(());
        }
        let scene = Scene { launch, arguments, library: &library, memory: &state.memory };
        let mut message = format!("grid {:?}, block {:?}, seed {}", launch.grid, launch.block, self.seed);
        findings.iter().for_each(|finding| message.push_str(&format!("\n  {}", scene.describe(finding))));
        Err(DeviceError::Fault { kernels: name.into(), message })
    }
}

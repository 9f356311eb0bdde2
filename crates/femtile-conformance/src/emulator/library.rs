//! A compiled program: its kernels, and how they are launched.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Longest signature that a kernel may have, in bytes of text.
const SIGNATURE_BYTES: usize = 16 << 10;
/// The same number as in `interface.h`.
pub(super) const MAX_FINDINGS: usize = 16;

/// `Finding` of `interface.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Finding {
    pub kind: u32,
    pub thread: u32,
    pub other_thread: u32,
    pub access: u32,
    pub other_access: u32,
    pub size: u32,
    pub line: u32,
    pub other_line: u32,
    pub mask: u32,
    pub missing: u32,
    pub other_whereabouts: u32,
    pub repeats: u32,
    pub block: u64,
    pub other_block: u64,
    pub address: u64,
    pub place: u64,
    pub file: *const c_char,
    pub other_file: *const c_char,
}

impl Finding {
    pub const NONE: Self = Self {
        kind: 0,
        thread: 0,
        other_thread: 0,
        access: 0,
        other_access: 0,
        size: 0,
        line: 0,
        other_line: 0,
        mask: 0,
        missing: 0,
        other_whereabouts: 0,
        repeats: 0,
        block: 0,
        other_block: 0,
        address: 0,
        place: 0,
        file: std::ptr::null(),
        other_file: std::ptr::null(),
    };
}

type KernelFunction = unsafe extern "C" fn(*mut *mut c_void);

/// `Launch` of `interface.h`.
#[repr(C)]
pub(super) struct RawLaunch {
    pub kernel: KernelFunction,
    pub arguments: *mut *mut c_void,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub n_findings: u32,
    pub seed: u64,
    pub memory: *mut u8,
    pub bytes: u64,
    pub state: *mut u8,
    pub granules: *mut c_void,
    pub first_segment: u32,
    pub unused: u32,
    pub findings: [Finding; MAX_FINDINGS],
}

/// A parameter of a kernel, as the compiler sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub bytes: usize,
    pub c_type: String,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub kernel: KernelFunction,
    pub parameters: Vec<Parameter>,
}

/// A loaded program. Its file is there as long as it is, for who looks up lines.
#[derive(Debug)]
pub(super) struct Library {
    library: libloading::Library,
    path: PathBuf,
    _folder: Option<TempDir>,
    entries: HashMap<String, Entry>,
}

fn parameters(signature: &str) -> Option<Vec<Parameter>> {
    let parameter = |line: &str| {
        let (bytes, c_type) = line.split_once(' ')?;
        Some(Parameter { bytes: bytes.parse().ok()?, c_type: c_type.into() })
    };
    signature.lines().map(parameter).collect()
}

impl Library {
    /// Loads a program with these kernels; a folder given is removed with it.
    pub fn load(path: PathBuf, folder: Option<TempDir>, names: &[String]) -> Result<Self, String> {
        let words = |error: libloading::Error| format!("{}: {error}", path.display());
        // SAFETY: the library was built from the runtime and a kernel; loading it runs nothing but constructors
        // of empty containers.
        let library = unsafe { libloading::Library::new(&path) }.map_err(words)?;
        let mut entries = HashMap::new();
        for name in names {
            // SAFETY: `entries.h` defines these functions with these types for every kernel.
            let (kernel, signature) = unsafe {
                let kernel = library.get::<KernelFunction>(format!("femtile_thunk_{name}"));
                let write =
                    library.get::<unsafe extern "C" fn(*mut c_char)>(format!("femtile_signature_{name}"));
                let mut text = vec![0 as c_char; SIGNATURE_BYTES];
                (write.map_err(words)?)(text.as_mut_ptr());
                (*kernel.map_err(words)?, CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned())
            };
            let parameters = parameters(&signature).ok_or(format!("{name} has the signature {signature}"))?;
            entries.insert(name.clone(), Entry { kernel, parameters });
        }
        Ok(Self { library, path, _folder: folder, entries })
    }

    /// The file of the library.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A kernel by name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// Runs a launch; what it finds is in `launch` afterwards.
    ///
    /// # Safety
    /// The kernel is one of this library's, its arguments have the sizes of its parameters, and the memory is as
    /// `interface.h` says.
    pub unsafe fn launch(&self, launch: &mut RawLaunch) -> Result<(), String> {
        // SAFETY: the runtime defines this function with this type; the rest is the caller's promise.
        let is_ready = unsafe {
            let run = self.library.get::<unsafe extern "C" fn(*mut RawLaunch) -> bool>("femtile_launch");
            (run.map_err(|error| error.to_string())?)(launch)
        };
        if is_ready { Ok(()) } else { Err("there is no address space for the stacks of the threads".into()) }
    }

    /// Beginning and bytes of static, then of dynamic shared memory, once something was launched.
    pub fn shared_memory(&self) -> [(u64, u64); 2] {
        let mut ranges = [0u64; 4];
        // SAFETY: the runtime defines this function with this type, and it writes four numbers.
        unsafe {
            if let Ok(ask) = self.library.get::<unsafe extern "C" fn(*mut u64)>("femtile_shared_memory") {
                ask(ranges.as_mut_ptr());
            }
        }
        [(ranges[0], ranges[1]), (ranges[2], ranges[3])]
    }

    /// Returns the load address of the library.
    pub fn image(&self) -> u64 {
        // SAFETY: the runtime defines this function with this type.
        unsafe { self.library.get::<unsafe extern "C" fn() -> u64>("femtile_image").map_or(0, |ask| ask()) }
    }
}

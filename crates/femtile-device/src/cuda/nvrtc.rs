//! NVRTC, NVIDIA's run-time compiler, opened from the file in which it is found.
//!
//! cudarc's own loader loads the library by its name alone and panics if there is none. This one opens the
//! file that was found and reports its attempts.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::{Arc, OnceLock};

use libloading::Library;

use super::compiler::{Binary, Compiler, Target, options};
use super::{Specialisation, locate};
use crate::DeviceError;

/// The loaded compiler.
#[derive(Debug)]
pub(super) struct Nvrtc {
    library: Library,
    path: PathBuf,
    version: (c_int, c_int),
}

/// File names of NVRTC that the dynamic linker may find.
const SONAMES: [&str; 5] =
    ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "nvrtc64_130_0.dll", "nvrtc64_120_0.dll"];

/// Lines of the compiler's words that an error repeats.
const ERROR_LINES: usize = 20;

type Status = c_int;
type Handle = *mut c_void;

static LOADED: OnceLock<Result<Arc<Nvrtc>, String>> = OnceLock::new();

impl Nvrtc {
    /// The compiler of this process, looked for once.
    ///
    /// # Errors
    /// Returns the error that NVRTC is missing, with the command that installs it.
    pub(super) fn get() -> Result<Arc<Self>, String> {
        LOADED.get_or_init(|| Self::load().map(Arc::new)).clone()
    }

    fn load() -> Result<Self, String> {
        let mut tried = Vec::new();
        for folder in locate::nvrtc_folders() {
            for path in locate::libraries(&folder, "libnvrtc.so") {
                match Self::open(&path, Some(&folder)) {
                    Ok(compiler) => return Ok(compiler),
                    Err(reason) => tried.push(reason),
                }
            }
        }
        // Whoever names a place means that one and no other.
        let named = std::env::var_os(locate::NVRTC_VARIABLE);
        let names: &[&str] = if named.is_some() { &[] } else { &SONAMES };
        for name in names {
            if let Ok(compiler) = Self::open(Path::new(name), None) {
                return Ok(compiler);
            }
        }
        if let Some(named) = named {
            tried.push(format!("{}={}", locate::NVRTC_VARIABLE, named.display()));
        }
        let tried = if tried.is_empty() { String::new() } else { format!(" ({})", tried.join("; ")) };
        Err(format!("NVRTC, which compiles the kernels, was not found{tried}: {}", locate::NVRTC_ADVICE))
    }

    fn open(path: &Path, folder: Option<&Path>) -> Result<Self, String> {
        // NVRTC opens its built-ins by name: they are found only once they have been loaded by path.
        for builtins in folder.iter().flat_map(|folder| locate::libraries(folder, "libnvrtc-builtins.so")) {
            keep_loaded(&builtins);
        }
        let reason = |error: libloading::Error| format!("{}: {error}", path.display());
        // SAFETY: loading NVRTC runs its initialisers, which have no preconditions.
        let library = unsafe { Library::new(path) }.map_err(reason)?;
        let mut version = (0, 0);
        // SAFETY: the type is that of nvrtcVersion, which writes two numbers.
        unsafe {
            let ask =
                library.get::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status>(b"nvrtcVersion\0");
            ask.map_err(reason)?(&mut version.0, &mut version.1);
        }
        Ok(Self { library, path: path.into(), version })
    }

    /// `13.0` of version 13.0.
    fn number(&self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }

    /// For reports: version and file.
    pub(super) fn description(&self) -> String {
        format!("NVRTC {} ({})", self.number(), self.path.display())
    }

    fn call<F: Copy>(&self, name: &CStr) -> Result<F, DeviceError> {
        // SAFETY: callers name the type that the function of this name has.
        let symbol = unsafe { self.library.get::<F>(name.to_bytes_with_nul()) };
        symbol.map(|symbol| *symbol).map_err(|error| DeviceError::Driver {
            action: "looking up a function of NVRTC",
            message: error.to_string(),
        })
    }

    /// Architectures that can be compiled for, 90 for 9.0.
    fn architectures(&self) -> Result<Vec<u32>, DeviceError> {
        let count: unsafe extern "C" fn(*mut c_int) -> Status = self.call(c"nvrtcGetNumSupportedArchs")?;
        let list: unsafe extern "C" fn(*mut c_int) -> Status = self.call(c"nvrtcGetSupportedArchs")?;
        let mut n = 0;
        // SAFETY: the list has the length that NVRTC reports.
        let numbers = unsafe {
            count(&mut n);
            let mut numbers = vec![0; usize::try_from(n).unwrap_or(0)];
            list(numbers.as_mut_ptr());
            numbers
        };
        Ok(numbers.into_iter().filter_map(|number| u32::try_from(number).ok()).collect())
    }

    fn text(&self, handle: Handle, size: &CStr, content: &CStr) -> Result<Vec<u8>, DeviceError> {
        let size_of: unsafe extern "C" fn(Handle, *mut usize) -> Status = self.call(size)?;
        let content_of: unsafe extern "C" fn(Handle, *mut c_char) -> Status = self.call(content)?;
        let mut n = 0;
        // SAFETY: the handle is that of a live program, and the buffer has the size that NVRTC reports.
        let bytes = unsafe {
            size_of(handle, &mut n);
            let mut bytes = vec![0u8; n];
            content_of(handle, bytes.as_mut_ptr().cast());
            bytes
        };
        Ok(bytes)
    }

    fn message(&self, status: Status) -> String {
        let Ok(call) = self.call::<unsafe extern "C" fn(Status) -> *const c_char>(c"nvrtcGetErrorString")
        else {
            return format!("error {status}");
        };
        // SAFETY: NVRTC gives a static text for every number.
        unsafe { CStr::from_ptr(call(status)) }.to_string_lossy().into_owned()
    }
}

/// Loads a library for all that follow and never lets it go.
#[cfg(unix)]
fn keep_loaded(path: &Path) {
    use libloading::os::unix;
    // SAFETY: the built-ins of NVRTC are data with no initialiser that could go wrong.
    if let Ok(library) = unsafe { unix::Library::open(Some(path), unix::RTLD_NOW | unix::RTLD_GLOBAL) } {
        std::mem::forget(library);
    }
}

#[cfg(not(unix))]
fn keep_loaded(_path: &Path) {}

/// A program of NVRTC, destroyed when it goes.
struct Compilation<'a> {
    nvrtc: &'a Nvrtc,
    handle: Handle,
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        if let Ok(destroy) =
            self.nvrtc.call::<unsafe extern "C" fn(*mut Handle) -> Status>(c"nvrtcDestroyProgram")
        {
            // SAFETY: the handle came from nvrtcCreateProgram and is destroyed once.
            unsafe { destroy(&mut self.handle) };
        }
    }
}

fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

type Create = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> Status;

impl Compiler for Nvrtc {
    fn version(&self) -> String {
        format!("nvrtc {}", self.number())
    }

    fn compile(&self, program: &Specialisation, architecture: (u32, u32)) -> Result<Binary, DeviceError> {
        let failed = |message: String| DeviceError::Compile { program: program.to_string(), message };
        let (source, name) =
            (c_string(program.program().source), c_string(&format!("{}.cu", program.program().name)));
        let (names, texts): (Vec<CString>, Vec<CString>) =
            program.headers().map(|(name, text)| (c_string(name), c_string(text))).unzip();
        let names: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        let texts: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        let create: Create = self.call(c"nvrtcCreateProgram")?;
        let mut handle = null_mut();
        // SAFETY: all texts live until the program is destroyed, and their number is right.
        let status = unsafe {
            let n = texts.len() as c_int;
            create(&mut handle, source.as_ptr(), name.as_ptr(), n, texts.as_ptr(), names.as_ptr())
        };
        if status != 0 {
            return Err(failed(self.message(status)));
        }
        let compilation = Compilation { nvrtc: self, handle };
        let (major, minor) = architecture;
        let target = Target::choose(&self.architectures()?, architecture).ok_or_else(|| {
            failed(format!(
                "NVRTC {} is too new for capability {major}.{minor}; install an older one",
                self.number()
            ))
        })?;
        let options: Vec<CString> = options(program, target).iter().map(|o| c_string(o)).collect();
        let mut pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        pointers.push(null());
        let compile: unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Status =
            self.call(c"nvrtcCompileProgram")?;
        // SAFETY: the program is live and the options are as many as said.
        let status = unsafe { compile(compilation.handle, options.len() as c_int, pointers.as_ptr()) };
        let log = self.text(compilation.handle, c"nvrtcGetProgramLogSize", c"nvrtcGetProgramLog")?;
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').to_string();
        if status != 0 {
            let first: Vec<&str> = log.lines().take(ERROR_LINES).collect();
            return Err(failed(format!("{}\n{}", self.message(status), first.join("\n"))));
        }
        let code = match target {
            Target::Code(_) => self.text(compilation.handle, c"nvrtcGetCUBINSize", c"nvrtcGetCUBIN")?,
            Target::Text(_) => self.text(compilation.handle, c"nvrtcGetPTXSize", c"nvrtcGetPTX")?,
        };
        Ok(Binary { code, log })
    }
}

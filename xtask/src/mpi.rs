//! The crate that needs an MPI to be built.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Folders of shared libraries, and those of LLVM on Debian and Fedora.
const FOLDERS: [&str; 5] =
    ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];

static IS_INSTALLED: LazyLock<bool> = LazyLock::new(|| {
    let compiler =
        Command::new("mpicc").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    compiler.is_ok_and(|status| status.success()) && has_libclang()
});

/// Returns whether `femtile-mpi` can be built: by the compiler of an MPI, and libclang, which reads its headers.
pub fn is_installed() -> bool {
    *IS_INSTALLED
}

/// Returns the arguments of cargo for all crates that can be built here.
pub fn workspace() -> &'static [&'static str] {
    if is_installed() { &["--workspace"] } else { &["--workspace", "--exclude", "femtile-mpi"] }
}

fn has_libclang() -> bool {
    let of_llvm =
        std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path().join("lib"));
    let given = std::env::var_os("LIBCLANG_PATH").map(Into::into);
    of_llvm.chain(FOLDERS.map(Into::into)).chain(given).any(|folder| holds_libclang(&folder))
}

fn holds_libclang(folder: &Path) -> bool {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let is_it = |name: &str| {
        let rest = name.strip_prefix("libclang").unwrap_or_default();
        // Not libclang-cpp, which is another library.
        rest.contains(".so") && !rest.contains("cpp")
    };
    names.filter_map(|name| name.into_string().ok()).any(|name| is_it(&name))
}

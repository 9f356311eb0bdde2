//! Paths at which the CUDA libraries are searched for.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The variable that names NVRTC: the library or the folder that holds it.
pub(super) const NVRTC_VARIABLE: &str = "FEMTILE_NVRTC";

/// The variable that names the library of the NVIDIA driver.
pub(super) const DRIVER_VARIABLE: &str = "FEMTILE_LIBCUDA";

/// The one command that installs NVRTC.
pub(super) const NVRTC_ADVICE: &str =
    "install it with `pip install nvidia-cuda-nvrtc` or set FEMTILE_NVRTC to the folder that holds libnvrtc";

/// The prefixes of Python that runs this process.
static PREFIXES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Adds the prefix of a Python environment, whose packages are searched for NVRTC first: that of the process, which need not be
/// the active environment.
pub fn search_python(prefix: PathBuf) {
    PREFIXES.lock().unwrap_or_else(PoisonError::into_inner).push(prefix);
}

/// Returns the folders that are searched for NVRTC: the one that a variable names first, then PyPI's wheel, then toolkits.
pub(super) fn nvrtc_folders() -> Vec<PathBuf> {
    if let Some(named) = env::var_os(NVRTC_VARIABLE) {
        let named = PathBuf::from(named);
        let folder = if named.is_file() { named.parent().map(Path::to_path_buf) } else { Some(named) };
        return folder.into_iter().collect();
    }
    let mut folders = Vec::new();
    for packages in python_packages() {
        folders.extend(
            ["cu13", "cuda_nvrtc", "cu12"].map(|wheel| packages.join("nvidia").join(wheel).join("lib")),
        );
    }
    let toolkits = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"].iter().filter_map(env::var_os).map(PathBuf::from);
    for toolkit in toolkits.chain(["/usr/local/cuda".into(), "/opt/cuda".into()]) {
        folders.extend(["lib64", "lib", "targets/x86_64-linux/lib"].map(|lib| toolkit.join(lib)));
    }
    folders.retain(|folder| folder.is_dir());
    folders
}

/// Folders of Python packages: of the process, of the active environment, of each Python on the path, of the user.
fn python_packages() -> Vec<PathBuf> {
    let own = PREFIXES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(env::var_os).map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).filter_map(|bin| bin.parent().map(Path::to_path_buf));
    let user = env::var_os("HOME").map(|home| PathBuf::from(home).join(".local"));
    let mut found = Vec::new();
    for prefix in own.into_iter().chain(environments).chain(on_path).chain(user) {
        let versions = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
        let versions = versions.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
        for version in versions {
            for packages in ["site-packages", "dist-packages"] {
                let packages = version.path().join(packages);
                if packages.is_dir() && !found.contains(&packages) {
                    found.push(packages);
                }
            }
        }
    }
    found
}

/// The files of a folder whose name begins with `start`, the newest version first.
pub(super) fn libraries(folder: &Path, start: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(start) && !name.contains(".alt.")
    });
    let mut files: Vec<PathBuf> = names.map(|entry| entry.path()).collect();
    files.sort_by(|a, b| b.cmp(a));
    files
}

//! Other libraries' multigrid.

use std::fs;

use femtile::device::{Buffer, Device};
use femtile::linalg::sparse::Csr;
use serde::Deserialize;
use tempfile::TempDir;

use super::TOLERANCE;
use crate::BenchError;
use crate::Samples;
use crate::absent::Absent;
use crate::python::ask;
use crate::system_file::write_system;

/// A library and its settings.
struct Library {
    name: &'static str,
    script: &'static str,
    /// True if it can use more than one thread, or one rank for each.
    has_threads: bool,
    install: &'static str,
}

const LIBRARIES: [Library; 3] = [
    Library {
        name: "AMGCL",
        script: include_str!("../../peers/amgcl.py"),
        has_threads: true,
        install: "git clone https://github.com/ddemidov/amgcl, name the folder in FEMTILE_AMGCL, and have a C++ compiler",
    },
    Library {
        name: "PETSc and hypre",
        script: include_str!("../../peers/petsc_amg.py"),
        has_threads: true,
        install: "apt-get install python3-petsc4py python3-numpy",
    },
    Library {
        name: "PyAMG",
        script: include_str!("../../peers/pyamg_sa.py"),
        has_threads: false,
        install: "pip install pyamg, into the python3 of the path or the one that FEMTILE_PYTHON names",
    },
];

/// Files that scripts read from the folder passed to them.
const FILES: [(&str, &str); 2] = [
    ("amgcl.cpp", include_str!("../../peers/amgcl.cpp")),
    ("petsc_amg.py", include_str!("../../peers/petsc_amg.py")),
];

/// The file that the system is written to.
const SYSTEM: &str = "system.csr";

/// Times and iterations of a method of another library.
#[derive(Debug, Clone, Deserialize)]
pub struct PeerSolves {
    /// Name and version.
    pub library: String,
    /// Name of the method.
    pub method: String,
    /// Times of the set-up, in seconds.
    pub seconds_setup: Vec<f64>,
    /// Times of the solve, in seconds.
    pub seconds_solve: Vec<f64>,
    /// Iterations of the solve.
    pub iterations: usize,
    /// $\|b - A x\| / \|b\|$, computed afresh.
    residual: f64,
    /// Operator complexity, if the peer reports it.
    pub operator_complexity: Option<f64>,
}

impl PeerSolves {
    /// Library and method.
    pub fn name(&self) -> String {
        format!("{} {}", self.library, self.method)
    }

    /// Returns the times of the set-up.
    pub fn setup(&self) -> Samples {
        Samples::from(self.seconds_setup.clone())
    }

    /// Returns the times of the solve.
    pub fn solve(&self) -> Samples {
        Samples::from(self.seconds_solve.clone())
    }

    /// Set-up and solve, medians.
    pub fn seconds(&self) -> f64 {
        self.setup().median() + self.solve().median()
    }
}

/// The libraries, and a folder for what they read and compile.
#[derive(Debug)]
pub struct Peers {
    folder: TempDir,
    /// Those that did not run.
    pub absent: Vec<Absent>,
}

impl Peers {
    /// Peers, none of them run yet.
    ///
    /// # Errors
    /// [`BenchError::File`] when there is no room for temporary files.
    pub fn new() -> Result<Self, BenchError> {
        let failed = |source| BenchError::File { what: "temporary folder", source };
        let folder = tempfile::tempdir().map_err(failed)?;
        for (name, text) in FILES {
            fs::write(folder.path().join(name), text).map_err(failed)?;
        }
        Ok(Self { folder, absent: Vec::new() })
    }

    /// Writes the next system to solve.
    ///
    /// # Errors
    /// [`BenchError::File`] when there is no room for it.
    pub fn take<D: Device>(&self, a: &Csr<f64, D>, b: &Buffer<f64, D>) -> Result<(), BenchError> {
        write_system(a, b, &self.folder.path().join(SYSTEM))
    }

    /// Solves the written system with all available libraries; a missing library is not tried again.
    pub fn solve(&mut self, threads: usize, repeats: usize) -> Vec<PeerSolves> {
        let folder = self.folder.path();
        let mut all = Vec::new();
        for library in LIBRARIES.iter().filter(|library| library.has_threads || threads == 1) {
            if self.absent.iter().any(|absent| absent.peer == library.name) {
                continue;
            }
            let arguments = [
                folder.display().to_string(),
                folder.join(SYSTEM).display().to_string(),
                threads.to_string(),
                repeats.to_string(),
                TOLERANCE.to_string(),
            ];
            let one = |name| (name, "1".to_string());
            let environment = [one("OMP_NUM_THREADS"), one("OPENBLAS_NUM_THREADS"), one("MKL_NUM_THREADS")];
            match ask::<Vec<PeerSolves>>(library.script, &arguments, &environment).and_then(checked) {
                Ok(solves) => all.extend(solves),
                Err(reason) => {
                    let Library { name, install, .. } = *library;
                    self.absent.push(Absent { peer: name, reason, install });
                }
            }
        }
        all
    }
}

/// Refuses times of solutions that are none.
fn checked(solves: Vec<PeerSolves>) -> Result<Vec<PeerSolves>, String> {
    let is_wrong = |solves: &&PeerSolves| solves.residual.is_nan() || solves.residual > 1.1 * TOLERANCE;
    match solves.iter().find(is_wrong) {
        Some(PeerSolves { method, residual, .. }) => {
            Err(format!("{method} leaves a residual of {residual:.1e}, not {TOLERANCE:.0e}"))
        }
        None => Ok(solves),
    }
}

//! Femtile: finite-element solves that keep their data in small tiles of fast memory.
//!
//! A mesh, an equation on it and its solution:
//!
//! ```
//! use femtile::mesh::generate::{BoxConfig, box_mesh};
//! use femtile::{Poisson, SolverConfig};
//!
//! // Or Mesh::read("heart.msh")?
//! let mesh = box_mesh(&BoxConfig { cells: [12, 12, 12], ..BoxConfig::default() })?;
//! let problem = Poisson::new(&mesh)
//!     .sigma("1 + x")
//!     .source(|[x, y, z]: [f64; 3]| x * y * z)
//!     .dirichlet("zmin", 1.0)?
//!     .robin("x > 1 - 1e-9", 0.5, 0.0)?;
//! let solution = problem.solve(&SolverConfig::default())?;
//! println!("{} in {} iterations on {}", solution.max(), solution.outcome().iterations, solution.device());
//! # assert!(solution.has_converged());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A symmetric positive definite matrix and its solution:
//!
//! ```
//! use femtile::{AmgOptions, Cpu, LinearSolver, PreconditionerConfig, SolverConfig};
//! use femtile::linalg::sparse::Triplets;
//!
//! let n = 1_000;
//! let mut triplets = Triplets::new(n, n);
//! for i in 0..n {
//!     triplets.push(i, i, 2.0)?;
//!     if i > 0 {
//!         triplets.push(i, i - 1, -1.0)?;
//!         triplets.push(i - 1, i, -1.0)?;
//!     }
//! }
//! let a = triplets.into_csr(&Cpu::new(0)?)?.matrix;
//! let preconditioner = PreconditionerConfig::Amg(AmgOptions::default());
//! let solver = LinearSolver::new(&a, &SolverConfig { preconditioner, ..SolverConfig::default() })?;
//! let solution = solver.solve(&vec![1.0; n])?;
//! assert!(solution.has_converged());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules are the chapters of the library; `docs/library.md` leads from these programs to them.

pub use femtile_amg as amg;
pub use femtile_comm as comm;
pub use femtile_device as device;
pub use femtile_fem as fem;
pub use femtile_form as form;
pub use femtile_matrix_free as matrix_free;
pub use femtile_mesh as mesh;
pub use femtile_multigrid as multigrid;
pub use femtile_operator as operator;
pub use femtile_report as report;
pub use femtile_solve as solve;
pub use femtile_space as space;
pub use femtile_time as time;
pub use femtile_tridiagonal as tridiagonal;

// Parts of the modules above, for crates of this workspace: no page needs them.
#[doc(hidden)]
pub use femtile_element as element;
#[doc(hidden)]
pub use femtile_expression as expression;
#[doc(hidden)]
pub use femtile_sum_factorization as sum_factorization;

/// Vectors, sparse matrices, Krylov methods and simple preconditioners.
pub mod linalg {
    pub use femtile_linalg::*;
    pub use femtile_sparse as sparse;
}

pub use femtile_device::Cpu;
pub use femtile_mesh::Mesh;
pub use femtile_solve::{
    AmgGraph, AmgOptions, DeviceChoice, GmgOptions, GmgStart, LinearSolution, LinearSolver, Method, Nodes,
    PmgOptions, Poisson, PreconditionerConfig, Region, Solution, SolveError, SolverConfig, Transient, Value,
    amg_from_mesh, tag_regions,
};

/// The programs of docs/library.md, which are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
mod library {}

/// The program of docs/extending.md, which is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/extending.md")]
mod extending {}

/// The program of docs/forms.md, which is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/forms.md")]
mod forms {}

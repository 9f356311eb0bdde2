//! The Python module `femtile._femtile`: arrays of NumPy in and out of the library, errors, signals.
//!
//! Nothing is computed here. The Python sources beside it check arguments and give names.
//!
//! The crate is a thin layer over `LinearSolver`, `Tridiagonal`, the Krylov methods and `femtile-case`. A problem
//! on a mesh is a case: `Embedding` of `femtile-case` gives it a mesh in memory and takes frames and the solution
//! there, so words, checks and messages are those of the program. `Poisson.operator` is a `StandaloneSystem`, which
//! borrows neither mesh nor problem; the way back to u discretizes again.

mod amg;
mod arrays;
mod case;
mod ell_warp;
mod errors;
mod frames;
mod gpu;
mod interrupt;
mod krylov;
mod mesh;
mod operator;
mod solution;
mod threads;
mod tridiagonal;

use pyo3::prelude::*;

/// The compiled part of Femtile.
#[pymodule]
fn _femtile(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let prefix: String = module.py().import("sys")?.getattr("prefix")?.extract()?;
    femtile::device::cuda::search_python(prefix.into());
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<amg::Solver>()?;
    module.add_class::<ell_warp::Slices>()?;
    module.add_class::<frames::Frames>()?;
    module.add_class::<gpu::GpuArray>()?;
    module.add_class::<gpu::Imported>()?;
    module.add_class::<krylov::Matrix>()?;
    module.add_class::<mesh::Mesh>()?;
    module.add_class::<operator::Operator>()?;
    module.add_function(wrap_pyfunction!(case::solve, module)?)?;
    module.add_function(wrap_pyfunction!(case::study, module)?)?;
    module.add_function(wrap_pyfunction!(case::functional, module)?)?;
    module.add_function(wrap_pyfunction!(case::schema, module)?)?;
    module.add_function(wrap_pyfunction!(frames::frames, module)?)?;
    module.add_function(wrap_pyfunction!(gpu::gpu_of, module)?)?;
    module.add_function(wrap_pyfunction!(gpu::gpu_stream, module)?)?;
    module.add_function(wrap_pyfunction!(krylov::krylov, module)?)?;
    module.add_function(wrap_pyfunction!(mesh::generate, module)?)?;
    module.add_function(wrap_pyfunction!(mesh::read, module)?)?;
    module.add_function(wrap_pyfunction!(solution::values_at, module)?)?;
    module.add_function(wrap_pyfunction!(solution::write_vtu, module)?)?;
    module.add_function(wrap_pyfunction!(tridiagonal::solve_tridiagonal, module)?)?;
    module.add_function(wrap_pyfunction!(tridiagonal::solve_tridiagonal_on_gpu, module)?)?;
    module.add_function(wrap_pyfunction!(tridiagonal::solve_block_tridiagonal, module)?)
}

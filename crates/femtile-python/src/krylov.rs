//! Krylov methods for operators of Python and of the library.

use femtile::Cpu;
use femtile::device::Buffer;
use femtile::linalg::comm::SingleRank;
use femtile::linalg::hooks::Hook;
use femtile::linalg::krylov::cg::{CgOutcome, ConjugateGradient, KrylovConfig};
use femtile::linalg::krylov::gmres::{Gmres, GmresConfig};
use femtile::linalg::precondition::Diagonal;
use femtile::linalg::sparse::Csr;
use femtile::linalg::vector::sum::BLOCK;
use femtile::linalg::{LinalgError, LinearOperator, Preconditioner, need};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::amg::{Outcome, Solver, outcome};
use crate::arrays::{CsrArrays, array, csr};
use crate::errors::Raise;
use crate::interrupt::{Watch, called_back, interruptible};
use crate::operator::Operator;
use crate::threads::cpu;

/// A sparse matrix of the library.
#[pyclass(frozen, module = "femtile._femtile")]
pub struct Matrix(Csr<f64, Cpu>);

#[pymethods]
impl Matrix {
    #[new]
    fn new(py: Python<'_>, matrix: CsrArrays<'_, f64>, threads: usize) -> PyResult<Self> {
        Ok(Self(csr(py, &cpu(py, threads)?, &matrix)?))
    }
}

/// A function of Python from vectors to vectors of float64.
struct Function<'a> {
    call: Py<PyAny>,
    n: usize,
    cpu: &'a Cpu,
    watch: &'a Watch,
}

impl Function<'_> {
    fn call(&self, y: &mut Buffer<f64, Cpu>, x: &Buffer<f64, Cpu>) -> Result<(), LinalgError> {
        let called = called_back(|py| {
            let result = self.call.call1(py, (PyArray1::from_slice(py, x.as_slice()),))?;
            let values: PyReadonlyArray1<'_, f64> = result.extract(py)?;
            Ok(need("result", self.n, values.as_slice()?.len())
                .map(|()| y.as_mut_slice().copy_from_slice(values.as_slice().unwrap_or_default())))
        });
        called.unwrap_or_else(|error: PyErr| {
            self.watch.keep(error);
            Err(LinalgError::Setting { field: "A", message: "raised an exception".into() })
        })
    }
}

impl LinearOperator<f64, Cpu> for Function<'_> {
    fn n_rows(&self) -> usize {
        self.n
    }

    fn n_cols(&self) -> usize {
        self.n
    }

    fn device(&self) -> &Cpu {
        self.cpu
    }

    fn apply_with(
        &self,
        y: &mut Buffer<f64, Cpu>,
        x: &Buffer<f64, Cpu>,
        hook: &dyn Hook<f64>,
    ) -> Result<(), LinalgError> {
        need("y", self.n, y.len())?;
        need("x", self.n, x.len())?;
        let blocks = || (0..self.n).step_by(BLOCK).map(|begin| begin..self.n.min(begin + BLOCK));
        blocks().for_each(|rows| hook.pre(rows));
        self.call(y, x)?;
        blocks().for_each(|rows| hook.post(rows.clone(), &x.as_slice()[rows.clone()], &y.as_slice()[rows]));
        Ok(())
    }
}

impl Preconditioner<f64, Cpu> for Function<'_> {
    fn apply(&self, z: &mut Buffer<f64, Cpu>, r: &Buffer<f64, Cpu>) -> Result<(), LinalgError> {
        self.call(z, r)
    }
}

/// Multigrid that was set up for another solver.
struct OfSolver<'a>(&'a Solver);

impl Preconditioner<f64, Cpu> for OfSolver<'_> {
    fn apply(&self, z: &mut Buffer<f64, Cpu>, r: &Buffer<f64, Cpu>) -> Result<(), LinalgError> {
        let failed = |message: String| LinalgError::Setting { field: "M", message };
        let applied = self.0.apply(r.as_slice()).ok_or_else(|| failed("its refill has failed".into()))?;
        let values = applied.map_err(|error| failed(error.to_string()))?;
        Ok(z.upload(&values)?)
    }
}

/// Solves A x = b by "cg" or "gmres"; A is a [`Matrix`], an [`Operator`] or a function, M none, a [`Solver`] or a function.
/// The limits are tolerance, iterations and directions before a restart, then the number of threads.
#[pyfunction]
pub fn krylov<'py>(
    py: Python<'py>,
    method: &str,
    operators: (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>),
    b: PyReadonlyArray1<'py, f64>,
    x0: PyReadonlyArray1<'py, f64>,
    limits: (f64, usize, usize, usize),
    callback: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Outcome)> {
    let (a, m) = operators;
    let (tolerance, max_iterations, restart, threads) = limits;
    let of_mesh = a.cast::<Operator>().ok().map(|operator| &operator.get().0);
    let cpu = &match of_mesh {
        Some(of_mesh) => of_mesh.cpu().clone(),
        None => cpu(py, threads)?,
    };
    let watch = &Watch::new(callback);
    let n = b.as_slice()?.len();
    let function = |call: &Bound<'_, PyAny>| Function { call: call.clone().unbind(), n, cpu, watch };
    let matrix = a.cast::<Matrix>().ok().map(|matrix| matrix.get());
    let of_python = function(&a);
    let operator: &dyn LinearOperator<f64, Cpu> = match (matrix, of_mesh) {
        (Some(Matrix(matrix)), _) => matrix,
        (None, Some(of_mesh)) => of_mesh.system().operator(),
        (None, None) => &of_python,
    };
    let solver = m.as_ref().and_then(|m| m.cast::<Solver>().ok()).map(|solver| OfSolver(solver.get()));
    let given = m.as_ref().map(function);
    let identity = Diagonal::identity(cpu, n).map_err(|error| error.raise(py))?;
    let preconditioner: &dyn Preconditioner<f64, Cpu> = match (&solver, &given) {
        (Some(solver), _) => solver,
        (None, Some(function)) => function,
        (None, None) => &identity,
    };
    let cg = KrylovConfig { tolerance, max_iterations, ..KrylovConfig::default() };
    let (b, x) = (b.as_slice()?, x0.as_slice()?.to_vec());
    let solve = || -> Result<(Vec<f64>, CgOutcome), LinalgError> {
        let (mut x, b) = (Buffer::from_vec(cpu, x)?, Buffer::from_host(cpu, b)?);
        let mut monitor = watch;
        let outcome = match method {
            "cg" => ConjugateGradient::new(cg).solve(
                &mut x,
                operator,
                preconditioner,
                &b,
                &SingleRank,
                &mut monitor,
            ),
            _ => {
                let gmres = Gmres::new(GmresConfig { cg, restart });
                gmres.solve(&mut x, operator, preconditioner, &b, &SingleRank, &mut monitor)
            }
        }?;
        Ok((x.to_host()?, outcome))
    };
    let solved = interruptible(py, &watch.stop, || cpu.install(solve))?;
    watch.raised()?;
    let (x, found) = solved.map_err(|error| error.raise(py))?;
    Ok((array(py, x), outcome(found)))
}

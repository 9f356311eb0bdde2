//! Linear systems of problems on meshes, for iterative methods of Python.

use std::sync::Arc;

use femtile::device::cpu::{Borrowed, BorrowedMut};
use femtile_case::{CaseSystem, Receiver};
use numpy::{PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::array;
use crate::case::{Given, solution};
use crate::errors::Raise;
use crate::interrupt::{Stop, interruptible};
use crate::mesh::Mesh;

/// Nothing is solved, so that nothing is received.
struct Nobody;

impl Receiver for Nobody {}

/// The operator of a problem with its right side.
#[pyclass(frozen, module = "femtile._femtile")]
pub struct Operator(pub CaseSystem);

#[pymethods]
impl Operator {
    #[new]
    fn new(py: Python<'_>, given: Given, mesh: Option<PyRef<'_, Mesh>>) -> PyResult<Self> {
        let case = given.case(py, mesh.as_deref(), Arc::new(Nobody))?;
        let stop = Stop::default();
        let made = interruptible(py, &stop, || CaseSystem::new(case, &mut &stop))?;
        Ok(Self(made.map_err(|error| error.raise(py))?))
    }

    /// The format of the operator, and whether constants are in its kernel.
    fn description(&self) -> (&str, bool) {
        (self.0.system().format(), self.0.system().is_pure_neumann())
    }

    /// Computes y = A x.
    fn apply(
        &self,
        py: Python<'_>,
        mut y: PyReadwriteArray1<'_, f64>,
        x: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<()> {
        let (y, x, cpu) = (y.as_slice_mut()?, x.as_slice()?, self.0.cpu());
        let done = py.detach(|| {
            let (mut y, x) = (BorrowedMut::new(cpu, y), Borrowed::new(cpu, x));
            // SAFETY: a product overwrites the values of the buffer and leaves it where it is.
            let y = unsafe { y.buffer() };
            cpu.install(|| self.0.system().operator().apply(y, &x))
        });
        done.map_err(|error| error.raise(py))
    }

    /// The diagonal of A.
    fn diagonal<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array(py, self.0.system().diagonal().to_vec())
    }

    /// The right side, given values lifted.
    fn right_side<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array(py, self.0.system().rhs().to_vec())
    }

    /// The arrays of u with its mesh from the solution of the system.
    fn solution<'py>(&self, py: Python<'py>, w: PyReadonlyArray1<'py, f64>) -> PyResult<Bound<'py, PyDict>> {
        let w = w.as_slice()?;
        let found = py.detach(|| self.0.solution(w)).map_err(|error| error.raise(py))?;
        solution(py, found)
    }
}

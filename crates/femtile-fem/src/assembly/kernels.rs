use femtile_device::{Device, Scalar};
use femtile_linalg::sparse::csr::Csr;

use crate::FemError;
use crate::constraints::Constraints;
use crate::forms::{CellCoefficients, FacetTerm};

/// A form made ready for assembly: coefficients compiled, boundary conditions turned into terms and constraints.
pub struct Problem<'a> {
    pub(crate) coefficients: CellCoefficients<'a>,
    pub(crate) facet_terms: Vec<FacetTerm>,
    pub(crate) constraints: Constraints,
    pub(crate) progress: &'a (dyn Fn(f64) + Sync),
}

/// A matrix with its right side, constraints eliminated, and what assembly learnt about the reaction.
#[derive(Debug)]
pub struct Assembled<T: Scalar, D: Device> {
    /// The matrix $A$, symmetric, with unit rows for constrained degrees of freedom.
    pub matrix: Csr<T, D>,
    /// The lifted right side, zero where constrained.
    pub rhs: Vec<f64>,
    /// Whether λ is positive in some cell of a node; empty when it is zero in all cells.
    pub reacts: Vec<bool>,
}

/// What assembly needs of a device.
pub trait AssemblyKernels<T: Scalar>: Device {
    /// The matrix and right side of linear elements,
    ///
    /// $$ A_{ij} = \sum_T |T| \left( \nabla\varphi_i\cdot\bar\sigma\nabla\varphi_j +
    /// \overline{\lambda\varphi_i\varphi_j} \right) + \sum_F \int_F c\,\varphi_i\varphi_j, $$
    /// $$ b_i = \sum_T |T|\,\overline{f\varphi_i} + \sum_F \int_F (g + c\,w)\,\varphi_i, $$
    ///
    /// with bars for means over a cell, then with constraints eliminated as [`crate::constraints`] says.
    ///
    /// The pattern is that of the mesh, entries of constrained rows and columns kept as zeros; terms are added by
    /// ascending cell, then by ascending facet, in f64, and rounded once.
    ///
    /// # Shapes
    /// `matrix: [n_nodes × n_nodes]`, `rhs: [n_nodes]`, `reacts: [n_nodes]` or empty.
    /// # Cost
    /// Reads 16 bytes a cell and 24 a node at least; writes 12 bytes a non-zero and 12 a row in f64.
    /// # Errors
    /// A degenerate cell, an orphan node, a coefficient that is out of its range. Of several bad cells one is named,
    /// the same for any number of threads.
    fn assemble_system(&self, problem: &Problem<'_>) -> Result<Assembled<T, Self>, FemError>;
}

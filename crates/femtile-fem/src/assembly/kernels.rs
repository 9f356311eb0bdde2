use std::ops::ControlFlow;
use std::sync::Arc;

use femtile_device::{Buffer, BufferMut, Device, Scalar};
use femtile_mesh::Mesh;
use femtile_sparse::Places;
use femtile_sparse::csr::Csr;

use super::identity;
use super::sparsity::Sparsity;
use crate::FemError;
use crate::constraints::Constraints;
use crate::forms::{CellCoefficients, FacetTerm, Form, facet_terms, winners};

/// Hears which fraction is done, from any thread, and says whether to go on.
type Progress<'a> = &'a (dyn Fn(f64) -> ControlFlow<()> + Sync);

/// Goes on to the end.
pub(super) fn to_the_end(_fraction: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A form made ready for assembly: coefficients compiled, boundary conditions turned into terms and constraints.
pub struct AssemblyProblem<'a> {
    pub(crate) coefficients: CellCoefficients<'a>,
    pub(crate) facet_terms: Vec<FacetTerm>,
    pub(crate) constraints: Constraints,
    progress: Progress<'a>,
    /// Tells it from all others of the process.
    pub(super) number: u64,
}

impl<'a> AssemblyProblem<'a> {
    pub(super) fn new(form: &Form<'a>, progress: Progress<'a>) -> Result<Self, FemError> {
        let winners = winners(form)?;
        Ok(Self {
            coefficients: CellCoefficients::new(form)?,
            facet_terms: facet_terms(form, &winners)?,
            constraints: Constraints::dirichlet(form, &winners)?,
            progress,
            number: identity::fresh(),
        })
    }

    /// Tells which fraction is done, and fails once the work should end.
    pub(crate) fn go_on(&self, fraction: f64) -> Result<(), FemError> {
        match (self.progress)(fraction) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(FemError::Interrupted),
        }
    }
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
    /// What is kept of a mesh and a matrix, so that values can be filled in again.
    type Kept: Send;

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
    fn assemble_system(&self, problem: &AssemblyProblem<'_>) -> Result<Assembled<T, Self>, FemError>;

    /// Prepares for filling values into a matrix with the pattern of a mesh, stored at `places`.
    ///
    /// # Errors
    /// What the device reports.
    fn keep(&self, mesh: &Mesh, pattern: &Arc<Sparsity>, places: Places) -> Result<Self::Kept, FemError>;

    /// Brings what a problem says to where [`AssemblyKernels::queue`] reads it.
    ///
    /// # Errors
    /// What the device reports.
    fn load(&self, kept: &mut Self::Kept, problem: &AssemblyProblem<'_>) -> Result<(), FemError>;

    /// Fills in the values of the problem that was loaded last, or queues that; padding is left as it is.
    ///
    /// The sums are those of [`AssemblyKernels::assemble_system`], but a device may add the terms of the diagonal in
    /// another order; that order depends on the mesh alone.
    ///
    /// # Shapes
    /// `values`: as stored; `rhs: [n_nodes]`.
    /// # Cost
    /// As [`AssemblyKernels::assemble_system`] without the pattern, and [`AssemblyKernels::kept_bytes`] read;
    /// allocates nothing that grows with the mesh.
    /// # Errors
    /// Those of [`AssemblyKernels::check`] that are known at once.
    fn queue<V: Scalar>(
        &self,
        kept: &mut Self::Kept,
        problem: &AssemblyProblem<'_>,
        values: &mut BufferMut<'_, V, Self>,
        rhs: &mut Buffer<T, Self>,
    ) -> Result<(), FemError>;

    /// Waits for what was queued, and gives [`Assembled::reacts`].
    ///
    /// # Errors
    /// A degenerate cell, a coefficient that is out of its range; the values are then undefined.
    fn check<V: Scalar>(
        &self,
        kept: &mut Self::Kept,
        problem: &AssemblyProblem<'_>,
        values: &mut BufferMut<'_, V, Self>,
        rhs: &mut Buffer<T, Self>,
    ) -> Result<Vec<bool>, FemError>;

    /// Bytes that a filling reads of the mesh and of lists, besides what coefficients look up.
    fn kept_bytes(&self, kept: &Self::Kept) -> usize;

    /// The right side that was filled in last, before it was rounded.
    ///
    /// # Errors
    /// What the device reports.
    fn unrounded(&self, kept: &Self::Kept, rhs: &Buffer<T, Self>) -> Result<Vec<f64>, FemError>;
}

//! Problems on spaces of any degree on quadrilaterals and hexahedra.
//!
//! [`TensorProblem`] is a form without the operator of its cells. [`TensorProblem::lift`] computes the right side from
//! a product with the operator; [`assemble()`] also assembles the matrix.
//!
//! A form holds constraints, the load vector and the matrices of Robin facets. Assembled and matrix-free operators
//! share it, lifting included, and both are tested against the cell matrices computed here. Connected components
//! are found from corner nodes, and constants are vectors of ones, so pure Neumann problems use the code of linear
//! elements.

mod assemble;
mod cell_matrices;
mod even_points;
mod linearized;
mod refill;
mod sparsity;

use femtile_device::{Buffer, Device, parallel, part};
use femtile_mesh::check::components;
use femtile_space::geometry::CellRule;
use femtile_space::{Space, TensorSpace};

use crate::FemError;
use crate::assembly::WithoutMatrix;
use crate::assembly::floating::{Flux, Reaction, balance, floats, held_by_conditions, held_nodes};
use crate::constraints::Constraints;
use crate::evaluation::{Evaluation, add_products, touching};
pub use crate::forms::FacetMatrix;
use crate::forms::{Conditions, FacetTerm, Form};
use crate::right_side::RightSide;
pub use assemble::assemble;
pub use cell_matrices::{CellMatrices, CellScratch};
pub use even_points::EvenPoints;
pub use refill::{LinearizedProblem, TensorAssembly};

/// The load, constraints and facet terms of a form on a space, without the operator of its cells.
#[derive(Debug)]
pub struct TensorProblem<'a> {
    space: &'a TensorSpace<'a>,
    form: Form<'a>,
    constraints: Constraints,
    facet_matrices: Vec<FacetMatrix>,
    /// Load before lifting.
    load: Vec<f64>,
    flux: Flux,
    is_pure_neumann: bool,
}

/// Takes the matrices of the facets that have one.
fn matrices(terms: Vec<FacetTerm>) -> Vec<FacetMatrix> {
    terms.into_iter().filter(FacetTerm::reacts).map(|term| term.matrix).collect()
}

/// A product with an operator: `apply(y, x)` overwrites all of `y` with $A x$.
pub type Apply<'a> = dyn FnMut(&mut [f64], &[f64]) -> Result<(), FemError> + 'a;

/// Entries of the right side that a thread computes at a time.
const ENTRIES: usize = 1 << 14;

/// Source integrals have p + 2 points along each axis.
pub(crate) const SOURCE_RULE: CellRule = CellRule::Gauss { extra: 1 };

impl<'a> TensorProblem<'a> {
    /// Evaluates the source and the boundary conditions of a form on a space of its mesh.
    ///
    /// # Errors
    /// A folded cell, a datum that is not finite, a negative λ or transfer coefficient, a component of the mesh without
    /// any condition; see [`FemError`].
    pub fn new(space: &'a TensorSpace<'a>, form: &Form<'a>) -> Result<Self, FemError> {
        let conditions = form.holding_conditions()?;
        let right_side = RightSide::new(&Space::from(space), form.source, &conditions)?;
        let is_pure_neumann = part("components without conditions", || {
            leaves_a_constant(space, form, &conditions, &right_side)
        })?;
        Ok(Self::of_right_side(space, form, right_side, is_pure_neumann))
    }

    /// As [`TensorProblem::new`], for a part of a mesh. The conditions that determine the solution may be on
    /// other parts. Also returns for each node of the part whether a condition or a reaction holds the
    /// solution there.
    ///
    /// # Errors
    /// As [`TensorProblem::new`], except for components without any condition.
    pub fn local(space: &'a TensorSpace<'a>, form: &Form<'a>) -> Result<(Self, Vec<bool>), FemError> {
        let (conditions, on) = (form.holding_conditions()?, Space::from(space));
        let right_side = RightSide::new(&on, form.source, &conditions)?;
        let held = held_by_conditions(&conditions, &right_side.facet_terms);
        let is_held = held_nodes(&on, form, held)?;
        Ok((Self::of_right_side(space, form, right_side, false), is_held))
    }

    /// Replaces the Dirichlet values of the form. At the border of a part, facets of other ranks may give
    /// different values.
    ///
    /// # Errors
    /// [`FemError::Length`] unless the numbers of degrees of freedom match.
    pub fn with_constraints(self, constraints: Constraints) -> Result<Self, FemError> {
        match constraints.n_dofs() == self.space.n_dofs() {
            true => Ok(Self { constraints, ..self }),
            false => Err(FemError::Length {
                field: "constraints",
                found: constraints.n_dofs(),
                expected: self.space.n_dofs(),
            }),
        }
    }

    fn of_right_side(
        space: &'a TensorSpace<'a>,
        form: &Form<'a>,
        RightSide { load, constraints, facet_terms }: RightSide,
        is_pure_neumann: bool,
    ) -> Self {
        let flux = Flux::of(&facet_terms);
        let facet_matrices = matrices(facet_terms);
        Self { space, form: *form, constraints, facet_matrices, load, flux, is_pure_neumann }
    }

    /// Returns the space.
    pub fn space(&self) -> &'a TensorSpace<'a> {
        self.space
    }

    /// Returns the form.
    pub fn form(&self) -> &Form<'a> {
        &self.form
    }

    /// Returns the constrained degrees of freedom and their values.
    pub fn constraints(&self) -> &Constraints {
        &self.constraints
    }

    /// Returns the facet matrices of Robin conditions.
    pub fn facet_matrices(&self) -> &[FacetMatrix] {
        &self.facet_matrices
    }

    /// Returns whether the solution is determined up to a constant only.
    pub fn is_pure_neumann(&self) -> bool {
        self.is_pure_neumann
    }

    /// Computes the right side with boundary values lifted, on a device; `apply(y, x)` is $y = A x$ for the operator of
    /// the cells without constraints and facet terms.
    ///
    /// $$ b_F = f_F - (A g)_F, \qquad b_C = 0 $$
    ///
    /// `apply` is not called if all Dirichlet values are zero.
    ///
    /// # Errors
    /// [`FemError::Incompatible`] for unbalanced data of a pure Neumann problem; errors of `apply`.
    pub fn lift<D: Device>(
        &self,
        device: &D,
        apply: &mut Apply<'_>,
    ) -> Result<WithoutMatrix<f64, D>, FemError> {
        let mut lifting = vec![0.0; self.space.n_dofs()];
        if self.constraints.values().iter().any(|&value| value != 0.0) {
            let given = self.minus_given();
            apply(&mut lifting, &given)?;
            self.add_facets(&mut lifting, &given);
        }
        self.lifted(device, lifting)
    }

    /// As [`TensorProblem::lift`], with products of the cells alone that have a given value, by the quadrature rule of the
    /// operator.
    ///
    /// # Cost
    /// $O(p^{d+1})$ for each cell with a given value.
    /// # Errors
    /// [`FemError::Incompatible`] for unbalanced data of a pure Neumann problem; folded cells, coefficients that are not
    /// finite.
    pub fn lift_by_cells<D: Device>(
        &self,
        device: &D,
        rule: CellRule,
    ) -> Result<WithoutMatrix<f64, D>, FemError> {
        let space = self.space;
        let mut lifting = vec![0.0; space.n_dofs()];
        if self.constraints.values().iter().any(|&value| value != 0.0) {
            let evaluation = Evaluation::on_tensor_cells(space, rule);
            let positions = part("cells with given values", || {
                touching(&evaluation, &space.marks(self.constraints.dofs()))
            });
            let free = |dof: u32| !self.constraints.contains(dof as usize);
            let given = self.minus_given();
            let of = (&given[..], &positions[..]);
            part("products of cells", || add_products(&evaluation, &self.form, of, free, &mut lifting))?;
            self.add_facets(&mut lifting, &given);
        }
        self.lifted(device, lifting)
    }

    /// Returns the Dirichlet values with the other sign, and zeros.
    fn minus_given(&self) -> Vec<f64> {
        let mut given = vec![0.0; self.space.n_dofs()];
        let values = self.constraints.dofs().iter().zip(self.constraints.values());
        values.for_each(|(&dof, value)| given[dof as usize] = -value);
        given
    }

    /// Adds $y \mathrel{+}= R x$ with the matrices R of all facets.
    pub fn add_facets(&self, y: &mut [f64], x: &[f64]) {
        for FacetMatrix { dofs, entries } in &self.facet_matrices {
            for (&dof, row) in dofs.iter().zip(entries.chunks_exact(dofs.len())) {
                let products = row.iter().zip(dofs).map(|(entry, &dof)| entry * x[dof as usize]);
                y[dof as usize] += products.sum::<f64>();
            }
        }
    }

    /// Returns the right side; `lifting` is $-A g$.
    fn lifted<D: Device>(&self, device: &D, lifting: Vec<f64>) -> Result<WithoutMatrix<f64, D>, FemError> {
        let mut rhs = lifting;
        parallel::for_chunks_mut(&mut rhs, ENTRIES, |begin, rhs| {
            rhs.iter_mut().zip(&self.load[begin..]).for_each(|(b, load)| *b += load);
        });
        self.constraints.dofs().iter().for_each(|&dof| rhs[dof as usize] = 0.0);
        let imbalance = if self.is_pure_neumann { balance(&mut rhs, self.flux)? } else { 0.0 };
        let rhs = part("copy to the device", || Buffer::from_vec(device, rhs))?;
        Ok(WithoutMatrix::without_matrix(rhs, self.constraints.clone(), self.is_pure_neumann, imbalance))
    }
}

/// Returns whether nothing holds the solution of a form: λ = 0, and no condition does.
///
/// # Errors
/// [`FemError::Floating`] if this is true of one of several components; a λ that is not finite or negative.
fn leaves_a_constant(
    space: &TensorSpace<'_>,
    form: &Form<'_>,
    conditions: &Conditions<'_>,
    right_side: &RightSide,
) -> Result<bool, FemError> {
    if form.lambda.as_constant().is_some_and(|lambda| lambda > 0.0) {
        return Ok(false);
    }
    // A negative λ is refused even if conditions hold the solution.
    let of_cells = Space::from(space);
    let reacting = match Reaction::new(&of_cells, form)? {
        Some(reaction) => reaction.cells(0..form.mesh.n_cells())?,
        None => Vec::new(),
    };
    let in_cells = reacting.iter().flat_map(|&cell| form.mesh.cell(cell as usize)).copied();
    let held = held_by_conditions(conditions, &right_side.facet_terms).chain(in_cells);
    floats(form.mesh, &components(form.mesh), held, |_| Ok(Vec::new()))
}

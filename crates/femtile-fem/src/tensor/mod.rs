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
mod facets;
mod linearized;
mod pure_neumann;
mod recovery;
mod refill;
mod sparsity;

use femtile_device::{Buffer, Cpu, Device, parallel, part};
use femtile_space::geometry::CellRule;
use femtile_space::{Space, TensorSpace};

use crate::FemError;
use crate::assembly::floating;
use crate::constraints::Constraints;
use crate::evaluation::{Evaluation, TensorBasis, add_products, touching};
use crate::forms::{Compiled, Form, winners};
use crate::functionals::{self, check_length};
pub use assemble::{assemble, assemble_interruptible};
pub use cell_matrices::{CellMatrices, CellScratch};
pub use even_points::EvenPoints;
pub use facets::FacetMatrix;
use facets::{FacetTerms, Flux};
pub use recovery::RecoveredGradient;
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

/// The right side of a linear system $A w = b$, and the map from $w$ to the solution $u$.
///
/// As with [`crate::AssembledSystem`], rows and columns of constrained degrees of freedom are those of the identity.
#[derive(Debug)]
pub struct TensorRightSide<'a, D: Device = Cpu> {
    space: &'a TensorSpace<'a>,
    /// The right side with Dirichlet values lifted, zero in constrained rows.
    pub rhs: Buffer<f64, D>,
    /// The constrained degrees of freedom and their values.
    pub constraints: Constraints,
    /// Whether the solution is determined up to a constant only; it then has mean zero.
    pub is_pure_neumann: bool,
    /// In a pure Neumann problem, the part of the right side that was projected away, relative to its size.
    pub imbalance: f64,
}

/// A product with an operator: `apply(y, x)` overwrites all of `y` with $A x$.
pub type Apply<'a> = dyn FnMut(&mut [f64], &[f64]) -> Result<(), FemError> + 'a;

/// Entries of the right side that a thread computes at a time.
const ENTRIES: usize = 1 << 14;

/// Source integrals have p + 2 points along each axis.
pub(crate) const SOURCE_RULE: CellRule = CellRule::Gauss { extra: 1 };

/// A problem, the condition that holds on each facet, and the facets with an exchange condition.
type Evaluated<'a> = (TensorProblem<'a>, Vec<Option<u32>>, Vec<u32>);

impl<'a> TensorProblem<'a> {
    /// Evaluates the source and the boundary conditions of a form on a space of its mesh.
    ///
    /// # Errors
    /// A folded cell, a datum that is not finite, a negative λ or transfer coefficient, a component of the mesh without
    /// any condition; see [`FemError`].
    pub fn new(space: &'a TensorSpace<'a>, form: &Form<'a>) -> Result<Self, FemError> {
        let (mut problem, winners, reacting) = Self::evaluated(space, form)?;
        problem.is_pure_neumann = part("components without conditions", || {
            pure_neumann::is_pure_neumann(space, form, &winners, &reacting)
        })?;
        Ok(problem)
    }

    /// As [`TensorProblem::new`], for a part of a mesh. The conditions that determine the solution may be on
    /// other parts. Also returns for each node of the part whether a condition or a reaction holds the
    /// solution there.
    ///
    /// # Errors
    /// As [`TensorProblem::new`], except for components without any condition.
    pub fn local(space: &'a TensorSpace<'a>, form: &Form<'a>) -> Result<(Self, Vec<bool>), FemError> {
        let (problem, winners, reacting) = Self::evaluated(space, form)?;
        let held = pure_neumann::held(space, form, &winners, &reacting)?;
        Ok((problem, held.unwrap_or_else(|| vec![true; form.mesh.n_nodes()])))
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

    /// The data of a form, the condition that holds on each facet, and the facets with an exchange.
    fn evaluated(space: &'a TensorSpace<'a>, form: &Form<'a>) -> Result<Evaluated<'a>, FemError> {
        let winners = winners(form)?;
        let constraints =
            part("given values", || Constraints::dirichlet_of_any_degree(space, form, &winners))?;
        let mut load = vec![0.0; space.n_dofs()];
        if form.source.as_constant() != Some(0.0) {
            let source = Compiled::scalar("source", form.source, form.mesh)?;
            let basis = TensorBasis::new(space, SOURCE_RULE);
            let add = || basis.add_moments(&mut load, &source, f64::NAN);
            part("integrals of the source", add)?;
        }
        let FacetTerms { matrices, flux, reacting } =
            part("facet terms", || facets::facet_terms(space, form, &winners, &mut load))?;
        let problem = Self {
            space,
            form: *form,
            constraints,
            facet_matrices: matrices,
            load,
            flux,
            is_pure_neumann: false,
        };
        Ok((problem, winners, reacting))
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

    /// Returns the load $\int f \varphi_i\,dx + \int (g + c\,w)\,\varphi_i\,ds$, before boundary values are lifted.
    pub fn load(&self) -> &[f64] {
        &self.load
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
    ) -> Result<TensorRightSide<'a, D>, FemError> {
        let mut product = vec![0.0; self.space.n_dofs()];
        if self.constraints.values().iter().any(|&value| value != 0.0) {
            let mut given = vec![0.0; self.space.n_dofs()];
            self.constraints.impose(&mut given);
            apply(&mut product, &given)?;
            self.add_facets(&mut product, &given);
        }
        self.lifted(device, product)
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
    ) -> Result<TensorRightSide<'a, D>, FemError> {
        let space = self.space;
        let mut product = vec![0.0; space.n_dofs()];
        if self.constraints.values().iter().any(|&value| value != 0.0) {
            let evaluation = Evaluation::on_tensor_cells(space, rule);
            let positions = part("cells with given values", || {
                touching(&evaluation, &space.marks(self.constraints.dofs()))
            });
            let free = |dof: u32| !self.constraints.contains(dof as usize);
            let mut given = vec![0.0; space.n_dofs()];
            self.constraints.impose(&mut given);
            let of = (&given[..], &positions[..]);
            part("products of cells", || add_products(&evaluation, &self.form, of, free, &mut product))?;
            self.add_facets(&mut product, &given);
        }
        self.lifted(device, product)
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

    /// Returns the right side; `product` is $A g$.
    fn lifted<D: Device>(&self, device: &D, product: Vec<f64>) -> Result<TensorRightSide<'a, D>, FemError> {
        let mut rhs = product;
        parallel::for_chunks_mut(&mut rhs, ENTRIES, |begin, rhs| {
            rhs.iter_mut().zip(&self.load[begin..]).for_each(|(b, load)| *b = load - *b);
        });
        self.constraints.dofs().iter().for_each(|&dof| rhs[dof as usize] = 0.0);
        let Flux { integral, size } = self.flux;
        let imbalance =
            if self.is_pure_neumann { floating::balance(&mut rhs, integral + 0.0, size)? } else { 0.0 };
        Ok(TensorRightSide {
            space: self.space,
            rhs: part("copy to the device", || Buffer::from_vec(device, rhs))?,
            constraints: self.constraints.clone(),
            is_pure_neumann: self.is_pure_neumann,
            imbalance,
        })
    }
}

impl<D: Device> TensorRightSide<'_, D> {
    /// Returns the solution $u$ for the solution $w$ of the system: inserts boundary values, subtracts the mean of a
    /// pure Neumann problem.
    ///
    /// # Errors
    /// [`FemError::Length`] if `w` does not match the space.
    pub fn solution(&self, w: &Buffer<f64, D>) -> Result<Vec<f64>, FemError> {
        let mut u = w.to_host()?;
        check_length(&u, self.space.n_dofs())?;
        self.constraints.impose(&mut u);
        if self.is_pure_neumann {
            let mean = functionals::mean(&Space::from(self.space), &u)?;
            u.iter_mut().for_each(|u| *u -= mean);
        }
        Ok(u)
    }
}

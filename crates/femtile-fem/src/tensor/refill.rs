//! Repeated assembly of linearized forms on the pattern of a space.

use femtile_device::{Device, parallel};
use femtile_linalg::need;
use femtile_space::geometry::CellRule;
use femtile_space::{Space, TensorSpace};
use femtile_sparse::csr::Csr;

use super::linearized::{CellIntegrals, CellSystem, LinearizedCoefficients};
use super::sparsity::Pattern;
use super::{FacetMatrix, SOURCE_RULE};
use crate::FemError;
use crate::constraints::Constraints;
use crate::evaluation::TensorBasis;
use crate::forms::{BoundaryCondition, Compiled, Conditions, Form, Slopes, State, add_loads, facet_terms};
use crate::functionals::check_length;

/// Cells whose matrices are in memory together.
const CELLS: usize = 256;
/// Parts of the rows that threads add to.
const PARTS: usize = 16;

/// Assembly of linearized forms on quadrilaterals and hexahedra of any degree: the pattern is computed once, then values
/// are refilled by the threads of the host.
///
/// The set of unknowns with Dirichlet values is fixed; the values may change.
pub struct TensorAssembly<'a> {
    space: &'a TensorSpace<'a>,
    integrals: CellIntegrals<'a>,
    loads: TensorBasis<'a>,
    pattern: Pattern,
    /// Those of the pattern; their values have no meaning.
    constraints: Constraints,
    /// Ends of parts of the rows with about the same number of entries in each.
    ends: Vec<usize>,
}

/// A form prepared for [`TensorAssembly::fill`]: compiled coefficients, facet terms and constraints.
pub struct LinearizedProblem<'a> {
    form: Form<'a>,
    coefficients: LinearizedCoefficients<'a>,
    /// The source, if it depends only on the point and the time and is not zero.
    source: Option<Compiled<'a>>,
    constraints: Constraints,
    facet_matrices: Vec<FacetMatrix>,
    /// The load of facets.
    facet_load: Vec<f64>,
    /// Whether a coefficient depends on u.
    uses_unknown: bool,
}

impl LinearizedProblem<'_> {
    /// Returns the constrained degrees of freedom and their values.
    pub fn constraints(&self) -> &Constraints {
        &self.constraints
    }
}

impl<'a> TensorAssembly<'a> {
    /// Prepares systems with the constrained degrees of freedom of a form, integrated by a rule along each axis.
    ///
    /// # Errors
    /// Conditions on facets or nodes that do not exist, Dirichlet values that are not finite.
    pub fn new(space: &'a TensorSpace<'a>, form: &Form<'_>, rule: CellRule) -> Result<Self, FemError> {
        let constraints = Constraints::of_form(&Space::from(space), form)?;
        let pattern = Pattern::new(space, &constraints);
        let (n, end) = (space.n_dofs(), pattern.columns.len());
        let mut ends = vec![n; PARTS];
        let mut begin = 0;
        for (part, last) in ends[..PARTS - 1].iter_mut().enumerate() {
            let wanted = end * (part + 1) / PARTS;
            *last = (begin..n).find(|&row| pattern.offsets.get(row + 1) > wanted).unwrap_or(n);
            begin = *last;
        }
        let (integrals, loads) = (CellIntegrals::new(space, rule), TensorBasis::new(space, SOURCE_RULE));
        Ok(Self { space, integrals, loads, pattern, constraints, ends })
    }

    /// Returns the zero matrix with the pattern, on a device.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn matrix<D: Device>(&self, device: &D) -> Result<Csr<f64, D>, FemError> {
        let Pattern { offsets, columns } = &self.pattern;
        let values = vec![0.0; columns.len()];
        Ok(Csr::from_parts(device, self.space.n_dofs(), offsets.clone(), columns.clone(), values)?)
    }

    /// Compiles the coefficients of a form on the mesh of the space, and evaluates conditions, which may differ from those of
    /// the form.
    ///
    /// # Errors
    /// As [`TensorAssembly::replace_conditions`]; a coefficient of a wrong shape.
    pub fn prepare<'p>(
        &self,
        form: &Form<'p>,
        slopes: &'p Slopes,
        conditions: &[BoundaryCondition],
    ) -> Result<LinearizedProblem<'p>, FemError> {
        let coefficients = [form.sigma, form.lambda, form.source];
        let is_load = form.source.as_constant() != Some(0.0) && !form.source.uses_unknown();
        let source = Some(form.source).filter(|_| is_load);
        let mut problem = LinearizedProblem {
            form: Form { conditions: &[], ..*form },
            coefficients: LinearizedCoefficients::new(form, slopes)?,
            source: source.map(|source| Compiled::scalar("source", source, form.mesh)).transpose()?,
            constraints: Constraints::none(0),
            facet_matrices: Vec::new(),
            facet_load: Vec::new(),
            uses_unknown: slopes.is_any() || coefficients.iter().any(|own| own.uses_unknown()),
        };
        self.replace_conditions(&mut problem, conditions)?;
        Ok(problem)
    }

    /// Replaces the conditions of a problem, whose coefficients stay.
    ///
    /// # Errors
    /// Data that are not finite; [`FemError::OtherAssembly`] if other unknowns have Dirichlet values.
    pub fn replace_conditions(
        &self,
        problem: &mut LinearizedProblem<'_>,
        conditions: &[BoundaryCondition],
    ) -> Result<(), FemError> {
        let Form { mesh, boundary, .. } = problem.form;
        let (space, conditions) = (Space::from(self.space), Conditions::new(mesh, boundary, conditions)?);
        problem.constraints = Constraints::new(&space, &conditions)?;
        if problem.constraints.dofs() != self.constraints.dofs() {
            let advice = "its given values have to be at the unknowns of the first form";
            return Err(FemError::OtherAssembly { field: "form", advice });
        }
        let terms = facet_terms(&space, &conditions)?;
        problem.facet_load = vec![0.0; self.space.n_dofs()];
        add_loads(&mut problem.facet_load, &terms);
        problem.facet_matrices = super::matrices(terms);
        Ok(())
    }

    /// Computes the matrix and the right side of a linearization in a state, as [`crate::Assembly::fill`] does for linear
    /// elements.
    ///
    /// # Shapes
    /// `values`: those of [`TensorAssembly::matrix`]; `rhs: [n_dofs]`.
    /// # Cost
    /// $O(n_q n^2)$ per cell with n degrees of freedom and n_q points; the bits depend on no number of threads.
    /// # Errors
    /// A coefficient out of its range, with its cell and the value of u there; [`FemError::Length`].
    pub fn fill(
        &self,
        values: &mut [f64],
        rhs: &mut [f64],
        problem: &LinearizedProblem<'_>,
        state: State<'_>,
    ) -> Result<(), FemError> {
        need("values", self.pattern.columns.len(), values.len())?;
        need("rhs", self.space.n_dofs(), rhs.len())?;
        if problem.uses_unknown || !state.unknown.is_empty() {
            check_length(state.unknown, self.space.n_dofs())?;
        }
        values.fill(0.0);
        rhs.copy_from_slice(&problem.facet_load);
        if let Some(source) = &problem.source {
            self.loads.add_moments(rhs, source, state.time)?;
        }
        let (n, on) = (self.space.dofs_per_cell(), (&self.pattern, &problem.constraints));
        let evaluation = &self.integrals.evaluation;
        for block in (0..self.space.n_cells()).step_by(CELLS) {
            let positions: Vec<usize> = (block..(block + CELLS).min(self.space.n_cells())).collect();
            let systems = evaluation.map_at(&positions, |found, points, _| {
                self.integrals.cell_system(found, points, &problem.coefficients, state)
            })?;
            let mut dofs = vec![0; positions.len() * n];
            let each = dofs.chunks_exact_mut(n).zip(&positions);
            each.for_each(|(dofs, &position)| self.space.cell_dofs(position, dofs));
            parallel::for_each_item(self.pattern.split(&self.ends, values, rhs), 1, |mut rows| {
                for (dofs, CellSystem { matrix, load }) in dofs.chunks_exact(n).zip(&systems) {
                    rows.add(on, dofs, (matrix, load));
                }
            });
        }
        for mut rows in self.pattern.split(&self.ends, values, rhs) {
            problem.facet_matrices.iter().for_each(|facet| rows.add(on, &facet.dofs, (&facet.entries, &[])));
        }
        for &dof in self.constraints.dofs() {
            values[self.pattern.offsets.get(dof as usize)] = 1.0;
            rhs[dof as usize] = 0.0;
        }
        Ok(())
    }
}

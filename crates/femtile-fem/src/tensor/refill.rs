//! Repeated assembly of linearized forms on the pattern of a space.

use std::ops::Range;

use femtile_device::{Device, parallel};
use femtile_linalg::need;
use femtile_space::TensorSpace;
use femtile_space::geometry::CellRule;
use femtile_sparse::csr::Csr;

use super::facets;
use super::linearized::{CellIntegrals, CellSystem, LinearizedCoefficients};
use super::sparsity::Pattern;
use super::{FacetMatrix, SOURCE_RULE};
use crate::FemError;
use crate::constraints::Constraints;
use crate::evaluation::TensorBasis;
use crate::forms::{BoundaryCondition, Compiled, Form, Slopes, State, winners};
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
    /// Rows with about the same number of entries in each.
    parts: Vec<Range<usize>>,
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

/// A part of the rows with their entries and right sides.
struct RowRange<'v> {
    rows: Range<usize>,
    /// The place of the first value among those of the matrix.
    begin: usize,
    values: &'v mut [f64],
    rhs: &'v mut [f64],
}

impl<'a> TensorAssembly<'a> {
    /// Prepares systems with the constrained degrees of freedom of a form, integrated by a rule along each axis.
    ///
    /// # Errors
    /// Conditions on facets or nodes that do not exist, Dirichlet values that are not finite.
    pub fn new(space: &'a TensorSpace<'a>, form: &Form<'_>, rule: CellRule) -> Result<Self, FemError> {
        let constraints = Constraints::dirichlet_of_any_degree(space, form, &winners(form)?)?;
        let pattern = Pattern::new(space, &constraints);
        let (n, end) = (space.n_dofs(), pattern.columns.len());
        let mut parts = Vec::with_capacity(PARTS);
        let mut begin = 0;
        for part in 1..=PARTS {
            let wanted = end * part / PARTS;
            let last = (begin..n).find(|&row| pattern.offsets.get(row + 1) > wanted).unwrap_or(n);
            let last = if part == PARTS { n } else { last };
            parts.push(begin..last);
            begin = last;
        }
        let (integrals, loads) = (CellIntegrals::new(space, rule), TensorBasis::new(space, SOURCE_RULE));
        Ok(Self { space, integrals, loads, pattern, constraints, parts })
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
        let form = Form { conditions, ..problem.form };
        let winners = winners(&form)?;
        problem.constraints = Constraints::dirichlet_of_any_degree(self.space, &form, &winners)?;
        if problem.constraints.dofs() != self.constraints.dofs() {
            let advice = "its given values have to be at the unknowns of the first form";
            return Err(FemError::OtherAssembly { field: "form", advice });
        }
        problem.facet_load = vec![0.0; self.space.n_dofs()];
        let terms = facets::facet_terms(self.space, &form, &winners, &mut problem.facet_load)?;
        problem.facet_matrices = terms.matrices;
        Ok(())
    }

    /// Computes the matrix and the right side of a linearization in a state, as [`crate::Assembly::fill_at`] does for linear
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
        let n = self.space.dofs_per_cell();
        let evaluation = &self.integrals.evaluation;
        for block in (0..self.space.n_cells()).step_by(CELLS) {
            let positions: Vec<usize> = (block..(block + CELLS).min(self.space.n_cells())).collect();
            let systems = evaluation.map_at(&positions, |found, points, _| {
                self.integrals.cell_system(found, points, &problem.coefficients, state)
            })?;
            let mut dofs = vec![0; positions.len() * n];
            let each = dofs.chunks_exact_mut(n).zip(&positions);
            each.for_each(|(dofs, &position)| self.space.cell_dofs(position, dofs));
            parallel::for_each_item(self.split(values, rhs), 1, |mut part| {
                for (dofs, CellSystem { matrix, load }) in dofs.chunks_exact(n).zip(&systems) {
                    self.add(&mut part, problem, dofs, (matrix, load));
                }
            });
        }
        for facet in &problem.facet_matrices {
            let zero = vec![0.0; facet.dofs.len()];
            for mut part in self.split(values, rhs) {
                self.add(&mut part, problem, &facet.dofs, (&facet.entries, &zero));
            }
        }
        for &dof in self.constraints.dofs() {
            values[self.pattern.offsets.get(dof as usize)] = 1.0;
            rhs[dof as usize] = 0.0;
        }
        Ok(())
    }

    fn split<'v>(&self, mut values: &'v mut [f64], mut rhs: &'v mut [f64]) -> Vec<RowRange<'v>> {
        let part = |rows: &Range<usize>| {
            let begin = self.pattern.offsets.get(rows.start);
            let n_values = self.pattern.offsets.get(rows.end) - begin;
            RowRange {
                rows: rows.clone(),
                begin,
                values: values.split_off_mut(..n_values).unwrap_or_default(),
                rhs: rhs.split_off_mut(..rows.len()).unwrap_or_default(),
            }
        };
        self.parts.iter().map(part).collect()
    }

    /// Adds the rows of a cell or facet that are in a part, with Dirichlet values moved to the right side.
    fn add(
        &self,
        part: &mut RowRange<'_>,
        problem: &LinearizedProblem<'_>,
        dofs: &[u32],
        (matrix, load): (&[f64], &[f64]),
    ) {
        for (i, &row) in dofs.iter().enumerate() {
            let row = row as usize;
            if !part.rows.contains(&row) || self.constraints.contains(row) {
                continue;
            }
            let mut right = load[i];
            for (&column, entry) in dofs.iter().zip(&matrix[i * dofs.len()..][..dofs.len()]) {
                if let Some(given) = problem.constraints.value(column as usize) {
                    right -= entry * given;
                } else if let Some(place) = self.pattern.place(row, column) {
                    part.values[place - part.begin] += entry;
                }
            }
            part.rhs[row - part.rows.start] += right;
        }
    }
}

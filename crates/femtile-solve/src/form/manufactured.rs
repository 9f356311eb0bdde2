//! Problems whose solution is a given function, and the errors of their solutions.

use femtile_expression::Expression;
use femtile_fem::functionals::{error_h1, error_l2};
use femtile_form::Coefficient;
use femtile_space::Space;

use super::given::{Given, Place};
use super::{FormProblem, FormSolution};
use crate::{Key, SolveError};

/// The boundary conditions of a manufactured problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManufacturedBoundary {
    /// Those of the problem.
    Own,
    /// Dirichlet values on the whole boundary.
    Values,
}

/// Norms of a function, or of the difference of two, summed over the components.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorNorms {
    /// The norm in L².
    pub l2: f64,
    /// The norm of the gradient in L².
    pub h1: f64,
}

impl FormProblem<'_> {
    /// Makes a function w the solution, given by an expression in x, y, z for each component; they may depend on t if the other
    /// values may. With the residual R of the problem its equation becomes $R(u; v) = R(w; v)$, and Dirichlet values become those of w;
    /// see [`femtile_form::FormBuilder::with_exact`].
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use femtile_device::Cpu;
    /// # use femtile_expression::Expression;
    /// # use femtile_form::Equation;
    /// # use femtile_mesh::check::boundary_facets;
    /// # use femtile_mesh::generate::{SquareConfig, square};
    /// # use femtile_solve::{FormProblem, ManufacturedBoundary, Silent, SolverConfig, Stages, Value};
    /// # let mesh = square(&SquareConfig { cells: [4, 4], ..SquareConfig::default() })?;
    /// # let (boundary, cpu, mut silent) = (Arc::new(boundary_facets(&mesh)), Cpu::new(1)?, Silent);
    /// let mut plate = FormProblem::new(&mesh, boundary, Equation::named("elasticity")?).degree(2);
    /// plate.scalar("young", &Value::from(210e9))?;
    /// plate.scalar("poisson", &Value::from(0.3))?;
    /// plate.dirichlet("x < 1e-9", &[Some(Value::from(0)), Some(Value::from(0))])?;
    /// let (_, exact) = Expression::parse_array("1e-3*[x^2, sin(x)*y]")?;
    /// plate.manufacture(&exact, ManufacturedBoundary::Own)?;
    /// let solution = plate.solve(&cpu, &SolverConfig::default(), None, &mut Stages::new(&mut silent))?;
    /// assert!(solution.error(&exact)?.l2 < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    /// # Errors
    /// [`SolveError::Setting`] for another number of expressions than components, on a surface in space, and with periodic or tied sides and
    /// floating parts.
    pub fn manufacture(
        &mut self,
        exact: &[Expression],
        boundary: ManufacturedBoundary,
    ) -> Result<(), SolveError> {
        let n = self.n_components();
        if self.mesh.is_surface {
            let message = "is for meshes of the plane and of space: on a surface the gradient of a function of x, y, z leaves it";
            return Err(SolveError::setting(&path(), message));
        }
        if let Some(path) = self.first_relation() {
            let message = "a function that is given need not be the same on sides that belong together: leave this out to verify";
            return Err(SolveError::setting(path, message));
        }
        crate::coefficient::check_count(exact.len(), n, &path())?;
        let values: Vec<_> = exact.iter().map(|w| Some(Coefficient::Expression(w.clone()))).collect();
        if boundary == ManufacturedBoundary::Values {
            let facets = (0..self.n_outer as u32).collect();
            self.given = vec![Given { place: Place::Facets(facets), values: values.clone(), path: path() }];
            self.terms.clear();
        }
        // They have the same part in R(u; v) and R(w; v).
        self.sources.clear();
        for given in &mut self.given {
            let own = given.values.iter_mut().zip(&values).filter(|(own, _)| own.is_some());
            own.for_each(|(own, value)| own.clone_from(value));
            given.path = path();
        }
        self.exact = Some(exact.to_vec());
        Ok(())
    }

    /// Returns the norms of a function with an expression for each component, at the end of the load steps.
    ///
    /// # Errors
    /// [`SolveError::Fem`] if the function or its gradient is not finite.
    pub fn size_of(&self, exact: &[Expression]) -> Result<ErrorNorms, SolveError> {
        let space = self.space()?;
        norms(&space, &vec![0.0; space.n_dofs() * exact.len()], (exact, self.end()))
    }

    /// Returns the error of the interpolant of a function, the least that can be expected of a solution.
    ///
    /// # Errors
    /// As [`Self::size_of`]; [`SolveError::Setting`] if the function is not finite at a node.
    pub fn error_of_interpolant(&self, exact: &[Expression]) -> Result<ErrorNorms, SolveError> {
        let (space, time) = (self.space()?, self.end());
        let values: Vec<_> = exact.iter().map(|w| Coefficient::Expression(w.at_time(time))).collect();
        norms(&space, &self.interpolate(&space, &values, &path())?, (exact, time))
    }
}

impl FormSolution<'_> {
    /// Returns the error of the solution against a function with an expression for each component, at the time of the solution.
    ///
    /// # Errors
    /// As [`FormProblem::size_of`].
    pub fn error(&self, exact: &[Expression]) -> Result<ErrorNorms, SolveError> {
        norms(&self.space, &self.u, (exact, self.time))
    }
}

/// Returns the norms of the difference of u and a function at a time.
fn norms(
    space: &Space<'_>,
    u: &[f64],
    (exact, time): (&[Expression], f64),
) -> Result<ErrorNorms, SolveError> {
    let mut norms = ErrorNorms { l2: 0.0, h1: 0.0 };
    for (component, w) in exact.iter().enumerate() {
        let own: Vec<f64> = u.iter().skip(component).step_by(exact.len()).copied().collect();
        let w = w.at_time(time);
        norms.l2 = norms.l2.hypot(error_l2(space, &own, &w)?);
        norms.h1 = norms.h1.hypot(error_h1(space, &own, &w)?);
    }
    Ok(norms)
}

/// The path of the function in messages.
fn path() -> Vec<Key> {
    vec!["exact".into()]
}

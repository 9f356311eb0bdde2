//! Integrals of formulas over cells or facets.

use femtile_expression::Shape;
use femtile_fem::functionals::sum_of_facets;
use femtile_form::{Form, ON_FACETS};
use femtile_operator::{DiscreteForm, State};

use super::problem::FacetTerm;
use super::{FormAt, FormProblem, Functional};
use crate::{Key, Region, SolveError, below};

/// The integral of a formula over the cells, or over facets, of one side of those inside the mesh.
#[derive(Debug, Clone)]
pub struct FormIntegral {
    formula: String,
    /// None over the cells.
    facets: Option<Vec<u32>>,
    path: Vec<Key>,
}

impl FormProblem<'_> {
    /// Prepares the integral of a formula of the unknowns, their gradients, the point, t and the coefficients over the cells, or of
    /// these and the `normal` over a region of facets of the boundary or inside the mesh, each once. `path` is the setting of the
    /// functional.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for a region without facets, for a formula that cannot be read or is no number, and for one that
    /// depends on the side of facets inside the mesh, of which none is named.
    pub fn integral(
        &self,
        formula: &str,
        region: Option<Region>,
        path: &[Key],
    ) -> Result<FormIntegral, SolveError> {
        let (place, path) = (below(path, "where"), below(path, "formula"));
        let on = region.map(|region| self.on_facets(region, &place)).transpose()?;
        let has_side = on.as_ref().is_some_and(|on| on.has_side);
        let facets = on.map(|on| on.facets);
        let integral = FormIntegral { formula: formula.to_owned(), facets, path };
        match &integral.facets {
            None => {
                let form = self.of_functional(&Functional::new(formula)).and_then(|problem| problem.form());
                form.map_err(|error| at(&integral.path, error))?;
            }
            Some(facets) => {
                let (problem, form) = self.over_facets(&integral, facets, has_side)?;
                problem.check_sides(&form).map_err(|error| at(&place, error))?;
            }
        }
        Ok(integral)
    }

    /// Returns the problem whose only integral is that over facets, and its form.
    fn over_facets(
        &self,
        FormIntegral { formula, path, .. }: &FormIntegral,
        facets: &[u32],
        has_side: bool,
    ) -> Result<(Self, Form), SolveError> {
        let equation = self.equation.functional_on_facets(formula, self.mesh.space_dimension());
        let equation = equation.map_err(|error| at(path, self.at_its_setting(error)))?;
        let mut problem = self.without_conditions(equation);
        let (name, facets) = (ON_FACETS.to_owned(), facets.to_vec());
        problem.terms.push(FacetTerm { name, facets, arguments: Vec::new(), has_side, condition: 0 });
        let form = problem.form().map_err(|error| at(path, error))?;
        Ok((problem, form))
    }

    /// Returns the formula of a component: the name of its unknown, of a vector with the number of the entry.
    pub fn formula_of(&self, component: usize) -> String {
        let mut left = component;
        for (name, shape) in self.unknowns() {
            let n = shape.n_entries();
            if left < n {
                let is_number = shape == Shape::Number;
                return if is_number { name.to_owned() } else { format!("{name}[{left}]") };
            }
            left -= n;
        }
        String::new()
    }
}

impl FormAt<'_, '_> {
    /// Returns the value of an integral that was prepared, of a body of revolution or a sheet over the volume or the surface that cells
    /// and facets stand for.
    ///
    /// # Errors
    /// [`SolveError::Fem`] if the formula is not finite at a point.
    pub fn value(&self, integral: &FormIntegral) -> Result<f64, SolveError> {
        let Some(facets) = &integral.facets else {
            return self.integral(&Functional::new(integral.formula.as_str()));
        };
        let (problem, form) = self.problem.over_facets(integral, facets, true)?;
        let space = problem.space()?;
        let state = State { time: self.time, ..State::of(self.u) };
        let moments = DiscreteForm::new(&space, &form, &problem.facets)?.prescribed_fluxes(&state)?;
        let first: Vec<f64> = moments.into_iter().step_by(form.n_components()).collect();
        Ok(sum_of_facets(&first, facets)?)
    }
}

impl FormIntegral {
    /// Returns the integral of one over the same cells or facets.
    #[must_use]
    pub fn measure(&self) -> Self {
        Self { formula: "1".to_owned(), ..self.clone() }
    }
}

/// Returns an error about a formula as one of a setting.
fn at(path: &[Key], error: SolveError) -> SolveError {
    match error {
        SolveError::Setting { within, message, .. } => {
            SolveError::Setting { path: path.to_vec(), within, message }
        }
        other => other,
    }
}

use femtile_expression::Expression;
use femtile_fem::functionals::{self, Line};
use femtile_fem::recovery::{IsInterrupted, RecoveredGradient};
use femtile_fem::{FemError, Form};
use femtile_linalg::LinalgError;
use femtile_matrix_free::CellRule;
use femtile_space::{Space, TensorSpace};

use crate::distributed_solution::DistributedSolution;

/// One component of a solution, with the form that it solves.
#[derive(Debug, Clone, Copy)]
pub struct Component<'s> {
    /// Its position among the components.
    pub(crate) number: usize,
    pub(crate) form: Form<'s>,
    /// None for linear elements on simplices.
    pub(crate) space: Option<&'s TensorSpace<'s>>,
    /// The rule of the operator, if there is a space.
    pub(crate) rule: CellRule,
    pub(crate) values: &'s [f64],
    /// Present if the mesh is distributed. The other fields then cover the rank's own cells; functionals are
    /// global, and collective.
    pub(crate) ranks: Option<&'s DistributedSolution<'s>>,
}

impl<'s> Component<'s> {
    /// Returns the values at the degrees of freedom; of linear elements these are the nodes of the mesh.
    pub fn values(&self) -> &'s [f64] {
        self.values
    }

    /// Returns the dimension of the mesh.
    pub fn dimension(&self) -> usize {
        self.form.mesh.dimension()
    }

    /// Returns the space of the values.
    fn on(&self) -> Result<Space<'s>, FemError> {
        Ok(Space::of(self.form.mesh, self.space)?)
    }

    /// Returns the largest value at a degree of freedom.
    pub fn max(&self) -> f64 {
        self.ranks.map_or_else(|| functionals::max(self.values), |ranks| ranks.range(self.number)[1])
    }

    /// Returns the smallest value at a degree of freedom.
    pub fn min(&self) -> f64 {
        self.ranks.map_or_else(|| functionals::min(self.values), |ranks| ranks.range(self.number)[0])
    }

    /// The sum of all ranks.
    fn sum(&self, of_cells: f64) -> Result<f64, FemError> {
        match self.ranks {
            None => Ok(of_cells),
            Some(ranks) => ranks.sum(of_cells),
        }
    }

    /// The root of the sum of the squares of all ranks.
    fn norm(&self, of_cells: f64) -> Result<f64, FemError> {
        match self.ranks {
            None => Ok(of_cells),
            Some(ranks) => Ok(ranks.sum(of_cells * of_cells)?.sqrt()),
        }
    }

    /// Returns $\int u$.
    ///
    /// # Errors
    /// [`FemError::Space`] for an inverted cell.
    pub fn integral(&self) -> Result<f64, FemError> {
        self.sum(functionals::integral(&self.on()?, self.values)?)
    }

    /// Returns the length, area or volume of the mesh.
    ///
    /// # Errors
    /// As [`Component::integral`].
    pub fn measure(&self) -> Result<f64, FemError> {
        self.sum(functionals::measure(&self.on()?)?)
    }

    /// Returns the mean, $\int u / \int 1$.
    ///
    /// # Errors
    /// As [`Component::integral`].
    pub fn mean(&self) -> Result<f64, FemError> {
        Ok(self.integral()? / self.measure()?)
    }

    /// Returns $\sqrt{\int u^2}$.
    ///
    /// # Errors
    /// As [`Component::integral`].
    pub fn l2_norm(&self) -> Result<f64, FemError> {
        self.norm(functionals::l2_norm(&self.on()?, self.values)?)
    }

    /// Returns $\int \sigma \nabla u \cdot \nabla u + \lambda u^2$.
    ///
    /// # Errors
    /// As [`Component::integral`].
    pub fn energy(&self) -> Result<f64, FemError> {
        self.sum(functionals::energy(&self.on()?, &self.form, self.values)?)
    }

    /// Returns the value at a point.
    ///
    /// # Errors
    /// [`FemError`] if the point lies outside the mesh.
    pub fn value_at(&self, point: [f64; 3]) -> Result<f64, FemError> {
        let here = functionals::value_at(&self.on()?, self.values, point);
        let Some(ranks) = self.ranks else { return here };
        let found = ranks.first_of(&[here.as_ref().ok().copied()])?;
        found[0].map_or(here, Ok)
    }

    /// Returns the values at points, none outside the mesh.
    ///
    /// # Errors
    /// As [`Component::integral`].
    pub fn values_at(&self, points: &[[f64; 3]]) -> Result<Vec<Option<f64>>, FemError> {
        let found = functionals::values_at(&self.on()?, self.values, points)?;
        self.first_of(found)
    }

    /// The values that the lowest rank has which has any.
    fn first_of(&self, found: Vec<Option<f64>>) -> Result<Vec<Option<f64>>, FemError> {
        match self.ranks {
            None => Ok(found),
            Some(ranks) => ranks.first_of(&found),
        }
    }

    /// Returns the values at `n` evenly spaced points from one point to another, both of them included.
    ///
    /// # Errors
    /// As [`Component::integral`].
    pub fn along(&self, from: [f64; 3], to: [f64; 3], n: usize) -> Result<Line, FemError> {
        let line = functionals::along(&self.on()?, self.values, from, to, n)?;
        Ok(Line { values: self.first_of(line.values)?, ..line })
    }

    /// Returns the flux into the domain, $\int_F n\cdot\sigma\nabla u$, through each boundary facet. If the
    /// mesh is distributed, these are contributions of this rank, which [`Component::sum_of_facets`] adds up.
    ///
    /// On Dirichlet facets it is the consistent flux, so that the sum over all facets balances source and reaction; see
    /// [`femtile_fem::functionals::facet_fluxes`].
    ///
    /// # Errors
    /// As [`Component::integral`].
    pub fn facet_fluxes(&self) -> Result<Vec<f64>, FemError> {
        if let Some(ranks) = self.ranks {
            return ranks.facet_fluxes(self.number, self.rule);
        }
        functionals::facet_fluxes(&self.on()?, &self.form, self.rule, self.values)
    }

    /// Returns the sum of the fluxes of [`Component::facet_fluxes`] through some facets, each once, on all ranks.
    ///
    /// # Errors
    /// [`FemError::FacetOutOfRange`] if a facet has none; another rank failed.
    pub fn sum_of_facets(&self, fluxes: &[f64], facets: &[u32]) -> Result<f64, FemError> {
        self.sum(functionals::sum_of_facets(fluxes, facets)?)
    }

    /// Returns the flux into the domain through boundary facets, positions in the list of boundary facets; each counts once.
    ///
    /// # Errors
    /// [`FemError::FacetOutOfRange`] if a facet does not exist, and as [`Component::integral`].
    pub fn flux(&self, facets: &[u32]) -> Result<f64, FemError> {
        if let Some(ranks) = self.ranks {
            return self.sum_of_facets(&ranks.facet_fluxes(self.number, self.rule)?, facets);
        }
        functionals::flux(&self.on()?, &self.form, self.rule, self.values, facets)
    }

    /// Returns $\int f$ with the quadrature of the right side.
    ///
    /// # Errors
    /// As [`Component::integral`].
    pub fn source_integral(&self) -> Result<f64, FemError> {
        self.sum(functionals::source_integral(&self.on()?, &self.form, self.rule, self.values)?)
    }

    /// Returns $\int \lambda u$ with the quadrature of the operator.
    ///
    /// # Errors
    /// As [`Component::integral`].
    pub fn reaction_integral(&self) -> Result<f64, FemError> {
        self.sum(functionals::reaction_integral(&self.on()?, &self.form, self.rule, self.values)?)
    }

    /// Returns the recovered gradient, one order more accurate than that of the elements on regular meshes.
    ///
    /// # Errors
    /// As [`Component::integral`].
    pub fn recovered_gradient(&self) -> Result<RecoveredGradient<'s>, FemError> {
        self.recovered_gradient_interruptible(&|| false)
    }

    /// Returns the recovered gradient, and asks now and then whether to end.
    ///
    /// # Errors
    /// As [`Component::integral`]; [`FemError::Interrupted`].
    pub fn recovered_gradient_interruptible(
        &self,
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<RecoveredGradient<'s>, FemError> {
        if self.ranks.is_some() {
            let message =
                "gradients are recovered on a mesh that every rank has, and this one is in parts".into();
            return Err(LinalgError::Setting { field: "ranks", message }.into());
        }
        RecoveredGradient::new_interruptible(self.on()?, &self.form, self.values, is_interrupted)
    }

    /// Returns $\sqrt{\int (u - u_*)^2}$ for an exact solution.
    ///
    /// # Errors
    /// As [`Component::integral`].
    pub fn error_l2(&self, exact: &Expression) -> Result<f64, FemError> {
        self.norm(functionals::error_l2(&self.on()?, self.values, exact)?)
    }

    /// Returns $\sqrt{\int |\nabla (u - u_*)|^2}$ for an exact solution.
    ///
    /// # Errors
    /// As [`Component::integral`].
    pub fn error_h1(&self, exact: &Expression) -> Result<f64, FemError> {
        self.norm(functionals::error_h1(&self.on()?, self.values, exact)?)
    }
}

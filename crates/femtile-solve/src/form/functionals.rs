//! Functionals of the solution of a form.

use femtile_device::Cpu;
use femtile_fem::FemError;
use femtile_fem::functionals::{self, DirichletFacets, Line};
use femtile_operator::{CpuOperator, DiscreteForm, State};
use femtile_space::Space;

use super::given::{Given, Place};
use super::totals::subtract;
use super::{FormProblem, FormSolution};
use crate::SolveError;

impl FormProblem<'_> {
    /// Checks that points lie in the mesh.
    ///
    /// # Errors
    /// The position of the first point that does not, with the reason.
    pub fn check_points(&self, points: &[[f64; 3]]) -> Result<(), (usize, FemError)> {
        let space = Space::new(self.mesh, 1).map_err(|error| (0, error.into()))?;
        match space.locate(points).iter().position(Option::is_none) {
            Some(i) => Err((i, functionals::outside(&space, points[i]))),
            None => Ok(()),
        }
    }

    /// Returns whether any of `n` evenly spaced points of a line lies in the mesh.
    ///
    /// # Errors
    /// [`FemError::Space`] for cells without elements.
    pub fn meets_line(&self, from: [f64; 3], to: [f64; 3], n: usize) -> Result<bool, FemError> {
        let found = Space::new(self.mesh, 1)?.locate(&Line::new(from, to, n).points);
        Ok(found.iter().any(Option::is_some))
    }

    /// Returns the boundary facets with a Dirichlet value of a component that `is_wanted`, ascending.
    fn dirichlet_facets(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<u32> {
        let has_value =
            |given: &Given| (0..given.values.len()).any(|c| is_wanted(c) && given.values[c].is_some());
        let of = |given: &Given| match &given.place {
            Place::Facets(facets) if has_value(given) => facets.clone(),
            _ => Vec::new(),
        };
        let mut facets: Vec<u32> = self.given.iter().flat_map(of).collect();
        facets.sort_unstable();
        facets.dedup();
        facets
    }
}

impl FormSolution<'_> {
    /// Returns all components at a point; none if it lies in no cell.
    pub fn value_at(&self, point: [f64; 3]) -> Option<Vec<f64>> {
        let value =
            |component| functionals::values_at(&self.space, &self.component(component), &[point]).ok()?[0];
        (0..self.n_components()).map(value).collect()
    }

    /// Returns the energy of the integrals that have one: of elasticity the strain energy $\frac12\int \sigma : \varepsilon$.
    ///
    /// # Errors
    /// [`SolveError::Fem`] if a density is not finite.
    pub fn energy(&self) -> Result<f64, SolveError> {
        Ok(self.operator()?.energy(&self.state())?)
    }

    /// Returns the flux of each component into the domain through each boundary facet: `[n_components][n_facets]`.
    ///
    /// Of diffusion it is $\int_F n\cdot\sigma\nabla u$, of elasticity the force on the body, $\int_F n\cdot s$ with the stress s.
    /// It is that of the conditions, and on facets with Dirichlet values the consistent one, so that all fluxes balance the
    /// integrals over the cells; see [`femtile_fem::functionals::facet_fluxes`].
    ///
    /// # Errors
    /// [`SolveError::Fem`] for degenerate cells and for coefficients that are not finite.
    pub fn facet_fluxes(&self) -> Result<Vec<Vec<f64>>, SolveError> {
        let (operator, state, n) = (self.operator()?, self.state(), self.n_components());
        let discrete = operator.discrete();
        let mut residual = vec![0.0; self.u.len()];
        operator.residual(&state, &mut residual)?;
        subtract(&self.problem.loads(&self.space), &mut residual);
        if self.problem.has_several_degrees() {
            // The residual by degrees of freedom at corners, where Dirichlet values are given.
            self.problem.interpolations(&self.space)?.distribute_transpose(&mut residual);
        }
        let prescribed = discrete.prescribed_fluxes(&state)?;
        let all_facets = self.problem.dirichlet_facets(|_| true);
        let conormal = discrete.conormal_fluxes(&state, &all_facets)?;
        let of_component = |component: usize| {
            let column = |all: &[f64]| all.iter().skip(component).step_by(n).copied().collect::<Vec<_>>();
            let own = self.problem.dirichlet_facets(|other| other == component);
            let mut given = DirichletFacets::default();
            let pairs = all_facets.iter().zip(&conormal);
            for (&facet, flux) in pairs.filter(|(facet, _)| own.binary_search(facet).is_ok()) {
                given.push(facet, &flux.dofs, &column(&flux.moments), flux.measure);
            }
            let mut fluxes = column(&prescribed);
            given.distribute(&mut fluxes, column(&residual), &|_| true);
            Ok(fluxes)
        };
        (0..n).map(of_component).collect()
    }

    fn state(&self) -> State<'_> {
        State { time: self.time, ..State::of(&self.u) }
    }

    fn operator(&self) -> Result<CpuOperator<'_>, SolveError> {
        let discrete = DiscreteForm::new(&self.space, &self.form, &self.problem.boundary)?;
        Ok(CpuOperator::new(discrete, &Cpu::of_current_pool()?)?)
    }
}

//! Integrals over each cell of the derivatives of a form by its parameter, which has a value for each cell.

use femtile_device::parallel;
use femtile_expression::Program;
use femtile_form::Integrand;

use crate::cpu::{BATCHES, CellScratch, CpuOperator, Job, LANES, Product};
use crate::discrete_form::{DiscreteForm, State};
use crate::error::OperatorError;
use crate::reference;

/// The number that is differentiated by the parameter of a form.
#[derive(Debug, Clone, Copy)]
pub enum Differentiated<'v> {
    /// $R(u; v)$ for a test function v, one entry per unknown.
    Residual(&'v [f64]),
    /// The energy.
    Energy,
}

impl<'v> Differentiated<'v> {
    /// Returns the program of an integrand, if it depends on the parameter.
    pub(crate) fn program(self, integrand: &Integrand) -> Option<&Program> {
        let by_parameter = integrand.by_parameter()?;
        match self {
            Self::Residual(_) => Some(&by_parameter.residual),
            Self::Energy => by_parameter.energy.as_ref(),
        }
    }

    /// Returns the test function.
    pub(crate) fn test(self) -> &'v [f64] {
        match self {
            Self::Residual(test) => test,
            Self::Energy => &[],
        }
    }

    /// Fails unless the test function has one entry per unknown.
    pub(crate) fn check(self, discrete: &DiscreteForm<'_>) -> Result<(), OperatorError> {
        match self {
            Self::Residual(test) => discrete.check_length("test function", test, false),
            Self::Energy => Ok(()),
        }
    }
}

/// Returns the number of components of the parameter; none if no integrand depends on it.
pub(crate) fn n_components(discrete: &DiscreteForm<'_>) -> usize {
    let all = discrete.form().integrals().iter();
    let found = all.filter_map(|integral| integral.integrand.by_parameter());
    found.map(|by_parameter| by_parameter.residual.n_outputs()).max().unwrap_or(0)
}

impl CpuOperator<'_> {
    /// Returns the derivatives by the values of the parameter in each cell of the mesh: `[n_cells][n_components]`, empty if no
    /// integrand depends on it.
    ///
    /// # Errors
    /// [`OperatorError::Length`], and [`femtile_form::FormError::IntegrandNotFinite`] with the first point at which a derivative
    /// is not finite.
    pub fn by_parameter(&self, state: &State<'_>, of: Differentiated<'_>) -> Result<Vec<f64>, OperatorError> {
        let discrete = self.discrete();
        discrete.check_state(state)?;
        of.check(discrete)?;
        let (n, space) = (n_components(discrete), discrete.space());
        let mut slopes = vec![0.0; space.mesh().n_cells() * n];
        for integrand in &self.cells {
            let Some(program) = of.program(integrand) else { continue };
            let job = Job::new(self, integrand, Product::Numbers(program), state, of.test());
            let of_batch = |scratch: &mut CellScratch, batch| job.cell_integrals(batch, scratch);
            let n_batches = space.n_cells().div_ceil(LANES);
            let found =
                self.cpu.install(|| parallel::map_with(n_batches, BATCHES, CellScratch::default, of_batch));
            for position in 0..space.n_cells() {
                let of_cell = &mut slopes[space.cell(position) * n..][..n];
                let found = &found[position / LANES];
                of_cell.iter_mut().zip(found).for_each(|(slope, found)| *slope += found[position % LANES]);
            }
        }
        if !slopes.iter().all(|slope| slope.is_finite()) {
            // The reference finds the place of a value that is not finite.
            return reference::by_parameter(discrete, state, of);
        }
        for (integrand, domain, sites) in &self.facets {
            let integral = self.on_facets(integrand, domain, state);
            integral.add_slopes(sites, of, &mut slopes)?;
        }
        Ok(slopes)
    }
}

//! Residual, tangent, diagonal, cell matrices and energy by plain loops: the oracle of every other path.

use femtile_expression::Program;
use femtile_form::{FormError, Integrand, Side};

use crate::at_point::{CellPoint, PointInputs, evaluate};
use crate::discrete_form::{DiscreteForm, State};
use crate::error::OperatorError;
use crate::parameter::{Differentiated, n_components};
use crate::sites::{Site, for_sites};

/// A quadrature point of a cell or facet.
pub(crate) struct AtPoint<'a> {
    pub integrand: &'a Integrand,
    domain: &'static str,
    site: &'a Site,
    /// The point in the site.
    pub q: usize,
    /// Inputs of the programs, without a direction.
    inputs: Vec<f64>,
}

/// Computes the residual $r_i = R(u; \varphi_i)$.
///
/// # Shapes
/// `r: [n_unknowns]`
/// # Errors
/// [`OperatorError::Length`], folded cells, values that are not finite.
pub fn residual(discrete: &DiscreteForm<'_>, state: &State<'_>, r: &mut [f64]) -> Result<(), OperatorError> {
    discrete.check_length("r", r, false)?;
    r.fill(0.0);
    for_points(discrete, state, &mut |at| at.add_residual(discrete, r))
}

/// Computes the product of the tangent with a direction, $y_i = R'(u; \delta u, \varphi_i)$.
///
/// # Shapes
/// `y, direction: [n_unknowns]`
/// # Errors
/// As [`residual`].
pub fn apply(
    discrete: &DiscreteForm<'_>,
    state: &State<'_>,
    direction: &[f64],
    y: &mut [f64],
) -> Result<(), OperatorError> {
    discrete.check_length("direction", direction, false)?;
    discrete.check_length("y", y, false)?;
    y.fill(0.0);
    for_points(discrete, state, &mut |at| at.add_product(discrete, direction, y))
}

/// Computes the diagonal of the tangent.
///
/// # Shapes
/// `diagonal: [n_unknowns]`
/// # Errors
/// As [`residual`].
pub fn diagonal(
    discrete: &DiscreteForm<'_>,
    state: &State<'_>,
    diagonal: &mut [f64],
) -> Result<(), OperatorError> {
    discrete.check_length("diagonal", diagonal, false)?;
    diagonal.fill(0.0);
    for_entries(discrete, state, &mut |row, column, value| {
        if row == column {
            diagonal[row as usize] += value;
        }
    })
}

/// Returns the tangent as a dense matrix by rows, for small problems.
///
/// # Errors
/// As [`residual`].
pub fn matrix(discrete: &DiscreteForm<'_>, state: &State<'_>) -> Result<Vec<Vec<f64>>, OperatorError> {
    let n = discrete.n_unknowns();
    let mut matrix = vec![vec![0.0; n]; n];
    for_entries(discrete, state, &mut |row, column, value| matrix[row as usize][column as usize] += value)?;
    Ok(matrix)
}

/// Returns the sum of the energies of all integrals that have an energy density.
///
/// # Errors
/// As [`residual`].
pub fn energy(discrete: &DiscreteForm<'_>, state: &State<'_>) -> Result<f64, OperatorError> {
    let mut sum = 0.0;
    for_points(discrete, state, &mut |at| {
        if let Some(program) = at.integrand.energy() {
            sum += at.site.weights[at.q] * at.evaluate(program, "the energy density")?[0];
        }
        Ok(())
    })?;
    Ok(sum)
}

/// Returns the derivatives of the residual times a test function, or of the energy, by the values of the parameter in each cell
/// of the mesh: `[n_cells][n_components]`, empty if no integrand depends on it.
///
/// # Errors
/// As [`residual`].
pub fn by_parameter(
    discrete: &DiscreteForm<'_>,
    state: &State<'_>,
    of: Differentiated<'_>,
) -> Result<Vec<f64>, OperatorError> {
    of.check(discrete)?;
    let mut slopes = vec![0.0; discrete.space().mesh().n_cells() * n_components(discrete)];
    for_points(discrete, state, &mut |at| at.add_slopes(discrete, of, &mut slopes))?;
    Ok(slopes)
}

/// Calls a function with row, column and value of each contribution to the tangent.
pub(crate) fn for_entries(
    discrete: &DiscreteForm<'_>,
    state: &State<'_>,
    found: &mut dyn FnMut(u32, u32, f64),
) -> Result<(), OperatorError> {
    for_points(discrete, state, &mut |at| at.for_entries(discrete, found))
}

/// Calls a function at each quadrature point of each integral.
fn for_points(
    discrete: &DiscreteForm<'_>,
    state: &State<'_>,
    found: &mut dyn FnMut(AtPoint<'_>) -> Result<(), OperatorError>,
) -> Result<(), OperatorError> {
    discrete.check_state(state)?;
    for integral in discrete.form().integrals() {
        let integral_at =
            SiteIntegral { discrete, integrand: &integral.integrand, domain: integral.domain.name(), state };
        for_sites(discrete, &integral.domain, &mut |site| integral_at.for_points(site, found))?;
    }
    Ok(())
}

/// The integral of an integrand over given sites.
#[derive(Clone, Copy)]
pub(crate) struct SiteIntegral<'a> {
    pub discrete: &'a DiscreteForm<'a>,
    pub integrand: &'a Integrand,
    pub domain: &'static str,
    pub state: &'a State<'a>,
}

impl SiteIntegral<'_> {
    /// Calls a function at each point of a site.
    pub fn for_points(
        &self,
        site: &Site,
        found: &mut dyn FnMut(AtPoint<'_>) -> Result<(), OperatorError>,
    ) -> Result<(), OperatorError> {
        (0..site.weights.len()).try_for_each(|q| found(AtPoint::new(self, site, q)))
    }

    /// Adds the residual.
    pub fn add_residual(&self, sites: &[Site], r: &mut [f64]) -> Result<(), OperatorError> {
        sites.iter().try_for_each(|site| self.for_points(site, &mut |at| at.add_residual(self.discrete, r)))
    }

    /// Adds the product of the tangent with a direction.
    pub fn add_product(&self, sites: &[Site], direction: &[f64], y: &mut [f64]) -> Result<(), OperatorError> {
        let mut add = |at: AtPoint<'_>| at.add_product(self.discrete, direction, y);
        sites.iter().try_for_each(|site| self.for_points(site, &mut add))
    }

    /// Adds the derivatives by the parameter.
    pub fn add_slopes(
        &self,
        sites: &[Site],
        of: Differentiated<'_>,
        slopes: &mut [f64],
    ) -> Result<(), OperatorError> {
        let mut add = |at: AtPoint<'_>| at.add_slopes(self.discrete, of, slopes);
        sites.iter().try_for_each(|site| self.for_points(site, &mut add))
    }

    /// Calls a function with row, column and value of each contribution to the tangent.
    pub fn for_entries(
        &self,
        sites: &[Site],
        found: &mut dyn FnMut(u32, u32, f64),
    ) -> Result<(), OperatorError> {
        sites
            .iter()
            .try_for_each(|site| self.for_points(site, &mut |at| at.for_entries(self.discrete, found)))
    }
}

impl<'a> AtPoint<'a> {
    fn new(integral: &SiteIntegral<'a>, site: &'a Site, q: usize) -> Self {
        let SiteIntegral { discrete, integrand, domain, state } = *integral;
        let mut at = Self { integrand, domain, site, q, inputs: Vec::new() };
        let slots = at.interpolate(discrete, state.u);
        let rates = at.interpolate(discrete, state.rate);
        let inputs = PointInputs {
            at: at.place(state.time),
            tag: site.tag,
            normal: site.normals[q],
            shift: state.shift,
            state: &slots,
            rate: &rates,
            direction: &[],
        };
        at.inputs = inputs.of(integrand);
        at
    }

    fn place(&self, time: f64) -> CellPoint {
        CellPoint { cell: self.site.cell, point: self.site.points[self.q], time }
    }

    /// Returns values and gradients of a function at the point, by slots; of an empty vector zeros.
    fn interpolate(&self, discrete: &DiscreteForm<'_>, u: &[f64]) -> Vec<f64> {
        let n = discrete.form().n_components();
        let mut slots = vec![0.0; self.integrand.n_slots()];
        if u.is_empty() {
            return slots;
        }
        for (side, of_side) in [Side::First, Side::Second].into_iter().zip(&self.site.sides) {
            for (&dof, shape) in of_side.dofs.iter().zip(of_side.shapes(self.q)) {
                for component in 0..n {
                    let first = self.integrand.slot(side, component, None);
                    let value = u[dof as usize * n + component];
                    for (slot, shape) in
                        slots[first..=first + discrete.form().dimension()].iter_mut().zip(shape)
                    {
                        *slot += shape * value;
                    }
                }
            }
        }
        slots
    }

    fn add_residual(&self, discrete: &DiscreteForm<'_>, r: &mut [f64]) -> Result<(), OperatorError> {
        self.scatter(discrete, &self.evaluate(self.integrand.residual(), "the residual")?, r);
        Ok(())
    }

    fn add_product(
        mut self,
        discrete: &DiscreteForm<'_>,
        direction: &[f64],
        y: &mut [f64],
    ) -> Result<(), OperatorError> {
        self.take_direction(discrete, direction);
        self.scatter(discrete, &self.evaluate(self.integrand.tangent(), "the tangent")?, y);
        Ok(())
    }

    fn add_slopes(
        mut self,
        discrete: &DiscreteForm<'_>,
        of: Differentiated<'_>,
        slopes: &mut [f64],
    ) -> Result<(), OperatorError> {
        let Some(program) = of.program(self.integrand) else { return Ok(()) };
        self.take_direction(discrete, of.test());
        let found = self.evaluate(program, "the derivative by the parameter")?;
        let own = slopes[self.site.cell * found.len()..].iter_mut();
        own.zip(&found).for_each(|(slope, found)| *slope += self.site.weights[self.q] * found);
        Ok(())
    }

    fn take_direction(&mut self, discrete: &DiscreteForm<'_>, direction: &[f64]) {
        let first = self.integrand.inputs().len();
        let slots = self.interpolate(discrete, direction);
        self.inputs[first..first + slots.len()].copy_from_slice(&slots);
    }

    fn for_entries(
        &self,
        discrete: &DiscreteForm<'_>,
        found: &mut dyn FnMut(u32, u32, f64),
    ) -> Result<(), OperatorError> {
        let values = self.evaluate(self.integrand.derivative(), "the tangent")?;
        for (&[row, column], value) in self.integrand.entries().iter().zip(values) {
            let value = self.site.weights[self.q] * value;
            // Most functions are zero on a facet.
            let trials: Vec<_> =
                self.shapes_of_slot(discrete, column).filter(|(_, trial)| *trial != 0.0).collect();
            for (i, test) in self.shapes_of_slot(discrete, row).filter(|(_, test)| *test != 0.0) {
                trials.iter().for_each(|&(j, trial)| found(i, j, test * value * trial));
            }
        }
        Ok(())
    }

    /// Evaluates a program; fails if a value of what it computes is not finite.
    pub fn evaluate(&self, program: &Program, what: &str) -> Result<Vec<f64>, FormError> {
        evaluate(self.integrand, (program, what), &self.inputs, (self.domain, self.place(f64::NAN)))
    }

    /// Adds the integral of $f_0\cdot v + f_1:\nabla v$ for all test functions of the site.
    fn scatter(&self, discrete: &DiscreteForm<'_>, f: &[f64], r: &mut [f64]) {
        for (slot, f) in f.iter().enumerate() {
            for (i, test) in self.shapes_of_slot(discrete, slot) {
                r[i as usize] += self.site.weights[self.q] * test * f;
            }
        }
    }

    /// Iterates over the unknowns that a slot depends on, with the value or derivative of their shape functions.
    fn shapes_of_slot(
        &self,
        discrete: &DiscreteForm<'_>,
        slot: usize,
    ) -> impl Iterator<Item = (u32, f64)> + use<'_> {
        let (n, d) = (discrete.form().n_components(), discrete.form().dimension());
        let (entity, part) = (slot / (1 + d), slot % (1 + d));
        let (side, component) = (entity / n, entity % n);
        let of_side = &self.site.sides[side];
        let unknown = move |dof: u32| dof * n as u32 + component as u32;
        of_side.dofs.iter().zip(of_side.shapes(self.q)).map(move |(&dof, shape)| (unknown(dof), shape[part]))
    }
}

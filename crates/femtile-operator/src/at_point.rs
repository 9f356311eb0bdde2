//! Integrands at a point: their inputs, and their programs.

use femtile_expression::Program;
use femtile_form::{Domain, FormError, Input, Integrand};

use crate::discrete_form::DiscreteForm;

/// A point of a cell, at a time.
#[derive(Debug, Clone, Copy)]
pub struct CellPoint {
    /// The cell of the mesh.
    pub cell: usize,
    /// The point.
    pub point: [f64; 3],
    /// The time.
    pub time: f64,
}

/// A point at which an integrand is evaluated.
pub(crate) struct PointInputs<'a> {
    pub at: CellPoint,
    /// The tag of the cell.
    pub tag: i32,
    /// Zero in a cell.
    pub normal: [f64; 3],
    pub shift: f64,
    /// Values and gradients of u, by slots.
    pub state: &'a [f64],
    /// Those of ∂u/∂t.
    pub rate: &'a [f64],
    /// Those of the direction of a tangent, or none.
    pub direction: &'a [f64],
}

impl PointInputs<'_> {
    /// Returns the inputs of the programs of an integrand.
    pub fn of(&self, integrand: &Integrand) -> Vec<f64> {
        let CellPoint { cell, point, time } = self.at;
        let value = |input: &Input| match *input {
            Input::Coordinate(axis) => point[axis],
            Input::Normal(axis) => self.normal[axis],
            Input::Time => time,
            Input::Tag => f64::from(self.tag),
            Input::State(slot) => self.state[slot],
            Input::Rate(component) => self.rate[component * (1 + integrand.dimension())],
            Input::Cell(number) => integrand.cell_data()[number].value(cell, self.tag),
            Input::Point(number) => integrand.point_data()[number].at(point),
        };
        let mut inputs: Vec<f64> = integrand.inputs().iter().map(value).collect();
        inputs.extend_from_slice(self.direction);
        inputs.resize(integrand.n_inputs(), 0.0);
        *inputs.last_mut().unwrap_or(&mut 0.0) = self.shift;
        inputs
    }
}

/// Evaluates a program of an integrand; fails if a value of what it computes is not finite.
pub(crate) fn evaluate(
    integrand: &Integrand,
    (program, what): (&Program, &str),
    inputs: &[f64],
    (domain, at): (&'static str, CellPoint),
) -> Result<Vec<f64>, FormError> {
    let mut values = vec![f64::NAN; program.n_outputs()];
    program.eval(inputs, &mut values);
    let Some(first) = values.iter().position(|value| !value.is_finite()) else { return Ok(values) };
    let named = integrand.names().iter().zip(inputs);
    let inputs: Vec<String> = named.map(|(name, value)| format!("{name} = {value}")).collect();
    Err(FormError::IntegrandNotFinite {
        output: match values.len() {
            1 => what.to_owned(),
            _ => format!("entry {first} of {what}"),
        },
        domain,
        cell: at.cell,
        point: at.point,
        value: values[first],
        inputs: inputs.join(", "),
    })
}

impl DiscreteForm<'_> {
    /// Returns $(f_0, f_1)$ of the integrals over cells at a point, for values and gradients of u there, by slots.
    ///
    /// # Errors
    /// [`FormError::IntegrandNotFinite`].
    pub fn residual_at(&self, at: CellPoint, state: &[f64]) -> Result<Vec<f64>, FormError> {
        self.sum_at(at, (state, &[]), |integrand| (integrand.residual(), "the residual"))
    }

    /// Returns the tangent of [`Self::residual_at`] along a direction.
    ///
    /// # Errors
    /// As [`Self::residual_at`].
    pub fn tangent_at(&self, at: CellPoint, state: &[f64], direction: &[f64]) -> Result<Vec<f64>, FormError> {
        self.sum_at(at, (state, direction), |integrand| (integrand.tangent(), "the tangent"))
    }

    fn sum_at(
        &self,
        at: CellPoint,
        (state, direction): (&[f64], &[f64]),
        program: impl Fn(&Integrand) -> (&Program, &str),
    ) -> Result<Vec<f64>, FormError> {
        let tag = self.space().mesh().cell_tags.get(at.cell).copied().unwrap_or(0);
        let rate = vec![0.0; state.len()];
        let inputs = PointInputs { at, tag, normal: [0.0; 3], shift: 0.0, state, rate: &rate, direction };
        let mut sum = vec![0.0; state.len()];
        for integral in self.form().integrals().iter().filter(|own| own.domain == Domain::Cells) {
            let (integrand, domain) = (&integral.integrand, integral.domain.name());
            let found = evaluate(integrand, program(integrand), &inputs.of(integrand), (domain, at))?;
            sum.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
        }
        Ok(sum)
    }
}

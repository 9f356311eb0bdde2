//! Evaluation of integrands at a point.

use femtile_form::{Input, Integrand};

/// A point with everything that an integrand may read there.
#[derive(Debug, Clone)]
pub struct Point {
    pub x: [f64; 3],
    pub normal: [f64; 3],
    pub time: f64,
    pub cell: usize,
    pub tag: i32,
    pub shift: f64,
}

impl Default for Point {
    fn default() -> Self {
        Self { x: [0.3, -0.7, 1.1], normal: [0.6, 0.0, 0.8], time: 0.4, cell: 0, tag: 0, shift: 0.0 }
    }
}

/// Returns the inputs of the programs of an integrand.
pub fn inputs(
    integrand: &Integrand,
    point: &Point,
    state: &[f64],
    rate: &[f64],
    direction: &[f64],
) -> Vec<f64> {
    let value = |input: &Input| match *input {
        Input::Coordinate(axis) => point.x[axis],
        Input::Normal(axis) => point.normal[axis],
        Input::Time => point.time,
        Input::Tag => f64::from(point.tag),
        Input::State(slot) => state[slot],
        Input::Rate(component) => rate[component],
        Input::Cell(at) => integrand.cell_data()[at].value(point.cell, point.tag),
        Input::Point(at) => integrand.point_data()[at].at(point.x),
    };
    let own = integrand.inputs().iter().map(value);
    own.chain(direction.iter().copied()).chain([point.shift]).collect()
}

/// Returns $(f_0, f_1)$ by slots.
pub fn residual(integrand: &Integrand, point: &Point, state: &[f64], rate: &[f64]) -> Vec<f64> {
    let n = integrand.n_slots();
    let mut f = vec![f64::NAN; n];
    integrand.residual().eval(&inputs(integrand, point, state, rate, &vec![f64::NAN; n]), &mut f);
    f
}

/// Returns the tangent along a direction by slots.
pub fn tangent(
    integrand: &Integrand,
    point: &Point,
    state: &[f64],
    rate: &[f64],
    direction: &[f64],
) -> Vec<f64> {
    let mut f = vec![f64::NAN; integrand.n_slots()];
    integrand.tangent().eval(&inputs(integrand, point, state, rate, direction), &mut f);
    f
}

/// Returns the matrix $D'$ by rows.
pub fn matrix(integrand: &Integrand, point: &Point, state: &[f64], rate: &[f64]) -> Vec<Vec<f64>> {
    let n = integrand.n_slots();
    let mut values = vec![f64::NAN; integrand.entries().len()];
    integrand.derivative().eval(&inputs(integrand, point, state, rate, &vec![f64::NAN; n]), &mut values);
    let mut matrix = vec![vec![0.0; n]; n];
    for (&[row, column], value) in integrand.entries().iter().zip(values) {
        matrix[row][column] = value;
    }
    matrix
}

//! Newton's method for the implicit equations of a point.

use femtile::expression::{Program, Value};

use super::MAX_STATES;
use crate::CardiacError;
use crate::ionic::{Formulas, Model};

/// Most iterations.
pub(super) const MAX_ITERATIONS: usize = 20;
/// Steps below this fraction of a state, or this value times a thousandth, end the iteration.
pub(super) const TOLERANCE: f64 = 1e-12;

/// Values of up to [`MAX_STATES`] states.
pub(super) type States = [f64; MAX_STATES];

/// One iteration at a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Iteration {
    /// The correction to subtract from the states.
    pub step: States,
    /// Derivative of the total current by V, at the states before the step.
    pub tangent: f64,
    /// The current there.
    pub current: f64,
    pub has_converged: bool,
}

/// The program of the right side of a model with its derivatives, for implicit stages; inputs are V and w.
///
/// Outputs: f `[n]`, ∂f/∂w `[n][n]` by rows, ∂f/∂V `[n]`, I, ∂I/∂V, ∂I/∂w `[n]`.
#[derive(Debug, Clone)]
pub struct RightSide {
    pub(super) n_states: usize,
    pub(super) program: Program,
}

impl RightSide {
    /// # Errors
    /// [`CardiacError::Setting`] for models with more than [`MAX_STATES`] states.
    pub(super) fn new(model: &Model) -> Result<Self, CardiacError> {
        let n = model.n_states();
        if n > MAX_STATES {
            let message = format!(
                "{} has {n} states; points are solved implicitly for models of at most {MAX_STATES}: choose \
                 operator splitting",
                model.name()
            );
            return Err(CardiacError::setting("model", message));
        }
        let mut formulas = Formulas::new(model)?;
        let rates = formulas.rates();
        let Formulas { mut builder, current, .. } = formulas;
        let voltage = builder.input(0);
        let variables: Vec<Value> = (0..n).map(|i| builder.input(1 + i)).collect();
        let mut outputs = rates.clone();
        for &rate in &rates {
            outputs.extend(variables.iter().map(|&by| builder.derivative(rate, by)));
        }
        outputs.extend(rates.iter().map(|&rate| builder.derivative(rate, voltage)));
        outputs.push(current);
        outputs.extend([voltage].iter().chain(&variables).map(|&by| builder.derivative(current, by)));
        Ok(Self { n_states: n, program: builder.finish(&outputs) })
    }
}

/// Returns the number of outputs of the right side of a model with n states.
pub(super) fn n_outputs(n: usize) -> usize {
    n * n + 3 * n + 2
}

/// Solves $K δ = R$ and $K s = Δt\,∂g/∂V$ with $K = 1 - Δt\,∂g/∂w$, $R = w - w_{old} - Δt\,g$.
///
/// `right_side(k)` is output k of [`RightSide`] at the states w.
pub(super) fn iterate(
    n: usize,
    right_side: impl Fn(usize) -> f64,
    w: &States,
    old: &States,
    dt: f64,
) -> Iteration {
    let (jacobian, by_voltage, current) = (n, n + n * n, 2 * n + n * n);
    let mut rows = [[0.0; WIDTH]; MAX_STATES];
    for (i, row) in rows.iter_mut().enumerate().take(n) {
        for (j, entry) in row.iter_mut().enumerate().take(n) {
            let unit = if i == j { 1.0 } else { 0.0 };
            *entry = unit - dt * right_side(jacobian + n * i + j);
        }
        row[RESIDUAL] = w[i] - old[i] - dt * right_side(i);
        row[BY_VOLTAGE] = dt * right_side(by_voltage + i);
    }
    solve(&mut rows[..n]);
    let mut step = [0.0; MAX_STATES];
    let mut tangent = right_side(current + 1);
    let mut has_converged = true;
    for (i, row) in rows.iter().enumerate().take(n) {
        step[i] = row[RESIDUAL];
        tangent += right_side(current + 2 + i) * row[BY_VOLTAGE];
        has_converged &= step[i].abs() <= TOLERANCE * (w[i].abs() + 1e-3);
    }
    Iteration { step, tangent, current: right_side(current), has_converged }
}

/// Columns of the right sides, behind those of a matrix.
const RESIDUAL: usize = MAX_STATES;
const BY_VOLTAGE: usize = RESIDUAL + 1;
const WIDTH: usize = BY_VOLTAGE + 1;

/// Gauss–Jordan elimination with partial pivoting: the columns of right sides become the solutions.
fn solve(rows: &mut [[f64; WIDTH]]) {
    for column in 0..rows.len() {
        let mut pivot = column;
        for row in column + 1..rows.len() {
            if rows[row][column].abs() > rows[pivot][column].abs() {
                pivot = row;
            }
        }
        rows.swap(column, pivot);
        let scale = 1.0 / rows[column][column];
        rows[column].iter_mut().for_each(|entry| *entry *= scale);
        let eliminated = rows[column];
        for (_, row) in rows.iter_mut().enumerate().filter(|(i, _)| *i != column) {
            let factor = row[column];
            row.iter_mut().zip(eliminated).for_each(|(entry, of_pivot)| *entry -= factor * of_pivot);
        }
    }
}

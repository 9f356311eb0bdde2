//! Programs of an integrand in two parts: numbers at the points, and what is computed from them.

use femtile_expression::{Program, Split};

use crate::integrand::{Input, Integrand};

/// A program of an integrand in two parts: numbers at the points that are computed once for a state, and the rest.
///
/// Coefficients that are constant become part of the rest.
#[derive(Debug, Clone)]
pub struct Linearization {
    /// The program of the numbers; its inputs are those of the integrand, of which it reads no direction.
    pub numbers: Program,
    /// For each number whether it is the same at all points of a cell.
    pub is_by_cell: Vec<bool>,
    /// The rest. Its inputs are the direction by slots, of the tangent alone, then the numbers.
    pub program: Program,
}

impl Integrand {
    /// Divides the tangent: its rest is the action on a direction, (δf₀, δf₁) by slots.
    pub fn linearization(&self) -> Linearization {
        let (before, n_slots) = (self.inputs().len(), self.n_slots());
        self.divided(self.tangent(), |input| (before..before + n_slots).contains(&input))
    }

    /// Divides the entries of D′: its rest are [`Integrand::entries`].
    pub fn derivative_at_points(&self) -> Linearization {
        self.divided(self.derivative(), |_| false)
    }

    fn divided(&self, program: &Program, is_direction: impl Fn(usize) -> bool) -> Linearization {
        let Split { early, late, inputs } = program.split(is_direction);
        let is_uniform = |input: &usize| {
            matches!(self.inputs().get(*input), Some(Input::Tag | Input::Cell(_) | Input::Time) | None)
        };
        let is_by_cell = inputs.iter().map(|inputs| inputs.iter().all(is_uniform)).collect();
        Linearization { numbers: early, is_by_cell, program: late }
    }

    /// Returns whether the tangent reads a value of the direction, or has an f₀.
    pub fn tangent_has_values(&self) -> bool {
        let is_value = |slot: usize| slot.is_multiple_of(1 + self.dimension());
        self.entries().iter().any(|&[row, column]| is_value(row) || is_value(column))
    }
}

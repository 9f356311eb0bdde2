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
    /// The rest. Its inputs are the direction by slots, or those of [`Integrand::varying`] with [`Integrand::by_state`], then the
    /// numbers.
    pub program: Program,
}

/// An input that changes while the mesh and the coefficients stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Varying {
    /// A slot of u.
    State(usize),
    /// A component of ∂u/∂t.
    Rate(usize),
    /// The time.
    Time,
    /// A slot of the direction of the tangent.
    Direction(usize),
    /// The shift of a time discretization.
    Shift,
}

impl Integrand {
    /// Divides the tangent: its rest is the action on a direction, (δf₀, δf₁) by slots.
    pub fn linearization(&self) -> Linearization {
        let (before, n_slots) = (self.inputs().len(), self.n_slots());
        self.divided(self.tangent(), |input| (before..before + n_slots).contains(&input))
    }

    /// Divides one of the programs of the integrand: its rest has the inputs [`Self::varying`].
    pub fn by_state(&self, program: &Program) -> Linearization {
        let varying: Vec<usize> = self.varying_inputs().map(|(position, _)| position).collect();
        self.divided(program, |input| varying.contains(&input))
    }

    /// Returns the inputs that change while the mesh and the coefficients stay, in their order.
    pub fn varying(&self) -> Vec<Varying> {
        self.varying_inputs().map(|(_, input)| input).collect()
    }

    fn varying_inputs(&self) -> impl Iterator<Item = (usize, Varying)> {
        let own = self.inputs().iter().map(|input| match *input {
            Input::State(slot) => Some(Varying::State(slot)),
            Input::Rate(component) => Some(Varying::Rate(component)),
            Input::Time => Some(Varying::Time),
            _ => None,
        });
        let directions = (0..self.n_slots()).map(|slot| Some(Varying::Direction(slot)));
        let all = own.chain(directions).chain([Some(Varying::Shift)]).enumerate();
        all.filter_map(|(position, input)| Some((position, input?)))
    }

    fn divided(&self, program: &Program, is_late: impl Fn(usize) -> bool) -> Linearization {
        let Split { early, late, inputs } = program.split(is_late);
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

//! Equations whose solution is a given function.

use femtile_expression::{Expression, Value, Variable};

use crate::form::FormBuilder;
use crate::integrand::{Graph, Input, Side};

impl FormBuilder<'_> {
    /// Makes a function w the solution: with the residual R of the equation the form becomes
    ///
    /// $$ R(u; v) - R(w; v), $$
    ///
    /// with w and its exact derivatives at the points, so that no second derivatives are needed and boundary terms are included. The
    /// tangent is that of the equation, and so is the energy. `exact` has an expression in x, y, z and t for each component of u.
    ///
    /// # Panics
    /// Unless there are as many expressions as components.
    #[must_use]
    pub fn with_exact(mut self, exact: Vec<Expression>) -> Self {
        let n = self.equation.n_components(self.dimension);
        assert!(exact.len() == n, "with_exact: {} expressions for {n} components", exact.len());
        self.exact = Some(exact);
        self
    }
}

impl Graph {
    /// Takes from the residual its value at a function.
    pub fn vanish_at(&mut self, exact: &[Expression]) {
        let axes = &[Variable::X, Variable::Y, Variable::Z][..self.layout.dimension];
        let mut pairs: Vec<(Value, Value)> = Vec::new();
        for (component, w) in exact.iter().enumerate() {
            let slopes = axes.iter().map(|&axis| w.derivative(axis));
            let along = std::iter::once((None, w.clone()));
            for (axis, entry) in along.chain(slopes.enumerate().map(|(axis, slope)| (Some(axis), slope))) {
                let value = self.import(&entry);
                let slots = [Side::First, Side::Second].into_iter().take(self.layout.n_sides);
                let states = slots.map(|side| Input::State(self.layout.slot(side, component, axis)));
                let inputs: Vec<Value> =
                    states.filter_map(|state| state.value(&self.builder, &self.inputs)).collect();
                pairs.extend(inputs.into_iter().map(|input| (input, value)));
            }
            if let Some(rate) = Input::Rate(component).value(&self.builder, &self.inputs) {
                pairs.push((rate, self.import(&w.derivative(Variable::T))));
            }
        }
        let at_exact = self.builder.substitute(&self.residual, &pairs);
        for (residual, at_exact) in self.residual.iter_mut().zip(at_exact) {
            *residual = self.builder.sub(*residual, at_exact);
        }
    }

    fn import(&mut self, expression: &Expression) -> Value {
        let place = [Input::Coordinate(0), Input::Coordinate(1), Input::Coordinate(2), Input::Time];
        let [x, y, z, t] = place.map(|input| input.value(&self.builder, &self.inputs));
        let none = self.builder.constant(f64::NAN);
        self.builder.import(expression, |variable| {
            let input = match variable {
                Variable::X => x,
                Variable::Y => y,
                Variable::Z => z,
                Variable::T => t,
                Variable::Other(_) => None,
            };
            input.unwrap_or(none)
        })
    }
}

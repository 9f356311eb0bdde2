//! Stabilisation of convection: streamline upwind Petrov–Galerkin.

use femtile_expression::{Array, ProgramBuilder, Value};

use crate::integrand::{Input, Layout, Side};

/// Keeps $\tau$ finite where nothing flows, spreads or reacts; far below the squares of all rates.
const LEAST: f64 = 1e-60;

/// Adds to the residual of a component the terms of streamline upwind Petrov–Galerkin `[brooks1982]`,
///
/// $$ \int \tau\,(b\cdot\nabla v)\,R\,dx, \qquad R = f_0 - \nabla\cdot f_1,\quad b = \partial R/\partial\nabla u, $$
///
/// with the strong residual R without second derivatives of the unknowns, which vanish in simplices of degree 1, and `[shakib1991]`
///
/// $$ \tau = \bigl(4\, b\cdot G b + (12\,\mathrm{tr}(D G)/d)^2 + r^2\bigr)^{-1/2}, \qquad D = \partial f_1/\partial\nabla u,\quad
/// r = \partial f_0/\partial u. $$
///
/// In a cube of edges h this is $h/(2|b|)$ where convection dominates and $h^2/(12 D)$ where diffusion does.
pub(crate) struct Streamlines<'a> {
    pub builder: &'a mut ProgramBuilder,
    pub inputs: &'a [Input],
    pub layout: Layout,
    /// G, with $\xi\cdot G\xi = |\xi|^2/h^2$ in a cube of edges h.
    pub metric: &'a Array,
}

impl Streamlines<'_> {
    /// Stabilises a component; returns whether it has convection.
    pub fn stabilise(&mut self, component: usize, residual: &mut [Value]) -> bool {
        let (layout, d) = (self.layout, self.layout.dimension);
        let slot = |axis| layout.slot(Side::First, component, axis);
        let value = self.input(Input::State(slot(None)));
        let slopes: Vec<_> = (0..d).map(|axis| self.input(Input::State(slot(Some(axis))))).collect();
        let strong = self.strong_residual(component, residual);
        let b: Vec<Value> = slopes.iter().map(|&slope| self.by(strong, slope)).collect();
        if b.iter().all(|&b| self.builder.as_constant(b) == Some(0.0)) {
            return false;
        }
        let r = self.by(residual[slot(None)], value);
        let mut of_diffusion = self.builder.constant(0.0);
        let mut of_convection = of_diffusion;
        for i in 0..d {
            for j in 0..d {
                let g = self.metric.entries()[i * d + j];
                let diffusion = self.by(residual[slot(Some(i))], slopes[j]);
                of_diffusion = self.plus_product(of_diffusion, diffusion, g);
                let product = self.builder.mul(b[i], b[j]);
                of_convection = self.plus_product(of_convection, product, g);
            }
        }
        let [four, twelve] = [4.0, 12.0 / d as f64].map(|number| self.builder.constant(number));
        let of_diffusion = self.builder.mul(twelve, of_diffusion);
        let mut rates = self.builder.constant(LEAST);
        rates = self.plus_product(rates, four, of_convection);
        rates = self.plus_product(rates, of_diffusion, of_diffusion);
        rates = self.plus_product(rates, r, r);
        let rate = self.builder.sqrt(rates);
        let weighted = self.builder.div(strong, rate);
        for axis in 0..d {
            let at = &mut residual[slot(Some(axis))];
            let term = self.builder.mul(b[axis], weighted);
            *at = self.builder.add(*at, term);
        }
        true
    }

    /// Returns $f_0 - \nabla\cdot f_1$ of a component without second derivatives of the unknowns.
    fn strong_residual(&mut self, component: usize, residual: &[Value]) -> Value {
        let (layout, d) = (self.layout, self.layout.dimension);
        let mut strong = residual[layout.slot(Side::First, component, None)];
        let one = self.builder.constant(1.0);
        for axis in 0..d {
            let mut along: Vec<(Value, Value)> =
                self.input(Input::Coordinate(axis)).map(|input| (input, one)).into_iter().collect();
            for own in 0..layout.n_components {
                let of = |axis| self.input(Input::State(layout.slot(Side::First, own, axis)));
                along.extend(of(None).zip(of(Some(axis))));
            }
            let flux = residual[layout.slot(Side::First, component, Some(axis))];
            let change = self.builder.directional_derivative(flux, &along);
            strong = self.builder.sub(strong, change);
        }
        strong
    }

    fn input(&self, input: Input) -> Option<Value> {
        input.value(self.builder, self.inputs)
    }

    fn by(&mut self, of: Value, input: Option<Value>) -> Value {
        match input {
            Some(input) => self.builder.derivative(of, input),
            None => self.builder.constant(0.0),
        }
    }

    fn plus_product(&mut self, sum: Value, a: Value, b: Value) -> Value {
        let product = self.builder.mul(a, b);
        self.builder.add(sum, product)
    }
}

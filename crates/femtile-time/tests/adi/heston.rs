//! A European call in Heston's model: a mixed derivative, coefficients that vanish on a side, a kink at the start.

use std::f64::consts::PI;

use femtile_expression::Expression;
use femtile_time::adi::{AdiConfig, AdiProblem, Scheme, Side, values};

use super::manufactured::{formula, solve};

/// `[fang2008]`, section 5.3: S0 = K = 100, T = 1, no interest; their price is 5.785155450.
const KAPPA: f64 = 1.5768;
const SIGMA: f64 = 0.5751;
const MEAN: f64 = 0.0398;
const V0: f64 = 0.0175;
const RHO: f64 = -0.5711;
const PRICE: f64 = 5.785155450;

/// A complex number, for the characteristic function.
#[derive(Clone, Copy)]
struct Complex(f64, f64);

impl Complex {
    fn add(self, o: Self) -> Self {
        Self(self.0 + o.0, self.1 + o.1)
    }
    fn times(self, o: Self) -> Self {
        Self(self.0 * o.0 - self.1 * o.1, self.0 * o.1 + self.1 * o.0)
    }
    fn scaled(self, a: f64) -> Self {
        Self(a * self.0, a * self.1)
    }
    fn over(self, o: Self) -> Self {
        self.times(Self(o.0, -o.1)).scaled(1.0 / (o.0 * o.0 + o.1 * o.1))
    }
    fn sqrt(self) -> Self {
        let (r, angle) = (self.0.hypot(self.1).sqrt(), 0.5 * self.1.atan2(self.0));
        Self(r * angle.cos(), r * angle.sin())
    }
    fn exp(self) -> Self {
        Self(self.0.exp() * self.1.cos(), self.0.exp() * self.1.sin())
    }
    fn ln(self) -> Self {
        Self(self.0.hypot(self.1).ln(), self.1.atan2(self.0))
    }
}

/// $E[e^{iφ \ln(S_T/S_0)}]$ without interest, `[heston1993]`, in the form that keeps to one branch of the logarithm.
fn characteristic(phi: Complex, time: f64) -> Complex {
    let one = Complex(1.0, 0.0);
    let i_phi = Complex(-phi.1, phi.0);
    let b = Complex(KAPPA, 0.0).add(i_phi.scaled(-RHO * SIGMA));
    let d = b.times(b).add(i_phi.add(phi.times(phi)).scaled(SIGMA * SIGMA)).sqrt();
    let minus = b.add(d.scaled(-1.0));
    let g = minus.over(b.add(d));
    let decay = d.scaled(-time).exp();
    let rest = one.add(g.times(decay).scaled(-1.0));
    let c = minus.scaled(time).add(rest.over(one.add(g.scaled(-1.0))).ln().scaled(-2.0));
    let v = minus.times(one.add(decay.scaled(-1.0)).over(rest));
    c.scaled(KAPPA * MEAN / (SIGMA * SIGMA)).add(v.scaled(V0 / (SIGMA * SIGMA))).exp()
}

/// The price for S0 = K = 100 by Lewis' integral, with Simpson's rule.
fn price(time: f64) -> f64 {
    let integrand = |u: f64| characteristic(Complex(u, -0.5), time).0 / (u * u + 0.25);
    let (n, to) = (20_000, 400.0);
    let h = to / f64::from(n);
    let weight = |k: i32| if k == 0 || k == n { 1.0 } else { f64::from(2 + 2 * (k % 2)) };
    let integral: f64 = (0..=n).map(|k| weight(k) * integrand(f64::from(k) * h)).sum::<f64>() * h / 3.0;
    100.0 * (1.0 - integral / PI)
}

/// In x = ln(S/K) and v, time running back from the end: $D = ½v[[1, ρσ], [ρσ, σ²]]$, and c without $∇·D$.
fn heston(intervals: [usize; 2]) -> AdiProblem {
    let mixed = format!("{}*y", 0.5 * RHO * SIGMA);
    let zero = || formula("0");
    let row = |a: Expression, b: Expression| [a, b, zero()];
    AdiProblem {
        nodes: intervals.map(|n| n + 1).to_vec(),
        lower: vec![-1.2, 0.0],
        upper: vec![0.8, 35.0 * V0],
        diffusion: [
            row(formula("0.5*y"), formula(&mixed)),
            row(formula(&mixed), formula(&format!("{}*y", 0.5 * SIGMA * SIGMA))),
            [zero(), zero(), zero()],
        ],
        convection: [
            formula(&format!("-0.5*y - {}", 0.5 * RHO * SIGMA)),
            formula(&format!("{KAPPA}*({MEAN} - y) - {}", 0.5 * SIGMA * SIGMA)),
            zero(),
        ],
        reaction: zero(),
        source: zero(),
        sides: vec![
            [Side::Dirichlet(zero()), Side::Dirichlet(formula("100*(exp(x) - 1)"))],
            [Side::Neumann(zero()), Side::Neumann(zero())],
        ],
    }
}

#[test]
fn the_integral_gives_the_published_price() {
    assert!((price(1.0) - PRICE).abs() < 1e-7, "{}", price(1.0));
}

#[test]
fn the_price_of_a_call_is_that_of_the_integral_and_converges() {
    let at = |intervals: [usize; 2], steps: usize| {
        let problem = heston(intervals);
        let config =
            AdiConfig { scheme: Scheme::CraigSneyd, steps, rannacher_steps: 2, ..AdiConfig::default() };
        let u = solve(&problem, &config, &formula("100*max(exp(x) - 1, 0)"));
        values::value_at(&problem.grid().unwrap(), &u, &[0.0, V0]).unwrap() - PRICE
    };
    let errors = [at([40, 70], 10), at([80, 140], 20), at([160, 280], 40)];
    assert!(errors[2].abs() < 4e-3, "{errors:?}");
    // The density of v is singular at v = 0 (2κθ < σ²), which costs some of the second order.
    assert!(errors.windows(2).all(|pair| pair[1].abs() < 0.35 * pair[0].abs()), "{errors:?}");
}

//! Problems made from a solution chosen first.

use femtile_device::{Buffer, Cpu, Scalar};
use femtile_expression::{Expression, Variable};
use femtile_time::adi::{Adi, AdiConfig, AdiKernels, AdiProblem, AdiStop, Side, Silent};

const AXES: [Variable; 3] = [Variable::X, Variable::Y, Variable::Z];

/// A formula that may depend on the time.
pub fn formula(text: &str) -> Expression {
    Expression::parse_in_time(text).unwrap()
}

/// The condition on a side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Dirichlet,
    Neumann,
    Periodic,
}

/// A solution and the coefficients of the problem that it solves on the unit box.
#[derive(Debug, Clone)]
pub struct Manufactured {
    pub exact: Expression,
    pub diffusion: [[Expression; 3]; 3],
    pub convection: [Expression; 3],
    pub reaction: Expression,
    pub sides: Vec<[Kind; 2]>,
}

impl Manufactured {
    /// D = 1 and nothing else, given values on all sides.
    pub fn heat(exact: &str, dimension: usize) -> Self {
        let unit = |i, j| formula(if i == j { "1" } else { "0" });
        Self {
            exact: formula(exact),
            diffusion: std::array::from_fn(|i| std::array::from_fn(|j| unit(i, j))),
            convection: std::array::from_fn(|_| formula("0")),
            reaction: formula("0"),
            sides: vec![[Kind::Dirichlet; 2]; dimension],
        }
    }

    pub fn diffusion(mut self, i: usize, j: usize, text: &str) -> Self {
        self.diffusion[i][j] = formula(text);
        self.diffusion[j][i] = formula(text);
        self
    }

    pub fn convection(mut self, texts: [&str; 3]) -> Self {
        self.convection = texts.map(formula);
        self
    }

    pub fn reaction(mut self, text: &str) -> Self {
        self.reaction = formula(text);
        self
    }

    pub fn sides(mut self, axis: usize, lower: Kind, upper: Kind) -> Self {
        self.sides[axis] = [lower, upper];
        self
    }

    fn flux(&self, axis: usize) -> Expression {
        let d = self.sides.len();
        let terms = (0..d).map(|j| &self.diffusion[axis][j] * &self.exact.derivative(AXES[j]));
        terms.reduce(|a, b| &a + &b).unwrap()
    }

    /// Returns the problem with the given numbers of nodes along the axes.
    pub fn problem(&self, nodes: &[usize]) -> AdiProblem {
        let d = self.sides.len();
        let mut source = &self.exact.derivative(Variable::T) - &(&self.reaction * &self.exact);
        for (axis, &variable) in AXES[..d].iter().enumerate() {
            source = &source - &self.flux(axis).derivative(variable);
            source = &source - &(&self.convection[axis] * &self.exact.derivative(variable));
        }
        let side = |axis: usize, i: usize| match self.sides[axis][i] {
            Kind::Dirichlet => Side::Dirichlet(self.exact.clone()),
            Kind::Neumann if i == 0 => Side::Neumann(-&self.flux(axis)),
            Kind::Neumann => Side::Neumann(self.flux(axis)),
            Kind::Periodic => Side::Periodic,
        };
        AdiProblem {
            nodes: nodes[..d].to_vec(),
            lower: vec![0.0; d],
            upper: vec![1.0; d],
            diffusion: self.diffusion.clone(),
            convection: self.convection.clone(),
            reaction: self.reaction.clone(),
            source,
            sides: (0..d).map(|axis| [side(axis, 0), side(axis, 1)]).collect(),
        }
    }
}

/// The values at the end of a run from a formula.
pub fn advance<T: Scalar, D: AdiKernels<T>>(
    device: &D,
    problem: &AdiProblem,
    config: &AdiConfig,
    initial: &Expression,
) -> Vec<f64> {
    let mut adi = Adi::<T, D>::new(device, problem, config.clone()).unwrap();
    let mut u: Buffer<T, D> = adi.initial_values(initial).unwrap();
    let outcome = adi.run(&mut u, &mut Silent).unwrap();
    assert_eq!((outcome.stop, outcome.steps), (AdiStop::Finished, config.steps));
    u.to_host().unwrap().into_iter().map(Scalar::to_f64).collect()
}

/// The same in double precision on one thread.
pub fn solve(problem: &AdiProblem, config: &AdiConfig, initial: &Expression) -> Vec<f64> {
    advance::<f64, _>(&Cpu::new(1).unwrap(), problem, config, initial)
}

/// Root mean square of a difference.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    (a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / a.len() as f64).sqrt()
}

/// A formula at a time and all nodes of a problem.
pub fn sampled(problem: &AdiProblem, formula: &Expression, time: f64) -> Vec<f64> {
    let (grid, formula) = (problem.grid().unwrap(), formula.at_time(time));
    grid.all().map(|node| formula.eval(grid.point(node))).collect()
}

//! Manufactured solutions.

use femtile_expression::{Expression, Variable};
use femtile_fem::{Coefficient, Condition};
use femtile_mesh::Mesh;

use super::{Problem, constant, expression};

const AXES: [Variable; 3] = [Variable::X, Variable::Y, Variable::Z];

/// σ by rows as formulas.
pub type Tensor = [[&'static str; 3]; 3];

pub const IDENTITY: Tensor = [["1", "0", "0"], ["0", "1", "0"], ["0", "0", "1"]];
pub const CONSTANT: Tensor = [["2", "0.5", "0.2"], ["0.5", "1.5", "-0.3"], ["0.2", "-0.3", "3"]];
pub const VARYING: Tensor =
    [["2+x*y", "0.3*sin(x)", "0.1*z"], ["0.3*sin(x)", "1.5+y^2", "0.2*x"], ["0.1*z", "0.2*x", "2+z"]];

pub fn parse(text: &str) -> Expression {
    Expression::parse(text).unwrap()
}

/// σ∇u, component by component.
pub fn flux(u: &Expression, sigma: &Tensor, dimension: usize) -> Vec<Expression> {
    let row = |i: usize| {
        let terms = (0..dimension).map(|j| &parse(sigma[i][j]) * &u.derivative(AXES[j]));
        terms.reduce(|sum, term| &sum + &term).unwrap()
    };
    (0..dimension).map(row).collect()
}

/// A problem on the unit square or cube that `u` solves exactly: Dirichlet at x = 0, Robin at y = 0, Neumann elsewhere, or Dirichlet everywhere.
pub fn manufactured(mesh: Mesh, u: &str, sigma: &Tensor, lambda: &str, mixed: bool) -> Problem {
    let dimension = mesh.dimension();
    let u = parse(u);
    let flux = flux(&u, sigma, dimension);
    let divergence = flux.iter().zip(AXES).map(|(q, axis)| q.derivative(axis));
    let divergence = divergence.reduce(|sum, term| &sum + &term).unwrap();
    let mut problem = Problem::new(mesh);
    problem.sigma = match parse(sigma[0][0]).as_constant() {
        Some(1.0) => constant(1.0),
        Some(_) => Coefficient::Tensor(sigma.map(|row| row.map(|entry| parse(entry).eval([0.0; 3])))),
        None => Coefficient::TensorExpression(Box::new(sigma.map(|row| row.map(parse)))),
    };
    problem.lambda = expression(lambda);
    problem.source = Coefficient::Expression(&(&parse(lambda) * &u) - &divergence);
    if !mixed {
        problem.on(|_| true, Condition::Dirichlet(Coefficient::Expression(u)));
        return problem;
    }
    for axis in 0..dimension {
        // The outward flux is that along the axis at its upper side, its negative at the lower one.
        let upper = Condition::Neumann(Coefficient::Expression(flux[axis].clone()));
        problem.on(|p| p[axis] > 1.0 - 1e-9, upper);
        let outward = -&flux[axis];
        let lower = match axis {
            0 => Condition::Dirichlet(Coefficient::Expression(u.clone())),
            1 => {
                // c (w - u) = q with c = 2 + x, so w = u + q / c.
                let c = parse("2 + x");
                let value = &u + &(&outward / &c);
                Condition::Robin {
                    coefficient: Coefficient::Expression(c),
                    value: Coefficient::Expression(value),
                }
            }
            _ => Condition::Neumann(Coefficient::Expression(outward)),
        };
        problem.on(|p| p[axis] < 1e-9, lower);
    }
    problem
}

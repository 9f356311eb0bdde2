//! The equation, the box and the boundary conditions.

use femtile_expression::{Expression, Variable};

use super::grid::{AXES, Grid};
use crate::TimeError;

/// The boundary condition on one side of the box.
#[derive(Debug, Clone, PartialEq)]
pub enum Side {
    /// The value of u, which may depend on the time.
    Dirichlet(Expression),
    /// The flux $n·D∇u$ into the box, with outward normal n; may depend on the time.
    Neumann(Expression),
    /// Periodic; on both sides of an axis.
    Periodic,
}

/// The problem $u_t = ∇·(D∇u) + c·∇u + ru + f$ on a box.
///
/// Coefficients depend on x, y, z; the source and the values on the sides also on the time t. At an edge or
/// corner of several Dirichlet sides, the value of the first axis applies.
#[derive(Debug, Clone, PartialEq)]
pub struct AdiProblem {
    /// Nodes along each axis.
    pub nodes: Vec<usize>,
    /// The corner with the smallest coordinates.
    pub lower: Vec<f64>,
    /// The corner with the largest coordinates.
    pub upper: Vec<f64>,
    /// D, symmetric and positive semidefinite; only its leading d × d block is used.
    pub diffusion: [[Expression; 3]; 3],
    /// c.
    pub convection: [Expression; 3],
    /// r.
    pub reaction: Expression,
    /// f.
    pub source: Expression,
    /// The conditions on the lower and the upper side of each axis.
    pub sides: Vec<[Side; 2]>,
}

impl AdiProblem {
    /// Creates the problem $u_t = Δu$ on the box between two corners, with u = 0 on its sides.
    pub fn heat(nodes: &[usize], lower: &[f64], upper: &[f64]) -> Self {
        let zero = || Expression::constant(0.0);
        let unit = |i, j| Expression::constant(f64::from(u8::from(i == j)));
        Self {
            nodes: nodes.to_vec(),
            lower: lower.to_vec(),
            upper: upper.to_vec(),
            diffusion: std::array::from_fn(|i| std::array::from_fn(|j| unit(i, j))),
            convection: [zero(), zero(), zero()],
            reaction: zero(),
            source: zero(),
            sides: nodes.iter().map(|_| [Side::Dirichlet(zero()), Side::Dirichlet(zero())]).collect(),
        }
    }

    /// Returns the grid.
    ///
    /// # Errors
    /// [`TimeError::Setting`] as [`Grid::new`], and when a side is periodic and its opposite is not.
    pub fn grid(&self) -> Result<Grid, TimeError> {
        let mut periodic = Vec::new();
        for (axis, sides) in self.sides.iter().enumerate() {
            let n_periodic = sides.iter().filter(|side| **side == Side::Periodic).count();
            if n_periodic == 1 {
                let axis = AXES.get(axis).unwrap_or(&"?");
                let message = format!("one side of {axis} is periodic; the opposite one has to be as well");
                return Err(TimeError::setting("sides", message));
            }
            periodic.push(n_periodic == 2);
        }
        Grid::new(&self.nodes, &self.lower, &self.upper, &periodic)
    }

    /// Checks the problem; returns its grid.
    pub(crate) fn check(&self) -> Result<Grid, TimeError> {
        let grid = self.grid()?;
        let d = grid.dimension();
        let mut steady: Vec<(&'static str, &Expression)> = vec![("reaction", &self.reaction)];
        for i in 0..d {
            steady.push(("convection", &self.convection[i]));
            for j in 0..d {
                steady.push(("diffusion", &self.diffusion[i][j]));
                if self.diffusion[i][j] != self.diffusion[j][i] {
                    let message = format!(
                        "the entries {i}, {j} and {j}, {i} differ: {} and {}; the tensor is symmetric",
                        self.diffusion[i][j], self.diffusion[j][i]
                    );
                    return Err(TimeError::setting("diffusion", message));
                }
            }
        }
        if let Some((field, _)) = steady.iter().find(|(_, coefficient)| coefficient.uses(Variable::T)) {
            return Err(TimeError::setting(field, "may depend on x, y, z, not on the time"));
        }
        Ok(grid)
    }
}

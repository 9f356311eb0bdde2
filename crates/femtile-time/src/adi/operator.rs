//! The operator of the problem by second-order differences, split into its parts:
//!
//! $$ A = A_0 + A_1 + … + A_d, \qquad
//!    (A_a u)_p = l_p (u_{p-e_a} - u_p) + w_p (u_{p+e_a} - u_p) + \tfrac{r_p}{d} u_p $$
//!
//! $A_0$ holds the mixed derivatives. Inside, $l = D_{p-½}/h² - c/(2h)$ and $w = D_{p+½}/h² + c/(2h)$. The cell of a
//! node on a Neumann side is half as wide, so $w = 2 D_{p+½}/h² + c/h$ there, $l = 0$, and the flux g across the side
//! adds $2g/h$. Rows of nodes on a Dirichlet side of the axis are zero.
//!
//! A mixed derivative is $-H^{-1}(G_a^\mathsf{T} H D_{ab} G_b + G_b^\mathsf{T} H D_{ab} G_a) u$, with the
//! difference quotient $G$ (centred inside, one-sided at a Neumann side) and the widths $H$ of the cells. It
//! is symmetric, and the only flux across Neumann sides is g.

use femtile_expression::Expression;

use super::cuda_text::Texts;
use super::grid::Grid;
use super::problem::{AdiProblem, Side};
use crate::TimeError;

/// The kind of condition on a side of the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Dirichlet,
    Neumann,
    Periodic,
}

/// Position of a node along an axis; all nodes of a periodic axis are inner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    First,
    Inner,
    Last,
}

/// A coefficient: its formula, and its value if it is constant.
#[derive(Debug, Clone)]
pub(crate) struct Coefficient {
    pub formula: Expression,
    pub constant: Option<f64>,
}

impl Coefficient {
    pub fn new(formula: &Expression) -> Self {
        Self { formula: formula.clone(), constant: formula.as_constant() }
    }

    pub fn is_zero(&self) -> bool {
        self.constant == Some(0.0)
    }
}

/// The off-diagonal entry of D of two axes.
#[derive(Debug, Clone)]
pub(crate) struct Mixed {
    pub axes: [usize; 2],
    pub coefficient: Coefficient,
}

/// The operator of a problem on its grid.
///
/// It is the same on every device.
#[derive(Debug, Clone)]
pub struct Operator {
    pub(crate) grid: Grid,
    pub(crate) ends: [[End; 2]; 3],
    pub(crate) diffusion: [Coefficient; 3],
    pub(crate) convection: [Coefficient; 3],
    pub(crate) reaction: Coefficient,
    /// Non-zero off-diagonal entries of D.
    pub(crate) mixed: Vec<Mixed>,
    pub(crate) source: Coefficient,
    /// Kernel source, generated at first use.
    pub(super) texts: Texts,
}

impl Operator {
    /// Creates the operator of a problem.
    ///
    /// # Errors
    /// [`TimeError`] if the problem is ill-posed: see [`AdiProblem::grid`]; for a tensor that is not
    /// symmetric or not positive semidefinite at a node; for coefficients that depend on the time or are not
    /// finite.
    pub fn new(problem: &AdiProblem) -> Result<Self, TimeError> {
        let grid = problem.check()?;
        let d = grid.dimension();
        let end = |axis: usize, side: usize| match problem.sides.get(axis).map(|sides| &sides[side]) {
            Some(Side::Dirichlet(_)) => End::Dirichlet,
            Some(Side::Neumann(_)) => End::Neumann,
            Some(Side::Periodic) | None => End::Periodic,
        };
        let pairs = (0..d).flat_map(|a| (a + 1..d).map(move |b| [a, b]));
        let mixed = pairs.map(|axes| {
            let coefficient = Coefficient::new(&problem.diffusion[axes[0]][axes[1]]);
            Mixed { axes, coefficient }
        });
        let operator = Self {
            ends: std::array::from_fn(|axis| std::array::from_fn(|side| end(axis, side))),
            diffusion: std::array::from_fn(|a| Coefficient::new(&problem.diffusion[a][a])),
            convection: std::array::from_fn(|a| Coefficient::new(&problem.convection[a])),
            reaction: Coefficient::new(&problem.reaction),
            mixed: mixed.filter(|mixed| !mixed.coefficient.is_zero()).collect(),
            source: Coefficient::new(&problem.source),
            grid,
            texts: Texts::default(),
        };
        super::soundness::check(&operator)?;
        Ok(operator)
    }

    /// Returns the grid.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Returns `true` with mixed derivatives.
    pub fn has_mixed(&self) -> bool {
        !self.mixed.is_empty()
    }

    /// Returns `true` if l and w are the same along every line of an axis.
    pub(crate) fn has_constant_couplings(&self, axis: usize) -> bool {
        self.diffusion[axis].constant.is_some() && self.convection[axis].constant.is_some()
    }

    /// Returns `true` if the bands are the same along every line of an axis.
    pub(crate) fn has_constant_bands(&self, axis: usize) -> bool {
        self.has_constant_couplings(axis) && self.reaction.constant.is_some()
    }

    pub(crate) fn place(&self, axis: usize, i: usize) -> Place {
        if self.grid.periodic()[axis] || axis >= self.grid.dimension() {
            Place::Inner
        } else if i == 0 {
            Place::First
        } else if i + 1 == self.grid.nodes()[axis] {
            Place::Last
        } else {
            Place::Inner
        }
    }

    /// Returns `true` if a node lies on a Dirichlet side of the axis.
    pub(crate) fn is_held(&self, axis: usize, i: usize) -> bool {
        match self.place(axis, i) {
            Place::First => self.ends[axis][0] == End::Dirichlet,
            Place::Last => self.ends[axis][1] == End::Dirichlet,
            Place::Inner => false,
        }
    }

    /// Returns `true` if a node lies on any Dirichlet side.
    pub(crate) fn is_dirichlet(&self, node: [usize; 3]) -> bool {
        (0..self.grid.dimension()).any(|axis| self.is_held(axis, node[axis]))
    }

    /// Returns l and w from D half a spacing before and after a node and c at the node; not for Dirichlet nodes.
    #[inline(always)]
    pub(crate) fn couplings(&self, axis: usize, d: [f64; 2], c: f64, place: Place) -> [f64; 2] {
        let h = self.grid.spacing()[axis];
        match place {
            Place::Inner => [d[0] / (h * h) - c / (2.0 * h), d[1] / (h * h) + c / (2.0 * h)],
            Place::First => [0.0, 2.0 * d[1] / (h * h) + c / h],
            Place::Last => [2.0 * d[0] / (h * h) - c / h, 0.0],
        }
    }

    /// Evaluates l and w of one node.
    pub(crate) fn couplings_at(&self, axis: usize, node: [usize; 3]) -> [f64; 2] {
        let i = node[axis];
        if self.is_held(axis, i) {
            return [0.0; 2];
        }
        let point = self.grid.point(node);
        let half = |i: usize| {
            let mut point = point;
            point[axis] = self.grid.half_coordinate(axis, i);
            self.diffusion[axis].formula.eval(point)
        };
        let c = self.convection[axis].formula.eval(point);
        self.couplings(axis, [half(i), half(i + 1)], c, self.place(axis, i))
    }

    /// Returns l and w of the first, the inner and the last nodes, if they are constant.
    pub(crate) fn constant_couplings(&self, axis: usize) -> Option<[[f64; 2]; 3]> {
        let (d, c) = (self.diffusion[axis].constant?, self.convection[axis].constant?);
        let last = self.grid.nodes()[axis] - 1;
        let of = |place, i| {
            if self.is_held(axis, i) { [0.0; 2] } else { self.couplings(axis, [d, d], c, place) }
        };
        Some([of(self.place(axis, 0), 0), of(Place::Inner, 1), of(self.place(axis, last), last)])
    }

    /// Returns r/d at one node.
    pub(crate) fn reaction_share(&self, node: [usize; 3]) -> f64 {
        self.reaction.formula.eval(self.grid.point(node)) / self.grid.dimension() as f64
    }

    /// Returns the neighbours of a node along an axis; the node itself beyond a side.
    pub(crate) fn neighbours(&self, axis: usize, node: [usize; 3]) -> [[usize; 3]; 2] {
        let (i, n) = (node[axis], self.grid.nodes()[axis]);
        let [before, behind] = match self.place(axis, i) {
            Place::First => [0, 1],
            Place::Last => [i - 1, i],
            Place::Inner => [if i == 0 { n - 1 } else { i - 1 }, if i + 1 == n { 0 } else { i + 1 }],
        };
        [before, behind].map(|i| {
            let mut other = node;
            other[axis] = i;
            other
        })
    }

    /// Returns the weights of the values before, at and after a node: of the difference quotient $G$, and of $-H^{-1}G^\mathsf{T}H$.
    pub(crate) fn weights(&self, axis: usize, place: Place) -> [[f64; 3]; 2] {
        let inverse = 1.0 / self.grid.spacing()[axis];
        let half = 0.5 * inverse;
        match place {
            Place::Inner => [[-half, 0.0, half]; 2],
            Place::First => [[0.0, -inverse, inverse], [0.0, inverse, inverse]],
            Place::Last => [[-inverse, inverse, 0.0], [-inverse, -inverse, 0.0]],
        }
    }

    /// Evaluates the mixed derivatives at a node that is not on a Dirichlet side.
    pub(crate) fn mixed_at(&self, node: [usize; 3], u: &impl Fn(usize) -> f64) -> f64 {
        self.mixed.iter().map(|mixed| self.one_mixed_at(mixed, node, u)).sum()
    }

    pub(crate) fn one_mixed_at(&self, mixed: &Mixed, node: [usize; 3], u: &impl Fn(usize) -> f64) -> f64 {
        let [a, b] = mixed.axes;
        let around = |axis: usize, node: [usize; 3]| {
            let [before, behind] = self.neighbours(axis, node);
            [before, node, behind]
        };
        let mut sum = 0.0;
        for (outer, inner) in [(a, b), (b, a)] {
            let [_, divergence] = self.weights(outer, self.place(outer, node[outer]));
            let [gradient, _] = self.weights(inner, self.place(inner, node[inner]));
            for (at, weight) in around(outer, node).into_iter().zip(divergence) {
                if weight == 0.0 {
                    continue;
                }
                let slopes = around(inner, at).into_iter().zip(gradient);
                let slope: f64 = slopes.map(|(at, weight)| weight * u(self.grid.index(at))).sum();
                let d = match mixed.coefficient.constant {
                    Some(d) => d,
                    None => mixed.coefficient.formula.eval(self.grid.point(at)),
                };
                sum += weight * d * slope;
            }
        }
        sum
    }
}

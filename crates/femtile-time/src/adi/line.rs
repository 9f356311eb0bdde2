//! Evaluation of coefficients along lines of nodes.

use femtile_expression::{Tape, TapeScratch, Variable};

use super::grid::Grid;
use super::operator::Coefficient;

/// Workspace for coordinates and registers.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    points: [Vec<f64>; 3],
    tape: TapeScratch,
}

/// A coefficient compiled for evaluation at many points.
#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    constant: Option<f64>,
    tape: Tape,
    uses: [bool; 3],
}

impl Sampler {
    pub fn new(coefficient: &Coefficient) -> Self {
        let uses = Variable::ALL.map(|variable| coefficient.formula.uses(variable));
        Self { constant: coefficient.constant, tape: coefficient.formula.tape(), uses }
    }

    /// Evaluates the first `out.len()` nodes of the line of x through `node`.
    pub fn line(&self, grid: &Grid, node: [usize; 3], out: &mut [f64], scratch: &mut Scratch) {
        let [_, y, z] = grid.point(node);
        self.points(out, scratch, |axis, i| match axis {
            0 => grid.coordinate(0, i),
            1 => y,
            _ => z,
        });
    }

    /// Evaluates points half a spacing before the nodes along `axis`; for x one more than there are nodes.
    pub fn half_line(
        &self,
        grid: &Grid,
        axis: usize,
        node: [usize; 3],
        out: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let of = |other: usize| match other == axis {
            true => grid.half_coordinate(axis, node[other]),
            false => grid.coordinate(other, node[other]),
        };
        let (y, z) = (of(1), of(2));
        self.points(out, scratch, |other, i| match other {
            0 if axis == 0 => grid.half_coordinate(0, i),
            0 => grid.coordinate(0, i),
            1 => y,
            _ => z,
        });
    }

    /// Evaluates at points with coordinates `at(axis, i)`.
    pub fn points(&self, out: &mut [f64], scratch: &mut Scratch, at: impl Fn(usize, usize) -> f64) {
        if let Some(value) = self.constant {
            return out.fill(value);
        }
        for (axis, points) in scratch.points.iter_mut().enumerate() {
            points.clear();
            if self.uses[axis] {
                points.extend((0..out.len()).map(|i| at(axis, i)));
            }
        }
        let [x, y, z] = &scratch.points;
        self.tape.eval_block(out, x, y, z, &mut scratch.tape);
    }
}

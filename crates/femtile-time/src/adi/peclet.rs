//! Cell Péclet numbers: convection relative to diffusion over one grid spacing.

use super::line::{Sampler, Scratch};
use super::operator::Operator;

/// The cell Péclet number above which centred differences oscillate.
const LIMIT: f64 = 2.0;

/// The largest cell Péclet number $|c_a| h_a / D_{aa}$ over the axes and interior nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellPeclet {
    /// The largest number; infinite for convection without diffusion.
    pub largest: f64,
    /// Its axis, 0 for x.
    pub axis: usize,
    /// Coordinates of its node.
    pub point: [f64; 3],
    /// Share of interior nodes whose number along this axis exceeds 2.
    pub share_above_two: f64,
}

impl CellPeclet {
    /// Returns `true` if centred differences may oscillate.
    pub fn may_oscillate(&self) -> bool {
        self.largest > LIMIT
    }
}

impl Operator {
    /// Returns the largest cell Péclet number; none without convection.
    ///
    /// # Cost
    /// One evaluation of $c_a$ and $D_{aa}$ at each node, for axes with an expression among the two.
    pub fn cell_peclet(&self) -> Option<CellPeclet> {
        let axes = (0..self.grid.dimension()).filter(|&axis| !self.convection[axis].is_zero());
        axes.map(|axis| self.cell_peclet_along(axis)).max_by(|a, b| a.largest.total_cmp(&b.largest))
    }

    fn cell_peclet_along(&self, axis: usize) -> CellPeclet {
        let (grid, coefficients) = (&self.grid, [&self.convection[axis], &self.diffusion[axis]]);
        let [nx, ny, nz] = grid.nodes();
        let is_constant = coefficients.iter().all(|coefficient| coefficient.constant.is_some());
        let (n_lines, n) = if is_constant { (1, 1) } else { (ny * nz, nx) };
        let [c, d] = coefficients.map(Sampler::new);
        let (mut speeds, mut diffusions) = (vec![0.0; n], vec![0.0; n]);
        let is_inside = |node: [usize; 3]| {
            is_constant || grid.periodic()[axis] || (1..grid.nodes()[axis] - 1).contains(&node[axis])
        };
        let (mut scratch, mut n_above, mut n_inside) = (Scratch::default(), 0, 0);
        let mut found = CellPeclet { largest: 0.0, axis, point: grid.lower(), share_above_two: 0.0 };
        for line in 0..n_lines {
            let first = grid.node(0, line, 0);
            c.line(grid, first, &mut speeds, &mut scratch);
            d.line(grid, first, &mut diffusions, &mut scratch);
            for (i, (&speed, &diffusion)) in speeds.iter().zip(&diffusions).enumerate() {
                let node = grid.node(0, line, i);
                if !is_inside(node) {
                    continue;
                }
                n_inside += 1;
                let number = if speed == 0.0 { 0.0 } else { speed.abs() * grid.spacing()[axis] / diffusion };
                n_above += usize::from(number > LIMIT);
                if number > found.largest {
                    (found.largest, found.point) = (number, grid.point(node));
                }
            }
        }
        CellPeclet { share_above_two: n_above as f64 / n_inside as f64, ..found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adi::AdiProblem;
    use femtile_expression::Expression;

    fn operator(diffusion: &str, convection: [&str; 2]) -> Operator {
        let formula = |text: &str| Expression::parse(text).unwrap();
        let mut problem = AdiProblem::heat(&[11, 5], &[0.0, 0.0], &[1.0, 2.0]);
        problem.diffusion[0][0] = formula(diffusion);
        problem.convection[..2].clone_from_slice(&convection.map(formula));
        Operator::new(&problem).unwrap()
    }

    #[test]
    fn the_number_is_that_of_the_worst_axis_and_node() {
        assert_eq!(operator("1", ["0", "0"]).cell_peclet(), None);
        let constant = operator("0.01", ["-4", "1"]).cell_peclet().unwrap();
        assert!((constant.largest - 40.0).abs() < 1e-12 && constant.share_above_two == 1.0, "{constant:?}");
        assert_eq!(constant.axis, 0);
        let along_y = operator("1", ["-1", "3"]).cell_peclet().unwrap();
        assert_eq!((along_y.axis, along_y.largest, along_y.may_oscillate()), (1, 1.5, false));
        let growing = operator("1", ["40*x", "0"]).cell_peclet().unwrap();
        assert!(
            (growing.largest - 3.6).abs() < 1e-12 && (growing.point[0] - 0.9).abs() < 1e-12,
            "{growing:?}"
        );
        assert!((growing.share_above_two - 4.0 / 9.0).abs() < 1e-12, "{growing:?}");
        assert_eq!(operator("abs(x - 0.5)", ["1", "0"]).cell_peclet().unwrap().largest, f64::INFINITY);
    }

    #[test]
    fn sides_do_not_count_because_their_rows_are_one_sided() {
        let degenerate = operator("x", ["1", "0"]).cell_peclet().unwrap();
        assert!((degenerate.largest - 1.0).abs() < 1e-12 && !degenerate.may_oscillate(), "{degenerate:?}");
    }
}

//! Integrals of a source by the rule of the elements and by many more points.

use femtile_space::geometry::CellRule;
use femtile_space::{ReferenceRule, Space};

use crate::FemError;
use crate::evaluation::Evaluation;
use crate::forms::{Compiled, Form};
use crate::functionals::source_rule;

/// Points of all cells together, about.
const POINTS: usize = 1 << 18;

/// Fewest and most points of a cell along an axis; meshes whose cells would have fewer are not compared.
const ALONG: [usize; 2] = [3, 16];

/// The integrals of a source over a mesh.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SourceTotals {
    /// As the elements integrate it.
    pub integrated: f64,
    /// The total with [`SourceTotals::n_points`] points in each cell.
    pub sampled: f64,
    /// The sum over cells of the differences between both.
    pub difference: f64,
    /// The sum over cells of the sampled integrals, without their signs.
    pub size: f64,
    /// Number of points per cell.
    pub n_points: usize,
}

impl SourceTotals {
    /// Compares the source of a form on a space. Returns none if the source is constant in each cell, if it depends on u or the
    /// time, or if the mesh has too many cells.
    ///
    /// # Cost
    /// About a quarter of a million evaluations of the source, two million at most.
    /// # Errors
    /// A source that is not finite, a folded cell.
    pub fn of(form: &Form<'_>, space: &Space<'_>) -> Result<Option<Self>, FemError> {
        let (mesh, source, degree) = (form.mesh, form.source, space.element().degree());
        if source.is_constant_by_cell() || source.uses_unknown() || source.uses_time() {
            return Ok(None);
        }
        let d = mesh.dimension() as u32;
        let along = (POINTS as f64 / mesh.n_cells().max(1) as f64).powf(1.0 / f64::from(d)) as usize;
        let (fine, n_points) = match space.tensor() {
            Some(tensor) => {
                let along = along.min(ALONG[1]).max(degree + 3);
                if along.pow(d).saturating_mul(mesh.n_cells()) > 8 * POINTS {
                    return Ok(None);
                }
                let rule = CellRule::Gauss { extra: along - degree - 1 };
                (Evaluation::on_tensor_cells(tensor, rule), along.pow(d))
            }
            None if along < ALONG[0] => return Ok(None),
            None => {
                let n_points = along.min(ALONG[1]).pow(d);
                (Evaluation::on_simplices(space, spread(mesh.dimension(), n_points)), n_points)
            }
        };
        let coarse = Evaluation::new(space, source_rule(space, form.source, CellRule::default()));
        let source = Compiled::scalar("source", source, mesh)?;
        let by_cell = |evaluation: &Evaluation<'_>| {
            evaluation.map(|found, points| {
                points.eval(found, &source)?;
                Ok(found.given.iter().zip(&points.weights).map(|(value, weight)| value * weight).sum::<f64>())
            })
        };
        let pairs: Vec<(f64, f64)> = by_cell(&coarse)?.into_iter().zip(by_cell(&fine)?).collect();
        let sum = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
        Ok(Some(Self {
            integrated: sum(&|(coarse, _)| *coarse),
            sampled: sum(&|(_, fine)| *fine),
            difference: sum(&|(coarse, fine)| (coarse - fine).abs()),
            size: sum(&|(_, fine)| fine.abs()),
            n_points,
        }))
    }
}

/// Returns points that are spread evenly over the reference simplex, with equal weights: a sequence of the additive
/// recurrence, sorted.
fn spread(d: usize, n: usize) -> ReferenceRule {
    // The root of x^(d+1) = x + 1, whose powers fill the cube most evenly.
    let root = (0..40).fold(1.5, |x: f64, _| (1.0 + x).powf(1.0 / (d + 1) as f64));
    let point = |i: usize| {
        let mut at: Vec<f64> =
            (1..=d as i32).map(|k| (0.5 + i as f64 / f64::powi(root, k)).fract()).collect();
        at.sort_unstable_by(f64::total_cmp);
        at.push(1.0);
        std::array::from_fn(|axis| if axis < d { at[axis + 1] - at[axis] } else { 0.0 })
    };
    let measure = 1.0 / (1..=d).product::<usize>() as f64;
    ReferenceRule { points: (0..n).map(point).collect(), weights: vec![measure / n as f64; n] }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use femtile_expression::Expression;
    use femtile_mesh::check::boundary_facets;
    use femtile_mesh::generate::{SquareConfig, SquareSplit, square};

    use super::*;
    use crate::Coefficient;

    fn totals(text: &str, split: SquareSplit) -> Option<SourceTotals> {
        let mesh = square(&SquareConfig { cells: [10, 10], split, ..SquareConfig::default() }).unwrap();
        let boundary = boundary_facets(&mesh);
        let source = Coefficient::Expression(Expression::parse(text).unwrap());
        let (one, zero) = (Coefficient::Constant(1.0), Coefficient::Constant(0.0));
        let form = Form {
            mesh: &mesh,
            boundary: &boundary,
            sigma: &one,
            lambda: &zero,
            source: &source,
            conditions: &[],
        };
        let space = match split {
            SquareSplit::Quadrilateral => Space::new(&mesh, 2).unwrap(),
            _ => Space::new(&mesh, 1).unwrap(),
        };
        SourceTotals::of(&form, &space).unwrap()
    }

    #[test]
    fn a_source_between_the_points_of_the_rule_is_seen_by_more_points() {
        let narrow = "if(hypot(x-0.53, y-0.47) < 0.01, 1/(pi*0.01^2), 0)";
        for split in [SquareSplit::Triangles, SquareSplit::Quadrilateral] {
            let found = totals(narrow, split).unwrap();
            assert!((found.sampled - 1.0).abs() < 0.6, "{found:?}");
            assert!(found.difference > 0.5 * found.size, "{found:?}");
            let smooth = totals("sin(pi*x)*y", split).unwrap();
            assert!((smooth.sampled * PI - 1.0).abs() < 0.01, "{smooth:?}");
            assert!(smooth.difference < 0.05 * smooth.size, "{smooth:?}");
        }
    }
}

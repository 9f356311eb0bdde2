//! Integrals of a source by the rule of the elements and by many more points.

use femtile_device::parallel;
use femtile_element::Affine;
use femtile_expression::TapeScratch;
use femtile_space::TensorSpace;
use femtile_space::geometry::CellRule;

use crate::FemError;
use crate::forms::{CHUNK, CellCoefficients, ChunkScratch, Compiled, Form, Points, State};
use crate::tensor::{Evaluation, SOURCE_RULE};

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
    /// Compares the source of a form on a space of any degree, or on linear simplices if `space` is none.
    /// Returns none if the source is constant in each cell, if it depends on u or the time, or if the mesh
    /// has too many cells.
    ///
    /// # Cost
    /// About a quarter of a million evaluations of the source, two million at most.
    /// # Errors
    /// A source that is not finite, a folded cell.
    pub fn of(form: &Form<'_>, space: Option<&TensorSpace<'_>>) -> Result<Option<Self>, FemError> {
        let (mesh, source) = (form.mesh, form.source);
        if source.is_constant_by_cell() || source.uses_unknown() || source.uses_time() {
            return Ok(None);
        }
        let d = mesh.dimension();
        let along = (POINTS as f64 / mesh.n_cells().max(1) as f64).powf(1.0 / d as f64) as usize;
        let compiled = Compiled::scalar("source", source, mesh)?;
        let (pairs, n_points) = match space {
            Some(space) => {
                let along = along.min(ALONG[1]).max(space.degree() + 3);
                if along.pow(d as u32).saturating_mul(mesh.n_cells()) > 8 * POINTS {
                    return Ok(None);
                }
                let rules = [SOURCE_RULE, CellRule::Gauss { extra: along - space.degree() - 1 }];
                let [coarse, fine] = rules.map(|rule| of_rule(space, &compiled, rule));
                (coarse?.into_iter().zip(fine?).collect(), along.pow(d as u32))
            }
            None if along < ALONG[0] => return Ok(None),
            None => {
                let points = spread(d, along.min(ALONG[1]).pow(d as u32));
                (of_simplices(form, &compiled, &points)?, points.len())
            }
        };
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

/// The integral over each cell, by position.
fn of_rule(space: &TensorSpace<'_>, source: &Compiled<'_>, rule: CellRule) -> Result<Vec<f64>, FemError> {
    Evaluation::new(space, rule).map(|found, points| {
        points.eval(found, source)?;
        Ok(found.given.iter().zip(&points.weights).map(|(value, weight)| value * weight).sum())
    })
}

/// The integrals over each simplex as in assembly, and with points of equal weights.
fn of_simplices(
    form: &Form<'_>,
    source: &Compiled<'_>,
    spread: &[[f64; 4]],
) -> Result<Vec<(f64, f64)>, FemError> {
    let mesh = form.mesh;
    let coefficients = CellCoefficients::of_any_sign(form)?;
    let of_chunk = |number: usize| {
        let first = number * CHUNK;
        let cells: Vec<u32> = (first..(first + CHUNK).min(mesh.n_cells())).map(|cell| cell as u32).collect();
        let (mut chunk, mut scratch) = (coefficients.start_chunk(), ChunkScratch::default());
        coefficients.eval(&mut chunk, &cells, State::default(), &mut scratch)?;
        let (mut points, mut tape) = (Points::default(), TapeScratch::default());
        let mut values = vec![0.0; spread.len()];
        let one = |(lane, &cell): (usize, &u32)| {
            let nodes = mesh.cell(cell as usize);
            let mut corners = [[0.0; 3]; 4];
            corners.iter_mut().zip(nodes).for_each(|(to, &node)| *to = mesh.points[node as usize]);
            let measure = Affine::simplex(&corners[..nodes.len()]).measure;
            points.clear();
            for weights in spread {
                let along =
                    |axis: usize| (0..nodes.len()).map(|a| weights[a] * corners[a][axis]).sum::<f64>();
                points.push(cell, std::array::from_fn(along));
            }
            source.eval_scalar(&mut values, &points, &mut tape)?;
            let coarse = (0..nodes.len()).map(|a| chunk.load[a][lane]).sum::<f64>();
            Ok::<_, FemError>((measure * coarse, measure * values.iter().sum::<f64>() / values.len() as f64))
        };
        cells.iter().enumerate().map(one).collect::<Result<Vec<_>, FemError>>()
    };
    let found = parallel::map(mesh.n_cells().div_ceil(CHUNK), 1, of_chunk);
    Ok(found.into_iter().collect::<Result<Vec<_>, FemError>>()?.into_iter().flatten().collect())
}

/// Barycentric coordinates of points that are spread evenly over a simplex: a sequence of the additive recurrence, sorted.
fn spread(d: usize, n: usize) -> Vec<[f64; 4]> {
    // The root of x^(d+1) = x + 1, whose powers fill the cube most evenly.
    let root = (0..40).fold(1.5, |x: f64, _| (1.0 + x).powf(1.0 / (d + 1) as f64));
    let point = |i: usize| {
        let mut at: Vec<f64> =
            (1..=d as i32).map(|k| (0.5 + i as f64 / f64::powi(root, k)).fract()).collect();
        at.sort_unstable_by(f64::total_cmp);
        at.push(1.0);
        let mut weights = [0.0; 4];
        (0..=d).for_each(|a| weights[a] = at[a] - if a == 0 { 0.0 } else { at[a - 1] });
        weights
    };
    (0..n).map(point).collect()
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
            SquareSplit::Quadrilateral => Some(TensorSpace::new(&mesh, 2).unwrap()),
            _ => None,
        };
        SourceTotals::of(&form, space.as_ref()).unwrap()
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

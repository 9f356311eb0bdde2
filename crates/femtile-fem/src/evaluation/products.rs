//! Products of the operator with a function on a few cells.

use femtile_device::parallel;

use super::Evaluation;
use crate::FemError;
use crate::forms::{Form, PointCoefficients};

/// Cells that a thread looks at together.
const CELLS: usize = 256;

/// Returns the positions of the cells that have a marked degree of freedom, ascending.
pub(crate) fn touching(evaluation: &Evaluation<'_>, is_marked: &[bool]) -> Vec<usize> {
    let n = evaluation.n_cells();
    let of_block = |dofs: &mut Vec<u32>, block: usize| -> Vec<usize> {
        let mut touches = |position: &usize| {
            evaluation.cell_dofs(*position, dofs);
            dofs.iter().any(|&dof| is_marked[dof as usize])
        };
        (block * CELLS..n.min((block + 1) * CELLS)).filter(|position| touches(position)).collect()
    };
    parallel::map_with(n.div_ceil(CELLS), 1, Vec::new, of_block).into_iter().flatten().collect()
}

/// Adds $\int \sigma \nabla u \cdot \nabla \varphi_i + \lambda u \varphi_i$ over the cells at some positions to a vector, at
/// the degrees of freedom that are kept; facets are left out.
///
/// # Cost
/// $O(p^{d+1})$ per cell.
pub(crate) fn add_products(
    evaluation: &Evaluation<'_>,
    form: &Form<'_>,
    (u, positions): (&[f64], &[usize]),
    is_kept: impl Fn(u32) -> bool + Sync,
    sum: &mut [f64],
) -> Result<(), FemError> {
    let coefficients = PointCoefficients::of_any_sign(form.mesh, form.sigma, form.lambda)?;
    let applied = evaluation.map_at(positions, |found, points, _| {
        evaluation.gradients(found, points, u);
        points.write_points_with_values(found);
        let mut sigma = vec![[[0.0; 3]; 3]; found.points.len()];
        found.given.resize(found.points.len(), 0.0);
        coefficients.sigma(&mut sigma, &found.points, &mut found.tape)?;
        coefficients.lambda(&mut found.given, &found.points, &mut found.tape)?;
        found.gradients.iter_mut().zip(&sigma).for_each(|(g, sigma)| *g = sigma.map(|row| dot(row, *g)));
        found.given.iter_mut().zip(&found.function.values).for_each(|(given, u)| *given *= u);
        let moments = evaluation.weak_moments(found, points);
        let pairs = points.dofs.iter().copied().zip(moments);
        Ok(pairs.filter(|&(dof, _)| is_kept(dof)).collect::<Vec<_>>())
    })?;
    applied.into_iter().flatten().for_each(|(dof, moment)| sum[dof as usize] += moment);
    Ok(())
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

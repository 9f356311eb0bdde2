//! Products of the operator with a function on a few cells.

use femtile_device::parallel;

use super::{Evaluation, Wanted, times};
use crate::FemError;
use crate::forms::{Form, PointCoefficients};

/// Cells that a thread looks at together.
const CELLS: usize = 256;

/// Returns the positions of the cells that have a marked degree of freedom, ascending.
pub(crate) fn touching(evaluation: &Evaluation<'_>, is_marked: &[bool]) -> Vec<usize> {
    let n = evaluation.n_cells();
    let any = |dofs: &[u32]| dofs.iter().any(|&dof| is_marked[dof as usize]);
    let of_block = |dofs: &mut Vec<u32>, block: usize| -> Vec<usize> {
        let positions = block * CELLS..n.min((block + 1) * CELLS);
        if let Evaluation::Simplex(basis) = evaluation
            && basis.space.is_linear()
        {
            let mesh = basis.space.mesh();
            let cells = mesh.cells.chunks_exact(mesh.kind.n_nodes()).skip(positions.start);
            return positions
                .zip(cells)
                .filter(|(_, nodes)| any(nodes))
                .map(|(position, _)| position)
                .collect();
        }
        let mut touches = |position: usize| {
            evaluation.cell_dofs(position, dofs);
            any(dofs)
        };
        positions.filter(|&position| touches(position)).collect()
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
    let wanted = Wanted { u, gradients: true, points: true, unknown: true, revolved: false };
    let applied = evaluation.blocks(Some(positions), wanted, |samples| {
        let mut sigma = vec![[[0.0; 3]; 3]; samples.points.len()];
        samples.given.resize(samples.points.len(), 0.0);
        coefficients.sigma(&mut sigma, &samples.points, &mut samples.tape)?;
        coefficients.lambda(&mut samples.given, &samples.points, &mut samples.tape)?;
        samples.gradients.iter_mut().zip(&sigma).for_each(|(g, sigma)| *g = times(sigma, *g));
        samples.given.iter_mut().zip(&samples.values).for_each(|(given, u)| *given *= u);
        Ok(evaluation.kept_moments(samples, &is_kept))
    })?;
    applied.into_iter().flatten().for_each(|(dof, moment)| sum[dof as usize] += moment);
    Ok(())
}

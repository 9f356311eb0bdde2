//! The load vector of linear elements alone, without a matrix.

use femtile_space::LinearSpace;
use rayon::prelude::*;

use femtile_element::Affine;

use super::kernels::{AssemblyProblem, to_the_end};
use crate::FemError;
use crate::constraints::Constraints;
use crate::forms::{CHUNK, ChunkScratch, Form, State};

/// Evaluates the load of a form for linear elements,
/// $b_i = \int f \varphi_i\,dx + \int (g + c\,w)\,\varphi_i\,ds$, and its Dirichlet values. Nothing is lifted
/// or eliminated.
///
/// # Shapes
/// A value for each node of the mesh.
/// # Cost
/// One pass over the cells, on the processor; terms are added by ascending cell, so the bits depend on no number of threads.
/// # Errors
/// A mesh that cannot be used, a datum that is not finite.
pub fn load(form: &Form<'_>) -> Result<(Vec<f64>, Constraints), FemError> {
    LinearSpace::new(form.mesh)?;
    let problem = AssemblyProblem::new(form, &to_the_end)?;
    let mut load = vec![0.0; form.mesh.n_nodes()];
    if form.source.as_constant() != Some(0.0) {
        let moments = cell_moments(&problem)?;
        for (cell, moments) in moments.iter().enumerate() {
            let corners = form.mesh.cell(cell).iter().zip(moments);
            corners.for_each(|(&node, moment)| load[node as usize] += moment);
        }
    }
    for term in &problem.facet_terms {
        let corners = term.nodes.iter().zip(term.load).take(form.mesh.dimension());
        corners.for_each(|(&node, moment)| load[node as usize] += moment);
    }
    Ok((load, problem.constraints))
}

/// Returns $\int f \varphi_a\,dx$ for each corner of each cell.
fn cell_moments(problem: &AssemblyProblem<'_>) -> Result<Vec<[f64; 4]>, FemError> {
    let mesh = problem.coefficients.mesh;
    let mut moments = vec![[0.0; 4]; mesh.n_cells()];
    let start = || (problem.coefficients.start_chunk(), ChunkScratch::default(), Vec::new());
    let one = |(chunk, scratch, cells): &mut (_, _, Vec<u32>), (number, out): (usize, &mut [[f64; 4]])| {
        let first = number * CHUNK;
        cells.clear();
        cells.extend((first..first + out.len()).map(|cell| cell as u32));
        problem.coefficients.eval(chunk, cells, State::default(), scratch)?;
        for (lane, (cell, out)) in cells.iter().zip(out).enumerate() {
            let mut corners = [[0.0; 3]; 4];
            let nodes = mesh.cell(*cell as usize);
            corners.iter_mut().zip(nodes).for_each(|(to, &node)| *to = mesh.points[node as usize]);
            let measure = Affine::simplex(&corners[..nodes.len()]).measure;
            (0..nodes.len()).for_each(|a| out[a] = measure * chunk.load[a][lane]);
        }
        Ok::<(), FemError>(())
    };
    moments.par_chunks_mut(CHUNK).enumerate().try_for_each_init(start, one)?;
    Ok(moments)
}

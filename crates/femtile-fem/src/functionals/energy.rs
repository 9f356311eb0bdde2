use femtile_element::Affine;

use super::{check_length, corners, sum_blocks};
use crate::FemError;
use crate::forms::{
    CHUNK, CellCoefficients, ChunkCoefficients, ChunkScratch, Form, State, VOIGT, mass_entries,
};

/// Returns $\int_\Omega \sigma\nabla u\cdot\nabla u + \lambda u^2$, without a factor ½ and without boundary terms.
///
/// Coefficients are averaged as in assembly, so that with constant ones this is $u^\mathsf{T} A u$.
///
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per node; a coefficient out of its range.
pub fn energy(form: &Form<'_>, u: &[f64]) -> Result<f64, FemError> {
    check_length(form.mesh, u)?;
    let coefficients = CellCoefficients::of_any_sign(form)?;
    sum_blocks(form.mesh, |cells| {
        let (mut chunk, mut scratch) = (coefficients.start_chunk(), ChunkScratch::default());
        let cells: Vec<u32> = cells.collect();
        let mut sum = 0.0;
        for cells in cells.chunks(CHUNK) {
            coefficients.eval(&mut chunk, cells, State::of(u), &mut scratch)?;
            sum += cells
                .iter()
                .enumerate()
                .map(|(lane, &cell)| cell_energy(form, u, &chunk, lane, cell))
                .sum::<f64>();
        }
        Ok(sum)
    })
}

fn cell_energy(form: &Form<'_>, u: &[f64], c: &ChunkCoefficients, lane: usize, cell: u32) -> f64 {
    let (points, values, n) = corners(form.mesh, u, cell);
    let map = Affine::simplex(&points[..n]);
    let g = map.gradient(&values);
    let mut density = if c.sigma_is_scalar {
        c.sigma[0][lane] * (g[0] * g[0] + g[1] * g[1] + g[2] * g[2])
    } else {
        let times = |(i, j)| if i == j { g[i] * g[j] } else { 2.0 * g[i] * g[j] };
        VOIGT.into_iter().enumerate().map(|(entry, pair)| c.sigma[entry][lane] * times(pair)).sum()
    };
    for (moment, (a, b)) in mass_entries(form.mesh.dimension()) {
        let share = if a == b { 1.0 } else { 2.0 };
        density += share * c.mass[moment][lane] * values[a] * values[b];
    }
    map.measure * density
}

//! Checks that coefficients are finite and the diffusion tensor is positive semidefinite.

use super::line::{Sampler, Scratch};
use super::operator::Operator;
use crate::TimeError;

/// Relative rounding tolerance of a determinant.
const ROUNDING: f64 = 1e-12;

/// Returns an error for the first node with a non-finite coefficient or an indefinite D.
pub(crate) fn check(operator: &Operator) -> Result<(), TimeError> {
    let (grid, d) = (&operator.grid, operator.grid.dimension());
    let mut steady = vec![("reaction", &operator.reaction)];
    steady.extend(operator.convection[..d].iter().map(|c| ("convection", c)));
    steady.extend(operator.diffusion[..d].iter().map(|c| ("diffusion", c)));
    steady.extend(operator.mixed.iter().map(|mixed| ("diffusion", &mixed.coefficient)));
    let all_constant = steady.iter().all(|(_, coefficient)| coefficient.constant.is_some());
    let [nx, ny, nz] = grid.nodes();
    let n_lines = if all_constant { 1 } else { ny * nz };
    let samplers: Vec<Sampler> = steady.iter().map(|(_, coefficient)| Sampler::new(coefficient)).collect();
    let mut values = vec![vec![0.0; nx]; samplers.len()];
    let mut scratch = Scratch::default();
    for line in 0..n_lines {
        for ((sampler, values), (field, _)) in samplers.iter().zip(&mut values).zip(&steady) {
            sampler.line(grid, grid.node(0, line, 0), values, &mut scratch);
            if let Some(i) = values.iter().position(|value| !value.is_finite()) {
                let (point, value) = (grid.point(grid.node(0, line, i)), values[i]);
                return Err(TimeError::Coefficient {
                    field,
                    point,
                    value,
                    message: "it has to be a finite number",
                });
            }
        }
        for i in 0..nx {
            if let Some((value, message)) = indefinite(operator, &values[1 + d..], i) {
                let point = grid.point(grid.node(0, line, i));
                return Err(TimeError::Coefficient { field: "diffusion", point, value, message });
            }
        }
    }
    Ok(())
}

/// Returns the first negative principal minor; `values` are the diagonal of D, then its off-diagonal entries.
fn indefinite(operator: &Operator, values: &[Vec<f64>], i: usize) -> Option<(f64, &'static str)> {
    let d = operator.grid.dimension();
    let mut tensor = [[0.0; 3]; 3];
    for axis in 0..d {
        tensor[axis][axis] = values[axis][i];
    }
    for (mixed, values) in operator.mixed.iter().zip(&values[d..]) {
        let [a, b] = mixed.axes;
        (tensor[a][b], tensor[b][a]) = (values[i], values[i]);
    }
    if let Some(entry) = (0..d).map(|a| tensor[a][a]).find(|&entry| entry < 0.0) {
        return Some((entry, "a diagonal entry may not be negative"));
    }
    for mixed in &operator.mixed {
        let [a, b] = mixed.axes;
        let product = tensor[a][a] * tensor[b][b];
        let minor = product - tensor[a][b] * tensor[a][b];
        if minor < -ROUNDING * product.max(tensor[a][b] * tensor[a][b]) {
            return Some((
                tensor[a][b],
                "an entry off the diagonal may not exceed the mean of the diagonal ones",
            ));
        }
    }
    let [[xx, xy, xz], [_, yy, yz], [.., zz]] = tensor;
    let size = xx * yy * zz;
    let determinant = size + 2.0 * xy * yz * xz - xx * yz * yz - yy * xz * xz - zz * xy * xy;
    let negative = d == 3 && determinant < -ROUNDING * size;
    negative.then_some((determinant, "the determinant of the tensor may not be negative"))
}

//! The contrast of σ, which may hide eigenvectors from a solve.

use femtile_device::parallel;
use femtile_linalg::LinalgError;

use crate::discretization::Discretization;

/// Ratio of the eigenvalues of σ over the mesh from which solves are verified.
const HIGH: f64 = 1e6;

/// Cells in which a formula is evaluated at most.
const SAMPLES: usize = 1 << 16;

/// Cells that a thread visits at least.
const PIECE: usize = 1 << 14;

/// Returns whether the eigenvalues of σ differ much, in a cell or from cell to cell. Collective if the mesh is distributed, with
/// the same result on all ranks.
pub(crate) fn is_high(problem: &Discretization<'_>) -> Result<bool, LinalgError> {
    let (mesh, sigma) = (problem.mesh, &problem.sigma);
    if sigma.as_constant().is_some() {
        return Ok(false);
    }
    let d = mesh.dimension();
    let step = if sigma.is_constant_by_cell() { 1 } else { mesh.n_cells().div_ceil(SAMPLES).max(1) };
    let n_visited = mesh.n_cells().div_ceil(step);
    let pieces = parallel::map(n_visited.div_ceil(PIECE), 1, |piece| {
        let visited = PIECE * piece..n_visited.min(PIECE * (piece + 1));
        visited.fold((f64::INFINITY, 0.0_f64), |(least, most), visited| {
            let cell = step * visited;
            let tag = mesh.cell_tags.get(cell).copied().unwrap_or(0);
            let [lower, upper] = eigenvalues(sigma.tensor_at(cell, tag, mesh.middle(cell)), d);
            (least.min(lower), most.max(upper))
        })
    });
    let (least, most) =
        pieces.into_iter().fold((f64::INFINITY, 0.0_f64), |all, own| (all.0.min(own.0), all.1.max(own.1)));
    match &problem.divided {
        None => Ok(most > HIGH * least),
        Some(divided) => {
            let of_all = divided.comm.all_gather(&[least, most])?;
            let least = of_all.iter().fold(f64::INFINITY, |least, own| least.min(own[0]));
            let most = of_all.iter().fold(0.0, |most: f64, own| most.max(own[1]));
            Ok(most > HIGH * least)
        }
    }
}

/// Returns bounds of the eigenvalues of a positive tensor, within a factor of nine.
fn eigenvalues(tensor: [[f64; 3]; 3], d: usize) -> [f64; 2] {
    let [[a, b, c], [_, e, f], [_, _, g]] = tensor;
    let (trace, determinant) = match d {
        1 => return [a, a],
        2 => (a + e, a * e - b * b),
        _ => (a + e + g, a * (e * g - f * f) - b * (b * g - f * c) + c * (b * f - e * c)),
    };
    let lower = determinant / (trace / (d - 1) as f64).powi(d as i32 - 1);
    [lower, trace]
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{BoxConfig, SquareConfig, box_mesh, square};

    use crate::{Entry, Poisson, Value};

    #[test]
    fn contrast_is_that_of_eigenvalues_within_and_between_cells() {
        let plane = square(&SquareConfig::default()).unwrap();
        let solid = box_mesh(&BoxConfig { cells: [2; 3], ..BoxConfig::default() }).unwrap();
        let is_high = |mesh, sigma: Value| {
            let problem = Poisson::new(mesh).sigma(sigma).source(1.0).dirichlet("all", 0.0).unwrap();
            super::is_high(&problem.discretize().unwrap()).unwrap()
        };
        let tensor = |a: f64, b: f64, c: f64| {
            let entry = Entry::Number;
            Value::Tensor(vec![vec![entry(a), entry(b)], vec![entry(b), entry(c)]])
        };
        assert!(!is_high(&plane, 1e12.into()));
        assert!(is_high(&plane, tensor(1e-4, 0.0, 1e4)));
        assert!(is_high(&plane, tensor(1.0, 1.0 - 1e-8, 1.0)));
        assert!(!is_high(&plane, tensor(1.0, 0.5, 100.0)));
        for mesh in [&plane, &solid] {
            assert!(is_high(mesh, "if(x < 0.3, 1e8, 1)".into()));
            assert!(!is_high(mesh, "if(x < 0.3, 1e4, 1)".into()));
        }
    }
}

//! The drift of linearizations, $\int \sigma_u\,\delta\,\nabla u\cdot\nabla v$, cell by cell.

use femtile_element::Affine;
use femtile_mesh::Mesh;

use crate::forms::{ChunkCoefficients, VOIGT};

/// The drift of one cell.
#[derive(Debug, Clone, Copy, Default)]
pub struct CellDrift {
    /// $D_{ab} = |T|\,\nabla\varphi_a\cdot\overline{\sigma_u\varphi_b}\nabla u$.
    pub matrix: [[f64; 4]; 4],
    /// $D u$.
    pub load: [f64; 4],
}

/// Computes the drift of the cells of a chunk with `N` corners each.
pub fn write_drift<const N: usize>(
    out: &mut Vec<CellDrift>,
    mesh: &Mesh,
    cells: &[[u32; N]],
    coefficients: &ChunkCoefficients,
    unknown: &[f64],
) {
    out.clear();
    out.extend(cells.iter().enumerate().map(|(lane, nodes)| {
        let map = Affine::simplex(&nodes.map(|node| mesh.points[node as usize]));
        let mut u = [0.0; 4];
        u.iter_mut().zip(nodes).for_each(|(u, &node)| *u = unknown[node as usize]);
        let gradient = map.gradient(&u);
        let mut drift = CellDrift::default();
        for b in 0..N {
            let flux = times_moment(coefficients, (b, lane), gradient);
            for a in 0..N {
                let [x, y, z] = map.gradients[a];
                let entry = map.measure * (x * flux[0] + y * flux[1] + z * flux[2]);
                drift.matrix[a][b] = entry;
                drift.load[a] += entry * u[b];
            }
        }
        drift
    }));
}

/// Returns $\overline{\sigma_u\varphi_b} g$.
fn times_moment(c: &ChunkCoefficients, (b, lane): (usize, usize), g: [f64; 3]) -> [f64; 3] {
    if let [scalar] = &c.drift[..] {
        return g.map(|g| scalar[b][lane] * g);
    }
    let mut flux = [0.0; 3];
    for (moments, (i, j)) in c.drift.iter().zip(VOIGT) {
        flux[i] += moments[b][lane] * g[j];
        if i != j {
            flux[j] += moments[b][lane] * g[i];
        }
    }
    flux
}

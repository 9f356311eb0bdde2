//! Assembly by plain loops: the oracle.

use std::collections::BTreeMap;
use std::sync::Arc;

use femtile_device::{Buffer, BufferMut, Reference, Scalar};
use femtile_element::{Affine, P1};
use femtile_mesh::Mesh;
use femtile_sparse::EntryPositions;
use femtile_sparse::csr::{Csr, HostOffsets};

use super::kernels::{Assembled, AssemblyKernels, AssemblyProblem, DeviceState};
use super::sparsity::Sparsity;
use crate::FemError;
use crate::forms::{ChunkCoefficients, ChunkScratch, FacetTerm, State, VOIGT, add_loads, mass_entries};

/// Rows as maps from column to value.
type Rows = Vec<BTreeMap<u32, f64>>;

impl<T: Scalar> AssemblyKernels<T> for Reference {
    type RefillData = RefillData;

    fn prepare_refill(
        &self,
        _: &Mesh,
        _: &Arc<Sparsity>,
        places: EntryPositions,
    ) -> Result<RefillData, FemError> {
        Ok(RefillData { places, rhs: Vec::new() })
    }

    fn queue<V: Scalar>(
        &self,
        refill_data: &mut RefillData,
        (problem, state): (&AssemblyProblem<'_>, DeviceState<'_, Self>),
        values: &mut BufferMut<'_, V, Self>,
        rhs: &mut Buffer<T, Self>,
    ) -> Result<(), FemError> {
        let Assembled { matrix, rhs: sums } = assemble_at::<f64>(self, problem, state.on_host())?;
        for row in 0..matrix.n_rows() {
            let entries: BTreeMap<u32, f64> = matrix.row(row).map(|(j, value)| (j as u32, value)).collect();
            let mut columns: Vec<u32> = entries.keys().copied().collect();
            refill_data.places.order(&mut columns);
            for (k, column) in columns.iter().enumerate() {
                values.as_mut_slice()[refill_data.places.place(row, k)] = V::from_f64(entries[column]);
            }
        }
        rhs.as_mut_slice().iter_mut().zip(&sums).for_each(|(out, &b)| *out = T::from_f64(b));
        refill_data.rhs = sums;
        Ok(())
    }

    fn refill_bytes(&self, _: &RefillData) -> usize {
        0
    }

    fn unrounded(&self, refill_data: &RefillData, _: &Buffer<T, Self>) -> Result<Vec<f64>, FemError> {
        Ok(refill_data.rhs.clone())
    }

    fn assemble_system(&self, problem: &AssemblyProblem<'_>) -> Result<Assembled<T, Self>, FemError> {
        assemble_at(self, problem, State::default())
    }
}

fn assemble_at<T: Scalar>(
    device: &Reference,
    problem: &AssemblyProblem<'_>,
    state: State<'_>,
) -> Result<Assembled<T, Reference>, FemError> {
    let mesh = problem.coefficients.mesh;
    let mut rows: Rows = vec![BTreeMap::new(); mesh.n_nodes()];
    let mut rhs = vec![0.0; mesh.n_nodes()];
    add_cells(problem, state, &mut rows, &mut rhs)?;
    if let Some(node) = rows.iter().position(BTreeMap::is_empty) {
        return Err(FemError::OrphanNode { node, point: mesh.points[node] });
    }
    add_facets(problem, &mut rows, &mut rhs);
    eliminate(problem, &mut rows, &mut rhs);
    let offsets = HostOffsets::from_row_lengths(rows.iter().map(BTreeMap::len));
    let columns = rows.iter().flat_map(|row| row.keys().copied()).collect();
    let values = rows.iter().flat_map(|row| row.values().map(|&value| T::from_f64(value))).collect();
    let matrix = Csr::from_parts(device, mesh.n_nodes(), offsets, columns, values)?;
    Ok(Assembled { matrix, rhs })
}

/// Places of the values, and the last right side.
pub struct RefillData {
    places: EntryPositions,
    /// Before rounding.
    rhs: Vec<f64>,
}

fn add_cells(
    problem: &AssemblyProblem<'_>,
    state: State<'_>,
    rows: &mut Rows,
    rhs: &mut [f64],
) -> Result<(), FemError> {
    let mesh = problem.coefficients.mesh;
    let element = P1 { dimension: mesh.dimension() };
    let (mut chunk, mut scratch) = (problem.coefficients.start_chunk(), ChunkScratch::default());
    for cell in 0..mesh.n_cells() {
        problem.coefficients.eval(&mut chunk, &[cell as u32], state, &mut scratch)?;
        let nodes = mesh.cell(cell);
        let corners: Vec<[f64; 3]> = nodes.iter().map(|&node| mesh.points[node as usize]).collect();
        let map = Affine::simplex(&corners);
        if !super::measure_is_sound(map.measure) {
            return Err(super::degenerate(mesh, cell, map.measure));
        }
        let mut sigma = [[0.0; 3]; 3];
        for (entry, (i, j)) in VOIGT.into_iter().enumerate() {
            if chunk.sigma_is_scalar {
                (0..3).for_each(|i| sigma[i][i] = chunk.sigma[0][0]);
            } else {
                (sigma[i][j], sigma[j][i]) = (chunk.sigma[entry][0], chunk.sigma[entry][0]);
            }
        }
        let mut mass = [[0.0; 4]; 4];
        for (moment, (a, b)) in mass_entries(mesh.dimension()) {
            (mass[a][b], mass[b][a]) = (chunk.mass[moment][0], chunk.mass[moment][0]);
        }
        for a in 0..element.n_shapes() {
            for b in 0..element.n_shapes() {
                let mut stiffness = 0.0;
                for i in 0..3 {
                    for j in 0..3 {
                        stiffness += map.gradients[a][i] * sigma[i][j] * map.gradients[b][j];
                    }
                }
                *rows[nodes[a] as usize].entry(nodes[b]).or_insert(0.0) +=
                    map.measure * (stiffness + mass[a][b]);
            }
            rhs[nodes[a] as usize] += map.measure * chunk.load[a][0];
        }
        if problem.coefficients.has_drift() {
            add_drift(nodes, &map, &chunk, state, rows, rhs);
        }
    }
    Ok(())
}

/// Adds $D_{ab} = |T| \nabla\varphi_a\cdot\overline{\sigma_u\varphi_b}\nabla u$ and $D u$.
fn add_drift(
    nodes: &[u32],
    map: &Affine,
    chunk: &ChunkCoefficients,
    state: State<'_>,
    rows: &mut Rows,
    rhs: &mut [f64],
) {
    let mut u = [0.0; 4];
    u.iter_mut().zip(nodes).for_each(|(u, &node)| *u = state.unknown[node as usize]);
    let slope = map.gradient(&u);
    for (b, &column) in nodes.iter().enumerate() {
        let mut flux = [0.0; 3];
        for i in 0..3 {
            for j in 0..3 {
                let entry = match chunk.drift.len() {
                    1 if i == j => chunk.drift[0][b][0],
                    1 => 0.0,
                    _ => {
                        let is_pair = |&pair: &(usize, usize)| pair == (i, j) || pair == (j, i);
                        chunk.drift[VOIGT.iter().position(is_pair).unwrap_or(0)][b][0]
                    }
                };
                flux[i] += entry * slope[j];
            }
        }
        for (a, &row) in nodes.iter().enumerate() {
            let entry = map.measure * (0..3).map(|i| map.gradients[a][i] * flux[i]).sum::<f64>();
            *rows[row as usize].entry(column).or_insert(0.0) += entry;
            rhs[row as usize] += entry * u[b];
        }
    }
}

fn add_facets(problem: &AssemblyProblem<'_>, rows: &mut Rows, rhs: &mut [f64]) {
    add_loads(rhs, &problem.facet_terms);
    for (row, column, value) in problem.facet_terms.iter().flat_map(FacetTerm::entries) {
        *rows[row as usize].entry(column).or_insert(0.0) += value;
    }
}

fn eliminate(problem: &AssemblyProblem<'_>, rows: &mut Rows, rhs: &mut [f64]) {
    for (i, row) in rows.iter_mut().enumerate() {
        let constrained = problem.constraints.contains(i);
        for (&j, value) in row.iter_mut() {
            let given = problem.constraints.value(j as usize);
            if constrained {
                *value = if i == j as usize { 1.0 } else { 0.0 };
            } else if let Some(given) = given {
                rhs[i] -= *value * given;
                *value = 0.0;
            }
        }
        if constrained {
            rhs[i] = 0.0;
        }
    }
}

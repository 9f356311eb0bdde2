//! Integrals by one point a cell as sparse matrices.

use femtile::device::Buffer;
use femtile::device::parallel;
use femtile::element::Affine;
use femtile::linalg::sparse::csr::HostOffsets;
use femtile::linalg::sparse::{Csr, Places, ProductMatrix};
use femtile::{Mesh, SolverConfig};

use crate::monodomain::MANY;
use crate::{CardiacDevice, CardiacError};

/// Incidences of cells at the nodes of a mesh, by ascending node and then cell.
struct Incidence {
    /// Offset of each node.
    offsets: Vec<usize>,
    cells: Vec<u32>,
}

impl Incidence {
    fn new(mesh: &Mesh) -> Self {
        let mut offsets = vec![0; mesh.n_nodes() + 1];
        mesh.cells.iter().for_each(|&node| offsets[node as usize + 1] += 1);
        for node in 0..mesh.n_nodes() {
            offsets[node + 1] += offsets[node];
        }
        let (mut cells, mut next) = (vec![0; mesh.cells.len()], offsets.clone());
        for (entry, &node) in mesh.cells.iter().enumerate() {
            let place = &mut next[node as usize];
            cells[*place] = (entry / mesh.kind.n_nodes()) as u32;
            *place += 1;
        }
        Self { offsets, cells }
    }

    fn cells(&self, node: usize) -> &[u32] {
        &self.cells[self.offsets[node]..self.offsets[node + 1]]
    }
}

/// The sparse matrices of one-point integration on a mesh of simplices with m corners.
///
/// With the measure $|T|$ of a cell: $P_{ci} = 1/m$ interpolates to midpoints, $G_{ic} = |T_c|/m$ integrates against shape
/// functions, $\int f N_i = (G f)_i$, and $S_{(ij)c} = |T_c|/m^2$ sums the values of a matrix by its non-zeros,
/// $\int f N_i N_j = (S f)_{(ij)}$.
///
/// # Source
/// `[wong2015]`, section 4: assembly as a product of a sparse matrix and the vector of values at the points.
pub(super) struct Sums<D: CardiacDevice> {
    pub interpolate: ProductMatrix<f64, D>,
    pub integrate: ProductMatrix<f64, D>,
    /// Rows in the order of the stored values of the matrix.
    pub assemble: ProductMatrix<f64, D>,
}

impl<D: CardiacDevice> Sums<D> {
    /// Makes the matrices in the format of the settings; the matrix that is assembled has `n_values` stored values at
    /// `places`, and row i the columns `columns(i)`, ascending.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new<'a>(
        (device, config): (&D, &SolverConfig),
        mesh: &Mesh,
        (places, n_values): (&Places, usize),
        columns: impl Fn(usize) -> &'a [u32] + Sync,
    ) -> Result<Self, CardiacError> {
        let (n_nodes, n_cells, m) = (mesh.n_nodes(), mesh.n_cells(), mesh.kind.n_nodes());
        let share = 1.0 / m as f64;
        let measure = |cell: usize| {
            let corners: Vec<[f64; 3]> = mesh.cell(cell).iter().map(|&i| mesh.points[i as usize]).collect();
            Affine::simplex(&corners).measure
        };
        let measures = parallel::map(n_cells, 1024, measure);
        let incidence = Incidence::new(mesh);
        let interpolate = Csr::from_parts(
            device,
            n_nodes,
            HostOffsets::from_row_lengths((0..n_cells).map(|_| m)),
            (0..n_cells).flat_map(|cell| ascending(mesh.cell(cell))).collect(),
            vec![share; mesh.cells.len()],
        )?;
        let lengths = (0..n_nodes).map(|node| incidence.cells(node).len());
        let integrate = Csr::from_parts(
            device,
            n_cells,
            HostOffsets::from_row_lengths(lengths),
            incidence.cells.clone(),
            incidence.cells.iter().map(|&cell| share * measures[cell as usize]).collect(),
        )?;
        // The cells of each stored value: those that both nodes share.
        let of_row = |node: usize| -> Vec<(usize, Vec<u32>)> {
            let mut ordered = columns(node).to_vec();
            places.order(&mut ordered);
            let shared = |column: u32| {
                let has = |cell: &u32| mesh.cell(*cell as usize).contains(&column);
                incidence.cells(node).iter().copied().filter(has).collect()
            };
            ordered
                .into_iter()
                .enumerate()
                .map(|(k, column)| (places.place(node, k), shared(column)))
                .collect()
        };
        let mut of_value: Vec<Vec<u32>> = vec![Vec::new(); n_values];
        for (place, cells) in parallel::map(n_nodes, 256, of_row).into_iter().flatten() {
            of_value[place] = cells;
        }
        let lengths = HostOffsets::from_row_lengths(of_value.iter().map(Vec::len));
        let cells: Vec<u32> = of_value.into_iter().flatten().collect();
        let values = cells.iter().map(|&cell| share * share * measures[cell as usize]).collect();
        let assemble = Csr::from_parts(device, n_cells, lengths, cells, values)?;
        let formatted = |matrix| -> Result<ProductMatrix<f64, D>, CardiacError> {
            Ok(ProductMatrix::new(matrix, config.format, MANY, &config.remembered)?.0)
        };
        Ok(Self {
            interpolate: formatted(interpolate)?,
            integrate: formatted(integrate)?,
            assemble: formatted(assemble)?,
        })
    }
}

fn ascending(nodes: &[u32]) -> Vec<u32> {
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    nodes
}

/// Returns a vector with the same number at all entries.
pub(super) fn filled<D: femtile::linalg::vector::VectorKernels<f64>>(
    device: &D,
    n: usize,
    value: f64,
) -> Result<Buffer<f64, D>, CardiacError> {
    let mut buffer = Buffer::zeros(device, n)?;
    device.fill(&mut buffer, value)?;
    Ok(buffer)
}

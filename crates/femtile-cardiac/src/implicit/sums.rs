//! Integrals by one point a cell as sparse matrices.

use femtile::device::{Buffer, Reference, parallel};
use femtile::element::Affine;
use femtile::linalg::sparse::csr::HostOffsets;
use femtile::linalg::sparse::{Csr, ProductMatrix, StoredMatrix};
use femtile::{Mesh, SolverConfig};

use crate::monodomain::MANY;
use crate::{CardiacDevice, CardiacError};

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
    /// Makes the matrices in the format of the settings; the matrix that is assembled has the rows of `on_host`, stored in
    /// another layout.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(
        (device, config): (&D, &SolverConfig),
        mesh: &Mesh,
        on_host: &Csr<f64, Reference>,
        matrix: &ProductMatrix<f64, D>,
    ) -> Result<Self, CardiacError> {
        let (n_nodes, n_cells, m) = (mesh.n_nodes(), mesh.n_cells(), mesh.kind.n_nodes());
        let share = 1.0 / m as f64;
        let measure = |cell: usize| {
            let corners: Vec<[f64; 3]> = mesh.cell(cell).iter().map(|&i| mesh.points[i as usize]).collect();
            Affine::simplex(&corners).measure
        };
        let measures = parallel::map(n_cells, 1024, measure);
        let corners = (0..n_cells).flat_map(|cell| ascending(mesh.cell(cell))).collect();
        let lengths = HostOffsets::from_row_lengths((0..n_cells).map(|_| m));
        let interpolate =
            Csr::from_parts(&Reference, n_nodes, lengths, corners, vec![share; mesh.cells.len()])?;
        // The cells at each node, ascending.
        let around = interpolate.transpose()?;
        let of_cell = |&cell: &u32| share * measures[cell as usize];
        let integrals = around.columns().as_slice().iter().map(of_cell).collect();
        let integrate = around.with_values(Buffer::from_vec(&Reference, integrals)?)?;
        // The cells of each stored value: those that both nodes share.
        let places = matrix.entry_positions()?;
        let of_row = |node: usize| -> Vec<(usize, Vec<u32>)> {
            let mut ordered: Vec<u32> = on_host.row(node).map(|(column, _)| column as u32).collect();
            places.order(&mut ordered);
            let shared = |column: u32| {
                let cells = around.row(node).map(|(cell, _)| cell);
                cells.filter(|&cell| mesh.cell(cell).contains(&column)).map(|cell| cell as u32).collect()
            };
            ordered
                .into_iter()
                .enumerate()
                .map(|(k, column)| (places.place(node, k), shared(column)))
                .collect()
        };
        let mut of_value: Vec<Vec<u32>> = vec![Vec::new(); matrix.n_stored()];
        for (place, cells) in parallel::map(n_nodes, 256, of_row).into_iter().flatten() {
            of_value[place] = cells;
        }
        let lengths = HostOffsets::from_row_lengths(of_value.iter().map(Vec::len));
        let cells: Vec<u32> = of_value.into_iter().flatten().collect();
        let values = cells.iter().map(|&cell| share * share * measures[cell as usize]).collect();
        let assemble = Csr::from_parts(&Reference, n_cells, lengths, cells, values)?;
        let formatted = |matrix: &Csr<f64, Reference>| -> Result<ProductMatrix<f64, D>, CardiacError> {
            Ok(D::product_matrix(matrix.copy_to(device)?, config.format, MANY, &config.remembered)?.0)
        };
        Ok(Self {
            interpolate: formatted(&interpolate)?,
            integrate: formatted(&integrate)?,
            assemble: formatted(&assemble)?,
        })
    }
}

fn ascending(nodes: &[u32]) -> Vec<u32> {
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    nodes
}

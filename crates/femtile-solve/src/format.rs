//! The format of an assembled matrix in the products of a solve.

use femtile_device::Device;
use femtile_linalg::sparse::choice::Machine;
use femtile_linalg::sparse::csr::Csr;
use femtile_linalg::sparse::ell_warp::IndexKind;
use femtile_linalg::sparse::{EllWarp, EllWarpConfig, Format};
use femtile_linalg::{LinalgError, LinearOperator};

use crate::method::SolveDevice;
use crate::{MatrixFormat, PreconditionerConfig};

/// Stored entries for each non-zero up to which slices of unsorted rows, and of rows sorted within windows, are taken.
const PADDING: f64 = 1.12;
/// Rows of a window where rows are sorted by length.
const WINDOW: usize = 256;
/// Rows from which a conversion is worth it: smaller matrices stay in the cache whatever their format.
const LEAST_ROWS: [usize; 2] = [200_000, 20_000];

/// An operator with the name of its format.
pub(crate) type Formatted<D> = (Box<dyn LinearOperator<f64, D>>, String);

/// Puts a matrix into the format of the settings, where it lies.
///
/// By itself it takes ELL-WARP where solves take many products, which is with a diagonal as preconditioner, where the
/// matrix is large and its rows fill slices.
///
/// # Cost
/// A conversion moves the matrix once, about three products on a GPU; a second one where rows have to be sorted.
/// # Errors
/// What the device reports.
pub(crate) fn formatted<D: SolveDevice>(
    matrix: Csr<f64, D>,
    format: MatrixFormat,
    preconditioner: &PreconditionerConfig,
) -> Result<Formatted<D>, LinalgError> {
    let device = matrix.values().device().clone();
    let (lanes, least_rows) = match device.machine() {
        Machine::Gpu { .. } => (64, LEAST_ROWS[1]),
        Machine::Cpu { lanes } => (lanes, LEAST_ROWS[0]),
    };
    let is_wanted = match format {
        MatrixFormat::Csr => false,
        MatrixFormat::EllWarp => true,
        MatrixFormat::Auto => preconditioner.is_diagonal() && matrix.n_rows() >= least_rows,
    };
    if !is_wanted {
        return Ok((Box::new(matrix), Format::Csr.name()));
    }
    let plain = EllWarpConfig { indices: IndexKind::Delta, ..EllWarpConfig::new(lanes) };
    let mut found = EllWarp::<f64, D>::convert(&matrix, &plain)?;
    if !is_full(&found) {
        drop(found);
        found = EllWarp::convert(&matrix, &EllWarpConfig { window: WINDOW, ..plain })?;
    }
    if format == MatrixFormat::Auto && !is_full(&found) {
        return Ok((Box::new(matrix), Format::Csr.name()));
    }
    let name = Format::EllWarp(*found.config()).name();
    Ok((Box::new(found), name))
}

fn is_full<D: Device>(matrix: &EllWarp<f64, D>) -> bool {
    matrix.n_stored() as f64 <= PADDING * matrix.n_nonzeros() as f64
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{BoxConfig, box_mesh};

    use crate::{MatrixFormat, Poisson, PreconditionerConfig, Solution, SolverConfig};

    fn solved(mesh: &femtile_mesh::Mesh, format: MatrixFormat) -> Solution<'_> {
        let config =
            SolverConfig { format, preconditioner: PreconditionerConfig::Jacobi, ..SolverConfig::default() };
        let problem = Poisson::new(mesh).sigma("1 + x").source("y").dirichlet("xmin", 1.0).unwrap();
        problem.solve(&config).unwrap()
    }

    #[test]
    fn a_solution_does_not_depend_on_the_format() {
        for cells in [[1, 1, 1], [7, 5, 3], [11, 13, 12]] {
            let mesh = box_mesh(&BoxConfig { cells, ..BoxConfig::default() }).unwrap();
            let [rows, slices] =
                [MatrixFormat::Csr, MatrixFormat::EllWarp].map(|format| solved(&mesh, format));
            assert_eq!(rows.operator(), "CSR");
            assert!(slices.operator().starts_with("K1"), "{}", slices.operator());
            assert!(slices.citations().contains(&"wong2015") && !rows.citations().contains(&"wong2015"));
            for (a, b) in rows.values().iter().zip(slices.values()) {
                assert!((a - b).abs() <= 1e-9 * rows.max().abs(), "{a} and {b}");
            }
        }
    }

    #[test]
    fn small_matrices_stay_in_compressed_rows() {
        let mesh = box_mesh(&BoxConfig { cells: [8, 8, 8], ..BoxConfig::default() }).unwrap();
        assert_eq!(solved(&mesh, MatrixFormat::Auto).operator(), "CSR");
    }
}

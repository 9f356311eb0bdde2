//! The format of an assembled matrix in the products of a solve.

use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::csr::Csr;
use femtile_sparse::{Format, ProductMatrix, SparseDevice};

use crate::SolverConfig;
use crate::auto::Solves;
use crate::method::SolveDevice;
use crate::preconditioner::Level;

/// Products of a solve with a diagonal as preconditioner, or of many solves, and of one with multigrid, as far as formats are
/// chosen for them.
const WITH_DIAGONAL: usize = 400;
const WITH_MULTIGRID: usize = 10;

/// An operator with its format and the reason for it.
pub(crate) struct Formatted<D: SolveDevice> {
    pub operator: Box<dyn LinearOperator<f64, D>>,
    pub format: Format,
    pub reason: String,
}

/// Returns the keys of the papers behind the formats of a matrix and of levels of multigrid.
pub(crate) fn citations_of(format: Format, levels: &[Level]) -> Vec<&'static str> {
    let formats = levels.iter().filter_map(|level| level.format).chain([format]);
    if formats.into_iter().any(|format| matches!(format, Format::EllWarp(_))) {
        vec!["wong2015"]
    } else {
        Vec::new()
    }
}

/// Puts a matrix into the format of the settings, as [`formatted`] does, without hiding its kind.
///
/// # Errors
/// Errors of the device.
pub(crate) fn product_matrix<D: SolveDevice>(
    matrix: Csr<f64, D>,
    config: &SolverConfig,
    solves: Solves,
) -> Result<(ProductMatrix<f64, D>, String), LinalgError> {
    D::product_matrix(matrix, config.format, n_products(config, solves), &config.remembered)
}

/// Returns the products with a matrix for which its format is chosen.
fn n_products(config: &SolverConfig, solves: Solves) -> usize {
    match solves {
        Solves::One if !config.preconditioner.is_diagonal() => WITH_MULTIGRID,
        _ => WITH_DIAGONAL,
    }
}

/// Puts a matrix into the format of the settings, where it lies.
///
/// # Cost
/// As [`ProductMatrix::new`].
/// # Errors
/// Errors of the device.
pub(crate) fn formatted<D: SolveDevice>(
    matrix: Csr<f64, D>,
    config: &SolverConfig,
    solves: Solves,
) -> Result<Formatted<D>, LinalgError> {
    let (matrix, reason) = product_matrix(matrix, config, solves)?;
    Ok(Formatted { format: matrix.format(), operator: <D as SparseDevice>::into_operator(matrix), reason })
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{BoxConfig, box_mesh};

    use super::*;
    use crate::{AmgOptions, MatrixFormat, Poisson, PreconditionerConfig, Solution};

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
    fn levels_of_multigrid_have_the_format_of_the_settings() {
        let mesh = box_mesh(&BoxConfig { cells: [11, 13, 12], ..BoxConfig::default() }).unwrap();
        let problem = Poisson::new(&mesh).sigma("1 + x").source("y").dirichlet("xmin", 1.0).unwrap();
        let [rows, slices] = [MatrixFormat::Csr, MatrixFormat::EllWarp].map(|format| {
            let preconditioner = PreconditionerConfig::Amg(AmgOptions::default());
            problem.solve(&SolverConfig { format, preconditioner, ..SolverConfig::default() }).unwrap()
        });
        let is_in_rows = |level: &Level| level.format.map(|format| format == Format::Csr);
        for (solution, expected) in [(&rows, true), (&slices, false)] {
            let (coarsest, smoothed) = solution.levels().split_last().unwrap();
            assert!(!smoothed.is_empty() && coarsest.format.is_none());
            assert!(smoothed.iter().all(|level| is_in_rows(level) == Some(expected)), "{smoothed:?}");
            assert_eq!(solution.citations().contains(&"wong2015"), !expected);
        }
        assert!(rows.outcome().iterations.abs_diff(slices.outcome().iterations) <= 1);
        for (a, b) in rows.values().iter().zip(slices.values()) {
            assert!((a - b).abs() <= 1e-9 * rows.max().abs(), "{a} and {b}");
        }
    }

    #[test]
    fn small_matrices_stay_in_compressed_rows() {
        let mesh = box_mesh(&BoxConfig { cells: [8, 8, 8], ..BoxConfig::default() }).unwrap();
        let small = solved(&mesh, MatrixFormat::Auto);
        assert!(small.format_reason().is_some_and(|reason| reason.starts_with("fewer than")));
        assert_eq!(small.operator(), "CSR");
        assert_eq!(solved(&mesh, MatrixFormat::Csr).format_reason(), Some("asked for"));
    }
}

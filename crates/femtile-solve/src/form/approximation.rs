//! The matrix of which multigrid is made, for a tangent that is not symmetric positive definite.

use femtile_device::Cpu;
use femtile_expression::Shape;
use femtile_form::{Dependence, Form, Integral};
use femtile_linalg::LinalgError;
use femtile_sparse::Triplets;
use femtile_sparse::csr::Csr;

use super::FormProblem;
use super::problem::RESTART;
use crate::device::Choice;
use crate::matrix::Given;
use crate::saddle_point::Approximated;
use crate::{LinearSolver, Method, PreconditionerConfig, SolveError, SolverConfig};

/// The matrix of which multigrid is made, for a tangent A with the blocks $A_{ij}$ of the unknowns.
///
/// A symmetric positive definite tangent is taken as it is. Of others only the blocks $A_{ii}$ are: as they are if convection makes them
/// nonsymmetric, for multigrid by plain aggregation, else their symmetric part. The rows of a block whose diagonal is not positive,
/// such as those of the pressure of a saddle point, get the magnitude of the diagonal of
/// $A_{ii} - \sum_j A_{ij}\,\mathrm{diag}(A_{jj})^{-1} A_{ji}$, a Schur complement: it is spectrally equivalent to the mass matrix by
/// which the Schur complement of the Stokes equations is approximated `[elman2014, ch. 4]`, and has the viscosity of each place.
#[derive(Debug, Clone)]
pub(super) struct Approximation {
    /// Whether conjugate gradients can solve with the tangent.
    pub takes_cg: bool,
    /// Whether the tangent is not symmetric, and not only as its coefficients depend on u.
    is_convective: bool,
    /// Whether the preconditioner is the choice of the library.
    is_auto: bool,
    /// The number of the unknown of each component.
    unknowns: Vec<usize>,
}

impl Approximation {
    pub fn new(problem: &FormProblem<'_>, form: &Form, config: &SolverConfig) -> Self {
        let of = |(number, shape): (usize, Shape)| vec![number; shape.n_entries()];
        let shapes = problem.unknowns().into_iter().map(|(_, shape)| shape).enumerate();
        Self {
            takes_cg: form.takes_conjugate_gradients(),
            is_convective: is_convective(form),
            is_auto: config.preconditioner == PreconditionerConfig::Auto,
            unknowns: shapes.flat_map(of).collect(),
        }
    }

    /// Returns the matrix of multigrid of the settings; none if it is the tangent, as if that were symmetric.
    pub fn of(
        &self,
        matrix: &Csr<f64, Cpu>,
        config: &SolverConfig,
    ) -> Result<Option<Approximated>, LinalgError> {
        if !self.is_needed(config) {
            return Ok(None);
        }
        let are_several = self.unknowns.iter().any(|&unknown| unknown > 0);
        if self.is_convective && !are_several {
            return Ok(Some(Approximated { matrix: None, is_symmetric: false, complement: None }));
        }
        let transposed = matrix.transpose()?;
        Ok(Some(match are_several {
            true => self.within_unknowns([matrix, &transposed])?,
            false => Approximated {
                matrix: Some(matrix.combined(0.5, &transposed, 0.5)?),
                is_symmetric: true,
                complement: None,
            },
        }))
    }

    /// Sets a solver up for a linear form with the transpose of its tangent, or the tangent if that is symmetric. Where multigrid
    /// was the choice of the library and cannot be set up, GMRES takes the diagonal, and a warning says so.
    pub fn solver(
        &self,
        matrix: &Csr<f64, Cpu>,
        given: Given<'_>,
        config: &SolverConfig,
        choice: Option<Choice>,
    ) -> Result<(LinearSolver, Option<String>), SolveError> {
        match LinearSolver::build(matrix, given, config, choice) {
            Err(error) if self.is_auto && is_of_definiteness(&error) => {
                // Restarts prolong the iterations of indefinite matrices most.
                let restart = match config.method {
                    Method::Gmres { restart } => restart.max(RESTART),
                    _ => RESTART,
                };
                let method = Method::Gmres { restart };
                let preconditioner = PreconditionerConfig::Jacobi;
                let config = SolverConfig { method, preconditioner, ..config.clone() };
                let solver = LinearSolver::build(matrix, Given::default(), &config, None)?;
                let warning = format!(
                    "gmres took the diagonal as preconditioner, as multigrid was not to be had: {error}"
                );
                Ok((solver, Some(warning)))
            }
            built => Ok((built?, None)),
        }
    }

    /// Returns whether the preconditioner is multigrid, of a matrix that is not symmetric positive definite.
    pub fn is_needed(&self, config: &SolverConfig) -> bool {
        !self.takes_cg && matches!(config.preconditioner, PreconditionerConfig::Amg(_))
    }

    /// Takes the blocks of the unknowns, with a Schur complement from A and its transpose, which have one pattern.
    fn within_unknowns(&self, [a, transposed]: [&Csr<f64, Cpu>; 2]) -> Result<Approximated, LinalgError> {
        let (n, n_components) = (a.n_rows(), self.unknowns.len());
        let unknown = |row: usize| self.unknowns[row % n_components];
        let own = |row: usize| a.row(row).find(|(column, _)| *column == row).map_or(0.0, |(_, value)| value);
        let diagonal: Vec<f64> = (0..n).map(own).collect();
        let entries = |row: usize| {
            let both = a.row(row).zip(transposed.row(row));
            both.map(|((column, value), (_, mirrored))| (column, value, mirrored))
        };
        let is_own = |row: usize, column: usize| unknown(column) == unknown(row) && diagonal[column] > 0.0;
        let is_symmetric = !self.is_convective
            || (0..n).filter(|&row| diagonal[row] > 0.0).all(|row| {
                let differs = |value: f64, mirrored: f64| (value - mirrored).abs() > ROUNDING * diagonal[row];
                entries(row)
                    .all(|(column, value, mirrored)| !is_own(row, column) || !differs(value, mirrored))
            });
        let (mut blocks, mut complement) = (Triplets::new(n, n), vec![0.0; n]);
        for row in 0..n {
            if diagonal[row] > 0.0 {
                for (column, value, mirrored) in entries(row).filter(|(column, ..)| is_own(row, *column)) {
                    blocks.push(row, column, if is_symmetric { 0.5 * (value + mirrored) } else { value })?;
                }
                continue;
            }
            let others = entries(row)
                .filter(|(column, ..)| unknown(*column) != unknown(row) && diagonal[*column] > 0.0);
            let sum: f64 = others.map(|(column, value, mirrored)| value * mirrored / diagonal[column]).sum();
            complement[row] = if diagonal[row] == sum { 1.0 } else { diagonal[row] - sum };
            blocks.push(row, row, complement[row].abs())?;
        }
        let has_complement = complement.iter().any(|&value| value != 0.0);
        let matrix = Some(blocks.into_csr(a.values().device())?.matrix);
        Ok(Approximated { matrix, is_symmetric, complement: has_complement.then_some(complement) })
    }
}

/// The difference of mirrored entries, relative to the diagonal, up to which a block is symmetric.
const ROUNDING: f64 = 1e-12;

/// Returns whether the tangent of a form is not symmetric by convection: derivatives by the gradient in a source, or by the value in a
/// flux that do not come from coefficients that depend on u.
pub(super) fn is_convective(form: &Form) -> bool {
    let has_convection = |term: &Integral| {
        let class = term.integrand.class();
        class.convection != Dependence::Zero
            || !matches!(class.drift, Dependence::Zero | Dependence::WithState)
    };
    !form.is_symmetric() && form.integrals().iter().any(has_convection)
}

/// Returns whether a matrix is not positive definite enough for multigrid.
pub(super) fn is_of_definiteness(error: &SolveError) -> bool {
    match error {
        SolveError::NotDefinite { .. } | SolveError::Linalg(LinalgError::Diagonal { .. }) => true,
        SolveError::Amg(_) => !error.is_device_trouble(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_unknowns_have_the_diagonal_of_the_schur_complement_where_theirs_is_zero() {
        // Components u, p of two degrees of freedom: A = [[4, 1], [1, 2]] for u, couplings B to p, whose own block has an
        // entry off its diagonal, and −1 on it.
        let cpu = Cpu::new(1).unwrap();
        let mut triplets = Triplets::new(4, 4);
        let mut both = |a: usize, b: usize, value: f64| {
            triplets.push(a, b, value).unwrap();
            if a != b {
                triplets.push(b, a, value).unwrap();
            }
        };
        for (a, b, value) in [
            (0, 0, 4.0),
            (2, 2, 2.0),
            (0, 2, 1.0),
            (0, 1, 6.0),
            (2, 1, 2.0),
            (2, 3, 3.0),
            (1, 3, 7.0),
            (3, 3, -1.0),
        ] {
            both(a, b, value);
        }
        let h = triplets.into_csr(&cpu).unwrap().matrix;
        let made =
            Approximation { takes_cg: false, is_convective: false, is_auto: true, unknowns: vec![0, 1] };
        let Approximated { matrix, complement, .. } = made.within_unknowns([&h, &h]).unwrap();
        let matrix = matrix.unwrap();
        assert_eq!(complement, Some(vec![0.0, -11.0, 0.0, -5.5]));
        let rows: Vec<Vec<(usize, f64)>> = (0..4).map(|row| matrix.row(row).collect()).collect();
        assert_eq!(rows[0], [(0, 4.0), (2, 1.0)]);
        assert_eq!(rows[1], [(1, 36.0 / 4.0 + 4.0 / 2.0)]);
        assert_eq!(rows[2], [(0, 1.0), (2, 2.0)]);
        assert_eq!(rows[3], [(3, 9.0 / 2.0 + 1.0)]);
    }
}

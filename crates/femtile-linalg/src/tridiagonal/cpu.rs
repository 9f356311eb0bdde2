use femtile_device::{Buffer, Cpu, Scalar};

use super::reference::{refuse_pivoted_periodic, solve_lines};
use super::{Algorithm, Bands, Problem, TridiagonalKernels, Work};
use crate::LinalgError;

impl<T: Scalar> TridiagonalKernels<T> for Cpu {
    fn tridiagonal_choice(&self, problem: &Problem) -> Result<Algorithm, LinalgError> {
        refuse_pivoted_periodic(problem)?;
        match problem.algorithm {
            Algorithm::Auto | Algorithm::Thomas => Ok(Algorithm::Thomas),
            other => Err(LinalgError::Setting {
                field: "algorithm",
                message: format!("a CPU has `thomas` alone, not `{other}`"),
            }),
        }
    }

    fn tridiagonal_solve(
        &self,
        problem: &Problem,
        u: &mut Buffer<T, Self>,
        bands: Bands<'_, T, Self>,
        d: Option<&Buffer<T, Self>>,
        work: &mut Work<T, Self>,
    ) -> Result<(), LinalgError> {
        solve_lines(problem, u, bands, d, work);
        Ok(())
    }
}

//! Linear systems that borrow neither the mesh nor the problem that they were made from.

use std::fmt;

use femtile_device::{Buffer, Cpu};
use femtile_fem::{Constraints, FemError};
use femtile_linalg::{LinalgError, LinearOperator};

use crate::auto::{Circumstances, Solves};
use crate::discretization::Discretization;
use crate::method::SolveDevice;
use crate::{
    Fields, Method, OperatorDevice, PreconditionerConfig, SolutionData, SolveError, SolverConfig, Stages,
};

/// A linear system $A w = b$ without a preconditioner, for iterative methods of the caller.
///
/// Rows of Dirichlet unknowns are unit rows with right side zero. Values of several components are
/// interleaved. [`Discretization::solution_of`] turns w into u.
pub struct StandaloneSystem<D: SolveDevice> {
    operator: Box<dyn LinearOperator<f64, D>>,
    /// The format of the operator: that of a matrix, or `matrix-free`.
    format: String,
    diagonal: Vec<f64>,
    rhs: Vec<f64>,
    /// Of each component.
    constraints: Vec<Constraints>,
    is_pure_neumann: bool,
}

impl<D: SolveDevice> fmt::Debug for StandaloneSystem<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandaloneSystem")
            .field("n_rows", &self.rhs.len())
            .field("format", &self.format)
            .finish()
    }
}

impl<D: SolveDevice> StandaloneSystem<D> {
    /// Returns the operator $A$.
    pub fn operator(&self) -> &dyn LinearOperator<f64, D> {
        self.operator.as_ref()
    }

    /// Returns the format of the operator: that of a matrix, or `matrix-free`.
    pub fn format(&self) -> &str {
        &self.format
    }

    /// Returns the diagonal of $A$.
    pub fn diagonal(&self) -> &[f64] {
        &self.diagonal
    }

    /// Returns the right side $b$.
    pub fn rhs(&self) -> &[f64] {
        &self.rhs
    }

    /// Returns whether the solution is determined up to a constant only; constants are then in the kernel of $A$.
    pub fn is_pure_neumann(&self) -> bool {
        self.is_pure_neumann
    }
}

impl Discretization<'_> {
    /// Makes the linear system on a device, with the CPU as host. Of the settings, only the operator, its
    /// format and its metric evaluation are used.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if a coefficient depends on u; else as [`crate::WeakForm::system`].
    pub fn standalone_system<D: OperatorDevice>(
        &self,
        (cpu, device): (&Cpu, &D),
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<StandaloneSystem<D>, SolveError> {
        if self.is_nonlinear() {
            let message = "depends on u, so the problem has no linear operator; solve it";
            return Err(SolveError::setting(&["equation".into(), "sigma".into()], message));
        }
        // The preconditioner of this name is the diagonal.
        let config = SolverConfig {
            method: Method::Cg,
            preconditioner: PreconditionerConfig::Jacobi,
            ..config.clone()
        };
        let weak = self.weak_form_for(&config, Circumstances::new(false, cpu.threads(), Solves::Many))?;
        let system = weak.system((cpu, device), stages)?;
        let inverse = system.preconditioner().diagonal().map(Buffer::to_host).transpose();
        let inverse = inverse.map_err(LinalgError::from)?.unwrap_or_default();
        Ok(StandaloneSystem {
            diagonal: inverse.into_iter().map(|entry| 1.0 / entry).collect(),
            rhs: system.rhs().to_host().map_err(LinalgError::from)?,
            is_pure_neumann: system.is_pure_neumann(),
            operator: system.prepared.operator,
            format: system.prepared.summary.format,
            constraints: system.right.constraints,
        })
    }

    /// Returns u with its mesh from the solution $w$ of a system of this problem: Dirichlet values put in, a
    /// free mean removed.
    ///
    /// # Errors
    /// [`FemError::Length`] if `w` does not belong to the system.
    pub fn solution_of<D: SolveDevice>(
        &self,
        system: &StandaloneSystem<D>,
        w: &[f64],
    ) -> Result<SolutionData, SolveError> {
        let (expected, n) = (system.rhs.len(), system.constraints.len());
        if w.len() != expected || self.n_dofs() * n != expected {
            return Err(FemError::Length { field: "w", found: w.len(), expected }.into());
        }
        let of_component = |(k, constraints): (usize, &Constraints)| {
            let mut u: Vec<f64> = w.iter().copied().skip(k).step_by(n).collect();
            constraints.impose(&mut u);
            if system.is_pure_neumann {
                let mean = self.component(&u).mean()?;
                u.iter_mut().for_each(|u| *u -= mean);
            }
            Ok(u)
        };
        let components = system.constraints.iter().enumerate().map(of_component);
        let components = components.collect::<Result<Vec<_>, FemError>>()?;
        SolutionData::of_components(self, &components, &Fields::default())
    }
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{SquareConfig, SquareSplit, square};

    use super::*;
    use crate::{OperatorKind, Poisson, Silent};

    /// A product, the diagonal and the right side of a problem with every kind of term.
    fn made(degree: usize, operator: OperatorKind) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let config =
            SquareConfig { cells: [3, 2], split: SquareSplit::Quadrilateral, ..SquareConfig::default() };
        let mut mesh = square(&config).unwrap();
        mesh.points.iter_mut().for_each(|[x, y, _]| *x += 0.2 * *y * *x);
        let problem = Poisson::new(&mesh).degree(degree).sigma("1 + x").lambda(2.0).source("y");
        let problem = problem.dirichlet("xmin", "y").unwrap().robin("xmax", 3.0, 1.0).unwrap();
        let discretization = problem.discretize().unwrap();
        let (cpu, config) = (Cpu::new(1).unwrap(), SolverConfig { operator, ..SolverConfig::default() });
        let system =
            discretization.standalone_system((&cpu, &cpu), &config, &mut Stages::new(&mut Silent)).unwrap();
        let x = (0..system.rhs().len()).map(|i| (i as f64).sin()).collect();
        let (x, mut y) =
            (Buffer::from_vec(&cpu, x).unwrap(), Buffer::zeros(&cpu, system.rhs().len()).unwrap());
        system.operator().apply(&mut y, &x).unwrap();
        (y.to_host().unwrap(), system.diagonal().to_vec(), system.rhs().to_vec())
    }

    #[test]
    fn operators_without_a_matrix_equal_the_matrix_in_products_diagonal_and_right_side() {
        for degree in 1..=4 {
            let (matrix, free) =
                (made(degree, OperatorKind::Assembled), made(degree, OperatorKind::MatrixFree));
            for (a, b) in [(matrix.0, free.0), (matrix.1, free.1), (matrix.2, free.2)] {
                assert_eq!(a.len(), b.len());
                a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() < 1e-11, "{degree}: {a} {b}"));
            }
        }
    }

    #[test]
    fn problems_that_depend_on_u_have_no_operator() {
        let mesh = square(&SquareConfig { cells: [2, 2], ..SquareConfig::default() }).unwrap();
        let discretization =
            Poisson::new(&mesh).sigma("1 + u^2").dirichlet("all", 0.0).unwrap().discretize().unwrap();
        let cpu = Cpu::new(1).unwrap();
        let config = SolverConfig::default();
        let made = discretization.standalone_system((&cpu, &cpu), &config, &mut Stages::new(&mut Silent));
        assert!(made.unwrap_err().to_string().contains("depends on u"));
    }
}

//! Operators of tensor problems, compiled in this crate once per device and precision.

use std::fmt::Debug;

use femtile_device::{Cpu, Cuda, Device, Scalar};
use femtile_fem::tensor::TensorProblem;
use femtile_fem::{Coefficient, FemError};
use femtile_linalg::{GhostedOperator, LinalgError, LinearOperator, Transfer};
use femtile_space::TensorSpace;
use femtile_space::geometry::{CellRule, MetricEvaluation};

use crate::{
    CudaDegreeTransfer, CudaMatrixFree, CudaMatrixFreeConfig, CudaMatrixFreeData, DegreeTransfer, MatrixFree,
    MatrixFreeConfig, Terms,
};

/// A device with matrix-free operators in the precision `T`: [`Cpu`] and [`Cuda`].
///
/// Generic constructors such as [`MatrixFree::new`], and the products of what they make, are compiled again in each crate
/// that calls them; these are not.
pub trait MatrixFreeDevice<T: Scalar>: Device {
    /// Its operators.
    type Operator;

    /// The data of an operator that a host can compute before the device is open.
    type Data: Debug;

    /// Makes the operator of a problem with several components and the requested metric evaluation; `cpu`
    /// sets it up, or has done so ahead.
    ///
    /// # Errors
    /// As [`MatrixFree::new`] and [`CudaMatrixFree::new`].
    fn matrix_free(
        &self,
        cpu: &Cpu,
        problem: &TensorProblem<'_>,
        components: usize,
        rule: (CellRule, Option<MetricEvaluation>),
        ahead: Option<Self::Data>,
    ) -> Result<Self::Operator, FemError>;

    /// Makes the rows of a rank for several components; its numbers are those of [`MatrixFree::local`].
    ///
    /// # Errors
    /// As [`MatrixFree::local`] and [`CudaMatrixFree::local`].
    fn local_matrix_free(
        &self,
        cpu: &Cpu,
        problem: &TensorProblem<'_>,
        components: usize,
        rule: (CellRule, Option<MetricEvaluation>),
        numbers: (&[u32], [usize; 2]),
    ) -> Result<Self::Operator, FemError>;

    /// Makes the transfer between the spaces of two problems on the same cells, the lower degree first.
    ///
    /// # Errors
    /// As [`DegreeTransfer::new`] and [`CudaDegreeTransfer::new`].
    fn transfer(
        &self,
        coarse: &TensorProblem<'_>,
        fine: &TensorProblem<'_>,
    ) -> Result<Box<dyn Transfer<T, Self>>, FemError>;

    /// Returns the diagonal of an operator, 1 in constrained rows.
    ///
    /// # Errors
    /// Errors of the device.
    fn diagonal(operator: &Self::Operator) -> Result<Vec<T>, LinalgError>;

    /// Returns the number of cells, of `n_cells`, per metric evaluation.
    fn metric_evaluations(operator: &Self::Operator, n_cells: usize) -> Vec<(MetricEvaluation, usize)>;

    /// Returns an operator of a whole space for products.
    fn into_operator(operator: Self::Operator) -> Box<dyn LinearOperator<T, Self>>;

    /// Returns whether the rows of a rank can compute x·Ax as a sum over cells instead of rows.
    fn can_sum_cells(operator: &Self::Operator) -> bool;

    /// Returns the rows of a rank for products; they sum x·Ax over cells if asked to and if they can.
    ///
    /// # Errors
    /// As [`CudaMatrixFree::with_sums_of_cells`].
    fn into_rows(
        operator: Self::Operator,
        sums_cells: bool,
    ) -> Result<Box<dyn GhostedOperator<T, Self>>, LinalgError>;
}

/// Implements [`MatrixFreeDevice`] for processors in a precision.
macro_rules! cpu_operators {
    ($t:ty) => {
        impl MatrixFreeDevice<$t> for Cpu {
            type Operator = MatrixFree<$t>;
            type Data = ();

            fn matrix_free(
                &self,
                _: &Cpu,
                problem: &TensorProblem<'_>,
                components: usize,
                (rule, metric): (CellRule, Option<MetricEvaluation>),
                _: Option<()>,
            ) -> Result<MatrixFree<$t>, FemError> {
                let (space, constrained) = constrained(problem);
                let facets = problem.facet_matrices();
                let config = MatrixFreeConfig { rule, constrained, facets, components, metric };
                MatrixFree::new(self, space, terms(problem), config)
            }

            fn local_matrix_free(
                &self,
                cpu: &Cpu,
                problem: &TensorProblem<'_>,
                components: usize,
                (rule, metric): (CellRule, Option<MetricEvaluation>),
                numbers: (&[u32], [usize; 2]),
            ) -> Result<MatrixFree<$t>, FemError> {
                let (space, constrained) = constrained(problem);
                let facets = problem.facet_matrices();
                let config = MatrixFreeConfig { rule, constrained, facets, components, metric };
                MatrixFree::local(cpu, space, terms(problem), config, numbers)
            }

            fn transfer(
                &self,
                coarse: &TensorProblem<'_>,
                fine: &TensorProblem<'_>,
            ) -> Result<Box<dyn Transfer<$t, Self>>, FemError> {
                Ok(Box::new(DegreeTransfer::<$t>::new(self, constrained(coarse), constrained(fine))?))
            }

            fn diagonal(operator: &MatrixFree<$t>) -> Result<Vec<$t>, LinalgError> {
                Ok(operator.diagonal())
            }

            fn metric_evaluations(operator: &MatrixFree<$t>, _: usize) -> Vec<(MetricEvaluation, usize)> {
                operator.metric_evaluations()
            }

            fn into_operator(operator: MatrixFree<$t>) -> Box<dyn LinearOperator<$t, Self>> {
                Box::new(operator)
            }

            fn can_sum_cells(_: &MatrixFree<$t>) -> bool {
                false
            }

            fn into_rows(
                operator: MatrixFree<$t>,
                _: bool,
            ) -> Result<Box<dyn GhostedOperator<$t, Self>>, LinalgError> {
                Ok(Box::new(operator))
            }
        }
    };
}

/// Implements [`MatrixFreeDevice`] for GPUs in a precision.
macro_rules! cuda_operators {
    ($t:ty) => {
        impl MatrixFreeDevice<$t> for Cuda {
            type Operator = CudaMatrixFree<$t>;
            type Data = CudaMatrixFreeData<$t>;

            fn matrix_free(
                &self,
                cpu: &Cpu,
                problem: &TensorProblem<'_>,
                components: usize,
                (rule, metric): (CellRule, Option<MetricEvaluation>),
                ahead: Option<CudaMatrixFreeData<$t>>,
            ) -> Result<CudaMatrixFree<$t>, FemError> {
                let (space, constrained) = constrained(problem);
                let config = CudaMatrixFreeConfig { components, metric, ..CudaMatrixFreeConfig::default() };
                let terms = terms(problem);
                let made = match ahead {
                    Some(data) => CudaMatrixFree::of_data(self, data),
                    None => {
                        cpu.install(|| CudaMatrixFree::new(self, space, terms, rule, constrained, config))
                    }
                };
                made?.with_facets(problem.facet_matrices())
            }

            fn local_matrix_free(
                &self,
                cpu: &Cpu,
                problem: &TensorProblem<'_>,
                components: usize,
                (rule, metric): (CellRule, Option<MetricEvaluation>),
                (numbers, [_, n_owned]): (&[u32], [usize; 2]),
            ) -> Result<CudaMatrixFree<$t>, FemError> {
                let config = CudaMatrixFreeConfig { components, metric, ..CudaMatrixFreeConfig::default() };
                let (space, constrained) = constrained(problem);
                let of_cells = (space, terms(problem), rule);
                let given = (constrained, problem.facet_matrices());
                cpu.install(|| CudaMatrixFree::local(self, of_cells, given, config, (numbers, n_owned)))
            }

            fn transfer(
                &self,
                coarse: &TensorProblem<'_>,
                fine: &TensorProblem<'_>,
            ) -> Result<Box<dyn Transfer<$t, Self>>, FemError> {
                Ok(Box::new(CudaDegreeTransfer::<$t>::new(self, constrained(coarse), constrained(fine))?))
            }

            fn diagonal(operator: &CudaMatrixFree<$t>) -> Result<Vec<$t>, LinalgError> {
                operator.diagonal()
            }

            fn metric_evaluations(
                operator: &CudaMatrixFree<$t>,
                n_cells: usize,
            ) -> Vec<(MetricEvaluation, usize)> {
                vec![(operator.metric(), n_cells)]
            }

            fn into_operator(operator: CudaMatrixFree<$t>) -> Box<dyn LinearOperator<$t, Self>> {
                Box::new(operator)
            }

            fn can_sum_cells(operator: &CudaMatrixFree<$t>) -> bool {
                operator.can_sum_cells()
            }

            fn into_rows(
                operator: CudaMatrixFree<$t>,
                sums_cells: bool,
            ) -> Result<Box<dyn GhostedOperator<$t, Self>>, LinalgError> {
                Ok(Box::new(if sums_cells { operator.with_sums_of_cells()? } else { operator }))
            }
        }
    };
}

cpu_operators!(f32);
cpu_operators!(f64);
cuda_operators!(f32);
cuda_operators!(f64);

/// Returns the space of a problem with its constrained degrees of freedom.
pub fn constrained<'p>(problem: &'p TensorProblem<'_>) -> (&'p TensorSpace<'p>, &'p [u32]) {
    (problem.space(), problem.constraints().dofs())
}

/// Returns the terms of a form, except a conduction or reaction that is zero.
pub fn terms<'a>(problem: &TensorProblem<'a>) -> Terms<'a> {
    let form = problem.form();
    let unless_zero = |of: &'a Coefficient| (of.as_constant() != Some(0.0)).then_some(of);
    Terms { sigma: unless_zero(form.sigma), lambda: unless_zero(form.lambda) }
}

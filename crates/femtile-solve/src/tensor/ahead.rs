//! Operator data that the host computes while a GPU is being opened.
//!
//! `CudaMatrixFreeData` is computed part by part until the GPU is open. Missing parts are computed later, as
//! without this module.

use femtile_device::cuda::Opening;
use femtile_device::{Cpu, Cuda};
use femtile_fem::FemError;
use femtile_fem::tensor::TensorProblem;
use femtile_matrix_free::{
    CellRule, CudaMatrixFreeConfig, CudaMatrixFreeData, MatrixFreeDevice, constrained, terms,
};
use femtile_space::TensorSpace;

use super::degrees::{homogeneous, spaces_below, without_data};
use super::operator::OperatorDevice;
use crate::{LevelPrecision, PreconditionerConfig, SolverConfig};

/// Data computed before the device is open; a part that is absent is made when it is needed.
#[derive(Debug)]
pub(crate) struct Ahead<'a, D: OperatorDevice> {
    pub operator: Option<<D as MatrixFreeDevice<f64>>::Data>,
    /// The spaces of lower degree of p-multigrid, all of them or none.
    pub spaces: Vec<TensorSpace<'a>>,
    /// Of the operators of the highest levels.
    pub levels: Vec<<D as MatrixFreeDevice<f32>>::Data>,
}

impl<D: OperatorDevice> Default for Ahead<'_, D> {
    fn default() -> Self {
        Self { operator: None, spaces: Vec::new(), levels: Vec::new() }
    }
}

impl<'a> Ahead<'a, Cuda> {
    /// Computes one part after the other until the GPU is open. Errors are dropped, because they recur when
    /// the data are computed again.
    pub fn new(
        cpu: &Cpu,
        opening: &Opening,
        config: &SolverConfig,
        problems: &'a [TensorProblem<'a>],
        rule: CellRule,
    ) -> Self {
        let mut ahead = Self::default();
        let of_settings = CudaMatrixFreeConfig {
            components: problems.len(),
            metric: config.metric,
            ..CudaMatrixFreeConfig::default()
        };
        cpu.install(|| {
            let problem = &problems[0];
            let (space, rows) = constrained(problem);
            if opening.is_over() {
                return;
            }
            let made = CudaMatrixFreeData::new(space, terms(problem), rule, rows, of_settings);
            ahead.operator = made.ok();
            if let PreconditionerConfig::Pmg(options) = &config.preconditioner
                && options.precision == LevelPrecision::F32
            {
                // What is missing is made with the level.
                let _ = ahead.add_levels(opening, problem, rule);
            }
        });
        ahead
    }

    fn add_levels(
        &mut self,
        opening: &Opening,
        problem: &'a TensorProblem<'a>,
        rule: CellRule,
    ) -> Result<(), FemError> {
        if opening.is_over() {
            return Ok(());
        }
        self.spaces = spaces_below(problem.space())?;
        let config = CudaMatrixFreeConfig::default();
        let conditions = homogeneous(problem.form().conditions);
        let form = without_data(problem.form(), &conditions);
        // The lowest level has a matrix.
        for level in 0..self.spaces.len() {
            if opening.is_over() {
                break;
            }
            let data = match (level, &self.operator) {
                (0, Some(own)) => {
                    CudaMatrixFreeData::beside(own, problem.space(), terms(problem), rule, config)?
                }
                (0, None) => {
                    let (space, rows) = constrained(problem);
                    CudaMatrixFreeData::new(space, terms(problem), rule, rows, config)?
                }
                _ => {
                    let lower = TensorProblem::new(&self.spaces[level - 1], &form)?;
                    let (space, rows) = constrained(&lower);
                    CudaMatrixFreeData::new(space, terms(&lower), rule, rows, config)?
                }
            };
            self.levels.push(data);
        }
        Ok(())
    }
}

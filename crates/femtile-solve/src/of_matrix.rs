//! The preconditioner of a matrix, which takes over other values on the same pattern.

use femtile_amg::Amg;
use femtile_linalg::Preconditioner;
use femtile_linalg::precondition::Diagonal;
use femtile_sparse::csr::Csr;

use crate::method::SolveDevice;
use crate::preconditioner::{Level, f64_in_place_of_f32, levels_of};
use crate::{AmgOptions, LevelPrecision, PreconditionerConfig, SolveError};

/// A preconditioner that takes over other values.
pub(crate) enum OfMatrix<D: SolveDevice> {
    Diagonal(Diagonal<f64, D>, bool),
    F32(Box<Amg<f32, D>>),
    F64(Box<Amg<f64, D>>),
}

impl<D: SolveDevice> OfMatrix<D> {
    pub(crate) fn new(
        matrix: &mut Csr<f64, D>,
        near_nullspace: Option<&[f64]>,
        config: &PreconditionerConfig,
        warnings: &mut Vec<String>,
    ) -> Result<Self, SolveError> {
        Ok(match config {
            PreconditionerConfig::None => {
                let device = matrix.values().device().clone();
                Self::Diagonal(Diagonal::identity(&device, matrix.n_rows())?, true)
            }
            PreconditionerConfig::Amg(AmgOptions { config, precision, .. }) => {
                if *precision == LevelPrecision::F32 {
                    match Amg::with_memory_limit(matrix, near_nullspace, config) {
                        Err(error) if error.is_of_precision() => {
                            warnings.push(f64_in_place_of_f32(&error));
                        }
                        made => return Ok(Self::F32(Box::new(made?))),
                    }
                }
                Self::F64(Box::new(Amg::with_memory_limit(matrix, near_nullspace, config)?))
            }
            // Multigrid on cells was refused.
            _ => Self::Diagonal(Diagonal::new(matrix)?, false),
        })
    }

    pub(crate) fn as_dyn(&self) -> &dyn Preconditioner<f64, D> {
        match self {
            Self::Diagonal(diagonal, _) => diagonal,
            Self::F32(amg) => amg.as_ref(),
            Self::F64(amg) => amg.as_ref(),
        }
    }

    pub(crate) fn levels(&self) -> Vec<Level> {
        match self {
            Self::Diagonal(..) => Vec::new(),
            Self::F32(amg) => levels_of(amg.hierarchy()),
            Self::F64(amg) => levels_of(amg.hierarchy()),
        }
    }

    /// Replaces the values; levels in f32 become f64 if they fail with these values.
    pub(crate) fn refill(
        &mut self,
        a: &Csr<f64, D>,
        near_nullspace: Option<&[f64]>,
        warnings: &mut Vec<String>,
    ) -> Result<(), SolveError> {
        match self {
            Self::Diagonal(_, true) => {}
            Self::Diagonal(diagonal, false) => *diagonal = Diagonal::new(a)?,
            Self::F32(amg) => match amg.refill(a, near_nullspace) {
                Err(error) if error.is_of_precision() => {
                    let amg = Amg::new(a, near_nullspace, amg.hierarchy().config())?;
                    warnings.push(f64_in_place_of_f32(&error));
                    *self = Self::F64(Box::new(amg));
                }
                refilled => refilled?,
            },
            Self::F64(amg) => amg.refill(a, near_nullspace)?,
        }
        Ok(())
    }
}

//! The preconditioner of a matrix, which can be updated to other values on the same pattern.

use femtile_amg::{AmgConfig, AnyAmg, BoxedAmg};
use femtile_device::{Cpu, Device};
use femtile_linalg::precondition::Diagonal;
use femtile_linalg::{LinalgError, Preconditioner};
use femtile_sparse::csr::{Csr, Offsets};

use crate::aggregation::HostAggregation;
use crate::method::SolveDevice;
use crate::preconditioner::{
    Level, Preconditioning, and_levels, f64_in_place_of_f32, in_precision, levels_of,
};
use crate::{AmgOptions, LevelPrecision, PreconditionerConfig, SolveError};

/// The entries of a diagonal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entries {
    /// Ones.
    Ones,
    /// The reciprocals of the diagonal, which is positive.
    Reciprocals,
    /// The reciprocals of magnitudes, for methods that need no definite matrix.
    Magnitudes,
}

/// What multigrid found of its matrix.
pub(crate) struct Found<'a> {
    pub config: &'a AmgConfig,
    /// The dimension of the null space.
    pub n_null: usize,
    pub operator_complexity: f64,
    /// The rows of a coarsest level that coarsening could not make small.
    pub stalled: Option<usize>,
}

impl<'a> Found<'a> {
    fn of<D: Device>(amg: &'a dyn AnyAmg<f64, D>) -> Self {
        let hierarchy = amg.hierarchy();
        let coarsest = hierarchy.shapes().last().map(|shape| shape.n_rows);
        Self {
            config: hierarchy.config(),
            n_null: hierarchy.n_null(),
            operator_complexity: hierarchy.operator_complexity(),
            stalled: coarsest.filter(|_| hierarchy.is_stalled()),
        }
    }
}

/// A preconditioner that can be updated to other values.
pub(crate) enum MatrixPreconditioner<D: SolveDevice> {
    Diagonal(Diagonal<f64, D>, Entries),
    Amg(BoxedAmg<f64, D>),
    Aggregation(HostAggregation),
}

impl<D: SolveDevice> MatrixPreconditioner<D> {
    pub(crate) fn new(
        matrix: &mut Csr<f64, D>,
        near_nullspace: Option<&[f64]>,
        config: &PreconditionerConfig,
        warnings: &mut Vec<String>,
    ) -> Result<Self, SolveError> {
        Ok(match config {
            PreconditionerConfig::None => {
                let device = matrix.values().device().clone();
                Self::Diagonal(Diagonal::identity(&device, matrix.n_rows())?, Entries::Ones)
            }
            PreconditionerConfig::Amg(AmgOptions { config, precision, .. }) => {
                let made =
                    |precision| D::amg_with_memory_limit(matrix, None, near_nullspace, config, precision);
                Self::Amg(in_precision(*precision, made, warnings)?)
            }
            // Multigrid on cells was refused.
            _ => Self::Diagonal(Diagonal::new(matrix)?, Entries::Reciprocals),
        })
    }

    /// Multigrid of a matrix that is not symmetric.
    pub(crate) fn by_aggregation(matrix: &Csr<f64, Cpu>) -> Result<Self, SolveError> {
        Ok(Self::Aggregation(HostAggregation::new(matrix)?))
    }

    /// A diagonal for a method that needs no definite matrix.
    pub(crate) fn of_magnitudes(matrix: &Csr<f64, D>) -> Result<Self, SolveError> {
        Ok(Self::Diagonal(of_magnitudes(matrix)?, Entries::Magnitudes))
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Diagonal(_, Entries::Ones) => "none",
            Self::Diagonal(..) => "jacobi",
            Self::Amg(_) | Self::Aggregation(_) => "amg",
        }
    }

    /// Returns what multigrid found of its matrix; none without multigrid.
    pub(crate) fn found(&self) -> Option<Found<'_>> {
        match self {
            Self::Diagonal(..) | Self::Aggregation(_) => None,
            Self::Amg(amg) => Some(Found::of(amg.as_ref())),
        }
    }

    pub(crate) fn as_dyn(&self) -> &dyn Preconditioner<f64, D> {
        match self {
            Self::Diagonal(diagonal, _) => diagonal,
            Self::Amg(amg) => amg.as_ref(),
            Self::Aggregation(amg) => amg,
        }
    }

    pub(crate) fn into_preconditioning(self) -> Preconditioning<D> {
        match self {
            Self::Diagonal(diagonal, _) => (Box::new(diagonal), Vec::new()),
            Self::Amg(amg) => and_levels(amg),
            Self::Aggregation(amg) => {
                let levels = amg.levels();
                (Box::new(amg), levels)
            }
        }
    }

    pub(crate) fn levels(&self) -> Vec<Level> {
        match self {
            Self::Diagonal(..) => Vec::new(),
            Self::Amg(amg) => levels_of(amg.as_ref()),
            Self::Aggregation(amg) => amg.levels(),
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
            Self::Diagonal(_, Entries::Ones) => {}
            Self::Aggregation(amg) => *amg = HostAggregation::new(&a.copy_to(amg.cpu())?)?,
            Self::Diagonal(diagonal, Entries::Reciprocals) => *diagonal = Diagonal::new(a)?,
            Self::Diagonal(diagonal, Entries::Magnitudes) => *diagonal = of_magnitudes(a)?,
            Self::Amg(amg) => match amg.refill(a, near_nullspace) {
                Err(error) if error.is_of_precision() => {
                    let of_f64 = D::amg(a, near_nullspace, amg.hierarchy().config(), LevelPrecision::F64)?;
                    warnings.push(f64_in_place_of_f32(&error));
                    *amg = of_f64;
                }
                refilled => refilled?,
            },
        }
        Ok(())
    }
}

/// Returns the reciprocals of the magnitudes of a diagonal; of the largest entry of a row if that has none, and one
/// for a row of zeros.
pub(crate) fn of_magnitudes<D: SolveDevice>(a: &Csr<f64, D>) -> Result<Diagonal<f64, D>, LinalgError> {
    let offsets: Vec<usize> = match a.offsets() {
        Offsets::Narrow(offsets) => offsets.host_view()?.iter().map(|&begin| begin as usize).collect(),
        Offsets::Wide(offsets) => offsets.host_view()?.iter().map(|&begin| begin as usize).collect(),
    };
    let (columns, values) = (a.columns().host_view()?, a.values().host_view()?);
    let magnitude = |row: usize| {
        let range = offsets[row]..offsets[row + 1];
        let entries = || columns[range.clone()].iter().zip(&values[range.clone()]);
        let own: f64 = entries().filter(|(column, _)| **column as usize == row).map(|(_, value)| value).sum();
        let largest = entries().fold(0.0, |most: f64, (_, value)| most.max(value.abs()));
        [own.abs(), largest].into_iter().find(|size| *size > 0.0).unwrap_or(1.0)
    };
    Diagonal::of_entries(a.values().device(), (0..a.n_rows()).map(magnitude).collect())
}

//! Operators whose metric at the points is given.

use femtile_device::Scalar;
use femtile_fem::{Coefficient, FemError};
use femtile_space::geometry::{CellRule, MetricEvaluation};
use femtile_space::{SpaceError, TensorSpace};

use super::batches::Batches;
use super::config::{CellField, CudaMatrixFreeConfig};
use super::data::{CudaMatrixFreeData, Cut, cells_per_group};
use super::metric;
use super::program::Variant;
use crate::metric::{Entries, Terms};

/// The metric $\lvert\det J\rvert\, J^{-1} \sigma J^{-\mathsf{T}}$ and $\lambda\lvert\det J\rvert$ at the points of all cells, by
/// the rule of Gauss with p + 1 points along each axis.
#[derive(Clone, Copy)]
pub struct PointMetric<'a> {
    /// Whether there are σ and λ.
    pub has_terms: [bool; 2],
    /// Whether σ is a multiple of the identity.
    pub is_isotropic: bool,
    /// Whether cells have one metric each, without weights.
    pub is_constant: bool,
    /// Writes the metric of the cell at a position as xx, yy, zz, yz, xz, xy and that of λ: `[n_q]`, with the weights of the
    /// points, or one without weights.
    pub write: &'a (dyn Fn(usize, &mut [Entries]) + Sync),
}

impl<T: Scalar> CudaMatrixFreeData<T> {
    /// Computes the data of the operator of a metric; the other arguments are those of
    /// [`CudaMatrixFree::new`](super::CudaMatrixFree::new).
    ///
    /// # Errors
    /// [`FemError::Space`] if the unknowns cannot be numbered with 32 bits.
    pub fn of_metric(
        space: &TensorSpace<'_>,
        metric: &PointMetric<'_>,
        constrained: &[u32],
        config: CudaMatrixFreeConfig,
    ) -> Result<Self, FemError> {
        let n_dofs = space.n_dofs();
        if n_dofs >= u32::MAX as usize {
            return Err(SpaceError::TooManyDofs { n_dofs: n_dofs as f64 }.into());
        }
        let (one, tensor) = (Coefficient::Constant(1.0), Coefficient::Tensor([[1.0; 3]; 3]));
        let [has_sigma, has_lambda] = metric.has_terms;
        let sigma = if metric.is_isotropic { &one } else { &tensor };
        let terms = Terms { sigma: has_sigma.then_some(sigma), lambda: has_lambda.then_some(&one) };
        let field = CellField { dimension: space.dimension(), degree: space.degree(), components: 1 };
        let evaluation =
            if metric.is_constant { MetricEvaluation::Constant } else { MetricEvaluation::Stored };
        let own = Variant::of(field, terms, CellRule::default(), (evaluation, space.n_irregular() > 0));
        let shape = config.shape.unwrap_or(own.shape);
        let per_group = config.cells_per_group.unwrap_or_else(|| cells_per_group(space, shape));
        let variant = Variant { shape, ..own };
        let batches = Batches::new(space, (shape.cells, per_group), 1, (constrained, None))?;
        let numbers = metric::given(metric, space, &batches, &variant);
        let cut = Cut { cells: shape.cells, per_group, components: 1 };
        Ok(Self::of_parts(space, constrained, (variant, cut), batches, numbers))
    }
}

//! The data of an operator on simplices that the host computes.

use femtile_device::cpu::zeroed_vec;
use femtile_device::cuda::Specialisation;
use femtile_device::{Scalar, parallel};
use femtile_fem::FemError;
use femtile_space::{Element, Space, SpaceError};

use super::super::config::CudaMatrixFreeConfig;
use super::super::point_metric::PointMetric;
use super::super::point_tangent::{PointTangent, TangentText};
use super::patches::Patches;
use super::variant::{Action, Variant};

/// The data of a [`CudaSimplices`](super::CudaSimplices) that the host computes without a GPU: patches of cells, and the numbers of
/// the tangent.
#[derive(Debug)]
pub struct CudaSimplicesData<T: Scalar> {
    /// Unknowns of a component.
    pub(super) n_dofs: usize,
    pub(super) n_cells: usize,
    pub(super) variant: Variant,
    pub(super) patches: Patches,
    /// `[n_patches][number][cells of a patch]`
    pub(super) numbers: Vec<T>,
    pub(super) constrained: Vec<u32>,
}

impl<T: Scalar> CudaSimplicesData<T> {
    /// Computes the data of the tangent of a form with the rule that is exact for polynomials of degree 2p.
    ///
    /// All components of the unknowns in `constrained` have rows and columns of the identity.
    ///
    /// # Errors
    /// [`FemError::Linalg`] for cells with more components than the shared memory of a block holds; [`FemError::Space`] for too many
    /// unknowns.
    /// # Panics
    /// If the cells are no simplices, the tangent has another dimension, or a constrained unknown is outside the space.
    pub fn of_tangent(
        space: &Space<'_>,
        tangent: &PointTangent<'_>,
        constrained: &[u32],
        config: CudaMatrixFreeConfig,
    ) -> Result<Self, FemError> {
        assert!(
            tangent.text.dimension == space.element().dimension(),
            "a tangent in the dimension of the cells"
        );
        let action = Action::Text { text: tangent.text.clone(), is_affine: tangent.is_affine };
        let write = |position: usize, to: &mut [f64]| (tangent.write)(position, to);
        Self::new(space, action, &write, constrained, config)
    }

    /// Computes the data of scalar diffusion and reaction with one metric for each cell.
    ///
    /// # Errors
    /// As [`Self::of_tangent`].
    /// # Panics
    /// If the cells are no simplices, the metric has no term or is not constant in each cell, or a constrained unknown is outside the
    /// space.
    pub fn of_metric(
        space: &Space<'_>,
        metric: &PointMetric<'_>,
        constrained: &[u32],
        config: CudaMatrixFreeConfig,
    ) -> Result<Self, FemError> {
        let [has_sigma, has_lambda] = metric.has_terms;
        assert!(
            metric.is_constant && (has_sigma || has_lambda),
            "one metric for each cell, of one term at least"
        );
        // By the upper rows of the tensor, then λ.
        let of_tensor: &[usize] =
            if space.element().dimension() == 2 { &[0, 5, 1] } else { &[0, 5, 4, 1, 3, 2] };
        let write = |position: usize, to: &mut [f64]| {
            let mut entries = [[0.0; 7]];
            (metric.write)(position, &mut entries);
            let of_tensor = of_tensor.iter().filter(|_| has_sigma);
            let places = of_tensor.chain(has_lambda.then_some(&6));
            to.iter_mut().zip(places).for_each(|(to, &place)| *to = entries[0][place]);
        };
        Self::new(space, Action::Metric { has_terms: metric.has_terms }, &write, constrained, config)
    }

    fn new(
        space: &Space<'_>,
        action: Action,
        write: &(dyn Fn(usize, &mut [f64]) + Sync),
        constrained: &[u32],
        config: CudaMatrixFreeConfig,
    ) -> Result<Self, FemError> {
        assert!(space.mesh().kind.is_simplex(), "triangles or tetrahedra");
        let variant = Variant::new(space.element(), action, config.shape)?;
        let n_dofs = space.n_dofs();
        let n_rows = n_dofs.saturating_mul(variant.components);
        // The highest bit of an unknown is a mark; lists have 32 bits.
        let n_entries = space.n_cells().saturating_mul(variant.n_nodes);
        if n_rows >= u32::MAX as usize || n_dofs >= 1 << 31 || n_entries >= u32::MAX as usize {
            return Err(SpaceError::TooManyDofs { n_dofs: n_rows.max(n_entries) as f64 }.into());
        }
        let cells = variant.shape.cells;
        let patches = Patches::new(space, cells, variant.components, constrained);
        let [of_cell, of_point] = variant.cell_numbers();
        let n = of_cell + of_point * variant.table.n_points;
        let mut numbers = zeroed_vec::<T>(patches.len() * n * cells);
        let of_patches: Vec<_> =
            numbers.chunks_exact_mut(n * cells).zip(patches.order.chunks(cells)).collect();
        parallel::for_each_item_with(
            of_patches,
            1,
            || vec![f64::NAN; n],
            |found, (to, positions)| {
                for (cell, &position) in positions.iter().enumerate() {
                    write(position as usize, found);
                    let column = to.iter_mut().skip(cell).step_by(cells);
                    column.zip(&*found).for_each(|(to, &from)| *to = T::from_f64(from));
                }
            },
        );
        let n_cells = space.n_cells();
        Ok(Self { n_dofs, n_cells, variant, patches, numbers, constrained: constrained.to_vec() })
    }
}

/// Returns the programs of the tangent of a form on simplices.
///
/// # Errors
/// [`FemError::Linalg`] for cells with more components than the shared memory of a block holds.
pub fn simplex_programs<T: Scalar>(
    element: &Element,
    text: &TangentText,
    is_affine: bool,
) -> Result<Vec<Specialisation>, FemError> {
    let action = Action::Text { text: text.clone(), is_affine };
    Ok(Variant::new(element, action, None)?.all::<T>())
}

/// Returns the programs of scalar diffusion and reaction with one metric for each cell, by the terms that are there.
///
/// # Errors
/// As [`simplex_programs`].
pub fn simplex_metric_programs<T: Scalar>(
    element: &Element,
    has_terms: [bool; 2],
) -> Result<Vec<Specialisation>, FemError> {
    Ok(Variant::new(element, Action::Metric { has_terms }, None)?.all::<T>())
}

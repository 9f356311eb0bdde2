//! Levels whose rows are in the order of patches.

use std::sync::Arc;

use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::VectorKernels;
use femtile_sparse::csr::Csr;

use super::layout;
use crate::Smoother;
use crate::cuda::setup::evolution::Evolution;
use crate::cuda::setup::{Numbered, Numbers, Rows, aggregate, graph, prolong};
use crate::kernels::{Coarsened, DeviceAggregates};
use crate::patches::{PatchOrder, PatchSmoother, PatchedLevel};
use crate::setup::spectrum::DAMPING;

/// Sets up the next level of a matrix with aggregates in patches, and the smoother by these. None if the matrix is not
/// positive definite or too large.
pub(crate) fn coarsen<H: Scalar>(
    Numbered { rows, diagonal, parts, weights, from_doubtful, .. }: Numbered<'_, H>,
    evolved: Option<&Numbers>,
    (thresholds, largest): ([f64; 2], f64),
    smoother: Smoother,
) -> Result<Option<Coarsened<H, Cuda>>, LinalgError> {
    let (Smoother::Patch { inner, format }, Some(PatchOrder { order, starts })) = (smoother, &parts.order)
    else {
        return Ok(None);
    };
    let in_order = |numbers: &Numbers| graph::gather(numbers, &order.rows, numbers.len());
    let a = graph::with_rows(&rows, &order.rows, Some(&order.places))?;
    let Some(rows) = Rows::new(&a) else { return Ok(None) };
    let diagonal = graph::gather_values(diagonal, &order.rows)?;
    let weights = weights.map(in_order).transpose()?;
    let evolved = evolved.map(in_order).transpose()?;
    let evolution = Evolution::of(&rows, &diagonal, evolved.as_ref(), weights.as_ref(), thresholds[0])?;
    let (strong, ..) = aggregate::strong(&rows, &diagonal, evolution.as_ref(), thresholds)?;
    let of_node = Arc::new(graph::gather(&parts.of_node, &order.rows, order.rows.len())?);
    let numbered = Numbered {
        rows,
        diagonal: &diagonal,
        strong: &strong,
        parts: DeviceAggregates { n: parts.n, of_node, order: None },
        weights: weights.as_ref(),
        from_doubtful,
    };
    let Some(made) = numbered.coarsen(largest)? else { return Ok(None) };
    let Some(rows) = Rows::new(&a) else { return Ok(None) };
    let Some(matrix) = layout::patch_matrix(&rows, diagonal, starts, format)? else { return Ok(None) };
    let mut scale = Buffer::zeros(rows.device, rows.n())?;
    rows.device.axpby(&mut scale, H::from_f64(DAMPING / largest), &made.inverse_diagonal, H::ZERO)?;
    let mut smoother = PatchSmoother { matrix, scale, inner, omega: H::ONE };
    let Some(omega) = layout::outer_damping(&a, &smoother)? else { return Ok(None) };
    smoother.omega = H::from_f64(omega);
    let patched = Some(PatchedLevel { a, smoother });
    Ok(Some(Coarsened { patched, parts, ..made }))
}

/// The rows of a restriction in another order, and its transpose.
#[allow(clippy::type_complexity)]
pub(super) fn reordered<H: Scalar>(
    r: &Csr<H, Cuda>,
    order: &Numbers,
) -> Result<(Csr<H, Cuda>, Csr<H, Cuda>), LinalgError> {
    let too_many = || {
        let message = "2³² entries or more do not fit patches: choose Chebyshev".into();
        LinalgError::Setting { field: "smoother", message }
    };
    let r = graph::with_rows_of(r, order)?.ok_or_else(too_many)?;
    let p = prolong::transpose(&r)?.ok_or_else(too_many)?;
    Ok((r, p))
}

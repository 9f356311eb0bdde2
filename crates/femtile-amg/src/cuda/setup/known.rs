use femtile_device::Cuda;
use femtile_device::Scalar;
use femtile_linalg::LinalgError;
use femtile_sparse::csr::Csr;

use super::{Rows, matrix, nodes, product, prolong};
use crate::kernels::AboveKnown;

/// Sets up the level above one with this prolongator. None as [`super::coarsen`].
pub(crate) fn above<H: Scalar>(
    a: &Csr<H, Cuda>,
    p: &Csr<H, Cuda>,
    block: usize,
) -> Result<Option<AboveKnown<H, Cuda>>, LinalgError> {
    let Some(rows) = Rows::new(a) else { return Ok(None) };
    let Some(matrix::Matrix { diagonal, lanczos, .. }) = matrix::look(&rows, None, block)? else {
        return Ok(None);
    };
    let (largest, inverse_diagonal) = nodes::scaling(&rows, &diagonal, lanczos, block)?;
    let Some(r) = prolong::transpose(p)? else { return Ok(None) };
    let Some(ap) = product::product(a, p, 1)? else { return Ok(None) };
    let Some(coarse) = product::product(&r, &ap, 1)? else { return Ok(None) };
    Ok(Some(AboveKnown { inverse_diagonal, largest, r, coarse: prolong::sorted(coarse)? }))
}

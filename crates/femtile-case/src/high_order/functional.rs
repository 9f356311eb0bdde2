use femtile_fem::dofs::TensorSpace;
use femtile_fem::tensor::functionals;
use femtile_fem::{FemError, Form};

use crate::functional::Kind;

/// The value of a functional for a solution `u` of any degree.
pub(super) fn value(
    kind: &Kind,
    space: &TensorSpace<'_>,
    form: &Form<'_>,
    u: &[f64],
) -> Result<f64, FemError> {
    match kind {
        Kind::Max => Ok(functionals::max(u)),
        Kind::Min => Ok(functionals::min(u)),
        Kind::L2Norm => functionals::l2_norm(space, u),
        Kind::Energy => functionals::energy(space, form, u),
        Kind::Integral => functionals::integral(space, u),
        Kind::ValueAt(point) => functionals::value_at(space, u, *point),
        Kind::ErrorL2(exact) => functionals::error_l2(space, u, exact),
        Kind::ErrorH1(exact) => functionals::error_h1(space, u, exact),
    }
}

//! Tangents of forms on GPUs: products without a matrix, and the values of matrices.

#[allow(unsafe_code)]
mod form;
mod numbers;
mod tangent;

use femtile_device::cuda::Specialisation;
use femtile_form::{Coefficient, Domain, Equation};
use femtile_matrix_free::{simplex_metric_programs, simplex_programs, tangent_programs};
use femtile_mesh::CellKind;
use femtile_space::Element;

use crate::error::OperatorError;
pub use form::{CudaForm, CudaFormMatrix, CudaState, form_programs};
use numbers::PointText;
pub use tangent::{CudaTangent, CudaTangentData};

/// Returns the programs of equations of the library, for checks that compile them.
///
/// # Errors
/// None: the equations of the library have the elements and coefficients that are used here.
pub fn cuda_specialisations() -> Result<Vec<Specialisation>, OperatorError> {
    let mut programs = vec![form::entries_program()];
    for (kind, degree) in [CellKind::Triangle, CellKind::Tetrahedron]
        .into_iter()
        .flat_map(|kind| (1..=6).map(move |degree| (kind, degree)))
    {
        let has_terms = [
            degree != 4 || kind == CellKind::Tetrahedron,
            degree % 3 == 0 || degree == 4 && kind == CellKind::Triangle,
        ];
        programs.extend(simplex_metric_programs::<f64>(&Element::new(kind, degree)?, has_terms)?);
    }
    for dimension in [2, 3] {
        let elasticity = Equation::named("elasticity")?;
        let elasticity = elasticity.form(dimension).with("young", 1.0)?.with("poisson", 0.3)?.build()?;
        let convection = Equation::named("convection-diffusion")?;
        let velocity = vec![Coefficient::from(1.0); dimension];
        let convection = convection.form(dimension).with("velocity", velocity)?.build()?;
        let kinds = match dimension {
            2 => [CellKind::Triangle, CellKind::Quadrilateral],
            _ => [CellKind::Tetrahedron, CellKind::Hexahedron],
        };
        for (form, degrees) in [(&elasticity, 1..=8), (&convection, 2..=5)] {
            let cells = form.integrals().iter().find(|integral| integral.domain == Domain::Cells);
            let Some(cells) = cells else { continue };
            let components = form.n_components();
            let tangent =
                PointText::of(&cells.integrand, cells.integrand.linearization()).tangent(components);
            for degree in degrees {
                let is_affine = degree % 3 == 2;
                programs.extend(tangent_programs::<f64>(degree, &tangent, is_affine));
            }
            programs.extend(tangent_programs::<f32>(2, &tangent, false));
            for kind in kinds {
                let element = Element::new(kind, 2)?;
                programs.extend(form::programs(&cells.integrand, components, &element));
                if kind.is_simplex() {
                    programs.extend(simplex_programs::<f64>(&Element::new(kind, 3)?, &tangent, false)?);
                    programs.extend(simplex_programs::<f32>(&element, &tangent, true)?);
                }
            }
        }
    }
    Ok(programs)
}

//! What a case may ask for on the cells that its mesh has.

use femtile_mesh::CellKind;

use crate::device::Request;
use crate::file::{Operator, PreconditionerName};
use crate::{Case, CaseError};

/// Refuses what does not go with the cells of the mesh.
///
/// # Errors
/// [`CaseError::Input`] with the place of the first key that does not.
pub(crate) fn check_cells(case: &Case, request: Request, kind: CellKind) -> Result<(), CaseError> {
    match super::is_for(kind) {
        true => check_products(case, request, kind),
        false => check_simplices(case, kind),
    }
}

fn check_simplices(case: &Case, kind: CellKind) -> Result<(), CaseError> {
    let degree = case.file.space.degree;
    if degree != 1 {
        let message = format!(
            "degree {degree} is for quadrilaterals and hexahedra, and this mesh has {kind} cells: take degree = 1, or a mesh \
             of {}",
            if kind == CellKind::Tetrahedron {
                "hexahedra, as generate = { kind = \"box\", cell = \"hexahedron\", … } makes it"
            } else {
                "quadrilaterals"
            }
        );
        return Err(case.wrong(&["space".into(), "degree".into()], message));
    }
    if case.file.solver.operator == Operator::MatrixFree {
        let message = format!(
            "matrix-free operators are for quadrilaterals and hexahedra, and this mesh has {kind} cells: use \"auto\""
        );
        return Err(case.wrong(&["solver".into(), "operator".into()], message));
    }
    Ok(())
}

fn check_products(case: &Case, request: Request, kind: CellKind) -> Result<(), CaseError> {
    let (solver, degree) = (&case.file.solver, case.file.space.degree);
    let wrong = |key: &str, message: String| Err(case.wrong(&["solver".into(), key.into()], message));
    if matches!(request, Request::Cuda(_)) {
        return wrong(
            "device",
            format!("{kind} cells are solved on the CPU for now: use \"cpu\" or \"auto\""),
        );
    }
    if solver.preconditioner != PreconditionerName::Amg {
        return Ok(());
    }
    if degree != 1 {
        return wrong(
            "preconditioner",
            format!(
                "algebraic multigrid is for linear elements, not for degree {degree}: use \"jacobi\", or degree = 1 on a \
                 finer mesh"
            ),
        );
    }
    if solver.operator == Operator::MatrixFree {
        return wrong(
            "operator",
            "algebraic multigrid needs the matrix: use \"assembled\" or \"auto\"".into(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_gpu_that_is_insisted_on_is_refused_for_hexahedra() {
        let text = "[mesh]\nfile = \"a.vtu\"\n[solver]\ndevice = \"cuda\"\n";
        let case = Case::parse(Path::new("case.toml"), text.into()).unwrap();
        let request = Request::of(&case).unwrap();
        let error = check_cells(&case, request, CellKind::Hexahedron).unwrap_err().to_string();
        assert!(error.contains("solver.device") && error.contains("use \"cpu\" or \"auto\""), "{error}");
        assert!(check_cells(&case, request, CellKind::Tetrahedron).is_ok());
        assert!(check_cells(&case, Request::Auto, CellKind::Quadrilateral).is_ok());
    }
}

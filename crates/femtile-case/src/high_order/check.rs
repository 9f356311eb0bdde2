//! What a case may ask for on the cells that its mesh has, and of which device.

use femtile_device::Cuda;
use femtile_fem::dofs::TensorSpace;
use femtile_mesh::CellKind;
use femtile_multigrid::Smoother;

use super::geometric::Boxes;
use super::operator::is_assembled;
use crate::device::{Choice, Chosen, Request};
use crate::file::{GmgSection, Operator, PreconditionerName, Quadrature};
use crate::{Case, CaseError, run};

/// The device for a space; the processor for what GPUs do not carry out.
///
/// # Errors
/// [`CaseError::Input`] where a GPU is open and cannot carry the case out.
pub(super) fn choose(
    (case, boxes): (&Case, Option<&Boxes>),
    request: Request,
    opened: Option<Cuda>,
    space: &TensorSpace<'_>,
    n_threads: usize,
) -> Result<Choice, CaseError> {
    let is_open = request == Request::Auto && opened.is_none();
    let of_boxes = || boxes.and_then(Boxes::lack_of_gpus);
    let gain = || boxes.filter(|_| is_open).and_then(Boxes::gain_of_cpus);
    let Some(lack) = lack_of_gpus(case, space.mesh().kind).or_else(of_boxes).or_else(gain) else {
        let n = space.n_dofs() * case.file.space.components;
        return run::choose(case, request, opened, n, n_threads);
    };
    if opened.is_some() {
        return Err(needs_cpu(case, &lack));
    }
    let reason = if request == Request::Cpu { "asked for".into() } else { lack };
    Ok(Choice { device: Chosen::Cpu, reason })
}

/// What GPUs lack for a case on such cells, if they lack anything but the method.
fn lack_of_gpus(case: &Case, kind: CellKind) -> Option<String> {
    let solver = &case.file.solver;
    let is_gmg = solver.preconditioner == PreconditionerName::Gmg;
    let has_patches = |gmg: &GmgSection| Smoother::from(gmg.smoother).has_patches();
    if is_gmg && !solver.gmg.as_ref().is_none_or(has_patches) {
        return Some("geometric multigrid smooths on patches alone on GPUs".into());
    }
    if is_gmg && kind != CellKind::Hexahedron {
        return Some(format!("geometric multigrid is for hexahedra on GPUs, and this mesh has {kind} cells"));
    }
    if solver.preconditioner == PreconditionerName::Pmg && kind != CellKind::Hexahedron {
        return Some(format!("p-multigrid is for hexahedra on GPUs, and this mesh has {kind} cells"));
    }
    if case.file.space.components != 1 {
        return Some("u of several components is found on CPUs only".into());
    }
    (kind != CellKind::Hexahedron && !is_assembled(case)).then(|| {
        format!("operators without a matrix are for hexahedra on GPUs, and this mesh has {kind} cells")
    })
}

/// The error where a GPU is asked for what it lacks.
fn needs_cpu(case: &Case, lack: &str) -> CaseError {
    let or = match case.file.solver.preconditioner {
        PreconditionerName::Gmg => ", or preconditioner = \"jacobi\"",
        PreconditionerName::Pmg => ", or preconditioner = \"jacobi\" and operator = \"assembled\"",
        _ if case.file.space.components == 1 => ", or operator = \"assembled\"",
        _ => "",
    };
    let message = format!("{lack}: use \"cpu\" or \"auto\"{or}");
    case.wrong(&["solver".into(), "device".into()], message)
}

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
    if case.file.space.components != 1 {
        let message = format!(
            "several components are for quadrilaterals and hexahedra, and this mesh has {kind} cells: solve for one after the \
             other"
        );
        return Err(case.wrong(&["space".into(), "components".into()], message));
    }
    if case.file.space.quadrature != Quadrature::default() {
        let message =
            format!("is for quadrilaterals and hexahedra, and this mesh has {kind} cells: leave it out");
        return Err(case.wrong(&["space".into(), "quadrature".into()], message));
    }
    if case.file.solver.operator == Operator::MatrixFree {
        let message = format!(
            "matrix-free operators are for quadrilaterals and hexahedra, and this mesh has {kind} cells: use \"auto\""
        );
        return Err(case.wrong(&["solver".into(), "operator".into()], message));
    }
    if let Some(name) = case.file.solver.preconditioner.of_cells() {
        let message = format!(
            "{name} is for quadrilaterals and hexahedra, and this mesh has {kind} cells: use \"amg\""
        );
        return Err(case.wrong(&["solver".into(), "preconditioner".into()], message));
    }
    Ok(())
}

fn check_products(case: &Case, request: Request, kind: CellKind) -> Result<(), CaseError> {
    let (solver, degree) = (&case.file.solver, case.file.space.degree);
    let wrong = |key: &str, message: String| Err(case.wrong(&["solver".into(), key.into()], message));
    if case.file.space.components != 1 && is_assembled(case) {
        let message = "several components have an operator without a matrix alone: take operator = \"matrix-free\" and \
                       preconditioner = \"pmg\", \"gmg\", \"jacobi\" or \"none\"";
        return Err(case.wrong(&["space".into(), "components".into()], message));
    }
    if let (Request::Cuda(_), Some(lack)) = (request, lack_of_gpus(case, kind)) {
        return Err(needs_cpu(case, &lack));
    }
    if solver.preconditioner != PreconditionerName::Amg {
        return Ok(());
    }
    if degree != 1 {
        return wrong(
            "preconditioner",
            format!(
                "algebraic multigrid is for linear elements, not for degree {degree}: use \"pmg\", which has it for degree 1 \
                 below the others"
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

    fn case(solver: &str) -> Case {
        let text = format!("[mesh]\nfile = \"a.vtu\"\n[solver]\ndevice = \"cuda\"\n{solver}");
        Case::parse(Path::new("case.toml"), text).unwrap()
    }

    #[test]
    fn a_gpu_that_is_insisted_on_takes_hexahedra_and_matrices() {
        let case = |solver| (case(solver), Request::Cuda(0));
        let (plain, request) = case("");
        let said = check_cells(&plain, request, CellKind::Quadrilateral).unwrap_err().to_string();
        assert!(said.contains("solver.device") && said.contains("quadrilateral"), "{said}");
        assert!(said.contains("use \"cpu\" or \"auto\", or operator = \"assembled\""), "{said}");
        for kind in [CellKind::Hexahedron, CellKind::Tetrahedron] {
            check_cells(&plain, request, kind).unwrap();
        }
        check_cells(&plain, Request::Auto, CellKind::Quadrilateral).unwrap();
        for solver in ["operator = \"assembled\"", "preconditioner = \"amg\""] {
            let (assembled, request) = case(solver);
            check_cells(&assembled, request, CellKind::Quadrilateral).unwrap();
        }
    }

    #[test]
    fn multigrid_of_cells_says_what_gpus_lack() {
        let hexahedra = CellKind::Hexahedron;
        for (solver, kind, words) in [
            ("preconditioner = \"pmg\"", CellKind::Quadrilateral, "p-multigrid is for hexahedra on GPUs"),
            ("preconditioner = \"gmg\"", CellKind::Quadrilateral, "this mesh has quadrilateral"),
            ("preconditioner = \"gmg\"\ngmg = { smoother = \"chebyshev\" }", hexahedra, "on patches alone"),
        ] {
            let case = case(solver);
            let error = check_cells(&case, Request::Cuda(0), kind).unwrap_err().to_string();
            assert!(error.contains("solver.device") && error.contains(words), "{error}");
            assert!(error.contains("\"auto\"") && error.contains("\"jacobi\""), "{error}");
            check_cells(&case, Request::Auto, kind).unwrap();
        }
        for name in ["gmg", "pmg"] {
            check_cells(&case(&format!("preconditioner = \"{name}\"")), Request::Cuda(0), hexahedra).unwrap();
        }
    }
}

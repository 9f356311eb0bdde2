//! Checks of settings against the cells of the mesh.

use femtile_mesh::CellKind;

use crate::plan::{lack_of_gpus, needs_cpu};
use crate::tensor;
use crate::{
    DeviceChoice, OperatorKind, PreconditionerConfig, Quadrature, SolveError, SolverConfig, SpaceConfig,
};

/// Returns the error if aggregates cannot follow a mesh.
pub(crate) fn graph_error(message: String) -> SolveError {
    SolveError::setting(&["solver".into(), "amg".into(), "graph".into()], message)
}

/// Refuses settings that the cells of the mesh do not support.
///
/// # Errors
/// [`SolveError::Setting`] with the first such setting.
pub fn check_cells(config: &SolverConfig, space: &SpaceConfig, kind: CellKind) -> Result<(), SolveError> {
    match tensor::is_for(kind) {
        true => check_products(config, space, kind),
        false => check_simplices(config, space, kind),
    }
}

fn check_simplices(config: &SolverConfig, space: &SpaceConfig, kind: CellKind) -> Result<(), SolveError> {
    let degree = space.degree;
    if degree != 1 {
        let message = format!(
            "degree {degree} is for quadrilaterals and hexahedra, and this mesh has {kind} cells: take degree = 1, a form \
             (`FormProblem`, `kind = \"form\"`), which has degrees 1 to 6 on them, or a mesh of {}",
            if kind == CellKind::Tetrahedron {
                "hexahedra, as generate = { kind = \"box\", cell = \"hexahedron\", … } makes it"
            } else {
                "quadrilaterals"
            }
        );
        return Err(SolveError::setting(&["space".into(), "degree".into()], message));
    }
    if space.components != 1 {
        let message = format!(
            "several components are for quadrilaterals and hexahedra, and this mesh has {kind} cells: solve for one after the \
             other"
        );
        return Err(SolveError::setting(&["space".into(), "components".into()], message));
    }
    if space.quadrature != Quadrature::default() {
        let message =
            format!("is for quadrilaterals and hexahedra, and this mesh has {kind} cells: leave it out");
        return Err(SolveError::setting(&["space".into(), "quadrature".into()], message));
    }
    if config.operator == OperatorKind::MatrixFree {
        let message = format!(
            "matrix-free operators are for quadrilaterals and hexahedra, and this mesh has {kind} cells: use \"auto\""
        );
        return Err(SolveError::setting(&["solver".into(), "operator".into()], message));
    }
    if config.metric.is_some() {
        return Err(SolveError::solver("metric", of_matrices()));
    }
    if let Some(name) = config.preconditioner.of_cells() {
        let message = format!(
            "{name} is for quadrilaterals and hexahedra, and this mesh has {kind} cells: use \"amg\""
        );
        return Err(SolveError::setting(&["solver".into(), "preconditioner".into()], message));
    }
    Ok(())
}

fn check_products(config: &SolverConfig, space: &SpaceConfig, kind: CellKind) -> Result<(), SolveError> {
    let degree = space.degree;
    let wrong = |key: &str, message: String| Err(SolveError::solver(key, message));
    if space.components != 1 && config.is_assembled() {
        let message = "several components have an operator without a matrix alone: take operator = \"matrix-free\" and \
                       preconditioner = \"pmg\", \"gmg\", \"jacobi\" or \"none\"";
        return Err(SolveError::setting(&["space".into(), "components".into()], message));
    }
    if config.metric.is_some() && config.is_assembled() {
        return wrong("metric", of_matrices());
    }
    if let (DeviceChoice::Cuda(_), Some(lack)) = (config.device, lack_of_gpus(config)) {
        return Err(needs_cpu(&lack));
    }
    if config.preconditioner.needs_graph_of_mesh() {
        let message = format!(
            "the graph of a mesh is that of linear elements on triangles and tetrahedra, and this mesh has {kind} cells: use \
             \"matrix\""
        );
        return Err(graph_error(message));
    }
    if !matches!(config.preconditioner, PreconditionerConfig::Amg(_)) {
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
    if config.operator == OperatorKind::MatrixFree {
        return wrong(
            "operator",
            "algebraic multigrid needs the matrix: use \"assembled\" or \"auto\"".into(),
        );
    }
    Ok(())
}

/// The message about metric evaluation with a matrix.
fn of_matrices() -> String {
    "is for operators without a matrix, on quadrilaterals and hexahedra, and this one has a matrix: leave it out".into()
}

#[cfg(test)]
mod tests {
    use femtile_multigrid::Smoother;

    use super::*;
    use crate::{AmgGraph, AmgOptions, GmgOptions, PmgOptions};

    fn on_gpu(preconditioner: PreconditionerConfig) -> SolverConfig {
        SolverConfig { device: DeviceChoice::Cuda(0), preconditioner, ..SolverConfig::default() }
    }

    fn check(config: &SolverConfig, kind: CellKind) -> Result<(), SolveError> {
        check_cells(config, &SpaceConfig::default(), kind)
    }

    #[test]
    fn a_gpu_that_is_insisted_on_takes_all_cells() {
        for kind in [CellKind::Quadrilateral, CellKind::Hexahedron, CellKind::Tetrahedron] {
            for preconditioner in [
                PreconditionerConfig::Jacobi,
                PreconditionerConfig::None,
                PreconditionerConfig::Amg(AmgOptions::default()),
            ] {
                check(&on_gpu(preconditioner), kind).unwrap();
            }
        }
    }

    #[test]
    fn aggregates_follow_the_cells_of_simplices_alone() {
        let amg = AmgOptions { graph: AmgGraph::Mesh, ..AmgOptions::default() };
        let pmg = PreconditionerConfig::Pmg(PmgOptions { amg: amg.clone(), ..PmgOptions::default() });
        let with = |preconditioner| SolverConfig { preconditioner, ..SolverConfig::default() };
        for preconditioner in [PreconditionerConfig::Amg(amg.clone()), pmg] {
            let said = check(&with(preconditioner), CellKind::Hexahedron).unwrap_err().to_string();
            assert!(said.contains("solver.amg.graph") && said.contains("\"matrix\""), "{said}");
        }
        for kind in [CellKind::Triangle, CellKind::Tetrahedron] {
            check(&with(PreconditionerConfig::Amg(amg.clone())), kind).unwrap();
        }
    }

    #[test]
    fn geometric_multigrid_says_what_gpus_lack() {
        let (pmg, gmg) = (
            PreconditionerConfig::Pmg(PmgOptions::default()),
            PreconditionerConfig::Gmg(GmgOptions::default()),
        );
        let polynomial = GmgOptions { smoother: Smoother::Chebyshev, ..GmgOptions::default() };
        for kind in [CellKind::Quadrilateral, CellKind::Hexahedron] {
            let config = on_gpu(PreconditionerConfig::Gmg(polynomial));
            let error = check(&config, kind).unwrap_err().to_string();
            assert!(error.contains("solver.device") && error.contains("on CPUs only"), "{error}");
            assert!(error.contains("\"auto\"") && error.contains("\"jacobi\""), "{error}");
            check(&SolverConfig { device: DeviceChoice::Auto, ..config }, kind).unwrap();
            for preconditioner in [pmg.clone(), gmg.clone()] {
                check(&on_gpu(preconditioner), kind).unwrap();
            }
        }
    }
}

//! The mesh of a case, checked and refined.

use femtile_device::cuda::Opening;
use femtile_mesh::check::{CheckConfig, CheckReport, check_generated_interruptible, check_interruptible};
use femtile_mesh::{Mesh, refine};
use femtile_solve::{SolverConfig, Stage, Stages};

use crate::file::CheckName;
use crate::memory::Hosted;
use crate::mesh_source::{check_config, check_name, mesh_of, placed};
use crate::route::Route;
use crate::{Case, CaseError, ahead};

/// Reads or generates the mesh, checks and refines it; a GPU that is being opened is told of programs that the mesh needs.
pub(crate) fn checked_mesh(
    case: &Case,
    hosted: Hosted,
    (config, opening): (&SolverConfig, Option<&Opening>),
    stages: &mut Stages<'_>,
) -> Result<(Mesh, CheckReport), CaseError> {
    stages.begin(Stage::Read)?;
    let made = stages.interruptible(|stop| mesh_of(case, (hosted, opening.is_some()), Some(stop)));
    stages.go_on()?;
    let mut mesh = made?;
    if mesh.is_surface && case.route() == Route::Heart {
        let message =
            "the mesh is a surface in space, which is not for hearts: take a mesh of solids or in the plane";
        return Err(case.wrong(&["equation".into(), "kind".into()], message));
    }
    if let Some((opening, programs)) = opening.zip(ahead::of_mesh(case, config, &mesh)) {
        opening.prepare(programs);
    }
    stages.begin(Stage::Check)?;
    let config = check_config(case, mesh.division.is_some());
    let check = match check_name(case) {
        CheckName::Full => check_interruptible,
        CheckName::Generated => check_generated_interruptible,
    };
    let found = stages.interruptible(|stop| check(&mut mesh, &config, Some(stop)));
    stages.go_on()?;
    let mut report = found.map_err(|error| placed(case, error))?;
    for _ in 0..case.file.mesh.refine {
        let finer = stages.interruptible(|stop| refine::uniform_interruptible(&mesh, Some(stop)));
        stages.go_on()?;
        mesh = finer?;
    }
    if case.file.mesh.refine > 0 {
        let CheckReport { n_orphans, ref warnings, .. } = report;
        let config = CheckConfig { merge_duplicates: false, ..config };
        report = CheckReport { warnings: warnings.clone(), ..check(&mut mesh, &config, None)? };
        report.n_orphans = n_orphans;
    }
    Ok((mesh, report))
}

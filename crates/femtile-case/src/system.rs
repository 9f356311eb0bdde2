//! The linear system of a case, for iterative methods of the caller.

use std::sync::Arc;

use femtile_device::Cpu;
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;
use femtile_solve::{Progress, SolutionData, Stage, Stages, StandaloneSystem, check_cells};

use crate::checked_mesh::checked_mesh;
use crate::memory::Hosted;
use crate::placed::placed;
use crate::route::Route;
use crate::{Case, CaseError};

/// The linear system of a case of −∇·(σ∇u) + λu = f on a processor, with its checked mesh.
#[derive(Debug)]
pub struct CaseSystem {
    case: Case,
    mesh: Mesh,
    boundary: Arc<BoundaryFacets>,
    cpu: Cpu,
    system: StandaloneSystem<Cpu>,
}

impl CaseSystem {
    /// Makes the system; of the section `solver`, threads and operator count.
    ///
    /// # Errors
    /// As [`crate::run`], and for an equation in time.
    pub fn new(case: Case, progress: &mut dyn Progress) -> Result<Self, CaseError> {
        case.check()?;
        refuse_others(&case)?;
        let made = Self::make(&case, progress);
        let (mesh, boundary, cpu, system) = made.map_err(|error| placed(&case, error))?;
        Ok(Self { case, mesh, boundary, cpu, system })
    }

    fn make(
        case: &Case,
        progress: &mut dyn Progress,
    ) -> Result<(Mesh, Arc<BoundaryFacets>, Cpu, StandaloneSystem<Cpu>), CaseError> {
        let config = case.solver_config()?;
        let cpu = Cpu::new(config.threads)?;
        let (mesh, boundary, system) = cpu.install(|| {
            let mut stages = Stages::new(progress);
            let (mut mesh, checked) = checked_mesh(case, Hosted::whole(case)?, (&config, None), &mut stages)?;
            refuse_others(&case.on_whole(&mesh))?;
            check_cells(&config, &case.space_config(), mesh.kind)?;
            stages.begin(Stage::Space)?;
            case.tag_regions(&mut mesh)?;
            let discretization = case.problem((&mesh, &checked.boundary))?.discretize()?;
            let system = discretization.standalone_system((&cpu, &cpu), &config, &mut stages)?;
            drop(discretization);
            Ok::<_, CaseError>((mesh, checked.boundary, system))
        })?;
        Ok((mesh, boundary, cpu, system))
    }

    /// Returns the system.
    pub fn system(&self) -> &StandaloneSystem<Cpu> {
        &self.system
    }

    /// Returns the processor that holds the system.
    pub fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// Returns u with its mesh from the solution of the system.
    ///
    /// # Errors
    /// [`CaseError::Fem`] if `w` does not belong to the system.
    pub fn solution(&self, w: &[f64]) -> Result<SolutionData, CaseError> {
        self.cpu.install(|| {
            let discretization = self.case.problem((&self.mesh, &self.boundary))?.discretize()?;
            Ok(discretization.solution_of(&self.system, w)?)
        })
    }
}

/// Refuses cases that have no linear system of their own; a mesh that was read may make it such a case.
fn refuse_others(case: &Case) -> Result<(), CaseError> {
    if case.route() == Route::Stationary {
        return Ok(());
    }
    let reason = case.needs_form().map_or(String::new(), |key| format!(", without {key}"));
    let message =
        format!("only `kind = \"reaction-diffusion\"` is available as a linear system{reason}; run the case");
    Err(case.wrong(&["equation".into(), "kind".into()], message))
}

//! The plan of a solve: operator, preconditioner and device, decided once before any of them is made.

use femtile_device::Cuda;
use femtile_mesh::CellKind;
use femtile_multigrid::Smoother;

use crate::auto::{self, Boxed, Chosen, Circumstances};
use crate::device::{self, Choice};
use crate::discretization::Discretization;
use crate::tensor::{self, Boxes};
use crate::{
    DeviceChoice, GmgOptions, OperatorKind, PmgOptions, PreconditionerConfig, SolveError, SolverConfig,
    SpaceConfig,
};

/// The operator, the preconditioner and the device of a solve, with the reasons for them.
///
/// Memory estimates, announced programs, reports and the construction of the system read it.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The settings, with the preconditioner that `auto` stands for.
    pub config: SolverConfig,
    /// The reason for the preconditioner.
    pub reason: String,
    /// Iterations after which multigrid takes over from a diagonal that was chosen for few of them.
    pub patience: Option<usize>,
    /// The boxes of geometric multigrid, once they are known.
    pub boxes: Option<Boxes>,
    /// Whether the operator is a matrix.
    pub has_matrix: bool,
}

impl Plan {
    fn new(config: &SolverConfig, kind: CellKind, chosen: Chosen) -> Self {
        let Chosen { preconditioner, boxes, reason, patience } = chosen;
        let mut config = SolverConfig { preconditioner, ..config.clone() };
        config.preconditioner.take_format(config.format);
        let has_matrix = !tensor::is_for(kind) || config.is_assembled();
        Self { config, reason, patience, boxes, has_matrix }
    }

    /// Decides for a problem; `boxed` finds the boxes of geometric multigrid, which `auto` leaves out without it. Collective if
    /// the mesh is distributed.
    ///
    /// # Errors
    /// Errors in the data of the problem, and those of `boxed` if the settings name geometric multigrid.
    pub fn of(
        config: &SolverConfig,
        problem: &Discretization<'_>,
        boxed: Option<&Boxed<'_>>,
        circumstances: Circumstances,
    ) -> Result<Self, SolveError> {
        let chosen = match &config.preconditioner {
            PreconditionerConfig::Auto => auto::choose(config, problem, boxed, circumstances)?,
            PreconditionerConfig::Gmg(options) => {
                let boxes = boxed.map_or(Ok(None), |boxed| boxed(options))?;
                Chosen { boxes, ..Chosen::of(config.preconditioner.clone(), "asked for") }
            }
            given => Chosen::of(given.clone(), "asked for"),
        };
        Ok(Self::new(config, problem.mesh.kind, chosen))
    }

    /// Decides before there is a problem, from its space and cells, which may be known to fill a box: `auto` stands for the most
    /// demanding preconditioner that it may choose.
    pub fn before_mesh(config: &SolverConfig, space: &SpaceConfig, kind: CellKind, is_box: bool) -> Self {
        let heaviest = || match auto::only(config, space) {
            Some((preconditioner, _)) => preconditioner,
            None if !tensor::is_for(kind) || config.operator == OperatorKind::Assembled => auto::amg(),
            None if is_box => PreconditionerConfig::Gmg(GmgOptions::default()),
            None => PreconditionerConfig::Pmg(PmgOptions::default()),
        };
        let preconditioner = match &config.preconditioner {
            PreconditionerConfig::Auto => heaviest(),
            given => given.clone(),
        };
        Self::new(config, kind, Chosen::of(preconditioner, "the most demanding choice"))
    }

    /// Returns what GPUs do not support, if there is anything.
    pub fn lack_of_gpus(&self) -> Option<String> {
        lack_of_gpus(&self.config).or_else(|| self.boxes.as_ref()?.lack_of_gpus())
    }

    /// Chooses the device for `n` unknowns; the CPU for what GPUs do not support.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if a GPU is requested and does not support the settings.
    pub fn device(&self, opened: Option<Cuda>, n: usize, n_threads: usize) -> Result<Choice, SolveError> {
        let asked = self.config.device;
        let is_open = asked == DeviceChoice::Auto && opened.is_none();
        let gain_of_cpus = || self.boxes.as_ref().filter(|_| is_open)?.gain_of_cpus();
        let Some(lack) = self.lack_of_gpus().or_else(gain_of_cpus) else {
            return Ok(asked.choose(opened, n, n_threads));
        };
        if opened.is_some() {
            return Err(needs_cpu(&lack));
        }
        let reason = if asked == DeviceChoice::Cpu { "asked for".into() } else { lack };
        Ok(Choice { device: device::Chosen::Cpu, reason })
    }
}

/// Returns the setting that GPUs do not support, if there is one.
pub(crate) fn lack_of_gpus(config: &SolverConfig) -> Option<String> {
    match &config.preconditioner {
        PreconditionerConfig::Gmg(options) if options.smoother == Smoother::Chebyshev => {
            Some("smoother = \"chebyshev\" runs on CPUs only".into())
        }
        _ => None,
    }
}

/// Returns the error that a GPU does not support geometric multigrid as it is set.
pub(crate) fn needs_cpu(lack: &str) -> SolveError {
    let message = format!("{lack}: use \"cpu\" or \"auto\", or preconditioner = \"jacobi\"");
    SolveError::solver("device", message)
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};

    use super::*;
    use crate::{AmgOptions, Poisson, check_cells};

    #[test]
    fn a_solve_is_made_of_what_was_planned_before_its_mesh() {
        let mut n_solved = 0;
        for (split, degree) in [(BoxSplit::Kuhn, 1), (BoxSplit::Hexahedron, 1), (BoxSplit::Hexahedron, 2)] {
            let mesh = box_mesh(&BoxConfig { cells: [4; 3], split, ..BoxConfig::default() }).unwrap();
            let problem = Poisson::new(&mesh).degree(degree).source("x").dirichlet("xmin", "y").unwrap();
            let space = SpaceConfig { degree, ..SpaceConfig::default() };
            for operator in [OperatorKind::Auto, OperatorKind::Assembled, OperatorKind::MatrixFree] {
                for preconditioner in [
                    PreconditionerConfig::None,
                    PreconditionerConfig::Jacobi,
                    PreconditionerConfig::Amg(AmgOptions::default()),
                    PreconditionerConfig::Gmg(GmgOptions::default()),
                    PreconditionerConfig::Pmg(PmgOptions::default()),
                ] {
                    let config = SolverConfig { operator, preconditioner, ..SolverConfig::default() };
                    if config.check().and_then(|()| check_cells(&config, &space, mesh.kind)).is_err() {
                        continue;
                    }
                    let plan = Plan::before_mesh(&config, &space, mesh.kind, false);
                    let solution = problem.solve(&config).unwrap();
                    assert_eq!(plan.has_matrix, solution.operator() != "matrix-free", "{config:?}");
                    assert_eq!(plan.config.preconditioner.name(), solution.preconditioner());
                    n_solved += 1;
                }
            }
        }
        assert!(n_solved >= 18, "{n_solved}");
    }
}

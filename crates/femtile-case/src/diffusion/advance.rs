//! Time steps of a case on one device.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use femtile_solve::{Progress, Stage, Stages};
use femtile_time::TimeError;
use femtile_time::adi::{AdiDevice, AdiOutcome, AdiStop, CellPeclet, Operator, StepMonitor};

use super::placed;
use super::problem::GridProblem;
use crate::file::Precision;
use crate::{Case, CaseError};

/// The result of a run.
pub(super) struct Advanced {
    /// Values at the nodes.
    pub u: Vec<f64>,
    pub outcome: AdiOutcome,
    /// Description of the device.
    pub device: String,
    pub kernel_launches: u64,
    pub warnings: Vec<String>,
}

/// Runs all time steps in the precision of the case.
pub(super) fn in_precision<D: AdiDevice>(
    device: &D,
    case: &Case,
    prepared: &GridProblem,
    stages: &mut Stages<'_>,
) -> Result<Advanced, CaseError> {
    stages.begin(Stage::Setup)?;
    let placed = |error: TimeError| placed::placed(case, error);
    let (problem, config) = (&prepared.problem, prepared.config.clone());
    let adi = match case.file.solver.precision {
        Precision::F32 => device.adi_in_f32(problem, config),
        _ => device.adi_in_f64(problem, config),
    };
    let mut adi = adi.map_err(placed)?;
    adi.set_values(&prepared.initial).map_err(placed)?;
    stages.begin(Stage::Solve)?;
    let limit = case.file.solver.time_limit_s.map(Duration::from_secs_f64);
    let mut clock =
        Clock { progress: stages.progress(), steps: prepared.config.steps, begun: Instant::now(), limit };
    let outcome = adi.run(&mut clock)?;
    let u = adi.values()?;
    let (device, kernel_launches) = (device.description(), device.kernel_launches());
    let peclet = adi.operator().cell_peclet().filter(CellPeclet::may_oscillate);
    let warnings = peclet.map(|peclet| warning_of_peclet(&peclet, adi.operator())).into_iter().collect();
    Ok(Advanced { u, outcome, device, kernel_launches, warnings })
}

/// Returns the warning that centred differences may oscillate.
fn warning_of_peclet(peclet: &CellPeclet, operator: &Operator) -> String {
    let CellPeclet { largest, axis, point: [x, y, z], share_above_two } = *peclet;
    let name = ["x", "y", "z"][axis];
    let advice = match largest.is_finite() {
        true => {
            let grid = operator.grid();
            let intervals = (grid.upper()[axis] - grid.lower()[axis]) / grid.spacing()[axis];
            format!("use {:.0} nodes along {name} or more", 1.0 + (intervals * largest / 2.0).ceil())
        }
        false => "there is no diffusion at that node, so no grid is fine enough there".into(),
    };
    format!(
        "the cell Péclet number |c|h/D along {name} is {largest:.3} at ({x}, {y}, {z}) and above 2 at {:.1} % of the nodes: \
         centred differences may oscillate there, and u may leave the range of its data; {advice}",
        100.0 * share_above_two
    )
}

/// Reports progress, and ends the run when the user interrupts it or the time limit is reached.
struct Clock<'a> {
    progress: &'a mut dyn Progress,
    steps: usize,
    begun: Instant,
    limit: Option<Duration>,
}

impl StepMonitor for Clock<'_> {
    fn step(&mut self, step: usize, _time: f64) -> ControlFlow<AdiStop> {
        self.progress.fraction(step as f64 / self.steps as f64);
        if self.progress.is_interrupted() {
            ControlFlow::Break(AdiStop::Interrupted)
        } else if self.limit.is_some_and(|limit| self.begun.elapsed() >= limit) {
            ControlFlow::Break(AdiStop::TimeLimit)
        } else {
            ControlFlow::Continue(())
        }
    }
}

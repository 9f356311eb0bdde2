//! Programs of a GPU that a case will probably need, listed before they are needed.

use femtile_device::cuda::Specialisation;
use femtile_mesh::{CellKind, Mesh};
use femtile_solve::{Cells, Outline, SolverConfig, Value, likely_programs};

use crate::file::{Generator, PlaneCellName};
use crate::memory::Hosted;
use crate::mesh_source::mesh_of;
use crate::placed::placed;
use crate::route::Route;
use crate::{Case, CaseError};

/// Cells along an axis up to which a box is outlined, far more than fit in memory in three dimensions.
const MOST_ALONG: usize = 1 << 16;

/// A list of programs that another thread makes.
pub(crate) type List = Box<dyn FnOnce() -> Vec<Specialisation> + Send>;

/// Returns the programs that a case will probably need on a GPU; a mesh file is read for the kind of its cells.
///
/// There are none for equations in time, whose programs are compiled when they are needed.
///
/// # Errors
/// Errors in the settings of the case, and of reading its mesh.
pub fn gpu_programs(case: &Case) -> Result<Vec<Specialisation>, CaseError> {
    let list = || {
        case.check()?;
        let config = case.solver_config()?;
        let is_steady = case.route() == Route::Stationary;
        let read = case.file.mesh.file.is_some() && is_steady;
        let of_mesh = match read {
            true => of_mesh(case, &config, &mesh_of(case, (Hosted::whole(case)?, true), None)?),
            false => None,
        };
        Ok(of_mesh.unwrap_or_else(|| before_mesh(case, &config))())
    };
    list().map_err(|error| placed(case, error))
}

/// Returns the list of programs before the mesh of a case is read or generated.
pub(crate) fn before_mesh(case: &Case, config: &SolverConfig) -> List {
    let outline = case.file.mesh.generate.as_ref().and_then(|generator| {
        let (kind, cells) = generated(generator, case.file.mesh.refine)?;
        Some(outline(case, kind, cells))
    });
    list(case, config, move || outline.map(|outline| outline()))
}

/// Returns the list of programs once the mesh was read; none if it was generated, as they are known before.
pub(crate) fn of_mesh(case: &Case, config: &SolverConfig, mesh: &Mesh) -> Option<List> {
    case.file.mesh.file.as_ref()?;
    let cells = if mesh.curved.is_some() { Cells::Curved } else { Cells::Straight };
    let outline = outline(case, mesh.kind, cells);
    Some(list(case, config, move || Some(outline())))
}

fn list(
    case: &Case,
    config: &SolverConfig,
    outline: impl FnOnce() -> Option<Outline> + Send + 'static,
) -> List {
    match case.route() {
        Route::Stationary => {
            let config = config.clone();
            Box::new(move || likely_programs(&config, outline().as_ref()))
        }
        _ => Box::new(Vec::new),
    }
}

/// Returns a function that makes the outline of the equation on such cells.
fn outline(case: &Case, kind: CellKind, cells: Cells) -> impl FnOnce() -> Outline + Send + 'static {
    let equation = &case.file.equation;
    let values = [&equation.sigma, &equation.lambda, equation.source()].map(Value::from);
    let space = case.space_config();
    move || Outline::new(kind, cells, space, values.each_ref())
}

/// Returns the widths of equal cells along each axis, refined some times; none for too many.
fn widths(cells: &[usize], [lower, upper]: [&[f64]; 2], refine: u32) -> Option<Vec<Vec<f64>>> {
    let along = |axis: usize| {
        let n = cells[axis].checked_shl(refine).filter(|n| *n <= MOST_ALONG)?;
        Some(vec![(upper[axis] - lower[axis]) / n as f64; n])
    };
    (0..cells.len()).map(along).collect()
}

/// Returns the cells that a generator makes, refined some times; none for grids.
fn generated(generator: &Generator, refine: u32) -> Option<(CellKind, Cells)> {
    let shape = |order: usize| if order == 1 { Cells::Straight } else { Cells::Curved };
    let of_box = |cells: &[usize], corners: [&[f64]; 2], deform: f64, order: usize| {
        let widths = (deform == 0.0 && order == 1).then(|| widths(cells, corners, refine)).flatten();
        widths.map_or(shape(order), Cells::Box)
    };
    let cells = match *generator {
        Generator::Box { cells, lower, upper, deform, order, .. } => {
            of_box(&cells, [&lower, &upper], deform, order)
        }
        Generator::Square { cell: PlaneCellName::Triangle, .. } => Cells::Straight,
        Generator::Square { cells, lower, upper, deform, order, .. } => {
            of_box(&cells, [&lower, &upper], deform, order)
        }
        Generator::Sphere { cell: PlaneCellName::Triangle, .. } => Cells::Straight,
        Generator::Ball { order, .. } | Generator::Shell { order, .. } | Generator::Sphere { order, .. } => {
            shape(order)
        }
        _ => Cells::Straight,
    };
    Some((generator.cell_kind()?, cells))
}

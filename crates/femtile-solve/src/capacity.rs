//! The capacity of equations in time, the factor c of ∂u/∂t.

use femtile_device::parallel;
use femtile_expression::Names;
use femtile_fem::Coefficient;
use femtile_mesh::Mesh;

use crate::coefficient::{positive, scalar};
use crate::setting::Key;
use crate::{SolveError, Value};

/// Cells that a thread visits at least.
const PIECE: usize = 1 << 14;

/// Resolves a capacity c on a mesh, together with the reaction λ: stages have the reaction λ + a c.
///
/// # Errors
/// [`SolveError::Setting`] for a capacity that depends on t, is not positive at a corner or in the middle of
/// a cell, or a cell field if the reaction is a formula, and the other way round.
pub(crate) fn resolved_capacity(
    mesh: &Mesh,
    value: &Value,
    lambda: &Coefficient,
) -> Result<Coefficient, SolveError> {
    let path: [Key; 2] = ["equation".into(), "capacity".into()];
    let wrong = |message: &str| Err(SolveError::setting(&path, message));
    let parsed = value.parsed(mesh, &path, &Names { time: true, others: &["u"] })?;
    let capacity = scalar(mesh, &parsed, &path)?;
    if capacity.uses_time() {
        return wrong("the capacity depends on x, y, z and u, not on t");
    }
    if let Some(number) = capacity.as_constant() {
        positive(number, None, &path)?;
    } else if !capacity.uses_unknown() {
        check_values(mesh, &capacity, &path)?;
    }
    match lambda.plus_times(1.0, &capacity) {
        Some(_) => Ok(capacity),
        None => wrong(
            "the capacity is a cell field and the reaction a formula, or the other way round: give both as cell fields, or both \
             as formulas",
        ),
    }
}

/// Returns $\lambda + a c$.
pub(crate) fn plus_capacity(lambda: &Coefficient, shift: f64, capacity: &Coefficient) -> Coefficient {
    match lambda.plus_times(shift, capacity) {
        Some(sum) => sum,
        None => unreachable!("cell fields and formulas were refused with the problem"),
    }
}

/// Refuses a capacity that is not positive at a corner or in the middle of a cell.
pub(crate) fn check_values(mesh: &Mesh, capacity: &Coefficient, path: &[Key]) -> Result<(), SolveError> {
    let is_by_cell = capacity.is_constant_by_cell();
    let wrong_in = |cell: usize| {
        let tag = mesh.cell_tags.get(cell).copied().unwrap_or(0);
        let middle = [mesh.middle(cell)];
        let corners = mesh.cell(cell).iter().map(|&node| mesh.points[node as usize]);
        let corners = corners.take(if is_by_cell { 0 } else { usize::MAX });
        let mut values = middle.into_iter().chain(corners).map(|point| capacity.scalar_at(cell, tag, point));
        values.find(|&value| !(value > 0.0 && value.is_finite())).map(|value| (cell, value))
    };
    let n = mesh.n_cells();
    let first = parallel::map(n.div_ceil(PIECE), 1, |piece| {
        (PIECE * piece..n.min(PIECE * (piece + 1))).find_map(wrong_in)
    });
    match first.into_iter().flatten().next() {
        Some((cell, value)) => positive(value, Some(cell), path).map(drop),
        None => Ok(()),
    }
}

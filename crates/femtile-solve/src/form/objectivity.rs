//! Warnings about energies of solids that rotations change, or that have stresses at rest.

use std::collections::BTreeMap;

use femtile_expression::Shape;
use femtile_form::{Domain, Form, Input, Integrand, Objectivity};

use super::FormProblem;
use super::diffusion::centre;

/// Tags whose materials are checked.
const MOST_TAGS: usize = 32;

/// Returns warnings about the energy of a displacement, the only unknown with as many components as there are axes: in the middle
/// of a cell of each tag it is turned, see [`Integrand::objectivity`].
pub(super) fn warnings(problem: &FormProblem<'_>, form: &Form) -> Vec<String> {
    let (mesh, d) = (problem.mesh, form.dimension());
    let cells = form.integrals().iter().find(|integral| integral.domain == Domain::Cells);
    let (Some(cells), [(name, shape)]) = (cells, &problem.unknowns()[..]) else { return Vec::new() };
    if *shape != Shape::Vector(d) || mesh.is_surface {
        return Vec::new();
    }
    let mut by_tag = BTreeMap::new();
    for cell in 0..mesh.n_cells() {
        by_tag.entry(mesh.cell_tags.get(cell).copied().unwrap_or(0)).or_insert(cell);
    }
    let of_cell = |(&tag, &cell): (&i32, &usize)| in_cell(problem, &cells.integrand, cell, tag);
    let all: Vec<Objectivity> = by_tag.iter().take(MOST_TAGS).filter_map(of_cell).collect();
    let mut warnings = Vec::new();
    if let Some(angle) = all.iter().find_map(|found| found.changed_by) {
        warnings.push(format!(
            "energy: it changes when the body is turned, by {angle:.0} degrees for example, as energies of small strains do: if {name} \
             is a displacement they are valid for small rotations only; for large ones use F'*F in place of sym(grad({name})), \
             with F = identity + grad({name})"
        ));
    }
    if all.iter().any(|found| found.is_stressed_at_rest) {
        warnings.push(format!(
            "energy: the body has stresses where {name} is zero, as its derivative by grad({name}) is not zero there; if they are \
             not meant, such as those of a change of temperature, a term is missing"
        ));
    }
    warnings
}

fn in_cell(problem: &FormProblem<'_>, integrand: &Integrand, cell: usize, tag: i32) -> Option<Objectivity> {
    let point = centre(problem.mesh, cell);
    integrand.objectivity(&|input| match input {
        Input::Coordinate(axis) => point[axis],
        Input::Time => problem.end(),
        Input::Tag => f64::from(tag),
        Input::Cell(at) => integrand.cell_data()[at].value(cell, tag),
        Input::Point(at) => integrand.point_data()[at].at(point),
        Input::Normal(_) | Input::State(_) | Input::Rate(_) => 0.0,
    })
}

//! The conditions of a case, with the facets that they hold on.

use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;
use femtile_report::ConditionRow;
use femtile_solve::Discretization;
use serde::Serialize;

use crate::Case;
use crate::file::BoundarySection;

/// Returns a row for each condition, with the number and the area of its facets.
pub(crate) fn on_mesh(
    case: &Case,
    problem: &Discretization<'_>,
    boundary: &BoundaryFacets,
) -> Vec<ConditionRow> {
    let facets = |place: &str| Some(problem.facets(place, &[]).ok()?.facets);
    with_facets(case, (problem.mesh(), boundary), &facets)
}

/// As [`on_mesh`], with a function that returns the facets of a place.
pub(crate) fn with_facets(
    case: &Case,
    (mesh, boundary): (&Mesh, &BoundaryFacets),
    facets: &dyn Fn(&str) -> Option<Vec<u32>>,
) -> Vec<ConditionRow> {
    let rows = case.file.boundary.iter().map(|section| {
        let (key, place) = section.place();
        let facets = if key == "where" { facets(place) } else { None };
        let of_facet = |corners: &[u32]| match case.file.space.axisymmetric {
            true => area(mesh, corners) * circumference(mesh, corners),
            false => area(mesh, corners),
        };
        let area = facets
            .as_ref()
            .map(|facets| facets.iter().map(|&facet| of_facet(boundary.facet(facet as usize))).sum());
        ConditionRow { n_facets: facets.map(|facets| facets.len()), area, ..section.row() }
    });
    rows.collect()
}

/// Returns a row for each condition of a case on a grid.
pub(crate) fn on_grid(case: &Case) -> Vec<ConditionRow> {
    case.file.boundary.iter().map(BoundarySection::row).collect()
}

impl BoundarySection {
    /// Returns the condition of the section as a row, without its facets.
    fn row(&self) -> ConditionRow {
        let value = match (&self.dirichlet, &self.neumann, &self.robin) {
            (Some(value), ..) => text(value),
            (_, Some(value), _) => text(value),
            (.., Some(robin)) => {
                format!("coefficient {}, value {}", text(&robin.coefficient), text(&robin.value))
            }
            _ => match (&self.traction, &self.pressure, &self.flux, &self.total) {
                (Some(traction), ..) => text(traction),
                (_, Some(pressure), ..) => text(pressure),
                (_, _, Some(flux), _) => text(flux),
                (.., Some(total)) => text(total),
                _ => String::new(),
            },
        };
        let (key, place) = self.place();
        let place = if key == "nodes" { format!("nodes {place}") } else { place.into() };
        ConditionRow { place, kind: self.condition().into(), value, n_facets: None, area: None }
    }
}

/// Returns a value as a case file has it, strings without quotes.
pub(crate) fn text(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    text.trim_matches('"').into()
}

/// Returns the mean circumference of the circles around the axis of a body of revolution through a facet.
fn circumference(mesh: &Mesh, corners: &[u32]) -> f64 {
    let sum: f64 = corners.iter().map(|&node| mesh.points[node as usize][0]).sum();
    std::f64::consts::TAU * sum / corners.len() as f64
}

/// Returns the length or the area of a facet between its corners, and 1 for the end of a segment.
fn area(mesh: &Mesh, corners: &[u32]) -> f64 {
    let edge = |i: usize| -> [f64; 3] {
        let [from, to] = [corners[0], corners[i]].map(|node| mesh.points[node as usize]);
        std::array::from_fn(|axis| to[axis] - from[axis])
    };
    let length = |a: [f64; 3]| a.iter().map(|x| x * x).sum::<f64>().sqrt();
    let half = |[a, b]: [[f64; 3]; 2]| {
        let cross = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
        0.5 * length(cross)
    };
    match corners.len() {
        2 => length(edge(1)),
        3 => half([edge(1), edge(2)]),
        4 => half([edge(1), edge(2)]) + half([edge(2), edge(3)]),
        _ => 1.0,
    }
}

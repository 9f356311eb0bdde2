//! The conditions of a case, with the facets that they hold on.

use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;
use femtile_report::ConditionRow;
use femtile_solve::{Discretization, Region};
use serde::Serialize;

use crate::Case;
use crate::file::{BoundarySection, PeriodicSection};

/// Returns a row for each condition, with the number and the area of its facets.
pub(crate) fn on_mesh(
    case: &Case,
    problem: &Discretization<'_>,
    boundary: &BoundaryFacets,
) -> Vec<ConditionRow> {
    let facets = |region| Some(problem.facets(region, &[]).ok()?.facets);
    with_facets(case, (problem.mesh(), boundary), &facets)
}

/// As [`on_mesh`], with a function that returns the facets of a region in the list.
pub(crate) fn with_facets(
    case: &Case,
    (mesh, boundary): (&Mesh, &BoundaryFacets),
    facets: &dyn Fn(Region) -> Option<Vec<u32>>,
) -> Vec<ConditionRow> {
    let rows = case.file.boundary.iter().map(|section| {
        let facets = if section.r#where.is_some() { facets(section.region()) } else { None };
        let of_facet = |corners: &[u32]| match case.file.space.axisymmetric {
            true => area(mesh, corners) * circumference(mesh, corners),
            false => area(mesh, corners),
        };
        let area = facets
            .as_ref()
            .map(|facets| facets.iter().map(|&facet| of_facet(boundary.facet(facet as usize))).sum());
        ConditionRow { n_facets: facets.map(|facets| facets.len()), area, ..section.row() }
    });
    rows.chain(pairs(case, facets)).collect()
}

/// Returns a row for each pair of sides.
fn pairs<'c>(
    case: &'c Case,
    facets: &'c dyn Fn(Region) -> Option<Vec<u32>>,
) -> impl Iterator<Item = ConditionRow> + 'c {
    let row = |kind: &str, from: &str, to: &str, value: String| ConditionRow {
        place: format!("{to} from {from}"),
        kind: kind.into(),
        value,
        n_facets: facets(to.into()).map(|facets| facets.len()),
        area: None,
    };
    let jump = |section: &PeriodicSection| {
        section.jump.as_ref().map_or_else(String::new, |jump| format!("jump {}", text(jump)))
    };
    let periodic = case.file.periodic.iter();
    let periodic = periodic.map(move |own| row("periodic", &own.from, &own.to, jump(own)));
    let ties = case.file.tie.iter().map(move |own| row("tie", &own.from, &own.to, String::new()));
    periodic.chain(ties).chain(interfaces_and_sources(case))
}

/// Returns a row for each interface and each source at a point.
fn interfaces_and_sources(case: &Case) -> impl Iterator<Item = ConditionRow> + '_ {
    let row = |place, kind: &str, value| ConditionRow {
        place,
        kind: kind.into(),
        value,
        n_facets: None,
        area: None,
    };
    let interfaces = case.file.interface.iter().map(move |own| {
        let place = match (own.between.as_ref().or(own.sides.as_ref()), &own.r#where, &own.from) {
            (Some([first, second]), ..) => format!("between {first} and {second}"),
            (None, place, None) => place.clone().unwrap_or_default(),
            (None, place, Some(cells)) => format!("{} from {cells}", place.as_deref().unwrap_or_default()),
        };
        let conductance = own.conductance.iter().map(|value| format!("conductance {}", text(value)));
        let stiffness = own.stiffness.iter().map(|value| format!("stiffness {}", text(value)));
        let flux = own.flux.iter().map(|value| format!("flux {}", text(value)));
        row(place, "interface", conductance.chain(stiffness).chain(flux).collect())
    });
    let sources = case.file.source.iter();
    let sources = sources.map(move |own| {
        row(format!("point {}", text(&own.point)), "source", format!("total {}", text(&own.total)))
    });
    interfaces.chain(sources)
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
            _ if self.floats() => {
                self.total.as_ref().map_or_else(|| "total 0".into(), |total| format!("total {}", text(total)))
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
        let place = match (key, &self.from) {
            ("nodes", _) => format!("nodes {place}"),
            (_, Some(cells)) => format!("{place} from {cells}"),
            _ => place.into(),
        };
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

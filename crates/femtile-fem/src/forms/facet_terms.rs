//! Terms of Neumann and Robin conditions, facet by facet.

use femtile_element::quadrature;
use femtile_expression::TapeScratch;

use super::checks::not_negative;
use super::{Compiled, Points};
use super::{Condition, Form};
use crate::FemError;

/// Degree of the quadrature rule on facets: data of degree 3 are integrated exactly against a shape function.
const DEGREE: usize = 4;

/// Terms of one facet: $\int c\,\varphi_a\varphi_b$ and $\int (g + c\,w)\,\varphi_a$ over its corners.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FacetTerm {
    /// Position in the list of boundary facets.
    pub facet: u32,
    /// Corners; in two dimensions the third repeats the second and its entries are zero.
    pub nodes: [u32; 3],
    /// Entries 00, 11, 22, 01, 02, 12.
    pub matrix: [f64; 6],
    /// Load of each corner.
    pub load: [f64; 3],
    /// Whether $c$ is positive somewhere on the facet.
    pub reacts: bool,
}

/// Row and column of the entries of [`FacetTerm::matrix`].
pub(crate) const FACET_ENTRIES: [(usize, usize); 6] = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)];

/// Returns the condition on each boundary facet: the last that names it.
///
/// # Errors
/// [`FemError::NoSuchFacet`] for a facet beyond the boundary.
pub fn winners(form: &Form<'_>) -> Result<Vec<Option<u32>>, FemError> {
    let n_facets = form.boundary.len();
    let mut winners = vec![None; n_facets];
    for (condition, entry) in form.conditions.iter().enumerate() {
        for &facet in &entry.facets {
            let Some(winner) = winners.get_mut(facet as usize) else {
                return Err(FemError::NoSuchFacet { condition, facet, n_facets });
            };
            *winner = Some(condition as u32);
        }
    }
    Ok(winners)
}

/// Evaluates the terms of all Neumann and Robin facets, by condition and then by facet.
///
/// # Errors
/// A datum that is not finite, or a negative transfer coefficient, reported by the cell of its facet.
pub(crate) fn facet_terms(form: &Form<'_>, winners: &[Option<u32>]) -> Result<Vec<FacetTerm>, FemError> {
    let mut terms = Vec::new();
    for (number, entry) in form.conditions.iter().enumerate() {
        let mut facets: Vec<u32> = entry.facets.clone();
        facets.retain(|&facet| winners[facet as usize] == Some(number as u32));
        facets.sort_unstable();
        facets.dedup();
        match &entry.condition {
            Condition::Dirichlet(_) | Condition::DirichletAtNodes { .. } => {}
            Condition::Neumann(flux) => {
                let flux = Compiled::scalar("neumann", flux, form.mesh)?;
                push_terms(form, &facets, &flux, None, &mut terms)?;
            }
            Condition::Robin { coefficient, value } => {
                let coefficient = Compiled::scalar("robin.coefficient", coefficient, form.mesh)?;
                let value = Compiled::scalar("robin.value", value, form.mesh)?;
                push_terms(form, &facets, &value, Some(&coefficient), &mut terms)?;
            }
        }
    }
    Ok(terms)
}

/// Facets evaluated together.
const FACETS: usize = 64;

/// Appends the terms of some facets with datum `value`, times `transfer` if given.
fn push_terms(
    form: &Form<'_>,
    facets: &[u32],
    value: &Compiled<'_>,
    transfer: Option<&Compiled<'_>>,
    terms: &mut Vec<FacetTerm>,
) -> Result<(), FemError> {
    let rule = quadrature::simplex(form.mesh.dimension() - 1, DEGREE);
    let (mut points, mut tape) = (Points::default(), TapeScratch::default());
    for facets in facets.chunks(FACETS) {
        points.clear();
        for &facet in facets {
            let nodes = form.boundary.facet(facet as usize);
            let corners: Vec<[f64; 3]> = nodes.iter().map(|&n| form.mesh.points[n as usize]).collect();
            let cell = form.boundary.cells[facet as usize];
            rule.points.iter().for_each(|point| points.push(cell, combine(&corners, point)));
        }
        let (mut values, mut transfers) = (vec![0.0; points.len()], vec![0.0; points.len()]);
        value.eval_scalar(&mut values, &points, &mut tape)?;
        if let Some(transfer) = transfer {
            transfer.eval_scalar(&mut transfers, &points, &mut tape)?;
            not_negative("robin.coefficient", &transfers, &points)?;
            values.iter_mut().zip(&transfers).for_each(|(value, c)| *value *= c);
        }
        for (i, &facet) in facets.iter().enumerate() {
            let range = i * rule.n_q()..(i + 1) * rule.n_q();
            terms.push(term(form, facet, &rule, &values[range.clone()], &transfers[range]));
        }
    }
    Ok(())
}

fn term(
    form: &Form<'_>,
    facet: u32,
    rule: &quadrature::Quadrature,
    values: &[f64],
    transfers: &[f64],
) -> FacetTerm {
    let nodes = form.boundary.facet(facet as usize);
    let measure = measure(&nodes.iter().map(|&n| form.mesh.points[n as usize]).collect::<Vec<_>>());
    let mut term = FacetTerm {
        facet,
        nodes: [nodes[0], nodes[1], nodes[nodes.len() - 1]],
        matrix: [0.0; 6],
        load: [0.0; 3],
        reacts: transfers.iter().any(|&c| c > 0.0),
    };
    for ((point, weight), (value, transfer)) in rule.iter().zip(values.iter().zip(transfers)) {
        for (load, shape) in term.load.iter_mut().zip(point) {
            *load += measure * weight * value * shape;
        }
        for (entry, (a, b)) in term.matrix.iter_mut().zip(FACET_ENTRIES) {
            *entry += measure * weight * transfer * point[a] * point[b];
        }
    }
    term
}

fn combine(corners: &[[f64; 3]], barycentric: &[f64; 4]) -> [f64; 3] {
    std::array::from_fn(|axis| corners.iter().zip(barycentric).map(|(p, share)| share * p[axis]).sum())
}

/// Returns the length of a segment or area of a triangle.
fn measure(corners: &[[f64; 3]]) -> f64 {
    let edge = |i: usize| -> [f64; 3] { std::array::from_fn(|axis| corners[i][axis] - corners[0][axis]) };
    let length = |v: [f64; 3]| (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt();
    match corners.len() {
        2 => length(edge(1)),
        _ => {
            let (a, b) = (edge(1), edge(2));
            0.5 * length([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
        }
    }
}

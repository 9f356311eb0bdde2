//! Terms of Neumann and Robin conditions, facet by facet.

use femtile_expression::TapeScratch;
use femtile_space::TensorSpace;
use femtile_space::geometry::{CellRule, Side, Sides, product_table};

use crate::FemError;
use crate::forms::{Compiled, Condition, Form, Points, not_negative};

/// The matrix $\int c\,\varphi_i\varphi_j$ of a facet with a Robin condition.
#[derive(Debug, Clone, PartialEq)]
pub struct FacetMatrix {
    /// Degrees of freedom of the closed facet: `[n]` with $n = (p + 1)^{d-1}$.
    pub dofs: Vec<u32>,
    /// Entries: `[n][n]`, symmetric.
    pub entries: Vec<f64>,
}

/// The sum of fluxes, and of their absolute values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Flux {
    pub integral: f64,
    pub size: f64,
}

/// Terms of all facets.
#[derive(Debug, Default)]
pub(super) struct FacetTerms {
    pub matrices: Vec<FacetMatrix>,
    pub flux: Flux,
    /// Facets where $c$ is positive somewhere.
    pub reacting: Vec<u32>,
}

/// Facet integrals have p + 2 points along each axis.
const RULE: CellRule = CellRule::Gauss { extra: 1 };

/// Evaluation of facet integrals.
struct Facets<'a> {
    form: Form<'a>,
    sides: Sides<'a>,
    /// `[n_q^(d − 1)]`.
    weights: Vec<f64>,
    /// Shape functions at the points of a side: `[n_q^(d − 1)][(p + 1)^(d − 1)]`.
    shapes: Vec<f64>,
}

/// Terms of one facet with a Neumann or Robin condition.
#[derive(Debug)]
struct FacetTerm {
    pub facet: usize,
    /// Degrees of freedom of the closed facet: `[n]`.
    pub dofs: Vec<u32>,
    /// $\int (g + c\,w)\,\varphi_i$: `[n]`.
    pub load: Vec<f64>,
    /// $\int c\,\varphi_i\varphi_j$: `[n][n]`; empty where $c$ is zero everywhere on the facet.
    pub matrix: Vec<f64>,
}

/// Adds the loads of all Neumann and Robin facets to `load`, and collects their other terms.
///
/// # Errors
/// A datum that is not finite, or a negative transfer coefficient, reported by the cell of its facet.
pub(super) fn facet_terms<'a>(
    space: &'a TensorSpace<'a>,
    form: &Form<'a>,
    winners: &[Option<u32>],
    load: &mut [f64],
) -> Result<FacetTerms, FemError> {
    let mut terms = FacetTerms::default();
    for_facets(space, form, winners, |term| {
        for (&dof, &own) in term.dofs.iter().zip(&term.load) {
            load[dof as usize] += own;
            terms.flux.integral += own;
            terms.flux.size += own.abs();
        }
        if !term.matrix.is_empty() {
            terms.matrices.push(FacetMatrix { dofs: term.dofs, entries: term.matrix });
            terms.reacting.push(term.facet as u32);
        }
    })?;
    Ok(terms)
}

/// Calls `visit` with the term of each Neumann and Robin facet, by condition and then by facet.
///
/// # Errors
/// Errors of [`facet_terms`].
fn for_facets<'a>(
    space: &'a TensorSpace<'a>,
    form: &Form<'a>,
    winners: &[Option<u32>],
    mut visit: impl FnMut(FacetTerm),
) -> Result<(), FemError> {
    let (points, _) = RULE.rule(space.degree());
    let d = space.dimension() - 1;
    let values = space.shapes().values(&points);
    let facets = Facets {
        form: *form,
        sides: Sides::new(space, &points),
        weights: RULE.product_weights(space.degree(), d),
        shapes: product_table(&values, &values, d, None),
    };
    for (number, entry) in form.conditions.iter().enumerate() {
        let (field, transfer, value) = match &entry.condition {
            Condition::Dirichlet(_) | Condition::DirichletAtNodes { .. } => continue,
            Condition::Neumann(flux) => ("neumann", None, flux),
            Condition::Robin { coefficient, value } => ("robin.value", Some(coefficient), value),
        };
        let value = Compiled::scalar(field, value, form.mesh)?;
        let transfer = transfer.map(|c| Compiled::scalar("robin.coefficient", c, form.mesh)).transpose()?;
        for facet in (0..winners.len()).filter(|&facet| winners[facet] == Some(number as u32)) {
            visit(facets.term(facet, &value, transfer.as_ref())?);
        }
    }
    Ok(())
}

impl Facets<'_> {
    fn term(
        &self,
        facet: usize,
        value: &Compiled<'_>,
        transfer: Option<&Compiled<'_>>,
    ) -> Result<FacetTerm, FemError> {
        let side = self.sides.of_facet(self.form.boundary, facet);
        let (points, measures) = self.points(facet, side);
        let mut tape = TapeScratch::default();
        let (mut values, mut transfers) = (vec![0.0; points.len()], vec![1.0; points.len()]);
        value.eval_scalar(&mut values, &points, &mut tape)?;
        if let Some(transfer) = transfer {
            transfer.eval_scalar(&mut transfers, &points, &mut tape)?;
            not_negative("robin.coefficient", &transfers, &points)?;
        }
        let dofs = self.sides.dofs(side);
        let n = dofs.len();
        let shape = |q: usize, i: usize| self.shapes[q * n + i];
        let load = |i: usize| -> f64 {
            (0..measures.len()).map(|q| measures[q] * transfers[q] * values[q] * shape(q, i)).sum()
        };
        let load = (0..n).map(load).collect();
        let mut matrix = Vec::new();
        if transfer.is_some() && transfers.iter().any(|&c| c > 0.0) {
            let of_point =
                |at: usize, q: usize| measures[q] * transfers[q] * shape(q, at / n) * shape(q, at % n);
            let entry = |at: usize| (0..measures.len()).map(|q| of_point(at, q)).sum();
            matrix = (0..n * n).map(entry).collect();
        }
        Ok(FacetTerm { facet, dofs, load, matrix })
    }

    /// Returns the points of a facet and their area weights.
    fn points(&self, facet: usize, side: Side) -> (Points, Vec<f64>) {
        let map = self.sides.map(side);
        let mut points = Points::default();
        points.extend(self.form.boundary.cells[facet], &map.points);
        let measures = map.measures.iter().zip(&self.weights).map(|(measure, weight)| measure * weight);
        (points, measures.collect())
    }
}

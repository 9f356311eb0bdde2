use femtile_expression::TapeScratch;
use femtile_space::TensorSpace;
use femtile_space::geometry::{
    AtPoints, CellMap, CellMaps, CellRule, PointTables, Side, Sides, determinant, inverse, product_table,
};

use crate::FemError;
use crate::constraints::dirichlet_facets;
use crate::forms::{Compiled, Form, PointCoefficients, Points, winners};
use crate::functionals::dirichlet_facets::{Counts, DirichletFacets, sum_of_facets};
use crate::tensor::facets::for_facets;
use crate::tensor::products::{add_products, touching};
use crate::tensor::{Evaluation, SOURCE_RULE, check_length};

/// Returns the flux **into** the domain through each boundary facet, $\int_F n\cdot\sigma\nabla u$ with the outward
/// normal n.
///
/// As [`crate::functionals::facet_fluxes`] for linear elements: data on Neumann and Robin facets, the residual of
/// constrained degrees of freedom on Dirichlet facets, so that, up to the residual of the solver,
///
/// $$ \sum_F \int_F n\cdot\sigma\nabla u = \int_\Omega \lambda u - \int_\Omega f $$
///
/// with the integrals of [`reaction_integral`] and [`source_integral`]. Inflow at nodes of
/// [`crate::Condition::DirichletAtNodes`] outside Dirichlet facets is not included. `rule` is that of the
/// solved operator. On smooth solutions, fluxes through sides converge with order at least p + 1; the
/// discrete gradient has order p.
///
/// # Shapes
/// `u: [n_dofs]`; the result has one entry per boundary facet.
/// # Cost
/// $O(p^{d+1})$ for each cell with a constrained degree of freedom; one visit of every cell.
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per degree of freedom, [`FemError::Space`] for a folded cell at the
/// boundary, [`FemError::NoSuchFacet`] for a facet beyond the boundary, data out of their range.
/// # Source
/// `[carey1985]`.
pub fn facet_fluxes(
    space: &TensorSpace<'_>,
    form: &Form<'_>,
    rule: CellRule,
    u: &[f64],
) -> Result<Vec<f64>, FemError> {
    facet_shares(space, form, rule, u, &|_| true)
}

/// As [`facet_fluxes`], of each flux the shares of the degrees of freedom that count: those of disjoint sets add up, and need the
/// cells and facets around these alone.
///
/// # Errors
/// As [`facet_fluxes`].
pub fn facet_shares(
    space: &TensorSpace<'_>,
    form: &Form<'_>,
    rule: CellRule,
    u: &[f64],
    counts: Counts<'_>,
) -> Result<Vec<f64>, FemError> {
    check_length(space, u)?;
    let winners = winners(form)?;
    let mut fluxes = vec![0.0; form.boundary.len()];
    let facets: Vec<u32> = dirichlet_facets(form, &winners).map(|(facet, _)| facet as u32).collect();
    let given = discrete_fluxes(space, form, u, &facets)?;
    let mut residual = vec![0.0; space.n_dofs()];
    if !facets.is_empty() {
        add_cells(space, form, rule, u, &given.1, &mut residual)?;
    }
    for_facets(space, form, &winners, |term| {
        let n = term.dofs.len();
        for (i, &dof) in term.dofs.iter().enumerate() {
            let row = term.matrix.get(i * n..(i + 1) * n).unwrap_or(&[]);
            let reaction: f64 = row.iter().zip(&term.dofs).map(|(c, &dof)| c * u[dof as usize]).sum();
            if counts(dof) {
                fluxes[term.facet] += term.load[i] - reaction;
            }
            residual[dof as usize] -= term.load[i] - reaction;
        }
    })?;
    given.0.distribute(&mut fluxes, residual, counts);
    Ok(fluxes)
}

/// Returns the flux into the domain through a set of boundary facets, by [`facet_fluxes`].
///
/// `facets` are positions in the list of boundary facets, as in [`crate::BoundaryCondition`]; each counts once.
///
/// # Errors
/// Errors of [`facet_fluxes`], and [`FemError::FacetOutOfRange`] for a facet beyond the boundary.
pub fn flux(
    space: &TensorSpace<'_>,
    form: &Form<'_>,
    rule: CellRule,
    u: &[f64],
    facets: &[u32],
) -> Result<f64, FemError> {
    sum_of_facets(&facet_fluxes(space, form, rule, u)?, facets)
}

/// Returns $\int_\Omega f$ at u with the quadrature of the right side: p + 2 points along each axis. If f
/// depends on u, `rule` is used, which is that of the operator.
///
/// # Errors
/// [`FemError::Space`] for a folded cell, [`FemError::Length`] unless `u` has one entry per degree of freedom; a source
/// that is not finite.
pub fn source_integral(
    space: &TensorSpace<'_>,
    form: &Form<'_>,
    rule: CellRule,
    u: &[f64],
) -> Result<f64, FemError> {
    check_length(space, u)?;
    let source = Compiled::scalar("source", form.source, form.mesh)?;
    let evaluation = Evaluation::new(space, source_rule(form, rule));
    evaluation.sum(|found, points| {
        evaluation.values(found, points, u);
        points.eval_with_values(found, &source)?;
        Ok(found.given.iter().zip(&points.weights).map(|(value, weight)| weight * value).sum())
    })
}

/// Returns $\int_\Omega \lambda u$ with the rule of the operator.
///
/// # Errors
/// Errors of [`source_integral`] for λ, and [`FemError::Length`] unless `u` has one entry per degree of freedom.
pub fn reaction_integral(
    space: &TensorSpace<'_>,
    form: &Form<'_>,
    rule: CellRule,
    u: &[f64],
) -> Result<f64, FemError> {
    check_length(space, u)?;
    let lambda = Compiled::scalar("lambda", form.lambda, form.mesh)?;
    let evaluation = Evaluation::new(space, rule);
    evaluation.sum(|found, points| {
        evaluation.values(found, points, u);
        points.eval_with_values(found, &lambda)?;
        let terms = found.given.iter().zip(&found.function.values).zip(&points.weights);
        Ok(terms.map(|((lambda, u), weight)| weight * lambda * u).sum())
    })
}

/// Returns the rule that integrates the source; `rule` is that of the operator.
fn source_rule(form: &Form<'_>, rule: CellRule) -> CellRule {
    if form.source.uses_unknown() { rule } else { SOURCE_RULE }
}

/// Adds the contributions of cells to $a(u, \varphi_i) - \ell(\varphi_i)$ at marked degrees of freedom.
fn add_cells(
    space: &TensorSpace<'_>,
    form: &Form<'_>,
    rule: CellRule,
    u: &[f64],
    is_marked: &[bool],
    residual: &mut [f64],
) -> Result<(), FemError> {
    let positions = touching(space, is_marked);
    add_products(space, form, rule, (u, &positions), |dof| is_marked[dof as usize], residual)?;
    if form.source.as_constant() != Some(0.0) {
        let source = Compiled::scalar("source", form.source, form.mesh)?;
        let evaluation = Evaluation::new(space, source_rule(form, rule));
        let loads = evaluation.map_at(&positions, |found, points, _| {
            evaluation.values(found, points, u);
            points.eval_with_values(found, &source)?;
            let moments = evaluation.moments(found, points);
            let pairs = points.dofs.iter().copied().zip(moments.iter().copied());
            Ok(pairs.filter(|&(dof, _)| is_marked[dof as usize]).collect::<Vec<_>>())
        })?;
        loads.into_iter().flatten().for_each(|(dof, load)| residual[dof as usize] -= load);
    }
    Ok(())
}

/// Returns the Dirichlet facets with the fluxes of the discrete gradient, and a mark per degree of freedom on them.
fn discrete_fluxes(
    space: &TensorSpace<'_>,
    form: &Form<'_>,
    u: &[f64],
    facets: &[u32],
) -> Result<(DirichletFacets, Vec<bool>), FemError> {
    let (points, _) = SOURCE_RULE.rule(space.degree());
    let sides = Sides::new(space, &points);
    let weights = SOURCE_RULE.product_weights(space.degree(), space.dimension() - 1);
    let mut gradients = SideGradients::new(space, form)?;
    let (mut given, mut is_given) = (DirichletFacets::default(), vec![false; space.n_dofs()]);
    for &facet in facets {
        let side = sides.of_facet(form.boundary, facet as usize);
        let dofs = sides.dofs(side);
        dofs.iter().for_each(|&dof| is_given[dof as usize] = true);
        let measures = sides.map(side).measures;
        let measure = measures.iter().zip(&weights).map(|(measure, weight)| measure * weight).sum();
        given.push(facet, &dofs, &gradients.fluxes(&sides, side, u), measure);
    }
    Ok((given, is_given))
}

/// Evaluation of gradients at points of sides.
///
/// A rule with inner points, extended by both ends with zero weight, contains the points of all sides.
struct SideGradients<'a> {
    space: &'a TensorSpace<'a>,
    maps: CellMaps<'a>,
    tables: PointTables,
    sigma: PointCoefficients<'a>,
    /// `[n_q^(d − 1)]`.
    weights: Vec<f64>,
    /// `[n_q^(d − 1)][(p + 1)^(d − 1)]`.
    shapes: Vec<f64>,
    n_q: usize,
    map: CellMap,
    function: AtPoints,
    tape: TapeScratch,
}

impl<'a> SideGradients<'a> {
    fn new(space: &'a TensorSpace<'a>, form: &Form<'a>) -> Result<Self, FemError> {
        let (inside, weights) = SOURCE_RULE.rule(space.degree());
        let points: Vec<f64> = [&[0.0], &inside[..], &[1.0]].concat();
        let weights: Vec<f64> = [&[0.0], &weights[..], &[0.0]].concat();
        let (n_q, d) = (points.len(), space.dimension() - 1);
        let product = |q: usize| (0..d).map(|a| weights[q / n_q.pow(a as u32) % n_q]).product();
        let values = space.shapes().values(&points);
        Ok(Self {
            space,
            maps: CellMaps::new(space, &points),
            tables: PointTables::new(&space.shapes(), &points),
            sigma: PointCoefficients::of_any_sign(form.mesh, form.sigma, form.lambda)?,
            weights: (0..n_q.pow(d as u32)).map(product).collect(),
            shapes: product_table(&values, &values, d, None),
            n_q,
            map: CellMap::default(),
            function: AtPoints::default(),
            tape: TapeScratch::default(),
        })
    }

    /// Returns $\int_F \varphi_i\,n\cdot\sigma\nabla u$ for the degrees of freedom of a side; NaN if σ is not positive
    /// definite on the side or its cell is folded there.
    ///
    /// With the reference normal $\pm e_a$ the outward normal times the area element is $\pm|\det J|\,J^{-\mathsf T}e_a$.
    fn fluxes(&mut self, sides: &Sides<'_>, side: Side, u: &[f64]) -> Vec<f64> {
        let d = self.space.dimension();
        let mut dofs = vec![0; self.space.dofs_per_cell()];
        self.space.cell_dofs(side.position, &mut dofs);
        self.maps.of_cell(side.position, &mut self.map);
        self.function.values.clear();
        self.function.values.extend(dofs.iter().map(|&dof| u[dof as usize]));
        self.tables.differentiate(&mut self.function, d, 1);
        // For each point of the cell: its place on the side, if it has a weight there.
        let mut places = vec![None; self.map.points.len()];
        let on_side = sides.entries(side, self.n_q).enumerate();
        on_side
            .filter(|(place, _)| self.weights[*place] > 0.0)
            .for_each(|(place, q)| places[q] = Some(place));
        let (mut points, mut found) = (Points::default(), Vec::new());
        self.tables.for_points(d, |q, own| {
            let Some(place) = places[q] else { return };
            let jacobian = &self.map.jacobians[q];
            let (back, volume) = (inverse(jacobian), determinant(jacobian).abs());
            let mut gradient = [0.0; 3];
            for (axis, slopes) in self.function.slopes[..d].iter().enumerate() {
                (0..3).for_each(|i| gradient[i] += back[axis][i] * slopes[own[axis]]);
            }
            let scale = volume * self.weights[place];
            let normal = back[side.axis()].map(|x| side.sign() * scale * x);
            points.push(self.space.order()[side.position], self.map.points[q]);
            points.unknown.push(self.function.values[q]);
            found.push((place, gradient, normal));
        });
        let n = self.space.dofs_per_cell() / (self.space.degree() + 1);
        let mut sigma = vec![[[0.0; 3]; 3]; points.len()];
        if self.sigma.sigma(&mut sigma, &points, &mut self.tape).is_err() {
            return vec![f64::NAN; n];
        }
        let mut fluxes = vec![0.0; n];
        for ((place, gradient, normal), sigma) in found.into_iter().zip(sigma) {
            let flux = dot(sigma.map(|row| dot(row, gradient)), normal);
            let shapes = &self.shapes[place * n..(place + 1) * n];
            fluxes.iter_mut().zip(shapes).for_each(|(sum, shape)| *sum += flux * shape);
        }
        fluxes
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

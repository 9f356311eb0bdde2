use femtile_space::Space;
use femtile_space::geometry::CellRule;

use super::check_length;
use super::dirichlet_facets::{Counts, DirichletFacets, sum_of_facets};
use super::integrals::{operator_rule, source_rule};
use crate::FemError;
use crate::evaluation::{Evaluation, FacetEvaluation, Wanted, add_products, dot, times, touching};
use crate::forms::{Compiled, FacetMatrix, Form, PointCoefficients, terms_of_facets};

/// Returns the flux **into** the domain through each boundary facet, $\int_F n\cdot\sigma\nabla u$ with the outward
/// normal n.
///
/// The sign is that of Neumann data: positive where heat flows in; outflow is minus the result. On Neumann and Robin
/// facets the flux is that of the condition, $\int_F g$ or $\int_F c\,(w - u)$; on facets without a condition it is
/// zero. On Dirichlet facets it is the consistent flux: the residual
///
/// $$ r_i = a(u, \varphi_i) - \ell(\varphi_i) $$
///
/// of the equation of a constrained degree of freedom, which assembly leaves out, is the flux through the Dirichlet facets
/// around it. The flux of the discrete gradient distributes it to these facets, with the remainder in proportion to
/// their measures. Hence, up to the residual of the solver and, in a pure Neumann problem, its imbalance,
///
/// $$ \sum_F \int_F n\cdot\sigma\nabla u = \int_\Omega \lambda u - \int_\Omega f $$
///
/// with the integrals of [`reaction_integral`](super::reaction_integral) and [`source_integral`](super::source_integral). Inflow
/// at nodes of [`crate::Condition::DirichletAtNodes`] outside Dirichlet facets is not included. `rule` is that of the solved
/// operator on quadrilaterals and hexahedra. On smooth solutions, fluxes through sides converge with order at least p + 1; the
/// discrete gradient has order p.
///
/// # Shapes
/// `u: [n_dofs]`; the result has one entry per boundary facet.
/// # Cost
/// Products of the cells with a constrained degree of freedom; one visit of every cell.
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per degree of freedom, [`FemError::Space`] for a folded cell at the
/// boundary, [`FemError::NoSuchFacet`] for a facet beyond the boundary, data out of their range.
/// # Source
/// `[carey1985]`, for the residual of constrained nodes. Differs: the residual is not converted to a nodal density.
pub fn facet_fluxes(
    space: &Space<'_>,
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
    space: &Space<'_>,
    form: &Form<'_>,
    rule: CellRule,
    u: &[f64],
    counts: Counts<'_>,
) -> Result<Vec<f64>, FemError> {
    check_length(u, space.n_dofs())?;
    let conditions = form.holding_conditions()?;
    let mut fluxes = vec![0.0; form.boundary.len()];
    let facets: Vec<u32> = conditions.dirichlet_facets().map(|(facet, _)| facet).collect();
    let evaluation = FacetEvaluation::new(space, form.boundary);
    let given = discrete_fluxes(&evaluation, form, u, &facets)?;
    let mut residual = vec![0.0; space.n_dofs()];
    if !facets.is_empty() {
        let mut is_given = vec![false; space.n_dofs()];
        given.dofs().iter().for_each(|&dof| is_given[dof as usize] = true);
        add_cells(space, form, rule, u, &is_given, &mut residual)?;
    }
    for term in terms_of_facets(&evaluation, &conditions)? {
        let (mut own, FacetMatrix { dofs, entries }) = (term.load, term.matrix);
        for (flux, row) in own.iter_mut().zip(entries.chunks(dofs.len())) {
            *flux -= row.iter().zip(&dofs).map(|(entry, &dof)| entry * u[dof as usize]).sum::<f64>();
        }
        for (&dof, flux) in dofs.iter().zip(own) {
            if counts(dof) {
                fluxes[term.facet as usize] += flux;
            }
            residual[dof as usize] -= flux;
        }
    }
    given.distribute(&mut fluxes, residual, counts);
    Ok(fluxes)
}

/// Returns the flux into the domain through a set of boundary facets, by [`facet_fluxes`].
///
/// `facets` are positions in the list of boundary facets, as in [`crate::BoundaryCondition`]; each counts once. Fluxes
/// through disjoint sets add up to the flux through their union.
///
/// # Errors
/// Errors of [`facet_fluxes`], and [`FemError::FacetOutOfRange`] for a facet beyond the boundary.
pub fn flux(
    space: &Space<'_>,
    form: &Form<'_>,
    rule: CellRule,
    u: &[f64],
    facets: &[u32],
) -> Result<f64, FemError> {
    sum_of_facets(&facet_fluxes(space, form, rule, u)?, facets)
}

/// Adds the contributions of cells to $a(u, \varphi_i) - \ell(\varphi_i)$ at marked degrees of freedom.
fn add_cells(
    space: &Space<'_>,
    form: &Form<'_>,
    rule: CellRule,
    u: &[f64],
    is_marked: &[bool],
    residual: &mut [f64],
) -> Result<(), FemError> {
    let evaluation = Evaluation::new(space, operator_rule(space, form, rule));
    let positions = touching(&evaluation, is_marked);
    add_products(&evaluation, form, (u, &positions), |dof| is_marked[dof as usize], residual)?;
    if form.source.as_constant() != Some(0.0) {
        let source = Compiled::scalar("source", form.source, form.mesh)?;
        let evaluation = Evaluation::new(space, source_rule(space, form.source, rule));
        let wanted = Wanted { u, points: true, unknown: true, ..Wanted::default() };
        let loads = evaluation.blocks(Some(&positions), wanted, |samples| {
            samples.eval(&source)?;
            Ok(evaluation.kept_moments(samples, |dof| is_marked[dof as usize]))
        })?;
        loads.into_iter().flatten().for_each(|(dof, load)| residual[dof as usize] -= load);
    }
    Ok(())
}

/// Returns the Dirichlet facets with the fluxes of the discrete gradient, $\int_F \varphi_i\,n\cdot\sigma\nabla u$; NaN where σ
/// is not positive definite.
fn discrete_fluxes<'e>(
    evaluation: &'e FacetEvaluation<'e>,
    form: &Form<'_>,
    u: &[f64],
    facets: &[u32],
) -> Result<DirichletFacets, FemError> {
    let coefficients = PointCoefficients::of_any_sign(form.mesh, form.sigma, form.lambda)?;
    let parts = evaluation.blocks(facets, |given: &mut DirichletFacets, found, tape, facet| {
        found.evaluate(u);
        found.sigma.resize(found.points.len(), [[0.0; 3]; 3]);
        if coefficients.sigma(&mut found.sigma, &found.points, tape).is_err() {
            found.sigma.fill([[f64::NAN; 3]; 3]);
        }
        let along = found.sigma.iter().zip(&found.gradients).zip(&found.areas);
        found.given.clear();
        found.given.extend(along.map(|((sigma, g), area)| dot(times(sigma, *g), *area)));
        let fluxes = found.moments(&found.given);
        given.push(facet, &found.dofs, &fluxes, found.measures().sum());
        Ok(())
    })?;
    let mut given = DirichletFacets::default();
    parts.into_iter().for_each(|part| given.append(part));
    Ok(given)
}

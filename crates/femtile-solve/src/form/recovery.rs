//! Gradients of the solution of a form recovered at the nodes, what follows from them there, and the estimate of its error.

use std::borrow::Cow;
use std::f64::consts::TAU;

use femtile_device::parallel;
use femtile_expression::Shape;
use femtile_fem::FemError;
use femtile_fem::recovery::{ErrorEstimate, IsInterrupted, NodalGradient, Regions};
use femtile_form::{CellData, Dependence, Domain, Form, Input};
use femtile_operator::{CellPoint, DiscreteForm};
use femtile_space::geometry::inverse;
use femtile_space::{PointMap, ReferenceRule, Space};

use super::problem::axis_rounding;
use super::{FormProblem, FormSolution};
use crate::output::NodalField;
use crate::{FieldConfig, Fields, SolveError};

/// Cells per task of a thread.
const CELLS: usize = 64;

/// The recovered gradients of all components of a solution.
pub(super) struct Recovered<'s, 'm> {
    solution: &'s FormSolution<'m>,
    /// That of the solution without the thickness of a sheet and without stabilisation.
    problem: FormProblem<'m>,
    form: Form,
    pub components: Vec<NodalGradient<'s>>,
}

impl<'m> FormSolution<'m> {
    /// Computes fields from the recovered gradients, to be written with the solution, and asks now and then whether to end; one that
    /// cannot be computed is left out with a reason.
    ///
    /// The gradient of each component is that of [`NodalGradient`], whose patches end where the flux of the integrals over cells reads
    /// other data by cell or by tag. The flux is $-f_1(u, Gu)$, of diffusion $-\sigma\,Gu$, of a sheet per volume. With the tangent D'
    /// of the integrals over cells at u the estimate is
    ///
    /// $$ \eta_K^2 = \int_K (Gu - \nabla u)\cdot D'(Gu - \nabla u), $$
    ///
    /// of elasticity the energy of the difference of strains. Where a tangent is not positive, a negative integral counts as zero.
    ///
    /// # Cost
    /// One pass over the cells for each field, beside the fits of [`NodalGradient`] for each component: $2 n_c d$ products of the
    /// shape functions with values at nodes at each of the quadrature points of the form, and its programs there, one point after
    /// another. While computed, $24 n_c$ bytes per node of a cell.
    /// # Source
    /// `[zienkiewicz1987]`, with the recovered gradient of `[naga2005]`.
    pub fn fields(&self, config: FieldConfig, is_interrupted: IsInterrupted<'_>) -> Fields {
        let mut fields = Fields::default();
        if config == FieldConfig::default() {
            return fields;
        }
        let recovered = match Recovered::new(self, is_interrupted) {
            Ok(recovered) => recovered,
            Err(error) => {
                fields.leave_out("recovered gradient", &error);
                return fields;
            }
        };
        fields.cite(if self.space.is_linear() { "zhang2005" } else { "naga2005" });
        if self.space.mesh().is_surface {
            fields.cite("dong2020");
        }
        let is_stopped =
            || if is_interrupted() { Err(SolveError::from(FemError::Interrupted)) } else { Ok(()) };
        if config.gradient {
            let of = |gradient: &NodalGradient<'_>| gradient.at_nodes();
            let found = is_stopped().map(|()| recovered.components.iter().map(of).collect());
            fields.take_all("gradient", found.map(|all| recovered.named("gradient", all)));
        }
        if config.flux {
            let found = is_stopped().and_then(|()| recovered.fluxes());
            fields.take_all("flux", found.map(|all| recovered.named("flux", all)));
        }
        if config.stress || config.strain {
            let found = is_stopped().and_then(|()| self.recovered_stress(&recovered, config));
            fields.take_all("stress", found);
        }
        if config.error {
            match is_stopped().and_then(|()| recovered.estimate()) {
                Ok(estimate) => {
                    fields.cite("zienkiewicz1987");
                    fields.set_error_estimate(estimate);
                }
                Err(error) => fields.leave_out("error", &error),
            }
        }
        fields
    }
}

impl<'s, 'm> Recovered<'s, 'm> {
    pub fn new(
        solution: &'s FormSolution<'m>,
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Self, SolveError> {
        let mut problem = solution.problem.clone();
        if problem.has_several_degrees() {
            let message = "gradients are recovered of unknowns of one degree: give all the same";
            return Err(SolveError::setting(&["unknown".into()], message));
        }
        problem.thickness = None;
        problem.equation.set_stabilisation(None);
        let form = problem.form()?;
        let space = &solution.space;
        let regions = regions(&problem, &form, space);
        let of = |component| {
            let space = space.tensor().map_or_else(|| space.clone(), Space::from);
            let u = Cow::Owned(solution.component(component));
            NodalGradient::new(space, regions.clone(), u, is_interrupted)
        };
        let components = (0..solution.n_components()).map(of).collect::<Result<_, _>>()?;
        Ok(Self { solution, problem, form, components })
    }

    /// Returns vectors of all components as fields: of several unknowns by their names, of vectors with the numbers of components.
    fn named(&self, what: &str, vectors: Vec<Vec<f64>>) -> Vec<NodalField<'static>> {
        let unknowns = self.solution.problem.unknowns();
        let is_alone = unknowns.len() == 1;
        let names = unknowns.into_iter().flat_map(|(unknown, shape)| {
            let name = if is_alone { what.to_owned() } else { format!("{what}_{unknown}") };
            (0..shape.n_entries()).map(move |entry| match shape {
                Shape::Number => name.clone(),
                _ => format!("{name}[{entry}]"),
            })
        });
        let fields = names.zip(vectors).map(|(name, values)| NodalField {
            name: name.into(),
            n_components: 3,
            values: Cow::Owned(values),
        });
        fields.collect()
    }

    fn discrete(&self) -> Result<DiscreteForm<'_>, SolveError> {
        Ok(DiscreteForm::new(&self.solution.space, &self.form, &self.problem.facets)?)
    }

    /// Collects a result of each cell, by position; `of_cell` has the position and the degrees of freedom.
    fn of_cells<R: Send>(
        &self,
        of_cell: impl Fn(&mut PointMap, usize, &[u32]) -> Result<R, SolveError> + Sync,
    ) -> Result<Vec<R>, SolveError> {
        let space = &self.solution.space;
        let n = space.n_cells();
        let of_block = |map: &mut PointMap, block: usize| {
            let mut dofs = vec![0; space.element().n_dofs()];
            let cells = block * CELLS..n.min((block + 1) * CELLS);
            let of = |position| {
                space.cell_dofs(position, &mut dofs);
                of_cell(map, position, &dofs)
            };
            cells.map(of).collect::<Result<Vec<R>, SolveError>>()
        };
        let found = parallel::map_with(n.div_ceil(CELLS), 1, PointMap::default, of_block);
        Ok(found.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Returns $Gu$ of the component at a node of a cell.
    pub fn at_node(&self, component: usize, position: usize, local: usize, dof: u32) -> [f64; 3] {
        self.components[component].in_cell(position as u32, local, dof)
    }

    /// Returns the flux density of each component at the nodes, `[n_components][n_dofs × 3]`: the mean over the cells around a node.
    fn fluxes(&self) -> Result<Vec<Vec<f64>>, SolveError> {
        let (solution, discrete) = (self.solution, self.discrete()?);
        let (space, points) = (&solution.space, solution.space.node_points());
        let (n, d) = (solution.n_components(), space.mesh().space_dimension());
        // On the axis, where integrals have no weight, the flux is that of a point beside it.
        let beside = if space.is_axisymmetric() { axis_rounding(space.mesh()).sqrt() } else { 0.0 };
        let of_cells = self.of_cells(|_, position, dofs| {
            let mut found = Vec::with_capacity(dofs.len() * n);
            for (local, &dof) in dofs.iter().enumerate() {
                let mut point = points[dof as usize];
                let step = (beside - point[0]).max(0.0);
                let (step, weight) = match space.is_axisymmetric() {
                    true => (step, TAU * (point[0] + step)),
                    false => (0.0, 1.0),
                };
                point[0] += step;
                let mut state = Vec::with_capacity(n * (1 + d));
                for component in 0..n {
                    let gradient = self.at_node(component, position, local, dof);
                    state.push(solution.u[dof as usize * n + component] + step * gradient[0]);
                    state.extend_from_slice(&gradient[..d]);
                }
                let at = CellPoint { cell: space.cell(position), point, time: solution.time };
                let f = discrete.residual_at(at, &state).map_err(FemError::from)?;
                found.extend(f.chunks_exact(1 + d).map(|f| {
                    std::array::from_fn::<f64, 3, _>(|axis| f.get(1 + axis).map_or(0.0, |f| -f / weight))
                }));
            }
            Ok(found)
        })?;
        let mut sums = vec![vec![0.0; 3 * space.n_dofs()]; n];
        let (mut counts, mut dofs) = (vec![0.0; space.n_dofs()], vec![0; space.element().n_dofs()]);
        for (position, of_cell) in of_cells.iter().enumerate() {
            space.cell_dofs(position, &mut dofs);
            for (&dof, vectors) in dofs.iter().zip(of_cell.chunks_exact(n)) {
                counts[dof as usize] += 1.0;
                for (sums, vector) in sums.iter_mut().zip(vectors) {
                    let own = &mut sums[3 * dof as usize..][..3];
                    own.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x);
                }
            }
        }
        for sums in &mut sums {
            let means = sums.chunks_exact_mut(3).zip(&counts);
            means.for_each(|(sum, n)| sum.iter_mut().for_each(|x| *x /= n));
        }
        Ok(sums)
    }

    /// Returns the estimate of the discretization error; see [`FormSolution::fields`].
    fn estimate(&self) -> Result<ErrorEstimate, SolveError> {
        let over_cells = self.form.integrals().iter().filter(|own| own.domain == Domain::Cells);
        if over_cells
            .map(|own| own.integrand.class().diffusion)
            .all(|diffusion| diffusion == Dependence::Zero)
        {
            let message = "the equation has no flux that depends on the gradient, whose error it is";
            return Err(SolveError::setting(&["output".into(), "fields".into()], message));
        }
        let (solution, discrete) = (self.solution, self.discrete()?);
        let space = &solution.space;
        let (mesh, element) = (space.mesh(), space.element());
        let rule: ReferenceRule = element.quadrature(2 * element.degree());
        let (table, mapping) = (element.tabulate(&rule.points), space.mapping(&rule.points));
        let (n, d) = (solution.n_components(), mesh.space_dimension());
        let is_elastic = self.problem.equation_name() == "elasticity";
        let radial: &[usize] = if space.is_axisymmetric() && is_elastic { &[0] } else { &[] };
        let thickness = |cell: usize, point| match &solution.problem.thickness {
            None => 1.0,
            Some(thickness) => {
                thickness.scalar_at(cell, mesh.cell_tags.get(cell).copied().unwrap_or(0), point)
            }
        };
        let of_cells = self.of_cells(|map, position, dofs| {
            mapping.of_cell(position, map).map_err(FemError::from)?;
            let cell = space.cell(position);
            let nodal: Vec<[f64; 3]> = (0..n)
                .flat_map(|component| {
                    dofs.iter().enumerate().map(move |(local, &dof)| (component, local, dof))
                })
                .map(|(component, local, dof)| self.at_node(component, position, local, dof))
                .collect();
            let mut squares = [0.0; 2];
            for (q, weight) in rule.weights.iter().enumerate() {
                let back = inverse(&map.jacobians[q]);
                let (mut state, mut of_u, mut error) = (Vec::new(), Vec::new(), Vec::new());
                for (component, nodal) in nodal.chunks_exact(dofs.len()).enumerate() {
                    let (mut value, mut along, mut recovered) = (0.0, [0.0; 3], [0.0; 3]);
                    let shapes = table.values(q).iter().zip(table.gradients(q));
                    for ((&dof, nodal), (shape, slopes)) in dofs.iter().zip(nodal).zip(shapes) {
                        let u = solution.u[dof as usize * n + component];
                        value += shape * u;
                        (0..3).for_each(|a| along[a] += slopes[a] * u);
                        (0..3).for_each(|a| recovered[a] += shape * nodal[a]);
                    }
                    let own: [f64; 3] = std::array::from_fn(|i| (0..3).map(|a| back[a][i] * along[a]).sum());
                    state.push(value);
                    state.extend_from_slice(&own[..d]);
                    // The displacement along the radius is the strain around the axis.
                    of_u.push(if radial.contains(&component) { value } else { 0.0 });
                    of_u.extend_from_slice(&own[..d]);
                    if mesh.is_surface {
                        // Cells are no part of the recovered surface: the part along their normal is no error of u.
                        let normal = map.jacobians[q].map(|row| row[2]);
                        let size = |a: [f64; 3], b: [f64; 3]| (0..3).map(|i| a[i] * b[i]).sum::<f64>();
                        let across = size(recovered, normal) / size(normal, normal);
                        (0..3).for_each(|i| recovered[i] -= across * normal[i]);
                    }
                    error.push(0.0);
                    error.extend((0..d).map(|axis| recovered[axis] - own[axis]));
                }
                let point = map.points[q];
                let at = CellPoint { cell, point, time: solution.time };
                let weight = weight * map.determinants[q].abs() * thickness(cell, point);
                for (square, direction) in squares.iter_mut().zip([&error, &of_u]) {
                    let f = discrete.tangent_at(at, &state, direction).map_err(FemError::from)?;
                    *square += weight * f.iter().zip(direction).map(|(f, v)| f * v).sum::<f64>();
                }
            }
            Ok(squares.map(|square| square.max(0.0)))
        })?;
        let mut squares = vec![[0.0; 2]; space.n_cells()];
        of_cells.into_iter().enumerate().for_each(|(position, own)| squares[space.cell(position)] = own);
        let lowered = self.components.iter().map(NodalGradient::lowered).fold(0.0, f64::max);
        Ok(ErrorEstimate::of_squares(squares, lowered))
    }
}

/// Returns the regions in which the flux of a form is smooth: those of the data by cell and by tag that it depends on.
fn regions(problem: &FormProblem<'_>, form: &Form, space: &Space<'_>) -> Regions {
    let over_cells = form.integrals().iter().filter(|own| own.domain == Domain::Cells);
    let read: Vec<(Option<&CellData>, bool)> = over_cells
        .flat_map(|own| {
            own.integrand.inputs_of_flux().map(move |(input, name)| (&own.integrand, input, name))
        })
        .filter_map(|(integrand, input, name)| match input {
            Input::Tag => Some((None, false)),
            Input::Cell(number) => {
                let data = &integrand.cell_data()[number];
                let is_field = matches!(data, CellData::Field { .. });
                // The metric of the cells differs from cell to cell in any mesh.
                let is_metric = problem.equation.needs_cell_metric()
                    && problem.coefficient("G").is_none()
                    && name.starts_with("G[");
                (!is_metric).then_some((Some(data), is_field))
            }
            _ => None,
        })
        .collect();
    if read.is_empty() {
        return Regions::default();
    }
    let tags = &space.mesh().cell_tags;
    Regions::by_key(space, |cell, with_fields| {
        let tag = tags.get(cell).copied().unwrap_or(0);
        let own = read.iter().filter(|(_, is_field)| with_fields || !is_field);
        own.map(|(data, _)| data.map_or(f64::from(tag), |data| data.value(cell, tag)).to_bits())
            .collect::<Vec<_>>()
    })
}

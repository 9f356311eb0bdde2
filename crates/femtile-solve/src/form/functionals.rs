//! Functionals of the solution of a form.

use std::collections::BTreeSet;

use femtile_device::Cpu;
use femtile_fem::FemError;
use femtile_fem::functionals::{self, DirichletFacets, Line};
use femtile_form::Form;
use femtile_mesh::CellSide;
use femtile_mesh::check::{BoundaryFacets, boundary_facets};
use femtile_mesh::partition::{OwnedCells, cells_alone};
use femtile_operator::{CpuOperator, DiscreteForm, State};
use femtile_space::Space;

use super::given::{Given, Place, dirichlet_values};
use super::part::{CellSubset, numbers_of_dofs};
use super::ties::Floating;
use super::totals::subtract;
use super::{FormProblem, FormSolution};
use crate::SolveError;
use crate::coefficient::cell_tags;

impl FormProblem<'_> {
    /// Checks that points lie in the mesh.
    ///
    /// # Errors
    /// The position of the first point that does not, with the reason.
    pub fn check_points(&self, points: &[[f64; 3]]) -> Result<(), (usize, FemError)> {
        let space = Space::new(self.mesh, 1).map_err(|error| (0, error.into()))?;
        match space.locate(points).iter().position(Option::is_none) {
            Some(i) => Err((i, functionals::outside(&space, points[i]))),
            None => Ok(()),
        }
    }

    /// Returns whether any of `n` evenly spaced points of a line lies in the mesh.
    ///
    /// # Errors
    /// [`FemError::Space`] for cells without elements.
    pub fn meets_line(&self, from: [f64; 3], to: [f64; 3], n: usize) -> Result<bool, FemError> {
        let found = Space::new(self.mesh, 1)?.locate(&Line::new(from, to, n).points);
        Ok(found.iter().any(Option::is_some))
    }

    /// Returns whether an unknown has a Dirichlet value on facets or is one of a floating part.
    fn are_held(&self, space: &Space<'_>) -> Result<Vec<bool>, SolveError> {
        let n = self.n_components();
        let is_on_facets = |given: &&Given| matches!(given.place, Place::Facets(_));
        let given: Vec<Given> = self.given.iter().filter(is_on_facets).cloned().collect();
        let values = dirichlet_values(space, &self.facets, &given, n)?;
        let mut are_held: Vec<bool> = values.iter().map(Option::is_some).collect();
        for (floating, dofs) in self.floating.iter().zip(self.floating_dofs(space)) {
            let constant = (0..n).filter(|&component| floating.totals[component].is_some());
            constant.for_each(|c| dofs.iter().for_each(|&dof| are_held[dof as usize * n + c] = true));
        }
        Ok(are_held)
    }

    /// Returns the facets with a Dirichlet value or a floating one of a component that `is_wanted`, both sides of those inside, ascending.
    fn dirichlet_facets(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<u32> {
        let has_value =
            |given: &Given| (0..given.values.len()).any(|c| is_wanted(c) && given.values[c].is_some());
        let of = |given: &Given| match &given.place {
            Place::Facets(facets) if has_value(given) => facets.clone(),
            _ => Vec::new(),
        };
        let floats = |floating: &&Floating| {
            (0..floating.totals.len()).any(|c| is_wanted(c) && floating.totals[c].is_some())
        };
        let floating = self.floating.iter().filter(floats).flat_map(|floating| floating.facets.clone());
        let own = self.given.iter().flat_map(of).chain(floating);
        let both = own.flat_map(|facet| [Some(facet), self.joined_twin(facet)]);
        let mut facets: Vec<u32> = both.flatten().collect();
        facets.sort_unstable();
        facets.dedup();
        facets
    }
}

impl FormSolution<'_> {
    /// Returns all components at a point; none if it lies in no cell.
    pub fn value_at(&self, point: [f64; 3]) -> Option<Vec<f64>> {
        let value =
            |component| functionals::values_at(&self.space, &self.component(component), &[point]).ok()?[0];
        (0..self.n_components()).map(value).collect()
    }

    /// Returns the energy of the integrals that have one: of elasticity the strain energy
    /// $\frac12\int \sigma : (\varepsilon - \theta I)$ with the thermal strain θ.
    ///
    /// # Errors
    /// [`SolveError::Fem`] if a density is not finite.
    pub fn energy(&self) -> Result<f64, SolveError> {
        Ok(self.operator()?.energy(&self.state())?)
    }

    /// Returns the flux of each component into the domain through each of [`FormProblem::all_facets`]: `[n_components][n_facets]`.
    /// Through both sides of a facet inside flows together what a condition gives there.
    ///
    /// Of diffusion it is $\int_F n\cdot\sigma\nabla u$, of elasticity the force on the body, $\int_F n\cdot s$ with the stress s.
    /// It is that of the conditions, and on facets with Dirichlet values the consistent one, so that all fluxes balance the
    /// integrals over the cells; see [`femtile_fem::functionals::facet_fluxes`]. In time the content of the body takes its part: it
    /// changes by what flows in. They are NaN at the initial time and in runs without [`crate::TimeStepping::has_rates`].
    ///
    /// # Errors
    /// [`SolveError::Fem`] for degenerate cells and for coefficients that are not finite.
    pub fn facet_fluxes(&self) -> Result<Vec<Vec<f64>>, SolveError> {
        let unknown = (0..self.n_components()).map(|c| self.problem.dirichlet_facets(|other| other == c));
        let on = On { problem: &self.problem, space: &self.space, form: &self.form };
        let at = Instant { time: self.time, u: self.u.clone(), rate: self.rate.clone() };
        self.known(|| on.facet_fluxes(&at, &unknown.collect::<Vec<_>>()))
    }

    /// Returns fluxes; NaN of a form in time whose rate is not known.
    fn known(
        &self,
        fluxes: impl FnOnce() -> Result<Vec<Vec<f64>>, SolveError>,
    ) -> Result<Vec<Vec<f64>>, SolveError> {
        match self.problem.is_in_time && self.rate.is_empty() {
            true => Ok(vec![vec![f64::NAN; self.problem.facets.len()]; self.n_components()]),
            false => fluxes(),
        }
    }

    /// Returns the flux of each component out of the cells with a tag, of one region or several, through each of their facets among
    /// [`FormProblem::all_facets`], zero through others: `[n_components][n_facets]`.
    ///
    /// It is the reaction of the residual over these cells alone, without conditions on facets between them and other cells: all that
    /// flows out of the cells balances the integrals over them, and out of the cells on both sides of facets flows what a condition
    /// gives there, to rounding.
    ///
    /// # Errors
    /// As [`Self::facet_fluxes`], and [`SolveError::Setting`] for a tag that no cell has.
    pub fn fluxes_from(&self, cells: &str) -> Result<Vec<Vec<f64>>, SolveError> {
        let problem = &self.problem;
        let tags = cell_tags(problem.mesh, cells, &["from".into()])?;
        let is_taken = |cell: u32| tags.contains(&problem.tag_of(cell));
        let OwnedCells { mesh, mut boundary, facets, cells, .. } =
            cells_alone(problem.mesh, &problem.facets, is_taken);
        // Facets between these cells and others, without a tag.
        let side = |of: &BoundaryFacets, i: usize| CellSide { cell: of.cells[i], local: of.local[i] };
        let known: BTreeSet<CellSide> = (0..boundary.len()).map(|i| side(&boundary, i)).collect();
        let all = boundary_facets(&mesh);
        let missing = (0..all.len()).map(|i| side(&all, i)).filter(|side| !known.contains(side));
        missing.for_each(|side| boundary.push(&mesh, side));

        let is_cut = |facet: u32| {
            problem.twin(facet).is_some_and(|twin| !is_taken(problem.facets.cells[twin as usize]))
        };
        let subset = CellSubset { mesh: &mesh, boundary: &boundary, facets: &facets, cells: &cells };
        let mut part = problem.on_cells(subset, |facet| !is_cut(facet));
        let points: Vec<[f64; 3]> = problem.sources.iter().map(|source| source.point).collect();
        let sources = problem.sources.iter().zip(self.space.locate(&points));
        let is_here = |position| is_taken(self.space.cell(position) as u32);
        let sources = sources.filter(|(_, at)| at.as_ref().is_some_and(|at| is_here(at.position)));
        part.sources = sources.map(|(source, _)| source.clone()).collect();
        let (space, form) = (part.space()?, part.form()?);
        let n = self.n_components();
        let numbers = numbers_of_dofs(&self.space, &space, &cells);
        let of_part = |v: &[f64]| -> Vec<f64> {
            numbers.iter().flat_map(|&dof| &v[dof as usize * n..][..n]).copied().collect()
        };
        let rate = self.rate.iter().map(|(factor, v)| (*factor, of_part(v))).collect();
        let at = Instant { time: self.time, u: of_part(&self.u), rate };
        part.has_content = problem.has_content;
        let unknown = |component: usize| -> Vec<u32> {
            let mut given = problem.dirichlet_facets(|other| other == component);
            problem.pairs.iter().for_each(|pair| given.extend(pair.from.iter().chain(&pair.to)));
            given.sort_unstable();
            let is_unknown = |facet: u32| is_cut(facet) || given.binary_search(&facet).is_ok();
            let tagged = facets.iter().zip(0..).filter(|(facet, _)| is_unknown(**facet)).map(|(_, own)| own);
            tagged.chain(facets.len() as u32..boundary.len() as u32).collect()
        };
        let on = On { problem: &part, space: &space, form: &form };
        let into = self.known(|| on.facet_fluxes(&at, &(0..n).map(unknown).collect::<Vec<_>>()))?;
        let of_whole = |own: &Vec<f64>| {
            let mut fluxes = vec![0.0; problem.facets.len()];
            facets.iter().zip(own).for_each(|(&facet, flux)| fluxes[facet as usize] = -flux);
            fluxes
        };
        Ok(into.iter().map(of_whole).collect())
    }

    fn state(&self) -> State<'_> {
        State { time: self.time, ..State::of(&self.u) }
    }

    fn operator(&self) -> Result<CpuOperator<'_>, SolveError> {
        On { problem: &self.problem, space: &self.space, form: &self.form }.operator()
    }
}

/// A function at a time, with its rate as functions with factors, none in steady state.
struct Instant {
    time: f64,
    u: Vec<f64>,
    rate: Vec<(f64, Vec<f64>)>,
}

impl Instant {
    /// Returns ∂u/∂t, empty in steady state.
    fn rate(&self) -> Vec<f64> {
        let mut rate = vec![0.0; if self.rate.is_empty() { 0 } else { self.u.len() }];
        for (factor, v) in &self.rate {
            rate.iter_mut().zip(v).for_each(|(rate, v)| *rate += factor * v);
        }
        rate
    }
}

/// A problem with its space and form.
struct On<'o, 'm> {
    problem: &'o FormProblem<'m>,
    space: &'o Space<'m>,
    form: &'o Form,
}

impl<'o> On<'o, '_> {
    fn operator(&self) -> Result<CpuOperator<'o>, SolveError> {
        let discrete = DiscreteForm::new(self.space, self.form, &self.problem.facets)?;
        Ok(CpuOperator::new(discrete, &Cpu::of_current_pool()?)?)
    }

    /// Returns the flux of each component into the domain through each facet: that of the conditions, and the consistent one on
    /// facets where it is unknown, a list for each component, ascending.
    fn facet_fluxes(&self, at: &Instant, unknown: &[Vec<u32>]) -> Result<Vec<Vec<f64>>, SolveError> {
        let (operator, n) = (self.operator()?, self.form.n_components());
        let discrete = operator.discrete();
        let mut residual = vec![0.0; at.u.len()];
        // Of a form with a content no other formula has the rate.
        let rate = if self.problem.has_content { Vec::new() } else { at.rate() };
        let state = &State { time: at.time, rate: &rate, ..State::of(&at.u) };
        operator.residual(state, &mut residual)?;
        if self.problem.has_content {
            self.add_contents(&operator, at, &mut residual)?;
        }
        subtract(&self.problem.point_loads(self.space), &mut residual);
        let mut through_pairs = Vec::new();
        if !self.problem.pairs.is_empty() {
            let found = self.fluxes_through_pairs(discrete, state, &residual, unknown)?;
            // What flows through these sides is no part of that through facets beside them.
            residual.iter_mut().zip(found.taken).for_each(|(left, taken)| *left -= taken);
            through_pairs = found.fluxes;
        }
        if self.problem.has_several_degrees() || self.problem.has_relations() {
            // The residual by degrees of freedom where values are given: those at corners, and those that others follow.
            self.problem.constraints_of_others(self.space)?.distribute_transpose(&mut residual);
        }
        let prescribed = discrete.prescribed_fluxes(state)?;
        let mut all_facets = unknown.concat();
        all_facets.sort_unstable();
        all_facets.dedup();
        let conormal = discrete.conormal_fluxes(state, &all_facets)?;
        let of_component = |(component, own): (usize, &Vec<u32>)| {
            let mut given = DirichletFacets::default();
            let pairs = all_facets.iter().zip(&conormal);
            for (&facet, flux) in pairs.filter(|(facet, _)| own.binary_search(facet).is_ok()) {
                given.push(facet, &flux.dofs, &column(&flux.moments, component, n), flux.measure);
            }
            let mut fluxes = column(&prescribed, component, n);
            given.distribute(&mut fluxes, column(&residual, component, n), &|_| true);
            let through_pairs = column(&through_pairs, component, n);
            fluxes.iter_mut().zip(through_pairs).for_each(|(flux, of_pair)| *flux += of_pair);
            Ok(fluxes)
        };
        unknown.iter().enumerate().map(of_component).collect()
    }

    /// Adds the rate of the content, $\sum_i f_i \int H(u_i)\,v$ with $\sum_i f_i u_i$ as rate of u: that of an integral is the residual
    /// with the rate 1 less that without.
    fn add_contents(
        &self,
        operator: &CpuOperator<'_>,
        at: &Instant,
        residual: &mut [f64],
    ) -> Result<(), SolveError> {
        let (one, mut r) = (vec![1.0; residual.len()], vec![0.0; residual.len()]);
        for (factor, u) in &at.rate {
            for (rate, sign) in [(&one[..], 1.0), (&[], -1.0)] {
                operator.residual(&State { time: at.time, rate, ..State::of(u) }, &mut r)?;
                residual.iter_mut().zip(&r).for_each(|(sum, r)| *sum += sign * factor * r);
            }
        }
        Ok(())
    }

    /// Returns the flux through each facet of sides that belong together.
    ///
    /// That of `to` is the residual of its degrees of freedom, where values are held the flux of the gradient through its facets; that of
    /// `from` is what the relations make of it, with the other sign. On an edge of several pairs it counts for the sides of each of them,
    /// as the fluxes through opposite sides cancel there. Facets where the flux of a component is `unknown` have none.
    fn fluxes_through_pairs(
        &self,
        discrete: &DiscreteForm<'_>,
        state: &State<'_>,
        residual: &[f64],
        unknown: &[Vec<u32>],
    ) -> Result<ThroughPairs, SolveError> {
        let (problem, n) = (self.problem, self.form.n_components());
        let mut of_corners = None;
        if problem.has_several_degrees() {
            let mut alone = problem.clone();
            alone.pairs.clear();
            alone.floating.clear();
            of_corners = Some(alone.constraints_of_others(self.space)?);
        }
        let mut residual = residual.to_vec();
        of_corners.iter().for_each(|corners| corners.distribute_transpose(&mut residual));
        let (are_held, tied) = (problem.are_held(self.space)?, problem.tied(self.space)?);
        let is_wanted = |facet: &u32, component: usize| unknown[component].binary_search(facet).is_err();
        let mut all =
            ThroughPairs { fluxes: vec![0.0; problem.facets.len() * n], taken: vec![0.0; residual.len()] };
        for (number, pair) in problem.pairs.iter().enumerate() {
            let [from, to] = [&pair.from, &pair.to].map(|facets| discrete.conormal_fluxes(state, facets));
            let (from, to) = (from?, to?);
            let mut of_to = vec![0.0; residual.len()];
            for (facet, flux) in pair.to.iter().zip(&to) {
                for (&dof, moments) in flux.dofs.iter().zip(flux.moments.chunks_exact(n)) {
                    let own = &mut of_to[dof as usize * n..][..n];
                    let wanted = (0..n).filter(|&component| is_wanted(facet, component));
                    wanted.for_each(|component| own[component] += moments[component]);
                }
            }
            of_corners.iter().for_each(|corners| corners.distribute_transpose(&mut of_to));
            let mut of_from = vec![0.0; residual.len()];
            for tied in tied.dofs.iter().filter(|tied| tied.pair == number) {
                for component in 0..n {
                    let own = tied.dof as usize * n + component;
                    let is_itself = matches!(tied.terms[..], [(dof, _)] if dof == tied.dof);
                    if is_itself && !are_held[own] {
                        // On both sides, each of which has half.
                        (of_to[own], of_from[own]) = (0.5 * residual[own], 0.5 * residual[own]);
                        continue;
                    }
                    if !are_held[own] {
                        of_to[own] = residual[own];
                    }
                    problem.add_reaction(tied, component, of_to[own], &mut of_from);
                }
            }
            for (facets, found, own) in [(&pair.from, from, of_from), (&pair.to, to, of_to)] {
                for component in 0..n {
                    let mut given = DirichletFacets::default();
                    for (&facet, flux) in facets.iter().zip(&found).filter(|(f, _)| is_wanted(f, component)) {
                        given.push(facet, &flux.dofs, &column(&flux.moments, component, n), flux.measure);
                    }
                    let own = column(&own, component, n);
                    let mut dofs = given.dofs().to_vec();
                    dofs.sort_unstable();
                    dofs.dedup();
                    dofs.iter().for_each(|&dof| all.taken[dof as usize * n + component] += own[dof as usize]);
                    let mut fluxes = vec![0.0; problem.facets.len()];
                    given.distribute(&mut fluxes, own, &|_| true);
                    for &facet in facets {
                        all.fluxes[facet as usize * n + component] += fluxes[facet as usize];
                    }
                }
            }
        }
        Ok(all)
    }
}

/// The fluxes through sides that belong together.
struct ThroughPairs {
    /// `[n_facets][n_components]`, zero through other facets.
    fluxes: Vec<f64>,
    /// The part of the residual at each unknown that they take.
    taken: Vec<f64>,
}

/// Returns the entries of one of `n` components.
fn column(all: &[f64], component: usize, n: usize) -> Vec<f64> {
    all.iter().skip(component).step_by(n).copied().collect()
}

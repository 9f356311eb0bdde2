//! Fluxes through sides at the value 1 on one of them: capacitances, conductances.

use femtile_device::Cpu;
use femtile_form::{Coefficient, Form};
use femtile_linalg::krylov::Stop;
use femtile_operator::{CpuOperator, DiscreteForm, State};
use femtile_space::Space;

use super::approximation::Approximation;
use super::given::{Given, Place};
use super::kernel::Motions;
use super::solve::{config_for, refusal, takes_motions};
use super::{FormProblem, diffusion};
use crate::matrix::{Given as OfMatrix, check_preconditioner, resolved};
use crate::{Key, Progress, SolveError, SolverConfig, below};

/// The result of the solves for the sides of a matrix.
#[derive(Debug, Clone, PartialEq)]
pub enum SideFluxes {
    /// A row for each side with the flux through it.
    Found(Vec<Vec<f64>>),
    /// The solve for a side ended before it converged.
    NotConverged {
        /// The position of the side.
        side: usize,
        /// The reason.
        stop: Stop,
    },
}

/// Forwards the iterations of a solve for a side.
struct OfSide<'a>(&'a mut dyn Progress);

impl Progress for OfSide<'_> {
    fn iteration(&mut self, iteration: usize, relative_residual: f64, tolerance: f64) {
        self.0.iteration(iteration, relative_residual, tolerance);
    }

    fn is_interrupted(&self) -> bool {
        self.0.is_interrupted()
    }
}

impl<'m> FormProblem<'m> {
    /// Refuses sides that have no matrix, before anything is solved.
    ///
    /// # Errors
    /// As [`Self::side_matrix`].
    pub fn check_side_matrix(&self, sides: &[String], config: &SolverConfig) -> Result<(), SolveError> {
        self.checked_sides(sides, config).map(drop)
    }

    /// Returns for each side i and each side j the flux into the body through i at u = 1 on j and 0 on the other sides,
    /// $M_{ij} = a(u_j, u_i)$, by one solve for each side with the same matrix and preconditioner, on one rank. All other Dirichlet
    /// values, sources, jumps, totals and fluxes are zero.
    ///
    /// # Cost
    /// A matrix and a preconditioner, and a vector for each side.
    /// # Errors
    /// As [`Self::solve`]; [`SolveError::Setting`] for forms that are not linear or have several components, for problems in time, on
    /// several ranks, and for sides that meet.
    pub fn side_matrix(
        &self,
        sides: &[String],
        cpu: &Cpu,
        config: &SolverConfig,
        progress: &mut dyn Progress,
    ) -> Result<SideFluxes, SolveError> {
        let (form, space, problem) = self.checked_sides(sides, config)?;
        let time = self.end();
        let config = resolved(&config_for(config, &form)?);
        config.check()?;
        check_preconditioner(&config)?;
        let approximation = Approximation::new(self, &form, &config);
        let constraints = problem.with_value_on(0).constraints_at(&space, space.n_dofs(), time)?;
        let motions = Motions::new(&space, &form, &problem.unknowns())?;
        let operator = CpuOperator::new(DiscreteForm::new(&space, &form, &self.facets)?, cpu)?;
        let at = |u: &[f64]| -> Result<Vec<f64>, SolveError> {
            let mut r = vec![0.0; space.n_dofs()];
            operator.residual(&State { time, ..State::of(u) }, &mut r)?;
            Ok(r)
        };
        let of_loads = at(&vec![0.0; space.n_dofs()])?;
        // The product of the matrix without constraints.
        let product = |u: &[f64]| -> Result<Vec<f64>, SolveError> {
            let mut r = at(u)?;
            r.iter_mut().zip(&of_loads).for_each(|(r, load)| *r -= load);
            Ok(r)
        };
        let state = State { time, ..State::default() };
        let matrix = operator.assemble(&state, operator.pattern(&constraints)?)?;
        let near_nullspace =
            takes_motions(&config, &form, &motions).then(|| motions.near_nullspace(&constraints));
        let approximated = approximation.of(&matrix, &config)?;
        let given =
            OfMatrix { near_nullspace: near_nullspace.as_deref(), approximation: approximated.as_ref() };
        let (solver, _) = approximation.solver(&matrix, given, &config, None)?;
        let mut functions = Vec::with_capacity(sides.len());
        for side in 0..sides.len() {
            let constraints = problem.with_value_on(side).constraints_at(&space, space.n_dofs(), time)?;
            let mut u = vec![0.0; space.n_dofs()];
            constraints.impose(&mut u);
            let mut b = product(&u)?;
            constraints.distribute_transpose(&mut b);
            b.iter_mut().for_each(|b| *b = -*b);
            let solved = match solver.solve_from(vec![0.0; b.len()], &b, &mut OfSide(&mut *progress)) {
                Err(SolveError::Interrupted { .. }) => {
                    return Ok(SideFluxes::NotConverged { side, stop: Stop::Interrupted });
                }
                solved => solved?,
            };
            if solved.outcome.stop != Stop::Converged {
                return Ok(SideFluxes::NotConverged { side, stop: solved.outcome.stop });
            }
            u = solved.x;
            constraints.impose(&mut u);
            functions.push(u);
        }
        let mut fluxes = vec![vec![0.0; sides.len()]; sides.len()];
        for (j, u) in functions.iter().enumerate() {
            let of_u = product(u)?;
            // The flux through a side is that with any function that is 1 there; with its own the error of the solves is squared.
            for (i, v) in functions.iter().enumerate() {
                fluxes[i][j] = v.iter().zip(&of_u).map(|(v, of_u)| v * of_u).sum();
            }
        }
        Ok(SideFluxes::Found(fluxes))
    }

    /// Returns the form, its space, and the problem of [`Self::with_sides`].
    fn checked_sides(
        &self,
        sides: &[String],
        config: &SolverConfig,
    ) -> Result<(Form, Space<'m>, Self), SolveError> {
        let path: [Key; 2] = ["output".into(), "matrix".into()];
        let refuse = |message: &str| Err(SolveError::setting(&path, message));
        let form = self.form()?;
        if !form.is_linear() || form.n_components() != 1 {
            return refuse("is that of a linear equation whose unknown is one number: leave this out");
        }
        if self.is_in_time {
            return refuse("is that of a steady equation: leave [time] or this out");
        }
        if config.ranks.n() > 1 {
            return refuse("is computed by one rank: take ranks = 1");
        }
        let space = self.space()?;
        self.check_formulas(&form)?;
        diffusion::check(&self.at_time(self.end()), true)?;
        let problem = self.with_sides(sides, &path)?;
        let constraints = problem.with_value_on(0).constraints_at(&space, space.n_dofs(), self.end())?;
        let motions = Motions::new(&space, &form, &problem.unknowns())?;
        match motions.free(DiscreteForm::new(&space, &form, &self.facets)?, &constraints)? {
            Some(free) => Err(refusal(&free)),
            None => Ok((form, space, problem)),
        }
    }

    /// Returns the problem without loads, with the value 0 on sides; the last conditions are those of the sides.
    fn with_sides(&self, sides: &[String], path: &[Key]) -> Result<Self, SolveError> {
        let mut problem = self.clone();
        problem.sources.clear();
        problem.pairs.iter_mut().for_each(|pair| pair.jump.clear());
        for value in problem.given.iter_mut().flat_map(|given| &mut given.values).flatten() {
            *value = Coefficient::Constant(0.0);
        }
        let space = self.space()?;
        let facets = space.boundary_facets(&self.facets);
        let (mut side_of, mut dofs) = (vec![usize::MAX; space.n_dofs()], vec![0; space.element().n_dofs()]);
        for (i, side) in sides.iter().enumerate() {
            let path = below(path, i);
            let own = self.facets_of_flux(side, &path)?;
            for &facet in &own {
                let at = facets[facet as usize];
                space.cell_dofs(at.position, &mut dofs);
                for &local in &space.element().facets()[at.facet].dofs {
                    let before = std::mem::replace(&mut side_of[dofs[local] as usize], i);
                    if before != i && before != usize::MAX {
                        let [x, y, z] = space.node_points()[dofs[local] as usize];
                        let message =
                            format!("meets `{}` at ({x}, {y}, {z}): sides must lie apart", sides[before]);
                        return Err(SolveError::setting(&path, message));
                    }
                }
            }
            problem
                .floating
                .retain(|floating| !floating.facets.iter().any(|facet| own.binary_search(facet).is_ok()));
            let values = vec![Some(Coefficient::Constant(0.0))];
            problem.given.push(Given { place: Place::Facets(own), values, path });
        }
        let first = problem.given.len() - sides.len();
        problem.given.rotate_left(first);
        Ok(problem)
    }

    /// Returns the problem of [`Self::with_sides`] with the value 1 on one of them.
    fn with_value_on(&self, side: usize) -> Self {
        let mut problem = self.clone();
        let mut own = problem.given.remove(side);
        own.values = vec![Some(Coefficient::Constant(1.0))];
        problem.given.push(own);
        problem
    }
}

//! The operators of a semidiscrete equation on one of several ranks.

use std::sync::Arc;

use femtile_comm::Comm;
use femtile_device::Buffer;
use femtile_fem::Constraints;
use femtile_mesh::partition::MeshPart;

use super::data::{boundary_at, has_boundary_in_time, source_at};
use super::distributed::Run;
use super::operators::{
    Description, Operators, Shifted, Stiffness, held, mass, mass_of_norms, natural, without_preconditioner,
};
use super::preconditioning::{Made, Memory};
use super::rank_terms::RankTerms;
use super::semidiscrete::{First, Semidiscrete};
use super::shifted_solver::Shared;
use crate::auto::Solves;
use crate::discretization::Discretization;
use crate::ranks::device::RankDevices;
use crate::ranks::rows::{RankProblem, agreed};
use crate::ranks::unknowns::{RankSystem, RankUnknowns, given_at_owned};
use crate::ranks::{self, RankDevice};
use crate::system::Prepared;
use crate::{GmgOptions, OperatorKind, Silent, SolveError, SolverConfig, Stage, Stages};

/// A rank's part and devices, from which operators and loads are made.
pub(super) struct RankContext<'a, 'm, D> {
    pub run: &'a Run<'a, 'm>,
    pub on: RankDevices<'a, D>,
    /// None if the rank owns no node.
    pub part: Option<&'a MeshPart>,
    /// The problem on the part.
    pub on_part: Option<&'a Discretization<'a>>,
}

impl<'m, D: RankDevice> RankContext<'_, 'm, D> {
    /// Makes the rank's rows of the system of a problem on the mesh of the run.
    fn system(
        &self,
        problem: &Discretization<'m>,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<RankSystem<D>, SolveError> {
        let fixed = self.run.fixed.of(problem)?;
        let of = RankProblem { problem, fixed: &fixed, part: self.part };
        self.run.layout.system(self.on, of, config, stages)
    }

    /// Chooses the preconditioner for a shift; returns the settings with it, and the reason.
    fn chosen(&self, shift: f64) -> Result<(SolverConfig, String), SolveError> {
        let Run { problem, of_stages, n_threads, layout, .. } = *self.run;
        // The mesh was partitioned for the first shift.
        let lack = || SolveError::solver("preconditioner", "the mesh is not divided by layers of cells");
        let boxed = |_: &GmgOptions| layout.boxes().map(|_| None).ok_or_else(lack);
        let of_shift = ranks::chosen(&held(problem, shift), of_stages, n_threads, Solves::Many, &boxed)?;
        Ok((of_shift.config, of_shift.reason))
    }

    /// Makes the operator of stages with a shift and its preconditioner, from the matrices in `terms` if there are any.
    /// Collective.
    fn of_shift(
        &self,
        terms: Option<&RankTerms<D>>,
        (shift, unknowns): (f64, &RankUnknowns),
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<Prepared<D>, SolveError> {
        match terms {
            Some(terms) => terms.of_shift(self, (shift, unknowns), config),
            None => self.operator(&held(self.run.problem, shift), config, stages),
        }
    }

    /// Makes the operator of a problem on the mesh of the run, and its preconditioner. Collective.
    fn operator(
        &self,
        problem: &Discretization<'m>,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<Prepared<D>, SolveError> {
        Ok(self.system(problem, config, stages)?.system.prepared)
    }

    /// Evaluates the load of the source on the part at a given time. Collective.
    fn source_at(&self, time: f64) -> Result<Vec<f64>, SolveError> {
        let evaluated = self.on_part.map(|on_part| self.placed(source_at(on_part, time)));
        Ok(agreed(self.on.comm, evaluated.transpose())?.unwrap_or_default())
    }

    /// Evaluates the boundary load and the Dirichlet values on the part at a given time. Collective.
    fn boundary_at(&self, time: f64) -> Result<(Vec<f64>, Constraints), SolveError> {
        let evaluated = self.on_part.map(|on_part| self.placed(boundary_at(on_part, time)));
        let evaluated = agreed(self.on.comm, evaluated.transpose())?;
        Ok(evaluated.unwrap_or_else(|| (Vec::new(), Constraints::none(0))))
    }

    /// Names cells and nodes by their global numbers in an error about data on the part.
    fn placed<R>(&self, evaluated: Result<R, SolveError>) -> Result<R, SolveError> {
        evaluated.map_err(|error| match (error, self.part) {
            (SolveError::AtTime { time, source }, Some(part)) => {
                SolveError::AtTime { time, source: source.in_global_numbers(&part.cells, &part.nodes) }
            }
            (error, _) => error,
        })
    }
}

/// The settings for the same operators without a preconditioner.
fn plain(config: &SolverConfig) -> SolverConfig {
    let operator = if config.is_assembled() { OperatorKind::Assembled } else { config.operator };
    SolverConfig { operator, ..without_preconditioner(config) }
}

/// The operators of an equation with the unknowns that a rank owns.
pub(super) struct OfRank<'a, 'm, D: RankDevice> {
    of: RankContext<'a, 'm, D>,
    pub unknowns: RankUnknowns,
    /// The matrices of linear elements; none for other elements.
    terms: Option<RankTerms<D>>,
    /// The settings of the operators of the first shift, without a preconditioner.
    plain: SolverConfig,
    /// The shift of the first stage of the run.
    basis: f64,
    /// Whether the source, and whether the boundary data, depend on time on any rank.
    in_time: [bool; 2],
    /// The load of the source, once it was evaluated.
    source: Option<Buffer<f64, D>>,
}

impl<'a, 'm, D: RankDevice> Semidiscrete<D, OfRank<'a, 'm, D>> {
    /// Prepares the equation on one of several ranks, as [`Semidiscrete::on_one_rank`] does. Collective.
    pub fn on_rank(
        of: RankContext<'a, 'm, D>,
        (time, shift): (f64, f64),
        memory: &[f64],
        stages: &mut Stages<'_>,
    ) -> Result<(Self, Description), SolveError> {
        let problem = of.run.problem;
        stages.begin(Stage::Assemble)?;
        let memory = Memory::read(memory);
        let basis = memory.basis.unwrap_or(shift);
        let made = memory.made.unwrap_or(Made::at(shift));
        let plain = plain(&of.chosen(basis)?.0);
        let mut silent = Silent;
        let mut quiet = Stages::new(&mut silent);
        let RankSystem { system: of_mass, unknowns } = of.system(&mass(problem), &plain, &mut quiet)?;
        let mass_of_norms = match mass_of_norms(problem) {
            Some(unit) => Some(Arc::from(of.operator(&unit, &plain, &mut quiet)?.operator)),
            None => None,
        };
        let (config, preconditioner_reason) = of.chosen(made.shift)?;
        let terms = RankTerms::new(&of, stages)?;
        let mut first = of.of_shift(terms.as_ref(), (made.shift, &unknowns), &config, stages)?;
        let warnings = std::mem::take(&mut first.warnings);
        let (shifted, parts) = first.at_shift(made.shift);
        // On a part without the cells concerned, data may not depend on time.
        let in_time = of.on.comm.any([problem.sources[0].uses_time(), has_boundary_in_time(problem)])?;
        let operators = OfRank { of, unknowns, terms, plain, basis, in_time, source: None };
        let mass = Arc::from(of_mass.prepared.operator);
        let first = First { mass, mass_of_norms, shifted, config: config.clone() };
        let system = Self::new(operators, first, (time, basis), &memory)?;
        Ok((system, Description { parts, config, preconditioner_reason, warnings }))
    }
}

impl<D: RankDevice> Operators<D> for OfRank<'_, '_, D> {
    fn device(&self) -> &D {
        self.of.on.device
    }

    fn comm(&self) -> &Comm {
        self.of.on.comm
    }

    fn is_definite(&self) -> bool {
        self.of.run.problem.lambda.as_constant().is_some_and(|lambda| lambda >= 0.0)
    }

    fn chosen(&self, shift: f64) -> Result<SolverConfig, SolveError> {
        Ok(self.of.chosen(shift)?.0)
    }

    fn shifted(
        &self,
        shift: f64,
        config: &SolverConfig,
        kept: Option<Shared<D>>,
    ) -> Result<Shifted<D>, SolveError> {
        let config = if kept.is_some() { plain(config) } else { config.clone() };
        let mut silent = Silent;
        let quiet = &mut Stages::new(&mut silent);
        let made = self.of.of_shift(self.terms.as_ref(), (shift, &self.unknowns), &config, quiet)?;
        let preconditioner = kept.unwrap_or_else(|| Arc::from(made.preconditioner));
        Ok(Shifted { shift, operator: Arc::from(made.operator), preconditioner })
    }

    fn stiffness(&self, _: &SolverConfig) -> Result<Stiffness<D>, SolveError> {
        let mut silent = Silent;
        let natural = natural(self.of.run.problem, self.basis);
        let made = self.of.operator(&natural, &self.plain, &mut Stages::new(&mut silent))?;
        Ok(Stiffness { operator: Arc::from(made.operator), offset: self.basis })
    }

    fn in_time(&self) -> [bool; 2] {
        self.in_time
    }

    fn source(&mut self, time: f64) -> Result<Option<&Buffer<f64, D>>, SolveError> {
        if self.in_time[0] || self.source.is_none() {
            let own = self.unknowns.local.restrict_to_owned(&self.of.source_at(time)?);
            self.source = Some(Buffer::from_vec(self.of.on.device, own)?);
        }
        Ok(self.source.as_ref())
    }

    fn boundary(&self, time: f64) -> Result<(Vec<f64>, Constraints), SolveError> {
        let (load, constraints) = self.of.boundary_at(time)?;
        let local = &self.unknowns.local;
        Ok((local.restrict_to_owned(&load), given_at_owned(local.owned(), &constraints)))
    }
}

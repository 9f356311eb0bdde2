//! The semidiscrete equation on one of several ranks.

use std::sync::Arc;

use femtile_comm::Comm;
use femtile_device::{Buffer, Cpu};
use femtile_fem::{BoundaryCondition, Coefficient, Conditions, Constraints, FemError, load};
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_mesh::partition::MeshPart;
use femtile_space::{Space, TensorSpace};
use femtile_time::implicit::{SemiDiscrete, StageEquation, StageOutcome};

use super::data::has_boundary_in_time;
use super::distributed::Run;
use super::operators::{Shifted, held, mass, mass_of_norms, natural, without_preconditioner};
use super::preconditioning::{Made, Memory};
use super::rank_terms::RankTerms;
use super::shifted_solver::{Shared, ShiftedSolver};
use crate::auto::Solves;
use crate::discretization::Discretization;
use crate::ranks::rows::agreed;
use crate::ranks::system::{DistributedSystem, RankUnknowns};
use crate::ranks::{self, RankDevice};
use crate::system::SystemSummary;
use crate::{GmgOptions, OperatorKind, Silent, SolveError, SolverConfig, Stage, Stages};

/// A rank's part and devices, from which operators and loads are made.
pub(super) struct RankContext<'a, 'm, D> {
    pub run: &'a Run<'a, 'm>,
    pub cpu: &'a Cpu,
    pub device: &'a D,
    pub comm: &'a Comm,
    /// None if the rank owns no node.
    pub part: Option<&'a MeshPart>,
    /// The space on the part, of any degree; none for linear elements.
    pub space: Option<&'a TensorSpace<'a>>,
}

impl<'m, D: RankDevice> RankContext<'_, 'm, D> {
    /// Makes the rank's rows of the system of a problem on the mesh of the run.
    fn system(
        &self,
        problem: &Discretization<'m>,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<DistributedSystem<D>, SolveError> {
        let fixed = self.run.fixed.of(problem)?;
        let devices = (self.cpu, self.device, self.comm);
        self.run.layout.system(devices, (problem, &fixed), self.part, config, stages)
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

    /// Makes the system of stages with a shift, from the matrices in `terms` if there are any. Collective.
    fn of_shift(
        &self,
        terms: Option<&RankTerms<D>>,
        (shift, unknowns): (f64, &RankUnknowns),
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<DistributedSystem<D>, SolveError> {
        if let Some(terms) = terms {
            return terms.system(self, (shift, unknowns), config);
        }
        self.system(&held(self.run.problem, shift), config, stages)
    }

    /// Evaluates the load of the source on the part at a given time. Collective.
    fn source_at(&self, time: f64) -> Result<Vec<f64>, SolveError> {
        let evaluated = self.part.map(|part| {
            let source = self.run.problem.sources[0].at_time(time);
            let now = match self.run.problem.divided {
                Some(_) => source,
                None => source.on_cells(&part.cells),
            };
            self.evaluated(part, (&now, &[]), time)
        });
        let evaluated = agreed(self.comm, evaluated.transpose())?;
        Ok(evaluated.map_or_else(Vec::new, |(load, _)| load))
    }

    /// Evaluates the boundary load and the Dirichlet values on the part at a given time. Collective.
    fn boundary_at(&self, time: f64) -> Result<(Vec<f64>, Constraints), SolveError> {
        let evaluated = self.part.map(|part| {
            let conditions = self.run.fixed.conditions((self.run.problem, time), part);
            self.evaluated(part, (&Coefficient::ZERO, &conditions), time)
        });
        let evaluated = agreed(self.comm, evaluated.transpose())?;
        Ok(evaluated.unwrap_or_else(|| (Vec::new(), Constraints::none(0))))
    }

    fn evaluated(
        &self,
        part: &MeshPart,
        (source, conditions): (&Coefficient, &[BoundaryCondition]),
        time: f64,
    ) -> Result<(Vec<f64>, Constraints), SolveError> {
        let evaluated = || {
            let conditions = Conditions::new(&part.mesh, &part.boundary, conditions)?;
            load(&Space::of(&part.mesh, self.space)?, source, &conditions)
        };
        let in_global = |error: FemError| error.in_global_numbers(&part.cells, &part.nodes);
        evaluated().map_err(|error| SolveError::AtTime { time, source: in_global(error) })
    }
}

/// The settings for the same operators without a preconditioner.
fn plain(config: &SolverConfig) -> SolverConfig {
    let operator = if config.is_assembled() { OperatorKind::Assembled } else { config.operator };
    SolverConfig { operator, ..without_preconditioner(config) }
}

/// The systems of stages, for a report.
pub(super) struct Described {
    pub parts: SystemSummary,
    pub config: SolverConfig,
    pub reason: String,
    pub warnings: Vec<String>,
}

/// The semidiscrete equation $M \dot u = F(t) - K u$ with the owned unknowns of a rank; see
/// [`super::semidiscrete`] for its stages.
pub(super) struct DistributedEquation<'a, 'm, D: RankDevice> {
    of: RankContext<'a, 'm, D>,
    pub unknowns: RankUnknowns,
    mass: Box<dyn LinearOperator<f64, D>>,
    /// The mass matrix with capacity 1; none if it equals `mass`.
    mass_of_norms: Option<Box<dyn LinearOperator<f64, D>>>,
    /// $K + s M$ without elimination of Dirichlet values; s is `basis`.
    stiffness: Box<dyn LinearOperator<f64, D>>,
    /// The matrices of linear elements; none for other elements.
    terms: Option<RankTerms<D>>,
    /// The shift of the first stage of the run.
    basis: f64,
    solver: ShiftedSolver<D>,
    time: f64,
    /// $F - K g$.
    load: Buffer<f64, D>,
    /// The load of the source, and the boundary load minus $K g$. Those that depend on time belong to the
    /// time of the data.
    loads: [Buffer<f64, D>; 2],
    /// Dirichlet values, zero elsewhere.
    given: Buffer<f64, D>,
    /// 1 at free unknowns, 0 at Dirichlet unknowns.
    free: Buffer<f64, D>,
    /// Whether the source, and whether the boundary data, depend on time on any rank.
    in_time: [bool; 2],
    scratch: Buffer<f64, D>,
    product: Buffer<f64, D>,
}

impl<'a, 'm, D: RankDevice> DistributedEquation<'a, 'm, D> {
    /// Makes the operators of the first stage. Collective.
    pub fn new(
        of: RankContext<'a, 'm, D>,
        (time, shift): (f64, f64),
        memory: &[f64],
        stages: &mut Stages<'_>,
    ) -> Result<(Self, Described), SolveError> {
        let (problem, device) = (of.run.problem, of.device);
        stages.begin(Stage::Assemble)?;
        let memory = Memory::read(memory);
        let basis = memory.basis.unwrap_or(shift);
        let made = memory.made.unwrap_or(Made::at(shift));
        let plain = plain(&of.chosen(basis)?.0);
        let mut silent = Silent;
        let mut quiet = Stages::new(&mut silent);
        let of_mass = of.system(&mass(problem), &plain, &mut quiet)?;
        let mass_of_norms = match mass_of_norms(problem) {
            Some(unit) => Some(of.system(&unit, &plain, &mut quiet)?.operator),
            None => None,
        };
        let stiffness = of.system(&natural(problem, basis), &plain, &mut quiet)?.operator;
        let (config, reason) = of.chosen(made.shift)?;
        let terms = RankTerms::new(&of, stages)?;
        let first = of.of_shift(terms.as_ref(), (made.shift, &of_mass.unknowns), &config, stages)?;
        let DistributedSystem { operator, preconditioner, parts, warnings, unknowns, .. } = first;
        let (operator, preconditioner) = (Arc::from(operator), Arc::from(preconditioner));
        let first = Shifted { shift: made.shift, operator, preconditioner };
        // On a part without the cells concerned, data may not depend on time.
        let in_time = of.comm.any([problem.sources[0].uses_time(), has_boundary_in_time(problem)])?;
        let n = unknowns.owned.len();
        let zeros = || Buffer::zeros(device, n).map_err(LinalgError::from);
        let described = Described { parts, config: config.clone(), reason, warnings };
        let mut equation = Self {
            solver: ShiftedSolver::new(config, first, &memory, of.comm)?,
            load: zeros()?,
            loads: [zeros()?, zeros()?],
            given: zeros()?,
            free: zeros()?,
            scratch: zeros()?,
            product: zeros()?,
            of,
            unknowns,
            mass: of_mass.operator,
            mass_of_norms,
            stiffness,
            terms,
            basis,
            time,
            in_time,
        };
        equation.take_data(time, [true; 2])?;
        Ok((equation, described))
    }

    /// Inserts the Dirichlet values at a given time into `u`.
    pub fn impose(&mut self, time: f64, u: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        self.bring_data(time)?;
        self.clear_given(u)?;
        Ok(self.of.device.axpby(u, 1.0, &self.given, 1.0)?)
    }

    fn bring_data(&mut self, time: f64) -> Result<(), SolveError> {
        match self.time == time || self.in_time == [false; 2] {
            true => Ok(()),
            false => self.take_data(time, self.in_time),
        }
    }

    /// Evaluates the source, the boundary data or both at a given time.
    fn take_data(&mut self, time: f64, [source, boundary]: [bool; 2]) -> Result<(), SolveError> {
        if source {
            let own = self.unknowns.restrict_to_owned(&self.of.source_at(time)?);
            self.loads[0].upload(&own).map_err(LinalgError::from)?;
        }
        if boundary {
            self.take_boundary(time)?;
        }
        let [of_source, of_boundary] = &self.loads;
        self.of.device.combine(&mut self.load, &[(1.0, of_source), (1.0, of_boundary)])?;
        self.time = time;
        Ok(())
    }

    /// Evaluates the boundary data at a given time, and lifts Dirichlet values.
    fn take_boundary(&mut self, time: f64) -> Result<(), SolveError> {
        let (load, constraints) = self.of.boundary_at(time)?;
        let (mut given, mut free) = (vec![0.0; load.len()], vec![1.0; load.len()]);
        constraints.impose(&mut given);
        constraints.dofs().iter().for_each(|&unknown| free[unknown as usize] = 0.0);
        let own = |values: &[f64]| self.unknowns.restrict_to_owned(values);
        let (load, given, free) = (own(&load), own(&given), own(&free));
        self.given.upload(&given).map_err(LinalgError::from)?;
        self.free.upload(&free).map_err(LinalgError::from)?;
        self.loads[1].upload(&load).map_err(LinalgError::from)?;
        let given =
            std::mem::replace(&mut self.given, Buffer::zeros(self.of.device, 0).map_err(LinalgError::from)?);
        let lifted = self.stiffness_product(&given);
        self.given = given;
        lifted?;
        Ok(self.of.device.axpby(&mut self.loads[1], -1.0, &self.product, 1.0)?)
    }

    /// Writes $K v$ to `product`.
    fn stiffness_product(&mut self, v: &Buffer<f64, D>) -> Result<(), SolveError> {
        self.stiffness.apply(&mut self.product, v)?;
        self.mass.apply(&mut self.scratch, v)?;
        Ok(self.of.device.axpby(&mut self.product, -self.basis, &self.scratch, 1.0)?)
    }

    /// Switches the solver to the operators of a shift.
    fn bring_operators(&mut self, shift: f64) -> Result<(), SolveError> {
        let Self { of, terms, unknowns, .. } = self;
        let is_definite = of.run.problem.lambda.as_constant().is_some_and(|lambda| lambda >= 0.0);
        let choose = || Ok(of.chosen(shift)?.0);
        let make = |config: &SolverConfig, kept: Option<Shared<D>>| {
            let config = if kept.is_some() { plain(config) } else { config.clone() };
            let mut silent = Silent;
            let quiet = &mut Stages::new(&mut silent);
            let made = of.of_shift(terms.as_ref(), (shift, unknowns), &config, quiet)?;
            let preconditioner = kept.unwrap_or_else(|| Arc::from(made.preconditioner));
            Ok(Shifted { shift, operator: Arc::from(made.operator), preconditioner })
        };
        self.solver.bring((shift, is_definite), choose, make, of.comm)
    }

    /// Writes the right side and the initial guess of a stage into the solver.
    fn bring_stage(&mut self, equation: &StageEquation<'_, D>, u: &Buffer<f64, D>) -> Result<(), SolveError> {
        let device = self.of.device;
        let (x, b) = self.solver.vectors_mut();
        device.combine(&mut self.scratch, &[(1.0, equation.history), (-equation.shift, &self.given)])?;
        self.mass.apply(&mut self.product, &self.scratch)?;
        for part in [Some(&self.load), equation.defect].into_iter().flatten() {
            device.axpby(&mut self.product, 1.0, part, 1.0)?;
        }
        device.scale_by(b, &self.free, &self.product)?;
        Ok(device.scale_by(x, &self.free, u)?)
    }
}

impl<D: RankDevice> SemiDiscrete<D> for DistributedEquation<'_, '_, D> {
    type Error = SolveError;

    fn solve(
        &mut self,
        equation: &StageEquation<'_, D>,
        u: &mut Buffer<f64, D>,
    ) -> Result<StageOutcome, SolveError> {
        self.bring_operators(equation.shift)?;
        self.bring_data(equation.time)?;
        self.bring_stage(equation, u)?;
        self.of.device.scale_by(&mut self.scratch, &self.free, equation.history)?;
        let vectors = (&self.scratch, &mut self.product);
        let outcome = self.solver.solve(equation, vectors, self.of.comm)?;
        self.of.device.combine(u, &[(1.0, self.solver.x()), (1.0, &self.given)])?;
        Ok(outcome)
    }

    /// $F - K u = (F - K g) - K (u - g)$.
    fn defect(
        &mut self,
        (time, _): (f64, f64),
        u: &Buffer<f64, D>,
        d: &mut Buffer<f64, D>,
    ) -> Result<(), SolveError> {
        let device = self.of.device;
        self.bring_data(time)?;
        device.scale_by(d, &self.free, u)?;
        self.stiffness_product(d)?;
        Ok(device.combine(d, &[(1.0, &self.load), (-1.0, &self.product)])?)
    }

    fn clear_given(&mut self, v: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        self.of.device.scale_by(&mut self.scratch, &self.free, v)?;
        std::mem::swap(v, &mut self.scratch);
        Ok(())
    }

    fn norm(&mut self, v: &Buffer<f64, D>) -> Result<f64, SolveError> {
        self.mass_of_norms.as_ref().unwrap_or(&self.mass).apply(&mut self.product, v)?;
        let mut square = [self.of.device.dot(v, &self.product)?];
        self.of.comm.sum_values(&mut square)?;
        // Rounding may give a small negative number; NaN stays NaN.
        Ok(if square[0] < 0.0 { 0.0 } else { square[0].sqrt() })
    }

    fn may_have_kinks(&self) -> bool {
        self.in_time != [false; 2]
    }

    fn memory(&self) -> Vec<f64> {
        self.solver.memory(self.basis)
    }
}

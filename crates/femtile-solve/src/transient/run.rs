//! A time-dependent run, from the problem to the solution at the end.

use femtile_device::{Buffer, Cpu, Cuda};
use femtile_time::implicit::{Checkpoint, Outcome, SemiDiscrete, Stop};

use super::data::nodal_values;
use super::nonlinear::{self, Nonlinear};
use super::operators::Workshop;
use super::semidiscrete::Semidiscrete;
use super::watch::{Observed, Record, Shown};
use super::{Beginning, Observer, Transient, TransientSolution, linear_outcome, warnings_of};
use crate::auto::{Circumstances, Solves};
use crate::check::check_cells;
use crate::device::{Choice, Chosen, ProblemOnDevice};
use crate::discretization::Discretization;
use crate::nonlinear::{Derivatives, Domain, Typical, resolved, typical};
use crate::ranks::{self, RankDevice};
use crate::solution::{Finished, Found};
use crate::system::SystemSummary;
use crate::tensor::OperatorDevice;
use crate::{DeviceChoice, MassMatrix, Solution, SolveError, SolverConfig, Stage, Stages};

impl<'m> Transient<'m> {
    /// Runs on the result of [`Transient::discretize`], on the device of the settings or on the opened GPU.
    /// If the GPU was an automatic choice and fails, the CPU takes over.
    ///
    /// # Errors
    /// As [`Transient::solve_with`].
    pub fn run(
        &self,
        problem: Discretization<'m>,
        (cpu, opened): (&Cpu, Option<Cuda>),
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<TransientSolution<'m>, SolveError> {
        check(config, &problem)?;
        if problem.divided.is_some() || config.ranks.n() > 1 {
            return self.run_on_ranks(problem, None, (cpu, opened.as_ref()), config, observer, stages);
        }
        let work = (problem.n_dofs(), self.stepping.steps.expected());
        let Choice { device, mut reason } = config.device.choose_for_steps(opened, work, cpu.threads());
        let mut warnings = problem.warnings.clone();
        let mut done = None;
        if let Chosen::Cuda(cuda) = device {
            let device = &config.device.with_overflow(&cuda);
            let of = ProblemOnDevice { cpu, device, reason: &reason, problem: &problem, warnings: &warnings };
            match self.run_on(&of, config, observer, stages) {
                Err(error) if config.device == DeviceChoice::Auto && error.is_device_trouble() => {
                    reason = error.to_string();
                    warnings.push(format!("solved on the CPU: {reason}"));
                }
                ran => done = Some(ran?),
            }
        }
        let of =
            ProblemOnDevice { cpu, device: cpu, reason: &reason, problem: &problem, warnings: &warnings };
        let (finished, outcome) = match done {
            Some(done) => done,
            None => self.run_on(&of, config, observer, stages)?,
        };
        let solution = Solution::new(problem.at_time(outcome.time), finished);
        Ok(TransientSolution { solution, whole: None, outcome })
    }

    /// Runs on a distributed mesh, with the result of [`Transient::discretize`] on the part of this rank. On
    /// the first rank, `whole` is the problem on the whole mesh, which its observer receives frames and
    /// checkpoints of. Collective.
    ///
    /// # Errors
    /// As [`Transient::solve_with`]; [`SolveError::Setting`] if the mesh is not distributed, or if frames or
    /// checkpoints are requested and the first rank does not have the whole mesh.
    pub fn run_on_parts(
        &self,
        problem: Discretization<'m>,
        whole: Option<Discretization<'m>>,
        (cpu, opened): (&Cpu, Option<Cuda>),
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<TransientSolution<'m>, SolveError> {
        check(config, &problem)?;
        if problem.divided.is_none() {
            return Err(ranks::no_parts());
        }
        self.run_on_ranks(problem, whole, (cpu, opened.as_ref()), config, observer, stages)
    }

    fn run_on<D: RankDevice>(
        &self,
        of: &ProblemOnDevice<'_, 'm, D>,
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<(Finished, Outcome), SolveError> {
        let &ProblemOnDevice { cpu, device, reason, problem, warnings } = of;
        let initial = self.initial_values(problem)?;
        self.check_mass(problem)?;
        if nonlinear::is_refilled(problem) {
            return self.run_refilled(of, initial, config, observer, stages);
        }
        let is_lumped = self.mass == MassMatrix::Lumped;
        let config = &self.mass.settings(config)?;
        let workshop = Workshop { cpu, device, problem, is_lumped };
        let first = (self.stepping.start, self.stepping.first_shift());
        let memory = self.stepping.resume.as_ref().map_or(&[][..], |checkpoint| &checkpoint.memory);
        let (mut system, description) = Semidiscrete::on_one_rank(workshop, config, first, memory, stages)?;
        let mut u = Buffer::from_vec(device, initial)?;
        system.impose(self.stepping.start, &mut u)?;
        let resume = self.stepping.resume.as_deref();
        let from = Beginning { initial: u, resume, time_limit: config.time_limit };
        let shown = Shown { problem, global: None };
        let (values, outcome) = self.integrate(from, &mut system, shown, observer, stages)?;
        let preconditioner_reason = description.preconditioner_reason.clone();
        let found = description.found(values, &outcome).after(warnings);
        let mut finished = Finished::new(device, found, [reason, &preconditioner_reason]);
        finished.cite(self.stepping.scheme.citations());
        Ok((finished, outcome))
    }

    /// Runs a problem whose matrices are reassembled in time.
    fn run_refilled<D: RankDevice>(
        &self,
        &ProblemOnDevice { cpu, device, reason, problem, warnings }: &ProblemOnDevice<'_, 'm, D>,
        initial: Vec<f64>,
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<(Finished, Outcome), SolveError> {
        stages.begin(Stage::Assemble)?;
        let circumstances = Circumstances::on(cpu, device, Solves::Many);
        let (config, preconditioner_reason) = self.resolved(config, problem, &initial, circumstances)?;
        let domain = Domain::whole(device, problem);
        let from = (initial, self.stepping.resume.as_deref());
        let shown = Shown { problem, global: None };
        let (found, outcome) = self.refilled(&domain, from, &config, shown, observer, stages)?;
        let mut finished = Finished::new(device, found.after(warnings), [reason, &preconditioner_reason]);
        finished.cite(self.stepping.scheme.citations());
        Ok((finished, outcome))
    }

    /// Checks a problem whose matrices are reassembled; returns the settings with the preconditioner that `auto` stands for, and
    /// the reason. `initial` is on the mesh of the rank. Collective if the mesh is distributed.
    pub(super) fn resolved(
        &self,
        config: &SolverConfig,
        problem: &Discretization<'m>,
        initial: &[f64],
        circumstances: Circumstances,
    ) -> Result<(SolverConfig, String), SolveError> {
        let config = &self.mass.settings(config)?;
        crate::nonlinear::check(config, problem)?;
        let unknown = typical(problem, initial)?;
        let at = Typical { unknown, time: self.stepping.start, shift: self.stepping.initial_shift() };
        resolved(config, problem, at, circumstances)
    }

    /// Integrates a problem whose matrices are reassembled from its initial values at the owned unknowns; returns the last ones.
    /// Collective.
    pub(super) fn refilled<D: RankDevice>(
        &self,
        domain: &Domain<'_, D>,
        (initial, resume): (Vec<f64>, Option<&Checkpoint>),
        config: &SolverConfig,
        shown: Shown<'_, 'm>,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<(Found, Outcome), SolveError> {
        let derivatives = Derivatives::of(domain, config.nonlinear.method)?;
        let mut system = Nonlinear::new(domain, &derivatives, config, (self.stepping.start, self.mass))?;
        if let Some(checkpoint) = &self.stepping.resume {
            system.restore(&checkpoint.memory)?;
        }
        let mut u = Buffer::from_vec(domain.device, initial)?;
        system.impose(self.stepping.start, &mut u)?;
        let from = Beginning { initial: u, resume, time_limit: config.time_limit };
        let (values, outcome) = self.integrate(from, &mut system, shown, observer, stages)?;
        let mut warnings = std::mem::take(&mut system.equation().linear.warnings);
        warnings.extend(warnings_of(&outcome));
        if matches!(outcome.stop, Stop::SolverFailed) {
            warnings.extend(system.failure.take());
        }
        let nonlinear = system.report();
        let citations = if nonlinear.is_some() { vec!["eisenstat1996"] } else { Vec::new() };
        let levels = std::mem::take(&mut system.equation().linear.levels);
        let found = Found {
            components: vec![values],
            outcome: linear_outcome(&outcome),
            summary: SystemSummary::of_refilled_matrix(levels, citations),
            config: system.equation().linear.config().clone(),
            warnings,
            nonlinear,
        };
        Ok((found, outcome))
    }

    /// Refuses a mass matrix that the elements or the capacity do not have.
    pub(super) fn check_mass(&self, problem: &Discretization<'_>) -> Result<(), SolveError> {
        self.mass.check(problem.config.degree)?;
        if self.mass == MassMatrix::Lumped && problem.capacity.uses_unknown() {
            let message = "\"lumped\" is for a capacity that does not depend on u: take \"consistent\"";
            return Err(SolveError::setting(&["time".into(), "mass".into()], message));
        }
        Ok(())
    }

    /// Integrates an equation from its initial values at the owned unknowns; returns the last values. Collective.
    pub(super) fn integrate<D: OperatorDevice, S: SemiDiscrete<D, Error = SolveError>>(
        &self,
        from: Beginning<'_, D>,
        system: &mut S,
        Shown { problem, global }: Shown<'_, 'm>,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<(Vec<f64>, Outcome), SolveError> {
        let record = (&mut Observed { observer, problem } as &mut dyn Record, global);
        let (end, outcome) = self.stepping.integrate(from, system, record, stages)?;
        Ok((end.values, outcome))
    }

    /// Returns the initial values at the degrees of freedom.
    pub(super) fn initial_values(&self, problem: &Discretization<'_>) -> Result<Vec<f64>, SolveError> {
        nodal_values(problem, &self.initial, &["equation".into(), "initial".into()])
    }
}

/// Refuses cells and components that time-dependent problems do not support.
fn check(config: &SolverConfig, problem: &Discretization<'_>) -> Result<(), SolveError> {
    check_cells(config, &problem.config, problem.mesh.kind)?;
    if problem.config.components > 1 {
        let message = "equations in time have one component";
        return Err(SolveError::setting(&["space".into(), "components".into()], message));
    }
    Ok(())
}

//! A semidiscrete problem on a device.

use femtile_comm::Comm;
use femtile_device::Buffer;
use femtile_linalg::LinalgError;
use femtile_time::implicit::{SemiDiscrete, StageEquation, StageOutcome};

use super::operators::{Description, OfOneRank, Operator, Operators, Shifted, Stiffness, Workshop};
use super::preconditioning::{Made, Memory};
use super::shifted_solver::ShiftedSolver;
use super::source::SourceLoad;
use crate::tensor::OperatorDevice;
use crate::{SolveError, SolverConfig, Stages};

/// The load and the Dirichlet values at a given time.
struct Data<D: OperatorDevice> {
    time: f64,
    /// $F_\Gamma - K g$ with the boundary load $F_\Gamma$ and the Dirichlet values $g$; none if it is zero.
    boundary: Option<Buffer<f64, D>>,
    /// $F - K g$, which adds the load of the source; none if both are zero.
    load: Option<Buffer<f64, D>>,
    /// Dirichlet values, zero elsewhere; none if they are zero.
    given: Option<Buffer<f64, D>>,
}

/// The semidiscrete equation $M \dot u = F(t) - K u$ of a problem; $M$ has the capacity. Vectors hold the unknowns that a rank
/// owns.
///
/// With the Dirichlet values $g$ lifted, a stage is $(a M + K)(u - g) = F - K g + M (b - a g) + d$ at free
/// unknowns. The unknown of the solve is the difference of u − g and $b / a$, see [`ShiftedSolver::solve`].
pub(super) struct Semidiscrete<D: OperatorDevice, O: Operators<D>> {
    pub operators: O,
    mass: Operator<D>,
    /// The mass matrix with capacity 1; none if it equals `mass`.
    mass_of_norms: Option<Operator<D>>,
    /// Made when it is first needed.
    stiffness: Option<Stiffness<D>>,
    /// The shift of the first stage of the run.
    basis: f64,
    solver: ShiftedSolver<D>,
    data: Data<D>,
    /// Whether the source, and whether the boundary data, depend on time.
    in_time: [bool; 2],
    /// 1 at free unknowns, 0 at Dirichlet unknowns; none if all are free.
    free: Option<Buffer<f64, D>>,
    scratch: Buffer<f64, D>,
    product: Buffer<f64, D>,
}

/// The operators of the first stages of a run.
pub(super) struct First<D: OperatorDevice> {
    pub mass: Operator<D>,
    /// The mass matrix with capacity 1; none if it equals `mass`.
    pub mass_of_norms: Option<Operator<D>>,
    pub shifted: Shifted<D>,
    /// The settings with the preconditioner of `shifted`.
    pub config: SolverConfig,
}

impl<'a, 'm, D: OperatorDevice> Semidiscrete<D, OfOneRank<'a, 'm, D>> {
    /// Prepares the equation on one rank from a given time on; `shift` is that of the first stage, `memory` the
    /// state of the run so far.
    ///
    /// Operators and preconditioners depend only on the shift and the memory, so a continued run has the same
    /// bits.
    pub fn on_one_rank(
        workshop: Workshop<'a, 'm, D>,
        asked: &SolverConfig,
        (time, shift): (f64, f64),
        memory: &[f64],
        stages: &mut Stages<'_>,
    ) -> Result<(Self, Description), SolveError> {
        let memory = Memory::read(memory);
        let basis = memory.basis.unwrap_or(shift);
        let made = memory.made.unwrap_or(Made::at(shift));
        let (of_basis, preconditioner_reason) = workshop.choose(basis, asked)?;
        let terms = workshop.terms(basis, &of_basis, stages)?;
        let config = workshop.choose_for(&terms, made.shift, (asked, &of_basis))?;
        let mass = workshop.mass(&terms, &config, stages)?;
        let mass_of_norms = workshop.mass_of_norms(&terms, &config, stages)?;
        let (shifted, parts) = workshop.shifted(&terms, made.shift, &config, None, stages)?;
        let source = SourceLoad::new(workshop.device, workshop.problem, time)?;
        let (comm, asked) = (Comm::alone(), asked.clone());
        let operators = OfOneRank { workshop, comm, asked, of_basis, terms, basis, source };
        let first = First { mass, mass_of_norms, shifted, config: config.clone() };
        let system = Self::new(operators, first, (time, basis), &memory)?;
        Ok((system, Description { parts, config, preconditioner_reason, warnings: Vec::new() }))
    }
}

impl<D: OperatorDevice, O: Operators<D>> Semidiscrete<D, O> {
    /// Takes the operators of the first stages of a run from a given time on; `basis` is the first shift. Collective.
    pub fn new(
        operators: O,
        first: First<D>,
        (time, basis): (f64, f64),
        memory: &Memory,
    ) -> Result<Self, SolveError> {
        let First { mass, mass_of_norms, shifted, config } = first;
        let (device, n) = (operators.device(), mass.n_rows());
        let (_, constraints) = operators.boundary(time)?;
        let free = match constraints.is_empty() {
            true => None,
            false => {
                let mut free = vec![1.0; n];
                constraints.dofs().iter().for_each(|&dof| free[dof as usize] = 0.0);
                Some(Buffer::from_vec(device, free)?)
            }
        };
        let zeros = || Buffer::zeros(device, n);
        let mut semidiscrete = Self {
            scratch: zeros()?,
            product: zeros()?,
            data: Data { time, boundary: None, load: None, given: None },
            in_time: operators.in_time(),
            solver: ShiftedSolver::new(config, shifted, memory, operators.comm())?,
            stiffness: None,
            basis,
            operators,
            mass,
            mass_of_norms,
            free,
        };
        semidiscrete.take_boundary(time)?;
        semidiscrete.take_source(time)?;
        Ok(semidiscrete)
    }

    /// Inserts the Dirichlet values at a given time into `u`.
    pub fn impose(&mut self, time: f64, u: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        self.bring_data(time)?;
        self.clear(u)?;
        if let Some(given) = &self.data.given {
            self.operators.device().axpby(u, 1.0, given, 1.0)?;
        }
        Ok(())
    }

    fn bring_data(&mut self, time: f64) -> Result<(), SolveError> {
        if self.data.time == time || self.in_time == [false; 2] {
            return Ok(());
        }
        if self.in_time[1] {
            self.take_boundary(time)?;
        }
        self.take_source(time)
    }

    /// Copies the boundary data at a given time to the device and lifts Dirichlet values.
    fn take_boundary(&mut self, time: f64) -> Result<(), SolveError> {
        let device = self.operators.device().clone();
        let (load, constraints) = self.operators.boundary(time)?;
        let mut values = vec![0.0; load.len()];
        constraints.impose(&mut values);
        let is_zero = |values: &[f64]| values.iter().all(|value| *value == 0.0);
        // All ranks lift if one of them has values.
        let [has_given] = self.operators.comm().any([!is_zero(&values)])?;
        assign(&mut self.data.given, &device, has_given.then_some(&values))?;
        assign(&mut self.data.boundary, &device, (!is_zero(&load)).then_some(&load))?;
        let Some(given) = self.data.given.take() else { return Ok(()) };
        let mut lifted = match self.data.boundary.take() {
            Some(load) => load,
            None => Buffer::zeros(&device, load.len())?,
        };
        self.stiffness_product(&given)?;
        device.axpby(&mut lifted, -1.0, &self.product, 1.0)?;
        (self.data.given, self.data.boundary) = (Some(given), Some(lifted));
        Ok(())
    }

    /// Adds the load of the source at a given time to the boundary load.
    fn take_source(&mut self, time: f64) -> Result<(), SolveError> {
        let device = self.operators.device().clone();
        let source = self.operators.source(time)?;
        let parts = [self.data.boundary.as_ref(), source].into_iter().flatten();
        let parts: Vec<_> = parts.map(|part| (1.0, part)).collect();
        self.data.load = match (parts.is_empty(), self.data.load.take()) {
            (true, _) => None,
            (false, known) => {
                let mut load = known.map_or_else(|| Buffer::zeros(&device, parts[0].1.len()), Ok)?;
                device.combine(&mut load, &parts)?;
                Some(load)
            }
        };
        self.data.time = time;
        Ok(())
    }

    /// Writes $K v$ to `product`.
    fn stiffness_product(&mut self, v: &Buffer<f64, D>) -> Result<(), SolveError> {
        let stiffness = match self.stiffness.take() {
            Some(stiffness) => stiffness,
            None => self.operators.stiffness(self.solver.config())?,
        };
        stiffness.operator.apply(&mut self.product, v)?;
        if stiffness.offset != 0.0 {
            self.mass.apply(&mut self.scratch, v)?;
            let device = self.operators.device();
            device.axpby(&mut self.product, -stiffness.offset, &self.scratch, 1.0)?;
        }
        self.stiffness = Some(stiffness);
        Ok(())
    }

    /// Switches the solver to the operators of a shift.
    fn bring_operators(&mut self, shift: f64) -> Result<(), SolveError> {
        let Self { operators, solver, .. } = self;
        let make = |config: &SolverConfig, kept| operators.shifted(shift, config, kept);
        let choose = || operators.chosen(shift);
        solver.bring((shift, operators.is_definite()), choose, make, operators.comm())
    }

    /// Sets entries of `v` at Dirichlet unknowns to zero.
    fn clear(&mut self, v: &mut Buffer<f64, D>) -> Result<(), LinalgError> {
        let Some(free) = &self.free else { return Ok(()) };
        self.operators.device().scale_by(&mut self.scratch, free, v)?;
        std::mem::swap(v, &mut self.scratch);
        Ok(())
    }

    /// Writes the right side and the initial guess of a stage into the solver.
    fn bring_stage(&mut self, equation: &StageEquation<'_, D>, u: &Buffer<f64, D>) -> Result<(), SolveError> {
        let device = self.operators.device();
        let (x, b) = self.solver.vectors_mut();
        let history = match &self.data.given {
            Some(given) => {
                device.combine(&mut self.scratch, &[(1.0, equation.history), (-equation.shift, given)])?;
                &self.scratch
            }
            None => equation.history,
        };
        let right = if self.free.is_some() { &mut self.product } else { &mut *b };
        self.mass.apply(right, history)?;
        for part in [self.data.load.as_ref(), equation.defect].into_iter().flatten() {
            device.axpby(right, 1.0, part, 1.0)?;
        }
        match &self.free {
            Some(free) => {
                device.scale_by(b, free, &self.product)?;
                device.scale_by(x, free, u)?;
            }
            None => device.copy(x, u)?,
        }
        Ok(())
    }
}

/// Copies values to the device, if there are any.
fn assign<D: OperatorDevice>(
    to: &mut Option<Buffer<f64, D>>,
    device: &D,
    values: Option<&Vec<f64>>,
) -> Result<(), LinalgError> {
    match (values, to) {
        (None, to) => *to = None,
        (Some(values), Some(buffer)) => buffer.upload(values)?,
        (Some(values), to) => *to = Some(Buffer::from_host(device, values)?),
    }
    Ok(())
}

impl<D: OperatorDevice, O: Operators<D>> SemiDiscrete<D> for Semidiscrete<D, O> {
    type Error = SolveError;

    fn solve(
        &mut self,
        equation: &StageEquation<'_, D>,
        u: &mut Buffer<f64, D>,
    ) -> Result<StageOutcome, SolveError> {
        self.bring_operators(equation.shift)?;
        self.bring_data(equation.time)?;
        self.bring_stage(equation, u)?;
        let history = match &self.free {
            Some(free) => {
                self.operators.device().scale_by(&mut self.scratch, free, equation.history)?;
                &self.scratch
            }
            None => equation.history,
        };
        let vectors = (history, &mut self.product);
        let outcome = self.solver.solve(equation, vectors, self.operators.comm())?;
        match &self.data.given {
            Some(given) => {
                self.operators.device().combine(u, &[(1.0, self.solver.x()), (1.0, given)])?;
            }
            None => self.operators.device().copy(u, self.solver.x())?,
        }
        Ok(outcome)
    }

    /// $F - K u = (F - K g) - K (u - g)$.
    fn defect(
        &mut self,
        (time, _): (f64, f64),
        u: &Buffer<f64, D>,
        d: &mut Buffer<f64, D>,
    ) -> Result<(), SolveError> {
        self.bring_data(time)?;
        let device = self.operators.device().clone();
        match &self.free {
            Some(free) => device.scale_by(d, free, u)?,
            None => device.copy(d, u)?,
        }
        self.stiffness_product(d)?;
        match &self.data.load {
            Some(load) => device.combine(d, &[(1.0, load), (-1.0, &self.product)])?,
            None => device.combine(d, &[(-1.0, &self.product)])?,
        }
        Ok(())
    }

    fn clear_given(&mut self, v: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        Ok(self.clear(v)?)
    }

    fn norm(&mut self, v: &Buffer<f64, D>) -> Result<f64, SolveError> {
        self.mass_of_norms.as_ref().unwrap_or(&self.mass).apply(&mut self.product, v)?;
        let mut square = [self.operators.device().dot(v, &self.product)?];
        self.operators.comm().sum_values(&mut square)?;
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

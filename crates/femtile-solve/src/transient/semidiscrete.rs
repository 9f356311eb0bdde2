//! A problem on its space as a semidiscrete equation on a device.

use femtile_device::Buffer;
use femtile_fem::Constraints;
use femtile_linalg::LinalgError;
use femtile_linalg::krylov::Stop;
use femtile_time::implicit::{SemiDiscrete, StageEquation, StageOutcome};

use super::data;
use super::operators::{Description, Operator, Shifted, Workshop};
use crate::method::iterate;
use crate::tensor::OperatorDevice;
use crate::{Silent, SolveError, SolverConfig, Stages};

/// Operators of different shifts that are kept: SDIRK2 and BDF2 need one each at the start.
const KEPT: usize = 2;

/// The accuracy of the correction of a first guess, where it is an error estimate.
const OF_ESTIMATE: f64 = 0.01;
/// The largest relative tolerance of a solve.
const LOOSEST: f64 = 0.5;
/// A residual that is rounding, relative to its terms.
const ROUNDING: f64 = 1e-15;

/// The load and given values at a time.
struct Data<D: OperatorDevice> {
    time: f64,
    load: Buffer<f64, D>,
    /// Given values, zero elsewhere; none where there are none.
    given: Option<Buffer<f64, D>>,
}

/// The semidiscrete equation $M \dot u = F(t) - K u$ of a problem.
///
/// A stage is solved for the correction of its first guess, so that a good guess saves iterations; the tolerance of the
/// settings is relative to the right side of the stage all the same.
pub(super) struct Semidiscrete<'a, 'm, D: OperatorDevice> {
    workshop: Workshop<'a, 'm, D>,
    /// Its tolerance is that of the solve at hand.
    config: SolverConfig,
    tolerance: f64,
    mass: Operator<D>,
    /// The one used last stands last.
    shifted: Vec<Shifted<D>>,
    data: Data<D>,
    depends_on_time: bool,
    /// One at free unknowns, zero at given ones; none where all are free.
    free: Option<Buffer<f64, D>>,
    residual: Buffer<f64, D>,
    product: Buffer<f64, D>,
    correction: Buffer<f64, D>,
}

impl<'a, 'm, D: OperatorDevice> Semidiscrete<'a, 'm, D> {
    /// Prepares the equation from a time on; `shift` is that of the first stage.
    pub fn new(
        workshop: Workshop<'a, 'm, D>,
        config: &SolverConfig,
        (time, shift): (f64, f64),
        stages: &mut Stages<'_>,
    ) -> Result<(Self, Description), SolveError> {
        let mass = workshop.mass(config, stages)?;
        let (first, description) = workshop.shifted(shift, config, stages)?;
        let (device, problem) = (workshop.device, workshop.problem);
        let n = problem.n_dofs();
        let (load, constraints) = data::at_time(problem, time)?;
        let free = match constraints.is_empty() {
            true => None,
            false => {
                let mut free = vec![1.0; n];
                constraints.dofs().iter().for_each(|&dof| free[dof as usize] = 0.0);
                Some(Buffer::from_vec(device, free)?)
            }
        };
        let data = Data {
            time,
            load: Buffer::from_vec(device, load)?,
            given: free.is_some().then(|| given_on(device, n, &constraints)).transpose()?,
        };
        let zeros = || Buffer::zeros(device, n);
        let semidiscrete = Self {
            residual: zeros()?,
            product: zeros()?,
            correction: zeros()?,
            depends_on_time: data::depends_on_time(problem),
            workshop,
            // The preconditioner chosen for the first shift serves all.
            config: description.config.clone(),
            tolerance: config.tolerance,
            mass,
            shifted: vec![first],
            data,
            free,
        };
        Ok((semidiscrete, description))
    }

    /// Puts the given values of a time into `u`.
    pub fn impose(&mut self, time: f64, u: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        self.bring_data(time)?;
        clear(&self.free, u, &mut self.product)?;
        if let Some(given) = &self.data.given {
            self.workshop.device.axpby(u, 1.0, given, 1.0)?;
        }
        Ok(())
    }

    fn bring_data(&mut self, time: f64) -> Result<(), SolveError> {
        if !self.depends_on_time || self.data.time == time {
            return Ok(());
        }
        let problem = self.workshop.problem;
        let (load, constraints) = data::at_time(problem, time)?;
        self.data.load.assign(&load)?;
        if let Some(given) = &mut self.data.given {
            let mut values = vec![0.0; problem.n_dofs()];
            constraints.impose(&mut values);
            given.assign(&values)?;
        }
        self.data.time = time;
        Ok(())
    }

    /// Makes the operators of a shift the last ones.
    fn bring_operators(&mut self, shift: f64) -> Result<(), SolveError> {
        if let Some(at) = self.shifted.iter().position(|known| known.shift == shift) {
            let known = self.shifted.remove(at);
            self.shifted.push(known);
            return Ok(());
        }
        if self.shifted.len() == KEPT {
            self.shifted.remove(0);
        }
        let mut silent = Silent;
        let mut quiet = Stages::new(&mut silent);
        let (made, _) = self.workshop.shifted(shift, &self.config, &mut quiet)?;
        self.shifted.push(made);
        Ok(())
    }
}

/// Sets entries of `v` at given unknowns to zero, where `free` is one at free unknowns and zero at given ones.
fn clear<D: OperatorDevice>(
    free: &Option<Buffer<f64, D>>,
    v: &mut Buffer<f64, D>,
    scratch: &mut Buffer<f64, D>,
) -> Result<(), LinalgError> {
    let Some(free) = free else { return Ok(()) };
    let device = v.device().clone();
    device.scale_by(scratch, free, v)?;
    std::mem::swap(v, scratch);
    Ok(())
}

fn given_on<D: OperatorDevice>(
    device: &D,
    n: usize,
    constraints: &Constraints,
) -> Result<Buffer<f64, D>, LinalgError> {
    let mut values = vec![0.0; n];
    constraints.impose(&mut values);
    Ok(Buffer::from_vec(device, values)?)
}

impl<D: OperatorDevice> SemiDiscrete<D> for Semidiscrete<'_, '_, D> {
    type Error = SolveError;

    fn solve(
        &mut self,
        equation: &StageEquation<'_, D>,
        u: &mut Buffer<f64, D>,
    ) -> Result<StageOutcome, SolveError> {
        let device = self.workshop.device;
        self.bring_operators(equation.shift)?;
        self.impose(equation.time, u)?;
        self.mass.apply(&mut self.residual, equation.history)?;
        device.axpby(&mut self.residual, 1.0, &self.data.load, 1.0)?;
        if let Some(defect) = equation.defect {
            device.axpby(&mut self.residual, 1.0, defect, 1.0)?;
        }
        self.shifted[self.shifted.len() - 1].natural.apply(&mut self.product, u)?;
        clear(&self.free, &mut self.residual, &mut self.correction)?;
        clear(&self.free, &mut self.product, &mut self.correction)?;
        let norm = |v: &Buffer<f64, D>| Ok::<f64, LinalgError>(device.dot(v, v)?.sqrt());
        let size = norm(&self.residual)?.max(norm(&self.product)?);
        device.axpby(&mut self.residual, -1.0, &self.product, 1.0)?;
        let rest = norm(&self.residual)?;
        if !rest.is_finite() {
            return Ok(StageOutcome { iterations: 0, has_converged: false });
        }
        let wanted = self.tolerance * size;
        if rest <= ROUNDING * size || (rest <= wanted && !equation.is_estimated) {
            return Ok(StageOutcome { iterations: 0, has_converged: true });
        }
        self.config.tolerance =
            (wanted / rest).min(if equation.is_estimated { OF_ESTIMATE } else { LOOSEST });
        device.fill(&mut self.correction, 0.0)?;
        let Shifted { held, preconditioner, .. } = &self.shifted[self.shifted.len() - 1];
        let (mut silent, a) = (Silent, (held.as_ref(), preconditioner.as_ref()));
        let mut quiet = Stages::new(&mut silent);
        let outcome = iterate(&self.config, &mut self.correction, a, &self.residual, &mut quiet)?;
        device.axpby(u, 1.0, &self.correction, 1.0)?;
        Ok(StageOutcome { iterations: outcome.iterations, has_converged: outcome.stop == Stop::Converged })
    }

    fn defect(
        &mut self,
        (time, shift): (f64, f64),
        u: &Buffer<f64, D>,
        d: &mut Buffer<f64, D>,
    ) -> Result<(), SolveError> {
        let device = self.workshop.device;
        self.bring_operators(shift)?;
        self.bring_data(time)?;
        self.shifted[self.shifted.len() - 1].natural.apply(&mut self.product, u)?;
        self.mass.apply(d, u)?;
        device.axpby(d, -1.0, &self.product, shift)?;
        Ok(device.axpby(d, 1.0, &self.data.load, 1.0)?)
    }

    fn clear_given(&mut self, v: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        Ok(clear(&self.free, v, &mut self.correction)?)
    }

    fn norm(&mut self, v: &Buffer<f64, D>) -> Result<f64, SolveError> {
        self.mass.apply(&mut self.product, v)?;
        let square = self.workshop.device.dot(v, &self.product)?;
        // Rounding may leave a small negative number; NaN stays NaN.
        Ok(if square < 0.0 { 0.0 } else { square.sqrt() })
    }
}

//! The time-stepping schemes, independent of the device.

use std::ops::ControlFlow;
use std::sync::Arc;

use femtile_device::{Buffer, Scalar};
use femtile_expression::Expression;
use femtile_tridiagonal::{Bands, Ends, Tridiagonal, TridiagonalConfig};

use super::boundary::{Dirichlet, Neumann};
use super::line::{Sampler, Scratch};
use super::operator::{Coefficient, End};
use super::rule::AxisRule;
use super::{
    AdiConfig, AdiKernels, AdiOutcome, AdiProblem, AdiStop, Arrays, Coefficients, ExplicitStage, Operator,
    Scheme,
};
use crate::TimeError;

/// Steps between checks for failed pivots and non-finite values.
const STEPS_UNTIL_A_LOOK: usize = 16;

/// Receives each step and may end the run.
pub trait StepMonitor {
    /// Called after each step, at `time`.
    fn step(&mut self, _step: usize, _time: f64) -> ControlFlow<AdiStop> {
        ControlFlow::Continue(())
    }
}

/// A monitor that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl StepMonitor for Silent {}

/// The systems along one axis.
struct Direction<T: Scalar, D: AdiKernels<T>> {
    solver: Tridiagonal<T, D>,
    rule: AxisRule,
    /// The bands of one matrix for all lines, if they are stored.
    repeated: Option<[Buffer<T, D>; 3]>,
}

/// An ADI time stepper.
///
/// # Shapes
/// One value per node of the grid, contiguous along x.
/// # Cost
/// A step of Douglas in d dimensions needs 5 + 2d passes over memory: the explicit part reads and writes one
/// vector, each direction reads and writes one, the update reads two and writes one. Craig–Sneyd needs 8 +
/// 4d, Peaceman–Rachford 8. Bands from arrays add 3 per direction.
/// # Source
/// `[peaceman1955]`, `[douglas1962]`, `[douglas1964]`, `[craig1988]`; with mixed derivatives as in
/// `[inthout2010]`. The source and Neumann values are taken at $t_{n-1} + θΔt$, once per step.
pub struct Adi<T: Scalar, D: AdiKernels<T>> {
    device: D,
    operator: Arc<Operator>,
    config: AdiConfig,
    /// $½Δt$: for steps with θ = ½ and for half steps with θ = 1.
    tau: f64,
    arrays: Arrays<T, D>,
    directions: Vec<Direction<T, D>>,
    dirichlet: Dirichlet<T, D>,
    neumann: Vec<Neumann<T, D>>,
    right: Buffer<T, D>,
    /// Result of the first of two passes, or the values between two half steps.
    between: Option<Buffer<T, D>>,
    steps: usize,
}

impl<T: Scalar, D: AdiKernels<T>> Adi<T, D> {
    /// Sets up a run.
    ///
    /// # Errors
    /// [`TimeError`] if the problem is ill-posed (see [`Operator::new`]), a setting is out of range, or the
    /// scheme does not apply to the problem; errors of the device.
    pub fn new(device: &D, problem: &AdiProblem, config: AdiConfig) -> Result<Self, TimeError> {
        let operator = Arc::new(Operator::new(problem)?);
        let grid = operator.grid();
        config.check(grid.dimension(), operator.has_mixed())?;
        let tau = 0.5 * config.step_length();
        let reads = match config.coefficients {
            Coefficients::Arrays => true,
            Coefficients::OnTheFly => false,
            Coefficients::Auto => device.adi_prefers_arrays(),
        };
        let arrays = if reads { Arrays::new(device, &operator, tau)? } else { Arrays::none(tau) };
        let reads_constants = config.coefficients == Coefficients::Arrays;
        let directions = (0..grid.dimension())
            .map(|axis| Direction::new(device, &operator, axis, &config, reads_constants))
            .collect::<Result<_, _>>()?;
        let splits_values = config.scheme == Scheme::PeacemanRachford;
        let between = match config.scheme {
            Scheme::PeacemanRachford | Scheme::CraigSneyd => Some(Buffer::zeros(device, grid.n_nodes())?),
            Scheme::Douglas | Scheme::DouglasGunn => None,
        };
        Ok(Self {
            device: device.clone(),
            tau,
            arrays,
            directions,
            dirichlet: Dirichlet::new(device, problem, &operator, config.start, splits_values)?,
            neumann: Neumann::sides(device, problem, &operator, config.start)?,
            right: Buffer::zeros(device, grid.n_nodes())?,
            between,
            operator,
            config,
            steps: 0,
        })
    }

    /// Returns the operator and its grid.
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Returns the number of steps done.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the time reached.
    pub fn time(&self) -> f64 {
        self.time_after(self.steps)
    }

    fn time_after(&self, steps: usize) -> f64 {
        let AdiConfig { start, end, steps: all, .. } = self.config;
        if steps == all { end } else { start + steps as f64 * self.config.step_length() }
    }

    /// Evaluates a formula at the nodes; nodes on Dirichlet sides get the boundary values.
    ///
    /// # Errors
    /// [`TimeError::Coefficient`] for the first node at which the formula is not a finite number of this
    /// precision; errors of the device.
    pub fn initial_values(&self, formula: &Expression) -> Result<Buffer<T, D>, TimeError> {
        let grid = self.operator.grid();
        let sampler = Sampler::new(&Coefficient::new(&formula.at_time(self.config.start)));
        let mut scratch = Scratch::default();
        let mut line = vec![0.0; grid.nodes()[0]];
        let mut values = Vec::with_capacity(grid.n_nodes());
        for number in 0..grid.n_nodes() / line.len() {
            sampler.line(grid, grid.node(0, number, 0), &mut line, &mut scratch);
            for (i, &value) in line.iter().enumerate() {
                let rounded = T::from_f64(value);
                if !rounded.to_f64().is_finite() {
                    let (point, message) =
                        (grid.point(grid.node(0, number, i)), "it has to be a finite number");
                    return Err(TimeError::Coefficient { field: "initial", point, value, message });
                }
                values.push(rounded);
            }
        }
        Ok(Buffer::from_vec(&self.device, values)?)
    }

    /// Runs the remaining steps from the values `u` at [`Adi::time`].
    ///
    /// # Errors
    /// [`TimeError::Singular`] if a system could not be solved; errors of the device.
    pub fn run(
        &mut self,
        u: &mut Buffer<T, D>,
        monitor: &mut dyn StepMonitor,
    ) -> Result<AdiOutcome, TimeError> {
        if self.steps == 0 {
            self.begin(u)?;
        }
        let mut stop = AdiStop::Finished;
        while self.steps < self.config.steps {
            self.step(u)?;
            let is_last = self.steps == self.config.steps;
            if (is_last || self.steps.is_multiple_of(STEPS_UNTIL_A_LOOK)) && !self.is_sound(u)? {
                stop = AdiStop::Diverged;
                break;
            }
            if let ControlFlow::Break(reason) = monitor.step(self.steps, self.time())
                && !is_last
            {
                stop = reason;
                break;
            }
        }
        Ok(AdiOutcome { stop, steps: self.steps, time: self.time() })
    }

    /// Sets the Dirichlet values in the initial values; call it before the first [`Adi::step`].
    ///
    /// # Errors
    /// Errors of the device.
    pub fn begin(&mut self, u: &mut Buffer<T, D>) -> Result<(), TimeError> {
        if self.dirichlet.is_empty() {
            return Ok(());
        }
        let values = self.dirichlet.current().to_vec();
        let (nodes, values) = self.dirichlet.on_device(&values)?;
        self.device.adi_set(u, nodes, values)
    }

    /// Runs one step; asynchronous on a GPU unless Dirichlet values depend on the time.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn step(&mut self, u: &mut Buffer<T, D>) -> Result<(), TimeError> {
        let (from, to) = (self.time(), self.time_after(self.steps + 1));
        let length = self.config.step_length();
        if self.steps < self.config.rannacher_steps {
            let middle = from + 0.5 * length;
            self.douglas(u, 0.5 * length, middle, middle)?;
            self.douglas(u, 0.5 * length, to, to)?;
        } else {
            match self.config.scheme {
                Scheme::PeacemanRachford => self.peaceman_rachford(u, from, to)?,
                Scheme::CraigSneyd => self.craig_sneyd(u, from, to)?,
                Scheme::Douglas | Scheme::DouglasGunn => {
                    self.douglas(u, length, from + 0.5 * length, to)?;
                }
            }
        }
        self.steps += 1;
        Ok(())
    }

    /// Solves $(I - τA_1)⋯(I - τA_d)(u^n - u^{n-1}) = Δt(Au^{n-1} + f)$ with f at `time` and $u^n$ at `to`.
    fn douglas(&mut self, u: &mut Buffer<T, D>, length: f64, time: f64, to: f64) -> Result<(), TimeError> {
        self.explicit(u, length, time, to)?;
        for (axis, direction) in self.directions.iter_mut().enumerate() {
            direction.solve_in_place(&mut self.right, self.arrays.bands[axis].as_ref())?;
        }
        Ok(self.device.axpby(u, T::ONE, &self.right, T::ONE)?)
    }

    /// Runs a Douglas step, then a second pass with $½Δt A_0 δ$ added to the right side.
    fn craig_sneyd(&mut self, u: &mut Buffer<T, D>, from: f64, to: f64) -> Result<(), TimeError> {
        let length = self.config.step_length();
        self.explicit(u, length, from + 0.5 * length, to)?;
        let Some(delta) = self.between.as_mut() else { return Ok(()) };
        if self.operator.has_mixed() {
            for (axis, direction) in self.directions.iter_mut().enumerate() {
                let bands = self.arrays.bands[axis].as_ref();
                if axis == 0 {
                    direction.solve(delta, bands, &self.right)?;
                } else {
                    direction.solve_in_place(delta, bands)?;
                }
            }
            let (operator, arrays) = (&self.operator, &self.arrays);
            self.device.adi_mixed(&mut self.right, delta, operator, arrays, 0.5 * length)?;
        }
        for (axis, direction) in self.directions.iter_mut().enumerate() {
            direction.solve_in_place(&mut self.right, self.arrays.bands[axis].as_ref())?;
        }
        Ok(self.device.axpby(u, T::ONE, &self.right, T::ONE)?)
    }

    /// Computes the right side $Δt(Au + f)$, on Dirichlet sides the one that gives the prescribed increment.
    fn explicit(&mut self, u: &Buffer<T, D>, length: f64, time: f64, to: f64) -> Result<(), TimeError> {
        let stage = ExplicitStage { axis: None, scale: length, time };
        self.device.adi_explicit(&mut self.right, u, &self.operator, &self.arrays, stage)?;
        for side in &mut self.neumann {
            let (nodes, values) = side.at(time)?;
            self.device.adi_add(&mut self.right, nodes, values, length)?;
        }
        if self.dirichlet.depends_on_time() {
            let before = self.dirichlet.move_to(to);
            let moved = self.dirichlet.current().iter().zip(&before).map(|(now, before)| now - before);
            let mut increment: Vec<f64> = moved.collect();
            for axis in (0..self.directions.len()).rev() {
                self.dirichlet.apply(axis, self.tau, &mut increment);
            }
            let (nodes, values) = self.dirichlet.on_device(&increment)?;
            self.device.adi_set(&mut self.right, nodes, values)?;
        }
        Ok(())
    }

    /// Solves $(I - τA_1)u^* = (I + τA_2)u^{n-1} + τf$, then $(I - τA_2)u^n = (I + τA_1)u^* + τf$.
    ///
    /// On Dirichlet sides $u^* = ½((I - τA_2)g^n + (I + τA_2)g^{n-1})$, which follows from the two.
    fn peaceman_rachford(&mut self, u: &mut Buffer<T, D>, from: f64, to: f64) -> Result<(), TimeError> {
        let (tau, time) = (self.tau, from + self.tau);
        let Some(between) = self.between.as_mut() else { return Ok(()) };
        let before = if self.dirichlet.depends_on_time() {
            self.dirichlet.move_to(to)
        } else {
            self.dirichlet.current().to_vec()
        };
        let mut after = self.dirichlet.current().to_vec();
        let mut middle = before;
        self.dirichlet.apply(1, -tau, &mut middle);
        self.dirichlet.apply(1, tau, &mut after);
        middle.iter_mut().zip(&after).for_each(|(middle, after)| *middle = 0.5 * (*middle + after));
        for (axis, values) in [(1, &middle), (0, &after)] {
            let (from, to) = if axis == 1 { (&*u, &mut *between) } else { (&*between, &mut *u) };
            let stage = ExplicitStage { axis: Some(axis), scale: tau, time };
            self.device.adi_explicit(&mut self.right, from, &self.operator, &self.arrays, stage)?;
            for side in &mut self.neumann {
                let (nodes, values) = side.at(time)?;
                self.device.adi_add(&mut self.right, nodes, values, tau)?;
            }
            let (nodes, values) = self.dirichlet.on_device(values)?;
            self.device.adi_set(&mut self.right, nodes, values)?;
            let implicit = 1 - axis;
            let bands = self.arrays.bands[implicit].as_ref();
            self.directions[implicit].solve(to, bands, &self.right)?;
        }
        Ok(())
    }

    /// Returns `true` while the values are finite; an error if a singular matrix is the cause of other
    /// values.
    fn is_sound(&mut self, u: &Buffer<T, D>) -> Result<bool, TimeError> {
        let mut solved = true;
        for (axis, direction) in self.directions.iter_mut().enumerate() {
            if direction.solver.outcome()?.is_solved() {
                continue;
            }
            solved = false;
            // The solution for a zero right side is zero unless a pivot fails.
            self.device.fill(&mut self.right, T::ZERO)?;
            direction.solve_in_place(&mut self.right, self.arrays.bands[axis].as_ref())?;
            if let Some(failure) = direction.solver.outcome()?.first {
                let node = self.operator.grid().node(axis, failure.line, failure.row);
                return Err(TimeError::Singular { axis, node, step: self.steps });
            }
        }
        Ok(solved && self.device.sum(u)?.is_finite())
    }
}

impl<T: Scalar, D: AdiKernels<T>> std::fmt::Debug for Adi<T, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { device, config, steps, .. } = self;
        f.debug_struct("Adi")
            .field("device", device)
            .field("config", config)
            .field("steps", steps)
            .finish_non_exhaustive()
    }
}

impl<T: Scalar, D: AdiKernels<T>> Direction<T, D> {
    fn new(
        device: &D,
        operator: &Arc<Operator>,
        axis: usize,
        config: &AdiConfig,
        reads_constants: bool,
    ) -> Result<Self, TimeError> {
        let grid = operator.grid();
        let ends = if operator.ends[axis][0] == End::Periodic { Ends::Periodic } else { Ends::Open };
        let settings =
            TridiagonalConfig { algorithm: config.algorithm, ends, ..TridiagonalConfig::default() };
        let mut solver = Tridiagonal::new(device, &grid.layout()?, grid.layout_axis(axis), settings)?;
        let rule = AxisRule::new(operator, axis, 0.5 * config.step_length());
        let mut repeated = None;
        if reads_constants && operator.has_constant_bands(axis) {
            let mut strides = vec![0; grid.dimension()];
            strides[grid.layout_axis(axis)] = 1;
            solver = solver.with_band_strides(&strides)?;
            let rows: Vec<[f64; 3]> =
                (0..grid.nodes()[axis]).filter_map(|row| rule.constant_row(row)).collect();
            let band = |k: usize| rows.iter().map(|row| T::from_f64(row[k])).collect::<Vec<T>>();
            let [lower, diagonal, upper] = [0, 1, 2].map(|k| Buffer::from_vec(device, band(k)));
            repeated = Some([lower?, diagonal?, upper?]);
        }
        Ok(Self { solver, rule, repeated })
    }

    fn solve_in_place(
        &mut self,
        u: &mut Buffer<T, D>,
        arrays: Option<&[Buffer<T, D>; 3]>,
    ) -> Result<(), TimeError> {
        let bands = bands_from(arrays.or(self.repeated.as_ref()), &self.rule);
        Ok(self.solver.queue_in_place(u, bands)?)
    }

    fn solve(
        &mut self,
        u: &mut Buffer<T, D>,
        arrays: Option<&[Buffer<T, D>; 3]>,
        d: &Buffer<T, D>,
    ) -> Result<(), TimeError> {
        let bands = bands_from(arrays.or(self.repeated.as_ref()), &self.rule);
        Ok(self.solver.queue(u, bands, d)?)
    }
}

fn bands_from<'a, T: Scalar, D: AdiKernels<T>>(
    arrays: Option<&'a [Buffer<T, D>; 3]>,
    rule: &'a AxisRule,
) -> Bands<'a, T, D> {
    match arrays {
        Some([lower, diagonal, upper]) => Bands::Arrays { lower, diagonal, upper },
        None => Bands::Rule(rule),
    }
}

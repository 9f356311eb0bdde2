//! A stage of a run in time of a form.

use femtile_device::{Buffer, Device};
use femtile_linalg::LinalgError;
use femtile_linalg::newton::NonlinearEquation;
use femtile_time::implicit::StageEquation;

use super::equation::FormEquation;
use crate::SolveError;
use crate::ranks::RankDevice;

/// The equation $r(t, u, a u - b) = d$ of a stage, with the residual r of a form.
///
/// Of a form with a content H(u), its capacity in r is H: the rate is a at all unknowns, so that r has $a \int H(u)\,v$, and d has
/// $\sum_i f_i \int H(u_i)\,v$ as well, of the functions whose sum with these factors is b. What the content changes by is then what
/// flows in, to the tolerance of the solve.
pub(super) struct FormStage<D: Device> {
    /// a.
    pub shift: f64,
    /// b.
    pub history: Buffer<f64, D>,
    /// Whether the form has a content.
    pub has_content: bool,
    /// d, at the owned unknowns, zero at those with Dirichlet values; none if it is zero.
    pub defect: Option<Buffer<f64, D>>,
    /// The norm of the residual of b/a, which is what the stage changes; NaN if it has no value.
    pub change: f64,
}

impl<D: RankDevice> FormStage<D> {
    /// Returns the rate of a function.
    pub fn rate(&self, u: &Buffer<f64, D>) -> Result<Buffer<f64, D>, LinalgError> {
        if self.has_content {
            return Buffer::from_host(u.device(), &vec![self.shift; u.len()]).map_err(LinalgError::from);
        }
        let mut rate = Buffer::zeros(u.device(), u.len())?;
        u.device().combine(&mut rate, &[(self.shift, u), (-1.0, &self.history)])?;
        Ok(rate)
    }

    /// Returns the derivative of the rate by u.
    pub fn slope(&self) -> f64 {
        if self.has_content { 0.0 } else { self.shift }
    }

    /// Returns the size to which a residual with terms of a norm is relative.
    pub fn size(&self, terms: f64) -> f64 {
        if self.change.is_finite() { self.change.max(f64::EPSILON * terms) } else { terms }
    }
}

/// The stage and the function at which a preconditioner was made.
pub(super) struct Making {
    pub shift: f64,
    pub time: f64,
    /// b.
    pub history: Vec<f64>,
    pub u: Vec<f64>,
}

impl<D: RankDevice> FormEquation<'_, D> {
    /// Begins a stage at the time that was brought. Collective.
    pub fn begin_stage(&mut self, of: &StageEquation<'_, D>) -> Result<(), SolveError> {
        let shift = of.shift;
        if self.made.as_ref().is_some_and(|made| !(0.25..=4.0).contains(&(shift / made.shift))) {
            self.linear.forget();
        }
        let device = of.history.device().clone();
        let zeros = || Buffer::zeros(&device, of.history.len()).map_err(LinalgError::from);
        let mut before = zeros()?;
        device.combine(&mut before, &[(1.0 / shift, of.history)])?;
        self.impose(&mut before)?;
        let mut defect = of.defect.map(|defect| self.copied(defect)).transpose()?;
        if self.has_content {
            let mut sum = defect.take().map_or_else(zeros, Ok)?;
            for &(factor, u) in of.summands {
                device.axpby(&mut sum, factor, &self.content(u)?, 1.0)?;
            }
            defect = Some(sum);
        }
        let (history, has_content) = (self.copied(of.history)?, self.has_content);
        self.stage = Some(FormStage { shift, history, has_content, defect, change: f64::NAN });
        let change = self.residual(&before)?.norm;
        self.forget_refusal();
        if let Some(stage) = &mut self.stage {
            stage.change = change;
        }
        Ok(())
    }

    /// Returns $\int H(u)\,v$, zero at unknowns with Dirichlet values: the residual with the rate 1 less that without. Collective.
    ///
    /// # Errors
    /// An integrand without a value.
    fn content(&mut self, u: &Buffer<f64, D>) -> Result<Buffer<f64, D>, SolveError> {
        let one = Buffer::from_host(u.device(), &vec![1.0; u.len()]).map_err(LinalgError::from)?;
        let mut content = self.residual_with(u, Some(one))?;
        let without = self.residual_with(u, None)?;
        u.device().axpby(&mut content, -1.0, &without, 1.0)?;
        Ok(content)
    }

    /// Writes $-r(t, u, 0)$ at the time that was brought into `d`, zero at unknowns with Dirichlet values. Collective.
    ///
    /// # Errors
    /// An integrand without a value.
    pub fn defect(&mut self, u: &Buffer<f64, D>, d: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        let opposite = self.without_rate(u)?;
        Ok(u.device().copy(d, &opposite)?)
    }

    /// Returns what later solves depend on, as numbers. On several ranks preconditioners are not part of it.
    pub fn memory(&self) -> Vec<f64> {
        let flag = |is_so: bool| f64::from(u8::from(is_so));
        let mut memory = vec![flag(self.linear.takes_gmres()), flag(!self.linear.keeps_preconditioners())];
        let made = self.made.as_ref().filter(|_| self.form.part.is_none());
        if let (Some(made), Some(per_digit)) = (made, self.linear.per_digit()) {
            memory.extend([per_digit, made.shift, made.time]);
            memory.extend_from_slice(&made.history);
            memory.extend_from_slice(&made.u);
        }
        memory
    }

    /// Restores the memory of a run: makes its preconditioner again.
    pub fn restore(&mut self, memory: &[f64]) -> Result<(), SolveError> {
        let [gmres, diagonal, kept @ ..] = memory else { return Ok(()) };
        if *gmres == 1.0 {
            self.linear.take_gmres();
        }
        if *diagonal == 1.0 && self.linear.keeps_preconditioners() {
            let warning = "the diagonal is the preconditioner, as before the restart";
            self.linear.take_diagonal(warning.into());
        }
        let [per_digit, shift, time, values @ ..] = kept else { return Ok(()) };
        if self.form.part.is_some() {
            return Ok(());
        }
        let (history, u) = values.split_at(values.len() / 2);
        let device = self.form.device;
        let [history, u] =
            [history, u].map(|values| Buffer::from_host(device, values).map_err(LinalgError::from));
        let (shift, history, has_content) = (*shift, history?, self.has_content);
        self.stage = Some(FormStage { shift, history, has_content, defect: None, change: f64::NAN });
        self.make_again(*time, &u?)?;
        self.linear.restore_per_digit(*per_digit);
        Ok(())
    }
}

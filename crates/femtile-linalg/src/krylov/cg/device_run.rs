//! A run on the device: its start, its iterations and the sums of its last iterate.

use std::collections::VecDeque;

use femtile_device::{Buffer, Device, Scalar};

use super::extrapolation::Extrapolation;
use super::plan::{Block, Guess, Plan};
use super::recordings::Recordings;
use super::start::{Settings, Start};
use super::workspace::Workspace;
use super::{
    CgBegin, CgDiagonals, CgFinish, CgHistory, CgKernels, CgProgress, CgScalars, CgSums, KrylovConfig,
};
use crate::comm::Communicator;
use crate::krylov::Monitor;
use crate::krylov::acceptance::{PreconditionedSystem, RunEnd, Size};
use crate::krylov::residual::{norm, over_ranks};
use crate::krylov::watch::{Rounds, Watch};
use crate::{LinalgError, LinearOperator};

/// A run under way.
pub(super) struct DeviceRun<'a, T: Scalar, D: CgKernels<T>, C> {
    w: &'a mut Workspace<T, D>,
    x: &'a mut Buffer<T, D>,
    system: PreconditionedSystem<'a, T, D, C>,
    kept: Option<Kept<'a, T, D>>,
    recordings: &'a mut Recordings<D>,
    found: Found,
}

/// Data of a kept solver that its runs use.
pub(super) struct Kept<'a, T: Scalar, D: CgKernels<T>> {
    /// The operator of iterations, if it differs.
    pub of_iterations: Option<&'a dyn LinearOperator<T, D>>,
    /// Receives x as it is before the first iteration.
    pub start: &'a mut Buffer<T, D>,
    /// The diagonal by which residuals are tested.
    pub test: Option<&'a Buffer<T, D>>,
    pub extrapolation: Option<&'a mut Extrapolation<T, D>>,
    /// The norm of a residual that the preconditioner, other than a diagonal, knows.
    pub scale: &'a mut Option<f64>,
}

/// The numbers of the device as they were read last.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub state: Vec<f64>,
    /// The sums of the last iterate, if the block has ended with them.
    pub last: Option<Vec<f64>>,
}

impl Found {
    /// The sums at the start of the run.
    pub fn first<D: Device>(&self) -> &[f64] {
        &self.state[CgScalars::<D>::FIRST_SUMS..]
    }
}

/// A copy of the numbers that is under way.
pub(super) struct Poll<D: Device> {
    state: D::Readback,
    last: Option<D::Readback>,
}

impl<'a, T: Scalar, D: CgKernels<T>, C: Communicator> DeviceRun<'a, T, D, C> {
    /// A run from x; nothing is launched yet.
    pub fn new(
        w: &'a mut Workspace<T, D>,
        x: &'a mut Buffer<T, D>,
        system: PreconditionedSystem<'a, T, D, C>,
        kept: Option<Kept<'a, T, D>>,
        recordings: &'a mut Recordings<D>,
    ) -> Self {
        Self { w, x, system, kept, recordings, found: Found::default() }
    }

    /// Launches the first block of the plan, and what need not wait for its result, and reads the start.
    pub fn start(
        &mut self,
        settings: &Settings,
        plan: &mut Plan,
    ) -> Result<(Start, VecDeque<Poll<D>>), LinalgError> {
        let numbers = self.w.bring(settings)?.to_vec();
        let first = self.launch(plan.begin())?;
        let mut polls = VecDeque::new();
        while let Some(block) = plan.ahead(1 + polls.len()) {
            polls.push_back(self.launch(block)?);
        }
        self.found = self.end_read(first)?;
        Ok((Start::of::<D>(self.found.first::<D>(), &numbers), polls))
    }

    /// Returns whether the device has left x as it was, as a norm is out of its range.
    pub fn has_not_begun(&self) -> bool {
        self.found.state[CgScalars::<D>::END] == CgScalars::<D>::NOT_BEGUN
    }

    /// Continues after the start until the recurrence meets the tolerance or the host ends the run.
    pub fn iterate(
        &mut self,
        config: &KrylovConfig,
        start: Start,
        (plan, polls): (&mut Plan, VecDeque<Poll<D>>),
        monitor: &mut dyn Monitor,
    ) -> Result<RunEnd, LinalgError> {
        let config = KrylovConfig { tolerance: start.tolerance, ..config.clone() };
        let (mut watch, stop) = Watch::begin(&config, start.b_norm, start.r_norm * start.r_norm, monitor);
        let progress = self.w.scalars.progress(&self.found.state, &mut watch.history)?;
        let stop = watch.hear(progress, stop, monitor);
        let stop = watch.iterate((stop, monitor), (plan, polls), self)?;
        if self.kept.is_some() && self.found.last.is_none() {
            let poll = self.launch(Block::END)?;
            self.found = self.end_read(poll)?;
        }
        let sizes = self.sizes(&watch.history)?;
        Ok(watch.end(stop, sizes))
    }

    /// Returns the numbers of the device as they were read last.
    pub fn into_found(self) -> Found {
        self.found
    }

    /// The preconditioned residual at the start and at the end, if the preconditioner is not diagonal.
    fn sizes(&self, history: &CgHistory) -> Result<Option<[Size; 2]>, LinalgError> {
        let (Some(z), Some(first)) = (&self.w.z, history.steps.first()) else { return Ok(None) };
        let at_start = self.found.first::<D>()[CgSums::<D>::Z_DOT_Z].sqrt();
        let at_end = match &self.found.last {
            Some(last) => last[CgSums::<D>::LAST_Z].sqrt(),
            None => norm(z, self.system.comm)?,
        };
        let rho = self.found.state[CgScalars::<D>::RHO];
        Ok(Some([Size { rho: first.rho, z_norm: at_start }, Size { rho, z_norm: at_end }]))
    }

    /// Returns whether the host tells the preconditioner the first residual.
    fn tells_residual(&self) -> bool {
        let knows = self.kept.as_ref().is_some_and(|kept| kept.scale.is_some());
        self.system.m.diagonal().is_none() && !knows
    }

    fn work(&mut self, block: Block) -> Result<(), LinalgError> {
        if let Some(guess) = block.begins {
            self.begin(guess)?;
        }
        (0..block.iterations).try_for_each(|_| self.iteration())?;
        if block.ends { self.finish() } else { Ok(()) }
    }

    /// Computes r = b − A x, then p = M⁻¹ r and the state before the first iteration.
    fn begin(&mut self, guess: Guess) -> Result<(), LinalgError> {
        let tells_residual = self.tells_residual();
        let PreconditionedSystem { a, m, b, comm } = self.system;
        let device = b.device();
        let Workspace { r, p, q, scalars, sums, .. } = &mut *self.w;
        let x = &mut *self.x;
        let (mut start, mut test, mut scale) = (None, None, None);
        let mut extrapolation = None;
        if let Some(kept) = &mut self.kept {
            (start, test, scale) =
                (Some(&mut *kept.start), kept.test.or(m.diagonal()), Some(&mut *kept.scale));
            extrapolation = kept.extrapolation.as_mut().filter(|_| guess != Guess::Given);
        }
        match extrapolation {
            Some(known) => {
                let weight = if guess == Guess::Line { T::ONE } else { T::ZERO };
                device.cg_extrapolate(known.with(x, q, r), weight)?;
            }
            None => a.apply(r, x)?,
        }
        device.cg_begin(CgBegin { r, p, start, b, x }, CgDiagonals { m: m.diagonal(), test }, sums)?;
        let mut is_finite = true;
        if tells_residual {
            let r_dot_r = sums.first.to_host()?[CgSums::<D>::R_DOT_R];
            let r_norm = over_ranks(device, &[r_dot_r], comm)?[0].sqrt();
            is_finite = r_norm.is_finite();
            m.set_residual_norm(r_norm);
            if let Some(scale) = scale {
                *scale = Some(r_norm);
            }
        }
        // The method does not begin with other numbers, which not every preconditioner takes.
        if m.diagonal().is_none() && is_finite {
            m.apply(p, r)?;
            device.cg_first_dot(CgSums::<D>::R_DOT_Z, r, p, sums)?;
            device.cg_first_dot(CgSums::<D>::Z_DOT_Z, p, p, sums)?;
        }
        comm.sum(&mut sums.first)?;
        device.cg_decide(scalars, sums)
    }

    /// One iteration; nothing in it waits for the host.
    fn iteration(&mut self) -> Result<(), LinalgError> {
        let PreconditionedSystem { a, m, b, comm } = self.system;
        let a = self.kept.as_ref().and_then(|kept| kept.of_iterations).unwrap_or(a);
        let device = b.device();
        let Workspace { r, p, q, z, scalars, .. } = &mut *self.w;
        device.cg_product(q, a, p, scalars)?;
        comm.sum(&mut scalars.p_dot_q)?;
        device.cg_step_length(scalars)?;
        device.cg_residual(r, q, m.diagonal(), scalars)?;
        if let Some(z) = z {
            m.apply(z, r)?;
            device.cg_dot(CgScalars::<D>::R_DOT_Z, r, z, scalars)?;
            if scalars.is_flexible {
                device.cg_dot(CgScalars::<D>::Q_DOT_Z, q, z, scalars)?;
            }
        }
        comm.sum(&mut scalars.r_sums)?;
        device.cg_conjugation(scalars)?;
        device.cg_direction(p, self.x, z.as_ref().unwrap_or(r), m.diagonal(), scalars)
    }

    /// Computes the sums of the last iterate.
    fn finish(&mut self) -> Result<(), LinalgError> {
        let PreconditionedSystem { a, m, b, comm } = self.system;
        let Workspace { q, z, sums, .. } = &mut *self.w;
        let x = &*self.x;
        a.apply(q, x)?;
        let test = self.kept.as_ref().and_then(|kept| kept.test).or(m.diagonal());
        b.device().cg_finish(CgFinish { q, b, x, z: z.as_ref(), test }, sums)?;
        comm.sum(&mut sums.last)
    }

    fn end_read(&self, poll: Poll<D>) -> Result<Found, LinalgError> {
        let device = self.x.device();
        let last = poll.last.map(|last| device.end_read(last)).transpose()?;
        Ok(Found { state: device.end_read(poll.state)?, last })
    }
}

impl<T: Scalar, D: CgKernels<T>, C: Communicator> Rounds for DeviceRun<'_, T, D, C> {
    type Poll = Poll<D>;

    /// Records the block, unless the host takes part in it, as in sums over ranks, or it is the start of a run alone.
    fn launch(&mut self, block: Block) -> Result<Poll<D>, LinalgError> {
        let is_start = block.begins.is_some();
        let is_once = is_start && (self.kept.is_none() || self.tells_residual());
        if self.system.comm.n_ranks() == 1 && !is_once {
            let mut recording = self.recordings.take(block);
            let device = self.x.device().clone();
            device.repeat(&mut recording, 1, &mut || self.work(block))?;
            self.recordings.keep(block, recording);
        } else {
            self.work(block)?;
        }
        let last = block.ends.then(|| self.w.sums.last.begin_read()).transpose()?;
        Ok(Poll { state: self.w.scalars.state.begin_read()?, last })
    }

    fn read(&mut self, poll: Poll<D>, history: &mut CgHistory) -> Result<CgProgress, LinalgError> {
        self.found = self.end_read(poll)?;
        Ok(self.w.scalars.progress(&self.found.state, history)?)
    }
}

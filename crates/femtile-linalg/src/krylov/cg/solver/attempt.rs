//! A solve on the device, start and acceptance tests included.

use std::collections::VecDeque;

use femtile_device::{Buffer, Device, Scalar};

use super::plan::{Block, Guess, Plan};
use super::start::Start;
use super::{CgBegin, CgDiagonals, CgFinish, CgSolver, CgSolverKernels, CgSums, Target};
use crate::LinalgError;
use crate::comm::Communicator;
use crate::krylov::acceptance::{MIN_STEPS, Measured, RunEnd, Size, System};
use crate::krylov::cg::{CgKernels, CgOutcome, CgScalars, CgStep, KrylovConfig, Vectors, iterate};
use crate::krylov::energy::smallest_ritz_value;
use crate::krylov::rescaled::usual_exponent;
use crate::krylov::residual::{norm, residual};
use crate::krylov::watch::Watch;
use crate::krylov::{Monitor, Stop};

/// Recordings that are kept at most.
const RECORDINGS: usize = 16;

/// The first residual of a solve may differ by this factor from the one that the preconditioner knows.
const SCALE_RANGE: f64 = (1_u64 << 24) as f64;

/// The recordings of blocks, the one used last at the end.
pub(super) struct Recordings<D: Device>(Vec<(Block, D::Recording)>);

impl<D: Device> Default for Recordings<D> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<D: Device> Recordings<D> {
    fn of(&mut self, block: Block) -> &mut D::Recording {
        let known = match self.0.iter().position(|(of, _)| *of == block) {
            Some(place) => self.0.remove(place),
            None => (block, D::Recording::default()),
        };
        if self.0.len() == RECORDINGS {
            self.0.remove(0);
        }
        self.0.push(known);
        let last = self.0.len() - 1;
        &mut self.0[last].1
    }
}

/// The result of a solve on the device.
pub(super) enum Attempt {
    /// The iterate has passed all tests.
    Accepted(CgOutcome),
    /// The run has ended, and its iterate is to be judged.
    Ended { end: RunEnd, b_norm: f64, tolerance: f64 },
    /// The norms are unusual, and x is as it was.
    NotBegun { tolerance: f64, r_norm: f64 },
}

/// The results of the device.
struct Found {
    state: Vec<f64>,
    last: Vec<f64>,
}

impl Found {
    /// The sums at the start of the solve.
    fn first<D: Device>(&self) -> &[f64] {
        &self.state[CgScalars::<D>::FIRST_SUMS..]
    }
}

/// A copy of the numbers of a solve that is under way.
struct Poll<D: Device> {
    state: D::Readback,
    last: D::Readback,
    ends: bool,
}

impl<T: Scalar, D: CgSolverKernels<T>> CgSolver<T, D> {
    /// Solves on the device; the host looks after the iterations that are expected.
    pub(super) fn attempt<C: Communicator>(
        &mut self,
        config: &KrylovConfig,
        target: Target,
        comm: &C,
        monitor: &mut dyn Monitor,
    ) -> Result<Attempt, LinalgError> {
        if self.m.diagonal().is_none() && self.scale.is_none() {
            residual(&mut self.v.r, self.a.as_ref(), &self.x, &self.b)?;
            let r_norm = norm(&self.v.r, comm)?;
            self.rescale(r_norm);
        }
        let guess = self.next_guess();
        let attempt = self.run(config, (target, guess), comm, monitor)?;
        if let (Attempt::Accepted(_), Some(history)) = (&attempt, &mut self.history) {
            history.known = if guess == Guess::Given { 1 } else { 2 };
        }
        let Attempt::NotBegun { r_norm, .. } = attempt else { return Ok(attempt) };
        // The preconditioner may know a residual of another size.
        if self.m.diagonal().is_some() || !r_norm.is_normal() || self.scale == Some(r_norm) {
            return Ok(attempt);
        }
        self.rescale(r_norm);
        self.run(config, (target, Guess::Given), comm, monitor)
    }

    /// Returns the guess of the solve that begins now.
    fn next_guess(&mut self) -> Guess {
        let known = self.history.as_mut().map_or(0, |history| std::mem::take(&mut history.known));
        match known {
            0 => Guess::Given,
            1 => Guess::Last,
            _ => Guess::Line,
        }
    }

    /// Tells the preconditioner a residual, whose size recordings contain.
    fn rescale(&mut self, r_norm: f64) {
        self.scale = Some(r_norm);
        self.recordings = Recordings::default();
    }

    fn run<C: Communicator>(
        &mut self,
        config: &KrylovConfig,
        (target, guess): (Target, Guess),
        comm: &C,
        monitor: &mut dyn Monitor,
    ) -> Result<Attempt, LinalgError> {
        self.bring_settings(config, target)?;
        if let Some(scale) = self.scale {
            self.m.set_residual_norm(scale);
        }
        let stride = CgKernels::<T>::cg_stride(self.x.device());
        let mut plan = Plan::new((config, guess), self.past, stride, self.m.diagonal().is_none());
        let mut polls = VecDeque::new();
        self.launch_ahead(&mut plan, &mut polls, comm)?;
        let first = match polls.pop_front() {
            Some(first) => first,
            None => self.launch(Block { begins: Some(guess), iterations: 0, ends: false }, comm)?,
        };
        let mut ends = first.ends;
        let mut found = self.found(first)?;
        let start = Start::of::<D>(found.first::<D>(), &self.settings);
        if found.state[CgScalars::<D>::END] == CgScalars::<D>::NOT_BEGUN {
            return Ok(Attempt::NotBegun { tolerance: start.tolerance, r_norm: start.r_norm });
        }
        let config = KrylovConfig { tolerance: start.tolerance, ..config.clone() };
        let (mut watch, mut stop) = Watch::begin(&config, start.b_norm, start.r_norm * start.r_norm, monitor);
        loop {
            let progress = self.v.scalars.progress(&found.state, &mut watch.history)?;
            stop = match stop.is_continue() {
                true => watch.look(progress, monitor),
                false => watch.settle(progress, stop, monitor),
            };
            if stop.is_continue() {
                self.launch_ahead(&mut plan, &mut polls, comm)?;
                if polls.is_empty() {
                    polls.push_back(self.launch(plan.further(), comm)?);
                }
            }
            let Some(poll) = polls.pop_front() else { break };
            ends = poll.ends;
            found = self.found(poll)?;
        }
        if !ends {
            let poll = self.launch(Block::END, comm)?;
            found = self.found(poll)?;
        }
        let sizes = self.sizes(&found, &watch.history.steps);
        let end = watch.end(stop, sizes);
        Ok(self.judge(end, start, &found))
    }

    /// Launches blocks as long as no result is needed, one before the last that is read.
    fn launch_ahead<C: Communicator>(
        &mut self,
        plan: &mut Plan,
        polls: &mut VecDeque<Poll<D>>,
        comm: &C,
    ) -> Result<(), LinalgError> {
        while polls.len() < 2
            && let Some(block) = plan.ahead()
        {
            polls.push_back(self.launch(block, comm)?);
        }
        Ok(())
    }

    fn launch<C: Communicator>(&mut self, block: Block, comm: &C) -> Result<Poll<D>, LinalgError> {
        let device = self.x.device().clone();
        let Self { a, of_iterations, m, x, b, start, v, sums, test, recordings, history, .. } = self;
        let of_iterations = of_iterations.as_ref().unwrap_or(a).as_ref();
        let (a, m) = (a.as_ref(), m.as_ref());
        let test = test.as_ref().or(m.diagonal());
        let mut work = || -> Result<(), LinalgError> {
            if let Some(guess) = block.begins {
                let weight = if guess == Guess::Line { T::ONE } else { T::ZERO };
                match history.as_mut().filter(|_| guess != Guess::Given) {
                    Some(history) => device.cg_extrapolate(history.with(x, v), weight)?,
                    None => a.apply(&mut v.r, x)?,
                }
                begin((x, start), System { a, m, b, comm }, test, v, sums)?;
            }
            for _ in 0..block.iterations {
                iterate(&device, x, of_iterations, m, v, comm)?;
            }
            if block.ends {
                a.apply(&mut v.q, x)?;
                device.cg_finish(CgFinish { q: &v.q, b, x, z: v.z.as_ref(), test }, sums)?;
                comm.sum(&mut sums.last)?;
            }
            Ok(())
        };
        // What goes to other ranks cannot be recorded.
        match comm.n_ranks() {
            1 => device.repeat(recordings.of(block), 1, &mut work)?,
            _ => work()?,
        }
        Ok(Poll { state: v.scalars.state.begin_read()?, last: sums.last.begin_read()?, ends: block.ends })
    }

    fn found(&self, poll: Poll<D>) -> Result<Found, LinalgError> {
        let device = self.x.device();
        Ok(Found { state: device.end_read(poll.state)?, last: device.end_read(poll.last)? })
    }

    /// Uploads the settings if they are others than in the solve before.
    fn bring_settings(&mut self, config: &KrylovConfig, target: Target) -> Result<(), LinalgError> {
        let usual = usual_exponent::<T>();
        let scale = self.scale.filter(|scale| scale.is_normal());
        let range = scale.map_or([0.0, f64::MAX], |scale| [scale / SCALE_RANGE, scale * SCALE_RANGE]);
        let [size, reduction] = target.settings();
        let settings = vec![
            config.tolerance,
            size,
            reduction,
            config.max_iterations as f64,
            (-usual).exp2(),
            usual.exp2(),
            range[0],
            range[1],
            self.rounding,
        ];
        if self.settings != settings {
            self.sums.settings.upload(&settings)?;
            self.settings = settings;
        }
        Ok(())
    }

    /// The preconditioned residual at the start and at the end, if the preconditioner is not diagonal.
    fn sizes(&self, found: &Found, steps: &[CgStep]) -> Option<[Size; 2]> {
        let first = steps.first().filter(|_| self.v.z.is_some())?;
        let at_start = found.first::<D>()[CgSums::<D>::Z_DOT_Z];
        let at_end = found.last[CgSums::<D>::LAST_Z];
        let rho = found.state[CgScalars::<D>::RHO];
        Some([Size { rho: first.rho, z_norm: at_start.sqrt() }, Size { rho, z_norm: at_end.sqrt() }])
    }

    /// Applies the acceptance tests to the numbers of the device.
    fn judge(&mut self, end: RunEnd, start: Start, found: &Found) -> Attempt {
        let Start { b_norm, tolerance, .. } = start;
        let outcome = match end.stop {
            Stop::Converged => self.accepted(&end, start, found),
            _ => None,
        };
        match outcome {
            Some(outcome) => Attempt::Accepted(outcome),
            None => Attempt::Ended { end, b_norm, tolerance },
        }
    }

    fn accepted(&mut self, end: &RunEnd, start: Start, found: &Found) -> Option<CgOutcome> {
        let Start { b_norm, r_norm: first, tolerance, .. } = start;
        let (steps, sums, last) = (&end.history.steps, found.first::<D>(), &found.last);
        let r_norm = last[CgSums::<D>::R_DOT_R].sqrt();
        let of_diagonal = [
            Size { rho: last[CgSums::<D>::R_RHO], z_norm: last[CgSums::<D>::R_NORM].sqrt() },
            Size { rho: sums[CgSums::<D>::B_RHO], z_norm: sums[CgSums::<D>::B_NORM].sqrt() },
        ];
        let has_test = self.test.is_some() || self.m.diagonal().is_some();
        let of_first = |size: Size| {
            let ratio = b_norm / first;
            Size { rho: size.rho * ratio * ratio, z_norm: size.z_norm * ratio }
        };
        let of_preconditioner = end.preconditioned.map(|[at_start, at_end]| [at_end, of_first(at_start)]);
        let is_known = steps.len() >= MIN_STEPS[usize::from(self.v.z.is_some())];
        let own = if is_known { smallest_ritz_value(steps) } else { None };
        let ritz = [self.smallest_ritz, own].into_iter().flatten().reduce(f64::min)?;
        let rho = match (&end.preconditioned, self.is_identity) {
            (Some([_, at_end]), _) => at_end.rho,
            (None, true) => r_norm * r_norm,
            (None, false) if self.v.z.is_none() => of_diagonal[0].rho,
            // Nothing was done: the residual is the first one.
            (None, false) => sums[CgSums::<D>::R_DOT_Z],
        };
        let energy_norm = (last[CgSums::<D>::X_DOT_B] - last[CgSums::<D>::X_DOT_R]).max(0.0).sqrt();
        let recurred = end.history.r_dot_r.last()?.sqrt();
        let measured = Measured {
            tolerance,
            b_norm,
            r_norm,
            recurred,
            sizes: [has_test.then_some(of_diagonal), of_preconditioner],
            rho,
            steps,
            smallest_ritz: ritz,
            energy_norm,
        };
        let energy_error = measured.accepted()?;
        self.smallest_ritz = Some(ritz);
        Some(CgOutcome {
            stop: Stop::Converged,
            iterations: end.history.r_dot_r.len() - 1,
            relative_residual: recurred / b_norm,
            true_relative_residual: r_norm / b_norm,
            residuals: end.history.r_dot_r.iter().map(|r_dot_r| r_dot_r.sqrt() / b_norm).collect(),
            energy_error: Some(energy_error),
            energy_norm,
            failed_test: None,
        })
    }
}

/// Computes r = b − A x from r, which holds A x, then p = M⁻¹ r and the state before the first iteration.
fn begin<T: Scalar, D: CgSolverKernels<T>, C: Communicator>(
    (x, start): (&Buffer<T, D>, &mut Buffer<T, D>),
    System { m, b, comm, .. }: System<'_, T, D, C>,
    test: Option<&Buffer<T, D>>,
    v: &mut Vectors<T, D>,
    sums: &mut CgSums<D>,
) -> Result<(), LinalgError> {
    let device = b.device().clone();
    let vectors = CgBegin { r: &mut v.r, p: &mut v.p, start, b, x };
    device.cg_begin(vectors, CgDiagonals { m: m.diagonal(), test }, sums)?;
    if m.diagonal().is_none() {
        m.apply(&mut v.p, &v.r)?;
        device.cg_sum_dot(CgSums::<D>::R_DOT_Z, &v.r, &v.p, sums)?;
        device.cg_sum_dot(CgSums::<D>::Z_DOT_Z, &v.p, &v.p, sums)?;
    }
    comm.sum(&mut sums.first)?;
    device.cg_decide(&mut v.scalars, sums)
}

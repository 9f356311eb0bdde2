//! The monodomain equation by operator splitting: membranes at nodes, implicit diffusion.
//!
//! [`Monodomain`] is the problem; `membrane` advances the models at all nodes, `diffusion` solves for the
//! potential, `run` is the loop over steps, `watch` records its results.

mod checkpoint;
mod clock;
mod diffusion;
mod distributed;
mod ecg;
mod membrane;
mod nodes;
mod outcome;
mod run;
mod site;
mod stepper;
mod watch;

use std::sync::Arc;

use femtile::comm::Comm;
use femtile::device::{Cpu, Cuda};
use femtile::fem::FemError;
use femtile::mesh::partition::DistributedMesh;
use femtile::solve::{Choice, Chosen, MassMatrix, Progress, Silent, Stages};
use femtile::space::LinearSpace;
use femtile::time::implicit::Steps;
use femtile::{DeviceChoice, Mesh, SolverConfig, Value};

use crate::activation::ActivationConfig;
pub use crate::implicit::StepSeconds;
use crate::ionic::{GatePrecision, LocalScheme, Model};
use crate::stimulus::Stimulus;
use crate::{CardiacError, implicit};
pub use checkpoint::Checkpoint;
pub use clock::AdaptiveSteps;
pub(crate) use diffusion::{DiffusionConfig, MANY, stiffness};
use distributed::MeshOnRanks;
pub use ecg::Electrode;
pub(crate) use nodes::Nodes;
pub use outcome::{MonodomainSolution, Outcome, Stop};
pub(crate) use stepper::{Course, Stepper};
pub use watch::{Frame, Observer};

/// Order in which the membrane and diffusion are advanced in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Splitting {
    /// Membrane, then diffusion: order 1, `[godunov1959]`.
    #[default]
    Godunov,
    /// Half a step of the membrane, diffusion, half a step of the membrane: order 2, `[strang1968]`.
    Strang,
}

impl Splitting {
    /// Returns the name, as in case files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Godunov => "godunov",
            Self::Strang => "strang",
        }
    }
}

/// Methods in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Membranes at nodes, then diffusion.
    Splitting(Splitting),
    /// The implicit Euler method for potential and states together, with states at one point of each cell: `[wong2015]`,
    /// Table 1; for models with few states.
    Implicit,
}

impl Scheme {
    /// Returns the name, as in case files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Splitting(splitting) => splitting.name(),
            Self::Implicit => "implicit-euler",
        }
    }
}

/// Cells of one kind of tissue.
#[derive(Debug, Clone)]
pub struct Tissue {
    /// The tag of its cells, by name or number; none for all cells. A node of several tissues belongs to the
    /// last of them.
    pub cells: Option<String>,
    /// The model of its membrane.
    pub model: Model,
}

/// The monodomain equation $\chi C_m\, \partial_t V = \nabla\cdot(D\nabla V) - \chi I_{ion} + I_{stim}$ on a mesh, without flux
/// through its boundary.
///
/// $I_{ion}/C_m$ and the states of each membrane are those of its [`Model`]. With a dimensionless model, χ and $C_m$ are 1 and
/// D is a diffusivity.
///
/// # Units
/// With models in ms and mV: lengths in mm, D in mS/mm, χ in 1/mm, $C_m$ in µF/mm², $I_{stim}$ in µA/mm³.
/// # Source
/// Splitting `[qu1999]`.
#[derive(Debug, Clone)]
#[must_use]
pub struct Monodomain<'m> {
    /// The mesh that this rank has.
    pub(crate) mesh: &'m Mesh,
    pub(crate) parts: Option<MeshOnRanks<'m>>,
    conductivity: Value,
    surface_to_volume: f64,
    capacitance: f64,
    pub(crate) tissues: Vec<Tissue>,
    stimuli: Vec<Stimulus>,
    start: f64,
    end: f64,
    step: f64,
    scheme: Scheme,
    pub(crate) adaptive: Option<AdaptiveSteps>,
    theta: f64,
    pub(crate) mass: MassMatrix,
    local: LocalScheme,
    pub(crate) gates: GatePrecision,
    error: Option<f64>,
    pub(crate) timed: bool,
    activation: Option<ActivationConfig>,
    electrodes: Vec<Electrode>,
    bath: f64,
    frames: Vec<f64>,
    checkpoints: Option<CheckpointInterval>,
    fingerprint: [u8; 32],
    resume: Option<Arc<Checkpoint>>,
}

pub use femtile::solve::CheckpointInterval;

impl<'m> Monodomain<'m> {
    /// Begins with a tissue of one model at rest; D, χ and $C_m$ are 1, and the time runs from 0 to 1 in steps of 0.01.
    pub fn new(mesh: &'m Mesh, model: Model) -> Self {
        Self {
            mesh,
            parts: None,
            conductivity: Value::Number(1.0),
            surface_to_volume: 1.0,
            capacitance: 1.0,
            tissues: vec![Tissue { cells: None, model }],
            stimuli: Vec::new(),
            start: 0.0,
            end: 1.0,
            step: 0.01,
            scheme: Scheme::Splitting(Splitting::Godunov),
            adaptive: None,
            theta: 0.5,
            mass: MassMatrix::Consistent,
            local: LocalScheme::RushLarsen,
            gates: GatePrecision::Double,
            error: None,
            timed: false,
            activation: None,
            electrodes: Vec::new(),
            bath: 1.0,
            frames: Vec::new(),
            checkpoints: None,
            fingerprint: [0; 32],
            resume: None,
        }
    }

    /// Begins a distributed problem as [`Monodomain::new`] does; each rank has its part of the mesh. This and
    /// all further calls are collective, with the same problem on all ranks.
    ///
    /// The first rank emits frames and states and returns the result, in the global numbering; the arrays of
    /// other ranks are empty. Frames need the `whole` mesh there. A restart uses the state of the first rank.
    pub fn distributed(
        mesh: &'m DistributedMesh,
        comm: &Comm,
        whole: Option<&'m Mesh>,
        model: Model,
    ) -> Self {
        let parts = Some(MeshOnRanks { mesh, comm: comm.clone(), whole });
        Self { parts, ..Self::new(&mesh.part.mesh, model) }
    }

    /// Sets the conductivity D: a number, a tensor, values by tag, or from fibres.
    pub fn conductivity(mut self, conductivity: impl Into<Value>) -> Self {
        self.conductivity = conductivity.into();
        self
    }

    /// Sets the surface of membranes per volume of tissue, χ, and their capacitance per surface, $C_m$.
    pub fn membrane(mut self, surface_to_volume: f64, capacitance: f64) -> Self {
        (self.surface_to_volume, self.capacitance) = (surface_to_volume, capacitance);
        self
    }

    /// Adds a model for the cells with a tag; nodes that several tissues share belong to the last one.
    pub fn tissue(mut self, cells: impl Into<String>, model: Model) -> Self {
        self.tissues.push(Tissue { cells: Some(cells.into()), model });
        self
    }

    /// Adds a stimulus.
    pub fn stimulus(mut self, stimulus: Stimulus) -> Self {
        self.stimuli.push(stimulus);
        self
    }

    /// Sets the times of the start and the end, and the length of a step; the last bits of the length are adjusted so that a
    /// whole number of steps reaches the end.
    pub fn times(mut self, start: f64, end: f64, step: f64) -> Self {
        (self.start, self.end, self.step) = (start, end, step);
        self
    }

    /// Sets the method in time; splitting with order 1 by default.
    pub fn scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// Lets the implicit scheme choose the lengths of steps, the first one excepted.
    pub fn adaptive(mut self, steps: AdaptiveSteps) -> Self {
        self.adaptive = Some(steps);
        self
    }

    /// Sets the share θ of the new time in the diffusive flux: ½, the default, for Crank–Nicolson, 1 for backward Euler.
    pub fn theta(mut self, theta: f64) -> Self {
        self.theta = theta;
        self
    }

    /// Sets the mass matrix of diffusion, for splitting; the consistent one by default. On coarse meshes,
    /// fronts are a little too fast with the consistent matrix and far too slow with the lumped one.
    pub fn mass(mut self, mass: MassMatrix) -> Self {
        self.mass = mass;
        self
    }

    /// Sets the integration of the membranes.
    pub fn local_scheme(mut self, scheme: LocalScheme) -> Self {
        self.local = scheme;
        self
    }

    /// Sets the numbers that gates are stored as, for splitting; 64 bits by default.
    pub fn gates(mut self, gates: GatePrecision) -> Self {
        self.gates = gates;
        self
    }

    /// Sets the root mean square of the error of V that the linear solve of a step may leave; by default 1e-5 of the range of
    /// action potentials, 1e-3 mV.
    pub fn solve_error(mut self, error: f64) -> Self {
        self.error = Some(error);
        self
    }

    /// Lets [`Outcome::parts`] tell the seconds of the parts of implicit steps; a GPU is then waited for after each part, and
    /// the run takes longer.
    pub fn timed(mut self, timed: bool) -> Self {
        self.timed = timed;
        self
    }

    /// Sets the potentials that define activation and repolarisation; by default those of the first model.
    pub fn activation(mut self, config: ActivationConfig) -> Self {
        self.activation = Some(config);
        self
    }

    /// Adds an electrode outside of the tissue, whose potential frames have.
    pub fn electrode(mut self, name: impl Into<String>, position: [f64; 3]) -> Self {
        self.electrodes.push(Electrode { name: name.into(), position });
        self
    }

    /// Sets the conductivity of the medium around the tissue, for electrodes.
    pub fn bath_conductivity(mut self, conductivity: f64) -> Self {
        self.bath = conductivity;
        self
    }

    /// Sets the times at which [`Observer::frame`] receives the potential, each at the nearest end of a step.
    pub fn frames(mut self, times: impl IntoIterator<Item = f64>) -> Self {
        self.frames = times.into_iter().collect();
        self.frames.sort_by(f64::total_cmp);
        self
    }

    /// Lets [`Observer::checkpoint`] receive the state now and then, and when a run ends early; `fingerprint` identifies the
    /// problem in it.
    pub fn checkpoints(mut self, interval: CheckpointInterval, fingerprint: [u8; 32]) -> Self {
        (self.checkpoints, self.fingerprint) = (Some(interval), fingerprint);
        self
    }

    /// Continues from a checkpoint.
    pub fn resume(mut self, checkpoint: Checkpoint) -> Self {
        self.resume = Some(Arc::new(checkpoint));
        self
    }

    /// Returns the time up to which frames were passed on by the run that wrote a checkpoint.
    pub fn frames_until(&self, checkpoint: &Checkpoint) -> f64 {
        self.reach(checkpoint.time, checkpoint.length)
    }

    /// Returns the time up to which frames belong to the end of a step: adaptive steps end at the times of frames, others near
    /// them.
    fn reach(&self, time: f64, length: f64) -> f64 {
        if self.adaptive.is_some() { time } else { time + 0.5 * length }
    }

    /// Returns the mesh, or the part of this rank of it.
    pub fn mesh(&self) -> &'m Mesh {
        self.mesh
    }

    /// Returns the kinds of tissue.
    pub fn tissues(&self) -> &[Tissue] {
        &self.tissues
    }

    /// Solves the problem.
    ///
    /// # Errors
    /// [`CardiacError`]; a run that ends early is an outcome.
    pub fn solve(&self, config: &SolverConfig) -> Result<MonodomainSolution, CardiacError> {
        self.solve_with(config, &mut (), &mut Silent)
    }

    /// Solves the problem and reports steps, frames and progress.
    ///
    /// # Errors
    /// As [`Monodomain::solve`]; errors of the observer.
    pub fn solve_with(
        &self,
        config: &SolverConfig,
        observer: &mut dyn Observer,
        progress: &mut dyn Progress,
    ) -> Result<MonodomainSolution, CardiacError> {
        config.check()?;
        // Each of several ranks opens its own.
        let opened = if config.ranks.n() > 1 { None } else { config.device.open()? };
        let cpu = Cpu::new(config.threads)?;
        cpu.install(|| self.run((&cpu, opened), config, observer, &mut Stages::new(progress)))
    }

    /// Solves the problem on the device of the settings, or on a GPU that is open. If the GPU was chosen
    /// automatically and fails, a processor takes over.
    ///
    /// # Errors
    /// As [`Monodomain::solve_with`].
    pub fn run(
        &self,
        (cpu, opened): (&Cpu, Option<Cuda>),
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<MonodomainSolution, CardiacError> {
        self.check(config)?;
        if config.ranks.n() > 1 || self.parts.is_some() {
            return self.run_on_ranks((cpu, opened), config, observer, stages);
        }
        let n_steps = if self.adaptive.is_some() { Steps::EXPECTED } else { self.steps().0 };
        let work = (self.mesh.n_nodes(), n_steps);
        let Choice { device, reason } = config.device.choose_for_steps(opened, work, cpu.threads());
        let Chosen::Cuda(cuda) = device else {
            return self.run_on((cpu, cpu, None), config, &reason, observer, stages);
        };
        match self.run_on((cpu, &cuda, Some(&cuda)), config, &reason, observer, stages) {
            Err(error) if config.device == DeviceChoice::Auto && error.is_device_trouble() => {
                self.run_on((cpu, cpu, None), config, &error.to_string(), observer, stages)
            }
            done => done,
        }
    }

    /// Checks all settings that do not need the mesh.
    fn check(&self, config: &SolverConfig) -> Result<(), CardiacError> {
        LinearSpace::new(self.mesh).map_err(FemError::from)?;
        let positive = [
            ("surface_to_volume", self.surface_to_volume),
            ("capacitance", self.capacitance),
            ("step", self.step),
            ("bath_conductivity", self.bath),
            ("solve_error", self.error.unwrap_or(1.0)),
        ];
        for (field, value) in positive {
            if !(value.is_finite() && value > 0.0) {
                return Err(CardiacError::setting(field, format!("{value} is not positive")));
            }
        }
        if !(self.start.is_finite() && self.end.is_finite() && self.end > self.start) {
            let message = format!("{} has to lie after the start, {}", self.end, self.start);
            return Err(CardiacError::setting("end", message));
        }
        if self.step > (self.end - self.start) * (1.0 + 1e-9) {
            let message = format!("{} is longer than the run, {}", self.step, self.end - self.start);
            return Err(CardiacError::setting("step", message));
        }
        if let Some(adaptive) = &self.adaptive {
            adaptive.check()?;
        }
        match self.scheme {
            Scheme::Implicit => implicit::check(self, config)?,
            Scheme::Splitting(_) if self.adaptive.is_some() => {
                let message = "splitting has steps of one length; the implicit scheme chooses them";
                return Err(CardiacError::setting("tolerance", message));
            }
            Scheme::Splitting(_) => {}
        }
        if !(0.5..=1.0).contains(&self.theta) {
            let message = format!("{} does not lie between ½ and 1: the step would be unstable", self.theta);
            return Err(CardiacError::setting("theta", message));
        }
        Ok(())
    }

    /// Returns the number of steps and their length.
    fn steps(&self) -> (usize, f64) {
        let length = self.end - self.start;
        let count = (length / self.step * (1.0 - 1e-9)).ceil().max(1.0) as usize;
        // A step that divides the run keeps its bits, so that a later end continues with the same steps.
        let divides = (length - count as f64 * self.step).abs() <= 1e-9 * length;
        (count, if divides { self.step } else { length / count as f64 })
    }

    /// Returns the range of action potentials of the first model: 100 mV, or 1 without units.
    pub fn amplitude(&self) -> f64 {
        if self.tissues[0].model.units().is_physical() { 100.0 } else { 1.0 }
    }

    /// Returns the keys of the papers behind the models and methods.
    pub fn citations(&self) -> Vec<&str> {
        let scheme: &[&str] = match self.scheme {
            Scheme::Splitting(Splitting::Godunov) => &["qu1999", "godunov1959"],
            Scheme::Splitting(Splitting::Strang) => &["qu1999", "strang1968"],
            Scheme::Implicit => &["wong2015"],
        };
        let models = self.tissues.iter().flat_map(|tissue| tissue.model.citations());
        let mut all: Vec<&str> = models.map(String::as_str).chain(scheme.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Observes nothing.
impl Observer for () {}

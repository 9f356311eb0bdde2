use std::fmt;
use std::str::FromStr;

use femtile_tridiagonal::Algorithm;

use crate::TimeError;

/// An ADI splitting. All use θ = ½ except in the first steps of a Rannacher start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Half a step implicit along x, half a step implicit along y; two dimensions, no mixed derivatives.
    /// `[peaceman1955]`
    PeacemanRachford,
    /// An explicit step, then a correction along each axis. `[douglas1962]`; mixed terms as in `[inthout2010]`.
    #[default]
    Douglas,
    /// Douglas in factored form for the increment: `[douglas1964]`. With θ = ½ it is the same scheme, with one
    /// implementation.
    DouglasGunn,
    /// Douglas, then a second pass whose mixed terms are centred in time: `[craig1988]`, θ = σ = ½.
    CraigSneyd,
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Self; 4] = [Self::PeacemanRachford, Self::Douglas, Self::DouglasGunn, Self::CraigSneyd];

    /// Returns the name in case files.
    pub fn name(self) -> &'static str {
        match self {
            Self::PeacemanRachford => "peaceman-rachford",
            Self::Douglas => "douglas",
            Self::DouglasGunn => "douglas-gunn",
            Self::CraigSneyd => "craig-sneyd",
        }
    }

    /// Returns the keys in `references.bib`.
    pub fn citations(self) -> &'static [&'static str] {
        match self {
            Self::PeacemanRachford => &["peaceman1955"],
            Self::Douglas => &["douglas1962", "inthout2010"],
            Self::DouglasGunn => &["douglas1964"],
            Self::CraigSneyd => &["craig1988", "inthout2010"],
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scheme {
    type Err = TimeError;

    fn from_str(name: &str) -> Result<Self, TimeError> {
        Self::ALL.into_iter().find(|scheme| scheme.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            TimeError::setting("scheme", format!("there is no scheme `{name}`; choose one of: {names}"))
        })
    }
}

/// Source of the bands of the implicit systems.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Coefficients {
    /// On the fly; arrays on a CPU if a coefficient is a formula, which would be evaluated in every step.
    #[default]
    Auto,
    /// Computed in the solve kernel, without coefficient arrays.
    OnTheFly,
    /// Computed once, stored, and read in every step.
    Arrays,
}

/// Settings of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct AdiConfig {
    /// The scheme.
    pub scheme: Scheme,
    /// Initial time.
    pub start: f64,
    /// Final time.
    pub end: f64,
    /// Number of steps of equal length.
    pub steps: usize,
    /// Number of initial steps replaced by two half steps with θ = 1, which damp high frequencies of the initial values.
    /// `[rannacher1984]`
    pub rannacher_steps: usize,
    /// Source of the bands.
    pub coefficients: Coefficients,
    /// The algorithm of the tridiagonal solves.
    pub algorithm: Algorithm,
}

impl Default for AdiConfig {
    fn default() -> Self {
        Self {
            scheme: Scheme::default(),
            start: 0.0,
            end: 1.0,
            steps: 100,
            rannacher_steps: 0,
            coefficients: Coefficients::default(),
            algorithm: Algorithm::default(),
        }
    }
}

impl AdiConfig {
    /// Returns the step length.
    pub fn step_length(&self) -> f64 {
        (self.end - self.start) / self.steps as f64
    }

    pub(crate) fn check(&self, dimension: usize, has_mixed: bool) -> Result<(), TimeError> {
        let Self { start, end, steps, rannacher_steps, .. } = *self;
        if !(end > start && (end - start).is_finite()) {
            return Err(TimeError::setting("end", format!("{end} is not after the start {start}")));
        }
        if steps == 0 {
            return Err(TimeError::setting("steps", "at least 1 is needed"));
        }
        if rannacher_steps > steps {
            let message = format!("{rannacher_steps} of {steps} steps; 1 or 2 are enough");
            return Err(TimeError::setting("rannacher_steps", message));
        }
        if self.scheme == Scheme::PeacemanRachford && (dimension != 2 || has_mixed) {
            let message = "peaceman-rachford is for two dimensions without mixed derivatives; take `douglas`, or \
                           `craig-sneyd` where the diffusion tensor has entries off its diagonal";
            return Err(TimeError::setting("scheme", message));
        }
        Ok(())
    }
}

/// The reason a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdiStop {
    /// The final time was reached.
    Finished,
    /// The user interrupted the run.
    Interrupted,
    /// The time limit was reached.
    TimeLimit,
    /// The values are no longer finite.
    Diverged,
}

impl AdiStop {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::TimeLimit => "time-limit",
            Self::Diverged => "diverged",
        }
    }
}

impl fmt::Display for AdiStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Finished => "reached its final time",
            Self::Interrupted => "was interrupted by the user",
            Self::TimeLimit => "reached its time limit",
            Self::Diverged => "diverged: values are no longer finite; take shorter steps",
        })
    }
}

/// The outcome of a run.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdiOutcome {
    /// The reason it ended.
    pub stop: AdiStop,
    /// Steps done.
    pub steps: usize,
    /// The time reached.
    pub time: f64,
}

//! The work and the messages of an iteration.

/// A pass over the unknowns of a level.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// The level, from 0 for the finest.
    pub level: usize,
    /// Bytes moved for each unknown of the level, or the time of its arithmetic as bytes.
    pub bytes: f64,
    /// Whether cells between ranks are worked on by all of these.
    pub is_by_cell: bool,
    /// Kernels started.
    pub launches: f64,
}

/// A step of an iteration, the same on every rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Work on the unknowns of the rank.
    Work(Work),
    /// Work that every rank repeats, in bytes.
    Whole {
        /// Bytes moved on each rank.
        bytes: f64,
        /// Kernels started.
        launches: f64,
    },
    /// Values for the ghosts of a level, with work that does not need them while they are on their way.
    Exchange {
        /// The level.
        level: usize,
        /// Bytes of a value, times the layers of cells sent.
        bytes: f64,
        /// Work before the messages are waited for.
        meanwhile: Work,
    },
    /// A sum over all ranks.
    Sum {
        /// Bytes of the summed values.
        bytes: f64,
    },
    /// A sum that goes on while the rank works.
    BeginSum {
        /// Bytes of the summed values.
        bytes: f64,
    },
    /// The end of the sum begun.
    EndSum,
    /// Values of all ranks for every rank.
    Gather {
        /// Bytes of all values together.
        bytes: f64,
    },
}

/// A level of multigrid; the first one is that of the unknowns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Unknowns of the level over those of level 0.
    pub share: f64,
    /// The fewest unknowns of a rank that has some.
    pub least: f64,
    /// Unknowns of a cell, or of a layer of them, where ranks also work on those of others.
    pub unit: f64,
    /// Axes along which the level is divided into such units.
    pub axes: i32,
    /// Layers of cells of others that a rank works on, both sides of an axis together.
    pub layers: f64,
}

impl Level {
    /// The unknowns themselves, without cells of others.
    pub const FINEST: Self = Self { share: 1.0, least: 0.0, unit: 1.0, axes: 3, layers: 0.0 };

    /// Returns the unknowns that a rank works on, of those with `owned` on level 0.
    pub fn unknowns(&self, owned: f64) -> f64 {
        let own = (owned * self.share).max(self.least);
        if self.layers == 0.0 || own == 0.0 {
            return own;
        }
        let side = (own / self.unit).powf(1.0 / f64::from(self.axes));
        own * (1.0 + self.layers / side).powi(self.axes)
    }

    /// Returns the values sent, of a message with `values` on level 0: an area, and one at least.
    pub fn values(&self, values: f64) -> f64 {
        (values * self.share.powf(2.0 / 3.0)).max(1.0)
    }
}

/// One or several iterations of a method.
#[derive(Debug, Clone, PartialEq)]
pub struct Iteration {
    /// The levels.
    pub levels: Vec<Level>,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// Iterations that the steps are.
    pub n_iterations: f64,
}

impl Iteration {
    /// Returns the steps of one iteration without multigrid.
    pub fn new(steps: Vec<Step>) -> Self {
        Self { levels: vec![Level::FINEST], steps, n_iterations: 1.0 }
    }

    /// Returns the bytes that all ranks move in an iteration where none does work of others, of `n` unknowns on `n_ranks`.
    pub fn bytes(&self, n: f64, n_ranks: usize) -> f64 {
        let of_work = |work: &Work| work.bytes * n * self.levels[work.level].share;
        let of_step = |step: &Step| match step {
            Step::Work(work) | Step::Exchange { meanwhile: work, .. } => of_work(work),
            Step::Whole { bytes, .. } => bytes * n_ranks as f64,
            _ => 0.0,
        };
        self.steps.iter().map(of_step).sum::<f64>() / self.n_iterations
    }
}

use femtile_solve::MassMatrix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Methods in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeMethod {
    /// Alternating directions, on a grid.
    #[default]
    Adi,
    /// Backward Euler on any mesh, of order 1.
    ImplicitEuler,
    /// Backward differentiation over two steps on any mesh, of order 2.
    Bdf2,
    /// A Runge–Kutta method with two implicit stages on any mesh, of order 2.
    Sdirk2,
    /// The trapezoidal rule on any mesh, of order 2.
    CrankNicolson,
    /// Monodomain: the membrane, then diffusion, of order 1.
    Godunov,
    /// Monodomain: half a step of the membrane, diffusion, half a step of the membrane, of order 2.
    Strang,
}

/// Schemes of alternating directions, all with θ = ½.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchemeName {
    /// Half a step implicit along x, then one along y; two dimensions, no mixed derivatives.
    PeacemanRachford,
    /// An explicit step and a correction along each axis; of first order with mixed derivatives.
    #[default]
    Douglas,
    /// Another name of the same scheme.
    DouglasGunn,
    /// Two passes, of second order with mixed derivatives.
    CraigSneyd,
}

/// Where the bands of the implicit systems come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CoefficientSource {
    /// Formed on the fly, but read from arrays where a coefficient is an expression and the device a CPU.
    #[default]
    Auto,
    /// Formed in the kernel that solves: no array of coefficients in memory.
    OnTheFly,
    /// Formed once and read in every step.
    Arrays,
}

/// Mass matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MassName {
    /// The integrals of products of shape functions.
    #[default]
    Consistent,
    /// Row sums on the diagonal, of elements of degree 1.
    Lumped,
}

/// Times, in a list or by their distance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum Times {
    /// These times.
    List(Vec<f64>),
    /// The start, then every so much, and the end.
    Every {
        /// The distance from one to the next.
        #[schemars(extend("exclusiveMinimum" = 0))]
        every: f64,
    },
}

/// The distance from one checkpoint to the next: exactly one of `steps` and `minutes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["steps"] }, { "required": ["minutes"] }]))]
pub struct CheckpointSection {
    /// Steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub steps: Option<usize>,
    /// Minutes on the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1e6))]
    pub minutes: Option<f64>,
}

/// The reaction to a frame, a trace or a checkpoint that cannot be written, as on a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriteErrorName {
    /// It ends with the name of the file; the last checkpoint remains.
    #[default]
    End,
    /// It goes on without the file, and a warning says how many are missing; the last checkpoint remains.
    GoOn,
}

/// `[time]`: how an equation in time is advanced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeSection {
    /// The method.
    #[serde(default)]
    pub method: TimeMethod,
    /// Its scheme.
    #[serde(default)]
    pub scheme: SchemeName,
    /// The time of the initial values.
    #[serde(default)]
    pub start: f64,
    /// The time that is reached.
    pub end: f64,
    /// Number of steps of one length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub steps: Option<usize>,
    /// Monodomain: the length of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub step: Option<f64>,
    /// Monodomain: the share of the new time in the flux of diffusion, from ½ (Crank–Nicolson, the default) to 1 (backward
    /// Euler).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.5, max = 1.0))]
    pub theta: Option<f64>,
    /// In place of `steps`, on meshes: lengths of steps are chosen so that the error in time stays below this share of the
    /// largest L₂ norm of u.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub tolerance: Option<f64>,
    /// With `tolerance`: errors in the L₂ norm below this number are accepted too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub absolute_tolerance: Option<f64>,
    /// With `tolerance`: the length of the first step; a thousandth of the run when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub first_step: Option<f64>,
    /// With `tolerance`: the shortest step; 1e-9 of the run when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub shortest_step: Option<f64>,
    /// With `tolerance`: the longest step; a tenth of the run when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub longest_step: Option<f64>,
    /// On meshes: the mass matrix.
    #[serde(default, skip_serializing_if = "is_consistent")]
    pub mass: MassName,
    /// On meshes: times at which u is written for ParaView, `frames/u_0000.vtu` and so on with `solution.pvd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<Times>,
    /// On meshes: times at which the functionals are evaluated, into `traces.csv` and `traces.svg`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<Times>,
    /// On meshes: how often the state is written to `checkpoint.bin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointSection>,
    /// On meshes: what happens when a frame, a trace or a checkpoint cannot be written.
    #[serde(default, skip_serializing_if = "ends")]
    pub on_write_error: WriteErrorName,
    /// Go on from `checkpoint.bin` in the folder of results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restart: bool,
    /// Number of initial steps replaced by two half steps with θ = 1 (Rannacher), for initial values with jumps or kinks.
    #[serde(default)]
    pub rannacher_steps: usize,
    /// Where the bands of the implicit systems come from.
    #[serde(default)]
    pub coefficients: CoefficientSource,
    /// The algorithm of the tridiagonal solves, by name.
    #[serde(default = "auto")]
    pub algorithm: String,
}

fn auto() -> String {
    "auto".into()
}

fn ends(name: &WriteErrorName) -> bool {
    *name == WriteErrorName::End
}

impl From<MassName> for MassMatrix {
    fn from(name: MassName) -> Self {
        match name {
            MassName::Consistent => Self::Consistent,
            MassName::Lumped => Self::Lumped,
        }
    }
}

fn is_consistent(mass: &MassName) -> bool {
    *mass == MassName::Consistent
}

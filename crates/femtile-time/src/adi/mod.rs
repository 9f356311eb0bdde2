//! Alternating direction implicit (ADI) methods: each step solves tridiagonal systems along one axis at a time.
//!
//! $$ u_t = ∇·(D∇u) + c·∇u + ru + f $$
//!
//! With the parts $A_0$ (mixed derivatives) and $A_1, …, A_d$ (one for each axis) of the operator, the step length Δt
//! and τ = θΔt, a step of Douglas is
//!
//! $$ R = Δt\,\bigl(A u^{n-1} + f(t_{n-1} + τ)\bigr), \qquad
//!    (I - τA_1)⋯(I - τA_d)\,(u^n - u^{n-1}) = R, $$
//!
//! Craig–Sneyd solves once more for $R + \tfrac12 Δt A_0 δ$; δ is the result of the first pass.
//! Peaceman–Rachford is $(I - τA_1)u^* = (I + τA_2)u^{n-1} + τf$, $(I - τA_2)u^n = (I + τA_1)u^* + τf$.
//!
//! ```
//! use femtile_device::Cpu;
//! use femtile_expression::Expression;
//! use femtile_time::adi::{Adi, AdiConfig, AdiProblem, Silent};
//!
//! # fn main() -> Result<(), femtile_time::TimeError> {
//! let problem = AdiProblem::heat(&[33, 33], &[0.0, 0.0], &[1.0, 1.0]);
//! let config = AdiConfig { end: 0.1, steps: 40, ..AdiConfig::default() };
//! let initial = Expression::parse("sin(pi*x)*sin(pi*y)").expect("a formula");
//! let mut adi = Adi::<f64, _>::new(&Cpu::new(1)?, &problem, config)?;
//! let mut u = adi.initial_values(&initial)?;
//! let outcome = adi.run(&mut u, &mut Silent)?;
//! let middle = u.to_host()?[33 * 16 + 16];
//! assert!((middle - (-0.2 * std::f64::consts::PI.powi(2)).exp()).abs() < 1e-3, "{middle} {outcome:?}");
//! # Ok(())
//! # }
//! ```
//!
//! Bands are formed in the kernel that solves (`BandRule`), from constants passed as data or from formulas compiled
//! in. Rows on Dirichlet sides are zero in the operator along that axis only, so all lines along an axis have the
//! same matrix. Intermediate boundary values result from the solves (`boundary`). The caller chooses whether
//! coefficients are read from arrays.

mod boundary;
mod config;
#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod cuda_text;
mod device;
mod explicit_line;
mod grid;
mod kernels;
mod line;
mod operator;
mod peclet;
mod problem;
mod reference;
mod rule;
mod sampled;
mod soundness;
mod stepper;
pub mod values;

pub use config::{AdiConfig, AdiOutcome, AdiStop, Coefficients, Scheme};
pub use device::{AdiDevice, AdiRun};
pub use grid::{Grid, MAX_NODES, MIN_NODES};
pub use kernels::{AdiKernels, Arrays, ExplicitStage};
pub use operator::Operator;
pub use peclet::CellPeclet;
pub use problem::{AdiProblem, Side};
pub use stepper::{Adi, Silent, StepMonitor};

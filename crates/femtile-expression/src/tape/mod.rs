//! Evaluation at many points: each operation runs over a block of points before the next begins.
//!
//! Code is a list of loops over blocks of 128 points, so the choice of an operation costs little and registers stay
//! in the L1 cache. A value that is used once by its neighbour is joined with it (`fuse`), and so are the common
//! forms exp((a + b)·c) and d/(1 + exp(…)). Each operation is defined once, as a function of numbers without
//! branches, from which the compiler makes the loops of every SIMD level. `eval`, blocks and all levels agree bit
//! for bit.

mod block;
mod code;
mod fuse;
mod lower;

use std::sync::OnceLock;

use femtile_device::cpu::SimdLevel;

use crate::graph::Graph;
use crate::node::Variable;
use crate::program::ProgramInput;
use block::Block;
pub(crate) use code::Code;

/// An expression compiled for arrays of points.
///
/// Straight-line code over registers of a block of points each; repeated parts run once, integer powers are products,
/// registers are reused as soon as their value is dead. Shared by threads, each with its own [`TapeScratch`].
///
/// ```
/// use femtile_expression::{Expression, TapeScratch};
/// let tape = Expression::parse("x^2 + y")?.tape();
/// let (x, y, z) = ([1.0, 2.0, 3.0], [0.5; 3], [0.0; 3]);
/// let mut values = [0.0; 3];
/// tape.eval_block(&mut values, &x, &y, &z, &mut TapeScratch::default());
/// assert_eq!(values, [1.5, 4.5, 9.5]);
/// # Ok::<(), femtile_expression::ExpressionError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tape {
    code: Code,
}

/// The values of the inputs of a [`Tape`] at some points.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// First coordinates.
    pub x: &'a [f64],
    /// Second coordinates.
    pub y: &'a [f64],
    /// Third coordinates.
    pub z: &'a [f64],
    /// The time of all points.
    pub t: f64,
    /// Values of each other input, in the order of [`Names::others`](crate::Names::others).
    pub others: &'a [&'a [f64]],
}

impl Default for Inputs<'_> {
    /// No values: coordinates and others are empty, the time is NaN.
    fn default() -> Self {
        Self { x: &[], y: &[], z: &[], t: f64::NAN, others: &[] }
    }
}

impl<'a> Inputs<'a> {
    fn get(&self, variable: Variable) -> ProgramInput<'a> {
        ProgramInput::Values(match variable {
            Variable::X => self.x,
            Variable::Y => self.y,
            Variable::Z => self.z,
            Variable::T => return ProgramInput::Uniform(self.t),
            Variable::Other(position) => self.others.get(usize::from(position)).copied().unwrap_or(&[]),
        })
    }
}

/// The registers of a tape or program, kept from call to call so that none allocates; any tape may use any scratch.
#[derive(Debug)]
pub struct TapeScratch {
    registers: Vec<Block>,
    simd: SimdLevel,
}

impl Default for TapeScratch {
    /// No registers yet; the vector instructions of [`SimdLevel::from_environment`].
    fn default() -> Self {
        static LEVEL: OnceLock<SimdLevel> = OnceLock::new();
        let level = || SimdLevel::from_environment().unwrap_or(SimdLevel::Scalar);
        Self::with_simd(*LEVEL.get_or_init(level))
    }
}

impl TapeScratch {
    /// A scratch of code that runs with these vector instructions; values do not depend on them.
    pub fn with_simd(simd: SimdLevel) -> Self {
        Self { registers: Vec::new(), simd }
    }

    /// Returns the vector instructions that code with this scratch runs with.
    pub fn simd(&self) -> SimdLevel {
        self.simd
    }
}

impl Tape {
    pub(crate) fn new(graph: &Graph) -> Self {
        Self { code: Code::new(graph.nodes(), &[graph.root()]) }
    }

    /// Values of the expression at the points `(x[i], y[i], z[i])`, the same bits as
    /// [`Expression::eval`](crate::Expression::eval) gives.
    ///
    /// # Shapes
    /// `out, x, y, z: [n]` with any `n`; the slice of a coordinate that the expression does not use may be empty.
    /// # Cost
    /// About 0.1 ns a point and arithmetic operation, 0.4 ns an exponential or logarithm (AVX2), else what the
    /// mathematical library takes.
    /// # Panics
    /// When the lengths differ.
    pub fn eval_block(&self, out: &mut [f64], x: &[f64], y: &[f64], z: &[f64], scratch: &mut TapeScratch) {
        self.eval_block_with(out, &Inputs { x, y, z, ..Inputs::default() }, scratch);
    }

    /// Values of the expression for the inputs `i` of every point, the same bits as
    /// [`Expression::eval_with`](crate::Expression::eval_with) gives; else as [`Tape::eval_block`].
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn eval_block_with(&self, out: &mut [f64], inputs: &Inputs<'_>, scratch: &mut TapeScratch) {
        self.code.run(&mut [out], &|variable| inputs.get(variable), scratch);
    }
}

impl Code {
    /// Computes the outputs at all points.
    ///
    /// # Panics
    /// When the lengths of outputs and inputs differ.
    pub(crate) fn run<'i>(
        &self,
        outputs: &mut [&mut [f64]],
        input: &dyn Fn(Variable) -> ProgramInput<'i>,
        scratch: &mut TapeScratch,
    ) {
        let n = outputs.first().map_or(0, |output| output.len());
        for output in outputs.iter() {
            let found = output.len();
            assert!(found == n, "{found} values of an output for {n} points");
        }
        for &variable in &self.variables {
            if let ProgramInput::Values(values) = input(variable) {
                let (found, name) = (values.len(), variable.name());
                assert!(found == n, "{found} values of {name} for {n} points");
            }
        }
        if scratch.registers.len() < self.n_registers {
            scratch.registers.resize(self.n_registers, Block::ZERO);
        }
        let registers = &mut scratch.registers[..];
        scratch.simd.vectorize(
            #[inline(always)]
            || block::run(self, outputs, n, input, registers),
        );
    }
}

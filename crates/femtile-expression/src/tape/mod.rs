//! Evaluation at many points: each operation runs over a block of points before the next begins.

mod block;
mod lower;

use crate::graph::Graph;
use crate::node::{Binary, Bits, Node, Unary, Variable};

/// Points that pass through the tape together: 2 KiB a register, so that a dozen stay in the nearest cache.
const BLOCK: usize = 256;

/// An expression compiled for arrays of points.
///
/// Straight-line code over registers of 256 points each; repeated parts run once, integer powers are products,
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
    instructions: Vec<Instruction>,
    /// The last operation; it writes to the caller's slice.
    result: Operation,
    n_registers: usize,
    /// The variables that are read, apart from the time.
    columns: Vec<Variable>,
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
    /// The values of a variable other than the time.
    fn column(&self, variable: Variable) -> &'a [f64] {
        match variable {
            Variable::X => self.x,
            Variable::Y => self.y,
            Variable::Z => self.z,
            Variable::T => &[],
            Variable::Other(position) => self.others.get(usize::from(position)).copied().unwrap_or(&[]),
        }
    }
}

/// The registers of a tape, kept from call to call so that none allocates; any tape may use any scratch.
#[derive(Debug, Default)]
pub struct TapeScratch {
    registers: Vec<Vec<f64>>,
}

/// An operation and the register that takes its value, never one that it reads.
#[derive(Debug, Clone, Copy)]
struct Instruction {
    destination: u32,
    operation: Operation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Copy(Operand),
    Unary(Unary, Operand),
    Binary(Binary, Operand, Operand),
    /// The second operand where the first is not 0, else the third.
    Select(Operand, Operand, Operand),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operand {
    Constant(Bits),
    Variable(Variable),
    Register(u32),
}

impl Tape {
    pub(crate) fn new(graph: &Graph) -> Self {
        let (instructions, result, n_registers) = lower::lower(graph);
        let variables = graph.nodes().iter().filter_map(|node| match node {
            Node::Variable(variable) if *variable != Variable::T => Some(*variable),
            _ => None,
        });
        Self { instructions, result, n_registers, columns: variables.collect() }
    }

    /// Values of the expression at the points `(x[i], y[i], z[i])`, the same bits as
    /// [`Expression::eval`](crate::Expression::eval) gives.
    ///
    /// # Shapes
    /// `out, x, y, z: [n]` with any `n`; the slice of a coordinate that the expression does not use may be empty.
    /// # Cost
    /// About 0.2 ns a point and arithmetic operation (measured, SSE2), else what the mathematical library takes.
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
        for &variable in &self.columns {
            let found = inputs.column(variable).len();
            let name = variable.name();
            assert!(
                found == out.len(),
                "Tape::eval_block: {found} values of {name} for {} points",
                out.len()
            );
        }
        scratch.hold(self.n_registers);
        for (i, out) in out.chunks_mut(BLOCK).enumerate() {
            let points = i * BLOCK..i * BLOCK + out.len();
            block::run(&self.instructions, self.result, out, inputs, points, &mut scratch.registers);
        }
    }
}

impl TapeScratch {
    fn hold(&mut self, n_registers: usize) {
        if self.registers.len() < n_registers {
            self.registers.resize_with(n_registers, || vec![0.0; BLOCK]);
        }
    }
}

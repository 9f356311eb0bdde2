//! Evaluation at many points: each operation runs over a block of points before the next begins.

mod block;
mod lower;

use crate::graph::Graph;
use crate::node::{Binary, Bits, Unary, Variable};

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
    uses: [bool; 3],
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
        let uses = Variable::ALL.map(|variable| graph.uses(variable));
        Self { instructions, result, n_registers, uses }
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
        for (variable, coordinates) in Variable::ALL.into_iter().zip([x, y, z]) {
            let fits =
                coordinates.len() == out.len() || (coordinates.is_empty() && !self.uses[variable.index()]);
            assert!(
                fits,
                "Tape::eval_block: {} values of {} for {} points",
                coordinates.len(),
                variable.name(),
                out.len()
            );
        }
        scratch.hold(self.n_registers);
        for (i, out) in out.chunks_mut(BLOCK).enumerate() {
            let coordinates = [x, y, z].map(|all| part(all, i * BLOCK, out.len()));
            block::run(&self.instructions, self.result, out, coordinates, &mut scratch.registers);
        }
    }
}

/// `length` coordinates from `start`, or none of an empty slice.
fn part(coordinates: &[f64], start: usize, length: usize) -> &[f64] {
    if coordinates.is_empty() { coordinates } else { &coordinates[start..start + length] }
}

impl TapeScratch {
    fn hold(&mut self, n_registers: usize) {
        if self.registers.len() < n_registers {
            self.registers.resize_with(n_registers, || vec![0.0; BLOCK]);
        }
    }
}

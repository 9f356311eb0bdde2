//! Straight-line code: what a graph is compiled to.

use crate::node::{Binary, Bits, Id, Node, Unary, Variable};
use crate::tape::lower;

/// Operations over registers of a block of points each, in order; shared parts run once, integer powers are products,
/// a register is used again as soon as its value is dead.
#[derive(Debug, Clone)]
pub(crate) struct Code {
    pub(super) steps: Vec<Step>,
    pub(super) n_registers: usize,
    /// The variables that are read.
    pub(super) variables: Vec<Variable>,
}

impl Code {
    /// Compiles nodes; output `i` is the value of node `roots[i]`.
    pub(crate) fn new(nodes: &[Node], roots: &[Id]) -> Self {
        lower::lower(nodes, roots)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Puts the value of an operation into a register that the operation does not read.
    Compute { destination: u32, operation: Operation },
    /// Puts a value into an output.
    Store { output: u32, value: Operand },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    /// The values of an input.
    Load(Variable),
    Unary(Unary, Operand),
    Binary(Binary, Operand, Operand),
    /// The product of the first two operands, rounded, and the third.
    Fused(Fused, Operand, Operand, Operand),
    /// The second operand where the first is not 0, else the third.
    Select(Operand, Operand, Operand),
}

/// What happens to a product a·b and a third operand c.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Fused {
    /// a·b + c
    Add,
    /// a·b − c
    Subtract,
    /// c − a·b
    SubtractFrom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Operand {
    Constant(Bits),
    Register(u32),
}

impl Operation {
    fn operands(self) -> [Option<Operand>; 3] {
        match self {
            Self::Load(_) => [None; 3],
            Self::Unary(_, a) => [Some(a), None, None],
            Self::Binary(_, a, b) => [Some(a), Some(b), None],
            Self::Fused(_, a, b, c) | Self::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        }
    }

    /// The registers that it reads.
    pub(super) fn registers(self) -> impl Iterator<Item = u32> {
        self.operands().into_iter().flatten().filter_map(Operand::register)
    }

    /// The same with other registers.
    pub(super) fn rename(self, new: impl Fn(u32) -> u32) -> Self {
        let new = |operand: Operand| operand.rename(&new);
        match self {
            Self::Load(_) => self,
            Self::Unary(op, a) => Self::Unary(op, new(a)),
            Self::Binary(op, a, b) => Self::Binary(op, new(a), new(b)),
            Self::Fused(op, a, b, c) => Self::Fused(op, new(a), new(b), new(c)),
            Self::Select(a, b, c) => Self::Select(new(a), new(b), new(c)),
        }
    }
}

impl Operand {
    pub(super) fn register(self) -> Option<u32> {
        match self {
            Self::Register(register) => Some(register),
            Self::Constant(_) => None,
        }
    }

    pub(super) fn rename(self, new: impl Fn(u32) -> u32) -> Self {
        match self {
            Self::Register(register) => Self::Register(new(register)),
            Self::Constant(_) => self,
        }
    }
}

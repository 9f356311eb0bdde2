//! Straight-line code: what a graph is compiled to.

use crate::node::{Binary, Bits, Id, Node, Unary, Variable};
use crate::tape::lower;

/// Operations over registers of a block of points each, in order; shared parts run once, integer powers are products,
/// a register is used again as soon as its value is dead.
#[derive(Debug, Clone)]
pub(crate) struct Code {
    pub(super) steps: Vec<Step>,
    pub(super) constants: Vec<f64>,
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
    Compute { destination: u32, operation: Operation<Place> },
    /// Puts a value into an output.
    Store { output: u32, value: Place },
}

/// One loop over a block. Those of several operators round after each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Operation<O> {
    /// The values of an input.
    Load(Variable),
    Unary(Unary, O),
    Binary(Binary, O, O),
    /// The first two operands and then the third.
    Fused(Fused, O, O, O),
    /// The second operand where the first is not 0, else the third.
    Select(O, O, O),
    /// exp((a + `shift`)·`scale`)
    Exp {
        a: O,
        shift: O,
        scale: O,
    },
    /// `numerator`/(1 + exp((a + `shift`)·`scale`))
    Logistic {
        numerator: O,
        a: O,
        shift: O,
        scale: O,
    },
}

/// Two operators on a, b and c.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Fused {
    /// a·b + c
    ProductPlus,
    /// a·b − c
    ProductMinus,
    /// c − a·b
    MinusProduct,
    /// (a + b)·c
    SumTimes,
    /// (a − b)·c
    DifferenceTimes,
}

/// A value before registers are assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Operand {
    Constant(Bits),
    /// The value of the operation with this number.
    Value(u32),
}

/// A register, or a constant by its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place(u32);

impl Place {
    const CONSTANT: u32 = 1 << 31;

    pub(super) fn register(register: u32) -> Self {
        Self(register)
    }

    pub(super) fn constant(position: u32) -> Self {
        Self(position | Self::CONSTANT)
    }

    /// The register, or else the position of the constant.
    #[inline(always)]
    pub(super) fn get(self) -> Result<usize, usize> {
        match self.0 & Self::CONSTANT {
            0 => Ok(self.0 as usize),
            _ => Err((self.0 & !Self::CONSTANT) as usize),
        }
    }
}

impl<O: Copy> Operation<O> {
    /// What it reads.
    pub(super) fn operands(self) -> impl Iterator<Item = O> {
        let operands = match self {
            Self::Load(_) => [None; 4],
            Self::Unary(_, a) => [Some(a), None, None, None],
            Self::Binary(_, a, b) => [Some(a), Some(b), None, None],
            Self::Fused(_, a, b, c) | Self::Select(a, b, c) => [Some(a), Some(b), Some(c), None],
            Self::Exp { a, shift, scale } => [Some(a), Some(shift), Some(scale), None],
            Self::Logistic { numerator, a, shift, scale } => {
                [Some(numerator), Some(a), Some(shift), Some(scale)]
            }
        };
        operands.into_iter().flatten()
    }

    /// The same on other operands.
    pub(super) fn map<P>(self, mut new: impl FnMut(O) -> P) -> Operation<P> {
        match self {
            Self::Load(variable) => Operation::Load(variable),
            Self::Unary(op, a) => Operation::Unary(op, new(a)),
            Self::Binary(op, a, b) => Operation::Binary(op, new(a), new(b)),
            Self::Fused(op, a, b, c) => Operation::Fused(op, new(a), new(b), new(c)),
            Self::Select(a, b, c) => Operation::Select(new(a), new(b), new(c)),
            Self::Exp { a, shift, scale } => {
                Operation::Exp { a: new(a), shift: new(shift), scale: new(scale) }
            }
            Self::Logistic { numerator, a, shift, scale } => Operation::Logistic {
                numerator: new(numerator),
                a: new(a),
                shift: new(shift),
                scale: new(scale),
            },
        }
    }
}

impl Operand {
    pub(super) fn value(self) -> Option<u32> {
        match self {
            Self::Value(value) => Some(value),
            Self::Constant(_) => None,
        }
    }

    pub(super) fn constant(self) -> Option<f64> {
        match self {
            Self::Constant(bits) => Some(bits.value()),
            Self::Value(_) => None,
        }
    }
}

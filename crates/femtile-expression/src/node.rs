//! The words of an expression: its nodes, and what each operation does to numbers.
//!
//! `apply` is the one definition of every operation; constant folding, [`eval`](crate::Expression::eval) and the tape
//! all call it, which is why they agree bit for bit.

use crate::elementary;

/// A variable of an expression: a coordinate, the time or an input with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variable {
    /// The first coordinate.
    X,
    /// The second coordinate.
    Y,
    /// The third coordinate.
    Z,
    /// The time, where [`Names::time`](crate::Names::time) allows it.
    T,
    /// The input with this position in [`Names::others`](crate::Names::others).
    Other(u16),
}

impl Variable {
    /// The three coordinates, in order.
    pub const ALL: [Self; 3] = [Self::X, Self::Y, Self::Z];

    /// Position among the coordinates, 0, 1 or 2; that of the time is 3, the other inputs follow.
    pub const fn index(self) -> usize {
        match self {
            Self::X => 0,
            Self::Y => 1,
            Self::Z => 2,
            Self::T => 3,
            Self::Other(position) => 4 + position as usize,
        }
    }

    /// The name that stands for it in a text; `other` for an input whose name the expression knows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X => "x",
            Self::Y => "y",
            Self::Z => "z",
            Self::T => "t",
            Self::Other(_) => "other",
        }
    }
}

/// Position of a node in its graph; operands come before the nodes that use them.
pub(crate) type Id = u32;

/// A number compared and hashed by its bits, so that -0 and 0 stay apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Bits(u64);

impl Bits {
    pub(crate) const fn new(value: f64) -> Self {
        Self(value.to_bits())
    }

    pub(crate) fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// One step of an expression; truth values are the numbers 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// A finite number.
    Constant(Bits),
    /// `true` or `false`.
    Truth(bool),
    Variable(Variable),
    Unary(Unary, Id),
    /// An integer power with 2 ≤ |exponent| ≤ [`MAX_POWER`], or exponent -1.
    Power(Id, i32),
    /// A power with half this odd integer, 3 ≤ |integer| ≤ [`MAX_POWER`], or -1.
    HalfPower(Id, i32),
    Binary(Binary, Id, Id),
    /// The second operand where the first is true, else the third.
    Select(Id, Id, Id),
}

/// Integer exponents up to this size become multiplications, whose relative error stays below 4e-15.
pub(crate) const MAX_POWER: i32 = 32;

/// Functions of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Unary {
    Negate,
    Not,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Exp,
    Expm1,
    Exprel,
    Log,
    Log1p,
    Log10,
    Sqrt,
    Abs,
    Sign,
    Floor,
    Ceil,
}

/// Operators and functions of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Atan2,
    Hypot,
    Min,
    Max,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

impl Node {
    /// Returns whether it computes something.
    pub(crate) fn is_operation(self) -> bool {
        !matches!(self, Self::Constant(_) | Self::Truth(_) | Self::Variable(_))
    }

    /// Returns whether its value is true or false.
    pub(crate) fn is_condition(self) -> bool {
        match self {
            Self::Truth(_) | Self::Unary(Unary::Not, _) => true,
            Self::Binary(op, ..) => op.is_comparison() || matches!(op, Binary::And | Binary::Or),
            _ => false,
        }
    }

    /// The nodes that this one reads, in order.
    pub(crate) fn operands(self) -> impl Iterator<Item = Id> {
        let operands = match self {
            Self::Constant(_) | Self::Truth(_) | Self::Variable(_) => [None; 3],
            Self::Unary(_, a) | Self::Power(a, _) | Self::HalfPower(a, _) => [Some(a), None, None],
            Self::Binary(_, a, b) => [Some(a), Some(b), None],
            Self::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        operands.into_iter().flatten()
    }

    /// Returns the node with every operand renumbered.
    pub(crate) fn rename(self, new: impl Fn(Id) -> Id) -> Self {
        match self {
            Self::Constant(_) | Self::Truth(_) | Self::Variable(_) => self,
            Self::Unary(op, a) => Self::Unary(op, new(a)),
            Self::Power(a, n) => Self::Power(new(a), n),
            Self::HalfPower(a, n) => Self::HalfPower(new(a), n),
            Self::Binary(op, a, b) => Self::Binary(op, new(a), new(b)),
            Self::Select(a, b, c) => Self::Select(new(a), new(b), new(c)),
        }
    }
}

impl Unary {
    /// The value of the function at `a`.
    #[inline(always)]
    pub(crate) fn apply(self, a: f64) -> f64 {
        match self {
            Self::Negate => -a,
            Self::Not => truth(a == 0.0),
            Self::Sin => a.sin(),
            Self::Cos => a.cos(),
            Self::Tan => a.tan(),
            Self::Asin => a.asin(),
            Self::Acos => a.acos(),
            Self::Atan => a.atan(),
            Self::Sinh => a.sinh(),
            Self::Cosh => a.cosh(),
            Self::Tanh => elementary::tanh(a),
            Self::Exp => elementary::exp(a),
            Self::Expm1 => elementary::expm1(a),
            Self::Exprel => elementary::exprel(a),
            Self::Log => elementary::log(a),
            Self::Log1p => elementary::log1p(a),
            Self::Log10 => a.log10(),
            Self::Sqrt => a.sqrt(),
            Self::Abs => a.abs(),
            Self::Sign => sign(a),
            Self::Floor => a.floor(),
            Self::Ceil => a.ceil(),
        }
    }
}

impl Binary {
    /// The value of the operation at `a`, `b`.
    #[inline(always)]
    pub(crate) fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide => a / b,
            Self::Power => a.powf(b),
            Self::Atan2 => a.atan2(b),
            Self::Hypot => a.hypot(b),
            Self::Min => choose(a < b || a.is_nan(), a, b),
            Self::Max => choose(a > b || a.is_nan(), a, b),
            Self::Less => truth(a < b),
            Self::LessEqual => truth(a <= b),
            Self::Greater => truth(a > b),
            Self::GreaterEqual => truth(a >= b),
            Self::Equal => truth(nearly_equal(a, b)),
            Self::NotEqual => truth(!nearly_equal(a, b)),
            Self::And => truth((a != 0.0) & (b != 0.0)),
            Self::Or => truth((a != 0.0) | (b != 0.0)),
        }
    }
}

/// `base` to an integer power by squaring: the products that the tape is lowered to, in the same order.
pub(crate) fn integer_power(base: f64, exponent: i32) -> f64 {
    let mut square = base;
    let mut product = 1.0;
    let mut rest = exponent.unsigned_abs();
    while rest > 0 {
        if rest & 1 == 1 {
            product *= square;
        }
        square *= square;
        rest >>= 1;
    }
    if exponent < 0 { 1.0 / product } else { product }
}

/// `base` to the power `twice`/2 for an odd integer: the products and the root that code is lowered to.
pub(crate) fn half_power(base: f64, twice: i32) -> f64 {
    let (n, root) = ((twice.abs() - 1) / 2, base.sqrt());
    let product = if n == 0 { root } else { integer_power(base, n) * root };
    if twice < 0 { 1.0 / product } else { product }
}

/// `a` where the condition holds, else `b`; a selection, so that a NaN of the other one does not leak.
#[inline(always)]
pub(crate) fn choose(condition: bool, a: f64, b: f64) -> f64 {
    if condition { a } else { b }
}

#[inline(always)]
fn truth(value: bool) -> f64 {
    choose(value, 1.0, 0.0)
}

/// -1, 0 or 1; NaN for NaN. Unlike `f64::signum`, zero has sign 0.
#[inline(always)]
fn sign(a: f64) -> f64 {
    choose(a > 0.0, 1.0, choose(a < 0.0, -1.0, a * 0.0 + 0.0))
}

/// Equality within 1e-12·max(1, |a|, |b|); infinities are equal to themselves alone, NaN to nothing.
#[inline(always)]
fn nearly_equal(a: f64, b: f64) -> bool {
    let scale = choose(a.abs() > b.abs(), a.abs(), b.abs());
    let scale = choose(scale > 1.0, scale, 1.0);
    (a == b) | (((a - b).abs() <= 1e-12 * scale) & (scale < f64::INFINITY))
}

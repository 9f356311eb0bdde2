//! Construction of nodes with constant folding and algebraic simplification.
//!
//! Every rule keeps the value to the bit for finite operands, up to the sign of a zero, with three exceptions of at
//! most a few units in the last place: `c·(d·x)` becomes `(c·d)·x`, `e^x` becomes `exp(x)`, `x^0.5` becomes
//! `sqrt(x)`, and other halves of odd integers become products with it. `0·x` and `0/x` become 0 even where `x` is infinite or not a number.
//!
//! Texts with vectors and matrices have two more rules, `log(1 + a)` is `log1p(a)` and `(1 + a) - 1` is `a`, which keep the digits of
//! a small a.
//!
//! A node is stored only by the method that makes it and only when no rule applies to its operands. Making it again
//! from the same operands therefore gives the same node, which is why printed text parses back to an equal
//! expression. A result that is not finite is not folded, since no number of the grammar spells it.

use crate::graph::Builder;
use crate::node::{Binary, Bits, Id, MAX_POWER, Node, Unary, Variable, half_power, integer_power};

impl Builder {
    /// A number; infinities and NaN become `1/0`, `-1/0` and `0/0`.
    pub(crate) fn constant(&mut self, value: f64) -> Id {
        if value.is_finite() {
            return self.intern(Node::Constant(Bits::new(value)));
        }
        let numerator = if value.is_nan() { 0.0 } else { value.signum() };
        let numerator = self.intern(Node::Constant(Bits::new(numerator)));
        let zero = self.intern(Node::Constant(Bits::new(0.0)));
        self.intern(Node::Binary(Binary::Divide, numerator, zero))
    }

    /// Creates a node again from operands of this graph.
    pub(crate) fn make(&mut self, node: Node) -> Id {
        match node {
            Node::Constant(bits) => self.constant(bits.value()),
            Node::Truth(value) => self.truth(value),
            Node::Variable(variable) => self.variable(variable),
            Node::Unary(op, a) => self.unary(op, a),
            Node::Power(a, exponent) => {
                let exponent = self.constant(f64::from(exponent));
                self.power(a, exponent)
            }
            Node::HalfPower(a, twice) => {
                let exponent = self.constant(0.5 * f64::from(twice));
                self.power(a, exponent)
            }
            Node::Binary(op, a, b) => self.binary(op, a, b),
            Node::Select(condition, a, b) => self.select(condition, a, b),
        }
    }

    pub(crate) fn variable(&mut self, variable: Variable) -> Id {
        self.intern(Node::Variable(variable))
    }

    pub(crate) fn truth(&mut self, value: bool) -> Id {
        self.intern(Node::Truth(value))
    }

    pub(crate) fn unary(&mut self, op: Unary, a: Id) -> Id {
        match op {
            Unary::Negate => return self.negate(a),
            Unary::Not => return self.not(a),
            Unary::Log if self.is_stable => {
                if let Some(small) = self.beyond_one(a) {
                    return self.unary(Unary::Log1p, small);
                }
            }
            _ => {}
        }
        match self.value(a).map(|a| op.apply(a)) {
            Some(value) if value.is_finite() => self.constant(value),
            _ => self.intern(Node::Unary(op, a)),
        }
    }

    pub(crate) fn binary(&mut self, op: Binary, a: Id, b: Id) -> Id {
        match op {
            Binary::And | Binary::Or => return self.junction(op, a, b),
            Binary::Power => return self.power(a, b),
            Binary::Subtract if self.is_stable && self.value(b) == Some(1.0) => {
                if let Some(small) = self.beyond_one(a) {
                    return small;
                }
            }
            _ => {}
        }
        if let (Some(a), Some(b)) = (self.value(a), self.value(b)) {
            let value = op.apply(a, b);
            if op.is_comparison() {
                return self.truth(value != 0.0);
            } else if value.is_finite() {
                return self.constant(value);
            }
        } else {
            let simpler = match op {
                Binary::Add => self.simpler_sum(a, b),
                Binary::Subtract => self.simpler_difference(a, b),
                Binary::Multiply => self.simpler_product(a, b),
                Binary::Divide => self.simpler_quotient(a, b),
                _ => None,
            };
            if let Some(simpler) = simpler {
                return simpler;
            }
        }
        self.intern(Node::Binary(op, a, b))
    }

    pub(crate) fn add(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Add, a, b)
    }

    pub(crate) fn subtract(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Subtract, a, b)
    }

    pub(crate) fn multiply(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Multiply, a, b)
    }

    pub(crate) fn divide(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Divide, a, b)
    }

    pub(crate) fn negate(&mut self, a: Id) -> Id {
        match self.node(a) {
            Node::Constant(value) => return self.constant(-value.value()),
            Node::Unary(Unary::Negate, inner) => return inner,
            Node::Binary(Binary::Subtract, left, right) => return self.subtract(right, left),
            Node::Binary(op @ (Binary::Multiply | Binary::Divide), left, right) => {
                if let Some(factor) = self.value(left) {
                    let factor = self.constant(-factor);
                    return self.binary(op, factor, right);
                }
            }
            _ => {}
        }
        self.intern(Node::Unary(Unary::Negate, a))
    }

    /// `a^b`; integer exponents up to [`MAX_POWER`] and half of odd ones become nodes of their own.
    pub(crate) fn power(&mut self, a: Id, b: Id) -> Id {
        let (base, exponent) = (self.value(a), self.value(b));
        let integer_of = |n: f64| (n.trunc() == n && n.abs() <= f64::from(MAX_POWER)).then_some(n as i32);
        let integer = exponent.and_then(integer_of);
        let twice = exponent.and_then(|n| integer_of(2.0 * n));
        if let (Some(base), Some(exponent)) = (base, exponent) {
            let value = match (integer, twice) {
                (Some(n), _) => integer_power(base, n),
                (None, Some(twice)) => half_power(base, twice),
                (None, None) => base.powf(exponent),
            };
            if value.is_finite() {
                return self.constant(value);
            }
        }
        match (integer, base, exponent) {
            (Some(0), ..) | (_, Some(1.0), _) => self.constant(1.0),
            (Some(1), ..) => a,
            (Some(n), ..) => self.intern(Node::Power(a, n)),
            (None, Some(std::f64::consts::E), _) => self.unary(Unary::Exp, b),
            (None, _, Some(0.5)) => self.unary(Unary::Sqrt, a),
            _ => match twice {
                Some(twice) => self.intern(Node::HalfPower(a, twice)),
                None => self.intern(Node::Binary(Binary::Power, a, b)),
            },
        }
    }

    pub(crate) fn select(&mut self, condition: Id, a: Id, b: Id) -> Id {
        match self.node(condition) {
            Node::Truth(true) => a,
            Node::Truth(false) => b,
            _ if a == b => a,
            _ => self.intern(Node::Select(condition, a, b)),
        }
    }

    /// The a of a sum 1 + a.
    pub(crate) fn beyond_one(&self, id: Id) -> Option<Id> {
        match self.node(id) {
            Node::Binary(Binary::Add, one, a) if self.value(one) == Some(1.0) => Some(a),
            Node::Binary(Binary::Add, a, one) if self.value(one) == Some(1.0) => Some(a),
            _ => None,
        }
    }

    /// The number that a node is, if it is one.
    pub(crate) fn value(&self, id: Id) -> Option<f64> {
        match self.node(id) {
            Node::Constant(bits) => Some(bits.value()),
            _ => None,
        }
    }

    fn not(&mut self, a: Id) -> Id {
        match self.node(a) {
            Node::Truth(value) => self.truth(!value),
            Node::Unary(Unary::Not, inner) => inner,
            _ => self.intern(Node::Unary(Unary::Not, a)),
        }
    }

    /// `and`, `or`: a constant on one side either decides or disappears.
    fn junction(&mut self, op: Binary, a: Id, b: Id) -> Id {
        let deciding = op == Binary::Or;
        match (self.node(a), self.node(b)) {
            (Node::Truth(value), _) => {
                if value == deciding {
                    a
                } else {
                    b
                }
            }
            (_, Node::Truth(value)) => {
                if value == deciding {
                    b
                } else {
                    a
                }
            }
            _ if a == b => a,
            _ => self.intern(Node::Binary(op, a, b)),
        }
    }

    /// The operand without its minus sign: `-u`, `-c`, `-c·u` and `-c/u` give `u`, `c`, `c·u` and `c/u`.
    fn without_minus(&mut self, id: Id) -> Option<Id> {
        match self.node(id) {
            Node::Unary(Unary::Negate, inner) => Some(inner),
            Node::Constant(bits) if bits.value() < 0.0 => Some(self.negate(id)),
            Node::Binary(Binary::Multiply | Binary::Divide, left, _)
                if self.value(left).is_some_and(|c| c < 0.0) =>
            {
                Some(self.negate(id))
            }
            _ => None,
        }
    }

    fn simpler_sum(&mut self, a: Id, b: Id) -> Option<Id> {
        if self.value(a) == Some(0.0) {
            return Some(b);
        } else if self.value(b) == Some(0.0) {
            return Some(a);
        }
        if let Some(b) = self.without_minus(b) {
            return Some(self.subtract(a, b));
        }
        match self.node(a) {
            Node::Unary(Unary::Negate, a) => Some(self.subtract(b, a)),
            _ => None,
        }
    }

    fn simpler_difference(&mut self, a: Id, b: Id) -> Option<Id> {
        if self.value(a) == Some(0.0) {
            return Some(self.negate(b));
        } else if self.value(b) == Some(0.0) {
            return Some(a);
        }
        let b = self.without_minus(b)?;
        Some(self.add(a, b))
    }

    /// Constants go to the left, so that `2*x` and `x*2` are one node and chains of constants meet.
    fn simpler_product(&mut self, a: Id, b: Id) -> Option<Id> {
        let (factor, other) = match (self.value(a), self.value(b)) {
            (Some(factor), _) => (factor, b),
            (_, Some(factor)) => (factor, a),
            _ => return None,
        };
        if factor == 0.0 {
            return Some(self.constant(0.0));
        } else if factor == 1.0 {
            return Some(other);
        } else if factor == -1.0 {
            return Some(self.negate(other));
        }
        match self.node(other) {
            Node::Binary(Binary::Multiply, left, right) => {
                let product =
                    self.value(left).map(|inner| inner * factor).filter(|product| product.is_normal())?;
                let product = self.constant(product);
                Some(self.multiply(product, right))
            }
            Node::Unary(Unary::Negate, inner) => {
                let factor = self.constant(-factor);
                Some(self.multiply(factor, inner))
            }
            Node::Binary(Binary::Divide, ..) => None,
            _ if other == a => Some(self.multiply(b, a)),
            _ => None,
        }
    }

    fn simpler_quotient(&mut self, a: Id, b: Id) -> Option<Id> {
        if self.value(a) == Some(0.0) {
            return Some(a);
        }
        match self.value(b) {
            Some(1.0) => Some(a),
            Some(-1.0) => Some(self.negate(a)),
            _ => None,
        }
    }
}

impl Binary {
    /// Returns `true` for comparisons of two numbers.
    pub(crate) fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Less | Self::LessEqual | Self::Greater | Self::GreaterEqual | Self::Equal | Self::NotEqual
        )
    }
}

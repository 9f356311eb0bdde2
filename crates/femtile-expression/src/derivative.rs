//! Symbolic derivatives: the chain rule applied to every node once, from the leaves up.
//!
//! The result shares the parts of the original, so its graph is at most a small multiple of it.

use std::f64::consts::LN_10;

use crate::graph::{Builder, Graph};
use crate::node::{Binary, Id, Node, Unary, Variable};

/// Derivative of a graph by one variable.
///
/// # Cost
/// Linear in the number of nodes.
pub(crate) fn derivative(graph: &Graph, variable: Variable) -> Graph {
    let mut builder = Builder::default();
    let ids = builder.import(graph);
    // None is a derivative that is identically zero; truth values have none.
    let mut derivatives: Vec<Option<Id>> = Vec::with_capacity(ids.len());
    for (i, &node) in graph.nodes().iter().enumerate() {
        let at = |id: Id| Operand { value: ids[id as usize], derivative: derivatives[id as usize] };
        let derivative = match node {
            Node::Constant(_) | Node::Truth(_) => None,
            Node::Variable(other) => (other == variable).then(|| builder.constant(1.0)),
            Node::Unary(op, a) => unary(&mut builder, op, at(a), ids[i]),
            Node::Power(a, exponent) => integer_power(&mut builder, at(a), exponent),
            Node::Binary(op, a, b) => binary(&mut builder, op, at(a), at(b), ids[i]),
            Node::Select(condition, a, b) => select(&mut builder, ids[condition as usize], at(a), at(b)),
        };
        derivatives.push(derivative);
    }
    let root = derivatives.last().copied().flatten().unwrap_or_else(|| builder.constant(0.0));
    builder.finish(root)
}

/// An operand and its derivative.
#[derive(Clone, Copy)]
struct Operand {
    value: Id,
    derivative: Option<Id>,
}

/// Derivative of `op(a)`, whose own value is `whole`.
fn unary(builder: &mut Builder, op: Unary, a: Operand, whole: Id) -> Option<Id> {
    let inner = a.derivative?;
    let one = builder.constant(1.0);
    let factor = match op {
        Unary::Negate => return Some(builder.negate(inner)),
        Unary::Not | Unary::Sign | Unary::Floor | Unary::Ceil => return None,
        Unary::Sin => builder.unary(Unary::Cos, a.value),
        Unary::Cos => {
            let sine = builder.unary(Unary::Sin, a.value);
            builder.negate(sine)
        }
        Unary::Tan => {
            let square = square(builder, whole);
            builder.add(one, square)
        }
        Unary::Tanh => {
            let square = square(builder, whole);
            builder.subtract(one, square)
        }
        Unary::Sinh => builder.unary(Unary::Cosh, a.value),
        Unary::Cosh => builder.unary(Unary::Sinh, a.value),
        Unary::Exp => whole,
        Unary::Abs => builder.unary(Unary::Sign, a.value),
        Unary::Asin | Unary::Acos | Unary::Atan | Unary::Log | Unary::Log10 | Unary::Sqrt => {
            let divisor = reciprocal_slope(builder, op, a.value, whole);
            return Some(builder.divide(inner, divisor));
        }
    };
    Some(builder.multiply(factor, inner))
}

/// One over the slope of a function whose slope is a quotient.
fn reciprocal_slope(builder: &mut Builder, op: Unary, a: Id, whole: Id) -> Id {
    let one = builder.constant(1.0);
    match op {
        Unary::Asin | Unary::Acos => {
            let square = square(builder, a);
            let radicand = builder.subtract(one, square);
            let root = builder.unary(Unary::Sqrt, radicand);
            if op == Unary::Acos { builder.negate(root) } else { root }
        }
        Unary::Atan => {
            let square = square(builder, a);
            builder.add(one, square)
        }
        Unary::Log10 => {
            let factor = builder.constant(LN_10);
            builder.multiply(factor, a)
        }
        Unary::Sqrt => {
            let two = builder.constant(2.0);
            builder.multiply(two, whole)
        }
        _ => a,
    }
}

/// Derivative of `a^n`: `n·a^(n-1)·a'`.
fn integer_power(builder: &mut Builder, a: Operand, exponent: i32) -> Option<Id> {
    let inner = a.derivative?;
    let factor = builder.constant(f64::from(exponent));
    let lowered = builder.constant(f64::from(exponent - 1));
    let power = builder.power(a.value, lowered);
    let slope = builder.multiply(factor, power);
    Some(builder.multiply(slope, inner))
}

/// Derivative of `op(a, b)`, whose own value is `whole`.
fn binary(builder: &mut Builder, op: Binary, a: Operand, b: Operand, whole: Id) -> Option<Id> {
    match op {
        Binary::Add => sum(builder, a.derivative, b.derivative),
        Binary::Subtract => difference(builder, a.derivative, b.derivative),
        Binary::Multiply => {
            let left = a.derivative.map(|da| builder.multiply(da, b.value));
            let right = b.derivative.map(|db| builder.multiply(a.value, db));
            sum(builder, left, right)
        }
        Binary::Divide => {
            // (a' - (a/b)·b') / b keeps the quotient that is there anyway and cannot overflow in b².
            let correction = b.derivative.map(|db| builder.multiply(whole, db));
            let numerator = difference(builder, a.derivative, correction)?;
            Some(builder.divide(numerator, b.value))
        }
        Binary::Power => power(builder, a, b, whole),
        Binary::Atan2 => {
            let left = a.derivative.map(|da| builder.multiply(b.value, da));
            let right = b.derivative.map(|db| builder.multiply(a.value, db));
            let numerator = difference(builder, left, right)?;
            let (squared_a, squared_b) = (square(builder, a.value), square(builder, b.value));
            let radius = builder.add(squared_b, squared_a);
            Some(builder.divide(numerator, radius))
        }
        Binary::Hypot => {
            let left = a.derivative.map(|da| builder.multiply(a.value, da));
            let right = b.derivative.map(|db| builder.multiply(b.value, db));
            let numerator = sum(builder, left, right)?;
            Some(builder.divide(numerator, whole))
        }
        Binary::Min | Binary::Max => {
            let order = if op == Binary::Min { Binary::Less } else { Binary::Greater };
            let first = builder.binary(order, a.value, b.value);
            select(builder, first, a, b)
        }
        _ => None,
    }
}

/// Derivative of `a^b`: `b·a^(b-1)·a' + a^b·log(a)·b'`.
fn power(builder: &mut Builder, a: Operand, b: Operand, whole: Id) -> Option<Id> {
    let by_base = a.derivative.map(|da| {
        let one = builder.constant(1.0);
        let lowered = builder.subtract(b.value, one);
        let power = builder.power(a.value, lowered);
        let slope = builder.multiply(b.value, power);
        builder.multiply(slope, da)
    });
    let by_exponent = b.derivative.map(|db| {
        let logarithm = builder.unary(Unary::Log, a.value);
        let slope = builder.multiply(whole, logarithm);
        builder.multiply(slope, db)
    });
    sum(builder, by_base, by_exponent)
}

fn select(builder: &mut Builder, condition: Id, a: Operand, b: Operand) -> Option<Id> {
    if a.derivative.is_none() && b.derivative.is_none() {
        return None;
    }
    let zero = builder.constant(0.0);
    Some(builder.select(condition, a.derivative.unwrap_or(zero), b.derivative.unwrap_or(zero)))
}

fn square(builder: &mut Builder, a: Id) -> Id {
    let two = builder.constant(2.0);
    builder.power(a, two)
}

fn sum(builder: &mut Builder, a: Option<Id>, b: Option<Id>) -> Option<Id> {
    match (a, b) {
        (Some(a), Some(b)) => Some(builder.add(a, b)),
        (a, None) => a,
        (None, b) => b,
    }
}

fn difference(builder: &mut Builder, a: Option<Id>, b: Option<Id>) -> Option<Id> {
    match (a, b) {
        (Some(a), Some(b)) => Some(builder.subtract(a, b)),
        (None, Some(b)) => Some(builder.negate(b)),
        (a, None) => a,
    }
}

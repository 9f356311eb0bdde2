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
    let root = builder.import(graph)[graph.root() as usize];
    let by = builder.variable(variable);
    let slope = derivative_in(&mut builder, root, by);
    builder.finish(slope)
}

/// Derivative of one node of a builder by another: what is computed from `by` changes, all else is constant.
///
/// # Cost
/// Linear in the number of nodes before `of`.
pub(crate) fn derivative_in(builder: &mut Builder, of: Id, by: Id) -> Id {
    let one = builder.constant(1.0);
    directional_derivative_in(builder, of, &[(by, one)])
}

/// Derivative of one node along a direction: $\sum_i s_i\,\partial\,\mathrm{of} / \partial\,\mathrm{by}_i$ of pairs
/// $(\mathrm{by}_i, s_i)$, by one forward accumulation.
///
/// # Cost
/// Linear in the number of nodes before `of`.
pub(crate) fn directional_derivative_in(builder: &mut Builder, of: Id, direction: &[(Id, Id)]) -> Id {
    let needed = builder.ancestors(of);
    let seed = |id: Id| direction.iter().find(|(by, _)| *by == id).map(|(_, seed)| *seed);
    // None is a derivative that is identically zero; truth values have none.
    let mut derivatives: Vec<Option<Id>> = vec![None; needed.len()];
    for id in (0..=of).filter(|&id| needed[id as usize]) {
        let at = |id: Id| Operand { value: id, derivative: derivatives[id as usize] };
        derivatives[id as usize] = match builder.node(id) {
            _ if seed(id).is_some() => seed(id),
            Node::Constant(_) | Node::Truth(_) | Node::Variable(_) => None,
            Node::Unary(op, a) => unary(builder, op, at(a), id),
            Node::Power(a, exponent) => constant_power(builder, at(a), f64::from(exponent)),
            Node::HalfPower(a, twice) => constant_power(builder, at(a), 0.5 * f64::from(twice)),
            Node::Binary(op, a, b) => binary(builder, op, at(a), at(b), id),
            Node::Select(condition, a, b) => select(builder, condition, at(a), at(b)),
        };
    }
    derivatives[of as usize].unwrap_or_else(|| builder.constant(0.0))
}

/// Derivatives of one node by some others, none of which depends on another, by one reverse accumulation.
///
/// The rule of an operation is linear in the derivative of its operand, so that it gives the share of an operand where the
/// derivative of the whole takes its place.
///
/// # Cost
/// Linear in the number of nodes before `of`.
pub(crate) fn gradient_in(builder: &mut Builder, of: Id, by: &[Id]) -> Vec<Id> {
    let needed = builder.ancestors(of);
    let chooses = |node: Node| matches!(node, Node::Select(..) | Node::Binary(Binary::Min | Binary::Max, ..));
    // What a choice leaves out may have no value: its derivatives must stay inside of the choice, as forward accumulation has them.
    if (0..=of).any(|id| needed[id as usize] && chooses(builder.node(id))) {
        return by.iter().map(|&by| derivative_in(builder, of, by)).collect();
    }
    // None is a derivative that is identically zero.
    let mut wholes: Vec<Option<Id>> = vec![None; needed.len()];
    wholes[of as usize] = Some(builder.constant(1.0));
    for id in (0..=of).rev().filter(|&id| needed[id as usize]) {
        let Some(whole) = wholes[id as usize].filter(|_| !by.contains(&id)) else { continue };
        let moved = |value| Operand { value, derivative: Some(whole) };
        let still = |value| Operand { value, derivative: None };
        let shares = match builder.node(id) {
            Node::Constant(_) | Node::Truth(_) | Node::Variable(_) | Node::Select(..) => [None, None],
            Node::Unary(op, a) => [unary(builder, op, moved(a), id).map(|share| (a, share)), None],
            Node::Power(a, exponent) => {
                [constant_power(builder, moved(a), f64::from(exponent)).map(|share| (a, share)), None]
            }
            Node::HalfPower(a, twice) => {
                [constant_power(builder, moved(a), 0.5 * f64::from(twice)).map(|share| (a, share)), None]
            }
            Node::Binary(op, a, b) => [
                binary(builder, op, moved(a), still(b), id).map(|share| (a, share)),
                binary(builder, op, still(a), moved(b), id).map(|share| (b, share)),
            ],
        };
        for (operand, share) in shares.into_iter().flatten() {
            let at = operand as usize;
            wholes[at] = Some(wholes[at].map_or(share, |sum| builder.add(sum, share)));
        }
    }
    let zero = builder.constant(0.0);
    by.iter().map(|&id| wholes.get(id as usize).copied().flatten().unwrap_or(zero)).collect()
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
        Unary::Expm1 => builder.unary(Unary::Exp, a.value),
        Unary::Exprel => exprel_slope(builder, a.value, whole),
        Unary::Abs => builder.unary(Unary::Sign, a.value),
        Unary::Asin | Unary::Acos | Unary::Atan | Unary::Log | Unary::Log1p | Unary::Log10 | Unary::Sqrt => {
            let divisor = reciprocal_slope(builder, op, a.value, whole);
            return Some(builder.divide(inner, divisor));
        }
    };
    Some(builder.multiply(factor, inner))
}

/// Slope of (eᵃ − 1)/a, whose own value is `whole`: (eᵃ − `whole`)/a, near 0 the series Σ k aᵏ⁻¹/(k + 1)!.
fn exprel_slope(builder: &mut Builder, a: Id, whole: Id) -> Id {
    // Below this size of a the quotient loses more digits than the series leaves out.
    const NEAR: f64 = 0.5;
    const N_TERMS: u32 = 14;
    let exponential = builder.unary(Unary::Exp, a);
    let numerator = builder.subtract(exponential, whole);
    let quotient = builder.divide(numerator, a);
    let coefficient = |k: u32| f64::from(k) / (1..=k + 1).map(f64::from).product::<f64>();
    let mut series = builder.constant(coefficient(N_TERMS));
    for k in (1..N_TERMS).rev() {
        let product = builder.multiply(series, a);
        let coefficient = builder.constant(coefficient(k));
        series = builder.add(coefficient, product);
    }
    let (size, near) = (builder.unary(Unary::Abs, a), builder.constant(NEAR));
    let is_near = builder.binary(Binary::Less, size, near);
    builder.select(is_near, series, quotient)
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
        Unary::Log1p => builder.add(one, a),
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
fn constant_power(builder: &mut Builder, a: Operand, exponent: f64) -> Option<Id> {
    let inner = a.derivative?;
    let factor = builder.constant(exponent);
    let lowered = builder.constant(exponent - 1.0);
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

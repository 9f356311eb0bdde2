//! Divisions that become products.

use crate::graph::Builder;
use crate::node::{Binary, Id, Node};

/// Rewrites nodes and outputs: a/c is a·(1/c) for a constant c, and a/(c/b) is a·(1/c)·b; both within two units in the
/// last place of the quotient.
pub(super) fn avoid_divisions(nodes: &[Node], outputs: &[Id]) -> (Vec<Node>, Vec<Id>) {
    let mut builder = Builder::default();
    let mut ids: Vec<Id> = Vec::with_capacity(nodes.len());
    for &node in nodes {
        let id = match node.rename(|id| ids[id as usize]) {
            Node::Binary(Binary::Divide, a, b) => quotient(&mut builder, a, b),
            other => builder.make(other),
        };
        ids.push(id);
    }
    let outputs: Vec<Id> = outputs.iter().map(|&output| ids[output as usize]).collect();
    builder.prune(&outputs)
}

fn quotient(builder: &mut Builder, a: Id, b: Id) -> Id {
    let (divisor, factor) = match builder.node(b) {
        Node::Binary(Binary::Divide, c, factor) => (c, Some(factor)),
        _ => (b, None),
    };
    let reciprocal = match builder.node(divisor) {
        Node::Constant(bits) => Some(1.0 / bits.value()).filter(|reciprocal| reciprocal.is_normal()),
        _ => None,
    };
    let Some(reciprocal) = reciprocal else {
        return builder.divide(a, b);
    };
    let reciprocal = builder.constant(reciprocal);
    let product = builder.multiply(a, reciprocal);
    match factor {
        Some(factor) => builder.multiply(product, factor),
        None => product,
    }
}

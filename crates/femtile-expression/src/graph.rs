//! A finished expression: its nodes in the order of evaluation, every repeated part once.
//!
//! No tree is ever built, so nothing here or in what walks a graph recurses: a chain of ten thousand terms costs the
//! stack nothing. A back end (the tape today, a generated kernel later) is one pass over [`Graph::nodes`].

use std::collections::HashMap;
use std::sync::Arc;

use crate::node::{Id, Node, Variable, choose, integer_power};

/// Nodes in the order in which a walk of the expression from the left finishes them; the last is the whole.
///
/// The order depends on the expression alone, so equal graphs are equal expressions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Graph {
    nodes: Arc<[Node]>,
}

impl Graph {
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn root(&self) -> Id {
        (self.nodes.len() - 1) as Id
    }

    pub(crate) fn uses(&self, variable: Variable) -> bool {
        self.nodes.contains(&Node::Variable(variable))
    }

    /// Value at a point; conditions give 0 or 1.
    pub(crate) fn eval(&self, point: [f64; 3]) -> f64 {
        const SMALL: usize = 64;
        if self.nodes.len() <= SMALL {
            self.eval_in(point, &mut [0.0; SMALL])
        } else {
            self.eval_in(point, &mut vec![0.0; self.nodes.len()])
        }
    }

    fn eval_in(&self, point: [f64; 3], values: &mut [f64]) -> f64 {
        for (i, &node) in self.nodes.iter().enumerate() {
            let value = |id: Id| values[id as usize];
            values[i] = match node {
                Node::Constant(bits) => bits.value(),
                Node::Truth(truth) => choose(truth, 1.0, 0.0),
                // The time has no value until it is given one.
                Node::Variable(variable) => point.get(variable.index()).copied().unwrap_or(f64::NAN),
                Node::Unary(op, a) => op.apply(value(a)),
                Node::Power(a, exponent) => integer_power(value(a), exponent),
                Node::Binary(op, a, b) => op.apply(value(a), value(b)),
                Node::Select(condition, a, b) => choose(value(condition) != 0.0, value(a), value(b)),
            };
        }
        values[self.nodes.len() - 1]
    }
}

/// A graph under construction: equal nodes get the same id.
///
/// `simplify.rs` adds the methods that make nodes; [`Builder::intern`] stores one as it stands.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    nodes: Vec<Node>,
    ids: HashMap<Node, Id>,
}

impl Builder {
    pub(crate) fn node(&self, id: Id) -> Node {
        self.nodes[id as usize]
    }

    pub(crate) fn intern(&mut self, node: Node) -> Id {
        *self.ids.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            (self.nodes.len() - 1) as Id
        })
    }

    /// Copies every node of a finished graph; position `i` of the answer is where its node `i` now is.
    pub(crate) fn import(&mut self, graph: &Graph) -> Vec<Id> {
        let mut ids = Vec::with_capacity(graph.nodes.len());
        for node in graph.nodes.iter() {
            let id = self.intern(node.rename(|id| ids[id as usize]));
            ids.push(id);
        }
        ids
    }

    /// The graph of one node: what it does not need is left out, the rest renumbered.
    pub(crate) fn finish(&self, root: Id) -> Graph {
        let mut new_ids: Vec<Option<Id>> = vec![None; self.nodes.len()];
        let mut nodes = Vec::new();
        let mut pending = vec![root];
        while let Some(&id) = pending.last() {
            let node = self.nodes[id as usize];
            match node.operands().find(|&operand| new_ids[operand as usize].is_none()) {
                Some(operand) => pending.push(operand),
                None => {
                    if new_ids[id as usize].is_none() {
                        new_ids[id as usize] = Some(nodes.len() as Id);
                        nodes.push(node.rename(|old| new_ids[old as usize].unwrap_or(old)));
                    }
                    pending.pop();
                }
            }
        }
        Graph { nodes: nodes.into() }
    }
}

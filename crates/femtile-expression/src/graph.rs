//! A finished expression: its nodes in the order of evaluation, every repeated part once.
//!
//! No tree is ever built, so nothing here or in what walks a graph recurses: a chain of ten thousand terms costs the
//! stack nothing. A back end (the tape today, a generated kernel later) is one pass over [`Graph::nodes`].
//!
//! Derivatives, CUDA text and code each walk the graph once.

use std::collections::HashMap;
use std::sync::Arc;

use femtile_device::cpu::SimdLevel;

use crate::node::{Id, Node, Variable, choose, half_power, integer_power};

/// Nodes in the order in which a walk of the expression from the left finishes them; the last is the whole.
///
/// The order depends on the expression alone, so equal graphs are equal expressions. The names of other inputs are for
/// texts alone and do not enter comparisons.
#[derive(Debug, Clone)]
pub(crate) struct Graph {
    nodes: Arc<[Node]>,
    others: Arc<[String]>,
}

impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}

impl Graph {
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Names of the other inputs, by position.
    pub(crate) fn others(&self) -> &[String] {
        &self.others
    }

    /// A builder without nodes whose other inputs have the same names.
    pub(crate) fn empty_builder(&self) -> Builder {
        Builder { others: Arc::clone(&self.others), ..Builder::default() }
    }

    pub(crate) fn root(&self) -> Id {
        (self.nodes.len() - 1) as Id
    }

    pub(crate) fn uses(&self, variable: Variable) -> bool {
        self.nodes.contains(&Node::Variable(variable))
    }

    /// Value at a point; conditions give 0 or 1. Inputs that are not given have no value: NaN.
    pub(crate) fn eval(&self, point: [f64; 3], time: f64, others: &[f64]) -> f64 {
        const SMALL: usize = 64;
        let n = self.nodes.len();
        let mut many = Vec::new();
        let mut few = [0.0; SMALL];
        let values = if n <= SMALL {
            &mut few[..n]
        } else {
            many.resize(n, 0.0);
            &mut many[..]
        };
        evaluate(&self.nodes, point, time, others, values);
        values[n - 1]
    }
}

/// Computes the value of every node, in order.
pub(crate) fn evaluate(nodes: &[Node], point: [f64; 3], time: f64, others: &[f64], values: &mut [f64]) {
    // Elementary functions have fused multiply-adds.
    SimdLevel::Scalar.vectorize(
        #[inline(always)]
        || evaluate_all(nodes, point, time, others, values),
    );
}

#[inline(always)]
fn evaluate_all(nodes: &[Node], point: [f64; 3], time: f64, others: &[f64], values: &mut [f64]) {
    for (i, &node) in nodes.iter().enumerate() {
        let value = |id: Id| values[id as usize];
        values[i] = match node {
            Node::Constant(bits) => bits.value(),
            Node::Truth(truth) => choose(truth, 1.0, 0.0),
            Node::Variable(Variable::T) => time,
            Node::Variable(Variable::Other(position)) => {
                others.get(usize::from(position)).copied().unwrap_or(f64::NAN)
            }
            Node::Variable(variable) => point[variable.index()],
            Node::Unary(op, a) => op.apply(value(a)),
            Node::Power(a, exponent) => integer_power(value(a), exponent),
            Node::HalfPower(a, twice) => half_power(value(a), twice),
            Node::Binary(op, a, b) => op.apply(value(a), value(b)),
            Node::Select(condition, a, b) => choose(value(condition) != 0.0, value(a), value(b)),
        };
    }
}

/// A graph under construction: equal nodes get the same id.
///
/// `simplify.rs` adds the methods that make nodes; [`Builder::intern`] stores one as it stands.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    nodes: Vec<Node>,
    ids: HashMap<Node, Id>,
    /// Whether logarithms and differences of 1 + a are rewritten so that they keep the digits of a small a.
    pub(crate) is_stable: bool,
    /// Names of the other inputs; of several imported graphs the longest list.
    others: Arc<[String]>,
}

impl Builder {
    pub(crate) fn node(&self, id: Id) -> Node {
        self.nodes[id as usize]
    }

    /// Where a node stands, if there is one that is equal.
    pub(crate) fn find(&self, node: Node) -> Option<Id> {
        self.ids.get(&node).copied()
    }

    /// All nodes.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The number of nodes.
    pub(crate) fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn intern(&mut self, node: Node) -> Id {
        *self.ids.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            (self.nodes.len() - 1) as Id
        })
    }

    /// Copies every node of a finished graph; position `i` of the answer is where its node `i` now is.
    pub(crate) fn import(&mut self, graph: &Graph) -> Vec<Id> {
        if graph.others.len() > self.others.len() {
            self.others = Arc::clone(&graph.others);
        }
        let mut ids = Vec::with_capacity(graph.nodes.len());
        for node in graph.nodes.iter() {
            let id = self.intern(node.rename(|id| ids[id as usize]));
            ids.push(id);
        }
        ids
    }

    /// A builder that keeps the digits of small differences from 1.
    pub(crate) fn stable() -> Self {
        Self { is_stable: true, ..Self::default() }
    }

    /// A builder whose other inputs have these names.
    pub(crate) fn with_others(others: &[&str]) -> Self {
        Self { others: others.iter().map(|&name| name.to_owned()).collect(), ..Self::default() }
    }

    /// Which nodes the node `id` is computed from, itself included.
    pub(crate) fn ancestors(&self, id: Id) -> Vec<bool> {
        let mut needed = vec![false; id as usize + 1];
        needed[id as usize] = true;
        for id in (0..=id as usize).rev() {
            if needed[id] {
                self.nodes[id].operands().for_each(|operand| needed[operand as usize] = true);
            }
        }
        needed
    }

    /// The graph of one node.
    pub(crate) fn finish(&self, root: Id) -> Graph {
        let (nodes, _) = self.prune(&[root]);
        Graph { nodes: nodes.into(), others: Arc::clone(&self.others) }
    }

    /// The nodes that some roots need, renumbered in the order of a walk from the first root, and the roots among them.
    pub(crate) fn prune(&self, roots: &[Id]) -> (Vec<Node>, Vec<Id>) {
        let mut new_ids: Vec<Option<Id>> = vec![None; self.nodes.len()];
        let mut nodes = Vec::new();
        for &root in roots {
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
        }
        let roots = roots.iter().filter_map(|&root| new_ids[root as usize]).collect();
        (nodes, roots)
    }
}

//! Values of a builder as formulas for readers, with a line for each part that several of them share.

mod mathml;
mod symbol;

pub use symbol::Symbol;

use std::collections::HashMap;

use crate::display::write_node;
use crate::graph::Builder;
use crate::node::{Binary, Id, Node};
use crate::program::{ProgramBuilder, Value};
use mathml::Writer;

/// Lines beyond which formulas are not written.
const MAX_LINES: usize = 60;

/// Operations beyond which formulas are not written.
const MAX_OPERATIONS: usize = 400;

/// A part gets a line of its own if this spares at least this number of operations.
const WORTH: usize = 3;

/// Formulas of some values.
#[derive(Debug, Clone, PartialEq)]
pub struct Mathematics {
    /// Number of operations, those of shared parts counted once.
    pub n_operations: usize,
    /// A line for each value, after those of shared parts and definitions that it uses; none if there are too many to be read.
    pub lines: Option<Vec<Equality>>,
}

/// A name and the formula of its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Equality {
    /// The name.
    pub symbol: Symbol,
    /// The formula in the grammar of texts.
    pub text: String,
    /// The formula as one element of MathML.
    pub mathml: String,
}

/// The names that formulas may use.
#[derive(Debug, Clone, Copy)]
pub struct Notation<'a> {
    /// Those of the inputs of the builder.
    pub inputs: &'a [Symbol],
    /// Those of other values; where formulas contain one its name stands.
    pub definitions: &'a [(Symbol, Value)],
}

impl ProgramBuilder {
    /// Writes the formulas of values.
    ///
    /// Parts that are used several times have lines with names such as `a_1`. More than 60 lines or 400 operations are counted
    /// and not written.
    ///
    /// # Panics
    /// When there are fewer names than inputs.
    pub fn mathematics(&self, values: &[(Symbol, Value)], notation: Notation<'_>) -> Mathematics {
        let (builder, ids) = readable(self.builder.nodes());
        let nodes = builder.nodes();
        let id_of = |value: Value| ids[value.0 as usize];
        let mut uses = vec![0_usize; nodes.len()];
        values.iter().for_each(|(_, value)| uses[id_of(*value) as usize] += 1);
        for id in (0..nodes.len()).rev().filter(|&id| nodes[id].is_operation()) {
            if uses[id] > 0 {
                nodes[id].operands().for_each(|operand| uses[operand as usize] += 1);
            }
        }
        let is_written = |id: usize| uses[id] > 0 && nodes[id].is_operation();
        let n_operations = (0..nodes.len()).filter(|&id| is_written(id)).count();
        if n_operations > MAX_OPERATIONS {
            return Mathematics { n_operations, lines: None };
        }

        let mut symbols: HashMap<Id, Symbol> = HashMap::new();
        for (i, symbol) in notation.inputs.iter().enumerate() {
            symbols.insert(id_of(self.input(i)), symbol.clone());
        }
        for (symbol, value) in notation.definitions.iter().chain(values) {
            if is_written(id_of(*value) as usize) {
                symbols.entry(id_of(*value)).or_insert_with(|| symbol.clone());
            }
        }
        // Operations in the text of each node, up to names.
        let (mut sizes, mut is_part) = (vec![0_usize; nodes.len()], vec![false; nodes.len()]);
        for id in (0..nodes.len()).filter(|&id| is_written(id) && !symbols.contains_key(&(id as Id))) {
            let of_operands: usize = nodes[id].operands().map(|operand| sizes[operand as usize]).sum();
            let spared = (uses[id] - 1) * of_operands.saturating_add(1);
            is_part[id] = spared >= WORTH && of_operands > 0 && !nodes[id].is_condition();
            sizes[id] = if is_part[id] { 0 } else { of_operands.saturating_add(1) };
        }

        let letter = letter(values.iter().chain(notation.definitions).map(|(symbol, _)| symbol), &notation);
        let (mut order, mut n_parts) = (Vec::new(), 0);
        let mut has_line = vec![false; nodes.len()];
        for (symbol, value) in values {
            let root = id_of(*value);
            let needed = builder.ancestors(root);
            for id in (0..needed.len()).filter(|&id| needed[id] && is_written(id)) {
                if has_line[id] {
                    continue;
                }
                if is_part[id] {
                    n_parts += 1;
                    symbols.insert(id as Id, Symbol::new(format!("{letter}_{n_parts}")));
                }
                if let Some(own) = symbols.get(&(id as Id)) {
                    has_line[id] = true;
                    order.push((own.clone(), id as Id, true));
                }
            }
            if symbols.get(&root) != Some(symbol) || !nodes[root as usize].is_operation() {
                order.push((symbol.clone(), root, false));
            }
        }
        if order.len() > MAX_LINES {
            return Mathematics { n_operations, lines: None };
        }
        let texts: HashMap<Id, String> =
            symbols.iter().map(|(&id, symbol)| (id, symbol.to_string())).collect();
        let line = |(symbol, id, is_its_own): (Symbol, Id, bool)| {
            if let (false, Some(own)) = (is_its_own, symbols.get(&id)) {
                return Equality { symbol, text: texts[&id].clone(), mathml: own.mathml() };
            }
            let mut text = String::new();
            // Writing into a string does not fail.
            let _ = write_node(nodes, id, &|id| texts.get(&id).map(String::as_str), &mut text);
            Equality { symbol, text, mathml: Writer { nodes, symbols: &symbols }.formula(id) }
        };
        Mathematics { n_operations, lines: Some(order.into_iter().map(line).collect()) }
    }
}

/// Returns nodes with the same values up to rounding, and where each node is among them: with squares in place of a·a and 2a in place
/// of a + a, and without sums and products that differ in the order of their operands alone.
fn readable(nodes: &[Node]) -> (Builder, Vec<Id>) {
    let mut builder = Builder::default();
    let two = builder.constant(2.0);
    let mut ids: Vec<Id> = Vec::with_capacity(nodes.len());
    for &node in nodes {
        let node = node.rename(|id| ids[id as usize]);
        ids.push(match node {
            Node::Binary(Binary::Multiply, a, b) if a == b => builder.power(a, two),
            Node::Binary(Binary::Add, a, b) if a == b => builder.multiply(two, a),
            other => exchanged(&builder, other).unwrap_or_else(|| builder.make(other)),
        });
    }
    (builder, ids)
}

/// Returns the sum or product with the operands in the other order, if there is one.
fn exchanged(builder: &Builder, node: Node) -> Option<Id> {
    match node {
        Node::Binary(op @ (Binary::Add | Binary::Multiply), a, b) => builder.find(Node::Binary(op, b, a)),
        _ => None,
    }
}

/// Returns a letter for names of parts, `a_1`, `a_2` …, that no other names begin with.
fn letter<'a>(symbols: impl Iterator<Item = &'a Symbol>, notation: &Notation<'a>) -> char {
    let names: Vec<&str> = symbols.chain(notation.inputs).map(Symbol::name).collect();
    let is_free = |letter: &char| !names.iter().any(|name| name.starts_with(&format!("{letter}_")));
    ('a'..='z').find(is_free).unwrap_or('a')
}

//! Printing nodes as text that parses back to equal ones.

use std::f64::consts;
use std::fmt;

use crate::function::Meaning;
use crate::graph::Graph;
use crate::node::{Binary, Id, Node, Unary, Variable};
use crate::parser::{MAX_TERMS, PRIMARY};

/// The stack of parts to write.
enum Pending<'t> {
    Text(&'t str),
    Number(f64),
    Exponent(f64),
    /// A node, in parentheses if it binds less tightly than the number says.
    Node(Id, u8),
}

/// Writes the graph as a tree; a shared node is written wherever it is used.
pub(crate) fn write(graph: &Graph, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let label = |id: Id| match graph.nodes()[id as usize] {
        Node::Variable(Variable::Other(position)) => {
            graph.others().get(usize::from(position)).map(String::as_str)
        }
        _ => None,
    };
    write_node(graph.nodes(), graph.root(), &label, f)
}

/// Writes what a node computes, with the label of each operand that has one in place of what that computes.
///
/// Without recursion, since a chain is as deep as it is long. A tree whose text would hold more operands than the
/// parser takes (a derivative may, its tree being much larger than its graph) ends in `…`.
pub(crate) fn write_node<'t>(
    nodes: &[Node],
    root: Id,
    label: &dyn Fn(Id) -> Option<&'t str>,
    out: &mut dyn fmt::Write,
) -> fmt::Result {
    let mut pending = vec![Pending::Node(root, 0)];
    let mut n_written = 0;
    while let Some(next) = pending.pop() {
        match next {
            Pending::Text(text) => out.write_str(text)?,
            Pending::Number(value) => write_number(value, out)?,
            Pending::Exponent(exponent) => write!(out, "^{exponent}")?,
            Pending::Node(id, tightness) => {
                n_written += 1;
                if n_written > MAX_TERMS {
                    return out.write_str("…");
                }
                let node = nodes[id as usize];
                let is_leaf = matches!(node, Node::Variable(_));
                if let Some(label) = label(id).filter(|_| id != root || is_leaf) {
                    out.write_str(label)?;
                    continue;
                }
                let first = pending.len();
                if precedence(node) < tightness {
                    pending.push(Pending::Text("("));
                    expand(node, &mut pending);
                    pending.push(Pending::Text(")"));
                } else {
                    expand(node, &mut pending);
                }
                pending[first..].reverse();
            }
        }
    }
    Ok(())
}

/// Pushes the parts of a node in the order in which they are read.
fn expand(node: Node, parts: &mut Vec<Pending<'_>>) {
    use Pending::{Exponent, Number, Text};
    match node {
        Node::Constant(bits) => parts.push(Number(bits.value())),
        Node::Truth(value) => parts.push(Text(Meaning::Truth(value).name())),
        Node::Variable(variable) => parts.push(Text(variable.name())),
        Node::Power(base, exponent) => {
            parts
                .extend([Pending::Node(base, Binary::Power.precedence() + 1), Exponent(f64::from(exponent))]);
        }
        Node::HalfPower(base, twice) => {
            parts.extend([
                Pending::Node(base, Binary::Power.precedence() + 1),
                Exponent(0.5 * f64::from(twice)),
            ]);
        }
        Node::Unary(Unary::Negate, a) => {
            parts.extend([Text("-"), Pending::Node(a, Binary::Power.precedence())]);
        }
        Node::Unary(Unary::Not, a) => {
            parts.extend([Text("not "), Pending::Node(a, Unary::Not.precedence())]);
        }
        Node::Unary(op, a) => call(Meaning::Unary(op), &[a], parts),
        Node::Select(condition, a, b) => call(Meaning::If, &[condition, a, b], parts),
        Node::Binary(op, a, b) => match symbol(op) {
            None => call(function(op), &[a, b], parts),
            Some(symbol) => {
                let tightness = op.precedence();
                // Comparisons would be read as a chain, `^` groups from the right, all others from the left.
                let (left, right) = match op {
                    Binary::Power => (tightness + 1, Unary::Negate.precedence()),
                    _ if op.is_comparison() => (tightness + 1, tightness + 1),
                    _ => (tightness, tightness + 1),
                };
                parts.extend([Pending::Node(a, left), Text(symbol), Pending::Node(b, right)]);
            }
        },
    }
}

fn call(function: Meaning, arguments: &[Id], parts: &mut Vec<Pending<'_>>) {
    parts.push(Pending::Text(function.name()));
    for (i, &argument) in arguments.iter().enumerate() {
        parts.push(Pending::Text(if i == 0 { "(" } else { ", " }));
        parts.push(Pending::Node(argument, 0));
    }
    parts.push(Pending::Text(")"));
}

fn function(op: Binary) -> Meaning {
    match op {
        Binary::Min | Binary::Max => Meaning::Fold(op),
        _ => Meaning::Binary(op),
    }
}

fn symbol(op: Binary) -> Option<&'static str> {
    Some(match op {
        Binary::Add => " + ",
        Binary::Subtract => " - ",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Power => "^",
        Binary::Less => " < ",
        Binary::LessEqual => " <= ",
        Binary::Greater => " > ",
        Binary::GreaterEqual => " >= ",
        Binary::Equal => " == ",
        Binary::NotEqual => " != ",
        Binary::And => " and ",
        Binary::Or => " or ",
        Binary::Atan2 | Binary::Hypot | Binary::Min | Binary::Max => return None,
    })
}

/// The shortest digits that parse to the same bits, or the name of the constant.
fn write_number(value: f64, out: &mut dyn fmt::Write) -> fmt::Result {
    let size = value.abs();
    if size == consts::PI || size == consts::E {
        let name = Meaning::Constant(size).name();
        return write!(out, "{}{name}", if value < 0.0 { "-" } else { "" });
    }
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        write!(out, "{value:e}")
    } else {
        write!(out, "{value}")
    }
}

fn precedence(node: Node) -> u8 {
    match node {
        Node::Constant(bits) if bits.value().is_sign_negative() => Unary::Negate.precedence(),
        Node::Constant(_) | Node::Truth(_) | Node::Variable(_) | Node::Select(..) => PRIMARY,
        Node::Unary(op, _) => op.precedence(),
        Node::Power(..) | Node::HalfPower(..) => Binary::Power.precedence(),
        Node::Binary(op, ..) => op.precedence(),
    }
}

//! Text of CUDA C from a graph: one statement a node, in the order of evaluation.

use std::fmt::Write;

use crate::graph::{Builder, Graph};
use crate::node::{Binary, Id, Node, Unary, Variable};

/// Functions that the text calls besides those of the mathematical library.
pub(crate) const HEADER: &str = include_str!("operations.cuh");

/// A function that gives the value of a graph.
pub(crate) fn function(name: &str, graph: &Graph) -> String {
    let (statements, roots) = statements(&[graph]);
    let time = time_parameter(&[graph]);
    format!(
        "__device__ __forceinline__ double {name}(double x, double y, double z{time}) {{\n{statements}    return {};\n}}\n",
        value(roots[0])
    )
}

/// A function that puts the values of several graphs into an array, what they share computed once.
pub(crate) fn array_function(name: &str, graphs: &[&Graph]) -> String {
    let (statements, roots) = statements(graphs);
    let time = time_parameter(graphs);
    let mut text = format!(
        "__device__ __forceinline__ void {name}(double* out, double x, double y, double z{time}) {{\n{statements}"
    );
    for (i, &root) in roots.iter().enumerate() {
        let _ = writeln!(text, "    out[{i}] = {};", value(root));
    }
    text.push_str("}\n");
    text
}

/// The parameter that a function of some graphs has besides the coordinates.
fn time_parameter(graphs: &[&Graph]) -> &'static str {
    if graphs.iter().any(|graph| graph.uses(Variable::T)) { ", double t" } else { "" }
}

/// The statements that compute some graphs, and which node is the value of each.
fn statements(graphs: &[&Graph]) -> (String, Vec<Id>) {
    let mut builder = Builder::default();
    let ids: Vec<Vec<Id>> = graphs.iter().map(|graph| builder.import(graph)).collect();
    let n_nodes = ids.iter().flatten().max().map_or(0, |&last| last + 1);
    let mut text = String::new();
    for id in 0..n_nodes {
        let right = right_side(id, builder.node(id), &mut text);
        let _ = writeln!(text, "    const double {} = {right};", value(id));
    }
    let roots = ids.iter().filter_map(|ids| ids.last().copied());
    (text, roots.collect())
}

/// The variable that holds the value of a node.
fn value(id: Id) -> String {
    format!("node_{id}")
}

/// Returns the expression of a node in terms of earlier nodes; auxiliary statements go to `text`.
fn right_side(id: Id, node: Node, text: &mut String) -> String {
    match node {
        Node::Constant(bits) => literal(bits.value()),
        Node::Truth(truth) => literal(f64::from(u8::from(truth))),
        Node::Variable(variable) => variable.name().into(),
        Node::Unary(op, a) => unary(op, &value(a)),
        Node::Power(a, exponent) => power(id, &value(a), exponent, text),
        Node::Binary(op, a, b) => binary(op, &value(a), &value(b)),
        Node::Select(condition, a, b) => {
            format!("{} != 0.0 ? {} : {}", value(condition), value(a), value(b))
        }
    }
}

/// A number that the compiler reads as the same bits.
fn literal(value: f64) -> String {
    if value.is_nan() {
        "(0.0 / 0.0)".into()
    } else if value.is_infinite() {
        if value > 0.0 { "(1.0 / 0.0)".into() } else { "(-1.0 / 0.0)".into() }
    } else {
        format!("{value:e}")
    }
}

fn truth(condition: &str) -> String {
    format!("{condition} ? 1.0 : 0.0")
}

fn unary(op: Unary, a: &str) -> String {
    let function = match op {
        Unary::Negate => return format!("-{a}"),
        Unary::Not => return truth(&format!("{a} == 0.0")),
        Unary::Sin => "sin",
        Unary::Cos => "cos",
        Unary::Tan => "tan",
        Unary::Asin => "asin",
        Unary::Acos => "acos",
        Unary::Atan => "atan",
        Unary::Sinh => "sinh",
        Unary::Cosh => "cosh",
        Unary::Tanh => "tanh",
        Unary::Exp => "exp",
        Unary::Log => "log",
        Unary::Log10 => "log10",
        Unary::Sqrt => "sqrt",
        Unary::Abs => "fabs",
        Unary::Sign => "expression_sign",
        Unary::Floor => "floor",
        Unary::Ceil => "ceil",
    };
    format!("{function}({a})")
}

fn binary(op: Binary, a: &str, b: &str) -> String {
    let function = match op {
        Binary::Add => return format!("{a} + {b}"),
        Binary::Subtract => return format!("{a} - {b}"),
        Binary::Divide => return format!("{a} / {b}"),
        Binary::Less => return truth(&format!("{a} < {b}")),
        Binary::LessEqual => return truth(&format!("{a} <= {b}")),
        Binary::Greater => return truth(&format!("{a} > {b}")),
        Binary::GreaterEqual => return truth(&format!("{a} >= {b}")),
        Binary::Equal => return truth(&format!("expression_equal({a}, {b})")),
        Binary::NotEqual => return truth(&format!("!expression_equal({a}, {b})")),
        Binary::And => return truth(&format!("{a} != 0.0 && {b} != 0.0")),
        Binary::Or => return truth(&format!("{a} != 0.0 || {b} != 0.0")),
        Binary::Multiply => "expression_product",
        Binary::Power => "pow",
        Binary::Atan2 => "atan2",
        Binary::Hypot => "hypot",
        Binary::Min => "expression_min",
        Binary::Max => "expression_max",
    };
    format!("{function}({a}, {b})")
}

/// The products of [`integer_power`](crate::node::integer_power), in the same order.
fn power(id: Id, base: &str, exponent: i32, text: &mut String) -> String {
    let mut square = base.to_string();
    let mut product: Option<String> = None;
    let mut rest = exponent.unsigned_abs();
    let mut n_products = 0;
    let mut multiply = |a: &str, b: &str| {
        let name = format!("{}_{n_products}", value(id));
        n_products += 1;
        let _ = writeln!(text, "    const double {name} = expression_product({a}, {b});");
        name
    };
    while rest > 0 {
        if rest & 1 == 1 {
            product = Some(match product {
                Some(product) => multiply(&product, &square),
                None => square.clone(),
            });
        }
        rest >>= 1;
        if rest > 0 {
            square = multiply(&square, &square);
        }
    }
    let product = product.unwrap_or_else(|| literal(1.0));
    if exponent < 0 { format!("1.0 / {product}") } else { product }
}

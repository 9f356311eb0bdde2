//! Text of CUDA C from a graph: one statement a node, in the order of evaluation.

use std::fmt::Write;

use crate::graph::{Builder, Graph};
use crate::node::{Binary, Id, Node, Unary, Variable};
use crate::program::Precision;

/// Functions that the text calls besides those of the mathematical library.
pub(crate) const HEADER: &str = include_str!("operations.cuh");

/// A function that gives the value of a graph.
pub(crate) fn function(name: &str, graph: &Graph) -> String {
    let (statements, roots) = statements(&[graph]);
    let more = more_parameters(&[graph]);
    format!(
        "__device__ __forceinline__ double {name}(double x, double y, double z{more}) {{\n{statements}    return {};\n}}\n",
        value(roots[0])
    )
}

/// A function that puts the values of several graphs into an array, what they share computed once.
pub(crate) fn array_function(name: &str, graphs: &[&Graph]) -> String {
    let (statements, roots) = statements(graphs);
    let more = more_parameters(graphs);
    let mut text = format!(
        "__device__ __forceinline__ void {name}(double* out, double x, double y, double z{more}) {{\n{statements}"
    );
    for (i, &root) in roots.iter().enumerate() {
        let _ = writeln!(text, "    out[{i}] = {};", value(root));
    }
    text.push_str("}\n");
    text
}

/// The parameters that a function of some graphs has besides the coordinates.
fn more_parameters(graphs: &[&Graph]) -> String {
    let uses_time = graphs.iter().any(|graph| graph.uses(Variable::T));
    let mut text = String::from(if uses_time { ", double t" } else { "" });
    for i in 0..graphs.iter().map(|graph| graph.others().len()).max().unwrap_or(0) {
        let _ = write!(text, ", double other_{i}");
    }
    text
}

/// A function that puts the values of some nodes into an array, with inputs from another.
pub(crate) fn program_function(name: &str, nodes: &[Node], outputs: &[Id], precision: Precision) -> String {
    let style = Style::Program(precision);
    let number = style.number();
    let mut text = format!("__device__ __forceinline__ void {name}({number}* out, const {number}* in) {{\n");
    for (id, &node) in (0..).zip(nodes) {
        style.statement(id, node, &mut text);
    }
    for (i, &root) in outputs.iter().enumerate() {
        let _ = writeln!(text, "    out[{i}] = {};", value(root));
    }
    text.push_str("}\n");
    text
}

/// The statements that compute some graphs, and which node is the value of each.
fn statements(graphs: &[&Graph]) -> (String, Vec<Id>) {
    let mut builder = Builder::default();
    let ids: Vec<Vec<Id>> = graphs.iter().map(|graph| builder.import(graph)).collect();
    let n_nodes = ids.iter().flatten().max().map_or(0, |&last| last + 1);
    let mut text = String::new();
    for id in 0..n_nodes {
        Style::Expression.statement(id, builder.node(id), &mut text);
    }
    let roots = ids.iter().filter_map(|ids| ids.last().copied());
    (text, roots.collect())
}

/// The variable that holds the value of a node.
fn value(id: Id) -> String {
    format!("node_{id}")
}

/// The numbers, inputs and products of a function.
#[derive(Clone, Copy)]
enum Style {
    /// `double`; inputs are parameters; products are rounded before anything is added to them.
    Expression,
    /// Inputs are entries of `in`; products may be fused with sums.
    Program(Precision),
}

impl Style {
    fn is_single(self) -> bool {
        matches!(self, Self::Program(Precision::F32))
    }

    fn number(self) -> &'static str {
        if self.is_single() { "float" } else { "double" }
    }

    /// The name of a function of the mathematical library.
    fn library(self, name: &str) -> String {
        if self.is_single() { format!("{name}f") } else { name.into() }
    }

    /// Writes the statements that give a node its value in terms of earlier nodes.
    fn statement(self, id: Id, node: Node, text: &mut String) {
        let right = match node {
            Node::Constant(bits) => self.literal(bits.value()),
            Node::Truth(truth) => self.literal(f64::from(u8::from(truth))),
            Node::Variable(Variable::Other(position)) => match self {
                Self::Expression => format!("other_{position}"),
                Self::Program(_) => format!("in[{position}]"),
            },
            Node::Variable(variable) => variable.name().into(),
            Node::Unary(op, a) => self.unary(op, &value(a)),
            Node::Power(a, exponent) => self.power(id, &value(a), exponent, text),
            Node::HalfPower(a, twice) => self.half_power(id, &value(a), twice, text),
            Node::Binary(op, a, b) => self.binary(op, &value(a), &value(b)),
            Node::Select(condition, a, b) => {
                format!("{} != 0 ? {} : {}", value(condition), value(a), value(b))
            }
        };
        let _ = writeln!(text, "    const {} {} = {right};", self.number(), value(id));
    }

    /// A number that the compiler reads as the same bits, or as the nearest `float`.
    fn literal(self, value: f64) -> String {
        let suffix = if self.is_single() { "f" } else { "" };
        let value = if self.is_single() { f64::from(value as f32) } else { value };
        if value.is_nan() {
            format!("(0.0{suffix} / 0.0{suffix})")
        } else if value.is_infinite() {
            format!("({}1.0{suffix} / 0.0{suffix})", if value > 0.0 { "" } else { "-" })
        } else {
            format!("{value:e}{suffix}")
        }
    }

    fn truth(self, condition: &str) -> String {
        format!("{condition} ? {} : {}", self.literal(1.0), self.literal(0.0))
    }

    fn product(self, a: &str, b: &str) -> String {
        match self {
            Self::Expression => format!("expression_product({a}, {b})"),
            Self::Program(_) => format!("{a} * {b}"),
        }
    }

    fn unary(self, op: Unary, a: &str) -> String {
        let function = match op {
            Unary::Negate => return format!("-{a}"),
            Unary::Not => return self.truth(&format!("{a} == 0")),
            Unary::Sign => return format!("expression_sign({a})"),
            Unary::Exprel => return format!("expression_exprel({a})"),
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
            Unary::Expm1 => "expm1",
            Unary::Log => "log",
            Unary::Log1p => "log1p",
            Unary::Log10 => "log10",
            Unary::Sqrt => "sqrt",
            Unary::Abs => "fabs",
            Unary::Floor => "floor",
            Unary::Ceil => "ceil",
        };
        format!("{}({a})", self.function(function))
    }

    /// The name of a function: of a fast one of the header, where programs have one.
    fn function(self, name: &str) -> String {
        match (self, name) {
            (Self::Program(_), "exp" | "expm1" | "log") => format!("expression_{name}"),
            _ => self.library(name),
        }
    }

    fn quotient(self, a: &str, b: &str) -> String {
        match self {
            Self::Expression => format!("{a} / {b}"),
            Self::Program(_) => format!("expression_quotient({a}, {b})"),
        }
    }

    fn binary(self, op: Binary, a: &str, b: &str) -> String {
        let function = match op {
            Binary::Add => return format!("{a} + {b}"),
            Binary::Subtract => return format!("{a} - {b}"),
            Binary::Multiply => return self.product(a, b),
            Binary::Divide => return self.quotient(a, b),
            Binary::Less => return self.truth(&format!("{a} < {b}")),
            Binary::LessEqual => return self.truth(&format!("{a} <= {b}")),
            Binary::Greater => return self.truth(&format!("{a} > {b}")),
            Binary::GreaterEqual => return self.truth(&format!("{a} >= {b}")),
            Binary::Equal => return self.truth(&format!("expression_equal({a}, {b})")),
            Binary::NotEqual => return self.truth(&format!("!expression_equal({a}, {b})")),
            Binary::And => return self.truth(&format!("{a} != 0 && {b} != 0")),
            Binary::Or => return self.truth(&format!("{a} != 0 || {b} != 0")),
            Binary::Min => return format!("expression_min({a}, {b})"),
            Binary::Max => return format!("expression_max({a}, {b})"),
            Binary::Power => "pow",
            Binary::Atan2 => "atan2",
            Binary::Hypot => "hypot",
        };
        format!("{}({a}, {b})", self.library(function))
    }

    /// The products of [`integer_power`](crate::node::integer_power), in the same order.
    fn power(self, id: Id, base: &str, exponent: i32, text: &mut String) -> String {
        let product = self.products(id, base, exponent.unsigned_abs(), text);
        self.reciprocal_of(product, exponent < 0)
    }

    /// The root and products of [`half_power`](crate::node::half_power), in the same order.
    fn half_power(self, id: Id, base: &str, twice: i32, text: &mut String) -> String {
        let root = self.define(id, "root", &self.unary(Unary::Sqrt, base), text);
        let product = match (twice.unsigned_abs() - 1) / 2 {
            0 => root,
            n => {
                let power = self.products(id, base, n, text);
                self.define(id, "product", &self.product(&power, &root), text)
            }
        };
        self.reciprocal_of(product, twice < 0)
    }

    fn reciprocal_of(self, product: String, is_reciprocal: bool) -> String {
        if is_reciprocal { self.quotient(&self.literal(1.0), &product) } else { product }
    }

    fn products(self, id: Id, base: &str, exponent: u32, text: &mut String) -> String {
        let mut square = base.to_string();
        let mut product: Option<String> = None;
        let mut rest = exponent;
        let mut n_products = 0;
        let mut multiply = |a: &str, b: &str| {
            n_products += 1;
            self.define(id, &(n_products - 1).to_string(), &self.product(a, b), text)
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
        product.unwrap_or_else(|| self.literal(1.0))
    }

    /// Writes the statement of an auxiliary variable of a node and returns its name.
    fn define(self, id: Id, suffix: &str, right: &str, text: &mut String) -> String {
        let name = format!("{}_{suffix}", value(id));
        let _ = writeln!(text, "    const {} {name} = {right};", self.number());
        name
    }
}

//! Formulas as MathML, which browsers show without a library.

use std::collections::HashMap;
use std::f64::consts;

use super::Symbol;
use crate::function::Meaning;
use crate::node::{Binary, Id, Node, Unary};
use crate::parser::PRIMARY;

/// How tightly parts bind; less tightly than their place asks for they stand in parentheses.
const CHOICE: u8 = 0;
const SUM: u8 = 5;
/// With a sign in front.
const SIGNED: u8 = 6;
const PRODUCT: u8 = 7;
/// A fraction or a power needs parentheses as the base of a power alone.
const FRACTION: u8 = 8;

const MINUS: &str = "<mo>−</mo>";

/// Denominators of constants that are written as fractions.
const DENOMINATORS: std::ops::Range<u32> = 2..100;

/// Greek letters by their names. Other names, `eps` or `lam`, stay as they are, as two names must not look the same.
const GREEK: [(&str, &str); 26] = [
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("epsilon", "ε"),
    ("zeta", "ζ"),
    ("eta", "η"),
    ("theta", "θ"),
    ("kappa", "κ"),
    ("lambda", "λ"),
    ("mu", "μ"),
    ("nu", "ν"),
    ("xi", "ξ"),
    ("rho", "ρ"),
    ("sigma", "σ"),
    ("tau", "τ"),
    ("phi", "φ"),
    ("chi", "χ"),
    ("psi", "ψ"),
    ("omega", "ω"),
    ("Gamma", "Γ"),
    ("Delta", "Δ"),
    ("Lambda", "Λ"),
    ("Phi", "Φ"),
    ("Psi", "Ψ"),
    ("Omega", "Ω"),
];

/// Returns a name as one element, with what stands behind its last `_` and with indices as subscripts.
pub(super) fn identifier(name: &str, indices: &str) -> String {
    let stem = name.rsplit_once('_').filter(|(base, _)| !base.is_empty() && !base.contains('_'));
    let (base, subscript) = match stem {
        Some((base, subscript)) if !subscript.is_empty() && subscript.len() <= 4 => (base, subscript),
        _ => (name, ""),
    };
    let greek = |name: &str| GREEK.iter().find(|(latin, _)| *latin == name).map(|(_, greek)| *greek);
    let element = |name: &str| match greek(name) {
        Some(letter) => format!("<mi>{letter}</mi>"),
        None if name.bytes().all(|byte| byte.is_ascii_digit()) => format!("<mn>{name}</mn>"),
        None => format!("<mi>{}</mi>", escape(name)),
    };
    match (subscript, indices) {
        ("", "") => element(base),
        ("", indices) => format!("<msub>{}{}</msub>", element(base), row(indices)),
        (subscript, "") => format!("<msub>{}{}</msub>", element(base), element(subscript)),
        (subscript, indices) => {
            let subscript = row(&format!("{}<mo>,</mo>{indices}", element(subscript)));
            format!("<msub>{}{subscript}</msub>", element(base))
        }
    }
}

/// Returns elements as one.
pub(super) fn row(elements: &str) -> String {
    format!("<mrow>{elements}</mrow>")
}

/// Returns a number that is not negative.
pub(super) fn number(value: f64) -> String {
    if value == consts::PI || value == consts::E {
        return format!("<mi>{}</mi>", if value == consts::PI { "π" } else { "e" });
    }
    let digits = format!("{value}");
    if digits.len() <= 6 {
        return format!("<mn>{digits}</mn>");
    }
    if let Some((numerator, denominator)) = fraction(value) {
        return format!("<mfrac><mn>{numerator}</mn><mn>{denominator}</mn></mfrac>");
    }
    if (1e-4..1e9).contains(&value) {
        return format!("<mn>{digits}</mn>");
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent = match exponent.strip_prefix('-') {
        Some(exponent) => row(&format!("{MINUS}<mn>{exponent}</mn>")),
        None => format!("<mn>{exponent}</mn>"),
    };
    let power = format!("<msup><mn>10</mn>{exponent}</msup>");
    if digits == "1" { power } else { row(&format!("<mn>{digits}</mn><mo>·</mo>{power}")) }
}

/// Returns the fraction of small numbers that a number is to the bit.
fn fraction(value: f64) -> Option<(f64, u32)> {
    let mut all = DENOMINATORS.map(|denominator| ((value * f64::from(denominator)).round(), denominator));
    all.find(|&(numerator, denominator)| {
        (1.0..1000.0).contains(&numerator) && numerator / f64::from(denominator) == value
    })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Elements of MathML, and how tightly they bind.
struct Part {
    elements: String,
    tightness: u8,
}

impl Part {
    fn new(elements: String, tightness: u8) -> Self {
        Self { elements, tightness }
    }

    /// Returns its elements, in parentheses if they bind less tightly than their place asks for.
    fn at(self, tightness: u8) -> String {
        if self.tightness < tightness { parentheses(&self.elements) } else { self.elements }
    }

    fn fraction(numerator: Self, denominator: Self) -> Self {
        let [above, below] = [numerator, denominator].map(|part| row(&part.elements));
        Self::new(format!("<mfrac>{above}{below}</mfrac>"), FRACTION)
    }

    fn power(self, exponent: &str) -> Self {
        Self::new(format!("<msup>{}{}</msup>", row(&self.at(PRIMARY)), row(exponent)), FRACTION)
    }

    fn root(self) -> Self {
        Self::new(format!("<msqrt>{}</msqrt>", self.elements), PRIMARY)
    }

    fn one() -> Self {
        Self::new("<mn>1</mn>".to_owned(), PRIMARY)
    }

    fn product(self, right: Self) -> Self {
        let (left, right) = (self.at(SIGNED), right.at(PRODUCT));
        let begins_with_digits = right.trim_start_matches("<mrow>").trim_start_matches("<msup>");
        let begins_with_digits = begins_with_digits.trim_start_matches("<mrow>").starts_with("<mn>");
        let times = if begins_with_digits {
            "<mo>·</mo>"
        } else {
            "<mo>\u{2062}</mo><mspace width=\"0.17em\"></mspace>"
        };
        let tightness = if left.starts_with(MINUS) { SIGNED } else { PRODUCT };
        Self::new(format!("{left}{times}{right}"), tightness)
    }

    /// Returns the sum; what begins with a sign is taken away.
    fn sum(self, right: Self) -> Self {
        let (left, right) = (self.at(SUM), right.at(SUM));
        let sign = if right.starts_with(MINUS) { "" } else { "<mo>+</mo>" };
        Self::new(format!("{left}{sign}{right}"), SUM)
    }

    fn difference(self, right: Self) -> Self {
        Self::new(format!("{}{MINUS}{}", self.at(SUM), right.at(PRODUCT)), SUM)
    }
}

fn parentheses(elements: &str) -> String {
    row(&format!("<mo>(</mo>{elements}<mo>)</mo>"))
}

/// Writes nodes, with their symbols in place of those that have one.
pub(super) struct Writer<'a> {
    pub nodes: &'a [Node],
    pub symbols: &'a HashMap<Id, Symbol>,
}

impl Writer<'_> {
    /// Returns the formula of a node as one element. Recursive: the caller limits the number of operations.
    pub fn formula(&self, id: Id) -> String {
        row(&self.expanded(id).elements)
    }

    fn part(&self, id: Id) -> Part {
        match self.symbols.get(&id) {
            Some(symbol) => Part::new(symbol.mathml(), if symbol.is_fraction() { FRACTION } else { PRIMARY }),
            None => self.expanded(id),
        }
    }

    fn expanded(&self, id: Id) -> Part {
        match self.nodes[id as usize] {
            Node::Constant(bits) => constant(bits.value()),
            Node::Truth(value) => {
                Part::new(format!("<mtext>{}</mtext>", Meaning::Truth(value).name()), PRIMARY)
            }
            Node::Variable(variable) => Part::new(identifier(variable.name(), ""), PRIMARY),
            Node::Power(a, exponent) => {
                self.power(a, exponent.unsigned_abs().to_string(), exponent.is_negative())
            }
            Node::HalfPower(a, -1) => Part::fraction(Part::one(), self.part(a).root()),
            Node::HalfPower(a, twice) => {
                self.power(a, format!("{}/2", twice.unsigned_abs()), twice.is_negative())
            }
            Node::Unary(op, a) => self.unary(op, a),
            Node::Binary(op, a, b) => self.binary(op, a, b),
            Node::Select(condition, a, b) => {
                let [condition, a, b] = [condition, a, b].map(|id| self.part(id).elements);
                let choice = |value: String, when: String| {
                    format!("<mtr><mtd>{value}</mtd><mtd><mspace width=\"1em\"></mspace>{when}</mtd></mtr>")
                };
                let first = choice(a, format!("<mtext>if </mtext>{condition}"));
                let second = choice(b, "<mtext>otherwise</mtext>".to_owned());
                Part::new(format!("<mo>{{</mo><mtable>{first}{second}</mtable>"), CHOICE)
            }
        }
    }

    fn power(&self, a: Id, exponent: String, is_reciprocal: bool) -> Part {
        let base = self.part(a);
        let power = if exponent == "1" { base } else { base.power(&format!("<mn>{exponent}</mn>")) };
        if is_reciprocal { Part::fraction(Part::one(), power) } else { power }
    }

    fn unary(&self, op: Unary, a: Id) -> Part {
        let part = self.part(a);
        let between = |left: &str, right: &str, elements: String| {
            Part::new(row(&format!("<mo>{left}</mo>{elements}<mo>{right}</mo>")), PRIMARY)
        };
        let e = || Part::new("<mi>e</mi>".to_owned(), PRIMARY);
        match op {
            Unary::Negate => Part::new(format!("{MINUS}{}", part.at(PRODUCT)), SIGNED),
            Unary::Not => Part::new(format!("<mo>¬</mo>{}", part.at(FRACTION)), op.precedence()),
            Unary::Exp => e().power(&part.elements),
            Unary::Expm1 => e().power(&part.elements).difference(Part::one()),
            Unary::Sqrt => part.root(),
            Unary::Abs => between("|", "|", part.elements),
            Unary::Floor => between("⌊", "⌋", part.elements),
            Unary::Ceil => between("⌈", "⌉", part.elements),
            Unary::Log => call("<mi>ln</mi>", [part]),
            Unary::Log1p => call("<mi>ln</mi>", [Part::one().sum(part)]),
            Unary::Log10 => call("<msub><mi>log</mi><mn>10</mn></msub>", [part]),
            _ => call(&format!("<mi>{}</mi>", Meaning::Unary(op).name()), [part]),
        }
    }

    fn binary(&self, op: Binary, a: Id, b: Id) -> Part {
        let [left, right] = [a, b].map(|id| self.part(id));
        let infix = |left: Part, sign: &str, right: Part| {
            let tightness = op.precedence();
            let [left, right] = [left, right].map(|part| part.at(tightness + 1));
            Part::new(format!("{left}<mo>{sign}</mo>{right}"), tightness)
        };
        match op {
            Binary::Add => left.sum(right),
            Binary::Subtract => left.difference(right),
            Binary::Multiply => left.product(right),
            Binary::Divide => Part::fraction(left, right),
            Binary::Power => left.power(&right.elements),
            Binary::Hypot => {
                let two = "<mn>2</mn>";
                left.power(two).sum(right.power(two)).root()
            }
            Binary::Atan2 => call("<mi>atan2</mi>", [left, right]),
            Binary::Min => call("<mi>min</mi>", [left, right]),
            Binary::Max => call("<mi>max</mi>", [left, right]),
            Binary::Less => infix(left, "&lt;", right),
            Binary::LessEqual => infix(left, "≤", right),
            Binary::Greater => infix(left, "&gt;", right),
            Binary::GreaterEqual => infix(left, "≥", right),
            Binary::Equal => infix(left, "=", right),
            Binary::NotEqual => infix(left, "≠", right),
            Binary::And => infix(left, "∧", right),
            Binary::Or => infix(left, "∨", right),
        }
    }
}

fn constant(value: f64) -> Part {
    match value.is_sign_negative() {
        true => Part::new(format!("{MINUS}{}", number(-value)), SIGNED),
        false => {
            let number = number(value);
            let is_short = number.starts_with("<mn>") || number.starts_with("<mi>");
            Part::new(number, if is_short { PRIMARY } else { FRACTION })
        }
    }
}

/// Returns the call of a function, whose name is one element.
fn call<const N: usize>(function: &str, arguments: [Part; N]) -> Part {
    let arguments = arguments.map(|part| part.at(CHOICE + 1));
    let arguments = parentheses(&arguments.join("<mo>,</mo>"));
    Part::new(format!("{function}<mo>\u{2061}</mo>{arguments}"), PRIMARY)
}

#[cfg(test)]
mod tests {
    use super::{fraction, identifier, number};

    #[test]
    fn numbers_and_names_are_written_as_a_reader_expects() {
        assert_eq!(number(0.5), "<mn>0.5</mn>");
        assert_eq!(fraction(2.0 / 3.0), Some((2.0, 3)));
        assert_eq!(number(1.0 / 3.0), "<mfrac><mn>1</mn><mn>3</mn></mfrac>");
        assert_eq!(number(0.1234567), "<mn>0.1234567</mn>");
        assert_eq!(number(1e-9), "<msup><mn>10</mn><mrow><mo>−</mo><mn>9</mn></mrow></msup>");
        assert_eq!(identifier("a_12", ""), "<msub><mi>a</mi><mn>12</mn></msub>");
        assert_eq!(identifier("lambda", ""), "<mi>λ</mi>");
        assert_eq!(identifier("lam", ""), "<mi>lam</mi>");
        assert_eq!(identifier("area_per_volume", ""), "<mi>area_per_volume</mi>");
        assert_eq!(
            identifier("c_p", "<mn>0</mn>"),
            "<msub><mi>c</mi><mrow><mi>p</mi><mo>,</mo><mn>0</mn></mrow></msub>"
        );
        assert_eq!(identifier("a<b", ""), "<mi>a&lt;b</mi>");
    }
}

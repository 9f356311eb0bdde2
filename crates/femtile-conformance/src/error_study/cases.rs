//! Case files drawn at random.

use std::fmt::Write as _;

use crate::suite::problems::Random;

/// The range of random cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All methods, preconditioners and elements.
    Cpu,
    /// Cases for GPUs, of few kinds, as an emulator compiles each.
    Emulated,
}

/// Elements with the preconditioners that they take.
struct Element {
    name: &'static str,
    preconditioners: &'static [&'static str],
    /// True if products are those of a matrix. Matrix-free products differ slightly from the matrix of their columns,
    /// so only coefficients of moderate contrast are drawn for them.
    is_assembled: bool,
}

const ELEMENTS: [Element; 6] = [
    Element { name: "triangle", preconditioners: &["jacobi", "none", "amg"], is_assembled: true },
    Element { name: "tetrahedron", preconditioners: &["jacobi", "none", "amg"], is_assembled: true },
    Element { name: "quadrilateral", preconditioners: &["jacobi", "amg"], is_assembled: true },
    Element { name: "hexahedron", preconditioners: &["jacobi", "amg"], is_assembled: true },
    Element { name: "quadrilateral", preconditioners: &["jacobi", "none", "gmg"], is_assembled: false },
    Element { name: "hexahedron", preconditioners: &["jacobi", "gmg", "pmg"], is_assembled: false },
];

/// A power of ten between two exponents.
fn scale(random: &mut Random, exponents: (f64, f64)) -> f64 {
    let (low, high) = exponents;
    10f64.powf(low + (high - low) * 0.5 * (random.unit() + 1.0))
}

fn one_of<'a, T: ?Sized>(random: &mut Random, items: &[&'a T]) -> &'a T {
    items[random.below(items.len())]
}

/// The text of the case with this seed, and its tolerance.
pub fn text(seed: u64, scope: Scope) -> (String, f64) {
    let mut random = Random::new(seed + 1);
    for _ in 0..8 {
        random.bits();
    }
    let element = match scope {
        Scope::Cpu => &ELEMENTS[random.below(ELEMENTS.len())],
        Scope::Emulated => &ELEMENTS[random.below(2)],
    };
    let wide = if element.is_assembled { 12.0 } else { 2.0 };
    let mut text = mesh(&mut random, element, wide);
    equation(&mut random, wide, &mut text);
    boundary(&mut random, wide, &mut text);
    if !element.is_assembled {
        let _ = write!(text, "[space]\ndegree = {}\n", 1 + random.below(3));
    }
    let preconditioner = one_of(&mut random, element.preconditioners);
    let methods: &[&str] = match (scope, preconditioner) {
        (Scope::Emulated, "jacobi" | "none") => &["cg", "merged-cg"],
        (Scope::Emulated, _) => &["cg"],
        (_, "jacobi" | "none") => &["cg", "merged-cg", "pipelined-cg", "s-step-cg", "gmres"],
        _ => &["cg", "pipelined-cg", "gmres"],
    };
    let method = one_of(&mut random, methods);
    let tolerance = 10f64.powi(-(4 + random.below(7) as i32));
    let _ = write!(
        text,
        "[solver]\nmethod = \"{method}\"\npreconditioner = \"{preconditioner}\"\ntolerance = {tolerance:e}\n\
         max_iterations = 4000\nthreads = 1\n"
    );
    if element.is_assembled && matches!(element.name, "quadrilateral" | "hexahedron") {
        text.push_str("operator = \"assembled\"\n");
    }
    text.push_str("[output]\nvtu = false\nplot = false\n");
    (text, tolerance)
}

fn mesh(random: &mut Random, element: &Element, wide: f64) -> String {
    let aspect = if random.below(3) == 0 { scale(random, (-wide / 2.0, 0.0)) } else { 1.0 };
    let size = if random.below(4) == 0 { scale(random, (-wide / 4.0, wide / 4.0)) } else { 1.0 };
    let name = element.name;
    let (upper_x, upper) = (size, size * aspect);
    if matches!(name, "triangle" | "quadrilateral") {
        let cells = [2 * (1 + random.below(3)), 2 * (1 + random.below(3))];
        format!(
            "[mesh]\ngenerate = {{ kind = \"square\", cell = \"{name}\", cells = {cells:?}, upper = [{upper_x:e}, {upper:e}] }}\n"
        )
    } else {
        let cells = [2 * (1 + random.below(2)), 2, 2];
        format!(
            "[mesh]\ngenerate = {{ kind = \"box\", cell = \"{name}\", cells = {cells:?}, upper = [{upper_x:e}, {size:e}, {upper:e}] }}\n"
        )
    }
}

/// A number, or a field with a jump.
fn coefficient(random: &mut Random, wide: f64) -> String {
    let value = scale(random, (-wide, wide));
    match random.below(4) {
        0 => format!("{value:e}"),
        1 => "1".into(),
        2 => format!("\"if(x < {:.2}, {value:e}, 1)\"", 0.5 + 0.4 * random.unit()),
        _ => format!("\"if(abs(x - 0.5) + abs(y - 0.5) < 0.4, {value:e}, 1)\""),
    }
}

fn equation(random: &mut Random, wide: f64, text: &mut String) {
    let sigma = coefficient(random, wide);
    let lambda = if random.below(2) == 0 { "0".into() } else { coefficient(random, wide) };
    let source = match random.below(4) {
        0 => "1".into(),
        1 => "\"x - 0.3*y\"".into(),
        2 => coefficient(random, wide),
        _ => format!("{:e}", scale(random, (-200.0, 200.0))),
    };
    let _ = write!(text, "[equation]\nsigma = {sigma}\nlambda = {lambda}\nsource = {source}\n");
}

fn boundary(random: &mut Random, wide: f64, text: &mut String) {
    let value = one_of(random, &["0", "1", "\"1 + x\"", "-300"]);
    let mut add = |tag: &str, condition: String| {
        let _ = write!(text, "[[boundary]]\nwhere = \"{tag}\"\n{condition}\n");
    };
    let robin = |coefficient: f64| format!("robin = {{ coefficient = {coefficient:e}, value = {value} }}");
    match random.below(6) {
        0 => {}
        1 => add("all", format!("dirichlet = {value}")),
        2 => add("all", robin(scale(random, (-wide, wide)))),
        3 => {
            add("xmin", format!("dirichlet = {value}"));
            add("xmax", robin(scale(random, (-wide, wide))));
        }
        4 => {
            add("xmin", "dirichlet = 1".into());
            add("xmax", "dirichlet = 0".into());
        }
        _ => {
            add("xmin", robin(scale(random, (-wide, wide))));
            add("ymax", robin(scale(random, (-wide, wide))));
        }
    }
}

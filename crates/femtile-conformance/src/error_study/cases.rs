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
    /// Triangles in no order whose σ is a tensor of high contrast, with conditions and sources of any size.
    Anisotropic,
}

/// A case file, and the file of its mesh where it names one.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// The case file.
    pub text: String,
    /// The file `m.mesh` beside it.
    pub mesh: Option<String>,
    /// The tolerance of the solve.
    pub tolerance: f64,
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

/// Returns the case with this seed.
pub fn draw(seed: u64, scope: Scope) -> Drawn {
    let mut random = Random::new(seed + 1);
    for _ in 0..8 {
        random.bits();
    }
    let element = match scope {
        Scope::Cpu => &ELEMENTS[random.below(ELEMENTS.len())],
        Scope::Emulated => &ELEMENTS[random.below(2)],
        Scope::Anisotropic => return anisotropic(&mut random),
    };
    let wide = if element.is_assembled { 12.0 } else { 2.0 };
    let mut text = mesh(&mut random, element, wide);
    equation(&mut random, wide, &mut text);
    boundary(&mut random, wide, &mut text);
    if !element.is_assembled {
        let _ = write!(text, "[space]\ndegree = {}\n", 1 + random.below(3));
    }
    let tolerance = solver(&mut random, element.preconditioners, scope, &mut text);
    if element.is_assembled && matches!(element.name, "quadrilateral" | "hexahedron") {
        text.push_str("operator = \"assembled\"\n");
    }
    text.push_str(OUTPUT);
    Drawn { text, mesh: None, tolerance }
}

const OUTPUT: &str = "[output]\nvtu = false\nplot = false\n";

/// Adds a method and a preconditioner; returns the tolerance.
fn solver(random: &mut Random, preconditioners: &[&str], scope: Scope, text: &mut String) -> f64 {
    let preconditioner = one_of(random, preconditioners);
    let methods: &[&str] = match (scope, preconditioner) {
        (Scope::Emulated, "jacobi" | "none") => &["cg", "merged-cg"],
        (Scope::Emulated, _) => &["cg"],
        (_, "jacobi" | "none") => &["cg", "merged-cg", "pipelined-cg", "s-step-cg", "gmres"],
        _ => &["cg", "pipelined-cg", "gmres"],
    };
    let method = one_of(random, methods);
    let tolerance = 10f64.powi(-(4 + random.below(7) as i32));
    let _ = write!(
        text,
        "[solver]\nmethod = \"{method}\"\npreconditioner = \"{preconditioner}\"\ntolerance = {tolerance:e}\n\
         max_iterations = 4000\nthreads = 1\n"
    );
    tolerance
}

/// A case whose σ has eigenvalues between 10⁻⁶ and 10⁶.
fn anisotropic(random: &mut Random) -> Drawn {
    let mesh = triangles(random);
    let mut text = String::from("[mesh]\nfile = \"m.mesh\"\n[equation]\n");
    let tensors = [(); 2].map(|()| tensor(random));
    let [first, second] = &tensors;
    let _ = writeln!(text, "sigma = {{ by_tag = {{ 1 = {first}, 2 = {second} }} }}");
    if random.below(4) == 0 {
        let _ = writeln!(text, "lambda = {{ by_tag = {{ 1 = 0, 2 = {:e} }} }}", scale(random, (-8.0, 8.0)));
    }
    let [size, x, y] = [scale(random, (-8.0, 8.0)), random.unit(), random.unit()];
    let _ = writeln!(text, "source = \"{size:e}*(1 + {x:.2}*x*y + {y:.2}*y)\"");
    let mut add = |side: &str, condition: String| {
        let _ = write!(text, "[[boundary]]\nwhere = \"{side}\"\n{condition}\n");
    };
    let mut value = || {
        let (size, slope) = (scale(random, (-2.0, 4.0)), random.unit());
        format!("\"{size:e}*(1 + {slope:.2}*y)\"")
    };
    let values = [value(), value()];
    let robin = |random: &mut Random, value: &str| {
        format!("robin = {{ coefficient = {:e}, value = {value} }}", scale(random, (-8.0, 8.0)))
    };
    match random.below(4) {
        0 | 1 => add("x == 0", robin(random, &values[0])),
        2 => {
            add("x == 0", robin(random, &values[0]));
            add("y == 1", robin(random, &values[1]));
        }
        _ => {
            add("y == 0", format!("dirichlet = {}", values[0]));
            add("y == 1", "dirichlet = 0.01".into());
            add("x == 1", format!("neumann = {:e}", scale(random, (-4.0, 4.0))));
        }
    }
    let tolerance = solver(random, &["jacobi", "none", "amg"], Scope::Anisotropic, &mut text);
    if text.contains("\"amg\"") && random.below(2) == 0 {
        text.push_str("[solver.amg]\ncoarse_rows = 12\n");
    }
    text.push_str(OUTPUT);
    Drawn { text, mesh: Some(mesh), tolerance }
}

/// A tensor by its eigenvalues, along the axes or along others.
fn tensor(random: &mut Random) -> String {
    let [a, b] = [(); 2].map(|()| scale(random, (-6.0, 6.0)));
    let angle = if random.below(2) == 0 { 0.0 } else { random.unit() * 3.0 };
    let (s, c) = f64::sin_cos(angle);
    let aside = (a - b) * s * c;
    format!("[[{:e}, {aside:e}], [{aside:e}, {:e}]]", a * c * c + b * s * s, a * s * s + b * c * c)
}

/// The unit square as a MEDIT file: a lattice with nodes moved at random, squares cut along either diagonal, and two tags.
fn triangles(random: &mut Random) -> String {
    let [n_x, n_y] = [(); 2].map(|()| 2 + random.below(8));
    let power = [1.0, 1.0, 3.0][random.below(3)];
    let mut place = |i: usize, n: usize| {
        let moved = if i == 0 || i == n { 0.0 } else { 0.3 * random.unit() };
        ((i as f64 + moved) / n as f64).powf(power)
    };
    let mut text = format!("MeshVersionFormatted 2\nDimension\n2\nVertices\n{}\n", (n_x + 1) * (n_y + 1));
    for j in 0..=n_y {
        for i in 0..=n_x {
            let (x, y) = (place(i, n_x), place(j, n_y));
            let _ = writeln!(text, "{x} {y} 0");
        }
    }
    let _ = write!(text, "Triangles\n{}\n", 2 * n_x * n_y);
    let cut = 1 + random.below(n_x - 1);
    for (i, j) in (0..n_y).flat_map(|j| (0..n_x).map(move |i| (i, j))) {
        let node = |a: usize, b: usize| 1 + (j + b) * (n_x + 1) + i + a;
        let (a, b, c, d) = (node(0, 0), node(1, 0), node(1, 1), node(0, 1));
        let tag = if i < cut { 1 } else { 2 };
        let halves = if random.below(2) == 0 { [[a, b, c], [a, c, d]] } else { [[a, b, d], [b, c, d]] };
        for [a, b, c] in halves {
            let _ = writeln!(text, "{a} {b} {c} {tag}");
        }
    }
    text.push_str("End\n");
    text
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

//! CUDA C source of an operator: formulas and sides are generated, constants are arguments.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::OnceLock;

use femtile_expression::{Expression, Variable};

use super::cuda::pair_of;
use super::operator::{Coefficient, End, Operator};
use super::problem::{AdiProblem, Side};

const HEADER: &str = include_str!("operator.cuh");

/// The coefficients that are read from arrays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OperatorText {
    pub bands: [bool; 3],
    pub reaction: bool,
    pub mixed: [bool; 3],
    pub source: bool,
}

/// Generated sources of an operator: without arrays, and with the first requested set of arrays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    formed: OnceLock<String>,
    read: OnceLock<(OperatorText, String)>,
}

/// The header `adi_operator.cuh`.
pub(super) fn operator_text(operator: &Operator, read: OperatorText) -> Cow<'_, str> {
    if read == OperatorText::default() {
        return operator.texts.formed.get_or_init(|| write_text(operator, read)).into();
    }
    match operator.texts.read.get_or_init(|| (read, write_text(operator, read))) {
        (known, text) if *known == read => text.into(),
        _ => write_text(operator, read).into(),
    }
}

fn write_text(operator: &Operator, read: OperatorText) -> String {
    let d = operator.grid().dimension();
    let mut text = format!("{}\n{HEADER}\nconst u32 DIMENSION = {d};\n", Expression::CUDA_HEADER);
    let pairs: usize = operator.mixed.iter().map(|mixed| 1 << pair_of(mixed.axes)).sum();
    let _ = writeln!(text, "const u32 PAIRS = {pairs};");
    let is = |end: End| move |ends: &[End; 2]| [ends[0] == end, ends[1] == end];
    let held = operator.ends.each_ref().map(is(End::Dirichlet));
    predicate(&mut text, "first_held", held.map(|[first, _]| first), d);
    predicate(&mut text, "last_held", held.map(|[_, last]| last), d);
    predicate(
        &mut text,
        "is_periodic",
        operator.ends.each_ref().map(is(End::Periodic)).map(|[ring, _]| ring),
        d,
    );
    for axis in 0..d {
        coefficient(
            &mut text,
            &format!("diffusion_{axis}"),
            &operator.diffusion[axis],
            &format!("o.diffusion[{axis}]"),
        );
        coefficient(
            &mut text,
            &format!("convection_{axis}"),
            &operator.convection[axis],
            &format!("o.convection[{axis}]"),
        );
    }
    coefficient(&mut text, "reaction_by_formula", &operator.reaction, "o.reaction");
    coefficient(&mut text, "source_by_formula", &operator.source, "o.source");
    for mixed in &operator.mixed {
        let pair = pair_of(mixed.axes);
        coefficient(&mut text, &format!("mixed_{pair}"), &mixed.coefficient, &format!("o.mixed[{pair}]"));
    }
    couplings(&mut text, operator, read);
    fields(&mut text, operator, read);
    band_row(&mut text, operator);
    text
}

/// A boolean function of an axis.
fn predicate(text: &mut String, name: &str, of_axis: [bool; 3], d: usize) {
    let truths: Vec<String> =
        (0..d).filter(|&axis| of_axis[axis]).map(|axis| format!("axis == {axis}")).collect();
    let value = if truths.is_empty() { "false".into() } else { truths.join(" || ") };
    let _ = writeln!(text, "__device__ __forceinline__ bool {name}(u32 axis) {{ return {value}; }}");
}

/// A function of a point and the time.
fn coefficient(text: &mut String, name: &str, coefficient: &Coefficient, constant: &str) {
    let value = if coefficient.constant.is_some() {
        constant.to_string()
    } else {
        let formula = format!("{name}_formula");
        text.push_str(&coefficient.formula.cuda_function(&formula));
        let time = if coefficient.formula.uses(Variable::T) { ", t" } else { "" };
        format!("{formula}(x, y, z{time})")
    };
    let _ = writeln!(
        text,
        "__device__ __forceinline__ double {name}(const Operator& o, double x, double y, double z, double t) {{\n\
         \x20   return {value};\n}}"
    );
}

const POINT: &str =
    "coordinate(o, 0, number[0]), coordinate(o, 1, number[1]), coordinate(o, 2, number[2]), 0.0";

/// The point half a spacing before or after a node along an axis.
fn half_point(operator: &Operator, axis: usize, behind: bool) -> String {
    let ring = operator.grid().periodic()[axis];
    let of = |other: usize| match (other == axis, behind) {
        (false, _) => format!("coordinate(o, {other}, number[{other}])"),
        (true, false) => format!("half_coordinate(o, {axis}, number[{axis}], {ring})"),
        (true, true) => format!("half_coordinate(o, {axis}, number[{axis}] + 1, {ring})"),
    };
    format!("{}, {}, {}, 0.0", of(0), of(1), of(2))
}

/// `formed_couplings` computes l and w from constants and formulas; `couplings` also reads arrays.
fn couplings(text: &mut String, operator: &Operator, read: OperatorText) {
    let d = operator.grid().dimension();
    text.push_str(
        "__device__ __forceinline__ void formed_couplings(\n    const Operator& o, u32 axis, const u32* number, \
         double& l, double& w) {\n",
    );
    for axis in 0..d {
        let _ = writeln!(text, "    if (axis == {axis}) {{");
        if operator.has_constant_couplings(axis) {
            let _ = writeln!(text, "        constant_couplings(o, {axis}, number[{axis}], l, w);");
        } else {
            let ring = operator.grid().periodic()[axis];
            let (before, behind) = (half_point(operator, axis, false), half_point(operator, axis, true));
            let _ = write!(
                text,
                "        const double before = diffusion_{axis}(o, {before});\n\
                 \x20       const double behind = diffusion_{axis}(o, {behind});\n\
                 \x20       const double c = convection_{axis}(o, {POINT});\n\
                 \x20       varying_couplings(o, {axis}, number[{axis}], {ring}, before, behind, c, l, w);\n"
            );
        }
        text.push_str("    }\n");
    }
    text.push_str(
        "}\n__device__ __forceinline__ void couplings(\n    const Operator& o, u32 axis, const u32* number, u64 place, \
         T& l, T& w) {\n",
    );
    for axis in (0..d).filter(|&axis| read.bands[axis] && !operator.has_constant_couplings(axis)) {
        let _ = write!(
            text,
            "    if (axis == {axis}) {{\n        l = (T)o.factor * o.lower_band[{axis}][place];\n\
             \x20       w = (T)o.factor * o.upper_band[{axis}][place];\n        return;\n    }}\n"
        );
    }
    text.push_str(
        "    double before, behind;\n    formed_couplings(o, axis, number, before, behind);\n    l = (T)before;\n    \
         w = (T)behind;\n}\n",
    );
}

/// Reaction, source and the off-diagonal entries of D.
fn fields(text: &mut String, operator: &Operator, read: OperatorText) {
    let reaction = if read.reaction {
        "o.reaction_array[place]".into()
    } else {
        format!("reaction_by_formula(o, {POINT})")
    };
    let source = if read.source {
        "o.source_array[place]".into()
    } else {
        format!("source_by_formula(o, {})", POINT.replace(", 0.0", ", time"))
    };
    let _ = write!(
        text,
        "__device__ __forceinline__ double reaction_at(const Operator& o, const u32* number, u64 place) {{\n    return \
         {reaction};\n}}\n\
         __device__ __forceinline__ double source_at(const Operator& o, const u32* number, u64 place, double time) {{\n\
         \x20   return {source};\n}}\n\
         __device__ __forceinline__ double mixed_at(const Operator& o, u32 pair, const u32* number, u64 place) {{\n"
    );
    for mixed in &operator.mixed {
        let pair = pair_of(mixed.axes);
        let value = if read.mixed[pair] {
            format!("o.mixed_array[{pair}][place]")
        } else {
            format!("mixed_{pair}(o, {POINT})")
        };
        let _ = writeln!(text, "    if (pair == {pair}) return {value};");
    }
    text.push_str("    return 0.0;\n}\n");
}

/// `band_row`: the bands of I - tau A_a in a row of a line.
fn band_row(text: &mut String, operator: &Operator) {
    let d = operator.grid().dimension();
    let _ = write!(
        text,
        "__device__ __forceinline__ void band_row(\n    const Operator& o, u32 axis, double tau, u64 line, u32 row, T& lower, \
         T& diagonal, T& upper) {{\n\
         \x20   const u32 side = (u32)(axis == 0 ? o.nodes[1] : o.nodes[0]), in_plane = (u32)line % side,\n\
         \x20             plane = (u32)line / side;\n\
         \x20   const u32 number[3] = {{axis == 0 ? row : in_plane, axis == 0 ? in_plane : axis == 1 ? row : plane,\n\
         \x20                          axis == 2 ? row : plane}};\n\
         \x20   double l, w;\n    formed_couplings(o, axis, number, l, w);\n\
         \x20   double r = reaction_by_formula(o, {POINT}) * {};\n\
         \x20   if ((first_held(axis) && row == 0) || (last_held(axis) && row + 1 == o.nodes[axis])) l = w = r = 0.0;\n\
         \x20   lower = (T)(-tau * l);\n    diagonal = (T)(1.0 + tau * (l + w - r));\n    upper = (T)(-tau * w);\n}}\n",
        format_args!("{:e}", 1.0 / d as f64)
    );
}

/// Returns sources for coefficients of every kind in two and three dimensions, for compile checks.
pub(super) fn every_kind() -> Vec<String> {
    let formula = |text: &str| Expression::parse_in_time(text).unwrap_or_else(|_| Expression::constant(1.0));
    let heat = AdiProblem::heat(&[5, 5, 5], &[0.0; 3], &[1.0; 3]);
    let mut general = heat.clone();
    for (axis, text) in ["2 + x*y", "2 + sin(z)", "2"].into_iter().enumerate() {
        general.diffusion[axis][axis] = formula(text);
    }
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        general.diffusion[a][b] = formula("x/10 + 1/5");
        general.diffusion[b][a] = formula("x/10 + 1/5");
    }
    general.convection[1] = formula("x");
    general.reaction = formula("-y^2");
    general.source = formula("exp(-t)*cos(x)");
    general.sides[2] = [Side::Periodic, Side::Periodic];
    let mut plane = general.clone();
    plane.nodes.truncate(2);
    plane.lower.truncate(2);
    plane.upper.truncate(2);
    plane.sides.truncate(2);
    plane.diffusion[1][1] = formula("2");
    plane.convection[1] = formula("0.5");
    let read = OperatorText { bands: [true; 3], reaction: true, mixed: [true; 3], source: false };
    let texts = [&heat, &general, &plane].map(|problem| {
        let operator = Operator::new(problem).ok();
        operator.map(|operator| [OperatorText::default(), read].map(|read| write_text(&operator, read)))
    });
    texts.into_iter().flatten().flatten().collect()
}

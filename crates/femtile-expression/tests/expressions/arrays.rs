//! Vectors and matrices: values against plain loops, derivatives, messages.

use femtile_expression::{Array, ProgramBuilder, Shape, Value};
use proptest::prelude::*;

/// Values of the matrices `A`, `B` of 3 × 3 and the vectors `a`, `b`, and the number `s`.
type Numbers = Vec<f64>;
const N: usize = 9 + 9 + 3 + 3 + 1;

fn builder() -> ProgramBuilder {
    let mut builder = ProgramBuilder::with_arrays(N);
    let at = |builder: &ProgramBuilder, from: usize, n: usize| {
        (from..from + n).map(|i| builder.input(i)).collect()
    };
    let named = [("A", Shape::Matrix(3, 3), 0), ("B", Shape::Matrix(3, 3), 9), ("a", Shape::Vector(3), 18)];
    for (name, shape, from) in
        named.into_iter().chain([("b", Shape::Vector(3), 21), ("s", Shape::Number, 24)])
    {
        let entries = at(&builder, from, shape.n_entries());
        builder.bind(name, Array::new(shape, entries)).unwrap();
    }
    builder
}

fn evaluate(text: &str, numbers: &Numbers) -> (Shape, Vec<f64>) {
    let mut builder = builder();
    let array = builder.array(text).unwrap();
    let mut values = vec![f64::NAN; array.entries().len()];
    builder.finish(array.entries()).eval(numbers, &mut values);
    (array.shape(), values)
}

fn numbers() -> impl Strategy<Value = Numbers> {
    proptest::collection::vec(-2.0..2.0f64, N)
}

proptest! {
    #[test]
    fn products_are_those_of_plain_loops(numbers in numbers()) {
        let (m, v) = (|k: usize| move |i: usize, j: usize| 9 * k + 3 * i + j, |k: usize| move |i: usize| 18 + 3 * k + i);
        let [a_at, b_at] = [m(0), m(1)];
        let [a, b] = [v(0), v(1)];
        let x = &numbers;
        let product = |i: usize, j: usize| (0..3).map(|k| x[a_at(i, k)] * x[b_at(k, j)]).sum::<f64>();
        let sums: Vec<(&str, Shape, Vec<f64>)> = vec![
            ("A*B", Shape::Matrix(3, 3), (0..9).map(|at| product(at / 3, at % 3)).collect()),
            ("A*a", Shape::Vector(3), (0..3).map(|i| (0..3).map(|k| x[a_at(i, k)] * x[a(k)]).sum()).collect()),
            ("A'*a", Shape::Vector(3), (0..3).map(|i| (0..3).map(|k| x[a_at(k, i)] * x[a(k)]).sum()).collect()),
            ("a.b", Shape::Number, vec![(0..3).map(|k| x[a(k)] * x[b(k)]).sum()]),
            ("a'*b", Shape::Number, vec![(0..3).map(|k| x[a(k)] * x[b(k)]).sum()]),
            ("a*b'", Shape::Matrix(3, 3), (0..9).map(|at| x[a(at / 3)] * x[b(at % 3)]).collect()),
            ("A:B", Shape::Number, vec![(0..9).map(|at| x[at] * x[9 + at]).sum()]),
            ("2*A/s - B", Shape::Matrix(3, 3), (0..9).map(|at| 2.0 * x[at] / x[24] - x[9 + at]).collect()),
            ("-A[1, 2] + a[0]", Shape::Number, vec![x[a(0)] - x[a_at(1, 2)]]),
            ("[a, b, [1, s, 2]]'*[1, 0, 0]", Shape::Vector(3), vec![x[a(0)], x[a(1)], x[a(2)]]),
            ("tr(A*B')", Shape::Number, vec![(0..9).map(|at| x[at] * x[9 + at]).sum()]),
            ("if(s > 0, a, b)", Shape::Vector(3), (0..3).map(|i| if x[24] > 0.0 { x[a(i)] } else { x[b(i)] }).collect()),
            ("sym(A)", Shape::Matrix(3, 3), (0..9).map(|at| 0.5 * (x[at] + x[3 * (at % 3) + at / 3])).collect()),
            ("dev(A):[[1,0,0],[0,1,0],[0,0,1]]", Shape::Number, vec![0.0]),
        ];
        for (text, shape, expected) in sums {
            let (found_shape, found) = evaluate(text, x);
            prop_assert_eq!(found_shape, shape, "{}", text);
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!((found - expected).abs() <= 1e-12 * (1.0 + expected.abs()), "{}: {} and {}", text, found, expected);
            }
        }
    }

    #[test]
    fn inverses_and_determinants_fit_together(numbers in numbers()) {
        let (_, determinants) = evaluate("[det(A), det(B), det(A*B), det(A'), det([[A[0,0], A[0,1]], [A[1,0], A[1,1]]])]", &numbers);
        let [a, b, product, transposed, corner] = determinants[..] else { unreachable!() };
        prop_assert!((a * b - product).abs() < 1e-9);
        prop_assert!((a - transposed).abs() < 1e-12);
        prop_assert!((corner - (numbers[0] * numbers[4] - numbers[1] * numbers[3])).abs() < 1e-12);
        prop_assume!(a.abs() > 1e-2);
        let (_, unit) = evaluate("A*inv(A)", &numbers);
        for (at, entry) in unit.iter().enumerate() {
            let expected = if at % 4 == 0 { 1.0 } else { 0.0 };
            prop_assert!((entry - expected).abs() < 1e-9, "{:?}", unit);
        }
    }

    #[test]
    fn reverse_and_forward_derivatives_agree(numbers in numbers()) {
        let text = "tr(A'*A) + log(1 + (A:B)^2) + exp(-a.b)*s/(2 + (A*a).b) + if(s > 0, det(A), sqrt(1 + s^2))^3 + min(a.a, s)*abs(s) + hypot(s, a[1])";
        let mut builder = builder();
        let energy = builder.array(text).unwrap().entries()[0];
        let inputs: Vec<Value> = (0..N).map(|i| builder.input(i)).collect();
        let reverse = builder.gradient(energy, &inputs);
        let forward: Vec<Value> = inputs.iter().map(|&input| builder.derivative(energy, input)).collect();
        let mut values = vec![f64::NAN; 2 * N];
        builder.finish(&[reverse, forward].concat()).eval(&numbers, &mut values);
        for (reverse, forward) in values[..N].iter().zip(&values[N..]) {
            let bound = 1e-10 * (1.0 + forward.abs());
            prop_assert!((reverse - forward).abs() <= bound || reverse.is_nan() && forward.is_nan(), "{} and {}", reverse, forward);
        }
    }
}

#[test]
fn gradients_follow_the_chain_rule() {
    // Inputs: x, y, u, u_x, u_y, and one without a derivative.
    let mut builder = ProgramBuilder::with_arrays(6);
    let [x, y, u, u_x, u_y, f] = std::array::from_fn(|i| builder.input(i));
    let [zero, one] = [0.0, 1.0].map(|value| builder.constant(value));
    for (name, value) in [("x", x), ("y", y), ("u", u), ("f", f)] {
        builder.bind(name, value).unwrap();
    }
    let slopes = [(x, vec![one, zero]), (y, vec![zero, one]), (u, vec![u_x, u_y])];
    builder.differentiate_in_space(2, &slopes, &[(f, "f is a table".to_owned())]);
    let mut values = [f64::NAN; 7];
    let arrays = ["grad(x*u^2)", "[div([x*y, y^2]), 0]", "grad([u, x])*[1, 2]"]
        .map(|text| builder.array(text).unwrap());
    assert_eq!(arrays[0].shape(), Shape::Vector(2));
    let entries: Vec<Value> = arrays.iter().flat_map(|array| array.entries().to_vec()).chain([u]).collect();
    builder.finish(&entries).eval(&[2.0, 3.0, 5.0, 7.0, 11.0, 0.0], &mut values);
    assert_eq!(
        values,
        [25.0 + 2.0 * 2.0 * 5.0 * 7.0, 2.0 * 2.0 * 5.0 * 11.0, 3.0 + 6.0, 0.0, 7.0 + 22.0, 1.0, 5.0]
    );
    assert_eq!(builder.array("grad(f*u)").unwrap_err().advice.unwrap(), "f is a table");
}

#[test]
fn derivatives_in_cylindrical_axes_have_the_turn_of_the_axes() {
    // Inputs: the distance r from the axis, the place z along it, and 1/r.
    let mut builder = ProgramBuilder::with_arrays(3);
    let [r, z, curvature] = std::array::from_fn(|i| builder.input(i));
    let [zero, one] = [0.0, 1.0].map(|value| builder.constant(value));
    builder.bind("r", r).unwrap();
    builder.bind("z", z).unwrap();
    builder.differentiate_in_space(3, &[(r, vec![one, zero, zero]), (z, vec![zero, one, zero])], &[]);
    builder.turn_about_axis(curvature);
    // Twice the identity for rigid growth, a skew matrix for a rigid turn, the divergence of a pressure, and that of a torque.
    let texts = [
        "grad([2*r, 2*z, 0])",
        "grad([0, 0, r])",
        "[div([r^2, z, 0]), div(grad(r^2))]",
        "div(r^2*[[1, 0, 0], [0, 1, 0], [0, 0, 1]])",
        "div([[0, 0, r], [0, 0, 0], [r, 0, 0]])",
        "div([[r^2, 0, 0], [0, 0, 0]])",
    ];
    let arrays = texts.map(|text| builder.array(text).unwrap());
    let entries: Vec<Value> = arrays.iter().flat_map(|array| array.entries().to_vec()).collect();
    let mut values = vec![f64::NAN; entries.len()];
    builder.finish(&entries).eval(&[2.0, 3.0, 0.5], &mut values);
    assert_eq!(values[..9], [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0]);
    assert_eq!(values[9..18], [0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(values[18..20], [7.0, 4.0]);
    assert_eq!(values[20..26], [4.0, 0.0, 0.0, 0.0, 0.0, 3.0]);
    assert_eq!(values[26..], [6.0, 0.0]);
}

#[test]
fn small_strains_keep_their_digits() {
    let mut builder = builder();
    let identity: Vec<Value> =
        (0..9).map(|at| builder.constant(if at % 4 == 0 { 1.0 } else { 0.0 })).collect();
    builder.bind("identity", Array::new(Shape::Matrix(3, 3), identity)).unwrap();
    let array = builder.array("[det(identity + A) - 1, log(det(identity + A)), det(identity + A), det(identity + s*[[1, 2, 0], [3, 4, 0], [0, 0, 0]])]").unwrap();
    let mut numbers: Numbers = (0..N).map(|at| 1e-13 * (1.0 + (at * at % 7) as f64)).collect();
    let mut values = [f64::NAN; 4];
    builder.finish(array.entries()).eval(&numbers, &mut values);
    let trace = numbers[0] + numbers[4] + numbers[8];
    assert!(values[..2].iter().all(|value| (value / trace - 1.0).abs() < 1e-11), "{values:?} and {trace}");
    numbers = (0..N).map(|at| ((at * 5 % 11) as f64 - 4.0) / 3.0).collect();
    builder.finish(array.entries()).eval(&numbers, &mut values);
    let at = |i: usize, j: usize| numbers[3 * i + j] + f64::from(i == j);
    let expected = at(0, 0) * (at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1))
        - at(0, 1) * (at(1, 0) * at(2, 2) - at(1, 2) * at(2, 0))
        + at(0, 2) * (at(1, 0) * at(2, 1) - at(1, 1) * at(2, 0));
    assert!((values[2] - expected).abs() < 1e-12 && (values[0] - expected + 1.0).abs() < 1e-12);
    let s = numbers[24];
    assert!((values[3] - ((1.0 + s) * (1.0 + 4.0 * s) - 6.0 * s * s)).abs() < 1e-12);
}

#[test]
fn shapes_that_do_not_fit_are_named_with_what_to_write() {
    for (text, expected) in [
        (
            "a*b",
            "`a` is a vector of 3 and `b` a vector of 3, which cannot be multiplied; the scalar product is written a.b, the matrix of all products a*b'",
        ),
        (
            "a*A",
            "`a` is a vector of 3 and `A` a matrix of 3 × 3, which cannot be multiplied; the left side has 1 columns and the right side 3 rows",
        ),
        (
            "A + s",
            "`A` is a matrix of 3 × 3 and `s` a number, which cannot be added; both sides need the same shape; a multiple of the unit matrix is written c*identity",
        ),
        (
            "a:b",
            "`a` is a vector of 3 and `b` a vector of 3, which cannot be joined by `:`; of two vectors it is written a.b",
        ),
        (
            "A.B",
            "`A` is a matrix of 3 × 3 and `B` a matrix of 3 × 3, which cannot be joined by `.`; of two matrices it is written A:B",
        ),
        (
            "s/A",
            "`s` is a number and `A` a matrix of 3 × 3, which cannot be divided; only a number divides; the inverse of a matrix is inv(A)",
        ),
        ("sin(A)", "`A` is a matrix of 3 × 3 where a number is expected"),
        ("A^2", "`A` is a matrix of 3 × 3 where a number is expected"),
        ("det(a)", "`det(a)` does not fit a vector of 3; det takes a square matrix"),
        ("a[3]", "`a[3]` does not fit a vector of 3; its entries are numbered from 0 to 2"),
        (
            "A[1]",
            "`A[1]` does not fit a matrix of 3 × 3; an entry of a matrix has two indices, as in A[0, 1]",
        ),
        ("a[s]", "an index is a number 0, 1, 2, …"),
        ("[a, s]", "these entries make no vector or matrix; all of its entries need one shape"),
        ("[a", "this bracket is never closed; add `]`"),
        ("a]", "this bracket closes nothing; remove it or open one before"),
        (
            "if(s > 0, a, A)",
            "`A` is a matrix of 3 × 3, the other choice a vector of 3; both need the same shape",
        ),
        ("if(a > b, 1, 2)", "`a` is a vector of 3 where a number is expected"),
        (
            "(s > 0)*A",
            "`(s > 0)` is true or false where a number is expected; if(condition, 1, 0) makes a number of it",
        ),
        ("grad(s)", "`grad(s)` does not fit a number; there are no functions of space here"),
        ("trace(A)", "unknown function `trace`; did you mean `tr`?"),
        ("'", "`'` stands where a number, a name or `(` is expected"),
    ] {
        let found = builder().array(text).unwrap_err().to_string();
        let is_prefix = expected.ends_with('?');
        assert!(found == expected || is_prefix && found.starts_with(expected.trim_end()), "{text}: {found}");
    }
    // Texts of numbers keep their own messages.
    let found = femtile_expression::Expression::parse("[1]").unwrap_err().to_string();
    assert!(found.starts_with("unexpected character `[`"), "{found}");
    assert_eq!(femtile_expression::Expression::parse("tr(x)").unwrap_err().message, "unknown function `tr`");
}

#[test]
fn values_are_copied_with_others_in_place_of_inputs() {
    let mut builder = builder();
    let f = builder.expression("exp(s)*a[0]^2 + b[1]").unwrap();
    let [s, a0, b1] = [24, 18, 22].map(|at| builder.input(at));
    let sum = builder.add(a0, b1);
    let squared = builder.mul(f, f);
    // Substitutes are not substituted again, and what has none stays the same value.
    let found = builder.substitute(&[squared, f, b1], &[(s, a0), (a0, sum)]);
    assert_eq!(found[2], b1);
    let mut values = [f64::NAN; 2];
    let mut numbers = vec![f64::NAN; N];
    (numbers[18], numbers[22]) = (0.5, 2.0);
    builder.finish(&found[..2]).eval(&numbers, &mut values);
    let expected = 0.5_f64.exp() * 2.5 * 2.5 + 2.0;
    assert!(
        (values[1] - expected).abs() < 1e-13 && (values[0] - expected * expected).abs() < 1e-12,
        "{values:?}"
    );
    assert_eq!(builder.substitute(&[f], &[]), [f]);
}

//! Conductivities from fibres and sheets: the tensors they stand for, orders of convergence, refusals.

use femtile_expression::Expression;
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile_mesh::{Field, Mesh};
use femtile_solve::{Entry, Poisson, Region, SolverConfig, Transient, Value};

fn space(split: BoxSplit) -> Mesh {
    box_mesh(&BoxConfig { cells: [3, 4, 2], split, ..BoxConfig::default() }).unwrap()
}

fn plane(split: SquareSplit) -> Mesh {
    square(&SquareConfig { cells: [5, 4], split, ..SquareConfig::default() }).unwrap()
}

/// Gives each cell a vector from its number.
fn set(mesh: &mut Mesh, name: &str, n_components: usize, vector: impl Fn(usize) -> [f64; 3]) {
    let values = (0..mesh.n_cells()).flat_map(|cell| vector(cell).into_iter().take(n_components)).collect();
    mesh.cell_fields.insert(name.into(), Field { n_components, values });
}

fn problem(mesh: &Mesh, sigma: Value) -> Poisson<'_> {
    Poisson::new(mesh).sigma(sigma).source("1 + x*y").dirichlet("xmin", "y").unwrap()
}

/// The solution and the warnings.
fn solved(mesh: &Mesh, sigma: Value) -> (Vec<f64>, Vec<String>) {
    let config = SolverConfig { tolerance: 1e-13, ..SolverConfig::default() };
    let solution = problem(mesh, sigma).solve(&config).unwrap();
    assert!(solution.has_converged());
    (solution.values().to_vec(), solution.warnings().to_vec())
}

fn assert_same(found: &[f64], expected: &[f64]) {
    let size = expected.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let difference = found.iter().zip(expected).map(|(f, e)| (f - e).abs()).fold(0.0, f64::max);
    assert!(size > 0.1 && difference < 1e-10 * size, "{difference:e} of {size}");
}

fn tensor(rows: &[[f64; 3]; 3], n: usize) -> Value {
    Value::Tensor(rows[..n].iter().map(|row| row[..n].iter().map(|x| Entry::Number(*x)).collect()).collect())
}

/// Σ σ v vᵀ for orthonormal v.
fn of_axes(axes: [([f64; 3], f64); 3]) -> [[f64; 3]; 3] {
    let entry = |i: usize, j: usize| axes.iter().map(|(v, sigma)| sigma * v[i] * v[j]).sum();
    std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)))
}

#[test]
fn fibres_give_the_tensor_with_that_axis_on_every_kind_of_cell() {
    let (f, g, h) = (
        [2.0 / 3.0, -1.0 / 3.0, 2.0 / 3.0],
        [0.5_f64.sqrt(), 0.0, -(0.5_f64.sqrt())],
        [1.0 / 18_f64.sqrt(), 4.0 / 18_f64.sqrt(), 1.0 / 18_f64.sqrt()],
    );
    for mut mesh in [space(BoxSplit::Kuhn), space(BoxSplit::Hexahedron)] {
        // Of any length and either sign.
        set(&mut mesh, "fibre", 3, |cell| f.map(|x| x * (cell as f64 - 3.5)));
        let (found, warnings) = solved(&mesh, Value::fibres("fibre", 4.0, 0.5));
        let (expected, _) = solved(&mesh, tensor(&of_axes([(f, 4.0), (g, 0.5), (h, 0.5)]), 3));
        assert_same(&found, &expected);
        assert!(
            warnings.iter().any(|text| text.contains("`fibre`") && text.contains("length")),
            "{warnings:?}"
        );
        // The sheet need not be orthogonal to the fibre.
        set(&mut mesh, "sheet", 3, |_| [0, 1, 2].map(|i| g[i] + 0.7 * f[i]));
        let sheets = Value::fibres("fibre", 4.0, 2.0).in_sheets("sheet", 0.5);
        let (expected, _) = solved(&mesh, tensor(&of_axes([(f, 4.0), (g, 2.0), (h, 0.5)]), 3));
        assert_same(&solved(&mesh, sheets).0, &expected);
    }
    for mut mesh in [plane(SquareSplit::Triangles), plane(SquareSplit::Quadrilateral)] {
        let expected = [
            [4.0 * 0.36 + 0.5 * 0.64, 3.5 * 0.48, 0.0],
            [3.5 * 0.48, 4.0 * 0.64 + 0.5 * 0.36, 0.0],
            [0.0; 3],
        ];
        let (expected, _) = solved(&mesh, tensor(&expected, 2));
        for n in [2, 3] {
            set(&mut mesh, "fibre", n, |_| [0.6, 0.8, 0.0]);
            let (found, warnings) = solved(&mesh, Value::fibres("fibre", 4.0, 0.5));
            assert_same(&found, &expected);
            assert!(warnings.is_empty(), "{warnings:?}");
        }
    }
}

#[test]
fn vectors_of_extreme_length_are_normalised() {
    let mut mesh = space(BoxSplit::Kuhn);
    set(&mut mesh, "fibre", 3, |_| [0.6, 0.8, 0.0]);
    let (expected, _) = solved(&mesh, Value::fibres("fibre", 3.0, 1.0));
    for scale in [1e-300, 1e300] {
        set(&mut mesh, "fibre", 3, |_| [0.6 * scale, 0.8 * scale, 0.0]);
        assert_same(&solved(&mesh, Value::fibres("fibre", 3.0, 1.0)).0, &expected);
    }
}

#[test]
fn conductivities_of_two_domains_are_combined() {
    let mut mesh = space(BoxSplit::Kuhn);
    set(&mut mesh, "fibre", 3, |_| [1.0, 0.0, 0.0]);
    let combined = |i: f64, e: f64| i * e / (i + e);
    let (expected, _) = solved(&mesh, Value::fibres("fibre", combined(0.17, 0.62), combined(0.019, 0.24)));
    let both = Value::fibres("fibre", Value::bidomain(0.17, 0.62), Value::bidomain(0.019, 0.24));
    assert_same(&solved(&mesh, both).0, &expected);
    // Published for these values: 0.1334 and 0.0176 S/m.
    assert!((combined(0.17, 0.62) - 0.1334).abs() < 5e-5 && (combined(0.019, 0.24) - 0.0176).abs() < 5e-5);

    let (expected, _) = solved(&mesh, "(1 + x)*3/(4 + x)".into());
    assert_same(&solved(&mesh, Value::bidomain("1 + x", 3.0)).0, &expected);
    mesh.cell_tags = (0..mesh.n_cells()).map(|cell| (cell % 2) as i32).collect();
    set(&mut mesh, "extra", 1, |cell| [1.0 + (cell % 2) as f64, 0.0, 0.0]);
    let (expected, _) = solved(&mesh, Value::by_tag([("0", 0.75), ("1", 4.0 / 3.0)]));
    let by_tag = Value::by_tag([("0", 3.0), ("1", 4.0)]);
    assert_same(&solved(&mesh, Value::bidomain(by_tag, Value::field("extra"))).0, &expected);
}

#[test]
fn regions_have_fibres_or_none() {
    let mut mesh = space(BoxSplit::Kuhn);
    let n = mesh.n_cells();
    mesh.cell_tags = (0..n).map(|cell| [7, 7, 8, 9][cell * 4 / n]).collect();
    // A bath has no fibres: openCARP writes zeros there.
    let is_bath = |cell: usize| cell * 4 / n == 3;
    set(&mut mesh, "fibre", 3, |cell| if is_bath(cell) { [0.0; 3] } else { [0.6, 0.0, 0.8] });
    let sigma = |along: f64, across: f64| {
        of_axes([([0.6, 0.0, 0.8], along), ([0.8, 0.0, -0.6], across), ([0.0, 1.0, 0.0], across)])
    };
    let expected = Value::by_tag([
        ("7", tensor(&sigma(4.0, 1.0), 3)),
        ("8", tensor(&sigma(2.0, 0.5), 3)),
        ("9", 6.0.into()),
    ]);
    let (expected, _) = solved(&mesh, expected);

    let by_parts =
        Value::by_tag([("7", Value::fibres("fibre", 4.0, 1.0)), ("8", Value::fibres("fibre", 2.0, 0.5))]);
    assert_same(&solved(&mesh, by_parts.otherwise(6.0)).0, &expected);
    let along = Value::by_tag([("7", 4.0), ("8", 2.0)]).otherwise(6.0);
    let across = Value::by_tag([("7", 1.0), ("8", 0.5), ("9", 6.0)]);
    assert_same(&solved(&mesh, Value::fibres("fibre", along, across)).0, &expected);
}

/// u = r² sin θ on a square away from the origin, with fibres along circles: a third of the conductivity across.
#[test]
fn circular_fibres_converge_with_order_two() {
    let errors: Vec<f64> = [8, 16, 32]
        .into_iter()
        .map(|n| {
            let config = SquareConfig {
                cells: [n, n],
                lower: [1.0, 1.0],
                upper: [2.0, 2.0],
                ..SquareConfig::default()
            };
            let mut mesh = square(&config).unwrap();
            let middle = |mesh: &Mesh, cell: usize, axis: usize| {
                mesh.cell(cell).iter().map(|&node| mesh.points[node as usize][axis]).sum::<f64>() / 3.0
            };
            let field: Vec<[f64; 3]> = (0..mesh.n_cells())
                .map(|cell| {
                    let [x, y] = [0, 1].map(|axis| middle(&mesh, cell, axis));
                    [-y / x.hypot(y), x / x.hypot(y), 0.0]
                })
                .collect();
            set(&mut mesh, "fibre", 3, |cell| field[cell]);
            let exact = "y*hypot(x, y)";
            let problem = Poisson::new(&mesh)
                .sigma(Value::fibres("fibre", 3.0, 1.0))
                .source("(3 - 4*1)*y/hypot(x, y)")
                .dirichlet("all", exact)
                .unwrap();
            let solution = problem.solve(&SolverConfig::default()).unwrap();
            solution.component(0).error_l2(&Expression::parse(exact).unwrap()).unwrap()
        })
        .collect();
    for pair in errors.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        assert!((order - 2.0).abs() < 0.15, "{errors:?}");
    }
}

#[test]
fn equations_in_time_take_fibres_and_repeat_notes_on_them() {
    let mut mesh = plane(SquareSplit::Triangles);
    set(&mut mesh, "fibre", 3, |_| [3.0, 4.0, 0.0]);
    let config = SolverConfig { tolerance: 1e-12, ..SolverConfig::default() };
    let run = |sigma: Value| Transient::new(problem(&mesh, sigma), "y").solve(&config).unwrap().into_end();
    let found = run(Value::fibres("fibre", 4.0, 0.5));
    let expected =
        [[4.0 * 0.36 + 0.5 * 0.64, 3.5 * 0.48, 0.0], [3.5 * 0.48, 4.0 * 0.64 + 0.5 * 0.36, 0.0], [0.0; 3]];
    assert_same(found.values(), run(tensor(&expected, 2)).values());
    assert!(found.warnings().iter().any(|text| text.contains("of length 5")), "{:?}", found.warnings());
}

#[test]
fn refusals_name_the_key_the_cell_and_what_there_is() {
    let mut mesh = space(BoxSplit::Kuhn);
    set(&mut mesh, "fibre", 3, |cell| if cell == 11 { [0.0; 3] } else { [1.0, 0.0, 0.0] });
    set(&mut mesh, "broken", 3, |cell| [f64::NAN, 1.0, cell as f64]);
    set(&mut mesh, "good", 3, |_| [0.0, 1.0, 0.0]);
    set(&mut mesh, "number", 1, |cell| [5.0 - cell as f64, 0.0, 0.0]);
    set(&mut mesh, "parallel", 3, |cell| if cell == 13 { [0.0, -2.0, 1e-9] } else { [1.0, 1.0, 0.0] });
    mesh.node_fields.insert("nodal".into(), Field { n_components: 3, values: vec![1.0; 3 * mesh.n_nodes()] });
    let good = |along: Value, across: Value| Value::fibres("good", along, across);
    for (sigma, key, words) in [
        (
            Value::fibres("fiber", 2.0, 1.0),
            "sigma.fibre",
            "no cell field `fiber`; it has: broken, fibre, good",
        ),
        (Value::fibres("nodal", 2.0, 1.0), "sigma.fibre", "field of nodes"),
        (Value::fibres("number", 2.0, 1.0), "sigma.fibre", "has 1 component; a direction has 3"),
        (Value::fibres("fibre", 2.0, 1.0), "sigma.fibre", "in cell 11 is of length zero"),
        (Value::fibres("broken", 2.0, 1.0), "sigma.fibre", "in cell 0 is not finite"),
        (good(2.0.into(), (-1.0).into()), "sigma.across", "-1; it has to be positive"),
        (good(f64::INFINITY.into(), 1.0.into()), "sigma.along", "positive and finite"),
        (good(Value::field("number"), 1.0.into()), "sigma.along", "0 in cell 5"),
        (good("1 + x".into(), 1.0.into()), "sigma.along", "one value a cell"),
        (good(good(1.0.into(), 1.0.into()), 1.0.into()), "sigma.along", "a number is needed here"),
        (good(Value::bidomain(1.0, -3.0), 1.0.into()), "sigma.along.extra", "-3; it has to be positive"),
        (good(Value::bidomain(-1.0, 3.0), 1.0.into()), "sigma.along.intra", "-1; it has to be positive"),
        (Value::bidomain(good(1.0.into(), 1.0.into()), 2.0), "sigma.intra", "a number is needed here"),
        (Value::bidomain(2.0, Value::field("number")), "sigma.extra", "0 in cell 5"),
        (good(2.0.into(), 1.0.into()).in_sheets("parallel", 0.5), "sigma.sheet", "in cell 13"),
        (good(2.0.into(), 1.0.into()).in_sheets("good", 0.0), "sigma.normal", "0; it has to be positive"),
        (
            Value::by_tag([("0", good(2.0.into(), 1.0.into())), ("1", 1.0.into())]),
            "sigma.by_tag.1",
            "no cell has",
        ),
        (Value::by_tag([("0", Value::fibres("fiber", 2.0, 1.0))]), "sigma.by_tag.0.fibre", "no cell field"),
    ] {
        let said = problem(&mesh, sigma).discretize().unwrap_err().to_string();
        assert!(said.starts_with(&format!("equation.{key}: ")) && said.contains(words), "{key}: {said}");
    }
    mesh.cell_tags = (0..mesh.n_cells()).map(|cell| i32::from(cell > 20)).collect();
    let missing = Value::by_tag([("0", good(2.0.into(), 1.0.into()))]);
    let said = problem(&mesh, missing).discretize().unwrap_err().to_string();
    assert!(said.contains("cell 21 has tag 1, which has no value"), "{said}");
    // Elsewhere a number is needed.
    let robin = Poisson::new(&mesh).robin(Region::from("xmin"), good(1.0.into(), 2.0.into()), 1.0).unwrap();
    let said = robin.discretize().unwrap_err().to_string();
    assert!(said.contains("robin.coefficient") && said.contains("a number is needed"), "{said}");
}

//! Regions of cells by comparisons, and values by tag with a default.

use femtile_mesh::Mesh;
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, box_mesh, square};
use femtile_solve::{Poisson, SolveError, SolverConfig, Value, path_text, tag_regions};

fn triangles() -> Mesh {
    square(&SquareConfig { cells: [6, 4], ..SquareConfig::default() }).unwrap()
}

fn hexahedra() -> Mesh {
    let config = BoxConfig { cells: [6, 2, 2], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    box_mesh(&config).unwrap()
}

/// Values with the three parts of [0, 1] along x: below 1/3, above 2/3, between.
fn solved(mesh: &Mesh, value: impl Fn([f64; 3]) -> Value) -> Vec<f64> {
    let degree = if mesh.dimension() == 3 { 2 } else { 1 };
    let problem = Poisson::new(mesh).degree(degree);
    let problem = problem.sigma(value([5.0, 0.5, 1.0])).lambda(value([0.0, 3.0, 2.0]));
    let problem = problem.source(value([1.0, -2.0, 4.0])).dirichlet("xmax", 0.0).unwrap();
    let problem = problem.neumann("ymax", value([0.5, 2.0, 1.0])).unwrap();
    problem.solve(&SolverConfig { tolerance: 1e-12, ..SolverConfig::default() }).unwrap().values().to_vec()
}

#[test]
fn regions_with_a_default_are_the_formula_that_says_the_same() {
    for mesh in [triangles(), hexahedra()] {
        let formula = |[lower, upper, other]: [f64; 3]| {
            format!("if(x < 1/3, {lower}, if(x > 2/3, {upper}, {other}))").into()
        };
        let expected = solved(&mesh, formula);
        let mut tagged = mesh.clone();
        let regions = [("lower", "x < 1/3"), ("upper", "x > 2/3")];
        assert!(tag_regions(&mut tagged, &regions).unwrap().is_empty());
        let by_tag = |[lower, upper, other]: [f64; 3]| {
            Value::by_tag([("lower", lower), ("upper", upper)]).otherwise(other)
        };
        let named = |[lower, upper, other]: [f64; 3]| {
            Value::by_tag([("lower", lower), ("upper", upper), ("0", other)])
        };
        for found in [solved(&tagged, by_tag), solved(&tagged, named)] {
            let scale = expected.iter().fold(0.0_f64, |largest, u| largest.max(u.abs()));
            let difference = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(difference < 1e-9 * scale, "{difference:e} of {scale}");
        }
    }
}

#[test]
fn a_default_alone_counts_on_a_mesh_without_tags_and_is_refused_where_it_cannot_be_read() {
    let mesh = triangles();
    assert_eq!(
        solved(&mesh, |_| Value::by_tag::<&str, f64>([]).otherwise(2.0)),
        solved(&mesh, |_| 2.0.into())
    );
    let problem = Poisson::new(&mesh).source(Value::by_tag::<&str, f64>([]).otherwise("q"));
    match problem.dirichlet("all", 0.0).unwrap().discretize().map(drop) {
        Err(SolveError::Setting { path, .. }) => assert_eq!(path_text(&path), "equation.source.default"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_several_regions_the_last_has_a_cell_and_tags_of_others_stay() {
    let mut mesh = triangles();
    mesh.cell_tags = vec![3; mesh.n_cells()];
    let overlaps = tag_regions(&mut mesh, &[("left", "x < 0.5"), ("low", "y < 0.5")]).unwrap();
    let [overlap] = &overlaps[..] else { panic!("{overlaps:?}") };
    assert_eq!((overlap.loser, overlap.taker, overlap.n_taken, overlap.n_named), (0, 1, 12, 24));
    let count = |tag: i32| mesh.cell_tags.iter().filter(|&&found| found == tag).count();
    assert_eq!([count(3), count(4), count(5)], [12, 12, 24]);
}

#[test]
fn regions_that_hold_no_cell_or_have_no_name_of_their_own_are_refused() {
    for (regions, key, words) in [
        (&[("core", "x < 2"), ("far", "x > 2")][..], "region[1].where", "x from 0 to 1, y from 0 to 1"),
        (&[("core", "x <")], "region[0].where", "no comparison such as"),
        (&[("7", "x < 2")], "region[0].name", "numbers stand for the tags"),
        (&[("a", "x < 0.5"), ("a", "x > 0.5")], "region[1].name", "tag `a` already"),
    ] {
        match tag_regions(&mut triangles(), regions).unwrap_err() {
            SolveError::Setting { path, message, .. } => {
                assert_eq!(path_text(&path), key);
                assert!(message.contains(words), "{message}");
            }
            other => panic!("{other}"),
        }
    }
}

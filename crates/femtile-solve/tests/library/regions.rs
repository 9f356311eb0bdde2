//! Messages about regions of the boundary that do not exist.

use std::sync::Arc;

use femtile_mesh::Mesh;
use femtile_mesh::check::{CheckConfig, boundary_facets, check};
use femtile_mesh::generate::{BoxConfig, SquareConfig, box_mesh, square};
use femtile_solve::{Poisson, Region, SolveError, Value, path_text, tag_regions};

fn mesh() -> Mesh {
    box_mesh(&BoxConfig { cells: [2, 2, 2], ..BoxConfig::default() }).unwrap()
}

/// Key, place within the text and message of the refusal of a condition, the second one of a problem.
fn refusal(mesh: &Mesh, on: impl Into<Region>) -> (String, Option<std::ops::Range<usize>>, String) {
    let problem = Poisson::new(mesh).dirichlet("all", 0.0).unwrap();
    match problem.neumann(on, 1.0).map(drop).unwrap_err() {
        SolveError::Setting { path, within, message } => (path_text(&path), within, message),
        other => panic!("{other}"),
    }
}

#[test]
fn unknown_regions_are_refused_with_the_tags_and_the_extent_of_the_mesh() {
    let mesh = mesh();
    for (on, words) in [
        ("inlet", &["no tag `inlet`", "xmin (1)", "zmax (6)"][..]),
        ("7", &["no tag `7`", "xmin (1)"]),
        ("x > 2", &["no facet", "on no node either", "x from 0 to 1", "z from 0 to 1"]),
        ("x > 0.9 and y > 0.9", &["no facet", "3 nodes satisfy it", "takes `nodes"]),
    ] {
        let (key, within, message) = refusal(&mesh, on);
        assert_eq!((key.as_str(), within), ("boundary[1].where", None));
        assert!(words.iter().all(|word| message.contains(word)), "{on}: {message}");
    }
}

#[test]
fn comparisons_that_cannot_be_read_are_refused_at_their_place() {
    let (key, within, message) = refusal(&mesh(), "x < q + 1");
    assert_eq!((key.as_str(), within), ("boundary[1].where", Some(4..5)));
    assert!(message.contains("neither a tag nor a comparison"), "{message}");
}

#[test]
fn tags_that_no_facet_of_the_boundary_has_are_refused() {
    let mut mesh = mesh();
    mesh.tag_names.insert((2, 9), "inside".into());
    let (_, _, message) = refusal(&mesh, "inside");
    assert!(message.contains("`inside` is on no facet") && !message.contains("inside (9)"), "{message}");
    mesh.facets = Default::default();
    let (_, _, message) = refusal(&mesh, "xmin");
    assert!(message.contains("no facet") || message.contains("no tagged boundary"), "{message}");
}

/// Cells over [0, 2] × [0, 1] with the tag `electrode` on the inner line x = 1, and `mixed` there and on the side x = 2.
fn with_inner_tags() -> Mesh {
    let config = SquareConfig { cells: [4, 3], upper: [2.0, 1.0], ..SquareConfig::default() };
    let mut mesh = square(&config).unwrap();
    let node = |x: f64, y: f64| {
        let is_there = |point: &[f64; 3]| (point[0] - x).abs() + (point[1] - y).abs() < 1e-9;
        mesh.points.iter().position(is_there).unwrap() as u32
    };
    let line = |x: f64| (0..3).map(move |i| [f64::from(i), f64::from(i + 1)].map(|y| (x, y / 3.0)));
    let facets = |x: f64| line(x).flatten().map(|(x, y)| node(x, y)).collect::<Vec<u32>>();
    let (inner, side) = (facets(1.0), facets(2.0));
    for (tag, nodes) in [(9, &inner), (10, &inner), (10, &side), (10, &side)] {
        mesh.facets.nodes.extend(nodes);
        mesh.facets.tags.extend([tag; 3]);
    }
    mesh.tag_names.extend([((1, 9), "electrode".into()), ((1, 10), "mixed".into())]);
    mesh
}

#[test]
fn tags_on_inner_facets_alone_are_refused_with_their_number() {
    let mesh = with_inner_tags();
    let (key, _, message) = refusal(&mesh, "electrode");
    assert_eq!(key, "boundary[1].where");
    let expected = "the tag `electrode` is on 3 facets inside the mesh and on none of its boundary; conditions on inner \
                    facets are not supported; `dirichlet` takes `nodes = \"…\"`";
    assert!(message.starts_with(expected), "{message}");
    let solution = Poisson::new(&mesh).dirichlet("all", 0.0).unwrap().solve(&Default::default()).unwrap();
    let message = solution.flux(0, "9").unwrap_err().to_string();
    assert!(message.contains("fluxes on inner facets are not supported"), "{message}");
    let (_, _, message) = refusal(&mesh, "lid");
    assert!(message.contains("electrode (9), mixed (10)"), "{message}");
}

#[test]
fn tags_on_inner_and_outer_facets_are_told_with_their_condition() {
    let mesh = with_inner_tags();
    let problem = Poisson::new(&mesh).dirichlet("xmin", 0.0).unwrap().dirichlet("mixed", 1.0).unwrap();
    let solution = problem.solve(&Default::default()).unwrap();
    let [warning] = solution.warnings() else { panic!("{:?}", solution.warnings()) };
    assert!(
        warning.contains("\"mixed\") leaves out 3 facets of its tag that lie inside the mesh"),
        "{warning}"
    );
    assert!((solution.value_at([1.0, 0.5, 0.0]).unwrap() - 0.5).abs() < 1e-6);
}

#[test]
fn names_that_no_cell_has_are_no_tags_of_cells() {
    let mut mesh = square(&SquareConfig { cells: [4, 4], ..SquareConfig::default() }).unwrap();
    mesh.cell_tags = vec![1; mesh.n_cells()];
    mesh.tag_names.extend([((2, 1), "plate".into()), ((2, 2), "empty".into())]);
    check(&mut mesh, &CheckConfig::default()).unwrap();
    let message = |mesh: &Mesh, name: &str| {
        let sigma = Value::by_tag([(name, 2.0)]).otherwise(1.0);
        let problem = Poisson::new(mesh).sigma(sigma).dirichlet("all", 0.0).unwrap();
        problem.solve(&Default::default()).map(drop).unwrap_err().to_string()
    };
    for name in ["empty", "2"] {
        let message = message(&mesh, name);
        assert!(
            message.contains(&format!("no cell has the tag `{name}`; tags of cells: plate (1)")),
            "{message}"
        );
    }
    tag_regions(&mut mesh, &[("left", "x < 0.5"), ("whole", "x < 2")]).unwrap();
    for name in ["left", "plate"] {
        let message = message(&mesh, name);
        assert!(message.contains(&format!("no cell has the tag `{name}`")), "{message}");
    }
}

#[test]
fn lists_of_facets_are_checked_and_their_order_does_not_matter() {
    let mesh = mesh();
    let n = boundary_facets(&mesh).len() as u32;
    let (_, _, message) = refusal(&mesh, vec![0, n]);
    assert!(message.contains(&format!("no facet {n}: the boundary has {n}")), "{message}");
    let (_, _, message) = refusal(&mesh, Vec::new());
    assert!(message.contains("empty"), "{message}");
    let values = |facets: Vec<u32>| {
        let problem = Poisson::new(&mesh).lambda(1.0).dirichlet(facets, "1 + y").unwrap();
        problem.solve(&Default::default()).unwrap().values().to_vec()
    };
    assert_eq!(values(vec![5, 0, 3, 3, 5]), values(vec![0, 3, 5]));
}

#[test]
fn a_problem_with_the_boundary_of_the_check_has_the_same_solution() {
    let mut mesh = mesh();
    let boundary = check(&mut mesh, &CheckConfig::default()).unwrap().boundary;
    let values = |problem: Poisson<'_>| {
        let problem = problem.source("x").dirichlet("xmin", "y").unwrap().neumann("z > 0.9", 1.0).unwrap();
        problem.solve(&Default::default()).unwrap().values().to_vec()
    };
    assert_eq!(values(Poisson::with_boundary(&mesh, boundary).unwrap()), values(Poisson::new(&mesh)));
}

#[test]
fn the_boundary_of_another_mesh_is_refused() {
    let (mesh, other) = (mesh(), box_mesh(&BoxConfig { cells: [3, 2, 2], ..BoxConfig::default() }).unwrap());
    let sound = boundary_facets(&mesh);
    let mut short = sound.clone();
    short.local.pop();
    let mut turned = sound.clone();
    turned.nodes.swap(3, 4);
    let mut far = sound.clone();
    far.cells[7] = mesh.n_cells() as u32;
    let mut fifth = sound;
    fifth.local[2] = 4;
    for (boundary, words) in [
        (boundary_facets(&other), "is no facet of cell"),
        (short, "47 numbers for 48 facets"),
        (turned, "facet 1 is no facet of cell"),
        (far, "facet 7 is no facet of cell 48"),
        (fifth, "facet 2 is no facet of cell"),
    ] {
        let message = Poisson::with_boundary(&mesh, Arc::new(boundary)).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}

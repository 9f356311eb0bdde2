//! Messages about regions of the boundary that do not exist.

use std::sync::Arc;

use femtile_mesh::Mesh;
use femtile_mesh::check::{CheckConfig, boundary_facets, check};
use femtile_mesh::generate::{BoxConfig, box_mesh};
use femtile_solve::{Poisson, Region, SolveError, path_text};

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
    assert!(message.contains("`inside` is on no facet"), "{message}");
    mesh.facets = Default::default();
    let (_, _, message) = refusal(&mesh, "xmin");
    assert!(message.contains("no facet") || message.contains("no tagged boundary"), "{message}");
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

//! The sample meshes: counts, volumes and refinement agree with an independent assembly.

use std::path::Path;

use femtile_mesh::check::{CheckConfig, CheckError, boundary_facets, check};
use femtile_mesh::{io, refine};
use serde_json::Value;

use crate::samples::samples;

fn reference(folder: &Path) -> serde_json::Map<String, Value> {
    let text = std::fs::read_to_string(folder.join("p1_invariants.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn count(entry: &Value, key: &str) -> usize {
    entry[key].as_u64().unwrap() as usize
}

#[test]
fn every_sample_has_the_counts_and_the_volume_of_the_reference() {
    let Some(folder) = samples("reference", "every_sample_has_the_counts_and_the_volume_of_the_reference")
    else {
        return;
    };
    for (name, entry) in reference(&folder) {
        let mut mesh = io::read(&folder.join("..").join(&name)).unwrap();
        let n_read = mesh.n_nodes();
        let n_boundary = boundary_facets(&mesh).len();
        assert_eq!(n_boundary, count(&entry, "boundary_faces"), "{name}");
        let result = check(&mut mesh, &CheckConfig::default());
        if name.ends_with("CubeMesh_size256step16.node") {
            let error = result.unwrap_err();
            assert!(matches!(error, CheckError::OverlappingFacets { .. }), "{name}: {error}");
            continue;
        }
        let report = result.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(report.n_cells, count(&entry, "tets"), "{name}");
        assert_eq!(report.n_orphans, count(&entry, "orphan_nodes"), "{name}");
        assert_eq!(n_read - report.n_orphans, report.n_nodes, "{name}");
        assert_eq!(report.boundary.len(), n_boundary, "{name}");
        let volume = entry["volume"].as_f64().unwrap();
        assert!((report.volume - volume).abs() < 1e-10 * volume, "{name}: {} {volume}", report.volume);
        assert_eq!((report.n_pinched, report.n_duplicate_nodes), (0, 0), "{name}");
        let expected = if name.ends_with("elbow2.mesh") { report.n_cells } else { 0 };
        assert_eq!(report.n_flipped, expected, "{name}");
    }
}

#[test]
fn every_refined_sample_has_the_counts_of_the_reference() {
    let Some(folder) = samples("reference", "every_refined_sample_has_the_counts_of_the_reference") else {
        return;
    };
    for (name, entry) in reference(&folder) {
        let mesh = io::read(&folder.join("..").join(&name)).unwrap();
        let fine = refine::uniform(&mesh).unwrap();
        let expected = &entry["after_one_uniform_refinement"];
        assert_eq!(fine.n_nodes(), count(expected, "nodes_incl_orphans"), "{name}");
        assert_eq!(fine.n_cells(), count(expected, "tets"), "{name}");
    }
}

#[test]
fn the_check_says_something_of_every_hexahedral_sample_that_can_be_read() {
    let test = "the_check_says_something_of_every_hexahedral_sample_that_can_be_read";
    let Some(folder) = samples("meshes/hex", test) else { return };
    let mut n_checked = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        // Curved meshes are not read yet.
        let Ok(mut mesh) = io::read(&path) else { continue };
        let report = check(&mut mesh, &CheckConfig::default()).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        assert!(report.volume > 0.0 && (0.0..=1.0).contains(&report.worst_quality), "{path:?}: {report:?}");
        n_checked += 1;
    }
    assert!(n_checked > 0);
}

#[test]
fn the_sample_outside_the_reference_passes_the_check() {
    let Some(folder) = samples("meshes/tet", "the_sample_outside_the_reference_passes_the_check") else {
        return;
    };
    let mut mesh = io::read(&folder.join("arcane_spheres_in_sphere.msh")).unwrap();
    let report = check(&mut mesh, &CheckConfig::default()).unwrap();
    assert!(report.n_flipped == 0 && report.volume > 0.0 && report.n_components == 1, "{report:?}");
}

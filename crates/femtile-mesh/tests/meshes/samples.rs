//! Meshes of other programs agree with figures computed independently.

use std::path::PathBuf;

use femtile_mesh::{Mesh, io};

/// Name, number of nodes, number of tetrahedra, volume.
const SAMPLES: [(&str, usize, usize, f64); 15] = [
    ("tetVol.node", 10648, 46305, 8.0),
    ("CubeMesh_size256step16.node", 4913, 24576, 16777215.999999987),
    ("CubeMesh_size256step16_correct.node", 4913, 24576, 16777215.999999987),
    ("sphere8092.node", 8092, 40000, 31384.513555260033),
    ("sphere19499.node", 19499, 100276, 31411.5356245187),
    ("torus.node", 1012, 3444, 872.3695975986354),
    ("HumanWedgeMesh.node", 18411, 97200, 16.199999999999996),
    ("ellipsoid_15811.node", 3432, 15811, 0.27979231284046535),
    ("cylinder_14748.node", 2978, 14748, 1.2424399999999996e-07),
    ("cube_cylinder.mesh", 10490, 54517, 1.0),
    ("elbow2.mesh", 1823, 8161, 0.0008773623112102538),
    ("wheelset.vtk", 5457, 21934, 0.15813253880683378),
    ("piezo_mesh_micro.vtk", 8918, 42744, 0.9348056565510944),
    ("bunny.msh", 4670, 19379, 6.010398220255014),
    ("monkey8K.msh", 12448, 52864, 38398.92999226075),
];

/// A folder of the samples, such as `meshes/tet`; without it the test is skipped.
pub(crate) fn samples(folder: &str, test: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let folder = std::env::var_os("FEMTILE_SAMPLES").map_or_else(beside, PathBuf::from).join(folder);
    if !folder.exists() {
        eprintln!("SKIPPED: {test}: no samples (set FEMTILE_SAMPLES)");
        return None;
    }
    Some(folder)
}

fn volume(mesh: &Mesh) -> f64 {
    (0..mesh.n_cells()).map(|cell| mesh.signed_measure(cell).abs()).sum()
}

#[test]
fn samples_have_the_counts_and_volume_of_the_reference() {
    let Some(folder) = samples("meshes/tet", "samples_have_the_counts_and_volume_of_the_reference") else {
        return;
    };
    for (name, n_nodes, n_cells, expected) in SAMPLES {
        let mesh = io::read(&folder.join(name)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((mesh.n_nodes(), mesh.n_cells()), (n_nodes, n_cells), "{name}");
        let volume = volume(&mesh);
        assert!((volume / expected - 1.0).abs() < 1e-10, "{name}: {volume} should be {expected}");
    }
}

#[test]
fn binary_gmsh_samples_are_read_or_refused_by_name() {
    let Some(folder) = samples("meshes/tet", "binary_gmsh_samples_are_read_or_refused_by_name") else {
        return;
    };
    let mesh =
        io::read(&folder.join("arcane_spheres_in_sphere.msh")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(mesh.tag_names[&(2, 30)], "outerSphere");
    assert!(
        mesh.facets.tags.contains(&30) && (0..mesh.n_cells()).all(|cell| mesh.signed_measure(cell) > 0.0)
    );
    let hexahedra = io::read(&folder.join("../hex/arcane_sphere_in_sphere.hexa.msh"));
    assert_eq!(hexahedra.unwrap_or_else(|error| panic!("{error}")).n_cells(), 5930);
}

#[test]
fn hexahedra_of_order_two_have_their_points_where_the_cube_has_them() {
    let test = "hexahedra_of_order_two_have_their_points_where_the_cube_has_them";
    let Some(folder) = samples("meshes/hex", test) else { return };
    let mesh =
        io::read(&folder.join("arcane_3x3x3_cube_hexa27.msh")).unwrap_or_else(|error| panic!("{error}"));
    let curved = mesh.curved.as_ref().unwrap();
    assert_eq!((mesh.n_nodes(), mesh.n_cells(), curved.order, curved.points.len()), (64, 27, 2, 343));
    assert_eq!(mesh.facets.tags.len(), 54);
    for (cell, points) in curved.cells.chunks(27).enumerate() {
        let at = |place: usize| curved.points[points[place] as usize];
        let [origin, x, y, z] = [0, 2, 6, 18].map(at);
        assert_eq!(
            [0, 1, 3, 4].map(|corner| mesh.points[mesh.cell(cell)[corner] as usize]),
            [origin, x, y, z]
        );
        for place in 0..27 {
            let [i, j, k] = [place % 3, place / 3 % 3, place / 9].map(|i| 0.5 * i as f64);
            let expected = |d: usize| {
                origin[d] + i * (x[d] - origin[d]) + j * (y[d] - origin[d]) + k * (z[d] - origin[d])
            };
            assert!((0..3).all(|d| (at(place)[d] - expected(d)).abs() < 1e-12), "{cell} {place}");
        }
    }
}

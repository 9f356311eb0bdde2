//! Boundary facets that meet without being identical: gaps, overlaps, flat cells, and accepted findings.

use femtile_mesh::check::{CheckConfig, CheckError, CheckReport, Finding, check, check_interruptible};
use femtile_mesh::generate::{
    BallConfig, BoxConfig, BoxSplit, SquareConfig, SquareSplit, ball, box_mesh, square,
};
use femtile_mesh::{CellKind, Mesh, MeshError};

fn sub(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|d| a[d] - b[d])
}

/// Volume and mean ratio of a tetrahedron.
fn shape(mesh: &Mesh, cell: usize) -> (f64, f64) {
    let p: Vec<[f64; 3]> = mesh.cell(cell).iter().map(|&node| mesh.points[node as usize]).collect();
    let [a, b, c] = [1, 2, 3].map(|i| sub(p[i], p[0]));
    let volume = (a[0] * (b[1] * c[2] - b[2] * c[1])
        + a[1] * (b[2] * c[0] - b[0] * c[2])
        + a[2] * (b[0] * c[1] - b[1] * c[0]))
        / 6.0;
    let pairs = (0..4).flat_map(|i| (0..i).map(move |j| (i, j)));
    let sum: f64 = pairs.map(|(i, j)| sub(p[i], p[j]).iter().map(|x| x * x).sum::<f64>()).sum();
    (volume, 12.0 * (3.0 * volume.abs()).powf(2.0 / 3.0) / sum)
}

fn without(mesh: &Mesh, cell: usize) -> Mesh {
    let mut holed = mesh.clone();
    holed.cells.drain(4 * cell..4 * cell + 4);
    holed
}

/// The ball with one node moved so that a cell becomes a sliver and no cell turns over; none where that cannot be.
fn with_sliver(mesh: &Mesh, cell: usize, apex: usize) -> Option<Mesh> {
    let mut bent = mesh.clone();
    let node = mesh.cell(cell)[apex] as usize;
    let others: Vec<[f64; 3]> =
        (0..4).filter(|&i| i != apex).map(|i| mesh.points[mesh.cell(cell)[i] as usize]).collect();
    let (u, v) = (sub(others[1], others[0]), sub(others[2], others[0]));
    let normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    let dot = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let height = dot(normal, sub(mesh.points[node], others[0])) / dot(normal, normal);
    (0..3).for_each(|d| bent.points[node][d] -= 0.99 * height * normal[d]);
    let around = (0..mesh.n_cells()).filter(|&c| mesh.cell(c).contains(&(node as u32)));
    let is_sound = around.into_iter().all(|c| shape(&bent, c).0 > 0.0);
    (is_sound && shape(&bent, cell).1 < 0.1).then_some(bent)
}

fn checked(mesh: &mut Mesh) -> CheckReport {
    check(mesh, &CheckConfig::default()).unwrap()
}

fn cube(n: usize) -> Mesh {
    box_mesh(&BoxConfig { cells: [n; 3], ..BoxConfig::default() }).unwrap()
}

/// Adds copies of the points moved by `shift`, and the cells on them.
fn append(mesh: &mut Mesh, other: &Mesh, shift: [f64; 3]) {
    let first = mesh.n_nodes() as u32;
    mesh.points.extend(other.points.iter().map(|p| std::array::from_fn(|d| p[d] + shift[d])));
    mesh.cells.extend(other.cells.iter().map(|node| node + first));
}

#[test]
fn a_lone_thin_gap_is_a_warning_with_its_place_and_size() {
    let mesh = ball(&BallConfig { radius: 1.0, h: 0.5 }).unwrap();
    let on_surface: Vec<bool> =
        mesh.points.iter().map(|p| p.iter().map(|x| x * x).sum::<f64>() > 0.99).collect();
    let mut n_gaps = [0; 3];
    for cell in 0..mesh.n_cells() {
        for apex in 0..4 {
            // A cell with a face on the surface leaves a dent, no gap.
            let n_outside = mesh.cell(cell).iter().filter(|&&node| on_surface[node as usize]).count();
            if n_outside > 2 {
                continue;
            }
            let Some(bent) = with_sliver(&mesh, cell, apex) else { continue };
            assert_eq!(checked(&mut bent.clone()).n_gaps, 0);
            let report = checked(&mut without(&bent, cell));
            assert_eq!(report.n_gaps, 1, "cell {cell}, apex {apex}");
            n_gaps[n_outside] += 1;
            let warning = report.warnings.iter().find(|warning| warning.starts_with("a gap")).unwrap();
            let volume = format!("of volume {:.2e}", shape(&bent, cell).0);
            assert!(warning.contains(&volume) && warning.contains("near ["), "{warning}");
        }
    }
    assert!(n_gaps.iter().all(|&n| n > 20), "{n_gaps:?}");
}

#[test]
fn a_sliver_with_nodes_of_its_own_leaves_no_gap_around_it() {
    let mesh = ball(&BallConfig { radius: 1.0, h: 0.5 }).unwrap();
    let slivers = (0..mesh.n_cells()).filter_map(|cell| Some((with_sliver(&mesh, cell, 0)?, cell)));
    for (bent, cell) in slivers.take(50) {
        let lone = Mesh::new(bent.points.clone(), bent.kind, bent.cell(cell).to_vec()).unwrap();
        let mut cracked = without(&bent, cell);
        append(&mut cracked, &lone, [0.0; 3]);
        let report = checked(&mut cracked);
        assert!(report.n_gaps == 0 && report.n_crack_facets > 0, "{cell}: {:?}", report.warnings);
    }
}

#[test]
fn two_gaps_that_do_not_meet_are_two_lone_gaps() {
    let mesh = cube(6);
    // Flattens the first cell of a cube far inside by moving one of its nodes.
    let flat = |mesh: &Mesh, from: usize| {
        (from..mesh.n_cells()).find_map(|cell| {
            let inside = mesh
                .cell(cell)
                .iter()
                .all(|&node| mesh.points[node as usize].iter().all(|&x| x > 0.01 && x < 0.99));
            let bent = (0..4).find_map(|apex| with_sliver(mesh, cell, apex)).filter(|_| inside)?;
            Some((bent, cell))
        })
    };
    let (bent, first) = flat(&mesh, 0).unwrap();
    let (bent, second) = flat(&bent, 6 * 6 * 6 * 4).unwrap();
    let report = checked(&mut without(&without(&bent, second), first));
    assert_eq!(report.n_gaps, 2);
    assert!(report.warnings.iter().any(|warning| warning.starts_with("2 gaps")), "{:?}", report.warnings);
}

#[test]
fn a_hole_of_one_thick_cell_is_no_gap() {
    let mesh = ball(&BallConfig { radius: 1.0, h: 0.5 }).unwrap();
    for cell in (0..mesh.n_cells()).filter(|&cell| shape(&mesh, cell).1 > 0.5) {
        assert_eq!(checked(&mut without(&mesh, cell)).n_gaps, 0, "{cell}");
    }
}

/// Two layers of cubes with common nodes, the faces between them cut along different diagonals and bent.
fn clashing(n: usize, bend: f64) -> Mesh {
    let layer = |z: f64| {
        let (lower, upper) = ([0.0, 0.0, z], [1.0, 1.0, z + 0.5]);
        box_mesh(&BoxConfig { lower, upper, cells: [n, n, 1], split: BoxSplit::Kuhn }).unwrap()
    };
    let (mut mesh, mut upper) = (layer(0.0), layer(0.5));
    upper.points.iter_mut().for_each(|p| p[0] = 1.0 - p[0]);
    append(&mut mesh, &upper, [0.0; 3]);
    mesh.facets = Default::default();
    mesh.points.iter_mut().for_each(|p| p[2] += bend * p[0] * p[1] / n as f64);
    mesh
}

#[test]
fn what_is_accepted_becomes_a_warning_and_nothing_else_does() {
    let copy = |mesh: &mut Mesh, cell: usize| mesh.cells.extend_from_within(4 * cell..4 * cell + 4);
    let mut doubled = cube(2);
    copy(&mut doubled, 7);
    let mut shared = cube(2);
    let face = [shared.cell(0)[0], shared.cell(0)[2], shared.cell(0)[3]];
    shared.points.push([0.7, 0.1, 0.9]);
    shared.cells.extend([face[0], face[1], face[2], 27]);
    let points = vec![[0., 0., 0.], [1., 0., 0.], [0., 1., 0.], [0., 0., 1.], [0.3, 0.3, 0.7]];
    let folded = Mesh::new(points, CellKind::Tetrahedron, vec![0, 1, 2, 3, 0, 1, 2, 4]).unwrap();
    for (finding, mesh) in [
        (Finding::DuplicateCells, doubled),
        (Finding::SharedFacet, shared),
        (Finding::FoldedCells, folded),
        (Finding::OverlappingFacets, clashing(2, 0.0)),
        (Finding::OverlappingFacets, clashing(2, 0.1)),
        (Finding::Gap, clashing(2, -0.1)),
    ] {
        let accepting = |accept: Vec<Finding>| {
            check(&mut mesh.clone(), &CheckConfig { accept, ..CheckConfig::default() })
        };
        let others: Vec<Finding> = Finding::ALL.into_iter().filter(|other| *other != finding).collect();
        for accept in [Vec::new(), others] {
            let error = accepting(accept).unwrap_err();
            assert_eq!(error.finding(), Some(finding), "{error}");
        }
        let said = accepting(Finding::ALL.to_vec()).unwrap().warnings;
        let expected = format!("accepted ({}): ", finding.name());
        assert!(said.iter().any(|warning| warning.starts_with(&expected)), "{finding:?}: {said:?}");
    }
}

/// Boxes of flat and of long cells.
fn slender() -> impl Iterator<Item = [f64; 3]> {
    [1e-8, 1e-11, 1e8].into_iter().flat_map(|t| [[1.0, 1.0, t], [t, 1.0, 1.0], [1.0, t, t], [1.0, t, 1.0]])
}

#[test]
fn boxes_of_any_aspect_are_sound() {
    for upper in slender() {
        for split in [BoxSplit::Kuhn, BoxSplit::Five, BoxSplit::Hexahedron] {
            for lower in [[0.0; 3], [-0.25 * upper[0], -0.25 * upper[1], -0.25 * upper[2]]] {
                let config = BoxConfig { lower, upper, cells: [3, 4, 5], split };
                let report = checked(&mut box_mesh(&config).unwrap());
                let counts = (report.n_duplicate_nodes, report.n_crack_facets, report.n_components);
                assert_eq!(counts, (0, 0, 1), "{config:?}: {:?}", report.warnings);
            }
        }
    }
    for upper in [[1.0, 1e-8], [1e-11, 1.0]] {
        for split in [SquareSplit::Triangles, SquareSplit::Quadrilateral] {
            let config = SquareConfig { upper, cells: [5, 4], split, ..SquareConfig::default() };
            assert_eq!(checked(&mut square(&config).unwrap()).n_duplicate_nodes, 0);
        }
    }
}

#[test]
fn clashes_and_cracks_are_found_in_flat_and_long_boxes_as_well() {
    let is_overlap = |error: &CheckError| matches!(error, CheckError::OverlappingFacets { .. });
    for upper in slender() {
        let scaled = |mesh: &Mesh| {
            let mut mesh = mesh.clone();
            mesh.points.iter_mut().for_each(|p| (0..3).for_each(|d| p[d] *= upper[d]));
            mesh
        };
        let error = check(&mut scaled(&clashing(3, 0.0)), &CheckConfig::default()).unwrap_err();
        assert!(is_overlap(&error), "{upper:?}: {error}");
        let mut cracked = cube(2);
        append(&mut cracked, &cube(2), [0.0, 0.0, 1.0]);
        let report = checked(&mut scaled(&cracked));
        assert_eq!((report.n_duplicate_nodes, report.n_crack_facets), (9, 16), "{upper:?}");
    }
}

#[test]
fn many_cells_in_one_place_are_checked_in_little_time() {
    // Pairs of them would be hundreds of millions.
    let n = 20_000;
    let corners = [[0., 0., 0.], [1., 0., 0.], [0., 1., 0.], [0., 0., 1.]];
    let points = corners.iter().copied().cycle().take(4 * n).collect();
    let mut apart = Mesh::new(points, CellKind::Tetrahedron, (0..4 * n as u32).collect()).unwrap();
    let report = checked(&mut apart);
    assert_eq!((report.n_duplicate_nodes, report.n_crack_facets), (4 * n - 4, 4 * n));
    let cells = [0, 1, 2, 3].into_iter().cycle().take(4 * n).collect();
    let mut same = Mesh::new(corners.to_vec(), CellKind::Tetrahedron, cells).unwrap();
    let error = check(&mut same, &CheckConfig::default()).unwrap_err();
    assert!(matches!(error, CheckError::DuplicateCells { first: 0, second: 1, .. }), "{error}");
    // A fan of cells around one edge, each over its neighbours.
    let n = 500;
    let mut points = vec![[0.0; 3], [0.0, 0.0, 1.0]];
    points.extend((0..n).flat_map(|i| {
        let angle = i as f64;
        [[angle.cos(), angle.sin(), 0.3], [(angle + 0.5).cos(), (angle + 0.5).sin(), 0.7]]
    }));
    let cells = (0..n as u32).flat_map(|i| [0, 1, 2 + 2 * i, 3 + 2 * i]).collect();
    let mut fan = Mesh::new(points, CellKind::Tetrahedron, cells).unwrap();
    assert_eq!(checked(&mut fan).n_pinched, 1);
}

#[test]
fn an_interrupt_ends_the_check() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let mesh = cube(12);
    let asked = AtomicUsize::new(0);
    let after = |n: usize| {
        asked.store(0, Ordering::Relaxed);
        let is_interrupted = || asked.fetch_add(1, Ordering::Relaxed) >= n;
        check_interruptible(&mut mesh.clone(), &CheckConfig::default(), Some(&is_interrupted))
    };
    let report = after(usize::MAX).unwrap();
    assert_eq!(report, checked(&mut mesh.clone()));
    let n_asked = asked.load(Ordering::Relaxed);
    assert!(n_asked > 5, "{n_asked}");
    for n in [0, 1, 2, 4] {
        assert!(matches!(after(n), Err(CheckError::Interrupted)), "{n}");
    }
}

#[test]
fn an_interrupt_ends_a_refinement() {
    use femtile_mesh::refine::{uniform, uniform_interruptible};
    let hexahedra = BoxConfig { split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    for mesh in [cube(4), box_mesh(&hexahedra).unwrap()] {
        let interrupted = uniform_interruptible(&mesh, Some(&|| true));
        assert!(matches!(interrupted, Err(MeshError::Interrupted)));
        assert_eq!(uniform_interruptible(&mesh, Some(&|| false)).unwrap(), uniform(&mesh).unwrap());
    }
}

#[test]
fn an_interrupt_ends_a_generator_wherever_it_comes() {
    use femtile_mesh::IsInterrupted;
    use femtile_mesh::generate::{
        BallConfig, CylinderConfig, VentricleConfig, ball_interruptible, box_mesh_interruptible,
        cylinder_interruptible, ventricle_interruptible,
    };
    use std::sync::atomic::{AtomicUsize, Ordering};
    let generators: [fn(IsInterrupted<'_>) -> Result<Mesh, MeshError>; 4] = [
        |stop| box_mesh_interruptible(&BoxConfig { cells: [19, 20, 21], ..BoxConfig::default() }, stop),
        |stop| ball_interruptible(&BallConfig::default(), stop),
        |stop| cylinder_interruptible(&CylinderConfig::default(), stop),
        |stop| ventricle_interruptible(&VentricleConfig { h_mm: 1.2 }, stop),
    ];
    for (number, generator) in generators.into_iter().enumerate() {
        let asked = AtomicUsize::new(0);
        let after = |n: usize| generator(Some(&|| asked.fetch_add(1, Ordering::Relaxed) >= n));
        assert_eq!(after(usize::MAX).unwrap(), generator(None).unwrap(), "{number}");
        let n_asked = asked.load(Ordering::Relaxed);
        assert!(n_asked > 5, "{number}: {n_asked}");
        for n in 0..n_asked {
            asked.store(0, Ordering::Relaxed);
            assert!(matches!(after(n), Err(MeshError::Interrupted)), "{number}, {n}");
        }
    }
}

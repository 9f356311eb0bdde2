//! Properties of the projection between sides of boxes.

use femtile_mesh::Mesh;
use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};

use super::*;

/// Two boxes side by side along the last axis, with cells along the other axes; the second one is shifted by `gap`.
fn boxes(is_simplex: bool, cells: [&[usize]; 2], gap: f64) -> Mesh {
    let of = |number: usize| -> Mesh {
        match *cells[number] {
            [n] => {
                let split = if is_simplex { SquareSplit::Triangles } else { SquareSplit::Quadrilateral };
                let lower = [0.0, number as f64];
                square(&SquareConfig { lower, upper: [2.0, lower[1] + 1.0], cells: [n, 1], split }).unwrap()
            }
            [n, m] => {
                let split = if is_simplex { BoxSplit::Kuhn } else { BoxSplit::Hexahedron };
                let lower = [0.0, 0.0, number as f64];
                let upper = [2.0, 1.0, lower[2] + 1.0];
                box_mesh(&BoxConfig { lower, upper, cells: [n, m, 1], split }).unwrap()
            }
            _ => panic!("one or two axes"),
        }
    };
    let (mut all, above) = (of(0), of(1));
    let n = all.points.len() as u32;
    all.points.extend(above.points.iter().map(|&[x, y, z]| [x + gap, y, z]));
    all.cells.extend(above.cells.iter().map(|node| node + n));
    all.cell_tags = Vec::new();
    all.facets = Default::default();
    all
}

/// The two sides at the height 1, that of the first box first.
fn sides(space: &Space<'_>) -> [Vec<CellFacet>; 2] {
    let (mesh, boundary) = (space.mesh(), boundary_facets(space.mesh()));
    let up = mesh.dimension() - 1;
    let height =
        |cell: usize| mesh.cell(cell).iter().map(|&node| mesh.points[node as usize][up]).fold(0.0, f64::max);
    let is_on_it =
        |facet: &usize| boundary.facet(*facet).iter().all(|&node| mesh.points[node as usize][up] == 1.0);
    let all = space.boundary_facets(&boundary);
    [false, true].map(|is_upper| {
        let is_own = |facet: &usize| (height(boundary.cells[*facet] as usize) > 1.5) == is_upper;
        (0..boundary.len()).filter(is_on_it).filter(is_own).map(|facet| all[facet]).collect()
    })
}

/// The nodes of a side with their values on another one, which lies at `motion` of them.
fn nodes(
    space: &Space<'_>,
    from: &[CellFacet],
    to: &[CellFacet],
    motion: &dyn Fn([f64; 3]) -> [f64; 3],
) -> Vec<SideNode> {
    let (points, mut dofs) = (space.node_points(), vec![0; space.element().n_dofs()]);
    let mut own = Vec::new();
    for facet in to {
        space.cell_dofs(facet.position, &mut dofs);
        own.extend(space.element().facets()[facet.facet].dofs.iter().map(|&local| dofs[local]));
    }
    own.sort_unstable();
    own.dedup();
    let moved: Vec<[f64; 3]> = own.iter().map(|&dof| motion(points[dof as usize])).collect();
    let feet = space.nearest(from, &moved);
    let node = |(dof, foot): (u32, Option<crate::Foot>)| {
        let foot = foot.unwrap();
        space.cell_dofs(foot.at.position, &mut dofs);
        let table = space.element().tabulate(&[foot.at.reference]);
        let terms = dofs.iter().zip(table.values(0)).filter(|(_, value)| value.abs() > 1e-12);
        SideNode {
            dof,
            point: points[dof as usize],
            terms: terms.map(|(&dof, &value)| (dof, value)).collect(),
        }
    };
    own.into_iter().zip(feet).map(node).collect()
}

/// Returns the integral over a plane side of the product of a discrete function with another one.
fn integral(space: &Space<'_>, facets: &[CellFacet], u: &[f64], q: impl Fn([f64; 3]) -> f64) -> f64 {
    let (element, mut dofs, mut sum) = (space.element(), vec![0; space.element().n_dofs()], 0.0);
    let rule = element.facet_quadrature(12);
    for &facet in facets {
        let own = &element.facets()[facet.facet];
        let points: Vec<[f64; 3]> = rule.points.iter().map(|&point| own.point(point)).collect();
        let (table, mut map) = (element.tabulate(&points), crate::PointMap::default());
        space.map(facet.position, &points, &mut map).unwrap();
        space.cell_dofs(facet.position, &mut dofs);
        for k in 0..rule.n_q() {
            let value: f64 =
                dofs.iter().zip(table.values(k)).map(|(&dof, shape)| shape * u[dof as usize]).sum();
            let inverse = crate::geometry::inverse(&map.jacobians[k]);
            let area =
                |i: usize| (0..3).map(|a| inverse[a][i] * own.normal[a]).sum::<f64>() * map.determinants[k];
            let measure = (0..3).map(|i| area(i).powi(2)).sum::<f64>().sqrt();
            sum += rule.weights[k] * measure * value * q(map.points[k]);
        }
    }
    sum
}

/// Checks the relations of a side; returns the largest number of terms.
fn check(space: &Space<'_>, from: &[CellFacet], to: &[CellFacet], shift: f64) -> usize {
    let p = space.element().degree() as i32;
    let motion = |[x, y, z]: [f64; 3]| [x - shift, y, z];
    let nodes = nodes(space, from, to, &motion);
    let found =
        space.mortar(&SidePair { from, to, motion: &motion, gap: None, density: None }, &nodes).relations;
    let points = space.node_points();
    let relations =
        || nodes.iter().zip(&found).map(|(node, terms)| (node, terms.as_ref().unwrap_or(&node.terms)));
    let polynomial = |[x, y, z]: [f64; 3]| (0.3 + x - 0.5 * y + 0.2 * z).powi(p);
    for (node, terms) in relations() {
        let sum: f64 = terms.iter().map(|(_, c)| c).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{node:?}: {terms:?}");
        let value: f64 = terms.iter().map(|&(dof, c)| c * polynomial(points[dof as usize])).sum();
        assert!((value - polynomial(motion(node.point))).abs() < 1e-11, "{node:?}: {terms:?}");
    }
    // Any function has the same moments on both sides.
    let random = |i: usize| (i * i * 7919 % 1009) as f64 / 1009.0 - 0.5;
    let mut u: Vec<f64> = (0..space.n_dofs()).map(random).collect();
    for (node, terms) in relations() {
        u[node.dof as usize] = terms.iter().map(|&(dof, c)| c * u[dof as usize]).sum();
    }
    assert!(found.iter().any(Option::is_some));
    for [a, b] in [[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]].into_iter().filter(|[a, b]| a + b < p) {
        let q =
            |[x, y, _]: [f64; 3]| x.powi(a) * if space.element().dimension() == 2 { 1.0 } else { y.powi(b) };
        let [of_from, of_to] = [integral(space, from, &u, q), integral(space, to, &u, |x| q(motion(x)))];
        assert!(
            (of_from - of_to).abs() < 1e-11,
            "{:?}, degree {p}, {} on {}: x^{a} y^{b}: {of_from} {of_to}",
            space.mesh().kind,
            to.len(),
            from.len()
        );
    }
    found.iter().flatten().map(Vec::len).max().unwrap_or(0)
}

#[test]
fn moments_below_the_degree_and_polynomials_are_kept_on_all_elements() {
    for is_simplex in [false, true] {
        for degree in 1..=4 {
            for (cells, shift) in [
                ([&[5][..], &[7][..]], 0.0),
                ([&[9], &[4]], 0.25),
                ([&[4, 3], &[5, 4]], 0.0),
                ([&[5, 5], &[4, 3]], -0.5),
            ] {
                if degree == 4 && cells[0].len() == 2 {
                    continue;
                }
                let mesh = boxes(is_simplex, cells, shift);
                let space = Space::new(&mesh, degree).unwrap();
                let [lower, upper] = sides(&space);
                check(&space, &lower, &upper, shift);
                check(&space, &upper, &lower, -shift);
            }
        }
    }
}

#[test]
fn relations_are_local() {
    for (is_simplex, n_terms) in [(false, 25), (true, 27)] {
        let mesh = boxes(is_simplex, [&[12, 12], &[13, 13]], 0.0);
        let space = Space::new(&mesh, 1).unwrap();
        let [lower, upper] = sides(&space);
        assert!(check(&space, &lower, &upper, 0.0) <= n_terms);
    }
}

#[test]
fn sides_that_match_or_are_refined_keep_their_interpolation() {
    for (is_simplex, cells) in [(false, [&[4, 3][..], &[8, 6][..]]), (true, [&[4, 3], &[4, 3]])] {
        let mesh = boxes(is_simplex, cells, 0.0);
        let space = Space::new(&mesh, 2).unwrap();
        let [from, to] = sides(&space);
        let motion = |x: [f64; 3]| x;
        let nodes = nodes(&space, &from, &to, &motion);
        let found = space
            .mortar(&SidePair { from: &from, to: &to, motion: &motion, gap: None, density: None }, &nodes)
            .relations;
        assert!(found.iter().all(Option::is_none));
    }
}

#[test]
fn facets_that_the_other_side_misses_keep_their_interpolation() {
    for is_simplex in [false, true] {
        for cells in [[&[10][..], &[7][..]], [&[10, 4], &[7, 3]]] {
            // The upper box lies on the lower one up to x = 2, in the middle of a facet.
            let mesh = boxes(is_simplex, cells, 1.0);
            let space = Space::new(&mesh, 2).unwrap();
            let [from, to] = sides(&space);
            let motion = |x: [f64; 3]| x;
            let nodes = nodes(&space, &from, &to, &motion);
            let found = space
                .mortar(&SidePair { from: &from, to: &to, motion: &motion, gap: None, density: None }, &nodes)
                .relations;
            let whole = 1.0 + 3.0 * 2.0 / 7.0;
            for (node, terms) in nodes.iter().zip(&found) {
                let [x, y, _] = node.point;
                let is_inside = x > 1.0 && x < whole - 1e-9 && (mesh.dimension() == 2 || y > 0.0 && y < 1.0);
                assert_eq!(terms.is_some(), is_inside, "{node:?}");
            }
        }
    }
}

/// A plate of a small thickness between two boxes, turned by an angle: the mesh, the facets of the boxes at the plate, and its own.
fn plate(is_simplex: bool, d: usize, degrees: f64) -> (Mesh, [Vec<CellFacet>; 2]) {
    let heights = [[-1.0, 0.0], [0.0, THICKNESS], [THICKNESS, 1.0]];
    let mut all: Option<Mesh> = None;
    for ([low, high], n) in heights.into_iter().zip([5, 7, 4]) {
        let own = match d {
            2 => {
                let split = if is_simplex { SquareSplit::Triangles } else { SquareSplit::Quadrilateral };
                square(&SquareConfig { lower: [0.0, low], upper: [2.0, high], cells: [n, 1], split }).unwrap()
            }
            _ => {
                let split = if is_simplex { BoxSplit::Kuhn } else { BoxSplit::Hexahedron };
                let (lower, upper) = ([0.0, 0.0, low], [2.0, 1.0, high]);
                box_mesh(&BoxConfig { lower, upper, cells: [n, n - 1, 1], split }).unwrap()
            }
        };
        let Some(all) = &mut all else {
            all = Some(Mesh { cell_tags: Vec::new(), facets: Default::default(), ..own });
            continue;
        };
        let first = all.points.len() as u32;
        all.points.extend(own.points);
        all.cells.extend(own.cells.iter().map(|node| node + first));
    }
    let (mut mesh, space_of) = (all.unwrap(), |mesh: &Mesh| boundary_facets(mesh));
    let (boundary, up) = (space_of(&mesh), d - 1);
    let lies_at = |facet: usize, at: f64| {
        boundary.facet(facet).iter().all(|&node| mesh.points[node as usize][up] == at)
    };
    let is_of_plate = |facet: usize| {
        let heights =
            mesh.cell(boundary.cells[facet] as usize).iter().map(|&node| mesh.points[node as usize][up]);
        heights.into_iter().all(|height| (0.0..=THICKNESS).contains(&height))
    };
    let numbers = [false, true].map(|is_own| {
        let is_there = |facet: &usize| lies_at(*facet, 0.0) || lies_at(*facet, THICKNESS);
        let all = (0..boundary.len()).filter(is_there);
        all.filter(|&facet| is_of_plate(facet) == is_own).collect::<Vec<_>>()
    });
    let (s, c) = f64::to_radians(degrees).sin_cos();
    for point in &mut mesh.points {
        (point[0], point[up]) = (c * point[0] - s * point[up], s * point[0] + c * point[up]);
    }
    let facets = Space::new(&mesh, 1).unwrap().boundary_facets(&boundary);
    (mesh, numbers.map(|own| own.into_iter().map(|facet| facets[facet]).collect()))
}

const THICKNESS: f64 = 0.03;

#[test]
fn both_faces_of_a_thin_plate_follow_the_nearer_wall() {
    for is_simplex in [false, true] {
        for (d, degrees) in [(2, 0.0), (2, 40.0), (3, 0.0), (3, 25.0)] {
            let (mesh, [walls, plate]) = plate(is_simplex, d, degrees);
            let space = Space::new(&mesh, 2).unwrap();
            for (from, to) in [(&walls, &plate), (&plate, &walls)] {
                check(&space, from, to, 0.0);
                let motion = |x: [f64; 3]| x;
                let nodes = nodes(&space, from, to, &motion);
                let sides = SidePair { from, to, motion: &motion, gap: None, density: None };
                assert!(space.mortar(&sides, &nodes).missed.is_empty(), "{is_simplex} {d} {degrees}");
            }
        }
    }
}

#[test]
fn facets_around_a_corner_are_not_beneath_those_before_it() {
    let skewed = |n: usize| {
        let split = SquareSplit::Quadrilateral;
        let mut mesh = square(&SquareConfig { cells: [n, n], split, ..SquareConfig::default() }).unwrap();
        let (s, c) = 85.0_f64.to_radians().sin_cos();
        mesh.points.iter_mut().for_each(|[x, y, _]| (*x, *y) = (*x + c * *y, s * *y));
        mesh
    };
    let (mut mesh, inner) = (skewed(3), skewed(5));
    let (first, n_cells) = (mesh.points.len() as u32, mesh.n_cells());
    mesh.points.extend(inner.points);
    mesh.cells.extend(inner.cells.iter().map(|node| node + first));
    (mesh.cell_tags, mesh.facets) = (Vec::new(), Default::default());
    let (space, boundary) = (Space::new(&mesh, 2).unwrap(), boundary_facets(&mesh));
    let all = space.boundary_facets(&boundary);
    let of = |is_first: bool| -> Vec<CellFacet> {
        let own =
            (0..boundary.len()).filter(|&facet| ((boundary.cells[facet] as usize) < n_cells) == is_first);
        own.map(|facet| all[facet]).collect()
    };
    check(&space, &of(true), &of(false), 0.0);
    check(&space, &of(false), &of(true), 0.0);
}

#[test]
fn a_coarse_polygon_follows_a_fine_one_of_the_same_arc() {
    let mut mesh = boxes(false, [&[40], &[4]], 0.0);
    for [x, y, _] in &mut mesh.points {
        let angle = 0.25 * std::f64::consts::PI * (*x - 1.0);
        (*x, *y) = ((1.0 + *y) * angle.sin(), (1.0 + *y) * angle.cos());
    }
    let (space, boundary) = (Space::new(&mesh, 1).unwrap(), boundary_facets(&mesh));
    let radius = |node: &u32| mesh.points[*node as usize][0].hypot(mesh.points[*node as usize][1]);
    let all = space.boundary_facets(&boundary);
    let [from, to] = [false, true].map(|is_upper| -> Vec<CellFacet> {
        let is_on_it =
            |facet: &usize| boundary.facet(*facet).iter().all(|node| (radius(node) - 2.0).abs() < 1e-9);
        let is_own = |facet: &usize| {
            mesh.cell(boundary.cells[*facet] as usize).iter().any(|node| radius(node) > 2.5) == is_upper
        };
        (0..boundary.len()).filter(is_on_it).filter(is_own).map(|facet| all[facet]).collect()
    });
    assert_eq!([from.len(), to.len()], [40, 4]);
    let motion = |x: [f64; 3]| x;
    let nodes = nodes(&space, &from, &to, &motion);
    let pair = SidePair { from: &from, to: &to, motion: &motion, gap: None, density: None };
    assert!(space.mortar(&pair, &nodes).missed.is_empty());
}

#[test]
fn integrals_have_a_density() {
    for is_simplex in [false, true] {
        for degree in 1..=3 {
            let mesh = boxes(is_simplex, [&[5], &[7]], 0.0);
            let space = Space::new(&mesh, degree).unwrap();
            let [from, to] = sides(&space);
            let (motion, density) = (|x: [f64; 3]| x, |_: CellFacet, x: [f64; 3]| x[0]);
            let nodes = nodes(&space, &from, &to, &motion);
            let pair = SidePair { from: &from, to: &to, motion: &motion, gap: None, density: Some(&density) };
            let found = space.mortar(&pair, &nodes).relations;
            let mut u: Vec<f64> =
                (0..space.n_dofs()).map(|i| (i * i * 7919 % 1009) as f64 / 1009.0).collect();
            for (node, terms) in nodes.iter().zip(&found) {
                let terms = terms.as_ref().unwrap_or(&node.terms);
                u[node.dof as usize] = terms.iter().map(|&(dof, c)| c * u[dof as usize]).sum();
            }
            let [of_from, of_to] = [&from, &to].map(|side| integral(&space, side, &u, |[x, _, _]| x));
            assert!((of_from - of_to).abs() < 1e-12, "degree {degree}: {of_from} {of_to}");
        }
    }
}

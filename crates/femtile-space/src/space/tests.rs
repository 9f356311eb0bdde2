use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::{
    BoxConfig, BoxSplit, DeformConfig, SphereConfig, SquareConfig, SquareSplit, box_mesh, deform, sphere,
    square,
};
use femtile_mesh::{CellKind, Mesh};

use super::*;
use crate::geometry::{CellMap, CellMaps};
use crate::tensor_space::test_meshes::ring;

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    /// Returns 0, …, n − 1 in a random order.
    fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).rev().for_each(|i| order.swap(i, self.below(i + 1)));
        order
    }
}

/// Returns the mesh with its nodes, cells and the corners of each cell in a random order.
fn shuffled(mesh: &Mesh, seed: u64) -> Mesh {
    let mut random = Random(seed);
    let new_nodes = random.permutation(mesh.n_nodes());
    let mut points = vec![[0.0; 3]; mesh.n_nodes()];
    new_nodes.iter().zip(&mesh.points).for_each(|(&node, point)| points[node] = *point);
    let mut cells = Vec::new();
    for cell in random.permutation(mesh.n_cells()) {
        let order = turned(mesh.kind, &mut random);
        cells.extend(order.iter().map(|&corner| new_nodes[mesh.cell(cell)[corner] as usize] as u32));
    }
    Mesh::new(points, mesh.kind, cells).unwrap()
}

/// Returns the corners of a cell in a random order that keeps its shape: any for simplices, rotations of others.
fn turned(kind: CellKind, random: &mut Random) -> Vec<usize> {
    let turns: &[&[usize]] = match kind {
        CellKind::Quadrilateral => &[&[1, 2, 3, 0]],
        CellKind::Hexahedron => &[&[1, 2, 3, 0, 5, 6, 7, 4], &[4, 5, 1, 0, 7, 6, 2, 3]],
        _ => return random.permutation(kind.n_nodes()),
    };
    let mut order: Vec<usize> = (0..kind.n_nodes()).collect();
    for _ in 0..random.below(7) {
        let turn = turns[random.below(turns.len())];
        order = turn.iter().map(|&corner| order[corner]).collect();
    }
    order
}

fn box_of(split: BoxSplit) -> Mesh {
    box_mesh(&BoxConfig { cells: [3, 2, 2], upper: [1.0, 0.9, 0.7], split, ..BoxConfig::default() }).unwrap()
}

fn square_of(split: SquareSplit) -> Mesh {
    square(&SquareConfig { cells: [3, 5], upper: [1.0, 0.8], split, ..SquareConfig::default() }).unwrap()
}

/// Straight meshes of all kinds, deformed and shuffled.
fn meshes() -> Vec<Mesh> {
    let mut meshes = vec![
        square_of(SquareSplit::Triangles),
        square_of(SquareSplit::Quadrilateral),
        box_of(BoxSplit::Kuhn),
        box_of(BoxSplit::Five),
        box_of(BoxSplit::Hexahedron),
    ];
    for (mesh, seed) in meshes.iter_mut().zip(1..) {
        deform(mesh, &DeformConfig { amplitude: 0.1, order: 1 }).unwrap();
        *mesh = shuffled(mesh, seed);
    }
    meshes
}

/// Quadrilaterals and hexahedra with curved cells.
fn curved() -> Vec<Mesh> {
    let mut meshes = vec![square_of(SquareSplit::Quadrilateral), box_of(BoxSplit::Hexahedron)];
    meshes.iter_mut().for_each(|mesh| deform(mesh, &DeformConfig { amplitude: 0.1, order: 3 }).unwrap());
    meshes
}

fn highest(mesh: &Mesh) -> usize {
    if mesh.kind.is_simplex() { 6 } else { 5 }
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt()
}

/// Numbers of vertices with a cell, edges, faces of a mesh in a box, by Euler's formula.
fn counts(mesh: &Mesh) -> [usize; 4] {
    let (n_cells, n_facets) = (mesh.n_cells(), mesh.kind.facets().len());
    let facets = (n_cells * n_facets + boundary_facets(mesh).len()) / 2;
    match mesh.dimension() {
        2 => [mesh.n_nodes(), facets, n_cells, 0],
        _ => [mesh.n_nodes(), mesh.n_nodes() + facets - n_cells - 1, facets, n_cells],
    }
}

#[test]
fn all_cells_of_a_dof_place_it_at_one_point() {
    for mesh in [meshes(), curved(), vec![ring(7, 1)]].concat() {
        for degree in 1..=highest(&mesh) {
            let space = Space::new(&mesh, degree).unwrap();
            let element = space.element();
            let mapping = space.mapping(element.nodes());
            let (mut map, mut dofs) = (PointMap::default(), vec![0; element.n_dofs()]);
            let mut places = vec![None; space.n_dofs()];
            for position in 0..space.n_cells() {
                mapping.of_cell(position, &mut map).unwrap();
                space.cell_dofs(position, &mut dofs);
                for (&dof, &point) in dofs.iter().zip(&map.points) {
                    let place = places[dof as usize].get_or_insert(point);
                    assert!(distance(*place, point) < 1e-13, "{} of degree {degree}", mesh.kind);
                }
            }
            // Different degrees of freedom lie apart.
            let mut places: Vec<[f64; 3]> = places.into_iter().map(Option::unwrap).collect();
            places.sort_unstable_by(|a, b| a[0].total_cmp(&b[0]));
            for (i, a) in places.iter().enumerate() {
                let near = places[i + 1..].iter().take_while(|b| b[0] - a[0] < 1e-6);
                assert!(near.into_iter().all(|b| distance(*a, *b) > 1e-6));
            }
        }
    }
}

#[test]
fn dofs_are_as_many_as_eulers_formula_gives() {
    for mesh in meshes() {
        let [vertices, edges, faces, cells] = counts(&mesh);
        for degree in 1..=highest(&mesh) {
            let (p, is_simplex) = (degree, mesh.kind.is_simplex());
            let inner = p - 1;
            let of_face = if is_simplex { inner * p.saturating_sub(2) / 2 } else { inner * inner };
            let of_cell =
                if is_simplex { inner * p.saturating_sub(2) * p.saturating_sub(3) / 6 } else { inner.pow(3) };
            let expected = vertices + edges * inner + faces * of_face + cells * of_cell;
            assert_eq!(Space::new(&mesh, degree).unwrap().n_dofs(), expected, "{} of degree {p}", mesh.kind);
        }
    }
}

#[test]
fn linear_dofs_of_simplices_are_the_nodes() {
    for mesh in meshes().iter().filter(|mesh| mesh.kind.is_simplex()) {
        let space = Space::new(mesh, 1).unwrap();
        let mut dofs = vec![0; mesh.kind.n_nodes()];
        for position in 0..space.n_cells() {
            space.cell_dofs(position, &mut dofs);
            assert_eq!((dofs.as_slice(), space.cell(position)), (mesh.cell(position), position));
        }
    }
}

#[test]
fn jacobians_are_the_derivatives_of_the_points() {
    for mesh in [meshes(), curved()].concat() {
        let space = Space::new(&mesh, 2).unwrap();
        let d = mesh.dimension();
        let mut at = [0.31, 0.22, 0.17];
        at[d..].fill(0.0);
        let step = 1e-5;
        let mut points = vec![at];
        for axis in 0..d {
            for sign in [-1.0, 1.0] {
                points.push(at);
                points.last_mut().unwrap()[axis] += sign * step;
            }
        }
        let mut map = PointMap::default();
        for position in 0..space.n_cells() {
            space.map(position, &points, &mut map).unwrap();
            for (i, row) in map.jacobians[0].iter().enumerate() {
                for (axis, &slope) in row.iter().enumerate() {
                    let expected = if i < d && axis < d {
                        (map.points[2 + 2 * axis][i] - map.points[1 + 2 * axis][i]) / (2.0 * step)
                    } else {
                        f64::from(i == axis)
                    };
                    assert!((slope - expected).abs() < 1e-9, "{}: {slope} {expected}", mesh.kind);
                }
            }
            let determinant = crate::geometry::determinant(&map.jacobians[0]);
            assert_eq!(map.determinants[0], determinant);
        }
    }
}

#[test]
fn maps_of_tensor_cells_are_those_of_products_of_coordinates() {
    for mesh in [meshes(), curved()].concat().iter().filter(|mesh| !mesh.kind.is_simplex()) {
        let space = Space::new(mesh, 3).unwrap();
        let coordinates = [0.1, 0.6, 0.9];
        let d = mesh.dimension();
        let point = |at: usize| {
            std::array::from_fn(
                |axis| if axis < d { coordinates[at / 3usize.pow(axis as u32) % 3] } else { 0.0 },
            )
        };
        let points: Vec<[f64; 3]> = (0..3usize.pow(d as u32)).map(point).collect();
        let maps = CellMaps::new(space.tensor().unwrap(), &coordinates);
        let (mut map, mut expected) = (PointMap::default(), CellMap::default());
        for position in 0..space.n_cells() {
            space.map(position, &points, &mut map).unwrap();
            maps.of_sound_cell(position, &mut expected).unwrap();
            for q in 0..points.len() {
                assert!(distance(map.points[q], expected.points[q]) < 1e-14);
                assert!((map.determinants[q] - expected.determinants[q]).abs() < 1e-13);
                for i in 0..3 {
                    assert!(distance(map.jacobians[q][i], expected.jacobians[q][i]) < 1e-13);
                }
            }
        }
    }
}

#[test]
fn polynomials_in_space_have_their_gradients_on_every_cell() {
    for mesh in meshes() {
        // Products of linear functions lie in the space, whatever the shape of straight cells.
        let d = mesh.dimension();
        let slopes = [0.6, -0.3, if d == 3 { 0.8 } else { 0.0 }];
        for degree in 1..=highest(&mesh) {
            let p = degree as i32;
            let linear = |x: [f64; 3]| 0.4 + (0..3).map(|i| slopes[i] * x[i]).sum::<f64>();
            let space = Space::new(&mesh, degree).unwrap();
            let element = space.element();
            let rule = element.quadrature(3);
            let table = element.tabulate(&rule.points);
            let (at_nodes, at_points) = (space.mapping(element.nodes()), space.mapping(&rule.points));
            let mut map = PointMap::default();
            for position in 0..space.n_cells() {
                at_nodes.of_cell(position, &mut map).unwrap();
                let nodal: Vec<f64> = map.points.iter().map(|&x| linear(x).powi(p)).collect();
                at_points.of_cell(position, &mut map).unwrap();
                for q in 0..rule.n_q() {
                    let mut reference = [0.0; 3];
                    for (shape, u) in table.gradients(q).iter().zip(&nodal) {
                        (0..3).for_each(|axis| reference[axis] += shape[axis] * u);
                    }
                    let inverse = crate::geometry::inverse(&map.jacobians[q]);
                    let found: [f64; 3] =
                        std::array::from_fn(|i| (0..3).map(|axis| inverse[axis][i] * reference[axis]).sum());
                    let scale = f64::from(p) * linear(map.points[q]).powi(p - 1);
                    let error = distance(found, slopes.map(|slope| slope * scale));
                    assert!(error < 1e-9, "{} of degree {degree}: {error:e}", mesh.kind);
                }
            }
        }
    }
}

/// Returns the area vectors of the quadrature points of a facet, and the points.
fn areas(space: &Space<'_>, side: CellFacet) -> Vec<([f64; 3], [f64; 3])> {
    let rule = space.element().facet_quadrature(7);
    let to_cell = space.facet(side);
    let points: Vec<[f64; 3]> = rule.points.iter().map(|&point| to_cell.point(point)).collect();
    let mut map = PointMap::default();
    space.map(side.position, &points, &mut map).unwrap();
    let normal = space.element().facets()[side.facet].normal;
    let area = |q: usize| {
        let inverse = crate::geometry::inverse(&map.jacobians[q]);
        let scale = rule.weights[q] * map.determinants[q].abs();
        std::array::from_fn(|i| scale * (0..3).map(|axis| inverse[axis][i] * normal[axis]).sum::<f64>())
    };
    (0..rule.n_q()).map(|q| (map.points[q], area(q))).collect()
}

#[test]
fn both_sides_of_an_interior_facet_meet_at_its_points() {
    for mesh in [meshes(), curved(), vec![ring(5, 1)]].concat() {
        let space = Space::new(&mesh, 3).unwrap();
        let interior = space.interior_facets();
        let n_boundary = boundary_facets(&mesh).len();
        assert_eq!(2 * interior.len() + n_boundary, mesh.n_cells() * mesh.kind.facets().len());
        let mut dofs = vec![0; space.element().n_dofs()];
        let mut on_facet = |side: CellFacet| {
            space.cell_dofs(side.position, &mut dofs);
            let mut found: Vec<u32> =
                space.element().facets()[side.facet].dofs.iter().map(|&dof| dofs[dof]).collect();
            found.sort_unstable();
            found
        };
        for [one, other] in interior {
            assert!(one.position < other.position);
            assert_eq!(on_facet(one), on_facet(other));
            for ((x, area), (y, opposite)) in areas(&space, one).into_iter().zip(areas(&space, other)) {
                assert!(distance(x, y) < 1e-13, "{}", mesh.kind);
                assert!(distance(area, opposite.map(|a| -a)) < 1e-13, "{}", mesh.kind);
            }
        }
    }
}

#[test]
fn the_flux_of_the_position_through_the_boundary_is_a_multiple_of_the_volume() {
    for mesh in [meshes(), curved()].concat() {
        let space = Space::new(&mesh, 2).unwrap();
        let d = mesh.dimension();
        let sides = space.boundary_facets(&boundary_facets(&mesh));
        let through = |side: &CellFacet| -> f64 {
            let products =
                areas(&space, *side).into_iter().map(|(x, area)| (0..d).map(|i| x[i] * area[i]).sum::<f64>());
            products.sum()
        };
        let flux: f64 = sides.iter().map(through).sum();
        let volume = if d == 2 { 0.8 } else { 0.63 };
        assert!((flux - d as f64 * volume).abs() < 1e-13, "{}: {flux}", mesh.kind);
        let rule = space.element().quadrature(9);
        let mapping = space.mapping(&rule.points);
        let mut map = PointMap::default();
        let mut measure = 0.0;
        for position in 0..space.n_cells() {
            mapping.of_cell(position, &mut map).unwrap();
            measure += map.determinants.iter().zip(&rule.weights).map(|(det, w)| w * det.abs()).sum::<f64>();
        }
        assert!((measure - volume).abs() < 1e-12, "{}: {measure}", mesh.kind);
    }
}

#[test]
fn folded_and_flat_cells_are_named() {
    let mut mesh = box_of(BoxSplit::Hexahedron);
    let n = mesh.n_nodes();
    mesh.points[n - 1][0] -= 2.0;
    let space = Space::new(&mesh, 2).unwrap();
    let mapping = space.mapping(&space.element().quadrature(3).points);
    let mut map = PointMap::default();
    let errors: Vec<SpaceError> =
        (0..space.n_cells()).filter_map(|position| mapping.of_cell(position, &mut map).err()).collect();
    let last = mesh.n_cells() - 1;
    assert!(
        matches!(errors[..], [SpaceError::Inverted { cell, value, .. }] if cell == last && value <= 0.0),
        "{errors:?}"
    );
    let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    let flat = Mesh::new(points, CellKind::Triangle, vec![0, 1, 3, 0, 2, 1]).unwrap();
    let space = Space::new(&flat, 1).unwrap();
    assert!(space.map(0, &[[0.0; 3]], &mut map).is_ok());
    let error = space.map(1, &[[0.0; 3]], &mut map).unwrap_err();
    assert_eq!(error, SpaceError::Degenerate { cell: 1, measure: 0.0, centre: [1.0, 0.0, 0.0] });
}

#[test]
fn unusable_meshes_and_degrees_are_refused() {
    let points = vec![[0.0; 3], [1.0, 0.0, 0.0]];
    let segments = Mesh::new(points, CellKind::Segment, vec![0, 1]).unwrap();
    assert!(matches!(Space::new(&segments, 1), Err(SpaceError::NoElement { .. })));
    let mesh = square_of(SquareSplit::Triangles);
    assert!(matches!(Space::new(&mesh, 7), Err(SpaceError::Degree { degree: 7, highest: 6, .. })));
}

#[test]
fn numbers_do_not_depend_on_the_number_of_threads() {
    let mesh = box_mesh(&BoxConfig { cells: [11, 7, 5], ..BoxConfig::default() }).unwrap();
    let numbers = |n_threads: usize| {
        femtile_device::Cpu::new(n_threads).unwrap().install(|| {
            let space = Space::new(&mesh, 4).unwrap();
            let mut dofs = vec![0; space.n_cells() * space.element().n_dofs()];
            let cells = dofs.chunks_exact_mut(space.element().n_dofs()).enumerate();
            cells.for_each(|(position, dofs)| space.cell_dofs(position, dofs));
            dofs
        })
    };
    let one = numbers(1);
    assert!([2, 3].into_iter().all(|n_threads| numbers(n_threads) == one));
}

#[test]
fn points_of_all_cells_are_found_with_their_reference_coordinates() {
    for mesh in [meshes(), curved()].concat() {
        let space = Space::new(&mesh, 1).unwrap();
        let third = if mesh.dimension() == 3 { 0.15 } else { 0.0 };
        let reference = [0.2, 0.55, third];
        let mut map = PointMap::default();
        let points: Vec<[f64; 3]> = (0..space.n_cells())
            .map(|position| {
                space.map(position, &[reference], &mut map).unwrap();
                map.points[0]
            })
            .collect();
        let found = space.locate(&points);
        for (position, found) in found.iter().enumerate() {
            let found = found.unwrap();
            assert_eq!(found.position, position, "{}", mesh.kind);
            assert!(distance(found.reference, reference) < 1e-8, "{}", mesh.kind);
        }
        assert_eq!(space.locate(&points[1..3]), found[1..3]);
        assert_eq!(space.locate(&[[f64::NAN; 3], [40.0, 0.1, 0.0]]), [None, None]);
    }
}

#[test]
fn points_are_found_far_from_the_origin() {
    for mut mesh in meshes() {
        let d = mesh.dimension();
        mesh.points.iter_mut().flat_map(|point| &mut point[..d]).for_each(|x| *x += 4e6);
        let space = Space::new(&mesh, 1).unwrap();
        let reference = [0.23, 0.51, if d == 3 { 0.17 } else { 0.0 }];
        let mut map = PointMap::default();
        for position in 0..space.n_cells() {
            space.map(position, &[reference], &mut map).unwrap();
            let found = space.locate(&[map.points[0]])[0].unwrap();
            assert_eq!(found.position, position, "{}", mesh.kind);
            assert!(distance(found.reference, reference) < 1e-6, "{}", mesh.kind);
        }
    }
}

#[test]
fn the_nearest_cell_has_the_distance_of_its_mesh() {
    let squares = [SquareSplit::Triangles, SquareSplit::Quadrilateral];
    let squares = squares
        .map(|split| square(&SquareConfig { split, cells: [3, 4], ..SquareConfig::default() }).unwrap());
    let boxes = [BoxSplit::Kuhn, BoxSplit::Hexahedron].map(box_of);
    for mesh in squares.into_iter().chain(boxes) {
        let space = Space::new(&mesh, 1).unwrap();
        let height = if mesh.dimension() == 3 { 0.31 } else { 0.0 };
        for (point, expected) in [([-3.0, -4.0, height], 5.0), ([1.25, 0.4, height], 0.25)] {
            let (cell, found) = space.nearest_cell(point).unwrap();
            assert!((found - expected).abs() < 1e-12, "{}: {found}", mesh.kind);
            let is_near = |&node: &u32| distance(mesh.points[node as usize], point) < expected + 0.6;
            assert!(mesh.cell(cell).iter().any(is_near), "{}", mesh.kind);
        }
    }
}

#[test]
fn points_beside_a_surface_stand_for_its_nearest_points() {
    for (split, order) in
        [(SquareSplit::Triangles, 1), (SquareSplit::Quadrilateral, 1), (SquareSplit::Quadrilateral, 3)]
    {
        let mesh = sphere(&SphereConfig { radius: 1.0, cells: 8, split, order }).unwrap();
        let space = Space::new(&mesh, 1).unwrap();
        let mut random = Random(3);
        let points: Vec<[f64; 3]> = (0..60)
            .map(|_| {
                let direction = [0; 3].map(|_| random.below(2001) as f64 / 1000.0 - 1.0);
                let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
                direction.map(|x| 1.001 * x / length)
            })
            .collect();
        let mut map = PointMap::default();
        for (&point, found) in points.iter().zip(space.locate(&points)) {
            let found = found.unwrap();
            space.map(found.position, &[found.reference], &mut map).unwrap();
            let (_, nearest) = space.nearest_cell(point).unwrap();
            let here = distance(map.points[0], point);
            assert!((here - nearest).abs() < 1e-8, "{split:?} {order}: {here} {nearest}");
        }
        assert_eq!(space.locate(&[[0.0; 3], [1.2, 0.0, 0.0]]), [None, None]);
    }
}

#[test]
fn degrees_of_freedom_know_the_first_cell_that_has_them_or_none() {
    for split in [BoxSplit::Kuhn, BoxSplit::Hexahedron] {
        let mut mesh = box_mesh(&BoxConfig { cells: [2, 1, 2], split, ..BoxConfig::default() }).unwrap();
        // A node that no cell has, which is a degree of freedom of simplices.
        mesh.points.push([9.0, 9.0, 9.0]);
        for degree in 1..=3 {
            let space = Space::new(&mesh, degree).unwrap();
            let (first, points) = (space.first_cells(), space.node_points());
            let mut dofs = vec![0; space.element().n_dofs()];
            let mut expected = vec![[u32::MAX; 2]; space.n_dofs()];
            let (mapping, mut map) = (space.mapping(space.element().nodes()), PointMap::default());
            for position in (0..space.n_cells()).rev() {
                space.cell_dofs(position, &mut dofs);
                mapping.of_cell(position, &mut map).unwrap();
                for (node, &dof) in dofs.iter().enumerate() {
                    expected[dof as usize] = [position as u32, node as u32];
                    let apart = points[dof as usize].iter().zip(map.points[node]).map(|(a, b)| (a - b).abs());
                    assert!(apart.fold(0.0, f64::max) < 1e-14, "{split:?}, degree {degree}, {dof}");
                }
            }
            assert_eq!(first, expected, "{split:?}, degree {degree}");
        }
    }
}

use femtile_mesh::Mesh;
use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};

use super::test_meshes::{ring, squares};
use super::*;

/// Pseudorandom numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

fn cubes(cells: [usize; 3]) -> Mesh {
    box_mesh(&BoxConfig { cells, split: BoxSplit::Hexahedron, ..BoxConfig::default() }).unwrap()
}

/// Reorients every cell, without mirroring it.
fn shuffle(mesh: &mut Mesh, random: &mut Random) {
    let n = mesh.kind.n_nodes();
    let d = mesh.dimension();
    for cell in mesh.cells.chunks_exact_mut(n) {
        let orientation = loop {
            let axes = [[0, 1, 2], [1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]]
                [random.below(if d == 2 { 2 } else { 6 })];
            let flips = std::array::from_fn(|a| a < d && random.below(2) == 1);
            let found = Orientation { axes, flips };
            if !found.is_mirrored() {
                break found;
            }
        };
        let mut lexicographic: Vec<u32> = VTK_CORNERS[..n].iter().map(|&corner| cell[corner]).collect();
        turn(&mut lexicographic, &[orientation], d);
        for (&corner, node) in VTK_CORNERS.iter().zip(lexicographic) {
            cell[corner] = node;
        }
    }
}

/// Checks that every node of every cell has one place in space.
fn check_that_cells_agree(space: &TensorSpace<'_>) {
    let (n, d) = (space.degree() + 1, space.dimension());
    let nodes = space.shapes().nodes().to_vec();
    let mut places = vec![None; space.n_dofs()];
    let mut dofs = vec![0; space.dofs_per_cell()];
    for position in 0..space.n_cells() {
        space.cell_dofs(position, &mut dofs);
        let corners = space.corners(position);
        for (at, &dof) in dofs.iter().enumerate() {
            let x: [f64; 3] =
                std::array::from_fn(|a| if a < d { nodes[at / n.pow(a as u32) % n] } else { 0.0 });
            let mut place = [0.0; 3];
            for (bits, &node) in corners.iter().enumerate() {
                let weight: f64 =
                    (0..d).map(|a| if bits >> a & 1 == 1 { x[a] } else { 1.0 - x[a] }).product();
                (0..3).for_each(|a| place[a] += weight * space.mesh().points[node as usize][a]);
            }
            let known: &mut [f64; 3] = places[dof as usize].get_or_insert(place);
            let distance: f64 = (0..3).map(|a| (known[a] - place[a]).abs()).sum();
            assert!(distance < 1e-12, "cell at {position}, entry {at}: {known:?} and {place:?}");
        }
    }
    assert!(places.iter().all(Option::is_some), "a degree of freedom without a cell");
}

#[test]
fn boxes_have_a_node_at_each_point_of_their_grid() {
    for degree in 1..=5 {
        let mesh = cubes([3, 2, 5]);
        let space = TensorSpace::new(&mesh, degree).unwrap();
        assert_eq!(space.n_dofs(), (3 * degree + 1) * (2 * degree + 1) * (5 * degree + 1));
        assert_eq!(space.n_irregular(), 0);
        check_that_cells_agree(&space);
        let mesh = squares(7, 3);
        let space = TensorSpace::new(&mesh, degree).unwrap();
        assert_eq!(space.n_dofs(), (7 * degree + 1) * (3 * degree + 1));
        check_that_cells_agree(&space);
    }
}

#[test]
fn cells_turned_about_still_see_what_they_share_alike() {
    let mut random = Random(7);
    for mut mesh in [cubes([3, 4, 2]), squares(5, 4), cubes([1, 1, 1]), cubes([2, 1, 1])] {
        shuffle(&mut mesh, &mut random);
        for degree in 1..=5 {
            let space = TensorSpace::new(&mesh, degree).unwrap();
            assert_eq!(space.n_irregular(), 0, "axes can be found for a box");
            check_that_cells_agree(&space);
        }
    }
}

#[test]
fn rings_that_close_after_a_turn_have_irregular_cells() {
    for quarters in 0..4 {
        let mut mesh = ring(9, quarters);
        for is_shuffled in [false, true] {
            if is_shuffled {
                shuffle(&mut mesh, &mut Random(quarters as u64));
            }
            let space = TensorSpace::new(&mesh, 4).unwrap();
            assert_eq!(space.n_irregular() > 0, quarters > 0, "{quarters} quarters of a turn");
            let (edges, faces) = (9 * 8, 9 * 5);
            assert_eq!(space.n_dofs(), 9 * 4 + edges * 3 + faces * 9 + 9 * 27);
            check_that_cells_agree(&space);
        }
    }
}

/// Returns the degrees of freedom of all cells.
fn dofs_of(space: &TensorSpace<'_>) -> Vec<Vec<u32>> {
    let of_cell = |position| {
        let mut dofs = vec![0; space.dofs_per_cell()];
        space.cell_dofs(position, &mut dofs);
        dofs
    };
    (0..space.n_cells()).map(of_cell).collect()
}

#[test]
fn lower_degrees_on_the_same_cells_have_the_numbers_of_spaces_of_their_own() {
    let mut turned = cubes([5, 4, 3]);
    shuffle(&mut turned, &mut Random(7));
    for mesh in [turned, ring(7, 1), squares(9, 7), cubes([1, 1, 1])] {
        for (degree, lower) in [(2, 1), (3, 2), (4, 1), (4, 3), (7, 4), (3, 3)] {
            let high = TensorSpace::new(&mesh, degree).unwrap();
            let (found, own) = (high.of_degree(lower).unwrap(), TensorSpace::new(&mesh, lower).unwrap());
            assert_eq!((found.n_dofs(), found.groups()), (own.n_dofs(), own.groups()), "{degree} to {lower}");
            assert_eq!((dofs_of(&found), &found.irregular), (dofs_of(&own), &own.irregular));
            assert_eq!(
                (found.order(), &found.corners, &found.places),
                (own.order(), &own.corners, &own.places)
            );
        }
        let low = TensorSpace::new(&mesh, 2).unwrap();
        assert!(matches!(low.of_degree(3), Err(SpaceError::Degree { degree: 3, highest: 2, .. })));
        assert!(low.of_degree(0).is_err());
    }
}

#[test]
fn groups_tile_cells_and_unknowns() {
    let mesh = cubes([12, 11, 10]);
    for degree in [1, 3] {
        let space = TensorSpace::new(&mesh, degree).unwrap();
        let (mut cells, mut dofs) = (0, 0);
        let mut of_cell = vec![0; space.dofs_per_cell()];
        let mut met = vec![(usize::MAX, 0); space.n_dofs()];
        for (number, group) in space.groups().iter().enumerate() {
            assert_eq!((group.cells.start, group.dofs.start), (cells, dofs));
            (cells, dofs) = (group.cells.end, group.dofs.end);
            for position in group.cells.clone() {
                space.cell_dofs(position, &mut of_cell);
                for &dof in &of_cell {
                    let (first, last) = &mut met[dof as usize];
                    (*first, *last) = ((*first).min(number), number);
                }
            }
        }
        for (dof, (first, last)) in met.into_iter().enumerate() {
            let group = &space.groups()[first];
            assert!(group.dofs.contains(&dof));
            assert_eq!(first == last, dof < group.dofs.start + group.n_inner);
        }
        assert_eq!((cells, dofs), (space.n_cells(), space.n_dofs()));
        let mut seen = space.order().to_vec();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..space.n_cells() as u32));
    }
}

#[test]
fn cells_follow_blocks_of_two_by_two_by_two() {
    let mesh = cubes([6, 6, 6]);
    let space = TensorSpace::new(&mesh, 1).unwrap();
    for block in space.order().chunks_exact(8) {
        let place = |cell: u32| [cell % 6, cell / 6 % 6, cell / 36];
        assert!(block.iter().all(|&cell| place(cell).map(|i| i / 2) == place(block[0]).map(|i| i / 2)));
    }
}

#[test]
fn other_cells_and_degrees_are_refused() {
    let mesh = box_mesh(&BoxConfig::default()).unwrap();
    assert!(matches!(TensorSpace::new(&mesh, 2), Err(SpaceError::NoTensorCells { .. })));
    let mesh = cubes([1, 1, 1]);
    for degree in [0, 11] {
        assert!(matches!(TensorSpace::new(&mesh, degree), Err(SpaceError::Degree { .. })));
    }
}

#[test]
fn axes_do_not_depend_on_the_degree() {
    let mut random = Random(17);
    let mut meshes = vec![squares(3, 2), cubes([3, 2, 2]), ring(3, 0), ring(3, 1), ring(5, 2)];
    for (i, d) in [(0, 2), (1, 3)] {
        // Generated boxes are numbered row by row.
        assert!(are_ascending(&TensorSpace::new(&meshes[i], 1).unwrap().corners, d));
        let mut turned = meshes[i].clone();
        shuffle(&mut turned, &mut random);
        meshes.push(turned);
    }
    for mesh in &meshes {
        let [one, two] = [1, 2].map(|degree| TensorSpace::new(mesh, degree).unwrap());
        assert_eq!((&one.orientations, &one.corners), (&two.orientations, &two.corners));
        assert_eq!(one.n_dofs(), mesh.n_nodes());
    }
}

#[test]
fn surfaces_in_space_are_refused() {
    use femtile_mesh::generate::{SphereConfig, SquareSplit, sphere};
    let config = SphereConfig { cells: 1, split: SquareSplit::Quadrilateral, ..SphereConfig::default() };
    let mesh = sphere(&config).unwrap();
    assert!(matches!(TensorSpace::new(&mesh, 2), Err(SpaceError::Surface)));
    assert!(crate::Space::new(&mesh, 2).is_ok());
}

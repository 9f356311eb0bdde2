//! Meshes that the first rank has and sends in parts.

use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::{
    BoxConfig, BoxSplit, DeformConfig, SquareConfig, SquareSplit, box_mesh, deform, square,
};
use femtile_mesh::partition::DistributedMesh;

use super::parts::{Setup, assert_found, conditions, found, on_divided, with};
use super::*;
use crate::{GatheredSolution, InnerFacets, PmgOptions, Value, scatter, tag_regions_of_ranks};

pub(super) fn sent(
    comm: &Comm,
    mesh: &Mesh,
    partitioner: Partitioner,
) -> Result<DistributedMesh, SolveError> {
    let boundary = boundary_facets(mesh);
    let whole = (comm.rank() == 0).then_some((mesh, &boundary));
    Ok(scatter(comm, whole, partitioner)?.unwrap())
}

fn check(mesh: &Mesh, solver: &SolverConfig, set: Setup<'_>, name: &str) {
    let alone = SolverConfig { ranks: Ranks::One, ..solver.clone() };
    let alone = found(&set(Poisson::new(mesh)).unwrap().solve(&alone).unwrap()).unwrap();
    for (n_ranks, partitioner) in
        [(2, Partitioner::Bisection), (3, Partitioner::Hilbert), (7, Partitioner::Bisection)]
    {
        let make = |comm: &Comm| sent(comm, mesh, partitioner);
        let here = on_divided(n_ranks, &make, solver, set).unwrap();
        assert_found(&format!("{name}, {n_ranks} ranks"), &here, &alone);
    }
}

#[test]
fn simplices_have_the_solution_of_one_rank() {
    let cubes = BoxConfig { cells: [5, 4, 6], split: BoxSplit::Five, ..BoxConfig::default() };
    let squares = SquareConfig { cells: [37, 31], split: SquareSplit::Triangles, ..SquareConfig::default() };
    for mut mesh in [box_mesh(&cubes).unwrap(), square(&squares).unwrap()] {
        deform(&mut mesh, &DeformConfig { amplitude: 0.1, order: 1 }).unwrap();
        // The last problem is of a side that squares do not have.
        for (name, set) in conditions().into_iter().take(4) {
            for solver in
                [with(PreconditionerConfig::Jacobi), with(PreconditionerConfig::Amg(AmgOptions::default()))]
            {
                check(&mesh, &solver, set, name);
            }
        }
    }
}

#[test]
fn cells_with_products_have_the_solution_of_one_rank() {
    let cubes = BoxConfig { cells: [4, 3, 5], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    let squares =
        SquareConfig { cells: [9, 7], split: SquareSplit::Quadrilateral, ..SquareConfig::default() };
    for mut mesh in [box_mesh(&cubes).unwrap(), square(&squares).unwrap()] {
        deform(&mut mesh, &DeformConfig { amplitude: 0.1, order: 2 }).unwrap();
        for (name, set) in conditions().into_iter().take(4) {
            for degree in [1, 2, 3] {
                let set: Setup<'_> = &move |of| set(of.degree(degree));
                let pmg = with(PreconditionerConfig::Pmg(PmgOptions::default()));
                for solver in [with(PreconditionerConfig::Jacobi), pmg] {
                    check(&mesh, &solver, set, &format!("{name} of degree {degree}"));
                }
            }
        }
    }
}

/// A mesh whose cells name their nodes in turns, so that neighbours see their common sides in different axes.
#[test]
fn turned_cells_have_the_solution_of_one_rank() {
    let mut mesh = cubes();
    mesh.curved = None;
    let mesh = turned(mesh);
    for degree in [2, 4] {
        let set: Setup<'_> = &move |of| of.degree(degree).sigma("1 + x").source(1.0).dirichlet("xmin", "y");
        check(&mesh, &with(PreconditionerConfig::Jacobi), set, &format!("degree {degree}"));
    }
}

#[test]
fn tags_and_fields_are_sent_with_the_parts() {
    let config = BoxConfig { cells: [4, 4, 4], ..BoxConfig::default() };
    let mut mesh = box_mesh(&config).unwrap();
    let is_low =
        |cell: &u32| mesh.cell(*cell as usize).iter().all(|&node| mesh.points[node as usize][2] < 0.6);
    let low: Vec<u32> = (0..mesh.n_cells() as u32).filter(is_low).collect();
    mesh.tag_cells("low ü", &low).unwrap();
    let values = (0..mesh.n_cells()).map(|cell| 1.0 + (cell % 7) as f64).collect();
    mesh.cell_fields.insert("σ".into(), femtile_mesh::Field { n_components: 1, values });
    let field: Setup<'_> =
        &|of| of.sigma(Value::Field("σ".into())).source(1.0).dirichlet("zmin", 0.0)?.dirichlet("6", "x");
    check(&mesh, &with(PreconditionerConfig::Jacobi), field, "field");
    let mut names = Vec::new();
    for n in [1, 2, 5] {
        let work = |comm: Comm| {
            let made = sent(&comm, &mesh, Partitioner::Bisection)?;
            let part = &made.part;
            for (name, field) in &part.mesh.cell_fields {
                let whole = &mesh.cell_fields[name];
                let expected = part.cells.iter().map(|&cell| whole.values[cell as usize]);
                assert!(field.values.iter().copied().eq(expected));
            }
            let global = |cell: &u32| mesh.cell_tags[*cell as usize];
            assert!(part.mesh.cell_tags.iter().copied().eq(part.cells.iter().map(global)));
            assert_eq!(made.n_dofs(1), mesh.n_nodes());
            assert_eq!(made.counts, (&mesh).into());
            Ok(part.mesh.tag_names.clone())
        };
        names.push(
            threads::run(n, work, |comm| work(comm).map(drop))
                .unwrap_or_else(|error: SolveError| panic!("{error}")),
        );
    }
    // Cells without a tag have a name for that on all ranks.
    let mut expected = mesh.tag_names.clone();
    expected.insert((3, 0), "0".into());
    assert!(names.iter().all(|found| *found == expected));
}

/// What `n` ranks find on their parts of a mesh.
fn on_ranks<T: Send>(
    mesh: &Mesh,
    n: usize,
    find: impl Fn(DistributedMesh, &Comm) -> Result<T, SolveError> + Sync,
) -> T {
    let work = |comm: Comm| find(sent(&comm, mesh, Partitioner::Bisection)?, &comm);
    threads::run(n, work, |comm| work(comm).map(drop)).unwrap_or_else(|error: SolveError| panic!("{error}"))
}

#[test]
fn inner_facets_of_a_tag_are_counted_once_on_any_number_of_ranks() {
    let mut mesh = box_mesh(&BoxConfig { cells: [4, 4, 4], ..BoxConfig::default() }).unwrap();
    let is_inner = |nodes: &[u32]| nodes.iter().all(|&node| mesh.points[node as usize][0] == 0.5);
    let facets = (0..mesh.n_cells()).flat_map(|cell| {
        let nodes = mesh.cell(cell);
        mesh.kind.facets().iter().map(|facet| facet.iter().map(|&i| nodes[i]).collect::<Vec<u32>>())
    });
    let inner: Vec<u32> = facets.filter(|nodes| is_inner(nodes)).flatten().collect();
    // Both cells of a facet name it: 32 facets of the plane, each twice.
    assert_eq!(inner.len(), 3 * 64);
    mesh.tag_names.insert((2, 9), "plane".into());
    for tag in [1, 9] {
        mesh.facets.nodes.extend(&inner);
        mesh.facets.tags.extend([tag; 64]);
    }
    for n in [1, 2, 5] {
        let mixed = |part: DistributedMesh, comm: &Comm| {
            let problem = Poisson::distributed(&part, comm)?.dirichlet("xmin", 0.0)?;
            Ok(problem.discretize()?.inner_facets().to_vec())
        };
        assert_eq!(on_ranks(&mesh, n, mixed), [InnerFacets { condition: 0, n: 32 }], "{n}");
        let refused = |part: DistributedMesh, comm: &Comm| {
            Ok(Poisson::distributed(&part, comm)?.dirichlet("plane", 0.0).unwrap_err().to_string())
        };
        let said = on_ranks(&mesh, n, refused);
        assert!(said.contains("the tag `plane` is on 32 facets inside the mesh"), "{n}: {said}");
    }
}

#[test]
fn regions_that_later_ones_cover_are_no_tags_on_any_rank() {
    let mesh = box_mesh(&BoxConfig { cells: [4, 4, 4], ..BoxConfig::default() }).unwrap();
    for n in [1, 3] {
        let names = |mut part: DistributedMesh, comm: &Comm| {
            tag_regions_of_ranks(
                &mut part,
                comm,
                &[("left", "x < 0.5"), ("low", "z < 0.5"), ("half", "x < 0.6")],
            )?;
            let names = part.part.mesh.tag_names.iter().filter(|((dimension, _), _)| *dimension == 3);
            Ok(names.map(|(_, name)| name.clone()).collect::<Vec<String>>())
        };
        assert_eq!(on_ranks(&mesh, n, names), ["0", "low", "half"], "{n}");
    }
}

#[test]
fn a_solution_in_parts_is_put_together() {
    let mut bent = cubes();
    deform(&mut bent, &DeformConfig { amplitude: 0.05, order: 2 }).unwrap();
    for (mesh, degree) in [(&bent, 1), (&bent, 3), (&turned(cubes()), 2), (&squares(), 2), (&simplices(), 1)]
    {
        let problem: Box<dyn for<'m> Fn(Poisson<'m>) -> Poisson<'m> + Sync> =
            Box::new(move |of| of.degree(degree).lambda(1.0).source("x + 2*y"));
        let alone = problem(Poisson::new(mesh)).solve(&config(1)).unwrap();
        for n in [2, 3, 5] {
            let work = |comm: Comm| {
                let part = sent(&comm, mesh, Partitioner::Bisection)?;
                let config = SolverConfig { ranks: Ranks::Of(comm.clone()), ..config(1) };
                problem(Poisson::distributed(&part, &comm)?).solve(&config)?.collect()
            };
            let found = threads::run(n, work, |comm| work(comm).map(|found| assert!(found.is_none())));
            let GatheredSolution { mesh: whole, boundary, values } = found.unwrap().unwrap();
            assert_eq!(*boundary, boundary_facets(mesh));
            assert_eq!((&whole.points, &whole.cells), (&mesh.points, &mesh.cells));
            let (curved, expected) = (whole.curved.as_ref(), mesh.curved.as_ref());
            let at = |curved: &femtile_mesh::Curved| {
                curved.cells.iter().map(|&point| curved.points[point as usize]).collect::<Vec<_>>()
            };
            assert_eq!(curved.map(at), expected.map(at));
            let solution = values.on(problem(Poisson::new(&whole))).unwrap();
            let size = largest(alone.values());
            for (found, expected) in solution.values().iter().zip(alone.values()) {
                assert!((found - expected).abs() < 1e-9 * size, "{found} {expected}");
            }
            assert!(solution.outcome().iterations > 0);
        }
    }
    let whole = simplices();
    let solution = Poisson::new(&whole).lambda(1.0).solve(&config(1)).unwrap();
    assert!(solution.collect().unwrap_err().to_string().contains("collected already"));
}

fn simplices() -> Mesh {
    box_mesh(&BoxConfig { cells: [3, 4, 5], ..BoxConfig::default() }).unwrap()
}

#[test]
fn an_error_lists_the_tags_of_all_ranks() {
    let mut mesh = box_mesh(&BoxConfig { cells: [8, 1, 1], ..BoxConfig::default() }).unwrap();
    mesh.tag_names.clear();
    let said = |problem: Poisson<'_>| problem.dirichlet("lid", 0.0).map(drop).unwrap_err().to_string();
    let alone = said(Poisson::new(&mesh));
    let work = |comm: Comm| {
        Ok::<_, SolveError>(said(Poisson::distributed(&sent(&comm, &mesh, Partitioner::Bisection)?, &comm)?))
    };
    let found = threads::run(4, work, |comm| work(comm).map(drop)).unwrap();
    assert!(found == alone && found.contains("1, 2, 3, 4, 5, 6"), "{found}\n{alone}");
}

#[test]
fn a_mesh_that_is_not_connected_stays_whole_and_a_wrong_one_is_an_error() {
    let one = simplices();
    let mut two = one.clone();
    let n = one.n_nodes() as u32;
    two.points.extend(one.points.iter().map(|[x, y, z]| [x + 3.0, *y, *z]));
    two.cells.extend(one.cells.iter().map(|node| node + n));
    let mut orphan = one.clone();
    orphan.points.push([9.0; 3]);
    let mut beyond = one.clone();
    beyond.cells[5] = 1000;
    let of = |mesh: &Mesh, boundary: &Mesh| {
        let boundary = boundary_facets(boundary);
        let work = |comm: Comm| {
            let whole = (comm.rank() == 0).then_some((mesh, &boundary));
            Ok::<_, SolveError>(scatter(&comm, whole, Partitioner::Bisection)?.is_some())
        };
        threads::run(2, work, |comm| work(comm).map(drop))
    };
    assert!(of(&one, &one).unwrap());
    assert!(!of(&two, &two).unwrap());
    for (mesh, boundary, word) in
        [(&orphan, &orphan, "node 120"), (&beyond, &one, "1000"), (&one, &two, "boundary")]
    {
        let said = of(mesh, boundary).unwrap_err().to_string();
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn entities_of_the_whole_mesh_are_counted_once() {
    for degree in 1..5 {
        for mesh in [cubes(), turned(cubes()), squares()] {
            let expected = TensorSpace::new(&mesh, degree).unwrap().n_dofs();
            for n in [1, 2, 3, 5] {
                let work = |comm: Comm| Ok(sent(&comm, &mesh, Partitioner::Hilbert)?.n_dofs(degree));
                let found = threads::run(n, work, |comm| work(comm).map(drop));
                assert_eq!(found.unwrap_or_else(|error: SolveError| panic!("{error}")), expected);
            }
        }
    }
}

#[test]
fn too_few_cells_stay_with_the_first_rank() {
    let mesh = box_mesh(&BoxConfig { cells: [1, 1, 1], ..BoxConfig::default() }).unwrap();
    let boundary = boundary_facets(&mesh);
    let work = |comm: Comm| {
        let whole = (comm.rank() == 0).then_some((&mesh, &boundary));
        Ok(scatter(&comm, whole, Partitioner::Bisection)?.is_none())
    };
    for n in [9, 20] {
        let found = threads::run(n, work, |comm| work(comm).map(drop));
        assert!(found.unwrap_or_else(|error: SolveError| panic!("{error}")));
    }
}

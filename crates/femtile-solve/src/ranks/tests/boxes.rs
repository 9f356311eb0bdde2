//! Geometric multigrid, whose box is divided by layers of cells.

use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile_multigrid::Smoother;

use femtile_time::implicit::{Scheme, Steps};

use super::*;
use crate::{GmgStart, Method, Transient};

fn long(cells: [usize; 3]) -> Mesh {
    let of = BoxConfig { cells, split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    box_mesh(&of).unwrap()
}

/// The same cells with corners moved.
fn bent(mesh: &Mesh) -> Mesh {
    let points = mesh.points.iter().map(|&[x, y, z]| [x + 0.1 * y * z, y + 0.05 * x * x, z + 0.1 * x * y]);
    Mesh { points: points.collect(), ..mesh.clone() }
}

fn gmg(options: GmgOptions) -> PreconditionerConfig {
    PreconditionerConfig::Gmg(options)
}

#[test]
fn geometric_multigrid_takes_the_iterations_of_one_rank() {
    let cubes = long([12, 12, 28]);
    let of = SquareConfig { cells: [40, 64], split: SquareSplit::Quadrilateral, ..SquareConfig::default() };
    let plane = square(&of).unwrap();
    let deformed = bent(&cubes);
    let patches = GmgOptions { smoother: Smoother::VertexPatch, ..GmgOptions::default() };
    let double = GmgOptions { precision: LevelPrecision::F64, ..GmgOptions::default() };
    let auto = GmgOptions::default();
    let gmres = Method::Gmres { restart: 30 };
    for (mesh, degree, options, method) in [
        (&cubes, 2, &auto, Method::Cg),
        (&cubes, 2, &patches, gmres),
        (&cubes, 3, &double, Method::PipelinedCg),
        (&plane, 3, &patches, Method::Cg),
        (&plane, 2, &auto, Method::Cg),
        (&deformed, 2, &auto, Method::Cg),
        (&deformed, 2, &patches, Method::Cg),
    ] {
        let all = Poisson::new(mesh).source("sin(3*x) + y").dirichlet("all", "x*y").unwrap();
        let some = Poisson::new(mesh).sigma("1 + x*y").lambda(0.3).source("y");
        let some = some.dirichlet("xmin", "y").unwrap().robin("ymax", 0.5, 1.0).unwrap();
        for (number, problem) in [all, some].into_iter().enumerate() {
            let problem = problem.degree(degree);
            let of = |ranks| SolverConfig {
                ranks,
                method,
                preconditioner: gmg(*options),
                tolerance: 1e-10,
                ..config(1)
            };
            let alone = problem.solve(&of(Ranks::One)).unwrap();
            for n in [2, 3] {
                let name = format!("problem {number} of degree {degree}, {n} ranks, {}", method.name());
                let found = problem.solve(&of(Ranks::Threads(n))).unwrap();
                assert!(found.has_converged() && alone.has_converged(), "{name}");
                let [found_its, expected_its] = [&found, &alone].map(|of| of.outcome().iterations);
                assert!(found_its.abs_diff(expected_its) <= 1, "{name}: {found_its} and {expected_its}");
                assert_same(found.values(), alone.values(), 1e-8, &name);
                assert_eq!(found.preconditioner(), "gmg");
                assert_eq!(found.ranks().unwrap().partition, "layers");
                let rows =
                    |of: &Solution<'_>| of.levels().iter().map(|level| level.n_rows).collect::<Vec<_>>();
                assert_eq!(rows(&found), rows(&alone), "{name}");
            }
        }
    }
}

#[test]
fn geometric_multigrid_is_chosen_where_layers_suffice() {
    let mesh = long([8, 8, 32]);
    let problem = Poisson::new(&mesh).source(1.0).dirichlet("all", 0.0).unwrap().degree(4);
    let of = |n| SolverConfig {
        preconditioner: PreconditionerConfig::Auto,
        tolerance: 1e-12,
        threads: 1,
        ..config(n)
    };
    let discretization = problem.discretize().unwrap();
    let name = |n| {
        let boxed = |options: &GmgOptions| boxes(&discretization, options, n).map(Some);
        let chosen = chosen(&discretization, &of(n), 1, Solves::Many, &boxed).unwrap();
        (chosen.config.preconditioner.name(), chosen.reason, chosen.boxes.is_some())
    };
    assert!(matches!(name(3), ("gmg", _, true)), "{:?}", name(3));
    let (few, reason, has_boxes) = name(16);
    assert!(few != "gmg" && !has_boxes && reason.contains("2 layers"), "{reason}");
}

#[test]
fn runs_in_time_take_geometric_multigrid() {
    let mesh = long([6, 6, 40]);
    let problem = Poisson::new(&mesh).sigma(1.0).source("sin(3*t)*y").dirichlet("zmin", "t*y").unwrap();
    let options = GmgOptions::default();
    for preconditioner in [gmg(options), PreconditionerConfig::Auto] {
        let run = |ranks| {
            let transient = Transient::new(problem.clone().degree(3), "x + y*y");
            let transient = transient.times(0.0, 50.0).steps(Steps::Fixed(3)).scheme(Scheme::Bdf2);
            let preconditioner = preconditioner.clone();
            let config = SolverConfig { ranks, preconditioner, tolerance: 1e-10, ..config(1) };
            transient.solve(&config).unwrap()
        };
        let (alone, found) = (run(Ranks::One), run(Ranks::Threads(2)));
        let [found, alone] = [found.at_end(), alone.at_end()];
        assert_same(found.values(), alone.values(), 1e-7, "in time");
        assert_eq!([found.preconditioner(), alone.preconditioner()], ["gmg"; 2]);
    }
}

#[test]
fn settings_for_one_rank_are_refused_by_name() {
    let mesh = long([4, 4, 8]);
    let problem = Poisson::new(&mesh).source(1.0).dirichlet("all", 0.0).unwrap().degree(2);
    let said = |n, options: GmgOptions| {
        let config = SolverConfig { preconditioner: gmg(options), ..config(n) };
        problem.solve(&config).unwrap_err().to_string()
    };
    let full = GmgOptions { start: GmgStart::Full, ..GmgOptions::default() };
    assert!(said(2, full).contains("begin from zero"));
    assert!(said(9, GmgOptions::default()).contains("8 layers"));
    let scattered = solid();
    let config = SolverConfig { preconditioner: gmg(GmgOptions::default()), ..config(2) };
    Poisson::new(&scattered).dirichlet("all", 0.0).unwrap().solve(&config).unwrap_err();
}

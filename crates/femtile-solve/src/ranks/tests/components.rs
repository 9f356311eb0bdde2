//! Fields of several components on several ranks.

use femtile_mesh::generate::{BoxPartition, part_of_box};

use super::parts::with;
use super::*;
use crate::{Entry, OperatorKind, PmgOptions, Solution, Value};

/// A formula for each component.
fn entries<const N: usize>(texts: [&str; N]) -> Value {
    Value::Components(texts.map(|text| Entry::Text(text.into())).to_vec())
}

/// Components with different sources and Dirichlet values.
fn field<'m>(problem: Poisson<'m>, degree: usize) -> Poisson<'m> {
    let problem = problem.degree(degree).components(3).sigma("1 + x*y").lambda(0.5);
    let problem =
        problem.source(entries(["x", "sin(3*y)", "1"])).neumann("ymax", entries(["1", "x", "0"])).unwrap();
    problem
        .robin("xmax", 2.0, entries(["0", "1", "y"]))
        .unwrap()
        .dirichlet("xmin", entries(["y", "1", "0"]))
        .unwrap()
}

fn assert_same_components(found: &Solution<'_>, alone: &Solution<'_>, name: &str) {
    assert!(found.has_converged() && alone.has_converged(), "{name}");
    assert_eq!((found.n_components(), alone.n_components()), (3, 3), "{name}");
    for k in 0..3 {
        assert_same(
            found.component(k).values(),
            alone.component(k).values(),
            1e-9,
            &format!("{name}, component {k}"),
        );
    }
    let size = |k: usize| largest(alone.component(k).values());
    assert!(
        (0..3).all(|k| (1..3).all(|j| (size(k) - size((k + j) % 3)).abs() > 1e-3)),
        "{name}: equal components"
    );
}

#[test]
fn a_field_does_not_depend_on_the_number_of_ranks() {
    let pmg = PreconditionerConfig::Pmg(PmgOptions::default());
    for (mesh, degree) in [(squares(), 1), (squares(), 3), (cubes(), 2), (turned(cubes()), 3)] {
        let problem = field(Poisson::new(&mesh), degree);
        for preconditioner in [PreconditionerConfig::Jacobi, pmg.clone(), PreconditionerConfig::None] {
            let of = |ranks| SolverConfig {
                ranks,
                preconditioner: preconditioner.clone(),
                tolerance: 1e-12,
                ..config(1)
            };
            let alone = problem.solve(&of(Ranks::One)).unwrap();
            for n in [1, 2, 3] {
                let found = problem.solve(&of(Ranks::Threads(n))).unwrap();
                let name = format!("degree {degree} on {n} ranks, {}, {}", mesh.kind, found.preconditioner());
                assert_same_components(&found, &alone, &name);
                assert_eq!(found.ranks().unwrap().n_ranks, n);
            }
        }
    }
}

#[test]
fn merged_updates_and_few_cells_serve_fields() {
    let mesh = cubes();
    let problem = field(Poisson::new(&mesh), 2);
    for method in [Method::MergedCg, Method::PipelinedCg, Method::Gmres { restart: 60 }] {
        let of = |ranks| SolverConfig { ranks, method, tolerance: 1e-11, ..config(1) };
        let [alone, found] = [Ranks::One, Ranks::Threads(3)].map(|ranks| problem.solve(&of(ranks)).unwrap());
        assert_same_components(&found, &alone, method.name());
    }
    let few =
        square(&SquareConfig { cells: [1, 1], split: SquareSplit::Quadrilateral, ..SquareConfig::default() })
            .unwrap();
    let problem = field(Poisson::new(&few), 3);
    let [alone, found] = [Ranks::One, Ranks::Threads(5)]
        .map(|ranks| problem.solve(&SolverConfig { ranks, ..config(1) }).unwrap());
    assert_same_components(&found, &alone, "ranks without cells");
}

#[test]
fn geometric_multigrid_preconditions_each_component() {
    let mesh =
        box_mesh(&BoxConfig { cells: [6, 6, 16], split: BoxSplit::Hexahedron, ..BoxConfig::default() })
            .unwrap();
    let problem = Poisson::new(&mesh).degree(2).components(3).source(entries(["x", "y", "1"]));
    let problem = problem.dirichlet("zmin", entries(["0", "1", "x"])).unwrap();
    let gmg = PreconditionerConfig::Gmg(GmgOptions::default());
    let of = |ranks| SolverConfig { ranks, preconditioner: gmg.clone(), tolerance: 1e-11, ..config(1) };
    let alone = problem.solve(&of(Ranks::One)).unwrap();
    for n in [2, 3] {
        let found = problem.solve(&of(Ranks::Threads(n))).unwrap();
        assert_same_components(&found, &alone, &format!("{n} ranks"));
        assert!(found.outcome().iterations <= alone.outcome().iterations + 1);
    }
}

/// A free constant of each component.
#[test]
fn each_component_that_leaves_a_constant_open_has_mean_zero() {
    let mesh = squares();
    let problem = Poisson::new(&mesh).degree(3).components(2).source(entries(["x - 0.5", "0.5 - y"]));
    let pmg = PreconditionerConfig::Pmg(PmgOptions::default());
    for preconditioner in [PreconditionerConfig::Jacobi, pmg] {
        let of = |ranks| SolverConfig {
            ranks,
            preconditioner: preconditioner.clone(),
            tolerance: 1e-11,
            ..config(1)
        };
        let alone = problem.solve(&of(Ranks::One)).unwrap();
        let found = problem.solve(&of(Ranks::Threads(3))).unwrap();
        for k in 0..2 {
            assert_same(found.component(k).values(), alone.component(k).values(), 1e-8, "open");
            assert!(found.component(k).mean().unwrap().abs() < 1e-10);
        }
    }
}

/// Functionals, fluxes and gathered values of each component on parts of a box.
#[test]
fn fields_on_parts_are_those_of_one_rank() {
    let of = BoxConfig { cells: [4, 3, 6], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    let parts = BoxPartition::bisected(of.cells, 3).unwrap();
    let whole = box_mesh(&of).unwrap();
    let numbers = |solution: &Solution<'_>| -> Vec<f64> {
        let of_component = |k: usize| {
            let u = solution.component(k);
            let at = u.value_at([0.3, 0.2, 0.9]).unwrap();
            [
                u.max(),
                u.min(),
                u.integral().unwrap(),
                u.energy().unwrap(),
                u.source_integral().unwrap(),
                at,
                solution.flux(k, "xmin").unwrap(),
            ]
        };
        (0..3).flat_map(of_component).collect()
    };
    for operator in [OperatorKind::Auto, OperatorKind::MatrixFree] {
        let solver = SolverConfig { operator, tolerance: 1e-12, ..with(PreconditionerConfig::Jacobi) };
        let alone = field(Poisson::new(&whole), 2)
            .solve(&SolverConfig { ranks: Ranks::One, ..solver.clone() })
            .unwrap();
        let work = |comm: Comm| -> Result<Option<Vec<Vec<f64>>>, SolveError> {
            let mesh = part_of_box(&of, None, (&parts, comm.rank()), None)?;
            let config = SolverConfig { ranks: Ranks::Of(comm.clone()), ..solver.clone() };
            let solution = field(Poisson::distributed(&mesh, &comm)?, 2).solve(&config)?;
            assert_same(&numbers(&solution), &numbers(&alone), 1e-9, "functionals");
            let Some(all) = solution.collect()? else { return Ok(None) };
            let collected = all.values.on(field(Poisson::new(&all.mesh), 2))?;
            Ok(Some((0..3).map(|k| collected.component(k).values().to_vec()).collect()))
        };
        let collected = threads::run(3, work, |comm| work(comm).map(drop)).unwrap().unwrap();
        for (k, found) in collected.iter().enumerate() {
            assert_same(found, alone.component(k).values(), 1e-9, "gathered");
        }
    }
}

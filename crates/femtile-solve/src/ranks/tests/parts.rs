//! Boxes of which each rank makes its part.

use femtile_mesh::generate::{
    BoxConfig, BoxPartition, BoxSplit, DeformConfig, box_mesh, deform, part_of_box,
};

use femtile_mesh::partition::DistributedMesh;

use super::*;
use crate::{Method, OperatorKind, PmgOptions, Solution};

/// Numbers of a solution, and how it was found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub numbers: Vec<f64>,
    pub counts: [usize; 3],
    pub iterations: usize,
    pub preconditioner: &'static str,
}

pub(super) type Setup<'a> = &'a (dyn for<'m> Fn(Poisson<'m>) -> Result<Poisson<'m>, SolveError> + Sync);

pub(super) fn found(solution: &Solution<'_>) -> Result<Found, SolveError> {
    assert!(solution.has_converged());
    let u = solution.component(0);
    let exact = femtile_expression::Expression::parse("x*y + z").unwrap();
    let is_flat = solution.discretization().mesh().dimension() == 2;
    let at = |[x, y, z]: [f64; 3]| [x, y, if is_flat { 0.0 } else { z }];
    let points = [[0.3, 0.2, 0.9], [0.77, 0.5, 0.11], [0.5, 0.5, 0.5]].map(at);
    let mut numbers =
        vec![u.max(), u.min(), u.integral()?, u.measure()?, u.mean()?, u.l2_norm()?, u.energy()?];
    numbers.extend([u.error_l2(&exact)?, u.error_h1(&exact)?, u.source_integral()?, u.reaction_integral()?]);
    numbers.push(u.value_at(points[0])?);
    numbers.extend(u.values_at(&points)?.into_iter().map(Option::unwrap));
    numbers.extend(u.along([0.1, 0.2, 0.0], at([0.9, 0.4, 1.0]), 7)?.values.into_iter().map(Option::unwrap));
    numbers.extend(["xmin", "xmax", "ymin", "all"].map(|side| solution.flux(0, side).unwrap()));
    numbers.push(solution.flux(0, "z < 1e-9 && x < 0.6")?);
    let (iterations, preconditioner) = (solution.outcome().iterations, solution.preconditioner());
    Ok(Found { numbers, counts: solution.counts(), iterations, preconditioner })
}

/// Solves on parts of a box, and returns what the first rank finds.
fn on_parts(
    (config, bend): (&BoxConfig, Option<DeformConfig>),
    parts: &BoxPartition,
    solver: &SolverConfig,
    set: Setup<'_>,
) -> Result<Found, SolveError> {
    let make = |comm: &Comm| Ok(part_of_box(config, bend.as_ref(), (parts, comm.rank()), None)?);
    on_divided(parts.n_ranks(), &make, solver, set)
}

/// Solves on the parts that ranks make, and returns what the first one finds.
pub(super) fn on_divided(
    n_ranks: usize,
    make: &(dyn Fn(&Comm) -> Result<DistributedMesh, SolveError> + Sync),
    solver: &SolverConfig,
    set: Setup<'_>,
) -> Result<Found, SolveError> {
    let work = |comm: Comm| {
        let mesh = make(&comm)?;
        let config = SolverConfig { ranks: Ranks::Of(comm.clone()), threads: 1, ..solver.clone() };
        let solution = set(Poisson::distributed(&mesh, &comm)?)?.solve(&config)?;
        let used = solution.ranks().unwrap();
        assert_eq!((used.n_ranks, solution.is_distributed()), (comm.n_ranks(), true));
        assert_eq!(solution.values().len(), solution.discretization().n_dofs());
        found(&solution)
    };
    threads::run(n_ranks, work, |comm| work(comm).map(drop))
}

pub(super) fn assert_found(name: &str, here: &Found, alone: &Found) {
    assert_eq!((here.counts, here.preconditioner), (alone.counts, alone.preconditioner), "{name}");
    // Aggregates stay within ranks, and a small matrix of degree 1 that one rank factorizes is no level of several.
    let most = if ["amg", "pmg"].contains(&here.preconditioner) { 12 } else { 1 };
    assert!(here.iterations <= alone.iterations + most, "{name}: {here:?} {alone:?}");
    let size = largest(&alone.numbers);
    for (number, (found, expected)) in here.numbers.iter().zip(&alone.numbers).enumerate() {
        assert!((found - expected).abs() < 1e-9 * size, "{name}, number {number}: {found} {expected}");
    }
}

fn check(
    (config, bend): (&BoxConfig, Option<DeformConfig>),
    divisions: &[BoxPartition],
    solver: &SolverConfig,
    set: Setup<'_>,
    name: &str,
) {
    let mut mesh = box_mesh(config).unwrap();
    if let Some(bend) = &bend {
        deform(&mut mesh, bend).unwrap();
    }
    let alone = SolverConfig { ranks: Ranks::One, ..solver.clone() };
    let alone = found(&set(Poisson::new(&mesh)).unwrap().solve(&alone).unwrap()).unwrap();
    for parts in divisions {
        let here = on_parts((config, bend), parts, solver, set).unwrap();
        assert_found(&format!("{name}, {} ranks", parts.n_ranks()), &here, &alone);
    }
}

/// Problems with every kind of condition and coefficient.
pub(super) fn conditions() -> Vec<(&'static str, Setup<'static>)> {
    vec![
        ("held", &|of| of.source("sin(3*x) + y").dirichlet("xmin", "y*y")),
        ("mixed", &|of| {
            let of = of.sigma("1 + x*y").lambda("0.5 + z").source(1.0).neumann("xmax", "y")?;
            of.robin("ymin", "1 + x", 2.0)?.dirichlet("xmin", "x + y")?.dirichlet("y > 1 - 1e-9", "1 - x")
        }),
        ("at nodes", &|of| of.source(1.0).dirichlet_at_nodes("x < 1e-9 && y < 0.5", 2.0)),
        ("open", &|of| of.neumann("xmin", -1.0)?.neumann("xmax", 1.0)),
        ("two sides", &|of| {
            of.sigma(3.0).lambda(0.1).source("x").dirichlet("zmax", "x")?.dirichlet("zmin", 0.0)
        }),
    ]
}

fn divisions(n: [usize; 3]) -> Vec<BoxPartition> {
    let boxes = [2, 3, 7].map(|n_ranks| BoxPartition::bisected(n, n_ranks).unwrap());
    boxes.into_iter().chain([BoxPartition::layers(n, 2, 3).unwrap()]).collect()
}

pub(super) fn with(preconditioner: PreconditionerConfig) -> SolverConfig {
    SolverConfig { preconditioner, ..config(1) }
}

#[test]
fn tetrahedra_have_the_solution_of_one_rank() {
    let n = [7, 5, 6];
    for split in [BoxSplit::Kuhn, BoxSplit::Five] {
        let config = BoxConfig { cells: n, split, ..BoxConfig::default() };
        let bend = DeformConfig { amplitude: 0.1, order: 1 };
        for (name, set) in conditions() {
            for solver in
                [with(PreconditionerConfig::Jacobi), with(PreconditionerConfig::Amg(AmgOptions::default()))]
            {
                check((&config, Some(bend)), &divisions(n), &solver, set, name);
            }
        }
    }
}

#[test]
fn hexahedra_have_the_solution_of_one_rank() {
    let n = [4, 3, 6];
    let config = BoxConfig { cells: n, split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    let curved = Some(DeformConfig { amplitude: 0.1, order: 2 });
    for (name, set) in conditions() {
        for degree in [1, 2, 3] {
            let set: Setup<'_> = &move |of| set(of.degree(degree));
            let pmg = with(PreconditionerConfig::Pmg(PmgOptions::default()));
            let assembled =
                SolverConfig { operator: OperatorKind::Assembled, ..with(PreconditionerConfig::Jacobi) };
            for solver in [with(PreconditionerConfig::Jacobi), pmg, assembled] {
                check((&config, curved), &divisions(n), &solver, set, &format!("{name} of degree {degree}"));
            }
        }
    }
}

#[test]
fn geometric_multigrid_works_on_layers() {
    let n = [6, 12, 24];
    let upper = [0.9, 1.0, 1.5];
    let config = BoxConfig { cells: n, upper, split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    let layers: Vec<BoxPartition> =
        [2, 4].iter().map(|&n_ranks| BoxPartition::layers(n, 2, n_ranks).unwrap()).collect();
    for (name, set) in [&conditions()[0], &conditions()[4]] {
        for (degree, method) in [(1, Method::Cg), (3, Method::Cg), (2, Method::Gmres { restart: 30 })] {
            let set: Setup<'_> = &move |of| set(of.degree(degree));
            let solver = SolverConfig { method, ..with(PreconditionerConfig::Gmg(GmgOptions::default())) };
            check((&config, None), &layers, &solver, set, &format!("{name} of degree {degree}"));
        }
    }
    let gmg = with(PreconditionerConfig::Gmg(GmgOptions::default()));
    let bend = Some(DeformConfig { amplitude: 0.1, order: 2 });
    let jumps: Setup<'_> =
        &|of| of.degree(2).sigma("if(x > 0.4, 10, 1)").lambda(0.3).source("x").dirichlet("zmin", 0.0);
    check((&config, bend), &layers, &gmg, conditions()[0].1, "deformed");
    check((&config, bend), &layers, &gmg, jumps, "deformed, of two sigmas");
    check((&config, None), &layers, &gmg, jumps, "of two sigmas");
    let refused = |set: Setup<'_>, bend, parts: &BoxPartition| {
        on_parts((&config, bend), parts, &with(PreconditionerConfig::Gmg(GmgOptions::default())), set)
            .unwrap_err()
            .to_string()
    };
    let held: Setup<'_> = &|of| of.source(1.0).dirichlet("xmin", 0.0);
    for (set, bend, parts, word) in [
        (held, None, &BoxPartition::bisected(n, 4).unwrap(), "in layers"),
        (
            &|of| of.sigma(0.0).lambda(1.0).source(1.0).dirichlet("xmin", 0.0),
            None,
            &layers[0],
            "positive sigma",
        ),
        (&|of| of.source(1.0).dirichlet("x < 1e-9 && y < 0.6", 0.0), None, &layers[0], "the side xmin"),
        (
            &|of| {
                of.source(1.0)
                    .dirichlet("xmin", 0.0)?
                    .dirichlet_at_nodes("hypot(hypot(x - 0.5, y - 0.5), z - 0.7) < 0.2", 1.0)
            },
            None,
            &layers[0],
            "inside",
        ),
        (&|of| of.source(1.0).lambda(1.0).robin("xmin", 1.0, 0.0), None, &layers[1], "one side"),
    ] as [(Setup<'_>, Option<DeformConfig>, &BoxPartition, &str); 5]
    {
        let said = refused(set, bend, parts);
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn a_preconditioner_is_chosen_by_all_ranks() {
    let n = [16, 16, 16];
    let layers = [BoxPartition::layers(n, 2, 2).unwrap()];
    let auto = with(PreconditionerConfig::Auto);
    for (split, degree) in [(BoxSplit::Kuhn, 1), (BoxSplit::Hexahedron, 1), (BoxSplit::Hexahedron, 2)] {
        let config = BoxConfig { cells: n, split, ..BoxConfig::default() };
        let held: Setup<'_> = &move |of| of.degree(degree).source(1.0).dirichlet("xmin", 0.0);
        check((&config, None), &layers, &auto, held, "held");
        let fast: Setup<'_> = &move |of| Ok(of.degree(degree).source(1.0).lambda(1e5));
        check((&config, None), &layers, &auto, fast, "reacting");
    }
}

#[test]
fn what_no_rank_has_is_an_error_with_the_extents_of_the_whole_mesh() {
    let config = BoxConfig { cells: [4, 4, 4], upper: [2.0, 1.0, 1.0], ..BoxConfig::default() };
    let parts = BoxPartition::bisected(config.cells, 3).unwrap();
    let said = |set: Setup<'_>| {
        on_parts((&config, None), &parts, &with(PreconditionerConfig::Jacobi), set).unwrap_err().to_string()
    };
    for (set, word) in [
        (&|of| of.dirichlet("x < -1", 0.0), "x from 0 to 2, y from 0 to 1"),
        (&|of| of.dirichlet_at_nodes("x > 7", 0.0), "x from 0 to 2, y from 0 to 1"),
        (&|of| of.dirichlet("side", 0.0), "there is no tag `side`"),
        (&|of| of.sigma("1/(x - 1.9)").source(1.0).dirichlet("xmin", 0.0), "sigma"),
        (&|of| of.source(1.0).neumann("xmin", 1.0), "flows in and nothing out"),
    ] as [(Setup<'_>, &str); 5]
    {
        let said = said(set);
        assert!(said.contains(word), "{word}: {said}");
    }
    let warned = |set: Setup<'_>| {
        let whole = box_mesh(&config).unwrap();
        let jacobi = with(PreconditionerConfig::Jacobi);
        let alone =
            set(Poisson::new(&whole)).unwrap().solve(&SolverConfig { ranks: Ranks::One, ..jacobi.clone() });
        let work = |comm: Comm| {
            let mesh = part_of_box(&config, None, (&parts, comm.rank()), None)?;
            let config = SolverConfig { ranks: Ranks::Of(comm.clone()), ..jacobi.clone() };
            Ok(set(Poisson::distributed(&mesh, &comm)?)?.solve(&config)?.warnings().to_vec())
        };
        let here = threads::run(3, work, |comm| work(comm).map(drop))
            .unwrap_or_else(|error: SolveError| panic!("{error}"));
        assert_eq!(here, alone.unwrap().warnings());
        here
    };
    let taken = warned(&|of| of.source(1.0).dirichlet("xmin", 0.0)?.dirichlet("x < 1e-9 && y < 0.6", 1.0));
    assert!(taken.iter().any(|warning| warning.contains("takes")), "{taken:?}");
    warned(&|of| {
        of.source(1.0)
            .dirichlet("xmin", 0.0)?
            .dirichlet_at_nodes("x < 0.3 && y < 0.6", 1.0)?
            .dirichlet("ymin", 1.0)
    });
}

#[test]
fn what_needs_the_whole_mesh_is_refused() {
    let config = BoxConfig { cells: [4, 4, 4], ..BoxConfig::default() };
    let parts = BoxPartition::bisected(config.cells, 2).unwrap();
    let work = |comm: Comm| -> Result<Vec<String>, SolveError> {
        let mesh = part_of_box(&config, None, (&parts, comm.rank()), None)?;
        let begun = || Poisson::distributed(&mesh, &comm)?.source(1.0).dirichlet("xmin", 0.0);
        let here = SolverConfig { ranks: Ranks::Of(comm.clone()), ..with(PreconditionerConfig::Jacobi) };
        let alone = SolverConfig { ranks: Ranks::One, ..here.clone() };
        let said = |result: Result<(), SolveError>| result.unwrap_err().to_string();
        let solution = begun()?.solve(&here)?;
        Ok(vec![
            said(begun()?.solve(&alone).map(drop)),
            said(Poisson::distributed(&mesh, &Comm::alone()).map(drop)) + " that every rank has",
            said(begun()?.dirichlet(vec![1000], 0.0).map(drop)) + " that every rank has",
            said(begun()?.solve(&SolverConfig { ranks: Ranks::Threads(2), ..here.clone() }).map(drop)),
            said(begun()?.discretize()?.weak_form(&alone, None, 1).map(drop)),
            said(begun()?.discretize()?.distributed(&alone).map(drop)) + " that every rank has",
            said(crate::Transient::new(begun()?, 0.0).solve(&alone).map(drop)) + " that every rank has",
            said(solution.recovered_gradient(0).map(drop).map_err(SolveError::from)),
            said(solution.error_estimate().map(drop).map_err(SolveError::from)),
        ])
    };
    for said in threads::run(2, work, |comm| work(comm).map(drop)).unwrap() {
        assert!(said.contains("that every rank has"), "{said}");
    }
}

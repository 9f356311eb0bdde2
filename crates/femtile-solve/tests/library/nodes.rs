//! Values given at single nodes, along edges and inside.

use std::f64::consts::PI;
use std::ops::Range;

use femtile_mesh::Mesh;
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile_solve::{
    AmgOptions, DeviceChoice, GmgOptions, Nodes, OperatorKind, PmgOptions, Poisson, PreconditionerConfig,
    Solution, SolveError, SolverConfig, path_text,
};

fn cube(n: usize, split: BoxSplit) -> Mesh {
    box_mesh(&BoxConfig { cells: [n; 3], split, ..BoxConfig::default() }).unwrap()
}

fn plane(n: usize, split: SquareSplit) -> Mesh {
    square(&SquareConfig { cells: [n, n], split, ..SquareConfig::default() }).unwrap()
}

/// Meshes with the degrees of elements on them.
fn spaces() -> Vec<(Mesh, usize)> {
    let mut spaces = vec![(cube(4, BoxSplit::Kuhn), 1), (plane(6, SquareSplit::Triangles), 1)];
    for degree in [1, 2, 3, 5] {
        spaces.push((cube(4, BoxSplit::Hexahedron), degree));
        spaces.push((plane(6, SquareSplit::Quadrilateral), degree));
    }
    spaces
}

fn config(preconditioner: PreconditionerConfig, operator: OperatorKind) -> SolverConfig {
    let device = DeviceChoice::Cpu;
    SolverConfig { preconditioner, operator, device, tolerance: 1e-12, threads: 2, ..SolverConfig::default() }
}

/// Solves with everything that takes the elements, and says with which.
fn solutions<'m>(problem: &Poisson<'m>, mesh: &Mesh, degree: usize) -> Vec<(String, Solution<'m>)> {
    let jacobi = || PreconditionerConfig::Jacobi;
    let mut configs = vec![(jacobi(), OperatorKind::Assembled)];
    if degree == 1 {
        configs.push((PreconditionerConfig::Amg(AmgOptions::default()), OperatorKind::Assembled));
    }
    if matches!(mesh.kind, femtile_mesh::CellKind::Quadrilateral | femtile_mesh::CellKind::Hexahedron) {
        configs.push((jacobi(), OperatorKind::MatrixFree));
        configs.push((PreconditionerConfig::Pmg(PmgOptions::default()), OperatorKind::MatrixFree));
    }
    let of = |(preconditioner, operator): (PreconditionerConfig, OperatorKind)| {
        let name = format!("{:?}, degree {degree}, {}, {operator:?}", mesh.kind, preconditioner.name());
        let solution = problem.solve(&config(preconditioner, operator)).unwrap();
        assert!(solution.has_converged(), "{name}: {:?}", solution.outcome().stop);
        (name, solution)
    };
    configs.into_iter().map(of).collect()
}

#[test]
fn one_node_settles_the_constant_that_fluxes_leave_open() {
    for (mesh, degree) in spaces() {
        // u = x + 2y + c.
        let problem = Poisson::new(&mesh).degree(degree);
        let problem = problem.neumann("xmin", -1.0).unwrap().neumann("xmax", 1.0).unwrap();
        let problem = problem.neumann("ymin", -2.0).unwrap().neumann("ymax", 2.0).unwrap();
        let problem = problem.dirichlet_at_nodes("x < 1e-9 && y < 1e-9 && z < 1e-9", 5.0).unwrap();
        for (name, solution) in solutions(&problem, &mesh, degree) {
            let (least, most) = (solution.min(), solution.max());
            assert!((least - 5.0).abs() < 1e-8 && (most - 8.0).abs() < 1e-8, "{name}: {least} to {most}");
        }
    }
}

#[test]
fn u_has_its_value_all_along_edges_whose_ends_are_named_and_not_beside_them() {
    for degree in [1, 2, 3, 5] {
        let mesh = cube(4, BoxSplit::Hexahedron);
        let problem = Poisson::new(&mesh).degree(degree).source(1.0).dirichlet("zmax", 0.0).unwrap();
        let edge = "x < 1e-9 && y < 1e-9 && z < 1 - 1e-9";
        let problem = problem.dirichlet_at_nodes(edge, "z^2 - 1").unwrap();
        for (name, solution) in solutions(&problem, &mesh, degree) {
            let value = |point| solution.value_at(point).unwrap();
            // Between the nodes of degree 1 the value is interpolated.
            let heights: &[f64] = if degree == 1 { &[0.0, 0.25, 0.5] } else { &[0.0, 0.1, 0.25, 0.33, 0.6] };
            for &z in heights {
                assert!((value([0.0, 0.0, z]) - (z * z - 1.0)).abs() < 1e-9, "{name}, z = {z}");
            }
            assert!(value([0.0, 0.0, 1.0]).abs() < 1e-12 && value([1.0, 0.0, 0.1]) > -0.5, "{name}");
        }
    }
}

#[test]
fn nodes_of_a_whole_side_are_that_side_and_its_flux_is_known() {
    for (mesh, degree) in spaces() {
        let problem = || Poisson::new(&mesh).degree(degree).source("1 + y").dirichlet("xmax", 0.0).unwrap();
        let by_side = problem().dirichlet("x < 1e-9", "y").unwrap();
        let by_nodes = problem().dirichlet_at_nodes("x < 1e-9", "y").unwrap();
        let pairs = solutions(&by_side, &mesh, degree).into_iter().zip(solutions(&by_nodes, &mesh, degree));
        for ((name, side), (_, nodes)) in pairs {
            // Points are those of the side or of the cell, up to rounding.
            let differences = side.values().iter().zip(nodes.values()).map(|(a, b)| (a - b).abs());
            assert!(differences.fold(0.0, f64::max) < 1e-10, "{name}");
            let flux = |solution: &Solution<'_>| solution.flux(0, "xmin").unwrap();
            assert!(flux(&side).abs() > 0.1 && (flux(&side) - flux(&nodes)).abs() < 1e-8, "{name}");
        }
    }
}

#[test]
fn nodes_inside_hold_the_solution_there() {
    for (mesh, degree) in spaces() {
        let problem = Poisson::new(&mesh).degree(degree).dirichlet("xmin", 0.0).unwrap();
        let problem = problem.dirichlet("xmax", 0.0).unwrap();
        let middle = problem.dirichlet_at_nodes("abs(x - 0.5) < 1e-9", 1.0).unwrap();
        for (name, solution) in solutions(&middle, &mesh, degree) {
            for x in [0.2, 0.5, 0.9_f64] {
                let (found, expected) =
                    (solution.value_at([x, 0.4, 0.0]).unwrap(), 1.0 - (2.0 * x - 1.0).abs());
                assert!((found - expected).abs() < 1e-8, "{name}, x = {x}: {found}");
            }
        }
    }
}

#[test]
fn of_several_values_at_a_node_the_last_holds_and_a_warning_names_the_loser() {
    let (mesh, config) = (plane(4, SquareSplit::Triangles), SolverConfig::default());
    let corner = "x < 1e-9 && y < 1e-9";
    let solve = |problem: Poisson<'_>| {
        let solution = problem.solve(&config).unwrap();
        (solution.value_at([0.0; 3]).unwrap(), solution.warnings().join("\n"))
    };
    let side = || Poisson::new(&mesh).dirichlet("xmin", 2.0).unwrap();
    let (value, warnings) = solve(side().dirichlet_at_nodes(corner, 7.0).unwrap());
    assert_eq!((value, warnings.as_str()), (7.0, ""));
    let first = Poisson::new(&mesh).dirichlet_at_nodes(corner, 7.0).unwrap();
    let (value, warnings) = solve(first.dirichlet("xmin", 2.0).unwrap());
    assert_eq!(value, 2.0);
    let told = "boundary[1] (dirichlet on \"xmin\") takes 1 of the 1 nodes of boundary[0] (dirichlet at \"x < 1e-9 && \
                y < 1e-9\"), which then holds nowhere";
    assert!(warnings.contains(told), "{warnings}");
    let both = side().dirichlet_at_nodes(vec![4, 9], 7.0).unwrap().dirichlet_at_nodes(vec![9], 8.0).unwrap();
    let (_, warnings) = solve(both);
    assert!(warnings.contains("boundary[2] (dirichlet) takes 1 of the 2 nodes of boundary[1]"), "{warnings}");
    // Whole facets are reported once.
    let (_, warnings) = solve(side().dirichlet_at_nodes("x < 1e-9", 7.0).unwrap());
    assert!(warnings.contains("takes 4 of the 4 facets of boundary[0]") && !warnings.contains("nodes of"));
}

/// Key, place within the text and message of the refusal of a condition, the first one of a problem.
fn refusal(mesh: &Mesh, at: impl Into<Nodes>) -> (String, Option<Range<usize>>, String) {
    match Poisson::new(mesh).dirichlet_at_nodes(at, 1.0).map(drop).unwrap_err() {
        SolveError::Setting { path, within, message } => (path_text(&path), within, message),
        other => panic!("{other}"),
    }
}

#[test]
fn nodes_that_do_not_exist_are_refused_with_the_extents_of_the_mesh() {
    let mesh = plane(4, SquareSplit::Triangles);
    let (key, within, message) = refusal(&mesh, "x > 2 && y < 0.3");
    assert_eq!((key.as_str(), within), ("boundary[0].nodes", None));
    for words in ["holds at no node", "x from 0 to 1, y from 0 to 1"] {
        assert!(message.contains(words), "{message}");
    }
    let (_, within, message) = refusal(&mesh, "x < q");
    assert_eq!(within, Some(4..5));
    assert!(message.contains("no comparison such as"), "{message}");
    let (_, _, message) = refusal(&mesh, vec![3, 25]);
    assert!(message.contains("no node 25: the mesh has 25"), "{message}");
    let (_, _, message) = refusal(&mesh, Vec::new());
    assert!(message.contains("empty"), "{message}");
}

#[test]
fn geometric_multigrid_takes_nodes_of_whole_sides_and_refuses_others() {
    let mesh = plane(8, SquareSplit::Quadrilateral);
    let gmg = || config(PreconditionerConfig::Gmg(GmgOptions::default()), OperatorKind::Auto);
    let problem = || Poisson::new(&mesh).degree(2).source(1.0).dirichlet("xmin", 0.0).unwrap();
    let whole = problem().dirichlet_at_nodes("x > 1 - 1e-9", 1.0).unwrap().solve(&gmg()).unwrap();
    assert!(whole.has_converged() && whole.preconditioner() == "gmg");
    for (nodes, words) in [
        ("abs(x - 0.5) + abs(y - 0.5) < 1e-9", "nodes inside the box"),
        ("x > 0.9 && y > 0.9", "the side x = 1"),
    ] {
        let held = problem().dirichlet_at_nodes(nodes, 1.0).unwrap();
        let message = held.solve(&gmg()).map(drop).unwrap_err().to_string();
        assert!(message.contains(words), "{nodes}: {message}");
        let auto = held.solve(&config(PreconditionerConfig::Auto, OperatorKind::Auto)).unwrap();
        assert!(auto.has_converged() && auto.preconditioner() != "gmg");
    }
}

#[test]
fn a_solution_that_one_node_fixes_converges_with_the_order_of_its_elements() {
    let exact = |[x, y, _]: [f64; 3]| (PI * x).cos() * (PI * y).cos();
    let error = |n: usize, degree: usize| {
        let split = if degree == 1 { SquareSplit::Triangles } else { SquareSplit::Quadrilateral };
        let mesh = plane(n, split);
        let problem = Poisson::new(&mesh).degree(degree);
        let problem = problem.source(move |x: [f64; 3]| 2.0 * PI * PI * exact(x));
        let solution = problem
            .dirichlet_at_nodes("x + y < 1e-9", 1.0)
            .unwrap()
            .solve(&SolverConfig { tolerance: 1e-12, ..SolverConfig::default() });
        let points: Vec<[f64; 3]> = (0..100)
            .map(|i| [0.097 * f64::from(i % 10) + 0.05, 0.097 * f64::from(i / 10) + 0.05, 0.0])
            .collect();
        let found = solution.unwrap().values_at(&points).unwrap();
        let squares = found.iter().zip(&points).map(|(u, &x)| (u.unwrap() - exact(x)).powi(2));
        (squares.sum::<f64>() / 100.0).sqrt()
    };
    for degree in [1, 2, 3] {
        let (coarse, fine) = (error(8, degree), error(16, degree));
        // At a node the error of degree 1 is of the order h² ln(1/h).
        let logarithm = if degree == 1 { (16.0_f64.ln() / 8.0_f64.ln()).log2() } else { 0.0 };
        let order = (coarse / fine).log2() + logarithm;
        assert!(order > degree as f64 + 0.9, "degree {degree}: {coarse:.2e}, {fine:.2e}, order {order:.2}");
    }
}

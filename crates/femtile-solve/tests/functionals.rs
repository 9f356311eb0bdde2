//! Functionals of solutions in the library.

use femtile_mesh::Mesh;
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile_solve::{FieldConfig, Poisson, Quadrature, Solution, SolveError, SolverConfig};

fn config() -> SolverConfig {
    SolverConfig { tolerance: 1e-12, threads: 2, ..SolverConfig::default() }
}

fn triangles() -> Mesh {
    square(&SquareConfig { cells: [7, 5], ..SquareConfig::default() }).unwrap()
}

fn hexahedra() -> Mesh {
    let config = BoxConfig { cells: [3, 2, 2], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    box_mesh(&config).unwrap()
}

fn balance(solution: &Solution<'_>) -> f64 {
    let u = solution.component(0);
    let inner = u.reaction_integral().unwrap() - u.source_integral().unwrap();
    (solution.flux(0, "all").unwrap() - inner) / u.source_integral().unwrap()
}

#[test]
fn fluxes_balance_source_and_reaction_with_every_rule() {
    let config = config();
    let mesh = triangles();
    let problem = Poisson::new(&mesh).sigma("1 + x").lambda("2 + y").source("3 + x");
    let solution = problem.dirichlet("xmin", "y").unwrap().solve(&config).unwrap();
    assert!(balance(&solution).abs() < 1e-9, "{}", balance(&solution));
    let mesh = hexahedra();
    for rule in [Quadrature::Gauss, Quadrature::GaussFine, Quadrature::GaussLobatto] {
        let problem = Poisson::new(&mesh).degree(3).quadrature(rule).sigma("1 + x").lambda("2 + y");
        let problem = problem.source("3 + x").dirichlet("xmin", "y").unwrap();
        let solution = problem.robin("zmax", 2.0, "x").unwrap().solve(&config).unwrap();
        assert!(balance(&solution).abs() < 1e-9, "{rule:?}: {}", balance(&solution));
    }
}

#[test]
fn solutions_have_fluxes_through_regions_and_values_at_points_and_along_lines() {
    let mesh = triangles();
    let problem = Poisson::new(&mesh).sigma(4.0).dirichlet("all", "1 + 2*x - 3*y").unwrap();
    let linear = problem.solve(&config()).unwrap();
    let mesh = hexahedra();
    let problem = Poisson::new(&mesh).degree(2).sigma(4.0).dirichlet("all", "1 + 2*x - 3*y").unwrap();
    let quadratic = problem.solve(&config()).unwrap();
    for solution in [linear, quadratic] {
        let is_near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(is_near(solution.flux(0, "xmax").unwrap(), 8.0));
        let discretization = solution.discretization();
        let facets = discretization.facets("y > 1 - 1e-9", &["where".into()]).unwrap().facets;
        assert!(is_near(solution.flux(0, facets.clone()).unwrap(), -12.0));
        assert!(is_near(solution.component(0).flux(&facets).unwrap(), -12.0));
        match solution.flux(0, "lid") {
            Err(SolveError::Setting { message, .. }) => assert!(message.contains("`lid`"), "{message}"),
            other => panic!("{other:?}"),
        }
        let found = solution.values_at(&[[0.5, 0.25, 0.0], [2.0, 0.0, 0.0]]).unwrap();
        assert!(is_near(found[0].unwrap(), 1.25) && found[1].is_none(), "{found:?}");
        let line = solution.along([0.0; 3], [1.0, 1.0, 0.0], 5).unwrap();
        for (value, point) in line.values.iter().zip(&line.points) {
            assert!(is_near(value.unwrap(), 1.0 + 2.0 * point[0] - 3.0 * point[1]), "{line:?}");
        }
        assert!(discretization.meets_line([-1.0, 0.5, 0.0], [1.0, 0.5, 0.0], 3).unwrap());
        assert!(!discretization.meets_line([-1.0, 0.5, 0.0], [-0.1, 0.5, 0.0], 3).unwrap());
        let outside = discretization.check_points(&[[0.5; 3], [0.5, 7.0, 0.0], [9.0; 3]]);
        // The first point lies in the cube alone.
        assert_eq!(outside.unwrap_err().0, usize::from(solution.discretization().space().is_some()));
    }
}

#[test]
fn estimates_and_fields_are_those_of_the_recovered_gradient_of_every_component() {
    let mesh =
        square(&SquareConfig { split: SquareSplit::Quadrilateral, cells: [4, 4], ..SquareConfig::default() })
            .unwrap();
    let problem = Poisson::new(&mesh).degree(2).components(2).source("10*x*y");
    let solution = problem.dirichlet("all", "sin(3*x)").unwrap().solve(&config()).unwrap();
    let each = [0, 1].map(|k| solution.recovered_gradient(k).unwrap().error_estimate().unwrap());
    let together = solution.error_estimate().unwrap();
    assert!(each[0].total > 1e-4);
    assert!((together.total - each[0].total.hypot(each[1].total)).abs() < 1e-14);
    assert_eq!(together.cells.len(), mesh.n_cells());
    let fields = solution.fields(FieldConfig { error: true, ..FieldConfig::default() });
    assert_eq!(fields.error_estimate(), Some(&together));
    assert!(fields.left_out().is_empty());
    assert!(solution.fields(FieldConfig::default()).error_estimate().is_none());
    let gradient = solution.recovered_gradient(0).unwrap();
    let density = gradient.flux_density().unwrap();
    assert_eq!(density.len(), 3 * solution.values().len());
    assert!(gradient.at_nodes().iter().zip(&density).all(|(g, q)| (g + q).abs() < 1e-12));
}

#[test]
fn fields_that_are_interrupted_are_left_out_with_the_reason() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let (triangles, hexahedra) = (triangles(), hexahedra());
    for (mesh, degree) in [(&triangles, 1), (&hexahedra, 2)] {
        let problem = Poisson::new(mesh).degree(degree).source("x").dirichlet("xmin", 0.0).unwrap();
        let solution = problem.solve(&config()).unwrap();
        let all = FieldConfig { gradient: true, flux: true, error: true, ..FieldConfig::default() };
        let n_asked = AtomicUsize::new(0);
        let complete = solution.fields_interruptible(all, &|| {
            n_asked.fetch_add(1, Ordering::Relaxed);
            false
        });
        assert!(complete.left_out().is_empty() && complete.error_estimate().is_some());
        let n_asked = n_asked.into_inner();
        // Three times after the fits, of which there is one a vertex at least.
        assert!(n_asked >= mesh.n_nodes() + 3, "{n_asked} for {} nodes", mesh.n_nodes());
        for (limit, left_out) in [(0, vec!["gradient"]), (n_asked - 2, vec!["flux", "error"])] {
            let asked = AtomicUsize::new(0);
            let fields =
                solution.fields_interruptible(all, &|| asked.fetch_add(1, Ordering::Relaxed) >= limit);
            let expected: Vec<String> = left_out
                .iter()
                .map(|name| format!("the field `{name}` is left out: the work was interrupted"))
                .collect();
            assert_eq!(fields.left_out(), expected);
            assert!(fields.error_estimate().is_none());
        }
    }
}

//! Orders in space and time of every scheme, element and condition.

use femtile_mesh::Mesh;
use femtile_mesh::generate::{BoxSplit, SquareSplit};
use femtile_solve::{NonlinearMethod, OperatorKind, Poisson, SolverConfig, Transient};
use femtile_time::implicit::{Scheme, Steps, Stop};

use crate::nonlinear::{config, in_plane, in_space};
use crate::transient::{error_with, problem};

#[test]
fn schemes_have_their_order_with_and_without_a_matrix() {
    let elements = [
        (in_plane(2, SquareSplit::Quadrilateral), 3),
        (in_plane(3, SquareSplit::Quadrilateral), 1),
        (in_space(2, BoxSplit::Hexahedron), 1),
    ];
    for (mesh, degree) in &elements {
        for operator in [OperatorKind::Assembled, OperatorKind::MatrixFree] {
            let config = SolverConfig { operator, ..crate::transient::config() };
            for has_all_kinds in [false, true] {
                let problem = problem(mesh, *degree, has_all_kinds);
                for scheme in Scheme::ALL {
                    let error = |n| error_with(&config, &problem, scheme, Steps::Fixed(n)).0;
                    let [coarse, fine] = [16, 32].map(error);
                    let (order, expected) = ((coarse / fine).log2(), scheme.order() as f64);
                    assert!(
                        (order - expected).abs() < 0.25,
                        "{} degree {degree} {operator:?} {has_all_kinds}: {coarse:e} {fine:e}, order {order}",
                        scheme.name()
                    );
                }
            }
        }
    }
}

/// Conditions that hold on the whole boundary.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Everywhere {
    Dirichlet,
    Neumann,
    Robin,
}

/// u = (1 + t) w with w = 2 + sin(x + y/2), linear in time: all errors but those of the start are errors in space.
const W: &str = "(2 + sin(x + 0.5*y))";

/// $u_t = \nabla\cdot(2\nabla u) - 3u + f$, or $- u^2$ in place of $- 3u$, with the solution u.
fn in_space_alone(mesh: &Mesh, degree: usize, condition: Everywhere, is_linear: bool) -> Poisson<'_> {
    let (lambda, reaction) = match is_linear {
        true => ("3", format!("3*(1 + t)*{W}")),
        false => ("u", format!("((1 + t)*{W})^2")),
    };
    let source = format!("{W} + 2.5*(1 + t)*sin(x + 0.5*y) + {reaction}");
    let problem = Poisson::new(mesh).degree(degree).sigma(2.0).lambda(lambda).source(source);
    if condition == Everywhere::Dirichlet {
        return problem.dirichlet("all", format!("(1 + t)*{W}")).unwrap();
    }
    let slope = "2*(1 + t)*cos(x + 0.5*y)";
    let sides =
        [("xmin", "-1", slope), ("xmax", "1", slope), ("ymin", "-0.5", slope), ("ymax", "0.5", slope)];
    let ends = [("zmin", "0", "0"), ("zmax", "0", "0")];
    let n_ends = if mesh.dimension() == 3 { 2 } else { 0 };
    sides.iter().chain(&ends[..n_ends]).fold(problem, |problem, (side, factor, slope)| {
        let flux = format!("({factor})*{slope}");
        match condition {
            Everywhere::Robin => problem.robin(*side, 5.0, format!("(1 + t)*{W} + ({flux})/5")).unwrap(),
            _ => problem.neumann(*side, flux).unwrap(),
        }
    })
}

fn error_in_space(problem: &Poisson<'_>, scheme: Scheme) -> f64 {
    let run = Transient::new(problem.clone(), W).times(0.0, 0.8).scheme(scheme).steps(Steps::Fixed(8));
    let run = run.solve(&SolverConfig { tolerance: 1e-11, ..config(NonlinearMethod::Newton) }).unwrap();
    assert_eq!(run.outcome().stop, Stop::Finished);
    let exact = femtile_solve::expression(&format!("1.8*{W}"), &[]).unwrap();
    run.at_end().component(0).error_l2(&exact).unwrap()
}

#[test]
fn errors_in_space_fall_by_one_order_more_than_the_degree_with_every_scheme() {
    let plane = |split, n: usize| [n, 2 * n].map(|n| in_plane(n, split));
    let space = |split, n: usize| [n, 2 * n].map(|n| in_space(n, split));
    let elements = [
        (plane(SquareSplit::Triangles, 6), 1),
        (plane(SquareSplit::Quadrilateral, 5), 1),
        (plane(SquareSplit::Quadrilateral, 3), 2),
        (plane(SquareSplit::Quadrilateral, 2), 3),
        (space(BoxSplit::Kuhn, 3), 1),
        (space(BoxSplit::Hexahedron, 3), 1),
        (space(BoxSplit::Hexahedron, 2), 2),
    ];
    for (meshes, degree) in &elements {
        for condition in [Everywhere::Dirichlet, Everywhere::Neumann, Everywhere::Robin] {
            for (scheme, is_linear) in
                Scheme::ALL.iter().flat_map(|&scheme| [(scheme, true), (scheme, false)])
            {
                let error =
                    |mesh| error_in_space(&in_space_alone(mesh, *degree, condition, is_linear), scheme);
                let [coarse, fine] = meshes.each_ref().map(error);
                let (order, expected) = ((coarse / fine).log2(), *degree as f64 + 1.0);
                assert!(
                    (order - expected).abs() < 0.3,
                    "{} {:?} degree {degree} {condition:?} {is_linear}: {coarse:e} {fine:e}, order {order}",
                    scheme.name(),
                    meshes[0].kind
                );
            }
        }
    }
}

//! The capacity of equations in time.

use femtile_mesh::generate::{BoxSplit, SquareConfig, SquareSplit, square};
use femtile_mesh::{Field, Mesh};
use femtile_solve::{
    MassMatrix, NonlinearMethod, OperatorKind, Poisson, SolveError, SolverConfig, Transient,
    TransientSolution, Value,
};
use femtile_time::implicit::{Scheme, Steps, Tolerance};

use crate::nonlinear::{in_plane, in_space};

fn config() -> SolverConfig {
    crate::nonlinear::config(NonlinearMethod::Newton)
}

const SCHEMES: [Scheme; 4] = [Scheme::ImplicitEuler, Scheme::Bdf2, Scheme::Sdirk2, Scheme::CrankNicolson];

/// Conductivities and capacities of two rods.
const SIGMA: [f64; 2] = [1.0, 4.0];
const CAPACITY: [f64; 2] = [1.0, 0.5];

/// erf by Simpson's rule.
fn erf(x: f64) -> f64 {
    let n = 400;
    let h = x / f64::from(n);
    let weight = |i: i32| f64::from(if i == 0 || i == n { 1 } else { 2 + 2 * (i % 2) });
    let sum: f64 = (0..=n).map(|i| weight(i) * (-(h * f64::from(i)).powi(2)).exp()).sum();
    sum * h / 3.0 * 2.0 / std::f64::consts::PI.sqrt()
}

/// Two rods without ends, of temperature 0 for x < 0 and 1 for x > 0, in contact from t = 0 on: the contact has the temperature
/// $e_2 / (e_1 + e_2)$ with the effusivities $e = \sqrt{\sigma c}$.
fn in_contact(x: f64, t: f64) -> f64 {
    let e = [0, 1].map(|i| (SIGMA[i] * CAPACITY[i]).sqrt());
    let contact = e[1] / (e[0] + e[1]);
    let side = usize::from(x > 0.0);
    let reached = erf(x.abs() / (4.0 * SIGMA[side] / CAPACITY[side] * t).sqrt());
    [contact * (1.0 - reached), contact + (1.0 - contact) * reached][side]
}

/// A strip from x = −1 to 1 with the tags 0 and 1 on both sides of x = 0.
fn rods(split: SquareSplit, cells: usize) -> Mesh {
    let (lower, upper) = ([-1.0, 0.0], [1.0, 0.05]);
    let mut mesh = square(&SquareConfig { cells: [cells, 1], lower, upper, split }).unwrap();
    mesh.cell_tags = (0..mesh.n_cells()).map(|cell| i32::from(mesh.middle(cell)[0] > 0.0)).collect();
    mesh
}

#[test]
fn rods_in_contact_have_the_temperature_of_their_effusivities() {
    let by_tag = |values: [f64; 2]| Value::by_tag([(0, values[0]), (1, values[1])]);
    let end = |mesh: &Mesh, degree: usize, [sigma, capacity]: [Value; 2], config: &SolverConfig| {
        let problem = Poisson::new(mesh).degree(degree).sigma(sigma);
        let run = Transient::new(problem, |[x, _, _]: [f64; 3]| in_contact(x, 1e-3)).capacity(capacity);
        let run = run.times(1e-3, 5e-3).steps(Steps::Fixed(80));
        let points: Vec<_> = (-40..=40).map(|i| [0.02 * f64::from(i), 0.02, 0.0]).collect();
        let solution = run.solve(config).unwrap().into_end();
        points.iter().map(|&point| (point[0], solution.value_at(point).unwrap())).collect::<Vec<_>>()
    };
    let error = |values: &[(f64, f64)]| {
        values.iter().map(|&(x, u)| (u - in_contact(x, 5e-3)).abs()).fold(0.0, f64::max)
    };
    let matrix_free = SolverConfig { operator: OperatorKind::MatrixFree, ..config() };
    for (split, degree, config) in [
        (SquareSplit::Triangles, 1, config()),
        (SquareSplit::Quadrilateral, 1, config()),
        (SquareSplit::Quadrilateral, 1, matrix_free.clone()),
        (SquareSplit::Quadrilateral, 3, matrix_free),
    ] {
        let mesh = rods(split, 200 / degree / 2 * 2);
        let values = end(&mesh, degree, [by_tag(SIGMA), by_tag(CAPACITY)], &config);
        assert!(error(&values) < 1e-3, "{split:?}, degree {degree}: {:e}", error(&values));
    }
    // Quotients σ/c in place of both have other temperatures at the contact.
    let mesh = rods(SquareSplit::Triangles, 200);
    let quotients = by_tag([SIGMA[0] / CAPACITY[0], SIGMA[1] / CAPACITY[1]]);
    assert!(error(&end(&mesh, 1, [quotients, 1.into()], &config())) > 0.1);
}

/// Solves with fixed steps.
fn solved(
    (mesh, degree, lumped): (&Mesh, usize, bool),
    [sigma, lambda, source, exchange]: [Value; 4],
    capacity: &Value,
    scheme: Scheme,
    config: &SolverConfig,
) -> Result<Vec<f64>, SolveError> {
    let problem = Poisson::new(mesh).degree(degree).sigma(sigma).lambda(lambda).source(source);
    let problem = problem.dirichlet("xmin", "1 + y")?.robin("xmax", exchange, 2.0)?;
    let mass = if lumped { MassMatrix::Lumped } else { MassMatrix::Consistent };
    let run = Transient::new(problem, "1 + y + x").capacity(capacity.clone()).mass(mass).scheme(scheme);
    let done: TransientSolution<'_> = run.times(0.0, 0.3).steps(Steps::Fixed(6)).solve(config)?;
    assert!(done.at_end().has_converged());
    Ok(done.at_end().values().to_vec())
}

fn assert_close(found: &[f64], expected: &[f64], bound: f64, name: &str) {
    let error = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(error < bound, "{name}: {error:e}");
}

fn meshes() -> [(Mesh, usize, bool); 4] {
    [
        (in_plane(3, SquareSplit::Triangles), 1, false),
        (in_plane(3, SquareSplit::Triangles), 1, true),
        (in_space(2, BoxSplit::Kuhn), 1, false),
        (in_plane(2, SquareSplit::Quadrilateral), 2, false),
    ]
}

#[test]
fn a_constant_capacity_is_a_factor_of_all_others() {
    let config = SolverConfig { tolerance: 1e-12, ..config() };
    // Linear, and refilled at each time.
    for sigma in ["1", "if(t < -1, 5, 1)"] {
        for (mesh, degree, lumped) in &meshes() {
            for scheme in SCHEMES {
                let of = (mesh, *degree, *lumped);
                let times = |factor: f64| {
                    let text = |text: &str| Value::from(format!("{factor:?}*({text})"));
                    [text(sigma), text("0.5"), text("x + 1"), text("3")]
                };
                let expected = solved(of, times(1.0), &1.into(), scheme, &config).unwrap();
                let found = solved(of, times(8.0), &8.into(), scheme, &config).unwrap();
                assert_close(&found, &expected, 1e-9, &format!("{sigma}, {scheme:?}, degree {degree}"));
            }
        }
    }
}

#[test]
fn all_ways_to_give_a_capacity_and_all_operators_agree() {
    let config = SolverConfig { tolerance: 1e-12, ..config() };
    for (mesh, degree, lumped) in &mut meshes() {
        let n = mesh.n_cells();
        mesh.cell_tags = (0..n).map(|cell| i32::from(mesh.middle(cell)[0] > 0.5)).collect();
        let values: Vec<f64> = mesh.cell_tags.iter().map(|&tag| f64::from(1 + 2 * tag)).collect();
        mesh.cell_fields.insert("c".into(), Field { n_components: 1, values });
        let of = (&*mesh, *degree, *lumped);
        let by_tag = || Value::by_tag([(0, 1.0), (1, 3.0)]);
        let ways = [by_tag(), Value::by_tag([(0, "1"), (1, "3 + 0*x")]), Value::field("c")];
        let reactions = [Value::from(0.5), Value::by_tag([(0, 0.5), (1, 0.5)]), "0.5 + 0*x".into()];
        for scheme in SCHEMES {
            let data = |sigma: &str, lambda: &Value| [sigma.into(), lambda.clone(), "x".into(), 3.into()];
            let expected = solved(of, data("1", &reactions[0]), &ways[0], scheme, &config).unwrap();
            for (way, lambda) in ways.iter().zip(&reactions) {
                let name = format!("{way:?}, {lambda:?}, {scheme:?}, degree {degree}");
                for sigma in ["1", "if(t < -1, 5, 1)"] {
                    let found = solved(of, data(sigma, lambda), way, scheme, &config);
                    // The third pair has a cell field beside a formula.
                    let found = match found {
                        Err(error) if *way == ways[2] => {
                            assert!(error.to_string().contains("cell field"), "{error}");
                            solved(of, data(sigma, &reactions[0]), way, scheme, &config).unwrap()
                        }
                        found => found.unwrap(),
                    };
                    assert_close(&found, &expected, 1e-9, &name);
                }
            }
            if *degree > 1 {
                let assembled = SolverConfig { operator: OperatorKind::Assembled, ..config.clone() };
                let found = solved(of, data("1", &reactions[0]), &ways[0], scheme, &assembled).unwrap();
                assert_close(&found, &expected, 1e-9, "assembled");
            }
        }
        let closure = Value::from(|[x, y, _]: [f64; 3]| 1.0 + x + y * y);
        let formula = Value::from("1 + x + y^2");
        let data = || ["1".into(), "0.1*x".into(), "x".into(), 3.into()];
        let [a, b] = [closure, formula].map(|way| solved(of, data(), &way, Scheme::Bdf2, &config).unwrap());
        assert_close(&a, &b, 1e-9, "closure");
    }
}

/// The norms of adaptive steps are those of u, so that `absolute` is in its unit.
#[test]
fn steps_of_a_tolerance_do_not_depend_on_the_unit_of_the_capacity() {
    let mesh = in_plane(6, SquareSplit::Triangles);
    for sigma in ["1", "if(t < -1, 5, 1)"] {
        let steps = |factor: f64| {
            let sigma = format!("{factor:?}*{sigma}");
            let problem = Poisson::new(&mesh).sigma(sigma).dirichlet("xmin", 0.0).unwrap();
            let tolerance = Tolerance { relative: 0.0, absolute: 1e-4 };
            let adaptive = Steps::Adaptive { tolerance, first: None, shortest: 1e-9, longest: 0.1 };
            let run = Transient::new(problem, "x*(2 - x)").capacity(factor).steps(adaptive);
            run.solve(&config()).unwrap().outcome().steps
        };
        assert_eq!(steps(1.0), steps(1024.0 * 1024.0), "{sigma}");
        assert!(steps(1.0) > 10);
    }
}

#[test]
fn capacities_that_no_equation_has_are_refused() {
    let mut mesh = in_plane(3, SquareSplit::Triangles);
    let n = mesh.n_cells();
    mesh.cell_tags = (0..n).map(|cell| i32::from(cell == n - 1)).collect();
    let error = |capacity: Value| {
        let run = Transient::new(Poisson::new(&mesh).dirichlet("all", 0.0).unwrap(), 1.0);
        run.capacity(capacity).solve(&config()).unwrap_err().to_string()
    };
    for (capacity, said) in [
        (Value::from(0), "equation.capacity: 0; it has to be positive and finite"),
        (Value::from(f64::NAN), "has to be positive and finite"),
        (Value::by_tag([(0, 1.0), (1, -2.0)]), "-2 in cell"),
        (Value::by_tag([(0, 1.0)]), "has no value here"),
        (Value::from("x - 0.5"), "in cell 0"),
        (Value::from("1 + t"), "not on t"),
        (Value::from("u - 2"), "-1 in cell 0"),
        (Value::field("c"), "no cell field"),
    ] {
        let found = error(capacity);
        assert!(found.contains("capacity") && found.contains(said), "{found}");
    }
}

/// The content of an insulated body, ∫ (u + u³/3) with c = 1 + u², stays what it was, whatever the steps, and with a source it
/// grows by what that gives.
#[test]
fn the_content_of_a_capacity_that_depends_on_u_is_kept() {
    for (mesh, degree, _) in &meshes()[2..] {
        for (scheme, source) in SCHEMES.into_iter().flat_map(|scheme| [(scheme, 0.0), (scheme, 0.75)]) {
            let problem = Poisson::new(mesh).degree(*degree).sigma("1 + u").source(source);
            let run = Transient::new(problem, "1 + 2*x").capacity("1 + u^2").scheme(scheme);
            let end = run.times(0.0, 40.0).steps(Steps::Fixed(200)).solve(&config()).unwrap().into_end();
            // The mean of 1 + 2x + (1 + 2x)³/3 is 16/3.
            let content = 16.0 / 3.0 + 40.0 * source;
            let values = end.values();
            let u = values[0];
            assert!(values.iter().all(|value| source > 0.0 || (value - u).abs() < 1e-5), "{scheme:?}");
            let (least, most) = values.iter().fold((f64::MAX, 0.0_f64), |(a, b), v| (a.min(*v), b.max(*v)));
            let of = |u: f64| u + u.powi(3) / 3.0;
            assert!(
                of(least) < content * 1.0001 && of(most) > content * 0.9999,
                "{scheme:?} {least} {most} {content}"
            );
            assert!(most - least < 1e-4 * most, "{scheme:?}: {least} {most}");
        }
    }
}

/// The same equation for v = u + u³/3, of which the flux is linear: Kirchhoff's transformation. v_t = Δv with its values given.
#[test]
fn a_capacity_equal_to_the_conductivity_gives_the_linear_equation_of_their_integral() {
    let mesh = in_plane(24, SquareSplit::Triangles);
    let config = config();
    let of = |problem: Poisson<'_>, initial: &str, capacity: &str| {
        let run = Transient::new(problem, initial).capacity(capacity).times(0.0, 0.1).steps(Steps::Fixed(20));
        run.solve(&config).unwrap().into_end().value_at([0.5, 0.5, 0.0]).unwrap()
    };
    let u = of(
        Poisson::new(&mesh).sigma("1 + u^2").dirichlet("xmin", 0.0).unwrap().dirichlet("xmax", 1.0).unwrap(),
        "0",
        "1 + u^2",
    );
    let linear = Poisson::new(&mesh).dirichlet("xmin", 0.0).unwrap().dirichlet("xmax", 4.0 / 3.0).unwrap();
    let v = of(linear, "0", "1");
    assert!((u + u.powi(3) / 3.0 - v).abs() < 2e-3, "{u} {v}");
}

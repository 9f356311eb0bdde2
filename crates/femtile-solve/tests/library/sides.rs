//! Sides that belong together in problems that change, and checks of runs in time.

use std::sync::Arc;

use femtile_device::Cpu;
use femtile_expression::Expression;
use femtile_form::Equation;
use femtile_linalg::krylov::Stop;
use femtile_mesh::Mesh;
use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::SquareSplit;
use femtile_solve::{
    DeviceChoice, FormProblem, ManufacturedBoundary, Periodic, Silent, SolverConfig, Stages, TimeStepping,
    Value,
};

use crate::nonlinear::in_plane;

const TWO: &str = "unknown = { u = {}, v = {} }\ncells.flux = { u = \"grad(u)\", v = \"grad(v) + 0*u*[1, 0]\" }\n\
                   cells.source = { u = \"1 + x^2*y - u\", v = \"x^3 - v\" }";

fn config() -> SolverConfig {
    SolverConfig { device: DeviceChoice::Cpu, threads: 1, tolerance: 1e-12, ..SolverConfig::default() }
}

fn problem<'m>(mesh: &'m Mesh, equation: Equation) -> FormProblem<'m> {
    FormProblem::new(mesh, Arc::new(boundary_facets(mesh)), equation)
}

fn solved(problem: &FormProblem<'_>) -> Vec<f64> {
    let config = SolverConfig { method: problem.default_method().unwrap(), ..config() };
    let found = problem.solve(&Cpu::new(1).unwrap(), &config, None, &mut Stages::new(&mut Silent)).unwrap();
    assert_eq!(found.outcome().stop, Stop::Converged);
    found.u().to_vec()
}

#[test]
fn sides_and_degrees_may_be_set_after_a_solve() {
    let mesh = in_plane(4, SquareSplit::Quadrilateral);
    let begun = || problem(&mesh, Equation::from_toml("two", TWO).unwrap());
    let add = |problem: &mut FormProblem<'_>, axis: &str| {
        problem
            .periodic(format!("{axis}min").as_str(), format!("{axis}max").as_str(), &Periodic::default())
            .unwrap();
    };
    let mut changed = begun();
    add(&mut changed, "x");
    solved(&changed);
    add(&mut changed, "y");
    let mut both = begun();
    ["x", "y"].iter().for_each(|axis| add(&mut both, axis));
    assert_eq!(solved(&changed), solved(&both));
    let mut degrees = vec![vec![2, 2], vec![2, 1], vec![1, 1]];
    for of_unknowns in degrees.drain(..) {
        changed = changed.degrees(&of_unknowns).unwrap();
        let mut fresh = begun().degrees(&of_unknowns).unwrap();
        ["x", "y"].iter().for_each(|axis| add(&mut fresh, axis));
        assert_eq!(solved(&changed), solved(&fresh), "{of_unknowns:?}");
    }
    assert_eq!(solved(&changed.degree(3)), solved(&both.degree(3)));
}

#[test]
fn runs_in_time_check_their_coefficients() {
    let mesh = in_plane(2, SquareSplit::Triangles);
    let told = |problem: &FormProblem<'_>| {
        let stepping = TimeStepping { end: 0.1, ..TimeStepping::default() };
        let (cpu, mut silent) = (Cpu::new(1).unwrap(), Silent);
        let mut stages = Stages::new(&mut silent);
        problem
            .integrate(&stepping, &cpu, &config(), None, &mut (), &mut stages)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    let mut heat = problem(&mesh, Equation::named("diffusion").unwrap()).in_time();
    heat.tensor("sigma", &Value::from(-1)).unwrap();
    let message = told(&heat);
    assert!(message.contains("positive definite"), "{message}");
    heat.tensor("sigma", &Value::from("1 + t")).unwrap();
    heat.capacity(&Value::from("1 + u^2")).unwrap();
    let exact = Expression::parse("x*y").unwrap();
    heat.manufacture(&[exact], ManufacturedBoundary::Values).unwrap();
    let message = told(&heat);
    assert!(message.starts_with("equation.capacity: a content has no manufactured solution"), "{message}");
    let mut body = problem(&mesh, Equation::named("elasticity").unwrap()).in_time();
    body.scalar("young", &Value::from(1)).unwrap();
    body.scalar("poisson", &Value::from(0.7)).unwrap();
    body.density(&Value::from(1)).unwrap();
    let message = told(&body);
    assert!(message.starts_with("equation.poisson: "), "{message}");
}

#[test]
fn matrices_check_their_coefficients() {
    let mesh = in_plane(2, SquareSplit::Triangles);
    let told = |problem: &FormProblem<'_>| {
        let sides = ["xmin", "xmax"].map(String::from);
        let found = problem.side_matrix(&sides, &Cpu::new(1).unwrap(), &config(), &mut Silent);
        found.unwrap_err().to_string()
    };
    let mut plates = problem(&mesh, Equation::named("reaction-diffusion").unwrap());
    plates.tensor("sigma", &Value::from(-1)).unwrap();
    assert!(told(&plates).contains("positive definite"), "{}", told(&plates));
    plates.tensor("sigma", &Value::from(1)).unwrap();
    plates.scalar("lambda", &Value::from(-1)).unwrap();
    assert!(told(&plates).contains("lambda"), "{}", told(&plates));
    let text = "unknown = { u = {} }\ncells = { flux = \"(1 + t)*grad(u)\" }";
    let message = told(&problem(&mesh, Equation::from_toml("own", text).unwrap()));
    assert!(message.contains("[continuation]"), "{message}");
}

//! Bodies of revolution whose mesh reaches the axis to rounding.

use std::f64::consts::PI;
use std::sync::Arc;

use femtile_device::Cpu;
use femtile_fem::functionals;
use femtile_form::Equation;
use femtile_mesh::Mesh;
use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::SquareSplit;
use femtile_solve::{DeviceChoice, FormProblem, Silent, SolverConfig, Stages, Value};

use crate::nonlinear::in_plane;

const LAPLACE: &str = "unknown = { u = {} }\ncells = { flux = \"grad(u)\" }";

fn problem(mesh: &Mesh, equation: Equation) -> FormProblem<'_> {
    FormProblem::new(mesh, Arc::new(boundary_facets(mesh)), equation).degree(2)
}

fn laplace(mesh: &Mesh) -> FormProblem<'_> {
    problem(mesh, Equation::from_toml("own", LAPLACE).unwrap())
}

fn config() -> SolverConfig {
    SolverConfig { device: DeviceChoice::Cpu, threads: 1, tolerance: 1e-12, ..SolverConfig::default() }
}

/// The unit square, whose nodes on the axis are beside it by rounding.
fn nearly_on_axis() -> Mesh {
    let mut mesh = in_plane(4, SquareSplit::Triangles);
    mesh.points.iter_mut().filter(|[x, ..]| *x == 0.0).for_each(|[x, ..]| *x = 1e-17);
    mesh
}

#[test]
fn modes_are_those_of_the_body() {
    let mesh = in_plane(8, SquareSplit::Triangles);
    let mut cylinder = laplace(&mesh).axisymmetric().unwrap();
    cylinder.dirichlet("xmax", &[Some(Value::from(0))]).unwrap();
    let found =
        cylinder.modes(1, &Cpu::new(1).unwrap(), &config(), None, &mut Stages::new(&mut Silent)).unwrap();
    // The square of the first zero of the Bessel function J0.
    assert!((found.modes()[0].value / 2.404_825_557_7_f64.powi(2) - 1.0).abs() < 1e-4);
    assert!((functionals::measure(found.space()).unwrap() - PI).abs() < 1e-12);
}

#[test]
fn the_hoop_stress_at_nodes_beside_the_axis_by_rounding_is_the_limit() {
    let mesh = nearly_on_axis();
    let mut body = problem(&mesh, Equation::named("elasticity").unwrap()).axisymmetric().unwrap();
    body.scalar("young", &Value::from(10)).unwrap();
    body.scalar("poisson", &Value::from(0.3)).unwrap();
    body.dirichlet("xmax", &[Some(Value::from(-0.1)), None]).unwrap();
    body.dirichlet("ymin", &[None, Some(Value::from(0))]).unwrap();
    let found = body.solve(&Cpu::new(1).unwrap(), &config(), None, &mut Stages::new(&mut Silent)).unwrap();
    // The strain is −0.1 across the axis in each direction, and nothing presses along it.
    let across = -0.1 * 10.0 / (1.0 - 0.3);
    for stress in found.stress().unwrap().unwrap().tensor.chunks_exact(6) {
        for (found, expected) in stress.iter().zip([across, 0.0, across, 0.0, 0.0, 0.0]) {
            assert!((found - expected).abs() < 1e-8, "{stress:?}");
        }
    }
}

#[test]
fn totals_on_the_axis_and_before_it_is_known_are_refused() {
    let mesh = nearly_on_axis();
    let mut on_axis = laplace(&mesh).axisymmetric().unwrap();
    let error = on_axis.total_on_boundary("x < 1e-9", &[3.0]).unwrap_err().to_string();
    assert!(error.contains("boundary[0].total") && error.contains("it is the axis"), "{error}");
    on_axis.total_on_boundary("xmax", &[3.0]).unwrap();
    let mut early = laplace(&mesh);
    early.total_on_boundary("xmax", &[3.0]).unwrap();
    let error = early.axisymmetric().map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("space.axisymmetric") && error.contains("before conditions"), "{error}");
}

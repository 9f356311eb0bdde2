//! Alternating directions, held to the reference.

use std::sync::Arc;

use femtile::device::{Buffer, Reference, Scalar};
use femtile::expression::Expression;
use femtile::time::adi::{
    Adi, AdiConfig, AdiKernels, AdiProblem, AdiStop, Arrays, Coefficients, ExplicitStage, Operator, Scheme,
    Side, Silent,
};

use super::Scope;
use super::problems::Random;
use super::vector::nan;

/// A device with the explicit kernels in both precisions.
pub trait AdiDevice: AdiKernels<f64> + AdiKernels<f32> {}

impl<D: AdiKernels<f64> + AdiKernels<f32>> AdiDevice for D {}

fn formula(text: &str) -> Expression {
    Expression::parse_in_time(text).unwrap()
}

fn fluxes() -> [Side; 2] {
    [Side::Neumann(formula("x*t")), Side::Neumann(formula("1"))]
}

fn ring() -> [Side; 2] {
    [Side::Periodic, Side::Periodic]
}

/// Problems that between them use every path of the kernels.
fn problems(n: usize) -> Vec<AdiProblem> {
    let (lower, upper) = ([0.0, -1.0, 2.0], [1.0, 0.5, 4.0]);
    let heat = AdiProblem::heat(&[n, n - 2, n - 3], &lower, &upper);
    let mut varying = heat.clone();
    for (axis, text) in ["1 + x*y^2", "2 + z", "3"].into_iter().enumerate() {
        varying.diffusion[axis][axis] = formula(text);
    }
    for ((a, b), text) in [((0, 1), "0.3"), ((0, 2), "0.2*sin(y)"), ((1, 2), "0.1*x + 0.2")] {
        (varying.diffusion[a][b], varying.diffusion[b][a]) = (formula(text), formula(text));
    }
    varying.convection = ["y", "0.5", "x*z"].map(formula);
    varying.reaction = formula("-x");
    varying.source = formula("cos(t)*x + z");
    let mut open = varying.clone();
    open.sides = vec![fluxes(), [Side::Dirichlet(formula("t")), Side::Neumann(formula("y"))], ring()];
    open.source = formula("y");
    let mut plane = AdiProblem::heat(&[n + 5, n], &lower[..2], &upper[..2]);
    plane.sides = vec![ring(), fluxes()];
    plane.reaction = formula("0.5");
    plane.source = formula("2");
    (plane.diffusion[0][1], plane.diffusion[1][0]) = (formula("0.4"), formula("0.4"));
    let line = AdiProblem::heat(&[3 * n], &lower[..1], &upper[..1]);
    vec![plane, open, heat, varying, line]
}

fn agree<T: Scalar, D: AdiKernels<T>>(device: &D, problem: &AdiProblem, tolerance: f64) {
    let operator = Arc::new(Operator::new(problem).unwrap());
    let n = operator.grid().n_nodes();
    let mut random = Random::new(n as u64);
    let (u, w): (Vec<T>, Vec<T>) = (random.vector(n), random.vector(n));
    let on_reference = Buffer::from_host(&Reference, &u).unwrap();
    let on_device = Buffer::from_host(device, &u).unwrap();
    let near = |found: &Buffer<T, D>, expected: &Buffer<T, Reference>, what: &str| {
        let largest = expected.as_slice().iter().map(|x| x.to_f64().abs()).fold(1.0, f64::max);
        for (i, (a, b)) in found.to_host().unwrap().iter().zip(expected.as_slice()).enumerate() {
            assert!((*a - *b).to_f64().abs() <= tolerance * largest, "{what}, node {i}: {a} {b}");
        }
    };
    let formed = Arrays::none(0.25);
    let read = Arrays::new(device, &operator, 0.25).unwrap();
    for (arrays, axes) in [(formed, &[None, Some(0)][..]), (read, &[None][..])] {
        for &axis in axes {
            let stage = ExplicitStage { axis, scale: 0.3, time: 0.7 };
            let mut expected = nan(&Reference, n);
            Reference.adi_explicit(&mut expected, &on_reference, &operator, &none_on(), stage).unwrap();
            let mut found = nan(device, n);
            device.adi_explicit(&mut found, &on_device, &operator, &arrays, stage).unwrap();
            near(&found, &expected, "explicit");
        }
        let mut expected = Buffer::from_host(&Reference, &w).unwrap();
        Reference.adi_mixed(&mut expected, &on_reference, &operator, &none_on(), 0.2).unwrap();
        let mut found = Buffer::from_host(device, &w).unwrap();
        device.adi_mixed(&mut found, &on_device, &operator, &arrays, 0.2).unwrap();
        near(&found, &expected, "mixed");
    }
}

/// Nothing is read from arrays by the reference.
fn none_on<T: Scalar>() -> Arrays<T, Reference> {
    Arrays::none(0.25)
}

/// Explicit stages and mixed terms are those of plain loops, whether coefficients are formed or read.
pub fn explicit_stages_agree_with_the_reference<D: AdiDevice>(device: &D, scope: &Scope) {
    for (i, problem) in problems(scope.side / 3).into_iter().enumerate() {
        let is_tried = scope.has_every_kind || i < 2;
        if is_tried {
            agree::<f64, D>(device, &problem, 1e-12);
        }
        if scope.has_every_kind || i == 1 {
            agree::<f32, D>(device, &problem, 1e-4);
        }
    }
}

fn run<D: AdiKernels<f64>>(device: &D, problem: &AdiProblem, config: &AdiConfig) -> Vec<f64> {
    let mut adi = Adi::<f64, D>::new(device, problem, config.clone()).unwrap();
    let mut u = adi.initial_values(&formula("sin(3*x + y)*(1 + y*z)")).unwrap();
    assert_eq!(adi.run(&mut u, &mut Silent).unwrap().stop, AdiStop::Finished);
    u.to_host().unwrap()
}

/// Runs end where those of plain loops end, whether coefficients are formed or read.
pub fn runs_agree_with_the_reference<D: AdiDevice>(device: &D, scope: &Scope) {
    let problems = problems(scope.side / 3);
    let mut plane = AdiProblem::heat(&[11, 9], &[0.0; 2], &[1.0; 2]);
    plane.sides[0] = [Side::Dirichlet(formula("t*y")), Side::Neumann(formula("1"))];
    let runs = [
        (&problems[1], Scheme::CraigSneyd),
        (&plane, Scheme::PeacemanRachford),
        (&problems[0], Scheme::Douglas),
    ];
    for (problem, scheme) in runs {
        let config = AdiConfig { scheme, end: 0.1, steps: 2, rannacher_steps: 1, ..AdiConfig::default() };
        let expected = run(&Reference, problem, &config);
        for coefficients in [Coefficients::OnTheFly, Coefficients::Arrays] {
            let found = run(device, problem, &AdiConfig { coefficients, ..config.clone() });
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert!(
                    (found - expected).abs() <= 1e-11,
                    "{scheme}, {coefficients:?}, {i}: {found} {expected}"
                );
            }
        }
    }
}

/// Values are put where they belong, and nowhere else.
pub fn values_at_sides_are_set_and_added<D: AdiDevice>(device: &D, scope: &Scope) {
    for &n in scope.sizes {
        let w: Vec<f64> = Random::new(n as u64).vector(3 * n + 1);
        let nodes: Vec<u64> = (0..n as u64).map(|i| 3 * i + 1).collect();
        let values: Vec<f64> = Random::new(n as u64 + 1).vector(n);
        let (nodes, on_device) =
            (Buffer::from_host(device, &nodes).unwrap(), Buffer::from_host(device, &values).unwrap());
        let mut found = Buffer::from_host(device, &w).unwrap();
        device.adi_set(&mut found, &nodes, &on_device).unwrap();
        device.adi_add(&mut found, &nodes, &on_device, 0.5).unwrap();
        for (i, found) in found.to_host().unwrap().into_iter().enumerate() {
            let expected = if i % 3 == 1 { values[i / 3] + 0.5 * values[i / 3] } else { w[i] };
            assert_eq!(found, expected, "{i} of {n}");
        }
    }
}

//! The same bits at any number of threads.

use crate::common;

use common::{Problem, Random, disturbed, expression, unit_mesh};
use femtile_device::Cpu;
use femtile_expression::Expression;
use femtile_fem::functionals::{energy, error_h1, error_l2, integral, l2_norm, value_at};
use femtile_fem::{Condition, System};

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn system_solution_and_functionals_have_the_same_bits_at_one_two_and_three_threads() {
    let mut random = Random(17);
    let mesh = unit_mesh(3, 21);
    for mesh in [disturbed(mesh.clone(), 21, 0.3, &mut random), mesh] {
        let mut problem = Problem::new(mesh);
        problem.sigma = expression("1 + x*y");
        problem.lambda = expression("0.1 + z");
        problem.source = expression("exp(x) - y");
        problem.on(|p| p[0] < 1e-9, Condition::Dirichlet(expression("sin(y)")));
        problem.on(|p| p[0] > 1.0 - 1e-9, Condition::Neumann(expression("z")));
        let exact = Expression::parse("sin(x + y)").unwrap();
        let runs: Vec<_> = [1, 2, 3]
            .into_iter()
            .map(|threads| {
                let device = Cpu::new(threads).unwrap();
                let system: System<f64, Cpu> = problem.assemble(&device);
                let u = problem.solve(&device);
                let (form, mesh) = (problem.form(), &problem.mesh);
                let numbers = device.install(|| {
                    [
                        energy(&form, &u).unwrap(),
                        integral(mesh, &u).unwrap(),
                        l2_norm(mesh, &u).unwrap(),
                        error_l2(mesh, &u, &exact).unwrap(),
                        error_h1(mesh, &u, &exact).unwrap(),
                        value_at(mesh, &u, [0.5, 0.5, 0.5]).unwrap(),
                    ]
                });
                (
                    bits(system.matrix.values().as_slice()),
                    bits(system.rhs.as_slice()),
                    bits(&u),
                    bits(&numbers),
                )
            })
            .collect();
        assert!(runs[0] == runs[1], "one thread against two");
        assert!(runs[0] == runs[2], "one thread against three");
    }
}

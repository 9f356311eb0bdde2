//! The same bits for any number of threads.

use crate::common;

use common::{Problem, Random, disturbed, expression, unit_mesh};
use femtile_device::Cpu;
use femtile_expression::Expression;
use femtile_fem::functionals::{energy, error_h1, error_l2, facet_fluxes, integral, l2_norm, value_at};
use femtile_fem::recovery::RecoveredGradient;
use femtile_fem::{AssembledSystem, Condition, FemError, assemble_interruptible};
use femtile_space::geometry::CellRule;

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn system_solution_functionals_and_recovered_fields_have_the_same_bits_at_one_two_and_three_threads() {
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
                let system: AssembledSystem<f64, Cpu> = problem.assemble(&device);
                let u = problem.solve(&device);
                let (form, space) = (problem.form(), problem.space());
                let numbers = device.install(|| {
                    [
                        energy(&space, &form, &u).unwrap(),
                        integral(&space, &u).unwrap(),
                        l2_norm(&space, &u).unwrap(),
                        error_l2(&space, &u, &exact).unwrap(),
                        error_h1(&space, &u, &exact).unwrap(),
                        value_at(&space, &u, [0.5, 0.5, 0.5]).unwrap(),
                    ]
                });
                let fields = device.install(|| {
                    let recovered = RecoveredGradient::new(problem.space(), &form, &u).unwrap();
                    let fluxes = facet_fluxes(&space, &form, CellRule::default(), &u).unwrap();
                    let estimate = recovered.error_estimate().unwrap().cells;
                    [fluxes, recovered.at_nodes(), recovered.flux_density().unwrap(), estimate].concat()
                });
                (
                    bits(&fields),
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

#[test]
fn an_assembly_ends_once_its_progress_breaks() {
    use std::ops::ControlFlow::{Break, Continue};
    use std::sync::atomic::{AtomicUsize, Ordering};
    let mut problem = Problem::new(unit_mesh(3, 21));
    problem.lambda = expression("1");
    let form = problem.form();
    for n_threads in [1, 3] {
        let device = Cpu::new(n_threads).unwrap();
        let asked = AtomicUsize::new(0);
        let after = |n: usize| {
            asked.store(0, Ordering::Relaxed);
            let progress =
                |_| if asked.fetch_add(1, Ordering::Relaxed) < n { Continue(()) } else { Break(()) };
            assemble_interruptible::<f64, Cpu>(&device, &form, &progress)
        };
        let whole: AssembledSystem<f64, Cpu> = problem.assemble(&device);
        assert!(after(usize::MAX).unwrap().matrix.values().as_slice() == whole.matrix.values().as_slice());
        let n_asked = asked.load(Ordering::Relaxed);
        assert!(n_asked > 2 * n_threads, "{n_asked}");
        for n in [0, 1, n_asked - 1] {
            assert!(matches!(after(n), Err(FemError::Interrupted)), "{n}");
            // Blocks that other threads have started are finished.
            assert!(asked.load(Ordering::Relaxed) <= n + n_threads, "{n}");
        }
    }
}

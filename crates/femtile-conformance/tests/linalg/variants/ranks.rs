use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use femtile::device::{Buffer, Cpu, Device};
use femtile::linalg::LinalgError;
use femtile::linalg::comm::{Communicator, SingleRank};
use femtile::linalg::krylov::cg::{CgOutcome, KrylovConfig};
use femtile::linalg::krylov::s_step_cg::{SStepCg, SStepCgConfig};
use femtile::linalg::krylov::{Monitor, Stop};
use femtile::linalg::precondition::Jacobi;
use femtile_conformance::suite::problems::{Random, laplacian};

use super::{System, config, outliers};

/// Two ranks of which the other has no unknowns: its sums are zero.
#[derive(Default)]
struct WithEmpty {
    n_sums: AtomicUsize,
}

impl Communicator for WithEmpty {
    fn rank(&self) -> usize {
        0
    }

    fn n_ranks(&self) -> usize {
        2
    }

    fn sum<D: Device>(&self, _values: &mut Buffer<f64, D>) -> Result<(), LinalgError> {
        self.n_sums.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

struct After(usize);

impl Monitor for After {
    fn iteration(&mut self, iteration: usize, _relative_residual: f64) -> ControlFlow<Stop> {
        if iteration >= self.0 { ControlFlow::Break(Stop::Interrupted) } else { ControlFlow::Continue(()) }
    }
}

fn solve<C: Communicator>(
    system: &System<f64>,
    start: f64,
    (steps, cg): (usize, &KrylovConfig),
    comm: &C,
    last: usize,
) -> (CgOutcome, Vec<f64>) {
    let cpu = Cpu::new(2).unwrap();
    let a = system.a.on(&cpu);
    let (m, b) = (Jacobi::new(&a).unwrap(), Buffer::from_host(&cpu, &system.b).unwrap());
    let mut x = Buffer::from_host(&cpu, &vec![start; b.len()]).unwrap();
    let method = SStepCg::new(SStepCgConfig { cg: cg.clone(), steps });
    let outcome = method.solve(&mut x, &a, &m, &b, comm, &mut After(last)).unwrap();
    (outcome, x.to_host().unwrap())
}

fn grid() -> System<f64> {
    let mut random = Random::new(71);
    System::new(laplacian(19, &mut random), &mut random)
}

#[test]
fn a_block_of_steps_takes_one_reduction() {
    let system = grid();
    for steps in 1..=6 {
        let n_sums = |n_blocks: usize| {
            let cg = KrylovConfig { max_iterations: n_blocks * steps, ..config(1e-14) };
            let comm = WithEmpty::default();
            let (outcome, _) = solve(&system, 0.0, (steps, &cg), &comm, usize::MAX);
            assert_eq!((outcome.stop, outcome.iterations), (Stop::MaxIterations, n_blocks * steps));
            comm.n_sums.into_inner()
        };
        assert_eq!(n_sums(5) - n_sums(2), 3, "{steps} steps");
    }
}

/// The verdict comes a basis later, and is the same: limits, a user who stops, a start that is good, and blocks that are cut.
#[test]
fn several_ranks_take_the_steps_of_one() {
    let (grid, cut) = (grid(), System::new(outliers(200, 1e7), &mut Random::new(72)));
    let zeros = System { b: vec![0.0; 361], ..self::grid() };
    let mut infinite = self::grid();
    infinite.b[5] = f64::INFINITY;
    for steps in 1..=6 {
        let limited = KrylovConfig { max_iterations: 11, ..config(1e-10) };
        let diverging = KrylovConfig { divergence_factor: 0.5, ..config(1e-10) };
        for (name, system, start, config, last) in [
            ("converges", &grid, 0.0, &config(1e-10), usize::MAX),
            ("limited", &grid, 0.0, &limited, usize::MAX),
            ("interrupted", &grid, 0.0, &config(1e-10), 8),
            ("diverges", &grid, 0.0, &diverging, usize::MAX),
            ("starts elsewhere", &grid, 3.0, &config(1e-10), usize::MAX),
            ("zeros", &zeros, 3.0, &config(1e-10), usize::MAX),
            ("not finite", &infinite, 0.0, &config(1e-10), usize::MAX),
            ("cut", &cut, 0.0, &config(1e-8), usize::MAX),
        ] {
            let (alone, expected) = solve(system, start, (steps, config), &SingleRank, last);
            let (found, x) = solve(system, start, (steps, config), &WithEmpty::default(), last);
            assert_eq!(
                (found.stop, found.iterations),
                (alone.stop, alone.iterations),
                "{name}, {steps} steps"
            );
            assert_eq!(x, expected, "{name}, {steps} steps");
            let bits =
                |outcome: &CgOutcome| -> Vec<u64> { outcome.residuals.iter().map(|r| r.to_bits()).collect() };
            assert_eq!(bits(&found), bits(&alone), "{name}, {steps} steps");
        }
    }
}

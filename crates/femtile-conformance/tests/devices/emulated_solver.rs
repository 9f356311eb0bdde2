//! What a solve by a kept solver asks of a GPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use femtile::device::{Cpu, Cuda, Device};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::Target;
use femtile::mesh::generate::{BoxConfig, box_mesh};
use femtile::solve::{Observer, Silent, Stages};
use femtile::time::implicit::{Steps, Stop as End};
use femtile::{DeviceChoice, Poisson, PreconditionerConfig, SolverConfig, Transient};
use femtile_conformance::emulator::Emulator;
use femtile_conformance::suite::cg::config;
use femtile_conformance::suite::cg_solver::{Kind, solver};
use femtile_conformance::suite::problems::{Random, laplacian};

use crate::counting::Counting;

/// Launches and replays, waits, uploads and arrays of one solve, and the kernels in it.
#[derive(Debug, PartialEq)]
struct Asked {
    done: usize,
    waits: usize,
    uploads: usize,
    arrays: usize,
    kernels: usize,
}

impl Asked {
    fn so_far(driver: &Counting, device: &Cuda) -> Self {
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        Self {
            done: count(&driver.n_done),
            waits: count(&driver.n_waits),
            uploads: count(&driver.n_uploads),
            arrays: count(&driver.n_arrays),
            kernels: device.kernel_launches() as usize,
        }
    }

    fn since(self, before: &Self) -> Self {
        Self {
            done: self.done - before.done,
            waits: self.waits - before.waits,
            uploads: self.uploads - before.uploads,
            arrays: self.arrays - before.arrays,
            kernels: self.kernels - before.kernels,
        }
    }
}

#[test]
fn a_solve_of_the_expected_length_is_one_replay_and_one_wait() {
    let test = "a_solve_of_the_expected_length_is_one_replay_and_one_wait";
    let Ok(emulator) = Emulator::new().map_err(|error| eprintln!("SKIPPED: {test}: {error}")) else { return };
    let driver = Arc::new(Counting::new(emulator, usize::MAX));
    let device = Cuda::with_driver(driver.clone());
    let (side, mut random) = (13, Random::new(7));
    let parts = laplacian::<f64>(side, &mut random);
    let b = random.vector::<f64>(side * side);
    // Kernels of an iteration, and of the start and the end together.
    for (kind, [of_iteration, of_both]) in [(Kind::Diagonal, [3, 5]), (Kind::Hidden, [5, 8])] {
        let mut solver = solver(&device, &parts, kind);
        let mut solve = |tolerance: f64, factor: f64| {
            solver.x_mut().upload(&vec![0.0; b.len()]).unwrap();
            solver.b_mut().upload(&b.iter().map(|b| factor * b).collect::<Vec<_>>()).unwrap();
            let before = Asked::so_far(&driver, &device);
            let outcome = solver.solve(&config(tolerance), Target::RightSide, &SingleRank, &mut ()).unwrap();
            assert_eq!(outcome.stop, Stop::Converged);
            (outcome.iterations, Asked::so_far(&driver, &device).since(&before))
        };
        // The first solve learns a Ritz value, the second expects the iterations of the first, the third records.
        for round in 1..=4 {
            let (iterations, asked) = solve(1e-4, f64::from(round));
            assert!((8..=32).contains(&iterations), "{iterations}");
            let kernels = of_iteration * iterations + of_both;
            if round > 3 {
                assert_eq!(asked, Asked { done: 1, waits: 2, uploads: 0, arrays: 0, kernels }, "{kind:?}");
            }
        }
        // Another tolerance is a number on the device: the recordings remain.
        let (fewer, _) = solve(1e-2, 1.0);
        let (_, asked) = solve(1e-2, 2.0);
        assert!(asked.arrays == 0 && asked.waits <= 4 && asked.done <= of_iteration * 32 + of_both);
        let (iterations, asked) = (1..=3).map(|_| solve(1e-2, 3.0)).last().unwrap();
        assert_eq!((iterations, asked.done, asked.waits, asked.uploads), (fewer, 1, 2, 0), "{kind:?}");
    }
}

struct Blind;

impl Observer for Blind {}

/// Counts the requests to a GPU of a run of BDF2 with this number of steps.
fn steps(n_steps: usize, source: &str) -> Option<Asked> {
    let emulator = Emulator::new().map_err(|error| eprintln!("SKIPPED: steps in time: {error}")).ok()?;
    let driver = Arc::new(Counting::new(emulator, usize::MAX));
    let device = Cuda::with_driver(driver.clone());
    let mesh = box_mesh(&BoxConfig { cells: [5, 4, 5], ..BoxConfig::default() }).unwrap();
    let problem = Poisson::new(&mesh).source(source).dirichlet("xmin", "1 + y").unwrap();
    let run = Transient::new(problem, 1.0).times(0.0, 0.01 * n_steps as f64).steps(Steps::Fixed(n_steps));
    let config = SolverConfig {
        preconditioner: PreconditionerConfig::Jacobi,
        device: DeviceChoice::Cuda(0),
        ..SolverConfig::default()
    };
    let cpu = Cpu::new(1).unwrap();
    let mut silent = Silent;
    let mut stages = Stages::new(&mut silent);
    let problem = run.discretize().unwrap();
    let done = cpu
        .install(|| run.run(problem, (&cpu, Some(device.clone())), &config, &mut Blind, &mut stages))
        .unwrap();
    assert_eq!(done.outcome().stop, End::Finished);
    Some(Asked::so_far(&driver, &device))
}

/// Iterations may change by one from step to step, so that another length is recorded now and then.
#[test]
fn a_step_in_time_is_some_launches_one_replay_and_one_wait() {
    let Some(before) = steps(50, "1") else { return };
    let asked = steps(90, "1").unwrap().since(&before);
    assert!(asked.done <= 40 * 20, "{asked:?}");
    assert!(asked.waits <= 40 * 3, "{asked:?}");
    assert!(asked.uploads <= 2 && asked.arrays <= 2, "{asked:?}");
}

#[test]
fn a_source_in_time_is_evaluated_where_it_is_needed() {
    let Some(before) = steps(50, "1 + sin(t)*x") else { return };
    let asked = steps(90, "1 + sin(t)*x").unwrap().since(&before);
    assert!(asked.done <= 40 * 24, "{asked:?}");
    assert!(asked.uploads <= 2 && asked.arrays <= 2, "{asked:?}");
}

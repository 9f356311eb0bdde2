//! Bad input is refused with a reason.

use std::ops::ControlFlow;

use femtile_device::Cpu;
use femtile_time::TimeError;
use femtile_time::adi::{Adi, AdiConfig, AdiProblem, AdiStop, Scheme, Side, Silent, StepMonitor};

use super::manufactured::{Manufactured, formula};

fn refusal(problem: &AdiProblem, config: AdiConfig) -> String {
    match Adi::<f64, _>::new(&Cpu::new(1).unwrap(), problem, config) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("taken"),
    }
}

fn heat() -> AdiProblem {
    AdiProblem::heat(&[5, 5], &[0.0, 0.0], &[1.0, 1.0])
}

#[test]
fn tensors_that_are_not_positive_are_refused_with_the_place() {
    let refused = |change: &dyn Fn(&mut AdiProblem)| {
        let mut problem = heat();
        change(&mut problem);
        refusal(&problem, AdiConfig::default())
    };
    assert!(refused(&|p| p.diffusion[0][0] = formula("-1")).contains("negative"));
    let text = refused(&|p| p.diffusion[1][1] = formula("0.5 - x"));
    assert!(text.contains("diffusion at (0.75, 0, 0) is -0.25"), "{text}");
    assert!(refused(&|p| p.diffusion[0][1] = formula("0.1")).contains("symmetric"));
    let steep = refused(&|p| {
        p.diffusion[0][1] = formula("1.5");
        p.diffusion[1][0] = formula("1.5");
    });
    assert!(steep.contains("off the diagonal"), "{steep}");
    assert!(refused(&|p| p.reaction = formula("1/x")).contains("finite"));
    assert!(refused(&|p| p.convection[0] = formula("t")).contains("not on the time"));
}

#[test]
fn three_axes_that_fit_in_pairs_but_not_together_are_refused() {
    let problem = Manufactured::heat("0", 3)
        .diffusion(0, 1, "0.9")
        .diffusion(0, 2, "-0.9")
        .diffusion(1, 2, "0.9")
        .problem(&[4, 4, 4]);
    assert!(refusal(&problem, AdiConfig::default()).contains("determinant"));
}

#[test]
fn a_scheme_for_other_problems_is_refused() {
    let config = AdiConfig { scheme: Scheme::PeacemanRachford, ..AdiConfig::default() };
    let box_ = AdiProblem::heat(&[4; 3], &[0.0; 3], &[1.0; 3]);
    assert!(refusal(&box_, config.clone()).contains("two dimensions"));
    let mixed = Manufactured::heat("0", 2).diffusion(0, 1, "0.5").problem(&[4, 4]);
    assert!(refusal(&mixed, config).contains("craig-sneyd"));
    let with = |config: AdiConfig| refusal(&heat(), config);
    assert!(with(AdiConfig { steps: 0, ..AdiConfig::default() }).contains("steps"));
    assert!(with(AdiConfig { end: 0.0, ..AdiConfig::default() }).contains("end"));
    assert!(with(AdiConfig { steps: 2, rannacher_steps: 3, ..AdiConfig::default() }).contains("rannacher"));
    assert!("douglas-gun".parse::<Scheme>().unwrap_err().to_string().contains("douglas-gunn"));
    assert!(Scheme::ALL.iter().all(|scheme| scheme.name().parse() == Ok(*scheme)));
}

#[test]
fn one_periodic_side_needs_the_other() {
    let mut problem = heat();
    problem.sides[1][1] = Side::Periodic;
    assert!(refusal(&problem, AdiConfig::default()).contains("one side of y is periodic"));
}

#[test]
fn a_zero_pivot_is_named_with_its_node() {
    let mut problem = AdiProblem::heat(&[5], &[0.0], &[1.0]);
    // Half a step times r/1 is 1, and nothing diffuses: the diagonal is zero.
    problem.diffusion[0][0] = formula("0");
    problem.reaction = formula("2");
    let config = AdiConfig { steps: 1, ..AdiConfig::default() };
    let mut adi = Adi::<f64, _>::new(&Cpu::new(1).unwrap(), &problem, config).unwrap();
    let mut u = adi.initial_values(&formula("1")).unwrap();
    match adi.run(&mut u, &mut Silent) {
        Err(TimeError::Singular { axis: 0, node: [1, 0, 0], step: 1 }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn growth_beyond_all_numbers_is_told() {
    let mut problem = heat();
    problem.source = formula("1e308");
    let config = AdiConfig { end: 1e3, steps: 40, ..AdiConfig::default() };
    let mut adi = Adi::<f64, _>::new(&Cpu::new(1).unwrap(), &problem, config).unwrap();
    let mut u = adi.initial_values(&formula("1")).unwrap();
    assert_eq!(adi.run(&mut u, &mut Silent).unwrap().stop, AdiStop::Diverged);
}

#[test]
fn a_run_that_is_stopped_keeps_what_it_has_and_goes_on() {
    struct Stop(usize);
    impl StepMonitor for Stop {
        fn step(&mut self, step: usize, _: f64) -> ControlFlow<AdiStop> {
            if step == self.0 { ControlFlow::Break(AdiStop::Interrupted) } else { ControlFlow::Continue(()) }
        }
    }
    let problem = Manufactured::heat("exp(-t)*x*y", 2).problem(&[6, 7]);
    let config = AdiConfig { steps: 10, ..AdiConfig::default() };
    let device = Cpu::new(1).unwrap();
    let run = |stops: &[usize]| {
        let mut adi = Adi::<f64, _>::new(&device, &problem, config.clone()).unwrap();
        let mut u = adi.initial_values(&formula("x*y")).unwrap();
        for &stop in stops {
            let outcome = adi.run(&mut u, &mut Stop(stop)).unwrap();
            assert_eq!((outcome.stop, outcome.steps), (AdiStop::Interrupted, stop));
        }
        assert_eq!(adi.run(&mut u, &mut Silent).unwrap().stop, AdiStop::Finished);
        assert_eq!((adi.steps(), adi.time()), (10, 1.0));
        u.to_host().unwrap()
    };
    assert_eq!(run(&[3, 7]), run(&[]));
}

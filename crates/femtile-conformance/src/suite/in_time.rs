//! Runs in time on a GPU, held to those of a processor over a hundred steps.

use femtile::device::{Cpu, Cuda};
use femtile::mesh::Mesh;
use femtile::mesh::generate::{BoxConfig, BoxSplit, box_mesh};
use femtile::solve::{MatrixFormat, Observer, Ranks, Silent, Stages};
use femtile::time::implicit::{Scheme as LinearScheme, Steps, Stop as End};
use femtile::{DeviceChoice, Poisson, SolverConfig, Transient};
use femtile_cardiac::ionic::Model;
use femtile_cardiac::monodomain::{Observer as HeartObserver, Scheme, Splitting, Stop};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{Monodomain, MonodomainSolution, Stimulus};

use super::Scope;

/// Steps of a comparison.
const STEPS: usize = 100;
/// The difference that is accepted, as a share of the range of values.
const ACCEPTED: f64 = 1e-9;

struct Blind;

impl Observer for Blind {}
impl HeartObserver for Blind {}

/// A slab whose extents no block of threads divides.
fn slab(scope: &Scope, split: BoxSplit, upper: [f64; 3]) -> Mesh {
    let cells = if scope.has_every_kind { [23, 9, 7] } else { [5, 2, 2] };
    box_mesh(&BoxConfig { cells, upper, split, ..BoxConfig::default() }).unwrap()
}

fn config(gpu: Option<&Cuda>) -> SolverConfig {
    let device = if gpu.is_some() { DeviceChoice::Cuda(0) } else { DeviceChoice::Cpu };
    SolverConfig { device, tolerance: 1e-13, threads: 1, ..SolverConfig::default() }
}

fn near(found: &[f64], expected: &[f64], range: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let differences = found.iter().zip(expected).map(|(found, expected)| (found - expected).abs());
    let largest =
        differences.fold(0.0, |largest: f64, next| if next.is_nan() { next } else { largest.max(next) });
    assert!(largest <= ACCEPTED * range, "{what}: {largest:e} of {range}");
}

/// Sources and given values that depend on the time are those of a processor, evaluated by kernels or not.
pub fn heat_agrees_with_a_processor(device: &Cuda, scope: &Scope) {
    for (split, scheme) in [
        (BoxSplit::Kuhn, LinearScheme::Bdf2),
        (BoxSplit::Kuhn, LinearScheme::CrankNicolson),
        (BoxSplit::Hexahedron, LinearScheme::Sdirk2),
    ] {
        let mesh = slab(scope, split, [1.0; 3]);
        let problem = Poisson::new(&mesh).source("sin(9*t)*x + y*y").dirichlet("xmin", "t*y").unwrap();
        let problem = problem.neumann("zmax", "cos(t)").unwrap();
        let run = Transient::new(problem, "x").times(0.0, 0.5).scheme(scheme).steps(Steps::Fixed(STEPS));
        let solve = |gpu: Option<&Cuda>| {
            let cpu = Cpu::new(1).unwrap();
            let mut silent = Silent;
            let mut stages = Stages::new(&mut silent);
            let (problem, config) = (run.discretize().unwrap(), config(gpu));
            let opened = (&cpu, gpu.cloned());
            let done = cpu.install(|| run.run(problem, opened, &config, &mut Blind, &mut stages)).unwrap();
            assert_eq!(done.outcome().stop, End::Finished);
            done.at_end().values().to_vec()
        };
        let expected = solve(None);
        let range = expected.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        assert!(range > 0.1);
        near(&solve(Some(device)), &expected, range, &format!("{}, {split:?}", scheme.name()));
    }
}

/// Steps on several ranks that share a GPU, with and without a matrix.
pub fn heat_on_ranks_agrees_with_a_processor(device: &Cuda, scope: &Scope) {
    for (split, scheme, degree) in [
        (BoxSplit::Kuhn, LinearScheme::Bdf2, 1),
        (BoxSplit::Kuhn, LinearScheme::CrankNicolson, 1),
        (BoxSplit::Hexahedron, LinearScheme::Sdirk2, 2),
    ] {
        let mesh = slab(scope, split, [1.0; 3]);
        let problem = Poisson::new(&mesh).degree(degree).source("sin(9*t)*x + y*y");
        let problem = problem.dirichlet("xmin", "t*y").unwrap().neumann("zmax", "cos(t)").unwrap();
        let run = Transient::new(problem, "x").times(0.0, 0.5).scheme(scheme).steps(Steps::Fixed(20));
        let solve = |gpu: Option<&Cuda>, ranks: Ranks| {
            let cpu = Cpu::new(1).unwrap();
            let mut silent = Silent;
            let mut stages = Stages::new(&mut silent);
            let (problem, config) = (run.discretize().unwrap(), SolverConfig { ranks, ..config(gpu) });
            let opened = (&cpu, gpu.cloned());
            let done = cpu.install(|| run.run(problem, opened, &config, &mut Blind, &mut stages)).unwrap();
            assert_eq!(done.outcome().stop, End::Finished);
            assert_eq!(done.at_end().kernel_launches() > 0, gpu.is_some());
            done.at_end().values().to_vec()
        };
        let expected = solve(None, Ranks::One);
        let range = expected.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        assert!(range > 0.1);
        near(
            &solve(Some(device), Ranks::Threads(2)),
            &expected,
            range,
            &format!("{}, {split:?}", scheme.name()),
        );
    }
}

/// A source that becomes infinite is named with its time and cell, also where kernels evaluate it.
pub fn infinite_sources_are_named_with_time_and_cell(device: &Cuda, scope: &Scope) {
    let mesh = slab(scope, BoxSplit::Kuhn, [1.0; 3]);
    let run = Transient::new(Poisson::new(&mesh).source("1/(t - 0.5)"), 1.0).times(0.0, 1.0);
    let run = run.scheme(LinearScheme::ImplicitEuler).steps(Steps::Fixed(4));
    for gpu in [None, Some(device)] {
        let cpu = Cpu::new(1).unwrap();
        let mut silent = Silent;
        let mut stages = Stages::new(&mut silent);
        let opened = (&cpu, gpu.cloned());
        let done = run.run(run.discretize().unwrap(), opened, &config(gpu), &mut Blind, &mut stages);
        let said = done.unwrap_err().to_string();
        assert!(said.contains("at t = 0.5") && said.contains("source is inf in cell"), "{said}");
    }
}

/// A model of the membrane with its range, and spacing, step and stimulus, in its units.
#[derive(Clone, Copy)]
struct Front {
    model: &'static str,
    range: f64,
    spacing: f64,
    step: f64,
    strength: f64,
}

const SIMPLE: Front = Front { model: "aliev-panfilov", range: 1.0, spacing: 0.5, step: 0.05, strength: 0.5 };
const VENTRICULAR: Front =
    Front { model: "ten-tusscher-panfilov-2006:epi", range: 100.0, spacing: 0.3, step: 0.02, strength: 60.0 };

impl Front {
    fn mesh(self, scope: &Scope) -> Mesh {
        slab(scope, BoxSplit::Kuhn, [5.0 * self.spacing, 2.0 * self.spacing, 2.0 * self.spacing])
    }

    fn problem(self, mesh: &Mesh, scheme: Scheme) -> Monodomain<'_> {
        let Self { model, range, spacing, step, strength } = self;
        let place = Place::Where(format!("x < {}", 1.1 * spacing));
        let problem = Monodomain::new(mesh, Model::named(model).unwrap())
            .stimulus(Stimulus { place, strength, pulses: Pulses::single(0.0, 60.5 * step) })
            .scheme(scheme)
            .solve_error(1e-13 * range)
            .times(0.0, STEPS as f64 * step, step);
        match range > 1.0 {
            true => problem.membrane(140.0, 0.01).conductivity(0.13),
            false => problem,
        }
    }

    /// Compares a run with that of one rank on a processor.
    fn compare(self, found: &MonodomainSolution, problem: &Monodomain<'_>, what: &str) {
        let expected = solved(problem, &config(None), None);
        assert!(expected.activation.first.iter().any(|time| time.is_finite()), "{what}: not activated");
        near(&found.potential, &expected.potential, self.range, what);
        for (found, expected) in found.activation.first.iter().zip(&expected.activation.first) {
            let is_same = (found - expected).abs() < 1e-6 * self.step || found.is_nan() && expected.is_nan();
            assert!(is_same, "{what}: activation at {found} and {expected}");
        }
    }
}

/// Runs to the end, on a GPU where one is given.
fn solved(problem: &Monodomain<'_>, config: &SolverConfig, gpu: Option<&Cuda>) -> MonodomainSolution {
    let cpu = Cpu::new(1).unwrap();
    let mut silent = Silent;
    let mut stages = Stages::new(&mut silent);
    let opened = (&cpu, gpu.cloned());
    let done = cpu.install(|| problem.run(opened, config, &mut Blind, &mut stages)).unwrap();
    assert_eq!((done.outcome.stop, done.outcome.steps), (Stop::Finished, STEPS));
    assert_eq!(done.kernel_launches > 0, gpu.is_some());
    done
}

/// The front of an action potential, by splitting and by the implicit scheme.
pub fn hearts_agree_with_a_processor(device: &Cuda, scope: &Scope) {
    let (godunov, strang) = (Scheme::Splitting(Splitting::Godunov), Scheme::Splitting(Splitting::Strang));
    for (front, scheme, format) in [
        (SIMPLE, Scheme::Implicit, MatrixFormat::Csr),
        (SIMPLE, Scheme::Implicit, MatrixFormat::EllWarp),
        (SIMPLE, strang, MatrixFormat::Auto),
        (VENTRICULAR, godunov, MatrixFormat::Auto),
    ] {
        let mesh = front.mesh(scope);
        let problem = front.problem(&mesh, scheme);
        let config = SolverConfig { format, ..config(Some(device)) };
        let found = solved(&problem, &config, Some(device));
        front.compare(&found, &problem, &format!("{}, {}, {format:?}", front.model, scheme.name()));
    }
}

/// The same on several ranks that share a GPU, rows of 64 bits and slices with values of 32 bits in iterations.
pub fn hearts_on_ranks_agree_with_a_processor(device: &Cuda, scope: &Scope) {
    for (front, splitting, format, n) in [
        (SIMPLE, Splitting::Strang, MatrixFormat::Csr, 3),
        (VENTRICULAR, Splitting::Godunov, MatrixFormat::EllWarp, 2),
    ] {
        let mesh = front.mesh(scope);
        let problem = front.problem(&mesh, Scheme::Splitting(splitting));
        let config = SolverConfig { format, ranks: Ranks::Threads(n), ..config(Some(device)) };
        let found = solved(&problem, &config, Some(device));
        assert_eq!(found.ranks.map(|used| used.n_ranks), Some(n));
        front.compare(&found, &problem, &format!("{} on {n} ranks, {format:?}", front.model));
    }
}

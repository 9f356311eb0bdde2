//! Where the time of a run goes, in the trace format of Chrome and Perfetto.

use std::sync::Arc;
use std::time::{Duration, Instant};

use femtile_device::cuda::{CudaTrace, TracedKind, TracedWork};
use femtile_device::{TimedPart, take_parts, time_parts};
use femtile_solve::{Progress, SolvedSystem, Stage};
use serde_json::{Value, json};

/// The number of the process in the trace.
const PROCESS: u32 = 1;

/// A row of the trace.
#[derive(Debug, Clone, Copy)]
enum Lane {
    Stages = 1,
    Loads,
    Gpu,
    Parts,
}

impl Lane {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Stages, "stages"),
        (Self::Loads, "kernels compiled or loaded"),
        (Self::Gpu, "GPU"),
        (Self::Parts, "parts of stages"),
    ];

    fn of(kind: TracedKind) -> Self {
        match kind {
            TracedKind::Load => Self::Loads,
            TracedKind::Kernel | TracedKind::Copy => Self::Gpu,
        }
    }
}

/// The steps of a program one after another, without gaps, parts of its stages, and the work of its GPUs.
///
/// ```
/// use femtile_case::{Profile, Silent};
///
/// let mut profile = Profile::since(std::time::Instant::now());
/// profile.begin("reading the case file");
/// // femtile_case::run(&case, &mut profile.watch(&mut Silent))
/// let trace = profile.trace("my program");
/// assert!(trace["traceEvents"].is_array());
/// ```
#[derive(Debug)]
pub struct Profile {
    origin: Instant,
    steps: Vec<(&'static str, Instant)>,
    gpus: Arc<CudaTrace>,
}

impl Profile {
    /// A profile from `origin` on, which begins with the step `starting the program`.
    ///
    /// GPUs that are opened later in this process time their work, also after the profile is dropped.
    pub fn since(origin: Instant) -> Self {
        time_parts();
        Self { origin, steps: vec![("starting the program", origin)], gpus: CudaTrace::of_process() }
    }

    /// Begins a step, which ends the one before.
    pub fn begin(&mut self, step: &'static str) {
        self.steps.push((step, Instant::now()));
    }

    /// Returns a receiver of progress that adds the stages of a run to the profile and passes everything on.
    pub fn watch<'a>(&'a mut self, inner: &'a mut dyn Progress) -> Watched<'a> {
        Watched { profile: self, inner }
    }

    /// Returns the trace until now as an object with `traceEvents`, times in microseconds.
    pub fn trace(&self, program: &str) -> Value {
        let now = Instant::now();
        let mut events = vec![named("process_name", 0, program)];
        events.extend(Lane::ALL.map(|(lane, name)| named("thread_name", lane as u32, name)));
        events.push(self.span(program, Lane::Stages, self.origin, now, json!({})));
        let ends = self.steps.iter().skip(1).map(|&(_, begun)| begun).chain([now]);
        let steps = self.steps.iter().zip(ends);
        events
            .extend(steps.map(|(&(step, begun), end)| self.span(step, Lane::Stages, begun, end, json!({}))));
        let part = |TimedPart { name, begun, end }| self.span(name, Lane::Parts, begun, end, json!({}));
        events.extend(take_parts().into_iter().map(part));
        let (works, n_left_out) = self.gpus.take();
        events.extend(works.iter().map(|work| self.work(work)));
        json!({ "traceEvents": events, "displayTimeUnit": "ms", "otherData": { "gpu_work_left_out": n_left_out } })
    }

    fn work(&self, work: &TracedWork) -> Value {
        let TracedWork { kind, name, begun, length, bytes, kernels, announced } = work;
        let arguments = match (kind, bytes, kernels.is_empty()) {
            (TracedKind::Load, ..) => json!({ "ahead": announced.is_some() }),
            (_, Some(bytes), _) => json!({ "bytes": bytes }),
            (_, None, false) => json!({ "launches": kernels }),
            (_, None, true) => json!({}),
        };
        self.span(name, Lane::of(*kind), *begun, *begun + *length, arguments)
    }

    /// Returns a complete event.
    fn span(&self, name: &str, lane: Lane, begun: Instant, end: Instant, arguments: Value) -> Value {
        let microseconds = |length: Duration| length.as_nanos() as f64 * 1e-3;
        let begin = microseconds(begun.saturating_duration_since(self.origin));
        let end = microseconds(end.saturating_duration_since(self.origin));
        json!({
            "name": name, "ph": "X", "pid": PROCESS, "tid": lane as u32,
            "ts": begin, "dur": (end - begin).max(0.0), "args": arguments,
        })
    }
}

/// Returns an event that names the process or a lane.
fn named(kind: &str, lane: u32, name: &str) -> Value {
    json!({ "name": kind, "ph": "M", "pid": PROCESS, "tid": lane, "args": { "name": name } })
}

/// A [`Progress`] that adds stages to a [`Profile`].
pub struct Watched<'a> {
    profile: &'a mut Profile,
    inner: &'a mut dyn Progress,
}

impl Progress for Watched<'_> {
    fn begin(&mut self, stage: Stage) {
        self.profile.begin(stage.label());
        self.inner.begin(stage);
    }

    fn fraction(&mut self, fraction: f64) {
        self.inner.fraction(fraction);
    }

    fn iteration(&mut self, iteration: usize, relative_residual: f64, tolerance: f64) {
        self.inner.iteration(iteration, relative_residual, tolerance);
    }

    fn time(&mut self, time: f64, end: f64) {
        self.inner.time(time, end);
    }

    fn solved(&mut self, system: &dyn SolvedSystem) {
        self.inner.solved(system);
    }

    fn finished(&mut self) {
        self.profile.begin("freeing memory");
        self.inner.finished();
    }

    fn is_interrupted(&self) -> bool {
        self.inner.is_interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Case, Silent, run};

    #[test]
    fn steps_follow_one_another_without_gaps_and_lie_within_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[mesh]\ngenerate = { kind = \"square\", cells = [5, 7] }\n[equation]\nlambda = 1\n";
        let mut case = Case::parse_with(&folder.path().join("case.toml"), text.into(), vec![]).unwrap();
        case.file.output.directory = folder.path().join("out");
        let mut profile = Profile::since(Instant::now());
        profile.begin("running");
        run(&case, &mut profile.watch(&mut Silent)).unwrap();
        let trace = profile.trace("test");
        let is_step = |event: &&Value| event["ph"] == "X" && event["tid"] == Lane::Stages as u32;
        let steps: Vec<&Value> = trace["traceEvents"].as_array().unwrap().iter().filter(is_step).collect();
        let number = |event: &Value, key: &str| event[key].as_f64().unwrap();
        let end = |event: &Value| number(event, "ts") + number(event, "dur");
        let (program, steps) = steps.split_first().unwrap();
        assert_eq!((program["name"].as_str(), number(program, "ts")), (Some("test"), 0.0));
        let names: Vec<_> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
        assert_eq!(names[..3], ["starting the program", "running", Stage::Read.label()]);
        assert_eq!(names[names.len() - 2..], [Stage::Write.label(), "freeing memory"]);
        let mut before = 0.0;
        for step in steps {
            assert!((number(step, "ts") - before).abs() < 1e-2, "{step}");
            before = end(step);
        }
        assert!((before - end(program)).abs() < 1e-2);
    }
}

//! The profile of a run.

use std::time::Instant;

use serde_json::Value;

use crate::common::{Workplace, text};

const CUBE: &str = r#"
[mesh]
generate = { kind = "box", cells = [24, 24, 24] }
[equation]
source = "1"
[[boundary]]
where = "all"
dirichlet = 0
"#;

fn number(event: &Value, key: &str) -> f64 {
    event[key].as_f64().unwrap()
}

/// Microseconds at which an event ends.
fn end(event: &Value) -> f64 {
    number(event, "ts") + number(event, "dur")
}

/// Returns the seconds of all steps with this name.
fn seconds_of(steps: &[&Value], name: &str) -> f64 {
    let steps = steps.iter().filter(|step| step["name"] == name);
    1e-6 * steps.map(|step| number(step, "dur")).sum::<f64>()
}

/// Checks that steps follow one another within the program; returns how well the profile of a run agrees with the time that
/// the run has taken from outside, and with its report.
fn agreement(place: &Workplace) -> Result<(), String> {
    let begun = Instant::now();
    let report = place.report(&["--profile", "trace.json"], 0);
    let wall = begun.elapsed().as_secs_f64();
    let trace: Value = serde_json::from_slice(&std::fs::read(place.path("trace.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    // Other lanes have parts of these steps.
    let stages = events.filter(|event| event["tid"] == 1);
    let (program, mut steps): (Vec<_>, Vec<_>) = stages.partition(|event| event["name"] == "femtile solve");
    steps.sort_by(|a, b| number(a, "ts").total_cmp(&number(b, "ts")));
    for pair in steps.windows(2) {
        assert!((end(pair[0]) - number(pair[1], "ts")).abs() < 1e-2, "{pair:?}");
    }
    let (first, last) = (steps[0], steps[steps.len() - 1]);
    assert!(number(program[0], "ts") <= number(first, "ts") && end(last) <= end(program[0]) + 1e-2);
    let covered = 1e-6 * (end(last) - number(first, "ts"));
    assert!(covered <= wall, "{covered} of {wall} s");
    if wall - covered > f64::max(0.02, 0.05 * wall) {
        return Err(format!("{covered} of {wall} s"));
    }
    for (label, key) in [("reading the mesh", "read"), ("assembling", "assemble"), ("solving", "solve")] {
        let (seconds, reported) = (seconds_of(&steps, label), report["timings_s"][key].as_f64().unwrap());
        if (seconds - reported).abs() > f64::max(0.02, 0.05 * reported) {
            return Err(format!("{label}: {seconds} s, in the report {reported} s"));
        }
    }
    assert!(seconds_of(&steps, "freeing memory") > 0.0);
    Ok(())
}

#[test]
fn stages_of_a_profile_cover_the_time_of_the_program() {
    let place = Workplace::new(CUBE);
    // A busy machine may keep a program waiting between its end and that of the test's clock, but not every time.
    let runs: Vec<_> = (0..5).map(|_| agreement(&place)).take_while(Result::is_err).collect();
    assert!(runs.len() < 5, "{runs:?}");
}

#[test]
fn a_profile_that_cannot_be_written_is_refused_before_the_solve() {
    let place = Workplace::new(CUBE);
    let said = place.refusal(&["--profile", "missing/trace.json"], 2);
    assert!(said.contains("--profile") && said.contains("missing"), "{said}");
    let output = place.solve(&["--profile", "-", "--json", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot both"), "{}", text(&output.stderr));
}

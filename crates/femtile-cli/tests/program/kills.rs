//! Runs that are killed at any moment, and runs into one folder at the same time: no file is half, no report stands
//! beside the solution of another run, and nothing is left over.
//!
//! `FEMTILE_KILLS` sets the number of rounds.
#![cfg(unix)]

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Workplace, femtile, text};

const DEFAULT_ROUNDS: u64 = 10;
/// Runs of a round that write into one folder.
const RUNS: u64 = 3;

fn rounds() -> u64 {
    std::env::var("FEMTILE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_ROUNDS)
}

/// Starts a run whose solution is that of no other number.
fn start(place: &Workplace, number: u64) -> Child {
    let case = format!("case-{}.toml", number % RUNS);
    let text = format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cells = [60, 60] }}\n[equation]\nlambda = 1\nsource = {}\n\
         [solver]\nthreads = 1\n[output]\ndirectory = \"out\"\n",
        number + 1
    );
    std::fs::write(place.path(&case), text).unwrap();
    let mut program = femtile();
    program.current_dir(place.folder.path()).args(["solve", &case, "--quiet"]);
    program.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn finish(run: Child) {
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// The names in the folder of results.
fn names(place: &Workplace) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("out")).unwrap().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Asserts that all files in the folder are of one run: the solution is complete, and a report has its own solution.
fn assert_whole(place: &Workplace) {
    if let Ok(solution) = std::fs::read_to_string(place.path("out/solution.vtu")) {
        assert!(solution.trim_end().ends_with("</VTKFile>"));
    }
    if place.path("out/report.json").exists() {
        assert_verified(place);
    }
}

fn assert_verified(place: &Workplace) {
    let output = femtile().current_dir(place.folder.path()).args(["verify", "out"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
}

fn assert_no_litter(place: &Workplace) {
    assert_eq!(names(place), ["report.json", "residuals.svg", "solution.vtu"]);
}

#[test]
fn a_killed_run_leaves_whole_files_of_one_run_and_no_litter_after_the_next() {
    let place = Workplace::new("");
    let begun = Instant::now();
    finish(start(&place, 0));
    let seconds = begun.elapsed().as_secs_f64();
    let (mut n_killed, mut n_unsealed, mut n_litter) = (0, 0, 0);
    for round in 1..=rounds() {
        let was_sealed = place.path("out/report.json").exists();
        let mut run = start(&place, round);
        // Multiples of the golden ratio lie evenly between zero and one.
        let share = (round as f64 * 0.618_033_988_749_895).fract();
        std::thread::sleep(Duration::from_secs_f64(1.1 * share * seconds));
        run.kill().unwrap();
        n_killed += u64::from(run.wait().unwrap().code().is_none());
        n_unsealed += u64::from(was_sealed && !place.path("out/report.json").exists());
        n_litter += u64::from(names(&place).iter().any(|name| name.starts_with('.')));
        assert_whole(&place);
    }
    finish(start(&place, 0));
    assert_verified(&place);
    assert_no_litter(&place);
    println!(
        "{n_killed} of {} killed, {n_unsealed} of them between two files, {n_litter} left litter",
        rounds()
    );
    assert!(n_killed > 0);
}

#[test]
fn runs_at_the_same_time_into_one_folder_leave_the_files_of_one() {
    let place = Workplace::new("");
    for round in 0..rounds() {
        let runs: Vec<_> = (0..RUNS).map(|run| start(&place, RUNS * round + run)).collect();
        runs.into_iter().for_each(finish);
        assert_verified(&place);
        assert_no_litter(&place);
    }
}

//! Runs in time that are killed at any moment, or that can write no more, go on from their checkpoint to the same bits.
//!
//! `FEMTILE_KILLS` sets the number of kills.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use femtile::time::implicit::Checkpoint;
use femtile_cardiac::monodomain::Checkpoint as HeartCheckpoint;

use crate::common::{Workplace, femtile, text};

const DEFAULT_KILLS: u64 = 20;
/// Steps from one checkpoint to the next.
const INTERVAL: usize = 10;

/// A case that ends at a time after some steps, with a row of traces for each.
struct Run {
    text: String,
    end: f64,
    steps: usize,
}

/// Heat in a square.
fn heat() -> Run {
    let (end, steps) = (1.0, 400);
    let text = format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cells = [40, 40] }}\n[equation]\nkind = \"diffusion\"\n\
         source = \"sin(3*t)*x\"\ninitial = \"x*y\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = \"t\"\n\
         [time]\nmethod = \"bdf2\"\nend = {end}\nsteps = {steps}\nframes = [0.5, 1]\ntraces = {{ every = {} }}\n\
         checkpoint = {{ steps = {INTERVAL} }}\n[solver]\nthreads = 1\npreconditioner = \"amg\"\n\
         [output]\ndirectory = \"out\"\ncompress = false\nfunctionals = [{{ name = \"top\", kind = \"max\" }}]\n",
        end / steps as f64
    );
    Run { text, end, steps }
}

/// A pulse along a slab of tissue.
fn heart(steps: usize) -> Run {
    let end = 20.0;
    let text = format!(
        "[mesh]\ngenerate = {{ kind = \"box\", cells = [20, 5, 4], upper = [10, 2.5, 2] }}\n\
         [equation]\nkind = \"monodomain\"\n[membrane]\nmodel = \"mitchell-schaeffer\"\n\
         [[stimulus]]\nwhere = \"x < 1.1\"\nstrength = 0.5\nduration = 2\n\
         [time]\nmethod = \"strang\"\nend = {end}\nsteps = {steps}\nframes = [10, 20]\n\
         traces = {{ every = {} }}\ncheckpoint = {{ steps = {INTERVAL} }}\n[solver]\nthreads = 1\n\
         [output]\ndirectory = \"out\"\ncompress = false\nfunctionals = [{{ name = \"top\", kind = \"max\" }}, \
         {{ name = \"near\", kind = \"value_at\", of = \"activation\", point = [2, 1, 1] }}]\n",
        end / steps as f64
    );
    Run { text, end, steps }
}

/// The program, to begin the case or to go on where there is a checkpoint.
fn run(place: &Workplace) -> Command {
    let mut program = femtile();
    program.current_dir(place.folder.path()).args(["solve", "case.toml", "--quiet"]);
    if place.path("out/checkpoint.bin").exists() {
        program.args(["--set", "time.restart=true"]);
    }
    program.stdout(Stdio::null()).stderr(Stdio::piped());
    program
}

fn finish(place: &Workplace) {
    let output = run(place).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// All results but the report, which has times of the clock.
fn results(place: &Workplace) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut add = |folder: &Path| {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(place.path("out")).unwrap().to_str().unwrap().to_owned();
            if path.is_file() && !["report.json", "checkpoint.bin"].contains(&name.as_str()) {
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    };
    add(&place.path("out"));
    add(&place.path("out/frames"));
    found
}

fn assert_same(found: &Workplace, expected: &Workplace) {
    let (found, expected) = (results(found), results(expected));
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, bytes) in &expected {
        assert!(found[name] == *bytes, "{name} differs");
    }
}

/// The step of the checkpoint, 0 where there is none.
fn kept(place: &Workplace) -> usize {
    let Ok(bytes) = std::fs::read(place.path("out/checkpoint.bin")) else { return 0 };
    let step = match HeartCheckpoint::read(&mut bytes.as_slice()) {
        Ok(state) => state.counts[0],
        Err(_) => Checkpoint::read(&mut bytes.as_slice()).expect("a checkpoint is whole").step,
    };
    step as usize
}

/// The last step in the table of traces.
fn reached(place: &Workplace, run: &Run) -> usize {
    let table = std::fs::read_to_string(place.path("out/traces.csv")).unwrap_or_default();
    // The last row may have been cut off in the middle.
    let whole = table.rfind('\n').map_or("", |end| &table[..end]);
    let last = whole.lines().skip(1).last().and_then(|row| row.split(',').next()?.parse::<f64>().ok());
    (last.unwrap_or(0.0) / run.end * run.steps as f64).round() as usize
}

/// Kills a run again and again, and compares its results with those of a run that is not killed.
fn kill(case: &Run) {
    let [whole, killed] = [0, 1].map(|_| Workplace::new(&case.text));
    let begun = Instant::now();
    finish(&whole);
    let seconds = begun.elapsed().as_secs_f64();
    let kills = std::env::var("FEMTILE_KILLS").ok().and_then(|text| text.parse().ok());
    let kills = kills.unwrap_or(DEFAULT_KILLS);
    let (mut n_killed, mut furthest) = (0, 0);
    for round in 1..=kills {
        let mut program = run(&killed).spawn().unwrap();
        // Multiples of the golden ratio lie evenly between zero and one.
        let share = (round as f64 * 0.618_033_988_749_895).fract();
        std::thread::sleep(Duration::from_secs_f64(0.12 * share * seconds));
        program.kill().unwrap();
        n_killed += usize::from(program.wait().unwrap().code().is_none());
        let (kept, reached) = (kept(&killed), reached(&killed, case));
        assert!(reached <= kept + INTERVAL, "step {kept} is kept of {reached}");
        println!("killed after step {reached}, kept {kept}");
        furthest = furthest.max(kept);
    }
    assert!(n_killed > 0 && furthest > 0, "{n_killed} kills, none after a checkpoint");
    finish(&killed);
    assert_same(&killed, &whole);
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_with_the_bits_of_one_that_is_not() {
    kill(&heat());
}

#[test]
fn a_heart_that_is_killed_again_and_again_ends_with_the_bits_of_one_that_is_not() {
    kill(&heart(10_000));
}

/// Runs a case with files of 60 or 120 kilobytes at most, by the unit of the shell: a checkpoint has less, a frame more.
fn run_on_a_full_disk(place: &Workplace) -> Output {
    let limited = "trap '' XFSZ; ulimit -f 120; exec \"$@\"";
    let program = run(place);
    let mut shell = Command::new("sh");
    shell.args(["-c", limited, "sh"]).arg(program.get_program()).args(program.get_args());
    shell.current_dir(place.folder.path()).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_run_whose_frames_do_not_fit_on_the_disk_names_the_file_and_leaves_its_checkpoint() {
    for Run { text: case, steps, .. } in [heat(), heart(400)] {
        let [whole, full] = [0, 1].map(|_| Workplace::new(&case));
        finish(&whole);
        let output = run_on_a_full_disk(&full);
        let said = text(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code > 0), "{said}");
        assert!(said.contains("u_0000.vtu"), "{said}");
        let kept = kept(&full);
        assert!(kept > 0 && kept <= steps / 2 && kept.is_multiple_of(INTERVAL), "{kept}");
        finish(&full);
        assert_same(&full, &whole);
    }
}

#[test]
fn a_run_that_is_to_go_on_does_so_without_the_frames_that_do_not_fit() {
    for Run { text: case, steps, .. } in [heat(), heart(400)] {
        let case = case.replace("[solver]", "on_write_error = \"go-on\"\n[solver]");
        let case = case.replace("[output]", "[output]\nvtu = false\nplot = false");
        let [whole, full] = [0, 1].map(|_| Workplace::new(&case));
        finish(&whole);
        let output = run_on_a_full_disk(&full);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let report = std::fs::read_to_string(full.path("out/report.json")).unwrap();
        let words = "went on although 2 times a frame, a trace or a checkpoint could not be written";
        assert!(report.contains(words) && report.contains("u_0000.vtu"), "{report}");
        assert_eq!(kept(&full), steps);
        let (found, mut expected) = (results(&full), results(&whole));
        expected.retain(|name, _| !name.ends_with(".vtu") && !name.ends_with(".pvd"));
        assert!(found == expected, "{:?} {:?}", found.keys(), expected.keys());
    }
}

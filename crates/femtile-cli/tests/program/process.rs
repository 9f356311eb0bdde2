//! The program as a process: streams that are closed or full, signals, pipes and folders in place of files, threads.
#![cfg(unix)]

use std::fs::File;
use std::process::{Child, Command, Output, Stdio};

use crate::common::{Workplace, femtile, text};

const SQUARE: &str = r#"
[mesh]
generate = { kind = "square", cells = [4, 4] }
[equation]
source = "1"
[[boundary]]
where = "all"
dirichlet = 0
"#;

/// A stream whose reader has gone away.
fn abandoned() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

fn mkfifo(place: &Workplace, name: &str) {
    assert!(Command::new("mkfifo").arg(place.path(name)).status().unwrap().success());
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Returns the words of standard error, with lines joined.
fn words(output: &Output) -> String {
    let said = text(&output.stderr);
    said.split_whitespace().filter(|word| !["│", "×"].contains(word)).collect::<Vec<_>>().join(" ")
}

#[test]
fn exit_codes_do_not_depend_on_who_reads_standard_error() {
    let place = Workplace::new(SQUARE);
    for (arguments, code) in [
        (&["solve", "case.toml", "--json", "-"][..], 0),
        (&["solve", "case.toml", "--json", "-", "--max-iterations", "1"], 1),
        (&["solve", "missing.toml"], 2),
        (&["solve", "--no-such-option"], 2),
        (&["mesh", "info", "missing.vtu"], 2),
        (&["solve", "case.toml", "--device", "cuda:99"], 3),
    ] {
        for stream in [abandoned(), full()] {
            let mut program = femtile();
            program.current_dir(place.folder.path()).args(arguments).stdout(Stdio::null()).stderr(stream);
            assert_eq!(program.status().unwrap().code(), Some(code), "{arguments:?}");
        }
        let closed = format!("exec '{}' {} 2>&-", env!("CARGO_BIN_EXE_femtile"), arguments.join(" "));
        let mut shell = Command::new("sh");
        shell.current_dir(place.folder.path()).args(["-c", &closed]).stdout(Stdio::null());
        assert_eq!(shell.status().unwrap().code(), Some(code), "{closed}");
    }
}

#[test]
fn a_report_that_does_not_reach_its_reader_is_an_error() {
    let place = Workplace::new(SQUARE);
    for stream in [abandoned(), full()] {
        let mut program = femtile();
        program.current_dir(place.folder.path()).args(["solve", "case.toml", "--json", "-"]).stdout(stream);
        let output = program.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(words(&output).contains("cannot write to standard output"), "{output:?}");
    }
    // Who stops reading a text has seen enough.
    assert_eq!(femtile().arg("schema").stdout(abandoned()).status().unwrap().code(), Some(0));
}

#[test]
fn more_threads_than_a_machine_carries_are_refused_with_its_cores() {
    let cores = std::thread::available_parallelism().unwrap();
    let place = Workplace::new(SQUARE);
    let said = place.refusal(&["--threads", "100000"], 3);
    assert!(said.contains("100000 worker threads") && said.contains(&format!("{cores} cores")), "{said}");
    std::fs::write(place.path("a.node"), "3 2 0 0\n0 0 0\n1 1 0\n2 0 1\n").unwrap();
    std::fs::write(place.path("a.ele"), "1 3 0\n0 0 1 2\n").unwrap();
    for arguments in [&["solve", "case.toml"][..], &["mesh", "check", "a.node"]] {
        let mut program = femtile();
        program.current_dir(place.folder.path()).args(arguments).env("RAYON_NUM_THREADS", "1000000");
        let output = program.output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        let said = words(&output);
        assert!(said.contains("RAYON_NUM_THREADS") && said.contains("1000000"), "{said}");
        assert!(said.contains(&format!("{cores} cores")), "{said}");
    }
}

#[test]
fn threads_that_the_system_refuses_are_an_error_with_a_sentence() {
    let place = Workplace::new(SQUARE);
    std::fs::write(place.path("a.node"), "3 2 0 0\n0 0 0\n1 1 0\n2 0 1\n").unwrap();
    std::fs::write(place.path("a.ele"), "1 3 0\n0 0 1 2\n").unwrap();
    for (arguments, code) in [(&["solve", "case.toml"][..], 2), (&["mesh", "check", "a.node"], 3)] {
        let mut program = femtile();
        // Stacks that no memory holds are refused as threads beyond a limit are.
        program.current_dir(place.folder.path()).args(arguments).env("RUST_MIN_STACK", "1000000000000000");
        let output = program.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(words(&output).contains("cannot start"), "{output:?}");
    }
}

#[test]
fn a_limit_of_the_size_of_files_is_an_error_that_leaves_nothing_behind() {
    let place = Workplace::new(SQUARE);
    let limited = format!("ulimit -f 1; exec '{}' solve case.toml", env!("CARGO_BIN_EXE_femtile"));
    let mut shell = Command::new("sh");
    let output = shell.current_dir(place.folder.path()).args(["-c", &limited]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(words(&output).contains("File too large"), "{output:?}");
    let left = std::fs::read_dir(place.path("out")).into_iter().flatten().count();
    assert_eq!(left, 0);
}

#[test]
fn a_pipe_in_place_of_a_cache_is_not_waited_for() {
    let place = Workplace::new(SQUARE);
    mkfifo(&place, "tuned.json");
    for cache in [".", "tuned.json"] {
        let mut program = femtile();
        program.current_dir(place.folder.path()).env("FEMTILE_CACHE", place.path(cache)).arg("solve");
        assert_eq!(program.arg("case.toml").stdout(Stdio::null()).status().unwrap().code(), Some(0));
    }
}

#[test]
fn pipes_and_folders_in_place_of_results_are_refused_and_stay() {
    let place = Workplace::new(SQUARE);
    std::fs::create_dir(place.path("out")).unwrap();
    mkfifo(&place, "out/residuals.svg");
    let said = place.refusal(&[], 2);
    assert!(said.contains("out/residuals.svg") && said.contains("a pipe, a socket or a device"), "{said}");
    let said = place.refusal(&["--output", "other", "--json", "out/residuals.svg"], 2);
    assert!(said.contains("a pipe that no program reads"), "{said}");
    let said = place.refusal(&["--output", "third", "--json", "out"], 2);
    assert!(said.contains("--json") && said.contains("out is a folder"), "{said}");
    assert!(!place.path("third").exists(), "refused before the solve");
}

#[test]
fn a_stop_while_the_mesh_is_read_ends_the_program_and_leaves_earlier_results() {
    let place = Workplace::new(SQUARE);
    place.report(&[], 0);
    let earlier = std::fs::read(place.path("out/report.json")).unwrap();
    // A pipe that says nothing is read for ever.
    mkfifo(&place, "mesh.vtk");
    std::fs::write(place.path("silent.toml"), "[mesh]\nfile = \"mesh.vtk\"\n[equation]\nlambda = 1\n")
        .unwrap();
    for name in ["-INT", "-TERM"] {
        let mut program = femtile();
        program.current_dir(place.folder.path()).args(["solve", "silent.toml", "--output", "out"]);
        let child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Opens when the program has opened it, too.
        let _writer = File::options().write(true).open(place.path("mesh.vtk")).unwrap();
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{name}");
        assert!(words(&output).contains("interrupted while reading the mesh: nothing was written"), "{name}");
        assert!(std::fs::read(place.path("out/report.json")).unwrap() == earlier);
    }
}

#[test]
fn control_characters_of_files_do_not_reach_the_terminal() {
    let named =
        SQUARE.to_owned() + "[output]\nfunctionals = [{ name = \"a\\u001b[31mb\", kind = \"max\" }]\n";
    let place = Workplace::new(&named);
    let output = place.solve(&[]);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("a?[31mb") && !output.stdout.contains(&0x1b));
    let wrong = Workplace::new(&SQUARE.replace("\"all\"", "\"le\\u001b[2Jft\""));
    let output = wrong.solve(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("le?[2Jft") && !output.stderr.contains(&0x1b), "{output:?}");
}

#[test]
fn control_characters_of_arguments_and_names_of_files_do_not_reach_the_terminal() {
    const NAME: &str = "a\u{1b}[2J\u{9b}b";
    let place = Workplace::new(SQUARE);
    let is_hidden = |c: char| c.is_control() && c != '\n';
    let refused = [
        &[NAME][..],
        &["completions", NAME],
        &["solve", NAME],
        &["solve", "case.toml", "--device", NAME],
        &["mesh", "info", NAME],
        &["mesh", "generate", NAME, "mesh.vtu"],
        &["mesh", "generate", "kind = \"box\", cells = [1, 1, 1]", NAME],
        &["tridiagonal", NAME, "--check"],
        &["verify", NAME],
        &["solve-matrix", NAME, "-o", "x.npy"],
        &["solve", "case.toml", "--mesh", NAME],
        &["solve", "case.toml", "--set", NAME],
    ];
    for arguments in refused {
        let output = femtile().current_dir(place.folder.path()).args(arguments).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said.contains("b") && !said.contains(is_hidden), "{arguments:?}: {said:?}");
    }
    std::fs::copy(place.path("case.toml"), place.path(NAME)).unwrap();
    let named = SQUARE.to_owned() + "[output]\nfunctionals = [{ name = \"a\\u009bb\", kind = \"max\" }]\n";
    std::fs::write(place.path("named.toml"), named).unwrap();
    for arguments in
        [&["solve", NAME, "--output", "out\u{1b}[2J"][..], &["solve", "named.toml", "--json", "-"]]
    {
        let output = femtile().current_dir(place.folder.path()).args(arguments).output().unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(!said.contains(is_hidden), "{said:?}");
    }
}

#[test]
fn the_program_calls_itself_femtile() {
    let said = |argument| text(&femtile().arg(argument).output().unwrap().stdout);
    assert_eq!(said("--version"), format!("femtile {}\n", env!("CARGO_PKG_VERSION")));
    let manual = said("man");
    assert!(manual.contains(".TH femtile 1") && !manual.contains("femtile-cli"), "{manual}");
}

#[test]
fn results_are_verified_by_name() {
    let place = Workplace::new(SQUARE);
    place.report(&[], 0);
    let verify = || femtile().current_dir(place.folder.path()).args(["verify", "out"]).output().unwrap();
    assert_eq!(verify().status.code(), Some(0));
    std::fs::write(place.path("out/solution.vtu"), "other").unwrap();
    let output = verify();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("out/solution.vtu: "), "{output:?}");
    std::fs::remove_dir_all(place.path("out")).unwrap();
    assert_eq!(verify().status.code(), Some(2));
}

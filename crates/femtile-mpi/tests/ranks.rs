//! The program under `mpirun`.

use std::path::Path;
use std::process::{Command, Output};

const CASE: &str = r#"
[mesh]
generate = { kind = "box", cells = [12, 10, 8] }

[equation]
kind = "reaction-diffusion"
sigma = "1 + x"
source = "sin(3*x) + y"

[[boundary]]
where = "xmin"
dirichlet = "y*y"

[[boundary]]
where = "xmax"
robin = { coefficient = 2.0, value = "z" }

[solver]
tolerance = 1e-12
"#;

/// Elements of degree 3 without a matrix.
const HIGH: &str = r#"
[mesh]
generate = { kind = "box", cells = [5, 4, 6], cell = "hexahedron" }

[space]
degree = 3

[equation]
kind = "reaction-diffusion"
sigma = "1 + x"
source = "sin(3*x) + y"

[[boundary]]
where = "xmin"
dirichlet = "y*y"

[solver]
preconditioner = "pmg"
tolerance = 1e-12
"#;

/// A body of tetrahedra of degree 2.
const ELASTIC: &str = r#"
[mesh]
generate = { kind = "box", cells = [5, 4, 6] }

[space]
degree = 2

[equation]
kind = "elasticity"
young = "2 + x"
poisson = 0.3

[[boundary]]
where = "xmin"
dirichlet = [0, 0, "0.1*y"]

[[boundary]]
where = "zmax"
traction = [0, "x", -1]

[solver]
tolerance = 1e-13
"#;

/// An equation in time, with data that depend on it.
const IN_TIME: &str = r#"
[mesh]
generate = { kind = "square", cells = [12, 9] }

[equation]
kind = "diffusion"
diffusion = 0.3
source = "x*sin(t)"
initial = "y"

[[boundary]]
where = "xmin"
dirichlet = "y*cos(t)"

[time]
method = "bdf2"
end = 0.5
steps = 10
frames = { every = 0.25 }

[solver]
tolerance = 1e-12
"#;

/// A heart, whose steps every rank ends with those of others.
const HEART: &str = r#"
[mesh]
generate = { kind = "square", cells = [12, 9] }

[equation]
kind = "monodomain"
sigma = 0.01

[membrane]
model = "aliev-panfilov"

[[stimulus]]
where = "x < 0.2"
strength = 1
duration = 1

[time]
end = 4
step = 0.1
frames = { every = 2 }
checkpoint = { steps = 15 }

[solver]
tolerance = 1e-12
"#;

/// Runs the program on some ranks; more than there are cores are allowed, and the root of a container.
fn command(n: usize, folder: &Path, arguments: &[&str]) -> Command {
    let n = n.to_string();
    let mut command = Command::new("mpirun");
    command
        .args(["-n", &n, "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"])
        .arg(env!("CARGO_BIN_EXE_femtile-mpi"))
        .args(arguments)
        .current_dir(folder)
        .env("RAYON_NUM_THREADS", "1");
    with_local_ranks_alone(&mut command);
    command
}

/// Open MPI asks for a remote shell even where all ranks are on one machine; none of this name is called then.
fn with_local_ranks_alone(command: &mut Command) {
    command.env("OMPI_MCA_plm_rsh_agent", "true");
}

/// Whether ranks can be begun at all, which a sandbox may forbid.
fn can_run() -> bool {
    let mut probe = Command::new("mpirun");
    probe.args(["-n", "2", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "true"]);
    with_local_ranks_alone(&mut probe);
    let ended = probe.output();
    let works = ended.as_ref().is_ok_and(|ended| ended.status.success());
    if !works {
        let why =
            ended.map_or_else(|error| error.to_string(), |ended| text(&ended.stderr).replace('\n', " "));
        eprintln!("SKIPPED: femtile-mpi under mpirun: {why}");
    }
    works
}

fn on_ranks(n: usize, folder: &Path, arguments: &[&str]) -> Output {
    command(n, folder, arguments).output().expect("mpirun of Open MPI is needed")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn report(folder: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("report.json")).unwrap()).unwrap()
}

/// Solves a case in `folder` on 1 to 4 ranks, and returns the reports.
fn solved(folder: &Path, set: &str) -> Vec<serde_json::Value> {
    let middle = "output.functionals=[{ kind = \"value_at\", name = \"middle\", point = [0.5, 0.5, 0.5] }]";
    let middle = if set.contains("time") { middle.replace(", 0.5]", "]") } else { middle.into() };
    let on = |n: usize| {
        let output = format!("out-{n}");
        let ended =
            on_ranks(n, folder, &["solve", "case.toml", "--output", &output, "--set", set, "--set", &middle]);
        assert!(ended.status.success(), "{n}: {}{}", text(&ended.stdout), text(&ended.stderr));
        // The first rank alone says how it went.
        assert_eq!(text(&ended.stdout).matches("mesh      ").count(), 1);
        report(&folder.join(output))
    };
    [1, 2, 3, 4].map(on).into()
}

#[test]
fn a_case_has_the_same_answer_on_any_number_of_ranks() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (case, set) in [
        (CASE, "solver.preconditioner=jacobi"),
        (CASE, "solver.preconditioner=amg"),
        (CASE, "solver.method=pipelined-cg"),
        (HIGH, "solver.method=cg"),
        (ELASTIC, "solver.method=cg"),
        (IN_TIME, "time.start=0"),
        (HEART, "time.start=0"),
    ] {
        std::fs::write(folder.path().join("case.toml"), case).unwrap();
        let reports = solved(folder.path(), set);
        let frames = std::fs::read_dir(folder.path().join("out-3/frames")).map_or(0, Iterator::count);
        assert_eq!(frames, if [IN_TIME, HEART].contains(&case) { 3 } else { 0 });
        let number = |report: &serde_json::Value, path: &str| report.pointer(path).unwrap().as_f64().unwrap();
        for (n, report) in reports.iter().enumerate().skip(1) {
            assert_eq!(report.pointer("/ranks/n_ranks").unwrap().as_u64(), Some(n as u64 + 1));
            let [found, alone] = [report, &reports[0]].map(|report| number(report, "/solve/iterations"));
            let share = if case == ELASTIC { 0.4 } else { 0.25 };
            assert!((found - alone).abs() <= (share * alone).max(1.0), "{n}: {found} and {alone} iterations");
            for name in reports[0].pointer("/functionals").unwrap().as_object().unwrap().keys() {
                let path = format!("/functionals/{name}");
                let [found, alone] = [report, &reports[0]].map(|report| number(report, &path));
                assert!((found - alone).abs() <= 1e-10 * alone.abs().max(0.1), "{n}: {found} and {alone}");
            }
        }
    }
}

#[test]
fn a_heart_goes_on_from_the_state_of_another_number_of_ranks() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let solve = |n: usize, output: &str, sets: &[&str]| {
        let mut arguments = vec!["solve", "case.toml", "--output", output];
        sets.iter().for_each(|set| arguments.extend(["--set", set]));
        let ended = on_ranks(n, folder.path(), &arguments);
        assert!(ended.status.success(), "{}{}", text(&ended.stdout), text(&ended.stderr));
        report(&folder.path().join(output))
    };
    std::fs::write(folder.path().join("case.toml"), HEART).unwrap();
    let mean = "output.functionals=[{ kind = \"mean\", name = \"mean\" }]";
    let whole = solve(1, "whole", &[mean]);
    solve(3, "out", &[mean, "time.end=3"]);
    let resumed = solve(2, "out", &[mean, "time.restart=true"]);
    let [found, expected] =
        [&resumed, &whole].map(|report| report.pointer("/functionals/mean").unwrap().as_f64());
    let (found, expected) = (found.unwrap(), expected.unwrap());
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} and {expected}");
}

/// The files of a solution in a folder, ascending.
fn solutions(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("solution") && !name.ends_with("pvd") || name.starts_with('.'));
    names.sort();
    names
}

#[test]
fn each_rank_writes_its_piece_of_the_solution() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for case in [CASE, HIGH, IN_TIME] {
        std::fs::write(folder.path().join("case.toml"), case).unwrap();
        for n in [4, 2] {
            let set = "output.vtu=\"pieces\"";
            let ended = on_ranks(n, folder.path(), &["solve", "case.toml", "--output", "out", "--set", set]);
            assert!(ended.status.success(), "{n}: {}{}", text(&ended.stdout), text(&ended.stderr));
            // Pieces of an earlier run on more ranks are gone, and nothing is left of the folder where all were written.
            let pieces = (0..n).map(|rank| format!("solution_{rank:04}.vtu"));
            let expected: Vec<String> = ["solution.pvtu".into()].into_iter().chain(pieces).collect();
            assert_eq!(solutions(&out), expected);
            let report = report(&out);
            assert!(expected.iter().all(|name| report.pointer("/files").unwrap().get(name).is_some()));
            let cells = expected[1..].iter().map(|name| {
                let bytes = std::fs::read(out.join(name)).unwrap();
                let head = text(&bytes[..bytes.len().min(1 << 10)]);
                let after = head.split("NumberOfCells=\"").nth(1).unwrap();
                after.split('"').next().unwrap().parse::<u64>().unwrap()
            });
            assert_eq!(cells.sum::<u64>(), report.pointer("/mesh/n_cells").unwrap().as_u64().unwrap());
        }
    }
}

/// The mesh is refined by the first rank, which sends each its part and writes the whole solution.
#[test]
fn the_first_rank_sends_a_mesh_and_writes_one_file() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (case, more) in [(CASE, "output.fields=[\"gradient\", \"error\"]"), (HIGH, "output.picture=true")] {
        std::fs::write(folder.path().join("case.toml"), case.replace("[mesh]", "[mesh]\nrefine = 1"))
            .unwrap();
        let solution = |n: usize| {
            let output = format!("out-{n}");
            let arguments = ["solve", "case.toml", "--output", &output, "--set", more];
            let ended = on_ranks(n, folder.path(), &arguments);
            assert!(ended.status.success(), "{n}: {}{}", text(&ended.stdout), text(&ended.stderr));
            let out = folder.path().join(output);
            assert_eq!(out.join("picture.png").exists(), more.contains("picture"));
            femtile::mesh::io::read(&out.join("solution.vtu")).unwrap()
        };
        let alone = solution(1);
        for n in [2, 3] {
            let found = solution(n);
            assert_eq!((&found.points, &found.cells), (&alone.points, &alone.cells));
            assert!(found.node_fields.keys().eq(alone.node_fields.keys()));
            for (name, field) in &found.node_fields {
                let pairs = field.values.iter().zip(&alone.node_fields[name].values);
                let difference = pairs.map(|(found, alone)| (found - alone).abs()).fold(0.0, f64::max);
                assert!(difference < 1e-8, "{name} on {n} ranks: {difference}");
            }
        }
    }
}

#[test]
fn all_ranks_reach_each_other() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for n in [1, 2, 3, 5] {
        let ended = on_ranks(n, folder.path(), &["check"]);
        assert!(ended.status.success(), "{}", text(&ended.stderr));
        assert!(text(&ended.stdout).contains(&format!("ranks     {n}")), "{}", text(&ended.stdout));
    }
}

#[test]
fn an_error_ends_all_ranks_and_is_said_once() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("case.toml"), CASE.replace("\"1 + x\"", "\"0.5 - x\"")).unwrap();
    let begun = std::time::Instant::now();
    let ended = on_ranks(3, folder.path(), &["solve", "case.toml", "--output", "out"]);
    assert!(!ended.status.success());
    let said = text(&ended.stderr);
    assert_eq!(said.matches("error:").count(), 1, "{said}");
    assert!(said.contains("sigma"), "{said}");
    assert!(begun.elapsed().as_secs() < 10);
    assert!(!folder.path().join("out/report.json").exists());
}

/// The processes that a program has begun, by the kernel's tables.
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |process: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name, in parentheses, may hold anything.
        let behind = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
        behind.split(' ').nth(1) == Some(&parent.to_string())
    };
    numbers.filter(is_child).collect()
}

#[test]
fn a_rank_that_dies_ends_the_others_and_leaves_earlier_results() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("case.toml"), CASE).unwrap();
    let first = on_ranks(2, folder.path(), &["solve", "case.toml", "--output", "out"]);
    assert!(first.status.success());
    let before = std::fs::read(folder.path().join("out/report.json")).unwrap();
    // Longer than a minute, would it go on.
    let long = CASE
        .replace("[12, 10, 8]", "[60, 60, 60]")
        .replace("tolerance = 1e-12", "tolerance = 1e-14\npreconditioner = \"none\"");
    std::fs::write(folder.path().join("long.toml"), long).unwrap();
    let mut running =
        command(2, folder.path(), &["solve", "long.toml", "--output", "out", "--max-iterations", "1000000"])
            .stderr(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    let ranks = children(running.id());
    assert!(ranks.len() >= 2, "{ranks:?}");
    assert!(
        Command::new("kill").args(["-KILL", &ranks[ranks.len() - 1].to_string()]).status().unwrap().success()
    );
    let killed = std::time::Instant::now();
    let status = running.wait().unwrap();
    assert!(!status.success());
    assert!(killed.elapsed().as_secs() < 10, "{:?}", killed.elapsed());
    assert_eq!(std::fs::read(folder.path().join("out/report.json")).unwrap(), before);
}

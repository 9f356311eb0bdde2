//! The monodomain equation from case files: restarts, refusals, runs that end early.

#[path = "shared/stop_at.rs"]
mod stop_at;

use std::path::Path;

use femtile_cardiac::monodomain::Checkpoint;
use femtile_case::{Case, CaseError, Report, Silent, run, verify};
use femtile_linalg::krylov::Stop as KrylovStop;
use femtile_mesh::generate::{SquareConfig, square};
use stop_at::StopAt;

/// A pulse along a strip of 30 cells.
const STRIP: &str = r#"
[mesh]
generate = { kind = "square", cells = [30, 2], upper = [15, 1] }
[equation]
kind = "monodomain"
[membrane]
model = "aliev-panfilov"
[[stimulus]]
where = "x < 1.1"
strength = 1.0
duration = 1.0
[time]
method = "godunov"
end = 12
step = 0.1
[solver]
device = "cpu"
[output]
functionals = [{ name = "mean", kind = "mean" }, { name = "near", kind = "value_at", of = "activation", point = [2, 0.5] }]
"#;

fn parsed(folder: &Path, text: &str) -> Result<Case, CaseError> {
    let mut case = Case::parse(&folder.join("case.toml"), text.into())?;
    case.file.output.directory = folder.join("out");
    Ok(case)
}

fn solve(folder: &Path, text: &str) -> Result<Report, CaseError> {
    run(&parsed(folder, text)?, &mut Silent)
}

/// The strip with some text replaced by another.
fn with(pairs: &[(&str, &str)]) -> String {
    pairs.iter().fold(STRIP.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

/// The key and the message of a refusal, by the check of the file or of the run.
fn refusal(folder: &Path, text: &str) -> (String, String) {
    match solve(folder, text).unwrap_err() {
        CaseError::Input { key, message, .. } => (key.unwrap_or_default(), message),
        other => (String::new(), other.to_string()),
    }
}

#[test]
fn an_interrupted_run_goes_on_to_the_same_bits() {
    let implicit = ("\"godunov\"", "\"implicit-euler\"");
    let series = "frames = { every = 3 }\ntraces = { every = 0.5 }\ncheckpoint = { steps = 7 }";
    let (fixed, adaptive) = (format!("step = 0.1\n{series}"), format!("tolerance = 1e-3\n{series}"));
    for pairs in [
        vec![("step = 0.1", fixed.as_str())],
        vec![("\"godunov\"", "\"strang\""), ("step = 0.1", fixed.as_str())],
        vec![implicit, ("step = 0.1", fixed.as_str())],
        vec![implicit, ("step = 0.1", adaptive.as_str())],
    ] {
        let text = with(&pairs);
        let [whole, cut] = [0, 1].map(|_| tempfile::tempdir().unwrap());
        let report = solve(whole.path(), &text).unwrap();
        let time = report.time.as_ref().unwrap();
        assert_eq!((time.stop, time.reached), ("finished", 12.0), "{:?}", report.warnings);
        assert!(report.functionals["last_activation"] > 5.0, "{:?}", report.functionals);
        let mut case = parsed(cut.path(), &text).unwrap();
        let first = run(&case, &mut StopAt::new(5.0)).unwrap();
        assert_eq!(first.time.as_ref().unwrap().stop, "interrupted");
        case.file.time.as_mut().unwrap().restart = true;
        let second = run(&case, &mut Silent).unwrap();
        assert_eq!(second.functionals, report.functionals);
        let differing: Vec<_> =
            report.files.iter().filter(|(name, file)| second.files.get(*name) != Some(*file)).collect();
        assert!(differing.is_empty() && second.files.len() == report.files.len(), "{differing:?}");
        assert_eq!(verify(&case.file.output.directory).unwrap(), []);
    }
}

const MODEL: &str = "
name = 'relaxing'
[voltage]
name = 'V'
initial = 0
current = 'V'
";

#[test]
fn a_checkpoint_of_another_case_is_refused_and_says_what_is_another() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.toml"), MODEL).unwrap();
    let fibres = |along: [f64; 3]| {
        let config = SquareConfig { cells: [30, 2], upper: [15.0, 1.0], ..SquareConfig::default() };
        let mut mesh = square(&config).unwrap();
        let values = (0..mesh.n_cells()).flat_map(|_| along).collect();
        mesh.cell_fields.insert("fibre".into(), femtile_mesh::Field { n_components: 3, values });
        femtile_mesh::io::write(&folder.path().join("tissue.vtu"), &mesh).unwrap();
    };
    fibres([1.0, 0.0, 0.0]);
    let begin = with(&[
        ("generate = { kind = \"square\", cells = [30, 2], upper = [15, 1] }", "file = \"tissue.vtu\""),
        ("\"monodomain\"", "\"monodomain\"\nsigma = { fibre = \"fibre\", along = 1, across = 0.5 }"),
        ("\"aliev-panfilov\"", "\"mine.toml\"\n[activation]\nthreshold = 0.1"),
        ("end = 12", "end = 2\ncheckpoint = { steps = 10 }"),
    ]);
    let resumed = |pairs: &[(&str, &str)]| {
        let text = pairs.iter().fold(begin.clone(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        solve(folder.path(), &text.replace("[time]", "[time]\nrestart = true"))
    };
    let refused = |pairs: &[(&str, &str)], what: &str| {
        let said = resumed(pairs).unwrap_err().to_string();
        assert!(said.contains(what) && said.contains("checkpoint.bin"), "{what}: {said}");
    };
    refused(&[], "without `restart`");
    let _ = solve(folder.path(), &begin).unwrap();
    for (pair, what) in [
        (("across = 0.5", "across = 0.6"), "another equation, model"),
        (("strength = 1.0", "strength = 2.0"), "another equation, model, stimulus"),
        (("\"godunov\"", "\"strang\""), "another method, start, step"),
        (("step = 0.1", "step = 0.05"), "another method, start, step"),
        (("step = 0.1", "step = 0.1\nmass = \"lumped\""), "mass matrix"),
        (("device = \"cpu\"", "preconditioner = \"amg\""), "preconditioner"),
    ] {
        refused(&[pair], what);
    }
    // What files hold counts, not their names.
    fibres([0.0, 1.0, 0.0]);
    refused(&[], "another mesh");
    fibres([1.0, 0.0, 0.0]);
    std::fs::write(folder.path().join("mine.toml"), MODEL.replace("current = 'V'", "current = '2*V'"))
        .unwrap();
    refused(&[], "another equation, model");
    std::fs::write(folder.path().join("mine.toml"), MODEL).unwrap();
    // The version of the program is the first part of the fingerprint.
    let file = folder.path().join("out/checkpoint.bin");
    let bytes = std::fs::read(&file).unwrap();
    let mut other = Checkpoint::read(&mut bytes.as_slice()).unwrap();
    other.fingerprint[0] ^= 1;
    let mut of_other_version = Vec::new();
    other.write(&mut of_other_version).unwrap();
    std::fs::write(&file, of_other_version).unwrap();
    refused(&[], "another version of femtile");
    for (place, what) in [(8, "it has another version"), (bytes.len() - 1, "checksum")] {
        let mut other = bytes.clone();
        other[place] ^= 1;
        std::fs::write(&file, other).unwrap();
        refused(&[], what);
    }
    std::fs::write(&file, &bytes[..bytes.len() - 3]).unwrap();
    refused(&[], "ends too early");
    std::fs::write(&file, &bytes).unwrap();
    let later = resumed(&[("end = 2", "end = 3")]).unwrap();
    assert_eq!(later.time.map(|time| (time.reached, time.steps)), Some((3.0, 30)));
}

#[test]
fn bad_input_is_refused_at_its_key_with_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let second = "[[stimulus]]\nwhere = \"x < 1.1\"\nstrength = 1\nduration = 1\n[[stimulus]]";
    for (from, to, key, words) in [
        ("\"aliev-panfilov\"", "\"aliev-panfilof\"", "membrane.model", "aliev-panfilov"),
        ("\"aliev-panfilov\"", "\"ten-tusscher-panfilov-2006:mid\"", "membrane.model", "epi"),
        ("\"aliev-panfilov\"", "\"mine.toml\"", "membrane.model", "mine.toml cannot be read"),
        ("\"aliev-panfilov\"", "\"mine.model:epi\"", "membrane.model", "mine.model cannot be read"),
        ("[[stimulus]]", "constants = { eps = 1 }\n[[stimulus]]", "membrane.constants", "eps"),
        ("[[stimulus]]", "capacitance = 0\n[[stimulus]]", "membrane.capacitance", "0 is not positive"),
        (
            "[[stimulus]]",
            "[[membrane.region]]\ncells = \"scar\"\nmodel = \"aliev-panfilov\"\n[[stimulus]]",
            "membrane.region[0].cells",
            "no cell or facet has the tag `scar`",
        ),
        ("x < 1.1", "x < -1", "stimulus[0].where", "touches no node; the mesh reaches from x = 0 … 15"),
        ("x < 1.1", "x + 1", "stimulus[0].where", "no comparison"),
        ("x < 1.1", "u < 1", "stimulus[0].where", "u"),
        ("where = \"x < 1.1\"", "tag = \"apex\"", "stimulus[0].tag", "named tags: "),
        ("where = \"x < 1.1\"", "box = [[20, 0, 0], [21, 1, 0]]", "stimulus[0].box", "touches no node"),
        (
            "where = \"x < 1.1\"",
            "sphere = { centre = [0, 5, 0], radius = 1 }",
            "stimulus[0].sphere",
            "touches no node",
        ),
        ("where = \"x < 1.1\"", "tag = \"1\"\nwhere = \"x < 1\"", "stimulus[0]", "exactly one of"),
        ("duration = 1.0", "duration = 0", "stimulus[0].duration", "not positive"),
        ("duration = 1.0", "duration = 1.0\ncount = 3", "stimulus[0].period", "give a longer `period`"),
        ("strength = 1.0", "strength = inf", "stimulus[0].strength", "not finite"),
        ("[[stimulus]]", second, "", ""),
        ("step = 0.1", "step = 0", "time.step", "0 is not positive"),
        ("step = 0.1", "step = -0.1", "time.step", "-0.1 is not positive"),
        ("step = 0.1", "step = 20", "time.step", "longer than the run"),
        ("step = 0.1", "steps = 0", "time.steps", "at least one"),
        ("step = 0.1", "step = 0.1\nsteps = 7", "time.end", "exactly one of"),
        ("end = 12", "end = -1", "time.end", "after `start`"),
        ("step = 0.1", "tolerance = 1e-3", "time.tolerance", "implicit-euler"),
        ("step = 0.1", "step = 0.1\ntheta = 0.2", "time.theta", "unstable"),
        ("\"godunov\"", "\"bdf2\"", "time.method", "strang"),
        ("\"godunov\"", "\"implicit-euler\"\nmass = \"lumped\"", "time.mass", "splitting"),
        ("[[stimulus]]", "gates = \"half\"\n[[stimulus]]", "membrane.gates", "single"),
        ("[membrane]", "sigma = -1\n[membrane]", "equation.sigma", "-1"),
        ("[membrane]", "sigma = \"x - 7\"\n[membrane]", "equation.sigma", "in cell"),
        (
            "[membrane]",
            "sigma = { fibre = \"fibre\", along = 2, across = 1 }\n[membrane]",
            "equation.sigma.fibre",
            "no cell field `fibre`",
        ),
        ("[membrane]", "sigma = \"1 + u\"\n[membrane]", "equation.sigma", "cannot depend on u or t"),
        ("[membrane]", "sigma = \"1 + t\"\n[membrane]", "equation.sigma", "`t`"),
        ("[membrane]", "source = 1\n[membrane]", "equation.source", "[[stimulus]]"),
        (
            "[output]",
            "[ecg]\nelectrodes = { V1 = [15, 1, 0] }\n[output]",
            "ecg.electrodes",
            "`V1` lies at node",
        ),
        ("\"activation\"", "\"activated\"", "output.functionals[1].of", "did you mean `activation`?"),
    ] {
        let text = with(&[(from, to)]);
        if key.is_empty() && words.is_empty() {
            assert!(solve(folder.path(), &text).is_ok(), "{to}");
            continue;
        }
        let (found, message) = refusal(folder.path(), &text);
        assert!(found == key || key.is_empty(), "{to}: {found}: {message}");
        assert!(message.contains(words), "{to}: {found}: {message}");
    }
    // The second stimulus is named as such.
    let text = with(&[("[[stimulus]]", second)])
        .replace("where = \"x < 1.1\"\nstrength = 1.0", "where = \"x > 99\"\nstrength = 1.0");
    assert_eq!(refusal(folder.path(), &text).0, "stimulus[1].where");
}

#[test]
fn fibres_are_normalised_with_a_note_and_refused_where_they_have_no_direction() {
    let folder = tempfile::tempdir().unwrap();
    let tissue = |length: f64, without: Option<usize>| {
        let config = SquareConfig { cells: [30, 2], upper: [15.0, 1.0], ..SquareConfig::default() };
        let mut mesh = square(&config).unwrap();
        let along = |cell| if without == Some(cell) { 0.0 } else { length };
        let values = (0..mesh.n_cells()).flat_map(|cell| [along(cell), 0.0, 0.0]).collect();
        mesh.cell_fields.insert("fibre".into(), femtile_mesh::Field { n_components: 3, values });
        femtile_mesh::io::write(&folder.path().join("tissue.vtu"), &mesh).unwrap();
    };
    let text = with(&[
        ("generate = { kind = \"square\", cells = [30, 2], upper = [15, 1] }", "file = \"tissue.vtu\""),
        ("\"monodomain\"", "\"monodomain\"\nsigma = { fibre = \"fibre\", along = 1, across = 0.5 }"),
    ]);
    tissue(2.0, None);
    let report = solve(folder.path(), &text).unwrap();
    let notes: Vec<_> = report.warnings.iter().filter(|warning| warning.contains("fibre")).collect();
    assert!(notes.len() == 1 && notes[0].contains("of length 2"), "{:?}", report.warnings);
    // Twice as long or not, they conduct as vectors of length one.
    tissue(1.0, None);
    let expected = solve(folder.path(), &text).unwrap();
    assert!(!expected.warnings.iter().any(|warning| warning.contains("fibre")), "{:?}", expected.warnings);
    assert_eq!(report.functionals, expected.functionals);
    tissue(1.0, Some(17));
    let (key, message) = refusal(folder.path(), &text);
    assert_eq!(key, "equation.sigma.fibre");
    assert!(message.contains("in cell 17 is of length zero"), "{message}");
    let (key, message) = refusal(folder.path(), &text.replace("fibre = \"fibre\"", "fibre = \"fibres\""));
    assert_eq!(key, "equation.sigma.fibre");
    assert!(message.contains("it has: fibre"), "{message}");
}

#[test]
fn a_run_that_cannot_go_on_says_where_and_keeps_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let text = with(&[
        ("\"godunov\"", "\"implicit-euler\""),
        (
            "[time]",
            "[[stimulus]]\nwhere = \"x > 13\"\nstrength = 1e308\nstart = 7\nduration = 1\n[time]\ncheckpoint = { steps = 1000 }",
        ),
    ]);
    let report = solve(folder.path(), &text).unwrap();
    let time = report.time.as_ref().unwrap();
    assert_eq!(time.stop, "solver-failed");
    assert!((time.reached - 7.0).abs() < 1e-9 && time.rejected.is_some_and(|n| n > 5), "{}", time.reached);
    assert_ne!(report.solve.stop, KrylovStop::Converged);
    let said = report.warnings.join("; ");
    for words in ["Newton's method did not converge", "at node", "where the potential is", "time 7"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // The state before the failure, from which a run goes on to the same end.
    let again = solve(folder.path(), &text.replace("[time]", "[time]\nrestart = true")).unwrap();
    assert_eq!(again.time.as_ref().map(|time| time.reached), Some(time.reached));
    assert_eq!(again.functionals, report.functionals);
    // Splitting takes the same stimulus into a potential out of bounds.
    let report = solve(folder.path(), &text.replace("implicit-euler", "godunov")).unwrap();
    let said = report.warnings.join("; ");
    assert_eq!(report.time.unwrap().stop, "diverged");
    assert!(said.contains("the potential at node") && said.contains("take shorter steps"), "{said}");
}

#[test]
fn tolerance_mass_and_gates_of_a_case_have_their_effect() {
    let folder = tempfile::tempdir().unwrap();
    let solver = "device = \"cpu\"";
    let solved = |pairs: &[(&str, &str)]| solve(folder.path(), &with(pairs)).unwrap();
    let [usual, loose, tight] = ["", "\ntolerance = 1e-3", "\ntolerance = 1e-9"]
        .map(|tolerance| solved(&[(solver, &format!("{solver}{tolerance}"))]));
    let mean = |report: &Report| report.functionals["mean"];
    let errors = [&usual, &loose].map(|report| (mean(report) - mean(&tight)).abs());
    assert!(errors[0] > 0.0 && errors[0] < 0.1 * errors[1] && errors[1] < 0.01, "{errors:?}");
    let lumped = solved(&[("step = 0.1", "step = 0.1\nmass = \"lumped\"")]);
    assert!((mean(&lumped) - mean(&usual)).abs() > 10.0 * errors[0]);
    let many_states =
        [("\"aliev-panfilov\"", "\"ten-tusscher-panfilov-2006\""), ("strength = 1.0", "strength = 50")];
    let single = [("\"ten-tusscher-panfilov-2006\"", "\"ten-tusscher-panfilov-2006\"\ngates = \"single\"")];
    let [of_64, of_32] = [&many_states[..], &[&many_states[..], &single].concat()].map(solved);
    let difference = (mean(&of_64) - mean(&of_32)).abs();
    assert!(difference > 0.0 && difference < 0.01, "{difference}");
    for (pairs, key) in [
        ([("step = 0.1", "step = 0.1\nmass = \"lumped\""), ("\"godunov\"", "\"implicit-euler\"")], "mass"),
        (
            [
                ("\"aliev-panfilov\"", "\"aliev-panfilov\"\ngates = \"single\""),
                ("\"godunov\"", "\"implicit-euler\""),
            ],
            "gates",
        ),
    ] {
        let (at, message) = refusal(folder.path(), &with(&pairs));
        assert!(at.contains(key) || message.contains(key), "{at}: {message}");
    }
}

#[test]
fn ranks_have_the_maps_traces_and_states_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let text = with(&[
        (
            "step = 0.1",
            "step = 0.1\nframes = { every = 4 }\ntraces = { every = 1 }\ncheckpoint = { steps = 40 }",
        ),
        ("device = \"cpu\"", "device = \"cpu\"\ntolerance = 1e-9\nranks = 1"),
    ]);
    let alone = solve(folder.path(), &text).unwrap();
    let traces = |folder: &Path| std::fs::read_to_string(folder.join("out/traces.csv")).unwrap();
    let of_one = traces(folder.path());
    let on_three = text.replace("ranks = 1", "ranks = 3");
    let found = solve(folder.path(), &on_three).unwrap();
    assert_eq!(found.ranks.as_ref().map(|ranks| ranks.n_ranks), Some(3));
    let near = |found: &Report| {
        for (name, expected) in &alone.functionals {
            let value = found.functionals[name];
            assert!((value - expected).abs() < 1e-6 * expected.abs().max(1.0), "{name}: {value}, {expected}");
        }
    };
    near(&found);
    let of_three = traces(folder.path());
    assert_eq!(of_three.lines().count(), of_one.lines().count());
    let numbers = |text: &str| -> Vec<f64> {
        text.lines().skip(1).flat_map(|row| row.split(',')).map(|word| word.parse().unwrap()).collect()
    };
    for (found, expected) in numbers(&of_three).iter().zip(numbers(&of_one)) {
        assert!((found - expected).abs() < 1e-6, "{found} and {expected}");
    }
    let names = |report: &Report| report.files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(&alone));
    // What three ranks left, two go on from.
    let longer = text.replace("end = 12", "end = 14");
    let expected = solve(folder.path(), &longer).unwrap();
    solve(folder.path(), &on_three).unwrap();
    let resumed = longer.replace("ranks = 1", "ranks = 2").replace("[time]", "[time]\nrestart = true");
    let resumed = solve(folder.path(), &resumed).unwrap();
    let [found, expected] = [&resumed, &expected].map(|report| report.functionals["mean"]);
    assert!((found - expected).abs() < 1e-6, "{found} and {expected}");
    // Rows before the state are those of three ranks.
    let kept: Vec<_> = of_three.lines().take(10).collect();
    assert_eq!(traces(folder.path()).lines().take(10).collect::<Vec<_>>(), kept);
    let (key, message) = refusal(folder.path(), &on_three.replace("godunov", "implicit-euler"));
    assert!(key == "solver.ranks" && message.contains("splitting"), "{key}: {message}");
}

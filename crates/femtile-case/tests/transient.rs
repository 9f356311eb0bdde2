//! Equations in time on meshes, from case files: results, series, restarts, refusals.

#[path = "shared/stop_at.rs"]
mod stop_at;

use std::path::Path;

use femtile_case::{Case, Silent, run, verify};
use femtile_time::implicit::Checkpoint;
use stop_at::StopAt;

/// u = (1 + t²)(1 + x + 2y) on squares, exact in space.
fn text(method: &str, time: &str, more: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cells = [6, 5]{more} }}\n\
         [equation]\nkind = \"diffusion\"\ndiffusion = 2\nreaction = -3\ninitial = \"1 + x + 2*y\"\n\
         source = \"2*t*(1 + x + 2*y) + 3*(1 + t^2)*(1 + x + 2*y)\"\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = \"(1 + t^2)*(1 + 2*y)\"\n\
         [[boundary]]\nwhere = \"xmax\"\nneumann = \"2*(1 + t^2)\"\n\
         [[boundary]]\nwhere = \"ymin\"\ndirichlet = \"(1 + t^2)*(1 + x)\"\n\
         [[boundary]]\nwhere = \"ymax\"\nrobin = {{ coefficient = 4, value = \"(1 + t^2)*(3 + x) + (1 + t^2)\" }}\n\
         [time]\nmethod = \"{method}\"\nend = 2\n{time}\n\
         [solver]\ntolerance = 1e-11\n\
         [output]\nfunctionals = [\n\
         {{ name = \"error\", kind = \"error_l2\", exact = \"(1 + t^2)*(1 + x + 2*y)\" }},\n\
         {{ name = \"corner\", kind = \"value_at\", point = [1, 1] }} ]\n"
    )
}

fn case(folder: &Path, text: String) -> Case {
    let path = folder.join("case.toml");
    let mut case = Case::parse(&path, text).unwrap();
    case.file.output.directory = folder.join("out");
    case
}

#[test]
fn polynomials_of_the_order_of_a_scheme_are_exact_in_time() {
    for more in ["", ", cell = \"quadrilateral\""] {
        for (method, bound) in
            [("implicit-euler", 0.5), ("bdf2", 1e-8), ("sdirk2", 2e-3), ("crank-nicolson", 1e-8)]
        {
            let folder = tempfile::tempdir().unwrap();
            let case = case(folder.path(), text(method, "steps = 40", more));
            let report = run(&case, &mut Silent).unwrap();
            let time = report.time.as_ref().unwrap();
            assert_eq!((time.scheme, time.steps, time.stop, time.reached), (method, 40, "finished", 2.0));
            let error = report.functionals["error"];
            assert!(error < bound, "{method}: {error}");
            assert!(time.iterations.unwrap() > 0);
        }
    }
}

#[test]
fn frames_traces_and_the_collection_are_written_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let time = "steps = 40\nframes = [0, 0.5, 2]\ntraces = { every = 0.3 }";
    let case = case(folder.path(), text("bdf2", time, ""));
    let report = run(&case, &mut Silent).unwrap();
    let out = &case.file.output.directory;
    for number in 0..3 {
        assert!(report.files.contains_key(&format!("frames/u_{number:04}.vtu")));
    }
    let collection = std::fs::read_to_string(out.join("solution.pvd")).unwrap();
    assert!(collection.contains("timestep=\"0.5\"") && collection.contains("frames/u_0002.vtu"));
    let table = std::fs::read_to_string(out.join("traces.csv")).unwrap();
    let rows: Vec<Vec<f64>> = table
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|text| text.parse().unwrap()).collect())
        .collect();
    assert!(table.starts_with("t,error,corner\n"));
    // 0, 0.3, …, 1.8 and the end.
    assert_eq!(rows.len(), 8);
    for row in &rows {
        assert!((row[2] - 4.0 * (1.0 + row[0] * row[0])).abs() < 1e-4, "{row:?}");
        assert!(row[1] < 1e-4, "{row:?}");
    }
    assert!(std::fs::read_to_string(out.join("traces.svg")).unwrap().starts_with("<svg"));
    assert_eq!(verify(out).unwrap(), []);
}

#[test]
fn an_interrupted_run_goes_on_to_the_same_bits() {
    for steps in ["steps = 30", "tolerance = 1e-3"] {
        let time = format!(
            "{steps}\nframes = {{ every = 0.25 }}\ntraces = {{ every = 0.25 }}\ncheckpoint = {{ steps = 7 }}"
        );
        let [whole, cut] = [0, 1].map(|_| tempfile::tempdir().unwrap());
        let whole = case(whole.path(), text("bdf2", &time, ""));
        let report = run(&whole, &mut Silent).unwrap();
        let mut parts = case(cut.path(), text("bdf2", &time, ""));
        let first = run(&parts, &mut StopAt::new(0.8)).unwrap();
        assert_eq!(first.time.as_ref().unwrap().stop, "interrupted");
        parts.file.time.as_mut().unwrap().restart = true;
        let second = run(&parts, &mut Silent).unwrap();
        assert_eq!(second.functionals, report.functionals);
        assert_eq!(second.files, report.files, "{steps}");
        assert_eq!(verify(&parts.file.output.directory).unwrap(), []);
    }
}

#[test]
fn a_checkpoint_of_another_case_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let time = "steps = 10\ncheckpoint = { steps = 5 }";
    let mut first = case(folder.path(), text("bdf2", time, ""));
    run(&first, &mut StopAt::new(1.0)).unwrap();
    first.file.time.as_mut().unwrap().restart = true;
    for (from, to, what) in [
        ("diffusion = 2", "diffusion = 3", "another equation"),
        ("dirichlet = \"(1 + t^2)*(1 + x)\"", "dirichlet = 0", "another equation, boundary"),
        ("cells = [6, 5]", "cells = [6, 6]", "another mesh"),
        ("bdf2", "sdirk2", "another method"),
        ("tolerance = 1e-11", "tolerance = 1e-10", "another method, start or tolerance"),
    ] {
        let mut other = case(folder.path(), text("bdf2", time, "").replace(from, to));
        other.file.time.as_mut().unwrap().restart = true;
        let error = run(&other, &mut Silent).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("checkpoint.bin"), "{to}: {error}");
    }
    let file = first.file.output.directory.join("checkpoint.bin");
    let bytes = std::fs::read(&file).unwrap();
    // The version of the program is the first part of the fingerprint.
    let mut other = Checkpoint::read(&mut bytes.as_slice()).unwrap();
    other.fingerprint[0] ^= 1;
    let mut of_other_version = Vec::new();
    other.write(&mut of_other_version).unwrap();
    let mut of_other_format = bytes.clone();
    of_other_format[8] ^= 1;
    for (other, what) in
        [(of_other_version, "another version of femtile"), (of_other_format, "it has another version")]
    {
        std::fs::write(&file, other).unwrap();
        let error = run(&first, &mut Silent).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    // A bit of a value, and one of the checksum.
    for place in [bytes.len() - 40, bytes.len() - 1] {
        let mut other = bytes.clone();
        other[place] ^= 0x40;
        std::fs::write(&file, other).unwrap();
        let error = run(&first, &mut Silent).unwrap_err().to_string();
        assert!(error.contains("checksum"), "{error}");
    }
    std::fs::write(&file, bytes).unwrap();
    let mut longer = case(folder.path(), text("bdf2", "steps = 11\ncheckpoint = { steps = 5 }", ""));
    longer.file.time.as_mut().unwrap().restart = true;
    let error = run(&longer, &mut Silent).unwrap_err().to_string();
    assert!(error.contains("length"), "{error}");
    std::fs::write(first.file.output.directory.join("checkpoint.bin"), b"FEMTILEC").unwrap();
    let error = run(&first, &mut Silent).unwrap_err().to_string();
    assert!(error.contains("checkpoint"), "{error}");
    std::fs::remove_file(first.file.output.directory.join("checkpoint.bin")).unwrap();
    let error = run(&first, &mut Silent).unwrap_err().to_string();
    assert!(error.contains("without `restart`"), "{error}");
}

#[test]
fn a_checkpoint_of_other_curves_facets_or_names_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let time = "steps = 10\ncheckpoint = { steps = 5 }";
    let refused = |first: &mut Case, other: &mut Case| {
        run(first, &mut Silent).unwrap();
        other.file.time.as_mut().unwrap().restart = true;
        let error = run(other, &mut Silent).unwrap_err().to_string();
        assert!(error.contains("another mesh"), "{error}");
    };
    let of_order = |order: usize| {
        let cells = format!(", cell = \"quadrilateral\", deform = 0.1, order = {order}");
        case(folder.path(), text("bdf2", time, &cells))
    };
    refused(&mut of_order(2), &mut of_order(1));
    refused(&mut of_order(2), &mut of_order(3));
    let mesh = femtile_mesh::generate::square(&Default::default()).unwrap();
    let in_file = |change: &dyn Fn(&mut femtile_mesh::Mesh)| {
        let mut mesh = mesh.clone();
        change(&mut mesh);
        femtile_mesh::io::write(&folder.path().join("mesh.msh"), &mesh).unwrap();
        let text = format!(
            "[mesh]\nfile = \"mesh.msh\"\n[equation]\nkind = \"diffusion\"\ninitial = \"1 + x\"\n\
             [[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[time]\nmethod = \"bdf2\"\nend = 0.5\n{time}\n"
        );
        case(folder.path(), text)
    };
    // The mesh is read in the run: each case writes its own before.
    let mut first = in_file(&|_| ());
    run(&first, &mut Silent).unwrap();
    let tags = mesh.facets.tags.clone();
    let exchanged = |mesh: &mut femtile_mesh::Mesh| {
        mesh.facets.tags = tags
            .iter()
            .map(|tag| {
                if *tag == 1 {
                    2
                } else if *tag == 2 {
                    1
                } else {
                    *tag
                }
            })
            .collect();
    };
    let renamed = |mesh: &mut femtile_mesh::Mesh| {
        let names: Vec<_> = mesh.tag_names.clone().into_iter().collect();
        let (a, b) = (&names[0], &names[1]);
        mesh.tag_names.insert(a.0, b.1.clone());
        mesh.tag_names.insert(b.0, a.1.clone());
    };
    for change in [&exchanged as &dyn Fn(&mut femtile_mesh::Mesh), &renamed] {
        let mut other = in_file(change);
        other.file.time.as_mut().unwrap().restart = true;
        let error = run(&other, &mut Silent).unwrap_err().to_string();
        assert!(error.contains("another mesh"), "{error}");
    }
    first = in_file(&|_| ());
    first.file.time.as_mut().unwrap().restart = true;
    run(&first, &mut Silent).unwrap();
}

#[test]
fn a_restart_keeps_frames_and_rows_of_its_own_times_and_columns_alone() {
    let folder = tempfile::tempdir().unwrap();
    let of = |every: f64, name: &str| {
        let time = format!(
            "steps = 8\nframes = {{ every = {every} }}\ntraces = {{ every = 0.5 }}\ncheckpoint = {{ steps = 4 }}"
        );
        case(folder.path(), text("bdf2", &time, "").replace("\"corner\"", name))
    };
    let first = of(1.0, "\"corner, upper\"");
    run(&first, &mut StopAt::new(1.4)).unwrap();
    let table = || std::fs::read_to_string(first.file.output.directory.join("traces.csv")).unwrap();
    assert!(table().starts_with("t,error,\"corner, upper\"\n0.0,"), "{}", table());
    let resume = |mut case: Case| {
        case.file.time.as_mut().unwrap().restart = true;
        run(&case, &mut Silent).unwrap()
    };
    let again = resume(of(1.0, "\"corner, upper\""));
    assert_eq!((again.files.contains_key("frames/u_0000.vtu"), table().lines().count()), (true, 6));
    // The frame with number 1 is one of another time, and the column is another one.
    run(&first, &mut StopAt::new(1.4)).unwrap();
    let other = resume(of(0.5, "\"edge\""));
    assert!(!other.files.contains_key("frames/u_0001.vtu"), "{:?}", other.files);
    assert!(table().starts_with("t,error,edge\n") && !table().contains("\n0.0,"), "{}", table());
}

#[test]
fn settings_without_a_meaning_are_refused_with_their_key() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |from: &str, to: &str, words: [&str; 2]| {
        let text = text("bdf2", "steps = 10", "");
        assert!(text.contains(from), "{from}");
        let error = Case::parse(&folder.path().join("case.toml"), text.replace(from, to)).unwrap_err();
        let error = error.to_string();
        for word in words {
            assert!(error.contains(word), "{to}: {error}");
        }
    };
    for (from, to, words) in [
        ("steps = 10", "steps = 0", ["time.steps", "at least one"]),
        ("steps = 10", "steps = 10\ntolerance = 1e-3", ["time.tolerance", "not both"]),
        ("steps = 10", "", ["time.end", "give `steps`"]),
        ("steps = 10", "tolerance = -1", ["time.tolerance", "not positive"]),
        ("steps = 10", "steps = 10\nfirst_step = 0.1", ["time.first_step", "goes with `tolerance`"]),
        ("end = 2", "end = -1", ["time.end", "after `start`"]),
        ("steps = 10", "steps = 10\nframes = [3]", ["time.frames", "not between"]),
        ("steps = 10", "steps = 10\nframes = { every = 0 }", ["time.frames", "not positive"]),
        ("steps = 10", "steps = 10\ncheckpoint = {}", ["time.checkpoint", "exactly one"]),
        ("\"bdf2\"", "\"adi\"", ["time.method", "on a mesh take"]),
        ("reaction = -3", "lambda = 3", ["equation.lambda", "diffusion, reaction"]),
        ("reaction = -3", "convection = [1, 0]", ["equation.convection", "adi"]),
        ("[solver]", "[solver]\nprecision = \"f32\"", ["solver.precision", "f64"]),
        (
            "kind = \"square\", cells = [6, 5]",
            "kind = \"grid\", nodes = [5, 5]",
            ["time.method", "take a mesh"],
        ),
    ] {
        refused(from, to, words);
    }
}

#[test]
fn growth_and_data_that_are_no_numbers_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    // u' = 0.5 u without flux: u = exp(t/2).
    let growing = "[mesh]\ngenerate = { kind = \"box\", cells = [2, 2, 2] }\n[equation]\nkind = \"diffusion\"\n\
                   reaction = 0.5\ninitial = 1\n[time]\nmethod = \"sdirk2\"\nend = 2\nsteps = 200\n\
                   [output]\nfunctionals = [{ name = \"mean\", kind = \"mean\" }]\n";
    let report = run(&case(folder.path(), growing.into()), &mut Silent).unwrap();
    assert!((report.functionals["mean"] - 1f64.exp()).abs() < 1e-4);
    for (from, to, key) in [
        ("initial = \"1 + x + 2*y\"", "initial = \"1/(x - x)\"", "equation.initial"),
        ("diffusion = 2", "diffusion = \"0.5 - x\"", "equation.diffusion"),
        ("source = \"2*t", "source = \"1/(t - 1) + 2*t", "equation.source"),
    ] {
        let text = text("bdf2", "steps = 10", "").replace(from, to);
        let error = run(&case(folder.path(), text), &mut Silent).unwrap_err().to_string();
        assert!(error.contains(key), "{key}: {error}");
    }
    let infinite = text("bdf2", "steps = 10", "").replace("(1 + t^2)*(1 + 2*y)", "1/(t - 1)");
    let error = run(&case(folder.path(), infinite), &mut Silent).unwrap_err().to_string();
    assert!(error.contains("dirichlet"), "{error}");
}

/// Two rods of the unit length with temperatures 0 and 1 come to the mean that their capacities give.
#[test]
fn a_capacity_by_tag_gives_the_mean_of_the_contents_and_diffusivities_by_tag_are_told() {
    let text = |coefficients: &str| {
        format!(
            "[mesh]\ngenerate = {{ kind = \"square\", cells = [8, 2], upper = [2, 1] }}\n\
             [[region]]\nname = \"left\"\nwhere = \"x < 1\"\n[[region]]\nname = \"right\"\nwhere = \"x > 1\"\n\
             [equation]\nkind = \"diffusion\"\n{coefficients}initial = \"if(x < 1, 0, 1)\"\n\
             [time]\nmethod = \"bdf2\"\nend = 400\nsteps = 100\n\
             [output]\nfunctionals = [{{ name = \"mean\", kind = \"mean\" }}, {{ name = \"max\", kind = \"max\" }}]\n"
        )
    };
    let by_tag = |[left, right]: [f64; 2]| format!("{{ by_tag = {{ left = {left}, right = {right} }} }}");
    let end = |coefficients: String| {
        let folder = tempfile::tempdir().unwrap();
        let report = run(&case(folder.path(), text(&coefficients)), &mut Silent).unwrap();
        let is_told = report.warnings.iter().any(|warning| warning.contains("differs between tags"));
        (report.functionals["mean"], report.functionals["max"], is_told)
    };
    let [diffusion, capacity] = [[4.0, 1.0], [1.0, 3.0]].map(by_tag);
    let (mean, most, is_told) = end(format!("diffusion = {diffusion}\ncapacity = {capacity}\n"));
    // The initial value falls to 0 within the cells left of x = 1, a quarter wide: 3 + 1/8 of the content 4.
    assert!((mean - 3.125 / 4.0).abs() < 1e-6 && (most - mean).abs() < 1e-6, "{mean} {most}");
    assert!(!is_told);
    assert!(end(format!("diffusion = {diffusion}\n")).2);
    assert!(!end(format!("diffusion = {diffusion}\ncapacity = 1\n")).2);
    assert!(!end("diffusion = { by_tag = { left = 2 }, default = 2 }\n".into()).2);
}

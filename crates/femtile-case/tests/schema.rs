//! The schema of case files: published as it is, and refusing what the program refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use femtile_case::{Case, Silent, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the files among those of a folder that a validator, taplo, refuses, with all that it says.
fn refused(folder: &Path, what: &str) -> Option<(Vec<String>, String)> {
    let Some(taplo) = std::env::var_os("FEMTILE_TAPLO") else {
        eprintln!("SKIPPED: {what}: FEMTILE_TAPLO is not set: `./test` installs taplo from PyPI");
        return None;
    };
    fs::copy(root().join("schema/case.json"), folder.join("case.json")).unwrap();
    let output =
        Command::new(taplo).args(["check", "--colors", "never"]).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("found files"), "{said}");
    let paths = said.lines().filter(|line| line.contains("invalid file"));
    let names = paths.filter_map(|line| Some(line.rsplit_once('/')?.1.trim_end_matches('"').to_owned()));
    Some((names.collect(), said))
}

/// Writes a text that names the schema beside it.
fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), format!("#:schema case.json\n{text}")).unwrap();
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path, extension));
        } else if path.extension().is_some_and(|end| end == extension) {
            files.push(path);
        }
    }
    files.sort();
    files
}

#[test]
fn the_published_schema_is_that_of_the_program() {
    let published = fs::read_to_string(root().join("schema/case.json")).unwrap();
    let own = format!("{:#}\n", femtile_case::schema());
    assert!(published == own, "write it again: femtile schema > schema/case.json");
}

#[test]
fn examples_name_the_schema_and_keep_to_it() {
    let examples = files(&root().join("examples"), "toml");
    assert!(examples.len() > 20);
    let folder = tempfile::tempdir().unwrap();
    for (i, file) in examples.iter().enumerate() {
        let text = fs::read_to_string(file).unwrap();
        let schema = text.lines().next().unwrap().strip_prefix("#:schema ");
        let schema = schema.unwrap_or_else(|| panic!("{} does not name the schema", file.display()));
        assert!(file.with_file_name(schema).exists(), "{}: {schema}", file.display());
        write(folder.path(), &format!("{i}.toml"), &text);
    }
    if let Some((names, said)) = refused(folder.path(), "examples against the schema") {
        assert!(names.is_empty(), "{said}");
    }
}

/// A case that is sound; bad ones change a line of it or add to it.
const SOUND: &str = r#"
[mesh]
generate = { kind = "square", cells = [2, 2] }
[equation]
source = 1
[[boundary]]
where = "all"
dirichlet = 0
[solver]
device = "cpu"
[output]
vtu = false
plot = false
functionals = []
"#;

/// Texts of the sound case, and what stands in their place in a bad one.
const BAD: &[(&str, &str)] = &[
    ("[mesh]\n", "[mesh]\nfile = \"a.msh\"\n"),
    ("generate = { kind = \"square\", cells = [2, 2] }\n", ""),
    ("generate = { kind = \"square\", cells = [2, 2] }\n", "file = \"a.msh\"\ncheck = \"generated\"\n"),
    (
        "generate = { kind = \"square\", cells = [2, 2] }\n",
        "generate = { kind = \"square\", cells = [2, 2] }\ntags = \"MaterialIDs\"\n",
    ),
    ("[equation]", "refine = 11\n[equation]"),
    ("[equation]", "scale = 0\n[equation]"),
    ("[equation]", "scael = 1\n[equation]"),
    ("[2, 2]", "[0, 2]"),
    ("[2, 2]", "[2]"),
    ("[2, 2]", "[2.5, 2]"),
    ("[2, 2]", "[2, 2], order = 10, cell = \"quadrilateral\""),
    ("[2, 2]", "[2, 2], cell = \"hexahedron\""),
    ("kind = \"square\", cells = [2, 2]", "kind = \"ball\", h = 0"),
    ("kind = \"square\", cells = [2, 2]", "kind = \"ball\""),
    ("kind = \"square\", cells = [2, 2]", "kind = \"cylinder\", h = 0.5, height = -1"),
    ("kind = \"square\", cells = [2, 2]", "kind = \"ventricle\", h_mm = 0"),
    ("kind = \"square\"", "kind = \"sqare\""),
    ("[equation]", "[space]\ndegree = 11\n[equation]"),
    ("[equation]", "[space]\ncomponents = 0\n[equation]"),
    ("[equation]", "[[region]]\nname = \"7\"\nwhere = \"x < 0.5\"\n[equation]"),
    ("source = 1", "source = 1\nsigma = [[1, 0], [0]]"),
    ("source = 1", "source = 1\nsigma = [[1]]"),
    ("source = 1", "source = 1\nsigma = { by_tag = { a = 1 }, field = \"b\" }"),
    ("source = 1", "source = 1\nsigma = { fibre = \"f\", along = 1 }"),
    ("source = 1", "source = 1\nsigma = { fibre = \"f\", along = 1, across = 1, sheet = \"s\" }"),
    ("source = 1", "source = 1\nsigma = { intra = 1 }"),
    ("source = 1", "source = 1\ndiffusion = 1"),
    ("source = 1", "kind = \"diffusion\""),
    ("source = 1", "kind = \"monodomain\""),
    ("[solver]", "[time]\nend = 1\nsteps = 1\n[solver]"),
    ("[solver]", "[modes]\n[solver]"),
    ("[solver]", "[modes]\ncount = 0\n[solver]"),
    ("[solver]", "[membrane]\nmodel = \"aliev-panfilov\"\n[solver]"),
    ("where = \"all\"\n", ""),
    ("where = \"all\"", "where = \"all\"\nnodes = \"x < 1\""),
    ("where = \"all\"\ndirichlet = 0", "nodes = \"x < 1\"\nneumann = 0"),
    ("dirichlet = 0\n", ""),
    ("dirichlet = 0", "dirichlet = 0\nneumann = 1"),
    ("dirichlet = 0", "robin = { coefficient = 1 }"),
    ("dirichlet = 0", "dirichlet = 0\nperiodic = true"),
    ("[output]", "tolerance = 0\n[output]"),
    ("[output]", "tolerance = 1\n[output]"),
    ("[output]", "tolerance = \"small\"\n[output]"),
    ("[output]", "max_iterations = -1\n[output]"),
    ("[output]", "method = \"s-step-cg\"\nsteps = 7\npreconditioner = \"none\"\n[output]"),
    ("[output]", "steps = 2\n[output]"),
    ("[output]", "method = \"gmres\"\nrestart = 0\n[output]"),
    ("[output]", "restart = 10\n[output]"),
    ("[output]", "time_limit_s = -1\n[output]"),
    ("[output]", "precision = \"mixed\"\n[output]"),
    ("[output]", "memory_limit = \"8 GBB\"\n[output]"),
    ("[output]", "preconditioner = \"ilu\"\n[output]"),
    ("[output]", "[solver.amg]\nstrength = 0.1\n[output]"),
    ("[output]", "preconditioner = \"amg\"\n[solver.amg]\nstrength = 1\n[output]"),
    ("[output]", "preconditioner = \"amg\"\n[solver.amg]\ndegree = 17\n[output]"),
    ("[output]", "preconditioner = \"amg\"\n[solver.amg]\ninner = 2\n[output]"),
    ("[output]", "preconditioner = \"amg\"\n[solver.amg]\nsweeps = 2\n[output]"),
    ("[output]", "preconditioner = \"amg\"\n[solver.amg]\nsmoother = \"jacobi\"\ndegree = 2\n[output]"),
    ("[output]", "preconditioner = \"amg\"\n[solver.amg]\npatch_format = \"csr\"\n[output]"),
    ("[output]", "[solver.gmg]\nstart = \"full\"\n[output]"),
    ("[output]", "preconditioner = \"pmg\"\n[solver.pmg]\nsweeps = 0\n[output]"),
    ("device = \"cpu\"", "device = \"gpu\""),
    ("vtu = false", "vtu = \"volume\""),
    ("vtu = false", "vtu = false\ncompress = \"gzip\""),
    ("vtu = false", "vtu = false\nfields = [\"curl\"]"),
    ("functionals = []", "functionals = [{ kind = \"max\" }]"),
    ("functionals = []", "functionals = [{ name = \"a\", kind = \"median\" }]"),
    ("functionals = []", "functionals = [{ name = \"a\", kind = \"value_at\" }]"),
    (
        "functionals = []",
        "functionals = [{ name = \"a\", kind = \"value_at\", point = [0, 0], points = [[0, 0]] }]",
    ),
    ("functionals = []", "functionals = [{ name = \"a\", kind = \"value_at\", points = [] }]"),
    ("functionals = []", "functionals = [{ name = \"a b\", kind = \"along\", from = [0, 0], to = [1, 1] }]"),
    (
        "functionals = []",
        "functionals = [{ name = \"a\", kind = \"along\", from = [0, 0], to = [1, 1], points = 1 }]",
    ),
    ("[[boundary]]", "[[source]]\ntotal = 1\n[[boundary]]"),
    ("where = \"all\"\ndirichlet", "nodes = \"x < 1\"\nfrom = \"a\"\ndirichlet"),
    ("dirichlet = 0\n", "floating = { phi = false }\n"),
    ("dirichlet = 0\n", "floating = true\ndirichlet = 0\n"),
    ("[equation]", "[space]\naxisymmetric = true\nthickness = 2\n[equation]"),
    ("[solver]", "[[interface]]\nbetween = [\"a\", \"b\"]\nfrom = \"a\"\nconductance = 1\n[solver]"),
    ("[solver]", "[[interface]]\nwhere = \"a\"\nname = \"b\"\nconductance = 1\n[solver]"),
    ("[solver]", "[[interface]]\nbetween = [1]\nconductance = 1\n[solver]"),
    ("[solver]", "[[periodic]]\nfrom = \"xmin\"\n[solver]"),
];

/// An equation in time that is sound, and what makes it a bad one.
const SOUND_IN_TIME: &str = r#"
[mesh]
generate = { kind = "square", cells = [2, 2] }
[equation]
kind = "diffusion"
initial = "x"
[time]
method = "bdf2"
end = 1
steps = 2
[solver]
device = "cpu"
[output]
vtu = false
plot = false
"#;

const BAD_IN_TIME: &[(&str, &str)] = &[
    ("steps = 2", "steps = 0"),
    ("steps = 2", "tolerance = 0"),
    ("steps = 2", "steps = 2\nframes = { every = 0 }"),
    ("steps = 2", "steps = 2\ncheckpoint = {}"),
    ("steps = 2", "steps = 2\ncheckpoint = { steps = 1, minutes = 1 }"),
    ("steps = 2", "steps = 2\nmass = \"diagonal\""),
    ("end = 1\n", ""),
    ("vtu = false", "vtu = false\nmatrix = [\"xmin\", \"xmax\"]"),
];

/// A form in time that is sound, and what makes it a bad one.
const SOUND_FORM: &str = r#"
[mesh]
generate = { kind = "square", cells = [2, 2] }
[unknown]
phi = {}
[equation]
kind = "form"
flux = "grad(phi)"
enthalpy = "phi"
[[boundary]]
where = "xmin"
flux = "1"
floating = { phi = false }
[time]
end = 1
steps = 2
[solver]
device = "cpu"
[output]
vtu = false
plot = false
"#;

const BAD_FORMS: &[(&str, &str)] = &[
    ("enthalpy = \"phi\"", "enthalpy = \"phi\"\ncapacity = 1"),
    ("phi = false", "phi = true"),
    ("[unknown]\nphi = {}\n", ""),
];

/// A heart that is sound, and what makes it a bad one.
const SOUND_HEART: &str = r#"
[mesh]
generate = { kind = "square", cells = [2, 2] }
[equation]
kind = "monodomain"
[membrane]
model = "aliev-panfilov"
[[stimulus]]
where = "x < 0.5"
strength = 1
duration = 1
[time]
end = 1
step = 0.5
[solver]
device = "cpu"
[output]
vtu = false
plot = false
"#;

const BAD_HEARTS: &[(&str, &str)] = &[
    ("where = \"x < 0.5\"\n", ""),
    ("where = \"x < 0.5\"\n", "where = \"x < 0.5\"\ntag = \"a\"\n"),
    ("step = 0.5", "step = 0"),
    ("step = 0.5", "step = 0.5\ntheta = 0.2"),
    ("[time]", "[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n[time]"),
    ("model = \"aliev-panfilov\"\n", ""),
    ("[time]", "[space]\naxisymmetric = true\n[time]"),
    ("[time]", "[[source]]\npoint = [0.5, 0.5]\ntotal = 1\n[time]"),
    ("kind = \"monodomain\"", "kind = \"monodomain\"\nconstants = { k = 1 }"),
];

/// A body that is sound, and what makes it a bad one.
const SOUND_BODY: &str = r#"
[mesh]
generate = { kind = "square", cells = [2, 2] }
[equation]
kind = "elasticity"
young = 1
poisson = 0.3
[[boundary]]
where = "xmin"
dirichlet = [0, 0]
[solver]
device = "cpu"
[output]
vtu = false
plot = false
"#;

const BAD_BODIES: &[(&str, &str)] = &[
    ("young = 1\n", ""),
    ("poisson = 0.3\n", ""),
    ("poisson = 0.3", "poisson = 0.3\nplane = \"strees\""),
    ("poisson = 0.3", "poisson = 0.3\nvelocity = [1, 0]"),
    ("poisson = 0.3", "poisson = 0.3\ncapacity = 1"),
    ("kind = \"elasticity\"\n", ""),
    ("dirichlet = [0, 0]", "dirichlet = [0, 0]\npressure = 1"),
    ("dirichlet = [0, 0]", "traction = [0, 1]\npressure = 1"),
    ("dirichlet = [0, 0]", "traction = [0, 1]\ntotal = [0, 1]"),
    ("[solver]", "[[source]]\npoint = [0.5, 0.5]\n[solver]"),
    ("where = \"xmin\"\ndirichlet = [0, 0]", "nodes = \"x < 1\"\ntraction = [0, 1]"),
    ("[solver]", "[time]\nend = 1\nsteps = 1\n[solver]"),
];

/// A flow that is sound, and what makes it a bad one.
const SOUND_FLOW: &str = r#"
[mesh]
generate = { kind = "square", cells = [2, 2] }
[equation]
kind = "convection-diffusion"
velocity = [1, 0]
[[boundary]]
where = "xmin"
dirichlet = 0
[solver]
device = "cpu"
[output]
vtu = false
plot = false
"#;

const BAD_FLOWS: &[(&str, &str)] = &[
    ("velocity = [1, 0]\n", ""),
    ("velocity = [1, 0]", "velocity = [1, 0]\nyoung = 1"),
    ("kind = \"convection-diffusion\"\n", ""),
    ("[solver]", "[[source]]\npoint = [0.5]\ntotal = 1\n[solver]"),
];

/// A membrane whose modes are asked for, and what makes it a bad one.
const SOUND_MODES: &str = r#"
[mesh]
generate = { kind = "square", cells = [2, 2] }
[equation]
capacity = 2
[[boundary]]
where = "xmin"
dirichlet = 0
[modes]
count = 2
[solver]
device = "cpu"
[output]
vtu = false
plot = false
"#;

const BAD_MODES: &[(&str, &str)] = &[
    ("count = 2", "count = 0"),
    ("[modes]\ncount = 2\n", ""),
    ("capacity = 2", "kind = \"elasticity\"\nyoung = 1\npoisson = 0.3\ncapacity = 2"),
    ("[modes]", "[time]\nend = 1\nsteps = 1\n[modes]"),
    ("device = \"cpu\"", "device = \"cpu\"\nmethod = \"cg\""),
    ("vtu = false", "vtu = false\nfunctionals = [{ name = \"a\", kind = \"max\" }]"),
    ("vtu = false", "vtu = false\nmatrix = [\"xmin\", \"xmax\"]"),
    (
        "capacity = 2",
        "kind = \"elasticity\"\nyoung = 1\npoisson = 0.3\n[[source]]\npoint = [0.5, 0.5]\ntotal = [0, 1]",
    ),
];

/// Runs a case in a folder of its own; returns whether the program takes it.
fn is_taken(text: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let output = format!("[output]\ndirectory = {:?}\n", folder.path().join("out"));
    let text = text.replace("[output]\n", &output);
    let case = Case::parse(&folder.path().join("case.toml"), text);
    case.is_ok_and(|case| run(&case, &mut Silent).is_ok())
}

#[test]
fn what_the_program_refuses_the_schema_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let mut bad = Vec::new();
    let all = [
        (SOUND, BAD),
        (SOUND_IN_TIME, BAD_IN_TIME),
        (SOUND_HEART, BAD_HEARTS),
        (SOUND_BODY, BAD_BODIES),
        (SOUND_FLOW, BAD_FLOWS),
        (SOUND_MODES, BAD_MODES),
        (SOUND_FORM, BAD_FORMS),
    ];
    for (sound, changes) in all {
        assert!(is_taken(sound), "{sound}");
        write(folder.path(), &format!("sound-{}.toml", bad.len()), sound);
        for (old, new) in changes {
            assert!(sound.contains(old), "{old}");
            let text = sound.replacen(old, new, 1);
            assert!(!is_taken(&text), "the program takes {new}");
            let name = format!("bad-{}.toml", bad.len());
            write(folder.path(), &name, &text);
            bad.push((name, new));
        }
    }
    let Some((names, said)) = refused(folder.path(), "bad cases against the schema") else { return };
    let taken: Vec<_> = bad.iter().filter(|(name, _)| !names.contains(name)).map(|(_, new)| new).collect();
    assert!(taken.is_empty(), "the schema takes {taken:#?}");
    assert_eq!(names.len(), bad.len(), "{said}");
}

/// Returns the blocks of TOML of a page.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    page.split("```toml\n").skip(1).filter_map(|rest| rest.split("\n```").next())
}

/// Sections of cases, of which a block has one at least; models of the membrane and manifests of cargo have others.
const SECTIONS: &[&str] = &[
    "mesh",
    "region",
    "space",
    "equation",
    "boundary",
    "source",
    "periodic",
    "tie",
    "interface",
    "modes",
    "membrane",
    "stimulus",
    "activation",
    "ecg",
    "time",
    "solver",
    "output",
];

/// Completes a part of a case by what a sound one has; nothing for files that are no cases.
fn completed(block: &str) -> Result<Option<String>, toml::de::Error> {
    let mut table: toml::Table = toml::from_str(block)?;
    // Files of membrane models name sources.
    let names =
        |value: &toml::Value| value.as_array().is_some_and(|array| array.iter().any(toml::Value::is_str));
    if table.get("source").is_some_and(names) || !SECTIONS.iter().any(|section| table.contains_key(*section))
    {
        return Ok(None);
    }
    let kind = table.get("equation").and_then(|equation| equation.get("kind")?.as_str());
    let has = |key| table.contains_key(key);
    let rest = match kind {
        Some("monodomain") => SOUND_HEART,
        Some("diffusion") => SOUND_IN_TIME,
        Some("elasticity") => SOUND_BODY,
        Some("convection-diffusion") => SOUND_FLOW,
        None if has("membrane") || has("stimulus") => SOUND_HEART,
        None if has("time") => SOUND_IN_TIME,
        None if has("source") || has("interface") => SOUND_FLOW,
        _ => SOUND,
    };
    for (key, value) in toml::from_str::<toml::Table>(rest)? {
        if key != "boundary" {
            table.entry(key).or_insert(value);
        }
    }
    Ok(toml::to_string(&table).ok())
}

#[test]
fn blocks_of_toml_in_pages_keep_to_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let mut pages = files(&root().join("docs"), "md");
    pages.push(root().join("README.md"));
    let mut n_blocks = 0;
    for page in pages {
        for block in blocks(&fs::read_to_string(&page).unwrap()) {
            let text =
                completed(block).unwrap_or_else(|error| panic!("{}: {error}\n{block}", page.display()));
            let Some(text) = text else { continue };
            let name = page.file_stem().unwrap().to_string_lossy().into_owned();
            write(folder.path(), &format!("{name}-{n_blocks}.toml"), &text);
            n_blocks += 1;
        }
    }
    assert!(n_blocks >= 4, "{n_blocks}");
    if let Some((names, said)) = refused(folder.path(), "blocks of pages against the schema") {
        assert!(names.is_empty(), "{said}");
    }
}

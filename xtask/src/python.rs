//! The Python package: its wheel, installed and tested.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::Checks;

/// The folder of the package.
const PACKAGE: &str = "crates/femtile-python";

/// Builds the wheel, installs it and tests it by the Python in `FEMTILE_PYTHON_TOOLS`, which has maturin and what the tests
/// need.
pub fn check(checks: &mut Checks, root: &Path) {
    let Some(python) = std::env::var_os("FEMTILE_PYTHON_TOOLS").map(PathBuf::from) else {
        checks.skip(
            "Python package",
            "FEMTILE_PYTHON_TOOLS is not set: `./test` installs what it needs from PyPI",
        );
        return;
    };
    if !can(&python, "maturin") || !can(&python, "pytest") {
        checks.skip("Python package", "maturin or pytest is not installed: PyPI could not be reached");
        return;
    }
    let wheels = root.join("target/wheels");
    let _ = std::fs::remove_dir_all(&wheels);
    let module = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(&python);
        command.args(["-m", name]).args(arguments);
        command
    };
    // With the settings of the tests, whose libraries are built already; by the name `test` cargo would build a test.
    let manifest = format!("{PACKAGE}/Cargo.toml");
    let folder = wheels.to_string_lossy();
    let build = [
        "build",
        "--profile",
        "dev",
        "--manifest-path",
        &manifest,
        "--out",
        &folder,
        "--compatibility",
        "linux",
    ];
    if !checks.program("Python wheel", module("maturin", &build)) {
        return;
    }
    let install = [
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--force-reinstall",
        "--find-links",
        &folder,
        "femtile",
    ];
    if !checks.program("Python wheel, installed", module("pip", &install)) {
        return;
    }
    packaging(checks, &python, &wheels);
    // From a folder without the sources, so that the wheel is what is tested.
    let tests = root.join(PACKAGE).join("tests");
    let away = |mut command: Command| {
        command.current_dir(&wheels);
        command
    };
    let settings = root.join(PACKAGE).join("pyproject.toml");
    let (tests, settings) = (tests.to_string_lossy(), settings.to_string_lossy());
    let pytest = ["-q", "-p", "no:cacheprovider", "-c", &settings, &tests];
    checks.program("Python tests", away(module("pytest", &pytest)));
    let doctests = ["-q", "-p", "no:cacheprovider", "--doctest-modules", "--pyargs", "femtile"];
    checks.program("Python doctests", away(module("pytest", &doctests)));
    let types = ["--config-file", &settings, "--cache-dir", "mypy", "--package", "femtile"];
    checks.program("Python types, mypy", away(module("mypy", &types)));
    if can(&python, "basedpyright") {
        let sources = root.join(PACKAGE).join("python/femtile");
        let (sources, python) = (sources.to_string_lossy(), python.to_string_lossy());
        let types = ["--pythonpath", &python, "--project", &settings, &sources];
        checks.program("Python types, pyright", module("basedpyright", &types));
    } else {
        checks.skip("types by pyright", "basedpyright is not installed: PyPI could not be reached");
    }
}

/// A solve in an environment that has the wheel and its dependencies alone.
const FIRST_SOLVE: &str = "import femtile; \
    mesh = femtile.mesh.square([8, 8], cell='quadrilateral'); \
    problem = femtile.Poisson(mesh, source=1.0, degree=2).dirichlet('all', 0.0); \
    assert problem.solve().has_converged; \
    A = problem.operator(); \
    assert femtile.cg(A, A.rhs)[1] == 0";

/// The sources and the wheel as PyPI takes them, and the wheel in a clean environment.
fn packaging(checks: &mut Checks, python: &Path, wheels: &Path) {
    let run = |python: &Path, arguments: &[&str]| {
        let mut command = Command::new(python);
        command.args(arguments);
        command
    };
    let (manifest, folder) = (format!("{PACKAGE}/Cargo.toml"), wheels.to_string_lossy());
    let sources = ["-m", "maturin", "sdist", "--manifest-path", &manifest, "--out", &folder];
    checks.program("Python sources", run(python, &sources));
    if can(python, "twine") {
        let mut check = run(python, &["-m", "twine", "check", "--strict"]);
        check.args(files_of(wheels));
        checks.program("Python packages, twine", check);
    } else {
        checks.skip("twine", "it is not installed: PyPI could not be reached");
    }
    let environment = wheels.join("clean");
    let clean = environment.join("bin/python");
    let folder = environment.to_string_lossy();
    if !checks.program("clean environment", run(python, &["-m", "venv", "--clear", &folder])) {
        return;
    }
    let mut install = run(&clean, &["-m", "pip", "install", "--quiet", "--only-binary", ":all:"]);
    install.args(files_of(wheels).filter(|path| path.extension().is_some_and(|end| end == "whl")));
    if checks.program("wheel in a clean environment", install) {
        checks.program("first solve there", run(&clean, &["-c", FIRST_SOLVE]));
    }
}

fn files_of(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file())
}

/// The check alone; returns true where it passed.
pub fn report(root: &Path) -> bool {
    let mut checks = Checks::default();
    check(&mut checks, root);
    checks.finish()
}

/// Returns whether a Python has a module.
fn can(python: &Path, module: &str) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", &format!("import {module}")]).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

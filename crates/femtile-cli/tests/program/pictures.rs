//! Pictures, pages and references of solves.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Workplace, femtile, root, text};

/// A warm corner spreads through a cube.
const SPREADING: &str = r#"
[mesh]
generate = { kind = "box", cells = [10, 10, 10] }
[equation]
kind = "diffusion"
initial = "exp(-20 * (x^2 + y^2 + z^2))"
[[boundary]]
where = "zmin"
dirichlet = 0
[time]
method = "bdf2"
end = 0.1
steps = 10
frames = { every = 0.025 }
"#;

fn is_png(file: &Path) -> bool {
    std::fs::read(file).is_ok_and(|bytes| bytes.starts_with(b"\x89PNG") && bytes.len() > 2000)
}

#[test]
fn every_kind_of_solve_has_a_picture_and_a_page() {
    let square =
        |cell: &str| format!("generate = {{ kind = \"square\", cells = [6, 7], cell = \"{cell}\" }}");
    let steady = "[equation]\nlambda = 1\nsource = \"x\"\n";
    let grid = "[mesh]\ngenerate = { kind = \"grid\", nodes = [9, 8, 7] }\n[equation]\nkind = \"diffusion\"\n\
                source = 1\n[time]\nend = 1\nsteps = 4\n";
    let line = grid.replace("[9, 8, 7]", "[9]");
    let block = "[mesh]\ngenerate = { kind = \"box\", cells = [3, 3, 3], cell = \"hexahedron\" }\n";
    for case in [
        format!("[mesh]\n{}\n{steady}", square("triangle")),
        format!("[mesh]\n{}\n{steady}[space]\ndegree = 3\ncomponents = 2\n", square("quadrilateral")),
        format!("{block}{steady}[space]\ndegree = 2\n"),
        grid.into(),
        line,
        SPREADING.into(),
    ] {
        let place = Workplace::new(&format!("{case}[output]\npicture = true\nreport = true\n"));
        let report = place.report(&["--picture", "a.png", "--report", "a.html"], 0);
        for name in ["picture.png", "report.html"] {
            assert!(report["files"][name]["bytes"].as_u64().unwrap() > 2000, "{case}: {name}");
        }
        assert!(is_png(&place.path("a.png")) && is_png(&place.path("out/picture.png")), "{case}");
        let page = std::fs::read_to_string(place.path("a.html")).unwrap();
        assert!(page.contains("id=\"data\"") && page.trim_end().ends_with("</html>"), "{case}");
        let verified = femtile().arg("verify").arg(place.path("out")).output().unwrap();
        assert!(verified.status.success(), "{}", text(&verified.stdout));
    }
}

#[test]
fn a_field_that_is_not_there_costs_a_warning_and_not_the_run() {
    let case = "[mesh]\ngenerate = { kind = \"square\", cells = [4, 4] }\n[equation]\nlambda = 1\nsource = 1\n\
                [output]\npicture = \"heat\"\n";
    let place = Workplace::new(case);
    let warnings = place.report(&[], 0)["warnings"].to_string();
    assert!(warnings.contains("there is no `heat`, but u"), "{warnings}");
    assert!(is_png(&place.path("out/picture.png")));
}

#[test]
fn a_picture_that_cannot_be_written_is_refused_before_the_solve() {
    let place = Workplace::new(SPREADING);
    for (option, file, words) in
        [("--picture", "no/a.png", "--picture"), ("--report", ".", "--report"), ("--report", "-", "out.html")]
    {
        let said = place.refusal(&[option, file], 2);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn references_of_a_run_are_printed_in_bibtex() {
    let place = Workplace::new(
        "[mesh]\ngenerate = { kind = \"square\", cells = [9, 9] }\n[equation]\nlambda = 1\nsource = 1\n\
         [solver]\npreconditioner = \"amg\"\n",
    );
    let report = place.report(&[], 0);
    let cited = femtile().arg("cite").arg(place.path("out/report.json")).output().unwrap();
    let printed = text(&cited.stdout);
    assert!(cited.status.success(), "{}", text(&cited.stderr));
    for key in report["citations"].as_array().unwrap() {
        assert!(printed.contains(&format!("{{{},", key.as_str().unwrap())), "{key}: {printed}");
    }
    let refused = femtile().arg("cite").arg(place.path("case.toml")).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

/// The oldest node that playwright-core supports.
const OLDEST_NODE: u32 = 20;

/// Returns the command that uses a page in a browser; none, with a message, where something is missing.
fn browser() -> Option<Command> {
    let skip = |reason: &str| {
        eprintln!("SKIPPED: the page of a report in a browser: {reason}");
        None
    };
    let Some(modules) = std::env::var_os("FEMTILE_BROWSER_TOOLS").map(PathBuf::from) else {
        return skip(
            "FEMTILE_BROWSER_TOOLS names no folder with playwright-core: `./test` installs it from npm",
        );
    };
    let version = |program: &str| {
        let output = Command::new(program).arg("--version").output().ok()?;
        output.status.success().then(|| text(&output.stdout))
    };
    let major_of_node = || version("node")?.trim_start_matches('v').split('.').next()?.parse::<u32>().ok();
    let chromium = std::env::var("CHROMIUM").unwrap_or_else(|_| "/usr/bin/chromium".into());
    if major_of_node().is_none_or(|major| major < OLDEST_NODE) || version(&chromium).is_none() {
        return skip("it needs chromium and node 20 or newer");
    }
    // Node finds packages beside the script.
    let script = modules.join("view.mjs");
    std::fs::copy(root().join("crates/femtile-report/tests/browser/view.mjs"), &script).unwrap();
    let mut command = Command::new("node");
    command.arg(script).env("CHROMIUM", chromium);
    Some(command)
}

#[test]
fn the_page_of_a_run_in_time_turns_clips_and_moves_in_a_browser() {
    let Some(mut browser) = browser() else { return };
    let place = Workplace::new(SPREADING);
    place.report(&["--report", "page.html"], 0);
    let used = browser.arg(place.path("page.html")).output().unwrap();
    let said = text(&used.stdout);
    assert!(used.status.success(), "{said}{}", text(&used.stderr));
    assert!(said.contains("another time"), "{said}");
    println!("{said}");
}

//! The script of the view of reports, built from its sources and vtk.js.

use std::path::Path;
use std::process::Command;

/// The sources of the script, with the versions of what it is built from.
const SOURCES: &str = "crates/femtile-report/page";
/// Where the script and the licences of what is in it are checked in.
const ASSETS: &str = "crates/femtile-report/assets";

/// Builds the script by node and npm; returns true where it was written.
pub fn build(root: &Path) -> bool {
    let folder = root.join("target/assets");
    let copied = std::fs::create_dir_all(&folder).and_then(|()| copy(&root.join(SOURCES), &folder));
    if let Err(error) = copied {
        println!("{}: {error}", folder.display());
        return false;
    }
    let run = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).current_dir(&folder).status();
        if let Err(error) = &status {
            println!("{program} is needed: {error}");
        }
        status.is_ok_and(|status| status.success())
    };
    let target = root.join(ASSETS);
    run("npm", &["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        && run("node", &["build.mjs", &target.to_string_lossy()])
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

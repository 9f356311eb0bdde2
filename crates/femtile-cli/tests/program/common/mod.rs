//! Runs the program as a user does.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The project's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program, ready for arguments.
pub fn femtile() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_femtile"));
    command.stdin(Stdio::null());
    command
}

/// A folder of its own for a test, with a case file in it.
pub struct Workplace {
    pub folder: tempfile::TempDir,
}

impl Workplace {
    pub fn new(case: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("case.toml"), case).unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `femtile solve case.toml` with more arguments, inside the folder.
    pub fn solve(&self, more: &[&str]) -> Output {
        femtile().current_dir(self.folder.path()).args(["solve", "case.toml"]).args(more).output().unwrap()
    }

    /// The report of a solve that ends with `code`.
    pub fn report(&self, more: &[&str], code: i32) -> Value {
        let output = self.solve(&[&["--json", "-", "--quiet"], more].concat());
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What the program says when it refuses the case with `code`.
    pub fn refusal(&self, more: &[&str], code: i32) -> String {
        let output = self.solve(more);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(!self.path("out/solution.vtu").exists());
        // Lines may be broken anywhere: compare words.
        said.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

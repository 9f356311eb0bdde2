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

    /// Returns the message of the program, which must refuse the case with exit code `code`.
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

/// A `.npy` file.
pub fn npy(descr: &str, is_fortran: bool, shape: &[usize], numbers: &[u8]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|n| format!("{n},")).collect();
    let order = if is_fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({sizes}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(numbers);
    bytes
}

/// A `.npy` file of double precision.
pub fn f64s(shape: &[usize], values: &[f64]) -> Vec<u8> {
    npy("<f8", false, shape, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
}

/// The numbers of a `.npy` file of ours.
pub fn numbers(place: &Workplace, name: &str) -> Vec<f64> {
    let bytes = std::fs::read(place.path(name)).unwrap();
    let header = 10 + u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let wide = text(&bytes[..header]).contains("<f8");
    let f4 = |b: &[u8]| f64::from(f32::from_le_bytes(b.try_into().unwrap()));
    match wide {
        true => bytes[header..].chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
        false => bytes[header..].chunks(4).map(f4).collect(),
    }
}

/// A Python with NumPy, if there is one.
pub fn numpy() -> Option<String> {
    let python = std::env::var("FEMTILE_PYTHON").unwrap_or_else(|_| "python3".into());
    let found = Command::new(&python).args(["-c", "import numpy"]).output();
    found.is_ok_and(|output| output.status.success()).then_some(python)
}

//! The files that the lines of a text are from.

use std::path::{Path, PathBuf};

use crate::{MeshError, Place};

/// Files of a text by its lines: that of the model, and those that it includes.
#[derive(Debug)]
pub(super) struct LineOrigins {
    files: Vec<PathBuf>,
    /// Ascending by their first lines; the first one begins at line 1.
    stretches: Vec<Stretch>,
    /// True if lines that stand in other files are part of the text.
    pub is_whole: bool,
}

/// Lines of one file that follow each other.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    /// Number of its first line in the text.
    first: usize,
    file: usize,
    /// Number of that line in its file.
    line: usize,
}

impl LineOrigins {
    /// Returns the places of a text of one file.
    pub(super) fn of_file(path: &Path) -> Self {
        let stretches = vec![Stretch { first: 1, file: 0, line: 1 }];
        Self { files: vec![path.into()], stretches, is_whole: false }
    }

    /// The file of the model.
    pub(super) fn path(&self) -> &Path {
        &self.files[0]
    }

    /// The file of a number.
    pub(super) fn file(&self, file: usize) -> &Path {
        &self.files[file]
    }

    /// Adds a file and returns its number.
    pub(super) fn add(&mut self, path: PathBuf) -> usize {
        self.files.push(path);
        self.files.len() - 1
    }

    /// Notes that the text continues at its line `first` with line `line` of a file.
    pub(super) fn go_on(&mut self, first: usize, file: usize, line: usize) {
        let stretch = Stretch { first, file, line };
        match self.stretches.last_mut() {
            Some(last) if last.first == first => *last = stretch,
            _ => self.stretches.push(stretch),
        }
    }

    /// The file of a line of the text, and the number of the line there.
    fn find(&self, line: usize) -> (usize, usize) {
        let after = self.stretches.partition_point(|stretch| stretch.first <= line);
        let stretch = self.stretches[after.saturating_sub(1)];
        (stretch.file, (line + stretch.line).saturating_sub(stretch.first))
    }

    /// Returns the line of the text for a note: `line 7`, with the file if it is an included one.
    pub(super) fn show(&self, line: usize) -> String {
        match self.find(line) {
            (0, line) => format!("line {line}"),
            (file, line) => format!("{}, line {line}", self.files[file].display()),
        }
    }

    /// The format is broken on a line of the text.
    pub(super) fn error(&self, line: usize, message: impl Into<String>) -> MeshError {
        let (file, line) = self.find(line);
        let path = self.files[file].clone();
        MeshError::Parse { path, place: Place::Line(line), message: message.into() }
    }

    /// A line of the text is sound but not handled.
    pub(super) fn unsupported(&self, line: usize, what: impl Into<String>, advice: &str) -> MeshError {
        let (file, line) = self.find(line);
        let path = self.files[file].clone();
        MeshError::Unsupported { path, place: Place::Line(line), what: what.into(), advice: advice.into() }
    }

    /// The model as a whole is broken.
    pub(super) fn whole(&self, message: String) -> MeshError {
        MeshError::Parse { path: self.path().into(), place: Place::Whole, message }
    }
}

use std::path::{Path, PathBuf};

use femtile_solve::{Key, Remembered, path_text};
use toml::{Table, Value};

use crate::file::CaseFile;
use crate::place::{has_key, inside_quotes, key_span_of, line_of, span_of};
use crate::read::{Refusal, read};
use crate::route::MeshTraits;
use crate::syntax::explained;
use crate::{CaseError, Embedding, Override};

/// A case file: its content, and its text for messages that point into it.
#[derive(Debug, Clone)]
pub struct Case {
    /// The content of the file.
    pub file: CaseFile,
    /// The path of the file.
    pub path: PathBuf,
    /// The text of the file.
    pub text: String,
    /// Options of the program that replace values of the text.
    overrides: Vec<Override>,
    /// Matrix formats that tuning has found on this machine.
    pub remembered: Vec<Remembered>,
    /// Connections to the program that runs the case.
    pub embedding: Embedding,
    /// Properties of the mesh, once it was read.
    pub(crate) mesh_traits: Option<MeshTraits>,
}

impl Case {
    /// Reads a case file.
    ///
    /// # Errors
    /// [`CaseError::Io`] when it cannot be read, else those of [`Case::parse`].
    pub fn load(path: &Path) -> Result<Self, CaseError> {
        Self::load_with(path, Vec::new())
    }

    /// Reads a case file and overrides some of its values.
    ///
    /// # Errors
    /// As [`Case::load`]; [`CaseError::Option`] for a wrong override.
    pub fn load_with(path: &Path, overrides: Vec<Override>) -> Result<Self, CaseError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| CaseError::Io { path: path.into(), action: "read", source })?;
        Self::parse_with(path, text, overrides)
    }

    /// Parses the text of a case file; relative mesh files are relative to the folder of `path`.
    ///
    /// # Errors
    /// [`CaseError::Input`] with the place of the first wrong key or value.
    pub fn parse(path: &Path, text: String) -> Result<Self, CaseError> {
        Self::parse_with(path, text, Vec::new())
    }

    /// Parses the text of a case file and overrides some of its values.
    ///
    /// # Errors
    /// As [`Case::parse`]; [`CaseError::Option`] for a wrong override.
    pub fn parse_with(path: &Path, text: String, overrides: Vec<Override>) -> Result<Self, CaseError> {
        Self::parse_embedded(path, text, overrides, Embedding::default())
    }

    /// Parses the text of a case file without [`Case::check`].
    pub(crate) fn parse_unchecked(
        path: &Path,
        text: String,
        overrides: Vec<Override>,
    ) -> Result<Self, CaseError> {
        let file = content(path, &text, &overrides)?;
        let (path, remembered, embedding) = (path.into(), Vec::new(), Embedding::default());
        Ok(Self { file, path, text, overrides, remembered, embedding, mesh_traits: None })
    }

    /// Returns `true` if a value comes from the file or from an override by key, and no other option of the
    /// program has changed it.
    pub(crate) fn is_as_written<T: PartialEq>(&self, value: impl Fn(&CaseFile) -> &T) -> bool {
        let written = content(&self.path, &self.text, &self.overrides);
        written.is_ok_and(|written| value(&written) == value(&self.file))
    }

    /// Returns the line of a key, counted from 1; none if the file does not have it.
    pub(crate) fn line(&self, path: &[Key]) -> Option<usize> {
        line_of(&self.text, path)
    }

    /// Returns the folder of the case file, to which mesh files are relative.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Creates an error at a key of the file, or of the option that has set it.
    pub(crate) fn wrong(&self, path: &[Key], message: impl Into<String>) -> CaseError {
        placed(&self.path, &self.text, &self.overrides, Refusal::of_value(path, message))
    }

    /// Creates an error at the bytes `inner` of a string of the file.
    pub(crate) fn wrong_inside(
        &self,
        path: &[Key],
        inner: &std::ops::Range<usize>,
        message: impl Into<String>,
    ) -> CaseError {
        let span = span_of(&self.text, path).map(|span| {
            let begin = inside_quotes(&self.text, &span);
            (begin + inner.start).min(span.end)..(begin + inner.end).min(span.end)
        });
        match self.wrong(path, message) {
            CaseError::Input { path, text, key, message, cause, .. } => {
                CaseError::Input { path, text, key, span, message, cause }
            }
            other => other,
        }
    }
}

/// Parses a text, with values of options instead of its own.
fn content(path: &Path, text: &str, overrides: &[Override]) -> Result<CaseFile, CaseError> {
    let mut table: Table = toml::from_str(text).map_err(|error| {
        let (span, message) = explained(text, &error);
        CaseError::Input { path: path.into(), text: text.into(), key: None, span, message, cause: None }
    })?;
    overrides.iter().try_for_each(|given| given.apply(&mut table))?;
    read(Value::Table(table)).map_err(|refusal| placed(path, text, overrides, refusal))
}

/// Creates the error at a key of a file, or of the option that has set it.
fn placed(file: &Path, text: &str, overrides: &[Override], refusal: Refusal) -> CaseError {
    let Refusal { path, is_key, mut message } = refusal;
    let is_made_by = |given: &Override| given.sets_part_of(&path) && !has_key(text, &path);
    // The last of several options applies.
    if let Some(given) = overrides.iter().rfind(|given| given.sets(&path) || is_made_by(given)) {
        return CaseError::option(given.option(), message);
    }
    if let Some(given) = overrides.iter().rfind(|given| given.sets_part_of(&path)) {
        message += &format!(" (with {})", given.option());
    }
    CaseError::Input {
        path: file.into(),
        text: text.into(),
        span: if is_key { key_span_of(text, &path) } else { span_of(text, &path) },
        key: (!path.is_empty()).then(|| path_text(&path)),
        message,
        cause: None,
    }
}

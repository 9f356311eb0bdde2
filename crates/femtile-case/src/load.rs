use std::path::{Path, PathBuf};

use femtile_solve::{Key, Remembered, path_text};
use toml::Table;

use crate::file::CaseFile;
use crate::place::{has_key, inside_quotes, line_of, span_of};
use crate::renamed::{old_path, renew};
use crate::wording::{Refusal, in_words, refusal};
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
    /// A warning for each old word of the text and the options.
    warnings: Vec<String>,
    /// Matrix formats that tuning has found on this machine.
    pub remembered: Vec<Remembered>,
    /// Connections to the program that runs the case.
    pub embedding: Embedding,
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
        match content(&text, &overrides)? {
            Ok((file, warnings)) => {
                let (path, remembered) = (path.into(), Vec::new());
                let embedding = Embedding::default();
                Ok(Self { file, path, text, overrides, warnings, remembered, embedding })
            }
            Err(error) => {
                let Refusal { key, span, message } = refusal(&text, &error);
                Err(CaseError::Input { path: path.into(), key, span, message, text, cause: None })
            }
        }
    }

    /// Returns `true` where a value is that of the file or of an override by key, and was not changed afterwards by another
    /// option of the program.
    pub(crate) fn is_as_written<T: PartialEq>(&self, value: impl Fn(&CaseFile) -> &T) -> bool {
        let written = content(&self.text, &self.overrides);
        matches!(written, Ok(Ok((written, _))) if value(&written) == value(&self.file))
    }

    /// Returns a warning for each old word of the case, with the word that replaces it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the bytes of the value at a key, which may have its old name.
    fn span(&self, path: &[Key]) -> Option<std::ops::Range<usize>> {
        let is_given = |path: &[Key]| has_key(&self.text, path);
        let old = old_path(path);
        span_of(&self.text, if !is_given(path) && is_given(&old) { &old } else { path })
    }

    /// Returns the line of a key, counted from 1; none where the file does not have it.
    pub(crate) fn line(&self, path: &[Key]) -> Option<usize> {
        line_of(&self.text, path)
    }

    /// Returns the folder of the case file, to which mesh files are relative.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Creates an error at a key of the file, or of the option that has set it.
    pub(crate) fn wrong(&self, path: &[Key], message: impl Into<String>) -> CaseError {
        let mut message = message.into();
        // The last of several options applies.
        if let Some(given) = self.overrides.iter().rfind(|given| given.sets(path)) {
            return CaseError::option(given.option(), message);
        }
        if let Some(given) = self.overrides.iter().rfind(|given| given.sets_part_of(path)) {
            message += &format!(" (with {})", given.option());
        }
        CaseError::Input {
            path: self.path.clone(),
            text: self.text.clone(),
            key: Some(path_text(path)),
            span: self.span(path),
            message,
            cause: None,
        }
    }

    /// Creates an error at the bytes `inner` of a string of the file.
    pub(crate) fn wrong_inside(
        &self,
        path: &[Key],
        inner: &std::ops::Range<usize>,
        message: impl Into<String>,
    ) -> CaseError {
        let span = self.span(path).map(|span| {
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

/// A parsed case file, and a warning for each of its old words.
type Content = (CaseFile, Vec<String>);

/// Parses a text and applies overrides; the inner error is that of the text.
fn content(text: &str, overrides: &[Override]) -> Result<Result<Content, toml::de::Error>, CaseError> {
    let mut table: Table = match toml::from_str(text) {
        Ok(table) => table,
        Err(error) => return Ok(Err(error)),
    };
    let mut warnings = renew(&mut table);
    if overrides.is_empty() {
        return Ok(toml::from_str(text).map(|file| (file, warnings)));
    }
    let mut found = parsed(&table);
    let mut blamed = None;
    for given in overrides {
        given.apply(&mut table)?;
        for warning in renew(&mut table) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let next = parsed(&table);
        // An error from before this value has another cause.
        if let Err(message) = &next
            && found.as_ref().err() != Some(message)
        {
            blamed = Some(given);
        }
        found = next;
    }
    match (found, blamed) {
        (Ok(file), _) => Ok(Ok((file, warnings))),
        (Err(message), Some(given)) => Err(CaseError::option(given.option(), in_words(&message))),
        (Err(message), None) => Ok(toml::from_str(text)
            .and_then(|_: CaseFile| Err(<toml::de::Error as serde::de::Error>::custom(message)))),
    }
}

/// Deserializes a table; returns the message of the reader where it is not a case.
fn parsed(table: &Table) -> Result<CaseFile, String> {
    let text = toml::to_string(table).map_err(|error| error.to_string())?;
    toml::from_str(&text).map_err(|error| error.message().into())
}

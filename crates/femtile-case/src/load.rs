use std::path::{Path, PathBuf};

use femtile_solve::{Key, Remembered, below, path_text};
use toml::Table;

use crate::file::{Amount, CaseFile, EquationKind, Method, Precision, PreconditionerName, Quadrature};
use crate::place::{has_key, inside_quotes, line_of, span_of};
use crate::placed::placed;
use crate::renamed::{old_path, renew};
use crate::wording::{Refusal, in_words, refusal};
use crate::{CaseError, Override, diffusion, functional, transient};

/// A case file that has been read: its content, and its text for messages that point into it.
#[derive(Debug, Clone)]
pub struct Case {
    /// What the file says.
    pub file: CaseFile,
    /// Where it was read from.
    pub path: PathBuf,
    /// What it looks like.
    pub text: String,
    /// Options of the program that replace values of the text.
    overrides: Vec<Override>,
    /// A warning for each old word of the text and the options.
    warnings: Vec<String>,
    /// Formats of matrices that searches have found on this machine.
    pub remembered: Vec<Remembered>,
}

impl Case {
    /// Reads a case file.
    ///
    /// # Errors
    /// [`CaseError::Io`] when it cannot be read, else those of [`Case::parse`].
    pub fn load(path: &Path) -> Result<Self, CaseError> {
        Self::load_with(path, Vec::new())
    }

    /// Reads a case file and puts other values in the place of some of its own.
    ///
    /// # Errors
    /// As [`Case::load`]; [`CaseError::Option`] where one of these values is to blame.
    pub fn load_with(path: &Path, overrides: Vec<Override>) -> Result<Self, CaseError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| CaseError::Io { path: path.into(), action: "read", source })?;
        Self::parse_with(path, text, overrides)
    }

    /// Parses the text of a case file; files it names are looked for beside `path`.
    ///
    /// # Errors
    /// [`CaseError::Input`] with the place of the first key or value that is wrong.
    pub fn parse(path: &Path, text: String) -> Result<Self, CaseError> {
        Self::parse_with(path, text, Vec::new())
    }

    /// Parses the text of a case file with other values in the place of some of its own.
    ///
    /// # Errors
    /// As [`Case::parse`]; [`CaseError::Option`] where one of these values is to blame.
    pub fn parse_with(path: &Path, text: String, overrides: Vec<Override>) -> Result<Self, CaseError> {
        match content(&text, &overrides)? {
            Ok((file, warnings)) => {
                let (path, remembered) = (path.into(), Vec::new());
                let case = Self { file, path, text, overrides, warnings, remembered };
                case.check()?;
                Ok(case)
            }
            Err(error) => {
                let Refusal { key, span, message } = refusal(&text, &error);
                Err(CaseError::Input { path: path.into(), key, span, message, text, cause: None })
            }
        }
    }

    /// Whether a value is the one of the file or of what was set by key, and not one that another option of the program put
    /// in its place.
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

    /// The line in which a key stands, counted from 1; none where it is not in the file.
    pub(crate) fn line(&self, path: &[Key]) -> Option<usize> {
        line_of(&self.text, path)
    }

    /// The folder that relative mesh files are relative to.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// An error at a key of the file, or of the option that has set it.
    pub(crate) fn wrong(&self, path: &[Key], message: impl Into<String>) -> CaseError {
        let mut message = message.into();
        // The last of several options has won.
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

    /// An error inside a string of the file, at the bytes `inner` of the string.
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

    /// Checks again what the program's options may have changed, and what types cannot say.
    ///
    /// # Errors
    /// [`CaseError::Input`] with the place of the first value that is wrong.
    pub fn check(&self) -> Result<(), CaseError> {
        self.check_sections().map_err(|error| placed(self, error))
    }

    fn check_sections(&self) -> Result<(), CaseError> {
        self.check_mesh()?;
        self.check_solver()?;
        match self.file.equation.kind {
            EquationKind::Diffusion if transient::is_on_mesh(self) => transient::check(self)?,
            EquationKind::Diffusion => diffusion::check(self)?,
            EquationKind::ReactionDiffusion => self.check_stationary()?,
        }
        self.check_space()?;
        self.check_boundary()?;
        functional::check(self)
    }

    fn check_boundary(&self) -> Result<(), CaseError> {
        for (i, section) in self.file.boundary.iter().enumerate() {
            let path: [Key; 2] = ["boundary".into(), i.into()];
            let contradiction = match (&section.r#where, &section.nodes) {
                (None, None) => {
                    Some("the key `where` is missing, or `nodes` for a `dirichlet` at single nodes")
                }
                (Some(_), Some(_)) => Some("give `where`, a part of the boundary, or `nodes`, not both"),
                _ => None,
            };
            if let Some(message) = contradiction {
                return Err(self.wrong(&path, message));
            }
            let given = [
                section.dirichlet.is_some(),
                section.neumann.is_some(),
                section.robin.is_some(),
                section.periodic,
            ];
            if given.iter().filter(|&&given| given).count() != 1 {
                let message = "give exactly one of `dirichlet`, `neumann`, `robin` and `periodic`";
                return Err(self.wrong(&path, message));
            }
            if section.nodes.is_some() && section.dirichlet.is_none() {
                let message =
                    "only `dirichlet` holds at nodes; fluxes go through parts of the boundary: take `where`";
                return Err(self.wrong(&below(&path, "nodes"), message));
            }
        }
        Ok(())
    }

    /// Refuses what only an equation in time has.
    fn check_stationary(&self) -> Result<(), CaseError> {
        let (equation, solver) = (&self.file.equation, &self.file.solver);
        let keys = [
            ("diffusion", equation.diffusion.is_some()),
            ("convection", equation.convection.is_some()),
            ("reaction", equation.reaction.is_some()),
            ("initial", equation.initial.is_some()),
        ];
        if let Some((key, _)) = keys.into_iter().find(|(_, given)| *given) {
            let message = "belongs to `kind = \"diffusion\"`; the coefficients of `\"reaction-diffusion\"` are sigma, lambda and source";
            return Err(self.wrong(&["equation".into(), key.into()], message));
        }
        if self.file.time.is_some() {
            let message = "only `kind = \"diffusion\"` is an equation in time";
            return Err(self.wrong(&["time".into()], message));
        }
        if let Some(i) = self.file.boundary.iter().position(|section| section.periodic) {
            let message = "periodic sides are for grids, with `kind = \"diffusion\"`";
            return Err(self.wrong(&["boundary".into(), i.into(), "periodic".into()], message));
        }
        if solver.precision == Precision::F32 {
            let message = "single precision is for equations in time; use \"f64\"";
            return Err(self.wrong(&["solver".into(), "precision".into()], message));
        }
        Ok(())
    }

    fn check_space(&self) -> Result<(), CaseError> {
        let space = &self.file.space;
        let wrong = |key: &str, message: &str| Err(self.wrong(&["space".into(), key.into()], message));
        if self.file.equation.kind == EquationKind::Diffusion && !transient::is_on_mesh(self) {
            let no_elements = "has no meaning here: a grid has no elements";
            if space.degree != 1 {
                return wrong("degree", no_elements);
            }
            if space.components != 1 {
                return wrong("components", "equations in time have one");
            }
            if space.quadrature != Quadrature::default() {
                return wrong("quadrature", no_elements);
            }
        }
        Ok(self.space_config().check()?)
    }

    fn check_mesh(&self) -> Result<(), CaseError> {
        let mesh = &self.file.mesh;
        if mesh.file.is_some() == mesh.generate.is_some() {
            return Err(self.wrong(&["mesh".into()], "give exactly one of `file` and `generate`"));
        }
        if mesh.refine > 10 {
            let message =
                format!("{} refinements would make 8^{0} cells of one; 10 is the most", mesh.refine);
            return Err(self.wrong(&["mesh".into(), "refine".into()], message));
        }
        Ok(())
    }

    fn check_solver(&self) -> Result<(), CaseError> {
        let solver = &self.file.solver;
        let wrong = |key: &str, message: String| Err(self.wrong(&["solver".into(), key.into()], message));
        if solver.time_limit_s.is_some_and(|limit| !(0.0..=1e9).contains(&limit)) {
            return wrong("time_limit_s", "must be a number of seconds, not negative".into());
        }
        if let Some(Err(message)) = solver.memory_limit.as_ref().map(Amount::bytes) {
            return wrong("memory_limit", message);
        }
        if solver.precision == Precision::Mixed {
            return wrong("precision", "mixed precision is not available yet; use \"f64\"".into());
        }
        if solver.steps.is_some() && solver.method != Method::SStepCg {
            return wrong("steps", "steps at once need method = \"s-step-cg\"".into());
        }
        if solver.restart.is_some() && solver.method != Method::Gmres {
            return wrong("restart", "beginning anew needs method = \"gmres\"".into());
        }
        if solver.gmg.is_some() && solver.preconditioner != PreconditionerName::Gmg {
            return wrong("gmg", "these options need preconditioner = \"gmg\"".into());
        }
        if solver.pmg.is_some() && solver.preconditioner != PreconditionerName::Pmg {
            return wrong("pmg", "these options need preconditioner = \"pmg\"".into());
        }
        match &solver.amg {
            Some(_) if !solver.preconditioner.has_algebraic_levels() => {
                return wrong("amg", "these options need preconditioner = \"amg\" or \"pmg\"".into());
            }
            Some(options) => options.check().or_else(|error| wrong("amg", error))?,
            None => {}
        }
        Ok(self.solver_config()?.check()?)
    }
}

/// A parsed case file, and a warning for each of its old words.
type Content = (CaseFile, Vec<String>);

/// Parses a text with other values in it; the inner error is that of the text.
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

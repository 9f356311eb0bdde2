use std::path::{Path, PathBuf};

use femtile_fem::dofs::MAX_DEGREE;

use femtile_linalg::krylov::s_step_cg::MAX_STEPS;

use crate::file::{
    Amount, CaseFile, CycleName, EquationKind, Method, Operator, Precision, PreconditionerName, Quadrature,
    SpaceSection,
};
use crate::place::{Key, inside_quotes, line_of, path_text, span_of};
use crate::wording::{Refusal, refusal};
use crate::{CaseError, diffusion};

/// The most components of u.
const MAX_COMPONENTS: usize = 64;

/// Whether a solve can end by this tolerance: between 0, which rounding keeps it from, and 1, where it would begin.
///
/// # Errors
/// What is wrong, and what to write.
pub fn check_tolerance(tolerance: f64) -> Result<(), String> {
    if tolerance > 0.0 && tolerance < 1.0 {
        return Ok(());
    }
    Err(match tolerance >= 1.0 {
        true => {
            format!("{tolerance} would call zero a solution: it has to be below 1; 1e-10 is a good choice")
        }
        false => format!("{tolerance} is not positive; 1e-10 is a good choice"),
    })
}

/// A case file that has been read: its content, and its text for messages that point into it.
#[derive(Debug, Clone)]
pub struct Case {
    /// What the file says.
    pub file: CaseFile,
    /// Where it was read from.
    pub path: PathBuf,
    /// What it looks like.
    pub text: String,
}

impl Case {
    /// Reads a case file.
    ///
    /// # Errors
    /// [`CaseError::Io`] when it cannot be read, else those of [`Case::parse`].
    pub fn load(path: &Path) -> Result<Self, CaseError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| CaseError::Io { path: path.into(), action: "read", source })?;
        Self::parse(path, text)
    }

    /// Parses the text of a case file; files it names are looked for beside `path`.
    ///
    /// # Errors
    /// [`CaseError::Input`] with the place of the first key or value that is wrong.
    pub fn parse(path: &Path, text: String) -> Result<Self, CaseError> {
        match toml::from_str::<CaseFile>(&text) {
            Ok(file) => {
                let case = Self { file, path: path.into(), text };
                case.check()?;
                Ok(case)
            }
            Err(error) => {
                let Refusal { key, span, message } = refusal(&text, &error);
                Err(CaseError::Input { path: path.into(), key, span, message, text, cause: None })
            }
        }
    }

    /// Whether a value is the one that the file has, and not one that an option of the program put in its place.
    pub(crate) fn is_as_written<T: PartialEq>(&self, value: impl Fn(&CaseFile) -> &T) -> bool {
        toml::from_str::<CaseFile>(&self.text).is_ok_and(|written| value(&written) == value(&self.file))
    }

    /// The line in which a key stands, counted from 1; none where it is not in the file.
    pub(crate) fn line(&self, path: &[Key]) -> Option<usize> {
        line_of(&self.text, path)
    }

    /// The folder that relative mesh files are relative to.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// An error at a key of the file.
    pub(crate) fn wrong(&self, path: &[Key], message: impl Into<String>) -> CaseError {
        CaseError::Input {
            path: self.path.clone(),
            text: self.text.clone(),
            key: Some(path_text(path)),
            span: span_of(&self.text, path),
            message: message.into(),
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

    /// Checks again what the program's options may have changed, and what types cannot say.
    ///
    /// # Errors
    /// [`CaseError::Input`] with the place of the first value that is wrong.
    pub fn check(&self) -> Result<(), CaseError> {
        self.check_mesh()?;
        self.check_solver()?;
        if self.file.equation.kind == EquationKind::Diffusion {
            diffusion::check(self)?;
        } else {
            self.check_stationary()?;
        }
        self.check_space()?;
        for (i, section) in self.file.boundary.iter().enumerate() {
            let given = [
                section.dirichlet.is_some(),
                section.neumann.is_some(),
                section.robin.is_some(),
                section.periodic,
            ];
            if given.iter().filter(|&&given| given).count() != 1 {
                let message = "give exactly one of `dirichlet`, `neumann`, `robin` and `periodic`";
                return Err(self.wrong(&["boundary".into(), i.into()], message));
            }
        }
        let mut names: Vec<&str> = Vec::new();
        for (i, functional) in self.file.output.functionals.iter().enumerate() {
            if names.contains(&functional.name()) {
                let message = format!("a second functional is called `{}`", functional.name());
                return Err(self.wrong(&["output".into(), "functionals".into(), i.into()], message));
            }
            names.push(functional.name());
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
            let message =
                "is of `kind = \"diffusion\"`; the coefficients of helmholtz are sigma, lambda and source";
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
        let SpaceSection { degree, components, quadrature } = self.file.space;
        let wrong = |key: &str, message: String| Err(self.wrong(&["space".into(), key.into()], message));
        if self.file.equation.kind == EquationKind::Diffusion && degree != 1 {
            return wrong("degree", "has no meaning here: a grid has no elements".into());
        }
        if self.file.equation.kind == EquationKind::Diffusion && components != 1 {
            return wrong("components", "equations in time have one".into());
        }
        if !(1..=MAX_COMPONENTS).contains(&components) {
            return wrong("components", format!("{components} is not between 1 and {MAX_COMPONENTS}"));
        }
        if self.file.equation.kind == EquationKind::Diffusion && quadrature != Quadrature::default() {
            return wrong("quadrature", "has no meaning here: a grid has no elements".into());
        }
        if !(1..=MAX_DEGREE).contains(&(degree as usize)) {
            let message = format!(
                "degree {degree} is not offered: 1 to {MAX_DEGREE} are on quadrilaterals and hexahedra, 1 on triangles and \
                 tetrahedra"
            );
            return wrong("degree", message);
        }
        Ok(())
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
        if let Err(message) = check_tolerance(solver.tolerance) {
            return wrong("tolerance", message);
        }
        if solver.time_limit_s.is_some_and(|limit| !(0.0..=1e9).contains(&limit)) {
            return wrong("time_limit_s", "must be a number of seconds, not negative".into());
        }
        if let Some(Err(message)) = solver.memory_limit.as_ref().map(Amount::bytes) {
            return wrong("memory_limit", message);
        }
        if solver.precision == Precision::Mixed {
            return wrong("precision", "mixed precision is not available yet; use \"f64\"".into());
        }
        self.check_method()?;
        if let (Some(name), Operator::Assembled) = (solver.preconditioner.of_cells(), solver.operator) {
            let message =
                format!("{name} is made from the cells, not from a matrix: use \"auto\" or \"matrix-free\"");
            return wrong("operator", message);
        }
        if solver.gmg.is_some() && solver.preconditioner != PreconditionerName::Gmg {
            return wrong("gmg", "these options need preconditioner = \"gmg\"".into());
        }
        match &solver.pmg {
            Some(_) if solver.preconditioner != PreconditionerName::Pmg => {
                return wrong("pmg", "these options need preconditioner = \"pmg\"".into());
            }
            Some(options) => options.check().or_else(|error| wrong("pmg", error))?,
            None => {}
        }
        match &solver.amg {
            Some(_) if !solver.preconditioner.has_algebraic_levels() => {
                wrong("amg", "these options need preconditioner = \"amg\" or \"pmg\"".into())
            }
            Some(options) => options.check().or_else(|error| wrong("amg", error)),
            None => Ok(()),
        }
    }

    /// Refuses what the iterative method cannot do.
    fn check_method(&self) -> Result<(), CaseError> {
        let solver = &self.file.solver;
        let wrong = |key: &str, message: String| Err(self.wrong(&["solver".into(), key.into()], message));
        let (method, name) = (solver.method, solver.method.name());
        match solver.steps {
            Some(_) if method != Method::SStepCg => {
                return wrong("steps", "steps at once need method = \"s-step-cg\"".into());
            }
            Some(steps) if !(1..=MAX_STEPS).contains(&steps) => {
                let message = format!("{steps} is not between 1 and {MAX_STEPS}; 3 is a good choice");
                return wrong("steps", message);
            }
            _ => {}
        }
        match solver.restart {
            Some(_) if method != Method::Gmres => {
                return wrong("restart", "beginning anew needs method = \"gmres\"".into());
            }
            Some(0) => {
                return wrong(
                    "restart",
                    "0 directions leave nothing to choose from; 30 are a good choice".into(),
                );
            }
            _ => {}
        }
        if solver.device.starts_with("cuda") && !method.is_for_gpus() {
            return Err(self.needs_cpu());
        }
        let is_amg = solver.preconditioner.has_algebraic_levels();
        let is_k = solver.amg.as_ref().is_some_and(|options| options.cycle == CycleName::K);
        match method {
            Method::SStepCg | Method::MergedCg if !solver.preconditioner.is_diagonal() => wrong(
                "method",
                format!("{name} takes the preconditioners \"jacobi\" and \"none\"; use \"cg\""),
            ),
            Method::PipelinedCg if is_amg && is_k => {
                wrong("method", format!("{name} cannot follow K cycles, which are no fixed map; use \"cg\""))
            }
            _ => Ok(()),
        }
    }

    /// The error where a method that is for processors alone is asked of a GPU.
    pub(crate) fn needs_cpu(&self) -> CaseError {
        let name = self.file.solver.method.name();
        let message =
            format!("{name} runs on CPUs only: use device = \"cpu\" or \"auto\", or method = \"cg\"");
        self.wrong(&["solver".into(), "method".into()], message)
    }
}

//! A checked model of the membrane.

use std::sync::Arc;

use super::description::Description;
use super::formulas::Formulas;
use super::resolve;
use super::source::{Formula, Source};
use crate::CardiacError;

/// A model of the membrane of a heart cell: the ionic current and the states that it depends on.
///
/// $$ \frac{dV}{dt} = -I_{ion}(V, w) + I_{stim}, \qquad \frac{dw}{dt} = g(V, w) $$
///
/// The current is that for each unit of membrane capacitance. Gates follow $dw/dt = (w_\infty - w)/\tau$ with
/// $w_\infty$, τ that depend on the other variables. Formulas have been read and evaluated at the initial state.
///
/// ```
/// use femtile_cardiac::ionic::Model;
/// let model = Model::named("ten-tusscher-panfilov-2006:endo")?.with_constant("g_Na", 0.0)?;
/// assert_eq!((model.n_states(), model.rest_voltage()), (18, -86.709));
/// # Ok::<(), femtile_cardiac::CardiacError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Model {
    pub(super) source: Arc<Source>,
    pub(super) description: Arc<Description>,
    pub(super) variant: Option<String>,
    pub(super) units: Units,
    pub(super) voltage: Voltage,
    pub(super) constants: Vec<Constant>,
    pub(super) definitions: Vec<(String, Formula)>,
    pub(super) states: Vec<State>,
    pub(super) current: Formula,
    /// Values of constants by name that replace those of the description.
    pub(super) overrides: Vec<(String, f64)>,
}

/// Scales of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Units {
    /// Milliseconds in a unit of time; none for a model without a scale.
    pub time_ms: Option<f64>,
    /// The a and b of $V_{mV} = aV + b$; none for a model without a scale.
    pub voltage_mv: Option<[f64; 2]>,
}

impl Units {
    /// Milliseconds and millivolts.
    pub const PHYSICAL: Self = Self { time_ms: Some(1.0), voltage_mv: Some([1.0, 0.0]) };

    /// Returns `true` for models that compute in milliseconds and millivolts.
    pub fn is_physical(&self) -> bool {
        *self == Self::PHYSICAL
    }
}

#[derive(Debug, Clone)]
pub(super) struct Voltage {
    pub name: String,
    pub initial: f64,
}

#[derive(Debug, Clone)]
pub(super) struct Constant {
    pub name: String,
    pub value: f64,
}

/// A state of the membrane besides the voltage.
#[derive(Debug, Clone)]
pub struct State {
    pub(super) name: String,
    pub(super) initial: f64,
    pub(super) dynamics: Dynamics,
}

impl State {
    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its published initial value.
    pub fn initial(&self) -> f64 {
        self.initial
    }

    /// Returns `true` for a gate, which Rush–Larsen schemes integrate exactly at a fixed voltage.
    pub fn is_gate(&self) -> bool {
        !matches!(self.dynamics, Dynamics::Rate(_))
    }
}

/// The equation of a state.
#[derive(Debug, Clone)]
pub(super) enum Dynamics {
    /// $(w_\infty - w)/\tau$
    Relaxation { steady: Formula, time_constant: Formula },
    /// $(w_\infty - w)(\alpha + \beta)$, with $w_\infty = \alpha/(\alpha + \beta)$ unless it is given.
    Opening { steady: Option<Formula>, alpha: Formula, beta: Formula },
    /// Any other rate.
    Rate(Formula),
}

impl Model {
    /// Reads a description in TOML.
    ///
    /// # Errors
    /// [`CardiacError::Model`] with the place in the text.
    pub fn from_toml(text: &str) -> Result<Self, CardiacError> {
        Self::from_source(Source { name: "model".into(), text: text.into() }, None)
    }

    /// Reads a model in EasyML, the language of openCARP, by translation to TOML.
    ///
    /// # Errors
    /// [`CardiacError::Model`] with the place in the text, or in the translation.
    pub fn from_easyml(text: &str) -> Result<Self, CardiacError> {
        Self::translated(Source { name: "model".into(), text: text.into() }, "model", None)
    }

    fn translated(source: Source, name: &str, variant: Option<&str>) -> Result<Self, CardiacError> {
        let text = super::easyml::to_toml(&source, name)?;
        Self::from_source(Source { name: format!("{} in TOML", source.name), text }, variant)
    }

    /// Returns the text of its description.
    pub fn to_toml(&self) -> &str {
        &self.source.text
    }

    /// Reads a description from a file: EasyML if its name ends in `.model`, else TOML. `variant` names one
    /// of the variants that the file lists.
    ///
    /// # Errors
    /// [`CardiacError::Setting`] when the file cannot be read; [`CardiacError::Model`] with the place in the file.
    pub fn read(path: &std::path::Path, variant: Option<&str>) -> Result<Self, CardiacError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| CardiacError::setting("model", format!("{name} cannot be read: {error}")))?;
        let source = Source { name, text };
        if path.extension().is_some_and(|extension| extension == "model") {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
            return Self::translated(source, &stem, variant);
        }
        Self::from_source(source, variant)
    }

    pub(super) fn from_source(source: Source, variant: Option<&str>) -> Result<Self, CardiacError> {
        let description = match toml::from_str::<Description>(&source.text) {
            Ok(description) => Arc::new(description),
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                return Err(source.error(at, error.message()));
            }
        };
        Self::resolved(Arc::new(source), description, variant, Vec::new())
    }

    fn resolved(
        source: Arc<Source>,
        description: Arc<Description>,
        variant: Option<&str>,
        overrides: Vec<(String, f64)>,
    ) -> Result<Self, CardiacError> {
        let model = resolve::model(source, description, variant, overrides)?;
        Formulas::new(&model)?.check_initial_state(&model)?;
        Ok(model)
    }

    /// Returns the model with another value of a constant; constants that are formulas of it follow.
    ///
    /// # Errors
    /// [`CardiacError::Setting`] when there is no such constant, when the value is not finite, or when it
    /// makes a rate not finite.
    pub fn with_constant(&self, name: &str, value: f64) -> Result<Self, CardiacError> {
        if self.constant(name).is_none() {
            let names: Vec<&str> = self.constants.iter().map(|constant| constant.name.as_str()).collect();
            let message = format!(
                "{} has no constant `{name}`; its constants are {}",
                self.description.name,
                names.join(", ")
            );
            return Err(CardiacError::setting("constant", message));
        }
        if !value.is_finite() {
            return Err(CardiacError::setting(
                "constant",
                format!("{name} = {value} is not a finite number"),
            ));
        }
        let mut overrides = self.overrides.clone();
        overrides.retain(|(overridden, _)| overridden != name);
        overrides.push((name.into(), value));
        Self::resolved(self.source.clone(), self.description.clone(), self.variant.as_deref(), overrides)
    }

    /// Returns a variant of the model, such as a type of cell; replaced constants stay.
    ///
    /// # Errors
    /// [`CardiacError::Setting`] when there is no such variant.
    pub fn with_variant(&self, variant: &str) -> Result<Self, CardiacError> {
        let (source, description) = (self.source.clone(), self.description.clone());
        Self::resolved(source, description, Some(variant), self.overrides.clone())
    }

    /// Returns its name, without that of a variant.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// Returns its title for plots and reports, with that of the variant.
    pub fn title(&self) -> String {
        let Description { title, name, variants, .. } = &*self.description;
        let title = if title.is_empty() { name } else { title };
        let of_variant = self.variant.as_ref().and_then(|variant| {
            let (name, table) = variants.iter().find(|(name, _)| name.get_ref() == variant)?;
            Some(if table.title.is_empty() { name.get_ref() } else { &table.title })
        });
        of_variant.map_or_else(|| title.clone(), |of_variant| format!("{title} ({of_variant})"))
    }

    /// Returns the chosen variant.
    pub fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }

    /// Returns the names of all variants.
    pub fn variants(&self) -> Vec<&str> {
        let variants = super::description::in_order(&self.description.variants);
        variants.into_iter().map(|(name, _)| name.get_ref().as_str()).collect()
    }

    /// Returns the keys of its sources in `references.bib`.
    pub fn citations(&self) -> &[String] {
        &self.description.source
    }

    /// Returns its scales.
    pub fn units(&self) -> Units {
        self.units
    }

    /// Returns the name of the voltage in formulas.
    pub fn voltage_name(&self) -> &str {
        &self.voltage.name
    }

    /// Returns the initial voltage, that of a cell at rest.
    pub fn rest_voltage(&self) -> f64 {
        self.voltage.initial
    }

    /// Returns the number of states without the voltage.
    pub fn n_states(&self) -> usize {
        self.states.len()
    }

    /// Returns the states without the voltage: gates first.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// Returns the position of a state.
    pub fn position(&self, state: &str) -> Option<usize> {
        self.states.iter().position(|known| known.name == state)
    }

    /// Returns constants with their values.
    pub fn constants(&self) -> impl Iterator<Item = (&str, f64)> {
        self.constants.iter().map(|constant| (constant.name.as_str(), constant.value))
    }

    /// Returns the value of a constant.
    pub fn constant(&self, name: &str) -> Option<f64> {
        self.constants().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

//! The models that come with the program.

use super::Model;
use super::source::Source;
use crate::CardiacError;

/// Names and descriptions.
const MODELS: [(&str, &str); 5] = [
    ("aliev-panfilov", include_str!("../../models/aliev-panfilov.toml")),
    ("mitchell-schaeffer", include_str!("../../models/mitchell-schaeffer.toml")),
    ("fitzhugh-nagumo", include_str!("../../models/fitzhugh-nagumo.toml")),
    ("ten-tusscher-panfilov-2006", include_str!("../../models/ten-tusscher-panfilov-2006.toml")),
    ("courtemanche-ramirez-nattel-1998", include_str!("../../models/courtemanche-ramirez-nattel-1998.toml")),
];

impl Model {
    /// Returns the names of the built-in models.
    pub fn names() -> impl Iterator<Item = &'static str> {
        MODELS.iter().map(|(name, _)| *name)
    }

    /// Returns the description of a built-in model, an example for models in files.
    pub fn description_of(name: &str) -> Option<&'static str> {
        MODELS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// Returns a built-in model by `name` or `name:variant`.
    ///
    /// # Errors
    /// [`CardiacError::Setting`] with the names there are.
    pub fn named(name: &str) -> Result<Self, CardiacError> {
        let (model, variant) = match name.split_once(':') {
            Some((model, variant)) => (model, Some(variant)),
            None => (name, None),
        };
        let Some(text) = Self::description_of(model) else {
            let names: Vec<&str> = Self::names().collect();
            let message = format!(
                "there is no model `{model}`; the built-in ones are {}; others are read from files",
                names.join(", ")
            );
            return Err(CardiacError::setting("model", message));
        };
        Self::from_source(Source { name: format!("{model}.toml"), text: text.into() }, variant)
    }
}

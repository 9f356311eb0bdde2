//! Equations as text.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::FormError;

/// The equations that come with the library: names and texts.
const LIBRARY: [(&str, &str); 5] = [
    ("reaction-diffusion", include_str!("../equations/reaction-diffusion.toml")),
    ("diffusion", include_str!("../equations/diffusion.toml")),
    ("monodomain", include_str!("../equations/monodomain.toml")),
    ("convection-diffusion", include_str!("../equations/convection-diffusion.toml")),
    ("elasticity", include_str!("../equations/elasticity.toml")),
];

/// An equation: names of unknowns and coefficients, and formulas of its integrands.
///
/// Formulas use `x`, `y`, `z`, `t`, the components of u (`u`), their derivatives (`u_x`, `u_y`, `u_z`, `u_t`), coefficients
/// (a scalar `c`, entries `c_x`, … of a vector and `c_xx`, `c_xy`, … of a tensor) and definitions; those on facets use
/// the normal (`n_x`, `n_y`, `n_z`) as well, those on interior facets u of the second cell (`u_other`, `u_other_x`, …).
/// In the plane, whatever ends in z is zero. Signs are those of the residual: `flux` is multiplied by ∇v, `source` by v,
/// and the sum of all integrals vanishes. An `energy` stands for its derivatives by u and ∇u.
///
/// ```
/// use femtile_form::{Domain, Equation};
/// let form = Equation::named("elasticity")?.form(3).with("young", 210e9)?.with("poisson", 0.3)?.build()?;
/// let class = form.integrals()[0].integrand.class();
/// assert!(class.symmetric && class.couples_components && class.is_linear());
/// # Ok::<(), femtile_form::FormError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Equation {
    pub(crate) name: String,
    pub(crate) text: Text,
}

/// The keys of an equation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Text {
    pub description: String,
    /// Names of the components of u.
    pub unknown: Vec<String>,
    /// Whether u is a vector in space, with as many components as space has dimensions.
    #[serde(default)]
    pub vector: bool,
    #[serde(default)]
    pub coefficients: BTreeMap<String, Parameter>,
    /// Names of formulas, in any order.
    #[serde(default)]
    pub define: BTreeMap<String, String>,
    pub cells: Terms,
    #[serde(default)]
    pub boundary: BTreeMap<String, FacetTerms>,
    #[serde(default)]
    pub interior: Option<FacetTerms>,
}

/// A coefficient of an equation.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameter {
    #[serde(default)]
    pub shape: CoefficientShape,
    pub default: Option<f64>,
}

/// The shape of a coefficient.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CoefficientShape {
    #[default]
    Scalar,
    Vector,
    Tensor,
}

/// The formulas of an integrand, by components of v.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Terms {
    pub energy: Option<String>,
    #[serde(default)]
    pub flux: Vec<Vec<String>>,
    #[serde(default)]
    pub source: Vec<String>,
}

/// The formulas of an integrand on facets, with coefficients of its own.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FacetTerms {
    #[serde(default)]
    pub coefficients: BTreeMap<String, Parameter>,
    #[serde(default)]
    pub flux: Vec<Vec<String>>,
    #[serde(default)]
    pub source: Vec<String>,
    /// As `flux` and `source`, multiplied by the test function of the second cell.
    #[serde(default)]
    pub flux_other: Vec<Vec<String>>,
    #[serde(default)]
    pub source_other: Vec<String>,
}

impl Equation {
    /// Returns the names of the equations of the library.
    pub fn names() -> impl Iterator<Item = &'static str> {
        LIBRARY.iter().map(|(name, _)| *name)
    }

    /// Returns the text of an equation of the library, an example for others.
    pub fn text_of(name: &str) -> Option<&'static str> {
        LIBRARY.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// Returns an equation of the library.
    ///
    /// # Errors
    /// [`FormError::Equation`] with the names there are.
    pub fn named(name: &str) -> Result<Self, FormError> {
        let Some(text) = Self::text_of(name) else {
            let names: Vec<&str> = Self::names().collect();
            let message = format!("there is none of this name; known are {}", names.join(", "));
            return Err(FormError::Equation { equation: name.to_owned(), message });
        };
        Self::from_toml(name, text)
    }

    /// Reads an equation from a TOML text; the files in `equations/` of this crate are examples.
    ///
    /// # Errors
    /// [`FormError::Equation`] for a text without the keys of an equation, or with a wrong number of formulas.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, FormError> {
        let failure = |message: String| FormError::Equation { equation: name.to_owned(), message };
        let text: Text = toml::from_str(text).map_err(|error| failure(error.to_string()))?;
        let n = text.unknown.len();
        if n == 0 {
            return Err(failure("unknown: at least one component".to_owned()));
        }
        if text.vector && n != 3 {
            return Err(failure(format!(
                "unknown: {n} names of a vector; it needs 3, and the plane has the first two"
            )));
        }
        let facets = text.boundary.iter().map(|(name, terms)| (format!("boundary.{name}"), terms));
        let facets = facets.chain(text.interior.iter().map(|terms| ("interior".to_owned(), terms)));
        let on_facets = facets.flat_map(|(place, terms)| {
            let own = (place.clone(), &terms.flux, &terms.source);
            [own, (format!("{place} (second cell)"), &terms.flux_other, &terms.source_other)]
        });
        let cells = ("cells".to_owned(), &text.cells.flux, &text.cells.source);
        for (place, flux, source) in std::iter::once(cells).chain(on_facets) {
            if !(source.is_empty() || source.len() == n) {
                return Err(failure(format!(
                    "{place}: {} formulas of the source for {n} components",
                    source.len()
                )));
            }
            if !(flux.is_empty() || flux.len() == n && flux.iter().all(|row| row.len() == 3)) {
                return Err(failure(format!(
                    "{place}: the flux needs {n} rows (components) of 3 formulas (axes)"
                )));
            }
        }
        Ok(Self { name: name.to_owned(), text })
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a line that describes it.
    pub fn description(&self) -> &str {
        &self.text.description
    }

    /// Returns the number of components of u in a space of a dimension.
    pub fn n_components(&self, dimension: usize) -> usize {
        if self.text.vector { dimension } else { self.text.unknown.len() }
    }

    /// Returns the names of its coefficients.
    pub fn coefficients(&self) -> impl Iterator<Item = &str> {
        self.text.coefficients.keys().map(String::as_str)
    }

    pub(crate) fn failure(&self, message: String) -> FormError {
        FormError::Equation { equation: self.name.clone(), message }
    }
}

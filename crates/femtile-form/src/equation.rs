//! Equations as text.

use std::collections::BTreeMap;

use femtile_expression::Shape;
use serde::Deserialize;

use crate::definitions::{definitions, has_word, without_comments};
use crate::error::FormError;

/// The name of the size of a cell in formulas.
pub(crate) const CELL_SIZE: &str = "h";

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
/// Formulas use the point `x`, `y`, `z`, the time `t`, the size `h` of the cell, unknowns (`u`, `grad(u)`, `div(u)`, `u_t`), coefficients, definitions and
/// the unit matrix `identity`; those on facets the unit normal `normal` as well, those on interior facets the unknowns of the
/// second cell (`u_other`). Vectors have an entry for each axis, or for each component of their unknown;
/// `grad` of a vector has the derivatives of a component in a row.
///
/// The equation is, for all test functions v that vanish where u is given,
///
/// $$ \int c\,\partial_t u\cdot v + F : \nabla v\,dx = \int f\cdot v\,dx + \int_\Gamma g\cdot v\,ds $$
///
/// with the capacity c, the flux F and the source f of the cells and the flux g into the body on the boundary. An energy stands for
/// its derivatives: it adds $\partial W/\partial\nabla u$ to F and takes $\partial W/\partial u$ from f.
///
/// ```
/// use femtile_form::Equation;
/// let form = Equation::named("elasticity")?.form(3).with("young", 210e9)?.with("poisson", 0.3)?.build()?;
/// let class = form.integrals()[0].integrand.class();
/// assert!(class.symmetric && class.couples_components && class.is_linear());
///
/// let text = r#"
///     unknown = { u = { components = "dimension" } }
///     define = "F = identity + grad(u); J = det(F)"
///     cells = { energy = "(tr(F'*F) - 3)/2 - log(J) + 5*log(J)^2" }
/// "#;
/// let neo_hookean = Equation::from_toml("neo-hookean", text)?.form(3).build()?;
/// assert!(neo_hookean.is_symmetric() && !neo_hookean.is_linear());
/// # Ok::<(), femtile_form::FormError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Equation {
    name: String,
    pub(crate) text: EquationText,
    /// The key of the energy in errors.
    pub(crate) energy_key: &'static str,
}

/// The keys of an equation.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EquationText {
    /// A line that describes it.
    #[serde(default)]
    pub description: String,
    /// Names of the unknowns; their components follow each other in alphabetical order of the names.
    pub unknown: BTreeMap<String, Unknown>,
    /// The coefficients by name.
    #[serde(default)]
    pub coefficients: BTreeMap<String, Parameter>,
    /// Definitions `name = formula`, one in a line or separated by `;`. A formula uses what was defined before it.
    #[serde(default)]
    pub define: String,
    /// The integrand over cells.
    #[serde(default)]
    pub cells: CellTerms,
    /// Terms on boundary facets by name.
    #[serde(default)]
    pub boundary: BTreeMap<String, BoundaryTerms>,
    /// The integrand over interior facets.
    #[serde(default)]
    pub interior: Option<InteriorTerms>,
    /// Terms on pairs of coinciding facets by name.
    #[serde(default)]
    pub interface: BTreeMap<String, InteriorTerms>,
}

/// An unknown of an equation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// Its components; none for a number.
    pub components: Option<Components>,
}

/// The components of an unknown that is a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Components {
    /// So many.
    Count(usize),
    /// One for each axis.
    Axes(Axes),
}

/// The word for a component for each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axes {
    /// As many as space has dimensions.
    Dimension,
}

impl Unknown {
    /// Returns the shape of its values in a space of a dimension.
    pub fn shape(&self, dimension: usize) -> Shape {
        match self.components {
            None => Shape::Number,
            Some(Components::Count(n)) => Shape::Vector(n),
            Some(Components::Axes(Axes::Dimension)) => Shape::Vector(dimension),
        }
    }
}

/// A coefficient of an equation.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its shape.
    #[serde(default)]
    pub shape: CoefficientShape,
    /// The value where none is given: of a number, of all entries of a vector, on the diagonal of a tensor.
    pub default: Option<f64>,
}

/// The shape of a coefficient.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CoefficientShape {
    /// A number.
    #[default]
    Scalar,
    /// A vector with an entry for each axis.
    Vector,
    /// A matrix with a row and a column for each axis.
    Tensor,
}

/// Formulas that belong to unknowns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Formulas {
    /// The formula of the only unknown.
    One(String),
    /// By unknown; none is zero.
    ByUnknown(BTreeMap<String, String>),
    /// No formula.
    #[default]
    #[serde(skip)]
    None,
}

impl From<BTreeMap<String, String>> for Formulas {
    fn from(texts: BTreeMap<String, String>) -> Self {
        Self::ByUnknown(texts)
    }
}

impl From<&str> for Formulas {
    fn from(text: &str) -> Self {
        Self::One(text.to_owned())
    }
}

impl Formulas {
    fn texts(&self) -> Vec<&str> {
        match self {
            Self::One(text) => vec![text],
            Self::ByUnknown(texts) => texts.values().map(String::as_str).collect(),
            Self::None => Vec::new(),
        }
    }
}

/// The integrand over cells.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellTerms {
    /// The energy density W.
    pub energy: Option<String>,
    /// F, multiplied by ∇v: a vector of an unknown that is a number, else a matrix.
    #[serde(default)]
    pub flux: Formulas,
    /// f, multiplied by v, on the right side.
    #[serde(default)]
    pub source: Formulas,
    /// A stabilisation of convection.
    pub stabilise: Option<Stabilisation>,
    /// c, multiplied by ∂u/∂t: a number, of an unknown that is a vector also a vector with the factor of each component, or a matrix.
    #[serde(default)]
    pub capacity: Formulas,
}

/// A stabilisation of convection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stabilisation {
    /// Streamline upwind Petrov–Galerkin `[brooks1982]`: test functions $v + \tau\, b\cdot\nabla v$, for elements of degree 1.
    Supg,
}

/// The integrand over boundary facets, with coefficients of its own.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundaryTerms {
    /// The coefficients by name.
    #[serde(default)]
    pub coefficients: BTreeMap<String, Parameter>,
    /// g, the flux into the body, multiplied by v, on the right side.
    #[serde(default)]
    pub flux: Formulas,
}

/// The integrand over interior facets or an interface, with the test functions of both cells; as in cells, `source` stands on the right side.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InteriorTerms {
    /// Multiplied by ∇v of the first cell, out of which the normal points.
    #[serde(default)]
    pub flux: Formulas,
    /// Multiplied by v of the first cell.
    #[serde(default)]
    pub source: Formulas,
    /// Multiplied by ∇v of the second cell.
    #[serde(default)]
    pub flux_other: Formulas,
    /// Multiplied by v of the second cell.
    #[serde(default)]
    pub source_other: Formulas,
}

/// The name of the term of [`Equation::functional_on_facets`].
pub const ON_FACETS: &str = "functional";

/// Returns the error of a coefficient with the name of something else.
fn taken(name: &str) -> FormError {
    let message = format!("the name {name} has a meaning of its own; choose another name");
    FormError::Coefficient { coefficient: name.to_owned(), message }
}

impl EquationText {
    /// Returns whether formulas have a name without it being defined.
    fn reserves(&self, name: &str) -> bool {
        let stem = name.strip_suffix("_other").or_else(|| name.strip_suffix("_t"));
        name == "normal" || stem.is_some_and(|stem| self.unknown.contains_key(stem))
    }

    /// All formulas.
    fn texts(&self) -> Vec<&str> {
        let CellTerms { energy, flux, source, capacity, stabilise: _ } = &self.cells;
        let mut all: Vec<&str> = vec![&self.define];
        all.extend(energy.as_deref());
        all.extend([flux, source, capacity].into_iter().flat_map(Formulas::texts));
        all.extend(self.boundary.values().flat_map(|terms| terms.flux.texts()));
        let between_cells = self.interior.iter().chain(self.interface.values());
        for InteriorTerms { flux, source, flux_other, source_other } in between_cells {
            all.extend([flux, source, flux_other, source_other].into_iter().flat_map(Formulas::texts));
        }
        all
    }
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
    /// [`FormError::Equation`] for a text without the keys of an equation; as [`Self::new`].
    pub fn from_toml(name: &str, text: &str) -> Result<Self, FormError> {
        let failure = |message: String| FormError::Equation { equation: name.to_owned(), message };
        Self::new(name, toml::from_str(text).map_err(|error| failure(error.to_string()))?)
    }

    /// Makes an equation of texts. Formulas are read when a form is built.
    ///
    /// # Errors
    /// [`FormError::Equation`] without an unknown, for a vector of none or all unknowns together of more than 16 components; [`FormError::Coefficient`] for a
    /// coefficient with the name of something else.
    pub fn new(name: &str, mut text: EquationText) -> Result<Self, FormError> {
        let failure = |message: String| FormError::Equation { equation: name.to_owned(), message };
        if text.unknown.is_empty() {
            return Err(failure("unknown: at least one is needed".to_owned()));
        }
        if let Some((own, _)) = text
            .unknown
            .iter()
            .find(|(_, unknown)| matches!(unknown.components, Some(Components::Count(0 | 17..))))
        {
            return Err(failure(format!("unknown.{own}: a vector has 1 to 16 components")));
        }
        if text.unknown.values().map(|unknown| unknown.shape(3).n_entries()).sum::<usize>() > 16 {
            return Err(failure("unknown: all together have at most 16 components".to_owned()));
        }
        if let Some(name) = text.coefficients.keys().find(|name| text.reserves(name)) {
            return Err(taken(name));
        }
        text.define = without_comments(&text.define);
        Ok(Self { name: name.to_owned(), text, energy_key: "energy" })
    }

    /// Returns the equation whose energy is a functional of the unknowns: the integral of a formula over the cells. It has the
    /// definitions, those coefficients that they or the formula use, and scalars of its own. Its residual is the derivative
    /// of the functional by the unknowns.
    ///
    /// # Errors
    /// As [`Self::new`]; [`FormError::Coefficient`] for a scalar with the name of a coefficient.
    pub fn functional(&self, formula: &str, scalars: &[&str]) -> Result<Self, FormError> {
        let (define, mut coefficients) = (self.text.define.clone(), self.text.coefficients.clone());
        coefficients.retain(|name, _| has_word(&define, name) || has_word(formula, name));
        for name in scalars {
            if self.text.coefficients.contains_key(*name) {
                let message = "the equation has it: choose another name for that of the functional";
                return Err(FormError::Coefficient {
                    coefficient: (*name).to_owned(),
                    message: message.to_owned(),
                });
            }
            coefficients.insert((*name).to_owned(), Parameter::default());
        }
        let cells = CellTerms { energy: Some(formula.to_owned()), ..CellTerms::default() };
        let unknown = self.text.unknown.clone();
        let text = EquationText { unknown, coefficients, define, cells, ..EquationText::default() };
        Ok(Self { energy_key: "functional", ..Self::new(&self.name, text)? })
    }

    /// Returns the equation whose only integral is that of a formula over facets, the term [`ON_FACETS`]: the flux into the body of the
    /// first component. `dimension` is that of space.
    ///
    /// # Errors
    /// As [`Self::functional`].
    pub fn functional_on_facets(&self, formula: &str, dimension: usize) -> Result<Self, FormError> {
        let mut equation = self.functional(formula, &[])?;
        equation.text.cells = CellTerms::default();
        let (name, unknown) = self
            .text
            .unknown
            .first_key_value()
            .ok_or_else(|| self.failure("unknown: at least one is needed".to_owned()))?;
        let flux = match unknown.shape(dimension) {
            Shape::Number => formula.to_owned(),
            shape => format!("[{formula}{}]", ", 0".repeat(shape.n_entries() - 1)),
        };
        let flux = Formulas::ByUnknown([(name.clone(), flux)].into());
        equation.set_boundary_term(ON_FACETS, BoundaryTerms { flux, ..BoundaryTerms::default() });
        Ok(equation)
    }

    /// Gives each unknown a capacity, a formula of the coefficients and of `scalars`, which are further ones, 1 where no value is given.
    pub fn set_capacity(&mut self, formula: &str, scalars: &[&str]) {
        let parameter = Parameter { shape: CoefficientShape::Scalar, default: Some(1.0) };
        self.text.coefficients.extend(scalars.iter().map(|name| ((*name).to_owned(), parameter.clone())));
        let of_unknown = |name: &String| (name.clone(), formula.to_owned());
        self.text.cells.capacity = Formulas::ByUnknown(self.text.unknown.keys().map(of_unknown).collect());
    }

    /// Adds a coefficient, for formulas of conditions.
    ///
    /// # Errors
    /// [`FormError::Coefficient`] for a name that has a meaning in the equation.
    pub fn add_coefficient(&mut self, name: &str, shape: CoefficientShape) -> Result<(), FormError> {
        let text = &self.text;
        let of_terms = text.boundary.values().flat_map(|terms| terms.coefficients.keys());
        let mut names = text.coefficients.keys().chain(text.unknown.keys()).chain(of_terms);
        if names.any(|own| own == name) || has_word(&text.define, name) || text.reserves(name) {
            return Err(taken(name));
        }
        self.text.coefficients.insert(name.to_owned(), Parameter { shape, default: None });
        Ok(())
    }

    /// Stabilises the convection of each component.
    pub fn set_stabilisation(&mut self, stabilisation: Option<Stabilisation>) {
        self.text.cells.stabilise = stabilisation;
    }

    /// Returns whether its convection is stabilised.
    pub fn is_stabilised(&self) -> bool {
        self.text.cells.stabilise.is_some()
    }

    /// Returns whether formulas use `h`, the size of a cell, which a coefficient, an unknown or a definition of that name hides.
    pub(crate) fn uses_cell_size(&self) -> bool {
        let text = &self.text;
        let boundary = text.boundary.values();
        let is_coefficient =
            boundary.flat_map(|terms| terms.coefficients.keys()).chain(text.coefficients.keys());
        let is_taken = is_coefficient.chain(text.unknown.keys()).any(|name| name == CELL_SIZE)
            || definitions(&text.define).is_ok_and(|all| all.iter().any(|(name, _)| *name == CELL_SIZE));
        !is_taken && text.texts().iter().any(|text| has_word(text, CELL_SIZE))
    }

    /// Returns whether a formula has the rate of an unknown by its name, such as `u_t`.
    pub fn uses_rate(&self) -> bool {
        let texts = self.text.texts();
        self.text.unknown.keys().any(|name| texts.iter().any(|text| has_word(text, &format!("{name}_t"))))
    }

    /// Returns whether a form needs [`FormBuilder::with_cell_metric`](crate::FormBuilder::with_cell_metric).
    pub fn needs_cell_metric(&self) -> bool {
        self.is_stabilised() || self.uses_cell_size()
    }

    /// Returns the first coefficient that no formula uses.
    pub(crate) fn unused(&self) -> Option<&str> {
        let texts = self.text.texts();
        let uses = |name: &str| texts.iter().any(|text| has_word(text, name));
        self.coefficients().find(|name| !uses(name))
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a line that describes it.
    pub fn description(&self) -> &str {
        &self.text.description
    }

    /// Returns its unknowns with their shapes in a space of a dimension.
    pub fn unknowns(&self, dimension: usize) -> impl Iterator<Item = (&str, Shape)> {
        self.text.unknown.iter().map(move |(name, unknown)| (name.as_str(), unknown.shape(dimension)))
    }

    /// Returns the name of the first unknown that is a vector with a component for each axis.
    pub fn first_vector(&self) -> Option<&str> {
        let mut all = self.text.unknown.iter();
        let found = all.find(|(_, unknown)| matches!(unknown.components, Some(Components::Axes(_))));
        found.map(|(name, _)| name.as_str())
    }

    /// Returns the number of components of all unknowns in a space of a dimension.
    pub fn n_components(&self, dimension: usize) -> usize {
        self.unknowns(dimension).map(|(_, shape)| shape.n_entries()).sum()
    }

    /// Returns the names of its coefficients.
    pub fn coefficients(&self) -> impl Iterator<Item = &str> {
        self.text.coefficients.keys().map(String::as_str)
    }

    /// Returns the shape of a coefficient.
    pub fn coefficient_shape(&self, name: &str) -> Option<CoefficientShape> {
        self.text.coefficients.get(name).map(|parameter| parameter.shape)
    }

    /// Adds a term on boundary facets.
    pub fn set_boundary_term(&mut self, name: &str, terms: BoundaryTerms) {
        self.text.boundary.insert(name.to_owned(), terms);
    }

    /// Adds a term on pairs of coinciding facets.
    pub fn set_interface_term(&mut self, name: &str, terms: InteriorTerms) {
        self.text.interface.insert(name.to_owned(), terms);
    }

    pub(crate) fn failure(&self, message: String) -> FormError {
        FormError::Equation { equation: self.name.clone(), message }
    }
}

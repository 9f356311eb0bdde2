//! An equation with its coefficients.

use std::collections::BTreeMap;
use std::sync::Arc;

use femtile_expression::{Expression, Shape};
use femtile_mesh::Field;

use crate::class::Storage;
use crate::coefficient::Coefficient;
use crate::equation::{CoefficientShape, Components, Equation, Formulas, Parameter, Unknown};
use crate::error::FormError;
use crate::formula::{CELL_METRIC, Part, Place, Role, THICKNESS, graph};
use crate::integrand::{Graph, Integrand, Side};
use crate::recipe::{Bound, Entry, Which};

/// Where an integral is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Domain {
    /// All cells.
    Cells,
    /// Some boundary facets: their positions in the list of boundary facets.
    Boundary(Vec<u32>),
    /// All interior facets.
    Interior,
    /// Pairs of coinciding facets: their positions in the list of boundary facets. The normal points out of the cell of the first one.
    Interface(Vec<[u32; 2]>),
}

impl Domain {
    /// Returns its name for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cells => "the cells",
            Self::Boundary(_) => "boundary facets",
            Self::Interior => "interior facets",
            Self::Interface(_) => "an interface",
        }
    }

    /// Returns whether integrands have the unknowns of two cells.
    pub(crate) fn has_two_sides(&self) -> bool {
        matches!(self, Self::Interior | Self::Interface(_))
    }
}

/// An integral of a form.
#[derive(Debug, Clone)]
pub struct Integral {
    /// Where it is taken.
    pub domain: Domain,
    /// The integrand.
    pub integrand: Integrand,
}

/// A form: a sum of integrals, see the documentation of this crate.
#[derive(Debug, Clone)]
pub struct Form {
    dimension: usize,
    n_components: usize,
    integrals: Vec<Integral>,
}

impl Form {
    /// Returns the dimension of space.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Returns the number of components of u.
    pub fn n_components(&self) -> usize {
        self.n_components
    }

    /// Returns its integrals.
    pub fn integrals(&self) -> &[Integral] {
        &self.integrals
    }

    /// Returns whether its tangent is symmetric.
    pub fn is_symmetric(&self) -> bool {
        self.integrals.iter().all(|integral| integral.integrand.class().symmetric)
    }

    /// Returns whether its tangent is certain to be indefinite: the diagonal of a component, such as the pressure of a saddle point, has
    /// no positive entry, and that of another one has.
    pub fn is_saddle_point(&self) -> bool {
        let classes = self.integrals.iter().map(|integral| integral.integrand.class());
        let (present, positive) =
            classes.fold((0, 0), |(a, b), class| (a | class.present, b | class.positive));
        positive != 0 && present & !positive != 0
    }

    /// Returns whether conjugate gradients can solve with its tangent: it is symmetric, and not that of a saddle point.
    pub fn takes_conjugate_gradients(&self) -> bool {
        self.is_symmetric() && !self.is_saddle_point()
    }

    /// Returns whether it is linear in u.
    pub fn is_linear(&self) -> bool {
        self.integrals.iter().all(|integral| integral.integrand.class().is_linear())
    }

    /// Returns whether it depends on t.
    pub fn is_in_time(&self) -> bool {
        self.integrals.iter().any(|integral| integral.integrand.is_in_time())
    }

    /// Returns whether entries of its tangent depend on t.
    pub fn is_tangent_in_time(&self) -> bool {
        self.integrals.iter().any(|integral| integral.integrand.is_tangent_in_time())
    }

    /// Returns how the rate of u enters it.
    pub fn storage(&self) -> Storage {
        let all = self.integrals.iter().map(|integral| integral.integrand.storage());
        all.fold(Storage::none(self.n_components), Storage::with)
    }
}

/// The value of a coefficient: one [`Coefficient`] for a scalar or a tensor, one for each component of a vector.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// A scalar or a tensor.
    One(Coefficient),
    /// The components of a vector.
    Vector(Vec<Coefficient>),
}

impl From<f64> for Argument {
    fn from(value: f64) -> Self {
        Self::One(value.into())
    }
}

impl From<Coefficient> for Argument {
    fn from(coefficient: Coefficient) -> Self {
        Self::One(coefficient)
    }
}

impl From<Vec<Coefficient>> for Argument {
    fn from(components: Vec<Coefficient>) -> Self {
        Self::Vector(components)
    }
}

/// Coefficients by name.
type Arguments = BTreeMap<String, Argument>;

/// Gives the coefficients of an equation their values.
#[derive(Debug, Clone)]
pub struct FormBuilder<'a> {
    pub(crate) equation: &'a Equation,
    pub(crate) dimension: usize,
    arguments: Arguments,
    boundary: Vec<(String, Vec<u32>, Arguments)>,
    interfaces: Vec<(String, Vec<[u32; 2]>)>,
    metric: Option<Arc<Coefficient>>,
    is_axisymmetric: bool,
    thickness: Option<Arc<Coefficient>>,
    is_without_capacity: bool,
    pub(crate) exact: Option<Vec<Expression>>,
    parameter: Option<String>,
}

impl Equation {
    /// Starts a form in a space of a dimension: 2 or 3.
    pub fn form(&self, dimension: usize) -> FormBuilder<'_> {
        FormBuilder {
            equation: self,
            dimension,
            arguments: BTreeMap::new(),
            boundary: Vec::new(),
            interfaces: Vec::new(),
            metric: None,
            is_axisymmetric: false,
            thickness: None,
            is_without_capacity: false,
            exact: None,
            parameter: None,
        }
    }
}

impl FormBuilder<'_> {
    /// Sets a coefficient.
    ///
    /// # Errors
    /// [`FormError::Coefficient`] for a name that the equation does not have, with those that it has.
    pub fn with(mut self, name: &str, value: impl Into<Argument>) -> Result<Self, FormError> {
        known(name, &self.equation.text.coefficients)?;
        self.arguments.insert(name.to_owned(), value.into());
        Ok(self)
    }

    /// Sets the metric G of the cells, a tensor with $\xi\cdot G\xi = |\xi|^2/h^2$ in a cube with edges of length h, which `h` and
    /// stabilisations use.
    #[must_use]
    pub fn with_cell_metric(mut self, metric: Arc<Coefficient>) -> Self {
        self.metric = Some(metric);
        self
    }

    /// Makes the form one of a body of revolution, of which the plane is a half section: x is the distance from the axis, y runs along
    /// it. Integrals have the weight 2πx, and space has a third axis in formulas, around the first two: vectors have the entry
    /// zero there, and `grad(u)` of a vector with a component for each axis of the plane has $u_x/x$.
    #[must_use]
    pub fn axisymmetric(mut self, is_axisymmetric: bool) -> Self {
        self.is_axisymmetric = is_axisymmetric;
        self
    }

    /// Multiplies all integrals by the thickness of a sheet, a scalar that does not depend on u: sources and fluxes are per volume and
    /// per area of a body of that thickness. A body of revolution has none.
    #[must_use]
    pub fn thickness(mut self, thickness: Option<Coefficient>) -> Self {
        self.thickness = thickness.map(Arc::new);
        self
    }

    /// Leaves the capacity out of [derivations](Self::derivations), as modes have it on their other side.
    #[must_use]
    pub fn without_capacity(mut self, is_without_capacity: bool) -> Self {
        self.is_without_capacity = is_without_capacity;
        self
    }

    /// Returns the number of axes of space in formulas.
    fn n_axes(&self) -> usize {
        if self.is_axisymmetric { 3 } else { self.dimension }
    }

    /// Sets a coefficient to a field of cells by whose values [`Integrand::by_parameter`] differentiates.
    ///
    /// # Errors
    /// As [`Self::with`].
    pub fn parameter(mut self, name: &str, values: Field) -> Result<Self, FormError> {
        self.parameter = Some(name.to_owned());
        self.with(name, Coefficient::CellField(values))
    }

    /// Adds a term on boundary facets, given by their positions in the list of boundary facets.
    ///
    /// # Errors
    /// [`FormError::Coefficient`] for a term or a coefficient that the equation does not have.
    pub fn on_boundary(
        mut self,
        term: &str,
        facets: &[u32],
        arguments: &[(&str, Argument)],
    ) -> Result<Self, FormError> {
        let terms = &self.equation.text.boundary;
        known(term, terms)?;
        let mut own = BTreeMap::new();
        for (name, value) in arguments {
            known(name, &terms[term].coefficients)?;
            own.insert((*name).to_owned(), value.clone());
        }
        self.boundary.push((term.to_owned(), facets.to_vec(), own));
        Ok(self)
    }

    /// Adds a term on pairs of coinciding facets, given by their positions in the list of boundary facets.
    ///
    /// # Errors
    /// [`FormError::Coefficient`] for a term that the equation does not have.
    pub fn on_interface(mut self, term: &str, pairs: &[[u32; 2]]) -> Result<Self, FormError> {
        known(term, &self.equation.text.interface)?;
        self.interfaces.push((term.to_owned(), pairs.to_vec()));
        Ok(self)
    }

    /// Compiles the form.
    ///
    /// # Errors
    /// [`FormError::Coefficient`] for a coefficient without a value or of a wrong shape, [`FormError::Formula`] for a
    /// formula that cannot be read.
    pub fn build(self) -> Result<Form, FormError> {
        let compiled =
            |_: Option<&str>, domain, graph: Graph| Integral { domain, integrand: graph.compile() };
        let integrals = self.integrals(false, compiled)?;
        let n_components = self.equation.n_components(self.dimension);
        Ok(Form { dimension: self.dimension, n_components, integrals })
    }

    /// Reads all integrals: what is made of each, with its term on the boundary, its domain and its graph.
    pub(crate) fn integrals<T>(
        &self,
        is_symbolic: bool,
        made: impl Fn(Option<&str>, Domain, Graph) -> T,
    ) -> Result<Vec<T>, FormError> {
        let text = &self.equation.text;
        if self.is_axisymmetric {
            self.check_axes()?;
        }
        if let Some(name) = self.equation.unused() {
            let message = "no formula uses it; leave it out, or correct the formula".to_owned();
            return Err(FormError::Coefficient { coefficient: name.to_owned(), message });
        }
        let mut own = self.bound(&text.coefficients, &self.arguments)?;
        if self.equation.needs_cell_metric() {
            own.push(self.cell_metric()?);
        }
        if let (Some(thickness), false) = (&self.thickness, is_symbolic) {
            let name = THICKNESS.to_owned();
            let entry =
                Entry { name: name.clone(), coefficient: Arc::clone(thickness), which: Which::Number };
            own.push(Bound { name, shape: Shape::Number, entries: vec![entry] });
        }
        let read = |place: &str, domain: &Domain, coefficients: &[Bound], parts: &[Part<'_>], energy| {
            let exact = self.exact.as_deref();
            let (dimension, n_axes) = (self.dimension, self.n_axes());
            let place = Place { name: place.to_owned(), domain, dimension, n_axes, exact, is_symbolic };
            graph(self.equation, &place, coefficients, self.parameter.as_deref(), parts, energy)
        };
        let cells = &text.cells;
        let capacity =
            if is_symbolic && self.is_without_capacity { &Formulas::None } else { &cells.capacity };
        let parts = [
            Part { key: "flux", side: Side::First, role: Role::Flux, formulas: &cells.flux },
            Part { key: "source", side: Side::First, role: Role::Source, formulas: &cells.source },
            Part { key: "capacity", side: Side::First, role: Role::Capacity, formulas: capacity },
        ];
        let domain = Domain::Cells;
        let of_cells = read("cells", &domain, &own, &parts, cells.energy.as_deref())?;
        let mut integrals = vec![made(None, domain, of_cells)];
        for (term, facets, arguments) in &self.boundary {
            let terms = &text.boundary[term];
            let mut coefficients = own.clone();
            coefficients.extend(self.bound(&terms.coefficients, arguments)?);
            let parts = [Part { key: "flux", side: Side::First, role: Role::Source, formulas: &terms.flux }];
            let domain = Domain::Boundary(facets.clone());
            let graph = read(&format!("boundary.{term}"), &domain, &coefficients, &parts, None)?;
            integrals.push(made(Some(term), domain, graph));
        }
        let interior = text.interior.iter().map(|terms| ("interior".to_owned(), terms, Domain::Interior));
        let interfaces = self.interfaces.iter().map(|(term, pairs)| {
            (format!("interface.{term}"), &text.interface[term], Domain::Interface(pairs.clone()))
        });
        for (place, terms, domain) in interior.chain(interfaces) {
            let [first, second] = [Side::First, Side::Second];
            let parts = [
                Part { key: "flux", side: first, role: Role::Flux, formulas: &terms.flux },
                Part { key: "source", side: first, role: Role::Source, formulas: &terms.source },
                Part { key: "flux_other", side: second, role: Role::Flux, formulas: &terms.flux_other },
                Part { key: "source_other", side: second, role: Role::Source, formulas: &terms.source_other },
            ];
            let graph = read(&place, &domain, &own, &parts, None)?;
            integrals.push(made(None, domain, graph));
        }
        Ok(integrals)
    }

    /// Refuses what has no meaning in a body of revolution.
    fn check_axes(&self) -> Result<(), FormError> {
        if self.dimension != 2 {
            let message = "a body of revolution is given by a half section in the plane, and this is space";
            return Err(self.equation.failure(message.to_owned()));
        }
        let is_ambiguous = |unknown: &&Unknown| matches!(unknown.components, Some(Components::Count(3)));
        match self.equation.text.unknown.iter().find(|(_, unknown)| is_ambiguous(unknown)) {
            None => Ok(()),
            Some((name, _)) => {
                let message = format!(
                    "unknown: of a body of revolution three components of {name} could be a vector in space or three numbers: take \
                     \"dimension\" for a vector, or an unknown for each number"
                );
                Err(self.equation.failure(message))
            }
        }
    }

    fn cell_metric(&self) -> Result<Bound, FormError> {
        let (d, name) = (self.dimension, CELL_METRIC.to_owned());
        let Some(metric) = &self.metric else {
            let message =
                "formulas use the size of the cells, and it is not given: set `with_cell_metric`".to_owned();
            return Err(FormError::Coefficient { coefficient: name, message });
        };
        let all = (0..d).flat_map(|i| (0..d).map(move |j| Which::Tensor(i, j)));
        let entry = |which| Entry { name: name.clone(), coefficient: Arc::clone(metric), which };
        let entries = all.map(entry).collect();
        Ok(Bound { name, shape: Shape::Matrix(d, d), entries })
    }

    /// Returns the entries of coefficients, in their shapes.
    fn bound(
        &self,
        parameters: &BTreeMap<String, Parameter>,
        arguments: &Arguments,
    ) -> Result<Vec<Bound>, FormError> {
        let (d, n) = (self.dimension, self.n_axes());
        let bind = |(name, parameter): (&String, &Parameter)| {
            let failure = |message: String| FormError::Coefficient { coefficient: name.clone(), message };
            let argument = match (arguments.get(name), parameter.default) {
                (Some(argument), _) => argument.clone(),
                (None, Some(default)) => match parameter.shape {
                    CoefficientShape::Vector => vec![Coefficient::Constant(default); d].into(),
                    _ => default.into(),
                },
                (None, None) => return Err(failure("it has no value".to_owned())),
            };
            let entry = |coefficient, which| Entry { name: name.clone(), coefficient, which };
            let (shape, entries): (_, Vec<Entry>) = match (parameter.shape, argument) {
                (CoefficientShape::Scalar, Argument::One(value)) if value.is_scalar() => {
                    (Shape::Number, vec![entry(Arc::new(value), Which::Number)])
                }
                (CoefficientShape::Tensor, Argument::One(value)) => {
                    let value = Arc::new(value);
                    let all = (0..n).flat_map(|i| (0..n).map(move |j| Which::Tensor(i, j)));
                    (Shape::Matrix(n, n), all.map(|which| entry(value.clone(), which)).collect())
                }
                (CoefficientShape::Vector, Argument::Vector(values)) => {
                    if !(d..=3).contains(&values.len()) || !values.iter().all(Coefficient::is_scalar) {
                        return Err(failure(format!("a vector needs {d} scalars")));
                    }
                    let entries = values.into_iter().chain(std::iter::repeat(0.0.into())).take(n);
                    let entries = entries.map(|value| entry(Arc::new(value), Which::Number)).collect();
                    (Shape::Vector(n), entries)
                }
                (CoefficientShape::Vector, Argument::One(Coefficient::CellField(field)))
                    if (d..=3).contains(&field.n_components) =>
                {
                    let given = field.n_components.min(n);
                    let value = Arc::new(Coefficient::CellField(field));
                    let entries = (0..given).map(|axis| entry(value.clone(), Which::Component(axis)));
                    let around = (given..n).map(|_| entry(Arc::new(0.0.into()), Which::Number));
                    (Shape::Vector(n), entries.chain(around).collect())
                }
                (CoefficientShape::Scalar, _) => return Err(failure("it must be a scalar".to_owned())),
                (CoefficientShape::Vector, _) => {
                    return Err(failure(format!("it must be a vector of {d} components")));
                }
                (CoefficientShape::Tensor, Argument::Vector(_)) => {
                    return Err(failure("it must be a scalar or a tensor, not a vector".to_owned()));
                }
            };
            // Fluxes and sources must be zero around the axis of a body of revolution, where coefficients may be fields of zeros.
            let entries = entries.into_iter().map(|entry| match entry.which {
                Which::Component(axis) if axis >= d => entry.or_zero(),
                Which::Tensor(i, j) if (i < d) != (j < d) => entry.or_zero(),
                _ => entry,
            });
            Ok(Bound { name: name.clone(), shape, entries: entries.collect() })
        };
        parameters.iter().map(bind).collect()
    }
}

/// Fails unless a name is one of a map.
fn known<T>(name: &str, names: &BTreeMap<String, T>) -> Result<(), FormError> {
    if names.contains_key(name) {
        return Ok(());
    }
    let names: Vec<&str> = names.keys().map(String::as_str).collect();
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let message = format!("the equation does not have it; known are {known}");
    Err(FormError::Coefficient { coefficient: name.to_owned(), message })
}

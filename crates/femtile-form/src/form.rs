//! An equation with its coefficients.

use std::collections::BTreeMap;
use std::sync::Arc;

use femtile_expression::{Expression, ProgramBuilder, Value, Variable};
use femtile_mesh::Field;

use crate::coefficient::{Coefficient, PointFunction};
use crate::equation::{CoefficientShape, Equation, FacetTerms, Parameter, Terms};
use crate::error::FormError;
use crate::integrand::{CellData, Data, Formulas, Input, Integrand, Shape, Side};

/// Names of the axes.
const AXES: [&str; 3] = ["x", "y", "z"];

/// Where an integral is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Domain {
    /// All cells.
    Cells,
    /// Some boundary facets: their positions in the list of boundary facets.
    Boundary(Vec<u32>),
    /// All interior facets.
    Interior,
}

impl Domain {
    /// Returns its name for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cells => "the cells",
            Self::Boundary(_) => "boundary facets",
            Self::Interior => "interior facets",
        }
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

    /// Returns whether it is linear in u.
    pub fn is_linear(&self) -> bool {
        self.integrals.iter().all(|integral| integral.integrand.class().is_linear())
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
    equation: &'a Equation,
    dimension: usize,
    arguments: Arguments,
    boundary: Vec<(String, Vec<u32>, Arguments)>,
}

impl Equation {
    /// Starts a form in a space of a dimension: 2 or 3.
    pub fn form(&self, dimension: usize) -> FormBuilder<'_> {
        FormBuilder { equation: self, dimension, arguments: BTreeMap::new(), boundary: Vec::new() }
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

    /// Compiles the form.
    ///
    /// # Errors
    /// [`FormError::Coefficient`] for a coefficient without a value or of a wrong shape, [`FormError::Equation`] for a
    /// formula that cannot be read.
    pub fn build(self) -> Result<Form, FormError> {
        let text = &self.equation.text;
        let own = self.scope(&text.coefficients, &self.arguments)?;
        let cells = Formula { place: "cells".to_owned(), n_sides: 1, has_normal: false };
        let mut integrals = vec![Integral {
            domain: Domain::Cells,
            integrand: self.integrand(&cells, &own, &text.cells, None)?,
        }];
        for (term, facets, arguments) in &self.boundary {
            let terms = &text.boundary[term];
            let mut scope = own.clone();
            scope.extend(self.scope(&terms.coefficients, arguments)?);
            let place = Formula { place: format!("boundary.{term}"), n_sides: 1, has_normal: true };
            let integrand = self.integrand(&place, &scope, &terms.first(), None)?;
            integrals.push(Integral { domain: Domain::Boundary(facets.clone()), integrand });
        }
        if let Some(terms) = &text.interior {
            let mut scope = own.clone();
            scope.extend(self.scope(&terms.coefficients, &BTreeMap::new())?);
            let place = Formula { place: "interior".to_owned(), n_sides: 2, has_normal: true };
            let integrand = self.integrand(&place, &scope, &terms.first(), Some(&terms.second()))?;
            integrals.push(Integral { domain: Domain::Interior, integrand });
        }
        let n_components = self.equation.n_components(self.dimension);
        Ok(Form { dimension: self.dimension, n_components, integrals })
    }

    /// Returns the entries of coefficients, by the names that formulas use.
    fn scope(
        &self,
        parameters: &BTreeMap<String, Parameter>,
        arguments: &Arguments,
    ) -> Result<Vec<(String, Entry)>, FormError> {
        let mut entries = Vec::new();
        for (name, parameter) in parameters {
            let failure = |message: String| FormError::Coefficient { coefficient: name.clone(), message };
            let argument = match (arguments.get(name), parameter.default) {
                (Some(argument), _) => argument.clone(),
                (None, Some(default)) => match parameter.shape {
                    CoefficientShape::Vector => vec![Coefficient::Constant(default); self.dimension].into(),
                    _ => default.into(),
                },
                (None, None) => return Err(failure("it has no value".to_owned())),
            };
            let entry = |coefficient, part| Entry { name: name.clone(), coefficient, part };
            match (parameter.shape, argument) {
                (CoefficientShape::Scalar, Argument::One(value)) if value.is_scalar() => {
                    entries.push((name.clone(), entry(Arc::new(value), Part::Scalar)));
                }
                (CoefficientShape::Tensor, Argument::One(value)) => {
                    let value = Arc::new(value);
                    for (i, row) in AXES.into_iter().enumerate() {
                        for (j, column) in AXES.into_iter().enumerate() {
                            let entry = entry(value.clone(), Part::Tensor(i, j));
                            entries.push((format!("{name}_{row}{column}"), entry));
                        }
                    }
                }
                (CoefficientShape::Vector, Argument::Vector(values)) => {
                    if !(self.dimension..=3).contains(&values.len())
                        || !values.iter().all(Coefficient::is_scalar)
                    {
                        return Err(failure(format!("a vector needs {} scalars", self.dimension)));
                    }
                    for (axis, label) in AXES.into_iter().enumerate() {
                        let value = values.get(axis).cloned().unwrap_or(Coefficient::Constant(0.0));
                        entries.push((format!("{name}_{label}"), entry(Arc::new(value), Part::Scalar)));
                    }
                }
                (CoefficientShape::Vector, Argument::One(Coefficient::CellField(field)))
                    if field.n_components >= self.dimension && field.n_components <= 3 =>
                {
                    let n = field.n_components;
                    let value = Arc::new(Coefficient::CellField(field));
                    for (axis, label) in AXES.into_iter().enumerate() {
                        let part = if axis < n { Part::Component(axis) } else { Part::Zero };
                        entries.push((format!("{name}_{label}"), entry(value.clone(), part)));
                    }
                }
                (CoefficientShape::Scalar, _) => return Err(failure("it must be a scalar".to_owned())),
                (CoefficientShape::Vector, _) => {
                    return Err(failure(format!("it must be a vector of {} components", self.dimension)));
                }
                (CoefficientShape::Tensor, Argument::Vector(_)) => {
                    return Err(failure("it must be a scalar or a tensor, not a vector".to_owned()));
                }
            }
        }
        Ok(entries)
    }

    fn integrand(
        &self,
        place: &Formula,
        scope: &[(String, Entry)],
        first: &Terms,
        second: Option<&Terms>,
    ) -> Result<Integrand, FormError> {
        let text = &self.equation.text;
        let shape = Shape {
            dimension: self.dimension,
            n_components: self.equation.n_components(self.dimension),
            n_sides: place.n_sides,
        };
        let mut collected = Collected::default();
        let recipes: Vec<(&String, Recipe)> = scope
            .iter()
            .map(|(name, entry)| Ok((name, entry.recipe(&entry.coefficient, &mut collected)?)))
            .collect::<Result<_, FormError>>()?;
        let data = collected.data;
        let (inputs, names) = inputs(shape, place, &text.unknown, &data);
        let failure = |place: &str, message: String| self.equation.failure(format!("{place}: {message}"));

        let n_slots = shape.n_slots();
        let directions = (0..n_slots).map(|slot| format!("direction_{slot}"));
        let all: Vec<String> = names.iter().cloned().chain(directions).chain(["shift".to_owned()]).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let mut builder = ProgramBuilder::new(&all).map_err(|error| failure("names", error.to_string()))?;
        let zero = builder.constant(0.0);
        for name in absent(shape, place, text) {
            builder.bind(&name, zero).map_err(|error| failure("names", error.to_string()))?;
        }
        let context = Context { shape, inputs: &inputs };
        for (name, recipe) in &recipes {
            let value = context.value(&mut builder, recipe);
            builder.bind(name, value).map_err(|error| failure(name, error.to_string()))?;
        }
        define(&mut builder, &text.define)
            .map_err(|(name, message)| failure(&format!("define.{name}"), message))?;

        let mut read = |place: String, formula: &str| {
            builder.expression(formula).map_err(|error| failure(&place, error.to_string()))
        };
        let mut residual = vec![zero; n_slots];
        for (side, terms) in [(Side::First, Some(first)), (Side::Second, second)] {
            let Some(terms) = terms else { continue };
            for component in 0..shape.n_components {
                if let Some(formula) = terms.source.get(component) {
                    let value = read(format!("{}.source[{component}]", place.place), formula)?;
                    residual[shape.slot(side, component, None)] = value;
                }
                let Some(row) = terms.flux.get(component) else { continue };
                for (axis, formula) in row[..shape.dimension].iter().enumerate() {
                    let value = read(format!("{}.flux[{component}][{axis}]", place.place), formula)?;
                    residual[shape.slot(side, component, Some(axis))] = value;
                }
            }
        }
        let energy = match &first.energy {
            None => None,
            Some(formula) => Some(read(format!("{}.energy", place.place), formula)?),
        };
        if let Some(energy) = energy {
            for (slot, f) in residual.iter_mut().enumerate() {
                if let Some(at) = inputs.iter().position(|&input| input == Input::State(slot)) {
                    let state = builder.input(at);
                    let slope = builder.derivative(energy, state);
                    *f = builder.add(*f, slope);
                }
            }
        }
        Ok(Formulas { shape, builder, inputs, names, data, residual, energy }.compile())
    }
}

/// Adds definitions, which may stand in any order; fails with the name and the reason.
fn define(builder: &mut ProgramBuilder, formulas: &BTreeMap<String, String>) -> Result<(), (String, String)> {
    let mut pending: Vec<_> = formulas.iter().collect();
    while !pending.is_empty() {
        let n_before = pending.len();
        let mut failure = None;
        pending.retain(|(name, formula)| match builder.define(name, formula) {
            Ok(_) => false,
            Err(error) => {
                failure.get_or_insert(((*name).clone(), error.to_string()));
                true
            }
        });
        if let (Some(failure), true) = (failure, pending.len() == n_before) {
            return Err(failure);
        }
    }
    Ok(())
}

/// Where a formula stands, and what it may use.
struct Formula {
    place: String,
    n_sides: usize,
    has_normal: bool,
}

/// One entry of a coefficient.
#[derive(Debug, Clone)]
struct Entry {
    name: String,
    coefficient: Arc<Coefficient>,
    part: Part,
}

/// Which number of a coefficient.
#[derive(Debug, Clone, Copy)]
enum Part {
    Zero,
    Scalar,
    /// A component of a field that is a vector.
    Component(usize),
    Tensor(usize, usize),
}

/// How a number is obtained at a point.
enum Recipe {
    Number(f64),
    Formula(Expression),
    Cell(usize),
    Point(usize),
    ByTag(Vec<(i32, Recipe)>),
}

/// The data of coefficients while an integrand is made. Entries of one coefficient share their data, so that equal
/// entries are the same input.
#[derive(Default)]
struct Collected {
    data: Data,
    /// Data by address of their coefficient, and component of a field.
    cells: BTreeMap<(usize, usize), usize>,
    points: BTreeMap<usize, usize>,
    fields: BTreeMap<usize, Arc<Field>>,
}

impl Collected {
    fn cell(
        &mut self,
        of: &Coefficient,
        component: usize,
        data: impl FnOnce(&mut Self) -> CellData,
    ) -> Recipe {
        let key = (std::ptr::from_ref(of).addr(), component);
        if let Some(&at) = self.cells.get(&key) {
            return Recipe::Cell(at);
        }
        let data = data(self);
        self.data.cells.push(data);
        self.cells.insert(key, self.data.cells.len() - 1);
        Recipe::Cell(self.data.cells.len() - 1)
    }

    fn field(&mut self, of: &Coefficient, field: &Field, component: usize) -> Recipe {
        self.cell(of, component, |own| {
            let shared =
                own.fields.entry(std::ptr::from_ref(of).addr()).or_insert_with(|| Arc::new(field.clone()));
            CellData::Field { field: shared.clone(), component }
        })
    }

    fn point(&mut self, of: &Coefficient, function: &PointFunction) -> Recipe {
        let points = &mut self.data.points;
        let at = *self.points.entry(std::ptr::from_ref(of).addr()).or_insert_with(|| {
            points.push(function.clone());
            points.len() - 1
        });
        Recipe::Point(at)
    }
}

impl Entry {
    fn recipe(&self, coefficient: &Coefficient, collected: &mut Collected) -> Result<Recipe, FormError> {
        let of_tensor = |value: f64| match self.part {
            Part::Tensor(i, j) if i != j => 0.0,
            Part::Zero => 0.0,
            _ => value,
        };
        let is_off_diagonal = matches!(self.part, Part::Tensor(i, j) if i != j);
        let failure = |message: String| FormError::Coefficient { coefficient: self.name.clone(), message };
        Ok(match coefficient {
            _ if matches!(self.part, Part::Zero) => Recipe::Number(0.0),
            Coefficient::Constant(value) => Recipe::Number(of_tensor(*value)),
            Coefficient::Expression(_) | Coefficient::Function(_) if is_off_diagonal => Recipe::Number(0.0),
            Coefficient::Expression(expression) => match expression.as_constant() {
                Some(value) => Recipe::Number(value),
                None => Recipe::Formula(expression.clone()),
            },
            Coefficient::Function(function) => collected.point(coefficient, function),
            Coefficient::Tensor(tensor) => match self.part {
                Part::Tensor(i, j) => Recipe::Number(tensor[i][j]),
                _ => return Err(failure("a tensor, but it must be a scalar".to_owned())),
            },
            Coefficient::TensorExpression(entries) => match self.part {
                Part::Tensor(i, j) => match entries[i][j].as_constant() {
                    Some(value) => Recipe::Number(value),
                    None => Recipe::Formula(entries[i][j].clone()),
                },
                _ => return Err(failure("a tensor, but it must be a scalar".to_owned())),
            },
            Coefficient::CellField(field) => {
                let n = field.n_components;
                let component = match (self.part, n) {
                    (Part::Scalar, 1) => Some(0),
                    (Part::Component(axis), _) if axis < n => Some(axis),
                    (Part::Tensor(i, j), 1 | 3) if i != j => None,
                    (Part::Tensor(..), 1) => Some(0),
                    (Part::Tensor(i, _), 3) => Some(i),
                    // In the order xx, yy, zz, yz, xz, xy.
                    (Part::Tensor(i, j), 6) => Some(if i == j { i } else { 6 - i - j }),
                    (Part::Tensor(i, j), 9) => Some(3 * i + j),
                    _ => return Err(failure(format!("a field of {n} components does not fit"))),
                };
                collected.data.n_cells.push((self.name.clone(), field.values.len() / n.max(1)));
                component
                    .map_or(Recipe::Number(0.0), |component| collected.field(coefficient, field, component))
            }
            Coefficient::ByTag(parts) => {
                collected.data.tags.push((self.name.clone(), parts.keys().copied().collect()));
                let recipes: Vec<(i32, Recipe)> = parts
                    .iter()
                    .map(|(&tag, part)| Ok((tag, self.recipe(part, collected)?)))
                    .collect::<Result<_, FormError>>()?;
                let number = |recipe: &Recipe| match recipe {
                    Recipe::Number(value) => Some(*value),
                    _ => None,
                };
                let numbers: Option<BTreeMap<i32, f64>> =
                    recipes.iter().map(|(tag, recipe)| Some((*tag, number(recipe)?))).collect();
                match numbers {
                    Some(values) if values.values().all(|&value| value == 0.0) => Recipe::Number(0.0),
                    // Parts that are tensors differ by entry.
                    Some(values) => {
                        let entry = match self.part {
                            Part::Tensor(i, j) if !coefficient.is_isotropic() => 3 * i + j,
                            _ => 0,
                        };
                        collected.cell(coefficient, entry, |_| CellData::ByTag(values))
                    }
                    None => Recipe::ByTag(recipes),
                }
            }
        })
    }
}

/// The inputs of an integrand, for the values of recipes.
struct Context<'a> {
    shape: Shape,
    inputs: &'a [Input],
}

impl Context<'_> {
    fn input(&self, builder: &mut ProgramBuilder, input: Input) -> Value {
        match self.inputs.iter().position(|&own| own == input) {
            Some(at) => builder.input(at),
            None => builder.constant(0.0),
        }
    }

    fn value(&self, builder: &mut ProgramBuilder, recipe: &Recipe) -> Value {
        match recipe {
            Recipe::Number(value) => builder.constant(*value),
            Recipe::Cell(at) => self.input(builder, Input::Cell(*at)),
            Recipe::Point(at) => self.input(builder, Input::Point(*at)),
            Recipe::Formula(expression) => {
                let mut of = BTreeMap::new();
                let variables = [Variable::X, Variable::Y, Variable::Z, Variable::T];
                let inputs = [Input::Coordinate(0), Input::Coordinate(1), Input::Coordinate(2), Input::Time];
                for (variable, input) in variables.into_iter().zip(inputs) {
                    of.insert(variable_key(variable), self.input(builder, input));
                }
                for component in 0..self.shape.n_components {
                    let slot = self.shape.slot(Side::First, component, None);
                    let key = variable_key(Variable::Other(component as u16));
                    of.insert(key, self.input(builder, Input::State(slot)));
                }
                let unknown = builder.constant(f64::NAN);
                builder.import(expression, |variable| {
                    of.get(&variable_key(variable)).copied().unwrap_or(unknown)
                })
            }
            Recipe::ByTag(parts) => {
                let tag = self.input(builder, Input::Tag);
                let otherwise = builder.constant(f64::NAN);
                parts.iter().fold(otherwise, |otherwise, (number, part)| {
                    let value = self.value(builder, part);
                    builder.select_equal(tag, f64::from(*number), value, otherwise)
                })
            }
        }
    }
}

/// Orders variables.
fn variable_key(variable: Variable) -> u32 {
    match variable {
        Variable::X => 0,
        Variable::Y => 1,
        Variable::Z => 2,
        Variable::T => 3,
        Variable::Other(position) => 4 + u32::from(position),
    }
}

impl FacetTerms {
    fn first(&self) -> Terms {
        Terms { energy: None, flux: self.flux.clone(), source: self.source.clone() }
    }

    fn second(&self) -> Terms {
        Terms { energy: None, flux: self.flux_other.clone(), source: self.source_other.clone() }
    }
}

/// Returns the name of a component of u on a side, or of its derivative.
fn state_name(component: &str, side: Side, axis: Option<usize>) -> String {
    let side = if side == Side::First { "" } else { "_other" };
    axis.map_or(format!("{component}{side}"), |axis| format!("{component}{side}_{}", AXES[axis]))
}

/// Returns the inputs of an integrand and their names.
fn inputs(shape: Shape, place: &Formula, unknown: &[String], data: &Data) -> (Vec<Input>, Vec<String>) {
    let Shape { dimension: d, n_components, n_sides } = shape;
    let coordinates = (0..3).map(|axis| (Input::Coordinate(axis), AXES[axis].to_owned()));
    let mut all: Vec<(Input, String)> = coordinates.collect();
    all.push((Input::Time, "t".to_owned()));
    all.push((Input::Tag, "cell_tag".to_owned()));
    if place.has_normal {
        all.extend((0..d).map(|axis| (Input::Normal(axis), format!("n_{}", AXES[axis]))));
    }
    for side in [Side::First, Side::Second].into_iter().take(n_sides) {
        for (component, name) in unknown[..n_components].iter().enumerate() {
            for axis in std::iter::once(None).chain((0..d).map(Some)) {
                all.push((Input::State(shape.slot(side, component, axis)), state_name(name, side, axis)));
            }
        }
    }
    let rates = unknown[..n_components].iter().enumerate();
    all.extend(rates.map(|(component, name)| (Input::Rate(component), format!("{name}_t"))));
    all.extend((0..data.cells.len()).map(|at| (Input::Cell(at), format!("cell_data_{at}"))));
    all.extend((0..data.points.len()).map(|at| (Input::Point(at), format!("point_data_{at}"))));
    all.into_iter().unzip()
}

/// Returns the names that are zero in the plane.
fn absent(shape: Shape, place: &Formula, text: &crate::equation::Text) -> Vec<String> {
    let d = shape.dimension;
    let mut names = Vec::new();
    if place.has_normal {
        names.extend((d..3).map(|axis| format!("n_{}", AXES[axis])));
    }
    for side in [Side::First, Side::Second].into_iter().take(shape.n_sides) {
        for (component, name) in text.unknown.iter().enumerate() {
            let is_absent = component >= shape.n_components;
            let axes = (0..3).filter(|&axis| is_absent || axis >= d).map(Some);
            names.extend(
                is_absent.then_some(None).into_iter().chain(axes).map(|axis| state_name(name, side, axis)),
            );
            if is_absent && side == Side::First {
                names.push(format!("{name}_t"));
            }
        }
    }
    names
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

//! From the formulas of an integrand to its graph.

use femtile_expression::{Array, Expression, ExpressionError, ProgramBuilder, Shape, Value};

use crate::definitions::{definitions, has_word};
use crate::equation::{CELL_SIZE, Equation, Formulas};
use crate::error::FormError;
use crate::form::Domain;
use crate::integrand::{Data, Graph, Input, Integrand, Layout, Side};
use crate::parameter;
use crate::recipe::{Bound, Collected, Context, Recipe};
use crate::stabilisation::Streamlines;

/// The name of the metric of the cells in messages; formulas cannot have it.
pub(crate) const CELL_METRIC: &str = "metric of the cells";

/// Where formulas stand.
pub(crate) struct Place<'a> {
    /// The key of the equation.
    pub name: String,
    pub domain: &'a Domain,
    pub dimension: usize,
    /// The function at which the residual is to vanish.
    pub exact: Option<&'a [Expression]>,
}

/// Formulas with the same part in the residual.
pub(crate) struct Part<'a> {
    pub key: &'static str,
    /// The cell of the test function.
    pub side: Side,
    pub role: Role,
    pub formulas: &'a Formulas,
}

/// The term of the residual that formulas give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// F : ∇v.
    Flux,
    /// −f·v.
    Source,
    /// c ∂u/∂t·v.
    Capacity,
}

/// An unknown among the components of all.
struct Own<'a> {
    name: &'a str,
    shape: Shape,
    first: usize,
}

impl Own<'_> {
    fn components(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.shape.n_entries()
    }

    /// The inputs of an array with an entry for each component.
    fn array(&self, of: impl Fn(usize) -> Value) -> Array {
        Array::new(self.shape, self.components().map(of).collect())
    }
}

/// Reads the formulas of an integrand and compiles them, with the derivatives `by` a coefficient that is a cell field.
pub(crate) fn integrand(
    equation: &Equation,
    place: &Place<'_>,
    coefficients: &[Bound],
    by: Option<&str>,
    parts: &[Part<'_>],
    energy: Option<&str>,
) -> Result<Integrand, FormError> {
    let d = place.dimension;
    let layout = Layout {
        dimension: d,
        n_components: equation.n_components(d),
        n_sides: if *place.domain == Domain::Interior { 2 } else { 1 },
    };
    let mut first = 0;
    let unknowns: Vec<Own<'_>> = equation
        .unknowns(d)
        .map(|(name, shape)| {
            first += shape.n_entries();
            Own { name, shape, first: first - shape.n_entries() }
        })
        .collect();
    let mut collected = Collected::default();
    let recipes = |bound: &Bound| bound.entries.iter().map(|entry| entry.recipe(&mut collected)).collect();
    let recipes: Vec<Vec<Recipe>> = coefficients.iter().map(recipes).collect::<Result<_, _>>()?;
    let data = collected.data;
    let (inputs, names) = inputs(layout, place, &unknowns, &data);

    let builder = ProgramBuilder::with_arrays(inputs.len() + layout.n_slots() + 1);
    let mut scope = Reader { equation, builder, inputs: &inputs, layout };
    scope.bind_unknowns(&unknowns)?;
    let mut metric = None;
    for (bound, recipes) in coefficients.iter().zip(&recipes) {
        let context = Context { layout, inputs: &inputs };
        let entries = recipes.iter().map(|recipe| context.value(&mut scope.builder, recipe)).collect();
        let array = Array::new(bound.shape, entries);
        if bound.name == CELL_METRIC {
            scope.bind_cell_size(&array)?;
            metric = Some(array);
            continue;
        }
        scope.bind(&format!("coefficients.{}", bound.name), &bound.name, array)?;
    }
    scope.define(place, &unknowns)?;

    let zero = scope.builder.constant(0.0);
    let mut residual = vec![zero; layout.n_slots()];
    for part in parts {
        let key = match place.domain {
            Domain::Cells => part.key.to_owned(),
            _ => format!("{}.{}", place.name, part.key),
        };
        for (unknown, key, formula) in formulas_of(equation, &unknowns, &key, part.formulas)? {
            scope.add(part, unknown, (&key, formula), &mut residual)?;
        }
    }
    let mut others = residual.clone();
    let energy = match energy {
        None => None,
        Some(formula) => Some(scope.read(equation.energy_key, formula, Shape::Number)?.entries()[0]),
    };
    if let Some(energy) = energy {
        let rates = scope.builder.inputs_of(energy).into_iter().map(|at| inputs[at]);
        if rates.into_iter().any(|input| matches!(input, Input::Rate(_))) {
            return Err(equation.failure("energy: it cannot depend on the rate of the unknown".to_owned()));
        }
        let at: Vec<(usize, Value)> =
            (0..layout.n_slots()).filter_map(|slot| Some((slot, scope.input(Input::State(slot))?))).collect();
        let states: Vec<Value> = at.iter().map(|(_, state)| *state).collect();
        let slopes = scope.builder.gradient(energy, &states);
        for ((slot, _), slope) in at.into_iter().zip(slopes) {
            residual[slot] = scope.builder.add(residual[slot], slope);
        }
    }
    if let (Domain::Cells, true, Some(metric)) = (place.domain, equation.is_stabilised(), &metric) {
        if !data.points.is_empty() {
            let message = "stabilise: a coefficient that is a closure has no derivative: give an expression";
            return Err(equation.failure(message.to_owned()));
        }
        let mut upwind = Streamlines { builder: &mut scope.builder, inputs: &inputs, layout, metric };
        let mut has_convection = false;
        for component in 0..layout.n_components {
            has_convection |= upwind.stabilise(component, &mut residual);
        }
        if !has_convection {
            let message = "stabilise: no formula has convection, a multiple of the gradient of an unknown in its source or a multiple \
                           of the unknown in its flux: leave it out";
            return Err(equation.failure(message.to_owned()));
        }
        others.clone_from(&residual);
    }
    let parameter = coefficients.iter().zip(&recipes).find(|(bound, _)| Some(bound.name.as_str()) == by);
    let parameter = parameter.map_or(Vec::new(), |(_, recipes)| parameter::inputs(recipes, &data));
    let parameter = parameter.into_iter().map(|input| scope.input(input?)).collect();
    let builder = scope.builder;
    let mut graph = Graph { layout, builder, inputs, names, data, residual, others, energy, parameter };
    if let Some(exact) = place.exact {
        graph.vanish_at(exact);
    }
    Ok(graph.compile())
}

/// The formulas of a key by unknown, with the key of each.
fn formulas_of<'a>(
    equation: &Equation,
    unknowns: &'a [Own<'a>],
    key: &str,
    formulas: &'a Formulas,
) -> Result<Vec<(&'a Own<'a>, String, &'a str)>, FormError> {
    let names = || unknowns.iter().map(|own| own.name).collect::<Vec<_>>().join(", ");
    match (formulas, unknowns) {
        (Formulas::None, _) => Ok(Vec::new()),
        (Formulas::One(formula), [own]) => Ok(vec![(own, key.to_owned(), formula)]),
        (Formulas::One(_), _) => {
            let message =
                format!("{key}: one formula for several unknowns; give one for each of {}", names());
            Err(equation.failure(message))
        }
        (Formulas::ByUnknown(texts), _) => {
            let find = |(name, formula): (&'a String, &'a String)| {
                let own = unknowns.iter().find(|own| own.name == name);
                let own = own.ok_or_else(|| {
                    equation
                        .failure(format!("{key}.{name}: there is no unknown {name}; there are {}", names()))
                })?;
                Ok((own, format!("{key}.{name}"), formula.as_str()))
            };
            texts.iter().map(find).collect()
        }
    }
}

/// A builder with the names that formulas use.
struct Reader<'a> {
    equation: &'a Equation,
    builder: ProgramBuilder,
    inputs: &'a [Input],
    layout: Layout,
}

impl Reader<'_> {
    fn failure(&self, key: &str, formula: &str, error: ExpressionError) -> FormError {
        FormError::Formula {
            equation: self.equation.name().to_owned(),
            key: key.to_owned(),
            formula: formula.to_owned(),
            error,
        }
    }

    fn input(&self, input: Input) -> Option<Value> {
        input.value(&self.builder, self.inputs)
    }

    /// Reads a formula of a shape.
    fn read(&mut self, key: &str, formula: &str, wanted: Shape) -> Result<Array, FormError> {
        let word =
            key.split('.').find(|word| ["energy", "functional", "flux", "source", "capacity"].contains(word));
        let what = word.map_or("it".to_owned(), |word| format!("the {word}"));
        self.builder.array_of(formula, wanted, &what).map_err(|error| self.failure(key, formula, error))
    }

    fn bind(&mut self, key: &str, name: &str, array: impl Into<Array>) -> Result<(), FormError> {
        self.builder.bind(name, array).map_err(|error| self.failure(key, name, error))
    }

    /// Gives `h` its meaning: $h = (\mathrm{tr}\,G/d)^{-1/2}$ with the metric G of the cell.
    fn bind_cell_size(&mut self, metric: &Array) -> Result<(), FormError> {
        if !self.equation.uses_cell_size() {
            return Ok(());
        }
        let d = self.layout.dimension;
        let zero = self.builder.constant(0.0);
        let trace = (0..d).fold(zero, |sum, i| self.builder.add(sum, metric.entries()[i * d + i]));
        let dimension = self.builder.constant(d as f64);
        let square = self.builder.div(dimension, trace);
        let size = self.builder.sqrt(square);
        self.bind("names", CELL_SIZE, size)
    }

    /// Reads the definitions, without those that need what the place does not have.
    fn define(&mut self, place: &Place<'_>, unknowns: &[Own<'_>]) -> Result<(), FormError> {
        let equation = self.equation;
        let mut absent: Vec<String> = Vec::new();
        if *place.domain == Domain::Cells {
            absent.push("normal".to_owned());
        }
        if *place.domain != Domain::Interior {
            absent.extend(unknowns.iter().map(|own| format!("{}_other", own.name)));
        }
        let text = &equation.text.define;
        let defined = definitions(text).map_err(|error| self.failure("define", text, error))?;
        for (name, formula) in defined {
            if absent.iter().any(|absent| has_word(formula, absent)) {
                absent.push(name.to_owned());
                continue;
            }
            let (key, array) = (format!("define.{name}"), self.builder.array(formula));
            let array = array.map_err(|mut error| {
                // The place in the text of all definitions.
                let offset = formula.as_ptr().addr() - text.as_ptr().addr();
                error.span = error.span.start + offset..error.span.end + offset;
                self.failure(&key, text, error)
            })?;
            self.builder.bind(name, array).map_err(|mut error| {
                let start = name.as_ptr().addr() - text.as_ptr().addr();
                error.span = start..start + name.len();
                self.failure(&key, text, error)
            })?;
        }
        Ok(())
    }

    /// Adds a formula to the residual.
    fn add(
        &mut self,
        part: &Part<'_>,
        unknown: &Own<'_>,
        (key, formula): (&str, &str),
        residual: &mut [Value],
    ) -> Result<(), FormError> {
        let (layout, d) = (self.layout, self.layout.dimension);
        let slot = |component, axis| layout.slot(part.side, component, axis);
        match part.role {
            Role::Flux => {
                let wanted = match unknown.shape {
                    Shape::Vector(n) => Shape::Matrix(n, d),
                    _ => Shape::Vector(d),
                };
                let flux = self.read(key, formula, wanted)?;
                for (i, component) in unknown.components().enumerate() {
                    for axis in 0..d {
                        residual[slot(component, Some(axis))] = flux.entries()[i * d + axis];
                    }
                }
            }
            Role::Source => {
                let source = self.read(key, formula, unknown.shape)?;
                for (component, &value) in unknown.components().zip(source.entries()) {
                    let at = &mut residual[slot(component, None)];
                    let minus = self.builder.neg(value);
                    *at = self.builder.add(*at, minus);
                }
            }
            Role::Capacity => {
                let capacity = self.builder.array(formula);
                let capacity = capacity.map_err(|error| self.failure(key, formula, error))?;
                let (n, factors) = (unknown.shape.n_entries(), capacity.entries());
                let by_component = match capacity.shape() {
                    Shape::Number => (0..n).map(|i| (i, i, factors[0])).collect(),
                    Shape::Vector(m) if unknown.shape == Shape::Vector(m) => {
                        (0..n).map(|i| (i, i, factors[i])).collect()
                    }
                    Shape::Matrix(m, k) if unknown.shape == Shape::Vector(m) && m == k => {
                        (0..n * n).map(|at| (at / n, at % n, factors[at])).collect::<Vec<_>>()
                    }
                    found => {
                        let or = match unknown.shape {
                            Shape::Number => String::new(),
                            vector => format!(", {vector} or {}", Shape::Matrix(n, n)),
                        };
                        let message = format!("this is {found}, where the capacity needs a number{or}");
                        let error = ExpressionError::at(0..formula.len(), message);
                        return Err(self.failure(key, formula, error));
                    }
                };
                for (row, column, factor) in by_component {
                    let Some(rate) = self.input(Input::Rate(unknown.first + column)) else { continue };
                    let product = self.builder.mul(factor, rate);
                    let at = &mut residual[slot(unknown.first + row, None)];
                    *at = self.builder.add(*at, product);
                }
            }
        }
        Ok(())
    }

    /// Gives the point, the normal and the unknowns their names, and `grad` its meaning.
    fn bind_unknowns(&mut self, unknowns: &[Own<'_>]) -> Result<(), FormError> {
        let (layout, d) = (self.layout, self.layout.dimension);
        let [zero, one] = [0.0, 1.0].map(|value| self.builder.constant(value));
        let unit = |axis: usize| (0..d).map(|own| if own == axis { one } else { zero }).collect::<Vec<_>>();
        let mut slopes = Vec::new();
        let mut without = Vec::new();
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            if let Some(input) = self.input(Input::Coordinate(axis)) {
                self.bind("names", name, input)?;
                slopes.push((input, unit(axis)));
            }
        }
        if let Some(time) = self.input(Input::Time) {
            self.bind("names", "t", time)?;
        }
        let identity = (0..d).flat_map(unit).collect();
        self.bind("names", "identity", Array::new(Shape::Matrix(d, d), identity))?;
        let normal: Vec<Value> = (0..d).filter_map(|axis| self.input(Input::Normal(axis))).collect();
        if !normal.is_empty() {
            without.extend(normal.iter().map(|&n| (n, "the normal has no derivative".to_owned())));
            self.bind("names", "normal", Array::new(Shape::Vector(d), normal))?;
        }
        for side in [Side::First, Side::Second].into_iter().take(layout.n_sides) {
            for own in unknowns {
                let input = |component, axis| {
                    self.input(Input::State(layout.slot(side, component, axis))).unwrap_or(zero)
                };
                for component in own.components() {
                    let along: Vec<Value> = (0..d).map(|axis| input(component, Some(axis))).collect();
                    let reason = format!(
                        "there are no second derivatives of {}: give a flux, which stands with the gradient of the test function",
                        own.name
                    );
                    without.extend(along.iter().map(|&slope| (slope, reason.clone())));
                    slopes.push((input(component, None), along));
                }
                let array = own.array(|component| input(component, None));
                let name = format!("{}{}", own.name, if side == Side::First { "" } else { "_other" });
                self.bind(&format!("unknown.{}", own.name), &name, array)?;
            }
        }
        for own in unknowns {
            let rate = own.array(|component| self.input(Input::Rate(component)).unwrap_or(zero));
            let reason = format!("the gradient of {}_t is not known at a point", own.name);
            without.extend(rate.entries().iter().map(|&rate| (rate, reason.clone())));
            self.bind(&format!("unknown.{}", own.name), &format!("{}_t", own.name), rate)?;
        }
        let functions = self.inputs.iter().filter(|input| matches!(input, Input::Point(_)));
        let functions: Vec<Value> = functions.filter_map(|&input| self.input(input)).collect();
        without.extend(functions.into_iter().map(|value| (value, "a closure has no derivative".to_owned())));
        self.builder.differentiate_in_space(d, &slopes, &without);
        Ok(())
    }
}

/// Returns the inputs of an integrand and their names for messages.
fn inputs(layout: Layout, place: &Place<'_>, unknowns: &[Own<'_>], data: &Data) -> (Vec<Input>, Vec<String>) {
    let d = layout.dimension;
    let coordinates = ["x", "y", "z"].into_iter().enumerate();
    let mut all: Vec<(Input, String)> =
        coordinates.map(|(axis, name)| (Input::Coordinate(axis), name.to_owned())).collect();
    all.push((Input::Time, "t".to_owned()));
    all.push((Input::Tag, "the tag of the cell".to_owned()));
    if *place.domain != Domain::Cells {
        all.extend((0..d).map(|axis| (Input::Normal(axis), format!("normal[{axis}]"))));
    }
    for side in [Side::First, Side::Second].into_iter().take(layout.n_sides) {
        for own in unknowns {
            let name = format!("{}{}", own.name, if side == Side::First { "" } else { "_other" });
            for (i, component) in own.components().enumerate() {
                let is_vector = own.shape != Shape::Number;
                let value = if is_vector { format!("{name}[{i}]") } else { name.clone() };
                all.push((Input::State(layout.slot(side, component, None)), value));
                for axis in 0..d {
                    let row = if is_vector { format!("{i}, ") } else { String::new() };
                    let slope = format!("grad({name})[{row}{axis}]");
                    all.push((Input::State(layout.slot(side, component, Some(axis))), slope));
                }
            }
        }
    }
    for own in unknowns {
        for (i, component) in own.components().enumerate() {
            let index = if own.shape == Shape::Number { String::new() } else { format!("[{i}]") };
            all.push((Input::Rate(component), format!("{}_t{index}", own.name)));
        }
    }
    all.extend((0..data.cells.len()).map(|at| (Input::Cell(at), format!("cell data {at}"))));
    all.extend((0..data.points.len()).map(|at| (Input::Point(at), format!("closure {at}"))));
    all.into_iter().unzip()
}

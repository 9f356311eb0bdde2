//! From the formulas of an integrand to its graph.

use femtile_expression::{Array, Expression, ExpressionError, ProgramBuilder, Shape, Symbol, Value};

use crate::definitions::{definitions, has_word};
use crate::equation::{CELL_SIZE, Components, Equation, Formulas};
use crate::error::FormError;
use crate::form::Domain;
use crate::integrand::{Data, Graph, Input, Layout, Side};
use crate::parameter;
use crate::recipe::{Bound, Collected, Context, Recipe, symbol};
use crate::stabilisation::Streamlines;

/// The name of the metric of the cells in messages; formulas cannot have it.
pub(crate) const CELL_METRIC: &str = "metric of the cells";

/// The name of the factor of all integrals in messages; formulas cannot have it.
pub(crate) const THICKNESS: &str = "thickness of the sheet";

/// Where formulas stand.
pub(crate) struct Place<'a> {
    /// The key of the equation.
    pub name: String,
    pub domain: &'a Domain,
    pub dimension: usize,
    /// The axes of space in formulas: three of a body of revolution, of which the mesh is a half section.
    pub n_axes: usize,
    /// The function at which the residual is to vanish.
    pub exact: Option<&'a [Expression]>,
    /// Whether coefficients keep their names, for formulas that are read.
    pub is_symbolic: bool,
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
    /// Whether it has a component for each axis of the mesh.
    is_vector: bool,
}

impl Own<'_> {
    fn components(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.shape.n_entries()
    }

    /// The inputs of an array with an entry for each component, of a vector with zeros up to the number of axes.
    fn array(&self, n_axes: usize, zero: Value, of: impl Fn(usize) -> Value) -> Array {
        let mut entries: Vec<Value> = self.components().map(of).collect();
        if !self.is_vector {
            return Array::new(self.shape, entries);
        }
        entries.resize(n_axes, zero);
        Array::new(Shape::Vector(n_axes), entries)
    }
}

/// Reads the formulas of an integrand, to be derived `by` a coefficient that is a cell field.
pub(crate) fn graph(
    equation: &Equation,
    place: &Place<'_>,
    coefficients: &[Bound],
    by: Option<&str>,
    parts: &[Part<'_>],
    energy: Option<&str>,
) -> Result<Graph, FormError> {
    let d = place.dimension;
    let layout = Layout {
        dimension: d,
        n_components: equation.n_components(d),
        n_sides: if place.domain.has_two_sides() { 2 } else { 1 },
    };
    let mut first = 0;
    let unknowns: Vec<Own<'_>> = equation
        .unknowns(d)
        .map(|(name, shape)| {
            first += shape.n_entries();
            let is_vector = matches!(equation.text.unknown[name].components, Some(Components::Axes(_)));
            Own { name, shape, first: first - shape.n_entries(), is_vector }
        })
        .collect();
    let mut collected = Collected::new(place.is_symbolic);
    let recipes = coefficients.iter().map(|bound| bound.recipes(&mut collected));
    let recipes: Vec<Vec<Recipe>> = recipes.collect::<Result<_, _>>()?;
    let data = collected.data;
    let (inputs, symbols) = inputs(layout, place, &unknowns, &data);

    let builder = ProgramBuilder::with_arrays(inputs.len() + layout.n_slots() + 1);
    let mut scope = Reader {
        equation,
        builder,
        inputs: &inputs,
        layout,
        definitions: Vec::new(),
        n_axes: place.n_axes,
        around: None,
    };
    if place.n_axes > d {
        scope.around = scope.around(place.is_symbolic);
    }
    scope.bind_unknowns(&unknowns)?;
    let (mut metric, mut thickness) = (None, None);
    for (bound, recipes) in coefficients.iter().zip(&recipes) {
        let context = Context { layout, inputs: &inputs, is_symbolic: place.is_symbolic };
        let entries = recipes.iter().map(|recipe| context.value(&mut scope.builder, recipe)).collect();
        let array = Array::new(bound.shape, entries);
        if bound.name == THICKNESS {
            thickness = Some(array.entries()[0]);
            continue;
        }
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
    let mut energy = match energy {
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
    // Readers find the weight in the integrals.
    if let Some(weight) =
        scope.around.map(|around| around.circumference).or(thickness).filter(|_| !place.is_symbolic)
    {
        let values = residual.iter_mut().chain(&mut others).chain(&mut energy);
        values.for_each(|value| *value = scope.builder.mul(weight, *value));
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
    let Reader { builder, definitions, .. } = scope;
    let mut graph =
        Graph { layout, builder, inputs, symbols, definitions, data, residual, others, energy, parameter };
    if let Some(exact) = place.exact {
        graph.vanish_at(exact);
    }
    Ok(graph)
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
    /// The numbers that were defined.
    definitions: Vec<(Symbol, Value)>,
    /// The axes of space in formulas.
    n_axes: usize,
    /// None unless the body is one of revolution.
    around: Option<Around>,
}

/// A circle around the axis of a body of revolution.
#[derive(Clone, Copy)]
struct Around {
    /// 2πx.
    circumference: Value,
    /// 1/x; in computations zero on the axis, where integrals have no weight.
    curvature: Value,
}

/// Far below the squares of all distances from an axis.
const LEAST: f64 = 1e-200;

impl Reader<'_> {
    /// Returns the circle around the axis through the point; its curvature is 1/x in formulas that are read.
    fn around(&mut self, is_symbolic: bool) -> Option<Around> {
        let x = self.input(Input::Coordinate(0))?;
        let [turn, least, one] =
            [std::f64::consts::TAU, LEAST, 1.0].map(|number| self.builder.constant(number));
        let circumference = self.builder.mul(turn, x);
        if is_symbolic {
            return Some(Around { circumference, curvature: self.builder.div(one, x) });
        }
        let square = self.builder.mul(x, x);
        let square = self.builder.add(square, least);
        let curvature = self.builder.div(x, square);
        Some(Around { circumference, curvature })
    }

    /// Refuses entries around the axis that are not the constant 0, as the integrals have no place for them.
    fn check_around(
        &self,
        (key, formula): (&str, &str),
        mut entries: impl Iterator<Item = Value>,
    ) -> Result<(), FormError> {
        if entries.all(|entry| self.builder.as_constant(entry) == Some(0.0)) {
            return Ok(());
        }
        let message = "the third axis is the way around that of the body, and nothing points along it: the entry there must be 0";
        let error = ExpressionError::at(0..formula.len(), message.to_owned());
        Err(self.failure(key, formula, error))
    }

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

    /// Reads a formula with an entry for each axis of space, or for each of those of the mesh.
    fn read_on_axes(&mut self, key: &str, formula: &str, shapes: [Shape; 2]) -> Result<Array, FormError> {
        match self.builder.array(formula) {
            Ok(array) if array.shape() == shapes[1] => Ok(array),
            _ => self.read(key, formula, shapes[0]),
        }
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
        self.definitions.push((Symbol::new(CELL_SIZE), size));
        self.bind("names", CELL_SIZE, size)
    }

    /// Reads the definitions, without those that need what the place does not have.
    fn define(&mut self, place: &Place<'_>, unknowns: &[Own<'_>]) -> Result<(), FormError> {
        let equation = self.equation;
        let mut absent: Vec<String> = Vec::new();
        if *place.domain == Domain::Cells {
            absent.push("normal".to_owned());
        }
        if !place.domain.has_two_sides() {
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
            let entries = array.entries().iter().enumerate();
            self.definitions.extend(entries.map(|(at, &value)| (symbol(name, array.shape(), at), value)));
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
                let all = self.n_axes;
                let shapes = match unknown.shape {
                    Shape::Vector(_) if unknown.is_vector => [Shape::Matrix(all, all); 2],
                    Shape::Vector(n) => [all, d].map(|columns| Shape::Matrix(n, columns)),
                    _ => [all, d].map(Shape::Vector),
                };
                let flux = self.read_on_axes(key, formula, shapes)?;
                let columns = match flux.shape() {
                    Shape::Matrix(_, columns) | Shape::Vector(columns) => columns,
                    _ => d,
                };
                let is_around = |at: usize| match (at / columns, at % columns) {
                    (row, column) if unknown.is_vector => (row < d) != (column < d),
                    (_, column) => column >= d,
                };
                let around = (0..flux.entries().len()).filter(|&at| is_around(at));
                self.check_around((key, formula), around.map(|at| flux.entries()[at]))?;
                for (i, component) in unknown.components().enumerate() {
                    for axis in 0..d {
                        residual[slot(component, Some(axis))] = flux.entries()[i * columns + axis];
                    }
                }
                if let (Some(around), true) = (self.around, unknown.is_vector) {
                    // The gradient of the test function has v_x/x around the axis.
                    let hoop = self.builder.mul(flux.entries()[all * all - 1], around.curvature);
                    let at = &mut residual[slot(unknown.first, None)];
                    *at = self.builder.add(*at, hoop);
                }
            }
            Role::Source => {
                let all = if unknown.is_vector { Shape::Vector(self.n_axes) } else { unknown.shape };
                let source = self.read_on_axes(key, formula, [all, unknown.shape])?;
                let n = unknown.shape.n_entries();
                self.check_around((key, formula), source.entries().iter().skip(n).copied())?;
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
                // A vector may have its factors on all axes; it has no rate around the axis of a body of revolution.
                let fits =
                    |m: usize| unknown.shape == Shape::Vector(m) || unknown.is_vector && m == self.n_axes;
                let by_component = match capacity.shape() {
                    Shape::Number => (0..n).map(|i| (i, i, factors[0])).collect(),
                    Shape::Vector(m) if fits(m) => (0..n).map(|i| (i, i, factors[i])).collect(),
                    Shape::Matrix(m, k) if fits(m) && m == k => {
                        let around = (n..m).flat_map(|row| (0..n).map(move |column| row * m + column));
                        self.check_around((key, formula), around.map(|at| factors[at]))?;
                        let of = |at: usize| (at / n, at % n, factors[at / n * m + at % n]);
                        (0..n * n).map(of).collect::<Vec<_>>()
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
        let (layout, d, n_axes) = (self.layout, self.layout.dimension, self.n_axes);
        let [zero, one] = [0.0, 1.0].map(|value| self.builder.constant(value));
        let unit =
            |axis: usize| (0..n_axes).map(|own| if own == axis { one } else { zero }).collect::<Vec<_>>();
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
        let identity = (0..n_axes).flat_map(unit).collect();
        self.bind("names", "identity", Array::new(Shape::Matrix(n_axes, n_axes), identity))?;
        let mut normal: Vec<Value> = (0..d).filter_map(|axis| self.input(Input::Normal(axis))).collect();
        if !normal.is_empty() {
            without.extend(normal.iter().map(|&n| (n, "the normal has no derivative".to_owned())));
            normal.resize(n_axes, zero);
            self.bind("names", "normal", Array::new(Shape::Vector(n_axes), normal))?;
        }
        for side in [Side::First, Side::Second].into_iter().take(layout.n_sides) {
            for own in unknowns {
                let input = |component, axis| {
                    self.input(Input::State(layout.slot(side, component, axis))).unwrap_or(zero)
                };
                for component in own.components() {
                    let mut along: Vec<Value> = (0..d).map(|axis| input(component, Some(axis))).collect();
                    let reason = format!(
                        "there are no second derivatives of {}: give a flux, which stands with the gradient of the test function",
                        own.name
                    );
                    without.extend(along.iter().map(|&slope| (slope, reason.clone())));
                    along.resize(n_axes, zero);
                    slopes.push((input(component, None), along));
                }
                let array = own.array(n_axes, zero, |component| input(component, None));
                let name = format!("{}{}", own.name, if side == Side::First { "" } else { "_other" });
                self.bind(&format!("unknown.{}", own.name), &name, array)?;
            }
        }
        for own in unknowns {
            let of = |component| self.input(Input::Rate(component)).unwrap_or(zero);
            let reason = format!("the gradient of {}_t is not known at a point", own.name);
            without.extend(own.components().map(|component| (of(component), reason.clone())));
            let rate = own.array(n_axes, zero, of);
            self.bind(&format!("unknown.{}", own.name), &format!("{}_t", own.name), rate)?;
        }
        let functions = self.inputs.iter().filter(|input| matches!(input, Input::Point(_)));
        let functions: Vec<Value> = functions.filter_map(|&input| self.input(input)).collect();
        without.extend(functions.into_iter().map(|value| (value, "a closure has no derivative".to_owned())));
        self.builder.differentiate_in_space(n_axes, &slopes, &without);
        if let Some(Around { curvature, .. }) = self.around {
            self.builder.turn_about_axis(curvature);
        }
        Ok(())
    }
}

/// Returns the inputs of an integrand and their names.
fn inputs(layout: Layout, place: &Place<'_>, unknowns: &[Own<'_>], data: &Data) -> (Vec<Input>, Vec<Symbol>) {
    const AXES: [char; 3] = ['x', 'y', 'z'];
    let d = layout.dimension;
    let coordinates = AXES.into_iter().enumerate();
    let mut all: Vec<(Input, Symbol)> =
        coordinates.map(|(axis, name)| (Input::Coordinate(axis), Symbol::new(name))).collect();
    all.push((Input::Time, Symbol::new("t")));
    all.push((Input::Tag, Symbol::new("tag")));
    if *place.domain != Domain::Cells {
        all.extend((0..d).map(|axis| (Input::Normal(axis), Symbol::new("normal").entry(&[axis]))));
    }
    for side in [Side::First, Side::Second].into_iter().take(layout.n_sides) {
        for own in unknowns {
            let name = format!("{}{}", own.name, if side == Side::First { "" } else { "_other" });
            for (i, component) in own.components().enumerate() {
                let value = symbol(&name, own.shape, i);
                all.push((Input::State(layout.slot(side, component, None)), value.clone()));
                for (axis, by) in AXES.into_iter().take(d).enumerate() {
                    let slope = Input::State(layout.slot(side, component, Some(axis)));
                    all.push((slope, value.clone().derivative(by)));
                }
            }
        }
    }
    for own in unknowns {
        for (i, component) in own.components().enumerate() {
            all.push((Input::Rate(component), symbol(own.name, own.shape, i).derivative('t')));
        }
    }
    let (cells, points) = (data.of_cells.iter().enumerate(), data.of_points.iter().enumerate());
    all.extend(cells.map(|(at, symbol)| (Input::Cell(at), symbol.clone())));
    all.extend(points.map(|(at, symbol)| (Input::Point(at), symbol.clone())));
    all.into_iter().unzip()
}

//! How the entries of coefficients are obtained at a point.

use std::collections::BTreeMap;
use std::sync::Arc;

use femtile_expression::{Expression, ProgramBuilder, Shape, Symbol, Value, Variable};
use femtile_mesh::Field;

use crate::coefficient::{Coefficient, PointFunction};
use crate::error::FormError;
use crate::formula::CELL_METRIC;
use crate::integrand::{CellData, Data, Input, Layout, Side};

/// A coefficient with a shape: its entries, those of a matrix by rows.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub name: String,
    pub shape: Shape,
    pub entries: Vec<Entry>,
}

/// One entry of a coefficient.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The name of the coefficient.
    pub name: String,
    pub coefficient: Arc<Coefficient>,
    pub which: Which,
}

/// Which number of a coefficient.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which {
    /// A scalar.
    Number,
    /// A component of a field that is a vector.
    Component(usize),
    /// An entry of a tensor.
    Tensor(usize, usize),
}

impl Which {
    /// Returns the component of a field with n components, and none in it for entries that are zero; none if the field does not fit.
    fn component(self, n: usize) -> Option<Option<usize>> {
        match (self, n) {
            (Self::Number, 1) => Some(Some(0)),
            (Self::Component(axis), _) if axis < n => Some(Some(axis)),
            (Self::Tensor(i, j), 1 | 3) if i != j => Some(None),
            (Self::Tensor(..), 1) => Some(Some(0)),
            (Self::Tensor(i, _), 3) => Some(Some(i)),
            // In the order xx, yy, zz, yz, xz, xy.
            (Self::Tensor(i, j), 6) => Some(Some(if i == j { i } else { 6 - i - j })),
            (Self::Tensor(i, j), 9) => Some(Some(3 * i + j)),
            _ => None,
        }
    }

    fn is_off_diagonal(self) -> bool {
        matches!(self, Self::Tensor(i, j) if i != j)
    }
}

/// How a number is obtained at a point.
pub(crate) enum Recipe {
    Number(f64),
    Formula(Expression),
    Cell(usize),
    Point(usize),
    ByTag(Vec<(i32, Recipe)>),
}

/// The data of coefficients while an integrand is made. Entries of one coefficient share their data, so that equal
/// entries are the same input.
#[derive(Default)]
pub(crate) struct Collected {
    pub data: Data,
    /// Whether numbers but zero and one are inputs with the name of their coefficient, for formulas that are read and not computed.
    is_symbolic: bool,
    /// Data by address of their coefficient, and component of a field.
    cells: BTreeMap<(usize, usize), usize>,
    points: BTreeMap<usize, usize>,
    fields: BTreeMap<usize, Arc<Field>>,
}

impl Collected {
    pub fn new(is_symbolic: bool) -> Self {
        Self { is_symbolic, ..Self::default() }
    }

    fn cell(
        &mut self,
        of: &Coefficient,
        component: usize,
        symbol: &Symbol,
        data: impl FnOnce(&mut Self) -> CellData,
    ) -> Recipe {
        let key = (std::ptr::from_ref(of).addr(), component);
        if let Some(&at) = self.cells.get(&key) {
            return Recipe::Cell(at);
        }
        let data = data(self);
        self.data.cells.push(data);
        self.data.of_cells.push(symbol.clone());
        self.cells.insert(key, self.data.cells.len() - 1);
        Recipe::Cell(self.data.cells.len() - 1)
    }

    fn field(&mut self, of: &Coefficient, field: &Field, component: usize, symbol: &Symbol) -> Recipe {
        self.cell(of, component, symbol, |own| {
            let shared =
                own.fields.entry(std::ptr::from_ref(of).addr()).or_insert_with(|| Arc::new(field.clone()));
            CellData::Field { field: shared.clone(), component }
        })
    }

    /// A number that is the same everywhere.
    fn number(&mut self, of: &Coefficient, component: usize, symbol: &Symbol, value: f64) -> Recipe {
        if !self.is_symbolic || value == 0.0 || value == 1.0 {
            return Recipe::Number(value);
        }
        self.cell(of, component, symbol, |_| CellData::ByTag(BTreeMap::new()))
    }

    fn point(&mut self, of: &Coefficient, function: &PointFunction, symbol: &Symbol) -> Recipe {
        let Data { points, of_points, .. } = &mut self.data;
        let at = *self.points.entry(std::ptr::from_ref(of).addr()).or_insert_with(|| {
            of_points.push(symbol.clone());
            points.push(function.clone());
            points.len() - 1
        });
        Recipe::Point(at)
    }
}

impl Bound {
    /// Returns how its numbers are obtained.
    pub fn recipes(&self, collected: &mut Collected) -> Result<Vec<Recipe>, FormError> {
        let name = if self.name == CELL_METRIC { "G" } else { &self.name };
        let recipe = |(at, entry): (usize, &Entry)| {
            let symbol = match (entry.which, self.shape) {
                (Which::Tensor(..), _) if entry.coefficient.is_isotropic() => Symbol::new(name),
                (_, shape) => symbol(name, shape, at),
            };
            entry.recipe_of(&entry.coefficient, &symbol, collected)
        };
        self.entries.iter().enumerate().map(recipe).collect()
    }
}

/// Returns the name of an entry of an array.
pub(crate) fn symbol(name: &str, shape: Shape, entry: usize) -> Symbol {
    match shape {
        Shape::Number => Symbol::new(name),
        Shape::Vector(_) => Symbol::new(name).entry(&[entry]),
        Shape::Matrix(_, n) => Symbol::new(name).entry(&[entry / n, entry % n]),
    }
}

impl Entry {
    /// Returns the constant 0 for an entry that is zero in all cells.
    pub fn or_zero(self) -> Self {
        match self.is_zero(&self.coefficient) {
            true => Self { coefficient: Arc::new(0.0.into()), which: Which::Number, ..self },
            false => self,
        }
    }

    fn is_zero(&self, coefficient: &Coefficient) -> bool {
        match coefficient {
            Coefficient::CellField(field) => match self.which.component(field.n_components) {
                Some(Some(component)) => {
                    field.values.iter().skip(component).step_by(field.n_components).all(|&value| value == 0.0)
                }
                found => found.is_some(),
            },
            Coefficient::ByTag(parts) => parts.values().all(|part| self.is_zero(part)),
            Coefficient::Tensor(tensor) => {
                matches!(self.which, Which::Tensor(i, j) if tensor[i][j] == 0.0)
            }
            Coefficient::TensorExpression(entries) => {
                matches!(self.which, Which::Tensor(i, j) if entries[i][j].as_constant() == Some(0.0))
            }
            Coefficient::Constant(value) => *value == 0.0 || self.which.is_off_diagonal(),
            Coefficient::Expression(_) | Coefficient::Function(_) => self.which.is_off_diagonal(),
        }
    }

    fn recipe_of(
        &self,
        coefficient: &Coefficient,
        symbol: &Symbol,
        collected: &mut Collected,
    ) -> Result<Recipe, FormError> {
        let of_tensor = |value: f64| match self.which {
            Which::Tensor(i, j) if i != j => 0.0,
            _ => value,
        };
        let is_off_diagonal = self.which.is_off_diagonal();
        let failure = |message: String| FormError::Coefficient { coefficient: self.name.clone(), message };
        Ok(match coefficient {
            Coefficient::Constant(value) => collected.number(coefficient, 0, symbol, of_tensor(*value)),
            Coefficient::Expression(_) | Coefficient::Function(_) if is_off_diagonal => Recipe::Number(0.0),
            Coefficient::Expression(expression) => match expression.as_constant() {
                Some(value) => collected.number(coefficient, 0, symbol, value),
                None => Recipe::Formula(expression.clone()),
            },
            Coefficient::Function(function) => collected.point(coefficient, function, symbol),
            Coefficient::Tensor(tensor) => match self.which {
                Which::Tensor(i, j) => collected.number(coefficient, 3 * i + j, symbol, tensor[i][j]),
                _ => return Err(failure("a tensor, but it must be a scalar".to_owned())),
            },
            Coefficient::TensorExpression(entries) => match self.which {
                Which::Tensor(i, j) => match entries[i][j].as_constant() {
                    Some(value) => collected.number(coefficient, 3 * i + j, symbol, value),
                    None => Recipe::Formula(entries[i][j].clone()),
                },
                _ => return Err(failure("a tensor, but it must be a scalar".to_owned())),
            },
            Coefficient::CellField(field) => {
                let n = field.n_components;
                let Some(component) = self.which.component(n) else {
                    return Err(failure(format!("a field of {n} components does not fit")));
                };
                collected.data.n_cells.push((self.name.clone(), field.values.len() / n.max(1)));
                component.map_or(Recipe::Number(0.0), |component| {
                    collected.field(coefficient, field, component, symbol)
                })
            }
            Coefficient::ByTag(parts) => {
                collected.data.tags.push((self.name.clone(), parts.keys().copied().collect()));
                // Numbers by tag have one name together.
                let is_symbolic = std::mem::take(&mut collected.is_symbolic);
                let recipes: Vec<(i32, Recipe)> = parts
                    .iter()
                    .map(|(&tag, part)| Ok((tag, self.recipe_of(part, symbol, collected)?)))
                    .collect::<Result<_, FormError>>()?;
                collected.is_symbolic = is_symbolic;
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
                        let entry = match self.which {
                            Which::Tensor(i, j) if !coefficient.is_isotropic() => 3 * i + j,
                            _ => 0,
                        };
                        collected.cell(coefficient, entry, symbol, |_| CellData::ByTag(values))
                    }
                    None => Recipe::ByTag(recipes),
                }
            }
        })
    }
}

/// The inputs of an integrand, for the values of recipes.
pub(crate) struct Context<'a> {
    pub layout: Layout,
    pub inputs: &'a [Input],
    /// Whether the last of values by tag has no condition, for formulas that are read.
    pub is_symbolic: bool,
}

impl Context<'_> {
    /// Returns an input; zero if the integrand does not have it.
    pub fn input(&self, builder: &mut ProgramBuilder, input: Input) -> Value {
        input.value(builder, self.inputs).unwrap_or_else(|| builder.constant(0.0))
    }

    /// Returns the number of a recipe.
    pub fn value(&self, builder: &mut ProgramBuilder, recipe: &Recipe) -> Value {
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
                for component in 0..self.layout.n_components {
                    let slot = self.layout.slot(Side::First, component, None);
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
                let (otherwise, parts) = match &parts[..] {
                    [(_, last), parts @ ..] if self.is_symbolic => (self.value(builder, last), parts),
                    parts => (builder.constant(f64::NAN), parts),
                };
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

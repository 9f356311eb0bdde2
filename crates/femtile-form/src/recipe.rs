//! How the entries of coefficients are obtained at a point.

use std::collections::BTreeMap;
use std::sync::Arc;

use femtile_expression::{Expression, ProgramBuilder, Shape, Value, Variable};
use femtile_mesh::Field;

use crate::coefficient::{Coefficient, PointFunction};
use crate::error::FormError;
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
    /// Returns how its number is obtained.
    pub fn recipe(&self, collected: &mut Collected) -> Result<Recipe, FormError> {
        self.recipe_of(&self.coefficient, collected)
    }

    fn recipe_of(&self, coefficient: &Coefficient, collected: &mut Collected) -> Result<Recipe, FormError> {
        let of_tensor = |value: f64| match self.which {
            Which::Tensor(i, j) if i != j => 0.0,
            _ => value,
        };
        let is_off_diagonal = matches!(self.which, Which::Tensor(i, j) if i != j);
        let failure = |message: String| FormError::Coefficient { coefficient: self.name.clone(), message };
        Ok(match coefficient {
            Coefficient::Constant(value) => Recipe::Number(of_tensor(*value)),
            Coefficient::Expression(_) | Coefficient::Function(_) if is_off_diagonal => Recipe::Number(0.0),
            Coefficient::Expression(expression) => match expression.as_constant() {
                Some(value) => Recipe::Number(value),
                None => Recipe::Formula(expression.clone()),
            },
            Coefficient::Function(function) => collected.point(coefficient, function),
            Coefficient::Tensor(tensor) => match self.which {
                Which::Tensor(i, j) => Recipe::Number(tensor[i][j]),
                _ => return Err(failure("a tensor, but it must be a scalar".to_owned())),
            },
            Coefficient::TensorExpression(entries) => match self.which {
                Which::Tensor(i, j) => match entries[i][j].as_constant() {
                    Some(value) => Recipe::Number(value),
                    None => Recipe::Formula(entries[i][j].clone()),
                },
                _ => return Err(failure("a tensor, but it must be a scalar".to_owned())),
            },
            Coefficient::CellField(field) => {
                let n = field.n_components;
                let component = match (self.which, n) {
                    (Which::Number, 1) => Some(0),
                    (Which::Component(axis), _) if axis < n => Some(axis),
                    (Which::Tensor(i, j), 1 | 3) if i != j => None,
                    (Which::Tensor(..), 1) => Some(0),
                    (Which::Tensor(i, _), 3) => Some(i),
                    // In the order xx, yy, zz, yz, xz, xy.
                    (Which::Tensor(i, j), 6) => Some(if i == j { i } else { 6 - i - j }),
                    (Which::Tensor(i, j), 9) => Some(3 * i + j),
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
                    .map(|(&tag, part)| Ok((tag, self.recipe_of(part, collected)?)))
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
                        let entry = match self.which {
                            Which::Tensor(i, j) if !coefficient.is_isotropic() => 3 * i + j,
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
pub(crate) struct Context<'a> {
    pub layout: Layout,
    pub inputs: &'a [Input],
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

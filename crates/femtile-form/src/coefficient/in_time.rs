//! Coefficients that depend on the time, and sums of them.

use femtile_expression::{Expression, Variable};
use femtile_mesh::Field;

use crate::coefficient::{Coefficient, PointFunction};

impl Coefficient {
    /// Returns whether a formula in it depends on the time t.
    pub fn uses_time(&self) -> bool {
        match self {
            Self::Expression(expression) => expression.uses(Variable::T),
            Self::TensorExpression(entries) => entries.iter().flatten().any(|entry| entry.uses(Variable::T)),
            Self::ByTag(parts) => parts.values().any(Self::uses_time),
            Self::Constant(_) | Self::Tensor(_) | Self::CellField(_) | Self::Function(_) => false,
        }
    }

    /// Returns the coefficient at a time.
    #[must_use]
    pub fn at_time(&self, t: f64) -> Self {
        match self {
            Self::Expression(expression) => Self::Expression(expression.at_time(t)),
            Self::TensorExpression(entries) => {
                let entry = |i: usize, j: usize| entries[i][j].at_time(t);
                let entries = std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)));
                Self::TensorExpression(Box::new(entries))
            }
            Self::ByTag(parts) => {
                Self::ByTag(parts.iter().map(|(tag, part)| (*tag, part.at_time(t))).collect())
            }
            other => other.clone(),
        }
    }

    /// Returns the sum $a + \alpha b$ of two scalars, where $\alpha$ is `number` and $b$ is `other`. None if,
    /// for some tag, one is a cell field and the other a formula.
    #[must_use]
    pub fn plus_times(&self, number: f64, other: &Self) -> Option<Self> {
        if number == 0.0 {
            return Some(self.clone());
        }
        let field = |values: Vec<f64>| Self::CellField(Field { n_components: 1, values });
        Some(match (self, other) {
            (Self::ByTag(parts), _) => {
                let sum =
                    |(&tag, part): (&i32, &Self)| Some((tag, part.plus_times(number, other.of_tag(tag))?));
                Self::ByTag(parts.iter().map(sum).collect::<Option<_>>()?)
            }
            (_, Self::ByTag(parts)) => {
                let sum = |(&tag, part): (&i32, &Self)| Some((tag, self.plus_times(number, part)?));
                Self::ByTag(parts.iter().map(sum).collect::<Option<_>>()?)
            }
            (Self::CellField(a), Self::CellField(b)) => {
                field(a.values.iter().zip(&b.values).map(|(a, b)| a + number * b).collect())
            }
            (Self::CellField(a), _) => {
                let b = number * other.as_constant()?;
                field(a.values.iter().map(|a| a + b).collect())
            }
            (_, Self::CellField(b)) => {
                let a = self.as_constant()?;
                field(b.values.iter().map(|b| a + number * b).collect())
            }
            _ => match (self.formula(), other.formula()) {
                (Some(a), Some(b)) => {
                    let sum = &a + &(&Expression::constant(number) * &b);
                    sum.as_constant().map_or(Self::Expression(sum), Self::Constant)
                }
                _ => {
                    let (a, b) = (self.clone(), other.clone());
                    let sum = move |point| a.scalar_at(0, 0, point) + number * b.scalar_at(0, 0, point);
                    Self::Function(PointFunction::new(sum))
                }
            },
        })
    }

    /// Returns the coefficient in cells with a tag.
    fn of_tag(&self, tag: i32) -> &Self {
        match self {
            Self::ByTag(parts) => parts.get(&tag).unwrap_or(&Self::Constant(f64::NAN)),
            other => other,
        }
    }

    /// Returns the formula of a number or of a formula.
    fn formula(&self) -> Option<Expression> {
        match self {
            Self::Constant(value) => Some(Expression::constant(*value)),
            Self::Expression(expression) => Some(expression.clone()),
            _ => None,
        }
    }
}

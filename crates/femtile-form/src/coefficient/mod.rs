//! Coefficients of forms: their kinds, and evaluation at points.

mod compiled;
mod in_time;
mod unknown;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use femtile_expression::Expression;
use femtile_mesh::Field;

pub use compiled::{Compiled, Points};
pub use unknown::UNKNOWN;

/// A scalar or tensor that may vary over the mesh: conductivity, reaction, source, boundary data.
///
/// A tensor is refused if a scalar is needed; a scalar stands for a multiple of the identity if a tensor is
/// needed. In two dimensions only the upper left block of a tensor is used.
#[derive(Debug, Clone, PartialEq)]
pub enum Coefficient {
    /// The same number everywhere.
    Constant(f64),
    /// The same tensor everywhere, by rows.
    Tensor([[f64; 3]; 3]),
    /// A formula in the coordinates.
    Expression(Expression),
    /// One formula per entry of a tensor, by rows.
    TensorExpression(Box<[[Expression; 3]; 3]>),
    /// By the tag of the cell; cells of an untagged mesh have tag 0.
    ByTag(BTreeMap<i32, Coefficient>),
    /// A value per cell: 1 component for a scalar, 3 for the diagonal of a tensor, 6 for a symmetric tensor in the
    /// order xx, yy, zz, yz, xz, xy, 9 for a tensor by rows.
    CellField(Field),
    /// A function of the point, evaluated on the CPU for all devices.
    Function(PointFunction),
}

/// A thread-safe function of a point.
#[derive(Clone)]
pub struct PointFunction(Arc<dyn Fn([f64; 3]) -> f64 + Send + Sync>);

impl PointFunction {
    /// Wraps a closure.
    pub fn new(function: impl Fn([f64; 3]) -> f64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    /// Returns its value at a point.
    pub fn at(&self, point: [f64; 3]) -> f64 {
        (self.0)(point)
    }
}

impl fmt::Debug for PointFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PointFunction(..)")
    }
}

/// Functions are equal if they are the same object.
impl PartialEq for PointFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<f64> for Coefficient {
    fn from(value: f64) -> Self {
        Self::Constant(value)
    }
}

impl From<Expression> for Coefficient {
    fn from(expression: Expression) -> Self {
        Self::Expression(expression)
    }
}

impl Coefficient {
    /// The coefficient of a term that an equation lacks.
    pub const ZERO: Self = Self::Constant(0.0);

    /// Returns whether it is a scalar everywhere.
    pub fn is_scalar(&self) -> bool {
        match self {
            Self::Constant(_) | Self::Expression(_) | Self::Function(_) => true,
            Self::Tensor(_) | Self::TensorExpression(_) => false,
            Self::ByTag(parts) => parts.values().all(Self::is_scalar),
            Self::CellField(field) => field.n_components == 1,
        }
    }

    /// Returns its value if it is a constant scalar.
    pub fn as_constant(&self) -> Option<f64> {
        match self {
            Self::Constant(value) => Some(*value),
            Self::Expression(expression) => expression.as_constant(),
            _ => None,
        }
    }

    /// Returns whether it has one value per cell.
    pub fn is_constant_by_cell(&self) -> bool {
        match self {
            Self::Constant(_) | Self::Tensor(_) | Self::CellField(_) => true,
            Self::Expression(expression) => expression.as_constant().is_some(),
            Self::TensorExpression(entries) => entries.iter().flatten().all(|e| e.as_constant().is_some()),
            Self::ByTag(parts) => parts.values().all(Self::is_constant_by_cell),
            Self::Function(_) => false,
        }
    }

    /// Returns whether its kind implies a multiple of the identity.
    pub fn is_isotropic(&self) -> bool {
        match self {
            Self::Constant(_) | Self::Expression(_) | Self::Function(_) => true,
            Self::CellField(field) => field.n_components == 1,
            Self::Tensor(_) | Self::TensorExpression(_) => false,
            Self::ByTag(parts) => parts.values().all(Self::is_isotropic),
        }
    }

    /// Returns whether it contains a closure, which GPUs cannot evaluate.
    pub fn has_function(&self) -> bool {
        match self {
            Self::Function(_) => true,
            Self::ByTag(parts) => parts.values().any(Self::has_function),
            _ => false,
        }
    }

    /// Returns it for a mesh of some of the cells, in this order.
    ///
    /// # Panics
    /// If it has values per cell and one of `cells` is out of range.
    pub fn on_cells(&self, cells: &[u32]) -> Self {
        match self {
            Self::CellField(Field { n_components: n, values }) => {
                let of_cell = |&cell: &u32| values[cell as usize * n..][..*n].iter().copied();
                Self::CellField(Field { n_components: *n, values: cells.iter().flat_map(of_cell).collect() })
            }
            Self::ByTag(parts) => {
                Self::ByTag(parts.iter().map(|(&tag, part)| (tag, part.on_cells(cells))).collect())
            }
            other => other.clone(),
        }
    }

    /// Returns the value at a point of a cell, as a tensor by rows; NaN if undefined.
    ///
    /// A reference for the evaluation in blocks that assembly uses.
    pub fn tensor_at(&self, cell: usize, tag: i32, point: [f64; 3]) -> [[f64; 3]; 3] {
        match self {
            Self::Constant(value) => multiple_of_identity(*value),
            Self::Tensor(tensor) => *tensor,
            Self::Expression(expression) => multiple_of_identity(expression.eval(point)),
            Self::Function(function) => multiple_of_identity(function.at(point)),
            Self::TensorExpression(entries) => {
                std::array::from_fn(|i| std::array::from_fn(|j| entries[i][j].eval(point)))
            }
            Self::ByTag(parts) => {
                parts.get(&tag).map_or([[f64::NAN; 3]; 3], |part| part.tensor_at(cell, tag, point))
            }
            Self::CellField(field) => field_tensor(field, cell),
        }
    }

    /// Returns the value at a point of a cell; NaN if it is undefined or a tensor.
    pub fn scalar_at(&self, cell: usize, tag: i32, point: [f64; 3]) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Expression(expression) => expression.eval(point),
            Self::Function(function) => function.at(point),
            Self::ByTag(parts) => parts.get(&tag).map_or(f64::NAN, |part| part.scalar_at(cell, tag, point)),
            Self::CellField(field) if field.n_components == 1 => field.values[cell],
            _ => f64::NAN,
        }
    }
}

/// Returns a multiple of the identity.
pub fn multiple_of_identity(value: f64) -> [[f64; 3]; 3] {
    [[value, 0.0, 0.0], [0.0, value, 0.0], [0.0, 0.0, value]]
}

/// Returns the tensor of a cell field in one cell.
fn field_tensor(field: &Field, cell: usize) -> [[f64; 3]; 3] {
    let v = &field.values[cell * field.n_components..][..field.n_components];
    match *v {
        [value] => multiple_of_identity(value),
        [xx, yy, zz] => [[xx, 0.0, 0.0], [0.0, yy, 0.0], [0.0, 0.0, zz]],
        [xx, yy, zz, yz, xz, xy] => [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]],
        [a, b, c, d, e, f, g, h, i] => [[a, b, c], [d, e, f], [g, h, i]],
        _ => [[f64::NAN; 3]; 3],
    }
}

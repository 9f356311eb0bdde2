/// Errors of forms and coefficients.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// A coefficient is not finite at a point.
    #[error("{field} is {value} in cell {cell} at {}; it must be finite everywhere", at(point, *unknown))]
    NotFinite {
        /// Which coefficient.
        field: &'static str,
        /// Number of the cell.
        cell: usize,
        /// The point.
        point: [f64; 3],
        /// The value.
        value: f64,
        /// The value of u there, of coefficients that depend on it.
        unknown: Option<f64>,
    },
    /// A negative coefficient that must not be negative.
    #[error("{field} is {value} in cell {cell} at {}; it must not be negative", at(point, *unknown))]
    Negative {
        /// Which coefficient.
        field: &'static str,
        /// Number of the cell.
        cell: usize,
        /// The point.
        point: [f64; 3],
        /// The value.
        value: f64,
        /// The value of u there, of coefficients that depend on it.
        unknown: Option<f64>,
    },
    /// A conductivity that is not symmetric positive definite.
    #[error(
        "{field} is not symmetric positive definite in cell {cell} at {}: {}; the problem would not be elliptic",
        at(point, *unknown),
        matrix(tensor)
    )]
    Indefinite {
        /// Which coefficient.
        field: &'static str,
        /// Number of the cell.
        cell: usize,
        /// The point.
        point: [f64; 3],
        /// The value by rows; in two dimensions only the upper left block is used.
        tensor: [[f64; 3]; 3],
        /// The value of u there, of coefficients that depend on it.
        unknown: Option<f64>,
    },
    /// A coefficient by tag has no value for the tag of a cell.
    #[error("{field} has no value for tag {tag} of cell {cell}; tags with a value: {known}")]
    MissingTag {
        /// Which coefficient.
        field: &'static str,
        /// Number of the cell.
        cell: usize,
        /// Its tag.
        tag: i32,
        /// The tags that have a value.
        known: String,
    },
    /// A coefficient of a wrong shape: a tensor for a scalar, a field with a wrong number of values.
    #[error("{field}: {message}")]
    Shape {
        /// Which coefficient.
        field: &'static str,
        /// The wrong shape, and those that fit.
        message: String,
    },
    /// The text of an equation that cannot be read.
    #[error("equation {equation}: {message}")]
    Equation {
        /// Name of the equation.
        equation: String,
        /// The place and the reason.
        message: String,
    },
    /// A formula of an equation that cannot be read, or has the wrong shape.
    #[error("equation {equation}: {key}: {error}\n{}", .error.pointed(formula))]
    Formula {
        /// Name of the equation.
        equation: String,
        /// The key of the formula, such as `energy` or `define.F`.
        key: String,
        /// The formula.
        formula: String,
        /// The reason.
        error: femtile_expression::ExpressionError,
    },
    /// A coefficient that the equation does not have, lacks, or cannot take.
    #[error("{coefficient}: {message}")]
    Coefficient {
        /// Name of the coefficient.
        coefficient: String,
        /// The reason.
        message: String,
    },
    /// A value of an integrand that is not finite.
    #[error(
        "{output} of the integral over {domain} is {value} in cell {cell} at {}, where {inputs}; it must be finite everywhere",
        place(point)
    )]
    IntegrandNotFinite {
        /// The entry of the integrand.
        output: String,
        /// Where the integral is taken.
        domain: &'static str,
        /// Number of the cell.
        cell: usize,
        /// The point.
        point: [f64; 3],
        /// The value.
        value: f64,
        /// Names and values of the inputs there.
        inputs: String,
    },
}

impl FormError {
    /// Returns the cell of the error, if there is one.
    pub fn cell(&self) -> Option<usize> {
        match self {
            Self::NotFinite { cell, .. }
            | Self::Negative { cell, .. }
            | Self::Indefinite { cell, .. }
            | Self::MissingTag { cell, .. }
            | Self::IntegrandNotFinite { cell, .. } => Some(*cell),
            _ => None,
        }
    }

    /// Returns the number of that cell, to be changed.
    pub fn cell_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::NotFinite { cell, .. }
            | Self::Negative { cell, .. }
            | Self::Indefinite { cell, .. }
            | Self::MissingTag { cell, .. }
            | Self::IntegrandNotFinite { cell, .. } => Some(cell),
            _ => None,
        }
    }
}

fn place(point: &[f64; 3]) -> String {
    format!("({}, {}, {})", point[0], point[1], point[2])
}

fn at(point: &[f64; 3], unknown: Option<f64>) -> String {
    match unknown {
        Some(u) => format!("{}, where u is {u}", place(point)),
        None => place(point),
    }
}

fn matrix(tensor: &[[f64; 3]; 3]) -> String {
    let rows: Vec<String> =
        tensor.iter().map(|row| format!("[{}, {}, {}]", row[0], row[1], row[2])).collect();
    format!("[{}]", rows.join(", "))
}

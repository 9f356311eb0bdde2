//! Values of coefficients as users give them, and their evaluation on a mesh.

use std::collections::BTreeMap;

use femtile_expression::{Expression, ExpressionError, Names};
use femtile_fem::forms::UNKNOWN;
use femtile_fem::{Coefficient, PointFunction};
use femtile_mesh::{Field, Mesh};

use crate::SolveError;
use crate::bidomain::bidomain;
use crate::fibres::{Sheets, tensors};
use crate::setting::{Key, below};

/// A number or tensor that may vary in space, not yet resolved on a mesh.
///
/// Numbers, expressions in quotes and closures convert into it:
///
/// ```
/// use femtile_solve::Value;
///
/// let constant = Value::from(2.5);
/// let whole = Value::from(2);
/// let formula = Value::from("1 + x*y");
/// let closure = Value::from(|[x, y, _]: [f64; 3]| 1.0 + x * y);
/// let tissue = Value::by_tag([("muscle", Value::from(0.2)), ("scar", Value::from(0.01))]);
/// let layers = Value::by_tag([(1, 10), (2, 20)]);
/// assert_eq!((whole, layers), (Value::Number(2.0), Value::by_tag([("1", 10.0), ("2", 20.0)])));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A constant.
    Number(f64),
    /// An expression in x, y, z.
    Text(String),
    /// A function of the point, evaluated on the CPU for every device.
    Function(PointFunction),
    /// A symmetric tensor by rows: 2×2 or 3×3.
    Tensor(Vec<Vec<Entry>>),
    /// A number or expression for each component of u.
    Components(Vec<Entry>),
    /// One value for each tag of cells, by the tag's name or number, and that of all other cells.
    ByTag {
        /// The values.
        parts: BTreeMap<String, Value>,
        /// The value of cells with other tags; without it there must be none.
        default: Option<Box<Value>>,
    },
    /// A cell field of the mesh: 1 component, 3 (a diagonal), 6 (xx, yy, zz, yz, xz, xy) or 9.
    Field(String),
    /// A conductivity along and across fibres: $\sigma = \sigma_t I + (\sigma_l - \sigma_t) f f^T$, orthotropic with sheets.
    Fibres {
        /// The cell field of directions f; they are normalised.
        fibre: String,
        /// The conductivity along the fibres, one number a cell.
        along: Box<Value>,
        /// The conductivity across the fibres, with sheets that within them.
        across: Box<Value>,
        /// Sheets, if the conductivity normal to them is another.
        sheets: Option<Sheets>,
    },
    /// The conductivity of the monodomain equation, half the harmonic mean of two: $\sigma_i \sigma_e / (\sigma_i + \sigma_e)$.
    Bidomain {
        /// The intracellular conductivity.
        intra: Box<Value>,
        /// The extracellular conductivity.
        extra: Box<Value>,
    },
    /// A coefficient that is resolved already.
    Coefficient(Coefficient),
}

/// One entry of a tensor, or of an array with one for each component.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A number.
    Number(f64),
    /// An expression in x, y, z.
    Text(String),
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Coefficient> for Value {
    fn from(coefficient: Coefficient) -> Self {
        Self::Coefficient(coefficient)
    }
}

impl<F: Fn([f64; 3]) -> f64 + Send + Sync + 'static> From<F> for Value {
    fn from(function: F) -> Self {
        Self::Function(PointFunction::new(function))
    }
}

/// The name or the number of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagName(String);

impl From<i32> for TagName {
    fn from(number: i32) -> Self {
        Self(number.to_string())
    }
}

impl From<&str> for TagName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl From<&String> for TagName {
    fn from(name: &String) -> Self {
        Self(name.clone())
    }
}

impl From<String> for TagName {
    fn from(name: String) -> Self {
        Self(name)
    }
}

impl Value {
    /// Returns one value for each tag of cells, by the tag's name or number.
    pub fn by_tag<N: Into<TagName>, V: Into<Value>>(parts: impl IntoIterator<Item = (N, V)>) -> Self {
        let parts = parts.into_iter().map(|(name, value)| (name.into().0, value.into())).collect();
        Self::ByTag { parts, default: None }
    }

    /// Returns a value by tag with this one for cells of other tags; any other value as it is.
    #[must_use]
    pub fn otherwise(self, value: impl Into<Value>) -> Self {
        match self {
            Self::ByTag { parts, .. } => Self::ByTag { parts, default: Some(Box::new(value.into())) },
            other => other,
        }
    }

    /// Returns the cell field of the mesh with this name.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// Returns a conductivity along and across fibres, whose directions are a cell field.
    ///
    /// ```
    /// use femtile_solve::Value;
    ///
    /// let tissue = Value::fibres("fibre", 0.133, 0.0176);
    /// let same = Value::fibres("fibre", Value::bidomain(0.17, 0.62), Value::bidomain(0.019, 0.24));
    /// ```
    pub fn fibres(fibre: impl Into<String>, along: impl Into<Self>, across: impl Into<Self>) -> Self {
        let (along, across) = (Box::new(along.into()), Box::new(across.into()));
        Self::Fibres { fibre: fibre.into(), along, across, sheets: None }
    }

    /// Returns fibres in sheets, a cell field of directions within them, with the conductivity normal to the sheets; any
    /// other value as it is.
    #[must_use]
    pub fn in_sheets(self, sheet: impl Into<String>, normal: impl Into<Self>) -> Self {
        match self {
            Self::Fibres { fibre, along, across, .. } => {
                let sheets = Some(Sheets { field: sheet.into(), normal: Box::new(normal.into()) });
                Self::Fibres { fibre, along, across, sheets }
            }
            other => other,
        }
    }

    /// Returns the conductivity of the monodomain equation for an intracellular and an extracellular one.
    pub fn bidomain(intra: impl Into<Self>, extra: impl Into<Self>) -> Self {
        Self::Bidomain { intra: Box::new(intra.into()), extra: Box::new(extra.into()) }
    }

    /// Returns whether fibres occur in it, also in some cells only.
    pub fn has_fibres(&self) -> bool {
        match self {
            Self::Fibres { .. } => true,
            Self::ByTag { parts, default } => parts.values().chain(default.as_deref()).any(Self::has_fibres),
            _ => false,
        }
    }

    /// Returns the value with its formulas read, which may use these names besides the coordinates.
    pub(crate) fn parsed(&self, mesh: &Mesh, path: &[Key], names: &Names<'_>) -> Result<Self, SolveError> {
        Ok(match self {
            Self::Text(text) => Self::Coefficient(formula(text, path, names)?.into()),
            Self::Tensor(rows) => Self::Coefficient(tensor(mesh, rows, path, names)?),
            Self::ByTag { parts, default } => {
                let place = below(path, "by_tag");
                let part = |(name, value): (&String, &Value)| {
                    Ok((name.clone(), value.parsed(mesh, &below(&place, name.as_str()), names)?))
                };
                let parts = parts.iter().map(part).collect::<Result<_, SolveError>>()?;
                let of_others = |value: &Value| value.parsed(mesh, &below(path, "default"), names);
                Self::ByTag { parts, default: default.as_deref().map(of_others).transpose()?.map(Box::new) }
            }
            other => other.clone(),
        })
    }

    /// Returns whether a formula that was read depends on u.
    pub(crate) fn uses_unknown(&self) -> bool {
        self.has_part(&Coefficient::uses_unknown)
    }

    /// Returns whether a formula that was read depends on u or on the time.
    pub(crate) fn uses_state(&self) -> bool {
        self.has_part(&|own| own.uses_unknown() || own.uses_time())
    }

    fn has_part(&self, holds: &dyn Fn(&Coefficient) -> bool) -> bool {
        match self {
            Self::Coefficient(coefficient) => holds(coefficient),
            Self::ByTag { parts, default } => {
                parts.values().chain(default.as_deref()).any(|part| part.has_part(holds))
            }
            _ => false,
        }
    }

    /// Returns whether it is the number zero, for each component.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Number(number) => *number == 0.0,
            Self::Components(entries) => entries.iter().all(|entry| *entry == Entry::Number(0.0)),
            Self::Coefficient(coefficient) => coefficient.as_constant() == Some(0.0),
            _ => false,
        }
    }
}

/// Resolves a conductivity on a mesh, with notes on its fibres; `path` is its setting.
pub(crate) fn conductivity(
    mesh: &Mesh,
    value: &Value,
    path: &[Key],
    notes: &mut Vec<String>,
) -> Result<Coefficient, SolveError> {
    match value.has_fibres() {
        true => tensors(mesh, value, path, notes),
        false => coefficient(mesh, value, path),
    }
}

/// Resolves a value without fibres on a mesh; `path` is its setting.
pub(crate) fn coefficient(mesh: &Mesh, value: &Value, path: &[Key]) -> Result<Coefficient, SolveError> {
    Ok(match value {
        Value::Number(number) => Coefficient::Constant(*number),
        Value::Text(text) => expression(text, path)?.into(),
        Value::Function(function) => Coefficient::Function(function.clone()),
        Value::Coefficient(coefficient) => coefficient.clone(),
        Value::Tensor(rows) => tensor(mesh, rows, path, &Names::default())?,
        Value::Components(_) => {
            let message =
                "one value is needed here, not an array of components; a tensor is an array of rows";
            return Err(SolveError::setting(path, message));
        }
        Value::ByTag { parts, default } => by_tag(mesh, parts, default.as_deref(), path)?,
        Value::Field(field) => {
            Coefficient::CellField(cell_field(mesh, field, &below(path, "field"))?.clone())
        }
        Value::Fibres { .. } => {
            return Err(SolveError::setting(path, "fibres give a tensor; a number is needed here"));
        }
        Value::Bidomain { intra, extra } => bidomain(mesh, [intra, extra], path)?,
    })
}

/// Returns a cell field of the mesh.
pub(crate) fn cell_field<'m>(mesh: &'m Mesh, name: &str, path: &[Key]) -> Result<&'m Field, SolveError> {
    mesh.cell_fields.get(name).ok_or_else(|| {
        let names: Vec<_> = mesh.cell_fields.keys().map(String::as_str).collect();
        let names = if names.is_empty() { "none".into() } else { names.join(", ") };
        let message = format!("the mesh has no cell field `{name}`; it has: {names}");
        let hint = match mesh.node_fields.contains_key(name) {
            true => format!("; `{name}` is a field of nodes, and one of cells is needed"),
            false => String::new(),
        };
        SolveError::setting(path, message + &hint)
    })
}

/// Refuses a coefficient that varies within a cell.
pub(crate) fn by_cell(coefficient: Coefficient, path: &[Key]) -> Result<Coefficient, SolveError> {
    match coefficient.is_constant_by_cell() {
        true => Ok(coefficient),
        false => {
            let message = "one value a cell is needed here: a number, one by tag, or a cell field";
            Err(SolveError::setting(path, message))
        }
    }
}

/// Refuses a value, of a cell if it varies, that is not positive and finite; NaN in a cell is no value at all.
pub(crate) fn positive(value: f64, cell: Option<usize>, path: &[Key]) -> Result<f64, SolveError> {
    if value > 0.0 && value.is_finite() {
        return Ok(value);
    }
    let message = match cell {
        Some(cell) if value.is_nan() => {
            format!("cell {cell} has no value here: name its tag, or give a `default`")
        }
        Some(cell) => format!("{value} in cell {cell}; it has to be positive and finite"),
        None => format!("{value}; it has to be positive and finite"),
    };
    Err(SolveError::setting(path, message))
}

/// Resolves values by tag; all tags of the mesh that have none take the default.
fn by_tag(
    mesh: &Mesh,
    values: &BTreeMap<String, Value>,
    default: Option<&Value>,
    path: &[Key],
) -> Result<Coefficient, SolveError> {
    let place = below(path, "by_tag");
    let mut parts = BTreeMap::new();
    for (name, value) in values {
        let path = below(&place, name.as_str());
        for tag in cell_tags(mesh, name, &path)? {
            parts.insert(tag, coefficient(mesh, value, &path)?);
        }
    }
    if let Some(default) = default {
        let value = coefficient(mesh, default, &below(path, "default"))?;
        let mut tags = mesh.cell_tags.clone();
        tags.sort_unstable();
        tags.dedup();
        if tags.is_empty() {
            tags.push(0);
        }
        for tag in tags {
            parts.entry(tag).or_insert_with(|| value.clone());
        }
    }
    Ok(Coefficient::ByTag(parts))
}

/// Resolves a value if a tensor has no meaning.
pub(crate) fn scalar(mesh: &Mesh, value: &Value, path: &[Key]) -> Result<Coefficient, SolveError> {
    let found = coefficient(mesh, value, path)?;
    match found.is_scalar() {
        true => Ok(found),
        false => Err(SolveError::setting(path, "a number is needed here, not a tensor")),
    }
}

/// Resolves the value of one of `n` components: its entry of an array, or what all components have.
pub(crate) fn of_component(
    mesh: &Mesh,
    value: &Value,
    (component, n): (usize, usize),
    path: &[Key],
) -> Result<Coefficient, SolveError> {
    let Value::Components(entries) = value else { return scalar(mesh, value, path) };
    check_count(entries.len(), n, path)?;
    Ok(match &entries[component] {
        Entry::Number(number) => Coefficient::Constant(*number),
        Entry::Text(text) => expression(text, &below(path, component))?.into(),
    })
}

/// Refuses an array that has not one entry for each of `n` components.
///
/// # Errors
/// [`SolveError::Setting`].
pub fn check_count(found: usize, n: usize, path: &[Key]) -> Result<(), SolveError> {
    if found == n {
        return Ok(());
    }
    let message = format!(
        "{found} entries, where u has {n} components: give one for each, or one for all without brackets"
    );
    Err(SolveError::setting(path, message))
}

/// Parses an expression.
///
/// # Errors
/// [`SolveError::Setting`] with the place inside the text.
pub fn expression(text: &str, path: &[Key]) -> Result<Expression, SolveError> {
    formula(text, path, &Names::default())
}

/// Parses an expression that may use some names besides the coordinates.
fn formula(text: &str, path: &[Key], names: &Names<'_>) -> Result<Expression, SolveError> {
    let parsed = Expression::parse_with(text, names).map_err(|error| of_expression(text, &error, path))?;
    if parsed.uses(UNKNOWN) || names.others.is_empty() {
        return Ok(parsed);
    }
    // Formulas without u are those of linear equations, to the last word of their kernels.
    let plain = Expression::parse_with(text, &Names { others: &[], ..*names });
    Ok(plain.unwrap_or(parsed))
}

fn of_expression(text: &str, error: &ExpressionError, path: &[Key]) -> SolveError {
    let advice = match text.get(error.span.clone()) {
        Some("u") => "; u, the solution, is a name in the coefficients and the source of an equation alone",
        Some("t") => "; t, the time, is a name in equations in time alone",
        _ => "",
    };
    let message = format!("{error}{advice}");
    SolveError::Setting { path: path.to_vec(), within: Some(error.span.clone()), message }
}

fn tensor(
    mesh: &Mesh,
    rows: &[Vec<Entry>],
    path: &[Key],
    names: &Names<'_>,
) -> Result<Coefficient, SolveError> {
    let n = rows.len();
    if n < mesh.space_dimension() {
        let message = match mesh.is_surface {
            true => format!("a {n}×{n} tensor on a surface in space, whose tensors are 3×3"),
            false => format!("a {n}×{n} tensor on a mesh of dimension {}", mesh.dimension()),
        };
        return Err(SolveError::setting(path, message));
    }
    let mut numbers = [[0.0; 3]; 3];
    let mut formulas: [[Expression; 3]; 3] = std::array::from_fn(|i| {
        std::array::from_fn(|j| Expression::constant(f64::from(u8::from(i == j && i >= n))))
    });
    for (i, row) in rows.iter().enumerate() {
        for (j, entry) in row.iter().enumerate() {
            formulas[i][j] = match entry {
                Entry::Number(number) => Expression::constant(*number),
                Entry::Text(text) => formula(text, &below(&below(path, i), j), names)?,
            };
        }
    }
    for (i, j) in (0..9).map(|k| (k / 3, k % 3)) {
        match formulas[i][j].as_constant() {
            Some(value) => numbers[i][j] = value,
            None => return Ok(Coefficient::TensorExpression(Box::new(formulas))),
        }
    }
    Ok(Coefficient::Tensor(numbers))
}

/// Returns the tags of cells of a name or number.
///
/// # Errors
/// [`SolveError::Setting`] with the tags that there are.
pub fn cell_tags(mesh: &Mesh, name: &str, path: &[Key]) -> Result<Vec<i32>, SolveError> {
    let dimension = mesh.dimension();
    let named = mesh.tag_names.iter().filter(|((d, _), known)| *d == dimension && known.as_str() == name);
    let tags: Vec<i32> = named.map(|((_, tag), _)| *tag).collect();
    if !tags.is_empty() {
        return Ok(tags);
    }
    let mut known = mesh.cell_tags.clone();
    known.sort_unstable();
    known.dedup();
    if let Ok(tag) = name.parse::<i32>()
        && (known.contains(&tag)
            || mesh.tag_names.contains_key(&(dimension, tag))
            || (tag == 0 && known.is_empty()))
    {
        return Ok(vec![tag]);
    }
    let all = known.iter().map(|tag| match mesh.tag_names.get(&(dimension, *tag)) {
        Some(name) => format!("{name} ({tag})"),
        None => tag.to_string(),
    });
    let all: Vec<_> = all.collect();
    let all = if all.is_empty() { "none".into() } else { all.join(", ") };
    Err(SolveError::setting(path, format!("no cell has the tag `{name}`; tags of cells: {all}")))
}

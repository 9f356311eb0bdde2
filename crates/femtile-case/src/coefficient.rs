//! Turns the values of a case file into coefficients of a form.

use std::collections::BTreeMap;

use femtile_expression::Expression;
use femtile_fem::Coefficient;
use femtile_mesh::Mesh;

use crate::file::{Entry, Value};
use crate::place::Key;
use crate::{Case, CaseError};

/// The coefficient that stands at `path` of the case file.
pub(crate) fn coefficient(
    case: &Case,
    mesh: &Mesh,
    value: &Value,
    path: &[Key],
) -> Result<Coefficient, CaseError> {
    Ok(match value {
        Value::Number(number) => Coefficient::Constant(*number),
        Value::Text(text) => expression(case, text, path)?.into(),
        Value::Tensor(rows) => tensor(case, mesh, rows, path)?,
        Value::Components(_) => {
            let message =
                "one value is needed here, not an array of components; a tensor is an array of rows";
            return Err(case.wrong(path, message));
        }
        Value::ByTag { by_tag } => {
            let path = below(path, "by_tag");
            let mut parts = BTreeMap::new();
            for (name, value) in by_tag {
                let path = below(&path, name.as_str());
                for tag in cell_tags(case, mesh, name, &path)? {
                    parts.insert(tag, coefficient(case, mesh, value, &path)?);
                }
            }
            Coefficient::ByTag(parts)
        }
        Value::Field { field } => {
            let found = mesh.cell_fields.get(field).cloned();
            Coefficient::CellField(found.ok_or_else(|| {
                let names: Vec<_> = mesh.cell_fields.keys().map(String::as_str).collect();
                let names = if names.is_empty() { "none".into() } else { names.join(", ") };
                let message = format!("the mesh has no cell field `{field}`; it has: {names}");
                case.wrong(&below(path, "field"), message)
            })?)
        }
    })
}

/// The coefficient that stands at `path`, where a tensor has no meaning.
pub(crate) fn scalar(
    case: &Case,
    mesh: &Mesh,
    value: &Value,
    path: &[Key],
) -> Result<Coefficient, CaseError> {
    let found = coefficient(case, mesh, value, path)?;
    if found.is_scalar() { Ok(found) } else { Err(case.wrong(path, "a number is needed here, not a tensor")) }
}

/// The coefficient of one component: its entry of an array, or what all components have.
pub(crate) fn of_component(
    case: &Case,
    mesh: &Mesh,
    value: &Value,
    component: usize,
    path: &[Key],
) -> Result<Coefficient, CaseError> {
    let Value::Components(entries) = value else { return scalar(case, mesh, value, path) };
    check_count(case, entries.len(), path)?;
    Ok(match &entries[component] {
        Entry::Number(number) => Coefficient::Constant(*number),
        Entry::Text(text) => expression(case, text, &below(path, component))?.into(),
    })
}

/// Refuses an array that has not one entry for each component.
pub(crate) fn check_count(case: &Case, found: usize, path: &[Key]) -> Result<(), CaseError> {
    let n = case.file.space.components;
    if found == n {
        return Ok(());
    }
    let message = format!(
        "{found} entries, where u has components = {n} by [space]: give one for each, or one for all without brackets"
    );
    Err(case.wrong(path, message))
}

/// Parses an expression; an error points at the place inside the string.
pub(crate) fn expression(case: &Case, text: &str, path: &[Key]) -> Result<Expression, CaseError> {
    Expression::parse(text).map_err(|error| case.wrong_inside(path, &error.span, error.to_string()))
}

/// The steps of `path` and one more.
pub(crate) fn below(path: &[Key], key: impl Into<Key>) -> Vec<Key> {
    path.iter().cloned().chain([key.into()]).collect()
}

fn tensor(case: &Case, mesh: &Mesh, rows: &[Vec<Entry>], path: &[Key]) -> Result<Coefficient, CaseError> {
    let n = rows.len();
    if n < mesh.dimension() {
        let message = format!("a {n}×{n} tensor on a mesh of dimension {}", mesh.dimension());
        return Err(case.wrong(path, message));
    }
    let mut numbers = [[0.0; 3]; 3];
    let mut formulas: [[Expression; 3]; 3] = std::array::from_fn(|i| {
        std::array::from_fn(|j| Expression::constant(f64::from(u8::from(i == j && i >= n))))
    });
    for (i, row) in rows.iter().enumerate() {
        for (j, entry) in row.iter().enumerate() {
            formulas[i][j] = match entry {
                Entry::Number(number) => Expression::constant(*number),
                Entry::Text(text) => expression(case, text, &below(&below(path, i), j))?,
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

/// Tags of cells that a name or number stands for.
fn cell_tags(case: &Case, mesh: &Mesh, name: &str, path: &[Key]) -> Result<Vec<i32>, CaseError> {
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
        && (known.contains(&tag) || (tag == 0 && known.is_empty()))
    {
        return Ok(vec![tag]);
    }
    let all = known.iter().map(|tag| match mesh.tag_names.get(&(dimension, *tag)) {
        Some(name) => format!("{name} ({tag})"),
        None => tag.to_string(),
    });
    let all: Vec<_> = all.collect();
    let all = if all.is_empty() { "none".into() } else { all.join(", ") };
    Err(case.wrong(path, format!("no cell has the tag `{name}`; tags of cells: {all}")))
}

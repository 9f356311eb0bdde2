//! Conductivities of fibrous materials: tensors from the directions of fibres and sheets in each cell.

use std::collections::BTreeMap;

use femtile_fem::Coefficient;
use femtile_mesh::{Field, Mesh};

use crate::SolveError;
use crate::coefficient::{Value, by_cell, cell_field, cell_tags, coefficient, positive, scalar};
use crate::setting::{Key, below};

/// Deviation of a length from one above which a note is made: text files often have four digits.
const ROUNDING: f64 = 1e-3;
/// Sine of the angle between fibre and sheet below which the sheet direction is refused.
const PARALLEL: f64 = 1e-6;

/// Sheets of a fibrous material.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheets {
    /// The cell field of directions in the sheet, across the fibres.
    pub field: String,
    /// The conductivity normal to the sheets.
    pub normal: Box<Value>,
}

/// Resolves a value that contains [`Value::Fibres`] to one symmetric tensor a cell; notes on the field of directions are
/// added to `notes`.
///
/// $$ \sigma = \sigma_t I + (\sigma_l - \sigma_t)\, f f^T, \qquad
///    \sigma = \sigma_n I + (\sigma_f - \sigma_n)\, f f^T + (\sigma_s - \sigma_n)\, s s^T $$
///
/// with unit vectors f along the fibres and s in the sheet, orthogonal to f.
///
/// # Shapes
/// Six components a cell: xx, yy, zz, yz, xz, xy.
/// # Errors
/// [`SolveError::Setting`] that names the cell if there is no direction, a conductivity is not positive, or
/// the sheet is parallel to the fibre.
pub(crate) fn tensors(
    mesh: &Mesh,
    value: &Value,
    path: &[Key],
    notes: &mut Vec<String>,
) -> Result<Coefficient, SolveError> {
    let mut parts = TaggedValues { mesh, all: Vec::new(), of_tag: BTreeMap::new() };
    let tags = tags_of(mesh);
    parts.add(value, path, &tags)?;
    let mut values = Vec::with_capacity(6 * mesh.n_cells());
    for cell in 0..mesh.n_cells() {
        let tag = tag_of(mesh, cell);
        let Some(&part) = parts.of_tag.get(&tag) else {
            let message =
                format!("cell {cell} has tag {tag}, which has no value: name it, or give a `default`");
            return Err(SolveError::setting(path, message));
        };
        values.extend(match &mut parts.all[part] {
            TaggedValue::Fibres(fibres) => fibres.at(cell, tag)?,
            TaggedValue::Other(coefficient) => by_voigt(&coefficient.tensor_at(cell, tag, [0.0; 3])),
        });
    }
    let found = parts.all.iter().filter_map(|part| match part {
        TaggedValue::Fibres(fibres) => Some(fibres),
        TaggedValue::Other(_) => None,
    });
    for direction in found.flat_map(|fibres| std::iter::once(&fibres.fibre).chain(fibres.sheet())) {
        notes.extend(direction.note().filter(|note| !notes.contains(note)));
    }
    Ok(Coefficient::CellField(Field { n_components: 6, values }))
}

/// Returns all tags of cells; cells of an untagged mesh have tag 0.
fn tags_of(mesh: &Mesh) -> Vec<i32> {
    let mut tags = mesh.cell_tags.clone();
    tags.sort_unstable();
    tags.dedup();
    if tags.is_empty() {
        tags.push(0);
    }
    tags
}

fn tag_of(mesh: &Mesh, cell: usize) -> i32 {
    mesh.cell_tags.get(cell).copied().unwrap_or(0)
}

/// The parts of a value by tag.
struct TaggedValues<'a> {
    mesh: &'a Mesh,
    all: Vec<TaggedValue<'a>>,
    of_tag: BTreeMap<i32, usize>,
}

enum TaggedValue<'a> {
    Fibres(Box<Fibres<'a>>),
    Other(Coefficient),
}

impl TaggedValues<'_> {
    /// Adds the value of cells with these tags.
    fn add(&mut self, value: &Value, path: &[Key], tags: &[i32]) -> Result<(), SolveError> {
        let part = match value {
            Value::ByTag { parts, default } => {
                let mut others = tags.to_vec();
                for (name, value) in parts {
                    let path = below(&below(path, "by_tag"), name.as_str());
                    let mut own = cell_tags(self.mesh, name, &path)?;
                    own.retain(|tag| tags.contains(tag));
                    others.retain(|tag| !own.contains(tag));
                    self.add(value, &path, &own)?;
                }
                return match default {
                    Some(value) => self.add(value, &below(path, "default"), &others),
                    None => Ok(()),
                };
            }
            Value::Fibres { fibre, along, across, sheets } => TaggedValue::Fibres(Box::new(Fibres::new(
                self.mesh,
                fibre,
                [along, across],
                sheets.as_ref(),
                path,
            )?)),
            other => TaggedValue::Other(by_cell(coefficient(self.mesh, other, path)?, path)?),
        };
        self.of_tag.extend(tags.iter().map(|&tag| (tag, self.all.len())));
        self.all.push(part);
        Ok(())
    }
}

/// Fibres with their conductivities on a mesh.
struct Fibres<'a> {
    fibre: Directions<'a>,
    along: Conductivity,
    across: Conductivity,
    sheets: Option<(Directions<'a>, Conductivity)>,
    path: Vec<Key>,
}

impl<'a> Fibres<'a> {
    fn new(
        mesh: &'a Mesh,
        fibre: &str,
        [along, across]: [&Value; 2],
        sheets: Option<&Sheets>,
        path: &[Key],
    ) -> Result<Self, SolveError> {
        let sheets = match sheets {
            Some(Sheets { field, normal }) => {
                let directions = Directions::new(mesh, field, below(path, "sheet"))?;
                Some((directions, Conductivity::new(mesh, normal, below(path, "normal"))?))
            }
            None => None,
        };
        Ok(Self {
            fibre: Directions::new(mesh, fibre, below(path, "fibre"))?,
            along: Conductivity::new(mesh, along, below(path, "along"))?,
            across: Conductivity::new(mesh, across, below(path, "across"))?,
            sheets,
            path: path.to_vec(),
        })
    }

    fn sheet(&self) -> Option<&Directions<'a>> {
        self.sheets.as_ref().map(|(directions, _)| directions)
    }

    /// Returns the tensor of a cell.
    fn at(&mut self, cell: usize, tag: i32) -> Result<[f64; 6], SolveError> {
        let (along, across) = (self.along.at(cell, tag)?, self.across.at(cell, tag)?);
        let Some((sheet, normal)) = &mut self.sheets else {
            // If σ is isotropic, as in a bath, no fibre is needed.
            if along == across {
                return Ok(plus_dyad([0.0; 6], across, None));
            }
            let f = self.fibre.at(cell)?;
            return Ok(plus_dyad([0.0; 6], across, Some((along - across, f))));
        };
        let normal = normal.at(cell, tag)?;
        if along == across && across == normal {
            return Ok(plus_dyad([0.0; 6], normal, None));
        }
        let (f, s) = (self.fibre.at(cell)?, sheet.at(cell)?);
        let along_f = dot(f, s);
        let rest = [0, 1, 2].map(|i| s[i] - along_f * f[i]);
        let length = dot(rest, rest).sqrt();
        if length < PARALLEL {
            let message = format!(
                "in cell {cell} the direction of the sheet, {s:?}, is parallel to the fibre: the sheet has to lie across it"
            );
            return Err(SolveError::setting(&below(&self.path, "sheet"), message));
        }
        let s = rest.map(|x| x / length);
        let of_fibre = plus_dyad([0.0; 6], normal, Some((along - normal, f)));
        Ok(plus_dyad(of_fibre, 0.0, Some((across - normal, s))))
    }
}

/// Returns tensor + number · I + factor · v vᵀ.
fn plus_dyad(tensor: [f64; 6], number: f64, dyad: Option<(f64, [f64; 3])>) -> [f64; 6] {
    let (factor, [x, y, z]) = dyad.unwrap_or((0.0, [0.0; 3]));
    let products = [x * x, y * y, z * z, y * z, x * z, x * y];
    let entry = |i: usize| tensor[i] + if i < 3 { number } else { 0.0 } + factor * products[i];
    std::array::from_fn(entry)
}

fn by_voigt(t: &[[f64; 3]; 3]) -> [f64; 6] {
    [t[0][0], t[1][1], t[2][2], t[1][2], t[0][2], t[0][1]]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// A conductivity in one direction, one number a cell.
struct Conductivity {
    value: Coefficient,
    path: Vec<Key>,
}

impl Conductivity {
    fn new(mesh: &Mesh, value: &Value, path: Vec<Key>) -> Result<Self, SolveError> {
        Ok(Self { value: by_cell(scalar(mesh, value, &path)?, &path)?, path })
    }

    fn at(&self, cell: usize, tag: i32) -> Result<f64, SolveError> {
        let value = self.value.scalar_at(cell, tag, [0.0; 3]);
        let cell = self.value.as_constant().is_none().then_some(cell);
        positive(value, cell, &self.path)
    }
}

/// A cell field of directions.
struct Directions<'a> {
    field: &'a Field,
    name: String,
    path: Vec<Key>,
    /// The first cell whose vector is not of length one, and the length.
    first: Option<(usize, f64)>,
    n_others: usize,
}

impl<'a> Directions<'a> {
    fn new(mesh: &'a Mesh, name: &str, path: Vec<Key>) -> Result<Self, SolveError> {
        let field = cell_field(mesh, name, &path)?;
        let d = mesh.space_dimension();
        if field.n_components != 3 && field.n_components != d {
            let message = format!(
                "the cell field `{name}` has {}; a direction has {}",
                components(field.n_components),
                if d == 2 { "2 or 3" } else { "3" }
            );
            return Err(SolveError::setting(&path, message));
        }
        Ok(Self { field, name: name.into(), path, first: None, n_others: 0 })
    }

    /// Returns the unit vector of a cell.
    fn at(&mut self, cell: usize) -> Result<[f64; 3], SolveError> {
        let n = self.field.n_components;
        let given = &self.field.values[cell * n..(cell + 1) * n];
        let v: [f64; 3] = std::array::from_fn(|i| given.get(i).copied().unwrap_or(0.0));
        // Scaled, so that squares neither overflow nor vanish.
        let largest = v.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        if v.iter().any(|x| !x.is_finite()) || largest == 0.0 {
            let problem = if largest == 0.0 { "of length zero" } else { "not finite" };
            let message = format!(
                "the vector of cell field `{}` in cell {cell} is {problem}: {given:?}; where there are no fibres, give one \
                 number for the conductivity, by tag",
                self.name
            );
            return Err(SolveError::setting(&self.path, message));
        }
        let scaled = v.map(|x| x / largest);
        let length = dot(scaled, scaled).sqrt();
        if (length * largest - 1.0).abs() > ROUNDING {
            self.first.get_or_insert((cell, length * largest));
            self.n_others += 1;
        }
        Ok(scaled.map(|x| x / length))
    }

    /// Returns a note on vectors that are not of length one.
    fn note(&self) -> Option<String> {
        let (cell, length) = self.first?;
        Some(format!(
            "{} vectors of cell field `{}` are not of length one (the first in cell {cell}, of length {length:.6}); their \
             directions are used",
            self.n_others, self.name
        ))
    }
}

fn components(n: usize) -> String {
    match n {
        1 => "1 component".into(),
        n => format!("{n} components"),
    }
}

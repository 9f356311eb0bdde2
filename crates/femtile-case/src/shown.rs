//! The field of a solution that pictures show.

use femtile_mesh::Field;
use femtile_report::{Body, PictureConfig, panels, picture, short};
use femtile_solve::SolutionData;

use crate::{Case, CaseError};

/// Fields that are shown where the case names none, the first that there is: a map of activation tells more of a beat than
/// its end.
const DEFAULTS: [&str; 3] = ["u", "activation", "V"];

/// A field with the body that it lives on.
pub(crate) struct Shown {
    body: Body,
    /// The name of the field.
    label: String,
    values: Vec<f64>,
}

impl Case {
    /// Returns whether the solution is drawn.
    pub(crate) fn is_shown(&self) -> bool {
        self.file.output.picture.is_drawn() || self.embedding.picture.is_some()
    }

    /// Returns the name of the case: that of its file, or of the folder of a `case.toml`.
    pub(crate) fn name(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default();
        let folder = self.path.parent().and_then(|folder| folder.file_name());
        let name = if stem == "case" { folder.unwrap_or(stem) } else { stem };
        name.to_string_lossy().into_owned()
    }
}

impl Shown {
    /// Takes the field that a case names, or the main one, with a warning where there is none of the name.
    ///
    /// # Errors
    /// [`CaseError::Report`] where the solution has no cells that can be drawn.
    pub fn of(case: &Case, data: SolutionData) -> Result<(Self, Option<String>), CaseError> {
        let SolutionData { kind, order, points, cells, point_fields, .. } = data;
        let named = case.file.output.picture.field();
        let found = named.and_then(|name| Some((label(&point_fields, name), scalar(&point_fields, name)?)));
        let warning = named.filter(|_| found.is_none()).map(|name| {
            let names: Vec<&str> = point_fields.keys().map(String::as_str).collect();
            format!("the picture shows the main field: there is no `{name}`, but {}", names.join(", "))
        });
        let main = || {
            DEFAULTS.iter().find_map(|name| Some((label(&point_fields, name), scalar(&point_fields, name)?)))
        };
        let none = || (String::new(), vec![f64::NAN; points.len()]);
        let (label, values) = found.or_else(main).unwrap_or_else(none);
        Ok((Self { body: Body::new(kind, order, points, &cells)?, label, values }, warning))
    }

    /// Draws the field as a PNG file.
    ///
    /// # Errors
    /// [`CaseError::Report`] where there is nothing to draw.
    pub fn picture(&self, case: &Case, time: Option<f64>) -> Result<Vec<u8>, CaseError> {
        let time = time.map_or(String::new(), |time| format!(", t = {}", short(time)));
        let title = format!("{}{time}", case.name());
        let config = PictureConfig::of_dimension(self.body.dimension());
        let config = PictureConfig { title, label: self.label.clone(), ..config };
        Ok(picture(&panels(&self.body, &self.values, config.towards)?, &config)?)
    }
}

type Fields = std::collections::BTreeMap<String, Field>;

/// Returns the name of what [`scalar`] takes of a field.
fn label(fields: &Fields, name: &str) -> String {
    match (fields.get(name).map_or(1, |field| field.n_components), name) {
        (1, _) => name.into(),
        (_, "u") => "u[0]".into(),
        _ => format!("|{name}|"),
    }
}

/// Returns a number for each point of a field or of one of its components: the first of u, the length of other vectors.
fn scalar(fields: &Fields, name: &str) -> Option<Vec<f64>> {
    let component = |field: &Field, i: usize| -> Option<Vec<f64>> {
        let n = field.n_components;
        (i < n).then(|| field.values.iter().skip(i).step_by(n).copied().collect())
    };
    if let Some(field) = fields.get(name) {
        if field.n_components == 1 || name == "u" {
            return component(field, 0);
        }
        let length = |vector: &[f64]| vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        return Some(field.values.chunks_exact(field.n_components).map(length).collect());
    }
    let (name, number) = name.strip_suffix(']')?.split_once('[')?;
    component(fields.get(name)?, number.parse().ok()?)
}

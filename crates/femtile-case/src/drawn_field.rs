//! The field of a solution that pictures show.

use std::collections::BTreeMap;

use femtile_mesh::Field;
use femtile_report::{Body, ConditionRow, EquationPart, PictureConfig, ReportError, panels, picture, short};
use femtile_solve::SolutionData;

use crate::animation::Animation;
use crate::vtkhdf::Frames;
use crate::{Case, CaseError};

/// Fields that are shown if the case names none; the first one present is used. An activation map says more
/// about a heartbeat than the state at its end.
const DEFAULTS: [&str; 3] = ["u", "activation", "V"];

/// Named fields.
type Fields = BTreeMap<String, Field>;

/// Data of pictures, pages and the file of all frames, in addition to the numbers of a report.
pub(crate) struct Exhibit {
    /// The solution at the end.
    pub data: SolutionData,
    /// The frames of a run in time that its page shows.
    pub animation: Animation,
    /// The frames of a run in time for its file.
    pub frames: Frames,
    /// The equation, where it is one of formulas.
    pub equation: Option<EquationPart>,
    /// The conditions on the boundary.
    pub conditions: Vec<ConditionRow>,
}

/// A field and the mesh that it is drawn on.
pub(crate) struct DrawnField {
    pub body: Body,
    /// The name of the field.
    pub label: String,
    pub values: Vec<f64>,
}

impl Case {
    /// Returns whether the solution is drawn, or shown on a page.
    pub(crate) fn is_shown(&self) -> bool {
        self.file.output.picture.is_drawn() || self.embedding.picture.is_some() || self.has_page()
    }

    /// Returns whether pictures or files need the arrays of the whole solution.
    pub(crate) fn needs_data(&self) -> bool {
        self.is_shown() || self.file.output.vtkhdf
    }

    /// Returns whether the run has a page.
    pub(crate) fn has_page(&self) -> bool {
        self.file.output.report || self.embedding.report.is_some()
    }

    /// Returns the name of the case: that of its file, or of the folder of a `case.toml`.
    pub(crate) fn name(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default();
        let folder = self.path.parent().and_then(|folder| folder.file_name());
        let name = if stem == "case" { folder.unwrap_or(stem) } else { stem };
        name.to_string_lossy().into_owned()
    }
}

impl DrawnField {
    /// Takes the field that a case names, or the main one; returns a warning if the named one does not exist.
    ///
    /// # Errors
    /// [`CaseError::Report`] if the solution has no cells that can be drawn.
    pub fn of(case: &Case, data: &SolutionData) -> Result<(Self, Option<String>), CaseError> {
        let body = body_of(data)?;
        let fields = &data.point_fields;
        let missing = case.file.output.picture.field().filter(|name| scalar(fields, name).is_none());
        let warning = missing.map(|name| {
            let names: Vec<&str> = fields.keys().map(String::as_str).collect();
            format!("the picture shows the main field: there is no `{name}`, but {}", names.join(", "))
        });
        let none = || (String::new(), vec![f64::NAN; body.points().len()]);
        let (label, values) = field(case, fields, &DEFAULTS).unwrap_or_else(none);
        Ok((Self { body, label, values }, warning))
    }

    /// Draws the field as a PNG file.
    ///
    /// # Errors
    /// [`CaseError::Report`] if there is nothing to draw.
    pub fn picture(&self, case: &Case, time: Option<f64>) -> Result<Vec<u8>, CaseError> {
        let time = time.map_or(String::new(), |time| format!(", t = {}", short(time)));
        let title = format!("{}{time}", case.name());
        let config = PictureConfig::of_dimension(self.body.space_dimension());
        let config = PictureConfig { title, label: self.label.clone(), ..config };
        Ok(picture(&panels(&self.body, &self.values, config.towards)?, &config)?)
    }
}

/// Returns the cells of a solution.
pub(crate) fn body_of(data: &SolutionData) -> Result<Body, ReportError> {
    Body::new(data.kind, data.order, data.points.clone(), &data.cells)
}

/// Returns name and values of the field that a case names, else of the first of `others` that exists, else of the first field.
pub(crate) fn field(case: &Case, fields: &Fields, others: &[&str]) -> Option<(String, Vec<f64>)> {
    let named = case.file.output.picture.field();
    let first = fields.keys().next().map(String::as_str);
    let mut names = named.into_iter().chain(others.iter().copied()).chain(first);
    names.find_map(|name| Some((label(fields, name), scalar(fields, name)?)))
}

/// Returns the name of the scalar that [`scalar`] returns.
fn label(fields: &Fields, name: &str) -> String {
    match (fields.get(name).map_or(1, |field| field.n_components), name) {
        (1, _) => name.into(),
        (_, "u") => "u[0]".into(),
        _ => format!("|{name}|"),
    }
}

/// Returns one value per point: of a field or the named component; of u the first component, of other vectors
/// the length.
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

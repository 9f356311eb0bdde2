//! `femtile mesh info`: what a mesh file holds, for a person or as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use femtile::mesh::{Division, Field, Mesh};
use serde::Serialize;

/// Counts, extent, tags and fields of a mesh.
#[derive(Debug, Serialize)]
pub struct Info {
    version: &'static str,
    file: String,
    dimension: usize,
    n_nodes: usize,
    n_cells: usize,
    cell: &'static str,
    /// The cells of the file, if they were divided into these cells, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    division: Option<String>,
    lower: [f64; 3],
    upper: [f64; 3],
    curved: Option<Shapes>,
    /// Tags of cells.
    regions: Vec<Tag>,
    /// Tags of facets.
    boundary: Vec<Tag>,
    cell_fields: Vec<FieldInfo>,
    node_fields: Vec<FieldInfo>,
    /// Parts of the file that the reader ignored.
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Shapes {
    order: usize,
    n_points: usize,
}

#[derive(Debug, Serialize)]
struct Tag {
    tag: i32,
    name: Option<String>,
    n: usize,
}

#[derive(Debug, Serialize)]
struct FieldInfo {
    name: String,
    n_components: usize,
}

impl Info {
    /// Looks at a mesh that was read from `file`.
    pub fn new(file: &Path, mesh: &Mesh) -> Self {
        let mut lower = [f64::INFINITY; 3];
        let mut upper = [f64::NEG_INFINITY; 3];
        for point in &mesh.points {
            for axis in 0..3 {
                lower[axis] = lower[axis].min(point[axis]);
                upper[axis] = upper[axis].max(point[axis]);
            }
        }
        let curved = mesh.curved.as_ref();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            file: file.display().to_string(),
            dimension: mesh.dimension(),
            n_nodes: mesh.n_nodes(),
            n_cells: mesh.n_cells(),
            cell: mesh.kind.name(),
            division: mesh.division.as_ref().map(Division::note),
            lower,
            upper,
            curved: curved.map(|curved| Shapes { order: curved.order, n_points: curved.points.len() }),
            regions: tags(&mesh.cell_tags, mesh, mesh.dimension()),
            boundary: tags(&mesh.facets.tags, mesh, mesh.dimension() - 1),
            cell_fields: fields(&mesh.cell_fields),
            node_fields: fields(&mesh.node_fields),
            notes: mesh.notes.clone(),
        }
    }

    /// Returns the text for the terminal.
    pub fn text(&self) -> String {
        let Self { n_nodes, n_cells, cell, lower, upper, .. } = self;
        let mut text = format!(
            "nodes     {n_nodes}\ncells     {n_cells} of kind {cell}\nfrom      {lower:?}\nto        {upper:?}\n"
        );
        text += &line_of(self.division.as_ref());
        if let Some(Shapes { order, n_points }) = &self.curved {
            text += &format!("shapes    of order {order}, {n_points} points\n");
        }
        for (label, tags) in [("regions", &self.regions), ("boundary", &self.boundary)] {
            for Tag { tag, name, n } in tags {
                let name = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
                text += &format!("{label:<9} {tag}{name}: {n}\n");
            }
        }
        for (what, fields) in [("cell", &self.cell_fields), ("node", &self.node_fields)] {
            for FieldInfo { name, n_components } in fields {
                text += &format!("field     {name}, {n_components} numbers a {what}\n");
            }
        }
        text + &notes(&self.notes)
    }
}

/// Returns a line with the cells of the file, if they were divided.
pub fn division(mesh: &Mesh) -> String {
    line_of(mesh.division.as_ref().map(Division::note).as_ref())
}

fn line_of(division: Option<&String>) -> String {
    division.map(|note| format!("file      {note}\n")).unwrap_or_default()
}

/// Returns a line for each ignored part.
pub fn notes(notes: &[String]) -> String {
    notes.iter().map(|note| format!("warning   {note}\n")).collect()
}

fn tags(tags: &[i32], mesh: &Mesh, dimension: usize) -> Vec<Tag> {
    let mut counts = BTreeMap::new();
    for tag in tags {
        *counts.entry(*tag).or_insert(0usize) += 1;
    }
    let name = |tag| mesh.tag_names.get(&(dimension, tag)).cloned();
    counts.into_iter().map(|(tag, n)| Tag { tag, name: name(tag), n }).collect()
}

fn fields(fields: &BTreeMap<String, Field>) -> Vec<FieldInfo> {
    let info =
        |(name, field): (&String, &Field)| FieldInfo { name: name.clone(), n_components: field.n_components };
    fields.iter().map(info).collect()
}

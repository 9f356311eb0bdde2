//! Arrays of VTK files that are not fields: tags of cells, and marks of cells that are left out.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::number::whole_value;
use crate::{Field, MeshError};

/// The cell array that gives the tags: one of this name, or any array of whole numbers with a usual name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TagArray<'a>(pub Option<&'a str>);

impl TagArray<'_> {
    /// Returns whether a cell array gives tags.
    pub(super) fn is(self, name: &str, n_components: usize, is_integer: bool) -> bool {
        match self.0 {
            Some(chosen) => name == chosen,
            None => is_integer && n_components == 1 && is_usual_name(name),
        }
    }

    /// Refuses a file without the chosen array.
    pub(super) fn refuse_missing(
        self,
        is_there: bool,
        fields: &BTreeMap<String, Field>,
    ) -> Result<(), MeshError> {
        let Some(chosen) = self.0.filter(|_| !is_there) else { return Ok(()) };
        let names: Vec<String> = fields.keys().take(30).map(|name| format!("`{name}`")).collect();
        let found = if names.is_empty() { "none".into() } else { names.join(", ") };
        let message = format!("the file has no array `{chosen}` of cells; it has {found}");
        Err(MeshError::Invalid { field: "tags", message })
    }
}

/// Returns whether an array of whole numbers with this name says which region a cell belongs to.
fn is_usual_name(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "tag",
        "tags",
        "region",
        "regions",
        "gmsh:physical",
        "medit:ref",
        "cell_tags",
        "cellentityids",
        "material",
        "mat_id",
    ];
    NAMES.contains(&name.to_ascii_lowercase().as_str())
}

/// Returns a value as a tag: a whole number of 32 bits.
pub(super) fn tag_of(value: f64) -> Option<i32> {
    whole_value(value).and_then(|value| i32::try_from(value).ok())
}

/// The message about a value that is not a tag.
pub(super) fn no_tag(array: &str, cell: usize, value: impl Display) -> String {
    format!(
        "array `{array}` has the value {value} in cell {cell}; tags are whole numbers of 32 bits, up to {}: number the \
         regions anew",
        i32::MAX
    )
}

/// The message about an array of tags with several numbers per cell.
pub(super) fn several_components(array: &str, n_components: usize) -> String {
    format!("array `{array}` has {n_components} numbers for each cell; tags are one")
}

/// The note that of two arrays of tags one is used.
pub(super) fn note_of_two(used: &str, other: &str) -> String {
    format!(
        "the tags of cells are those of the array `{used}`, not of `{other}`, which is left out: `tags` of the section \
         `[mesh]` of a case chooses one"
    )
}

/// Marks of VTK, with the bits that leave out a cell, and a cell with such a point.
///
/// Bits of `vtkGhostType`. Cells: 1 (another piece has it), 8 (finer cells replace it) and 32 (hidden).
/// Points: 2 (hidden). `vtkGhostLevels`, from before VTK 6.3, is above 0 in cells of another piece.
const MARKS: [(&str, u8, u8); 2] = [("vtkGhostType", 1 | 8 | 32, 2), ("vtkGhostLevels", u8::MAX, 0)];

/// Cells that VTK leaves out: those of another piece and hidden ones.
pub(super) struct Ghosts {
    cells: Vec<bool>,
    points: Vec<bool>,
}

impl Ghosts {
    /// Returns whether an array has the marks.
    pub(super) fn is_array(name: &str) -> bool {
        MARKS.iter().any(|(known, ..)| *known == name)
    }

    /// Takes the marks out of the fields of a file.
    pub(super) fn take(
        cell_data: &mut BTreeMap<String, Field>,
        point_data: &mut BTreeMap<String, Field>,
    ) -> Self {
        let mut ghosts = Self { cells: Vec::new(), points: Vec::new() };
        for (name, cell_bits, point_bits) in MARKS {
            let cells = (&mut *cell_data, &mut ghosts.cells, cell_bits);
            for (data, marked, bits) in [cells, (&mut *point_data, &mut ghosts.points, point_bits)] {
                let Some(marks) = data.remove(name).filter(|marks| marks.n_components == 1) else { continue };
                marked.resize(marked.len().max(marks.values.len()), false);
                let pairs = marked.iter_mut().zip(marks.values);
                pairs.for_each(|(marked, mark)| *marked |= mark as u8 & bits != 0);
            }
        }
        ghosts
    }

    /// Returns whether no cell is marked.
    pub(super) fn is_empty(&self) -> bool {
        !self.cells.contains(&true) && !self.points.contains(&true)
    }

    /// Returns whether a cell with these points is left out.
    pub(super) fn has(&self, cell: usize, points: impl IntoIterator<Item = usize>) -> bool {
        let is_marked = |marked: &[bool], entry: usize| marked.get(entry).is_some_and(|&marked| marked);
        is_marked(&self.cells, cell) || points.into_iter().any(|point| is_marked(&self.points, point))
    }
}

/// The note about cells that are left out.
pub(super) fn note_of_ghosts(n_cells: usize) -> Option<String> {
    let cells = match n_cells {
        0 => return None,
        1 => "a ghost cell is".into(),
        n => format!("{n} ghost cells are"),
    };
    Some(format!(
        "{cells} left out, as VTK does (`vtkGhostType`): another piece has them, or they are hidden"
    ))
}

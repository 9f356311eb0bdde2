//! The matrix of fluxes through sides.

use femtile_mesh::MeshError;
use femtile_mesh::io::{Staging, write_atomically};
use femtile_report::significant;
use serde::Serialize;

use crate::file_names::MATRIX;

/// The flux into the body through each side at u = 1 on another one and 0 on the rest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideMatrix {
    /// The sides, as the case names them.
    pub sides: Vec<String>,
    /// A row for each side with the flux through it.
    pub fluxes: Vec<Vec<f64>>,
}

impl SideMatrix {
    /// Returns a text of each row: the side, and its fluxes with some digits.
    pub fn rows(&self, digits: usize) -> impl Iterator<Item = (&str, String)> {
        self.sides.iter().zip(&self.fluxes).map(move |(side, fluxes)| {
            let fluxes: Vec<String> = fluxes.iter().map(|flux| significant(*flux, digits)).collect();
            (side.as_str(), fluxes.join("  "))
        })
    }

    /// Writes the table `matrix.csv`.
    pub(crate) fn write(&self, staging: &Staging) -> Result<(), MeshError> {
        write_atomically(&staging.path(MATRIX), |out| out.write_all(self.csv().as_bytes()))
    }

    /// A row for each side, with the names of sides in the first row and column.
    fn csv(&self) -> String {
        let quoted = |side: &String| format!("\"{}\"", side.replace('"', "\"\""));
        let mut text = "side".to_owned();
        self.sides.iter().for_each(|side| text += &format!(",{}", quoted(side)));
        for (side, fluxes) in self.sides.iter().zip(&self.fluxes) {
            text += &format!("\n{}", quoted(side));
            fluxes.iter().for_each(|flux| text += &format!(",{flux:?}"));
        }
        text + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_names_of_sides_in_quotes() {
        let sides = vec!["a".to_owned(), "x < 1, \"b\"".to_owned()];
        let matrix = SideMatrix { sides, fluxes: vec![vec![1.0, -0.5], vec![-0.5, 1e-20]] };
        let expected = "side,\"a\",\"x < 1, \"\"b\"\"\"\n\"a\",1.0,-0.5\n\"x < 1, \"\"b\"\"\",-0.5,1e-20\n";
        assert_eq!(matrix.csv(), expected);
        assert_eq!(matrix.rows(3).next(), Some(("a", "1  -0.5".to_owned())));
    }
}

//! Values along lines, as tables and pictures.

use std::fmt::Write;

use femtile_fem::FemError;
use femtile_fem::functionals::Line;
use femtile_mesh::MeshError;
use femtile_mesh::io::{Staging, write_atomically};
use femtile_solve::Component;

use crate::file::FieldOfRun;
use crate::file_names::of_line;
use crate::plot::line_plot;

/// A straight line to be sampled.
pub(crate) struct ReadyLine {
    pub name: String,
    /// The names of the components.
    pub names: Vec<String>,
    /// The field of a run in time, if it is not u.
    pub of: Option<FieldOfRun>,
    pub from: [f64; 3],
    pub to: [f64; 3],
    pub n: usize,
}

/// The values of all components along a line.
pub(crate) struct SampledLine {
    name: String,
    names: Vec<String>,
    dimension: usize,
    components: Vec<Line>,
}

/// Returns whether it is the first row of such a table.
pub(crate) fn is_header_of_line(text: &str) -> bool {
    let names: Vec<&str> = text.split(',').collect();
    let n_axes = names.iter().skip(1).zip(["x", "y", "z"]).take_while(|(found, axis)| *found == axis).count();
    let values = names.get(1 + n_axes..).unwrap_or_default();
    let is_value = |name: &&str| {
        let stem = name.split('[').next().unwrap_or_default();
        stem.starts_with(|c: char| c.is_ascii_alphabetic())
            && stem.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    names[0] == "s" && n_axes > 0 && !values.is_empty() && values.iter().all(is_value)
}

impl ReadyLine {
    /// Samples the components of a solution.
    pub(super) fn sample(&self, components: &[Component<'_>]) -> Result<SampledLine, FemError> {
        let of = |component: &Component<'_>| component.along(self.from, self.to, self.n);
        let dimension = components.first().map_or(3, Component::dimension);
        Ok(self.sampled(dimension, components.iter().map(of).collect::<Result<_, _>>()?))
    }

    /// Returns the values of all components.
    pub(crate) fn sampled(&self, dimension: usize, components: Vec<Line>) -> SampledLine {
        SampledLine { name: self.name.clone(), names: self.names.clone(), dimension, components }
    }
}

impl SampledLine {
    /// Writes both files.
    pub(crate) fn write(&self, staging: &Staging) -> Result<(), MeshError> {
        let [table, picture] = of_line(&self.name).map(|file| staging.path(&file));
        write_atomically(&table, |out| out.write_all(self.csv().as_bytes()))?;
        let svg = line_plot(&self.name, &self.components);
        write_atomically(&picture, |out| out.write_all(svg.as_bytes()))
    }

    /// A row for each point: distance from the first, coordinates, the values of all components, empty outside the mesh.
    fn csv(&self) -> String {
        let mut text = format!("s,{}", ["x", "y", "z"][..self.dimension].join(","));
        text.extend(self.names.iter().map(|name| format!(",{name}")));
        text.push('\n');
        let Some(Line { points, arc_lengths, .. }) = self.components.first() else { return text };
        for (i, (point, s)) in points.iter().zip(arc_lengths).enumerate() {
            let _ = write!(text, "{s:?}");
            point[..self.dimension].iter().for_each(|x| {
                let _ = write!(text, ",{x:?}");
            });
            for line in &self.components {
                let _ = match line.values[i] {
                    Some(value) => write!(text, ",{value:?}"),
                    None => write!(text, ","),
                };
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_row_for_each_point_and_gaps_outside_the_mesh() {
        let line = |values: [Option<f64>; 2]| Line {
            points: vec![[0.0, 0.5, 0.0], [2.0, 0.5, 0.0]],
            arc_lengths: vec![0.0, 2.0],
            values: values.to_vec(),
        };
        let of = |names: &[&str], components| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            SampledLine { name: "a".into(), names, dimension: 2, components }
        };
        let one = of(&["u"], vec![line([Some(1e-20), None])]);
        assert_eq!(one.csv(), "s,x,y,u\n0.0,0.0,0.5,1e-20\n2.0,2.0,0.5,\n");
        let two = of(&["u[0]", "T"], vec![line([Some(1.0), None]), line([Some(0.1), None])]);
        assert_eq!(two.csv(), "s,x,y,u[0],T\n0.0,0.0,0.5,1.0,0.1\n2.0,2.0,0.5,,\n");
        for header in [one.csv(), two.csv()].map(|text| text.lines().next().unwrap().to_string()) {
            assert!(is_header_of_line(&header), "{header}");
        }
        for other in ["", "s", "s,u", "s,x", "x,y,u", "s,x,y,2", "s,x,y,u,"] {
            assert!(!is_header_of_line(other), "{other}");
        }
    }
}

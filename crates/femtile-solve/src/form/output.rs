//! Files and data of the solution of a form: u, and of elasticity the stresses.

use std::borrow::Cow;
use std::path::Path;

use femtile_mesh::io::FileSum;
use femtile_mesh::io::vtu::WriteOptions;

use super::{FormSolution, Mode};
use crate::output::{NodalField, write_vtu};
use crate::{Fields, SolutionData, SolveError};

impl FormSolution<'_> {
    /// Writes the mesh, u, of elasticity `stress`, `von_mises` and `principal`, and further fields as a VTU file; returns the sum of
    /// the file if the options ask for it.
    ///
    /// Cells have the degree of the solution or the order of the mesh, whichever is higher; vectors have three components.
    ///
    /// # Errors
    /// [`SolveError::Mesh`] with the path.
    pub fn write_vtu(
        &self,
        path: impl AsRef<Path>,
        fields: &Fields,
        options: WriteOptions<'_>,
    ) -> Result<Option<FileSum>, SolveError> {
        write_vtu(path.as_ref(), (&self.space, self.with(fields)?), fields.error_estimate(), options)
    }

    /// Returns the solution with its mesh and further fields, as its file has them.
    ///
    /// # Errors
    /// [`SolveError::Fem`] for degenerate cells.
    pub fn data(&self, fields: &Fields) -> Result<SolutionData, SolveError> {
        SolutionData::of_fields(&self.space, &self.with(fields)?, fields.error_estimate())
    }

    fn with<'f>(&self, fields: &'f Fields) -> Result<Vec<NodalField<'f>>, SolveError> {
        Ok(self.own_fields()?.into_iter().chain(fields.at_nodes.iter().map(NodalField::view)).collect())
    }

    /// Returns u, or each of several unknowns by its name, and the stresses of elasticity; of modes those of each one.
    fn own_fields(&self) -> Result<Vec<NodalField<'static>>, SolveError> {
        if !self.modes.is_empty() {
            let of = |(i, mode): (usize, &Mode)| self.unknowns_of(&mode.u, &format!("mode_{}", i + 1));
            return Ok(self.modes.iter().enumerate().flat_map(of).collect());
        }
        let mut fields = self.unknowns_of(&self.u, "u");
        if let Some(stress) = self.stress()? {
            let (tensor, von_mises) = (Cow::Owned(stress.tensor), Cow::Owned(stress.von_mises));
            fields.push(NodalField { name: "stress".into(), n_components: 6, values: tensor });
            fields.push(NodalField { name: "von_mises".into(), n_components: 1, values: von_mises });
            let principal = Cow::Owned(stress.principal);
            fields.push(NodalField { name: "principal".into(), n_components: 3, values: principal });
        }
        Ok(fields)
    }

    /// Returns each unknown of a function: a single one by the name of the function, of several u those by their names.
    fn unknowns_of(&self, u: &[f64], function: &str) -> Vec<NodalField<'static>> {
        let all = self.n_components();
        let is_alone = self.problem.unknowns().len() == 1;
        let (mut first, mut fields) = (0, Vec::new());
        for (name, shape) in self.problem.unknowns() {
            let n = shape.n_entries();
            let mut values: Vec<f64> = Vec::with_capacity(u.len() / all * n.max(3));
            for u in u.chunks_exact(all) {
                values.extend_from_slice(&u[first..first + n]);
                // Vectors of the plane have three components.
                values.extend((n == 2).then_some(0.0));
            }
            let name = match (is_alone, function) {
                (true, _) => function.to_owned(),
                (_, "u") => name.to_owned(),
                _ => format!("{function}_{name}"),
            };
            let n_components = if n == 2 { 3 } else { n };
            fields.push(NodalField { name: name.into(), n_components, values: Cow::Owned(values) });
            first += n;
        }
        fields
    }
}

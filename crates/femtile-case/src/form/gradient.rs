//! Functionals of the solution of a case, and their gradients by constants of its equation.

use std::collections::BTreeMap;

use femtile_device::Cpu;
use femtile_form::{Argument, Coefficient};
use femtile_mesh::Mesh;
use femtile_solve::{Functional, Progress, Stage, Stages, cell_tags};

use super::{interface, settings};
use crate::checked_mesh::checked_mesh;
use crate::file::{EquationKind, Value};
use crate::memory::Hosted;
use crate::placed::placed;
use crate::{Case, CaseError};

/// u of a steady equation of its own, as [`Receiver::form`](crate::Receiver::form) gets it.
#[derive(Debug, Clone)]
pub struct FormState {
    /// The unknowns, in the order of the program.
    pub u: Vec<f64>,
    /// The load factor t.
    pub time: f64,
}

/// Numbers with a shape, by rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The length of each axis; none for a number.
    pub shape: Vec<usize>,
    /// The numbers.
    pub values: Vec<f64>,
}

/// The derivative of a functional by a constant.
#[derive(Debug, Clone, PartialEq)]
pub enum ByConstant {
    /// By a number, the entries of a vector or a tensor, or with a row for each cell by a cell field.
    Whole(Array),
    /// By the values by tag, by their names in the case; that for other tags is `default`.
    ByTag(BTreeMap<String, Array>),
}

impl Case {
    /// Returns the value of a functional of the solution of a steady equation of its own, and its derivatives by constants, by one
    /// adjoint solve if there are any.
    ///
    /// # Errors
    /// As [`crate::run`]; for other equations; as [`femtile_solve::FormAt::gradient`].
    pub fn functional(
        &self,
        state: &FormState,
        functional: &Functional,
        constants: &[&str],
        progress: &mut dyn Progress,
    ) -> Result<(f64, Vec<ByConstant>), CaseError> {
        self.check()?;
        let cpu = Cpu::new(self.solver_config()?.threads)?;
        let found = cpu.install(|| self.functional_at(state, functional, constants, progress));
        found.map_err(|error| placed(self, error))
    }

    fn functional_at(
        &self,
        state: &FormState,
        functional: &Functional,
        constants: &[&str],
        progress: &mut dyn Progress,
    ) -> Result<(f64, Vec<ByConstant>), CaseError> {
        if self.file.equation.kind != EquationKind::Form {
            let message = "functionals are of equations of your own: take kind = \"form\"";
            return Err(self.wrong(&["equation".into(), "kind".into()], message));
        }
        let mut stages = Stages::new(progress);
        let config = self.solver_config()?;
        let (mut mesh, mut checked) = checked_mesh(self, Hosted::whole(self)?, (&config, None), &mut stages)?;
        stages.begin(Stage::Space)?;
        self.tag_regions(&mut mesh)?;
        let cuts = interface::cut(self, &mut mesh, &mut checked)?;
        let problem = settings::problem(self, &mesh, (&checked.boundary, &cuts))?;
        let config = settings::solver_config(self, &problem)?;
        let at = problem.at(&state.u, state.time);
        let value = at.integral(functional)?;
        if constants.is_empty() {
            return Ok((value, Vec::new()));
        }
        let slopes = at.gradient(functional, constants, &config, stages.progress())?;
        let pairs = constants.iter().zip(slopes);
        let slopes = pairs.map(|(name, slope)| by_constant(self, &mesh, name, slope));
        Ok((value, slopes.collect::<Result<_, _>>()?))
    }
}

/// Names the derivatives by tag as the case does.
fn by_constant(case: &Case, mesh: &Mesh, name: &str, slope: Argument) -> Result<ByConstant, CaseError> {
    let given = case.file.equation.constants.get(name);
    let (Argument::One(Coefficient::ByTag(slopes)), Some(Value::ByTag { by_tag, .. })) = (&slope, given)
    else {
        return Ok(ByConstant::Whole(whole(slope, mesh.space_dimension())));
    };
    let mut slopes: BTreeMap<i32, Array> = slopes
        .iter()
        .map(|(&tag, slope)| (tag, whole(Argument::One(slope.clone()), mesh.space_dimension())))
        .collect();
    let mut named = BTreeMap::new();
    for name in by_tag.keys() {
        let own = cell_tags(mesh, name, &[])?.into_iter().filter_map(|tag| slopes.remove(&tag));
        named.extend(own.reduce(sum).map(|slope| (name.clone(), slope)));
    }
    named.extend(slopes.into_values().reduce(sum).map(|slope| ("default".to_owned(), slope)));
    Ok(ByConstant::ByTag(named))
}

fn sum(mut a: Array, b: Array) -> Array {
    a.values.iter_mut().zip(&b.values).for_each(|(a, b)| *a += b);
    a
}

/// Returns the numbers of a derivative that is the same kind of value for all tags.
fn whole(slope: Argument, dimension: usize) -> Array {
    match slope {
        Argument::Vector(parts) => {
            let parts: Vec<Array> = parts.into_iter().map(|part| whole(part.into(), dimension)).collect();
            let shape = [vec![parts.len()], parts.first().map_or(Vec::new(), |part| part.shape.clone())];
            Array { shape: shape.concat(), values: parts.into_iter().flat_map(|part| part.values).collect() }
        }
        Argument::One(Coefficient::Tensor(entries)) => {
            let rows = entries[..dimension].iter();
            Array {
                shape: vec![dimension; 2],
                values: rows.flat_map(|row| &row[..dimension]).copied().collect(),
            }
        }
        Argument::One(Coefficient::CellField(field)) => {
            let n_cells = field.values.len() / field.n_components;
            let shape =
                if field.n_components == 1 { vec![n_cells] } else { vec![n_cells, field.n_components] };
            Array { shape, values: field.values }
        }
        Argument::One(number) => {
            Array { shape: Vec::new(), values: vec![number.as_constant().unwrap_or(f64::NAN)] }
        }
    }
}

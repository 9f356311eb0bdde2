//! Derivatives of an integrand by a coefficient that has a value for each cell.

use femtile_expression::{Program, Value};

use crate::integrand::{CellData, Data, Graph, Input};
use crate::recipe::Recipe;

/// Derivatives of an integrand by the values of its [parameter](crate::FormBuilder::parameter) in the cell at hand: programs with
/// an output for each component of the parameter, and the inputs of the integrand.
#[derive(Debug, Clone)]
pub struct ByParameter {
    /// Of $f_0\cdot v + f_1 : \nabla v$, where the direction among the inputs is (v, ∇v).
    pub residual: Program,
    /// Of the energy density, of equations that have one.
    pub energy: Option<Program>,
}

/// Returns the inputs of the components of a parameter, which is a cell field; none of those that no entry is made of.
pub(crate) fn inputs(recipes: &[Recipe], data: &Data) -> Vec<Option<Input>> {
    let mut inputs = Vec::new();
    for recipe in recipes {
        let Recipe::Cell(at) = *recipe else { continue };
        if let CellData::Field { field, component } = &data.cells[at] {
            inputs.resize(field.n_components, None);
            inputs[*component] = Some(Input::Cell(at));
        }
    }
    inputs
}

impl Graph {
    /// Derives by the parameter; none if the integrand does not depend on it. `directions` are the test function by slots.
    pub fn by_parameter(&mut self, directions: &[Value]) -> Option<ByParameter> {
        if self.parameter.is_empty() {
            return None;
        }
        let mut weighted = self.builder.constant(0.0);
        for (&f, &test) in self.residual.iter().zip(directions) {
            let product = self.builder.mul(f, test);
            weighted = self.builder.add(weighted, product);
        }
        let of_residual = self.slopes(weighted);
        let of_energy = self.energy.map(|energy| self.slopes(energy));
        let is_zero = |slope: &Value| self.builder.as_constant(*slope) == Some(0.0);
        if of_residual.iter().chain(of_energy.iter().flatten()).all(is_zero) {
            return None;
        }
        let energy = of_energy.map(|slopes| self.builder.finish(&slopes));
        Some(ByParameter { residual: self.builder.finish(&of_residual), energy })
    }

    /// The derivatives of a value by the components of the parameter.
    fn slopes(&mut self, of: Value) -> Vec<Value> {
        let known: Vec<Value> = self.parameter.iter().flatten().copied().collect();
        let mut slopes = self.builder.gradient(of, &known).into_iter();
        let zero = self.builder.constant(0.0);
        self.parameter.iter().map(|input| input.and_then(|_| slopes.next()).unwrap_or(zero)).collect()
    }
}

//! Stresses of linear elasticity at the nodes.

use std::borrow::Cow;

use femtile_form::{Argument, Coefficient};
use femtile_space::geometry::inverse;
use femtile_space::{PointMap, Space};

use super::problem::{axis_rounding, of_equation};
use super::recovery::Recovered;
use super::{FormProblem, FormSolution};
use crate::fields::OF_ELASTICITY;
use crate::output::NodalField;
use crate::{FieldConfig, SolveError};

/// Stresses at the degrees of freedom of the space of the displacements.
#[derive(Debug, Clone, PartialEq)]
pub struct Stress {
    /// xx, yy, zz, yz, xz, xy: `[n_dofs][6]`; of a body of revolution x is the distance from the axis, y runs along it, z around it.
    pub tensor: Vec<f64>,
    /// The equivalent stress of von Mises: `[n_dofs]`.
    pub von_mises: Vec<f64>,
}

/// The coefficients of isotropic elasticity.
struct Moduli<'a> {
    young: &'a Coefficient,
    poisson: &'a Coefficient,
    is_plane_stress: bool,
}

impl Moduli<'_> {
    /// Returns the moduli of a problem of elasticity.
    fn of<'p>(problem: &'p FormProblem<'_>) -> Option<Moduli<'p>> {
        let scalar = |name: &str| match problem.coefficient(name) {
            Some(Argument::One(coefficient)) => Some(coefficient),
            _ => None,
        };
        let is_plane_stress = scalar("plane_stress").and_then(Coefficient::as_constant) == Some(1.0);
        Some(Moduli { young: scalar("young")?, poisson: scalar("poisson")?, is_plane_stress })
    }

    /// Returns the stress (xx, yy, zz, yz, xz, xy) for the gradients of the displacements.
    fn stress(&self, gradient: &[[f64; 3]; 3], at: &At) -> [f64; 6] {
        let (young, poisson) = self.at(at);
        let mu = young / (2.0 * (1.0 + poisson));
        let trace = gradient[0][0] + gradient[1][1] + gradient[2][2];
        let divisor = if self.is_plane_stress { 1.0 - poisson } else { 1.0 - 2.0 * poisson };
        let pressure = young * poisson / ((1.0 + poisson) * divisor) * trace;
        let normal = |axis: usize| 2.0 * mu * gradient[axis][axis] + pressure;
        let shear = |a: usize, b: usize| mu * (gradient[a][b] + gradient[b][a]);
        let zz = if self.is_plane_stress { 0.0 } else { normal(2) };
        [normal(0), normal(1), zz, shear(1, 2), shear(0, 2), shear(0, 1)]
    }

    /// Returns the strain (xx, yy, zz, yz, xz, xy) for the gradients of the displacements.
    fn strain(&self, gradient: &[[f64; 3]; 3], at: &At) -> [f64; 6] {
        let shear = |a: usize, b: usize| 0.5 * (gradient[a][b] + gradient[b][a]);
        let [xx, yy] = [gradient[0][0], gradient[1][1]];
        let zz = match self.is_plane_stress {
            true => {
                let (_, poisson) = self.at(at);
                -poisson / (1.0 - poisson) * (xx + yy)
            }
            false => gradient[2][2],
        };
        [xx, yy, zz, shear(1, 2), shear(0, 2), shear(0, 1)]
    }

    fn at(&self, at: &At) -> (f64, f64) {
        let of = |coefficient: &Coefficient| coefficient.scalar_at(at.cell, at.tag, at.point);
        (of(self.young), of(self.poisson))
    }
}

/// A point of a cell.
struct At {
    cell: usize,
    tag: i32,
    point: [f64; 3],
}

/// A node of a cell.
struct InCell<'c> {
    position: usize,
    dofs: &'c [u32],
    local: usize,
    /// Of the map of the cell there.
    jacobian: &'c [[f64; 3]; 3],
}

/// Refuses moduli without a stable solid: Young's modulus not positive, Poisson's ratio not between −1 and 1/2.
pub(super) fn check(problem: &FormProblem<'_>) -> Result<(), SolveError> {
    let Some(moduli) = Moduli::of(problem) else { return Ok(()) };
    let mesh = problem.mesh;
    let wrong = |name: &str, value: f64, range: &str, at: &At| {
        let [x, y, z] = at.point;
        let message = format!("is {value} in cell {} at ({x}, {y}, {z}); it must be {range}", at.cell);
        Err(SolveError::setting(&of_equation(name), message))
    };
    for cell in 0..mesh.n_cells() {
        let corners = mesh.cell(cell);
        let tag = mesh.cell_tags.get(cell).copied().unwrap_or(0);
        for &node in corners {
            let at = At { cell, tag, point: mesh.points[node as usize] };
            let (young, poisson) = moduli.at(&at);
            if !(young > 0.0 && young.is_finite()) {
                return wrong("young", young, "positive", &at);
            }
            if !(poisson > -1.0 && poisson < 0.5) {
                return wrong("poisson", poisson, "above -1 and below 0.5", &at);
            }
        }
    }
    Ok(())
}

impl FormSolution<'_> {
    /// Returns the stresses of a problem of elasticity, each the mean of those of the cells of a node; none of other equations.
    ///
    /// # Errors
    /// [`SolveError::Fem`] for degenerate cells.
    pub fn stress(&self) -> Result<Option<Stress>, SolveError> {
        let Some(moduli) = Moduli::of(&self.problem) else { return Ok(None) };
        let space = &self.space;
        let table = space.element().tabulate(space.element().nodes());
        let gradient = |InCell { dofs, local, jacobian, .. }: InCell<'_>| {
            self.displacement_gradient(space, dofs, table.gradients(local), jacobian)
        };
        let means = self.means(&gradient, |gradient, at| moduli.stress(gradient, at))?;
        Ok(Some(Stress { von_mises: means.iter().map(von_mises).collect(), tensor: means.concat() }))
    }

    /// Returns stresses and strains from the recovered gradients of a problem of elasticity.
    pub(super) fn recovered_stress(
        &self,
        recovered: &Recovered<'_, '_>,
        config: FieldConfig,
    ) -> Result<Vec<NodalField<'static>>, SolveError> {
        let Some(moduli) = Moduli::of(&self.problem) else {
            return Err(SolveError::setting(&["output".into(), "fields".into()], OF_ELASTICITY));
        };
        let gradient = |InCell { position, dofs, local, .. }: InCell<'_>| {
            let mut gradient = [[0.0; 3]; 3];
            for (component, row) in gradient.iter_mut().enumerate().take(self.n_components()) {
                *row = recovered.at_node(component, position, local, dofs[local]);
            }
            gradient
        };
        let field = |name: &'static str, n_components, values| NodalField {
            name: Cow::Borrowed(name),
            n_components,
            values: Cow::Owned(values),
        };
        let mut fields = Vec::new();
        if config.stress {
            let means = self.means(&gradient, |gradient, at| moduli.stress(gradient, at))?;
            let of_mises = means.iter().map(von_mises).collect();
            fields.push(field("recovered_stress", 6, means.concat()));
            fields.push(field("recovered_von_mises", 1, of_mises));
        }
        if config.strain {
            let means = self.means(&gradient, |gradient, at| moduli.strain(gradient, at))?;
            fields.push(field("recovered_strain", 6, means.concat()));
        }
        Ok(fields)
    }

    /// Returns the mean over the cells of each node of a tensor that follows from the gradients of the displacements there; of a body
    /// of revolution these have $u_x/x$ around the axis.
    fn means(
        &self,
        gradient: &dyn Fn(InCell<'_>) -> [[f64; 3]; 3],
        tensor: impl Fn(&[[f64; 3]; 3], &At) -> [f64; 6],
    ) -> Result<Vec<[f64; 6]>, SolveError> {
        let space = &self.space;
        let mesh = space.mesh();
        let mut sums = vec![[0.0; 6]; space.n_dofs()];
        let mut counts = vec![0_u32; space.n_dofs()];
        let mapping = space.mapping(space.element().nodes());
        let on_axis = axis_rounding(mesh);
        let (mut map, mut dofs) = (PointMap::default(), vec![0; space.element().n_dofs()]);
        for position in 0..space.n_cells() {
            mapping.of_cell(position, &mut map)?;
            space.cell_dofs(position, &mut dofs);
            let cell = space.cell(position);
            let tag = mesh.cell_tags.get(cell).copied().unwrap_or(0);
            for (local, &dof) in dofs.iter().enumerate() {
                let jacobian = &map.jacobians[local];
                let mut gradient = gradient(InCell { position, dofs: &dofs, local, jacobian });
                if space.is_axisymmetric() {
                    let [x, ..] = map.points[local];
                    // On the axis the limit of u_x/x.
                    gradient[2][2] = match x > on_axis {
                        true => self.u[dof as usize * self.n_components()] / x,
                        false => gradient[0][0],
                    };
                }
                let own = tensor(&gradient, &At { cell, tag, point: map.points[local] });
                sums[dof as usize].iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
                counts[dof as usize] += 1;
            }
        }
        let mean = |(sum, n): (&[f64; 6], &u32)| sum.map(|sum| sum / f64::from((*n).max(1)));
        Ok(sums.iter().zip(&counts).map(mean).collect())
    }

    /// Returns the gradients of the components, by rows, from those of the shape functions on the reference cell.
    fn displacement_gradient(
        &self,
        space: &Space<'_>,
        dofs: &[u32],
        shapes: &[[f64; 3]],
        jacobian: &[[f64; 3]; 3],
    ) -> [[f64; 3]; 3] {
        let (n, d, inverse) = (self.n_components(), space.mesh().dimension(), inverse(jacobian));
        let mut gradient = [[0.0; 3]; 3];
        for (component, row) in gradient.iter_mut().enumerate().take(n) {
            let mut along = [0.0; 3];
            for (&dof, shape) in dofs.iter().zip(shapes) {
                let u = self.u[dof as usize * n + component];
                along.iter_mut().zip(shape).for_each(|(sum, shape)| *sum += u * shape);
            }
            for (axis, entry) in row.iter_mut().enumerate().take(d) {
                *entry = (0..d).map(|a| inverse[a][axis] * along[a]).sum();
            }
        }
        gradient
    }
}

/// Returns the equivalent stress of von Mises.
fn von_mises([xx, yy, zz, yz, xz, xy]: &[f64; 6]) -> f64 {
    let normal = ((xx - yy).powi(2) + (yy - zz).powi(2) + (zz - xx).powi(2)) / 2.0;
    (normal + 3.0 * (yz * yz + xz * xz + xy * xy)).sqrt()
}

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
    /// The principal stresses, the largest first: `[n_dofs][3]`.
    pub principal: Vec<f64>,
}

/// The coefficients of isotropic elasticity with thermal strain.
struct Moduli<'a> {
    young: &'a Coefficient,
    poisson: &'a Coefficient,
    expansion: Option<&'a Coefficient>,
    temperature: Option<&'a Coefficient>,
    reference_temperature: Option<&'a Coefficient>,
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
        Some(Moduli {
            young: scalar("young")?,
            poisson: scalar("poisson")?,
            expansion: scalar("expansion"),
            temperature: scalar("temperature"),
            reference_temperature: scalar("reference_temperature"),
            is_plane_stress,
        })
    }

    /// Returns the stress (xx, yy, zz, yz, xz, xy) for the gradients of the displacements.
    fn stress(&self, gradient: &[[f64; 3]; 3], at: &At) -> [f64; 6] {
        let (young, poisson) = self.at(at);
        let mu = young / (2.0 * (1.0 + poisson));
        let trace = gradient[0][0] + gradient[1][1] + gradient[2][2];
        let divisor = if self.is_plane_stress { 1.0 - poisson } else { 1.0 - 2.0 * poisson };
        let pressure =
            young * poisson / ((1.0 + poisson) * divisor) * trace - young / divisor * self.thermal_strain(at);
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
                ((1.0 + poisson) * self.thermal_strain(at) - poisson * (xx + yy)) / (1.0 - poisson)
            }
            false => gradient[2][2],
        };
        [xx, yy, zz, shear(1, 2), shear(0, 2), shear(0, 1)]
    }

    /// Returns the strain of a body that expands freely, the same along each axis.
    fn thermal_strain(&self, at: &At) -> f64 {
        let of =
            |coefficient: Option<&Coefficient>| coefficient.map_or(0.0, |coefficient| at.of(coefficient));
        of(self.expansion) * (of(self.temperature) - of(self.reference_temperature))
    }

    fn at(&self, at: &At) -> (f64, f64) {
        (at.of(self.young), at.of(self.poisson))
    }
}

/// A point of a cell.
struct At {
    cell: usize,
    tag: i32,
    point: [f64; 3],
}

impl At {
    fn of(&self, coefficient: &Coefficient) -> f64 {
        coefficient.scalar_at(self.cell, self.tag, self.point)
    }
}

/// A node of a cell.
struct InCell<'c> {
    position: usize,
    dofs: &'c [u32],
    local: usize,
    /// Of the map of the cell there.
    jacobian: &'c [[f64; 3]; 3],
}

/// Refuses moduli without a stable solid, Young's modulus not positive or Poisson's ratio not between −1 and 1/2, and temperatures that
/// are not finite.
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
            for (name, coefficient) in [
                ("expansion", moduli.expansion),
                ("temperature", moduli.temperature),
                ("reference_temperature", moduli.reference_temperature),
            ] {
                let value = coefficient.map_or(0.0, |coefficient| at.of(coefficient));
                if !value.is_finite() {
                    return wrong(name, value, "finite", &at);
                }
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
        Ok(Some(Stress {
            von_mises: means.iter().map(von_mises).collect(),
            principal: means.iter().flat_map(principal).collect(),
            tensor: means.concat(),
        }))
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
            let principals = means.iter().flat_map(principal).collect();
            fields.push(field("recovered_stress", 6, means.concat()));
            fields.push(field("recovered_von_mises", 1, of_mises));
            fields.push(field("recovered_principal", 3, principals));
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

/// Returns the eigenvalues of a stress, the largest first: that of the deviator which is farthest from the others from its invariants, and
/// the others in the plane across its direction, where equal ones lose no digits.
fn principal([xx, yy, zz, yz, xz, xy]: &[f64; 6]) -> [f64; 3] {
    let size = [xx, yy, zz, yz, xz, xy].into_iter().fold(0.0f64, |size, entry| size.max(entry.abs()));
    if size == 0.0 {
        return [0.0; 3];
    }
    // Divided first, so that squares and third powers neither overflow nor underflow.
    let [xx, yy, zz, yz, xz, xy] = [xx, yy, zz, yz, xz, xy].map(|entry| entry / size);
    let mean = (xx + yy + zz) / 3.0;
    let [a, b, c] = [xx - mean, yy - mean, zz - mean];
    let radius = ((a * a + b * b + c * c + 2.0 * (yz * yz + xz * xz + xy * xy)) / 6.0).sqrt();
    if radius == 0.0 {
        return [size * mean; 3];
    }
    let [a, b, c, yz, xz, xy] = [a, b, c, yz, xz, xy].map(|entry| entry / radius);
    let determinant = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz);
    // Between 0 and π/6, with the sign of the determinant: the eigenvalue of that sign is the farthest.
    let farthest = (2.0 * ((0.5 * determinant.abs()).min(1.0).acos() / 3.0).cos()).copysign(determinant);
    let rows = [[a - farthest, xy, xz], [xy, b - farthest, yz], [xz, yz, c - farthest]];
    let products = [cross(rows[0], rows[1]), cross(rows[1], rows[2]), cross(rows[2], rows[0])];
    let longest = products.into_iter().max_by(|one, other| dot(*one, *one).total_cmp(&dot(*other, *other)));
    let direction = normalized(longest.unwrap_or([1.0, 0.0, 0.0]));
    // A unit vector across it, away from its longest component.
    let [x, y, z] = direction;
    let across = normalized(if x.abs() > y.abs() { [-z, 0.0, x] } else { [0.0, z, -y] });
    let other = cross(direction, across);
    let times = |v: [f64; 3]| [dot([a, xy, xz], v), dot([xy, b, yz], v), dot([xz, yz, c], v)];
    let [first, beside, second] =
        [dot(across, times(across)), dot(across, times(other)), dot(other, times(other))];
    let (middle, half) = (0.5 * (first + second), (0.5 * (first - second)).hypot(beside));
    let mut deviators = [dot(direction, times(direction)), middle + half, middle - half];
    deviators.sort_unstable_by(|one, other| other.total_cmp(one));
    deviators.map(|deviator| size * (mean + radius * deviator))
}

fn dot(x: [f64; 3], y: [f64; 3]) -> f64 {
    x[0] * y[0] + x[1] * y[1] + x[2] * y[2]
}

fn cross(x: [f64; 3], y: [f64; 3]) -> [f64; 3] {
    [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]
}

fn normalized(x: [f64; 3]) -> [f64; 3] {
    let length = dot(x, x).sqrt();
    x.map(|x| x / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_stresses_are_exact_to_rounding_where_some_are_equal() {
        // An orthonormal basis that is along no axis.
        let first = normalized([1.0, 2.0, -0.5]);
        let second = normalized(cross(first, [0.3, -1.0, 2.0]));
        let basis = [first, second, cross(first, second)];
        for values in [
            [3.0, 2.0, -2.0],
            [2.0, 0.0, 0.0],
            [0.0, 0.0, -5.0],
            [1.0, 1.0, 1.0],
            [7.0, 7.0, 7.0 - 1e-9],
            [1.0, 0.0, -1.0],
            [1e200, 1e-3, -1e200],
            [0.0; 3],
        ] {
            for axes in [
                basis,
                [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
                [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]],
            ] {
                let entry =
                    |i: usize, j: usize| (0..3).map(|k| values[k] * axes[k][i] * axes[k][j]).sum::<f64>();
                let found = principal(&[
                    entry(0, 0),
                    entry(1, 1),
                    entry(2, 2),
                    entry(1, 2),
                    entry(0, 2),
                    entry(0, 1),
                ]);
                let size = values.iter().fold(0.0f64, |size, value| size.max(value.abs()));
                for (found, value) in found.iter().zip(values) {
                    assert!((found - value).abs() <= 1e-14 * size, "{values:?}: {found}");
                }
            }
        }
    }
}

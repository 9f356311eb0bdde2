//! The elements of a function whose gradient is recovered.

use std::borrow::Cow;

use femtile_device::parallel;
use femtile_space::{Element, Space};

use super::limit::CellVectors;
use crate::FemError;
use crate::evaluation::{Evaluation, Rule, Wanted};
use crate::functionals::check_length;
use crate::incidence::Incidence;

/// A function of a space with its nodes and its gradient, 24 bytes per degree of freedom and 40 per cell. Cells are named by their
/// positions in the order of visits.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    pub space: Space<'a>,
    pub u: Cow<'a, [f64]>,
    /// Points where gradients are compared.
    pub rule: Rule,
    /// Linear or multilinear functions of the corners at the nodes of a cell: `[n][corners]`.
    pub weights: Vec<f64>,
    /// The node of each degree of freedom.
    points: Vec<[f64; 3]>,
    /// Fitted nodes of a cell.
    sampled: Vec<usize>,
    /// The gradient in each cell.
    gradients: Vec<CellVectors>,
}

impl<'a> Elements<'a> {
    /// Prepares the function with degrees of freedom `u: [n_dofs]`, and points where gradients are compared.
    pub fn new(space: Space<'a>, rule: Rule, u: Cow<'a, [f64]>) -> Result<Self, FemError> {
        check_length(&u, space.n_dofs())?;
        let (element, kind) = (space.element(), space.mesh().kind);
        let (degree, d) = (element.degree(), element.dimension());
        let on_axes = Element::new(kind, 1)?.tabulate(element.nodes()).values;
        let weights = on_axes.into_iter().map(|weight| if weight.abs() > ROUNDING { weight } else { 0.0 });
        let mut elements = Self {
            u,
            rule,
            weights: weights.collect(),
            points: space.node_points(),
            sampled: if kind.is_simplex() { (0..element.n_dofs()).collect() } else { sampled(degree, d) },
            gradients: Vec::new(),
            space,
        };
        // Constant gradients need one point.
        let rule = if elements.space.is_linear() { Rule { simplex: 0, ..rule } } else { rule };
        let wanted = Wanted { u: &elements.u, gradients: true, ..Wanted::default() };
        let gradients = Evaluation::new(&elements.space, rule).blocks(None, wanted, |samples| {
            Ok(CellVectors::of_cells(&samples.gradients, &samples.weights, samples.positions.len()))
        })?;
        elements.gradients = gradients.concat();
        Ok(elements)
    }

    /// Lists the cells around each vertex.
    pub fn around_vertices(&self) -> Incidence {
        let (mesh, corners) = (self.space.mesh(), |position: usize| self.space.corners(position));
        if self.space.is_linear() {
            return Incidence::new(mesh.n_nodes(), &mesh.cells, mesh.kind.n_nodes());
        }
        let corners: Vec<u32> = (0..self.space.n_cells()).flat_map(corners).copied().collect();
        Incidence::new(mesh.n_nodes(), &corners, mesh.kind.n_nodes())
    }

    /// Lists the cells around each degree of freedom.
    pub fn around_dofs(&self) -> Incidence {
        let n = self.space.element().n_dofs();
        let mut dofs = vec![0; self.space.n_cells() * n];
        parallel::for_chunks_mut(&mut dofs, n, |begin, dofs| self.space.cell_dofs(begin / n, dofs));
        Incidence::new(self.space.n_dofs(), &dofs, n)
    }

    /// Returns the degrees of freedom of a cell.
    pub fn dofs(&self, cell: u32) -> Vec<u32> {
        let mut dofs = vec![0; self.space.element().n_dofs()];
        self.space.cell_dofs(cell as usize, &mut dofs);
        dofs
    }

    /// Adds the degrees of freedom of a cell whose values are fitted.
    pub fn add_samples(&self, cell: u32, samples: &mut Vec<u32>) {
        if self.space.is_linear() {
            return samples.extend(self.space.corners(cell as usize));
        }
        let dofs = self.dofs(cell);
        samples.extend(self.sampled.iter().map(|&at| dofs[at]));
    }

    /// Adds the degrees of freedom of a cell for which the polynomial of one of its vertices counts.
    pub fn add_weighted(&self, cell: u32, vertex: u32, dofs: &mut Vec<u32>) {
        let corners = self.space.corners(cell as usize);
        let counts = |weights: &[f64]| {
            corners.iter().zip(weights).any(|(&other, weight)| other == vertex && *weight != 0.0)
        };
        let weighted = self.dofs(cell).into_iter().zip(self.weights.chunks_exact(corners.len()));
        dofs.extend(weighted.filter(|(_, weights)| counts(weights)).map(|(dof, _)| dof));
    }

    /// Returns the gradient of the function in a cell.
    pub fn gradient(&self, cell: u32) -> CellVectors {
        self.gradients[cell as usize]
    }

    /// Returns the node of a degree of freedom.
    pub fn point(&self, dof: u32) -> [f64; 3] {
        self.points[dof as usize]
    }
}

/// Largest rounding error of a linear function at a node.
const ROUNDING: f64 = 1e-12;

/// Returns evenly chosen nodes of a cell along each axis, enough that two neighbouring cells determine polynomials of
/// degree p + 1 along an axis.
fn sampled(degree: usize, d: usize) -> Vec<usize> {
    let n_steps = degree.min((degree + 2) / 2);
    let chosen: Vec<usize> = (0..=n_steps).map(|i| (i * degree + n_steps / 2) / n_steps).collect();
    let n = degree + 1;
    let is_chosen = |at: usize| (0..d).all(|a| chosen.contains(&(at / n.pow(a as u32) % n)));
    (0..n.pow(d as u32)).filter(|&at| is_chosen(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cells_side_by_side_have_enough_samples_along_an_axis() {
        for degree in 1..=10 {
            let line = sampled(degree, 1);
            assert!(line.contains(&0) && line.contains(&degree));
            assert!(2 * line.len() > degree + 2, "degree {degree}: {line:?}");
            assert_eq!(sampled(degree, 3).len(), line.len().pow(3));
        }
    }
}

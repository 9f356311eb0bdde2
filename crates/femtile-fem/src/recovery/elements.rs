//! The elements of a function whose gradient is recovered.

use femtile_element::Affine;
use femtile_space::{Element, Space};

use super::limit::CellVectors;
use crate::FemError;
use crate::evaluation::{Evaluation, Rule};
use crate::forms::Form;
use crate::functionals::{check_length, degree_for};
use crate::tensor::SOURCE_RULE;

/// A function of a space with its nodes and its gradient. Cells are named by their positions in the order of visits.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    pub space: Space<'a>,
    pub u: &'a [f64],
    /// Points where gradients are compared.
    pub rule: Rule,
    /// Linear or multilinear functions of the corners at the nodes of a cell: `[n][corners]`.
    pub weights: Vec<f64>,
    /// The node of each degree of freedom.
    points: Vec<[f64; 3]>,
    /// Fitted nodes of a cell.
    sampled: Vec<usize>,
    /// The gradient in each cell; empty for linear functions on simplices.
    gradients: Vec<CellVectors>,
}

impl<'a> Elements<'a> {
    /// Prepares the function with degrees of freedom `u: [n_dofs]`.
    pub fn new(space: Space<'a>, form: &Form<'_>, u: &'a [f64]) -> Result<Self, FemError> {
        check_length(u, space.n_dofs())?;
        let (element, kind) = (space.element(), space.mesh().kind);
        let (degree, d) = (element.degree(), element.dimension());
        let rule = Rule { tensor: SOURCE_RULE, simplex: degree_for(&space, &[form.sigma], 2 * degree) };
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
        if !elements.space.is_linear() {
            let evaluation = Evaluation::new(&elements.space, rule);
            elements.gradients = evaluation.map(|found, points| {
                evaluation.gradients(found, points, u);
                Ok(CellVectors::together(&found.gradients, &points.weights))
            })?;
        }
        Ok(elements)
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
        if self.space.is_linear() {
            return dofs.push(vertex);
        }
        let corners = self.space.corners(cell as usize);
        let counts = |weights: &[f64]| {
            corners.iter().zip(weights).any(|(&other, weight)| other == vertex && *weight != 0.0)
        };
        let weighted = self.dofs(cell).into_iter().zip(self.weights.chunks_exact(corners.len()));
        dofs.extend(weighted.filter(|(_, weights)| counts(weights)).map(|(dof, _)| dof));
    }

    /// Returns the gradient of the function in a cell.
    pub fn gradient(&self, cell: u32) -> CellVectors {
        self.gradients.get(cell as usize).copied().unwrap_or_else(|| {
            let (gradient, volume) = self.linear_gradient(cell as usize);
            CellVectors::new(gradient, volume)
        })
    }

    /// Returns the gradient of a linear function in a simplex, and its volume.
    pub fn linear_gradient(&self, cell: usize) -> ([f64; 3], f64) {
        let mesh = self.space.mesh();
        let nodes = mesh.cell(cell);
        let (mut points, mut values) = ([[0.0; 3]; 4], [0.0; 4]);
        for (a, &node) in nodes.iter().enumerate() {
            points[a] = mesh.points[node as usize];
            values[a] = self.u[node as usize];
        }
        let map = Affine::simplex(&points[..nodes.len()]);
        (map.gradient(&values), map.measure)
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

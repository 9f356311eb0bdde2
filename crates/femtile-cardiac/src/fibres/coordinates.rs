//! Depth and height of cells by Laplace problems on the ventricles.

use femtile::{Mesh, Poisson, Region, Solution, SolveError, SolverConfig};

use super::RuleBasedFibres;
use super::frame::{cross, dot, length};
use crate::CardiacError;

/// Share of the largest value of the distance function within which cells are the apex: a part of some three percent of the
/// length of a ventricle.
const APEX: f64 = 1e-3;

/// A function on the mesh: mean and gradient in each cell.
pub(super) struct Coordinate {
    pub mean: Vec<f64>,
    pub gradient: Vec<[f64; 3]>,
}

/// Coordinates of all cells.
pub(super) struct Coordinates {
    /// 0 at the endocardia, 1 at the epicardium.
    pub depth: Coordinate,
    /// 1 at the left endocardium, 0 at the right one and the epicardium; for two ventricles alone.
    left: Option<Coordinate>,
    /// 0 at the apex, 1 at the base.
    pub height: Coordinate,
    pub warnings: Vec<String>,
}

/// Coordinates of a cell.
pub(super) struct Point {
    pub depth: f64,
    pub depth_gradient: [f64; 3],
    pub height_gradient: [f64; 3],
    /// Shares and gradients of the functions that are 1 at the left and at the right endocardium.
    pub ventricles: Option<[(f64, [f64; 3]); 2]>,
}

impl Coordinates {
    pub fn new(rule: &RuleBasedFibres, mesh: &Mesh, config: &SolverConfig) -> Result<Self, CardiacError> {
        let mut warnings = Vec::new();
        let mut solve = |problem: Poisson<'_>, what: &str| -> Result<Coordinate, CardiacError> {
            let solution = problem.solve(config)?;
            if !solution.has_converged() {
                let outcome = solution.outcome();
                warnings.push(format!(
                    "the problem of the {what} stopped after {} iterations: {}",
                    outcome.iterations, outcome.stop
                ));
            }
            Ok(Coordinate::new(mesh, &solution))
        };
        let surfaces = |one: &Region| -> Result<Poisson<'_>, CardiacError> {
            let right = rule.right_endocardium.as_ref().map(|part| ("right_endocardium", part));
            let all =
                [Some(("endocardium", &rule.endocardium)), right, Some(("epicardium", &rule.epicardium))];
            all.into_iter().flatten().try_fold(Poisson::new(mesh), |problem, (name, part)| {
                given(problem, name, part, if part == one { 1.0 } else { 0.0 })
            })
        };
        let depth = solve(surfaces(&rule.epicardium)?, "depth")?;
        let left = match &rule.right_endocardium {
            Some(_) => Some(solve(surfaces(&rule.endocardium)?, "left ventricle")?),
            None => None,
        };
        let between = given(Poisson::new(mesh), "base", &rule.base, 1.0)?;
        let height = match &rule.apex {
            Some(apex) => given(between, "apex", apex, 0.0)?,
            None => {
                let distance = given(Poisson::new(mesh).source(1.0), "base", &rule.base, 0.0)?;
                between.dirichlet_at_nodes(apex(mesh, &solve(distance, "distance from the base")?), 0.0)?
            }
        };
        let height = solve(height, "height")?;
        Ok(Self { depth, left, height, warnings })
    }

    /// Returns the coordinates of a cell.
    pub fn at(&self, cell: usize) -> Point {
        let (depth, depth_gradient) = (self.depth.mean[cell], self.depth.gradient[cell]);
        let ventricles = self.left.as_ref().map(|left| {
            let (share, gradient) = (left.mean[cell], left.gradient[cell]);
            // The three functions add up to one.
            let right = [0, 1, 2].map(|i| -gradient[i] - depth_gradient[i]);
            [(share, gradient), (1.0 - share - depth, right)]
        });
        Point { depth, depth_gradient, height_gradient: self.height.gradient[cell], ventricles }
    }

    /// Returns lengths of gradients through the wall and along it below which there is no direction.
    pub fn smallest(&self) -> Result<[f64; 2], CardiacError> {
        for (of, what) in [
            (&self.depth, "endocardium and epicardium are the same part: there is no depth between them"),
            (&self.height, "base and apex are the same part: there is no height between them"),
        ] {
            let least = of.mean.iter().copied().fold(f64::INFINITY, f64::min);
            if of.mean.iter().all(|value| value - least < 1e-6) {
                return Err(CardiacError::setting("fibres", what));
            }
        }
        Ok([&self.depth, &self.height]
            .map(|of| 1e-6 * of.gradient.iter().map(|&g| length(g)).fold(0.0, f64::max)))
    }
}

/// Gives the value on a part of the boundary; `name` is its setting.
fn given<'m>(
    problem: Poisson<'m>,
    name: &'static str,
    part: &Region,
    value: f64,
) -> Result<Poisson<'m>, CardiacError> {
    problem.dirichlet(part.clone(), value).map_err(|error| match error {
        SolveError::Setting { message, .. } => CardiacError::setting(name, message),
        other => other.into(),
    })
}

/// Returns the nodes of the cells that are farthest from the base.
fn apex(mesh: &Mesh, distance: &Coordinate) -> Vec<u32> {
    let largest = distance.mean.iter().copied().fold(0.0, f64::max);
    let is_far = |cell: &usize| distance.mean[*cell] >= (1.0 - APEX) * largest;
    let mut nodes: Vec<u32> =
        (0..mesh.n_cells()).filter(is_far).flat_map(|cell| mesh.cell(cell)).copied().collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

impl Coordinate {
    /// Averages the values at the corners of each cell, and fits its gradient to them.
    fn new(mesh: &Mesh, solution: &Solution<'_>) -> Self {
        let values = solution.values();
        let mut found = Self { mean: vec![0.0; mesh.n_cells()], gradient: vec![[0.0; 3]; mesh.n_cells()] };
        let mut fit = |cell: usize, nodes: &[u32], dofs: &[u32]| {
            let corners = nodes
                .iter()
                .zip(dofs)
                .map(|(&node, &dof)| (mesh.points[node as usize], values[dof as usize]));
            (found.mean[cell], found.gradient[cell]) = linear_fit(corners);
        };
        match solution.discretization().space() {
            None => (0..mesh.n_cells()).for_each(|cell| fit(cell, mesh.cell(cell), mesh.cell(cell))),
            Some(space) => {
                let mut dofs = vec![0; mesh.kind.n_nodes()];
                for (position, &cell) in space.order().iter().enumerate() {
                    space.cell_dofs(position, &mut dofs);
                    // Both in the order of products of coordinates.
                    fit(cell as usize, space.corners(position), &dofs);
                }
            }
        }
        found
    }
}

/// Returns the mean of values at points, and the gradient of the linear function that fits them best: of a tetrahedron that of
/// its element.
fn linear_fit(corners: impl Iterator<Item = ([f64; 3], f64)> + Clone) -> (f64, [f64; 3]) {
    let n = corners.clone().count() as f64;
    let mean = corners.clone().map(|(_, value)| value).sum::<f64>() / n;
    let centre = [0, 1, 2].map(|i| corners.clone().map(|(point, _)| point[i]).sum::<f64>() / n);
    let (mut a, mut b) = ([[0.0; 3]; 3], [0.0; 3]);
    for (point, value) in corners {
        let x = [0, 1, 2].map(|i| point[i] - centre[i]);
        for i in 0..3 {
            b[i] += x[i] * (value - mean);
            (0..3).for_each(|j| a[i][j] += x[i] * x[j]);
        }
    }
    // Cramer's rule; A is symmetric.
    let rows = [cross(a[1], a[2]), cross(a[2], a[0]), cross(a[0], a[1])];
    let determinant = dot(a[0], rows[0]);
    (mean, [0, 1, 2].map(|i| dot(rows[i], b) / determinant))
}

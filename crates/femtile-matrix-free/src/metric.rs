//! What the map and the coefficients of a cell amount to at the points of a rule.

use femtile_expression::TapeScratch;

use crate::curvature::Curvature;
use femtile_fem::FemError;
use femtile_fem::dofs::TensorSpace;
use femtile_fem::forms::{Coefficient, Compiled, Points, definite, not_negative};
use femtile_fem::geometry::CellRule;
use femtile_fem::geometry::{CellMap, CellMaps, determinant, inverse};

/// The terms of ∫ σ∇u·∇v + λuv.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms<'a> {
    /// σ, where there is a first term.
    pub sigma: Option<&'a Coefficient>,
    /// λ, where there is a second.
    pub lambda: Option<&'a Coefficient>,
}

/// $\lvert\det J\rvert\, J^{-1} \sigma J^{-\mathsf{T}}$ as xx, yy, zz, yz, xz, xy, and $\lambda \lvert\det J\rvert$.
pub(super) type Entries = [f64; 7];

/// How the metric of a cell varies; what serves one serves those before it as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Variation {
    /// The same at all points, and diagonal.
    Diagonal,
    /// The same at all points.
    Constant,
    /// Any.
    Any,
}

/// Evaluates metrics.
pub(super) struct Metrics<'a> {
    space: &'a TensorSpace<'a>,
    maps: CellMaps<'a>,
    centre: CellMaps<'a>,
    curvature: Curvature,
    sigma: Option<Compiled<'a>>,
    lambda: Option<Compiled<'a>>,
    /// Whether coefficients have one value a cell.
    by_cell: bool,
    /// Weights at the points: `[n_q^d]`.
    weights: Vec<f64>,
}

/// Room for one cell, kept from cell to cell.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    map: CellMap,
    points: Points,
    tensors: Vec<[[f64; 3]; 3]>,
    scalars: Vec<f64>,
    tape: TapeScratch,
}

impl<'a> Metrics<'a> {
    pub fn new(space: &'a TensorSpace<'a>, terms: Terms<'a>, rule: CellRule) -> Result<Self, FemError> {
        let (coordinates, weights) = rule.rule(space.degree());
        let (n, d) = (coordinates.len(), space.dimension());
        let weight = |at: usize| (0..d).map(|a| weights[at / n.pow(a as u32) % n]).product();
        let mesh = space.mesh();
        let is_by_cell =
            |coefficient: Option<&Coefficient>| coefficient.is_none_or(Coefficient::is_constant_by_cell);
        let maps = CellMaps::new(space, &coordinates);
        Ok(Self {
            space,
            curvature: Curvature::new(maps.order()),
            maps,
            centre: CellMaps::new(space, &[0.5]),
            sigma: terms.sigma.map(|sigma| Compiled::tensor("sigma", sigma, mesh)).transpose()?,
            lambda: terms.lambda.map(|lambda| Compiled::scalar("lambda", lambda, mesh)).transpose()?,
            by_cell: is_by_cell(terms.sigma) && is_by_cell(terms.lambda),
            weights: (0..n.pow(d as u32)).map(weight).collect(),
        })
    }

    /// How the metric of the cell at a position varies, without looking at its points.
    pub fn variation(&self, position: usize, scratch: &mut Scratch) -> Result<Variation, FemError> {
        let nodes = self.maps.nodes(position);
        let Some(rounding) = affine_to(&nodes, self.maps.order() + 1, self.space.dimension()) else {
            return Ok(Variation::Any);
        };
        if !self.by_cell {
            return Ok(Variation::Any);
        }
        let [xx, yy, zz, off @ .., _] = self.constant(position, scratch)?;
        let size = xx.max(yy).max(zz);
        let is_diagonal = off.iter().all(|entry| entry.abs() <= rounding * size);
        Ok(if is_diagonal { Variation::Diagonal } else { Variation::Constant })
    }

    /// The metric of a cell in which it is the same at all points, without weights.
    pub fn constant(&self, position: usize, scratch: &mut Scratch) -> Result<Entries, FemError> {
        let mut found = Vec::with_capacity(1);
        self.entries(&self.centre, position, scratch, &mut found)?;
        Ok(found[0])
    }

    /// Whether all cells are trilinear, or bilinear, and coefficients have one value in each.
    pub fn is_trilinear(&self) -> bool {
        self.by_cell && self.maps.order() == 1
    }

    /// Whether coefficients have one value a cell.
    pub fn is_by_cell(&self) -> bool {
        self.by_cell
    }

    /// Order of the polynomials with which the mesh gives its cells.
    pub fn order(&self) -> usize {
        self.curvature.order()
    }

    /// The order that the map of a hexahedron has: 1, 2, or that of the mesh.
    pub fn order_of(&self, position: usize) -> usize {
        self.curvature.order_of(&self.maps.nodes(position))
    }

    /// Coefficients of the map of a hexahedron, as [`Curvature::polynomial`] has them.
    pub fn polynomial(&self, position: usize, order: usize) -> Vec<[f64; 3]> {
        let is_mirrored = self.space.orientation(position).is_mirrored();
        self.curvature.polynomial(&self.maps.nodes(position), order, is_mirrored)
    }

    /// Number in the mesh of the cell at a position.
    pub fn cell(&self, position: usize) -> usize {
        self.space.order()[position] as usize
    }

    /// σ as xx, yy, zz, yz, xz, xy and λ in a cell where they have one value; zeros for terms that there are not.
    pub fn coefficients(&self, position: usize, scratch: &mut Scratch) -> Result<([f64; 6], f64), FemError> {
        self.maps.of_sound_cell(position, &mut scratch.map)?;
        scratch.evaluate(self, self.space.order()[position])?;
        let sigma = self.sigma.as_ref().map_or([[0.0; 3]; 3], |_| scratch.tensors[0]);
        let entry = |(a, b): (usize, usize)| 0.5 * (sigma[a][b] + sigma[b][a]);
        let lambda = self.lambda.as_ref().map_or(0.0, |_| scratch.scalars[0]);
        Ok(([(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)].map(entry), lambda))
    }

    /// The metric at all points of a cell, with their weights: `[n_q^d]`.
    pub fn at_points(
        &self,
        position: usize,
        scratch: &mut Scratch,
        found: &mut Vec<Entries>,
    ) -> Result<(), FemError> {
        self.entries(&self.maps, position, scratch, found)?;
        for (entries, weight) in found.iter_mut().zip(&self.weights) {
            entries.iter_mut().for_each(|entry| *entry *= weight);
        }
        Ok(())
    }

    /// $J^{-1}$ by rows and $w \lvert\det J\rvert$ at all points of a cell: `[n_q^d][10]`, one after another.
    pub fn inverses(&self, position: usize, scratch: &mut Scratch) -> Result<Vec<f64>, FemError> {
        self.maps.of_sound_cell(position, &mut scratch.map)?;
        let of_point = |(jacobian, weight): (&[[f64; 3]; 3], &f64)| {
            let volume = weight * determinant(jacobian).abs();
            inverse(jacobian).into_iter().flatten().chain([volume])
        };
        Ok(scratch.map.jacobians.iter().zip(&self.weights).flat_map(of_point).collect())
    }

    fn entries(
        &self,
        maps: &CellMaps<'_>,
        position: usize,
        scratch: &mut Scratch,
        found: &mut Vec<Entries>,
    ) -> Result<(), FemError> {
        let d = self.space.dimension();
        maps.of_sound_cell(position, &mut scratch.map)?;
        scratch.evaluate(self, self.space.order()[position])?;
        found.clear();
        // Of coefficients by cell there is one value for all points.
        let at_point = |at: usize| if self.by_cell { 0 } else { at };
        for (at, jacobian) in scratch.map.jacobians.iter().enumerate() {
            let (size, back) = (determinant(jacobian).abs(), inverse(jacobian));
            let mut entries = [0.0; 7];
            if self.sigma.is_some() {
                let sigma = &scratch.tensors[at_point(at)];
                let scaled: [[f64; 3]; 3] = std::array::from_fn(|a| {
                    std::array::from_fn(|j| size * (0..d).map(|i| back[a][i] * sigma[i][j]).sum::<f64>())
                });
                for (entry, (a, b)) in
                    entries.iter_mut().zip([(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)])
                {
                    if a < d && b < d {
                        *entry = (0..d).map(|j| scaled[a][j] * back[b][j]).sum();
                    }
                }
            }
            if self.lambda.is_some() {
                entries[6] = size * scratch.scalars[at_point(at)];
            }
            found.push(entries);
        }
        Ok(())
    }
}

impl Scratch {
    /// The coefficients at the points of the map, or at the first of them where they are given by cell.
    fn evaluate(&mut self, metrics: &Metrics<'_>, cell: u32) -> Result<(), FemError> {
        let d = metrics.space.dimension();
        let n_points = if metrics.by_cell { 1 } else { self.map.points.len() };
        self.points.clear();
        self.points.extend(cell, &self.map.points[..n_points]);
        if let Some(sigma) = &metrics.sigma {
            self.tensors.resize(n_points, [[0.0; 3]; 3]);
            sigma.eval_tensor(&mut self.tensors[..n_points], &self.points, d, &mut self.tape)?;
            definite(&self.tensors[..n_points], &self.points, d)?;
        }
        if let Some(lambda) = &metrics.lambda {
            self.scalars.resize(n_points, 0.0);
            lambda.eval_scalar(&mut self.scalars, &self.points, &mut self.tape)?;
            not_negative("lambda", &self.scalars, &self.points)?;
        }
        Ok(())
    }
}

/// Whether a map through these nodes is affine; then what rounding makes of entries that would be zero, relative to others.
fn affine_to(nodes: &[[f64; 3]], n: usize, d: usize) -> Option<f64> {
    let origin = nodes[0];
    let step = |a: usize| -> [f64; 3] {
        let last = nodes[(n - 1) * n.pow(a as u32)];
        std::array::from_fn(|i| (last[i] - origin[i]) / (n - 1) as f64)
    };
    let steps: Vec<[f64; 3]> = (0..d).map(step).collect();
    let size = nodes.iter().flatten().fold(0.0_f64, |size, x| size.max(x.abs()));
    let rounding = 8.0 * f64::EPSILON * size;
    for (at, node) in nodes.iter().enumerate() {
        for i in 0..3 {
            let expected = (0..d).fold(origin[i], |x, a| x + (at / n.pow(a as u32) % n) as f64 * steps[a][i]);
            if (node[i] - expected).abs() > rounding {
                return None;
            }
        }
    }
    let length = |step: &[f64; 3]| (n - 1) as f64 * step.iter().map(|x| x * x).sum::<f64>().sqrt();
    let shortest = steps.iter().map(length).fold(f64::INFINITY, f64::min);
    Some((8.0 * rounding / shortest).min(1e-6))
}

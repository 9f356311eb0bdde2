//! Metrics of cells: products of map derivatives and coefficients at the points of a rule.

use femtile_expression::TapeScratch;
use femtile_space::TensorSpace;
use femtile_space::geometry::{CellMap, CellMaps, CellRule, MetricEvaluation, inverse};

use crate::curvature::Curvature;
use femtile_fem::FemError;
use femtile_fem::forms::{Coefficient, Compiled, Points, definite, not_negative, positive};

/// The terms of the bilinear form ∫ σ∇u·∇v + λuv.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms<'a> {
    /// Conductivity σ, if the form has a stiffness term.
    pub sigma: Option<&'a Coefficient>,
    /// Reaction λ, if the form has a mass term.
    pub lambda: Option<&'a Coefficient>,
}

impl Terms<'_> {
    /// Returns the metric evaluation that a GPU chooses for cells on which the map is affine (`Constant`), has straight edges
    /// (`Computed`) or is any other (`Stored`).
    ///
    /// With coefficients at points, reading six numbers per point is faster than computing them from corners.
    /// Without σ, reading one number is no slower than with a map.
    pub fn metric_on_gpus(&self, of_map: MetricEvaluation) -> MetricEvaluation {
        match of_map {
            MetricEvaluation::Constant if self.are_at_points() && self.sigma.is_some() => of_map,
            _ if self.vary_within_cells() => MetricEvaluation::Stored,
            _ => of_map,
        }
    }

    /// Returns whether coefficients differ within cells and are scalars, which can be kept at points beside the map of a cell.
    pub(super) fn are_at_points(&self) -> bool {
        self.vary_within_cells() && self.sigma.is_none_or(Coefficient::is_isotropic)
    }

    fn vary_within_cells(&self) -> bool {
        [self.sigma, self.lambda].into_iter().flatten().any(|coefficient| !coefficient.is_constant_by_cell())
    }

    /// Returns the same terms with this coefficient.
    pub(super) fn with<'b>(&self, coefficient: &'b Coefficient) -> Terms<'b> {
        Terms { sigma: self.sigma.map(|_| coefficient), lambda: self.lambda.map(|_| coefficient) }
    }
}

/// $\lvert\det J\rvert\, J^{-1} \sigma J^{-\mathsf{T}}$ as xx, yy, zz, yz, xz, xy, and $\lambda \lvert\det J\rvert$.
pub(super) type Entries = [f64; 7];

/// Variation of the metric inside a cell; each kind includes the preceding kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Variation {
    /// Constant and diagonal.
    Diagonal,
    /// Constant.
    Constant,
    /// Any variation.
    Any,
}

/// Evaluates metrics of cells.
pub(super) struct Metrics<'a> {
    space: &'a TensorSpace<'a>,
    maps: CellMaps<'a>,
    centre: CellMaps<'a>,
    curvature: Curvature,
    sigma: Option<Compiled<'a>>,
    lambda: Option<Compiled<'a>>,
    /// Whether coefficients are constant by cell.
    by_cell: bool,
    /// Weights at the points: `[n_q^d]`.
    weights: Vec<f64>,
}

/// Workspace for one cell.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    map: CellMap,
    points: Points,
    /// σ, of one kind.
    sigmas: Vec<f64>,
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

    /// Returns the variation of the metric of the cell at a position, from its nodes alone.
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

    /// Returns the metric of a cell on which it is constant, without weights.
    pub fn constant(&self, position: usize, scratch: &mut Scratch) -> Result<Entries, FemError> {
        let mut found = Vec::with_capacity(1);
        self.entries(&self.centre, position, scratch, &mut found)?;
        Ok(found[0])
    }

    /// Returns whether all cells are trilinear, or bilinear, and coefficients are constant by cell.
    pub fn is_trilinear(&self) -> bool {
        self.by_cell && self.maps.order() == 1
    }

    /// Returns whether coefficients are constant by cell.
    pub fn is_by_cell(&self) -> bool {
        self.by_cell
    }

    /// Returns the order of the map of a hexahedron: 1, 2, or that of the mesh.
    pub fn order_of(&self, position: usize) -> usize {
        self.curvature.order_of(&self.maps.nodes(position))
    }

    /// Returns the coefficients of the map of a hexahedron, as [`Curvature::polynomial`] does.
    pub fn polynomial(&self, position: usize, order: usize) -> Vec<[f64; 3]> {
        let is_mirrored = self.space.orientation(position).is_mirrored();
        self.curvature.polynomial(&self.maps.nodes(position), order, is_mirrored)
    }

    /// Returns the number in the mesh of the cell at a position.
    pub fn cell(&self, position: usize) -> usize {
        self.space.order()[position] as usize
    }

    /// Returns σ as xx, yy, zz, yz, xz, xy and λ in a cell in which they are constant; zeros for absent
    /// terms.
    pub fn coefficients(&self, position: usize, scratch: &mut Scratch) -> Result<([f64; 6], f64), FemError> {
        self.maps.of_sound_cell(position, &mut scratch.map)?;
        scratch.evaluate(self, self.space.order()[position])?;
        let sigma = match &self.sigma {
            None => [[0.0; 3]; 3],
            Some(sigma) if sigma.is_scalar() => {
                std::array::from_fn(|i| std::array::from_fn(|j| if i == j { scratch.sigmas[0] } else { 0.0 }))
            }
            Some(_) => scratch.tensors[0],
        };
        let entry = |(a, b): (usize, usize)| 0.5 * (sigma[a][b] + sigma[b][a]);
        let lambda = self.lambda.as_ref().map_or(0.0, |_| scratch.scalars[0]);
        Ok(([(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)].map(entry), lambda))
    }

    /// Evaluates the metric at all points of a cell, with weights: `[n_q^d]`.
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

    /// Returns σ, a scalar, and λ at all points of a cell, of the terms that exist: `[n_q^d]` each. Whether
    /// the map of the cell is invertible is not checked.
    pub fn scalars_at_points<'s>(
        &self,
        position: usize,
        scratch: &'s mut Scratch,
    ) -> Result<impl Iterator<Item = &'s [f64]>, FemError> {
        self.maps.points_of_cell(position, &mut scratch.map);
        scratch.evaluate(self, self.space.order()[position])?;
        let Scratch { sigmas, scalars, .. } = scratch;
        let [sigma, lambda] = [self.sigma.is_some(), self.lambda.is_some()];
        Ok(sigma.then_some(sigmas.as_slice()).into_iter().chain(lambda.then_some(scalars.as_slice())))
    }

    fn entries(
        &self,
        maps: &CellMaps<'_>,
        position: usize,
        scratch: &mut Scratch,
        found: &mut Vec<Entries>,
    ) -> Result<(), FemError> {
        maps.of_sound_cell(position, &mut scratch.map)?;
        scratch.evaluate(self, self.space.order()[position])?;
        found.clear();
        match self.space.dimension() {
            2 => self.write_entries::<2>(scratch, found),
            _ => self.write_entries::<3>(scratch, found),
        }
        Ok(())
    }

    /// The entries in D dimensions from the map and the coefficients of a cell.
    fn write_entries<const D: usize>(&self, scratch: &Scratch, found: &mut Vec<Entries>) {
        // Coefficients constant by cell have one value for all points.
        let at_point = |at: usize| if self.by_cell { 0 } else { at };
        for (at, jacobian) in scratch.map.jacobians.iter().enumerate() {
            let (size, back) = (scratch.map.determinants[at].abs(), inverse(jacobian));
            let mut entries = [0.0; 7];
            if let Some(sigma) = &self.sigma {
                let scaled: [[f64; D]; D] = match sigma.is_scalar() {
                    true => {
                        let sigma = scratch.sigmas[at_point(at)];
                        std::array::from_fn(|a| std::array::from_fn(|j| size * (back[a][j] * sigma)))
                    }
                    false => {
                        let sigma = &scratch.tensors[at_point(at)];
                        let product =
                            |a: usize, j: usize| (0..D).map(|i| back[a][i] * sigma[i][j]).sum::<f64>();
                        std::array::from_fn(|a| std::array::from_fn(|j| size * product(a, j)))
                    }
                };
                let pairs = [(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)];
                for (entry, (a, b)) in entries.iter_mut().zip(pairs) {
                    if a < D && b < D {
                        *entry = (0..D).map(|j| scaled[a][j] * back[b][j]).sum();
                    }
                }
            }
            if self.lambda.is_some() {
                entries[6] = size * scratch.scalars[at_point(at)];
            }
            found.push(entries);
        }
    }
}

impl Scratch {
    /// Evaluates the coefficients at the points of the map, or at the first one if they are constant by cell.
    fn evaluate(&mut self, metrics: &Metrics<'_>, cell: u32) -> Result<(), FemError> {
        let d = metrics.space.dimension();
        let n_points = if metrics.by_cell { 1 } else { self.map.points.len() };
        self.points.clear();
        self.points.extend(cell, &self.map.points[..n_points]);
        if let Some(sigma) = &metrics.sigma {
            if sigma.is_scalar() {
                self.sigmas.resize(n_points, 0.0);
                sigma.eval_scalar(&mut self.sigmas, &self.points, &mut self.tape)?;
                positive(&self.sigmas, &self.points)?;
            } else {
                self.tensors.resize(n_points, [[0.0; 3]; 3]);
                sigma.eval_tensor(&mut self.tensors, &self.points, d, &mut self.tape)?;
                definite(&self.tensors, &self.points, d)?;
            }
        }
        if let Some(lambda) = &metrics.lambda {
            self.scalars.resize(n_points, 0.0);
            lambda.eval_scalar(&mut self.scalars, &self.points, &mut self.tape)?;
            not_negative("lambda", &self.scalars, &self.points)?;
        }
        Ok(())
    }
}

/// Returns a bound of relative rounding errors if the map through these nodes is affine, else none.
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

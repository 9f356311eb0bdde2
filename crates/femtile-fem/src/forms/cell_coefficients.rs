//! Means and moments of the coefficients over cells, in chunks.

use femtile_element::P1;
use femtile_element::quadrature::{self, Quadrature};
use femtile_expression::TapeScratch;
use femtile_mesh::Mesh;

use super::checks::{definite, is_projection, not_negative, positive};
use super::linearized::CompiledSlopes;
use super::{Coefficient, Form, Slopes, State};
use super::{Compiled, Points, centroid};
use crate::FemError;

/// Cells that are evaluated and assembled together.
pub(crate) const CHUNK: usize = 64;

/// Degree of the quadrature rule for coefficients that vary in a cell: σ up to degree 3 and f up to degree 2 are
/// integrated exactly, λ up to degree 1.
const DEGREE: usize = 3;

/// Returns the rule that averages coefficients that vary in a cell.
pub(super) fn rule_for(dimension: usize) -> Quadrature {
    quadrature::simplex(dimension, DEGREE)
}

/// The compiled coefficients of a form, with the rule that averages them.
pub(crate) struct CellCoefficients<'a> {
    pub mesh: &'a Mesh,
    /// The form that they come from.
    pub form: Form<'a>,
    pub sigma: Varying<'a, Sigma>,
    pub lambda: Varying<'a, f64>,
    pub source: Varying<'a, f64>,
    pub(super) slopes: CompiledSlopes<'a>,
    /// Whether λ may be negative.
    has_any_reaction: bool,
    pub(super) rule: Quadrature,
}

/// A coefficient by how it varies.
pub(crate) enum Varying<'a, V> {
    Constant(V),
    /// One value per cell.
    ByCell(Compiled<'a>),
    /// Evaluated at the points of a rule.
    ByPoint(Compiled<'a>),
}

/// A conductivity: a number, or the upper triangle xx, yy, zz, yz, xz, xy of a symmetric tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Sigma {
    Scalar(f64),
    Tensor([f64; 6]),
}

/// Coefficients of a chunk of cells, as input of the element kernel.
#[derive(Debug, Clone)]
pub(crate) struct ChunkCoefficients {
    /// Whether the first row of `sigma` holds scalars instead of tensors.
    pub sigma_is_scalar: bool,
    /// Means of σ, one row per entry of the tensor.
    pub sigma: Box<[[f64; CHUNK]; 6]>,
    /// Means of $\lambda\varphi_a\varphi_b$: the diagonal by corner, then 01, 02, 03, 12, 13, 23 (01, 02, 12).
    pub mass: Box<[[f64; CHUNK]; 10]>,
    /// Means of $f\varphi_a$ by corner.
    pub load: Box<[[f64; CHUNK]; 4]>,
    /// Means of $\sigma_u\varphi_a$ by corner, of each entry of the tensor or of the scalar; empty without a derivative.
    pub drift: Vec<[[f64; CHUNK]; 4]>,
}

/// A coefficient to evaluate in some cells with a rule, at a function.
type Task<'c, 'a> = (&'c Compiled<'a>, &'c [u32], Option<&'c Quadrature>, &'c [f64]);

/// Workspace of evaluation.
#[derive(Debug, Default)]
pub(crate) struct ChunkScratch {
    pub(super) points: Points,
    pub(super) scalars: Vec<f64>,
    pub(super) tensors: Vec<[[f64; 3]; 3]>,
    pub(super) loads: Vec<f64>,
    pub(super) slopes: Vec<f64>,
    pub(super) tape: TapeScratch,
}

impl<'a> CellCoefficients<'a> {
    /// Compiles the coefficients of a form.
    pub fn new(form: &Form<'a>) -> Result<Self, FemError> {
        Self::compile(form, CompiledSlopes::default(), false)
    }

    /// Compiles the coefficients of a form for its linearization, in which λ may have any sign.
    pub fn linearized(form: &Form<'a>, slopes: &'a Slopes) -> Result<Self, FemError> {
        let slopes = CompiledSlopes::new(form, slopes)?;
        Self::compile(form, slopes, true)
    }

    fn compile(
        form: &Form<'a>,
        slopes: CompiledSlopes<'a>,
        has_any_reaction: bool,
    ) -> Result<Self, FemError> {
        let mesh = form.mesh;
        let centre = centroid(mesh, 0);
        let has_slopes = slopes.has_reaction();
        let constant = |field, coefficient: &'a Coefficient| -> Result<_, FemError> {
            let compiled = Compiled::scalar(field, coefficient, mesh)?;
            Ok(match coefficient.as_constant() {
                _ if has_slopes => Varying::ByPoint(compiled),
                Some(_) => {
                    let mut value = [0.0];
                    compiled.eval_scalar(&mut value, &centre, &mut TapeScratch::default())?;
                    Varying::Constant(value[0])
                }
                None if coefficient.is_constant_by_cell() => Varying::ByCell(compiled),
                None => Varying::ByPoint(compiled),
            })
        };
        let (lambda, source) = (constant("lambda", form.lambda)?, constant("source", form.source)?);
        if let Varying::Constant(value) = lambda
            && !has_any_reaction
        {
            not_negative("lambda", &[value], &centre)?;
        }
        let sigma = match is_projection(form.sigma, form.lambda) {
            true => Varying::Constant(Sigma::Scalar(0.0)),
            false => compile_sigma(form.sigma, mesh, &centre)?,
        };
        let rule = rule_for(mesh.dimension());
        Ok(Self { mesh, form: *form, sigma, lambda, source, slopes, has_any_reaction, rule })
    }

    /// Returns whether λ is a positive constant.
    pub fn reacts_everywhere(&self) -> bool {
        matches!(self.lambda, Varying::Constant(value) if value > 0.0)
    }

    /// Returns coefficients of a chunk with all constant parts filled in.
    pub fn start_chunk(&self) -> ChunkCoefficients {
        let mut chunk = ChunkCoefficients {
            sigma_is_scalar: true,
            sigma: Box::new([[0.0; CHUNK]; 6]),
            mass: Box::new([[0.0; CHUNK]; 10]),
            load: Box::new([[0.0; CHUNK]; 4]),
            drift: self.slopes.start_drift(),
        };
        match &self.sigma {
            Varying::Constant(Sigma::Scalar(value)) => chunk.sigma[0].fill(*value),
            Varying::Constant(Sigma::Tensor(tensor)) => {
                chunk.sigma_is_scalar = false;
                chunk.sigma.iter_mut().zip(tensor).for_each(|(row, value)| row.fill(*value));
            }
            Varying::ByCell(compiled) | Varying::ByPoint(compiled) => {
                chunk.sigma_is_scalar = compiled.is_scalar();
            }
        }
        if let Varying::Constant(value) = self.lambda {
            self.fill_mass(&mut chunk.mass, |_| value, 0..CHUNK);
        }
        if let Varying::Constant(value) = self.source {
            let share = value / (self.mesh.dimension() + 1) as f64;
            chunk.load.iter_mut().for_each(|row| row.fill(share));
        }
        chunk
    }

    /// Evaluates the varying parts in a state for at most [`CHUNK`] cells.
    ///
    /// # Errors
    /// The first cell, in the order given, with a coefficient that is not finite, negative or not positive
    /// definite.
    pub fn eval(
        &self,
        chunk: &mut ChunkCoefficients,
        cells: &[u32],
        state: State<'_>,
        scratch: &mut ChunkScratch,
    ) -> Result<(), FemError> {
        scratch.points.time = state.time;
        let u = state.unknown;
        if let Some((sigma, rule)) = self.varying(&self.sigma) {
            self.eval_sigma(chunk, (sigma, cells, rule, u), scratch)?;
        }
        self.eval_drift(chunk, cells, scratch, u)?;
        if self.slopes.has_reaction() {
            return self.eval_linearized(chunk, cells, scratch, u);
        }
        if let Some((lambda, rule)) = self.varying(&self.lambda) {
            self.eval_lambda(chunk, (lambda, cells, rule, u), scratch)?;
        }
        if let Some((source, rule)) = self.varying(&self.source) {
            scratch.place_points(self.mesh, cells, rule, u);
            scratch.scalars.resize(scratch.points.len(), 0.0);
            source.eval_scalar(&mut scratch.scalars, &scratch.points, &mut scratch.tape)?;
            self.take_source(chunk, &scratch.scalars, cells.len(), rule);
        }
        Ok(())
    }

    /// Returns a coefficient that is not constant with the rule that averages it, if its values vary in cells.
    fn varying<'c, V>(
        &'c self,
        of: &'c Varying<'a, V>,
    ) -> Option<(&'c Compiled<'a>, Option<&'c Quadrature>)> {
        match of {
            Varying::Constant(_) => None,
            Varying::ByCell(compiled) => Some((compiled, None)),
            Varying::ByPoint(compiled) => Some((compiled, Some(&self.rule))),
        }
    }

    fn eval_sigma(
        &self,
        chunk: &mut ChunkCoefficients,
        (compiled, cells, rule, unknown): Task<'_, '_>,
        scratch: &mut ChunkScratch,
    ) -> Result<(), FemError> {
        scratch.place_points(self.mesh, cells, rule, unknown);
        let n = scratch.points.len();
        let n_q = n / cells.len().max(1);
        if compiled.is_scalar() {
            scratch.scalars.resize(n, 0.0);
            compiled.eval_scalar(&mut scratch.scalars, &scratch.points, &mut scratch.tape)?;
            positive(&scratch.scalars, &scratch.points)?;
            for (mean, values) in chunk.sigma[0].iter_mut().zip(scratch.scalars.chunks(n_q)) {
                *mean = weighted(values.iter().copied(), rule);
            }
            return Ok(());
        }
        let dimension = self.mesh.dimension();
        scratch.tensors.resize(n, [[0.0; 3]; 3]);
        compiled.eval_tensor(&mut scratch.tensors, &scratch.points, dimension, &mut scratch.tape)?;
        definite(&scratch.tensors, &scratch.points, dimension)?;
        for (lane, tensors) in scratch.tensors.chunks(n_q).enumerate() {
            for (entry, &(i, j)) in VOIGT.iter().enumerate() {
                chunk.sigma[entry][lane] = weighted(tensors.iter().map(|t| 0.5 * (t[i][j] + t[j][i])), rule);
            }
        }
        Ok(())
    }

    fn eval_lambda(
        &self,
        chunk: &mut ChunkCoefficients,
        (compiled, cells, rule, unknown): Task<'_, '_>,
        scratch: &mut ChunkScratch,
    ) -> Result<(), FemError> {
        scratch.place_points(self.mesh, cells, rule, unknown);
        scratch.scalars.resize(scratch.points.len(), 0.0);
        compiled.eval_scalar(&mut scratch.scalars, &scratch.points, &mut scratch.tape)?;
        if !self.has_any_reaction {
            not_negative("lambda", &scratch.scalars, &scratch.points)?;
        }
        self.take_reaction(chunk, &scratch.scalars, cells.len(), rule);
        Ok(())
    }

    pub(super) fn fill_mass(
        &self,
        mass: &mut [[f64; CHUNK]; 10],
        lambda: impl Fn(usize) -> f64,
        lanes: std::ops::Range<usize>,
    ) {
        let element = P1 { dimension: self.mesh.dimension() };
        for (moment, (a, b)) in mass_entries(self.mesh.dimension()) {
            lanes.clone().for_each(|lane| mass[moment][lane] = lambda(lane) * element.mass_mean(a, b));
        }
    }
}

/// Row and column of the entries xx, yy, zz, yz, xz, xy.
pub(crate) const VOIGT: [(usize, usize); 6] = [(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)];

/// Iterates over the moments of λ and their pairs of corners; off-diagonal moments begin at 4 in any dimension.
pub(crate) fn mass_entries(dimension: usize) -> impl Iterator<Item = (usize, (usize, usize))> {
    let n = dimension + 1;
    let pairs = (0..n).flat_map(move |a| (a + 1..n).map(move |b| (a, b)));
    (0..n).map(|a| (a, (a, a))).chain(pairs.enumerate().map(|(i, pair)| (4 + i, pair)))
}

fn weighted(values: impl Iterator<Item = f64>, rule: Option<&Quadrature>) -> f64 {
    match rule {
        None => values.sum(),
        Some(rule) => values.zip(&rule.weights).map(|(value, weight)| value * weight).sum(),
    }
}

fn compile_sigma<'a>(
    sigma: &'a Coefficient,
    mesh: &'a Mesh,
    centre: &Points,
) -> Result<Varying<'a, Sigma>, FemError> {
    let compiled = Compiled::tensor("sigma", sigma, mesh)?;
    match sigma {
        _ if sigma.as_constant().is_some() || matches!(sigma, Coefficient::Tensor(_)) => {
            let mut tensor = [[[0.0; 3]; 3]];
            compiled.eval_tensor(&mut tensor, centre, mesh.dimension(), &mut TapeScratch::default())?;
            definite(&tensor, centre, mesh.dimension())?;
            Ok(Varying::Constant(match sigma.as_constant() {
                Some(value) => Sigma::Scalar(value),
                None => Sigma::Tensor(VOIGT.map(|(i, j)| 0.5 * (tensor[0][i][j] + tensor[0][j][i]))),
            }))
        }
        _ if sigma.is_constant_by_cell() => Ok(Varying::ByCell(compiled)),
        _ => Ok(Varying::ByPoint(compiled)),
    }
}

use std::fmt;

use femtile_device::{Device, Scalar};
use femtile_linalg::sparse::csr::Csr;

use crate::check;
use crate::config::MOST_COARSE_ROWS;
use crate::kernels::AmgKernels;
use crate::relaxation::Relaxation;
use crate::setup::aggregate::aggregate;
use crate::setup::coarse;
use crate::setup::galerkin::galerkin;
use crate::setup::graph::{Aggregates, Graph};
use crate::setup::prolong::Smoothing;
use crate::setup::rows::{RowAccess, Rows};
use crate::setup::spectrum::Scaling;
use crate::setup::strength::Strength;
use crate::setup::tentative::{NearNullspace, Tentative};
use crate::{AmgConfig, AmgError};

/// Neighbours of a node, on average, from which on aggregates are a root with its neighbours.
const MANY_NEIGHBOURS: usize = 9;
/// The threshold of connections on coarser levels relative to that on the first: entries between groups are smaller.
const COARSER: f64 = 0.25;
/// The threshold of what prolongators are smoothed by, relative to that of connections on the first level: smoothed by
/// connections alone, they would not follow solutions beside a jump.
const SMOOTHED: f64 = 0.25;
/// The former on a level relative to that on the one before.
const WEAKER: f64 = 0.5;
/// Levels end where the next one has more than this share of the rows.
const LEAST_GAIN: f64 = 0.8;

/// The matrices of all levels, the given one first, in the precision `H`.
///
/// # Source
/// Smoothed aggregation: `[vanek1996]`; aggregates: `[fu2014]`, section 5.
#[derive(Debug)]
pub struct Hierarchy<H: Scalar, D: Device> {
    pub(crate) levels: Vec<Level<H, D>>,
    pub(crate) coarsest: Coarsest<H, D>,
    aggregates: Vec<Aggregates>,
    /// The first matrix is the given one times this power of two.
    pub(crate) scale: f64,
    shapes: Vec<LevelShape>,
    pub(crate) config: AmgConfig,
}

/// A level that is smoothed, and the way to the next one.
#[derive(Debug)]
pub(crate) struct Level<H: Scalar, D: Device> {
    pub a: Csr<H, D>,
    pub relaxation: Relaxation<H, D>,
    pub prolongation: Csr<H, D>,
    pub restriction: Csr<H, D>,
}

/// The level that has no coarser one.
#[derive(Debug)]
pub(crate) enum Coarsest<H: Scalar, D: Device> {
    /// Its inverse.
    Direct(Csr<H, D>),
    /// A matrix too large for that, which is smoothed only.
    Smoothed { a: Csr<H, D>, relaxation: Relaxation<H, D> },
}

/// What a level is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelShape {
    /// Rows of its matrix.
    pub n_rows: usize,
    /// Non-zeros of its matrix.
    pub n_nonzeros: usize,
    /// Aggregates of its nodes, which are the nodes of the next level; 0 on the coarsest one.
    pub n_aggregates: usize,
    /// Non-zeros of the prolongator from the next level.
    pub n_prolongator: usize,
}

impl<H: Scalar, D: AmgKernels<H>> Hierarchy<H, D> {
    /// Sets levels up for a symmetric positive (semi)definite matrix; with `near_nullspace`, vectors that the smoother
    /// hardly changes, `n_vectors` values a row, else with constants.
    ///
    /// # Errors
    /// A matrix that cannot be one of these, see [`AmgError`]; settings out of range; what the device reports.
    pub fn new<T: Scalar>(
        device: &D,
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        Self::build(device, a, near_nullspace, config, None)
    }

    /// Takes over other values on the same pattern: aggregates stay, all else is computed anew; aggregates as well where
    /// the number of rows is another one.
    ///
    /// # Errors
    /// As [`Hierarchy::new`].
    pub fn refill<T: Scalar>(
        &mut self,
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
    ) -> Result<(), AmgError> {
        let device = a.values().device();
        *self = Self::build(device, a, near_nullspace, &self.config, Some(&self.aggregates))?;
        Ok(())
    }

    fn build<T: Scalar>(
        device: &D,
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
        known: Option<&[Aggregates]>,
    ) -> Result<Self, AmgError> {
        if a.n_rows() != a.n_cols() {
            return Err(AmgError::NotSquare { n_rows: a.n_rows(), n_cols: a.n_cols() });
        }
        config.check_for(a.n_rows())?;
        let near_nullspace = near_nullspace_of(a.n_rows(), near_nullspace, config)?;
        let (rows, scale) = Rows::of(a)?;
        let mut setup = Setup {
            device,
            config,
            scale,
            known,
            levels: Vec::new(),
            aggregates: Vec::new(),
            shapes: Vec::new(),
        };
        let coarsest = device.amg_on_host(|| setup.run(rows, near_nullspace))?;
        let Setup { levels, aggregates, shapes, .. } = setup;
        Ok(Self { levels, coarsest, aggregates, scale, shapes, config: config.clone() })
    }

    /// The levels, the finest first.
    pub fn shapes(&self) -> &[LevelShape] {
        &self.shapes
    }

    /// Non-zeros of all levels over those of the first: what a cycle costs, relative to the matrix.
    pub fn operator_complexity(&self) -> f64 {
        let all: usize = self.shapes.iter().map(|shape| shape.n_nonzeros).sum();
        all as f64 / self.shapes.first().map_or(1, |shape| shape.n_nonzeros.max(1)) as f64
    }

    /// Rows of all levels over those of the first.
    pub fn grid_complexity(&self) -> f64 {
        let all: usize = self.shapes.iter().map(|shape| shape.n_rows).sum();
        all as f64 / self.shapes.first().map_or(1, |shape| shape.n_rows.max(1)) as f64
    }
}

/// The table of levels.
impl<H: Scalar, D: AmgKernels<H>> fmt::Display for Hierarchy<H, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "level        rows    non-zeros  a row  aggregates  rows each")?;
        for (number, shape) in self.shapes.iter().enumerate() {
            let LevelShape { n_rows, n_nonzeros, n_aggregates, .. } = *shape;
            let per_row = n_nonzeros as f64 / n_rows.max(1) as f64;
            write!(f, "{number:>5}  {n_rows:>10}  {n_nonzeros:>11}  {per_row:>5.1}")?;
            if n_aggregates > 0 {
                write!(f, "  {n_aggregates:>10}  {:>9.1}", n_rows as f64 / n_aggregates as f64)?;
            }
            writeln!(f)?;
        }
        write!(
            f,
            "operator complexity {:.2}, grid complexity {:.2}",
            self.operator_complexity(),
            self.grid_complexity()
        )
    }
}

fn near_nullspace_of(
    n_rows: usize,
    given: Option<&[f64]>,
    config: &AmgConfig,
) -> Result<NearNullspace, AmgError> {
    let Some(values) = given else { return Ok(NearNullspace::constants(n_rows, config.block_size)) };
    let wrong = |message: String| Err(AmgError::Setting { field: "near_nullspace", message });
    if n_rows == 0 || values.is_empty() || !values.len().is_multiple_of(n_rows) {
        return wrong(format!("{} values are not some for each of the {n_rows} rows", values.len()));
    }
    if let Some(i) = values.iter().position(|value| !value.is_finite()) {
        return wrong(format!("value {i} is {}, not a finite number", values[i]));
    }
    Ok(NearNullspace { n_vectors: values.len() / n_rows, values: values.to_vec() })
}

/// A hierarchy on its way.
struct Setup<'a, H: Scalar, D: Device> {
    device: &'a D,
    config: &'a AmgConfig,
    /// The first matrix is the given one times this power of two.
    scale: f64,
    known: Option<&'a [Aggregates]>,
    levels: Vec<Level<H, D>>,
    aggregates: Vec<Aggregates>,
    shapes: Vec<LevelShape>,
}

impl<H: Scalar, D: AmgKernels<H>> Setup<'_, H, D> {
    fn run(&mut self, mut a: Rows<H>, mut b: NearNullspace) -> Result<Coarsest<H, D>, AmgError> {
        let mut block = self.config.block_size;
        loop {
            let number = self.levels.len();
            let diagonal = match check::diagonal(&a, self.scale) {
                // Rows of coarser levels are none of the matrix that was given.
                Err(AmgError::Diagonal { row, .. }) if number > 0 => {
                    let pivot = check::diagonal_entry(&a, row);
                    return Err(AmgError::Indefinite { n_rows: a.n_rows(), row, pivot });
                }
                checked => checked?,
            };
            if number == 0 {
                check::symmetry(&a, self.scale)?;
            }
            if a.n_rows() <= self.config.coarse_rows || number + 1 == self.config.max_levels {
                return self.end(a, &diagonal);
            }
            let strength = Strength::new(&a, &diagonal, block, self.thresholds(number));
            let known = self.known.and_then(|known| known.get(number));
            let aggregates = match known.filter(|known| known.of_node.len() * block == a.n_rows()) {
                Some(known) => known.clone(),
                None => aggregate(&strength.graph, distance(&strength.graph), self.config.least_aggregate),
            };
            let n_coarse = aggregates.n * b.n_vectors;
            if n_coarse as f64 > LEAST_GAIN * a.n_rows() as f64 || n_coarse == 0 {
                return self.end(a, &diagonal);
            }
            (a, b) = self.coarsen(a, &diagonal, &b, (&aggregates, &strength), block)?;
            self.aggregates.push(aggregates);
            block = b.n_vectors;
        }
    }

    /// Of connections and of what prolongators are smoothed by.
    fn thresholds(&self, level: usize) -> [f64; 2] {
        let theta = self.config.strength;
        let of_groups = if level == 0 { theta } else { COARSER * theta };
        [of_groups, SMOOTHED * WEAKER.powi(level as i32) * theta]
    }

    /// Adds a level and gives the matrix of the next one with its near-nullspace.
    fn coarsen(
        &mut self,
        a: Rows<H>,
        diagonal: &[H],
        b: &NearNullspace,
        (aggregates, strength): (&Aggregates, &Strength),
        block: usize,
    ) -> Result<(Rows<H>, NearNullspace), AmgError> {
        let scaling = Scaling::new(&a, diagonal);
        let tentative = Tentative::new(b, aggregates, block);
        let is_strong = &strength.is_strong;
        let p = Smoothing {
            a: &a,
            is_strong,
            aggregates,
            tentative: &tentative,
            block,
            largest: scaling.largest,
        }
        .prolongator();
        let r = p.transpose();
        let mut coarse = galerkin(&a, &p, &r);
        if tentative.n_zero > 0 {
            fill_zero_rows(&mut coarse);
        }
        self.shapes.push(LevelShape {
            n_rows: a.n_rows(),
            n_nonzeros: a.columns.len(),
            n_aggregates: aggregates.n,
            n_prolongator: p.columns.len(),
        });
        self.levels.push(Level {
            relaxation: Relaxation::new(self.device, self.config.smoother, &a, diagonal, scaling)?,
            a: a.into_device(self.device)?,
            prolongation: p.into_device(self.device)?,
            restriction: r.into_device(self.device)?,
        });
        Ok((coarse, tentative.coarse))
    }

    fn end(&mut self, a: Rows<H>, diagonal: &[H]) -> Result<Coarsest<H, D>, AmgError> {
        let n_rows = a.n_rows();
        self.shapes.push(LevelShape {
            n_rows,
            n_nonzeros: a.columns.len(),
            n_aggregates: 0,
            n_prolongator: 0,
        });
        if n_rows <= MOST_COARSE_ROWS {
            let inverse =
                coarse::inverse(&a).map_err(|(row, pivot)| AmgError::Indefinite { n_rows, row, pivot })?;
            return Ok(Coarsest::Direct(inverse.into_device(self.device)?));
        }
        let relaxation =
            Relaxation::new(self.device, self.config.smoother, &a, diagonal, Scaling::new(&a, diagonal))?;
        Ok(Coarsest::Smoothed { relaxation, a: a.into_device(self.device)? })
    }
}

/// Roots of aggregates are at a distance of more than two from each other, `[fu2014]`, section 5.2.1; of more than three
/// where aggregates would be small otherwise.
fn distance(graph: &Graph) -> usize {
    if graph.neighbours.len() < MANY_NEIGHBOURS * graph.n_nodes() { 3 } else { 2 }
}

/// Puts a one on the diagonal of rows that a zero column of the prolongator left without entries.
fn fill_zero_rows<H: Scalar>(a: &mut Rows<H>) {
    for row in 0..a.n_rows() {
        let range = a.offsets[row]..a.offsets[row + 1];
        let own = range.clone().find(|&at| a.columns[at] as usize == row);
        if let Some(at) = own.filter(|_| range.clone().all(|at| a.values[at] == H::ZERO)) {
            a.values[at] = H::ONE;
        }
    }
}

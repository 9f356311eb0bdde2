//! The locally optimal block preconditioned conjugate gradient method.

use std::time::{Duration, Instant};

use femtile_device::Buffer;

use super::dense::{Dense, symmetric_eigen};
use super::kernels::BlockKernels;
use super::orthonormal::{PASSES, complement, orthonormal};
use crate::comm::Communicator;
use crate::krylov::{Monitor, Stop, over_ranks};
use crate::{LinalgError, LinearOperator, Preconditioner, need};

/// Settings of [`Lobpcg`].
#[derive(Debug, Clone, PartialEq)]
pub struct LobpcgConfig {
    /// The number of eigenvalues.
    pub count: usize,
    /// Bound of $\|A x - \lambda M x\|$ relative to $\max(|\lambda_1|, \dots, |\lambda_{count}|)\,\|M x\|$. The error of an eigenvalue is of the order of its square.
    pub tolerance: f64,
    /// The most iterations.
    pub max_iterations: usize,
    /// The longest time.
    pub time_limit: Option<Duration>,
}

/// A symmetric eigenvalue problem $A x = \lambda M x$, with M positive definite on the span of the vectors of the method.
#[derive(Clone, Copy)]
pub struct Pencil<'a, D: BlockKernels, C: Communicator> {
    /// A.
    pub a: &'a dyn LinearOperator<f64, D>,
    /// M.
    pub m: &'a dyn LinearOperator<f64, D>,
    /// An approximate inverse of A, or of A + s M, symmetric and positive definite.
    pub preconditioner: &'a dyn Preconditioner<f64, D>,
    /// The ranks that own the rows.
    pub comm: &'a C,
}

/// The smallest eigenvalues that were found, with their vectors.
#[derive(Debug)]
pub struct Eigenpairs<D: BlockKernels> {
    /// The eigenvalues, ascending.
    pub values: Vec<f64>,
    /// The eigenvectors, $x_i^\mathsf{T} M x_j = \delta_{ij}$.
    pub vectors: Vec<Buffer<f64, D>>,
    /// The residual of each, as [`LobpcgConfig::tolerance`] bounds it; rounding counts as the tolerance.
    pub residuals: Vec<f64>,
    /// The norm of A on the vectors of the start, and so the size of rounding errors of eigenvalues relative to ε: a lower bound of
    /// $\|A\|$.
    pub size: f64,
    /// The largest of these residuals before the first and after every iteration.
    pub history: Vec<f64>,
    /// Why the method ended.
    pub stop: Stop,
}

/// The locally optimal block preconditioned conjugate gradient method: the smallest eigenvalues of a [`Pencil`], by the
/// Rayleigh–Ritz procedure on the span of the iterates X, their preconditioned residuals W and the directions P of the last step.
///
/// The basis [X P W] is made orthonormal in M in each iteration, and P is the part of the step that is orthogonal to the new X, so
/// that the small problem is a standard one and the method does not break down as residuals become small. Iterates whose
/// residual meets the tolerance have no W and no P any more, but stay in X. Products with A and M are combined with the vectors;
/// those of X are computed afresh before the method ends.
///
/// # Cost
/// Per iteration and unconverged vector an application of the preconditioner, a product with A and two with M. For a block
/// of k vectors memory for 13 k vectors, and up to 60 k² operations per unknown.
/// # Source
/// `[knyazev2001]`, Alg. 4.1; the basis `[duersch2018]`, section 4.
#[derive(Debug, Clone)]
pub struct Lobpcg {
    config: LobpcgConfig,
}

/// Multiple of ε and of the size of A that the rounding of residuals may reach.
const ROUNDING: f64 = 8.0;

/// Iterations without a smaller residual after which the method ends.
const STAGNATION: usize = 60;

type Vectors<D> = Vec<Buffer<f64, D>>;

/// Orthonormal vectors with their products with M, or a value that shows that M is not positive semidefinite.
type Orthonormal<D> = Result<(Vectors<D>, Vectors<D>), f64>;

/// Vectors with their products.
struct Block<D: BlockKernels> {
    v: Vectors<D>,
    /// A times each.
    a: Vectors<D>,
    /// M times each.
    m: Vectors<D>,
}

impl<D: BlockKernels> Block<D> {
    fn empty() -> Self {
        Self { v: Vec::new(), a: Vec::new(), m: Vec::new() }
    }
}

fn all<D: BlockKernels>(vectors: &Vectors<D>) -> Vec<&Buffer<f64, D>> {
    vectors.iter().collect()
}

/// Residuals of the iterates.
struct Residuals<D: BlockKernels> {
    vectors: Vectors<D>,
    norms: Vec<f64>,
    /// As the tolerance bounds them.
    relative: Vec<f64>,
}

impl Lobpcg {
    /// Creates the method with the given settings.
    pub fn new(config: LobpcgConfig) -> Self {
        Self { config }
    }

    /// Iterates from the vectors of a start, some more than the number of eigenvalues: with a fifth more it takes far fewer iterations,
    /// and eigenvalues of a multiplicity as large are not missed. Fewer pairs are found if the start spans fewer dimensions.
    /// Collective.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when vectors do not fit. Not converging is no error: see [`Eigenpairs::stop`].
    pub fn solve<D: BlockKernels, C: Communicator>(
        &self,
        start: Vec<Buffer<f64, D>>,
        pencil: Pencil<'_, D, C>,
        monitor: &mut dyn Monitor,
    ) -> Result<Eigenpairs<D>, LinalgError> {
        start.iter().try_for_each(|x| need("start", pencil.a.n_rows(), x.len()))?;
        let size = pencil.size(&start)?;
        let (begun, tolerance) = (Instant::now(), self.config.tolerance);
        let (mut x, mut p) = (Block::empty(), Block::empty());
        let mut stop = None;
        match pencil.orthonormal(start, &[])? {
            Ok((v, m)) => x = Block { a: pencil.products(pencil.a, &v)?, v, m },
            Err(value) => stop = Some(Stop::Breakdown { quantity: "xᵀMx", value }),
        }
        let (mut values, c) = pencil.ritz(&[&x])?;
        x = pencil.combined(&[&x], &c)?;
        let count = self.config.count.min(x.v.len());
        let (mut history, mut is_fresh, mut best) = (Vec::new(), false, (f64::INFINITY, 0));
        let mut found;
        loop {
            found = pencil.residuals(&x, &values, (count, size, tolerance))?;
            let largest = |worst: f64, &own: &f64| if own.is_nan() || own > worst { own } else { worst };
            let worst = found.relative[..count].iter().fold(0.0, largest);
            if worst <= tolerance && !is_fresh && stop.is_none() {
                (x.a, x.m) = (pencil.products(pencil.a, &x.v)?, pencil.products(pencil.m, &x.v)?);
                is_fresh = true;
                continue;
            }
            let iteration = history.len();
            history.push(worst);
            let asked = monitor.iteration(iteration, worst).break_value();
            if worst < best.0 {
                best = (worst, iteration);
            }
            let is_finite = found.norms.iter().all(|norm| norm.is_finite());
            stop = stop.or_else(|| match worst {
                _ if !is_finite => Some(Stop::Breakdown { quantity: "a residual", value: f64::NAN }),
                worst if worst <= tolerance => Some(Stop::Converged),
                _ if asked.is_some() => asked,
                _ if iteration >= self.config.max_iterations => Some(Stop::MaxIterations),
                _ if self.config.time_limit.is_some_and(|limit| begun.elapsed() >= limit) => {
                    Some(Stop::TimeLimit)
                }
                _ if iteration - best.1 >= STAGNATION => Some(Stop::Stagnated),
                _ => None,
            });
            if stop.is_some() {
                break;
            }
            let active: Vec<usize> = (0..x.v.len()).filter(|&j| found.relative[j] > tolerance).collect();
            let w = pencil.preconditioned(&found, &active)?;
            let w = match pencil.orthonormal(w, &[&x, &p])? {
                Ok((v, m)) => Block { a: pencil.products(pencil.a, &v)?, v, m },
                Err(value) => {
                    stop = Some(Stop::Breakdown { quantity: "xᵀMx", value });
                    Block::empty()
                }
            };
            if w.v.is_empty() {
                // The iterates span all that the preconditioner reaches.
                stop = stop.or(Some(Stop::Stagnated));
            }
            let n = x.v.len();
            let basis = [&x, &p, &w];
            let (ritz, c) = pencil.ritz(&basis)?;
            let next = c.columns(0..n);
            let step =
                Dense::of([c.n_rows(), active.len()], |i, j| if i < n { 0.0 } else { c[(i, active[j])] });
            let direction = complement(&next, step);
            (x, p) = (pencil.combined(&basis, &next)?, pencil.combined(&basis, &direction)?);
            values = ritz[..n].to_vec();
            is_fresh = false;
        }
        values.truncate(count);
        x.v.truncate(count);
        found.relative.truncate(count);
        let stop = stop.unwrap_or(Stop::Converged);
        Ok(Eigenpairs { values, vectors: x.v, residuals: found.relative, size, history, stop })
    }
}

impl<D: BlockKernels, C: Communicator> Pencil<'_, D, C> {
    /// Returns the largest $\|A x\| / \|x\|$ of some vectors.
    fn size(&self, vectors: &Vectors<D>) -> Result<f64, LinalgError> {
        let products = self.products(self.a, vectors)?;
        let (of_products, of_vectors) = (self.norms(&products)?, self.norms(vectors)?);
        let ratios = of_products.iter().zip(of_vectors).map(|(product, x)| product / x);
        Ok(ratios.filter(|ratio| ratio.is_finite()).fold(0.0, f64::max))
    }

    fn products(
        &self,
        of: &dyn LinearOperator<f64, D>,
        vectors: &Vectors<D>,
    ) -> Result<Vectors<D>, LinalgError> {
        let product = |x: &Buffer<f64, D>| {
            let mut y = Buffer::zeros(x.device(), x.len())?;
            of.apply(&mut y, x)?;
            Ok(y)
        };
        vectors.iter().map(product).collect()
    }

    fn norms(&self, vectors: &Vectors<D>) -> Result<Vec<f64>, LinalgError> {
        let squares = vectors.iter().map(|x| x.device().dot(x, x)).collect::<Result<Vec<_>, _>>()?;
        let sums = over_ranks(self.a.device(), &squares, self.comm)?;
        Ok(sums.into_iter().map(f64::sqrt).collect())
    }

    /// Returns $X^\mathsf{T} Y$ over all ranks.
    fn gram(&self, x: &[&Buffer<f64, D>], y: &[&Buffer<f64, D>]) -> Result<Dense, LinalgError> {
        let own = self.a.device().gram(x, y)?;
        let sums = over_ranks(self.a.device(), own.values(), self.comm)?;
        Ok(Dense::of_values(y.len(), sums))
    }

    /// Returns vectors made orthonormal in M among each other and to blocks that are, with their products with M; of dependent ones
    /// fewer. The error is a value that shows that M is not positive semidefinite.
    fn orthonormal(&self, mut w: Vectors<D>, blocks: &[&Block<D>]) -> Result<Orthonormal<D>, LinalgError> {
        let device = self.a.device();
        let mut products = Vec::new();
        for _ in 0..PASSES {
            for block in blocks.iter().filter(|block| !block.v.is_empty()) {
                let c = self.gram(&all(&block.m), &all(&w))?;
                let along = device.multiply(&all(&block.v), &c)?;
                w.iter_mut().zip(&along).try_for_each(|(w, along)| device.axpby(w, -1.0, along, 1.0))?;
            }
            products = self.products(self.m, &w)?;
            let c = match orthonormal(&self.gram(&all(&w), &all(&products))?) {
                Ok(c) => c,
                Err(value) => return Ok(Err(value)),
            };
            w = device.multiply(&all(&w), &c)?;
            products = device.multiply(&all(&products), &c)?;
        }
        Ok(Ok((w, products)))
    }

    /// Returns the eigenvalues of A on the span of blocks that are orthonormal in M together, and the coefficients of the eigenvectors.
    fn ritz(&self, basis: &[&Block<D>]) -> Result<(Vec<f64>, Dense), LinalgError> {
        let v: Vec<_> = basis.iter().flat_map(|block| &block.v).collect();
        let a: Vec<_> = basis.iter().flat_map(|block| &block.a).collect();
        Ok(symmetric_eigen(&self.gram(&v, &a)?))
    }

    /// Returns combinations of the vectors of blocks, with their products.
    fn combined(&self, basis: &[&Block<D>], c: &Dense) -> Result<Block<D>, LinalgError> {
        let combined = |of: fn(&Block<D>) -> &Vectors<D>| {
            let vectors: Vec<_> = basis.iter().flat_map(|block| of(block)).collect();
            self.a.device().multiply(&vectors, c)
        };
        Ok(Block { v: combined(|b| &b.v)?, a: combined(|b| &b.a)?, m: combined(|b| &b.m)? })
    }

    /// Returns $A x - \lambda M x$ of the iterates with their Ritz values.
    fn residuals(
        &self,
        x: &Block<D>,
        values: &[f64],
        (count, size, tolerance): (usize, f64, f64),
    ) -> Result<Residuals<D>, LinalgError> {
        let residual = |(j, &value): (usize, &f64)| {
            let (a, m) = (&x.a[j], &x.m[j]);
            let mut r = Buffer::zeros(a.device(), a.len())?;
            a.device().combine(&mut r, &[(1.0, a), (-value, m)])?;
            Ok(r)
        };
        let vectors = values.iter().enumerate().map(residual).collect::<Result<Vec<_>, LinalgError>>()?;
        let norms = self.norms(&vectors)?;
        let of_value = values[..count].iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let sizes = self.norms(&x.m)?.into_iter().zip(self.norms(&x.v)?);
        let relative = |(&norm, (of_m, of_x)): (&f64, (f64, f64))| {
            let rounding = ROUNDING * f64::EPSILON * size * of_x / tolerance;
            if norm == 0.0 { 0.0 } else { norm / (of_value * of_m).max(rounding) }
        };
        let relative = norms.iter().zip(sizes).map(relative).collect();
        Ok(Residuals { vectors, norms, relative })
    }

    /// Applies the preconditioner to some residuals.
    fn preconditioned(&self, of: &Residuals<D>, active: &[usize]) -> Result<Vectors<D>, LinalgError> {
        let apply = |&j: &usize| {
            let r = &of.vectors[j];
            let mut w = Buffer::zeros(r.device(), r.len())?;
            self.preconditioner.set_residual_norm(of.norms[j]);
            self.preconditioner.apply(&mut w, r)?;
            Ok(w)
        };
        active.iter().map(apply).collect()
    }
}

//! Iterations of conjugate gradients, timed: of any method on an operator without a matrix.

use std::ops::ControlFlow;
use std::time::Instant;

use femtile::device::{Buffer, Cpu};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile::linalg::krylov::merged_cg::MergedCg;
use femtile::linalg::krylov::pipelined_cg::PipelinedCg;
use femtile::linalg::krylov::s_step_cg::{SStepCg, SStepCgConfig};
use femtile::linalg::krylov::{Monitor, Stop};
use femtile::linalg::precondition::{Diagonal, SharedDiagonal};
use femtile::linalg::vector::VectorKernels;
use femtile::linalg::{LinearOperator, Preconditioner};
use femtile::matrix_free::MatrixFree;

use crate::BenchError;
use crate::Samples;
use crate::problems::bake_off::Method;

/// Iterations of one solve: then rounding has not ended it.
pub const ITERATIONS: usize = 12;

/// Notes the time of iterations but for the first; of those whose residual is not known the mean.
#[derive(Default)]
pub struct Stopwatch {
    last: Option<(Instant, usize)>,
    /// Times of the runs.
    pub samples: Samples,
}

impl Stopwatch {
    /// Begins with another solve.
    pub fn begin(&mut self) {
        self.last = None;
    }
}

impl Monitor for Stopwatch {
    fn iteration(&mut self, iteration: usize, _relative_residual: f64) -> ControlFlow<Stop> {
        let now = Instant::now();
        if let Some((last, before)) = self.last.replace((now, iteration))
            && before > 0
        {
            self.samples.push((now - last).as_secs_f64() / (iteration - before) as f64);
        }
        ControlFlow::Continue(())
    }
}

/// A system with an operator without a matrix and a diagonal preconditioner.
pub struct MatrixFreeSystem<'a> {
    a: &'a MatrixFree<f64>,
    components: usize,
    full: Diagonal<f64, Cpu>,
    /// The same, an entry for each node.
    shared: SharedDiagonal<f64, Cpu>,
    b: Buffer<f64, Cpu>,
    x: Buffer<f64, Cpu>,
}

/// Seconds of the operations of an unfused iteration.
#[derive(Debug, Clone, Copy, Default)]
pub struct IterationSeconds {
    /// A p.
    pub product: f64,
    /// The three updates of vectors.
    pub updates: f64,
    /// The three products of vectors.
    pub dots: f64,
    /// M⁻¹ r.
    pub preconditioner: f64,
}

impl<'a> MatrixFreeSystem<'a> {
    /// With the Jacobi preconditioner, or ones in its place.
    pub fn new(a: &'a MatrixFree<f64>, components: usize, has_jacobi: bool) -> Result<Self, BenchError> {
        let (cpu, n) = (a.device(), a.n_rows());
        let mut b = Buffer::zeros(cpu, n)?;
        a.apply(&mut b, &wavy(cpu, n)?)?;
        let mut inverse = if has_jacobi { a.diagonal() } else { vec![1.0; n] };
        inverse.iter_mut().for_each(|entry| *entry = entry.recip());
        let of_nodes: Vec<f64> = inverse.iter().step_by(components).copied().collect();
        let full = Diagonal::from_inverse(Buffer::from_vec(cpu, inverse)?);
        let shared = SharedDiagonal::new(Buffer::from_vec(cpu, of_nodes)?, components);
        Ok(Self { a, components, full, shared, b, x: Buffer::zeros(cpu, n)? })
    }

    /// Runs one solve of a fixed number of iterations, from zero.
    pub fn solve(
        &mut self,
        method: Method,
        max_iterations: usize,
        watch: &mut Stopwatch,
    ) -> Result<(), BenchError> {
        let cg = KrylovConfig { tolerance: 1e-14, max_iterations, ..KrylovConfig::default() };
        let Self { a, components, full, shared, b, x } = self;
        let (a, b) = (*a, &*b);
        watch.begin();
        x.as_mut_slice().fill(0.0);
        let outcome = a.device().install(|| match method {
            Method::Pcg => ConjugateGradient::new(cg).solve(x, a, full, b, &SingleRank, watch),
            Method::MergedPcg => {
                let m: &dyn Preconditioner<f64, Cpu> = if *components == 1 { full } else { shared };
                MergedCg::new(cg).solve(x, a, m, b, &SingleRank, watch)
            }
            Method::PipelinedPcg => PipelinedCg::new(cg).solve(x, a, full, b, &SingleRank, watch),
            Method::SStepPcg => {
                let config = SStepCgConfig { cg, steps: Method::STEPS };
                SStepCg::new(config).solve(x, a, full, b, &SingleRank, watch)
            }
        })?;
        match outcome.stop {
            Stop::MaxIterations | Stop::Converged => Ok(()),
            stop => Err(BenchError::Setting { field: "method", message: format!("the solve {stop}") }),
        }
    }

    /// The mean time of the iterations of one solve.
    pub fn seconds(&mut self, method: Method) -> Result<f64, BenchError> {
        // The first is not timed. Of merged ones every other moves x, so they are to be an even number.
        let first = usize::from(method != Method::SStepPcg);
        let mut watch = Stopwatch::default();
        self.solve(method, ITERATIONS + first, &mut watch)?;
        Ok(watch.samples.mean())
    }

    /// The mean time of as many products.
    pub fn product_seconds(&mut self) -> Result<f64, BenchError> {
        let Self { a, b, x, .. } = self;
        let mut samples = Samples::default();
        a.device().install(|| samples.time(|| (0..ITERATIONS).try_for_each(|_| a.apply(x, b))))?;
        Ok(samples.mean() / ITERATIONS as f64)
    }

    /// The mean time of the operations of an iteration, one after another.
    ///
    /// # Source
    /// `[kronbichler2022]`, Algorithm 1.
    pub fn parts(&mut self) -> Result<IterationSeconds, BenchError> {
        let (a, full) = (self.a, &self.full);
        let cpu = a.device();
        cpu.install(|| {
            let mut parts = IterationSeconds::default();
            let (x, mut r) = (&mut self.x, Buffer::from_vec(cpu, self.b.as_slice().to_vec())?);
            let (mut p, mut z) = (Buffer::zeros(cpu, r.len())?, Buffer::zeros(cpu, r.len())?);
            let mut v = Buffer::zeros(cpu, r.len())?;
            full.apply(&mut p, &r)?;
            let mut rho = cpu.dot(&r, &p)?;
            for _ in 0..ITERATIONS {
                clocked(&mut parts.product, || a.apply(&mut v, &p))?;
                let alpha = rho / clocked(&mut parts.dots, || cpu.dot(&p, &v))?;
                clocked(&mut parts.updates, || cpu.axpby(x, alpha, &p, 1.0))?;
                clocked(&mut parts.updates, || cpu.axpby(&mut r, -alpha, &v, 1.0))?;
                clocked(&mut parts.dots, || cpu.dot(&r, &r))?;
                clocked(&mut parts.preconditioner, || full.apply(&mut z, &r))?;
                let rho_after = clocked(&mut parts.dots, || cpu.dot(&r, &z))?;
                clocked(&mut parts.updates, || cpu.axpby(&mut p, 1.0, &z, rho_after / rho))?;
                rho = rho_after;
            }
            Ok(parts.over(ITERATIONS as f64))
        })
    }
}

impl IterationSeconds {
    /// Seconds of all.
    pub fn sum(self) -> f64 {
        self.product + self.updates + self.dots + self.preconditioner
    }

    fn over(self, count: f64) -> Self {
        Self {
            product: self.product / count,
            updates: self.updates / count,
            dots: self.dots / count,
            preconditioner: self.preconditioner / count,
        }
    }
}

/// Adds the time of `work` to `seconds`.
fn clocked<R>(seconds: &mut f64, work: impl FnOnce() -> R) -> R {
    let begun = Instant::now();
    let result = work();
    *seconds += begun.elapsed().as_secs_f64();
    result
}

/// A vector without a pattern that cells would know.
pub fn wavy(cpu: &Cpu, n: usize) -> Result<Buffer<f64, Cpu>, BenchError> {
    let mut x = Buffer::zeros(cpu, n)?;
    x.as_mut_slice().iter_mut().enumerate().for_each(|(i, x)| *x = (i % 17) as f64 * 0.1);
    Ok(x)
}

//! Variants of conjugate gradients against each other, against plain ones and against a direct solve.

mod agreement;
mod gmres;
mod instability;
mod ranks;
mod stops;

use femtile::device::{Buffer, Cpu, Reference, Scalar};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Monitor;
use femtile::linalg::krylov::cg::{CgKernels, CgOutcome, ConjugateGradient, KrylovConfig};
use femtile::linalg::krylov::pipelined_cg::{PipelinedCg, PipelinedCgKernels};
use femtile::linalg::krylov::s_step_cg::{SStepCg, SStepCgConfig, SStepCgKernels};
use femtile::linalg::precondition::{Diagonal, Jacobi};
use femtile::linalg::sparse::csr::CsrKernels;
use femtile::linalg::{LinalgError, LinearOperator, Preconditioner};
use femtile_conformance::suite::cg::config;
use femtile_conformance::suite::problems::{CsrArrays, Random};

/// Iterative methods for the same systems.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Method {
    Plain,
    Pipelined,
    SStep(usize),
}

impl Method {
    const VARIANTS: [Self; 7] = [
        Self::Pipelined,
        Self::SStep(1),
        Self::SStep(2),
        Self::SStep(3),
        Self::SStep(4),
        Self::SStep(5),
        Self::SStep(6),
    ];

    /// Preconditioners that the method takes.
    fn preconditioners(self) -> &'static [By] {
        if matches!(self, Self::SStep(_)) {
            &[By::Nothing, By::Jacobi]
        } else {
            &[By::Nothing, By::Jacobi, By::Hidden]
        }
    }
}

/// Preconditioners.
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    Nothing,
    Jacobi,
    /// Jacobi, hidden behind an opaque preconditioner.
    Hidden,
}

struct Hidden<T: Scalar, D: CgKernels<T>> {
    diagonal: Diagonal<T, D>,
    is_fixed: bool,
}

impl<T: Scalar, D: CgKernels<T>> Preconditioner<T, D> for Hidden<T, D> {
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.diagonal.apply(z, r)
    }

    fn is_fixed(&self) -> bool {
        self.is_fixed
    }
}

/// A device with every method.
trait Host<T: Scalar>: CgKernels<T> + PipelinedCgKernels<T> + SStepCgKernels<T> + CsrKernels<T> {}

impl<T: Scalar> Host<T> for Cpu {}
impl<T: Scalar> Host<T> for Reference {}

/// A system $A x = b$.
struct System<T> {
    a: CsrArrays<T>,
    b: Vec<T>,
}

impl<T: Scalar> System<T> {
    fn new(a: CsrArrays<T>, random: &mut Random) -> Self {
        let b = random.vector(a.offsets.len() - 1);
        Self { a, b }
    }

    /// From zero.
    fn solve<D: Host<T>>(
        &self,
        device: &D,
        method: Method,
        by: By,
        config: KrylovConfig,
    ) -> (CgOutcome, Vec<T>) {
        let mut x = vec![T::ZERO; self.b.len()];
        let outcome = self.solve_from(device, &mut x, method, by, config, &mut ());
        (outcome, x)
    }

    fn solve_from<D: Host<T>>(
        &self,
        device: &D,
        x: &mut Vec<T>,
        method: Method,
        by: By,
        config: KrylovConfig,
        monitor: &mut dyn Monitor,
    ) -> CgOutcome {
        let a = self.a.on(device);
        let m: Box<dyn Preconditioner<T, D>> = match by {
            By::Nothing => Box::new(Diagonal::identity(device, x.len()).unwrap()),
            By::Jacobi => Box::new(Jacobi::new(&a).unwrap()),
            By::Hidden => Box::new(Hidden { diagonal: Jacobi::new(&a).unwrap(), is_fixed: true }),
        };
        let b = Buffer::from_host(device, &self.b).unwrap();
        let mut solution = Buffer::from_host(device, x).unwrap();
        let outcome = solve_by(method, &mut solution, &a, m.as_ref(), &b, config, monitor).unwrap();
        *x = solution.to_host().unwrap();
        outcome
    }

    /// ‖b − A x‖ / ‖b‖, row by row.
    fn relative_residual(&self, x: &[T]) -> f64 {
        let row = |i: usize| {
            let entries = self.a.offsets[i] as usize..self.a.offsets[i + 1] as usize;
            let terms = entries.map(|k| self.a.values[k].to_f64() * x[self.a.columns[k] as usize].to_f64());
            self.b[i].to_f64() - terms.sum::<f64>()
        };
        let norm = |terms: &mut dyn Iterator<Item = f64>| terms.map(|x| x * x).sum::<f64>().sqrt();
        norm(&mut (0..x.len()).map(row)) / norm(&mut self.b.iter().map(|b| b.to_f64()))
    }
}

fn solve_by<T: Scalar, D: Host<T>>(
    method: Method,
    x: &mut Buffer<T, D>,
    a: &dyn LinearOperator<T, D>,
    m: &dyn Preconditioner<T, D>,
    b: &Buffer<T, D>,
    config: KrylovConfig,
    monitor: &mut dyn Monitor,
) -> Result<CgOutcome, LinalgError> {
    match method {
        Method::Plain => ConjugateGradient::new(config).solve(x, a, m, b, &SingleRank, monitor),
        Method::Pipelined => PipelinedCg::new(config).solve(x, a, m, b, &SingleRank, monitor),
        Method::SStep(steps) => {
            SStepCg::new(SStepCgConfig { cg: config, steps }).solve(x, a, m, b, &SingleRank, monitor)
        }
    }
}

/// A full matrix $G^\mathsf{T} G / n + I$ with rows and columns scaled unevenly: condition of some tens after Jacobi.
fn dense<T: Scalar>(n: usize, random: &mut Random) -> CsrArrays<T> {
    let g: Vec<f64> = random.vector(n * n);
    let scale: Vec<f64> = (0..n).map(|_| 1.0 + 0.5 * random.unit()).collect();
    let entry = |i: usize, j: usize| {
        let dot: f64 = (0..n).map(|k| g[k * n + i] * g[k * n + j]).sum();
        scale[i] * scale[j] * (dot / n as f64 + f64::from(u8::from(i == j)))
    };
    CsrArrays::from_rows(n, (0..n).map(|i| (0..n).map(|j| (j, entry(i, j))).collect()).collect())
}

/// A chain of unknowns with uneven diagonal, diagonally dominant.
fn chain<T: Scalar>(n: usize, random: &mut Random) -> CsrArrays<T> {
    let links: Vec<f64> = (0..=n).map(|_| 1.0 + 0.9 * random.unit()).collect();
    let row = |i: usize| {
        let mut row = vec![(i, links[i] + links[i + 1] + 0.2)];
        if i > 0 {
            row.insert(0, (i - 1, -links[i]));
        }
        if i + 1 < n {
            row.push((i + 1, -links[i + 1]));
        }
        row
    };
    CsrArrays::from_rows(n, (0..n).map(row).collect())
}

/// Eigenvalues from 1 to `condition`, evenly on a logarithmic scale.
fn spectrum<T: Scalar>(n: usize, condition: f64) -> CsrArrays<T> {
    let eigenvalue = |i: usize| condition.powf(i as f64 / (n - 1) as f64);
    CsrArrays::from_rows(n, (0..n).map(|i| vec![(i, eigenvalue(i))]).collect())
}

/// Eigenvalues from 1 to 10, and two as large as said and a third of that: plain conjugate gradients hardly notice.
fn outliers<T: Scalar>(n: usize, largest: f64) -> CsrArrays<T> {
    let eigenvalue = |i: usize| match i {
        7 => largest,
        9 => largest / 3.0,
        _ => 1.0 + 9.0 * i as f64 / n as f64,
    };
    CsrArrays::from_rows(n, (0..n).map(|i| vec![(i, eigenvalue(i))]).collect())
}

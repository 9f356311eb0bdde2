//! Solves by conjugate gradients with multigrid, ours and those of other libraries, on the same system.

mod peers;

use std::sync::Arc;
use std::time::Instant;

use femtile::amg::{Amg, AmgConfig, AmgError, AmgKernels, Graph};
use femtile::device::{Buffer, Cpu, Cuda, DeviceError};
use femtile::fem::AssemblyKernels;
use femtile::linalg::Preconditioner;
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{CgKernels, ConjugateGradient, KrylovConfig};
use femtile::linalg::precondition::Jacobi;
use femtile::linalg::sparse::csr::{Csr, CsrKernels};
use femtile::linalg::vector::Convert;

use crate::BenchError;
use crate::Samples;
pub use peers::{PeerSolves, Peers};

/// $\|r\| / \|b\|$ at which solves end, as in `[fu2014]`.
pub const TOLERANCE: f64 = 1e-8;

/// A device that whole solves run on.
pub trait SolveDevice:
    AssemblyKernels<f64>
    + CgKernels<f64>
    + CsrKernels<f64>
    + AmgKernels<f32>
    + Convert<f64, f32>
    + Convert<f32, f64>
{
    /// Runs before those that count: a GPU compiles and loads its kernels in the first.
    const WARM_UP: usize;

    /// Waits for all queued work.
    fn wait(&self) -> Result<(), DeviceError>;
}

impl SolveDevice for Cpu {
    const WARM_UP: usize = 0;

    fn wait(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}

impl SolveDevice for Cuda {
    const WARM_UP: usize = 1;

    fn wait(&self) -> Result<(), DeviceError> {
        self.synchronize()
    }
}

/// Preconditioner of conjugate gradients.
#[derive(Debug, Clone)]
pub enum Preconditioning {
    /// Nothing.
    None,
    /// The diagonal.
    Jacobi,
    /// One cycle of multigrid, its levels in f32.
    Amg(AmgConfig),
    /// The same with aggregates that follow a graph.
    AmgOnGraph(AmgConfig, Arc<Graph>),
}

/// Times of solves of one system, by the host's clock.
#[derive(Debug, Default)]
pub struct Solves {
    /// Making the preconditioner.
    pub setup: Samples,
    /// From zero to the tolerance.
    pub solve: Samples,
    /// Iterations of the solve.
    pub iterations: usize,
    /// Non-zeros of all levels over those of the matrix.
    pub operator_complexity: f64,
    /// Bytes that a cycle moves at least, and its operations.
    pub cycle: [f64; 2],
}

/// A preconditioner with its operator complexity and what a cycle costs.
type Made<D> = (Box<dyn Preconditioner<f64, D>>, f64, [f64; 2]);

impl Solves {
    /// Solves several times more.
    ///
    /// # Errors
    /// [`BenchError::Setting`] when a solve ends before the tolerance; what the device reports.
    pub fn run<D: SolveDevice>(
        &mut self,
        (a, b): (&mut Csr<f64, D>, &Buffer<f64, D>),
        how: &Preconditioning,
        repeats: usize,
    ) -> Result<(), BenchError> {
        let device = b.device();
        let mut x = Buffer::zeros(device, b.len())?;
        let max_iterations = 100_000;
        let config = KrylovConfig { tolerance: TOLERANCE, max_iterations, ..KrylovConfig::default() };
        let cg = ConjugateGradient::new(config);
        let n_before = if self.setup.count() == 0 { D::WARM_UP } else { 0 };
        for run in 0..n_before + repeats {
            device.wait()?;
            let begun = Instant::now();
            let (preconditioner, complexity, cycle) = make(a, b, how)?;
            device.wait()?;
            let seconds_setup = begun.elapsed().as_secs_f64();
            device.fill(&mut x, 0.0)?;
            device.wait()?;
            let begun = Instant::now();
            let outcome = cg.solve(&mut x, a, preconditioner.as_ref(), b, &SingleRank, &mut ())?;
            let seconds_solve = begun.elapsed().as_secs_f64();
            if outcome.stop != Stop::Converged {
                let message = format!("the solve {}", outcome.stop);
                return Err(BenchError::Setting { field: "problem", message });
            }
            (self.iterations, self.operator_complexity, self.cycle) = (outcome.iterations, complexity, cycle);
            if run >= n_before {
                self.setup.push(seconds_setup);
                self.solve.push(seconds_solve);
            }
        }
        Ok(())
    }
}

fn make<D: SolveDevice>(
    a: &mut Csr<f64, D>,
    b: &Buffer<f64, D>,
    how: &Preconditioning,
) -> Result<Made<D>, BenchError> {
    Ok(match how {
        Preconditioning::None => (Box::new(Jacobi::identity(b.device(), b.len())?), 1.0, [0.0; 2]),
        Preconditioning::Jacobi => (Box::new(Jacobi::new(a)?), 1.0, [0.0; 2]),
        Preconditioning::Amg(config) => made(Amg::with_memory_limit(a, None, None, config).map_err(of_amg)?),
        Preconditioning::AmgOnGraph(config, graph) => {
            made(Amg::with_memory_limit(a, Some(graph), None, config).map_err(of_amg)?)
        }
    })
}

fn made<D: SolveDevice>(amg: Amg<f32, D>) -> Made<D> {
    let (complexity, cycle) = (amg.hierarchy().operator_complexity(), cycle(&amg));
    (Box::new(amg), complexity, cycle)
}

fn of_amg(error: AmgError) -> BenchError {
    BenchError::Setting { field: "amg", message: error.to_string() }
}

/// Bytes of an entry of a matrix in f32 with its column.
const ENTRY: f64 = 8.0;

/// Returns bytes and operations of a cycle with a polynomial of degree two. Each level has four products with its
/// matrix (one before the coarser level, that of the residual, two after), one with the prolongator and one with its
/// transpose, and 27 values in f32 a row.
fn cycle<D: SolveDevice>(amg: &Amg<f32, D>) -> [f64; 2] {
    let (mut entries, mut rows) = (0.0, 0.0);
    for shape in amg.hierarchy().shapes() {
        entries += (4 * shape.n_nonzeros + 2 * shape.n_prolongator) as f64;
        rows += shape.n_rows as f64;
    }
    [ENTRY * entries + 27.0 * 4.0 * rows, 2.0 * entries]
}

use femtile_device::cuda::{Cuda, Header, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Scalar};
use femtile_linalg::LinalgError;

use super::choice;
use super::reference::refuse_pivoted_periodic;
use super::{Algorithm, Bands, BatchProblem, Lines, TridiagonalKernels, Work, hybrid, pcr, thomas};

/// The lines of a batch, for kernels.
pub(crate) const LINES: Header = Header { name: "lines.cuh", text: include_str!("lines.cuh") };

/// The equations of a line, for kernels that go along it.
pub(crate) const EQUATION: Header = Header { name: "equation.cuh", text: include_str!("equation.cuh") };

/// u, d, a, b, c, the lines, the status, the rule of the bands.
pub(crate) type Solve<T> = (Write<T>, Read<T>, Read<T>, Read<T>, Read<T>, Structure, Write<u64>, Structure);

/// A rule as kernels on a GPU see it: a structure that is compiled into the kernel and passed by value.
///
/// # Contract
/// The source defines `struct Bands` with 64-bit fields and
/// `__device__ void row(u64 line, u32 row, T& lower, T& diagonal, T& upper) const`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaBands {
    source: String,
    arguments: Vec<u64>,
}

impl CudaBands {
    /// The definition of `struct Bands`, for which the kernel has included `femtile.cuh` before, and its fields in order,
    /// at least one.
    ///
    /// # Safety
    /// The definition keeps the contract above, and follows no pointer.
    pub unsafe fn new(source: String, arguments: Vec<u64>) -> Self {
        Self { source, arguments }
    }

    /// The definition of `struct Bands`.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The fields, in order.
    pub fn arguments(&self) -> &[u64] {
        &self.arguments
    }
}

/// Where the bands come from, as the source of a program says it.
#[derive(Debug, Clone)]
pub(crate) struct RuleSource {
    source: Option<String>,
    arguments: Vec<u64>,
}

impl RuleSource {
    /// From arrays.
    pub fn none() -> Self {
        Self { source: None, arguments: vec![0] }
    }

    /// Returns whether bands are formed by a rule.
    pub fn is_rule(&self) -> bool {
        self.source.is_some()
    }

    /// Gives a program the rule.
    pub fn define(&self, program: Specialisation) -> Specialisation {
        let source = self.source.as_deref().unwrap_or(include_str!("no_bands.cuh"));
        program.define("FEMTILE_RULE", u32::from(self.is_rule())).header("bands.cuh", source)
    }
}

/// The arrays of a batch on a GPU.
#[derive(Debug)]
pub(crate) struct Batch<'a, T: Scalar> {
    u: &'a mut Buffer<T, Cuda>,
    d: Option<&'a Buffer<T, Cuda>>,
    bands: [Read<T>; 3],
    status: Write<u64>,
    /// The rule of the bands.
    pub rule: RuleSource,
}

impl<'a, T: Scalar> Batch<'a, T> {
    fn new(
        u: &'a mut Buffer<T, Cuda>,
        bands: Bands<'_, T, Cuda>,
        d: Option<&'a Buffer<T, Cuda>>,
        status: Write<u64>,
    ) -> Result<Self, LinalgError> {
        let (bands, rule) = match bands {
            Bands::Arrays { lower, diagonal, upper } => {
                ([lower.read(), diagonal.read(), upper.read()], RuleSource::none())
            }
            Bands::Rule(rule) => {
                let rule = rule.cuda().ok_or(LinalgError::HostHook)?;
                (
                    [Read::none(); 3],
                    RuleSource { source: Some(rule.source().into()), arguments: rule.arguments().into() },
                )
            }
        };
        Ok(Self { u, d, bands, status, rule })
    }

    /// The arguments that all kernels begin with.
    pub fn arguments(self, lines: &Lines) -> Solve<T> {
        let d = self.d.unwrap_or(self.u).read();
        let [a, b, c] = self.bands;
        (self.u.write(), d, a, b, c, structure(lines), self.status, Structure(self.rule.arguments))
    }
}

/// `struct Lines` of `lines.cuh`.
fn structure(lines: &Lines) -> Structure {
    let axes: Vec<_> = lines.axes.iter().rev().collect();
    let n_axes = axes.iter().rposition(|axis| axis.count != 1).map_or(1, |last| last + 1);
    let head = [lines.length, lines.stride, lines.band_stride, lines.n_lines(), n_axes];
    let counts = axes.iter().map(|axis| axis.count);
    let steps = axes.iter().map(|axis| axis.stride).chain(axes.iter().map(|axis| axis.band_stride));
    Structure(head.into_iter().chain(counts).chain(steps).map(|x| x as u64).collect())
}

impl<T: Scalar> TridiagonalKernels<T> for Cuda {
    fn tridiagonal_algorithms(&self) -> &'static [Algorithm] {
        &Algorithm::ALL[1..]
    }

    fn tridiagonal_choice(&self, problem: &BatchProblem) -> Result<Algorithm, LinalgError> {
        refuse_pivoted_periodic(problem)?;
        let lines = &problem.lines;
        if lines.length >= u32::MAX as usize || lines.n_lines() >= u32::MAX as usize {
            let message = format!(
                "{} lines of {} rows; a GPU takes less than 2³² of each",
                lines.n_lines(),
                lines.length
            );
            return Err(LinalgError::Setting { field: "shape", message });
        }
        choice::on_cuda::<T>(problem)
    }

    fn tridiagonal_solve(
        &self,
        problem: &BatchProblem,
        u: &mut Buffer<T, Self>,
        bands: Bands<'_, T, Self>,
        d: Option<&Buffer<T, Self>>,
        work: &mut Work<T, Self>,
    ) -> Result<(), LinalgError> {
        let algorithm = TridiagonalKernels::<T>::tridiagonal_choice(self, problem)?;
        if !problem.check(u, bands, d, work)? {
            return Ok(());
        }
        let problem = &BatchProblem { algorithm, ..problem.clone() };
        let batch = Batch::new(u, bands, d, work.status.write())?;
        match algorithm {
            Algorithm::Hybrid => hybrid::cuda::solve(self, problem, batch),
            Algorithm::Pcr | Algorithm::Cr => pcr::cuda::solve(self, problem, batch),
            _ => thomas::cuda::solve(self, problem, batch, &mut work.scratch),
        }
    }
}

/// All programs of tridiagonal systems, for checks that compile them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    [hybrid::cuda::specialisations(), thomas::cuda::specialisations(), pcr::cuda::specialisations()].concat()
}

use femtile::device::{Buffer, Reference};
use femtile::linalg::sparse::choice::Machine as Lanes;
use femtile::linalg::sparse::{Csr, EllWarp, EllWarpConfig};
use femtile::linalg::{LinalgError, LinearOperator};

use super::{COUNTS, Session};
use crate::formats::{ComparedFormat, ComparedMatrix, FormatKernels};
use crate::reproduce::timing::{Timed, fastest};
use femtile_bench::BenchError;
use femtile_bench::sparse::right_vector;

/// Settings of the timing of products.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    /// Products in a row, of which the mean counts; 0 leaves a count out.
    pub counts: [usize; COUNTS],
    /// Runs, of which the fastest counts.
    pub repeats: usize,
}

/// Runs of single products are the more, since each is short.
const PRODUCTS_A_REPEAT: usize = 20;
/// Runs of single products for each requested repeat.
const SINGLES_A_REPEAT: usize = 4;
/// Approximate maximum time of a row of products.
const LONGEST_S: f64 = 0.2;

impl Timing {
    /// The paper's counts: 1, 50 and 1,200.
    pub fn of(session: &Session) -> Self {
        let middle = if session.settings.small { 2 } else { 50 };
        let most = if session.settings.small { 3 } else { session.settings.products };
        Self { counts: [1, middle.min(most), most], repeats: session.settings.repeats }
    }

    /// The first two counts, if no more are requested.
    pub fn short(session: &Session) -> Self {
        let [one, middle, _] = Self::of(session).counts;
        Self { counts: [one, middle, 0], ..Self::of(session) }
    }

    fn runs(&self, count: usize) -> usize {
        (PRODUCTS_A_REPEAT * self.repeats / count).clamp(1, SINGLES_A_REPEAT * self.repeats.max(1))
    }
}

/// Times of products with a matrix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Products {
    /// Seconds of one, for each count; infinite if it was left out.
    pub seconds: [f64; COUNTS],
    /// Stored entries.
    pub n_stored: usize,
}

/// The device that a session measures, of whichever kind.
pub(super) trait Machine {
    /// Returns whether it is a GPU, whose kernels have blocks of threads.
    fn is_gpu(&self) -> bool;
    /// Lanes of a slice: a warp's, or of a register for SIMD.
    fn lanes(&self) -> usize;
    /// Times products in a format; none if it cannot hold the matrix.
    fn products(
        &self,
        a: &Csr<f64, Reference>,
        format: ComparedFormat,
        timing: &Timing,
    ) -> Result<Option<Products>, BenchError>;
    /// Seconds of taking new values.
    fn refill(
        &self,
        a: &Csr<f64, Reference>,
        config: &EllWarpConfig,
        repeats: usize,
    ) -> Result<f64, BenchError>;
    /// Seconds of a product with renumbered vectors whose result is then brought back into its own numbering.
    fn product_unsorted(
        &self,
        a: &Csr<f64, Reference>,
        config: &EllWarpConfig,
        timing: &Timing,
    ) -> Result<f64, BenchError>;
}

impl<D: FormatKernels<f64> + Timed> Machine for D {
    fn is_gpu(&self) -> bool {
        matches!(self.machine(), Lanes::Gpu { .. })
    }

    fn lanes(&self) -> usize {
        match self.machine() {
            Lanes::Cpu { lanes } => lanes,
            Lanes::Gpu { .. } => 32,
        }
    }

    fn products(
        &self,
        a: &Csr<f64, Reference>,
        format: ComparedFormat,
        timing: &Timing,
    ) -> Result<Option<Products>, BenchError> {
        let matrix = match ComparedMatrix::new(self, a, format) {
            Err(LinalgError::Setting { .. }) => return Ok(None),
            made => made?,
        };
        let x = Buffer::from_vec(self, right_vector(a.n_cols()))?;
        let mut y = Buffer::zeros(self, a.n_rows())?;
        let seconds = seconds_of_one(self, timing, &mut || matrix.apply(&mut y, &x))?;
        Ok(Some(Products { seconds, n_stored: matrix.n_stored() }))
    }

    fn refill(
        &self,
        a: &Csr<f64, Reference>,
        config: &EllWarpConfig,
        repeats: usize,
    ) -> Result<f64, BenchError> {
        let mut matrix = EllWarp::<f64, D>::from_csr(self, a, config)?;
        let values = a.copy_to(self)?;
        Ok(fastest(self, repeats, || matrix.refill(&values))?)
    }

    fn product_unsorted(
        &self,
        a: &Csr<f64, Reference>,
        config: &EllWarpConfig,
        timing: &Timing,
    ) -> Result<f64, BenchError> {
        let matrix = EllWarp::<f64, D>::from_csr(self, a, config)?;
        let x = Buffer::from_vec(self, right_vector(a.n_cols()))?;
        let (mut y, mut unsorted) = (Buffer::zeros(self, a.n_rows())?, Buffer::zeros(self, a.n_rows())?);
        let seconds = seconds_of_one(self, timing, &mut || {
            matrix.apply(&mut y, &x)?;
            matrix.unsort(&mut unsorted, &y)
        })?;
        Ok(seconds[1])
    }
}

/// Seconds of one piece of work, for each count of them in a row.
fn seconds_of_one<D: Timed>(
    device: &D,
    timing: &Timing,
    work: &mut dyn FnMut() -> Result<(), LinalgError>,
) -> Result<[f64; COUNTS], BenchError> {
    let mut seconds = [f64::INFINITY; COUNTS];
    for (k, &count) in timing.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let longest = if k == 0 { 1.0 } else { (LONGEST_S / seconds[0]).max(1.0) };
        let in_a_row = count.min(longest as usize);
        let whole = fastest(device, timing.runs(in_a_row), || (0..in_a_row).try_for_each(|_| work()))?;
        seconds[k] = whole / in_a_row as f64;
    }
    Ok(seconds)
}

impl Session {
    /// Returns the GPU if there is one, else the CPU.
    pub(super) fn measured(&self) -> &dyn Machine {
        match &self.gpu {
            Some(gpu) => &gpu.device,
            None => &self.cpu,
        }
    }
}

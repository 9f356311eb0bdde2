//! Formats of one matrix on one device, each checked, timed and set against what was expected of it.

use femtile::device::{Buffer, DeviceError, HostDevice};
use femtile::linalg::sparse::choice::{candidates, estimates};
use femtile::linalg::sparse::{Csr, Format, SparseKernels, SparseMatrix};
use femtile::linalg::{LinalgError, LinearOperator};
use serde::Serialize;

use super::{Bound, Compared, ReferenceProduct, Timed, nominal_bytes, right_vector, time_operator};
use crate::BenchError;

/// Largest ratio of stored entries to entries of the matrix; formats with more padding are left out.
const MOST_PADDING: f64 = 64.0;

/// Settings of the comparison.
#[derive(Debug, Clone, Copy, Default)]
pub struct SurveyConfig {
    /// All candidates, in place of CSR and what is chosen.
    pub all: bool,
    /// Number of timed products.
    pub repeats: usize,
    /// The format that a search has found before.
    pub tuned: Option<Format>,
}

/// Times of products of one matrix on a device.
#[derive(Debug, Clone, Serialize)]
pub struct Survey {
    /// Name of the device.
    pub device: String,
    /// The bandwidth bound of the products.
    pub bound: Bound,
    /// True if the matrix in CSR, with both vectors, fits the cache: its share of the bound may then exceed 1.
    pub fits_cache: Option<bool>,
    /// Bytes that rates count, whatever a format stores.
    pub nominal_bytes: usize,
    /// The format that the cost model expects to be fastest.
    pub model: String,
    /// The format that a search has found before.
    pub tuned: Option<String>,
    /// All that were timed, the fastest first.
    pub entries: Vec<Entry>,
    /// Those that were not.
    pub skipped: Vec<Skipped>,
}

/// One line of a survey.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// The measurement.
    #[serde(flatten)]
    pub timed: Timed,
    /// True if it is of another library.
    pub is_peer: bool,
    /// Nominal bytes over the fastest time, in 10⁹ a second.
    pub gb_per_s: f64,
    /// Share of the bound.
    pub of_bound: f64,
    /// Seconds that the model expected; none for other libraries.
    pub seconds_expected: Option<f64>,
}

/// A format that was not timed.
#[derive(Debug, Clone, Serialize)]
pub struct Skipped {
    /// The format.
    pub format: String,
    /// The reason.
    pub reason: String,
}

impl Survey {
    /// The fastest of our formats.
    pub fn best(&self) -> Option<&Entry> {
        self.entries.iter().find(|entry| !entry.is_peer)
    }

    /// Returns the time of a format over that of our fastest; none if it was not timed.
    pub fn over_best(&self, format: &str) -> Option<f64> {
        let entry = self.entries.iter().find(|entry| !entry.is_peer && entry.timed.format == format)?;
        Some(entry.timed.seconds_min / self.best()?.timed.seconds_min)
    }

    /// Adds the times of a peer library.
    pub fn add_peers(&mut self, times: Vec<Timed>) {
        let entries = times.into_iter().map(|timed| self.entry(timed, true, None)).collect::<Vec<_>>();
        self.entries.extend(entries);
        self.sort();
    }

    fn entry(&self, timed: Timed, is_peer: bool, seconds_expected: Option<f64>) -> Entry {
        let gb_per_s = 1e-9 * self.nominal_bytes as f64 / timed.seconds_min.max(f64::MIN_POSITIVE);
        Entry { timed, is_peer, gb_per_s, of_bound: gb_per_s / self.bound.gb_per_s, seconds_expected }
    }

    fn sort(&mut self) {
        self.entries.sort_by(|a, b| a.timed.seconds_min.total_cmp(&b.timed.seconds_min));
    }
}

/// Checks and times formats of `a` on a device.
///
/// # Cost
/// Each format is laid out and freed in turn; a product in it is compared with plain loops before it is timed.
/// # Errors
/// [`BenchError::Product`] when a format gives a wrong product; errors of the device, except for formats that
/// cannot hold the matrix or find no memory, which are noted.
pub fn survey<D: SparseKernels<f64> + Compared, H: HostDevice>(
    device: &D,
    a: &Csr<f64, H>,
    bound: &Bound,
    config: &SurveyConfig,
) -> Result<Survey, BenchError> {
    let expected = estimates(a, &device.machine());
    let model = expected.first().map_or(Format::Csr, |estimate| estimate.format);
    let mut survey = Survey {
        device: device.description(),
        bound: bound.clone(),
        fits_cache: bound.cache_bytes.map(|bytes| nominal_bytes(a) <= bytes),
        nominal_bytes: nominal_bytes(a),
        model: model.name(),
        tuned: config.tuned.map(|format| format.name()),
        entries: Vec::new(),
        skipped: Vec::new(),
    };
    let product = ReferenceProduct::new(a);
    for format in formats(device, model, config) {
        match checked(device, a, format, &product, config.repeats)? {
            Ok(timed) => {
                // A model that says nothing says zero.
                let estimate = expected.iter().find(|e| e.format == format && e.seconds > 0.0);
                let entry = survey.entry(timed, false, estimate.map(|estimate| estimate.seconds));
                survey.entries.push(entry);
            }
            Err(reason) => survey.skipped.push(Skipped { format: format.name(), reason }),
        }
    }
    survey.sort();
    Ok(survey)
}

/// Returns the formats to time, each once.
fn formats<D: Compared>(device: &D, model: Format, config: &SurveyConfig) -> Vec<Format> {
    if config.all {
        return candidates(&device.machine());
    }
    let mut formats = vec![Format::Csr];
    for chosen in [Some(model), config.tuned].into_iter().flatten() {
        if !formats.contains(&chosen) {
            formats.push(chosen);
        }
    }
    formats
}

/// Times a format after checking its product; returns the reason if it cannot hold the matrix.
fn checked<D: SparseKernels<f64> + Compared, H: HostDevice>(
    device: &D,
    a: &Csr<f64, H>,
    format: Format,
    product: &ReferenceProduct,
    repeats: usize,
) -> Result<Result<Timed, String>, BenchError> {
    if let Some(reason) = is_hopeless(a, format) {
        return Ok(Err(reason));
    }
    let begun = std::time::Instant::now();
    let matrix = match SparseMatrix::new(device, a, format) {
        Ok(matrix) => matrix,
        Err(LinalgError::Setting { field, message }) => return Ok(Err(format!("{field}: {message}"))),
        Err(LinalgError::Device(error @ DeviceError::OutOfMemory { .. })) => {
            return Ok(Err(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    let seconds_built = begun.elapsed().as_secs_f64();
    let x = Buffer::from_vec(device, right_vector(a.n_cols()))?;
    // An entry that is never written is seen.
    let mut y = Buffer::from_vec(device, vec![f64::NAN; a.n_rows()])?;
    matrix.apply(&mut y, &x)?;
    product.check(&format.name(), &y.to_host()?)?;
    let samples = time_operator(device, &matrix, repeats)?;
    Ok(Ok(Timed {
        format: format.name(),
        seconds_median: samples.median(),
        seconds_min: samples.min(),
        padding: matrix.padding(),
        bytes: matrix.product_bytes(),
        seconds_built,
    }))
}

/// Returns the reason why a format that pads all rows to the longest is not even laid out.
fn is_hopeless<H: HostDevice>(a: &Csr<f64, H>, format: Format) -> Option<String> {
    let Format::Ell(_) = format else { return None };
    let longest = a.row_lengths().into_iter().max().unwrap_or(0);
    let padding = a.n_rows() as f64 * f64::from(longest) / a.n_nonzeros().max(1) as f64;
    (padding > MOST_PADDING).then(|| format!("it would store {padding:.0} entries for each of the matrix"))
}

#[cfg(test)]
mod tests {
    use femtile::device::{Cpu, Reference};
    use femtile::linalg::sparse::csr::HostOffsets;
    use femtile::linalg::sparse::{EllConfig, EllWarpConfig};

    use super::*;

    /// Rows of one entry, but for a first one that is full.
    fn arrow(n: usize) -> Csr<f64, Reference> {
        let offsets = HostOffsets::from_row_lengths((0..n).map(|row| if row == 0 { n } else { 1 }));
        let columns: Vec<u32> = (0..n as u32).chain(1..n as u32).collect();
        let values = vec![0.5; columns.len()];
        Csr::from_parts(&Reference, n, offsets, columns, values).unwrap()
    }

    const BOUND: Bound = Bound { name: "made up", gb_per_s: 10.0, cache_bytes: Some(1 << 10) };

    #[test]
    fn csr_is_timed_beside_what_was_chosen_and_nothing_twice() {
        let cpu = Cpu::new(1).unwrap();
        let sliced = Format::EllWarp(EllWarpConfig::new(8));
        for (tuned, at_most) in [(None, 2), (Some(Format::Csr), 2), (Some(sliced), 3)] {
            let config = SurveyConfig { all: false, repeats: 1, tuned };
            let found = survey(&cpu, &arrow(40), &BOUND, &config).unwrap();
            assert!(found.entries.len() <= at_most, "{:?}", found.entries);
            assert!(found.over_best("CSR").is_some_and(|over| over >= 1.0));
            assert!(found.entries.is_sorted_by(|a, b| a.timed.seconds_min <= b.timed.seconds_min));
            assert!(tuned.is_none_or(|tuned| found.over_best(&tuned.name()).is_some()));
        }
    }

    #[test]
    fn rates_count_the_same_bytes_for_all_formats() {
        let cpu = Cpu::new(1).unwrap();
        let config = SurveyConfig { all: true, repeats: 1, tuned: None };
        let found = survey(&cpu, &arrow(40), &BOUND, &config).unwrap();
        assert_eq!((found.nominal_bytes, found.fits_cache), (12 * 79 + 20 * 40, Some(false)));
        for entry in &found.entries {
            let bytes = 1e9 * entry.gb_per_s * entry.timed.seconds_min;
            assert!((bytes / found.nominal_bytes as f64 - 1.0).abs() < 1e-12, "{entry:?}");
            assert!((10.0 * entry.of_bound / entry.gb_per_s - 1.0).abs() < 1e-12, "{entry:?}");
        }
    }

    #[test]
    fn ellpack_is_left_out_where_one_row_would_pad_all_others() {
        let skips = |n, format| is_hopeless(&arrow(n), format).is_some();
        let ell = Format::Ell(EllConfig::PLAIN);
        assert_eq!([skips(40, ell), skips(400, ell), skips(400, Format::Hyb)], [false, true, false]);
    }
}

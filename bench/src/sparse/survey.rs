//! Formats of one matrix on one device: each checked, timed and compared with its expected time.

use femtile::device::{Buffer, DeviceError, HostDevice};
use femtile::linalg::sparse::choice::{candidates, estimates};
use femtile::linalg::sparse::{Csr, Format, SparseKernels};
use femtile::linalg::{LinalgError, LinearOperator};
use serde::Serialize;

use super::timed::time_checked;
use super::{Bound, Compared, ReferenceProduct, Timed, nominal_bytes, right_vector};
use crate::BenchError;

/// Settings of a survey.
#[derive(Debug, Clone, Copy, Default)]
pub struct SurveyConfig {
    /// Times all candidates, instead of CSR, the choice of the cost model and the tuned format.
    pub all: bool,
    /// Number of timed runs.
    pub repeats: usize,
    /// The fastest format of an earlier search.
    pub tuned: Option<Format>,
}

/// Times of products with one matrix on one device.
#[derive(Debug, Clone, Serialize)]
pub struct Survey {
    /// Description of the device.
    pub device: String,
    /// The bandwidth that limits products.
    pub bound: Bound,
    /// The matrix in CSR and both vectors fit the cache, so that `of_bound` may exceed 1.
    pub fits_cache: Option<bool>,
    /// Bytes that rates count for every format: [`nominal_bytes`].
    pub nominal_bytes: usize,
    /// The format that the cost model expects to be fastest.
    pub model: String,
    /// The fastest format of an earlier search.
    pub tuned: Option<String>,
    /// Timed formats, the fastest first.
    pub entries: Vec<Entry>,
    /// Formats that were not timed.
    pub skipped: Vec<Skipped>,
}

/// One timed format of a survey.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// The measured times.
    #[serde(flatten)]
    pub timed: Timed,
    /// The times are those of another library.
    pub is_peer: bool,
    /// Nominal bytes over the fastest time, in 10⁹ bytes per second.
    pub gb_per_s: f64,
    /// Fraction of the bandwidth reached.
    pub of_bound: f64,
    /// Seconds that the cost model expects; none for other libraries.
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
    /// Returns the fastest format, other libraries left out.
    pub fn best(&self) -> Option<&Entry> {
        self.entries.iter().find(|entry| !entry.is_peer)
    }

    /// Returns the time of a format over that of [`best`](Self::best); none where it was not timed.
    pub fn over_best(&self, format: &str) -> Option<f64> {
        let entry = self.entries.iter().find(|entry| !entry.is_peer && entry.timed.format == format)?;
        Some(entry.timed.seconds_min / self.best()?.timed.seconds_min)
    }

    /// Adds the times of another library.
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

/// Checks and times the formats of `a` on a device that `config` selects.
///
/// # Cost
/// Each format is stored and freed in turn; its product is compared with plain loops before it is timed.
/// # Errors
/// [`BenchError::Product`] when a format gives a wrong product; errors of the device. A format that cannot hold the
/// matrix, or for which memory is short, is listed in [`Survey::skipped`] instead.
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
                let estimate = expected.iter().find(|estimate| estimate.format == format);
                let entry = survey.entry(timed, false, estimate.map(|estimate| estimate.seconds));
                survey.entries.push(entry);
            }
            Err(reason) => survey.skipped.push(Skipped { format: format.name(), reason }),
        }
    }
    survey.sort();
    Ok(survey)
}

/// Returns the formats of the library to time, each once.
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

/// Checks the product of a format and times it; returns the reason when the format cannot hold the matrix.
fn checked<D: SparseKernels<f64> + Compared, H: HostDevice>(
    device: &D,
    a: &Csr<f64, H>,
    format: Format,
    product: &ReferenceProduct,
    repeats: usize,
) -> Result<Result<Timed, String>, BenchError> {
    let timed = time_checked(device, a, format, repeats, |matrix| {
        let x = Buffer::from_vec(device, right_vector(a.n_cols()))?;
        // NaN reveals an entry that is never written.
        let mut y = Buffer::from_vec(device, vec![f64::NAN; a.n_rows()])?;
        matrix.apply(&mut y, &x)?;
        product.check(&format.name(), &y.to_host()?)
    });
    match timed {
        Err(BenchError::Linalg(LinalgError::Setting { field, message })) => {
            Ok(Err(format!("{field}: {message}")))
        }
        Err(
            BenchError::Linalg(LinalgError::Device(error @ DeviceError::OutOfMemory { .. }))
            | BenchError::Device(error @ DeviceError::OutOfMemory { .. }),
        ) => Ok(Err(error.to_string())),
        timed => timed.map(Ok),
    }
}

#[cfg(test)]
mod tests {
    use femtile::device::{Cpu, Reference};
    use femtile::linalg::sparse::EllWarpConfig;
    use femtile::linalg::sparse::csr::HostOffsets;

    use super::*;

    /// A full first row above rows of one entry.
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
}

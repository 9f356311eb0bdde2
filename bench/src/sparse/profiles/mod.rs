//! Synthetic matrices with the row lengths of well-known test matrices, for machines without access to the originals.
//!
//! The number of rows and the quartiles, mean and variance of the row lengths are those of ginkgo-data (CC-BY-4.0);
//! `qcd` has 39 entries in each row. Columns follow a model of the matrix's structure; values are random. Results
//! should be reported as those of a *profile of* the matrix.

mod columns;
mod lengths;
mod random;

use femtile::device::Reference;
use femtile::linalg::sparse::Csr;
use femtile::linalg::sparse::csr::HostOffsets;

use crate::BenchError;
pub use columns::ColumnModel;
use columns::Columns;
use lengths::{Target, row_lengths};
use random::Random;

/// Row-length statistics of a well-known matrix, and a model of its columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// Name of the well-known matrix.
    pub name: &'static str,
    /// Number of rows, equal to the number of columns.
    pub n_rows: usize,
    /// Number of non-zeros.
    pub n_nonzeros: usize,
    /// Shortest row, lower quartile, median, upper quartile, longest row.
    pub quartiles: [usize; 5],
    /// Variance of the row lengths.
    pub variance: f64,
    /// Number of consecutive rows of similar length.
    pub run: usize,
    /// Model of the columns.
    pub columns: ColumnModel,
}

const fn banded(half_width: usize) -> ColumnModel {
    ColumnModel::Banded { half_width }
}

const fn scattered(share: f64) -> ColumnModel {
    ColumnModel::Scattered { share }
}

const fn profile(
    name: &'static str,
    [n_rows, n_nonzeros]: [usize; 2],
    quartiles: [usize; 5],
    variance: f64,
    run: usize,
    columns: ColumnModel,
) -> Profile {
    Profile { name, n_rows, n_nonzeros, quartiles, variance, run, columns }
}

#[rustfmt::skip]
static PROFILES: [Profile; 12] = [
    profile("scircuit", [170_998, 958_936], [1, 4, 5, 6, 353], 19.2911, 1, scattered(0.2)),
    profile("mac_econ_fwd500", [206_500, 1_273_389], [1, 3, 5, 8, 44], 19.6769, 1, scattered(0.1)),
    profile("mc2depi", [525_825, 2_100_225], [2, 4, 4, 4, 4], 0.00582517, 1, ColumnModel::Grid),
    profile("cop20k_A", [121_192, 2_624_331], [0, 18, 23, 23, 81], 190.2375, 3, banded(6000)),
    profile("cant", [62_451, 4_007_383], [1, 51, 74, 75, 78], 197.5785, 3, banded(300)),
    profile("rma10", [46_835, 2_374_001], [4, 29, 46, 70, 145], 771.7615, 5, banded(1500)),
    profile("shipsec1", [140_874, 7_813_404], [24, 54, 54, 54, 102], 122.6514, 6, banded(3000)),
    profile("consph", [83_334, 6_010_480], [1, 72, 81, 81, 81], 364.0538, 3, banded(3000)),
    profile("pdb1HYS", [36_417, 4_344_765], [18, 99, 123, 144, 204], 1015.0841, 3, banded(1500)),
    profile("webbase-1M", [1_000_005, 3_105_536], [1, 2, 2, 2, 4700], 642.3797, 1, ColumnModel::Web),
    profile("pwtk", [217_918, 11_634_424], [2, 54, 54, 54, 180], 22.5045, 6, banded(2000)),
    profile("qcd", [49_152, 1_916_928], [39, 39, 39, 39, 39], 0.0, 3, ColumnModel::Lattice),
];

/// Returns all profiles.
pub fn all() -> &'static [Profile] {
    &PROFILES
}

/// Largest share of the entries in one row of a scaled-down copy.
const LONGEST_SHARE: f64 = 0.05;

impl Profile {
    /// Returns a matrix of this profile with `n_rows / scale` rows, the same in every run.
    ///
    /// Columns ascend in a row and the diagonal is among them; values are uniform in [−1, 1). A small copy
    /// has the same quartiles and mean; its longest row holds at most a twentieth of the entries.
    ///
    /// # Errors
    /// [`BenchError::Setting`] when `scale` is 0 or leaves too few rows for their lengths.
    pub fn matrix(&self, scale: usize) -> Result<Csr<f64, Reference>, BenchError> {
        let target = self.target(scale)?;
        let lengths = row_lengths(self, &target, &mut Random::new(1));
        let n_nonzeros = lengths.iter().sum();
        let (mut columns, mut values) = (Vec::with_capacity(n_nonzeros), Vec::with_capacity(n_nonzeros));
        let mut chooser = Columns::new(self.columns, target.n_rows);
        let mut random = Random::new(2);
        for (row, &length) in lengths.iter().enumerate() {
            columns.extend_from_slice(chooser.of_row(row, length));
            values.extend((0..length).map(|_| 2.0 * random.unit() - 1.0));
        }
        let offsets = HostOffsets::from_row_lengths(lengths.iter().copied());
        Ok(Csr::from_parts(&Reference, target.n_rows, offsets, columns, values)?)
    }

    fn target(&self, scale: usize) -> Result<Target, BenchError> {
        let n_rows = self.n_rows.checked_div(scale).unwrap_or(0);
        let [.., q3, longest] = self.quartiles;
        let least = (8 * q3).max(256);
        if n_rows < least {
            let most = self.n_rows / least;
            let message = format!("{scale} leaves {n_rows} rows of {}; choose 1 to {most}", self.name);
            return Err(BenchError::Setting { field: "scale", message });
        }
        let mean = self.n_nonzeros as f64 / self.n_rows as f64;
        let held = (LONGEST_SHARE * mean * n_rows as f64) as usize;
        let mut quartiles = self.quartiles;
        quartiles[4] = longest.min(held.min(n_rows)).max(q3);
        Ok(Target { n_rows, quartiles, mean, variance: self.variance })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Found {
        quartiles: [usize; 5],
        mean: f64,
        variance: f64,
    }

    fn statistics(a: &Csr<f64, Reference>) -> Found {
        let mut lengths: Vec<_> = (0..a.n_rows()).map(|row| a.row(row).count()).collect();
        lengths.sort_unstable();
        let n = lengths.len();
        let mean = a.n_nonzeros() as f64 / n as f64;
        let square = lengths.iter().map(|&length| (length * length) as f64).sum::<f64>() / n as f64;
        let quartile = |k: usize| lengths[(k * n / 4).max(1) - 1];
        Found { quartiles: [0, 1, 2, 3, 4].map(quartile), mean, variance: square - mean * mean }
    }

    fn check_entries(name: &str, a: &Csr<f64, Reference>) {
        for row in 0..a.n_rows() {
            let n = a.row(row).count();
            assert!(n == 0 || a.row(row).any(|(column, _)| column == row), "{name}: row {row}");
        }
        assert!(a.values().as_slice().iter().all(|value| (-1.0..1.0).contains(value)), "{name}");
    }

    fn check_full(profile: &Profile) {
        let a = profile.matrix(1).unwrap();
        let (name, found) = (profile.name, statistics(&a));
        assert_eq!((a.n_rows(), a.n_cols()), (profile.n_rows, profile.n_rows));
        assert_eq!(found.quartiles, profile.quartiles, "{name}");
        assert_eq!(a.n_nonzeros(), profile.n_nonzeros, "{name}");
        let error = (found.variance - profile.variance).abs();
        // A few dozen rows of `mc2depi` more or less are more than a hundredth of its variance.
        assert!(error <= 0.01 * profile.variance + 3e-4, "{name}: variance {}", found.variance);
        check_entries(name, &a);
    }

    #[test]
    fn small_copies_have_the_quartiles_and_the_mean_of_the_whole() {
        for profile in all() {
            let a = profile.matrix(30).unwrap();
            let (name, found) = (profile.name, statistics(&a));
            assert_eq!(found.quartiles[..4], profile.quartiles[..4], "{name}");
            let mean = profile.n_nonzeros as f64 / profile.n_rows as f64;
            assert!((found.mean / mean - 1.0).abs() < 0.01, "{name}: {} entries a row", found.mean);
            check_entries(name, &a);
        }
    }

    #[test]
    fn full_profiles_have_the_statistics_of_the_known_matrices() {
        all().iter().for_each(check_full);
    }

    #[test]
    fn a_lattice_has_thirteen_runs_of_three_in_each_row() {
        let a = all()[11].matrix(1).unwrap();
        let starts = |row: usize| {
            let columns: Vec<_> = a.row(row).map(|(column, _)| column).collect();
            columns.chunks(3).filter(|run| run[0] % 3 == 0 && run[2] == run[0] + 2).count()
        };
        assert!((0..a.n_rows()).all(|row| starts(row) == 13));
    }

    #[test]
    fn a_scale_that_leaves_too_few_rows_is_refused() {
        let refused = |scale| all()[0].matrix(scale).map(|_| ()).unwrap_err().to_string();
        assert!(refused(0).contains("scale"), "{}", refused(0));
        assert!(refused(100_000).contains("choose 1 to 667"), "{}", refused(100_000));
    }
}

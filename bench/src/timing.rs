//! Samples of run times.

use std::time::Instant;

/// Times of repeated runs of the same work, in seconds.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    seconds: Vec<f64>,
}

impl From<Vec<f64>> for Samples {
    fn from(seconds: Vec<f64>) -> Self {
        Self { seconds }
    }
}

impl Samples {
    /// Adds a sample.
    pub fn push(&mut self, seconds: f64) {
        self.seconds.push(seconds);
    }

    /// Runs `work` and adds its time.
    pub fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let begun = Instant::now();
        let result = work();
        self.push(begun.elapsed().as_secs_f64());
        result
    }

    /// Returns the number of samples.
    pub fn count(&self) -> usize {
        self.seconds.len()
    }

    /// Returns the least time; infinite without samples.
    pub fn min(&self) -> f64 {
        self.seconds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the mean time; NaN without samples.
    pub fn mean(&self) -> f64 {
        self.seconds.iter().sum::<f64>() / self.seconds.len() as f64
    }

    /// Returns the median time; infinite without samples.
    pub fn median(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_run_in_the_middle() {
        let mut samples = Samples::default();
        assert_eq!(samples.median(), f64::INFINITY);
        [3.0, 1.0, 2.0].into_iter().for_each(|s| samples.push(s));
        assert_eq!((samples.median(), samples.min(), samples.count()), (2.0, 1.0, 3));
        assert_eq!(samples.mean(), 2.0);
    }
}

/// Pulses of one length at equal distances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pulses {
    /// Begin of the first pulse.
    pub start: f64,
    /// Length of each pulse.
    pub duration: f64,
    /// Distance from the begin of a pulse to that of the next one.
    pub period: f64,
    /// Number of pulses.
    pub count: usize,
}

impl Pulses {
    /// Returns a single pulse.
    pub fn single(start: f64, duration: f64) -> Self {
        Self { start, duration, period: f64::INFINITY, count: 1 }
    }

    /// Returns a train of pulses.
    pub fn train(start: f64, duration: f64, period: f64, count: usize) -> Self {
        Self { start, duration, period, count }
    }

    /// Checks the settings; an error has the name of one and the reason.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if !self.start.is_finite() {
            return Err(("start", format!("a start of {} is no time", self.start)));
        }
        if !(self.duration.is_finite() && self.duration > 0.0) {
            return Err(("duration", format!("a duration of {} is not positive", self.duration)));
        }
        if self.count == 0 {
            return Err(("count", "at least one pulse is needed".into()));
        }
        if self.count > 1 && !(self.period.is_finite() && self.period >= self.duration) {
            let message = format!(
                "pulses of length {} would overlap with a period of {}: give a longer `period`",
                self.duration, self.period
            );
            return Err(("period", message));
        }
        Ok(())
    }

    /// Returns the share of a step that pulses cover.
    pub(crate) fn share(&self, begin: f64, length: f64) -> f64 {
        let end = begin + length;
        // Rounding of times must not leave slivers of pulses.
        let rounding = 1e-9 * length;
        let number = |time: f64| match self.count {
            1 => 0,
            _ => (((time - self.start) / self.period).floor().max(0.0) as usize).min(self.count - 1),
        };
        let covered: f64 = (number(begin)..=number(end))
            .map(|k| {
                let offset = if k == 0 { 0.0 } else { k as f64 * self.period };
                let from = self.start + offset;
                let overlap = (from + self.duration).min(end) - from.max(begin);
                if overlap > rounding { overlap } else { 0.0 }
            })
            .sum();
        if covered > length - rounding { 1.0 } else { covered / length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_charge_of_all_pulses() {
        let pulses = Pulses::train(0.3, 2.0, 7.1, 4);
        for steps in [1, 7, 60, 977] {
            let length = 40.0 / steps as f64;
            let charge: f64 = (0..steps).map(|i| length * pulses.share(i as f64 * length, length)).sum();
            assert!((charge - 8.0).abs() < 1e-9, "{steps} steps: {charge}");
        }
    }

    #[test]
    fn a_step_within_a_pulse_has_the_whole_strength() {
        let pulse = Pulses::single(0.0, 2.0);
        let shares: Vec<f64> = (0..60).map(|i| pulse.share(f64::from(i) * 0.05, 0.05)).collect();
        assert!(shares[..40].iter().all(|&share| share == 1.0));
        assert!(shares[40..].iter().all(|&share| share == 0.0));
    }

    #[test]
    fn pulses_that_overlap_are_refused() {
        assert!(Pulses::train(0.0, 2.0, 1.0, 3).check().unwrap_err().1.contains("period of 1"));
        assert_eq!(Pulses::single(0.0, -1.0).check().unwrap_err().0, "duration");
        assert_eq!(Pulses::train(0.0, 1.0, 1.0, 0).check().unwrap_err().0, "count");
        assert_eq!(Pulses::single(f64::NAN, 1.0).check().unwrap_err().0, "start");
    }
}

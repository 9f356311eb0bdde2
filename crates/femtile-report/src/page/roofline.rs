//! The place of work below the limits of a device.

use super::svg::{Chart, decades};

/// Work with what is known of its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The name.
    pub name: String,
    /// Bytes moved from and to memory.
    pub bytes: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// Seconds.
    pub seconds: f64,
}

impl Work {
    /// Returns operations a byte.
    pub fn intensity(&self) -> f64 {
        self.flops / self.bytes
    }

    /// Returns bytes a second, in units of 10⁹.
    pub fn gb_per_s(&self) -> f64 {
        1e-9 * self.bytes / self.seconds
    }

    /// Returns operations a second, in units of 10⁹.
    pub fn gflop_per_s(&self) -> f64 {
        1e-9 * self.flops / self.seconds
    }

    fn is_known(&self) -> bool {
        [self.bytes, self.flops, self.seconds].iter().all(|x| x.is_finite() && *x > 0.0)
    }
}

/// Limits of a device, and work on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Roofline {
    /// The device.
    pub device: String,
    /// Bandwidth of memory, measured, in units of 10⁹ bytes a second.
    pub gb_per_s: f64,
    /// Operations a second in units of 10⁹, estimated; none where nothing is known.
    pub gflop_per_s: Option<f64>,
    /// Work on it.
    pub work: Vec<Work>,
    /// Sentences on what is measured and what is estimated.
    pub notes: Vec<String>,
}

impl Roofline {
    /// Draws the limits and the work below them on logarithmic axes; none without work.
    pub(super) fn chart(&self) -> Option<String> {
        let work: Vec<&Work> = self.work.iter().filter(|work| work.is_known()).collect();
        if work.is_empty() || self.gb_per_s <= 0.0 {
            return None;
        }
        let intensities = || work.iter().map(|work| work.intensity().log10());
        let x = [
            (intensities().fold(f64::INFINITY, f64::min) - 0.4).floor().min(-2.0),
            (intensities().fold(f64::NEG_INFINITY, f64::max) + 0.4).ceil().max(2.0),
        ];
        let roof = |x: f64| {
            let by_memory = self.gb_per_s * 10_f64.powf(x);
            self.gflop_per_s.map_or(by_memory, |limit| limit.min(by_memory)).log10()
        };
        let rates = || work.iter().map(|work| work.gflop_per_s().log10());
        let y = [
            (rates().fold(f64::INFINITY, f64::min) - 0.2).min(roof(x[0])).floor(),
            (rates().fold(f64::NEG_INFINITY, f64::max) + 0.2).max(roof(x[1])).ceil(),
        ];
        let names = ["operations a byte", "10⁹ operations a second"];
        let mut chart = Chart::new(300.0, [x, y], names, &self.description(&work));
        decades(x).for_each(|(x, number)| chart.mark_x(x, &number));
        decades(y).for_each(|(y, number)| chart.mark_y(y, &number));
        let steps = (0..=200).map(|i| x[0] + (x[1] - x[0]) * f64::from(i) / 200.0);
        chart.curve("roof", steps.map(|x| [x, roof(x)]));
        let text = format!("{:.1} GB/s, measured", self.gb_per_s);
        let middle = x[0] + 0.4 * (x[1] - x[0]);
        chart.label([middle, roof(middle)], [14.0, 14.0], "right", &text);
        if let Some(limit) = self.gflop_per_s {
            chart.label(
                [x[1], limit.log10()],
                [-4.0, -6.0],
                "left",
                &format!("{limit:.0} Gflop/s, estimated"),
            );
        }
        for work in work {
            let at = [work.intensity().log10(), work.gflop_per_s().log10()];
            chart.point(at, &work.name);
            chart.label(at, [9.0, 14.0], "right", &work.name);
        }
        Some(chart.finish())
    }

    fn description(&self, work: &[&Work]) -> String {
        let parts = work.iter().map(|work| {
            format!("{} at {:.1} GB/s and {:.2} Gflop/s", work.name, work.gb_per_s(), work.gflop_per_s())
        });
        format!("Roofline of {}: {}", self.device, parts.collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_without_a_time_is_left_out() {
        let work = |seconds| Work { name: "product".into(), bytes: 1e9, flops: 1e8, seconds };
        let roofline = |work| Roofline {
            device: "cpu".into(),
            gb_per_s: 20.0,
            gflop_per_s: Some(100.0),
            work,
            notes: Vec::new(),
        };
        assert!(roofline(vec![work(0.0)]).chart().is_none() && roofline(Vec::new()).chart().is_none());
        let chart = roofline(vec![work(0.1), work(f64::NAN)]).chart().unwrap();
        assert_eq!(chart.matches("<circle").count(), 1);
        assert!(!chart.contains("NaN"), "{chart}");
    }
}

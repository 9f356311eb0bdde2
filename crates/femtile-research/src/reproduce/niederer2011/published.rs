//! Published activation times, at P1 to P9.

/// The activation times of another program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Published {
    pub program: &'static str,
    pub h_mm: f64,
    pub step_ms: f64,
    /// Milliseconds; none where none is published.
    pub at_points: [Option<f64>; 9],
}

impl Published {
    /// Returns the name of its column.
    pub fn name(&self) -> String {
        format!("h = {} mm, Δt = {} ms, {} (theirs)", self.h_mm, self.step_ms, self.program)
    }
}

/// fenicsx-beat 0.7, the table of its demo `niederer_benchmark.py`: linear elements on tetrahedra, consistent mass matrix,
/// Crank–Nicolson; the beginning of the step in which V > 0.
const BEAT: &str = "fenicsx-beat";
/// Second-order finite differences, explicit, every 0.1 ms: `FD_REFERENCE` of `examples/niederer_benchmark.jl` of Lightning.jl.
const DIFFERENCES: &str = "finite differences";
/// One panel of the paper, read off its plot to about 0.5 ms: `WebPlotDigitilizerdata.xlsx` of cardiacFoam, panel F.
const PANEL: &str = "panel F of the paper";

const fn all(program: &'static str, [h_mm, step_ms]: [f64; 2], times: [f64; 9]) -> Published {
    let mut at_points = [None; 9];
    let mut i = 0;
    while i < 9 {
        at_points[i] = Some(times[i]);
        i += 1;
    }
    Published { program, h_mm, step_ms, at_points }
}

const fn far_corner(program: &'static str, [h_mm, step_ms]: [f64; 2], time: f64) -> Published {
    let mut at_points = [None; 9];
    at_points[super::P8] = Some(time);
    Published { program, h_mm, step_ms, at_points }
}

#[rustfmt::skip]
pub(super) static PUBLISHED: [Published; 13] = [
    all(BEAT, [0.5, 0.05], [1.25, 51.1, 34.9, 58.9, 14.1, 49.5, 34.0, 56.65, 26.05]),
    all(BEAT, [0.5, 0.01], [1.22, 50.85, 33.96, 58.05, 13.98, 49.36, 33.07, 55.91, 25.64]),
    all(BEAT, [0.5, 0.005], [1.215, 50.775, 33.825, 57.96, 13.97, 49.345, 32.945, 55.825, 25.595]),
    all(BEAT, [0.2, 0.05], [1.25, 29.7, 32.9, 40.2, 9.55, 30.0, 32.95, 39.9, 18.9]),
    all(BEAT, [0.2, 0.01], [1.24, 29.09, 31.25, 38.66, 9.34, 29.4, 31.29, 38.42, 18.14]),
    all(BEAT, [0.2, 0.005], [1.235, 29.015, 31.05, 38.475, 9.315, 29.32, 31.08, 38.235, 18.045]),
    all(BEAT, [0.1, 0.05], [1.25, 26.85, 33.3, 40.35, 8.4, 27.5, 33.85, 40.55, 18.95]),
    all(BEAT, [0.1, 0.01], [1.23, 25.64, 31.46, 38.08, 8.03, 26.24, 31.94, 38.21, 17.95]),
    all(BEAT, [0.1, 0.005], [1.225, 25.5, 31.26, 37.81, 7.99, 26.09, 31.72, 37.93, 17.835]),
    all(DIFFERENCES, [0.1, 0.01], [1.3, 30.1, 31.9, 42.9, 9.1, 31.5, 33.0, 43.8, 19.9]),
    far_corner(PANEL, [0.5, 0.005], 141.6),
    far_corner(PANEL, [0.2, 0.005], 62.2),
    far_corner(PANEL, [0.1, 0.005], 48.1),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_points_on_an_edge_are_activated_later() {
        for published in PUBLISHED.iter().filter(|published| published.program != PANEL) {
            let at = |point: usize| published.at_points[point - 1].unwrap();
            for [first, last] in [[1, 2], [1, 3], [1, 5], [3, 4], [2, 4], [5, 6], [5, 7], [1, 9], [9, 8]] {
                assert!(at(first) < at(last), "{}: P{first} and P{last}", published.name());
            }
        }
    }
}

//! Points along a straight line.

/// Values of a function along a straight line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Line {
    /// The points, evenly spaced, both ends included.
    pub points: Vec<[f64; 3]>,
    /// Distance of each point from the first.
    pub arc_lengths: Vec<f64>,
    /// The function at each point; none outside the mesh.
    pub values: Vec<Option<f64>>,
}

impl Line {
    /// Creates `n` points without values; a single point is the first end.
    pub fn new(from: [f64; 3], to: [f64; 3], n: usize) -> Self {
        let n_steps = n.saturating_sub(1).max(1);
        let point = |i: usize| -> [f64; 3] {
            let share = i as f64 / n_steps as f64;
            // Both ends are exact to the last bit.
            if i == n_steps { to } else { std::array::from_fn(|a| from[a] + share * (to[a] - from[a])) }
        };
        let length = (0..3).map(|a| (to[a] - from[a]).powi(2)).sum::<f64>().sqrt();
        Self {
            points: (0..n).map(point).collect(),
            arc_lengths: (0..n).map(|i| length * (i as f64 / n_steps as f64)).collect(),
            values: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_evenly_spaced_and_meet_both_ends() {
        let line = Line::new([1.0, 0.0, 0.0], [1.0, 3.0, 4.0], 5);
        assert_eq!(line.arc_lengths, [0.0, 1.25, 2.5, 3.75, 5.0]);
        assert_eq!(line.points[0], [1.0, 0.0, 0.0]);
        assert_eq!(line.points[2], [1.0, 1.5, 2.0]);
        assert_eq!(Line::new([0.1; 3], [0.7; 3], 11).points[10], [0.7; 3]);
        assert_eq!(Line::new([0.1; 3], [0.7; 3], 1).points, [[0.1; 3]]);
        assert_eq!(Line::new([0.1; 3], [0.7; 3], 0), Line::default());
    }
}

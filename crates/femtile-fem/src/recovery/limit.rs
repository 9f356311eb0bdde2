//! The limit of a recovered vector: those of the finite-element function in the cells around.

use std::iter::Sum;
use std::ops::Add;

/// The largest recovered vector, relative to the largest one of the cells around.
const LARGEST: f64 = 1.5;

/// The gradient, or the flux density, of a finite-element function at points of some cells.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CellVectors {
    /// The largest norm.
    largest: f64,
    integral: [f64; 3],
    volume: f64,
}

impl CellVectors {
    /// Returns the vector at one point, which stands for a volume.
    pub fn new(vector: [f64; 3], volume: f64) -> Self {
        Self { largest: norm(vector), integral: vector.map(|x| volume * x), volume }
    }

    /// Puts vectors at points together, each with the volume that it stands for.
    pub fn together(vectors: &[[f64; 3]], volumes: &[f64]) -> Self {
        vectors.iter().zip(volumes).map(|(&vector, &volume)| Self::new(vector, volume)).sum()
    }

    /// Puts the vectors at the points of each of some cells together.
    pub fn of_cells(vectors: &[[f64; 3]], volumes: &[f64], n_cells: usize) -> Vec<Self> {
        let n_q = (volumes.len() / n_cells.max(1)).max(1);
        let cells = vectors.chunks_exact(n_q).zip(volumes.chunks_exact(n_q));
        cells.map(|(vectors, volumes)| Self::together(vectors, volumes)).collect()
    }

    /// Returns another vector for the same volume.
    pub fn replaced(&self, vector: [f64; 3]) -> Self {
        Self::new(vector, self.volume)
    }

    /// Returns the mean by volume; NaN without points.
    pub fn mean(&self) -> [f64; 3] {
        self.integral.map(|x| x / self.volume)
    }

    /// Returns whether a recovered vector is at most half as large again as the largest one.
    pub fn allows(&self, recovered: [f64; 3]) -> bool {
        norm(recovered) <= LARGEST * self.largest
    }

    /// Returns the recovered vector if the limit allows it, else the mean.
    pub fn limited(&self, recovered: [f64; 3]) -> [f64; 3] {
        if self.allows(recovered) { recovered } else { self.mean() }
    }
}

impl Add for CellVectors {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            largest: self.largest.max(other.largest),
            integral: std::array::from_fn(|a| self.integral[a] + other.integral[a]),
            volume: self.volume + other.volume,
        }
    }
}

impl Sum for CellVectors {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Self::add)
    }
}

fn norm(vector: [f64; 3]) -> f64 {
    crate::evaluation::dot(vector, vector).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_above_the_limit_give_way_to_the_mean_by_volume() {
        let cells = CellVectors::together(&[[2.0, 0.0, 0.0], [0.0, -1.0, 0.0]], &[1.0, 3.0]);
        assert_eq!(cells.limited([0.0, 0.0, 3.0]), [0.0, 0.0, 3.0]);
        assert_eq!(cells.limited([0.0, 0.0, 3.0001]), [0.5, -0.75, 0.0]);
        assert_eq!(cells.limited([f64::NAN; 3]), [0.5, -0.75, 0.0]);
        assert!(CellVectors::default().mean()[0].is_nan());
    }
}

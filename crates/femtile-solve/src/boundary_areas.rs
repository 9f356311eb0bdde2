//! The facets that hold u, and how smooth the slowest mode is that they leave.

use std::f64::consts::PI;

use femtile_comm::Comm;
use femtile_fem::{Condition, Form};
use femtile_linalg::LinalgError;

/// Facets of a condition whose Robin coefficient is evaluated, about.
const SAMPLES: usize = 512;

/// Areas of the facets where u is given (Dirichlet) or exchanged (Robin), projected along the axes: ∫ |nᵢ| over them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct BoundaryAreas {
    given: [f64; 3],
    exchanged: [f64; 3],
    /// ∫ c over the facets with a Robin coefficient c, and their area.
    conductance: f64,
    exchange_area: f64,
    /// The largest c.
    pub largest_exchange: f64,
}

impl BoundaryAreas {
    /// Measures the facets of the conditions of a form that count.
    pub fn of(form: &Form<'_>, counts: impl Fn(u32) -> bool) -> Self {
        let mut held = Self::default();
        for given in form.conditions {
            let step = given.facets.len().div_ceil(SAMPLES).max(1);
            let mut coefficient_here = 0.0;
            for (i, &facet) in given.facets.iter().enumerate() {
                if let Condition::Robin { coefficient, .. } = &given.condition
                    && i % step == 0
                {
                    let value = coefficient_at(form, coefficient, facet);
                    coefficient_here = if value.is_finite() { value.max(0.0) } else { f64::INFINITY };
                }
                if !counts(facet) {
                    continue;
                }
                let along = projections(form, facet);
                let onto = match &given.condition {
                    Condition::Dirichlet(_) => &mut held.given,
                    Condition::Robin { .. } => {
                        let area = along.iter().map(|a| a * a).sum::<f64>().sqrt();
                        held.exchange_area += area;
                        held.conductance += coefficient_here * area;
                        held.largest_exchange = held.largest_exchange.max(coefficient_here);
                        &mut held.exchanged
                    }
                    _ => continue,
                };
                onto.iter_mut().zip(along).for_each(|(sum, area)| *sum += area);
            }
        }
        held
    }

    /// Sums the areas of all ranks. Collective.
    pub fn of_all(self, comm: &Comm) -> Result<Self, LinalgError> {
        let Self { given, exchanged, conductance, exchange_area, largest_exchange } = self;
        let own = [given.as_slice(), &exchanged, &[conductance, exchange_area, largest_exchange]].concat();
        let all = comm.all_gather(&own)?;
        let sum = |which: usize| all.iter().map(|numbers| numbers[which]).sum::<f64>();
        Ok(Self {
            given: [0, 1, 2].map(sum),
            exchanged: [3, 4, 5].map(sum),
            conductance: sum(6),
            exchange_area: sum(7),
            largest_exchange: all.iter().map(|numbers| numbers[8]).fold(0.0, f64::max),
        })
    }

    /// Estimates the smallest eigenvalue of −Δ with these conditions on a mesh of this volume and longest extent, and the number
    /// of axes along which its mode varies.
    ///
    /// A slab of thickness V/A between two given sides has π²/(V/A)², held on one side π²/(2 V/A)². So an axis with the
    /// projected area Aᵢ has (π Aᵢ / 2V)². A side with exchange counts as the share w of its area with
    /// $1/w^2 = 1 + \pi^2 \sigma A_i / (4 c V)$, so that a body whose inner resistance is small has $c A_i / (\sigma V)$. Exact for
    /// boxes whose sides are held alike, for one axis of each; within a factor of two for balls.
    pub fn smoothest(&self, volume: f64, length: f64, sigma: f64) -> (f64, f64) {
        let mean_exchange =
            if self.exchange_area > 0.0 { self.conductance / self.exchange_area } else { 0.0 };
        let share = |area: f64| match mean_exchange > 0.0 && area > 0.0 {
            true => (1.0 + 0.25 * PI * PI * sigma * area / (mean_exchange * volume)).recip().sqrt(),
            false => 0.0,
        };
        let of_axis = |axis: usize| {
            let area = self.given[axis] + self.exchanged[axis] * share(self.exchanged[axis]);
            (0.5 * PI * area / volume).powi(2)
        };
        let axes = [0, 1, 2].map(of_axis);
        let sum: f64 = axes.iter().sum();
        // No mode is smoother than half a wave over twice the length, but the constant in a body that exchanges little, and for
        // one eigenvalue apart from all others conjugate gradients take few iterations more.
        let longest = (0.5 * PI / length).powi(2);
        let roots: f64 = axes.iter().map(|axis| axis.sqrt()).sum();
        let n_axes = if sum > 0.0 { roots * roots / sum } else { 1.0 };
        (sum.max(longest), n_axes)
    }
}

fn coefficient_at(form: &Form<'_>, coefficient: &femtile_fem::Coefficient, facet: u32) -> f64 {
    let cell = form.boundary.cells[facet as usize] as usize;
    let nodes = form.boundary.facet(facet as usize);
    let middle = [0, 1, 2].map(|axis| {
        nodes.iter().map(|&node| form.mesh.points[node as usize][axis]).sum::<f64>() / nodes.len() as f64
    });
    coefficient.scalar_at(cell, form.mesh.cell_tags.get(cell).copied().unwrap_or(0), middle)
}

/// Returns |nᵢ| times the length or area of a facet, as its corners span it.
fn projections(form: &Form<'_>, facet: u32) -> [f64; 3] {
    let nodes = form.boundary.facet(facet as usize);
    let from = |a: usize, b: usize| {
        let (a, b) = (form.mesh.points[nodes[a] as usize], form.mesh.points[nodes[b] as usize]);
        [0, 1, 2].map(|i| b[i] - a[i])
    };
    let half_cross = |x: [f64; 3], y: [f64; 3]| {
        [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]
            .map(|entry| 0.5 * entry.abs())
    };
    match nodes.len() {
        2 => {
            let along = from(0, 1);
            [along[1].abs(), along[0].abs(), 0.0]
        }
        3 => half_cross(from(0, 1), from(0, 2)),
        4 => half_cross(from(0, 2), from(1, 3)),
        _ => [0.0; 3],
    }
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};

    use super::*;
    use crate::Poisson;

    /// The smallest eigenvalue of −u″ on (0, 1) with u' = 0 at 0 and σu' = −cu at 1, by bisection of √μ tan √μ = c/σ.
    fn slab(c: f64, sigma: f64) -> f64 {
        let (mut low, mut high) = (0.0, 0.5 * PI);
        for _ in 0..100 {
            let middle: f64 = 0.5 * (low + high);
            if middle * middle.tan() > c / sigma { high = middle } else { low = middle }
        }
        low * low
    }

    #[test]
    fn areas_held_are_those_of_the_mesh() {
        for split in [BoxSplit::Kuhn, BoxSplit::Hexahedron] {
            let upper = [2.0, 3.0, 5.0];
            let mesh =
                box_mesh(&BoxConfig { cells: [3, 2, 4], upper, split, ..BoxConfig::default() }).unwrap();
            let problem =
                Poisson::new(&mesh).dirichlet("xmin", 0.0).unwrap().robin("zmax", "x", 0.0).unwrap();
            let discretization = problem.discretize().unwrap();
            let held = BoundaryAreas::of(&discretization.form(0), |_| true);
            let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
            close(held.given[0], 15.0);
            close(held.exchanged[2], 6.0);
            close(held.exchange_area, 6.0);
            close(held.conductance, 6.0);
            assert_eq!([held.given[1], held.exchanged[0], held.exchanged[1]], [0.0; 3]);
        }
    }

    #[test]
    fn boxes_have_the_smallest_eigenvalue_of_their_sides() {
        let sides = |given: [f64; 3]| BoundaryAreas { given, ..BoundaryAreas::default() };
        let exact = [([1.0, 0.0, 0.0], 0.25, 1.0), ([2.0, 0.0, 0.0], 1.0, 1.0), ([2.0; 3], 3.0, 3.0)];
        for (given, times, axes) in exact {
            let (value, n_axes) = sides(given).smoothest(1.0, 1.0, 7.0);
            assert!((value / (times * PI * PI) - 1.0).abs() < 1e-12, "{value}");
            assert!((n_axes - axes).abs() < 1e-12);
        }
        // None is held: the constants are left out, and the next mode has a wave over twice the length.
        assert_eq!(BoundaryAreas::default().smoothest(1.0, 1.0, 1.0), ((0.5 * PI).powi(2), 1.0));
    }

    #[test]
    fn exchange_counts_by_its_coefficient() {
        let (sigma, length) = (3.0, 100.0);
        for c in [1e-6, 1e-2, 1.0, 1e2, 1e4] {
            let held = BoundaryAreas {
                exchanged: [1.0, 0.0, 0.0],
                conductance: c,
                exchange_area: 1.0,
                largest_exchange: c,
                ..BoundaryAreas::default()
            };
            let expected = slab(c, sigma).max((0.5 * PI / length).powi(2));
            let ratio = held.smoothest(1.0, length, sigma).0 / expected;
            assert!((0.8..1.25).contains(&ratio), "{c}: {ratio}");
        }
    }
}

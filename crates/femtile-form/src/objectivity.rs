//! The answer of an energy to rotations of the body, and its stresses at rest.
//!
//! An energy of a solid is *objective*: turning the deformed body does not change it, $W(QF) = W(F)$ for all rotations Q and
//! $F = I + \nabla u$ with det F > 0. The Cauchy stress of an objective energy is symmetric, and the other way round.

use crate::integrand::{Input, Integrand, Side};

/// Lengths of random gradients of the displacement: the first at which an energy has values decides.
const LENGTHS: [f64; 3] = [0.3, 0.1, 0.03];

/// Random matrices of each length.
const SAMPLES: usize = 12;

/// A rotation so small that the energy of its small strain is one of fourth order.
const SMALL_ANGLE: f64 = 1e-2;

/// The energy of a small rotation over that of strains of its size, below which the body is a solid. Strains of fourth order make
/// it 1e-4, energies that feel rotations of first order about 1.
const OF_SOLID: f64 = 1e-2;

/// The change of the energy by a rotation over that by deformations, above which it is no rounding.
const CHANGE: f64 = 1e-3;

/// The third difference of a quadratic energy over its values.
const ROUNDING: f64 = 1e-7;

/// A strain so small that the energy is quadratic.
const SMALL_STRAIN: f64 = 1e-3;

/// The odd part of the energy of small strains over the even one above which there is stress at rest: that of a strain of 1e-4.
const ODD: f64 = 0.1;

/// The factor of a larger strain.
const LARGER: f64 = 10.0;

/// The behaviour of an energy of a solid with large deformations under rotations and at rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objectivity {
    /// A rotation in degrees that changes the energy; none of an objective energy.
    pub changed_by: Option<f64>,
    /// Whether there are stresses where the displacement is zero.
    pub is_stressed_at_rest: bool,
}

/// A matrix of the dimension of space, by rows.
type Matrix = [[f64; 3]; 3];

const IDENTITY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

impl Integrand {
    /// Turns the body at a point where all inputs but the state have values, with the displacement zero there.
    ///
    /// Returns none unless the energy is that of a solid which is not linear: it has a value at rest, is not quadratic in the
    /// gradient of as many components as there are axes, and small rotations change it in fourth order only.
    pub fn objectivity(&self, value_of: &dyn Fn(Input) -> f64) -> Option<Objectivity> {
        let d = self.dimension();
        if self.n_slots() != d * (1 + d) || self.n_sides() != 1 {
            return None;
        }
        let solid = Solid::new(self, value_of)?;
        if solid.is_quadratic() || !solid.resists_strains_alone() {
            return None;
        }
        Some(Objectivity { changed_by: solid.changed_by(), is_stressed_at_rest: solid.is_stressed_at_rest() })
    }
}

/// An energy density as a function of ∇u.
struct Solid<'a> {
    integrand: &'a Integrand,
    program: &'a femtile_expression::Program,
    /// The inputs at rest.
    inputs: Vec<f64>,
    at_rest: f64,
}

impl<'a> Solid<'a> {
    /// Returns the energy of an integrand that has one with a value at rest.
    fn new(integrand: &'a Integrand, value_of: &dyn Fn(Input) -> f64) -> Option<Self> {
        let value = |&input: &Input| if let Input::State(_) = input { 0.0 } else { value_of(input) };
        let mut inputs: Vec<f64> = integrand.inputs().iter().map(value).collect();
        inputs.resize(integrand.n_inputs(), 0.0);
        let mut solid = Self { integrand, program: integrand.energy()?, inputs, at_rest: f64::NAN };
        solid.at_rest = solid.energy(&[[0.0; 3]; 3]);
        solid.at_rest.is_finite().then_some(solid)
    }

    fn dimension(&self) -> usize {
        self.integrand.dimension()
    }

    fn energy(&self, gradient: &Matrix) -> f64 {
        let mut inputs = self.inputs.clone();
        let state = |(input, value): (&Input, &mut f64)| {
            let Input::State(slot) = *input else { return };
            for (component, row) in gradient.iter().enumerate().take(self.dimension()) {
                for (axis, &entry) in row.iter().enumerate().take(self.dimension()) {
                    if self.integrand.slot(Side::First, component, Some(axis)) == slot {
                        *value = entry;
                    }
                }
            }
        };
        self.integrand.inputs().iter().zip(&mut inputs).for_each(state);
        let mut energy = [f64::NAN];
        self.program.eval(&inputs, &mut energy);
        energy[0]
    }

    /// The even and the odd part of the change of the energy from rest.
    fn parts(&self, gradient: &Matrix) -> [f64; 2] {
        let [ahead, behind] = [1.0, -1.0].map(|sign| self.energy(&scaled(gradient, sign)));
        [((ahead + behind) / 2.0 - self.at_rest).abs(), ((ahead - behind) / 2.0).abs()]
    }

    fn is_quadratic(&self) -> bool {
        let mut random = Random::default();
        (0..SAMPLES).all(|_| {
            let gradient = random.matrix(self.dimension(), 0.1);
            let along = [-1.0, 0.0, 1.0, 2.0].map(|length| self.energy(&scaled(&gradient, length)));
            let [a, b, c, d] = along;
            let size = along.iter().map(|value| value.abs()).fold(0.0, f64::max);
            // Without a value it is not quadratic.
            (d - 3.0 * c + 3.0 * b - a).abs() <= ROUNDING * size
        })
    }

    /// Returns whether small rotations cost less than strains of their size.
    fn resists_strains_alone(&self) -> bool {
        let (mut random, d) = (Random::default(), self.dimension());
        let (mut of_rotations, mut of_strains) = (0.0_f64, 0.0_f64);
        for _ in 0..SAMPLES {
            let turned = minus_identity(&random.rotation(d, SMALL_ANGLE));
            let change = (self.energy(&turned) - self.at_rest).abs();
            let [even, odd] = self.parts(&symmetric(&random.matrix(d, SMALL_ANGLE)));
            if !(change.is_finite() && (even + odd).is_finite()) {
                return false;
            }
            (of_rotations, of_strains) = (of_rotations.max(change), of_strains.max(even));
        }
        of_strains > f64::EPSILON * 1e4 * self.at_rest.abs() && of_rotations <= OF_SOLID * of_strains
    }

    /// Returns the angle of the rotation that changes the energy of a deformed body most, in degrees.
    fn changed_by(&self) -> Option<f64> {
        let (mut random, d) = (Random::default(), self.dimension());
        for length in LENGTHS {
            let (mut of_deformations, mut of_rotations, mut at) = (0.0_f64, 0.0_f64, 0.0);
            let mut n = 0;
            for _ in 0..SAMPLES {
                let (gradient, angle) = (random.matrix(d, length), random.between(0.5, 3.0));
                let deformed = plus_identity(&gradient);
                let turned = minus_identity(&product(&random.rotation(d, angle), &deformed));
                let [before, after] = [&gradient, &turned].map(|gradient| self.energy(gradient));
                if determinant(&deformed) <= 0.0 || !(before.is_finite() && after.is_finite()) {
                    continue;
                }
                n += 1;
                of_deformations = of_deformations.max((before - self.at_rest).abs());
                if (after - before).abs() > of_rotations {
                    (of_rotations, at) = ((after - before).abs(), angle.to_degrees());
                }
            }
            if 2 * n >= SAMPLES {
                return (of_rotations > CHANGE * of_deformations).then_some(at);
            }
        }
        None
    }

    fn is_stressed_at_rest(&self) -> bool {
        let (mut random, d) = (Random::default(), self.dimension());
        let (mut even, mut odd, mut odd_of_larger) = (0.0_f64, 0.0_f64, 0.0_f64);
        for _ in 0..SAMPLES {
            let gradient = random.matrix(d, SMALL_STRAIN);
            let own = self.parts(&gradient);
            (even, odd) = (even.max(own[0]), odd.max(own[1]));
            odd_of_larger = odd_of_larger.max(self.parts(&scaled(&gradient, LARGER))[1]);
        }
        // Other odd parts, such as those of materials that are stiffer in tension, grow at least as the square of the strain.
        odd > ODD * even
            && odd > 0.5 / LARGER * odd_of_larger
            && odd > f64::EPSILON * 1e4 * self.at_rest.abs()
    }
}

/// Numbers that are the same in each run.
#[derive(Default)]
struct Random(u64);

impl Random {
    fn between(&mut self, lower: f64, upper: f64) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let unit = ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        lower + unit * (upper - lower)
    }

    fn matrix(&mut self, d: usize, length: f64) -> Matrix {
        let mut matrix = [[0.0; 3]; 3];
        for row in matrix.iter_mut().take(d) {
            row.iter_mut().take(d).for_each(|entry| *entry = self.between(-length, length));
        }
        matrix
    }

    /// A rotation about a random axis, in the plane about that of z.
    fn rotation(&mut self, d: usize, angle: f64) -> Matrix {
        let axis: [f64; 3] = match d {
            2 => [0.0, 0.0, 1.0],
            _ => [0, 1, 2].map(|_: usize| self.between(-1.0, 1.0)),
        };
        let length = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
        let [x, y, z] = axis.map(|entry| entry / length);
        let (sine, cosine) = angle.sin_cos();
        let cross = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]];
        let squared = product(&cross, &cross);
        by_entry(|i, j| IDENTITY[i][j] + sine * cross[i][j] + (1.0 - cosine) * squared[i][j])
    }
}

fn by_entry(entry: impl Fn(usize, usize) -> f64) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)))
}

fn scaled(a: &Matrix, factor: f64) -> Matrix {
    by_entry(|i, j| factor * a[i][j])
}

fn symmetric(a: &Matrix) -> Matrix {
    by_entry(|i, j| f64::midpoint(a[i][j], a[j][i]))
}

fn plus_identity(a: &Matrix) -> Matrix {
    by_entry(|i, j| a[i][j] + IDENTITY[i][j])
}

fn minus_identity(a: &Matrix) -> Matrix {
    by_entry(|i, j| a[i][j] - IDENTITY[i][j])
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    by_entry(|i, j| (0..3).map(|k| a[i][k] * b[k][j]).sum())
}

fn determinant(a: &Matrix) -> f64 {
    let minor = |j: usize| {
        let [k, l] = [(j + 1) % 3, (j + 2) % 3];
        a[1][k] * a[2][l] - a[1][l] * a[2][k]
    };
    (0..3).map(|j| a[0][j] * minor(j)).sum()
}

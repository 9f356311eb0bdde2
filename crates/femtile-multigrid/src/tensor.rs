//! Sums of products of 1-D matrices applied to tensors side by side, and their inverses.

use femtile_device::Cpu;
use femtile_tensor::{Contract, Parity, contract, separable};

use crate::axis::{Line, PatchLine};

/// Entries a side of the largest cubes that all products are compiled for at once.
const MAX_CUBE: usize = 9;

/// Room for tensors, kept from one batch to the next.
#[derive(Debug)]
pub(crate) struct Room<T>(Vec<T>);

impl<T: Contract> Room<T> {
    /// For tensors of so many values.
    pub fn new(len: usize) -> Self {
        Self(vec![T::ZERO; 4 * len])
    }
}

/// $K_x M_y M_z + M_x K_y M_z + M_x M_y K_z$, the last term in three dimensions alone.
#[derive(Debug)]
pub(crate) struct Laplace<'a, T> {
    lines: [&'a Line<T>; 3],
    /// Of the three terms and of a fourth, for each lane, where matrices of one axis serve all of them.
    coefficients: Option<Vec<T>>,
}

impl<'a, T: Contract> Laplace<'a, T> {
    /// Of the matrices of each axis, for so many tensors side by side.
    pub fn new(lines: [&'a Line<T>; 3], n_lanes: usize) -> Self {
        let of_lane = |c: f64| std::iter::repeat_n(T::from_f64(c), n_lanes);
        let coefficients = similar(lines).map(|terms| terms.into_iter().flat_map(of_lane).collect());
        Self { lines, coefficients }
    }

    /// Applies it in place.
    ///
    /// # Source
    /// `[cui2024]`, eqs. (2.11) and (2.12); seven products, as section 3.1.1 shares them.
    pub fn apply(&self, cpu: &Cpu, x: &mut [T], Room(room): &mut Room<T>) {
        let [x_line, y_line, z_line] = self.lines;
        if let Some(coefficients) = &self.coefficients {
            return separable(cpu, [&x_line.mass, &x_line.stiffness], coefficients, x, room);
        }
        let (a, rest) = room.split_at_mut(x.len());
        let (b, rest) = rest.split_at_mut(x.len());
        let (c, rest) = rest.split_at_mut(x.len());
        let d = &mut rest[..x.len()];
        let (n, m) = (x_line.mass.n_cols(), y_line.mass.n_cols());
        contract(cpu, &x_line.mass, 1, x, a);
        contract(cpu, &x_line.stiffness, 1, x, b);
        contract(cpu, &y_line.mass, n, b, c);
        contract(cpu, &y_line.stiffness, n, a, d);
        add(cpu, c, d);
        if z_line.mass.n_cols() == 1 {
            x.copy_from_slice(c);
            return;
        }
        contract(cpu, &y_line.mass, n, a, b);
        contract(cpu, &z_line.mass, n * m, c, x);
        contract(cpu, &z_line.stiffness, n * m, b, d);
        add(cpu, x, d);
    }
}

/// Coefficients with which the matrices of the first axis stand for those of all: lengths of the others over its own. None
/// where they are no multiples, or nothing is compiled for them.
fn similar<T: Contract>(lines: [&Line<T>; 3]) -> Option<[f64; 4]> {
    let first = lines[0];
    let is_even = [&first.mass, &first.stiffness].iter().all(|factor| factor.parity() == Parity::Even);
    if !is_even || first.mass.n_cols() > MAX_CUBE || lines[2].widths.is_empty() {
        return None;
    }
    let ratio = |line: &Line<T>| {
        let ratios: Vec<f64> =
            line.widths.iter().zip(&first.widths).map(|(other, own)| other / own).collect();
        let is_multiple = line.widths.len() == first.widths.len()
            && ratios.iter().all(|ratio| (ratio / ratios[0] - 1.0).abs() < 1e-14);
        is_multiple.then_some(ratios[0])
    };
    let (y, z) = (ratio(lines[1])?, ratio(lines[2])?);
    Some([y * z, z / y, y / z, 0.0])
}

/// $S\, (\Lambda_x + \Lambda_y + \Lambda_z)^{-1} S^\mathsf{T}$ with $S = S_z \otimes S_y \otimes S_x$, which solves on the nodes
/// inside windows.
///
/// # Source
/// `[cui2024]`, eqs. (2.13) and (2.14).
#[derive(Debug)]
pub(crate) struct Inverse<'a, T> {
    lines: Vec<&'a PatchLine<T>>,
    reciprocals: Vec<T>,
}

impl<'a, T: Contract> Inverse<'a, T> {
    /// Of what the axes have; one that there is not is left out.
    pub fn new(lines: [&'a PatchLine<T>; 3]) -> Self {
        let [x, y, z] = lines.map(|line| &line.values);
        let sums = z.iter().flat_map(|z| y.iter().flat_map(move |y| x.iter().map(move |x| x + y + z)));
        let reciprocals = sums.map(|sum| T::from_f64(1.0 / sum)).collect();
        let lines = lines.into_iter().filter(|line| !line.line.widths.is_empty()).collect();
        Self { lines, reciprocals }
    }

    /// Applies it in place.
    pub fn apply(&self, cpu: &Cpu, x: &mut [T], Room(room): &mut Room<T>) {
        // An even number of products in all, so that the last one ends in x.
        let (mut from, mut to) = (x, &mut room[..]);
        for which in [0, 1] {
            let mut inner = 1;
            for line in &self.lines {
                let len = from.len().min(to.len());
                contract(cpu, &line.vectors[which], inner, &from[..len], &mut to[..len]);
                std::mem::swap(&mut from, &mut to);
                inner *= line.values.len();
            }
            if which == 0 {
                let len = from.len().min(to.len());
                self.divide(cpu, &mut from[..len]);
            }
        }
    }

    fn divide(&self, cpu: &Cpu, x: &mut [T]) {
        let n_lanes = x.len() / self.reciprocals.len();
        cpu.vectorize(
            #[inline(always)]
            || {
                for (x, factor) in x.chunks_exact_mut(n_lanes).zip(&self.reciprocals) {
                    x.iter_mut().for_each(|x| *x *= *factor);
                }
            },
        );
    }
}

fn add<T: Contract>(cpu: &Cpu, y: &mut [T], x: &[T]) {
    cpu.vectorize(
        #[inline(always)]
        || y.iter_mut().zip(x).for_each(|(y, x)| *y += *x),
    );
}

//! Sums of tensor products of 1-D matrices, applied to several tensors in SIMD lanes.

use femtile_device::Cpu;
use femtile_sum_factorization::{Factor, Parity, SumFactorization, contract, separable};

use crate::axis::Line;

/// Largest cube edge with a kernel compiled for all products of a cell.
const MAX_CUBE: usize = 9;

/// Workspace, kept from one batch to the next.
#[derive(Debug, Default)]
pub(crate) struct Workspace<T>([Vec<T>; 6]);

/// $K_x M_y M_z + M_x K_y M_z + M_x M_y K_z$, the last term in three dimensions only.
#[derive(Debug)]
pub(crate) struct Laplace<'a, T> {
    lines: [&'a Line<T>; 3],
    /// Factors of the three terms and of a fourth, per lane, where the matrices of all axes are multiples of those of
    /// one.
    coefficients: Option<Vec<T>>,
}

impl<'a, T: SumFactorization> Laplace<'a, T> {
    /// The sum for the matrices of each axis.
    pub fn of(lines: [&'a Line<T>; 3]) -> Self {
        Self { lines, coefficients: None }
    }

    /// The sum for square matrices and `n_lanes` tensors.
    pub fn of_cells(lines: [&'a Line<T>; 3], n_lanes: usize) -> Self {
        let of_lane = |c: f64| std::iter::repeat_n(T::from_f64(c), n_lanes);
        let coefficients = similar(lines).map(|terms| terms.into_iter().flat_map(of_lane).collect());
        Self { lines, coefficients }
    }

    /// Applies the sum to `x`, which is overwritten and may hold the result.
    ///
    /// # Source
    /// `[cui2024]`, eqs. (2.11) and (2.12); seven products, as section 3.1.1 shares them.
    pub fn apply<'x>(
        &self,
        cpu: &Cpu,
        x: &'x mut [T],
        Workspace(workspace): &'x mut Workspace<T>,
    ) -> &'x [T] {
        let [x_line, y_line, z_line] = self.lines;
        let [a, b, c, d, e, f] = workspace;
        if let Some(coefficients) = &self.coefficients {
            a.resize(2 * x.len(), T::ZERO);
            separable(cpu, [&x_line.mass, &x_line.stiffness], coefficients, x, a);
            return x;
        }
        // Products along x, then along y; terms are summed before the next axis.
        along(cpu, &x_line.mass, 1, x, a);
        along(cpu, &x_line.stiffness, 1, x, b);
        let inner = x_line.mass.n_rows();
        along(cpu, &y_line.mass, inner, b, c);
        along(cpu, &y_line.stiffness, inner, a, d);
        add(cpu, c, d);
        if z_line.widths.is_empty() {
            return c;
        }
        along(cpu, &y_line.mass, inner, a, e);
        let inner = inner * y_line.mass.n_rows();
        along(cpu, &z_line.mass, inner, c, f);
        along(cpu, &z_line.stiffness, inner, e, d);
        add(cpu, f, d);
        f
    }
}

/// Applies a matrix to all lines along an axis.
fn along<T: SumFactorization>(cpu: &Cpu, factor: &Factor<T>, inner: usize, x: &[T], y: &mut Vec<T>) {
    y.resize(x.len() / factor.n_cols() * factor.n_rows(), T::ZERO);
    contract(cpu, factor, inner, x, y);
}

/// Returns the factors by which the matrices of the first axis represent those of all axes: width ratios. None where they
/// are no multiples, or no kernel is compiled.
fn similar<T: SumFactorization>(lines: [&Line<T>; 3]) -> Option<[f64; 4]> {
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

fn add<T: SumFactorization>(cpu: &Cpu, y: &mut [T], x: &[T]) {
    cpu.vectorize(
        #[inline(always)]
        || y.iter_mut().zip(x).for_each(|(y, x)| *y += *x),
    );
}

//! Symmetric scaling of a badly scaled matrix before its levels are set up.
//!
//! Row sums and tentative prolongators assume that constants are the smooth vectors of a matrix A. The smooth
//! vectors of D A D are $D^{-1} 1$, and rows with small entries beside large ones would have their diagonals
//! raised without need. The levels of such a matrix are those of S A S, whose smooth vectors are constants
//! again.

use std::cmp::Ordering;

use femtile_device::{Buffer, Scalar, parallel};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::csr::{Csr, CsrKernels};

use super::rows::{PIECE, RowAccess, Rows};
use super::spectrum::{STEPS, largest_eigenvalue};
use super::tentative::NearNullspace;

/// Constants are not smooth if the ratios of row sums to the diagonal have a larger variance. For finite
/// elements they are nearly constant: about zero without a reaction and at most a few units with it.
const VARIED: f64 = 1.0;
/// With a smaller variance constants are smooth. Between the two, negative row sums tell: reactions and conditions at a boundary
/// have positive ones, and $D A D$ has both.
const EVEN: f64 = 1e-4;
/// Share of negative sums in the squares of all beyond which they are those of a scaling. Discretizations have up to 0.02, of
/// obtuse angles beside Dirichlet values.
const NEGATIVE: f64 = 0.1;
/// With several vectors, absolute row sums may be this many times those of the matrix scaled to a diagonal of ones.
pub(crate) const LOPSIDED: f64 = 8.0;
/// Steps of Jacobi's method that make a vector smooth.
const RELAXED: usize = 10;
/// The largest ratio of factors, the squares of which single precision still holds.
const WIDEST: f64 = 1e60;

/// A scaling S of the unknowns.
#[derive(Debug)]
pub(crate) struct Rescaling {
    /// The diagonal of S.
    pub factors: Vec<f64>,
    /// $S^{-1}$ times the near-nullspace, as [`NearNullspace::values`]; none if that is constant.
    pub near_nullspace: Option<Vec<f64>>,
}

/// Returns whether a matrix is to be scaled before its levels are set up, for a near-nullspace of `n_vectors` vectors.
///
/// # Cost
/// A pass over the values; over all entries with several vectors.
pub(crate) fn is_badly_scaled<T: Scalar>(a: &Rows<T>, n_vectors: usize, block: usize) -> bool {
    if n_vectors == 1 && block == 1 { has_varied_sums(a) } else { is_lopsided(a) }
}

/// [`is_badly_scaled`] for one vector, on the device of the matrix.
pub(crate) fn is_badly_scaled_there<H: Scalar, D: CsrKernels<H> + VectorKernels<H>>(
    a: &Csr<H, D>,
) -> Result<bool, LinalgError> {
    let (device, n) = (a.values().device(), a.n_rows());
    let inverse = match a.inverse_diagonal() {
        // An entry that is too small for this precision, or an invalid one.
        Err(LinalgError::Diagonal { .. }) => return Ok(true),
        Ok(None) => return Ok(false),
        Ok(Some(inverse)) => inverse,
        Err(error) => return Err(error),
    };
    let (mut ratios, mut sums) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
    device.fill(&mut ratios, H::ONE)?;
    a.apply(&mut sums, &ratios)?;
    device.scale_by(&mut ratios, &inverse, &sums)?;
    let square = device.dot(&ratios, &ratios)?;
    let variance = variance(device.sum(&ratios)?, square, n);
    if !(EVEN..=VARIED).contains(&variance) {
        return Ok(variance > VARIED);
    }
    let ratios = ratios.host_view()?;
    let negative = parallel::map(n.div_ceil(PIECE), 1, |piece| {
        let ratios = &ratios[piece * PIECE..((piece + 1) * PIECE).min(n)];
        ratios.iter().map(|ratio| ratio.to_f64().min(0.0).powi(2)).sum::<f64>()
    });
    Ok(negative.iter().sum::<f64>() > NEGATIVE * square)
}

fn variance(sum: f64, square: f64, n: usize) -> f64 {
    let mean = sum / n as f64;
    square / n as f64 - mean * mean
}

fn has_varied_sums<T: Scalar>(a: &Rows<T>) -> bool {
    let n = a.n_rows();
    let pieces = parallel::map(n.div_ceil(PIECE), 1, |piece| {
        let mut sums = [0.0_f64; 3];
        for row in piece * PIECE..((piece + 1) * PIECE).min(n) {
            let (columns, values) = a.row(row);
            let (mut own, mut sum) = (T::ZERO, T::ZERO);
            for (&column, &value) in columns.iter().zip(values) {
                sum += value;
                own = if column as usize == row { value } else { own };
            }
            let ratio = if own > T::ZERO { sum.to_f64() / own.to_f64() } else { f64::INFINITY };
            sums[0] += ratio;
            sums[1] += ratio * ratio;
            sums[2] += ratio.min(0.0).powi(2);
        }
        sums
    });
    let [sum, square, negative] = [0, 1, 2].map(|i| pieces.iter().map(|sums| sums[i]).sum::<f64>());
    let variance = variance(sum, square, n);
    square == f64::INFINITY || variance > VARIED || (variance > EVEN && negative > NEGATIVE * square)
}

fn is_lopsided<T: Scalar>(a: &Rows<T>) -> bool {
    let roots: Vec<f64> = diagonal_of(a).into_iter().map(f64::sqrt).collect();
    !parallel::all(a.n_rows(), PIECE, |row| {
        let (columns, values) = a.row(row);
        let (mut plain, mut scaled) = (0.0, 0.0);
        for (&column, value) in columns.iter().zip(values) {
            let size = value.to_f64().abs();
            plain += size;
            scaled += size / roots[column as usize];
        }
        plain.partial_cmp(&(LOPSIDED * scaled * roots[row])) != Some(Ordering::Greater)
    })
}

fn diagonal_of<T: Scalar>(a: &Rows<T>) -> Vec<f64> {
    parallel::map(a.n_rows(), PIECE, |row| {
        let (columns, values) = a.row(row);
        columns.iter().position(|&column| column as usize == row).map_or(0.0, |at| values[at].to_f64())
    })
}

impl Rescaling {
    /// Returns a scaling with which the row sums of $S A S$ are small. Candidates are the given vector, the
    /// reciprocal roots of the diagonal, and these or constants after some steps of Jacobi's method. With
    /// several vectors, or one that is not smooth, the scaling gives a diagonal of ones. None if constants
    /// are as good, and for a diagonal that is not positive.
    ///
    /// # Cost
    /// Some twenty passes over the non-zeros.
    pub fn of(a: &Rows<f64>, given: Option<&[f64]>, block: usize) -> Option<Self> {
        let (n, diagonal) = (a.n_rows(), diagonal_of(a));
        if !diagonal.iter().all(|own| *own > 0.0 && own.is_finite()) {
            return None;
        }
        let roots: Vec<f64> = diagonal.iter().map(|own| own.sqrt().recip()).collect();
        if block > 1 || given.is_some_and(|given| given.len() != n) {
            return Self::by_diagonal(roots, given, block);
        }
        let of_ones = roughness(a, &diagonal, &vec![1.0; n]);
        if let Some(given) = given {
            let is_smooth = given.iter().all(|b| *b != 0.0) && roughness(a, &diagonal, given) < of_ones;
            return match is_smooth {
                true => Self { factors: given.to_vec(), near_nullspace: None }.normalized(),
                false => Self::by_diagonal(roots, Some(given), block),
            };
        }
        let of_roots = relaxed(a, &diagonal, roots.clone());
        let of_constants = relaxed(a, &diagonal, vec![1.0; n]);
        let candidates = [roots, of_roots, of_constants];
        let measured = candidates.map(|factors| (roughness(a, &diagonal, &factors), factors));
        let (rough, factors) = measured.into_iter().min_by(|x, y| x.0.total_cmp(&y.0))?;
        if rough < of_ones { Self { factors, near_nullspace: None }.normalized() } else { None }
    }

    fn by_diagonal(roots: Vec<f64>, given: Option<&[f64]>, block: usize) -> Option<Self> {
        let n = roots.len();
        let of_all = match given {
            Some(given) => given.to_vec(),
            None => NearNullspace::constants(n, block).values,
        };
        let mut scaled = Self { factors: roots, near_nullspace: None }.normalized()?;
        let k = of_all.len() / n;
        let values = of_all.iter().enumerate().map(|(i, value)| value / scaled.factors[i / k]);
        scaled.near_nullspace = Some(values.collect());
        Some(scaled)
    }

    /// Centres the factors at one; none if they differ beyond single precision.
    fn normalized(mut self) -> Option<Self> {
        let sizes = || self.factors.iter().map(|factor| factor.abs());
        let (least, most) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
        if !(least > 0.0 && most.is_finite() && most / least < WIDEST) {
            return None;
        }
        let middle = least.sqrt() * most.sqrt();
        self.factors.iter_mut().for_each(|factor| *factor /= middle);
        Some(self)
    }

    /// Returns the values of $S A S$.
    pub fn values(&self, a: &Rows<f64>) -> Vec<f64> {
        let mut values = a.values.clone();
        for row in 0..a.n_rows() {
            let range = a.offsets[row]..a.offsets[row + 1];
            for (value, &column) in values[range.clone()].iter_mut().zip(&a.columns[range]) {
                *value *= self.factors[row] * self.factors[column as usize];
            }
        }
        values
    }
}

/// Returns the mean of $((A b)_i / (a_{ii} b_i))^2$: of the squares of the row sums of the scaled matrix over its diagonal.
fn roughness(a: &Rows<f64>, diagonal: &[f64], b: &[f64]) -> f64 {
    let squares = parallel::map(a.n_rows(), PIECE, |row| {
        let ratio = dot(a, row, b) / (diagonal[row] * b[row]);
        ratio * ratio
    });
    squares.iter().sum::<f64>() / squares.len().max(1) as f64
}

/// Returns a vector after steps of Jacobi's method for $A b = 0$.
fn relaxed(a: &Rows<f64>, diagonal: &[f64], mut b: Vec<f64>) -> Vec<f64> {
    let inverse: Vec<f64> = diagonal.iter().map(|own| own.recip()).collect();
    let divide = |z: &mut [f64], r: &[f64]| {
        z.iter_mut().zip(r).zip(&inverse).for_each(|((z, r), d)| *z = d * r);
    };
    let omega = 1.0 / largest_eigenvalue(a, &inverse, STEPS, divide);
    for _ in 0..RELAXED {
        b = parallel::map(b.len(), PIECE, |row| b[row] - omega * inverse[row] * dot(a, row, &b));
    }
    b
}

fn dot(a: &Rows<f64>, row: usize, b: &[f64]) -> f64 {
    let (columns, values) = a.row(row);
    columns.iter().zip(values).map(|(&column, value)| value * b[column as usize]).sum()
}

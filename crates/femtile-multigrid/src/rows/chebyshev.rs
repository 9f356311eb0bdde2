use std::sync::{Mutex, PoisonError};

use femtile_device::cpu::SharedMut;
use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::precondition::polynomial::{Step, chebyshev};
use femtile_sum_factorization::SumFactorization;

use super::operator::{ProductRow, RowOperator};
use crate::grid::BoxGrid;
use crate::kernels::Refresh;
use crate::smoother::{PRODUCTS, RANGE, largest_eigenvalue};

/// The Chebyshev polynomial smoother in $D^{-1} A$ on rectangles with coefficient one, D the diagonal of A.
///
/// A step updates each row as soon as its product is known,
/// $$ x_{k+1} = x_k + \beta_k (x_k - x_{k-1}) + \alpha_k D^{-1} (b - A x_k), $$
/// with the new iterate stored in place of the previous one.
///
/// # Cost
/// Per step one product of [`RowOperator`]; per node three values read and one written. Workspace of one
/// vector.
/// # Source
/// `[adams2003]`; `[kronbichler2022]` for updates within the loop of the product.
#[derive(Debug)]
pub struct RowChebyshev<T: Scalar> {
    cpu: Cpu,
    operator: RowOperator<T>,
    steps: Vec<Step<T>>,
    /// The iterates of odd number, zero at Dirichlet nodes.
    other: Mutex<Option<Buffer<T, Cpu>>>,
}

impl<T: Scalar> Clone for RowChebyshev<T> {
    fn clone(&self) -> Self {
        let (operator, steps) = (self.operator.clone(), self.steps.clone());
        Self { cpu: self.cpu.clone(), operator, steps, other: Mutex::default() }
    }
}

impl<T: SumFactorization> RowChebyshev<T> {
    /// Creates the smoother of a grid.
    pub fn new(cpu: &Cpu, grid: &BoxGrid) -> Self {
        let largest = largest_eigenvalue(grid.whole());
        Self {
            cpu: cpu.clone(),
            operator: RowOperator::new(cpu, grid),
            steps: chebyshev::<T>(PRODUCTS, [largest / RANGE, largest]),
            other: Mutex::default(),
        }
    }

    /// Applies one polynomial; the step is symmetric. If `is_zero`, x is zero, which saves a product.
    /// `between` is called with the iterate that the next product reads, except the first iterate.
    ///
    /// # Errors
    /// Errors of the device and of `between`.
    /// # Panics
    /// When a vector does not have one value per node.
    pub fn step(
        &self,
        x: &mut Buffer<T, Cpu>,
        b: &[T],
        is_zero: bool,
        between: &mut Refresh<'_, T, Cpu>,
    ) -> Result<(), LinalgError> {
        let n = self.operator.n_nodes();
        assert!(x.len() == n && b.len() == n, "values of the nodes");
        let mut other = self.other.lock().unwrap_or_else(PoisonError::into_inner);
        let other = match &mut *other {
            Some(other) if other.len() == b.len() => other,
            place => place.insert(Buffer::zeros(&self.cpu, b.len())?),
        };
        match is_zero {
            true => self.begin(other.as_mut_slice(), b),
            false => self.pass(self.steps[0], x.as_slice(), other.as_mut_slice(), b),
        }
        let (mut from, mut to) = (other, x);
        for step in &self.steps[1..] {
            between(from)?;
            self.pass(*step, from.as_slice(), to.as_mut_slice(), b);
            std::mem::swap(&mut from, &mut to);
        }
        const { assert!(PRODUCTS.is_multiple_of(2), "the last iterate is in x") }
        Ok(())
    }

    /// The first iterate if x is zero.
    fn begin(&self, first: &mut [T], b: &[T]) {
        let (alpha, diagonals, inside) =
            (self.steps[0].alpha, self.operator.diagonals(), self.operator.unknowns_of_row());
        let shared = SharedMut::new(first);
        self.operator.each_diagonal(|begin, factors| {
            let nodes = begin + inside.start..begin + inside.end;
            #[allow(unsafe_code)]
            // SAFETY: each row belongs to one thread.
            let to = unsafe { shared.range(nodes.clone()) };
            begin_row(to, &b[nodes], diagonals.map(|entries| &entries[inside.clone()]), factors, alpha);
        });
    }

    /// Replaces $x_{k-1}$ in `to` by $x_{k+1}$ for $x_k$ in `from`.
    fn pass(&self, step: Step<T>, from: &[T], to: &mut [T], b: &[T]) {
        let (diagonals, inside) = (self.operator.diagonals(), self.operator.unknowns_of_row());
        let shared = SharedMut::new(to);
        self.operator.each_row(
            from,
            #[inline(always)]
            |row: &ProductRow<'_, T>| {
                let nodes = row.begin + inside.start..row.begin + inside.end;
                #[allow(unsafe_code)]
                // SAFETY: each row belongs to one thread.
                let to = unsafe { shared.range(nodes.clone()) };
                let known = [&from[nodes.clone()], &b[nodes], &row.product[inside.clone()]];
                advance(to, known, diagonals.map(|entries| &entries[inside.clone()]), row.factors, step);
            },
        );
    }
}

/// $x_1 = \alpha D^{-1} b$.
#[inline(always)]
fn begin_row<T: Scalar>(to: &mut [T], b: &[T], [of_k, of_m]: [&[T]; 2], [k, m]: [T; 2], alpha: T) {
    let n = to.len();
    let (b, of_k, of_m) = (&b[..n], &of_k[..n], &of_m[..n]);
    for i in 0..n {
        to[i] = alpha * b[i] / (k * of_k[i] + m * of_m[i]);
    }
}

/// $x_{k+1} = x_k + \beta (x_k - x_{k-1}) + \alpha D^{-1} (b - a)$ in place of $x_{k-1}$, which is not read where β is zero.
#[inline(always)]
fn advance<T: Scalar>(
    to: &mut [T],
    [x, b, product]: [&[T]; 3],
    [of_k, of_m]: [&[T]; 2],
    [k, m]: [T; 2],
    Step { alpha, beta, .. }: Step<T>,
) {
    let n = to.len();
    let (x, b, product, of_k, of_m) = (&x[..n], &b[..n], &product[..n], &of_k[..n], &of_m[..n]);
    if beta == T::ZERO {
        for i in 0..n {
            to[i] = x[i] + alpha * (b[i] - product[i]) / (k * of_k[i] + m * of_m[i]);
        }
    } else {
        for i in 0..n {
            let change = alpha * (b[i] - product[i]) / (k * of_k[i] + m * of_m[i]);
            to[i] = x[i] + (beta * (x[i] - to[i]) + change);
        }
    }
}

use femtile_device::{Buffer, Cpu, Scalar};

use crate::hooks::Hook;
use crate::vector::sum::BLOCK;
use crate::{LinalgError, LinearOperator, need};

/// A square operator on the CPU whose product $y = A x$ is a closure of slices.
///
/// ```
/// use femtile_device::{Buffer, Cpu};
/// use femtile_linalg::{ClosureOperator, LinearOperator};
///
/// let cpu = Cpu::new(1)?;
/// let doubled = |y: &mut [f64], x: &[f64]| y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
/// let a = ClosureOperator::new(&cpu, 3, doubled);
/// let mut y = Buffer::zeros(&cpu, 3)?;
/// a.apply(&mut y, &Buffer::from_vec(&cpu, vec![1.0, 2.0, 3.0])?)?;
/// assert_eq!(y.as_slice(), [2.0, 4.0, 6.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ClosureOperator<F> {
    device: Cpu,
    n: usize,
    product: F,
}

impl<F> ClosureOperator<F> {
    /// Makes an operator of `n` rows from `product(y, x)`, which overwrites every entry of `y`.
    pub fn new<T: Scalar>(device: &Cpu, n: usize, product: F) -> Self
    where
        F: Fn(&mut [T], &[T]) + Send + Sync,
    {
        Self { device: device.clone(), n, product }
    }
}

impl<T: Scalar, F: Fn(&mut [T], &[T]) + Send + Sync> LinearOperator<T, Cpu> for ClosureOperator<F> {
    fn n_rows(&self) -> usize {
        self.n
    }

    fn n_cols(&self) -> usize {
        self.n
    }

    fn device(&self) -> &Cpu {
        &self.device
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, Cpu>,
        x: &Buffer<T, Cpu>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        need("y", self.n, y.len())?;
        need("x", self.n, x.len())?;
        let blocks = || (0..self.n).step_by(BLOCK).map(|begin| begin..self.n.min(begin + BLOCK));
        blocks().for_each(|rows| hook.pre(rows));
        let (x, y) = (x.as_slice(), y.as_mut_slice());
        (self.product)(y, x);
        blocks().for_each(|rows| hook.post(rows.clone(), &x[rows.clone()], &y[rows]));
        Ok(())
    }
}

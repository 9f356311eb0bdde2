use femtile_device::{Buffer, Reference, Scalar};

use super::kernels::{check_component, check_terms};
use super::{Convert, DeviceSum, VectorKernels};
use crate::{LinalgError, error::need};

impl<T: Scalar> VectorKernels<T> for Reference {
    fn fill(&self, x: &mut Buffer<T, Self>, alpha: T) -> Result<(), LinalgError> {
        for x in x.as_mut_slice() {
            *x = alpha;
        }
        Ok(())
    }

    fn copy(&self, y: &mut Buffer<T, Self>, x: &Buffer<T, Self>) -> Result<(), LinalgError> {
        need("x", y.len(), x.len())?;
        for (y, &x) in y.as_mut_slice().iter_mut().zip(x.as_slice()) {
            *y = x;
        }
        Ok(())
    }

    fn axpby(
        &self,
        y: &mut Buffer<T, Self>,
        alpha: T,
        x: &Buffer<T, Self>,
        beta: T,
    ) -> Result<(), LinalgError> {
        need("x", y.len(), x.len())?;
        for (y, &x) in y.as_mut_slice().iter_mut().zip(x.as_slice()) {
            *y = alpha * x + beta * *y;
        }
        Ok(())
    }

    fn combine(&self, y: &mut Buffer<T, Self>, terms: &[(T, &Buffer<T, Self>)]) -> Result<(), LinalgError> {
        check_terms(y.len(), terms)?;
        for (i, y) in y.as_mut_slice().iter_mut().enumerate() {
            let mut sum = terms[0].0 * terms[0].1.as_slice()[i];
            for (alpha, x) in &terms[1..] {
                sum += *alpha * x.as_slice()[i];
            }
            *y = sum;
        }
        Ok(())
    }

    fn scale_by(
        &self,
        z: &mut Buffer<T, Self>,
        d: &Buffer<T, Self>,
        r: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need("d", z.len(), d.len())?;
        need("r", z.len(), r.len())?;
        for ((z, &d), &r) in z.as_mut_slice().iter_mut().zip(d.as_slice()).zip(r.as_slice()) {
            *z = d * r;
        }
        Ok(())
    }

    fn take_component(
        &self,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        (component, components): (usize, usize),
    ) -> Result<(), LinalgError> {
        check_component(y.len(), x.len(), (component, components))?;
        for (i, y) in y.as_mut_slice().iter_mut().enumerate() {
            *y = x.as_slice()[components * i + component];
        }
        Ok(())
    }

    fn put_component(
        &self,
        x: &mut Buffer<T, Self>,
        y: &Buffer<T, Self>,
        (component, components): (usize, usize),
    ) -> Result<(), LinalgError> {
        check_component(y.len(), x.len(), (component, components))?;
        for (i, &y) in y.as_slice().iter().enumerate() {
            x.as_mut_slice()[components * i + component] = y;
        }
        Ok(())
    }

    fn dot(&self, x: &Buffer<T, Self>, y: &Buffer<T, Self>) -> Result<f64, LinalgError> {
        need("y", x.len(), y.len())?;
        Ok(x.as_slice().iter().zip(y.as_slice()).map(|(x, y)| x.to_f64() * y.to_f64()).sum())
    }

    fn sum(&self, x: &Buffer<T, Self>) -> Result<f64, LinalgError> {
        Ok(x.as_slice().iter().map(|x| x.to_f64()).sum())
    }

    fn sum_into(&self, sum: &mut DeviceSum<Self>, x: &Buffer<T, Self>) -> Result<(), LinalgError> {
        sum.check(x.len())?;
        sum.result.as_mut_slice()[0] = self.sum(x)?;
        Ok(())
    }

    fn subtract_mean(
        &self,
        x: &mut Buffer<T, Self>,
        sum: &DeviceSum<Self>,
        n: usize,
    ) -> Result<(), LinalgError> {
        let mean = T::from_f64(sum.result.as_slice()[0] / n as f64);
        x.as_mut_slice().iter_mut().for_each(|x| *x -= mean);
        Ok(())
    }
}

impl<T: Scalar, H: Scalar> Convert<T, H> for Reference {
    fn convert(&self, y: &mut Buffer<H, Self>, alpha: f64, x: &Buffer<T, Self>) -> Result<(), LinalgError> {
        need("x", y.len(), x.len())?;
        let pairs = y.as_mut_slice().iter_mut().zip(x.as_slice());
        pairs.for_each(|(y, x)| *y = H::from_f64(alpha * x.to_f64()));
        Ok(())
    }

    fn gather(
        &self,
        y: &mut Buffer<H, Self>,
        alpha: f64,
        x: &Buffer<T, Self>,
        order: &Buffer<u32, Self>,
    ) -> Result<(), LinalgError> {
        need("x", y.len(), x.len())?;
        need("order", y.len(), order.len())?;
        let pairs = y.as_mut_slice().iter_mut().zip(order.as_slice());
        pairs.for_each(|(y, &at)| *y = H::from_f64(alpha * entry(x.as_slice(), at)));
        Ok(())
    }
}

/// An entry by its number, and NaN if there is none.
pub(super) fn entry<T: Scalar>(x: &[T], at: u32) -> f64 {
    x.get(at as usize).map_or(f64::NAN, |x| x.to_f64())
}

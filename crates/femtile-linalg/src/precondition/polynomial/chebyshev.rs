use femtile_device::Scalar;

use super::Step;

/// The steps of the Chebyshev polynomial of a degree: the smallest on $[\text{low}, \text{high}]$ among
/// polynomials that are one at zero.
///
/// # Source
/// `[saad2003]`, Algorithm 12.1.
pub fn chebyshev<T: Scalar>(degree: usize, [low, high]: [f64; 2]) -> Vec<Step<T>> {
    let (centre, radius) = (0.5 * (high + low), 0.5 * (high - low));
    let mut rho = radius / centre;
    let mut steps = Vec::with_capacity(degree);
    for k in 0..degree {
        let (alpha, beta) = if k == 0 {
            (1.0 / centre, 0.0)
        } else {
            let next = 1.0 / (2.0 * centre / radius - rho);
            let pair = (2.0 * next / radius, next * rho);
            rho = next;
            pair
        };
        steps.push(Step { alpha: T::from_f64(alpha), beta: T::from_f64(beta), is_kept: degree > 1 });
    }
    steps
}

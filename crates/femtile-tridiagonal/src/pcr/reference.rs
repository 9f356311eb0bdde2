use femtile_device::Scalar;

/// A system with ones on its diagonal: lower, upper and right values.
pub(crate) struct UnitRows<T> {
    /// Couplings of rows to the row before; unused in the first.
    pub a: Vec<T>,
    /// Couplings of rows to the row behind; unused in the last.
    pub c: Vec<T>,
    /// The right side.
    pub d: Vec<T>,
}

impl<T: Scalar> UnitRows<T> {
    /// Rows divided by their diagonals; `Err` is the first row whose diagonal is zero or not finite.
    pub fn new(a: &[T], b: &[T], c: &[T], d: &[T]) -> Result<Self, usize> {
        let n = b.len();
        if let Some(row) = b.iter().position(|b| *b == T::ZERO || !b.is_finite()) {
            return Err(row);
        }
        Ok(Self {
            a: (0..n).map(|i| if i > 0 { a[i] / b[i] } else { T::ZERO }).collect(),
            c: (0..n).map(|i| if i + 1 < n { c[i] / b[i] } else { T::ZERO }).collect(),
            d: (0..n).map(|i| d[i] / b[i]).collect(),
        })
    }

    /// Row `i` with the rows at distance `s` eliminated: it couples rows at distance `2 s`.
    pub fn reduced(&self, i: usize, s: usize) -> [T; 3] {
        let [a, c, d] = [self.a[i], self.c[i], self.d[i]];
        let [a_before, c_before, d_before] = if i >= s { self.row(i - s) } else { [T::ZERO; 3] };
        let [a_behind, c_behind, d_behind] =
            if i + s < self.d.len() { self.row(i + s) } else { [T::ZERO; 3] };
        let r = T::ONE / (T::ONE - a * c_before - c * a_behind);
        [-(r * a * a_before), -(r * c * c_behind), r * (d - a * d_before - c * d_behind)]
    }

    /// The value of row `i` once those at distance `s` are known.
    pub fn value(&self, i: usize, s: usize) -> T {
        let before = if i >= s { self.a[i] * self.d[i - s] } else { T::ZERO };
        let behind = if i + s < self.d.len() { self.c[i] * self.d[i + s] } else { T::ZERO };
        self.d[i] - before - behind
    }

    /// Replaces a row.
    pub fn set(&mut self, i: usize, [a, c, d]: [T; 3]) {
        (self.a[i], self.c[i], self.d[i]) = (a, c, d);
    }

    fn row(&self, i: usize) -> [T; 3] {
        [self.a[i], self.c[i], self.d[i]]
    }
}

/// Parallel cyclic reduction of one system; `Err` is a row that could not be solved.
pub(crate) fn pcr<T: Scalar>(a: &[T], b: &[T], c: &[T], d: &[T]) -> Result<Vec<T>, usize> {
    let mut rows = UnitRows::new(a, b, c, d)?;
    let n = b.len();
    let mut s = 1;
    while s < n {
        let reduced: Vec<_> = (0..n).map(|i| rows.reduced(i, s)).collect();
        reduced.into_iter().enumerate().for_each(|(i, row)| rows.set(i, row));
        s *= 2;
    }
    finite_throughout(rows.d)
}

/// Cyclic reduction of one system: every second row is eliminated until one is left, then all are put back.
pub(crate) fn cr<T: Scalar>(a: &[T], b: &[T], c: &[T], d: &[T]) -> Result<Vec<T>, usize> {
    let mut rows = UnitRows::new(a, b, c, d)?;
    let n = b.len();
    let mut s = 1;
    while 2 * s <= n {
        for i in (2 * s - 1..n).step_by(2 * s) {
            let row = rows.reduced(i, s);
            rows.set(i, row);
        }
        s *= 2;
    }
    while s > 0 {
        for i in (s - 1..n).step_by(2 * s) {
            rows.d[i] = rows.value(i, s);
        }
        s /= 2;
    }
    finite_throughout(rows.d)
}

/// A solution, or the first row where it is not finite.
pub(crate) fn finite_throughout<T: Scalar>(u: Vec<T>) -> Result<Vec<T>, usize> {
    match u.iter().position(|value| !value.is_finite()) {
        None => Ok(u),
        Some(row) => Err(row),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_unknowns_are_those_computed_by_hand() {
        let nan = f64::NAN;
        for solve in [pcr::<f64>, cr::<f64>] {
            let u = solve(&[nan, -1.0, -1.0], &[2.0; 3], &[-1.0, -1.0, nan], &[0.0, 0.0, 4.0]).unwrap();
            assert!(u.into_iter().zip([1.0, 2.0, 3.0]).all(|(u, expected)| (u - expected).abs() < 1e-15));
            assert_eq!(solve(&[0.0; 2], &[1.0, 0.0], &[0.0; 2], &[1.0; 2]), Err(1));
        }
    }
}

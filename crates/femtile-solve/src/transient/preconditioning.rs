//! How long a preconditioner is kept.

/// Largest factor between the shift that a preconditioner was made for and another shift that it is used for.
const SHIFTS: f64 = 4.0;

/// Growth of the iterations, relative to the first solve, that triggers a new preconditioner.
const GROWTH: f64 = 1.5;
const SLACK: f64 = 2.0;

/// The last preconditioner that was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Made {
    /// The shift that it was made for.
    pub shift: f64,
    /// Iterations of the first solve with it.
    iterations: Option<usize>,
    /// Whether a later solve took many more iterations.
    is_worn: bool,
}

impl Made {
    /// A new preconditioner for a shift.
    pub fn at(shift: f64) -> Self {
        Self { shift, iterations: None, is_worn: false }
    }

    /// Returns whether it may be used for a shift: always for its own, for nearby ones until iterations grow.
    pub fn serves(&self, shift: f64) -> bool {
        let is_near = (self.shift / SHIFTS..=self.shift * SHIFTS).contains(&shift);
        shift == self.shift || is_near && !self.is_worn
    }

    /// Records a solve.
    pub fn note(&mut self, iterations: usize, has_converged: bool) {
        match self.iterations {
            None => self.iterations = Some(iterations),
            Some(first) => self.is_worn |= iterations as f64 > GROWTH * first as f64 + SLACK,
        }
        self.is_worn |= !has_converged;
    }
}

/// The state that later solves depend on, for checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Memory {
    /// The shift of the first stage of the run.
    pub basis: Option<f64>,
    /// The last preconditioner that was made.
    pub made: Option<Made>,
    /// The smallest known Ritz value, with its shift.
    pub ritz: Option<(f64, f64)>,
}

impl Memory {
    /// Returns the state as numbers, NaN for absent ones.
    pub fn write(&self) -> Vec<f64> {
        let made = self.made.unwrap_or(Made::at(f64::NAN));
        let iterations = made.iterations.map_or(f64::NAN, |n| n as f64);
        let (shift, ritz) = self.ritz.unwrap_or((f64::NAN, f64::NAN));
        let basis = self.basis.unwrap_or(f64::NAN);
        vec![basis, made.shift, iterations, f64::from(u8::from(made.is_worn)), shift, ritz]
    }

    /// Reads the numbers of [`Memory::write`]; other numbers give an empty state.
    pub fn read(numbers: &[f64]) -> Self {
        let &[basis, shift, iterations, is_worn, of_ritz, ritz] = numbers else { return Self::default() };
        let is_positive = |value: f64| value > 0.0 && value.is_finite();
        let made = is_positive(shift).then(|| Made {
            shift,
            iterations: (iterations >= 0.0).then_some(iterations as usize),
            is_worn: is_worn != 0.0,
        });
        let ritz = (is_positive(of_ritz) && is_positive(ritz)).then_some((of_ritz, ritz));
        Self { basis: is_positive(basis).then_some(basis), made, ritz }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preconditioner_serves_near_shifts_until_iterations_grow() {
        let mut made = Made::at(8.0);
        assert!([2.0, 8.0, 32.0].iter().all(|&shift| made.serves(shift)));
        assert!(![1.9, 33.0].iter().any(|&shift| made.serves(shift)));
        made.note(6, true);
        made.note(11, true);
        assert!(made.serves(9.0));
        made.note(12, true);
        assert!(made.serves(8.0) && !made.serves(9.0));
        let mut failed = Made::at(8.0);
        failed.note(3, false);
        assert!(!failed.serves(9.0));
    }

    #[test]
    fn memory_survives_as_numbers() {
        let mut made = Made::at(0.3);
        let empty = Memory::default();
        for memory in [empty, Memory { basis: Some(4.0), made: Some(made), ritz: Some((2.0, 0.1)) }] {
            assert_eq!(Memory::read(&memory.write()), memory);
        }
        made.note(5, true);
        made.note(50, true);
        let worn = Memory { basis: None, made: Some(made), ritz: None };
        assert_eq!(Memory::read(&worn.write()), worn);
        assert_eq!(Memory::read(&[1.0, 2.0]), empty);
    }
}

//! The last values of a solution, and polynomials through them.

use std::collections::VecDeque;

use femtile_device::Buffer;
use femtile_linalg::LinalgError;
use femtile_linalg::vector::VectorKernels;

/// Values that are kept: enough for extrapolation of degree two.
pub(super) const DEPTH: usize = 3;

/// The last values of a solution with their times, the newest first.
pub(super) struct History<D: VectorKernels<f64>> {
    values: VecDeque<(f64, Buffer<f64, D>)>,
}

impl<D: VectorKernels<f64>> History<D> {
    /// Begins with one value.
    pub fn new(time: f64, u: Buffer<f64, D>) -> Self {
        Self { values: VecDeque::from([(time, u)]) }
    }

    /// Appends an older value.
    pub fn push_older(&mut self, time: f64, u: Buffer<f64, D>) {
        self.values.push_back((time, u));
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns the value of `age` steps ago.
    pub fn value(&self, age: usize) -> &Buffer<f64, D> {
        &self.values[age].1
    }

    /// Returns the time of the value of `age` steps ago.
    pub fn time(&self, age: usize) -> f64 {
        self.values[age].0
    }

    /// Returns the lengths of the step that leads to `time` and of the steps before it.
    pub fn lengths(&self, time: f64) -> Vec<f64> {
        let times: Vec<f64> = [time].into_iter().chain(self.values.iter().map(|(t, _)| *t)).collect();
        times.windows(2).map(|pair| pair[0] - pair[1]).collect()
    }

    /// Makes `u` the newest value, and leaves a vector in it that is free.
    pub fn push(&mut self, time: f64, u: &mut Buffer<f64, D>) -> Result<(), LinalgError> {
        let oldest = if self.values.len() == DEPTH { self.values.pop_back() } else { None };
        let free = match oldest {
            Some((_, free)) => free,
            None => Buffer::zeros(u.device(), u.len())?,
        };
        self.values.push_front((time, std::mem::replace(u, free)));
        Ok(())
    }

    /// Forgets all but the newest value.
    pub fn keep_newest(&mut self) {
        self.values.truncate(1);
    }

    /// Forgets all but the oldest value.
    pub fn keep_oldest(&mut self) {
        while self.values.len() > 1 {
            self.values.pop_front();
        }
    }

    /// Evaluates at `time` the polynomial of degree `degree` through the newest values. The degree is lower
    /// if there are too few values.
    ///
    /// # Cost
    /// Reads up to three vectors, writes one.
    pub fn polynomial(&self, time: f64, degree: usize, out: &mut Buffer<f64, D>) -> Result<(), LinalgError> {
        let n = self.values.len().min(degree + 1);
        let weight = |age: usize| -> f64 {
            let own = self.time(age);
            let others = (0..n).filter(|&other| other != age).map(|other| self.time(other));
            others.map(|other| (time - other) / (own - other)).product()
        };
        let terms: Vec<_> = (0..n).map(|age| (weight(age), self.value(age))).collect();
        out.device().clone().combine(out, &terms)
    }

    /// Returns the slope of that polynomial at `time`, as values with their factors; empty if there is one value.
    pub fn slope(&self, time: f64, degree: usize) -> Vec<(f64, &Buffer<f64, D>)> {
        let n = self.values.len().min(degree + 1);
        let weight = |age: usize| -> f64 {
            let others = || (0..n).filter(move |&other| other != age);
            let span = |other: usize| self.time(age) - self.time(other);
            let without = |one: usize| -> f64 {
                let left = others().filter(|&other| other != one);
                left.map(|other| (time - self.time(other)) / span(other)).product()
            };
            others().map(|one| without(one) / span(one)).sum()
        };
        if n < 2 { Vec::new() } else { (0..n).map(|age| (weight(age), self.value(age))).collect() }
    }
}

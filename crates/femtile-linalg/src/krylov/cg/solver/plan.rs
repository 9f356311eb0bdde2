//! How many iterations a device is given before the host looks.

use crate::krylov::cg::{COSTLY_STRIDE, KrylovConfig};

/// Iterations that are recorded together at most.
const LONGEST: usize = 32;

/// The first guess of a solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guess {
    /// The vector x; its product is computed.
    Given,
    /// The last solution, whose product is known.
    Last,
    /// The line through the last two solutions, whose products are known.
    Line,
}

/// A part of a solve that is recorded as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// The guess of the start of the solve, if the block begins with it.
    pub begins: Option<Guess>,
    /// The number of iterations.
    pub iterations: usize,
    /// Whether the sums of the last iterate follow.
    pub ends: bool,
}

impl Block {
    /// The sums of the last iterate alone.
    pub const END: Self = Self { begins: None, iterations: 0, ends: true };
}

/// The iterations that the last solves have taken.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Past([Option<usize>; 2]);

impl Past {
    /// Appends a solve.
    pub fn push(&mut self, iterations: usize) {
        self.0 = [Some(iterations), self.0[0]];
    }

    /// Returns the larger number, or the smaller one if an iteration too many is expensive.
    fn expected(self, is_costly: bool) -> Option<usize> {
        let known = self.0.iter().flatten().copied();
        if is_costly { known.min() } else { known.max() }
    }
}

/// The blocks of a solve: first the expected number of iterations, then a few at a time.
#[derive(Debug)]
pub(super) struct Plan {
    /// The guess of the start, as long as no block has it.
    begins: Option<Guess>,
    /// Expected iterations that are not yet in a block.
    left: usize,
    longest: usize,
    /// The iterations of the next block after the expected ones, and of the last such block at most.
    further: [usize; 2],
    /// Whether blocks after the expected iterations end with the sums of the iterate.
    ends: bool,
}

impl Plan {
    /// Plans a solve. Without an expectation, the device runs `stride` iterations at a time.
    pub fn new((config, guess): (&KrylovConfig, Guess), past: Past, stride: usize, is_costly: bool) -> Self {
        let begins = Some(guess);
        let longest = config.look_every.unwrap_or(LONGEST).clamp(1, LONGEST);
        // A host that runs the iterations itself looks after each.
        if stride == 1 {
            return Self { begins, left: 0, longest, further: [1, 1], ends: false };
        }
        let most = if is_costly { COSTLY_STRIDE.min(longest) } else { longest };
        let first = if is_costly { 1 } else { stride.div_ceil(2).min(most) };
        let left = past.expected(is_costly).unwrap_or(0).min(config.max_iterations);
        Self { begins, left, longest, further: [first, most], ends: true }
    }

    /// Returns the next block that need not wait for the result of the one before.
    pub fn ahead(&mut self) -> Option<Block> {
        if self.begins.is_none() && self.left == 0 {
            return None;
        }
        let iterations = self.left.min(self.longest);
        self.left -= iterations;
        let begins = self.begins.take();
        Some(Block { begins, iterations, ends: self.ends && self.left == 0 })
    }

    /// Returns the next block after the expected ones.
    pub fn further(&mut self) -> Block {
        let [iterations, most] = self.further;
        self.further[0] = (2 * iterations).min(most);
        Block { begins: None, iterations, ends: self.ends }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(iterations: &[usize], stride: usize, is_costly: bool) -> Plan {
        let mut past = Past::default();
        iterations.iter().for_each(|&n| past.push(n));
        Plan::new((&KrylovConfig::default(), Guess::Given), past, stride, is_costly)
    }

    fn block(begins: bool, iterations: usize, ends: bool) -> Block {
        Block { begins: begins.then_some(Guess::Given), iterations, ends }
    }

    #[test]
    fn an_expected_solve_is_one_block() {
        let mut plan = plan(&[3, 4], 8, false);
        assert_eq!(plan.ahead(), Some(block(true, 4, true)));
        assert_eq!(plan.ahead(), None);
        assert_eq!([plan.further(), plan.further()], [block(false, 4, true), block(false, 8, true)]);
    }

    #[test]
    fn long_solves_are_cut_and_end_once() {
        let mut plan = plan(&[67], 8, false);
        let blocks: Vec<_> = std::iter::from_fn(|| plan.ahead()).collect();
        assert_eq!(blocks, [block(true, 32, false), block(false, 32, false), block(false, 3, true)]);
    }

    #[test]
    fn expensive_iterations_are_not_started_without_need() {
        let mut plan = plan(&[6, 7], 8, true);
        assert_eq!(plan.ahead(), Some(block(true, 6, true)));
        assert_eq!([plan.further(), plan.further()], [block(false, 1, true), block(false, 2, true)]);
    }

    #[test]
    fn a_host_looks_after_every_iteration() {
        let mut plan = plan(&[9], 1, false);
        assert_eq!(plan.ahead(), Some(block(true, 0, false)));
        assert_eq!((plan.ahead(), plan.further()), (None, block(false, 1, false)));
    }
}

//! How many iterations a device is given before the host looks.

use super::KrylovConfig;

/// Iterations that are recorded together at most.
const LONGEST: usize = 32;

/// Iterations that are started together at most if the preconditioner is more than a diagonal. Those after the end do
/// nothing but apply it: few of them cost more than looking often does.
const COSTLY_STRIDE: usize = 2;

/// Blocks under way at most, so that a device need not wait for the host.
const AHEAD: usize = 2;

/// The first guess of a solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::krylov) enum Guess {
    /// The vector x; its product is computed.
    Given,
    /// The last solution, whose product is known.
    Last,
    /// The line through the last two solutions, whose products are known.
    Line,
}

/// A part of a run that is recorded as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::krylov) struct Block {
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

/// The blocks of a run: the start with the expected number of iterations, then a few at a time.
#[derive(Debug)]
pub(in crate::krylov) struct Plan {
    guess: Guess,
    /// Expected iterations that are not yet in a block.
    left: usize,
    longest: usize,
    /// The iterations of the next block after the expected ones, and of the last such block at most.
    further: [usize; 2],
    /// Whether blocks after the expected iterations end with the sums of the iterate.
    ends: bool,
    /// Blocks after the expected iterations that are under way at most.
    depth: usize,
}

impl Plan {
    /// Plans a solve by a solver that is kept. Without an expectation, the device runs half of `stride` iterations first.
    pub(super) fn kept(
        (config, guess): (&KrylovConfig, Guess),
        past: Past,
        stride: usize,
        is_costly: bool,
    ) -> Self {
        let longest = config.look_every.unwrap_or(LONGEST).clamp(1, LONGEST);
        // A host that runs the iterations itself looks after each.
        if stride == 1 {
            return Self { guess, left: 0, longest, further: [1, 1], ends: false, depth: 1 };
        }
        let most = if is_costly { COSTLY_STRIDE.min(longest) } else { longest };
        let first = if is_costly { 1 } else { stride.div_ceil(2).min(most) };
        let left = past.expected(is_costly).unwrap_or(0).min(config.max_iterations);
        Self { guess, left, longest, further: [first, most], ends: true, depth: 1 }
    }

    /// Plans a run alone: blocks of `stride` iterations, the next one under way while the host looks.
    pub fn alone(config: &KrylovConfig, stride: usize, is_costly: bool) -> Self {
        let depth = if stride == 1 { 1 } else { AHEAD };
        let stride = if is_costly { stride.min(COSTLY_STRIDE) } else { stride };
        let longest = config.look_every.unwrap_or(stride).clamp(1, LONGEST);
        Self { guess: Guess::Given, left: 0, longest, further: [longest; 2], ends: false, depth }
    }

    /// Returns the first block.
    pub fn begin(&mut self) -> Block {
        Block { begins: Some(self.guess), ..self.expected() }
    }

    fn expected(&mut self) -> Block {
        let iterations = self.left.min(self.longest);
        self.left -= iterations;
        Block { begins: None, iterations, ends: self.ends && self.left == 0 }
    }

    /// Returns the next block that does not depend on the result of the previous one; `under_way` blocks are not yet read.
    pub fn ahead(&mut self, under_way: usize) -> Option<Block> {
        (self.left > 0 && under_way < AHEAD).then(|| self.expected())
    }

    /// Returns the next block of a run that continues; none until one of the `under_way` blocks is read.
    pub fn next(&mut self, under_way: usize) -> Option<Block> {
        let ahead = self.ahead(under_way);
        ahead.or_else(|| (under_way < self.depth).then(|| self.further()))
    }

    fn further(&mut self) -> Block {
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
        Plan::kept((&KrylovConfig::default(), Guess::Given), past, stride, is_costly)
    }

    fn start(iterations: usize, ends: bool) -> Block {
        Block { begins: Some(Guess::Given), iterations, ends }
    }

    fn block(iterations: usize, ends: bool) -> Block {
        Block { begins: None, iterations, ends }
    }

    #[test]
    fn an_expected_solve_is_one_block() {
        let mut plan = plan(&[3, 4], 8, false);
        assert_eq!((plan.begin(), plan.ahead(1)), (start(4, true), None));
        assert_eq!((plan.next(0), plan.next(1)), (Some(block(4, true)), None));
        assert_eq!(plan.next(0), Some(block(8, true)));
    }

    #[test]
    fn long_solves_are_cut_and_end_once() {
        let mut plan = plan(&[67], 8, false);
        assert_eq!((plan.begin(), plan.ahead(1)), (start(32, false), Some(block(32, false))));
        assert_eq!((plan.ahead(2), plan.next(1)), (None, Some(block(3, true))));
    }

    #[test]
    fn expensive_iterations_are_not_started_without_need() {
        let mut kept = plan(&[6, 7], 8, true);
        assert_eq!((kept.begin(), kept.ahead(1)), (start(6, true), None));
        assert_eq!([kept.next(0), kept.next(0)], [Some(block(1, true)), Some(block(2, true))]);
        let mut alone = Plan::alone(&KrylovConfig::default(), 8, true);
        assert_eq!((alone.begin(), alone.next(0)), (start(0, false), Some(block(2, false))));
    }

    #[test]
    fn a_host_looks_after_every_iteration() {
        for mut plan in [plan(&[9], 1, false), Plan::alone(&KrylovConfig::default(), 1, false)] {
            assert_eq!((plan.begin(), plan.ahead(1)), (start(0, false), None));
            assert_eq!((plan.next(0), plan.next(1)), (Some(block(1, false)), None));
        }
    }

    #[test]
    fn a_run_alone_keeps_a_block_under_way() {
        let mut plan = Plan::alone(&KrylovConfig::default(), 8, false);
        assert_eq!((plan.begin(), plan.ahead(1)), (start(0, false), None));
        for under_way in [0, 1] {
            assert_eq!(plan.next(under_way), Some(block(8, false)));
        }
        assert_eq!(plan.next(2), None);
    }
}

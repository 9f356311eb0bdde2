//! Joining of operations: a value that is used once, by one of its neighbours, never goes through memory.

use super::code::{Fused, Operand, Operation};
use crate::node::{Binary, Bits, Unary};

/// Joins operations with those of their operands that nothing else uses; what has been joined is not needed any more.
pub(super) fn fuse(operations: &mut [Operation<Operand>], roots: &[Operand]) {
    let mut n_uses = vec![0_u32; operations.len()];
    let read = operations.iter().flat_map(|operation| operation.operands());
    read.chain(roots.iter().copied())
        .filter_map(Operand::value)
        .for_each(|value| n_uses[value as usize] += 1);
    let fuser = Fuser { operations, n_uses };
    for i in 0..fuser.operations.len() {
        if let Some(fused) = fuser.join(fuser.operations[i]) {
            fuser.operations[i] = fused;
        }
    }
}

struct Fuser<'o> {
    operations: &'o mut [Operation<Operand>],
    n_uses: Vec<u32>,
}

impl Fuser<'_> {
    /// The operation of an operand that is used once.
    fn only_use(&self, operand: Operand) -> Option<Operation<Operand>> {
        let value = operand.value()? as usize;
        (self.n_uses[value] == 1).then(|| self.operations[value])
    }

    fn join(&self, operation: Operation<Operand>) -> Option<Operation<Operand>> {
        match operation {
            Operation::Unary(Unary::Exp, a) => {
                let (a, shift, scale) = self.affine(a)?;
                Some(Operation::Exp { a, shift, scale })
            }
            Operation::Binary(Binary::Divide, numerator, denominator) => {
                self.logistic(numerator, denominator)
            }
            Operation::Binary(op @ (Binary::Add | Binary::Subtract), a, b) => {
                let (left, right) = (self.product(a), self.product(b));
                Some(match (op, left, right) {
                    (Binary::Add, Some((a, c)), _) => Operation::Fused(Fused::ProductPlus, a, c, b),
                    (Binary::Add, None, Some((b, c))) => Operation::Fused(Fused::ProductPlus, b, c, a),
                    (_, Some((a, c)), _) => Operation::Fused(Fused::ProductMinus, a, c, b),
                    (_, None, Some((b, c))) => Operation::Fused(Fused::MinusProduct, b, c, a),
                    (_, None, None) => return None,
                })
            }
            Operation::Binary(Binary::Multiply, a, b) => {
                let of = |sum: Operand, factor: Operand| match self.only_use(sum)? {
                    Operation::Binary(Binary::Add, a, b) => {
                        Some(Operation::Fused(Fused::SumTimes, a, b, factor))
                    }
                    Operation::Binary(Binary::Subtract, a, b) => {
                        Some(Operation::Fused(Fused::DifferenceTimes, a, b, factor))
                    }
                    _ => None,
                };
                of(a, b).or_else(|| of(b, a))
            }
            _ => None,
        }
    }

    /// The factors of a product that is used once.
    fn product(&self, operand: Operand) -> Option<(Operand, Operand)> {
        match self.only_use(operand)? {
            Operation::Binary(Binary::Multiply, a, b) => Some((a, b)),
            _ => None,
        }
    }

    /// The parts of (a + `shift`)·`scale` with two constants, or of a·`scale`.
    fn affine(&self, operand: Operand) -> Option<(Operand, Operand, Operand)> {
        let constant = |value: f64| Operand::Constant(Bits::new(value));
        let (a, shift, scale) = match self.only_use(operand)? {
            // (c − a)·d is (a + (−c))·(−d), to the bit.
            Operation::Fused(Fused::DifferenceTimes, c, a, d) if c.constant().is_some() => {
                (a, -c.constant()?, -d.constant()?)
            }
            Operation::Fused(Fused::DifferenceTimes, a, c, d) => (a, -c.constant()?, d.constant()?),
            Operation::Fused(Fused::SumTimes, a, c, d) => {
                let (a, c) = if a.constant().is_some() { (c, a) } else { (a, c) };
                (a, c.constant()?, d.constant()?)
            }
            Operation::Binary(Binary::Multiply, a, c) => {
                let (a, c) = if a.constant().is_some() { (c, a) } else { (a, c) };
                // a + (−0) is a.
                (a, -0.0, c.constant()?)
            }
            _ => return None,
        };
        a.value().map(|_| (a, constant(shift), constant(scale)))
    }

    /// `numerator`/(1 + exp((a + `shift`)·`scale`)) with a constant numerator.
    fn logistic(&self, numerator: Operand, denominator: Operand) -> Option<Operation<Operand>> {
        numerator.constant()?;
        let Operation::Binary(Binary::Add, a, b) = self.only_use(denominator)? else {
            return None;
        };
        let exponential = match (a.constant(), b.constant()) {
            (Some(1.0), _) => b,
            (_, Some(1.0)) => a,
            _ => return None,
        };
        match self.only_use(exponential)? {
            Operation::Exp { a, shift, scale } => Some(Operation::Logistic { numerator, a, shift, scale }),
            _ => None,
        }
    }
}

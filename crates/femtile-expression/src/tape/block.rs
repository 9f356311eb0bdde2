//! Running a tape over one block: plain loops over slices, which the compiler turns into vector instructions.

use std::ops::Range;

use super::{Inputs, Instruction, Operand, Operation};
use crate::node::{Binary, Unary, Variable, choose};

/// The values of an operand for one block.
#[derive(Clone, Copy)]
enum Source<'b> {
    Block(&'b [f64]),
    Uniform(f64),
}

/// Runs every instruction, then the result into `out`; at most one block of points.
pub(super) fn run(
    instructions: &[Instruction],
    result: Operation,
    out: &mut [f64],
    inputs: &Inputs<'_>,
    points: Range<usize>,
    registers: &mut [Vec<f64>],
) {
    let n = out.len();
    for instruction in instructions {
        let destination = instruction.destination as usize;
        // Taken out of the file of registers while it is written: the operation reads others only.
        let mut values = std::mem::take(&mut registers[destination]);
        execute(instruction.operation, &mut values[..n], inputs, points.clone(), registers);
        registers[destination] = values;
    }
    execute(result, out, inputs, points, registers);
}

fn execute(
    operation: Operation,
    out: &mut [f64],
    inputs: &Inputs<'_>,
    points: Range<usize>,
    registers: &[Vec<f64>],
) {
    let n = out.len();
    let source = |operand: Operand| match operand {
        Operand::Constant(bits) => Source::Uniform(bits.value()),
        Operand::Variable(Variable::T) => Source::Uniform(inputs.t),
        Operand::Variable(variable) => Source::Block(&inputs.column(variable)[points.clone()]),
        Operand::Register(register) => Source::Block(&registers[register as usize][..n]),
    };
    match operation {
        Operation::Copy(a) => map(out, source(a), |a| a),
        Operation::Unary(op, a) => unary(op, out, source(a)),
        Operation::Binary(op, a, b) => binary(op, out, source(a), source(b)),
        Operation::Select(condition, a, b) => select(out, source(condition), source(a), source(b)),
    }
}

/// Runs the body once with a constant that is the operation, so that every operation gets a loop of its own.
macro_rules! specialise {
    ($op:expr, $kind:ident { $($name:ident)* }, |$fixed:ident| $body:expr) => {
        match $op {
            $($kind::$name => {
                const $fixed: $kind = $kind::$name;
                $body
            })*
        }
    };
}

fn unary(op: Unary, out: &mut [f64], a: Source<'_>) {
    specialise!(
        op,
        Unary {
            Negate Not Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Exp Expm1 Exprel Log Log1p Log10 Sqrt Abs Sign Floor Ceil
        },
        |OP| map(out, a, |a| OP.apply(a))
    );
}

fn binary(op: Binary, out: &mut [f64], a: Source<'_>, b: Source<'_>) {
    specialise!(
        op,
        Binary {
            Add Subtract Multiply Divide Power Atan2 Hypot Min Max
            Less LessEqual Greater GreaterEqual Equal NotEqual And Or
        },
        |OP| match (a, b) {
            (Source::Block(a), Source::Block(b)) => {
                for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                    *out = OP.apply(a, b);
                }
            }
            (Source::Block(_), Source::Uniform(b)) => map(out, a, |a| OP.apply(a, b)),
            (Source::Uniform(a), _) => map(out, b, |b| OP.apply(a, b)),
        }
    );
}

#[inline(always)]
fn map(out: &mut [f64], a: Source<'_>, f: impl Fn(f64) -> f64) {
    match a {
        Source::Block(a) => {
            for (out, &a) in out.iter_mut().zip(a) {
                *out = f(a);
            }
        }
        Source::Uniform(a) => out.fill(f(a)),
    }
}

fn select(out: &mut [f64], condition: Source<'_>, a: Source<'_>, b: Source<'_>) {
    let condition = match condition {
        Source::Block(condition) => condition,
        Source::Uniform(condition) => return map(out, if condition != 0.0 { a } else { b }, |value| value),
    };
    let chosen = out.iter_mut().zip(condition);
    match (a, b) {
        (Source::Block(a), Source::Block(b)) => {
            for (((out, &condition), &a), &b) in chosen.zip(a).zip(b) {
                *out = choose(condition != 0.0, a, b);
            }
        }
        (Source::Block(a), Source::Uniform(b)) => {
            for ((out, &condition), &a) in chosen.zip(a) {
                *out = choose(condition != 0.0, a, b);
            }
        }
        (Source::Uniform(a), Source::Block(b)) => {
            for ((out, &condition), &b) in chosen.zip(b) {
                *out = choose(condition != 0.0, a, b);
            }
        }
        (Source::Uniform(a), Source::Uniform(b)) => {
            for (out, &condition) in chosen {
                *out = choose(condition != 0.0, a, b);
            }
        }
    }
}

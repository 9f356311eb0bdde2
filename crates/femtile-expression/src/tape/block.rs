//! Running code over one block of points: plain loops over slices, which the compiler turns into vector instructions.

use super::code::{Code, Fused, Operation, Place, Step};
use crate::elementary;
use crate::node::{Binary, Unary, Variable, choose};
use crate::program::ProgramInput;

/// Points that pass through the code together: 1 KiB a register, so that some forty stay in the nearest cache.
pub(super) const BLOCK: usize = 128;
/// Loops run over multiples of this: the lanes of the widest vectors.
const LANES: usize = 8;

/// The values of a register.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct Block([f64; BLOCK]);

impl Block {
    pub(super) const ZERO: Self = Self([0.0; BLOCK]);
}

/// Runs the code over all points, a block after another.
#[inline(always)]
pub(super) fn run<'i>(
    code: &Code,
    outputs: &mut [&mut [f64]],
    n: usize,
    input: &dyn Fn(Variable) -> ProgramInput<'i>,
    registers: &mut [Block],
) {
    for start in (0..n).step_by(BLOCK) {
        let points = start..n.min(start + BLOCK);
        // Entries behind the last point repeat it: they are computed and not used.
        let width = points.len().next_multiple_of(LANES);
        for &step in &code.steps {
            match step {
                Step::Compute { destination, operation: Operation::Load(variable) } => {
                    let out = &mut registers[destination as usize].0[..width];
                    match input(variable) {
                        ProgramInput::Uniform(value) => out.fill(value),
                        ProgramInput::Values(values) => {
                            let (out, behind) = out.split_at_mut(points.len());
                            out.copy_from_slice(&values[points.clone()]);
                            behind.fill(out[out.len() - 1]);
                        }
                    }
                }
                Step::Compute { destination, operation } => {
                    let (below, rest) = registers.split_at_mut(destination as usize);
                    if let Some((out, above)) = rest.split_first_mut() {
                        let registers = Registers { below, above, constants: &code.constants };
                        compute(operation, &mut out.0[..width], &registers);
                    }
                }
                Step::Store { output, value } => {
                    let out = &mut outputs[output as usize][points.clone()];
                    match value.get() {
                        Ok(register) => out.copy_from_slice(&registers[register].0[..points.len()]),
                        Err(constant) => out.fill(code.constants[constant]),
                    }
                }
            }
        }
    }
}

/// The registers but for one, which is written, and the constants.
struct Registers<'r> {
    below: &'r [Block],
    above: &'r [Block],
    constants: &'r [f64],
}

impl<'r> Registers<'r> {
    #[inline(always)]
    fn get(&self, place: Place, width: usize) -> Source<'r> {
        let n_below = self.below.len();
        let block = match place.get() {
            Ok(register) if register < n_below => &self.below[register],
            Ok(register) => &self.above[register - n_below - 1],
            Err(constant) => return Source::Uniform(self.constants[constant]),
        };
        Source::Block(&block.0[..width])
    }
}

/// The values of an operand for one block.
#[derive(Clone, Copy)]
enum Source<'b> {
    Block(&'b [f64]),
    Uniform(f64),
}

#[inline(always)]
fn compute(operation: Operation<Place>, out: &mut [f64], registers: &Registers<'_>) {
    let width = out.len();
    let source = |place| registers.get(place, width);
    let uniform = |place| match source(place) {
        Source::Uniform(value) => value,
        Source::Block(_) => f64::NAN,
    };
    match operation {
        // Loaded by `run`.
        Operation::Load(_) => {}
        Operation::Unary(op, a) => unary(op, out, source(a)),
        Operation::Binary(op, a, b) => binary(op, out, source(a), source(b)),
        Operation::Fused(op, a, b, c) => fused(op, out, [source(a), source(b), source(c)]),
        Operation::Select(condition, a, b) => select(out, source(condition), source(a), source(b)),
        Operation::Exp { a, shift, scale } => {
            let (shift, scale) = (uniform(shift), uniform(scale));
            let argument = |a: f64| (a + shift) * scale;
            exponential(out, source(a), argument, |exponential| exponential);
        }
        Operation::Logistic { numerator, a, shift, scale } => {
            let (numerator, shift, scale) = (uniform(numerator), uniform(shift), uniform(scale));
            let argument = |a: f64| (a + shift) * scale;
            exponential(out, source(a), argument, |exponential| numerator / (1.0 + exponential));
        }
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

#[inline(always)]
fn unary(op: Unary, out: &mut [f64], a: Source<'_>) {
    use elementary::{ordinary_exp, ordinary_expm1, ordinary_log, unusual_exponent, unusual_number};
    if let Source::Block(a) = a {
        let all_ordinary = match op {
            Unary::Exp => map_ordinary(out, a, unusual_exponent, ordinary_exp),
            Unary::Expm1 => map_ordinary(out, a, unusual_exponent, ordinary_expm1),
            Unary::Log => map_ordinary(out, a, unusual_number, ordinary_log),
            _ => false,
        };
        if all_ordinary {
            return;
        }
    }
    specialise!(
        op,
        Unary {
            Negate Not Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Exp Expm1 Exprel Log Log1p Log10 Sqrt Abs Sign Floor
            Ceil
        },
        |OP| map(out, a, |a| OP.apply(a))
    );
}

/// A function of the exponential of an argument.
#[inline(always)]
fn exponential(out: &mut [f64], a: Source<'_>, argument: impl Fn(f64) -> f64, f: impl Fn(f64) -> f64) {
    let Source::Block(values) = a else {
        return map(out, a, |a| f(elementary::exp(argument(a))));
    };
    let unusual = |a| elementary::unusual_exponent(argument(a));
    if !map_ordinary(out, values, unusual, |a| f(elementary::ordinary_exp(argument(a)))) {
        map(out, a, |a| f(elementary::exp(argument(a))));
    }
}

/// Applies a function that is right for ordinary arguments; returns whether all of them are.
#[inline(always)]
fn map_ordinary(out: &mut [f64], a: &[f64], unusual: impl Fn(f64) -> u64, f: impl Fn(f64) -> f64) -> bool {
    let mut found = 0;
    for (out, &a) in out.iter_mut().zip(a) {
        found |= unusual(a);
        *out = f(a);
    }
    found >> 63 == 0
}

#[inline(always)]
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
fn fused(op: Fused, out: &mut [f64], operands: [Source<'_>; 3]) {
    let [a, b, c] = operands;
    match op {
        Fused::ProductPlus => join(out, a, b, c, |a, b, c| a * b + c),
        Fused::ProductMinus => join(out, a, b, c, |a, b, c| a * b - c),
        Fused::MinusProduct => join(out, a, b, c, |a, b, c| c - a * b),
        Fused::SumTimes => join(out, a, b, c, |a, b, c| (a + b) * c),
        Fused::DifferenceTimes => join_difference(out, a, b, c),
    }
}

/// `f(a, b, c)` of a function that is symmetric in a and b.
#[inline(always)]
fn join(out: &mut [f64], a: Source<'_>, b: Source<'_>, c: Source<'_>, f: impl Fn(f64, f64, f64) -> f64) {
    match (a, b) {
        (Source::Block(a), b) => join_block(out, a, b, c, f),
        // A constant comes second.
        (a, Source::Block(b)) => join_block(out, b, a, c, f),
        (Source::Uniform(a), Source::Uniform(b)) => map(out, c, |c| f(a, b, c)),
    }
}

/// (a − b)·c
#[inline(always)]
fn join_difference(out: &mut [f64], a: Source<'_>, b: Source<'_>, c: Source<'_>) {
    match (a, b) {
        (Source::Block(a), b) => join_block(out, a, b, c, |a, b, c| (a - b) * c),
        (a, Source::Block(b)) => join_block(out, b, a, c, |b, a, c| (a - b) * c),
        (Source::Uniform(a), Source::Uniform(b)) => map(out, c, |c| (a - b) * c),
    }
}

#[inline(always)]
fn join_block(out: &mut [f64], a: &[f64], b: Source<'_>, c: Source<'_>, f: impl Fn(f64, f64, f64) -> f64) {
    match (b, c) {
        (Source::Block(b), Source::Block(c)) => {
            for (((out, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
                *out = f(a, b, c);
            }
        }
        (Source::Block(b), Source::Uniform(c)) => {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = f(a, b, c);
            }
        }
        (Source::Uniform(b), Source::Block(c)) => {
            for ((out, &a), &c) in out.iter_mut().zip(a).zip(c) {
                *out = f(a, b, c);
            }
        }
        (Source::Uniform(b), Source::Uniform(c)) => {
            for (out, &a) in out.iter_mut().zip(a) {
                *out = f(a, b, c);
            }
        }
    }
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

#[inline(always)]
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

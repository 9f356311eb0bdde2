//! Lowering of a graph to a tape: powers become products, values are assigned to registers.

use std::collections::HashMap;

use super::{Instruction, Operand, Operation};
use crate::graph::Graph;
use crate::node::{Binary, Bits, Node, choose};

/// Instructions, the operation that gives the result, and the number of registers.
pub(super) fn lower(graph: &Graph) -> (Vec<Instruction>, Operation, usize) {
    let mut code = Code::default();
    let mut values: Vec<Operand> = Vec::with_capacity(graph.nodes().len());
    for &node in graph.nodes() {
        let value = |id: u32| values[id as usize];
        let operand = match node {
            Node::Constant(bits) => Operand::Constant(bits),
            Node::Truth(truth) => Operand::Constant(Bits::new(choose(truth, 1.0, 0.0))),
            Node::Variable(variable) => Operand::Variable(variable),
            Node::Unary(op, a) => code.push(Operation::Unary(op, value(a))),
            Node::Power(a, exponent) => code.push_power(value(a), exponent),
            Node::Binary(op, a, b) => code.push(Operation::Binary(op, value(a), value(b))),
            Node::Select(condition, a, b) => {
                code.push(Operation::Select(value(condition), value(a), value(b)))
            }
        };
        values.push(operand);
    }
    let root = values[graph.root() as usize];
    let mut operations = code.operations;
    let last = operations.len().checked_sub(1).map(|last| Operand::Register(last as u32));
    let result = match operations.pop() {
        Some(operation) if Some(root) == last => operation,
        other => {
            operations.extend(other);
            Operation::Copy(root)
        }
    };
    allocate(&operations, result)
}

/// Operations in which register `i` is the value of operation `i`; an equal operation is pushed once.
#[derive(Default)]
struct Code {
    operations: Vec<Operation>,
    known: HashMap<Operation, u32>,
}

impl Code {
    fn push(&mut self, operation: Operation) -> Operand {
        let register = *self.known.entry(operation).or_insert_with(|| {
            self.operations.push(operation);
            (self.operations.len() - 1) as u32
        });
        Operand::Register(register)
    }

    /// The products of [`integer_power`](crate::node::integer_power), so that powers of one base share squares.
    fn push_power(&mut self, base: Operand, exponent: i32) -> Operand {
        let one = Operand::Constant(Bits::new(1.0));
        let mut square = base;
        let mut product = None;
        let mut rest = exponent.unsigned_abs();
        while rest > 0 {
            if rest & 1 == 1 {
                product = Some(match product {
                    Some(product) => self.push(Operation::Binary(Binary::Multiply, product, square)),
                    None => square,
                });
            }
            rest >>= 1;
            if rest > 0 {
                square = self.push(Operation::Binary(Binary::Multiply, square, square));
            }
        }
        let product = product.unwrap_or(one);
        if exponent < 0 { self.push(Operation::Binary(Binary::Divide, one, product)) } else { product }
    }
}

/// Gives every value a register from its operation to its last use.
fn allocate(operations: &[Operation], result: Operation) -> (Vec<Instruction>, Operation, usize) {
    let mut last_use = vec![0; operations.len()];
    for (i, operation) in operations.iter().chain([&result]).enumerate() {
        for value in operation.registers() {
            last_use[value as usize] = i;
        }
    }
    let mut registers = vec![0; operations.len()];
    let mut free: Vec<u32> = Vec::new();
    let mut n_registers = 0;
    let mut instructions = Vec::with_capacity(operations.len());
    for (i, operation) in operations.iter().enumerate() {
        // Taken before those of the operands are returned: an operation never writes what it reads.
        let destination = free.pop().unwrap_or_else(|| {
            n_registers += 1;
            n_registers - 1
        });
        registers[i] = destination;
        instructions.push(Instruction { destination, operation: operation.rename(&registers) });
        for value in operation.registers().map(|value| value as usize) {
            // `usize::MAX` marks a value as returned: an operation may read one register twice.
            if last_use[value] == i {
                last_use[value] = usize::MAX;
                free.push(registers[value]);
            }
        }
    }
    (instructions, result.rename(&registers), n_registers as usize)
}

impl Operation {
    fn operands(self) -> [Option<Operand>; 3] {
        match self {
            Self::Copy(a) | Self::Unary(_, a) => [Some(a), None, None],
            Self::Binary(_, a, b) => [Some(a), Some(b), None],
            Self::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        }
    }

    fn registers(self) -> impl Iterator<Item = u32> {
        self.operands().into_iter().flatten().filter_map(|operand| match operand {
            Operand::Register(register) => Some(register),
            Operand::Constant(_) | Operand::Variable(_) => None,
        })
    }

    fn rename(self, registers: &[u32]) -> Self {
        let new = |operand| match operand {
            Operand::Register(value) => Operand::Register(registers[value as usize]),
            other => other,
        };
        match self {
            Self::Copy(a) => Self::Copy(new(a)),
            Self::Unary(op, a) => Self::Unary(op, new(a)),
            Self::Binary(op, a, b) => Self::Binary(op, new(a), new(b)),
            Self::Select(a, b, c) => Self::Select(new(a), new(b), new(c)),
        }
    }
}

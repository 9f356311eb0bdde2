//! Lowering of nodes to code: powers become products, sums take in the products that nothing else uses, values are
//! assigned to registers.

use std::collections::HashMap;

use super::code::{Code, Fused, Operand, Operation, Step};
use crate::node::{Binary, Bits, Id, Node, Unary, choose};

/// Compiles nodes; output `i` is the value of node `roots[i]`.
pub(super) fn lower(nodes: &[Node], roots: &[Id]) -> Code {
    let mut values = Values::default();
    let operands = values.push_all(nodes);
    let roots: Vec<Operand> = roots.iter().map(|&root| operands[root as usize]).collect();
    values.fuse(&roots);
    let order = values.needed(&roots);
    let (steps, n_registers) = allocate(&values.operations, &order, &roots);
    let variables = steps.iter().filter_map(|step| match step {
        Step::Compute { operation: Operation::Load(variable), .. } => Some(*variable),
        _ => None,
    });
    let variables = variables.collect();
    Code { steps, n_registers, variables }
}

const ONE: Operand = Operand::Constant(Bits::new(1.0));

/// Operations in which register `i` is the value of operation `i`; an equal operation is pushed once.
#[derive(Default)]
struct Values {
    operations: Vec<Operation>,
    known: HashMap<Operation, u32>,
}

impl Values {
    fn push_all(&mut self, nodes: &[Node]) -> Vec<Operand> {
        let mut values: Vec<Operand> = Vec::with_capacity(nodes.len());
        for &node in nodes {
            let value = |id: Id| values[id as usize];
            let operand = match node {
                Node::Constant(bits) => Operand::Constant(bits),
                Node::Truth(truth) => Operand::Constant(Bits::new(choose(truth, 1.0, 0.0))),
                Node::Variable(variable) => self.push(Operation::Load(variable)),
                Node::Unary(op, a) => self.push(Operation::Unary(op, value(a))),
                Node::Power(a, exponent) => self.push_power(value(a), exponent),
                Node::HalfPower(a, twice) => self.push_half_power(value(a), twice),
                Node::Binary(op, a, b) => self.push(Operation::Binary(op, value(a), value(b))),
                Node::Select(condition, a, b) => {
                    self.push(Operation::Select(value(condition), value(a), value(b)))
                }
            };
            values.push(operand);
        }
        values
    }

    fn push(&mut self, operation: Operation) -> Operand {
        let register = *self.known.entry(operation).or_insert_with(|| {
            self.operations.push(operation);
            (self.operations.len() - 1) as u32
        });
        Operand::Register(register)
    }

    /// The products of [`integer_power`](crate::node::integer_power), so that powers of one base share squares.
    fn push_power(&mut self, base: Operand, exponent: i32) -> Operand {
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
        let product = product.unwrap_or(ONE);
        if exponent < 0 { self.push(Operation::Binary(Binary::Divide, ONE, product)) } else { product }
    }

    /// The operations of [`half_power`](crate::node::half_power).
    fn push_half_power(&mut self, base: Operand, twice: i32) -> Operand {
        let root = self.push(Operation::Unary(Unary::Sqrt, base));
        let product = match (twice.abs() - 1) / 2 {
            0 => root,
            n => {
                let power = self.push_power(base, n);
                self.push(Operation::Binary(Binary::Multiply, power, root))
            }
        };
        if twice < 0 { self.push(Operation::Binary(Binary::Divide, ONE, product)) } else { product }
    }

    /// Turns sums with a product that nothing else uses into one operation.
    fn fuse(&mut self, roots: &[Operand]) {
        let mut n_uses = vec![0; self.operations.len()];
        let read = self.operations.iter().flat_map(|operation| operation.registers());
        read.chain(roots.iter().filter_map(|root| root.register()))
            .for_each(|register| n_uses[register as usize] += 1);
        let product = |operations: &[Operation], operand: Operand| match operations
            [operand.register().filter(|&register| n_uses[register as usize] == 1)? as usize]
        {
            Operation::Binary(Binary::Multiply, a, b) => Some((a, b)),
            _ => None,
        };
        for i in 0..self.operations.len() {
            let Operation::Binary(op @ (Binary::Add | Binary::Subtract), left, right) = self.operations[i]
            else {
                continue;
            };
            let fused = match (product(&self.operations, left), product(&self.operations, right)) {
                (Some((a, b)), _) => {
                    let kind = if op == Binary::Add { Fused::Add } else { Fused::Subtract };
                    (kind, a, b, right)
                }
                (None, Some((a, b))) => {
                    let kind = if op == Binary::Add { Fused::Add } else { Fused::SubtractFrom };
                    (kind, a, b, left)
                }
                (None, None) => continue,
            };
            let (kind, a, b, c) = fused;
            self.operations[i] = Operation::Fused(kind, a, b, c);
        }
    }

    /// The operations that the roots need, in order.
    fn needed(&self, roots: &[Operand]) -> Vec<u32> {
        let mut is_needed = vec![false; self.operations.len()];
        roots.iter().filter_map(|root| root.register()).for_each(|root| is_needed[root as usize] = true);
        for i in (0..self.operations.len()).rev() {
            if is_needed[i] {
                self.operations[i].registers().for_each(|register| is_needed[register as usize] = true);
            }
        }
        (0..self.operations.len() as u32).filter(|&i| is_needed[i as usize]).collect()
    }
}

/// Gives every value a register from its operation to its last use; outputs are stored when they are computed.
fn allocate(operations: &[Operation], order: &[u32], roots: &[Operand]) -> (Vec<Step>, usize) {
    let mut last_use = vec![0; operations.len()];
    let mut stores: HashMap<u32, Vec<u32>> = HashMap::new();
    for &i in order {
        operations[i as usize].registers().for_each(|value| last_use[value as usize] = i);
    }
    let mut steps = Vec::with_capacity(order.len() + roots.len());
    for (output, root) in (0..).zip(roots) {
        match root {
            Operand::Register(register) => stores.entry(*register).or_default().push(output),
            Operand::Constant(_) => steps.push(Step::Store { output, value: *root }),
        }
    }
    let mut registers = vec![0; operations.len()];
    let mut free: Vec<u32> = Vec::new();
    let mut n_registers = 0;
    for &i in order {
        let operation = operations[i as usize];
        // Taken before those of the operands are returned: an operation never writes what it reads.
        let destination = free.pop().unwrap_or_else(|| {
            n_registers += 1;
            n_registers - 1
        });
        registers[i as usize] = destination;
        steps.push(Step::Compute {
            destination,
            operation: operation.rename(|value| registers[value as usize]),
        });
        for &output in stores.get(&i).into_iter().flatten() {
            steps.push(Step::Store { output, value: Operand::Register(destination) });
        }
        for value in operation.registers().map(|value| value as usize) {
            // `u32::MAX` marks a value as returned: an operation may read one register twice.
            if last_use[value] == i {
                last_use[value] = u32::MAX;
                free.push(registers[value]);
            }
        }
        // An output that nothing reads is dead once it is stored.
        if last_use[i as usize] < i {
            free.push(destination);
        }
    }
    (steps, n_registers as usize)
}

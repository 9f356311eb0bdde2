//! Lowering of nodes to operations: powers become products; values are assigned to registers.

use std::collections::HashMap;

use super::code::{Code, Operand, Operation, Place, Step};
use super::fuse::fuse;
use crate::node::{Binary, Bits, Id, Node, Unary, choose};

/// Compiles nodes; output `i` is the value of node `roots[i]`.
pub(super) fn lower(nodes: &[Node], roots: &[Id]) -> Code {
    let mut values = Values::default();
    let operands = values.push_all(nodes);
    let roots: Vec<Operand> = roots.iter().map(|&root| operands[root as usize]).collect();
    let mut operations = values.operations;
    fuse(&mut operations, &roots);
    let mut allocation = Allocation::new(&operations, &roots);
    for (i, operation) in (0..).zip(operations) {
        allocation.push(i, operation);
    }
    allocation.code
}

const ONE: Operand = Operand::Constant(Bits::new(1.0));

/// Operations, each with its number; an equal operation is pushed once.
#[derive(Default)]
struct Values {
    operations: Vec<Operation<Operand>>,
    known: HashMap<Operation<Operand>, u32>,
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

    fn push(&mut self, operation: Operation<Operand>) -> Operand {
        let value = *self.known.entry(operation).or_insert_with(|| {
            self.operations.push(operation);
            (self.operations.len() - 1) as u32
        });
        Operand::Value(value)
    }

    fn multiply(&mut self, a: Operand, b: Operand) -> Operand {
        self.push(Operation::Binary(Binary::Multiply, a, b))
    }

    fn reciprocal(&mut self, a: Operand) -> Operand {
        self.push(Operation::Binary(Binary::Divide, ONE, a))
    }

    /// The products of [`integer_power`](crate::node::integer_power), so that powers of one base share squares.
    fn push_power(&mut self, base: Operand, exponent: i32) -> Operand {
        let mut square = base;
        let mut product = None;
        let mut rest = exponent.unsigned_abs();
        while rest > 0 {
            if rest & 1 == 1 {
                product = Some(match product {
                    Some(product) => self.multiply(product, square),
                    None => square,
                });
            }
            rest >>= 1;
            if rest > 0 {
                square = self.multiply(square, square);
            }
        }
        let product = product.unwrap_or(ONE);
        if exponent < 0 { self.reciprocal(product) } else { product }
    }

    /// The operations of [`half_power`](crate::node::half_power).
    fn push_half_power(&mut self, base: Operand, twice: i32) -> Operand {
        let root = self.push(Operation::Unary(Unary::Sqrt, base));
        let product = match (twice.abs() - 1) / 2 {
            0 => root,
            n => {
                let power = self.push_power(base, n);
                self.multiply(power, root)
            }
        };
        if twice < 0 { self.reciprocal(product) } else { product }
    }
}

/// Gives every value a register from its operation to its last use.
struct Allocation {
    code: Code,
    constants: HashMap<Bits, Place>,
    /// The last operation that reads a value; none for values that no operation reads.
    last_use: Vec<Option<u32>>,
    /// The outputs that are the value of an operation: they are stored once it is computed.
    stores: HashMap<u32, Vec<u32>>,
    is_needed: Vec<bool>,
    /// The register of each value so far.
    registers: Vec<u32>,
    free: Vec<u32>,
}

impl Allocation {
    fn new(operations: &[Operation<Operand>], roots: &[Operand]) -> Self {
        let mut is_needed = vec![false; operations.len()];
        let mut last_use = vec![None; operations.len()];
        let mut stores: HashMap<u32, Vec<u32>> = HashMap::new();
        let code = Code { steps: Vec::new(), constants: Vec::new(), n_registers: 0, variables: Vec::new() };
        for (output, root) in (0..).zip(roots) {
            if let Operand::Value(value) = root {
                stores.entry(*value).or_default().push(output);
                is_needed[*value as usize] = true;
            }
        }
        for i in (0..operations.len()).rev() {
            if !is_needed[i] {
                continue;
            }
            for value in operations[i].operands().filter_map(Operand::value) {
                is_needed[value as usize] = true;
                last_use[value as usize].get_or_insert(i as u32);
            }
        }
        let mut made = Self {
            code,
            constants: HashMap::new(),
            last_use,
            stores,
            is_needed,
            registers: Vec::new(),
            free: Vec::new(),
        };
        for (output, root) in (0..).zip(roots) {
            if let Operand::Constant(_) = root {
                let value = made.place(*root);
                made.code.steps.push(Step::Store { output, value });
            }
        }
        made
    }

    fn place(&mut self, operand: Operand) -> Place {
        match operand {
            Operand::Value(value) => Place::register(self.registers[value as usize]),
            Operand::Constant(bits) => *self.constants.entry(bits).or_insert_with(|| {
                self.code.constants.push(bits.value());
                Place::constant(self.code.constants.len() as u32 - 1)
            }),
        }
    }

    /// Adds operation `i`, if anything needs it.
    fn push(&mut self, i: u32, operation: Operation<Operand>) {
        if !self.is_needed[i as usize] {
            self.registers.push(0);
            return;
        }
        if let Operation::Load(variable) = operation {
            self.code.variables.push(variable);
        }
        // Taken before those of the operands are returned: an operation never writes what it reads.
        let destination = self.free.pop().unwrap_or_else(|| {
            self.code.n_registers += 1;
            self.code.n_registers as u32 - 1
        });
        self.registers.push(destination);
        let placed = operation.map(|operand| self.place(operand));
        self.code.steps.push(Step::Compute { destination, operation: placed });
        for output in self.stores.remove(&i).unwrap_or_default() {
            self.code.steps.push(Step::Store { output, value: Place::register(destination) });
        }
        for value in operation.operands().filter_map(Operand::value).map(|value| value as usize) {
            // Taken, so that a value which is read twice is returned once.
            if self.last_use[value].take_if(|last| *last == i).is_some() {
                self.free.push(self.registers[value]);
            }
        }
        if self.last_use[i as usize].is_none() {
            self.free.push(destination);
        }
    }
}

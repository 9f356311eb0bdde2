//! Division of a program into a part that is computed once and a part that is computed often.

use super::Program;
use crate::node::{Id, Node, Variable};
use crate::tape::Code;

/// A program in two parts, made by [`Program::split`].
#[derive(Debug, Clone)]
pub struct Split {
    /// The part without late inputs; it has the inputs of the whole program.
    pub early: Program,
    /// The rest. Its inputs are the late ones in their order, then the outputs of the early part.
    pub late: Program,
    /// For each output of the early part the inputs that it depends on, ascending.
    pub inputs: Vec<Vec<usize>>,
}

impl Program {
    /// Divides the program into what depends on late inputs and what does not, so that the latter may be computed once for
    /// many values of the former.
    ///
    /// The outputs of the early part are numbers between both, or the inputs that they depend on where these are fewer.
    pub fn split(&self, is_late: impl Fn(usize) -> bool) -> Split {
        let is_late_variable = |node: &Node| match node {
            Node::Variable(Variable::Other(position)) => is_late(usize::from(*position)),
            _ => false,
        };
        let mut in_late = vec![false; self.nodes.len()];
        for (id, node) in self.nodes.iter().enumerate() {
            in_late[id] = is_late_variable(node) || node.operands().any(|operand| in_late[operand as usize]);
        }
        // Conditions cannot be passed on as numbers.
        for id in (0..self.nodes.len()).rev() {
            if in_late[id] {
                let of_conditions = |&operand: &Id| self.nodes[operand as usize].is_condition();
                self.nodes[id].operands().filter(of_conditions).for_each(|id| in_late[id as usize] = true);
            }
        }
        let is_constant = |id: usize| matches!(self.nodes[id], Node::Constant(_) | Node::Truth(_));
        let mut is_between = vec![false; self.nodes.len()];
        for (id, node) in self.nodes.iter().enumerate() {
            if in_late[id] {
                node.operands().for_each(|operand| is_between[operand as usize] = true);
            }
        }
        self.outputs.iter().for_each(|&output| is_between[output as usize] = true);
        let between = |is_in: &dyn Fn(usize) -> bool| -> Vec<Id> {
            (0..self.nodes.len()).filter(|&id| is_in(id)).map(|id| id as Id).collect()
        };
        let numbers = between(&|id| is_between[id] && !in_late[id] && !is_constant(id));
        let variables =
            between(&|id| matches!(self.nodes[id], Node::Variable(_)) && !is_late_variable(&self.nodes[id]));
        let passed = if variables.len() < numbers.len() { variables } else { numbers };

        let late_inputs: Vec<usize> = (0..self.n_inputs).filter(|&input| is_late(input)).collect();
        let rename = |position: u16| late_inputs.iter().position(|&late| late == usize::from(position));
        let source = |id: Id| match passed.iter().position(|&own| own == id) {
            Some(at) => Some(late_inputs.len() + at),
            None => match self.nodes[id as usize] {
                Node::Variable(Variable::Other(position)) => rename(position),
                _ => None,
            },
        };
        let late = self.part(&self.outputs, late_inputs.len() + passed.len(), &source);
        let early = self.part(&passed, self.n_inputs, &|_| None);
        let inputs = passed.iter().map(|&id| self.inputs_of(id)).collect();
        Split { early, late, inputs }
    }

    /// Returns the program with its inputs at other places: input i becomes input `places[i]`.
    ///
    /// # Panics
    /// Unless `places` is a permutation of the inputs.
    #[must_use]
    pub fn with_inputs(&self, places: &[usize]) -> Self {
        let mut sorted = places.to_vec();
        sorted.sort_unstable();
        assert!(
            sorted.into_iter().eq(0..self.n_inputs),
            "Program: {places:?} permute {} inputs",
            self.n_inputs
        );
        let place = |id: Id| match self.nodes[id as usize] {
            Node::Variable(Variable::Other(position)) => Some(places[usize::from(position)]),
            _ => None,
        };
        self.part(&self.outputs, self.n_inputs, &place)
    }

    /// Returns the program of some nodes; `input` gives those that are inputs a position.
    fn part(&self, outputs: &[Id], n_inputs: usize, input: &dyn Fn(Id) -> Option<usize>) -> Self {
        let mut is_needed = vec![false; self.nodes.len()];
        outputs.iter().for_each(|&output| is_needed[output as usize] = true);
        for id in (0..self.nodes.len()).rev() {
            if is_needed[id] && input(id as Id).is_none() {
                self.nodes[id].operands().for_each(|operand| is_needed[operand as usize] = true);
            }
        }
        let mut new_ids = vec![0; self.nodes.len()];
        let mut nodes = Vec::new();
        for id in (0..self.nodes.len()).filter(|&id| is_needed[id]) {
            new_ids[id] = nodes.len() as Id;
            nodes.push(match input(id as Id) {
                Some(position) => Node::Variable(Variable::Other(position as u16)),
                None => self.nodes[id].rename(|old| new_ids[old as usize]),
            });
        }
        let outputs: Vec<Id> = outputs.iter().map(|&output| new_ids[output as usize]).collect();
        Self { n_inputs, code: Code::new(&nodes, &outputs), nodes, outputs }
    }

    /// Returns the positions of the inputs that a node depends on, ascending.
    fn inputs_of(&self, id: Id) -> Vec<usize> {
        let mut is_needed = vec![false; id as usize + 1];
        is_needed[id as usize] = true;
        let mut inputs = Vec::new();
        for id in (0..=id as usize).rev().filter(|&id| id < self.nodes.len()) {
            if !is_needed[id] {
                continue;
            }
            if let Node::Variable(Variable::Other(position)) = self.nodes[id] {
                inputs.push(usize::from(position));
            }
            self.nodes[id].operands().for_each(|operand| is_needed[operand as usize] = true);
        }
        inputs.sort_unstable();
        inputs
    }
}

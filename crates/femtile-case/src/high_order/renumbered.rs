//! A cycle on the nodes of a box as a preconditioner for the degrees of freedom of a space.

use std::sync::{Mutex, PoisonError};

use femtile_device::{Buffer, Cpu};
use femtile_linalg::{LinalgError, Preconditioner, need};
use femtile_multigrid::GeometricMultigrid;
use femtile_tensor::Contract;
use rayon::prelude::*;

/// Which node of the box a degree of freedom is, and the other way round.
pub(super) struct Numbers {
    pub node_of_dof: Vec<u32>,
    dof_of_node: Vec<u32>,
    /// Degrees of freedom whose value is given.
    pub constrained: Vec<u32>,
}

impl Numbers {
    /// From the node of each degree of freedom, and those whose value is given.
    pub fn new(node_of_dof: Vec<u32>, constrained: &[u32]) -> Self {
        let mut dof_of_node = vec![0; node_of_dof.len()];
        for (dof, &node) in node_of_dof.iter().enumerate() {
            dof_of_node[node as usize] = dof as u32;
        }
        Self { node_of_dof, dof_of_node, constrained: constrained.to_vec() }
    }
}

/// A cycle on vectors in the order of the degrees of freedom; z = r where values are given.
pub(super) struct Renumbered<T: Contract> {
    cycle: GeometricMultigrid<T>,
    numbers: Numbers,
    /// z and r in the order of the nodes.
    room: Mutex<[Buffer<f64, Cpu>; 2]>,
}

impl<T: Contract> Renumbered<T> {
    /// A cycle with the numbers of a space.
    pub fn new(cpu: &Cpu, cycle: GeometricMultigrid<T>, numbers: Numbers) -> Result<Self, LinalgError> {
        let n = numbers.node_of_dof.len();
        let room = Mutex::new([Buffer::zeros(cpu, n)?, Buffer::zeros(cpu, n)?]);
        Ok(Self { cycle, numbers, room })
    }
}

impl<T: Contract> Preconditioner<f64, Cpu> for Renumbered<T> {
    fn apply(&self, z: &mut Buffer<f64, Cpu>, r: &Buffer<f64, Cpu>) -> Result<(), LinalgError> {
        let Numbers { node_of_dof, dof_of_node, constrained } = &self.numbers;
        need("z", node_of_dof.len(), z.len())?;
        need("r", node_of_dof.len(), r.len())?;
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let [z_of_nodes, r_of_nodes] = &mut *room;
        pick(r_of_nodes.as_mut_slice(), r.as_slice(), dof_of_node);
        for &dof in constrained {
            r_of_nodes.as_mut_slice()[node_of_dof[dof as usize] as usize] = 0.0;
        }
        self.cycle.apply(z_of_nodes, r_of_nodes)?;
        pick(z.as_mut_slice(), z_of_nodes.as_slice(), node_of_dof);
        for &dof in constrained {
            z.as_mut_slice()[dof as usize] = r.as_slice()[dof as usize];
        }
        Ok(())
    }

    fn expect(&self, length: f64) {
        self.cycle.expect(length);
    }
}

/// The entries with these numbers.
fn pick(to: &mut [f64], from: &[f64], numbers: &[u32]) {
    to.par_iter_mut().zip(numbers).for_each(|(to, &number)| *to = from[number as usize]);
}

//! The membranes of all nodes.

use femtile::Mesh;
use femtile::device::Buffer;
use femtile::linalg::vector::VectorKernels;

use super::Tissue;
use crate::CardiacError;
use crate::ionic::{GatePrecision, Ionic, IonicKernels, LocalScheme, Points};
use crate::stimulus::Place;

/// The membranes of all nodes, each kind of tissue with its own model.
pub(super) struct Membrane<D: IonicKernels>(Vec<Ionic<D>>);

impl<D: IonicKernels + VectorKernels<f64>> Membrane<D> {
    /// Begins at rest; returns the potentials as well.
    ///
    /// # Errors
    /// [`CardiacError::Entry`] for an unknown tag; [`CardiacError::Setting`] where nodes belong to no tissue.
    pub fn new(
        device: &D,
        mesh: &Mesh,
        tissues: &[Tissue],
        (scheme, gates): (LocalScheme, GatePrecision),
    ) -> Result<(Self, Buffer<f64, D>), CardiacError> {
        let n = mesh.n_nodes();
        let mut v = Buffer::zeros(device, n)?;
        let mut membranes = Vec::new();
        let nodes = nodes_of(mesh, tissues)?;
        for (tissue, nodes) in tissues.iter().zip(&nodes) {
            if nodes.is_empty() {
                continue;
            }
            let points = match nodes.len() == n {
                true => Points::all(n),
                false => Points::listed(device, n, nodes)?,
            };
            let ionic = Ionic::with_gates(device, &tissue.model, scheme, gates, points)?;
            ionic.set_rest_voltage(&mut v)?;
            membranes.push(ionic);
        }
        Ok((Self(membranes), v))
    }

    /// Advances potentials and states by a step.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn advance(
        &mut self,
        v: &mut Buffer<f64, D>,
        stimulus: Option<&Buffer<f64, D>>,
        length: f64,
    ) -> Result<(), CardiacError> {
        self.0.iter_mut().try_for_each(|ionic| ionic.advance(v, stimulus, length))
    }

    /// Returns the states of each tissue on the host.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn states(&self) -> Result<Vec<Vec<f64>>, CardiacError> {
        self.0.iter().map(|ionic| Ok(ionic.states().to_host()?)).collect()
    }

    /// Takes states over; returns whether they have the lengths of its own.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn restore(&mut self, states: &[Vec<f64>]) -> Result<bool, CardiacError> {
        let fits = states.len() == self.0.len()
            && self.0.iter().zip(states).all(|(ionic, states)| ionic.states().len() == states.len());
        if fits {
            for (ionic, states) in self.0.iter_mut().zip(states) {
                ionic.set_states(states)?;
            }
        }
        Ok(fits)
    }
}

/// Returns the nodes of each tissue, each node with the last one that has it.
fn nodes_of(mesh: &Mesh, tissues: &[Tissue]) -> Result<Vec<Vec<u32>>, CardiacError> {
    let mut owner = vec![usize::MAX; mesh.n_nodes()];
    for (number, tissue) in tissues.iter().enumerate() {
        match &tissue.cells {
            None => owner.fill(number),
            Some(tag) => {
                let wrong = |message| CardiacError::Entry { list: "tissue", number, field: "cells", message };
                let nodes = Place::Tag(tag.clone()).nodes(mesh).map_err(wrong)?;
                nodes.into_iter().for_each(|node| owner[node as usize] = number);
            }
        }
    }
    if let Some(node) = owner.iter().position(|&number| number == usize::MAX) {
        let message = format!("node {node} belongs to no tissue: give one for all cells first");
        return Err(CardiacError::setting("tissue", message));
    }
    let mut nodes = vec![Vec::new(); tissues.len()];
    owner.iter().enumerate().for_each(|(node, &number)| nodes[number].push(node as u32));
    Ok(nodes)
}

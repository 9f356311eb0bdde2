//! The membranes of all nodes.

use femtile::Mesh;
use femtile::device::Buffer;
use femtile::linalg::LinalgError;
use femtile::linalg::vector::VectorKernels;
use femtile::solve::LocalProblem;

use super::{Nodes, Tissue};
use crate::CardiacError;
use crate::ionic::{GatePrecision, Ionic, IonicKernels, LocalScheme, Points, stride_of};
use crate::stimulus::Place;

/// The membranes of all nodes, each kind of tissue with its own model.
pub(super) struct Membrane<D: IonicKernels>(Vec<Kind<D>>);

/// The membranes of one kind of tissue.
struct Kind<D: IonicKernels> {
    /// None if it has no node on this rank.
    ionic: Option<Ionic<D>>,
    n_states: usize,
    /// Its nodes on this rank by their numbers in the whole mesh; of several ranks.
    ids: Vec<u32>,
    /// All of its nodes, ascending, on the first of several ranks.
    nodes: Vec<u32>,
}

impl<D: IonicKernels> Kind<D> {
    /// The membranes of a kind, of whose nodes `own` are here. Collective.
    fn new(
        ionic: Option<Ionic<D>>,
        n_states: usize,
        own: &[u32],
        here: &Nodes<'_>,
    ) -> Result<Self, LinalgError> {
        let (mut ids, mut nodes) = (Vec::new(), Vec::new());
        if !here.is_alone() {
            ids.extend(own.iter().map(|&node| here.to_global(node)));
            nodes = here.comm().gather(&ids)?.concat();
            nodes.sort_unstable();
        }
        Ok(Self { ionic, n_states, ids, nodes })
    }
}

impl<D: IonicKernels + VectorKernels<f64>> Membrane<D> {
    /// Begins at rest; returns the potentials as well. Collective.
    ///
    /// # Errors
    /// [`CardiacError::Entry`] for an unknown tag; [`CardiacError::Setting`] if nodes belong to no tissue.
    pub fn new(
        device: &D,
        (mesh, here): (&Mesh, &Nodes<'_>),
        tissues: &[Tissue],
        (scheme, gates): (LocalScheme, GatePrecision),
    ) -> Result<(Self, Buffer<f64, D>), CardiacError> {
        let n = here.n();
        let mut v = Buffer::zeros(device, n)?;
        let mut membranes = Vec::new();
        for (tissue, nodes) in tissues.iter().zip(nodes_of((mesh, here), tissues)?) {
            let (own, n_states) = (here.listed(&nodes), tissue.model.n_states());
            if here.any([!own.is_empty()])? == [false] {
                continue;
            }
            let points = match own.len() {
                0 => None,
                all if all == n => Some(Points::all(n)),
                _ => Some(Points::listed(device, n, &own)?),
            };
            let ionic = |points| Ionic::with_gates(device, &tissue.model, scheme, gates, points);
            let ionic = points.map(ionic).transpose()?;
            ionic.iter().try_for_each(|ionic| ionic.set_rest_voltage(&mut v))?;
            membranes.push(Kind::new(ionic, n_states, &own, here)?);
        }
        Ok((Self(membranes), v))
    }

    fn here(&self) -> impl Iterator<Item = &Ionic<D>> {
        self.0.iter().filter_map(|kind| kind.ionic.as_ref())
    }

    fn here_mut(&mut self) -> impl Iterator<Item = &mut Ionic<D>> {
        self.0.iter_mut().filter_map(|kind| kind.ionic.as_mut())
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
        self.here_mut().try_for_each(|ionic| ionic.advance(v, stimulus, length))
    }

    /// Returns the states of each tissue on the host.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn states(&self) -> Result<Vec<Vec<f64>>, CardiacError> {
        self.here().map(|ionic| Ok(ionic.states().to_host()?)).collect()
    }

    /// Restores states; returns whether the lengths fit.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn restore(&mut self, states: &[Vec<f64>]) -> Result<bool, CardiacError> {
        let fits = states.len() == self.here().count()
            && self.here().zip(states).all(|(ionic, states)| ionic.states().len() == states.len());
        if fits {
            for (ionic, states) in self.here_mut().zip(states) {
                ionic.set_states(states)?;
            }
        }
        Ok(fits)
    }

    /// Returns the global states of each tissue, in the order of a run on one rank, from the local states;
    /// nothing on ranks other than the first. Collective.
    ///
    /// # Errors
    /// Errors of other ranks.
    pub fn gather(
        &self,
        rank: &LocalProblem<'_>,
        here: &Nodes<'_>,
        states: &[Vec<f64>],
    ) -> Result<Vec<Vec<f64>>, CardiacError> {
        let mut states = states.iter();
        let mut all = Vec::new();
        for Kind { ionic, n_states, ids, nodes } in &self.0 {
            let own = ionic.as_ref().and_then(|_| states.next());
            let (stride, whole_stride) = (stride_of(ids.len()), stride_of(nodes.len()));
            let mut whole = vec![0.0; if here.is_first() { n_states * whole_stride } else { 0 }];
            for state in 0..*n_states {
                let row = own.map_or(&[][..], |own| &own[state * stride..][..ids.len()]);
                if let Some(row) = rank.gather(ids, row)? {
                    let to = whole[state * whole_stride..].iter_mut();
                    to.zip(nodes).for_each(|(to, &node)| *to = row[node as usize]);
                }
            }
            all.push(whole);
        }
        Ok(all)
    }

    /// Returns whether these are as many states as all ranks have in total; for the first rank.
    pub fn are_of_all(&self, states: &[Vec<f64>]) -> bool {
        let fits = |(kind, states): (&Kind<D>, &Vec<f64>)| {
            states.len() == kind.n_states * stride_of(kind.nodes.len())
        };
        states.len() == self.0.len() && self.0.iter().zip(states).all(fits)
    }

    /// Returns the local states out of the global ones, which the first rank provides. Collective.
    ///
    /// # Errors
    /// Errors of other ranks.
    pub fn scatter(
        &self,
        rank: &LocalProblem<'_>,
        all: Option<&[Vec<f64>]>,
    ) -> Result<Vec<Vec<f64>>, CardiacError> {
        let mut dealt = Vec::new();
        for (number, Kind { ionic, n_states, ids, nodes }) in self.0.iter().enumerate() {
            let (stride, whole_stride) = (stride_of(ids.len()), stride_of(nodes.len()));
            let mut own = vec![0.0; n_states * stride];
            let mut row = vec![0.0; if all.is_some() { rank.n_nodes() } else { 0 }];
            for state in 0..*n_states {
                if let Some(all) = all {
                    let of_state = &all[number][state * whole_stride..];
                    nodes.iter().zip(of_state).for_each(|(&node, value)| row[node as usize] = *value);
                }
                let values = rank.scatter(ids, all.map(|_| row.as_slice()))?;
                own[state * stride..][..ids.len()].copy_from_slice(&values);
            }
            dealt.extend(ionic.is_some().then_some(own));
        }
        Ok(dealt)
    }
}

/// Returns the nodes of each tissue in the mesh of this rank; a node of several tissues belongs to the last.
/// Collective.
fn nodes_of((mesh, here): (&Mesh, &Nodes<'_>), tissues: &[Tissue]) -> Result<Vec<Vec<u32>>, CardiacError> {
    let mut owner = vec![usize::MAX; mesh.n_nodes()];
    for (number, tissue) in tissues.iter().enumerate() {
        match &tissue.cells {
            None => owner.fill(number),
            Some(tag) => {
                let wrong = |message| CardiacError::Entry { list: "tissue", number, field: "cells", message };
                let nodes = Place::Tag(tag.clone()).nodes(mesh, here)?.map_err(wrong)?;
                nodes.into_iter().for_each(|node| owner[node as usize] = number);
            }
        }
    }
    let complete = &owner[..here.n_complete()];
    let open = complete.iter().position(|&number| number == usize::MAX).map(|node| here.number(node));
    if let Some(node) = here.least(open)? {
        let message = format!("node {node} belongs to no tissue: give one for all cells first");
        return Err(CardiacError::setting("tissue", message));
    }
    let mut nodes = vec![Vec::new(); tissues.len()];
    complete.iter().enumerate().for_each(|(node, &number)| nodes[number].push(node as u32));
    Ok(nodes)
}

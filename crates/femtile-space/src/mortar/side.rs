//! The facets of a side with their nodes, neighbours and rim.

use std::collections::HashMap;

use super::clip::{dot, minus};
use super::{SMOOTH, SideNode, SidePair};
use crate::element::corner;
use crate::space::Space;

/// The facets of the side that follows.
pub(super) struct SideFacets {
    /// The numbers of the nodes of each facet, in the order of [`crate::ElementFacet::dofs`].
    pub nodes: Vec<Vec<usize>>,
    /// Facets that meet each facet at an edge, a point in the plane, without an angle.
    pub neighbours: Vec<Vec<usize>>,
    /// Whether a node lies on the rim, on an edge where facets meet at an angle, or on a facet that is not taken.
    pub is_rim: Vec<bool>,
    /// The facets of each node, with its number among those of the facet.
    pub around: Vec<Vec<(usize, usize)>>,
    /// The corners of each facet in their order around it.
    pub corners: Vec<Vec<[f64; 3]>>,
    /// Whether the other side covers a facet.
    pub is_taken: Vec<bool>,
}

/// An edge of a facet; in the plane a point.
struct Edge {
    /// The nodes of the mesh at its ends, ascending.
    key: [u32; 2],
    facet: usize,
    /// The numbers of the nodes of the side on it.
    nodes: Vec<usize>,
}

/// Distances on the reference cell that are rounding.
const SMALL: f64 = 1e-12;

impl SideFacets {
    /// Collects the facets; those that are not taken have no neighbours, and their nodes are on the rim.
    pub fn new(space: &Space<'_>, sides: &SidePair<'_>, nodes: &[SideNode], is_taken: Vec<bool>) -> Self {
        let numbers: HashMap<u32, usize> =
            nodes.iter().zip(0..).map(|(node, number)| (node.dof, number)).collect();
        let element = space.element();
        let mut dofs = vec![0; element.n_dofs()];
        let (n_facets, d) = (sides.to.len(), element.dimension());
        let mut side = Self {
            nodes: Vec::with_capacity(n_facets),
            neighbours: vec![Vec::new(); n_facets],
            is_rim: vec![false; nodes.len()],
            around: vec![Vec::new(); nodes.len()],
            corners: Vec::with_capacity(n_facets),
            is_taken,
        };
        // For each facet of the cell its edges as pairs of corners.
        let edges_of = |corners: &[usize]| -> Vec<Vec<usize>> {
            let cyclic = around(corners);
            if d == 2 {
                return cyclic.into_iter().map(|corner| vec![corner]).collect();
            }
            let next = cyclic.iter().cycle().skip(1);
            cyclic.iter().zip(next).map(|(&a, &b)| vec![a, b]).collect()
        };
        let mut edges: Vec<Edge> = Vec::new();
        for (number, &at) in sides.to.iter().enumerate() {
            space.cell_dofs(at.position, &mut dofs);
            let (facet, corners) = (&element.facets()[at.facet], space.corners(at.position));
            let own: Vec<usize> = facet.dofs.iter().map(|&local| numbers[&dofs[local]]).collect();
            let place = |corner: usize| space.mesh().points[corners[corner] as usize];
            side.corners.push(around(&facet.corners).into_iter().map(place).collect());
            for ends in edges_of(&facet.corners) {
                let of_kind = |end: usize| corner(element.kind(), ends[end.min(ends.len() - 1)]);
                let [a, b] = [of_kind(0), of_kind(1)];
                let length = |x: [f64; 3], y: [f64; 3]| dot(minus(x, y), minus(x, y)).sqrt();
                let is_on_it = |x: [f64; 3]| length(x, a) + length(x, b) <= length(a, b) + SMALL;
                let on_edge = (0..own.len()).filter(|&i| is_on_it(element.nodes()[facet.dofs[i]]));
                let mut key = [corners[ends[0]], corners[ends[ends.len() - 1]]];
                key.sort_unstable();
                edges.push(Edge { key, facet: number, nodes: on_edge.map(|i| own[i]).collect() });
            }
            for (i, &node) in own.iter().enumerate() {
                side.around[node].push((number, i));
                side.is_rim[node] |= !side.is_taken[number];
            }
            side.nodes.push(own);
        }
        edges.sort_by_key(|edge| (edge.key, edge.facet));
        for meeting in edges.chunk_by(|a, b| a.key == b.key) {
            match *meeting {
                [Edge { key, facet: one, .. }, Edge { facet: other, .. }]
                    if side.is_taken[one]
                        && side.is_taken[other]
                        && side.is_smooth(space, key, [one, other]) =>
                {
                    side.neighbours[one].push(other);
                    side.neighbours[other].push(one);
                }
                _ => meeting.iter().flat_map(|edge| &edge.nodes).for_each(|&node| side.is_rim[node] = true),
            }
        }
        side
    }

    /// Returns whether two facets go on in nearly the same direction beyond their edge.
    fn is_smooth(&self, space: &Space<'_>, key: [u32; 2], facets: [usize; 2]) -> bool {
        let [a, b] = key.map(|node| space.mesh().points[node as usize]);
        let along = minus(b, a);
        let square = dot(along, along);
        let [one, other] = facets.map(|facet| {
            let corners = &self.corners[facet];
            let sum = |i: usize| corners.iter().map(|corner| corner[i]).sum::<f64>();
            let from = minus(std::array::from_fn(|i| sum(i) / corners.len() as f64), a);
            let share = if square > 0.0 { dot(from, along) / square } else { 0.0 };
            std::array::from_fn(|i| from[i] - share * along[i])
        });
        dot(one, other) < -SMOOTH * (dot(one, one) * dot(other, other)).sqrt()
    }

    /// Returns the facets of a node in groups that meet at edges without angles.
    pub fn groups(&self, node: usize) -> Vec<Vec<usize>> {
        let mut left: Vec<usize> = self.around[node].iter().map(|(facet, _)| *facet).collect();
        let mut groups = Vec::new();
        while let Some(first) = left.pop() {
            let (mut group, mut at) = (vec![first], 0);
            while let Some(&facet) = group.get(at) {
                at += 1;
                let (joined, rest): (Vec<usize>, Vec<usize>) =
                    left.into_iter().partition(|other| self.neighbours[facet].contains(other));
                group.extend(joined);
                left = rest;
            }
            group.sort_unstable();
            groups.push(group);
        }
        groups
    }
}

/// Returns the corners of a facet, given along its axes, in their order around it.
fn around(corners: &[usize]) -> Vec<usize> {
    match *corners {
        [a, b, c, d] => vec![a, b, d, c],
        _ => corners.to_vec(),
    }
}

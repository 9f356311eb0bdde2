//! Facets shared by cells: at most two cells, on opposite sides, and no cell twice. Edges of surfaces in space have any number of cells.

use super::CheckError;
use super::boundary::BoundaryFacets;
use super::geometry::centroid;
use super::half_facets::{FacetVisitor, HalfFacet, visit_facets};
use crate::Mesh;
use crate::interrupt::Interrupt;

/// Faults in a range of facets; of each kind only the one with the smallest cells.
#[derive(Default)]
struct Sharing {
    unshared: Vec<(u32, u8)>,
    duplicate: Option<(u32, u32)>,
    folded: Option<(u32, u32)>,
    /// The cells, by ascending number, and which facet of the first it is.
    crowded: Option<(Vec<u32>, u8)>,
}

impl FacetVisitor for Sharing {
    fn visit<const K: usize>(&mut self, mesh: &Mesh, group: &[HalfFacet<K>]) {
        match group {
            [one] => self.unshared.push((one.cell, one.local())),
            [one, other] if one.is_odd() != other.is_odd() && !mesh.is_surface => {}
            _ => self.record_fault(mesh, group),
        }
    }
}

impl Sharing {
    fn record_fault<const K: usize>(&mut self, mesh: &Mesh, group: &[HalfFacet<K>]) {
        let mut cells: Vec<u32> = group.iter().map(|facet| facet.cell).collect();
        let (first, second) = (cells[0], cells[1]);
        cells.sort_by_cached_key(|&cell| (sorted_nodes(mesh, cell), cell));
        let same = |pair: &&[u32]| sorted_nodes(mesh, pair[0]) == sorted_nodes(mesh, pair[1]);
        if let Some(pair) = cells.windows(2).filter(same).min() {
            keep_smaller(&mut self.duplicate, (pair[0], pair[1]));
        } else if mesh.is_surface {
            // Sheets may have either side up, and several may meet at an edge.
        } else if group.len() == 2 {
            keep_smaller(&mut self.folded, (first, second));
        } else {
            cells.sort_unstable();
            keep_smaller(&mut self.crowded, (cells, group[0].local()));
        }
    }
}

fn keep_smaller<T: Ord>(kept: &mut Option<T>, found: T) {
    if kept.as_ref().is_none_or(|kept| found < *kept) {
        *kept = Some(found);
    }
}

fn sorted_nodes(mesh: &Mesh, cell: u32) -> Vec<u32> {
    let mut nodes = mesh.cell(cell as usize).to_vec();
    nodes.sort_unstable();
    nodes
}

/// Finds the boundary of a mesh, and wrongly shared facets: at most one finding each of
/// [`CheckError::DuplicateCells`], [`CheckError::SharedFacet`] and [`CheckError::FoldedCells`]. Each names
/// the smallest cells concerned. Folded cells are found only among simplices, whose orientation is known.
///
/// After an interrupt facets and findings are missing.
pub(super) fn boundary(mesh: &Mesh, interrupt: Interrupt<'_>) -> (BoundaryFacets, Vec<CheckError>) {
    let mut total = Sharing::default();
    for part in visit_facets::<Sharing>(mesh, interrupt) {
        total.unshared.extend(part.unshared);
        part.duplicate.into_iter().for_each(|found| keep_smaller(&mut total.duplicate, found));
        part.folded.into_iter().for_each(|found| keep_smaller(&mut total.folded, found));
        part.crowded.into_iter().for_each(|found| keep_smaller(&mut total.crowded, found));
    }
    let at = |cell: u32| centroid(&mesh.points, mesh.cell(cell as usize));
    let duplicate = total.duplicate.map(|(first, second)| CheckError::DuplicateCells {
        first: first as usize,
        second: second as usize,
        at: at(first),
    });
    let crowded = total.crowded.map(|(cells, local)| {
        let of_first = mesh.cell(cells[0] as usize);
        let nodes: Vec<u32> = mesh.kind.facets()[local as usize].iter().map(|&i| of_first[i]).collect();
        CheckError::SharedFacet {
            at: centroid(&mesh.points, &nodes),
            nodes,
            cells: cells.into_iter().map(|cell| cell as usize).collect(),
        }
    });
    let folded = total.folded.filter(|_| mesh.kind.is_simplex()).map(|(first, second)| {
        CheckError::FoldedCells { first: first as usize, second: second as usize, at: at(first) }
    });
    let findings = duplicate.into_iter().chain(crowded).chain(folded).collect();
    (BoundaryFacets::collect(mesh, total.unshared), findings)
}

//! Some cells, or the facets of cells on the boundary, as the cells of a file of their own.

use femtile_device::parallel;

use super::encode::Array;
use super::write::Grid;
use crate::check::{BoundaryFacets, boundary_facets};
use crate::tensor::corner_places;
use crate::{CellKind, Mesh, MeshError};

/// Some cells or facets with the points that they use.
pub(super) struct SelectedCells {
    /// The cell of the mesh that each of them is, or belongs to.
    pub owners: Vec<u32>,
    /// The points that they use, ascending.
    pub points: Vec<u32>,
    /// Points of each, as places in `points`.
    pub cells: Vec<u32>,
    /// Coordinates of the points.
    pub coordinates: Vec<[f64; 3]>,
}

impl SelectedCells {
    /// Takes some cells of a grid.
    pub(super) fn cells(grid: &Grid<'_>, owners: Vec<u32>) -> Self {
        let n = grid.points_per_cell();
        let points_of = |&cell: &u32| &grid.cells[cell as usize * n..][..n];
        let cells = owners.iter().flat_map(points_of).copied().collect();
        Self::new(grid, owners, cells)
    }

    /// Takes the facets of a grid that `boundary` names.
    pub(super) fn surface(grid: &Grid<'_>, boundary: BoundaryFacets) -> Self {
        let places = facet_places(grid.kind, grid.order);
        let n = grid.points_per_cell();
        let points_of = |(&cell, &local): (&u32, &u8)| {
            let cell = &grid.cells[cell as usize * n..];
            places[local as usize].iter().map(move |&place| cell[place])
        };
        let facets = boundary.cells.iter().zip(&boundary.local).flat_map(points_of).collect();
        Self::new(grid, boundary.cells, facets)
    }

    /// Numbers the points that cells or facets use.
    fn new(grid: &Grid<'_>, owners: Vec<u32>, mut cells: Vec<u32>) -> Self {
        let mut points = cells.clone();
        parallel::sort(&mut points);
        points.dedup();
        // Zeros are not touched before they are written, so this costs memory for the points of the part only.
        let mut place_of = vec![0; grid.points.len()];
        points.iter().zip(0..).for_each(|(&point, place)| place_of[point as usize] = place);
        parallel::for_each_mut(&mut cells, parallel::CHEAP, |point| *point = place_of[*point as usize]);
        let coordinates = points.iter().map(|&point| grid.points[point as usize]).collect();
        Self { owners, points, cells, coordinates }
    }
}

/// Places of the points of each facet among those of its cell, in the order of a cell of the facet's kind.
fn facet_places(kind: CellKind, order: Option<usize>) -> Vec<Vec<usize>> {
    let Some(order) = order else { return kind.facets().iter().map(|corners| corners.to_vec()).collect() };
    let corners: Vec<isize> = corner_places(kind, order).map(|place| place as isize).collect();
    let of_facet = |facet: &&[usize]| {
        let origin = corners[facet[0]];
        let step = |to: usize| (corners[to] - origin) / order as isize;
        let (first, second) = (step(facet[1]), facet.get(3).map(|&corner| step(corner)));
        let rows = 0..second.map_or(1, |_| order as isize + 1);
        let row =
            |j| (0..=order as isize).map(move |i| (origin + i * first + j * second.unwrap_or(0)) as usize);
        rows.flat_map(row).collect()
    };
    kind.facets().iter().map(of_facet).collect()
}

/// Finds the boundary of cells of some order by their corners.
///
/// # Errors
/// [`MeshError::Invalid`] if there are no cells.
pub(super) fn boundary_of(grid: &Grid<'_>, order: usize) -> Result<BoundaryFacets, MeshError> {
    let places: Vec<usize> = corner_places(grid.kind, order).collect();
    let cells = grid.cells.chunks_exact(grid.points_per_cell());
    let mut corners: Vec<u32> = cells.flat_map(|cell| places.iter().map(|&place| cell[place])).collect();
    let (mut number_of, mut n_corners) = (vec![0; grid.points.len()], 0);
    for corner in &mut corners {
        let number = &mut number_of[*corner as usize];
        if *number == 0 {
            n_corners += 1;
            *number = n_corners;
        }
        *corner = *number - 1;
    }
    Ok(boundary_facets(&Mesh::new(vec![[0.0; 3]; n_corners as usize], grid.kind, corners)?))
}

impl Array<'_> {
    /// Returns the values of some of `n` entries.
    pub(super) fn picked(&self, n: usize, entries: &[u32]) -> Array<'static> {
        let width = self.n_bytes / n.max(1);
        let mut bytes = vec![0; entries.len() * width];
        if width > 0 {
            let of_entries = bytes.chunks_exact_mut(width).zip(entries);
            of_entries.for_each(|(to, &entry)| (self.bytes)(entry as usize * width, to));
        }
        Array {
            name: self.name.clone(),
            kind: self.kind,
            n_components: self.n_components,
            n_bytes: bytes.len(),
            is_late: self.is_late,
            bytes: Box::new(move |first, to| to.copy_from_slice(&bytes[first..first + to.len()])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_facets_of_any_order_lie_on_the_plane_of_their_corners() {
        for kind in [CellKind::Quadrilateral, CellKind::Hexahedron] {
            for order in [1, 2, 3, 5] {
                let row = order + 1;
                let lattice = |place: usize| [place % row, place / row % row, place / row / row];
                let corners: Vec<usize> = corner_places(kind, order).collect();
                for (places, facet) in facet_places(kind, Some(order)).iter().zip(kind.facets()) {
                    assert_eq!(places.len(), row.pow(kind.dimension() as u32 - 1));
                    let expected: Vec<usize> = facet.iter().map(|&corner| corners[corner]).collect();
                    let [first, last] = [places[0], places[places.len() - 1]];
                    assert!(first == expected[0] && expected.contains(&last), "{kind} {order}");
                    let is_on_plane = |axis: usize, at: usize| {
                        let mut on = expected.iter().chain(places).map(|&place| lattice(place)[axis]);
                        on.all(|x| x == at)
                    };
                    let planes = (0..kind.dimension()).flat_map(|axis| [(axis, 0), (axis, order)]);
                    assert_eq!(
                        planes.filter(|&(axis, at)| is_on_plane(axis, at)).count(),
                        1,
                        "{kind} {order}"
                    );
                    let mut distinct = places.clone();
                    distinct.sort_unstable();
                    distinct.dedup();
                    assert_eq!(distinct.len(), places.len());
                }
            }
        }
    }
}

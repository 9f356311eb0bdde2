//! Some cells, or the facets of cells on the boundary, as the cells of a file of their own.

use femtile_device::parallel;

use super::encode::Array;
use super::write::Grid;
use crate::check::{BoundaryFacets, boundary_facets};
use crate::io::lagrange::{Lattice, Numbering, place};
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
    let numbering = Numbering::vtk(kind, order, false);
    let Some(facet_kind) = kind.facet_kind() else { return Vec::new() };
    let of_facet = Numbering::vtk(facet_kind, order, false);
    let mut lattice = of_facet.points().to_vec();
    lattice.sort_by_key(|&[i, j, k]| [k, j, i]);
    let places = |facet: &&[usize]| {
        let [origin, first, second] = [Some(&facet[0]), facet.get(1), facet[2..].last()]
            .map(|corner| corner.map_or([0; 3], |&corner| numbering.points()[corner]));
        let point = |&[i, j, _]: &Lattice| {
            let along = |axis: usize| {
                // Steps are 0 or ±1; a segment has no second edge.
                let step = |to: Lattice| (to[axis] as isize - origin[axis] as isize) / order as isize;
                let second = if facet.len() > 2 { j as isize * step(second) } else { 0 };
                (origin[axis] as isize + i as isize * step(first) + second) as usize
            };
            place(kind, order, std::array::from_fn(along))
        };
        lattice.iter().map(point).collect()
    };
    kind.facets().iter().map(places).collect()
}

/// Finds the boundary of cells of some order by their corners.
///
/// # Errors
/// [`MeshError::Invalid`] if there are no cells.
pub(super) fn boundary_of(grid: &Grid<'_>) -> Result<BoundaryFacets, MeshError> {
    let places = &grid.places[..grid.kind.n_nodes()];
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
    use crate::io::lagrange::n_points;

    #[test]
    fn points_of_facets_of_any_order_lie_on_the_plane_of_their_corners() {
        let kinds =
            [CellKind::Triangle, CellKind::Tetrahedron, CellKind::Quadrilateral, CellKind::Hexahedron];
        for kind in kinds {
            for order in [1, 2, 3, 5] {
                let mut lattice = Numbering::vtk(kind, order, false).points().to_vec();
                let corners: Vec<usize> =
                    lattice[..kind.n_nodes()].iter().map(|&at| place(kind, order, at)).collect();
                lattice.sort_by_key(|&[i, j, k]| [k, j, i]);
                for (places, facet) in facet_places(kind, Some(order)).iter().zip(kind.facets()) {
                    assert_eq!(places.len(), n_points(kind.facet_kind().unwrap(), order));
                    let expected: Vec<usize> = facet.iter().map(|&corner| corners[corner]).collect();
                    let [first, last] = [places[0], places[places.len() - 1]];
                    assert!(first == expected[0] && expected.contains(&last), "{kind} {order}");
                    // The last plane is the inclined one of simplices.
                    let on_planes = |place: usize| {
                        let [i, j, k] = lattice[place];
                        [i, j, k, i + j + k].map(|x| [x == 0, x == order])
                    };
                    let d = kind.dimension();
                    let is_side = |axis: usize, end: usize| match kind.is_simplex() {
                        true => (axis < d && end == 0) || (axis == 3 && end == 1),
                        false => axis < d,
                    };
                    let sides = (0..4).flat_map(|axis| [(axis, 0), (axis, 1)]);
                    let holds = |&(axis, end): &(usize, usize)| {
                        let mut on = expected.iter().chain(places).map(|&place| on_planes(place)[axis][end]);
                        is_side(axis, end) && on.all(|is_on| is_on)
                    };
                    assert_eq!(sides.filter(holds).count(), 1, "{kind} {order}");
                    let mut distinct = places.clone();
                    distinct.sort_unstable();
                    distinct.dedup();
                    assert_eq!(distinct.len(), places.len());
                }
            }
        }
    }
}

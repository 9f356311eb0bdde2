//! Continuous piecewise polynomials of any degree on quadrilaterals and hexahedra.
//!
//! Cells are ordered along a Morton curve, in groups of some thousand unknowns. Vertices, edges, faces and
//! interiors are numbered in the order of the groups; within a group, those that no other group has come
//! first. The unknowns that are numbered by one group are consecutive, so groups write in parallel.
//!
//! If consistent axes exist (`align`), 27 numbers describe the unknowns of a cell. Other cells, such as those of a
//! Möbius ring, have the full list. Axes may make a cell left-handed, so only |det J| is used. More:
//! `docs/developers/high-order.md`.

mod align;
mod entities;
mod numbering;
mod order;
mod orientation;
#[cfg(test)]
pub(crate) mod test_meshes;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use femtile_device::parallel;
use femtile_element::tensor::Lagrange;
use femtile_mesh::{CellKind, Mesh};

use crate::SpaceError;
use crate::shared_entities::SharedEntities;
pub use numbering::Group;
pub use order::along_curve;
pub use orientation::Orientation;

/// The space of continuous functions that are polynomials of degree p in each coordinate of the reference cell.
///
/// Cells are visited in groups along a space-filling curve (`order`); degrees of freedom are numbered in the order of
/// visits. Those of a vertex, edge, face or interior are consecutive, in an order that all its cells share wherever
/// axes can be aligned; so $3^d$ numbers per cell determine its degrees of freedom. Nodes are Gauss–Lobatto points.
///
/// # Source
/// `[kronbichler2022]`, sections 2.2 and 5.3.
#[derive(Debug, Clone)]
pub struct TensorSpace<'a> {
    mesh: &'a Mesh,
    degree: usize,
    n_dofs: usize,
    order: Vec<u32>,
    orientations: Vec<Orientation>,
    /// Nodes at the corners: `[n_cells][2^d]`, by bits.
    corners: Vec<u32>,
    /// First degree of freedom of each entity: `[n_cells][3^d]`.
    firsts: Vec<u32>,
    /// The entity of each node of a cell, and the place in it.
    places: Vec<[u32; 2]>,
    /// All degrees of freedom of irregular cells, whose order of an entity differs from that of its first cell.
    irregular: BTreeMap<u32, Vec<u32>>,
    groups: Vec<Group>,
}

/// The highest degree of a space.
pub const MAX_DEGREE: usize = 10;

/// VTK's number of each corner of a cell, by its bits.
const VTK_CORNERS: [usize; 8] = [0, 1, 3, 2, 4, 5, 7, 6];

impl<'a> TensorSpace<'a> {
    /// Creates the space of a degree on a mesh.
    ///
    /// # Cost
    /// Sorts the edges and faces of all cells, 16 bytes each. Degree 1 with cells numbered row by row needs
    /// no sort.
    /// # Errors
    /// [`SpaceError::NoTensorCells`] for triangles and tetrahedra, [`SpaceError::Surface`] for a surface in space,
    /// [`SpaceError::Degree`] for a degree that is not between 1 and [`MAX_DEGREE`], [`SpaceError::TooManyDofs`] if they cannot be
    /// numbered.
    pub fn new(mesh: &'a Mesh, degree: usize) -> Result<Self, SpaceError> {
        match mesh.is_surface {
            true if !mesh.kind.is_simplex() => Err(SpaceError::Surface),
            _ => Self::on_any_mesh(mesh, degree),
        }
    }

    /// As [`Self::new`], also on a surface in space, whose cells are evaluated one at a time.
    pub(crate) fn on_any_mesh(mesh: &'a Mesh, degree: usize) -> Result<Self, SpaceError> {
        if !matches!(mesh.kind, CellKind::Quadrilateral | CellKind::Hexahedron) {
            return Err(SpaceError::NoTensorCells { kind: mesh.kind });
        }
        if !(1..=MAX_DEGREE).contains(&degree) {
            return Err(SpaceError::Degree { degree, kind: mesh.kind, highest: MAX_DEGREE });
        }
        let d = mesh.dimension();
        let order = order::along_curve(mesh);
        let mut corners = vec![0; order.len() << d];
        parallel::for_chunks_mut(&mut corners, 1 << d, |begin, corners| {
            let nodes = mesh.cell(order[begin >> d] as usize);
            corners.iter_mut().zip(VTK_CORNERS).for_each(|(to, corner)| *to = nodes[corner]);
        });
        let mut orientations = vec![Orientation::IDENTITY; order.len()];
        // Of degree one nothing but the axes depends on edges and faces, and axes that agree stay as they are.
        let is_plain = degree == 1 && are_ascending(&corners, d);
        let mut shared = if is_plain { Vec::new() } else { edges_and_faces(&corners, d) };
        if !shared.iter().all(|shared| shared.all_agree(&corners)) {
            orientations = align::align(&corners, &shared[0], d);
            turn(&mut corners, &orientations, d);
            shared = edges_and_faces(&corners, d);
        }
        let (mut firsts, n_entities) = entity_numbers(mesh.n_nodes(), &corners, &shared, d);
        too_many(&shared, &order, degree, d, mesh.n_nodes())?;
        let groups = numbering::number(&mut firsts, n_entities, degree, d);
        let n_dofs = groups.last().map_or(0, |group| group.dofs.end);
        let mut space = Self {
            mesh,
            degree,
            n_dofs,
            order,
            orientations,
            corners,
            firsts,
            places: places(degree, d),
            irregular: BTreeMap::new(),
            groups,
        };
        space.irregular = space.find_irregular(&shared);
        Ok(space)
    }

    /// Creates the space of a lower degree on the same cells, which has them in the same order and axes.
    ///
    /// # Cost
    /// Numbers entities that are known already: a small part of [`TensorSpace::new`].
    /// # Errors
    /// As [`TensorSpace::new`], and [`SpaceError::Degree`] for a higher degree.
    pub fn of_degree(&self, degree: usize) -> Result<Self, SpaceError> {
        if degree > self.degree {
            return Err(SpaceError::Degree { degree, kind: self.mesh.kind, highest: self.degree });
        }
        if degree == self.degree {
            return Ok(self.clone());
        }
        if degree == 0 || (degree > 2 && self.n_irregular() > 0) {
            return Self::on_any_mesh(self.mesh, degree);
        }
        let d = self.dimension();
        // Of degree two and higher, every entity has a first degree of freedom, which stands for it.
        let mut firsts = self.firsts.clone();
        let groups = numbering::number(&mut firsts, self.n_dofs, degree, d);
        Ok(Self {
            mesh: self.mesh,
            degree,
            n_dofs: groups.last().map_or(0, |group| group.dofs.end),
            order: self.order.clone(),
            orientations: self.orientations.clone(),
            corners: self.corners.clone(),
            firsts,
            places: places(degree, d),
            irregular: BTreeMap::new(),
            groups,
        })
    }

    /// Returns the mesh.
    pub fn mesh(&self) -> &'a Mesh {
        self.mesh
    }

    /// Returns the degree of the polynomials in each coordinate.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns the number of degrees of freedom.
    pub fn n_dofs(&self) -> usize {
        self.n_dofs
    }

    /// Returns the number of cells.
    pub fn n_cells(&self) -> usize {
        self.order.len()
    }

    /// Returns the dimension of the cells: 2 or 3.
    pub fn dimension(&self) -> usize {
        self.mesh.dimension()
    }

    /// Returns the number of degrees of freedom of a cell.
    pub fn dofs_per_cell(&self) -> usize {
        (self.degree + 1).pow(self.dimension() as u32)
    }

    /// Returns the cell of the mesh at each position in the order of visits.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Returns the axes of the cell at a position.
    pub fn orientation(&self, position: usize) -> Orientation {
        self.orientations[position]
    }

    /// Returns the sign of the Jacobian of a sound cell at a position: −1 if its axes are mirrored, but on a surface.
    pub(crate) fn sign(&self, position: usize) -> f64 {
        if self.orientation(position).is_mirrored() && !self.mesh.is_surface { -1.0 } else { 1.0 }
    }

    /// Returns the corner nodes of the cell at a position, the first axis fastest.
    pub fn corners(&self, position: usize) -> &[u32] {
        let n = 1 << self.dimension();
        &self.corners[position * n..(position + 1) * n]
    }

    /// Returns the corner nodes of all cells: `[n_cells][2^d]`.
    pub(crate) fn all_corners(&self) -> &[u32] {
        &self.corners
    }

    /// Returns the first degree of freedom of each entity of the cell at a position, any number for an entity that has none:
    /// `[3^d]`.
    pub fn firsts(&self, position: usize) -> &[u32] {
        let n = 3usize.pow(self.dimension() as u32);
        &self.firsts[position * n..(position + 1) * n]
    }

    /// Returns all degrees of freedom of an irregular cell: one with an edge or face oriented unlike in its first cell.
    pub fn irregular(&self, position: usize) -> Option<&[u32]> {
        self.irregular.get(&(position as u32)).map(Vec::as_slice)
    }

    /// Counts the cells that [`Self::irregular`] lists.
    pub fn n_irregular(&self) -> usize {
        self.irregular.len()
    }

    /// Returns the groups of cells that are visited together.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns, for each degree of freedom, whether it is in a list.
    pub fn marks(&self, dofs: &[u32]) -> Vec<bool> {
        let mut is_marked = vec![false; self.n_dofs];
        dofs.iter().for_each(|&dof| is_marked[dof as usize] = true);
        is_marked
    }

    /// Returns the Lagrange polynomials along an axis.
    pub fn shapes(&self) -> Lagrange {
        Lagrange::gauss_lobatto(self.degree)
    }

    /// Writes the degrees of freedom of the cell at a position, the first axis fastest.
    ///
    /// # Panics
    /// Unless `dofs` has [`Self::dofs_per_cell`] entries.
    pub fn cell_dofs(&self, position: usize, dofs: &mut [u32]) {
        match self.irregular(position) {
            Some(list) => dofs.copy_from_slice(list),
            None => self.regular_dofs(position, dofs),
        }
    }

    /// Writes the degrees of freedom of a regular cell.
    fn regular_dofs(&self, position: usize, dofs: &mut [u32]) {
        assert_eq!(dofs.len(), self.places.len(), "degrees of freedom of a cell");
        let firsts = self.firsts(position);
        for (dof, [entity, place]) in dofs.iter_mut().zip(&self.places) {
            *dof = firsts[*entity as usize] + place;
        }
    }

    /// Returns the local degrees of freedom, the first axis fastest, on entities of the cell whose corners are all
    /// marked nodes of the mesh.
    pub fn spanned_by(&self, position: usize, is_marked: &[bool]) -> Vec<usize> {
        let corners = self.corners(position);
        let is_at = |corner: usize| is_marked[corners[corner] as usize];
        if !(0..corners.len()).any(is_at) {
            return Vec::new();
        }
        let d = self.dimension();
        let has_all = |entity: usize| entities::corners(entity, d).into_iter().all(is_at);
        let is_spanned: Vec<bool> = (0..3usize.pow(d as u32)).map(has_all).collect();
        (0..self.places.len()).filter(|&at| is_spanned[self.places[at][0] as usize]).collect()
    }

    /// Returns the degrees of freedom of cells whose order of an edge or a face differs from that of its first cell.
    fn find_irregular(&self, shared: &[SharedEntities]) -> BTreeMap<u32, Vec<u32>> {
        let mut irregular = BTreeMap::new();
        if self.degree < 3 {
            // A single unknown per edge or face has only one order.
            return irregular;
        }
        for (shared, extent) in shared.iter().zip(1..) {
            let locals = entities::of_dimension(extent, self.dimension());
            let agree = parallel::map(shared.numbers.len(), 1, |place| shared.agrees(&self.corners, place));
            for place in (0..agree.len()).filter(|&place| !agree[place]) {
                let (position, local) = (place / locals.len(), locals[place % locals.len()]);
                let dofs = irregular.entry(position as u32).or_insert_with(|| {
                    let mut dofs = vec![0; self.dofs_per_cell()];
                    self.regular_dofs(position, &mut dofs);
                    dofs
                });
                let own: Vec<u32> = shared.nodes(&self.corners, place).collect();
                let first: Vec<u32> = shared.nodes(&self.corners, shared.leader(place)).collect();
                self.reorder(dofs, local, self.firsts(position)[local], &own, &first);
            }
        }
        irregular
    }

    /// Writes the degrees of freedom of one entity, with corners `own` in the cell and `first` in the numbering.
    fn reorder(&self, dofs: &mut [u32], local: usize, begin: u32, own: &[u32], first: &[u32]) {
        let (n, m) = (self.degree + 1, self.degree - 1);
        // The axes of the numbering in terms of the cell: the origin, and the end of the first axis.
        let at = |node: u32| own.iter().position(|&other| other == node).unwrap_or(0);
        let (origin, along) = (at(first[0]), at(first[1]));
        let is_swapped = origin ^ along == 2;
        let strides: Vec<usize> =
            (0..3).filter(|&a| entities::digits(local)[a] == 1).map(|a| n.pow(a as u32)).collect();
        let base: usize =
            (0..3).map(|a| entities::digits(local)[a] / 2 * self.degree * n.pow(a as u32)).sum();
        let n_second = if strides.len() == 2 { m } else { 1 };
        for second in 0..n_second {
            for one in 0..m {
                let own_index = [one, second];
                let place: usize =
                    strides.iter().zip(own_index).map(|(stride, index)| stride * (index + 1)).sum();
                let turned: [usize; 2] = std::array::from_fn(|a| {
                    if origin >> a & 1 == 1 { m - 1 - own_index[a] } else { own_index[a] }
                });
                let [u, v] = if is_swapped { [turned[1], turned[0]] } else { turned };
                let v = if strides.len() == 2 { v } else { 0 };
                dofs[base + place] = begin + (u + m * v) as u32;
            }
        }
    }
}

/// Returns the entity of each node of a cell, and the place in it.
fn places(degree: usize, d: usize) -> Vec<[u32; 2]> {
    let n = degree + 1;
    let place = |at: usize| {
        let (mut entity, mut inside, mut stride) = (0, 0, 1);
        for axis in 0..d {
            let index = at / n.pow(axis as u32) % n;
            let digit = if index == 0 { 0 } else { 1 + index / degree };
            entity += digit * 3usize.pow(axis as u32);
            if digit == 1 {
                inside += (index - 1) * stride;
                stride *= degree - 1;
            }
        }
        [entity as u32, inside as u32]
    };
    (0..n.pow(d as u32)).map(place).collect()
}

/// Reorders corners to the axes of their cells.
fn turn(corners: &mut [u32], orientations: &[Orientation], d: usize) {
    for (cell, orientation) in corners.chunks_exact_mut(1 << d).zip(orientations) {
        let given: [u32; 8] = std::array::from_fn(|corner| cell.get(corner).copied().unwrap_or(0));
        for (corner, node) in cell.iter_mut().enumerate() {
            *node = given[orientation.given([corner & 1, corner >> 1 & 1, corner >> 2], 2)];
        }
    }
}

/// Returns the edges of all cells, and the faces of cubes.
fn edges_and_faces(corners: &[u32], d: usize) -> Vec<SharedEntities> {
    let of_dimension = |extent: usize| {
        let sides = entities::of_dimension(extent, d).into_iter().map(|side| entities::corners(side, d));
        SharedEntities::number(corners, 1 << d, sides.collect())
    };
    (1..d).map(of_dimension).collect()
}

/// Returns whether the corners of every edge and face have ascending numbers, as in boxes that are numbered row by row: then
/// all cells agree about each of them.
fn are_ascending(corners: &[u32], d: usize) -> bool {
    let sides: Vec<Vec<usize>> =
        entities::of_dimension(d - 1, d).into_iter().map(|side| entities::corners(side, d)).collect();
    let (n_corners, n_cells) = (1 << d, corners.len() >> d);
    parallel::all(n_cells, 256, |cell| {
        let cell = &corners[cell * n_corners..][..n_corners];
        sides.iter().all(|side| side.is_sorted_by_key(|&corner| cell[corner]))
    })
}

/// Numbers all entities, `[n_cells][3^d]`: vertices as nodes of the mesh, then edges, faces, cells; also
/// returns their count. Without numbers for edges and faces, every other entity has the number of its lowest
/// vertex, which comes before it in a cell.
fn entity_numbers(n_nodes: usize, corners: &[u32], shared: &[SharedEntities], d: usize) -> (Vec<u32>, usize) {
    let (per_cell, n_corners) = (3usize.pow(d as u32), 1 << d);
    let lowest: Vec<usize> = (0..per_cell).map(|local| entities::corners(local, d)[0]).collect();
    let inside = per_cell / 2;
    let locals: Vec<Vec<usize>> = (1..d).map(|extent| entities::of_dimension(extent, d)).collect();
    let n_shared: usize = shared.iter().map(SharedEntities::len).sum();
    let n_cells = corners.len() / n_corners;
    let mut numbers = vec![0; n_cells * per_cell];
    parallel::for_chunks_mut(&mut numbers, per_cell, |begin, numbers| {
        let cell = begin / per_cell;
        let corners = &corners[cell * n_corners..][..n_corners];
        numbers.iter_mut().zip(&lowest).for_each(|(number, &corner)| *number = corners[corner]);
        let mut before = n_nodes;
        for (shared, locals) in shared.iter().zip(&locals) {
            for (i, &local) in locals.iter().enumerate() {
                numbers[local] = before as u32 + shared.numbers[cell * locals.len() + i];
            }
            before += shared.len();
        }
        if !shared.is_empty() {
            numbers[inside] = (before + cell) as u32;
        }
    });
    let n_interiors = if shared.is_empty() { 0 } else { n_cells };
    (numbers, n_nodes + n_shared + n_interiors)
}

/// Fails if there are too many degrees of freedom for 32 bits.
fn too_many(
    shared: &[SharedEntities],
    order: &[u32],
    degree: usize,
    d: usize,
    n_nodes: usize,
) -> Result<(), SpaceError> {
    let inner = |extent: usize| (degree as f64 - 1.0).powi(extent as i32);
    let of_shared =
        shared.iter().zip(1..).map(|(shared, extent)| shared.len() as f64 * inner(extent)).sum::<f64>();
    let n_dofs = n_nodes as f64 + of_shared + order.len() as f64 * inner(d);
    match n_dofs < f64::from(u32::MAX) {
        true => Ok(()),
        false => Err(SpaceError::TooManyDofs { n_dofs }),
    }
}

//! Patches of cells around vertices, and the polynomials fitted there.

use super::IsInterrupted;
use super::fit::Polynomial;
use super::limit::CellVectors;
use super::regions::Regions;
use crate::FemError;
use femtile_device::parallel;

/// Most rings of cells of a patch.
const MAX_RINGS: usize = 3;

/// The finite elements of the recovered function.
pub(crate) trait Elements: Sync {
    /// Returns the number of cells.
    fn n_cells(&self) -> usize;
    /// Returns the number of vertices.
    fn n_vertices(&self) -> usize;
    /// Returns the vertices of a cell.
    fn corners(&self, cell: u32) -> &[u32];
    /// Returns the number of a cell in the mesh.
    fn cell_of_mesh(&self, cell: u32) -> u32;
    /// Adds the degrees of freedom of a cell whose values are fitted.
    fn add_samples(&self, cell: u32, samples: &mut Vec<u32>);
    /// Adds the degrees of freedom of a cell for which the polynomial of one of its vertices counts.
    fn add_weighted(&self, cell: u32, vertex: u32, dofs: &mut Vec<u32>);
    /// Returns the gradient of the function in a cell.
    fn own_gradient(&self, cell: u32) -> CellVectors;
    /// Returns the point of a vertex.
    fn vertex_point(&self, vertex: u32) -> [f64; 3];
    /// Returns the node of a degree of freedom.
    fn point(&self, dof: u32) -> [f64; 3];
    /// Returns the dimension of the cells.
    fn dimension(&self) -> usize;
    /// Returns the degree of the elements.
    fn degree(&self) -> usize;
}

/// The cells around each vertex, ascending.
#[derive(Debug)]
pub(crate) struct Incidence {
    starts: Vec<usize>,
    cells: Vec<u32>,
}

impl Incidence {
    /// Lists the cells of all vertices.
    pub fn new(elements: &impl Elements) -> Self {
        let mut starts = vec![0; elements.n_vertices() + 2];
        let cells = || 0..elements.n_cells() as u32;
        cells().flat_map(|cell| elements.corners(cell)).for_each(|&vertex| starts[vertex as usize + 2] += 1);
        (2..starts.len()).for_each(|at| starts[at] += starts[at - 1]);
        let mut found = vec![0; starts[starts.len() - 1]];
        for cell in cells() {
            for &vertex in elements.corners(cell) {
                // Filling moves each start to its end, which is the next one's start.
                let next = &mut starts[vertex as usize + 1];
                found[*next] = cell;
                *next += 1;
            }
        }
        Self { starts, cells: found }
    }

    /// Returns the cells around a vertex.
    pub fn around(&self, vertex: u32) -> &[u32] {
        &self.cells[self.starts[vertex as usize]..self.starts[vertex as usize + 1]]
    }
}

/// A value per vertex and region around it.
#[derive(Debug)]
pub(crate) struct ByRegion<R> {
    starts: Vec<usize>,
    regions: Vec<u32>,
    values: Vec<R>,
}

impl<R: Send> ByRegion<R> {
    /// Evaluates `found` around each vertex in each of its regions, with the polynomial fitted to `u` there.
    ///
    /// The polynomial has the highest degree, and uses the fewest cells, such that it is well determined and
    /// its gradient is at most half as large again as that of the cells around. If there is none, its
    /// gradient is the mean of the cells.
    ///
    /// # Source
    /// `[zhang2005]`, `[naga2005]`: polynomial-preserving recovery, with patches that grow until they determine the
    /// polynomial.
    ///
    /// # Errors
    /// [`FemError::Interrupted`].
    pub fn new<E: Elements>(
        elements: &E,
        incidence: &Incidence,
        regions: &Regions,
        u: &[f64],
        is_interrupted: IsInterrupted<'_>,
        found: impl Fn(u32, Polynomial) -> R + Sync,
    ) -> Result<Self, FemError> {
        let (mut starts, mut pairs, mut own) = (vec![0], Vec::new(), Vec::new());
        for vertex in 0..elements.n_vertices() as u32 {
            own.clear();
            own.extend(incidence.around(vertex).iter().map(|&cell| regions.of(elements.cell_of_mesh(cell))));
            own.sort_unstable();
            own.dedup();
            pairs.extend(own.iter().map(|&region| (vertex, region)));
            starts.push(pairs.len());
        }
        let patch = Patch { elements, incidence, regions, u };
        let of_pair = |(vertex, region): (u32, u32)| match is_interrupted() {
            true => Err(FemError::Interrupted),
            false => Ok(found(vertex, patch.polynomial(vertex, region))),
        };
        let values = parallel::try_map_with(pairs.len(), || (), |(), i| of_pair(pairs[i]))?;
        Ok(Self { starts, regions: pairs.into_iter().map(|(_, region)| region).collect(), values })
    }

    /// Returns the value of a vertex in a region; none if no cell of the region has the vertex.
    pub fn get(&self, vertex: u32, region: u32) -> Option<&R> {
        let own = self.starts[vertex as usize]..self.starts[vertex as usize + 1];
        let at = self.regions[own.clone()].iter().position(|&other| other == region)?;
        self.values[own].get(at)
    }

    /// Returns the share of the values that are so, from 0 to 1.
    pub fn share(&self, is_so: impl Fn(&R) -> bool) -> f64 {
        self.values.iter().filter(|value| is_so(value)).count() as f64 / self.values.len().max(1) as f64
    }
}

struct Patch<'a, E> {
    elements: &'a E,
    incidence: &'a Incidence,
    regions: &'a Regions,
    u: &'a [f64],
}

impl<E: Elements> Patch<'_, E> {
    /// Fits the polynomial of a region around a vertex, as [`ByRegion::new`] describes.
    fn polynomial(&self, vertex: u32, region: u32) -> Polynomial {
        let elements = self.elements;
        let cells: Vec<u32> = self.around(vertex, region).collect();
        let own: CellVectors = cells.iter().map(|&cell| elements.own_gradient(cell)).sum();
        let weighted = distinct(&cells, |cell, dofs| elements.add_weighted(cell, vertex, dofs));
        let places: Vec<[f64; 3]> = weighted.into_iter().map(|dof| elements.point(dof)).collect();
        let is_allowed = |q: &Polynomial| places.iter().all(|&place| own.allows(q.gradient(place)));
        let mean = || Polynomial::linear(elements.dimension(), own.mean());
        self.polynomials(vertex, region, cells).find(is_allowed).unwrap_or_else(mean)
    }

    /// Returns the cells of a region around a vertex.
    fn around(&self, vertex: u32, region: u32) -> impl Iterator<Item = u32> {
        let is_inside = move |cell: &u32| self.regions.of(self.elements.cell_of_mesh(*cell)) == region;
        self.incidence.around(vertex).iter().copied().filter(is_inside)
    }

    /// Fits polynomials of degrees from that of the elements plus one down to one to the cells of a region around a vertex, each
    /// to one ring of cells and more.
    fn polynomials(&self, vertex: u32, region: u32, mut cells: Vec<u32>) -> impl Iterator<Item = Polynomial> {
        let mut rings = vec![self.samples(&cells)];
        let degrees = (1..=self.elements.degree() + 1).rev();
        degrees.flat_map(|degree| (0..MAX_RINGS).map(move |ring| (degree, ring))).filter_map(
            move |(degree, ring)| {
                if rings.len() <= ring {
                    let vertices = cells.iter().flat_map(|&cell| self.elements.corners(cell));
                    let mut wider: Vec<u32> =
                        vertices.flat_map(|&vertex| self.around(vertex, region)).collect();
                    wider.sort_unstable();
                    wider.dedup();
                    rings.push(self.samples(&wider));
                    cells = wider;
                }
                let (points, values) = &rings[ring];
                let place = self.elements.vertex_point(vertex);
                Polynomial::fit((self.elements.dimension(), degree), points, values, place)
            },
        )
    }

    /// Returns the nodes of cells, each once, and the values there.
    fn samples(&self, cells: &[u32]) -> (Vec<[f64; 3]>, Vec<f64>) {
        let dofs = distinct(cells, |cell, dofs| self.elements.add_samples(cell, dofs));
        dofs.into_iter().map(|dof| (self.elements.point(dof), self.u[dof as usize])).unzip()
    }
}

/// Collects degrees of freedom of cells, each once.
fn distinct(cells: &[u32], add: impl Fn(u32, &mut Vec<u32>)) -> Vec<u32> {
    let mut dofs = Vec::new();
    cells.iter().for_each(|&cell| add(cell, &mut dofs));
    dofs.sort_unstable();
    dofs.dedup();
    dofs
}

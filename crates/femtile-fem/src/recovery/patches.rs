//! Patches of cells around vertices, and the polynomials fitted there.

use super::IsInterrupted;
use super::elements::Elements;
use super::fit::Polynomial;
use super::limit::CellVectors;
use super::regions::Regions;
use crate::FemError;
use femtile_device::parallel;

/// Most rings of cells of a patch.
const MAX_RINGS: usize = 3;

/// The cells around each vertex, ascending.
#[derive(Debug)]
pub(super) struct Incidence {
    starts: Vec<usize>,
    cells: Vec<u32>,
}

impl Incidence {
    /// Lists the cells of all vertices.
    pub fn new(elements: &Elements<'_>) -> Self {
        let space = &elements.space;
        let mut starts = vec![0; space.mesh().n_nodes() + 2];
        let cells = || 0..space.n_cells();
        cells().flat_map(|cell| space.corners(cell)).for_each(|&vertex| starts[vertex as usize + 2] += 1);
        (2..starts.len()).for_each(|at| starts[at] += starts[at - 1]);
        let mut found = vec![0; starts[starts.len() - 1]];
        for cell in cells() {
            for &vertex in space.corners(cell) {
                // Filling moves each start to its end, which is the next one's start.
                let next = &mut starts[vertex as usize + 1];
                found[*next] = cell as u32;
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

/// The gradient of the polynomial fitted around a vertex.
#[derive(Debug)]
pub(super) enum Fit {
    /// Of elements of degree 1, whose only node with it is the vertex: the gradient there, and the degree of the polynomial.
    AtVertex([f64; 3], u8),
    /// Of elements of higher degree.
    Polynomial(Box<Polynomial>),
}

impl Fit {
    /// Returns the gradient at a node for which the polynomial counts.
    pub fn gradient(&self, node: [f64; 3]) -> [f64; 3] {
        match self {
            Self::AtVertex(gradient, _) => *gradient,
            Self::Polynomial(polynomial) => polynomial.gradient(node),
        }
    }

    /// Returns the degree of the polynomial.
    pub fn degree(&self) -> usize {
        match self {
            Self::AtVertex(_, degree) => usize::from(*degree),
            Self::Polynomial(polynomial) => polynomial.degree(),
        }
    }
}

/// A fit per vertex and region around it.
#[derive(Debug)]
pub(super) struct ByRegion {
    starts: Vec<usize>,
    regions: Vec<u32>,
    fits: Vec<Fit>,
}

impl ByRegion {
    /// Fits a polynomial around each vertex in each of its regions.
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
    pub fn new(
        elements: &Elements<'_>,
        incidence: &Incidence,
        regions: &Regions,
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Self, FemError> {
        let patch = Patch { elements, incidence, regions };
        let (mut starts, mut pairs, mut own) = (vec![0], Vec::new(), Vec::new());
        for vertex in 0..elements.space.mesh().n_nodes() as u32 {
            own.clear();
            own.extend(incidence.around(vertex).iter().map(|&cell| patch.region(cell)));
            own.sort_unstable();
            own.dedup();
            pairs.extend(own.iter().map(|&region| (vertex, region)));
            starts.push(pairs.len());
        }
        let of_pair = |(vertex, region): (u32, u32)| match is_interrupted() {
            true => Err(FemError::Interrupted),
            false => Ok(patch.fit(vertex, region)),
        };
        let fits = parallel::try_map_with(pairs.len(), || (), |(), i| of_pair(pairs[i]))?;
        Ok(Self { starts, regions: pairs.into_iter().map(|(_, region)| region).collect(), fits })
    }

    /// Returns the fit of a vertex in a region; none if no cell of the region has the vertex.
    pub fn get(&self, vertex: u32, region: u32) -> Option<&Fit> {
        let own = self.starts[vertex as usize]..self.starts[vertex as usize + 1];
        let at = self.regions[own.clone()].iter().position(|&other| other == region)?;
        self.fits[own].get(at)
    }

    /// Returns the share of the fits that are so, from 0 to 1.
    pub fn share(&self, is_so: impl Fn(&Fit) -> bool) -> f64 {
        self.fits.iter().filter(|fit| is_so(fit)).count() as f64 / self.fits.len().max(1) as f64
    }
}

struct Patch<'a> {
    elements: &'a Elements<'a>,
    incidence: &'a Incidence,
    regions: &'a Regions,
}

impl Patch<'_> {
    /// Fits the polynomial of a region around a vertex, as [`ByRegion::new`] describes.
    fn fit(&self, vertex: u32, region: u32) -> Fit {
        let (elements, element) = (self.elements, self.elements.space.element());
        let cells: Vec<u32> = self.around(vertex, region).collect();
        let own: CellVectors = cells.iter().map(|&cell| elements.gradient(cell)).sum();
        let weighted = distinct(&cells, |cell, dofs| elements.add_weighted(cell, vertex, dofs));
        let places: Vec<[f64; 3]> = weighted.into_iter().map(|dof| elements.point(dof)).collect();
        let is_allowed = |q: &Polynomial| places.iter().all(|&place| own.allows(q.gradient(place)));
        let mean = || Polynomial::linear(element.dimension(), own.mean());
        let found = self.polynomials(vertex, region, cells).find(is_allowed).unwrap_or_else(mean);
        match element.degree() {
            1 => Fit::AtVertex(found.gradient(self.vertex_point(vertex)), found.degree() as u8),
            _ => Fit::Polynomial(Box::new(found)),
        }
    }

    fn vertex_point(&self, vertex: u32) -> [f64; 3] {
        self.elements.space.mesh().points[vertex as usize]
    }

    /// Returns the region of a cell.
    fn region(&self, cell: u32) -> u32 {
        self.regions.of(self.elements.space.cell(cell as usize) as u32)
    }

    /// Returns the cells of a region around a vertex.
    fn around(&self, vertex: u32, region: u32) -> impl Iterator<Item = u32> {
        let cells = self.incidence.around(vertex).iter().copied();
        cells.filter(move |&cell| self.region(cell) == region)
    }

    /// Fits polynomials of degrees from that of the elements plus one down to one to the cells of a region around a vertex, each
    /// to one ring of cells and more.
    fn polynomials(&self, vertex: u32, region: u32, mut cells: Vec<u32>) -> impl Iterator<Item = Polynomial> {
        let mut rings = vec![self.samples(&cells)];
        let element = self.elements.space.element();
        let degrees = (1..=element.degree() + 1).rev();
        degrees.flat_map(|degree| (0..MAX_RINGS).map(move |ring| (degree, ring))).filter_map(
            move |(degree, ring)| {
                if rings.len() <= ring {
                    let vertices = cells.iter().flat_map(|&cell| self.elements.space.corners(cell as usize));
                    let mut wider: Vec<u32> =
                        vertices.flat_map(|&vertex| self.around(vertex, region)).collect();
                    wider.sort_unstable();
                    wider.dedup();
                    rings.push(self.samples(&wider));
                    cells = wider;
                }
                let (points, values) = &rings[ring];
                let place = self.vertex_point(vertex);
                Polynomial::fit((element.dimension(), degree), points, values, place)
            },
        )
    }

    /// Returns the nodes of cells, each once, and the values there.
    fn samples(&self, cells: &[u32]) -> (Vec<[f64; 3]>, Vec<f64>) {
        let dofs = distinct(cells, |cell, dofs| self.elements.add_samples(cell, dofs));
        dofs.into_iter().map(|dof| (self.elements.point(dof), self.elements.u[dof as usize])).unzip()
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

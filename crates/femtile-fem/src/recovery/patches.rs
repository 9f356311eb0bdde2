//! Patches of cells around vertices, and the polynomials fitted there.

use super::IsInterrupted;
use super::elements::Elements;
use super::limit::CellVectors;
use super::regions::{Regions, normal};
use super::sheet::Fitted;
use crate::FemError;
use crate::evaluation::dot;
use crate::incidence::Incidence;
use femtile_device::parallel;

/// Most rings of cells of a patch.
const MAX_RINGS: usize = 3;

/// The gradient of the polynomial fitted around a vertex.
#[derive(Debug)]
pub(super) enum Fit {
    /// Of elements of degree 1, whose only node with it is the vertex: the gradient there, and the degree of the polynomial.
    AtVertex([f64; 3], u8),
    /// Of elements of higher degree.
    Polynomial(Box<Fitted>),
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

/// A fit per vertex and region around it, of linear functions 40 bytes.
#[derive(Debug)]
pub(super) struct ByRegion {
    starts: Vec<usize>,
    /// The fits of one vertex after another, each with its region.
    fits: Vec<(u32, Fit)>,
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
        around: &Incidence,
        regions: &Regions,
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Self, FemError> {
        let patch = Patch { elements, around, regions };
        let n_vertices = elements.space.mesh().n_nodes();
        let of_block = |own: &mut Vec<u32>, block: usize| {
            let (mut ends, mut fits) = (Vec::with_capacity(VERTICES), Vec::with_capacity(VERTICES));
            for vertex in block * VERTICES..n_vertices.min((block + 1) * VERTICES) {
                if is_interrupted() {
                    return Err(FemError::Interrupted);
                }
                own.clear();
                own.extend(around.around(vertex as u32).iter().map(|&cell| regions.of(cell)));
                own.sort_unstable();
                own.dedup();
                fits.extend(own.iter().map(|&region| (region, patch.fit(vertex as u32, region))));
                ends.push(fits.len());
            }
            Ok((ends, fits))
        };
        let found = parallel::map_with(n_vertices.div_ceil(VERTICES), 1, Vec::new, of_block);
        let (mut starts, mut fits) = (vec![0], Vec::with_capacity(n_vertices));
        for block in found {
            let (ends, mut own) = block?;
            starts.extend(ends.into_iter().map(|end| fits.len() + end));
            fits.append(&mut own);
        }
        Ok(Self { starts, fits })
    }

    /// Returns the fit of a vertex in a region; none if no cell of the region has the vertex.
    pub fn get(&self, vertex: u32, region: u32) -> Option<&Fit> {
        let own = &self.fits[self.starts[vertex as usize]..self.starts[vertex as usize + 1]];
        own.iter().find(|(other, _)| *other == region).map(|(_, fit)| fit)
    }

    /// Returns the share of the fits that are so, from 0 to 1.
    pub fn share(&self, is_so: impl Fn(&Fit) -> bool) -> f64 {
        self.fits.iter().filter(|(_, fit)| is_so(fit)).count() as f64 / self.fits.len().max(1) as f64
    }
}

/// Vertices per task of a thread.
const VERTICES: usize = 256;

struct Patch<'a> {
    elements: &'a Elements<'a>,
    around: &'a Incidence,
    regions: &'a Regions,
}

impl Patch<'_> {
    /// Fits the polynomial of a region around a vertex, as [`ByRegion::new`] describes.
    fn fit(&self, vertex: u32, region: u32) -> Fit {
        let (elements, element) = (self.elements, self.elements.space.element());
        let cells: Vec<u32> = self.around(vertex, region).collect();
        let own: CellVectors = cells.iter().map(|&cell| elements.gradient(cell)).sum();
        let places: Vec<[f64; 3]> = match element.degree() {
            1 => vec![self.vertex_point(vertex)],
            _ => {
                let weighted = distinct(&cells, |cell, dofs| elements.add_weighted(cell, vertex, dofs));
                weighted.into_iter().map(|dof| elements.point(dof)).collect()
            }
        };
        let normal = self.normal(&cells);
        let is_allowed = |q: &Fitted| places.iter().all(|&place| own.allows(q.gradient(place)));
        let mean = || Fitted::linear(own.mean());
        let found = self.polynomials(vertex, region, (cells, normal)).find(is_allowed).unwrap_or_else(mean);
        match element.degree() {
            1 => Fit::AtVertex(found.gradient(self.vertex_point(vertex)), found.degree() as u8),
            _ => Fit::Polynomial(Box::new(found)),
        }
    }

    /// Returns the mean normal of cells of a surface in space, by their first corners; none elsewhere.
    fn normal(&self, cells: &[u32]) -> Option<[f64; 3]> {
        let space = &self.elements.space;
        let mut sum = space.mesh().is_surface.then_some([0.0; 3])?;
        for &cell in cells {
            let own = normal(space.mesh(), space.corners(cell as usize));
            let sign = if dot(own, sum) < 0.0 { -1.0 } else { 1.0 };
            (0..3).for_each(|a| sum[a] += sign * own[a]);
        }
        Some(sum)
    }

    fn vertex_point(&self, vertex: u32) -> [f64; 3] {
        self.elements.space.mesh().points[vertex as usize]
    }

    /// Returns the cells of a region around a vertex.
    fn around(&self, vertex: u32, region: u32) -> impl Iterator<Item = u32> {
        let cells = self.around.around(vertex).iter().copied();
        cells.filter(move |&cell| self.regions.of(cell) == region)
    }

    /// Fits polynomials of degrees from that of the elements plus one down to one to the cells of a region around a vertex, each
    /// to one ring of cells and more. A surface in space has a normal there.
    fn polynomials(
        &self,
        vertex: u32,
        region: u32,
        (mut cells, normal): (Vec<u32>, Option<[f64; 3]>),
    ) -> impl Iterator<Item = Fitted> {
        let mut rings = vec![self.samples(&cells)];
        let element = self.elements.space.element();
        let degrees = (1..=element.degree() + 1).rev();
        degrees.flat_map(|degree| (0..MAX_RINGS).map(move |ring| (degree, ring))).filter_map(
            move |(degree, ring)| {
                if rings.len() <= ring {
                    let corners = |cell: u32| self.elements.space.corners(cell as usize);
                    let vertices = distinct(&cells, |cell, vertices| vertices.extend(corners(cell)));
                    cells = distinct(&vertices, |vertex, cells| cells.extend(self.around(vertex, region)));
                    rings.push(self.samples(&cells));
                }
                let (points, values) = &rings[ring];
                let place = self.vertex_point(vertex);
                let size = (element.dimension(), degree);
                match normal {
                    None => Fitted::flat(size, points, values, place),
                    Some(normal) => Fitted::on_surface(size, points, values, (place, normal)),
                }
            },
        )
    }

    /// Returns the nodes of cells, each once, and the values there.
    fn samples(&self, cells: &[u32]) -> (Vec<[f64; 3]>, Vec<f64>) {
        let dofs = distinct(cells, |cell, dofs| self.elements.add_samples(cell, dofs));
        dofs.into_iter().map(|dof| (self.elements.point(dof), self.elements.u[dof as usize])).unzip()
    }
}

/// Collects what `add` adds for each cell, or vertex, each once and ascending.
fn distinct(of: &[u32], add: impl Fn(u32, &mut Vec<u32>)) -> Vec<u32> {
    let mut found = Vec::new();
    of.iter().for_each(|&one| add(one, &mut found));
    // Each is found many times: a hash table is faster than sorting all.
    let n_bits = (2 * found.len()).max(2).ilog2() + 1;
    let mut table = vec![None; 1 << n_bits];
    found.retain(|&number| {
        let mut slot = (number.wrapping_mul(0x9E37_79B1) >> (32 - n_bits)) as usize;
        while table[slot].is_some_and(|other| other != number) {
            slot = (slot + 1) % table.len();
        }
        table[slot].replace(number).is_none()
    });
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_found_often_are_listed_once_and_ascending() {
        for n in [0, 1, 2, 5, 64, 65] {
            // The multiples of a power of two have the same last bits.
            let numbers: Vec<u32> = (0..n).rev().map(|i| i << 20).collect();
            let found = distinct(&numbers, |number, found| found.extend([number, u32::MAX, 7, number]));
            let mut expected: Vec<u32> = numbers.iter().rev().copied().collect();
            expected.extend(numbers.first().map(|_| u32::MAX));
            expected.extend(numbers.first().map(|_| 7));
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
    }
}

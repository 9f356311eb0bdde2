//! The problem on coarse cells, each joined from cells of a lattice.

use std::collections::HashMap;

use femtile_fem::tensor::TensorProblem;
use femtile_fem::{BoundaryCondition, Coefficient, Condition, Form};
use femtile_mesh::check::{BoundaryFacets, boundary_facets};
use femtile_mesh::{CellKind, Field, Mesh, MeshError};
use femtile_space::TensorSpace;

use super::Lattice;

/// Corners of a cell in the order of a mesh, by bits.
const CORNERS: [usize; 8] = [0, 1, 3, 2, 4, 5, 7, 6];

/// A problem on joined cells with zero data. Their corners are those of the lattice, their tags those of
/// their first cells; values of cells are averaged.
#[derive(Debug)]
pub struct CoarseProblem {
    mesh: Mesh,
    boundary: BoundaryFacets,
    sigma: Coefficient,
    lambda: Coefficient,
    conditions: Vec<BoundaryCondition>,
    /// The lattice lines of each node of the mesh.
    numbers: Vec<[u32; 3]>,
}

impl CoarseProblem {
    /// Makes the problem with these numbers of cells along each axis, which must divide those of the lattice.
    ///
    /// # Errors
    /// More than 2³² nodes.
    pub fn new(lattice: &Lattice, problem: &TensorProblem<'_>, cells: [usize; 3]) -> Result<Self, MeshError> {
        let (form, joining) = (problem.form(), Joining::new(lattice, problem.space(), cells));
        let (mut mesh, numbers) = joining.mesh()?;
        if let [_, ..] = form.mesh.cell_tags[..] {
            mesh.cell_tags = joining.firsts().into_iter().map(|cell| form.mesh.cell_tags[cell]).collect();
        }
        let boundary = boundary_facets(&mesh);
        let conditions = joining.conditions(form, &boundary, &numbers);
        let (sigma, lambda) = (joining.joined(form.sigma), joining.joined(form.lambda));
        Ok(Self { sigma, lambda, mesh, boundary, conditions, numbers })
    }

    /// Returns the mesh.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Returns the form.
    pub fn form(&self) -> Form<'_> {
        Form {
            mesh: &self.mesh,
            boundary: &self.boundary,
            sigma: &self.sigma,
            lambda: &self.lambda,
            source: &Coefficient::ZERO,
            conditions: &self.conditions,
        }
    }

    /// Returns the node of the box of each degree of freedom of a space on the mesh.
    ///
    /// # Errors
    /// Cells that do not form rows; joined cells do.
    pub fn nodes(&self, space: &TensorSpace<'_>) -> Result<Vec<u32>, String> {
        Ok(Lattice::numbered(space, &self.numbers, None)?.nodes(space))
    }
}

/// The map from cells of a lattice to joined cells.
struct Joining<'a> {
    lattice: &'a Lattice,
    space: &'a TensorSpace<'a>,
    /// Joined cells along each axis.
    cells: [usize; 3],
    /// Cells of the lattice per joined cell along each axis.
    factors: [usize; 3],
}

impl<'a> Joining<'a> {
    fn new(lattice: &'a Lattice, space: &'a TensorSpace<'a>, cells: [usize; 3]) -> Self {
        let fine = lattice.n_cells();
        Self { lattice, space, cells, factors: [0, 1, 2].map(|axis| fine[axis] / cells[axis]) }
    }

    /// Returns the mesh without tags, and the lattice lines of its nodes.
    fn mesh(&self) -> Result<(Mesh, Vec<[u32; 3]>), MeshError> {
        let d = self.lattice.dimension;
        let along = [0, 1, 2].map(|axis| if axis < d { self.cells[axis] + 1 } else { 1 });
        let numbers: Vec<[u32; 3]> = places(along).map(|place| place.map(|line| line as u32)).collect();
        let corner = |place: [usize; 3]| {
            let [x, y, z] = [0, 1, 2].map(|axis| place[axis] * self.factors[axis]);
            self.lattice.corners[(z * self.lattice.along[1] + y) * self.lattice.along[0] + x]
        };
        let points = places(along).map(corner).collect();
        let node = |place: [usize; 3], bits: usize| {
            let [x, y, z] = [0, 1, 2].map(|axis| place[axis] + (bits >> axis & 1));
            ((z * along[1] + y) * along[0] + x) as u32
        };
        let cell = |place| CORNERS[..1 << d].iter().map(move |&bits| node(place, bits));
        let kind = if d == 3 { CellKind::Hexahedron } else { CellKind::Quadrilateral };
        Ok((Mesh::new(points, kind, places(self.cells).flat_map(cell).collect())?, numbers))
    }

    /// Returns the joined cell of the cell at a position of the space.
    fn of(&self, position: usize) -> usize {
        let place = self.lattice.place(position);
        let [x, y, z] = [0, 1, 2].map(|axis| place[axis] / self.factors[axis]);
        (z * self.cells[1] + y) * self.cells[0] + x
    }

    /// Returns the cell of the mesh at the first corner of each joined cell.
    fn firsts(&self) -> Vec<usize> {
        let mut firsts = vec![0; self.cells.iter().product()];
        for (position, &cell) in self.space.order().iter().enumerate() {
            if self.is_first(self.lattice.place(position)) {
                firsts[self.of(position)] = cell as usize;
            }
        }
        firsts
    }

    /// Returns whether a place is the first one of a joined cell or facet.
    fn is_first(&self, place: [usize; 3]) -> bool {
        (0..3).all(|axis| place[axis].is_multiple_of(self.factors[axis]))
    }

    /// Returns a coefficient on joined cells.
    fn joined(&self, coefficient: &Coefficient) -> Coefficient {
        match coefficient {
            Coefficient::CellField(field) => Coefficient::CellField(self.means(field)),
            Coefficient::ByTag(by_tag) => {
                let one = |(tag, of): (&i32, &Coefficient)| (*tag, self.joined(of));
                Coefficient::ByTag(by_tag.iter().map(one).collect())
            }
            other => other.clone(),
        }
    }

    /// Returns the means of values of cells.
    fn means(&self, field: &Field) -> Field {
        let n = field.n_components;
        let share = 1.0 / self.factors.iter().product::<usize>() as f64;
        let mut values = vec![0.0; n * self.cells.iter().product::<usize>()];
        for (position, &cell) in self.space.order().iter().enumerate() {
            let (own, joined) = (cell as usize * n, self.of(position) * n);
            (0..n).for_each(|k| values[joined + k] += share * field.values[own + k]);
        }
        Field { n_components: n, values }
    }

    /// Returns the kind of condition on each joined facet: that of its first facet.
    fn conditions(
        &self,
        form: &Form<'_>,
        boundary: &BoundaryFacets,
        numbers: &[[u32; 3]],
    ) -> Vec<BoundaryCondition> {
        let side = |facet: u32| Side::of(boundary.facet(facet as usize), numbers, self.cells);
        let joined: HashMap<Side, u32> =
            (0..boundary.len() as u32).map(|facet| (side(facet), facet)).collect();
        let fine = self.lattice.numbers(self.space);
        let facet = |&facet: &u32| {
            let nodes = form.boundary.facet(facet as usize);
            let mut side = Side::of(nodes, &fine, self.lattice.n_cells());
            if !self.is_first(side.place) {
                return None;
            }
            (0..3).for_each(|axis| side.place[axis] /= self.factors[axis]);
            joined.get(&side).copied()
        };
        let one = |entry: &BoundaryCondition| BoundaryCondition {
            facets: entry.facets.iter().filter_map(facet).collect(),
            condition: match &entry.condition {
                // Dirichlet nodes that do not form whole sides were refused before, so facets determine all
                // conditions.
                Condition::Dirichlet(_) | Condition::DirichletAtNodes { .. } => {
                    Condition::Dirichlet(Coefficient::ZERO)
                }
                Condition::Neumann(_) => Condition::Neumann(Coefficient::ZERO),
                Condition::Robin { coefficient, .. } => {
                    Condition::Robin { coefficient: self.joined(coefficient), value: Coefficient::ZERO }
                }
            },
        };
        form.conditions.iter().map(one).collect()
    }
}

/// A facet on the boundary of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Side {
    axis: usize,
    is_upper: bool,
    /// Cells before it along the other axes.
    place: [usize; 3],
}

impl Side {
    /// Finds a facet by the lattice lines of its nodes.
    fn of(nodes: &[u32], numbers: &[[u32; 3]], cells: [usize; 3]) -> Self {
        let lines = |axis: usize| nodes.iter().map(move |&node| numbers[node as usize][axis] as usize);
        let ends = [0, 1, 2].map(|axis| {
            let least = lines(axis).min().unwrap_or(0);
            [least, lines(axis).max().unwrap_or(least)]
        });
        // Along an absent axis all lines are one; it comes last.
        let axis = (0..3).find(|&axis| ends[axis][0] == ends[axis][1]).unwrap_or(0);
        let mut place = ends.map(|[least, _]| least);
        place[axis] = 0;
        Self { axis, is_upper: ends[axis][0] == cells[axis], place }
    }
}

/// Iterates over all places of a box, x fastest.
fn places([n_x, n_y, n_z]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..n_x * n_y * n_z).map(move |at| [at % n_x, at / n_x % n_y, at / (n_x * n_y)])
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};

    use super::*;
    use crate::Poisson;

    #[test]
    fn joined_cells_have_the_conditions_tags_and_means_of_their_parts() {
        let config = BoxConfig { cells: [4, 2, 6], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        let mut mesh = box_mesh(&config).unwrap();
        let middle = |cell: usize, axis: usize| {
            mesh.cell(cell).iter().map(|&node| mesh.points[node as usize][axis]).sum::<f64>() / 8.0
        };
        let x: Vec<f64> = (0..mesh.n_cells()).map(|cell| middle(cell, 0)).collect();
        mesh.cell_tags = x.iter().map(|x| if *x < 0.5 { 3 } else { 5 }).collect();
        let field = Field { n_components: 1, values: x.iter().map(|x| 1.0 + x).collect() };
        let problem = Poisson::new(&mesh).sigma(Coefficient::CellField(field)).source(1.0);
        let problem = problem.dirichlet("xmin", 2.0).unwrap().robin("zmax", 1.0, 1.0).unwrap();
        let discretization = problem.degree(2).discretize().unwrap();
        let space = discretization.space().unwrap();
        let fine = TensorProblem::new(space, &discretization.form(0)).unwrap();
        let lattice = Lattice::of(space).unwrap();
        let coarse = CoarseProblem::new(&lattice, &fine, [2, 2, 3]).unwrap();

        let (joined, form) = (coarse.mesh(), coarse.form());
        assert_eq!((joined.n_cells(), joined.n_nodes()), (12, 36));
        let Coefficient::CellField(means) = form.sigma else { panic!("{:?}", form.sigma) };
        for cell in 0..12 {
            let is_left = cell % 2 == 0;
            assert_eq!(joined.cell_tags[cell], if is_left { 3 } else { 5 });
            let mean = if is_left { 1.25 } else { 1.75 };
            assert!((means.values[cell] - mean).abs() < 1e-14, "{}", means.values[cell]);
        }
        for (condition, (axis, at, n)) in form.conditions.iter().zip([(0, 0.0, 6), (2, 1.0, 4)]) {
            assert_eq!(condition.facets.len(), n);
            let nodes = condition.facets.iter().flat_map(|&facet| form.boundary.facet(facet as usize));
            assert!(nodes.into_iter().all(|&node| joined.points[node as usize][axis] == at));
        }
        let space = TensorSpace::new(joined, 2).unwrap();
        let mut nodes = coarse.nodes(&space).unwrap();
        nodes.sort_unstable();
        assert!(nodes.iter().enumerate().all(|(i, &node)| i == node as usize) && nodes.len() == 5 * 5 * 7);
    }
}

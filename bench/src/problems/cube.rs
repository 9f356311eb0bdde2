//! −Δu = 1 on the unit cube of equal hexahedra, u = 0 on its boundary: `bench/problems.md`.

use std::sync::Arc;

use femtile::mesh::Mesh;
use femtile::mesh::check::{BoundaryFacets, CheckConfig, check_generated};
use femtile::mesh::generate::{BoxConfig, BoxSplit, box_mesh};
use femtile::{Poisson, SolveError};

use crate::BenchError;

/// The mesh, of a few cells refined uniformly, with a degree of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cube {
    /// Cells a side of the coarsest mesh, 2 or 3.
    pub coarsest: usize,
    /// Number of refinements.
    pub refinements: u32,
    /// Degree of the elements.
    pub degree: usize,
}

impl Cube {
    /// Returns the cube with about this many unknowns, by ratio.
    pub fn of(degree: usize, unknowns: usize) -> Self {
        let distance = |cube: &Self| (cube.n_dofs() as f64 / unknowns as f64).ln().abs();
        let refined = |coarsest| (0..9).map(move |refinements| Self { coarsest, refinements, degree });
        let nearest = [2, 3].into_iter().flat_map(refined).min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.unwrap_or(Self { coarsest: 2, refinements: 0, degree })
    }

    /// Returns the number of cells a side.
    pub fn cells(&self) -> usize {
        self.coarsest << self.refinements
    }

    /// Returns the number of unknowns, those of the boundary included.
    pub fn n_dofs(&self) -> usize {
        (self.cells() * self.degree + 1).pow(3)
    }

    /// Returns the mesh with its boundary, checked as a case file's is.
    ///
    /// # Errors
    /// [`BenchError::Mesh`] and [`BenchError::Setting`] where there is no memory for it.
    pub fn mesh(&self) -> Result<(Mesh, Arc<BoundaryFacets>), BenchError> {
        let cells = [self.cells(); 3];
        let mut mesh = box_mesh(&BoxConfig { cells, split: BoxSplit::Hexahedron, ..BoxConfig::default() })?;
        let report = check_generated(&mut mesh, &CheckConfig::default());
        let report =
            report.map_err(|error| BenchError::Setting { field: "mesh", message: error.to_string() })?;
        Ok((mesh, report.boundary))
    }

    /// Returns the problem on this mesh.
    ///
    /// # Errors
    /// Those of [`Poisson`].
    pub fn problem<'m>(
        &self,
        mesh: &'m Mesh,
        boundary: Arc<BoundaryFacets>,
    ) -> Result<Poisson<'m>, SolveError> {
        Poisson::with_boundary(mesh, boundary)?.degree(self.degree).source(1.0).dirichlet("all", 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_cells_are_powers_of_two_times_two_or_three() {
        let cells = |degree| Cube::of(degree, 3_000_000).cells();
        assert_eq!((1..=8).map(cells).collect::<Vec<_>>(), [128, 64, 48, 32, 32, 24, 24, 16]);
        assert_eq!(Cube::of(2, 1), Cube { coarsest: 2, refinements: 0, degree: 2 });
    }
}

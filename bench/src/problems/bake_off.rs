//! The bake-off problems of CEED with one component, on a cube of hexahedra: `bench/problems.md` has them all.

use femtile::device::{Cpu, Cuda};
use femtile::fem::Coefficient;
use femtile::fem::dofs::TensorSpace;
use femtile::fem::matrix_free::{
    CellRule, CudaMatrixFree, CudaMatrixFreeConfig, Geometry, MatrixFree, Terms,
};
use femtile::mesh::Mesh;
use femtile::mesh::generate::{BoxConfig, BoxSplit, DeformConfig, box_mesh, deform};

use crate::BenchError;

/// What is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BakeOff {
    /// The mass matrix, p + 2 Gauss points an axis.
    Bp1,
    /// The Laplacian, p + 2 Gauss points an axis.
    Bp3,
    /// The Laplacian, p + 1 Gauss–Lobatto points an axis.
    Bp5,
    /// The Laplacian, p + 1 Gauss points an axis, which is what cases take.
    Laplace,
}

/// Shapes of the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Cubes.
    Cartesian,
    /// The cube bent inside: x_d += 0.1 Π sin πx_e, cells trilinear.
    Deformed,
}

impl BakeOff {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bp1 => "bp1",
            Self::Bp3 => "bp3",
            Self::Bp5 => "bp5",
            Self::Laplace => "laplace",
        }
    }

    fn rule(self) -> CellRule {
        match self {
            Self::Bp1 | Self::Bp3 => CellRule::Gauss { extra: 1 },
            Self::Bp5 => CellRule::GaussLobatto,
            Self::Laplace => CellRule::default(),
        }
    }

    /// The operator on a space, without conditions.
    pub fn operator(self, cpu: &Cpu, space: &TensorSpace<'_>) -> Result<MatrixFree<f64>, BenchError> {
        let one = Coefficient::Constant(1.0);
        Ok(MatrixFree::new(cpu, space, self.terms(&one), self.rule(), &[])?)
    }

    /// The same on a GPU, which comes by its metrics in a given way.
    pub fn cuda_operator(
        self,
        device: &Cuda,
        space: &TensorSpace<'_>,
        geometry: Geometry,
    ) -> Result<CudaMatrixFree<f64>, BenchError> {
        let one = Coefficient::Constant(1.0);
        let config = CudaMatrixFreeConfig { geometry: Some(geometry), ..CudaMatrixFreeConfig::default() };
        Ok(CudaMatrixFree::new(device, space, self.terms(&one), self.rule(), &[], config)?)
    }

    fn terms(self, one: &Coefficient) -> Terms<'_> {
        match self {
            Self::Bp1 => Terms { sigma: None, lambda: Some(one) },
            _ => Terms { sigma: Some(one), lambda: None },
        }
    }
}

impl Shape {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cartesian => "cartesian",
            Self::Deformed => "deformed",
        }
    }

    /// The unit cube of so many cells a side.
    pub fn mesh(self, cells: usize) -> Result<Mesh, BenchError> {
        let config = BoxConfig { cells: [cells; 3], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        let mut mesh = box_mesh(&config)?;
        if self == Self::Deformed {
            deform(&mut mesh, &DeformConfig { order: 1, ..DeformConfig::default() })?;
        }
        Ok(mesh)
    }
}

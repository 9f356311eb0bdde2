//! The bake-off problems of CEED on a cube of hexahedra: `bench/problems.md` defines them.

use femtile::device::{Cpu, Cuda};
use femtile::fem::Coefficient;
use femtile::matrix_free::{
    CellRule, CudaMatrixFree, CudaMatrixFreeConfig, MatrixFree, MatrixFreeConfig, MetricEvaluation, Terms,
};
use femtile::mesh::Mesh;
use femtile::mesh::generate::{BoxConfig, BoxSplit, DeformConfig, box_mesh, deform};
use femtile::space::TensorSpace;

use crate::BenchError;

/// The operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BakeOff {
    /// The mass matrix, p + 2 Gauss points an axis.
    Bp1,
    /// The mass matrix of three components.
    Bp2,
    /// The Laplacian, p + 2 Gauss points an axis.
    Bp3,
    /// The same of three components.
    Bp4,
    /// The Laplacian, p + 1 Gauss–Lobatto points an axis.
    Bp5,
    /// The same of three components.
    Bp6,
    /// The Laplacian, p + 1 Gauss points an axis, which is what cases take.
    Laplace,
    /// The same of three components.
    VectorLaplace,
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
            Self::Bp2 => "bp2",
            Self::Bp3 => "bp3",
            Self::Bp4 => "bp4",
            Self::Bp5 => "bp5",
            Self::Bp6 => "bp6",
            Self::Laplace => "laplace",
            Self::VectorLaplace => "vector-laplace",
        }
    }

    /// Components of the field.
    pub fn components(self) -> usize {
        match self {
            Self::Bp2 | Self::Bp4 | Self::Bp6 | Self::VectorLaplace => 3,
            _ => 1,
        }
    }

    fn rule(self) -> CellRule {
        match self {
            Self::Bp1 | Self::Bp2 | Self::Bp3 | Self::Bp4 => CellRule::Gauss { extra: 1 },
            Self::Bp5 | Self::Bp6 => CellRule::GaussLobatto,
            Self::Laplace | Self::VectorLaplace => CellRule::default(),
        }
    }

    /// The rule of deal.II that has the same points, for those that it is compared on.
    pub fn dealii_rule(self) -> Option<&'static str> {
        match self {
            Self::Bp5 => Some("lobatto"),
            Self::Laplace => Some("gauss"),
            _ => None,
        }
    }

    /// Returns the operator on a space, without conditions, with the given or the cheapest metric evaluation.
    pub fn operator(
        self,
        cpu: &Cpu,
        space: &TensorSpace<'_>,
        metric: Option<MetricEvaluation>,
    ) -> Result<MatrixFree<f64>, BenchError> {
        let one = Coefficient::Constant(1.0);
        let config = MatrixFreeConfig {
            rule: self.rule(),
            components: self.components(),
            metric,
            ..MatrixFreeConfig::default()
        };
        Ok(MatrixFree::new(cpu, space, self.terms(&one), config)?)
    }

    /// Returns the same on a GPU, with the given metric evaluation.
    pub fn cuda_operator(
        self,
        device: &Cuda,
        space: &TensorSpace<'_>,
        metric: MetricEvaluation,
    ) -> Result<CudaMatrixFree<f64>, BenchError> {
        let one = Coefficient::Constant(1.0);
        let config = CudaMatrixFreeConfig {
            components: self.components(),
            metric: Some(metric),
            ..CudaMatrixFreeConfig::default()
        };
        Ok(CudaMatrixFree::new(device, space, self.terms(&one), self.rule(), &[], config)?)
    }

    fn terms(self, one: &Coefficient) -> Terms<'_> {
        match self {
            Self::Bp1 | Self::Bp2 => Terms { sigma: None, lambda: Some(one) },
            _ => Terms { sigma: Some(one), lambda: None },
        }
    }
}

/// The timed iteration of a solve with the Jacobi preconditioner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Conjugate gradients in two passes besides the product.
    Pcg,
    /// Merged into the loop over cells.
    MergedPcg,
    /// Pipelined.
    PipelinedPcg,
    /// [`Method::STEPS`] steps at once.
    SStepPcg,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pcg, Self::MergedPcg, Self::PipelinedPcg, Self::SStepPcg];

    /// Steps of [`Method::SStepPcg`]; 12 iterations are whole blocks of it.
    pub const STEPS: usize = 3;

    /// Its name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pcg => "pcg",
            Self::MergedPcg => "merged-pcg",
            Self::PipelinedPcg => "pipelined-pcg",
            Self::SStepPcg => "s-step-pcg",
        }
    }

    /// Values of vectors that an iteration reads and writes for each unknown at best, those of products included.
    ///
    /// # Source
    /// `[kronbichler2022]`, Table 1, with a diagonal for each component, but for merged ones; ours where it differs: `cg` is
    /// fused into two passes, s-step ones into three.
    pub fn values(self, components: usize) -> f64 {
        let steps = Self::STEPS as f64;
        match self {
            Self::Pcg => 10.0 + 3.0,
            Self::MergedPcg => 7.0 + 1.0 / components as f64,
            Self::PipelinedPcg => 15.0 + 3.0,
            Self::SStepPcg => 8.0 + 8.0 / steps + 3.0 * self.products(),
        }
    }

    /// Products of an iteration.
    pub fn products(self) -> f64 {
        if self == Self::SStepPcg { 1.0 + 1.0 / Self::STEPS as f64 } else { 1.0 }
    }
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Cartesian, Self::Deformed];

    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cartesian => "cartesian",
            Self::Deformed => "deformed",
        }
    }

    /// Returns the unit cube with `cells` cells a side.
    pub fn mesh(self, cells: usize) -> Result<Mesh, BenchError> {
        let config = BoxConfig { cells: [cells; 3], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        let mut mesh = box_mesh(&config)?;
        if self == Self::Deformed {
            deform(&mut mesh, &DeformConfig { order: 1, ..DeformConfig::default() })?;
        }
        Ok(mesh)
    }
}

use femtile_device::{Buffer, Scalar};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, need};
use femtile_tridiagonal::TridiagonalKernels;

use super::Operator;
use crate::TimeError;

/// Stored values of varying coefficients at all nodes.
#[derive(Debug)]
pub struct Arrays<T: Scalar, D: VectorKernels<T>> {
    /// The τ of the bands.
    pub tau: f64,
    /// Lower band, diagonal and upper band of $I - τA_a$ for each axis whose bands vary.
    pub bands: [Option<[Buffer<T, D>; 3]>; 3],
    /// Reaction r.
    pub reaction: Option<Buffer<T, D>>,
    /// The entry of D for each pair of axes of the operator.
    pub mixed: Vec<Option<Buffer<T, D>>>,
    /// Source f, if it does not depend on the time.
    pub source: Option<Buffer<T, D>>,
}

impl<T: Scalar, D: VectorKernels<T>> Arrays<T, D> {
    /// Returns no arrays: all coefficients are computed on the fly.
    pub fn none(tau: f64) -> Self {
        Self { tau, bands: [None, None, None], reaction: None, mixed: Vec::new(), source: None }
    }

    /// Checks that arrays and vectors have one value per node of the grid.
    pub(super) fn check(
        &self,
        operator: &Operator,
        w: &Buffer<T, D>,
        u: &Buffer<T, D>,
    ) -> Result<(), LinalgError> {
        let n = operator.grid().n_nodes();
        need("w", n, w.len())?;
        need("u", n, u.len())?;
        let bands = self.bands.iter().flatten().flatten();
        let others = self.mixed.iter().chain([&self.reaction, &self.source]).flatten();
        bands.chain(others).try_for_each(|array| need("arrays", n, array.len()))
    }
}

/// The explicit part of a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExplicitStage {
    /// The axis of the part; none for all axes and the mixed derivatives.
    pub axis: Option<usize>,
    /// Factor of the operator and the source.
    pub scale: f64,
    /// The time of the source.
    pub time: f64,
}

/// The explicit kernels of ADI methods.
///
/// # Shapes
/// Vectors have one entry per node of the operator's grid.
/// # Errors
/// [`LinalgError::Length`] for vectors or arrays of another length.
pub trait AdiKernels<T: Scalar>: TridiagonalKernels<T> + VectorKernels<T> {
    /// Returns `true` if reading stored values is faster than evaluating a formula.
    fn adi_prefers_arrays(&self) -> bool {
        false
    }

    /// Computes $w = s\,(Au + f)$, or $w = u + s\,(A_a u + f)$ for one axis a; 0 at nodes on Dirichlet sides.
    ///
    /// # Cost
    /// Reads n and writes n values, and reads `arrays` except the diagonals.
    fn adi_explicit(
        &self,
        w: &mut Buffer<T, Self>,
        u: &Buffer<T, Self>,
        operator: &Operator,
        arrays: &Arrays<T, Self>,
        stage: ExplicitStage,
    ) -> Result<(), TimeError>;

    /// Computes $w = w + s A_0 u$ except at nodes on Dirichlet sides.
    ///
    /// # Cost
    /// Reads 2n and writes n values, and reads the arrays of mixed terms.
    fn adi_mixed(
        &self,
        w: &mut Buffer<T, Self>,
        u: &Buffer<T, Self>,
        operator: &Operator,
        arrays: &Arrays<T, Self>,
        scale: f64,
    ) -> Result<(), TimeError>;

    /// Sets $w_{p_i} = v_i$ at the nodes $p_i$, each listed once; numbers past the last node are ignored.
    fn adi_set(
        &self,
        w: &mut Buffer<T, Self>,
        nodes: &Buffer<u64, Self>,
        values: &Buffer<T, Self>,
    ) -> Result<(), TimeError>;

    /// Adds $w_{p_i} = w_{p_i} + s v_i$ at the nodes $p_i$, each listed once; numbers past the last node are ignored.
    fn adi_add(
        &self,
        w: &mut Buffer<T, Self>,
        nodes: &Buffer<u64, Self>,
        values: &Buffer<T, Self>,
        scale: f64,
    ) -> Result<(), TimeError>;
}

use femtile_device::{Buffer, Scalar};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, need};
use femtile_tridiagonal::TridiagonalKernels;

use super::Operator;
use crate::TimeError;

/// What is read instead of being formed anew: values at all nodes, for coefficients that vary.
#[derive(Debug)]
pub struct Arrays<T: Scalar, D: VectorKernels<T>> {
    /// τ, which the bands hold.
    pub tau: f64,
    /// Lower band, diagonal and upper band of $I - τA_a$ for each axis whose bands vary.
    pub bands: [Option<[Buffer<T, D>; 3]>; 3],
    /// r.
    pub reaction: Option<Buffer<T, D>>,
    /// The entry of D for each pair of axes of the operator.
    pub mixed: Vec<Option<Buffer<T, D>>>,
    /// f, where it does not depend on the time.
    pub source: Option<Buffer<T, D>>,
}

impl<T: Scalar, D: VectorKernels<T>> Arrays<T, D> {
    /// No arrays: everything is formed where it is used.
    pub fn none(tau: f64) -> Self {
        Self { tau, bands: [None, None, None], reaction: None, mixed: Vec::new(), source: None }
    }

    /// Refuses arrays and vectors that have not a value for each node of the operator's grid.
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

/// What the explicit part of a stage computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExplicitStage {
    /// The axis whose part is taken; all axes and the mixed derivatives where none is named.
    pub axis: Option<usize>,
    /// Factor of the operator and the source.
    pub scale: f64,
    /// The time at which the source is taken.
    pub time: f64,
}

/// The explicit work of alternating directions.
///
/// # Shapes
/// Vectors of values have an entry for each node of the operator's grid.
/// # Errors
/// [`LinalgError::Length`] when they, or the arrays, have not.
pub trait AdiKernels<T: Scalar>: TridiagonalKernels<T> + VectorKernels<T> {
    /// Whether it reads the values of a formula faster than it computes them.
    fn adi_prefers_arrays(&self) -> bool {
        false
    }

    /// $w = s\,(Au + f)$, or $w = u + s\,(A_a u + f)$ for one axis a; 0 at nodes on Dirichlet sides.
    ///
    /// # Cost
    /// Reads n and writes n values, and reads what `arrays` hold but the diagonals.
    fn adi_explicit(
        &self,
        w: &mut Buffer<T, Self>,
        u: &Buffer<T, Self>,
        operator: &Operator,
        arrays: &Arrays<T, Self>,
        stage: ExplicitStage,
    ) -> Result<(), TimeError>;

    /// $w = w + s A_0 u$, but at nodes on Dirichlet sides.
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

    /// $w_{p_i} = v_i$ at the nodes $p_i$, each named once; numbers past the last node are left out.
    fn adi_set(
        &self,
        w: &mut Buffer<T, Self>,
        nodes: &Buffer<u64, Self>,
        values: &Buffer<T, Self>,
    ) -> Result<(), TimeError>;

    /// $w_{p_i} = w_{p_i} + s v_i$ at the nodes $p_i$, each named once; numbers past the last node are left out.
    fn adi_add(
        &self,
        w: &mut Buffer<T, Self>,
        nodes: &Buffer<u64, Self>,
        values: &Buffer<T, Self>,
        scale: f64,
    ) -> Result<(), TimeError>;
}

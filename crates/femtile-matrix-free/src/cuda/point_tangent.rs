//! Tangents of forms at the points, as text for the kernel and numbers for the cells.

use std::sync::Arc;

use femtile_device::cpu::zeroed_vec;
use femtile_device::cuda::Specialisation;
use femtile_device::{Element, Scalar, parallel};
use femtile_expression::{Expression, Precision, Program};
use femtile_linalg::LinalgError;
use femtile_space::geometry::{CellRule, MetricEvaluation};
use femtile_space::{SpaceError, TensorSpace};

use super::batches::{Batches, NONE};
use super::config::{CudaMatrixFreeConfig, LaunchShape};
use super::data::{CudaMatrixFreeData, Cut, cells_per_group};
use super::program::{self, Variant};
use femtile_fem::FemError;

/// The tangent of a form at a point, $(\delta f_0, \delta f_1) = D'(\delta u, \nabla\delta u)$, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TangentText {
    /// The text of `__device__ void tangent(T* out, const T* in)` in single and in double precision. `out` and the first entries of
    /// `in` are slots; numbers of the cell follow, then those of the point.
    texts: [Arc<str>; 2],
    pub(super) dimension: usize,
    pub(super) components: usize,
    pub(super) has_values: bool,
    pub(super) n_numbers: [usize; 2],
}

/// The tangent of a form on all cells.
///
/// The geometry of a point is the inverse Jacobian by rows, $\partial\xi_a/\partial x_i$, then $\lvert\det J\rvert$.
#[derive(Clone)]
pub struct PointTangent<'a> {
    /// Its text.
    pub text: TangentText,
    /// Whether the geometry is that of the cell, without weights; else it is that of points, with the weight in
    /// $\lvert\det J\rvert$.
    pub is_affine: bool,
    /// Writes what belongs to the cell at a position of the space: `[n]` for the cell, its geometry first, then `[n][n_q]` for the
    /// points, whose geometry is first if it is not that of the cell.
    pub write: &'a (dyn Fn(usize, &mut [f64]) + Sync),
}

impl TangentText {
    /// Writes the text of the action on a direction.
    ///
    /// Outputs are slots, `[component][value, derivatives along the axes of space]`. Inputs are the direction by slots, then as many
    /// numbers of the cell and of the point as `n_numbers` says. `has_values` says whether the action reads a value of the direction,
    /// or makes an f₀.
    ///
    /// # Panics
    /// Unless the action has these inputs and outputs.
    pub fn new(
        action: &Program,
        dimension: usize,
        components: usize,
        n_numbers: [usize; 2],
        has_values: bool,
    ) -> Self {
        let n_slots = components * (1 + dimension);
        let found = (action.n_inputs(), action.n_outputs());
        assert!(found == (n_slots + n_numbers[0] + n_numbers[1], n_slots), "inputs and outputs of a tangent");
        let text = |precision| -> Arc<str> {
            let function = action.cuda_function("tangent", precision);
            format!("#pragma once\n{}\n{function}", Expression::CUDA_HEADER).into()
        };
        Self {
            texts: [text(Precision::F32), text(Precision::F64)],
            dimension,
            components,
            has_values,
            n_numbers,
        }
    }

    /// Returns the numbers of a cell and those of a point, with geometry.
    pub(super) fn with_geometry(&self, is_affine: bool) -> [usize; 2] {
        let ([of_cell, of_point], geometry) = (self.n_numbers, self.dimension * self.dimension + 1);
        match is_affine {
            true => [geometry + of_cell, of_point],
            false => [of_cell, geometry + of_point],
        }
    }

    /// Returns the text for a precision.
    pub(super) fn of<T: Scalar>(&self) -> &str {
        &self.texts[usize::from(T::C_NAME == f64::C_NAME)]
    }
}

/// Returns the programs of the tangent of a form on cells of a degree with consistent axes, for solves and their products.
pub fn tangent_programs<T: Scalar>(
    degree: usize,
    text: &TangentText,
    is_affine: bool,
) -> Vec<Specialisation> {
    program::all::<T>(&Variant::of_tangent(degree, text, is_affine))
}

impl<T: Scalar> CudaMatrixFreeData<T> {
    /// Computes the data of the tangent of a form with the rule of Gauss with p + 1 points along each axis.
    ///
    /// `constrained` are whole entities, ascending; all components of their unknowns are constrained.
    ///
    /// # Errors
    /// [`FemError::Linalg`] for cells with more components than the shared memory of a block holds, [`FemError::Space`] if the rows
    /// of all components cannot be numbered with 32 bits.
    /// # Panics
    /// If the tangent has another dimension than the cells.
    pub fn of_tangent(
        space: &TensorSpace<'_>,
        tangent: &PointTangent<'_>,
        constrained: &[u32],
        config: CudaMatrixFreeConfig,
    ) -> Result<Self, FemError> {
        assert!(tangent.text.dimension == space.dimension(), "a tangent in the dimension of the cells");
        let components = tangent.text.components;
        let n_rows = space.n_dofs().saturating_mul(components);
        if n_rows >= u32::MAX as usize {
            return Err(SpaceError::TooManyDofs { n_dofs: n_rows as f64 }.into());
        }
        let own = Variant::of_tangent(space.degree(), &tangent.text, tangent.is_affine);
        let own = Variant { has_lists: space.n_irregular() > 0, ..own };
        if own.shared_bytes_of_cell::<T>() > LaunchShape::MOST_OF_TANGENT {
            let message = format!(
                "{components} components of degree {} take {} bytes of fast memory per cell; {} are there: take a smaller degree",
                space.degree(),
                own.shared_bytes_of_cell::<T>(),
                LaunchShape::MOST_OF_TANGENT,
            );
            return Err(LinalgError::Setting { field: "degree", message }.into());
        }
        let shape = config.shape.unwrap_or(own.shape);
        let per_group = config.cells_per_group.unwrap_or_else(|| cells_per_group(space, shape));
        let variant = Variant { shape, ..own };
        let cut = Cut { cells: shape.cells, per_group, components };
        let batches = Batches::new(space, (cut.cells, per_group), components, (constrained, None))?;
        let metric = numbers(space, tangent, &batches, &variant);
        Ok(Self::of_parts(space, constrained, (variant, cut), batches, metric))
    }
}

/// Returns the numbers of all cells in the order of their batches.
fn numbers<T: Scalar>(
    space: &TensorSpace<'_>,
    tangent: &PointTangent<'_>,
    batches: &Batches,
    variant: &Variant,
) -> Vec<T> {
    let [of_cell, at_points] = variant.cell_numbers();
    let (n, layer) = (of_cell + at_points, variant.layer_points());
    let n_q = layer * variant.n_points();
    let mut filled = zeroed_vec(space.n_cells() * n);
    let positions: Vec<usize> =
        batches.slots.iter().filter(|slot| **slot != NONE).map(|&slot| slot as usize).collect();
    let write = |found: &mut Vec<f64>, (to, position): (&mut [T], usize)| {
        found.resize(n, f64::NAN);
        (tangent.write)(position, found);
        let (to_cell, to_points) = to.split_at_mut(of_cell);
        to_cell.iter_mut().zip(&*found).for_each(|(to, &from)| *to = T::from_f64(from));
        // [number][layer][point of the layer] becomes [layer][number][point of the layer].
        let by_number = &found[of_cell..];
        let n_numbers = by_number.len() / n_q;
        for (at, to) in to_points.chunks_exact_mut(layer).enumerate() {
            let (plane, number) = (at / n_numbers, at % n_numbers);
            let from = &by_number[number * n_q + plane * layer..][..layer];
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = T::from_f64(from));
        }
    };
    let cells = filled.chunks_exact_mut(n).zip(positions).collect();
    parallel::for_each_item_with(cells, 1, Vec::new, write);
    filled
}

impl Variant {
    /// Returns the variant of the tangent of a form on cells with consistent axes, in the shape that is best for it.
    pub fn of_tangent(degree: usize, text: &TangentText, is_affine: bool) -> Self {
        let variant = Self {
            dimension: text.dimension,
            degree,
            components: text.components,
            together: text.components,
            rule: CellRule::default(),
            has_stiffness: true,
            has_mass: text.has_values,
            is_isotropic: false,
            has_lists: false,
            has_ghosts: false,
            metric: if is_affine { MetricEvaluation::Constant } else { MetricEvaluation::Stored },
            is_at_points: false,
            tangent: Some(text.clone()),
            shape: LaunchShape { cells: 1, blocks: 1 },
        };
        Self { shape: LaunchShape::of(&variant), ..variant }
    }
}

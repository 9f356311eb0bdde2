use femtile::device::Scalar;
use femtile::device::cuda::{Header, MMA_HEADER, Program, RECIPROCAL_HEADER, STRIDED_HEADER, Specialisation};
use femtile::multigrid::PatchShape;
use femtile::multigrid::patch_kernels::{COLOUR_HEADER, patch_matrices};

use super::kernel::{Layout, Passes, PatchPass, PublishedKernel};

static PUBLISHED: Program = Program {
    name: "vertex_patch_published",
    source: include_str!("vertex_patch.cu"),
    headers: &[
        RECIPROCAL_HEADER,
        STRIDED_HEADER,
        MMA_HEADER,
        COLOUR_HEADER,
        Header { name: "layout.cuh", text: include_str!("layout.cuh") },
        Header { name: "contract.cuh", text: include_str!("contract.cuh") },
        Header { name: "tensor_core.cuh", text: include_str!("tensor_core.cuh") },
        Header { name: "surface.cuh", text: include_str!("surface.cuh") },
    ],
};

impl PublishedKernel {
    /// Returns the program of a pass; with `is_data_alone` it loads and stores without computing.
    pub(super) fn program<T: Scalar>(
        self,
        degree: usize,
        pass: PatchPass,
        shape: PatchShape,
        is_data_alone: bool,
    ) -> Specialisation {
        let is = |layout| u8::from(self.layout == layout);
        let is_masked = matches!(self.layout, Layout::Basic | Layout::ThreadPerNode);
        let program = PUBLISHED
            .of::<T>()
            .define("FEMTILE_DEGREE", degree)
            .define("FEMTILE_HAS_RESIDUAL", u8::from(pass != PatchPass::Solve))
            .define("FEMTILE_HAS_SOLVE", u8::from(pass != PatchPass::Residual))
            .define("FEMTILE_IS_PACKED", u8::from(self.is_packed()))
            .define("FEMTILE_IS_LINEAR", u8::from(!is_masked))
            .define("FEMTILE_IS_CUBE", is(Layout::ThreadPerNode))
            .define("FEMTILE_IS_SURFACE", is(Layout::Boundary))
            .define("FEMTILE_IS_TENSOR_CORE", is(Layout::TensorCore))
            .define("FEMTILE_IS_DENSE", is(Layout::InverseMatrix))
            .define("FEMTILE_IS_DATA_ALONE", u8::from(is_data_alone));
        shape.define(program)
    }

    fn shipped<T: Scalar>(self, degree: usize) -> Vec<Specialisation> {
        if self.lack::<T>(degree).is_some() {
            return Vec::new();
        }
        let of_pass = |&pass| self.program::<T>(degree, pass, self.shape::<T>(degree, pass), false);
        self.passes().iter().map(of_pass).collect()
    }
}

/// Returns the matrices of a patch, with the dense inverse where the kernel applies it.
pub(super) fn tables<T: Scalar>(kernel: PublishedKernel, degree: usize, scales: [f64; 3]) -> Vec<T> {
    let matrices = patch_matrices(degree);
    let mut tables = matrices.concat();
    if kernel.layout == Layout::InverseMatrix {
        let [_, _, vectors, values] = &matrices;
        tables.extend(inverse(degree, vectors, values, scales));
    }
    tables.into_iter().map(T::from_f64).collect()
}

/// Returns the programs of each variant at a few degrees, of the conflict-free one at all.
pub fn specialisations() -> Vec<Specialisation> {
    let degrees = |kernel: PublishedKernel| match (kernel.passes, kernel.layout) {
        (Passes::Fused, Layout::ConflictFree) => 1..=8,
        (Passes::Fused, _) => 3..=4,
        _ => 3..=3,
    };
    let of_kernel = |kernel: PublishedKernel| {
        degrees(kernel)
            .flat_map(move |degree| [kernel.shipped::<f64>(degree), kernel.shipped::<f32>(degree)].concat())
    };
    PublishedKernel::all().filter(|kernel| kernel.passes != Passes::Global).flat_map(of_kernel).collect()
}

/// Returns the dense inverse of the inner nodes of a patch, with these factors of stiffness along each axis.
///
/// # Cost
/// About $7 (2k - 1)^7$ operations, column by column in the eigenvector basis.
fn inverse(degree: usize, vectors: &[f64], values: &[f64], scales: [f64; 3]) -> Vec<f64> {
    let n = 2 * degree - 1;
    let n_inside = n * n * n;
    let at = |i: usize| [i % n, i / n % n, i / (n * n)];
    let mut inverse = Vec::with_capacity(n_inside * n_inside);
    for column in (0..n_inside).map(at) {
        let of_mode = |mode: usize| {
            let modes = at(mode);
            let sum: f64 = (0..3).map(|axis| scales[axis] * values[modes[axis]]).sum();
            (0..3).map(|axis| vectors[column[axis] * n + modes[axis]]).product::<f64>() / sum
        };
        let mut found: Vec<f64> = (0..n_inside).map(of_mode).collect();
        for stride in [1, n, n * n] {
            found = along(vectors, n, stride, &found);
        }
        inverse.extend(found);
    }
    inverse
}

/// Applies an n × n matrix along one axis of a cube with this stride.
fn along(matrix: &[f64], n: usize, stride: usize, values: &[f64]) -> Vec<f64> {
    let entry = |i: usize| {
        let row = i / stride % n;
        let first = i - row * stride;
        (0..n).map(|j| matrix[row * n + j] * values[first + j * stride]).sum()
    };
    (0..values.len()).map(entry).collect()
}

use femtile_device::Scalar;
use femtile_device::cuda::{Header, MMA_HEADER, Program, RECIPROCAL_HEADER, STRIDED_HEADER, Specialisation};

use super::super::super::shape::PatchShape;
use super::super::tables::Modes;
use super::kernel::{LadderKernel, Layout, Passes, PatchPass};

static LADDER: Program = Program {
    name: "vertex_patch_ladder",
    source: include_str!("ladder.cu"),
    headers: &[
        RECIPROCAL_HEADER,
        STRIDED_HEADER,
        MMA_HEADER,
        Header { name: "colour.cuh", text: include_str!("../colour.cuh") },
        Header { name: "layout.cuh", text: include_str!("layout.cuh") },
        Header { name: "contract.cuh", text: include_str!("contract.cuh") },
        Header { name: "tensor_core.cuh", text: include_str!("tensor_core.cuh") },
        Header { name: "surface.cuh", text: include_str!("surface.cuh") },
    ],
};

impl LadderKernel {
    /// One of its passes; of the data alone, it loads and stores and computes nothing.
    pub(super) fn program<T: Scalar>(
        self,
        degree: usize,
        pass: PatchPass,
        shape: PatchShape,
        is_data_alone: bool,
    ) -> Specialisation {
        let is = |layout| u8::from(self.layout == layout);
        let is_masked = matches!(self.layout, Layout::Basic | Layout::ThreadPerNode);
        let program = LADDER
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

/// The matrices of a patch as the kernels have them, with the dense inverse where it is applied.
pub(super) fn tables<T: Scalar>(kernel: LadderKernel, degree: usize, scales: [f64; 3]) -> Vec<T> {
    let modes = Modes::new(degree);
    let mut tables = modes.dense();
    if kernel.layout == Layout::InverseMatrix {
        tables.extend(modes.inverse(scales));
    }
    tables.into_iter().map(T::from_f64).collect()
}

/// Each kernel at a few degrees; what differs between degrees is in the one without conflicts alone.
pub(in super::super) fn specialisations() -> Vec<Specialisation> {
    let degrees = |kernel: LadderKernel| match (kernel.passes, kernel.layout) {
        (Passes::Fused, Layout::ConflictFree) => 1..=8,
        (Passes::Fused, _) => 3..=4,
        _ => 3..=3,
    };
    let of_kernel = |kernel: LadderKernel| {
        degrees(kernel)
            .flat_map(move |degree| [kernel.shipped::<f64>(degree), kernel.shipped::<f32>(degree)].concat())
    };
    LadderKernel::all().filter(|kernel| kernel.passes != Passes::Global).flat_map(of_kernel).collect()
}

use femtile_device::cuda::{Kernel, Program, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};

use super::{PipelinedCgKernels, PipelinedCgStep, PipelinedCgSums, PipelinedCgVectors};
use crate::krylov::{Preconditioning, PreconditioningKind};
use crate::vector::cuda::{SEVERAL_SUMS, SUMS, several_sums};
use crate::{LinalgError, error::need};

static PIPELINED_CG: Program =
    Program { name: "pipelined_cg", source: include_str!("pipelined_cg.cu"), headers: &[SUMS, SEVERAL_SUMS] };

type Update<T> = (Write<f64>, Write<f64>, Write<u32>, Structure, T, T, u64);

/// Kinds of preconditioners, in the order in which the kernel numbers them.
const KINDS: [PreconditioningKind; 3] =
    [PreconditioningKind::Identity, PreconditioningKind::Diagonal, PreconditioningKind::General];

/// Returns the program of a solve with this kind of preconditioner.
pub fn program<T: Scalar>(kind: PreconditioningKind) -> Specialisation {
    PIPELINED_CG.of::<T>().define("FEMTILE_KIND", kind as u32)
}

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    KINDS.into_iter().flat_map(|kind| [program::<f32>(kind), program::<f64>(kind)]).collect()
}

impl<T: Scalar> PipelinedCgKernels<T> for Cuda {
    fn pipelined_cg_update(
        &self,
        x: &mut Buffer<T, Self>,
        v: &mut PipelinedCgVectors<T, Self>,
        by: Preconditioning<'_, T, Self>,
        PipelinedCgStep { alpha, beta }: PipelinedCgStep,
    ) -> Result<PipelinedCgSums, LinalgError> {
        let n = v.r.len();
        let address = |(field, vector): (&'static str, &Buffer<T, Self>)| -> Result<u64, LinalgError> {
            need(field, n, vector.len())?;
            Ok(vector.address_on(self)?)
        };
        let of_all = [("x", &*x), ("r", &v.r), ("w", &v.w), ("p", &v.p), ("s", &v.s), ("z", &v.z)];
        let mut fields = of_all.into_iter().map(address).collect::<Result<Vec<_>, _>>()?;
        let ([m, u, q], d, kind) = match by {
            Preconditioning::Identity => ([0; 3], 0, PreconditioningKind::Identity),
            Preconditioning::Diagonal(d) => {
                let d = address(("inverse_diagonal", d))?;
                ([address(("m", &v.m))?, 0, 0], d, PreconditioningKind::Diagonal)
            }
            Preconditioning::General => {
                let vectors = [address(("m", &v.m))?, address(("u", &v.u))?, address(("q", &v.q))?];
                (vectors, 0, PreconditioningKind::General)
            }
        };
        fields.extend([m, u, q, address(("n", &v.n))?, d]);
        let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
        let sums = several_sums(self, 3, n, |launch, (sums, partials, counter)| {
            let arguments = (sums, partials, counter, Structure(fields), alpha, beta, n as u64);
            let kernel = Kernel::<Update<T>>::new("pipelined_cg_update");
            // SAFETY: the vectors that this kind needs have n entries, and there is room for three sums of each block.
            Ok(unsafe { self.launch(&program::<T>(kind), &kernel, launch, arguments) }?)
        })?;
        Ok(PipelinedCgSums { r_dot_r: sums[0], r_dot_u: sums[1], w_dot_u: sums[2] })
    }
}

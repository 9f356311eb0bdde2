use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};

use super::{MergedCgKernels, MergedScalars, MergedVectors};
use crate::krylov::cg::cuda::{ADDENDS, ProductHook, STATE, need_room};
use crate::vector::cuda::{SUM_THREADS, SUMS, n_tiles};
use crate::{LinalgError, LinearOperator, error::need};

static MERGED_CG: Program =
    Program { name: "merged_cg", source: include_str!("merged_cg.cu"), headers: &[SUMS, STATE] };

/// Index of $p^\mathsf{T} v$ in the sums.
const P_DOT_V: usize = 6 * ADDENDS;

type Scalars = MergedScalars<Cuda>;
type Update<T> = (Write<T>, Write<T>, Write<T>, Read<T>, Structure, Read<f64>, Read<f64>, u64);
type Sums<T> = (Write<f64>, Write<f64>, Write<u32>, Read<T>, Read<T>, Structure, Read<f64>, u64);
type Finish<T> = (Write<T>, Read<T>, Read<T>, Structure, Read<f64>, u64);
type Step = (Write<f64>, Write<f64>, Write<f64>, Write<f64>, Read<f64>);
const STEP: Kernel<Step> = Kernel::new("merged_cg_step");

/// Returns the program of the passes of an iteration.
pub fn program<T: Scalar>() -> Specialisation {
    MERGED_CG.of::<T>().define("FEMTILE_LEAST_BETA", Scalars::LEAST_BETA)
}

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    vec![program::<f32>(), program::<f64>()]
}

/// `struct Diagonal` of the kernels, for `n_rows` rows.
fn fields<T: Scalar>(
    device: &Cuda,
    (inverse, n_rows): (&Buffer<T, Cuda>, usize),
    n: usize,
) -> Result<Structure, LinalgError> {
    need("diagonal", n, inverse.len().saturating_mul(n_rows))?;
    Ok(Structure(vec![inverse.address_on(device)?, n_rows as u64]))
}

/// Refuses numbers of a solve that are not those of vectors of `n` entries.
fn need_scalars(scalars: &Scalars, n: usize) -> Result<(), LinalgError> {
    need("sums", Scalars::SUMS * ADDENDS, scalars.sums.len())?;
    need("steps", Scalars::STEPS, scalars.steps.len())?;
    need_room(&scalars.base, n)
}

fn launch(n: usize) -> Launch {
    Launch::line(n_tiles(n), SUM_THREADS)
}

impl<T: Scalar> MergedCgKernels<T> for Cuda {
    /// In three kernels: work within the loop over cells keeps their threads waiting longer than it saves.
    fn merged_cg_pass(
        &self,
        x: &mut Buffer<T, Self>,
        vectors: &mut MergedVectors<T, Self>,
        a: &dyn LinearOperator<T, Self>,
        diagonal: (&Buffer<T, Self>, usize),
        scalars: &mut Scalars,
    ) -> Result<(), LinalgError> {
        let n = x.len();
        let diagonal = fields(self, diagonal, n)?;
        need_scalars(scalars, n)?;
        let MergedVectors { r, p, v } = vectors;
        for (field, vector) in [("r", &*r), ("p", p), ("v", v)] {
            need(field, n, vector.len())?;
        }
        let (state, steps) = (&scalars.base.state, &scalars.steps);
        let arguments = (
            x.write(),
            r.write(),
            p.write(),
            v.read(),
            diagonal.clone(),
            state.read(),
            steps.read(),
            n as u64,
        );
        let kernel = Kernel::<Update<T>>::new("merged_cg_update");
        // SAFETY: all vectors have n entries, and an entry of the diagonal stands for as many rows as it says.
        unsafe { self.launch(&program::<T>(), &kernel, launch(n), arguments) }?;
        a.apply_with(v, p, &ProductHook::new(self, &scalars.base, (&scalars.sums, P_DOT_V), n)?)?;
        need("v", n, v.len())?;
        let base = &mut scalars.base;
        let arguments = (
            scalars.sums.write(),
            base.partials.write(),
            base.counters.write(),
            r.read(),
            v.read(),
            diagonal,
            base.state.read(),
            n as u64,
        );
        let kernel = Kernel::<Sums<T>>::new("merged_cg_sums");
        // SAFETY: as above, and where partial sums are kept there is room for six a tile.
        Ok(unsafe { self.launch(&program::<T>(), &kernel, launch(n), arguments) }?)
    }

    fn merged_cg_step(&self, scalars: &mut Scalars) -> Result<(), LinalgError> {
        need_scalars(scalars, 0)?;
        let base = &mut scalars.base;
        let arguments = (
            base.state.write(),
            scalars.steps.write(),
            base.p_dot_q.write(),
            base.r_sums.write(),
            scalars.sums.read(),
        );
        // SAFETY: the kernel touches numbers at the places that the constants name.
        Ok(unsafe { self.launch(&program::<T>(), &STEP, Launch::line(1, 32), arguments) }?)
    }

    fn merged_cg_finish(
        &self,
        x: &mut Buffer<T, Self>,
        vectors: &MergedVectors<T, Self>,
        diagonal: (&Buffer<T, Self>, usize),
        scalars: &Scalars,
    ) -> Result<(), LinalgError> {
        let n = x.len();
        let diagonal = fields(self, diagonal, n)?;
        need_scalars(scalars, n)?;
        let MergedVectors { r, p, .. } = vectors;
        need("r", n, r.len())?;
        need("p", n, p.len())?;
        let arguments = (x.write(), r.read(), p.read(), diagonal, scalars.steps.read(), n as u64);
        let kernel = Kernel::<Finish<T>>::new("merged_cg_finish");
        // SAFETY: all vectors have n entries.
        Ok(unsafe { self.launch(&program::<T>(), &kernel, launch(n), arguments) }?)
    }
}

use femtile_device::cuda::{Header, Kernel, Launch, Program, Read, Specialisation, Write};
use femtile_device::{Buffer, Cuda, Scalar};

use super::{CgBegin, CgDiagonals, CgExtrapolate, CgFinish, CgSolverKernels, CgSums};
use crate::LinalgError;
use crate::krylov::cg::CgScalars;
use crate::krylov::cg::cuda::{STATE, need_room};
use crate::vector::cuda::{SUMS, queue_dot, sum_launch};

type Sums = CgSums<Cuda>;

const HEADERS: &[Header] = &[SUMS, STATE];
static SOLVER: Program = Program { name: "solver", source: include_str!("solver.cu"), headers: HEADERS };

type Begin<T> = (
    Write<T>,
    Write<T>,
    Write<T>,
    Write<f64>,
    Write<f64>,
    Write<u32>,
    Read<T>,
    Read<T>,
    Read<T>,
    Read<T>,
    u64,
    u32,
);
type Extrapolate<T> = (Write<T>, Write<T>, Read<T>, Write<T>, Write<T>, T, u64);
type Finish<T> = (Write<f64>, Write<f64>, Write<u32>, Read<T>, Read<T>, Read<T>, Read<T>, Read<T>, u64, u32);
type Decide = (Write<f64>, Read<f64>, Read<f64>);

/// Sums of one pass at most.
const N_SUMS: usize = 6;
const THREADS: u32 = 256;

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    vec![SOLVER.of::<f32>(), SOLVER.of::<f64>()]
}

/// Partial sums of a pass over vectors of `n` entries.
fn n_partials(n: usize) -> usize {
    N_SUMS * sum_launch(n).0.grid[0] as usize
}

fn optional<T: Scalar>(vector: Option<&Buffer<T, Cuda>>) -> Read<T> {
    vector.map_or(Read::none(), Buffer::read)
}

impl<T: Scalar> CgSolverKernels<T> for Cuda {
    fn cg_sum_partials(&self, n: usize) -> usize {
        n_partials(n)
    }

    fn cg_extrapolate(&self, vectors: CgExtrapolate<'_, T, Self>, weight: T) -> Result<(), LinalgError> {
        vectors.check()?;
        let CgExtrapolate { x, previous_x, q, previous_q, r } = vectors;
        let n = x.len();
        let arguments =
            (x.write(), previous_x.write(), q.read(), previous_q.write(), r.write(), weight, n as u64);
        let kernel = Kernel::<Extrapolate<T>>::new("cg_extrapolate");
        // SAFETY: all vectors have n entries.
        Ok(unsafe { self.launch(&SOLVER.of::<T>(), &kernel, Launch::over(n, THREADS), arguments) }?)
    }

    fn cg_begin(
        &self,
        vectors: CgBegin<'_, T, Self>,
        diagonals: CgDiagonals<'_, T, Self>,
        sums: &mut Sums,
    ) -> Result<(), LinalgError> {
        vectors.check(&diagonals)?;
        let n = vectors.b.len();
        sums.check(n_partials(n))?;
        let CgBegin { r, p, start, b, x } = vectors;
        let (launch, of_block) = sum_launch(n);
        let arguments = (
            r.write(),
            p.write(),
            start.write(),
            sums.first.write(),
            sums.partials.write(),
            sums.counter.write(),
            b.read(),
            x.read(),
            optional(diagonals.m),
            optional(diagonals.test),
            n as u64,
            of_block,
        );
        let kernel = Kernel::<Begin<T>>::new("cg_begin");
        // SAFETY: all vectors have n entries, and there is room for the sums and for six partial sums a block.
        Ok(unsafe { self.launch(&SOLVER.of::<T>(), &kernel, launch, arguments) }?)
    }

    fn cg_sum_dot(
        &self,
        place: usize,
        x: &Buffer<T, Self>,
        y: &Buffer<T, Self>,
        sums: &mut Sums,
    ) -> Result<(), LinalgError> {
        sums.check(n_partials(x.len()))?;
        Sums::check_place(place)?;
        let result = Write::from(&mut sums.first, place);
        queue_dot(self, (result, sums.partials.write(), sums.counter.write()), x, y)
    }

    fn cg_decide(&self, scalars: &mut CgScalars<Self>, sums: &Sums) -> Result<(), LinalgError> {
        sums.check(0)?;
        need_room(scalars, 0)?;
        let arguments = (scalars.state.write(), sums.first.read(), sums.settings.read());
        let kernel = Kernel::<Decide>::new("cg_decide");
        // SAFETY: the kernel touches the state, the sums and the settings at the places that the constants name.
        Ok(unsafe { self.launch(&SOLVER.of::<T>(), &kernel, Launch::line(1, 32), arguments) }?)
    }

    fn cg_finish(&self, vectors: CgFinish<'_, T, Self>, sums: &mut Sums) -> Result<(), LinalgError> {
        vectors.check()?;
        let n = vectors.b.len();
        sums.check(n_partials(n))?;
        let CgFinish { q, b, x, z, test } = vectors;
        let (launch, of_block) = sum_launch(n);
        let arguments = (
            sums.last.write(),
            sums.partials.write(),
            sums.counter.write(),
            q.read(),
            b.read(),
            x.read(),
            optional(z),
            optional(test),
            n as u64,
            of_block,
        );
        let kernel = Kernel::<Finish<T>>::new("cg_finish");
        // SAFETY: all vectors have n entries, and there is room for the sums and for six partial sums a block.
        Ok(unsafe { self.launch(&SOLVER.of::<T>(), &kernel, launch, arguments) }?)
    }
}

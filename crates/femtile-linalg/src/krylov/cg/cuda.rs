use femtile_device::cuda::{Header, Kernel, Launch, Program, Read, Specialisation, Write};
use femtile_device::{Buffer, Cuda, Scalar};

use super::{CgBegin, CgDiagonals, CgExtrapolate, CgFinish, CgKernels, CgScalars, CgSums};
use crate::hooks::{CudaHook, Hook};
use crate::vector::cuda::{SUM_THREADS, SUMS, n_tiles, queue_dot, sum_launch};
use crate::{LinalgError, LinearOperator, error::need};

type Scalars = CgScalars<Cuda>;
type Sums = CgSums<Cuda>;

/// The scalars of a solve, also for kernels of other methods.
pub(crate) const STATE: Header = Header { name: "state.cuh", text: include_str!("state.cuh") };
static CG: Program = Program { name: "cg", source: include_str!("cg.cu"), headers: &[SUMS, STATE] };

/// Iterations that are recorded together: enough to hide the cost of starting them on the host, and few
/// enough that idle iterations after the end cost little.
const STRIDE: usize = 8;

/// Number of addends of a sum, as in the kernels.
pub(crate) const ADDENDS: usize = 64;

type Residual<T> =
    (Write<T>, Write<f64>, Write<f64>, Write<u32>, Read<T>, Read<T>, Read<f64>, Read<f64>, u64);
type Direction<T> = (Write<T>, Write<T>, Write<f64>, Read<T>, Read<T>, Read<f64>, Read<f64>, u64);
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

/// Sums of a pass before or after the iterations, at most.
const N_SUMS: usize = 6;
/// Threads of a block of `cg_extrapolate`.
const THREADS: u32 = 256;

fn program<T: Scalar>(has_diagonal: bool) -> Specialisation {
    CG.of::<T>().define("FEMTILE_DIAGONAL", u8::from(has_diagonal)).define("FEMTILE_FLEXIBLE", 0)
}

/// The program for a preconditioner that is not fixed, and so is not diagonal.
fn flexible_program<T: Scalar>() -> Specialisation {
    CG.of::<T>().define("FEMTILE_DIAGONAL", 0).define("FEMTILE_FLEXIBLE", 1)
}

/// Returns the programs of solves with a diagonal, and with another preconditioner that is a fixed map.
pub fn programs<T: Scalar>() -> Vec<Specialisation> {
    vec![program::<T>(true), program::<T>(false)]
}

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    [false, true]
        .into_iter()
        .flat_map(|diagonal| [program::<f32>(diagonal), program::<f64>(diagonal)])
        .chain([flexible_program::<f32>(), flexible_program::<f64>()])
        .collect()
}

/// Sums $p^\mathsf{T} q$ in the kernel that computes q.
pub(crate) struct ProductHook {
    fields: [u64; 7],
    n_rows: usize,
}

impl ProductHook {
    /// Leaves the addends from `place` on in `sums`, for vectors of `n` entries.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when there is no room for them, or the numbers of the solve do not fit.
    pub(crate) fn new(
        device: &Cuda,
        scalars: &Scalars,
        (sums, place): (&Buffer<f64, Cuda>, usize),
        n: usize,
    ) -> Result<Self, LinalgError> {
        need_room(scalars, n)?;
        need("sums", place + ADDENDS, sums.len().min(place + ADDENDS))?;
        let [sums, partials, state] = [sums, &scalars.partials, &scalars.state].map(|b| b.address_on(device));
        let sum = sums? + (place * size_of::<f64>()) as u64;
        let counters = scalars.counters.address_on(device)?;
        Ok(Self { fields: [sum, partials?, counters, state?, 0, 0, 0], n_rows: n })
    }

    fn of_kernels(&self) -> CudaHook<'_> {
        let source = concat!(include_str!("state.cuh"), include_str!("product_hook.cuh"));
        // SAFETY: the arrays are those of a solve, which lives as long as the products with this hook; they hold
        // a partial sum for each block of a kernel with `n_rows` rows.
        unsafe { CudaHook::new(source, self.fields.to_vec(), Some(self.n_rows)).as_product() }
    }
}

/// Refuses numbers of a solve that are not those of vectors of `n` entries.
pub(crate) fn need_room(scalars: &Scalars, n: usize) -> Result<(), LinalgError> {
    let n_partials = CgKernels::<f64>::cg_partials(scalars.state.device(), n);
    need("p_dot_q", ADDENDS, scalars.p_dot_q.len())?;
    need("r_sums", 3 * ADDENDS, scalars.r_sums.len())?;
    need("counters", ADDENDS, scalars.counters.len())?;
    need("state", Scalars::STATE, scalars.state.len())?;
    need("partials", n_partials, scalars.partials.len().min(n_partials))
}

/// The sum of $p^\mathsf{T} q$ without a place to go, for checks that compile operators with it.
pub fn product_hook() -> CudaHook<'static> {
    let source = concat!(include_str!("state.cuh"), include_str!("product_hook.cuh"));
    // SAFETY: no kernel of an operator without rows has a block.
    unsafe { CudaHook::new(source, vec![0; 7], Some(0)).as_product() }
}

impl<T: Scalar> Hook<T> for ProductHook {
    fn cuda(&self) -> Option<CudaHook<'_>> {
        Some(self.of_kernels())
    }
}

impl<T: Scalar> CgKernels<T> for Cuda {
    fn cg_stride(&self) -> usize {
        STRIDE
    }

    fn cg_addends(&self) -> usize {
        ADDENDS
    }

    fn cg_partials(&self, n: usize) -> usize {
        n.div_ceil(CudaHook::ROWS).max(2 * n_tiles(n))
    }

    fn cg_sum_partials(&self, n: usize) -> usize {
        n_sum_partials(n)
    }

    fn cg_extrapolate(&self, vectors: CgExtrapolate<'_, T, Self>, weight: T) -> Result<(), LinalgError> {
        vectors.check()?;
        let CgExtrapolate { x, previous_x, q, previous_q, r } = vectors;
        let n = x.len();
        let arguments =
            (x.write(), previous_x.write(), q.read(), previous_q.write(), r.write(), weight, n as u64);
        let kernel = Kernel::<Extrapolate<T>>::new("cg_extrapolate");
        // SAFETY: all vectors have n entries.
        Ok(unsafe { self.launch(&program::<T>(true), &kernel, Launch::over(n, THREADS), arguments) }?)
    }

    fn cg_begin(
        &self,
        vectors: CgBegin<'_, T, Self>,
        diagonals: CgDiagonals<'_, T, Self>,
        sums: &mut Sums,
    ) -> Result<(), LinalgError> {
        vectors.check(&diagonals)?;
        let n = vectors.b.len();
        sums.check(n_sum_partials(n))?;
        let CgBegin { r, p, start, b, x } = vectors;
        let (launch, of_block) = sum_launch(n);
        let arguments = (
            r.write(),
            p.write(),
            start.map_or(Write::none(), |start| start.write()),
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
        let program = program::<T>(diagonals.m.is_some());
        // SAFETY: all vectors have n entries, and there is room for the sums and for six partial sums a block.
        Ok(unsafe { self.launch(&program, &kernel, launch, arguments) }?)
    }

    fn cg_first_dot(
        &self,
        place: usize,
        x: &Buffer<T, Self>,
        y: &Buffer<T, Self>,
        sums: &mut Sums,
    ) -> Result<(), LinalgError> {
        sums.check(n_sum_partials(x.len()))?;
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
        Ok(unsafe { self.launch(&program::<T>(true), &kernel, Launch::line(1, 32), arguments) }?)
    }

    fn cg_product(
        &self,
        q: &mut Buffer<T, Self>,
        a: &dyn LinearOperator<T, Self>,
        p: &Buffer<T, Self>,
        scalars: &mut Scalars,
    ) -> Result<(), LinalgError> {
        let hook = ProductHook::new(self, scalars, (&scalars.p_dot_q, 0), p.len())?;
        a.apply_with(q, p, &hook)
    }

    /// Nothing: the kernels that need $\alpha$ work it out.
    fn cg_step_length(&self, _scalars: &mut Scalars) -> Result<(), LinalgError> {
        Ok(())
    }

    fn cg_residual(
        &self,
        r: &mut Buffer<T, Self>,
        q: &Buffer<T, Self>,
        inverse_diagonal: Option<&Buffer<T, Self>>,
        scalars: &mut Scalars,
    ) -> Result<(), LinalgError> {
        need("q", r.len(), q.len())?;
        let d = diagonal(inverse_diagonal, r.len())?;
        need_room(scalars, r.len())?;
        let n = r.len();
        let arguments = (
            r.write(),
            scalars.r_sums.write(),
            scalars.partials.write(),
            scalars.counters.write(),
            q.read(),
            d,
            scalars.p_dot_q.read(),
            scalars.state.read(),
            n as u64,
        );
        let kernel = Kernel::<Residual<T>>::new("cg_residual");
        let program = program::<T>(inverse_diagonal.is_some());
        // SAFETY: the vectors have n entries, and there is room for two partial sums a block.
        Ok(unsafe { self.launch(&program, &kernel, Launch::line(n_tiles(n), SUM_THREADS), arguments) }?)
    }

    fn cg_dot(
        &self,
        place: usize,
        x: &Buffer<T, Self>,
        y: &Buffer<T, Self>,
        scalars: &mut Scalars,
    ) -> Result<(), LinalgError> {
        need_room(scalars, x.len())?;
        Scalars::check_place(place)?;
        let result = Write::from(&mut scalars.r_sums, place * ADDENDS);
        queue_dot(self, (result, scalars.partials.write(), scalars.counters.write()), x, y)
    }

    /// Nothing: the first block of `cg_direction` moves the state on.
    fn cg_conjugation(&self, _scalars: &mut Scalars) -> Result<(), LinalgError> {
        Ok(())
    }

    fn cg_direction(
        &self,
        p: &mut Buffer<T, Self>,
        x: &mut Buffer<T, Self>,
        z: &Buffer<T, Self>,
        inverse_diagonal: Option<&Buffer<T, Self>>,
        scalars: &mut Scalars,
    ) -> Result<(), LinalgError> {
        need("x", p.len(), x.len())?;
        need("z", p.len(), z.len())?;
        let d = diagonal(inverse_diagonal, p.len())?;
        need_room(scalars, p.len())?;
        let n = p.len();
        let arguments = (
            p.write(),
            x.write(),
            scalars.state.write(),
            z.read(),
            d,
            scalars.p_dot_q.read(),
            scalars.r_sums.read(),
            n as u64,
        );
        let kernel = Kernel::<Direction<T>>::new("cg_direction");
        let is_flexible = scalars.is_flexible;
        let program =
            if is_flexible { flexible_program::<T>() } else { program::<T>(inverse_diagonal.is_some()) };
        // SAFETY: the vectors have n entries.
        Ok(unsafe { self.launch(&program, &kernel, Launch::line(n_tiles(n), SUM_THREADS), arguments) }?)
    }

    fn cg_finish(&self, vectors: CgFinish<'_, T, Self>, sums: &mut Sums) -> Result<(), LinalgError> {
        vectors.check()?;
        let n = vectors.b.len();
        sums.check(n_sum_partials(n))?;
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
        let program = program::<T>(z.is_none());
        // SAFETY: all vectors have n entries, and there is room for the sums and for six partial sums a block.
        Ok(unsafe { self.launch(&program, &kernel, launch, arguments) }?)
    }
}

/// Partial sums of a pass before or after the iterations over vectors of `n` entries.
fn n_sum_partials(n: usize) -> usize {
    N_SUMS * sum_launch(n).0.grid[0] as usize
}

fn optional<T: Scalar>(vector: Option<&Buffer<T, Cuda>>) -> Read<T> {
    vector.map_or(Read::none(), Buffer::read)
}

/// The inverse diagonal as an argument; none if there is none.
fn diagonal<T: Scalar>(d: Option<&Buffer<T, Cuda>>, n: usize) -> Result<Read<T>, LinalgError> {
    need("inverse_diagonal", n, d.map_or(n, Buffer::len))?;
    Ok(optional(d))
}

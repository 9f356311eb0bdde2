use femtile_device::cuda::{COPY_HEADER, Header, Kernel, Launch, Program, Read, Specialisation, Write};
use femtile_device::{Buffer, Cuda, Element, Scalar};
use femtile_linalg::LinalgError;

use super::{BlockBands, BlockProblem, BlockShape, BlockTridiagonalKernels, MAX_BLOCK, MIN_BLOCK};
use crate::{Algorithm, Stability, Work};

const BLOCK: Header = Header { name: "block.cuh", text: include_str!("block.cuh") };
static THOMAS: Program =
    Program { name: "block", source: include_str!("block.cu"), headers: &[BLOCK, COPY_HEADER] };
static PCR: Program = Program { name: "block_pcr", source: include_str!("block_pcr.cu"), headers: &[BLOCK] };

/// Block rows that kernels have bits for.
const MAX_ROWS: usize = 1 << 27;
const WARP: usize = 32;
/// Threads of a block of each kernel, as the kernels have them.
const SHUFFLE_THREADS: usize = 128;
const SHARED_THREADS: usize = 64;
const PCR_THREADS: usize = 128;
/// Threads of kernels that take a system a thread.
const SYSTEM_THREADS: u32 = 128;

type Thomas<T> = (Write<T>, Read<T>, Read<T>, Read<T>, Read<T>, Write<T>, Write<u64>, u64, u64, u64, u32);
type PcrClear<T> = (Write<T>, u64);
type PcrBegin<T> =
    (Write<T>, Write<T>, Write<T>, Write<T>, Read<T>, Read<T>, Read<T>, Read<T>, u64, u64, u64, u32);
type PcrStep<T> =
    (Write<T>, Write<T>, Write<T>, Write<T>, Read<T>, Read<T>, Read<T>, u64, u64, u64, u32, u32);
type PcrEnd<T> = (Write<T>, Write<u64>, Write<T>, u64, u64, u64, u32);

/// Entries from a block of a stage in shared memory to the next: neighbouring columns of all groups of a warp then lie
/// in different banks, of which there are 32 of 4 bytes.
fn stage_stride<T: Element>(m: usize) -> usize {
    let banks = 32 * 4 / size_of::<T>();
    let is_apart = |stride: &usize| [m, banks - m].contains(&(stride % banks));
    if m == 2 { 6 } else { (m * m..).find(is_apart).unwrap_or(m * m) }
}

/// Rows in shared memory at once.
fn stages(m: usize) -> usize {
    if m <= 5 { 3 } else { 2 }
}

fn groups(m: usize) -> usize {
    WARP / m
}

/// Bytes of shared memory of a block of threads.
fn shared_bytes<T: Element>(m: usize) -> usize {
    let stage = groups(m) * (3 * stage_stride::<T>(m) + m);
    SHARED_THREADS / WARP * (stages(m) * stage + groups(m) * 2 * m) * size_of::<T>()
}

fn specialised<T: Scalar>(program: &'static Program, m: usize, stability: Stability) -> Specialisation {
    let pivoted = u32::from(stability == Stability::PartialPivoting);
    program.of::<T>().define("FEMTILE_M", m).define("FEMTILE_PIVOTED", pivoted)
}

fn thomas_program<T: Scalar>(m: usize, stability: Stability) -> Specialisation {
    specialised::<T>(&THOMAS, m, stability)
        .define("FEMTILE_STRIDE", stage_stride::<T>(m))
        .define("FEMTILE_STAGES", stages(m))
}

/// Programs of this folder for checks that compile them: the smallest and largest blocks, and those that papers use.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    let plain = Stability::Unpivoted;
    let thomas = [MIN_BLOCK, 3, 4, 6, 8, MAX_BLOCK].map(|m| thomas_program::<f64>(m, plain));
    let single = [4, 8, MAX_BLOCK].map(|m| thomas_program::<f32>(m, plain));
    let pivoted = [4, MAX_BLOCK].map(|m| thomas_program::<f64>(m, Stability::PartialPivoting));
    let pcr = [4, MAX_BLOCK].map(|m| specialised::<f64>(&PCR, m, plain));
    thomas.into_iter().chain(single).chain(pivoted).chain(pcr).collect()
}

/// Returns the launch that gives each item M threads.
fn launch(n_items: usize, m: usize, threads: usize) -> Launch {
    Launch::line(n_items.div_ceil(groups(m) * (threads / WARP)), threads as u32)
}

impl<T: Scalar> BlockTridiagonalKernels<T> for Cuda {
    fn block_choice(&self, problem: &BlockProblem) -> Result<Algorithm, LinalgError> {
        match problem.algorithm {
            Algorithm::Auto | Algorithm::Thomas => Ok(Algorithm::ThomasShuffle),
            known @ (Algorithm::ThomasShuffle | Algorithm::ThomasShared | Algorithm::Pcr) => Ok(known),
            other => Err(LinalgError::Setting {
                field: "algorithm",
                message: format!(
                    "a GPU has `thomas-shuffle`, `thomas-shared` and `pcr` for blocks, not `{other}`"
                ),
            }),
        }
    }

    fn block_solve(
        &self,
        problem: &BlockProblem,
        u: &mut Buffer<T, Self>,
        bands: BlockBands<'_, T, Self>,
        d: Option<&Buffer<T, Self>>,
        work: &mut Work<T, Self>,
    ) -> Result<(), LinalgError> {
        let algorithm = BlockTridiagonalKernels::<T>::block_choice(self, problem)?;
        if !problem.check(u, bands, d, work)? {
            return Ok(());
        }
        let problem = &BlockProblem { algorithm, ..*problem };
        let shape = problem.shape;
        if shape.n_rows >= MAX_ROWS {
            let message = format!("{} block rows; a GPU takes less than {MAX_ROWS}", shape.n_rows);
            return Err(LinalgError::Setting { field: "n_rows", message });
        }
        let right = d.map_or(Read::from(u, 0), Buffer::read);
        let (scratch_len, is_pcr) = match problem.algorithm {
            Algorithm::Pcr => (PcrRoom::of(shape).len(), true),
            _ => (shape.band_len(), false),
        };
        if work.scratch.as_ref().is_none_or(|scratch| scratch.len() < scratch_len) {
            work.scratch = Some(Buffer::zeros(self, scratch_len)?);
        }
        let Some(scratch) = work.scratch.as_mut() else { return Ok(()) };
        let job = Job { device: self, problem, right, bands };
        if is_pcr { job.pcr(u, scratch, &mut work.status) } else { job.thomas(u, scratch, &mut work.status) }
    }
}

/// Where cyclic reduction keeps its rows, in entries of one array: two copies of A, C and d, and failed rows.
#[derive(Debug, Clone, Copy)]
struct PcrRoom {
    band: usize,
    vector: usize,
    systems: usize,
}

impl PcrRoom {
    fn of(shape: BlockShape) -> Self {
        Self { band: shape.band_len(), vector: shape.vector_len(), systems: shape.n_systems }
    }

    /// Entries in all: a row's number takes no more than one.
    fn len(self) -> usize {
        self.failed() + self.systems
    }

    /// Where copy 0 or 1 of A, C and d begins.
    fn copy(self, number: usize) -> [usize; 3] {
        let begin = number * (2 * self.band + self.vector);
        [begin, begin + self.band, begin + 2 * self.band]
    }

    fn failed(self) -> usize {
        2 * (2 * self.band + self.vector)
    }
}

/// One solve.
struct Job<'a, T: Scalar> {
    device: &'a Cuda,
    problem: &'a BlockProblem,
    right: Read<T>,
    bands: BlockBands<'a, T, Cuda>,
}

impl<T: Scalar> Job<'_, T> {
    fn thomas(
        &self,
        u: &mut Buffer<T, Cuda>,
        scratch: &mut Buffer<T, Cuda>,
        status: &mut Buffer<u64, Cuda>,
    ) -> Result<(), LinalgError> {
        let (shape, bands) = (self.problem.shape, self.bands);
        let m = shape.block;
        let arguments = (
            u.write(),
            self.right,
            bands.lower.read(),
            bands.diagonal.read(),
            bands.upper.read(),
            scratch.write(),
            status.write(),
            shape.n_systems as u64,
            shape.row_stride() as u64,
            shape.system_stride() as u64,
            shape.n_rows as u32,
        );
        let (name, launch) = match self.problem.algorithm {
            Algorithm::ThomasShared => {
                let launch = launch(shape.n_systems, m, SHARED_THREADS);
                ("block_thomas_shared", launch.shared(shared_bytes::<T>(m)))
            }
            _ => ("block_thomas_shuffle", launch(shape.n_systems, m, SHUFFLE_THREADS)),
        };
        let program = thomas_program::<T>(m, self.problem.stability);
        // SAFETY: u, the right sides and the bands have the lengths of the shape, and so has C*, in the scratch room.
        Ok(unsafe { self.device.launch(&program, &Kernel::<Thomas<T>>::new(name), launch, arguments) }?)
    }

    fn pcr(
        &self,
        u: &mut Buffer<T, Cuda>,
        scratch: &mut Buffer<T, Cuda>,
        status: &mut Buffer<u64, Cuda>,
    ) -> Result<(), LinalgError> {
        let (shape, workspace) = (self.problem.shape, PcrRoom::of(self.problem.shape));
        let program = specialised::<T>(&PCR, shape.block, self.problem.stability);
        let failed = Write::from(scratch, workspace.failed());
        let by_system = Launch::over(shape.n_systems, SYSTEM_THREADS);
        let clear = Kernel::<PcrClear<T>>::new("block_pcr_clear");
        // SAFETY: there is room for a row's number of each system.
        unsafe { self.device.launch(&program, &clear, by_system, (failed, shape.n_systems as u64)) }?;
        self.pcr_begin(&program, scratch, workspace)?;
        let (mut reach, mut from) = (1, 0);
        loop {
            let is_last = 2 * reach >= shape.n_rows;
            self.pcr_step(&program, u, scratch, workspace, (reach, from, is_last))?;
            if is_last {
                break;
            }
            (reach, from) = (2 * reach, 1 - from);
        }
        let end = Kernel::<PcrEnd<T>>::new("block_pcr_end");
        let (n_systems, row_stride, system_stride, n_rows) = self.sizes();
        let arguments = (u.write(), status.write(), failed, n_systems, row_stride, system_stride, n_rows);
        // SAFETY: u has the length of the shape.
        Ok(unsafe { self.device.launch(&program, &end, by_system, arguments) }?)
    }

    fn pcr_begin(
        &self,
        program: &Specialisation,
        scratch: &mut Buffer<T, Cuda>,
        workspace: PcrRoom,
    ) -> Result<(), LinalgError> {
        let (shape, bands) = (self.problem.shape, self.bands);
        let [a, c, d] = workspace.copy(0).map(|begin| Write::from(scratch, begin));
        let (n_systems, row_stride, system_stride, n_rows) = self.sizes();
        let arguments = (
            a,
            c,
            d,
            Write::from(scratch, workspace.failed()),
            bands.lower.read(),
            bands.diagonal.read(),
            bands.upper.read(),
            self.right,
            n_systems,
            row_stride,
            system_stride,
            n_rows,
        );
        let begin = Kernel::<PcrBegin<T>>::new("block_pcr_begin");
        let launch = launch(shape.n_systems * shape.n_rows, shape.block, PCR_THREADS);
        // SAFETY: bands and right sides have the lengths of the shape, and the first copies have room for them.
        Ok(unsafe { self.device.launch(program, &begin, launch, arguments) }?)
    }

    /// From copy `from` to the other one, or to the solution in the last step.
    fn pcr_step(
        &self,
        program: &Specialisation,
        u: &mut Buffer<T, Cuda>,
        scratch: &mut Buffer<T, Cuda>,
        workspace: PcrRoom,
        (reach, from, is_last): (usize, usize, bool),
    ) -> Result<(), LinalgError> {
        let shape = self.problem.shape;
        let [a_to, c_to, d_to] = if is_last {
            [Write::none(), Write::none(), u.write()]
        } else {
            workspace.copy(1 - from).map(|begin| Write::from(scratch, begin))
        };
        let failed = Write::from(scratch, workspace.failed());
        let [a, c, d] = workspace.copy(from).map(|begin| Read::from(scratch, begin));
        let (n_systems, row_stride, system_stride, n_rows) = self.sizes();
        let reach = reach as u32;
        let arguments =
            (a_to, c_to, d_to, failed, a, c, d, n_systems, row_stride, system_stride, n_rows, reach);
        let step = Kernel::<PcrStep<T>>::new("block_pcr_step");
        let launch = launch(shape.n_systems * shape.n_rows, shape.block, PCR_THREADS);
        // SAFETY: both copies have room for all rows, and u has the length of the shape.
        Ok(unsafe { self.device.launch(program, &step, launch, arguments) }?)
    }

    fn sizes(&self) -> (u64, u64, u64, u32) {
        let shape = self.problem.shape;
        let strides = (shape.row_stride() as u64, shape.system_stride() as u64);
        (shape.n_systems as u64, strides.0, strides.1, shape.n_rows as u32)
    }
}

use femtile_device::cuda::{Header, Kernel, Launch, Program, Read, Specialisation, Write};
use femtile_device::{Buffer, Cuda, Scalar};

use super::kernels::{check_component, check_terms};
use super::{Convert, DeviceSum, VectorKernels};
use crate::{LinalgError, error::need};

/// Sums over blocks of a vector, for kernels that end in one.
pub(crate) const SUMS: Header = Header { name: "sums.cuh", text: include_str!("sums.cuh") };
/// Threads of a block of a kernel that sums.
pub(crate) const SUM_THREADS: u32 = 256;

static VECTOR: Program = Program { name: "vector", source: include_str!("vector.cu"), headers: &[SUMS] };
static CONVERT: Program = Program { name: "convert", source: include_str!("convert.cu"), headers: &[] };
/// Bytes that a thread of an update takes: one pack.
const BYTES: usize = 16;
const THREADS: u32 = 256;
/// Entries of a tile, as in the kernels.
const TILE: usize = 2048;
/// A block of a sum takes one tile, or more of them if there would be more blocks than this.
const MANY_BLOCKS: usize = 4096;

/// Several sums at once, for kernels that end in them.
pub(crate) const SEVERAL_SUMS: Header =
    Header { name: "several_sums.cuh", text: include_str!("several_sums.cuh") };
/// Blocks of a kernel that ends in several sums, at most: few enough that the last one soon has added theirs.
const SUMMING_BLOCKS: usize = 512;

/// Number of tiles of a vector of `n` entries, which is the number of blocks of a kernel with one tile per
/// block.
pub(crate) fn n_tiles(n: usize) -> usize {
    n.div_ceil(TILE)
}

/// The buffers of a sum: the results, room for partial sums, a counter of finished blocks.
pub(crate) type Sum = (Write<f64>, Write<f64>, Write<u32>);

type Fill<T> = (Write<T>, T, u64);
type Copy<T> = (Write<T>, Read<T>, u64);
type Axpby<T> = (Write<T>, T, Read<T>, T, u64);
type Combine<T> = (Write<T>, T, Read<T>, T, Read<T>, T, Read<T>, T, Read<T>, u64);
type OfComponent<T> = (Write<T>, Read<T>, u64, u64, u64);
type ScaleBy<T> = (Write<T>, Read<T>, Read<T>, u64);
type Dot<T> = (Write<f64>, Write<f64>, Write<u32>, Read<T>, Read<T>, u64, u32);
type SubtractMean<T> = (Write<T>, Read<f64>, u64, u64);
type Total<T> = (Write<f64>, Write<f64>, Write<u32>, Read<T>, u64, u32);

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    let own = [VECTOR.of::<f32>(), VECTOR.of::<f64>()];
    let conversions = [
        conversion::<f32, f64>(),
        conversion::<f64, f32>(),
        conversion::<f32, f32>(),
        conversion::<f64, f64>(),
    ];
    own.into_iter().chain(conversions).chain(super::scan::specialisations()).collect()
}

/// Returns the programs of vectors in f64 and of their copies in f32, as solves use them.
pub fn programs() -> Vec<Specialisation> {
    vec![VECTOR.of::<f64>(), conversion::<f32, f64>(), conversion::<f64, f32>(), VECTOR.of::<f32>()]
}

/// Returns the program that converts vectors to the precision H.
pub fn conversion<H: Scalar, T: Scalar>() -> Specialisation {
    CONVERT.of::<H>().define("FEMTILE_FROM", T::C_NAME)
}

fn update_launch<T: Scalar>(n: usize) -> Launch {
    Launch::over((n * size_of::<T>()).div_ceil(BYTES), THREADS)
}

/// Returns the launch of a sum and its tiles per block. Both depend on n alone, and so do the bits of the sum.
pub(crate) fn sum_launch(n: usize) -> (Launch, u32) {
    let of_block = (n_tiles(n) / MANY_BLOCKS).max(1);
    (Launch::line(n_tiles(n).div_ceil(of_block), SUM_THREADS), of_block as u32)
}

/// Queues $x^\mathsf{T} y$ into a number on the device; `partials` holds one number per tile, and
/// `counter` is zero.
pub(crate) fn queue_dot<T: Scalar>(
    device: &Cuda,
    (result, partials, counter): Sum,
    x: &Buffer<T, Cuda>,
    y: &Buffer<T, Cuda>,
) -> Result<(), LinalgError> {
    need("y", x.len(), y.len())?;
    let (launch, of_block) = sum_launch(x.len());
    let arguments = (result, partials, counter, x.read(), y.read(), x.len() as u64, of_block);
    // SAFETY: x and y have the length given; one partial sum is written per block.
    Ok(unsafe { device.launch(&VECTOR.of::<T>(), &Kernel::<Dot<T>>::new("vector_dot"), launch, arguments) }?)
}

/// Queues $\sum_i x_i$ into a number on the device, with room as for [`queue_dot`].
fn queue_sum<T: Scalar>(
    device: &Cuda,
    (result, partials, counter): Sum,
    x: &Buffer<T, Cuda>,
) -> Result<(), LinalgError> {
    let (launch, of_block) = sum_launch(x.len());
    let arguments = (result, partials, counter, x.read(), x.len() as u64, of_block);
    let kernel = Kernel::<Total<T>>::new("vector_sum");
    // SAFETY: x has the length given; one partial sum is written per block.
    Ok(unsafe { device.launch(&VECTOR.of::<T>(), &kernel, launch, arguments) }?)
}

/// Runs a kernel that sums n entries and brings the result to the host.
fn summed(
    device: &Cuda,
    n: usize,
    queue: impl FnOnce(Sum) -> Result<(), LinalgError>,
) -> Result<f64, LinalgError> {
    Ok(sums_of_blocks(device, 1, sum_launch(n).0.grid[0] as usize, queue)?[0])
}

fn sums_of_blocks(
    device: &Cuda,
    n_sums: usize,
    n_blocks: usize,
    queue: impl FnOnce(Sum) -> Result<(), LinalgError>,
) -> Result<Vec<f64>, LinalgError> {
    let mut results = Buffer::<f64, Cuda>::zeros(device, n_sums)?;
    let mut partials = Buffer::<f64, Cuda>::zeros(device, n_sums * n_blocks)?;
    let mut counter = Buffer::zeros(device, 1)?;
    queue((results.write(), partials.write(), counter.write()))?;
    Ok(results.to_host()?)
}

/// Runs a kernel that passes over vectors of `n` entries and ends in `n_sums` sums; brings these to the host.
///
/// The launch that it gets has room for that many partial sums of each block and depends on n alone, as do the bits.
pub(crate) fn several_sums(
    device: &Cuda,
    n_sums: usize,
    n: usize,
    queue: impl FnOnce(Launch, Sum) -> Result<(), LinalgError>,
) -> Result<Vec<f64>, LinalgError> {
    let n_blocks = n_tiles(n).min(SUMMING_BLOCKS);
    sums_of_blocks(device, n_sums, n_blocks, |sums| queue(Launch::line(n_blocks, SUM_THREADS), sums))
}

impl<T: Scalar> VectorKernels<T> for Cuda {
    fn fill(&self, x: &mut Buffer<T, Self>, alpha: T) -> Result<(), LinalgError> {
        let n = x.len();
        // SAFETY: the kernel writes the n entries of x.
        Ok(unsafe {
            self.launch(
                &VECTOR.of::<T>(),
                &Kernel::<Fill<T>>::new("vector_fill"),
                update_launch::<T>(n),
                (x.write(), alpha, n as u64),
            )
        }?)
    }

    fn copy(&self, y: &mut Buffer<T, Self>, x: &Buffer<T, Self>) -> Result<(), LinalgError> {
        need("x", y.len(), x.len())?;
        let n = x.len();
        let arguments = (y.write(), x.read(), n as u64);
        // SAFETY: both vectors have n entries.
        Ok(unsafe {
            self.launch(
                &VECTOR.of::<T>(),
                &Kernel::<Copy<T>>::new("vector_copy"),
                update_launch::<T>(n),
                arguments,
            )
        }?)
    }

    fn axpby(
        &self,
        y: &mut Buffer<T, Self>,
        alpha: T,
        x: &Buffer<T, Self>,
        beta: T,
    ) -> Result<(), LinalgError> {
        need("x", y.len(), x.len())?;
        let n = x.len();
        let arguments = (y.write(), alpha, x.read(), beta, n as u64);
        // SAFETY: both vectors have n entries.
        Ok(unsafe {
            self.launch(
                &VECTOR.of::<T>(),
                &Kernel::<Axpby<T>>::new("vector_axpby"),
                update_launch::<T>(n),
                arguments,
            )
        }?)
    }

    fn combine(&self, y: &mut Buffer<T, Self>, terms: &[(T, &Buffer<T, Self>)]) -> Result<(), LinalgError> {
        check_terms(y.len(), terms)?;
        let n = y.len();
        let term = |k: usize| terms.get(k).map_or((T::ZERO, Read::none()), |(alpha, x)| (*alpha, x.read()));
        let [(a0, x0), (a1, x1), (a2, x2), (a3, x3)] = std::array::from_fn(term);
        let arguments = (y.write(), a0, x0, a1, x1, a2, x2, a3, x3, n as u64);
        let kernel = Kernel::<Combine<T>>::new("vector_combine");
        // SAFETY: all vectors have n entries, and those that are not there are not read.
        Ok(unsafe { self.launch(&VECTOR.of::<T>(), &kernel, update_launch::<T>(n), arguments) }?)
    }

    fn scale_by(
        &self,
        z: &mut Buffer<T, Self>,
        d: &Buffer<T, Self>,
        r: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need("d", z.len(), d.len())?;
        need("r", z.len(), r.len())?;
        let n = z.len();
        let arguments = (z.write(), d.read(), r.read(), n as u64);
        // SAFETY: all three vectors have n entries.
        Ok(unsafe {
            self.launch(
                &VECTOR.of::<T>(),
                &Kernel::<ScaleBy<T>>::new("vector_scale_by"),
                update_launch::<T>(n),
                arguments,
            )
        }?)
    }

    fn take_component(
        &self,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        (component, components): (usize, usize),
    ) -> Result<(), LinalgError> {
        check_component(y.len(), x.len(), (component, components))?;
        let n = y.len();
        let arguments = (y.write(), x.read(), n as u64, component as u64, components as u64);
        let kernel = Kernel::<OfComponent<T>>::new("vector_take_component");
        // SAFETY: y has n entries, and x one for each of them and each component.
        Ok(unsafe { self.launch(&VECTOR.of::<T>(), &kernel, Launch::over(n, THREADS), arguments) }?)
    }

    fn put_component(
        &self,
        x: &mut Buffer<T, Self>,
        y: &Buffer<T, Self>,
        (component, components): (usize, usize),
    ) -> Result<(), LinalgError> {
        check_component(y.len(), x.len(), (component, components))?;
        let n = y.len();
        let arguments = (x.write(), y.read(), n as u64, component as u64, components as u64);
        let kernel = Kernel::<OfComponent<T>>::new("vector_put_component");
        // SAFETY: y has n entries, and x one for each of them and each component.
        Ok(unsafe { self.launch(&VECTOR.of::<T>(), &kernel, Launch::over(n, THREADS), arguments) }?)
    }

    fn dot(&self, x: &Buffer<T, Self>, y: &Buffer<T, Self>) -> Result<f64, LinalgError> {
        summed(self, x.len(), |sum| queue_dot(self, sum, x, y))
    }

    fn dot_in(
        &self,
        sum: &mut DeviceSum<Self>,
        x: &Buffer<T, Self>,
        y: &Buffer<T, Self>,
    ) -> Result<f64, LinalgError> {
        sum.check(x.len())?;
        queue_dot(self, (sum.result.write(), sum.partials.write(), sum.counter.write()), x, y)?;
        let mut found = [0.0];
        sum.result.download(&mut found)?;
        Ok(found[0])
    }

    fn sum(&self, x: &Buffer<T, Self>) -> Result<f64, LinalgError> {
        summed(self, x.len(), |sum| queue_sum(self, sum, x))
    }

    fn sum_into(&self, sum: &mut DeviceSum<Self>, x: &Buffer<T, Self>) -> Result<(), LinalgError> {
        sum.check(x.len())?;
        need("sum", 1, sum.result.len())?;
        queue_sum(self, (sum.result.write(), sum.partials.write(), sum.counter.write()), x)
    }

    fn subtract_mean(
        &self,
        x: &mut Buffer<T, Self>,
        sum: &DeviceSum<Self>,
        n: usize,
    ) -> Result<(), LinalgError> {
        let n_here = x.len();
        need("sum", 1, sum.result.len())?;
        let arguments = (x.write(), sum.result.read(), n as u64, n_here as u64);
        let kernel = Kernel::<SubtractMean<T>>::new("vector_subtract_mean");
        // SAFETY: x has as many entries as are passed last, and the sum is one number.
        Ok(unsafe { self.launch(&VECTOR.of::<T>(), &kernel, update_launch::<T>(n_here), arguments) }?)
    }
}

impl<T: Scalar, H: Scalar> Convert<T, H> for Cuda {
    fn convert(&self, y: &mut Buffer<H, Self>, alpha: f64, x: &Buffer<T, Self>) -> Result<(), LinalgError> {
        need("x", y.len(), x.len())?;
        let arguments = (y.write(), alpha, x.read(), x.len() as u64);
        let kernel = Kernel::<(Write<H>, f64, Read<T>, u64)>::new("vector_convert");
        // SAFETY: both vectors have as many entries.
        Ok(unsafe { self.launch(&conversion::<H, T>(), &kernel, Launch::over(x.len(), THREADS), arguments) }?)
    }

    fn gather(
        &self,
        y: &mut Buffer<H, Self>,
        alpha: f64,
        x: &Buffer<T, Self>,
        order: &Buffer<u32, Self>,
    ) -> Result<(), LinalgError> {
        need("x", y.len(), x.len())?;
        need("order", y.len(), order.len())?;
        let n = x.len();
        let arguments = (y.write(), alpha, x.read(), order.read(), n as u64);
        let kernel = Kernel::<(Write<H>, f64, Read<T>, Read<u32>, u64)>::new("vector_gather");
        // SAFETY: both vectors and the order have n entries; numbers past the last one are not followed.
        Ok(unsafe { self.launch(&conversion::<H, T>(), &kernel, Launch::over(n, THREADS), arguments) }?)
    }
}

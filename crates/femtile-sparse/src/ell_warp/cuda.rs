use femtile_device::cuda::{Kernel, Launch, Program, Read, STREAM_HEADER, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Element, Reference, Scalar};
use femtile_linalg::hooks::{CudaHook, Hook};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, need_product};

use super::columns::Columns;
use super::slices::{LONG, WARP};
use super::{EllWarp, EllWarpConfig, EllWarpKernels, IndexKind, Reduction, convert};
use crate::{Csr, Offsets};

static ELL_WARP: Program =
    Program { name: "ell_warp", source: include_str!("ell_warp.cu"), headers: &[STREAM_HEADER] };
static CONVERT: Program =
    Program { name: "ell_warp_convert", source: include_str!("convert.cu"), headers: &[] };

/// Threads of a block of a conversion.
const THREADS: u32 = 256;
/// Columns of a slice that a warp has under way, as measured on an H200: more take registers from other warps, and
/// the last ones of a row are often left out.
pub(crate) const fn batch(lanes: usize, delta: bool) -> usize {
    match (lanes, delta) {
        (..=WARP, _) => 5,
        (_, false) => 4,
        (_, true) => 3,
    }
}

type Apply<T, V> = (Write<T>, Read<V>, Read<T>, Structure, Structure, Structure);
type Refill<T, O> =
    (Write<T>, Read<u32>, Read<u32>, Read<u32>, Read<u32>, Read<u32>, Read<O>, Read<T>, u64, u64, u32);
type Renumber<T> = (Write<T>, Read<T>, Read<u32>, u64);

/// Compile-time parameters of the product kernel.
struct Variant {
    lanes: usize,
    folded: bool,
    scatters: bool,
    delta: bool,
    shared_sums: bool,
}

impl Variant {
    fn program<T: Scalar, V: Scalar>(&self, hook: &CudaHook<'_>) -> Specialisation {
        ELL_WARP
            .of::<T>()
            .define("FEMTILE_V", V::C_NAME)
            .define("FEMTILE_LANES", self.lanes)
            .define(
                "FEMTILE_BATCH",
                // Values of fewer bits leave registers to more columns.
                if size_of::<V>() < size_of::<T>() { 5 } else { batch(self.lanes, self.delta) },
            )
            .define("FEMTILE_LONG", LONG)
            .define("FEMTILE_FOLDED", u8::from(self.folded))
            .define("FEMTILE_SCATTERS", u8::from(self.scatters))
            .define("FEMTILE_DELTA", u8::from(self.delta))
            .define("FEMTILE_SHARED_SUMS", u8::from(self.shared_sums))
            .header("hook.cuh", hook.source())
    }
}

fn new_values<T: Scalar, O: Element>() -> Specialisation {
    CONVERT.of::<T>().define("FEMTILE_OFFSET", O::C_NAME)
}

/// The programs of this folder with a hook, for checks that compile all of them.
pub(crate) fn specialisations(hook: &CudaHook<'_>) -> Vec<Specialisation> {
    let plain = Variant { lanes: 32, folded: false, scatters: false, delta: false, shared_sums: false };
    let variants = [
        Variant { lanes: 64, delta: true, ..plain },
        Variant { lanes: 64, delta: true, scatters: true, ..plain },
        Variant { folded: true, scatters: true, shared_sums: true, ..plain },
        Variant { lanes: 64, folded: true, delta: true, scatters: true, ..plain },
        plain,
    ];
    let products = variants.iter().flat_map(|variant| {
        [
            variant.program::<f64, f64>(hook),
            variant.program::<f32, f32>(hook),
            variant.program::<f64, f32>(hook),
        ]
    });
    let converts = [
        new_values::<f32, u32>(),
        new_values::<f32, u64>(),
        new_values::<f64, u32>(),
        new_values::<f64, u64>(),
    ];
    products.chain(converts).chain(convert::cuda::specialisations()).collect()
}

fn address<E: Element>(buffer: &Buffer<E, Cuda>) -> u64 {
    buffer.memory().address()
}

impl<T: Scalar, V: Scalar> EllWarp<T, Cuda, V> {
    fn variant(&self) -> Variant {
        let EllWarpConfig { lanes, indices, reduction, .. } = self.config;
        let folded = self.layout.shapes.is_some();
        Variant {
            lanes,
            folded,
            scatters: self.scatters().is_some(),
            delta: indices == IndexKind::Delta,
            shared_sums: folded && reduction == Reduction::Shared,
        }
    }

    /// `struct Layout` of the kernels; the first blocks take nothing but long rows.
    fn layout_argument(&self, n_dedicated: usize) -> Structure {
        let (firsts, folds) = self.layout.shapes.as_ref().map_or((0, 0), |(a, b)| (address(a), address(b)));
        Structure(vec![
            address(&self.layout.starts),
            firsts,
            folds,
            self.scatters().map_or(0, address),
            self.layout.longs.as_ref().map_or(0, address),
            self.layout.n_slices() as u64,
            self.n_rows as u64,
            self.n_longs() as u64,
            n_dedicated as u64,
        ])
    }

    fn n_longs(&self) -> usize {
        self.layout.longs.as_ref().map_or(0, Buffer::len)
    }

    /// `struct Columns` of the kernels.
    fn columns_argument(&self) -> Structure {
        Structure(match &*self.columns {
            Columns::Full(columns) => vec![address(columns), 0],
            Columns::Delta { words, starts, bases } => vec![address(words), address(starts), address(bases)],
        })
    }

    /// A block for each long row and a warp for each slice, but no more blocks than a hook allows: then all blocks take
    /// both in turn. The number of blocks for long rows comes second.
    fn launch(&self, hook: &CudaHook<'_>) -> (Launch, usize) {
        let threads = self.config.block_threads;
        let blocks = (self.layout.n_slices() * WARP).div_ceil(threads as usize) + self.n_longs();
        let most = self.n_rows.div_ceil(CudaHook::ROWS);
        if hook == &CudaHook::none() || blocks <= most {
            (Launch::line(blocks, threads), self.n_longs())
        } else {
            (Launch::line(most, threads), 0)
        }
    }
}

fn refill<T: Scalar, V: Scalar, O: Element>(
    a: &mut EllWarp<T, Cuda, V>,
    csr: &Csr<V, Cuda>,
    offsets: &Buffer<O, Cuda>,
) -> Result<(), LinalgError> {
    let (n_slices, n_rows, lanes) = (a.layout.n_slices(), a.n_rows as u64, a.config.lanes as u32);
    let optional = |buffer: Option<&Buffer<u32, Cuda>>| buffer.map_or(Read::none(), Buffer::read);
    let (firsts, folds) = match &a.layout.shapes {
        Some((firsts, folds)) => (firsts.read(), folds.read()),
        None => (Read::none(), Read::none()),
    };
    let arguments = (
        a.values.write(),
        a.layout.starts.read(),
        firsts,
        folds,
        optional(a.layout.rows.as_ref()),
        optional(a.entries.as_deref()),
        offsets.read(),
        csr.values().read(),
        n_slices as u64,
        n_rows,
        lanes,
    );
    let kernel = Kernel::<Refill<V, O>>::new("ell_warp_refill");
    let launch = Launch::over(n_slices * WARP, THREADS);
    // SAFETY: the layout was made with the matrix; the pattern of `csr` has its rows and non-zeros, and an entry is
    // read only where its row has that many.
    Ok(unsafe { csr.values().device().launch(&new_values::<V, O>(), &kernel, launch, arguments) }?)
}

fn renumber<T: Scalar, V: Scalar>(
    kernel: &'static str,
    to: &mut Buffer<T, Cuda>,
    from: &Buffer<T, Cuda>,
    a: &EllWarp<T, Cuda, V>,
) -> Result<(), LinalgError> {
    a.need_rows(to, from)?;
    let Some(rows) = a.numbering() else { return a.values.device().copy(to, from) };
    let n = rows.len();
    let arguments = (to.write(), from.read(), rows.read(), n as u64);
    let launch = Launch::over(n, THREADS);
    // SAFETY: both vectors have an entry for each row, and rows are a permutation.
    Ok(unsafe {
        rows.device().launch(&new_values::<T, u32>(), &Kernel::<Renumber<T>>::new(kernel), launch, arguments)
    }?)
}

impl<T: Scalar, V: Scalar> EllWarpKernels<T, V> for Cuda {
    const LANES: &'static [usize] = &[WARP, 2 * WARP];

    fn ell_warp_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &EllWarp<T, Self, V>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        need_product([a.n_rows, a.n_cols], y.len(), x.len())?;
        let hook = CudaHook::of(hook, [a.n_rows, a.n_cols])?;
        let variant = a.variant();
        let (mut launch, n_dedicated) = a.launch(&hook);
        if variant.shared_sums {
            launch = launch.shared(a.config.block_threads as usize * size_of::<T>());
        }
        let program = variant.program::<T, V>(&hook);
        let (layout, columns) = (a.layout_argument(n_dedicated), a.columns_argument());
        let arguments = (y.write(), a.values.read(), x.read(), layout, columns, hook.fields());
        let kernel = Kernel::<Apply<T, V>>::new("ell_warp_apply");
        // SAFETY: layout and columns were checked when the matrix was made, the lengths of x and y above;
        // the creator of the hook promises that its accesses are sound.
        Ok(unsafe { self.launch(&program, &kernel, launch, arguments) }?)
    }

    fn ell_warp_convert(
        &self,
        csr: &Csr<V, Self>,
        config: &EllWarpConfig,
    ) -> Result<EllWarp<T, Self, V>, LinalgError> {
        config.check(<Self as EllWarpKernels<T, V>>::LANES, csr.n_rows(), csr.n_cols())?;
        let Some(window) = convert::window(config, csr.n_rows()) else {
            return EllWarp::from_csr(self, &csr.copy_to(&Reference)?, config);
        };
        let mut made = match csr.offsets() {
            Offsets::Narrow(offsets) => convert::cuda::slices(csr, offsets, config, window),
            Offsets::Wide(offsets) => convert::cuda::slices(csr, offsets, config, window),
        }?;
        self.ell_warp_refill(&mut made, csr)?;
        Ok(made)
    }

    fn ell_warp_stored(&self, csr: &Csr<V, Self>, config: &EllWarpConfig) -> Result<usize, LinalgError> {
        config.check(<Self as EllWarpKernels<T, V>>::LANES, csr.n_rows(), csr.n_cols())?;
        match csr.offsets() {
            Offsets::Narrow(offsets) => convert::cuda::stored(csr, offsets, config),
            Offsets::Wide(offsets) => convert::cuda::stored(csr, offsets, config),
        }
    }

    fn ell_warp_refill(&self, a: &mut EllWarp<T, Self, V>, csr: &Csr<V, Self>) -> Result<(), LinalgError> {
        a.need_pattern_of(csr)?;
        match csr.offsets() {
            Offsets::Narrow(offsets) => refill(a, csr, offsets),
            Offsets::Wide(offsets) => refill(a, csr, offsets),
        }
    }

    fn ell_warp_sort(
        &self,
        to: &mut Buffer<T, Self>,
        from: &Buffer<T, Self>,
        a: &EllWarp<T, Self, V>,
    ) -> Result<(), LinalgError> {
        renumber("ell_warp_sort", to, from, a)
    }

    fn ell_warp_unsort(
        &self,
        to: &mut Buffer<T, Self>,
        from: &Buffer<T, Self>,
        a: &EllWarp<T, Self, V>,
    ) -> Result<(), LinalgError> {
        renumber("ell_warp_unsort", to, from, a)
    }
}

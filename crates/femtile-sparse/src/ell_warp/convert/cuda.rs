use std::marker::PhantomData;
use std::sync::Arc;

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Element, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::scan;

use crate::Csr;
use crate::ell_warp::columns::{Columns, narrow_words};
use crate::ell_warp::slices::{Slices, WARP, narrow_columns, slices_of_blocks};
use crate::ell_warp::{EllWarp, EllWarpConfig, IndexKind, Layout};

static SLICES: Program = Program { name: "ell_warp_slices", source: include_str!("slices.cu"), headers: &[] };

/// Threads of a block.
const THREADS: u32 = 256;
/// Rows that a block sorts at least, in whole windows; threads that do so at most.
const SORTED: usize = 1024;

type Lengths<O> = (Write<u32>, Read<O>, u64);
type Order = (Write<u32>, Read<u32>, u64, u32, u32);
type Widths = (Write<u32>, Structure);
type Sizes = (Write<u32>, Write<u32>, Read<u32>, Structure);
type FullColumns = (Write<u32>, Read<u32>, Structure);
type DeltaColumns = (Write<u16>, Read<u32>, Read<u32>, Read<u32>, Structure);

fn program<O: Element>() -> Specialisation {
    SLICES.of::<O>()
}

/// Returns the program that finds the slices of a matrix of fewer than 2³² non-zeros.
pub fn narrow_program() -> Specialisation {
    program::<u32>()
}

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    vec![program::<u32>(), program::<u64>()]
}

/// Numbers of 32 bits on the device.
type Numbers = Buffer<u32, Cuda>;

/// A matrix on its way from rows to slices.
struct Conversion<'a, O: Element> {
    device: &'a Cuda,
    program: Specialisation,
    offsets: &'a Buffer<O, Cuda>,
    columns: &'a Numbers,
    rows: Option<Numbers>,
    n_rows: usize,
    n_slices: usize,
    lanes: usize,
}

/// The matrix in slices of rows that are sorted within windows, its values still 0.
///
/// $$ w_s = \max_{p \in s} |r_p|, \qquad b_s = \sum_{t < s} w_t $$
///
/// Entry $k$ of the row $r_p$ at place $p$ of slice $s$ goes to column $b_s + k$.
///
/// # Shapes
/// `offsets: [n_rows + 1]`, those of `csr`; `window` as [`super::window`] gives it.
/// # Cost
/// Reads offsets three times and columns once, for distances each once more; writes the columns that are
/// stored. Waits for the device once, to learn how many they are.
/// # Errors
/// [`LinalgError::Setting`] when slices or distances have 2³² columns or more; errors of the device.
pub(in crate::ell_warp) fn slices<T: Scalar, V: Scalar, O: Element>(
    csr: &Csr<V, Cuda>,
    offsets: &Buffer<O, Cuda>,
    config: &EllWarpConfig,
    window: usize,
) -> Result<EllWarp<T, Cuda, V>, LinalgError> {
    let (device, n_rows, lanes) = (csr.values().device(), csr.n_rows(), config.lanes);
    let (conversion, lengths) = Conversion::begin(csr, offsets, lanes, window)?;
    let widths = conversion.widths()?;
    let mut totals = Buffer::zeros(device, 2)?;
    let starts = scan::starts(device, &widths, &mut totals, 0)?;
    let (columns, totals) = match config.indices {
        IndexKind::Full => (None, totals.to_host()?),
        IndexKind::Delta => {
            let (sizes, bases) = conversion.sizes(&widths)?;
            let starts = scan::starts(device, &sizes, &mut totals, 1)?;
            (Some((starts, bases)), totals.to_host()?)
        }
    };
    let n_stored = narrow_columns(totals[0], lanes)? as usize * lanes;
    let columns = match columns {
        None => Columns::Full(conversion.numbers(&starts, n_stored)?),
        Some((starts, bases)) => {
            let n_words = narrow_words(totals[1])? as usize * lanes;
            let words = conversion.distances(&starts, &bases, &widths, n_words)?;
            Columns::Delta { words, starts, bases }
        }
    };
    let of_blocks = slices_of_blocks(n_rows, config);
    let layout = Layout { starts, shapes: None, rows: conversion.rows, longs: None, of_blocks };
    Ok(EllWarp {
        n_rows,
        n_cols: csr.n_cols(),
        n_nonzeros: csr.n_nonzeros(),
        config: *config,
        layout: Arc::new(layout),
        columns: Arc::new(columns),
        values: Buffer::zeros(device, n_stored)?,
        lengths: Arc::new(lengths),
        entries: None,
        vectors: PhantomData,
    })
}

/// Entries that [`slices`] would store, padding included.
///
/// # Errors
/// As [`slices`].
pub(in crate::ell_warp) fn stored<V: Scalar, O: Element>(
    csr: &Csr<V, Cuda>,
    offsets: &Buffer<O, Cuda>,
    config: &EllWarpConfig,
) -> Result<usize, LinalgError> {
    let (device, lanes) = (csr.values().device(), config.lanes);
    let Some(window) = super::window(config, csr.n_rows()) else {
        let (_, lengths) = Conversion::begin(csr, offsets, lanes, 1)?;
        return Ok(Slices::new(&lengths.to_host()?, config)?.n_stored());
    };
    let (conversion, _) = Conversion::begin(csr, offsets, lanes, window)?;
    let mut totals = Buffer::zeros(device, 1)?;
    scan::starts(device, &conversion.widths()?, &mut totals, 0)?;
    Ok(narrow_columns(totals.to_host()?[0], lanes)? as usize * lanes)
}

impl<'a, O: Element> Conversion<'a, O> {
    /// Sorts rows within windows, or leaves them where the window is 1; gives their lengths beside.
    fn begin<V: Scalar>(
        csr: &'a Csr<V, Cuda>,
        offsets: &'a Buffer<O, Cuda>,
        lanes: usize,
        window: usize,
    ) -> Result<(Self, Numbers), LinalgError> {
        let n_rows = csr.n_rows();
        let mut conversion = Self {
            device: csr.values().device(),
            program: program::<O>(),
            offsets,
            columns: csr.columns(),
            rows: None,
            n_rows,
            n_slices: n_rows.div_ceil(lanes),
            lanes,
        };
        let lengths = conversion.lengths()?;
        if window > 1 {
            conversion.rows = Some(conversion.order(&lengths, window)?);
        }
        Ok((conversion, lengths))
    }

    /// `struct Matrix` of the kernels.
    fn matrix(&self) -> Structure {
        Structure(vec![
            self.offsets.memory().address(),
            self.columns.memory().address(),
            self.rows.as_ref().map_or(0, |rows| rows.memory().address()),
            self.n_rows as u64,
            self.n_slices as u64,
            self.lanes as u64,
        ])
    }

    /// As many blocks as give each slice to a warp.
    fn warps(&self) -> Launch {
        Launch::over(self.n_slices * WARP, THREADS)
    }

    /// Entries of each row.
    fn lengths(&self) -> Result<Numbers, LinalgError> {
        let mut lengths = Buffer::zeros(self.device, self.n_rows)?;
        let arguments = (lengths.write(), self.offsets.read(), self.n_rows as u64);
        let kernel = Kernel::<Lengths<O>>::new("ell_warp_lengths");
        // SAFETY: there is an offset more than rows.
        unsafe { self.device.launch(&self.program, &kernel, Launch::over(self.n_rows, THREADS), arguments) }?;
        Ok(lengths)
    }

    /// The row at each place.
    fn order(&self, lengths: &Numbers, window: usize) -> Result<Numbers, LinalgError> {
        let mut rows = Buffer::zeros(self.device, self.n_rows)?;
        let tile = window.max(SORTED);
        let arguments = (rows.write(), lengths.read(), self.n_rows as u64, window as u32, tile as u32);
        let kernel = Kernel::<Order>::new("ell_warp_order");
        let launch = Launch::line(self.n_rows.div_ceil(tile), SORTED.min(tile / 2) as u32)
            .shared(tile * size_of::<u64>());
        // SAFETY: the shared memory of a block holds the keys of its rows; both arrays have an entry for each row.
        unsafe { self.device.launch(&self.program, &kernel, launch, arguments) }?;
        Ok(rows)
    }

    /// Columns of each slice.
    fn widths(&self) -> Result<Numbers, LinalgError> {
        let mut widths = Buffer::zeros(self.device, self.n_slices)?;
        let kernel = Kernel::<Widths>::new("ell_warp_widths");
        let arguments = (widths.write(), self.matrix());
        // SAFETY: the matrix was checked when it was made, and rows are a permutation.
        unsafe { self.device.launch(&self.program, &kernel, self.warps(), arguments) }?;
        Ok(widths)
    }

    /// Columns of words of each slice, and its smallest column.
    fn sizes(&self, widths: &Numbers) -> Result<(Numbers, Numbers), LinalgError> {
        let mut sizes = Buffer::zeros(self.device, self.n_slices)?;
        let mut bases = Buffer::zeros(self.device, self.n_slices)?;
        let arguments = (sizes.write(), bases.write(), widths.read(), self.matrix());
        let kernel = Kernel::<Sizes>::new("ell_warp_sizes");
        // SAFETY: as above; each array has an entry for each slice.
        unsafe { self.device.launch(&self.program, &kernel, self.warps(), arguments) }?;
        Ok((sizes, bases))
    }

    /// The columns that are stored, as numbers.
    fn numbers(&self, starts: &Numbers, n_stored: usize) -> Result<Numbers, LinalgError> {
        let mut columns = Buffer::zeros(self.device, n_stored)?;
        let arguments = (columns.write(), starts.read(), self.matrix());
        let kernel = Kernel::<FullColumns>::new("ell_warp_columns");
        // SAFETY: the starts end with the columns that there is room for.
        unsafe { self.device.launch(&self.program, &kernel, self.warps(), arguments) }?;
        Ok(columns)
    }

    /// The columns that are stored, as distances where they fit.
    fn distances(
        &self,
        starts: &Numbers,
        bases: &Numbers,
        widths: &Numbers,
        n_words: usize,
    ) -> Result<Buffer<u16, Cuda>, LinalgError> {
        let mut words = Buffer::zeros(self.device, n_words)?;
        let arguments = (words.write(), starts.read(), bases.read(), widths.read(), self.matrix());
        let kernel = Kernel::<DeltaColumns>::new("ell_warp_distances");
        // SAFETY: the starts end with the words that there is room for; a slice has one or two words an
        // entry.
        unsafe { self.device.launch(&self.program, &kernel, self.warps(), arguments) }?;
        Ok(words)
    }
}

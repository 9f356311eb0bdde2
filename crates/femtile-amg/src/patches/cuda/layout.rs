//! Setup of the patch smoother for a matrix on a GPU.

use std::cell::RefCell;

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::precondition::polynomial::largest_from;
use femtile_linalg::vector::scan;
use femtile_sparse::csr::Csr;

use crate::cuda::setup::graph::gather;
use crate::cuda::setup::{LANES, Numbers, Rows, THREADS, by_lanes};
use crate::patches::damping::{OUTER, STEPS};
use crate::patches::matrix::{Inside, Outside};
use crate::patches::{PatchFormat, PatchKernels, PatchMatrix, PatchSmoother};

pub(super) static LAYOUT: Program =
    Program { name: "amg_patch_layout", source: include_str!("layout.cu"), headers: &[LANES] };
/// Lanes of a row.
pub(super) const ROW: usize = 4;
/// Threads of a block, which takes a patch.
const OF_PATCH: u32 = 128;

type OfRow = (Write<u32>, Read<u32>);
type Count = (Write<u32>, Write<u32>, Write<u32>, Read<u32>, Read<u32>, Structure, u32);
type Widths = (Write<u32>, Read<u32>, Read<u32>);
type FillEll<H> = (Write<u16>, Write<H>, Read<u32>, Read<u32>, Structure);
type Fill<H> = (Write<u16>, Write<u16>, Write<H>, Read<u32>, Read<u32>, Read<u32>, Structure, u32);
type FillOutside<H> =
    (Write<u32>, Write<u32>, Write<u32>, Write<H>, Read<u32>, Read<u32>, Read<u32>, Read<u32>, Structure);
type Start<H> = (Write<H>, Read<H>, u64);

fn program<H: Scalar>() -> Specialisation {
    by_lanes::<H>(&LAYOUT, ROW)
}

/// A matrix that is being split into three parts.
struct Parting<'a, H: Scalar> {
    rows: &'a Rows<'a, H>,
    starts: Numbers,
    n_patches: usize,
    /// The patch of each row.
    patch: Numbers,
    /// Entries of each row within its patch and beyond, and whether there are any beyond.
    inside: Numbers,
    outside: Numbers,
    has_outside: Numbers,
    is_upper: u32,
}

/// [`PatchMatrix::new`] on the GPU, with the same bits; none if entries need 64-bit offsets.
pub(super) fn patch_matrix<H: Scalar>(
    rows: &Rows<'_, H>,
    diagonal: Buffer<H, Cuda>,
    starts: &[u32],
    format: PatchFormat,
) -> Result<Option<PatchMatrix<H, Cuda>>, LinalgError> {
    let sizes = starts.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
    let parting = Parting::new(rows, starts, format)?;
    let Some(inside) = parting.inside(format)? else { return Ok(None) };
    let outside = parting.outside()?;
    let most_rows = sizes.max().unwrap_or(0);
    Ok(Some(PatchMatrix { starts: parting.starts, most_rows, inside, outside, diagonal }))
}

impl<'a, H: Scalar> Parting<'a, H> {
    fn new(rows: &'a Rows<'a, H>, starts: &[u32], format: PatchFormat) -> Result<Self, LinalgError> {
        let (device, n, n_patches) = (rows.device, rows.n(), starts.len() - 1);
        let starts = Buffer::from_host(device, starts)?;
        let mut patch = Buffer::zeros(device, n)?;
        let kernel = Kernel::<OfRow>::new("amg_patch_of_row");
        let (launch, arguments) = (Launch::line(n_patches, OF_PATCH), (patch.write(), starts.read()));
        // SAFETY: patches hold each row once.
        unsafe { device.launch(&program::<H>(), &kernel, launch, arguments) }?;
        let (mut inside, mut outside) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
        let mut has_outside = Buffer::zeros(device, n)?;
        let is_upper = u32::from(format == PatchFormat::SymmetricCoo);
        let to = (inside.write(), outside.write(), has_outside.write());
        let arguments = (to.0, to.1, to.2, patch.read(), starts.read(), rows.structure(), is_upper);
        let kernel = Kernel::<Count>::new("amg_patch_count");
        // SAFETY: each row has a patch and three counts.
        unsafe { device.launch(&program::<H>(), &kernel, Launch::over(n, THREADS), arguments) }?;
        Ok(Self { rows, starts, n_patches, patch, inside, outside, has_outside, is_upper })
    }

    /// $A_I$; none if it has 2³² entries or more.
    fn inside(&self, format: PatchFormat) -> Result<Option<Inside<H, Cuda>>, LinalgError> {
        let device = self.rows.device;
        let (of_patch, sizes) = match format {
            PatchFormat::FullRowEll => (Launch::line(self.n_patches, OF_PATCH), &self.widths()?),
            _ => (Launch::over(self.rows.n(), THREADS), &self.inside),
        };
        let mut total = Buffer::zeros(device, 1)?;
        let places = scan::starts(device, sizes, &mut total, 0)?;
        let Ok(n_entries) = u32::try_from(total.to_host()?[0]) else { return Ok(None) };
        let n_entries = n_entries as usize;
        let (mut columns, mut values) =
            (Buffer::zeros(device, n_entries)?, Buffer::zeros(device, n_entries)?);
        let (structure, starts) = (self.rows.structure(), self.starts.read());
        if format == PatchFormat::FullRowEll {
            let arguments = (columns.write(), values.write(), places.read(), starts, structure);
            let kernel = Kernel::<FillEll<H>>::new("amg_patch_fill_ell");
            // SAFETY: a patch has as many entries as its longest row times its rows.
            unsafe { device.launch(&program::<H>(), &kernel, of_patch, arguments) }?;
            return Ok(Some(Inside::FullRowEll { starts: places, columns, values }));
        }
        let is_coo = format == PatchFormat::SymmetricCoo;
        let mut rows = Buffer::zeros(device, if is_coo { n_entries } else { 0 })?;
        let row = if is_coo { rows.write() } else { Write::none() };
        let to = (row, columns.write(), values.write());
        let of = (places.read(), self.patch.read(), starts, structure);
        let arguments = (to.0, to.1, to.2, of.0, of.1, of.2, of.3, self.is_upper);
        let kernel = Kernel::<Fill<H>>::new("amg_patch_fill");
        // SAFETY: a row has as many entries as were counted in the same way.
        unsafe { device.launch(&program::<H>(), &kernel, of_patch, arguments) }?;
        if !is_coo {
            return Ok(Some(Inside::Csr { offsets: places, columns, values }));
        }
        let starts = gather(&places, &self.starts, self.n_patches + 1)?;
        Ok(Some(Inside::SymmetricCoo { starts, rows, columns, values }))
    }

    /// Entries of each patch with rows as long as its longest.
    fn widths(&self) -> Result<Numbers, LinalgError> {
        let device = self.rows.device;
        let mut sizes = Buffer::zeros(device, self.n_patches)?;
        let arguments = (sizes.write(), self.inside.read(), self.starts.read());
        let kernel = Kernel::<Widths>::new("amg_patch_widths");
        let launch = Launch::line(self.n_patches, OF_PATCH);
        // SAFETY: each patch has a size, each row a length.
        unsafe { device.launch(&program::<H>(), &kernel, launch, arguments) }?;
        Ok(sizes)
    }

    /// $A_B$.
    fn outside(&self) -> Result<Outside<H, Cuda>, LinalgError> {
        let (device, n) = (self.rows.device, self.rows.n());
        let mut totals = Buffer::zeros(device, 2)?;
        let begins = scan::starts(device, &self.outside, &mut totals, 0)?;
        let numbers = scan::starts(device, &self.has_outside, &mut totals, 1)?;
        let totals = totals.to_host()?;
        let [n_entries, n_rows] = [totals[0] as usize, totals[1] as usize];
        let (mut rows, mut offsets) = (Buffer::zeros(device, n_rows)?, Buffer::zeros(device, n_rows + 1)?);
        let (mut columns, mut values) =
            (Buffer::zeros(device, n_entries)?, Buffer::zeros(device, n_entries)?);
        let to = (rows.write(), offsets.write(), columns.write(), values.write());
        let of = (numbers.read(), begins.read(), self.patch.read(), self.starts.read());
        let arguments = (to.0, to.1, to.2, to.3, of.0, of.1, of.2, of.3, self.rows.structure());
        let kernel = Kernel::<FillOutside<H>>::new("amg_patch_outside");
        // SAFETY: rows with entries beyond their patch have a number, an offset and as many entries as were counted.
        unsafe { device.launch(&program::<H>(), &kernel, Launch::over(n + 1, THREADS), arguments) }?;
        Ok(Outside { rows, offsets, columns, values })
    }
}

/// [`outer_damping`](crate::patches::damping::outer_damping) on the GPU; none if the matrix is not positive definite. The
/// smoother has a damping of one.
pub(super) fn outer_damping<H: Scalar>(
    a: &Csr<H, Cuda>,
    by: &PatchSmoother<H, Cuda>,
) -> Result<Option<f64>, LinalgError> {
    let (device, n) = (a.values().device(), a.n_rows());
    let mut start = Buffer::zeros(device, n)?;
    let arguments = (start.write(), by.scale.read(), n as u64);
    let kernel = Kernel::<Start<H>>::new("amg_patch_start");
    // SAFETY: both have an entry for each row.
    unsafe { device.launch(&program::<H>(), &kernel, Launch::over(n, THREADS), arguments) }?;
    let rest = RefCell::new(Buffer::zeros(device, n)?);
    let solve = |v: &mut Buffer<H, Cuda>, r: &Buffer<H, Cuda>| {
        device.patch_relax_from_zero(v, &mut rest.borrow_mut(), by, r)
    };
    match largest_from(a, start, solve, STEPS) {
        Ok(largest) => Ok(Some(OUTER / largest)),
        Err(LinalgError::Setting { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

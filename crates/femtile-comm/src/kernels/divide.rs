//! Split of assembled rows into owned and ghost columns on a GPU.

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile_device::{Buffer, Cpu, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::scan;
use femtile_sparse::csr::{Csr, Offsets};

use crate::OwnedRows;

static DIVIDE: Program = Program { name: "ranks_divide", source: include_str!("divide.cu"), headers: &[] };
const THREADS: u32 = 256;

type Positions = Buffer<u32, Cuda>;
type Count<T> = (Write<u32>, Write<u32>, Write<u32>, Read<u32>, Read<u32>, Read<T>, u64, u64);
type Divide<T> = (
    Write<u32>,
    Write<T>,
    Write<u32>,
    Write<T>,
    Read<u32>,
    Read<u32>,
    Read<u32>,
    Read<u32>,
    Read<T>,
    u64,
    u64,
);
type Copy = (Write<u32>, Read<u32>, u64, u64);

fn program<T: Scalar>() -> Specialisation {
    DIVIDE.of::<T>()
}

/// The programs of this file, for checks that compile all of them.
pub(super) fn specialisations() -> Vec<Specialisation> {
    vec![program::<f32>(), program::<f64>()]
}

/// As [`OwnedRows::from_local_rows`], on a GPU.
pub(super) fn divide<T: Scalar>(
    device: &Cuda,
    a: Csr<T, Cuda>,
    n_owned: usize,
) -> Result<OwnedRows<T, Cuda>, LinalgError> {
    let Offsets::Narrow(offsets) = a.offsets() else {
        let cpu = Cpu::of_current_pool()?;
        let OwnedRows { own, border } = OwnedRows::from_local_rows(&cpu, &a.copy_to(&cpu)?, n_owned)?;
        return Ok(OwnedRows { own: own.copy_to(device)?, border: border.copy_to(device)? });
    };
    let of_a = (offsets.read(), a.columns().read(), a.values().read());
    let (mut own, mut others) = (Buffer::zeros(device, n_owned)?, Buffer::zeros(device, n_owned)?);
    let mut first = Buffer::from_host(device, &[n_owned as u32])?;
    let sizes = (n_owned as u64, n_owned as u64);
    let counts = (own.write(), others.write(), first.write());
    let arguments = (counts.0, counts.1, counts.2, of_a.0, of_a.1, of_a.2, sizes.0, sizes.1);
    let (launch, kernel) = (Launch::over(n_owned, THREADS), Kernel::<Count<T>>::new("ranks_count"));
    // SAFETY: the matrix has these rows, of which each has two counts.
    unsafe { device.launch(&program::<T>(), &kernel, launch, arguments) }?;
    let mut totals = Buffer::zeros(device, 2)?;
    let own_starts = scan::starts(device, &own, &mut totals, 0)?;
    let other_starts = scan::starts(device, &others, &mut totals, 1)?;
    let totals: Vec<u64> = totals.to_host()?;
    let [n_own, n_others] = [0, 1].map(|which| totals[which] as usize);
    let (mut own_columns, mut own_values) = (Buffer::zeros(device, n_own)?, Buffer::zeros(device, n_own)?);
    let (mut columns, mut values) = (Buffer::zeros(device, n_others)?, Buffer::zeros(device, n_others)?);
    let to = (own_columns.write(), own_values.write(), columns.write(), values.write());
    let starts = (own_starts.read(), other_starts.read());
    let arguments = (to.0, to.1, to.2, to.3, starts.0, starts.1, of_a.0, of_a.1, of_a.2, sizes.0, sizes.1);
    let kernel = Kernel::<Divide<T>>::new("ranks_divide");
    // SAFETY: as above; starts are running sums of what is counted in the same way.
    unsafe { device.launch(&program::<T>(), &kernel, launch, arguments) }?;
    let first = first.to_host()?[0] as usize;
    let border_starts = from(&other_starts, first)?;
    let n_ghosts = a.n_cols() - n_owned;
    // SAFETY: offsets are running sums; columns are those of a matrix, in their order, less the number before the ghosts.
    let [own, border] = unsafe {
        [
            Csr::from_kernels(n_owned, own_starts, own_columns, own_values)?,
            Csr::from_kernels(n_ghosts, border_starts, columns, values)?,
        ]
    };
    Ok(OwnedRows { own, border })
}

/// The numbers from `first` on.
fn from(all: &Positions, first: usize) -> Result<Positions, LinalgError> {
    let (device, n) = (all.device(), all.len().saturating_sub(first));
    let mut to = Buffer::zeros(device, n)?;
    let arguments = (to.write(), all.read(), first as u64, n as u64);
    let kernel = Kernel::<Copy>::new("ranks_numbers");
    // SAFETY: there are n numbers from the first one on.
    unsafe { device.launch(&program::<f64>(), &kernel, Launch::over(n, THREADS), arguments) }?;
    Ok(to)
}

//! The levels that every rank has whole.

use std::sync::{Mutex, PoisonError};

use femtile_comm::{Comm, RankKernels};
use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, Preconditioner};

use super::level::RankMatrix;
use crate::hierarchy::Hierarchy;
use crate::kernels::AmgKernels;
use crate::setup::rows::{RowAccess, Rows};
use crate::setup::tentative::NearNullspace;
use crate::{Amg, AmgConfig, AmgError, LevelShape};

/// Multigrid on a matrix of which every rank has all rows.
pub(super) struct Collected<H: Scalar, D: AmgKernels<H>> {
    amg: Amg<H, D>,
    comm: Comm,
    /// The first row of this rank.
    first: usize,
    work: Mutex<Work<H, D>>,
}

struct Work<H: Scalar, D: Device> {
    b: Buffer<H, D>,
    x: Buffer<H, D>,
}

impl<H: Scalar, D> Collected<H, D>
where
    D: AmgKernels<H> + Convert<H, H> + RankKernels<H>,
{
    /// Collects the rows of all ranks, and sets up the levels below; `number` is that of the level.
    pub fn new(
        device: &D,
        matrix: &RankMatrix<H>,
        b: &NearNullspace,
        number: usize,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        let comm = matrix.halo.comm().clone();
        let (a, first) = whole(matrix)?;
        let b = NearNullspace { n_vectors: b.n_vectors, values: comm.all_gather(&b.values)?.concat() };
        let n = a.n_rows();
        let amg = Amg::of(Hierarchy::below(device, (a, b), number, config)?, device)?;
        let zeros = || Buffer::zeros(device, n).map_err(LinalgError::from);
        let work = Mutex::new(Work { b: zeros()?, x: zeros()? });
        Ok(Self { amg, comm, first, work })
    }

    /// Returns the sizes of its levels.
    pub fn shapes(&self) -> &[LevelShape] {
        self.amg.hierarchy().shapes()
    }

    /// Runs one cycle on all rows; each rank keeps its owned rows of the result.
    pub fn solve(&self, x: &mut Buffer<H, D>, b: &Buffer<H, D>) -> Result<(), LinalgError> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Work { b: all, x: solution } = &mut *work;
        all.upload(&self.comm.all_gather(&b.host_view()?)?.concat())?;
        self.amg.apply(solution, all)?;
        b.device().section(x, solution, self.first)
    }
}

/// Returns the rows of all ranks, one rank after the other, and the global number of the first owned row.
fn whole<H: Scalar>(matrix: &RankMatrix<H>) -> Result<(Rows<H>, usize), LinalgError> {
    let (halo, rows) = (&matrix.halo, &matrix.rows);
    let (comm, n) = (halo.comm(), matrix.n_owned());
    let sizes: Vec<u64> = comm.all_gather(&[n as u64])?.into_iter().flatten().collect();
    let begins: Vec<u64> =
        sizes.iter().scan(0, |next, size| Some(std::mem::replace(next, *next + size))).collect();
    let first = begins[comm.rank()];
    let own: Vec<u64> = (0..n as u64).map(|row| first + row).collect();
    let mut ghosts = vec![0; halo.n_ghosts()];
    halo.import(&mut ghosts, &own, &mut || ())?;
    let number = |column: u32| match (column as usize).checked_sub(n) {
        None => (first + u64::from(column)) as u32,
        Some(ghost) => ghosts[ghost] as u32,
    };
    let lengths: Vec<u32> = (0..n).map(|row| rows.row(row).0.len() as u32).collect();
    let (mut columns, mut values) =
        (Vec::with_capacity(rows.columns.len()), Vec::with_capacity(rows.columns.len()));
    for row in 0..n {
        let (of_row, values_of_row) = rows.row(row);
        let mut entries: Vec<(u32, H)> =
            of_row.iter().map(|&column| number(column)).zip(values_of_row.iter().copied()).collect();
        entries.sort_unstable_by_key(|(column, _)| *column);
        columns.extend(entries.iter().map(|(column, _)| *column));
        values.extend(entries.iter().map(|(_, value)| *value));
    }
    let (lengths, columns, values) = (
        comm.all_gather(&lengths)?.concat(),
        comm.all_gather(&columns)?.concat(),
        comm.all_gather(&values)?.concat(),
    );
    let mut offsets = vec![0];
    offsets.extend(lengths.iter().scan(0, |end, &length| {
        *end += length as usize;
        Some(*end)
    }));
    Ok((Rows { n_cols: lengths.len(), offsets, columns, values }, first as usize))
}

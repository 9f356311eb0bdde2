//! The transfers between a level and the next one.

use std::sync::{Mutex, PoisonError};

use femtile_comm::{Comm, Halo};
use femtile_device::{Buffer, Scalar};
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::csr::Csr;

use crate::kernels::AmgKernels;

/// The prolongator P to the rows of a rank, and its transpose.
#[derive(Debug)]
pub(crate) struct Transfer<H: Scalar, D: AmgKernels<H>> {
    /// Columns of unknowns of the rank, then of its ghosts.
    pub prolongation: Csr<H, D>,
    pub restriction: Csr<H, D>,
    /// None from and to levels that the rank has whole.
    pub exchange: Option<Box<Exchange<H, D>>>,
}

impl<H: Scalar, D: AmgKernels<H>> Transfer<H, D> {
    /// Takes a prolongator to the rows of a rank, its transpose, and the halo of its columns, none if the rank has all of them.
    /// Collective.
    pub fn new(
        device: &D,
        [prolongation, restriction]: [Csr<H, D>; 2],
        halo: Option<Halo>,
    ) -> Result<Self, LinalgError> {
        let exchange = halo.map(|halo| Exchange::new(device, halo).map(Box::new)).transpose()?;
        Ok(Self { prolongation, restriction, exchange })
    }

    /// Computes $b_c = P^\mathsf{T} r$; entries of ghosts go to their owners. Collective.
    pub fn restrict(&self, b: &mut Buffer<H, D>, r: &Buffer<H, D>) -> Result<(), LinalgError> {
        match &self.exchange {
            Some(exchange) => exchange.restrict(b, r, &self.restriction),
            None => self.restriction.apply(b, r),
        }
    }

    /// Computes $x \mathrel{+}= P e$; `product` is workspace. Collective.
    pub fn correct(
        &self,
        x: &mut Buffer<H, D>,
        product: &mut Buffer<H, D>,
        e: &Buffer<H, D>,
    ) -> Result<(), LinalgError> {
        match &self.exchange {
            Some(exchange) => exchange.correct([x, product], e, &self.prolongation),
            None => e.device().amg_correct(x, product, &self.prolongation, e),
        }
    }
}

/// The exchange of values at the unknowns of the next level.
pub(crate) struct Exchange<H: Scalar, D: AmgKernels<H>> {
    halo: Halo,
    link: D::Link,
    /// If every rank has the next level whole.
    gather: Option<Gather>,
    work: Mutex<Work<H, D>>,
}

/// Vectors of all columns of a prolongator, of its ghosts, and of the unknowns of the rank on a gathered level.
struct Work<H: Scalar, D: AmgKernels<H>> {
    columns: Buffer<H, D>,
    ghosts: Buffer<H, D>,
    own: Buffer<H, D>,
}

impl<H: Scalar, D: AmgKernels<H>> std::fmt::Debug for Exchange<H, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").field("halo", &self.halo).finish_non_exhaustive()
    }
}

impl<H: Scalar, D: AmgKernels<H>> Exchange<H, D> {
    /// Prepares the exchange for the halo of the columns of a prolongator. Collective.
    fn new(device: &D, halo: Halo) -> Result<Self, LinalgError> {
        let zeros = |n| Buffer::zeros(device, n);
        let (n, n_ghosts) = (halo.n_owned(), halo.n_ghosts());
        let work = Work { columns: zeros(n + n_ghosts)?, ghosts: zeros(n_ghosts)?, own: zeros(0)? };
        Ok(Self { link: device.link(&halo)?, halo, gather: None, work: Mutex::new(work) })
    }

    /// Gathers the next level on every rank.
    pub fn gather(&mut self, gather: Gather) -> Result<(), LinalgError> {
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        work.own = Buffer::zeros(work.ghosts.device(), gather.n)?;
        self.gather = Some(gather);
        Ok(())
    }

    fn restrict(&self, b: &mut Buffer<H, D>, r: &Buffer<H, D>, by: &Csr<H, D>) -> Result<(), LinalgError> {
        let device = r.device();
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Work { columns, ghosts, own } = &mut *work;
        by.apply(columns, r)?;
        let sums = if self.gather.is_some() { &mut *own } else { &mut *b };
        device.section(sums, columns, 0)?;
        device.section(ghosts, columns, self.halo.n_owned())?;
        device.add_to_owners((&self.halo, &self.link), sums, ghosts)?;
        self.gather.as_ref().map_or(Ok(()), |gather| gather.whole(b, own))
    }

    fn correct(
        &self,
        [x, product]: [&mut Buffer<H, D>; 2],
        e: &Buffer<H, D>,
        by: &Csr<H, D>,
    ) -> Result<(), LinalgError> {
        let device = e.device();
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Work { columns, ghosts, own } = &mut *work;
        let e = match &self.gather {
            Some(gather) => {
                gather.own(own, e)?;
                own
            }
            None => e,
        };
        device.import((&self.halo, &self.link), ghosts, e, &mut || Ok(()))?;
        device.join(columns, e, ghosts)?;
        device.amg_correct(x, product, by, columns)
    }
}

/// Between a divided level and the same level whole on every rank.
#[derive(Debug)]
pub(crate) struct Gather {
    pub comm: Comm,
    /// The first row of this rank, and the number of its rows.
    pub first: usize,
    pub n: usize,
}

impl Gather {
    /// Gathers the vectors of all ranks. Collective.
    pub fn whole<H: Scalar, D: AmgKernels<H>>(
        &self,
        all: &mut Buffer<H, D>,
        own: &Buffer<H, D>,
    ) -> Result<(), LinalgError> {
        Ok(all.upload(&self.comm.all_gather(&own.host_view()?)?.concat())?)
    }

    /// Copies the rows of this rank.
    pub fn own<H: Scalar, D: AmgKernels<H>>(
        &self,
        own: &mut Buffer<H, D>,
        all: &Buffer<H, D>,
    ) -> Result<(), LinalgError> {
        all.device().section(own, all, self.first)
    }
}

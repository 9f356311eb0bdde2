//! The set-up of a distributed level: the part that a rank computes alone.

use std::sync::Arc;

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Element, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::scan;
use femtile_sparse::csr::Csr;

use super::{
    Grouped, LANES, Numbers, Rows, THREADS, aggregate, by_lanes, evolution, graph, matrix, product, prolong,
};
use crate::AmgConfig;
use crate::kernels::{DeviceAggregates, Grouping, Nodes};
use crate::setup::spectrum::share;

pub(super) static RANKS: Program =
    Program { name: "amg_ranks", source: include_str!("ranks.cu"), headers: &[LANES] };

type JoinedOffsets = (Write<u32>, Structure, Structure, u64);
type Joined<H> = (Write<u32>, Write<H>, Read<u32>, Structure, Structure, u64);
type Lumped<H> = (Write<H>, Structure, Structure, u64);
type Strong<H> = (Write<u32>, Read<u32>, Read<u32>, Read<H>, Structure, H);
type InnerParts = (Write<u32>, Read<u32>, Structure, Structure, u64);
type InnerFirst = (Write<u32>, Read<u32>, Read<u32>, Read<u32>, u64, u64);
type Followed<E> = (Write<E>, Read<E>, Read<E>, u64, u64);
type StackedOffsets = (Write<u32>, Structure, Structure);
type Stacked<H> = (Write<u32>, Write<H>, Read<u32>, Structure, Structure, u64);

fn program<H: Scalar>() -> Specialisation {
    by_lanes::<H>(&RANKS, 4)
}

/// The rows of a rank: the owned columns, and the ghost columns, which only the last rows have.
pub(in crate::cuda) struct LocalRows<'a, H: Scalar> {
    own: Rows<'a, H>,
    border: Rows<'a, H>,
}

/// Data of own nodes, then of ghosts.
pub(in crate::cuda) struct OwnedAndGhosts<H: Scalar> {
    /// Their places among the nodes of the next level.
    pub parts: DeviceAggregates<Cuda>,
    /// Entries of the tentative prolongator.
    pub q: Buffer<H, Cuda>,
    pub diagonal: Buffer<H, Cuda>,
    /// None of the first level.
    pub weights: Option<Numbers>,
}

impl<'a, H: Scalar> LocalRows<'a, H> {
    /// None if offsets have 64 bits, or those of both together need them.
    pub fn new(own: &'a Csr<H, Cuda>, border: &'a Csr<H, Cuda>) -> Option<Self> {
        u32::try_from(own.n_nonzeros() + border.n_nonzeros()).ok()?;
        Some(Self { own: Rows::new(own)?, border: Rows::new(border)? })
    }

    /// The first row with columns of ghosts.
    fn first(&self) -> usize {
        self.own.n() - self.border.n()
    }

    fn structures(&self) -> (Structure, Structure, u64) {
        (self.own.structure(), self.border.structure(), self.first() as u64)
    }

    /// All columns in one matrix.
    pub fn joined(&self) -> Result<Csr<H, Cuda>, LinalgError> {
        let (device, n, program) = (self.own.device, self.own.n(), program::<H>());
        let n_entries = self.own.a.n_nonzeros() + self.border.a.n_nonzeros();
        let mut offsets = Buffer::zeros(device, n + 1)?;
        let (own, border, first) = self.structures();
        let kernel = Kernel::<JoinedOffsets>::new("amg_joined_offsets");
        let (launch, arguments) = (Launch::over(n + 1, THREADS), (offsets.write(), own, border, first));
        // SAFETY: there is an offset for each row and the end; the border has the rows from the first one on.
        unsafe { device.launch(&program, &kernel, launch, arguments) }?;
        let (mut columns, mut values) =
            (Buffer::zeros(device, n_entries)?, Buffer::zeros(device, n_entries)?);
        let (own, border, first) = self.structures();
        let arguments = (columns.write(), values.write(), offsets.read(), own, border, first);
        let kernel = Kernel::<Joined<H>>::new("amg_joined");
        // SAFETY: as above; a row has the entries of both.
        unsafe { device.launch(&program, &kernel, Launch::over(n, THREADS), arguments) }?;
        let n_cols = n + self.border.a.n_cols();
        // SAFETY: offsets are sums of offsets; columns of ghosts follow the own ones, each in their order.
        unsafe { Csr::from_kernels(n_cols, offsets, columns, values) }
    }

    /// Returns the owned columns of the first level, with entries of ghosts added to the diagonal, so that
    /// constants are smooth there too.
    pub(super) fn lumped(&self) -> Result<Csr<H, Cuda>, LinalgError> {
        let device = self.own.device;
        let mut values = Buffer::zeros(device, self.own.a.n_nonzeros())?;
        let (own, border, first) = self.structures();
        let arguments = (values.write(), own, border, first);
        let kernel = Kernel::<Lumped<H>>::new("amg_lumped");
        // SAFETY: each own entry has a value.
        unsafe { device.launch(&program::<H>(), &kernel, Launch::over(self.own.n(), THREADS), arguments) }?;
        self.own.a.with_values(values)
    }

    /// Returns aggregates within the rank, of the nodes of the first level or of those given, and their weights; none if the
    /// host has to find them. Those of rows beside ghosts, and of their neighbours, are the last.
    #[allow(clippy::type_complexity)]
    pub fn grouped(
        &self,
        nodes: Option<&Nodes<Cuda>>,
        thresholds: [f64; 2],
        config: &AmgConfig,
    ) -> Result<Option<(Grouped<H>, Numbers)>, LinalgError> {
        let how = (thresholds, config);
        let found = Grouped::new(&self.own, Some(self), nodes, how, &Grouping::Connections)?;
        let Some(mut grouped) = found else { return Ok(None) };
        grouped.parts = self.inner_first(grouped.parts)?;
        let weights = aggregate::weigh(&grouped.parts, nodes.map(|nodes| &nodes.weights))?;
        Ok(Some((grouped, weights)))
    }

    /// The parts in an order in which those of rows beside ghosts, and of their neighbours, are the last.
    fn inner_first(&self, parts: DeviceAggregates<Cuda>) -> Result<DeviceAggregates<Cuda>, LinalgError> {
        let (device, n, program) = (self.own.device, self.own.n(), program::<H>());
        let mut is_inner = Buffer::from_vec(device, vec![1; parts.n])?;
        let (own, border, first) = self.structures();
        let arguments = (is_inner.write(), parts.of_node.read(), own, border, first);
        let launch = Launch::over(self.border.n(), THREADS);
        let kernel = Kernel::<InnerParts>::new("amg_inner_parts");
        // SAFETY: each part has a mark, each node a part or none.
        unsafe { device.launch(&program, &kernel, launch, arguments) }?;
        let mut total = Buffer::zeros(device, 1)?;
        let starts = scan::starts(device, &is_inner, &mut total, 0)?;
        let n_inner = total.to_host()?[0];
        let mut of_node = Buffer::zeros(device, n)?;
        let (from, marks) = (parts.of_node.read(), is_inner.read());
        let arguments = (of_node.write(), from, marks, starts.read(), n_inner, n as u64);
        let kernel = Kernel::<InnerFirst>::new("amg_inner_first");
        // SAFETY: as above; each part has a start.
        unsafe { device.launch(&program, &kernel, Launch::over(n, THREADS), arguments) }?;
        Ok(DeviceAggregates { of_node: Arc::new(of_node), ..parts })
    }

    /// Whether slivers may have nodes of several ranks; `rows` are all columns.
    pub fn has_opposed(&self, rows: &Csr<H, Cuda>, of_all: &OwnedAndGhosts<H>) -> Result<bool, LinalgError> {
        Rows::new(rows).map_or(Ok(false), |rows| evolution::has_opposed(&rows, &of_all.diagonal))
    }

    /// Returns the reciprocals of the diagonal for smoothers, and the prolongator. `rows` has all columns,
    /// and `largest` is the global largest eigenvalue.
    #[allow(clippy::type_complexity)]
    pub fn smoothed(
        &self,
        rows: &Csr<H, Cuda>,
        grouped: &Grouped<H>,
        of_all: &OwnedAndGhosts<H>,
        (largest, threshold): (f64, f64),
    ) -> Result<Option<(Buffer<H, Cuda>, Csr<H, Cuda>)>, LinalgError> {
        let Some(rows) = Rows::new(rows) else { return Ok(None) };
        let (device, n) = (rows.device, rows.n());
        let OwnedAndGhosts { parts, q, diagonal, weights } = of_all;
        let inverse = matrix::raise(&rows, diagonal, share(largest))?;
        let mut marks = Buffer::zeros(device, rows.a.n_nonzeros())?;
        let of_smoothing = H::from_f64(threshold * threshold);
        let own = (grouped.strong.read(), self.own.offsets.read());
        let arguments = (marks.write(), own.0, own.1, diagonal.read(), rows.structure(), of_smoothing);
        let kernel = Kernel::<Strong<H>>::new("amg_joined_strong");
        // SAFETY: each entry has a mark, each own one a mark before; each column has an entry of the diagonal.
        unsafe { device.launch(&program::<H>(), &kernel, Launch::over(n, THREADS), arguments) }?;
        let p = prolong::prolongator(&rows, &marks, parts, q, weights.as_ref(), largest)?;
        Ok(Some((inverse, p)))
    }
}

/// The numbers at some places.
pub(in crate::cuda) fn at(numbers: &Numbers, places: &Numbers) -> Result<Vec<u32>, LinalgError> {
    Ok(graph::gather(numbers, places, places.len())?.to_host()?)
}

/// The values at some places.
pub(in crate::cuda) fn values_at<H: Scalar>(
    values: &Buffer<H, Cuda>,
    places: &Numbers,
) -> Result<Vec<H>, LinalgError> {
    Ok(graph::gather_values(values, places)?.to_host()?)
}

/// Numbers, then more of them.
pub(in crate::cuda) fn followed_by(own: &Numbers, more: &[u32]) -> Result<Numbers, LinalgError> {
    appended(&program::<f32>(), "amg_followed", own, more)
}

/// Values, then more of them.
pub(in crate::cuda) fn values_followed_by<H: Scalar>(
    own: &Buffer<H, Cuda>,
    more: &[H],
) -> Result<Buffer<H, Cuda>, LinalgError> {
    appended(&program::<H>(), "amg_followed_values", own, more)
}

/// Entries, then more of them, by the kernel of their type.
fn appended<E: Element>(
    program: &Specialisation,
    kernel: &'static str,
    own: &Buffer<E, Cuda>,
    more: &[E],
) -> Result<Buffer<E, Cuda>, LinalgError> {
    let device = own.device();
    let (n, more) = (own.len() + more.len(), Buffer::from_host(device, more)?);
    let mut to = Buffer::zeros(device, n)?;
    let arguments = (to.write(), own.read(), more.read(), own.len() as u64, n as u64);
    let kernel = Kernel::<Followed<E>>::new(kernel);
    // SAFETY: the kernel is one of these two, for entries of its type; the result has an entry for each of both.
    unsafe { device.launch(program, &kernel, Launch::over(n, THREADS), arguments) }?;
    Ok(to)
}

/// Some rows of a matrix; none if its offsets have 64 bits.
pub(in crate::cuda) fn rows_of<H: Scalar>(
    p: &Csr<H, Cuda>,
    rows: Vec<u32>,
) -> Result<Option<Csr<H, Cuda>>, LinalgError> {
    graph::with_rows_of(p, &Buffer::from_vec(p.values().device(), rows)?)
}

/// The rows of `p`, whose columns from `n_own` on get other numbers, then `more`.
fn stacked<H: Scalar>(
    p: &Rows<'_, H>,
    (n_own, numbers): (usize, Vec<u32>),
    more: &Rows<'_, H>,
) -> Result<Csr<H, Cuda>, LinalgError> {
    let (device, n, program) = (p.device, p.n() + more.n(), program::<H>());
    let n_entries = p.a.n_nonzeros() + more.a.n_nonzeros();
    let mut offsets = Buffer::zeros(device, n + 1)?;
    let arguments = (offsets.write(), p.structure(), more.structure());
    let kernel = Kernel::<StackedOffsets>::new("amg_stacked_offsets");
    // SAFETY: there is an offset for each row of both, and the end.
    unsafe { device.launch(&program, &kernel, Launch::over(n + 1, THREADS), arguments) }?;
    let (mut columns, mut values) = (Buffer::zeros(device, n_entries)?, Buffer::zeros(device, n_entries)?);
    let numbers = Buffer::from_vec(device, numbers)?;
    let from = (numbers.read(), p.structure(), more.structure());
    let arguments = (columns.write(), values.write(), from.0, from.1, from.2, n_own as u64);
    let kernel = Kernel::<Stacked<H>>::new("amg_stacked");
    // SAFETY: there is an entry for each of both; each column from `n_own` on has a number.
    unsafe { device.launch(&program, &kernel, Launch::over(n_entries, THREADS), arguments) }?;
    // SAFETY: offsets are running sums; the numbers ascend, and are columns of `more`.
    unsafe { Csr::from_kernels(more.a.n_cols(), offsets, columns, values) }
}

/// Computes $R A P$ for the rows `a` of a rank. P has the owned rows `p`, with the columns from `n_own` on
/// renumbered, and the rows `of_ghosts`. None if a row is too long.
pub(in crate::cuda) fn galerkin<H: Scalar>(
    (r, a): (&Csr<H, Cuda>, &Csr<H, Cuda>),
    p: &Csr<H, Cuda>,
    numbers: (usize, Vec<u32>),
    of_ghosts: &Csr<H, Cuda>,
) -> Result<Option<Csr<H, Cuda>>, LinalgError> {
    let (Some(of_rank), Some(more)) = (Rows::new(p), Rows::new(of_ghosts)) else { return Ok(None) };
    if u32::try_from(p.n_nonzeros() + of_ghosts.n_nonzeros()).is_err() {
        return Ok(None);
    }
    let p = stacked(&of_rank, numbers, &more)?;
    let Some(ap) = product::product(a, &p, 1)? else { return Ok(None) };
    drop(p);
    let Some(coarse) = product::product(r, &ap, 1)? else { return Ok(None) };
    prolong::sorted(coarse).map(Some)
}

use femtile_device::cuda::{Header, Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::{LinalgError, need};

use super::{LANES, Numbers, Rows, THREADS, address, by_lanes};
use crate::kernels::DeviceAggregates;
use crate::setup::evolution::{DROP, NOTHING};
use crate::setup::local_modes::OPPOSED;

pub(super) const EVOLUTION_HEADER: Header =
    Header { name: "evolution.cuh", text: include_str!("evolution.cuh") };
pub(super) static EVOLUTION: Program = Program {
    name: "amg_evolution",
    source: include_str!("evolution.cu"),
    headers: &[LANES, EVOLUTION_HEADER],
};
/// Lanes of a row: a warp.
const WARP: usize = 32;

type LargestSum<H> = (Write<u64>, Read<H>, Structure);
type Opposed<H> = (Write<u32>, Read<H>, Structure, H);
type Evolve<H> = (Write<H>, Read<u32>, Read<u32>, Read<u64>, Read<H>, Structure, H, f64, f64);
type Votes = (Write<u32>, Read<u32>, Read<u32>, u64);
type Outvoted = (Write<u32>, u64);

/// [`crate::setup::evolution::Evolution`] on the GPU.
pub(crate) struct Evolution<'a, H: Scalar> {
    /// 1 for each doubtful row, 0 for others.
    is_doubtful: &'a Numbers,
    /// 1 for each entry that is near by the measure of its row, 0 for others and in rows that are not doubtful.
    near: Buffer<H, Cuda>,
}

pub(super) fn program<H: Scalar>() -> Specialisation {
    by_lanes::<H>(&EVOLUTION, WARP)
}

impl<'a, H: Scalar> Evolution<'a, H> {
    /// Measures the connections of doubtful rows, none without any; `weights` are the squares of the near-nullspace, and
    /// entries are large above the threshold `of_graph`.
    ///
    /// # Cost
    /// A pass over the non-zeros; for a doubtful row of m entries m² searches in rows.
    pub fn of(
        rows: &Rows<'_, H>,
        diagonal: &Buffer<H, Cuda>,
        is_doubtful: Option<&'a Numbers>,
        weights: Option<&Numbers>,
        of_graph: f64,
    ) -> Result<Option<Self>, LinalgError> {
        let Some(is_doubtful) = is_doubtful else { return Ok(None) };
        let (device, program) = (rows.device, program::<H>());
        let launch = Launch::over(rows.n() * WARP, THREADS);
        let mut largest = Buffer::from_host(device, &[1.0_f64.to_bits()])?;
        let arguments = (largest.write(), diagonal.read(), rows.structure());
        let kernel = Kernel::<LargestSum<H>>::new("amg_largest_sum");
        // SAFETY: each row has an entry of the diagonal.
        unsafe { device.launch(&program, &kernel, launch, arguments) }?;
        let mut near = Buffer::zeros(device, rows.a.n_nonzeros())?;
        let weights = weights.map_or(Read::none(), Buffer::read);
        let (of_rows, of_graph) = (rows.structure(), H::from_f64(of_graph * of_graph));
        let marks = (near.write(), is_doubtful.read(), weights, largest.read(), diagonal.read());
        let arguments = (marks.0, marks.1, marks.2, marks.3, marks.4, of_rows, of_graph, DROP, NOTHING);
        let kernel = Kernel::<Evolve<H>>::new("amg_evolve");
        // SAFETY: as above; each row has a mark and, if there are weights, one of these, each entry a
        // measure.
        unsafe { device.launch(&program, &kernel, launch, arguments) }?;
        Ok(Some(Self { is_doubtful, near }))
    }

    /// Returns `struct Evolution` of the kernels.
    pub fn structure(of: Option<&Self>) -> Structure {
        Structure(of.map_or(vec![0; 2], |of| vec![address(of.is_doubtful), address(&of.near)]))
    }
}

/// Returns whether a matrix may have modes of slivers, as [`crate::setup::local_modes`]; the diagonal has an entry for each
/// column.
pub(super) fn has_opposed<H: Scalar>(
    rows: &Rows<'_, H>,
    diagonal: &Buffer<H, Cuda>,
) -> Result<bool, LinalgError> {
    need("diagonal", rows.a.n_cols(), diagonal.len())?;
    let mut is_opposed = Buffer::zeros(rows.device, 1)?;
    let share = H::from_f64(OPPOSED * OPPOSED);
    let arguments = (is_opposed.write(), diagonal.read(), rows.structure(), share);
    let kernel = Kernel::<Opposed<H>>::new("amg_opposed");
    let launch = Launch::over(rows.n() * WARP, THREADS);
    // SAFETY: each row and each column has an entry of the diagonal.
    unsafe { rows.device.launch(&program::<H>(), &kernel, launch, arguments) }?;
    Ok(is_opposed.to_host()?[0] != 0)
}

/// As [`crate::setup::evolution::inherited`]: marks the parts with more nodes that are marked than others.
pub(super) fn inherited(marks: &Numbers, parts: &DeviceAggregates<Cuda>) -> Result<Numbers, LinalgError> {
    let (device, n, program) = (marks.device(), marks.len(), program::<f32>());
    let mut votes = Buffer::zeros(device, parts.n)?;
    let arguments = (votes.write(), parts.of_node.read(), marks.read(), n as u64);
    let kernel = Kernel::<Votes>::new("amg_votes");
    // SAFETY: each node has a mark and a part, each part a number of votes.
    unsafe { device.launch(&program, &kernel, Launch::over(n, THREADS), arguments) }?;
    let arguments = (votes.write(), parts.n as u64);
    let kernel = Kernel::<Outvoted>::new("amg_outvoted");
    // SAFETY: as above.
    unsafe { device.launch(&program, &kernel, Launch::over(parts.n, THREADS), arguments) }?;
    Ok(votes)
}

/// The programs of this file.
pub(super) fn specialisations() -> Vec<Specialisation> {
    vec![program::<f32>(), program::<f64>()]
}

//! A level set up where its matrix lies: groups, prolongator and Galerkin product on a GPU.
//!
//! The host reads sizes, the numbers of open nodes, what tells whether the matrix is sound, and eight numbers of Lanczos'
//! method; all else stays. What is added in floating point is added in a fixed order, so levels have the same bits in
//! every run.

mod aggregate;
mod matrix;
mod product;
mod prolong;

use femtile_device::cuda::{Header, Program, Specialisation, Structure};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::sparse::csr::{Csr, Offsets};

use super::address;
use crate::kernels::{Coarsened, Parts};
use crate::setup::spectrum::share;

const LANES: Header = Header { name: "lanes.cuh", text: include_str!("lanes.cuh") };
/// Threads of a block.
const THREADS: u32 = 256;
/// Entries of a row on average from which on more lanes take it.
const LONG: usize = 24;
/// A matrix with a longer row is the host's work, as a thread looks at all pairs of entries of a row.
const LONGEST: u32 = 1_024;

/// Numbers of 32 bits on the device.
type Numbers = Buffer<u32, Cuda>;

/// A program whose rows are taken by so many lanes.
fn by_lanes<H: Scalar>(program: &'static Program, lanes: usize) -> Specialisation {
    program.of::<H>().define("FEMTILE_LANES", lanes)
}

/// Lanes that take a row where there are so many entries in so many rows.
fn lanes_for(n_entries: usize, n_rows: usize) -> usize {
    if n_entries < LONG * n_rows { 4 } else { 32 }
}

/// The programs of this folder, for checks that compile all of them.
pub(super) fn specialisations() -> Vec<Specialisation> {
    let of_lanes = |lanes: usize| {
        let programs = [&matrix::MATRIX, &aggregate::AGGREGATE, &product::PRODUCT];
        programs
            .into_iter()
            .flat_map(move |program| [by_lanes::<f32>(program, lanes), by_lanes::<f64>(program, lanes)])
    };
    let prolong = [by_lanes::<f32>(&prolong::PROLONG, 32), by_lanes::<f64>(&prolong::PROLONG, 32)];
    [4, 32].into_iter().flat_map(of_lanes).chain(prolong).collect()
}

/// A matrix of a level as kernels see it.
struct Rows<'a, H: Scalar> {
    device: &'a Cuda,
    a: &'a Csr<H, Cuda>,
    offsets: &'a Numbers,
    /// Lanes that take a row.
    lanes: usize,
}

impl<'a, H: Scalar> Rows<'a, H> {
    /// None where its offsets have 64 bits.
    fn new(a: &'a Csr<H, Cuda>) -> Option<Self> {
        let Offsets::Narrow(offsets) = a.offsets() else { return None };
        let lanes = lanes_for(a.n_nonzeros(), a.n_rows());
        Some(Self { device: a.values().device(), a, offsets, lanes })
    }

    fn n(&self) -> usize {
        self.a.n_rows()
    }

    fn structure(&self) -> Structure {
        let arrays = [address(self.offsets), address(self.a.columns()), address(self.a.values())];
        Structure(arrays.into_iter().chain([self.n() as u64]).collect())
    }
}

/// The next level of a matrix whose nodes have the weights `weights`, one each where there are none; none where the
/// matrix is not sound, has a row that is too long, or many whose positive entries hide the direction of strong coupling:
/// the host then says why, or does the work.
///
/// # Source
/// `[fu2014]`, section 5.2.1; parallel independent sets: `[bell2012]`, section 3.2.
pub(super) fn coarsen<H: Scalar>(
    a: &Csr<H, Cuda>,
    weights: Option<&Numbers>,
    thresholds: [f64; 2],
    least: u32,
    known: Option<&Parts<Cuda>>,
) -> Result<Option<Coarsened<H, Cuda>>, LinalgError> {
    let Some(rows) = Rows::new(a) else { return Ok(None) };
    let Some(matrix) = matrix::look(&rows)? else { return Ok(None) };
    let graph = aggregate::Neighbours::new(&rows, &matrix.diagonal, thresholds)?;
    let parts = match known.filter(|known| known.of_node.len() == rows.n()) {
        Some(known) => known.clone(),
        None => graph.parts(least)?,
    };
    if parts.n == 0 {
        return Ok(None);
    }
    let largest = matrix.lanczos.end()?;
    let inverse_diagonal = matrix::raise(&rows, &matrix.diagonal, share(largest))?;
    let coarse_weights = graph.weigh(&parts, weights)?;
    let q = prolong::tentative::<H>(&parts, weights, &coarse_weights)?;
    let p = prolong::prolongator(&rows, &graph, &parts, &q, weights, largest)?;
    let Some(r) = prolong::transpose(&p)? else { return Ok(None) };
    let Some(ap) = product::product(a, &p)? else { return Ok(None) };
    let Some(coarse) = product::product(&r, &ap)? else { return Ok(None) };
    let coarse = prolong::sorted(coarse)?;
    Ok(Some(Coarsened { inverse_diagonal, largest, p, r, coarse, parts, weights: coarse_weights }))
}

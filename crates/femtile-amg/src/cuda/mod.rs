//! Kernels of algebraic multigrid on a GPU.

mod cycle;
mod ranks;
pub(crate) mod setup;

use std::sync::Arc;

use femtile_comm::{Halo, OwnedRows};
use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile_device::{Buffer, Cuda, Element, Scalar};
use femtile_linalg::hooks::CudaHook;
use femtile_linalg::precondition::polynomial::{self, product_hooks};
use femtile_linalg::vector::{self, Convert, VectorKernels};
use femtile_linalg::{LinalgError, LinearOperator, need};
use femtile_sparse::csr::{self, Csr, Offsets};
use femtile_sparse::ell_warp;

use crate::AmgConfig;
use crate::kernels::{AboveKnown, AmgKernels, Coarsened, Grouping, Nodes, Tail};
use crate::patches;
use crate::setup::rank_matrix::RankMatrix;
use crate::setup::rows::to_unit;
use setup::nodes::CoarsenedNodes;

static COPIES: Program = Program { name: "copies", source: include_str!("copies.cu"), headers: &[] };
const THREADS: u32 = 256;
/// The most blocks that search for a largest value.
const MANY_BLOCKS: usize = 1_024;

fn program<H: Scalar, T: Scalar>() -> Specialisation {
    COPIES.of::<H>().define("FEMTILE_FROM", T::C_NAME)
}

/// Returns the programs of a hierarchy with levels in precision H for a matrix in precision T of fewer than 2³² non-zeros:
/// of its setup and of its cycle with polynomial smoothers, those needed first first.
pub fn programs<T: Scalar, H: Scalar>(config: &AmgConfig) -> Vec<Specialisation> {
    // Numbers of 32 bits are copied in any precision.
    let copies = vec![program::<H, T>(), program::<f32, f32>()];
    let of_levels =
        vec![ell_warp::cuda_conversion(), polynomial::cuda_program::<H>(), vector::cuda_conversion::<H, H>()];
    let hooks = [CudaHook::none()].into_iter().chain(product_hooks());
    let products = hooks.map(|hook| csr::cuda_program::<H>(&hook)).collect();
    [copies, setup::programs::<H>(config), of_levels, products, cycle::programs::<H>(config)].concat()
}

/// The programs of this crate, for checks that compile all of them.
pub fn specialisations() -> Vec<Specialisation> {
    let own = [program::<f32, f64>(), program::<f64, f32>(), program::<f32, f32>(), program::<f64, f64>()];
    let of_levels = setup::specialisations().into_iter().chain(patches::cuda::specialisations());
    own.into_iter().chain(cycle::specialisations()).chain(of_levels).collect()
}

/// Returns the address of a buffer, for structures passed to kernels.
pub(crate) fn address<E: Element>(buffer: &Buffer<E, Cuda>) -> u64 {
    buffer.memory().address()
}

/// Copies 32-bit numbers.
pub(crate) fn copy(device: &Cuda, from: &Buffer<u32, Cuda>) -> Result<Buffer<u32, Cuda>, LinalgError> {
    let mut to = Buffer::zeros(device, from.len())?;
    let arguments = (to.write(), from.read(), from.len() as u64);
    let kernel = Kernel::<(Write<u32>, Read<u32>, u64)>::new("amg_copy");
    // SAFETY: both have as many entries.
    unsafe { device.launch(&program::<f32, f32>(), &kernel, Launch::over(from.len(), THREADS), arguments) }?;
    Ok(to)
}

/// Returns the largest magnitude, NaN if one of the values is, by the program that converts them to the
/// precision `H`.
fn largest<H: Scalar, T: Scalar>(values: &Buffer<T, Cuda>) -> Result<f64, LinalgError> {
    let device = values.device();
    let mut largest = Buffer::zeros(device, 1)?;
    let arguments = (largest.write(), values.read(), values.len() as u64);
    let kernel = Kernel::<(Write<u64>, Read<T>, u64)>::new("amg_largest");
    let blocks = values.len().div_ceil(THREADS as usize).min(MANY_BLOCKS);
    // SAFETY: the kernel reads as many values as there are.
    unsafe { device.launch(&program::<H, T>(), &kernel, Launch::line(blocks, THREADS), arguments) }?;
    Ok(f64::from_bits(largest.to_host()?[0]))
}

/// Returns values times a number in the precision of levels.
fn scaled<H: Scalar, T: Scalar>(
    values: &Buffer<T, Cuda>,
    scale: f64,
) -> Result<Buffer<H, Cuda>, LinalgError> {
    let device = values.device();
    let mut scaled = Buffer::zeros(device, values.len())?;
    Convert::<T, H>::convert(device, &mut scaled, scale, values)?;
    Ok(scaled)
}

/// Refuses nodes of another number.
fn need_nodes(nodes: Option<&Nodes<Cuda>>, n: usize) -> Result<(), LinalgError> {
    let Some(Nodes { weights, from_doubtful }) = nodes else { return Ok(()) };
    need("weights", n, weights.len())?;
    need("from_doubtful", n, from_doubtful.as_ref().map_or(n, Buffer::len))
}

impl<H: Scalar> AmgKernels<H> for Cuda {
    fn amg_is_set_up_here(&self) -> bool {
        true
    }

    fn amg_scaled<T: Scalar>(&self, a: &Csr<T, Self>) -> Result<Option<(Csr<H, Self>, f64)>, LinalgError> {
        let Offsets::Narrow(offsets) = a.offsets() else { return Ok(None) };
        let largest = largest::<H, T>(a.values())?;
        if !largest.is_normal() {
            return Ok(None);
        }
        let scale = to_unit(largest);
        let values = scaled(a.values(), scale)?;
        let (offsets, columns) = (copy(self, offsets)?, copy(self, a.columns())?);
        // SAFETY: the pattern is that of a matrix.
        let copied = unsafe { Csr::from_kernels(a.n_cols(), offsets, columns, values) }?;
        Ok(Some((copied, scale)))
    }

    fn amg_coarsen(
        &self,
        a: &Csr<H, Self>,
        nodes: Option<&Nodes<Self>>,
        thresholds: [f64; 2],
        config: &AmgConfig,
        by: Grouping<'_, Self>,
    ) -> Result<Option<Coarsened<H, Self>>, LinalgError> {
        need("columns", a.n_rows(), a.n_cols())?;
        need_nodes(nodes, a.n_rows())?;
        if let Grouping::Graph(graph) = by {
            need("graph", a.n_rows(), graph.n_nodes())?;
        }
        setup::coarsen((a, nodes), thresholds, config, &by)
    }

    fn amg_coarsen_nodes(
        &self,
        a: &Csr<H, Self>,
        b: &[f64],
        block: usize,
        thresholds: [f64; 2],
        config: &AmgConfig,
        by: Grouping<'_, Self>,
    ) -> Result<Option<CoarsenedNodes<H>>, LinalgError> {
        let n = a.n_rows();
        need("columns", n, a.n_cols())?;
        need("block", 0, n % block.max(1))?;
        need("near_nullspace", n * (b.len() / n.max(1)), b.len())?;
        let is_for_host = config.smoother.has_patches() || b.is_empty() || block == 0;
        if is_for_host || matches!(by, Grouping::Graph(_)) {
            return Ok(None);
        }
        setup::nodes::coarsen(a, (b, block), thresholds, config, &by)
    }

    fn amg_above_known(
        &self,
        a: &Csr<H, Self>,
        p: &Csr<H, Self>,
        block: usize,
    ) -> Result<Option<AboveKnown<H, Self>>, LinalgError> {
        let n = a.n_rows();
        need("columns", n, a.n_cols())?;
        need("rows", n, p.n_rows())?;
        need("block", 0, n % block.max(1))?;
        setup::known::above(a, p, block)
    }

    fn amg_is_lopsided(&self, a: &Csr<H, Self>) -> Result<Option<bool>, LinalgError> {
        need("columns", a.n_rows(), a.n_cols())?;
        setup::nodes::is_lopsided(a)
    }

    fn amg_coarsen_on_ranks(
        &self,
        (rows, halo): (&OwnedRows<H, Self>, &Arc<Halo>),
        nodes: Option<&Nodes<Self>>,
        thresholds: [f64; 2],
        config: &AmgConfig,
    ) -> Result<Option<Coarsened<H, Self, RankMatrix<H>>>, LinalgError> {
        need("rows", halo.n_owned(), rows.own.n_rows())?;
        need("columns", halo.n_owned(), rows.own.n_cols())?;
        need("columns", halo.n_ghosts(), rows.border.n_cols())?;
        need("rows", rows.border.n_rows(), rows.own.n_rows().min(rows.border.n_rows()))?;
        need_nodes(nodes, rows.own.n_rows())?;
        ranks::coarsen((rows, halo), nodes, thresholds, config)
    }

    fn amg_largest(&self, values: &Buffer<f64, Self>) -> Result<f64, LinalgError> {
        largest::<H, f64>(values)
    }

    fn amg_tail(&self, tail: Tail<'_, H, Self>) -> Result<bool, LinalgError> {
        cycle::run_tail(self, tail)
    }

    fn amg_correct(
        &self,
        x: &mut Buffer<H, Self>,
        product: &mut Buffer<H, Self>,
        p: &Csr<H, Self>,
        e: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        if cycle::correct(x, p, e)? {
            return Ok(());
        }
        p.apply(product, e)?;
        self.axpby(x, H::ONE, product, H::ONE)
    }
}

//! From a level that is divided among ranks to the next one.

use std::sync::Arc;

use femtile_comm::{DistributedMatrix, Halo};
use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::Convert;
use femtile_sparse::ProductMatrix;

use super::level::{RankLevel, RankMatrix, largest};
use super::{total, totals};
use crate::builder::{LEAST_GAIN, fill_zero_rows, thresholds_of};
use crate::kernels::AmgKernels;
use crate::level::CYCLES;
use crate::relaxation::steps;
use crate::setup::aggregate::aggregate;
use crate::setup::galerkin::galerkin;
use crate::setup::graph::distance;
use crate::setup::independent_set::Visit;
use crate::setup::local_modes::{local_modes, with_modes};
use crate::setup::prolong::Smoothing;
use crate::setup::rows::{Pieces, RowAccess, Rows, inverse, sort_row};
use crate::setup::spectrum::{HARMLESS, Scaling};
use crate::setup::strength::Strength;
use crate::setup::tentative::{NearNullspace, Tentative};
use crate::{AmgConfig, AmgError, check};

/// A level with the matrix below it.
pub(super) struct Coarse<H: Scalar> {
    pub level: RankLevel<H>,
    pub matrix: RankMatrix<H>,
    /// The near-nullspace of that.
    pub b: Vec<f64>,
    pub n_aggregates: usize,
}

/// A prolongator to the rows of a rank, with what it makes of the near-nullspace.
struct Prolongator<H> {
    p: Rows<H>,
    b: Vec<f64>,
    n_aggregates: usize,
    has_zero: bool,
}

/// Makes the level with this number, and the next one; none where that would hardly be smaller.
pub(super) fn coarsen<H: Scalar>(
    device: &Cpu,
    matrix: &RankMatrix<H>,
    b: &[f64],
    number: usize,
    config: &AmgConfig,
) -> Result<Option<Coarse<H>>, AmgError>
where
    Cpu: AmgKernels<H> + Convert<H, H>,
{
    let halo = &matrix.halo;
    let comm = halo.comm();
    let diagonal = check::diagonal(&matrix.rows, 1.0)?;
    if number == 0 {
        check::range(&diagonal)?;
    }
    let scaling = scaling(matrix, &diagonal)?;
    let Prolongator { p, b: coarse_b, n_aggregates, has_zero } =
        prolongator(matrix, &diagonal, b, &scaling, number, config)?;
    let [n, n_coarse] = totals(comm, [matrix.n_owned(), p.n_cols])?;
    if n_coarse as f64 > LEAST_GAIN * n as f64 || n_coarse == 0 {
        return Ok(None);
    }
    let (p, coarse_b) = border_last(matrix, &p, &coarse_b);
    let restriction = p.transpose();
    let mut next = product(matrix, &p, &restriction)?;
    if has_zero {
        fill_zero_rows(&mut next.rows);
    }
    let n_products = CYCLES * config.smoother.n_products();
    let split = matrix.split(device)?;
    let own = ProductMatrix::new(split.own, config.format, n_products, &[])?.0;
    let level = RankLevel {
        a: DistributedMatrix::new(Box::new(own), split.border, Arc::clone(halo))?,
        steps: steps(config.smoother, scaling.largest),
        inverse_diagonal: Buffer::from_vec(device, scaling.inverse_diagonal).map_err(LinalgError::from)?,
        prolongation: p.into_device(device)?,
        restriction: restriction.into_device(device)?,
    };
    debug_assert_eq!(total(comm, next.n_owned()), Ok(n_coarse as u64));
    Ok(Some(Coarse { level, matrix: next, b: coarse_b, n_aggregates }))
}

/// The scaling of a level: the estimate of the largest eigenvalue is the largest of those of the ranks' own blocks, whose
/// eigenvalues are no larger than those of the whole; rows are raised by their whole absolute sums.
fn scaling<H: Scalar>(matrix: &RankMatrix<H>, diagonal: &[H]) -> Result<Scaling<H>, LinalgError> {
    let own = if diagonal.is_empty() { 0.0 } else { Scaling::new(&matrix.own(), diagonal).largest };
    let largest = largest(&matrix.halo, own)?;
    let most = HARMLESS * largest;
    let inverse = |row: usize| {
        let sum = matrix.rows.row(row).1.iter().map(|value| value.to_f64().abs()).sum::<f64>();
        H::ONE / H::from_f64(diagonal[row].to_f64().max(sum / most))
    };
    Ok(Scaling { inverse_diagonal: (0..diagonal.len()).map(inverse).collect(), largest, most })
}

/// The smoothed prolongator to the rows of a rank, from aggregates of them alone.
fn prolongator<H: Scalar>(
    matrix: &RankMatrix<H>,
    diagonal: &[H],
    b: &[f64],
    scaling: &Scaling<H>,
    number: usize,
    config: &AmgConfig,
) -> Result<Prolongator<H>, LinalgError> {
    let mut of_ghosts = vec![0.0; matrix.halo.n_ghosts()];
    matrix.halo.import(&mut of_ghosts, b, &mut || ())?;
    let a = matrix.lumped(b, &of_ghosts);
    let inherited = (number > 0).then_some(&[][..]);
    let modes = local_modes(&a, diagonal, b);
    let thresholds = thresholds_of(config.strength, number);
    let Strength { graph, is_strong, .. } =
        Strength::of_scalars(&a, diagonal, b, modes.as_ref(), inherited, thresholds);
    let k = distance(graph.neighbours.len(), graph.n_nodes());
    let aggregates = aggregate(&graph, |_| 1, k, config.least_aggregate, Visit::ByNumber);
    let vector = NearNullspace { n_vectors: 1, values: b.to_vec() };
    let mut tentative = Tentative::new(&vector, &aggregates, 1);
    let smoothing = Smoothing {
        a: &a,
        is_strong: &is_strong,
        aggregates: &aggregates,
        tentative: &tentative,
        b,
        block: 1,
        largest: scaling.largest,
        most: scaling.most,
    };
    let mut p = smoothing.prolongator();
    if let Some(modes) = &modes {
        p = with_modes(&p, modes);
        tentative.coarse.values.resize(p.n_cols, 0.0);
    }
    let b = tentative.coarse.values;
    Ok(Prolongator { p, b, n_aggregates: aggregates.n, has_zero: tentative.n_zero > 0 })
}

/// Numbers the columns of a prolongator, and the near-nullspace, so that those which rows beside ghosts use come last.
fn border_last<H: Scalar>(matrix: &RankMatrix<H>, p: &Rows<H>, b: &[f64]) -> (Rows<H>, Vec<f64>) {
    let n = matrix.n_owned();
    let mut is_border = vec![false; p.n_cols];
    for row in 0..n {
        if matrix.rows.row(row).0.last().is_some_and(|&last| last as usize >= n) {
            p.row(row).0.iter().for_each(|&column| is_border[column as usize] = true);
        }
    }
    let columns = || 0..p.n_cols as u32;
    let inner = columns().filter(|&column| !is_border[column as usize]);
    let order: Vec<u32> = inner.chain(columns().filter(|&column| is_border[column as usize])).collect();
    let numbers = inverse(&order);
    let renumbered = Pieces::build(
        [n, p.n_cols],
        || (Vec::new(), Vec::new()),
        |(renamed, pairs), row, out| {
            let (columns, values) = p.row(row);
            renamed.clear();
            renamed.extend(columns.iter().map(|&column| numbers[column as usize]));
            let mut values = values.to_vec();
            sort_row(renamed, &mut values, pairs);
            out.extend(renamed, &values);
        },
    );
    (renumbered.join(), order.iter().map(|&column| b[column as usize]).collect())
}

/// The Galerkin product: rows of the prolongator that belong to ghosts come from their owners.
fn product<H: Scalar>(
    matrix: &RankMatrix<H>,
    p: &Rows<H>,
    restriction: &Rows<H>,
) -> Result<RankMatrix<H>, LinalgError> {
    let halo = &matrix.halo;
    let comm = halo.comm();
    let of_ghosts = rows_of_ghosts(halo, p)?;
    let mut ghosts: Vec<(u32, u64)> =
        of_ghosts.iter().flat_map(|row| row.iter().map(|entry| entry.0)).collect();
    ghosts.sort_unstable();
    ghosts.dedup();
    let n_coarse = p.n_cols;
    let place = |ghost: &(u32, u64)| (n_coarse + ghosts.partition_point(|other| other < ghost)) as u32;
    let dimensions = [matrix.n_owned() + of_ghosts.len(), n_coarse + ghosts.len()];
    let all = Pieces::build(
        dimensions,
        || (),
        |(), row, out| match row.checked_sub(matrix.n_owned()) {
            None => {
                let (columns, values) = p.row(row);
                out.extend(columns, values);
            }
            Some(ghost) => of_ghosts[ghost].iter().for_each(|(of, value)| out.push(place(of), *value)),
        },
    );
    let rows = galerkin(&matrix.rows, &all.join(), restriction);
    let ids: Vec<u64> = (0..n_coarse as u64).collect();
    Ok(RankMatrix { rows, halo: Arc::new(Halo::new(comm, &ids, &ghosts)?) })
}

/// A row of another rank's prolongator: owner and number of each column, with its value.
type GhostRow<H> = Vec<((u32, u64), H)>;

/// The rows of the prolongator of each ghost.
fn rows_of_ghosts<H: Scalar>(halo: &Halo, p: &Rows<H>) -> Result<Vec<GhostRow<H>>, LinalgError> {
    let comm = halo.comm();
    let (mut lengths, mut columns, mut values) = (
        vec![Vec::new(); comm.n_ranks()],
        vec![Vec::new(); comm.n_ranks()],
        vec![Vec::new(); comm.n_ranks()],
    );
    for (to, places) in halo.exports() {
        for &place in places {
            let (row_columns, row_values) = p.row(place as usize);
            lengths[*to].push(row_columns.len() as u32);
            columns[*to].extend_from_slice(row_columns);
            values[*to].extend_from_slice(row_values);
        }
    }
    let (lengths, columns, values) =
        (comm.all_to_all(&lengths)?, comm.all_to_all(&columns)?, comm.all_to_all(&values)?);
    let mut rows = Vec::with_capacity(halo.n_ghosts());
    for (from, _) in halo.imports() {
        let mut entries = columns[*from].iter().zip(&values[*from]);
        for &length in &lengths[*from] {
            let entry = |(&column, &value): (&u32, &H)| ((*from as u32, u64::from(column)), value);
            rows.push(entries.by_ref().take(length as usize).map(entry).collect());
        }
    }
    Ok(rows)
}

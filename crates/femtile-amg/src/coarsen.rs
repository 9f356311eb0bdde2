//! From a level to the next one, on the host.
//!
//! Aggregates stay within a rank. Their choice adds entries in ghost columns to the diagonal. All else uses the whole matrix:
//! prolongators reach ghosts, and the rows of the next matrix are added up by their owners. A rank that has the level whole
//! has no ghosts, and exchanges nothing.

use femtile_comm::Halo;
use femtile_device::{Scalar, parallel};
use femtile_linalg::LinalgError;

use crate::builder::{Builder, Groups, LEAST_GAIN, OpenLevel, Partition, thresholds_of};
use crate::distributed::border::{add_single_nodes, border_last, join_to_ghosts, node_sizes};
use crate::distributed::modes::{RankModes, local_modes};
use crate::distributed::product::{NextUnknowns, product, with_modes};
use crate::kernels::AmgKernels;
use crate::patches::Patches;
use crate::relaxation::Relaxation;
use crate::setup::aggregate::aggregate;
use crate::setup::evolution::{doubtful_rows, inherited};
use crate::setup::galerkin::galerkin;
use crate::setup::graph::{Aggregates, NONE, distance};
use crate::setup::independent_set::Visit;
use crate::setup::prolong::Smoothing;
use crate::setup::rank_matrix::{RankMatrix, totals};
use crate::setup::rows::{RowAccess, Rows, inverse};
use crate::setup::spectrum::Scaling;
use crate::setup::strength::Strength;
use crate::setup::tentative::{NearNullspace, Tentative};
use crate::{AmgError, check};

/// If the next level would have more than this share of the rows, a smaller threshold of strong connections
/// is tried. This happens if neighbours are strongly connected along thin directions only.
pub(crate) const STALLED: f64 = 0.5;
/// These factors of the threshold are tried one after the other.
const WEAKENED: [f64; 4] = [0.25, 0.0625, 0.015_625, 0.0];
/// Diagonal entries up to this share of the sizes of their terms are rounding, in double and in single precision.
const NO_ENERGY: [f64; 2] = [1e-12, 5e-7];
/// A row is dense if it has more entries than a number, and many times those of an average row.
const DENSE: [usize; 2] = [400, 10];

/// A level that is to be coarsened. Values of ghosts follow those of the rows of the rank.
pub(crate) struct Fine<H> {
    pub matrix: RankMatrix<H>,
    /// Rows of a node.
    pub block: usize,
    pub diagonal: Vec<H>,
    /// The Frobenius norm of the diagonal block of each row's node; empty for nodes of one row and without ghosts.
    pub sizes: Vec<H>,
    pub b: NearNullspace,
}

impl<H: Scalar> Fine<H> {
    /// Returns whether nodes have one row and the near-nullspace one vector.
    pub fn is_scalar(&self) -> bool {
        self.block == 1 && self.b.n_vectors == 1
    }

    /// The diagonal of the rows of the rank.
    pub fn own_diagonal(&self) -> &[H] {
        &self.diagonal[..self.matrix.n_owned()]
    }

    /// Returns the matrix and the near-nullspace of its rows.
    pub fn into_parts(self) -> (RankMatrix<H>, NearNullspace) {
        let Self { matrix, mut b, .. } = self;
        b.values.truncate(matrix.n_owned() * b.n_vectors);
        (matrix, b)
    }

    /// Permutes the rows of a level without ghosts.
    fn permuted(mut self, order: &[u32]) -> Self {
        self.matrix.rows = self.matrix.rows.permuted(order);
        self.diagonal = order.iter().map(|&row| self.diagonal[row as usize]).collect();
        self.b = self.b.permuted(order);
        self
    }
}

/// The next level, or the level itself if the next one would hardly be smaller.
pub(crate) enum Step<H> {
    Next(RankMatrix<H>, NearNullspace),
    Kept(Fine<H>),
}

/// Input of the coarsening of a level.
struct Choice<H> {
    strength: Strength,
    partition: Partition,
    modes: Option<RankModes<H>>,
    /// As [`Builder::dense_nodes`].
    is_dense: Vec<bool>,
    /// The factor of the thresholds.
    factor: f64,
}

/// Aggregates of a level; rows are in the order of its patches, if it has some.
struct Aggregated<H> {
    aggregates: Aggregates,
    patches: Option<Patches>,
    /// As [`Strength::is_strong`], for all columns.
    is_strong: Vec<bool>,
    modes: Option<RankModes<H>>,
    /// As [`Builder::dense_nodes`].
    is_dense: Vec<bool>,
}

impl<H: Scalar, D: AmgKernels<H>> Builder<'_, H, D> {
    /// Checks the matrix of the next level. Collective.
    pub fn checked(&mut self, mut matrix: RankMatrix<H>, b: NearNullspace) -> Result<Fine<H>, AmgError> {
        let number = self.number();
        if number > 0 {
            self.isolate_null_rows(&mut matrix)?;
        }
        let checked = check::diagonal(&matrix.rows, self.scale);
        if number > 0 {
            // Rows of coarser levels are not rows of the given matrix. Callers go on after this error, so all ranks return it.
            let wrong = match &checked {
                Err(AmgError::Diagonal { row, .. }) => {
                    [*row as f64, check::diagonal_entry(&matrix.rows, *row)]
                }
                _ => [-1.0, 0.0],
            };
            let all =
                matrix.halo.comm().all_gather(&[[matrix.n_owned() as f64, wrong[0], wrong[1]]])?.concat();
            if let Some(rank) = all.iter().position(|[_, row, _]| *row >= 0.0) {
                let rows_of = |ranks: &[[f64; 3]]| ranks.iter().map(|[n, ..]| *n as usize).sum::<usize>();
                let [_, row, pivot] = all[rank];
                let (n_rows, row) = (rows_of(&all), rows_of(&all[..rank]) + row as usize);
                return Err(AmgError::Indefinite { n_rows, row, pivot });
            }
        }
        let diagonal = checked?;
        if number == 0 {
            check::range(&diagonal)?;
        }
        if number == 0 && matrix.is_whole() {
            check::symmetry(&matrix.rows, self.scale)?;
        }
        let block = if self.n_coarsened() == 0 { self.config.block_size } else { b.n_vectors };
        let NearNullspace { n_vectors, values } = b;
        let b = NearNullspace { n_vectors, values: matrix.with_ghosts(values, n_vectors)? };
        let sizes = match block > 1 && !matrix.is_whole() {
            true => matrix.with_ghosts(node_sizes(&matrix, block), 1)?,
            false => Vec::new(),
        };
        let diagonal = matrix.with_ghosts(diagonal, 1)?;
        Ok(Fine { matrix, block, diagonal, sizes, b })
    }

    /// Adds the level above the known one, and returns that; the matrix itself if none is known.
    pub fn below_known(
        &mut self,
        (matrix, b): (RankMatrix<H>, NearNullspace),
    ) -> Result<(RankMatrix<H>, NearNullspace), AmgError> {
        let is_first = self.number() == 0 && self.config.max_levels > 1;
        let is_wanted = is_first && matrix.n_owned() > self.config.coarse_rows;
        let Some(space) = self.config.coarse_space.as_ref().filter(|_| is_wanted) else {
            return Ok((matrix, b));
        };
        let Fine { matrix, block, diagonal, b, .. } = self.checked(matrix, b)?;
        let scaling = Scaling::new(&matrix, &diagonal, block)?;
        let p = space.prolongation::<H>();
        let r = p.transpose();
        let next = RankMatrix::whole(galerkin(&matrix.rows, &p, &r))?;
        self.terms = Some(terms(&r, &diagonal, None)?);
        let of_level = (&matrix.rows, &diagonal[..]);
        let relaxation = Relaxation::new(self.device, self.config.smoother, of_level, None, scaling)?;
        let a = matrix.into_device(self.device)?;
        self.push_shape(&a, next.n_owned() / block, 0, p.columns.len())?;
        self.open = Some(OpenLevel { a, relaxation, prolongation: p, restriction: r, halo: None });
        self.n_above_known = 1;
        Ok((next, space.near_nullspace(&b)))
    }

    /// Adds a level. Collective.
    pub fn coarsen(&mut self, mut fine: Fine<H>) -> Result<Step<H>, AmgError> {
        let Some(choice) = self.choice(&fine)? else { return Ok(Step::Kept(fine)) };
        let Choice { mut strength, partition, mut modes, is_dense, factor } = choice;
        self.groups.push(Groups::OnHost(partition.clone()));
        let Partition { mut aggregates, patches } = partition;
        let order = patches.as_ref().map(|patches| patches.rows(fine.block));
        self.close(order.as_deref())?;
        if let (Some(order), Some(patches)) = (&order, &patches) {
            fine = fine.permuted(order);
            aggregates.of_node =
                patches.nodes.iter().map(|&node| aggregates.of_node[node as usize]).collect();
            modes.iter_mut().for_each(|modes| modes.rows = modes.rows.with_rows(order));
            self.inherited = permuted_flags(&self.inherited, order);
            strength = self.strength(&fine, modes.as_ref(), &is_dense, factor);
        }
        if fine.matrix.halo.n_ghosts() > 0 {
            let numbers = inverse(&border_last(&fine, &aggregates, modes.as_ref()));
            let renumbered = aggregates.of_node.iter_mut().filter(|part| **part != NONE);
            renumbered.for_each(|part| *part = numbers[*part as usize]);
        }
        let is_first = self.n_coarsened() == 0;
        let flags = if is_first { strength.is_doubtful } else { std::mem::take(&mut self.inherited) };
        self.inherited = inherited(&flags, &aggregates);
        let level = Aggregated { aggregates, patches, is_strong: strength.is_strong, modes, is_dense };
        let (next, b) = self.add_level(fine, level)?;
        Ok(Step::Next(next, b))
    }

    /// Chooses aggregates; none if there would be hardly fewer unknowns. Collective.
    fn choice(&self, fine: &Fine<H>) -> Result<Option<Choice<H>>, AmgError> {
        let (comm, k) = (fine.matrix.halo.comm(), fine.b.n_vectors);
        let modes =
            if fine.is_scalar() { local_modes(&fine.matrix, &fine.diagonal, &fine.b.values)? } else { None };
        let is_dense = self.dense_nodes(fine)?;
        let n_modes = modes.as_ref().map_or(0, |modes| modes.n);
        let [n_rows, n_modes] = totals(comm, [fine.matrix.n_owned(), n_modes])?;
        let share_of = |n: usize| (n * k + n_modes) as f64 / n_rows as f64;
        let choose = |factor: f64| -> Result<_, AmgError> {
            let strength = self.strength(fine, modes.as_ref(), &is_dense, factor);
            let partition = self.partition(fine, &strength, &is_dense, factor);
            let [n] = totals(comm, [partition.aggregates.n])?;
            Ok((strength, partition, n))
        };
        let (mut factor, mut chosen) = (1.0, choose(1.0)?);
        for weaker in WEAKENED {
            if share_of(chosen.2) <= STALLED || self.is_grouped() {
                break;
            }
            let next = choose(weaker)?;
            if next.2 > 0 && next.2 < chosen.2 {
                (chosen, factor) = (next, weaker);
            }
        }
        let (strength, partition, n) = chosen;
        let is_smaller = share_of(n) <= LEAST_GAIN && n * k + n_modes > 0;
        Ok(is_smaller.then_some(Choice { strength, partition, modes, is_dense, factor }))
    }

    /// Returns the strength of connection in the matrix of the next level.
    fn strength(
        &self,
        fine: &Fine<H>,
        modes: Option<&RankModes<H>>,
        is_dense: &[bool],
        factor: f64,
    ) -> Strength {
        let Fine { matrix, block, b, .. } = fine;
        let (diagonal, block) = (fine.own_diagonal(), *block);
        let (number, is_first) = (self.n_coarsened(), self.n_coarsened() == 0);
        let thresholds = thresholds_of(self.config.strength, number).map(|theta| factor * theta);
        let mut own = matrix.own();
        let mut strength = match self.known.graph.filter(|_| is_first) {
            Some(graph) if fine.is_scalar() => Strength {
                is_doubtful: doubtful_rows(&own, diagonal, &b.values, None, |_| false),
                ..Strength::on(graph, &own, diagonal, block, thresholds[1])
            },
            Some(graph) => Strength::on(graph, &own, diagonal, block, thresholds[1]),
            None if fine.is_scalar() => {
                // Entries that reach others are on the diagonal, so that smooth vectors are smooth here too.
                matrix.lump(&mut own, &b.values);
                let inherited = (!is_first).then_some(self.inherited.as_slice());
                let modes = modes.map(|modes| &modes.rows);
                let b = &b.values[..matrix.n_owned()];
                Strength::of_scalars(&own, diagonal, b, modes, inherited, thresholds)
            }
            None => Strength::new(&own, diagonal, block, thresholds, factor),
        };
        if !is_dense.is_empty() {
            strength = strength.without(&own, block, is_dense);
        }
        strength.is_strong = join_to_ghosts(fine, &own, strength.is_strong, is_dense, thresholds[1]);
        strength
    }

    /// Flags the nodes with dense rows, ghosts included. Empty if there are none, or if the smoother uses patches, which
    /// cannot hold such a row. Collective.
    ///
    /// Aggregates around these nodes, and prolongators smoothed by them, would make the matrices of all
    /// further levels dense. They remain nodes of their own on every level.
    fn dense_nodes(&self, Fine { matrix, block, .. }: &Fine<H>) -> Result<Vec<bool>, LinalgError> {
        let (a, block, [fewest, times]) = (&matrix.rows, *block, DENSE);
        let least = fewest.max(times * a.columns.len() / a.n_rows().max(1));
        let is_long = |row: usize| a.offsets[row + 1] - a.offsets[row] > least;
        let has_long = !self.config.smoother.has_patches() && (0..a.n_rows()).any(is_long);
        if matrix.halo.comm().any([has_long])? == [false] {
            return Ok(Vec::new());
        }
        let of_row = |row: usize| {
            let first = row / block * block;
            u32::from((first..first + block).any(is_long))
        };
        let of_rows = matrix.with_ghosts((0..a.n_rows()).map(of_row).collect(), 1)?;
        Ok(of_rows.into_iter().step_by(block).map(|is_dense| is_dense == 1).collect())
    }

    /// Returns whether the aggregates of the next level are known.
    fn is_grouped(&self) -> bool {
        matches!(self.known.groups.get(self.n_coarsened()), Some(Groups::OnHost(_)))
    }

    /// Replaces rows of a coarser level that have no energy except rounding by rows of the identity. They
    /// belong to parts of the matrix without a Dirichlet value, reduced to a single node. Collective.
    ///
    /// # Errors
    /// [`AmgError::Resolution`] in single precision, which cannot tell such a row from one of little energy.
    fn isolate_null_rows(&mut self, matrix: &mut RankMatrix<H>) -> Result<(), AmgError> {
        let (terms, tolerance) = (self.terms.take(), energy_rounding::<H>());
        let a = &matrix.rows;
        let is_null = |row: usize| {
            let own = check::diagonal_entry(a, row);
            match &terms {
                Some(terms) => own.abs() <= tolerance * terms[row],
                None => own <= 0.0 && own.abs() <= tolerance,
            }
        };
        let null: Vec<u32> = (0..a.n_rows()).map(|row| u32::from(is_null(row))).collect();
        let n_null = null.iter().filter(|null| **null == 1).count();
        let [n_null, n_rows] = totals(matrix.halo.comm(), [n_null, a.n_rows()])?;
        if n_null == 0 {
            return Ok(());
        }
        if is_single::<H>() {
            return Err(AmgError::Resolution { n_rows, n_lost: n_null });
        }
        self.n_zero += n_null;
        let null = matrix.with_ghosts(null, 1)?;
        let a = &mut matrix.rows;
        for row in 0..a.n_rows() {
            for at in a.offsets[row]..a.offsets[row + 1] {
                let column = a.columns[at] as usize;
                if null[row] == 1 || null[column] == 1 {
                    a.values[at] = if row == column { H::ONE } else { H::ZERO };
                }
            }
        }
        Ok(())
    }

    /// Returns the known aggregates and patches of the next level, or those of its graph.
    fn partition(
        &self,
        fine: &Fine<H>,
        Strength { graph, .. }: &Strength,
        is_dense: &[bool],
        factor: f64,
    ) -> Partition {
        match self.known.groups.get(self.n_coarsened()) {
            Some(Groups::OnHost(known)) if known.aggregates.of_node.len() == graph.n_nodes() => {
                return known.clone();
            }
            _ => {}
        }
        let k = distance(graph.neighbours.len(), graph.n_nodes());
        let mut aggregates = aggregate(graph, |_| 1, k, self.config.least_aggregate, Visit::ByNumber);
        for (part, _) in aggregates.of_node.iter_mut().zip(is_dense).filter(|(_, is_dense)| **is_dense) {
            *part = aggregates.n as u32;
            aggregates.n += 1;
        }
        if fine.matrix.halo.n_ghosts() > 0 {
            let [threshold, _] = thresholds_of(self.config.strength, self.n_coarsened());
            add_single_nodes(fine, factor * threshold, &mut aggregates);
        }
        let has_patches = self.config.smoother.has_patches();
        let patches = has_patches.then(|| Patches::new(graph, &aggregates, fine.block));
        Partition { aggregates, patches }
    }

    /// Adds a level and returns the matrix of the next one with its near-nullspace. Collective.
    fn add_level(
        &mut self,
        fine: Fine<H>,
        level: Aggregated<H>,
    ) -> Result<(RankMatrix<H>, NearNullspace), AmgError> {
        let Aggregated { aggregates, patches, is_strong, modes, is_dense } = level;
        let (n, n_aggregates, k) = (fine.matrix.n_owned(), aggregates.n, fine.b.n_vectors);
        let scaling = Scaling::new(&fine.matrix, fine.own_diagonal(), fine.block)?;
        let Tentative { values, mut coarse, n_zero, .. } = Tentative::new(&fine.b, &aggregates, fine.block);
        let n_coarse = n_aggregates * k + modes.as_ref().map_or(0, |modes| modes.n);
        coarse.values.resize(n_coarse * k, 0.0);
        let NextUnknowns { places, aggregates, others } =
            NextUnknowns::new(&fine, aggregates, n_coarse, modes.as_ref())?;
        let p = Smoothing {
            a: &fine.matrix.rows,
            is_strong: &is_strong,
            is_dense: &is_dense,
            aggregates: &aggregates,
            tentative: &fine.matrix.with_ghosts(values, k)?,
            n_vectors: k,
            b: &fine.b.values,
            block: fine.block,
            largest: scaling.largest,
            most: scaling.most,
        }
        .prolongator();
        let p = match &modes {
            Some(modes) => with_modes(&p, modes, n_aggregates, &others),
            None => p,
        };
        let r = p.transpose();
        let comm = fine.matrix.halo.comm();
        let halo = (!fine.matrix.is_whole()).then(|| places.halo(comm)).transpose()?;
        let mut next = match &halo {
            Some(halo) => product(&fine.matrix, [&p, &r], &places, halo)?,
            None => RankMatrix::whole(galerkin(&fine.matrix.rows, &p, &r))?,
        };
        if n_zero > 0 {
            fill_zero_rows(&mut next.rows);
        }
        self.terms = Some(terms(&r, &fine.diagonal, halo.as_ref())?);
        let Fine { matrix, diagonal, .. } = fine;
        let of_level = (&matrix.rows, &diagonal[..n]);
        let relaxation =
            Relaxation::new(self.device, self.config.smoother, of_level, patches.as_ref(), scaling)?;
        let a = matrix.into_device(self.device)?;
        self.push_shape(&a, n_aggregates, relaxation.n_patches(), p.columns.len())?;
        self.open = Some(OpenLevel { a, relaxation, prolongation: p, restriction: r, halo });
        Ok((next, coarse))
    }
}

pub(crate) fn is_single<H: Scalar>() -> bool {
    H::EPSILON.to_f64() > 1e-10
}

/// Returns the share of the sizes of its terms up to which a diagonal entry is rounding.
pub(crate) fn energy_rounding<H: Scalar>() -> f64 {
    NO_ENERGY[usize::from(is_single::<H>())]
}

/// Returns the sum of the sizes of all terms of each diagonal entry of the next matrix, from the restriction to its rows and
/// ghosts, and the diagonal. Collective.
fn terms<H: Scalar>(r: &Rows<H>, diagonal: &[H], halo: Option<&Halo>) -> Result<Vec<f64>, LinalgError> {
    let size = |row: usize| {
        let (columns, values) = r.row(row);
        let terms = columns.iter().zip(values).map(|(&column, &p)| p * p * diagonal[column as usize]);
        terms.sum::<H>().to_f64()
    };
    let mut terms = parallel::map(r.n_rows(), 1_024, size);
    if let Some(halo) = halo {
        let of_ghosts = terms.split_off(halo.n_owned());
        halo.add_to_owners(&mut terms, &of_ghosts)?;
    }
    Ok(terms)
}

/// Sets the diagonal to one in rows that are zero because of a zero column of the prolongator.
fn fill_zero_rows<H: Scalar>(a: &mut Rows<H>) {
    for row in 0..a.n_rows() {
        let range = a.offsets[row]..a.offsets[row + 1];
        let own = range.clone().find(|&at| a.columns[at] as usize == row);
        if let Some(at) = own.filter(|_| range.clone().all(|at| a.values[at] == H::ZERO)) {
            a.values[at] = H::ONE;
        }
    }
}

/// Permutes flags of rows; empty flags stay empty, and rows beyond their end are false.
fn permuted_flags(flags: &[bool], order: &[u32]) -> Vec<bool> {
    let of_row = |&row: &u32| flags.get(row as usize) == Some(&true);
    if flags.is_empty() { Vec::new() } else { order.iter().map(of_row).collect() }
}

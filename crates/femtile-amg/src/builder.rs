//! Sets a hierarchy up, level by level.

use std::sync::Arc;

use femtile_device::{Device, Scalar, parallel};
use femtile_linalg::LinalgError;
use femtile_sparse::ProductMatrix;
use femtile_sparse::csr::Csr;

use crate::check;
use crate::config::MOST_COARSE_ROWS;
use crate::kernels::{AmgKernels, Coarsened, DeviceAggregates, Grouping, Nodes};
use crate::level::{Coarsest, Level, LevelShape};
use crate::memory_limit::offload_for_setup;
use crate::patches::{PatchedLevel, Patches, RowOrder};
use crate::relaxation::Relaxation;
use crate::setup::aggregate::aggregate;
use crate::setup::coarse;
use crate::setup::evolution::{doubtful_rows, inherited};
use crate::setup::galerkin::galerkin;
use crate::setup::graph::{Aggregates, Graph, distance};
use crate::setup::independent_set::Visit;
use crate::setup::local_modes::{local_modes, with_modes};
use crate::setup::prolong::Smoothing;
use crate::setup::rescaling::is_badly_scaled_there;
use crate::setup::rows::{RowAccess, Rows};
use crate::setup::spectrum::Scaling;
use crate::setup::strength::Strength;
use crate::setup::tentative::{NearNullspace, Tentative};
use crate::{AmgConfig, AmgError};

/// The threshold of strong connections on coarser levels relative to the first: entries between aggregates are smaller.
const COARSER: f64 = 0.25;
/// The threshold of entries that smooth prolongators, relative to that of strong connections on the first level: smoothed
/// by strong connections alone, prolongators would not follow solutions beside a jump of coefficients.
const SMOOTHED: f64 = 0.25;
/// That threshold on a level relative to the level before.
const WEAKER: f64 = 0.5;
/// The largest level, in rows and non-zeros, that is set up on the host because kernel launches would cost
/// more than the work.
pub(crate) const FEW: [usize; 2] = [1_500, 20_000];
/// Coarsening ends if the next level would have more than this share of the rows.
pub(crate) const LEAST_GAIN: f64 = 0.8;
/// If the next level would have more than this share of the rows, a smaller threshold of strong connections
/// is tried. This happens if neighbours are strongly connected along thin directions only.
const STALLED: f64 = 0.5;
/// These factors of the threshold are tried one after the other.
const WEAKENED: [f64; 4] = [0.25, 0.0625, 0.015_625, 0.0];
/// Diagonal entries up to this share of the sizes of their terms are rounding, in double and in single precision.
const NO_ENERGY: [f64; 2] = [1e-12, 5e-7];
/// A row is dense if it has more entries than a number, and many times those of an average row.
const DENSE: [usize; 2] = [400, 10];

/// The aggregates of a level, in the memory of the device that set it up.
#[derive(Debug, Clone)]
pub(crate) enum Groups<D: Device> {
    OnHost(Partition),
    OnDevice(DeviceAggregates<D>),
}

/// Aggregates and patches of the nodes of a level, in the order of the level above.
#[derive(Debug, Clone)]
pub(crate) struct Partition {
    aggregates: Aggregates,
    /// With patch smoothers.
    patches: Option<Patches>,
}

/// Data available before the setup.
pub(crate) struct Known<'a, D: Device> {
    /// The aggregates of the first levels.
    pub groups: &'a [Groups<D>],
    /// The graph of the first level.
    pub graph: Option<&'a Graph>,
}

impl<D: Device> Clone for Known<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for Known<'_, D> {}

/// A hierarchy that is being set up.
pub(crate) struct Builder<'a, H: Scalar, D: Device> {
    pub device: &'a D,
    pub config: &'a AmgConfig,
    /// The first matrix is the given one times this power of two.
    pub scale: f64,
    pub known: Known<'a, D>,
    /// Levels above the first of these, which other ranks share.
    pub above: usize,
    pub levels: Vec<Level<H, D>>,
    /// The last level, until the order of rows of the next one is known.
    pub open: Option<OpenLevel<H, D>>,
    pub groups: Vec<Groups<D>>,
    /// Flags of the rows of the next level that come from doubtful ones, as [`inherited`]; empty if none do.
    pub inherited: Vec<bool>,
    /// As [`Hierarchy::order`].
    pub order: Option<Arc<RowOrder<D>>>,
    pub shapes: Vec<LevelShape>,
    /// As [`coarse::Inverse::n_zero`] on the coarsest level, and rows of other levels without energy.
    pub n_zero: usize,
    /// The sum of the sizes of all terms of each diagonal entry of the matrix of the next level; none for levels that a
    /// device made.
    terms: Option<Vec<f64>>,
    /// Whether coarsening ended because no threshold makes the next level much smaller.
    pub is_stalled: bool,
    /// Whether a badly scaled matrix is to be found, and whether this one is.
    pub rescaling: [bool; 2],
}

/// Input of the coarsening of a level; rows are in the order of its patches, if it has some.
struct Choice<H: Scalar> {
    aggregates: Aggregates,
    patches: Option<Patches>,
    /// As [`Strength::is_strong`].
    is_strong: Vec<bool>,
    /// As [`local_modes`].
    modes: Option<Rows<H>>,
    /// As [`Builder::dense_nodes`].
    is_dense: Vec<bool>,
}

/// A level whose transfers are on the host until the order of rows of the next level is known.
pub(crate) struct OpenLevel<H: Scalar, D: Device> {
    a: Csr<H, D>,
    relaxation: Relaxation<H, D>,
    prolongation: Rows<H>,
    restriction: Rows<H>,
}

impl<'a, H: Scalar, D: Device> Builder<'a, H, D> {
    /// Begins a hierarchy below `above` levels.
    pub fn new(device: &'a D, config: &'a AmgConfig, known: Known<'a, D>, above: usize) -> Self {
        Self {
            device,
            config,
            scale: 1.0,
            known,
            above,
            levels: Vec::new(),
            open: None,
            groups: Vec::new(),
            inherited: Vec::new(),
            order: None,
            shapes: Vec::new(),
            n_zero: 0,
            terms: None,
            is_stalled: false,
            rescaling: [false; 2],
        }
    }
}

impl<H: Scalar, D: AmgKernels<H>> Builder<'_, H, D> {
    /// Copies the matrix to the host.
    pub fn take<T: Scalar>(&mut self, a: &Csr<T, D>) -> Result<Rows<H>, AmgError> {
        let (rows, scale) = Rows::of(a)?;
        self.scale = scale;
        Ok(rows)
    }

    /// Adds the levels that the device sets up itself and returns the matrix left for the host; none if it sets up none.
    pub fn on_device<T: Scalar>(
        &mut self,
        a: &Csr<T, D>,
    ) -> Result<Option<(Rows<H>, NearNullspace)>, AmgError> {
        if self.is_for_host(a) {
            return Ok(None);
        }
        let Some((mut a, scale)) = self.device.amg_scaled(a)? else { return Ok(None) };
        self.scale = scale;
        if self.rescaling[0] && is_badly_scaled_there(&a)? {
            self.rescaling[1] = true;
            return Ok(None);
        }
        offload_for_setup(&mut a)?;
        self.on_device_from(a, None)
    }

    /// As [`Builder::on_device`], from a level with these nodes on, none for the first of all levels.
    pub fn on_device_from(
        &mut self,
        mut a: Csr<H, D>,
        mut nodes: Option<Nodes<D>>,
    ) -> Result<Option<(Rows<H>, NearNullspace)>, AmgError> {
        let n_before = self.levels.len();
        while !self.is_for_host(&a) && self.above + self.levels.len() + 1 < self.config.max_levels {
            let number = self.above + self.levels.len();
            let by = match (self.known.groups.get(number), self.known.graph) {
                (Some(Groups::OnDevice(parts)), _) => Grouping::Known(parts),
                (_, Some(graph)) if number == 0 => Grouping::Graph(graph),
                _ => Grouping::Connections,
            };
            let thresholds = self.thresholds(number);
            let made = self.device.amg_coarsen(&a, nodes.as_ref(), thresholds, self.config, by)?;
            let Some(made) = made.filter(|made| made.parts.n as f64 <= LEAST_GAIN * a.n_rows() as f64) else {
                break;
            };
            let (coarse, of_coarse) = self.add(a, made)?;
            (a, nodes) = (coarse, Some(of_coarse));
        }
        let Some(Nodes { weights, from_doubtful }) = nodes.filter(|_| self.levels.len() > n_before) else {
            return Ok(None);
        };
        if let Some(marks) = from_doubtful {
            self.inherited = marks.to_host()?.into_iter().map(|mark| mark != 0).collect();
        }
        let lengths = weights.to_host()?.into_iter().map(|weight| f64::from(weight).sqrt()).collect();
        Ok(Some((Rows::as_is(&a)?, NearNullspace { n_vectors: 1, values: lengths })))
    }

    /// Returns whether a matrix is too small for a device, or the coarsest.
    fn is_for_host<T: Scalar>(&self, a: &Csr<T, D>) -> bool {
        let [few_rows, few_entries] = FEW;
        a.n_rows() <= self.config.coarse_rows || (a.n_rows() <= few_rows && a.n_nonzeros() <= few_entries)
    }

    /// Adds a level that the device has set up; returns the matrix of the next one and its nodes.
    fn add(&mut self, a: Csr<H, D>, made: Coarsened<H, D>) -> Result<(Csr<H, D>, Nodes<D>), AmgError> {
        let Coarsened { inverse_diagonal, patched, largest, p, r, coarse, parts, nodes } = made;
        if let Some(order) = &parts.order {
            self.reorder(Arc::clone(&order.order))?;
        }
        let (a, relaxation) = match patched {
            Some(PatchedLevel { a, smoother }) => (a, Relaxation::Patches(Box::new(smoother))),
            None => (a, Relaxation::polynomial(self.config.smoother, inverse_diagonal, largest)),
        };
        self.shapes.push(LevelShape {
            n_rows: a.n_rows(),
            n_nonzeros: a.n_nonzeros(),
            n_aggregates: parts.n,
            n_patches: relaxation.n_patches(),
            n_prolongator: p.n_nonzeros(),
        });
        self.groups.push(Groups::OnDevice(parts));
        let a = ProductMatrix::Rows(a);
        self.levels.push(Level { a, relaxation, prolongation: p, restriction: r });
        Ok((coarse, nodes))
    }

    /// Returns the thresholds of strong connections and of entries that smooth prolongators, on the level with this number.
    fn thresholds(&self, number: usize) -> [f64; 2] {
        thresholds_of(self.config.strength, number)
    }

    /// Adds the levels from a matrix on, and returns the coarsest one.
    pub fn run(&mut self, mut a: Rows<H>, mut b: NearNullspace) -> Result<Coarsest<H, D>, AmgError> {
        // Nodes below levels of several ranks have a row for each vector.
        let mut block = if self.above > 0 { b.n_vectors } else { self.config.block_size };
        loop {
            let number = self.above + self.groups.len();
            if number > 0 {
                self.isolate_null_rows(&mut a)?;
            }
            let mut diagonal = match check::diagonal(&a, self.scale) {
                // Rows of coarser levels are not rows of the given matrix.
                Err(AmgError::Diagonal { row, .. }) if number > 0 => {
                    let pivot = check::diagonal_entry(&a, row);
                    return Err(AmgError::Indefinite { n_rows: a.n_rows(), row, pivot });
                }
                checked => checked?,
            };
            if number == 0 {
                check::range(&diagonal)?;
                check::symmetry(&a, self.scale)?;
            }
            if a.n_rows() <= self.config.coarse_rows || number + 1 == self.config.max_levels {
                return self.end(a, &diagonal, &b, block);
            }
            let mut modes = modes_of(&a, &diagonal, &b, block);
            let is_dense = self.dense_nodes(&a, block);
            let n_modes = modes.as_ref().map_or(0, |modes| modes.n_cols);
            let share_of = |n: usize| (n * b.n_vectors + n_modes) as f64 / a.n_rows() as f64;
            let mut factor = 1.0;
            let choose = |factor: f64| {
                let strength = self.strength(&a, &diagonal, &b, modes.as_ref(), (block, &is_dense), factor);
                let partition = self.partition(&strength.graph, block, &is_dense);
                (strength, partition)
            };
            let mut chosen = choose(factor);
            for weaker in WEAKENED {
                if share_of(chosen.1.aggregates.n) <= STALLED || self.is_grouped(number) {
                    break;
                }
                let next = choose(weaker);
                if next.1.aggregates.n > 0 && next.1.aggregates.n < chosen.1.aggregates.n {
                    (chosen, factor) = (next, weaker);
                }
            }
            let (Strength { mut is_strong, mut is_doubtful, .. }, Partition { mut aggregates, patches }) =
                chosen;
            let n_coarse = aggregates.n * b.n_vectors + n_modes;
            if share_of(aggregates.n) > LEAST_GAIN || n_coarse == 0 {
                self.is_stalled = a.n_rows() > MOST_COARSE_ROWS;
                return self.end(a, &diagonal, &b, block);
            }
            let partition = Partition { aggregates: aggregates.clone(), patches: patches.clone() };
            self.groups.push(Groups::OnHost(partition));
            let order = patches.as_ref().map(|patches| patches.rows(block));
            self.close(order.as_deref())?;
            if let (Some(order), Some(patches)) = (&order, &patches) {
                a = a.permuted(order);
                diagonal = order.iter().map(|&row| diagonal[row as usize]).collect();
                b = b.permuted(order);
                aggregates.of_node =
                    patches.nodes.iter().map(|&node| aggregates.of_node[node as usize]).collect();
                modes = modes.map(|modes| modes.with_rows(order));
                self.inherited = permuted_flags(&self.inherited, order);
                let is_dense = self.dense_nodes(&a, block);
                Strength { is_strong, is_doubtful, .. } =
                    self.strength(&a, &diagonal, &b, modes.as_ref(), (block, &is_dense), factor);
            }
            let flags = if number == 0 { is_doubtful } else { std::mem::take(&mut self.inherited) };
            self.inherited = inherited(&flags, &aggregates);
            let choice = Choice { aggregates, patches, is_strong, modes, is_dense };
            (a, b) = self.coarsen(a, &diagonal, &b, &choice, block)?;
            block = b.n_vectors;
        }
    }

    /// Returns the strength of connection in the matrix of the next level.
    fn strength(
        &self,
        a: &Rows<H>,
        diagonal: &[H],
        b: &NearNullspace,
        modes: Option<&Rows<H>>,
        (block, is_dense): (usize, &[bool]),
        factor: f64,
    ) -> Strength {
        let number = self.above + self.levels.len() + usize::from(self.open.is_some());
        let (thresholds, is_first) = (self.thresholds(number).map(|theta| factor * theta), number == 0);
        let strength = match self.known.graph.filter(|_| is_first) {
            Some(graph) if is_scalar(b, block) => Strength {
                is_doubtful: doubtful_rows(a, diagonal, &b.values, None, |_| false),
                ..Strength::on(graph, a, diagonal, block, thresholds[1])
            },
            Some(graph) => Strength::on(graph, a, diagonal, block, thresholds[1]),
            None if is_scalar(b, block) => {
                let inherited = (!is_first).then_some(self.inherited.as_slice());
                Strength::of_scalars(a, diagonal, &b.values, modes, inherited, thresholds)
            }
            None => Strength::new(a, diagonal, block, thresholds),
        };
        if is_dense.is_empty() { strength } else { strength.without(a, block, is_dense) }
    }

    /// Flags the nodes with dense rows. Empty if there are none, or if the smoother uses patches, which
    /// cannot hold such a row.
    ///
    /// Aggregates around these nodes, and prolongators smoothed by them, would make the matrices of all
    /// further levels dense. They remain nodes of their own on every level.
    fn dense_nodes(&self, a: &Rows<H>, block: usize) -> Vec<bool> {
        let [fewest, times] = DENSE;
        let least = fewest.max(times * a.columns.len() / a.n_rows().max(1));
        let length = |row: usize| a.offsets[row + 1] - a.offsets[row];
        if self.config.smoother.has_patches() || (0..a.n_rows()).all(|row| length(row) <= least) {
            return Vec::new();
        }
        let is_dense = |node: usize| (block * node..block * (node + 1)).any(|row| length(row) > least);
        (0..a.n_rows() / block).map(is_dense).collect()
    }

    /// Returns whether the aggregates of the level with this number are known.
    fn is_grouped(&self, number: usize) -> bool {
        matches!(self.known.groups.get(number), Some(Groups::OnHost(_)))
    }

    /// Replaces rows of a coarser level that have no energy except rounding by rows of the identity. They
    /// belong to parts of the matrix without a Dirichlet value, reduced to a single node.
    ///
    /// # Errors
    /// [`AmgError::Resolution`] in single precision, which cannot tell such a row from one of little energy.
    fn isolate_null_rows(&mut self, a: &mut Rows<H>) -> Result<(), AmgError> {
        let is_single = H::EPSILON.to_f64() > 1e-10;
        let (terms, tolerance) = (self.terms.take(), NO_ENERGY[usize::from(is_single)]);
        let is_null = |row: usize| {
            let own = check::diagonal_entry(a, row);
            match &terms {
                Some(terms) => own.abs() <= tolerance * terms[row],
                None => own <= 0.0 && own.abs() <= tolerance,
            }
        };
        let null: Vec<bool> = (0..a.n_rows()).map(is_null).collect();
        let n_null = null.iter().filter(|null| **null).count();
        if n_null == 0 {
            return Ok(());
        }
        if is_single {
            return Err(AmgError::Resolution { n_rows: a.n_rows(), n_lost: n_null });
        }
        self.n_zero += n_null;
        for row in 0..a.n_rows() {
            for at in a.offsets[row]..a.offsets[row + 1] {
                let column = a.columns[at] as usize;
                if null[row] || null[column] {
                    a.values[at] = if row == column { H::ONE } else { H::ZERO };
                }
            }
        }
        Ok(())
    }

    /// Returns the known aggregates and patches of the next level, or those of its graph.
    fn partition(&self, graph: &Graph, block: usize, is_dense: &[bool]) -> Partition {
        match self.known.groups.get(self.groups.len()) {
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
        let patches = self.config.smoother.has_patches().then(|| Patches::new(graph, &aggregates, block));
        Partition { aggregates, patches }
    }

    /// Refuses a single level in f32 whose null space is larger than in the precision of the matrix, unless rounding makes
    /// the matrix indefinite.
    ///
    /// # Cost
    /// A factorization, if the matrix of the level is singular.
    pub fn check_resolution<T: Scalar>(
        &self,
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
    ) -> Result<(), AmgError> {
        if self.shapes.len() > 1 || self.n_zero == 0 || T::EPSILON.to_f64() >= H::EPSILON.to_f64() {
            return Ok(());
        }
        let n_rows = a.n_rows();
        let b = near_nullspace_of(n_rows, near_nullspace, self.config)?;
        match coarse::n_zero(&Rows::<T>::of(a)?.0, Some(&b)) {
            Ok(n_zero) if n_zero < self.n_zero => {
                Err(AmgError::Resolution { n_rows, n_lost: self.n_zero - n_zero })
            }
            _ => Ok(()),
        }
    }

    /// Completes the level above, or the map to the finest one: the rows of the next level are in this order.
    fn close(&mut self, order: Option<&[u32]>) -> Result<(), LinalgError> {
        let device = self.device;
        let Some(OpenLevel { a, relaxation, mut prolongation, mut restriction }) = self.open.take() else {
            if let Some(order) = order {
                self.reorder(Arc::new(RowOrder::new(device, order)?))?;
            }
            return Ok(());
        };
        if let Some(order) = order {
            restriction = restriction.with_rows(order);
            prolongation = restriction.transpose();
        }
        let (prolongation, restriction) =
            (prolongation.into_device(device)?, restriction.into_device(device)?);
        let a = ProductMatrix::Rows(a);
        self.levels.push(Level { a, relaxation, prolongation, restriction });
        Ok(())
    }

    /// Reorders the transfers from the level above, or the map to the finest level, by the permutation of the
    /// rows of the next level.
    fn reorder(&mut self, order: Arc<RowOrder<D>>) -> Result<(), LinalgError> {
        match self.levels.last_mut() {
            Some(level) => {
                (level.restriction, level.prolongation) =
                    self.device.patch_reordered(&level.restriction, &order.rows)?;
            }
            None => self.order = Some(order),
        }
        Ok(())
    }

    /// Adds a level and returns the matrix of the next one with its near-nullspace.
    fn coarsen(
        &mut self,
        a: Rows<H>,
        diagonal: &[H],
        b: &NearNullspace,
        Choice { aggregates, patches, is_strong, modes, is_dense }: &Choice<H>,
        block: usize,
    ) -> Result<(Rows<H>, NearNullspace), AmgError> {
        let scaling = Scaling::of_nodes(&a, diagonal, block);
        let mut tentative = Tentative::new(b, aggregates, block);
        let mut p = Smoothing {
            a: &a,
            is_strong,
            is_dense,
            aggregates,
            tentative: &tentative,
            b: &b.values,
            block,
            largest: scaling.largest,
            most: scaling.most,
        }
        .prolongator();
        if let Some(modes) = modes {
            p = with_modes(&p, modes);
            tentative.coarse.values.resize(p.n_cols, 0.0);
        }
        let r = p.transpose();
        let mut coarse = galerkin(&a, &p, &r);
        if tentative.n_zero > 0 {
            fill_zero_rows(&mut coarse);
        }
        let size = |row: usize| {
            let (columns, values) = r.row(row);
            let terms = columns.iter().zip(values).map(|(&column, &p)| p * p * diagonal[column as usize]);
            terms.sum::<H>().to_f64()
        };
        self.terms = Some(parallel::map(r.n_rows(), 1_024, size));
        let (smoother, level) = (self.config.smoother, (&a, diagonal));
        let relaxation = Relaxation::new(self.device, smoother, level, patches.as_ref(), scaling)?;
        self.shapes.push(LevelShape {
            n_rows: a.n_rows(),
            n_nonzeros: a.columns.len(),
            n_aggregates: aggregates.n,
            n_patches: relaxation.n_patches(),
            n_prolongator: p.columns.len(),
        });
        self.open =
            Some(OpenLevel { relaxation, a: a.into_device(self.device)?, prolongation: p, restriction: r });
        Ok((coarse, tentative.coarse))
    }

    fn end(
        &mut self,
        a: Rows<H>,
        diagonal: &[H],
        b: &NearNullspace,
        block: usize,
    ) -> Result<Coarsest<H, D>, AmgError> {
        self.close(None)?;
        let n_rows = a.n_rows();
        let n_nonzeros = a.columns.len();
        let mut shape = LevelShape { n_rows, n_nonzeros, n_aggregates: 0, n_patches: 0, n_prolongator: 0 };
        if n_rows <= MOST_COARSE_ROWS {
            self.shapes.push(shape);
            let is_only = self.above + self.shapes.len() == 1;
            let coarse::Inverse { matrix, n_zero } = coarse::inverse(&a, Some(b), is_only)
                .map_err(|(row, pivot)| AmgError::Indefinite { n_rows, row, pivot })?;
            self.n_zero += n_zero;
            return Ok(Coarsest::Direct(matrix.into_device(self.device)?));
        }
        let (smoother, scaling) = (self.config.smoother, Scaling::of_nodes(&a, diagonal, block));
        let patches = smoother.has_patches().then(|| Patches::in_order(n_rows, 1));
        let relaxation = Relaxation::new(self.device, smoother, (&a, diagonal), patches.as_ref(), scaling)?;
        shape.n_patches = relaxation.n_patches();
        self.shapes.push(shape);
        let a = Box::new(ProductMatrix::Rows(a.into_device(self.device)?));
        Ok(Coarsest::Smoothed { relaxation, a })
    }
}

/// Returns the thresholds of strong connections and of entries that smooth prolongators for θ, on the level with this number.
pub(crate) fn thresholds_of(theta: f64, number: usize) -> [f64; 2] {
    let of_groups = if number == 0 { theta } else { COARSER * theta };
    [of_groups, SMOOTHED * WEAKER.powi(number as i32) * theta]
}

/// Sets the diagonal to one in rows that are zero because of a zero column of the prolongator.
pub(crate) fn fill_zero_rows<H: Scalar>(a: &mut Rows<H>) {
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

/// Returns whether nodes have one row and the near-nullspace one vector.
fn is_scalar(b: &NearNullspace, block: usize) -> bool {
    block == 1 && b.n_vectors == 1
}

/// Returns the modes of slivers; none if nodes have several rows.
fn modes_of<H: Scalar>(a: &Rows<H>, diagonal: &[H], b: &NearNullspace, block: usize) -> Option<Rows<H>> {
    if is_scalar(b, block) { local_modes(a, diagonal, &b.values) } else { None }
}

/// Returns the near-nullspace of a matrix: the given one, or constants.
pub(crate) fn near_nullspace_of(
    n_rows: usize,
    given: Option<&[f64]>,
    config: &AmgConfig,
) -> Result<NearNullspace, AmgError> {
    let Some(values) = given else { return Ok(NearNullspace::constants(n_rows, config.block_size)) };
    let wrong = |message: String| Err(AmgError::Setting { field: "near_nullspace", message });
    if n_rows == 0 || values.is_empty() || !values.len().is_multiple_of(n_rows) {
        return wrong(format!("{} values are not some for each of the {n_rows} rows", values.len()));
    }
    if let Some(i) = values.iter().position(|value| !value.is_finite()) {
        return wrong(format!("value {i} is {}, not a finite number", values[i]));
    }
    Ok(NearNullspace { n_vectors: values.len() / n_rows, values: values.to_vec() })
}

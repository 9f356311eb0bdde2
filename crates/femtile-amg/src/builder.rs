//! Sets a hierarchy up, level by level.

use std::sync::Arc;

use femtile_comm::Halo;
use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::csr::Csr;

use crate::coarsen::{Fine, STALLED, Step};
use crate::config::MOST_COARSE_ROWS;
use crate::kernels::{AboveKnown, AmgKernels, Coarsened, DeviceAggregates, Grouping, Nodes};
use crate::level::{Coarsest, Level, LevelMatrix, LevelShape};
use crate::memory_limit::offload_for_setup;
use crate::patches::{PatchedLevel, Patches, RowOrder};
use crate::relaxation::Relaxation;
use crate::setup::coarse;
use crate::setup::graph::{Aggregates, Graph};
use crate::setup::rank_matrix::RankMatrix;
use crate::setup::rescaling::is_badly_scaled_there;
use crate::setup::rows::Rows;
use crate::setup::spectrum::Scaling;
use crate::setup::tentative::NearNullspace;
use crate::transfer::{Gather, Transfer};
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

/// The aggregates of a level, in the memory of the device that set it up.
#[derive(Debug, Clone)]
pub(crate) enum Groups<D: Device> {
    OnHost(Partition),
    OnDevice(DeviceAggregates<D>),
}

/// Aggregates and patches of the nodes of a level, in the order of the level above.
#[derive(Debug, Clone)]
pub(crate) struct Partition {
    pub aggregates: Aggregates,
    /// With patch smoothers.
    pub patches: Option<Patches>,
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
pub(crate) struct Builder<'a, H: Scalar, D: AmgKernels<H>> {
    pub device: &'a D,
    pub config: &'a AmgConfig,
    /// The first matrix is the given one times this power of two.
    pub scale: f64,
    pub known: Known<'a, D>,
    pub levels: Vec<Level<H, D>>,
    /// The last level, until the order of rows of the next one is known.
    pub open: Option<OpenLevel<H, D>>,
    pub groups: Vec<Groups<D>>,
    /// Flags of the rows of the next level that come from doubtful ones, as [`inherited`](crate::setup::evolution::inherited); empty if none do.
    pub inherited: Vec<bool>,
    /// As [`Levels::order`](crate::levels::Levels::order).
    pub order: Option<Arc<RowOrder<D>>>,
    pub shapes: Vec<LevelShape>,
    /// As [`Levels::gather`](crate::levels::Levels::gather).
    pub gather: Option<Gather>,
    /// As [`coarse::Inverse::n_zero`] on the coarsest level, and rows of other levels without energy.
    pub n_zero: usize,
    /// The sum of the sizes of all terms of each diagonal entry of the matrix of the next level; none for levels that a
    /// device made.
    pub terms: Option<Vec<f64>>,
    /// Whether coarsening ended because no threshold makes the next level much smaller.
    pub is_stalled: bool,
    /// Levels above one that was known: 0 or 1.
    pub n_above_known: usize,
    /// Whether a badly scaled matrix is to be found, and whether this one is.
    pub rescaling: [bool; 2],
}

/// A level whose transfers are on the host until the order of rows of the next level is known.
pub(crate) struct OpenLevel<H: Scalar, D: AmgKernels<H>> {
    pub a: LevelMatrix<H, D>,
    pub relaxation: Relaxation<H, D>,
    pub prolongation: Rows<H>,
    pub restriction: Rows<H>,
    /// As [`Transfer::new`] takes it.
    pub halo: Option<Halo>,
}

impl<'a, H: Scalar, D: AmgKernels<H>> Builder<'a, H, D> {
    /// Begins a hierarchy.
    pub fn new(device: &'a D, config: &'a AmgConfig, known: Known<'a, D>) -> Self {
        Self {
            device,
            config,
            scale: 1.0,
            known,
            levels: Vec::new(),
            open: None,
            groups: Vec::new(),
            inherited: Vec::new(),
            order: None,
            shapes: Vec::new(),
            gather: None,
            n_zero: 0,
            terms: None,
            is_stalled: false,
            n_above_known: 0,
            rescaling: [false; 2],
        }
    }

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
        if self.config.coarse_space.is_some() {
            match self.above_known_on_device(a, 1)? {
                Some(coarse) => a = coarse,
                None => return Ok(None),
            }
        }
        self.on_device_from(a, None)
    }

    /// Adds the level above the known one, if the device sets it up, and returns the matrix of that.
    fn above_known_on_device(&mut self, a: Csr<H, D>, block: usize) -> Result<Option<Csr<H, D>>, AmgError> {
        let space = self.config.coarse_space.as_ref().filter(|_| self.config.max_levels > 1);
        let Some(space) = space else { return Ok(None) };
        let p = space.prolongation::<H>().into_device(self.device)?;
        let Some(made) = self.device.amg_above_known(&a, &p, block)? else { return Ok(None) };
        let AboveKnown { inverse_diagonal, largest, r, coarse } = made;
        let a = LevelMatrix::whole(a);
        let relaxation = Relaxation::polynomial(self.config.smoother, inverse_diagonal, largest);
        self.push_shape(&a, coarse.n_rows() / block, 0, p.n_nonzeros())?;
        let transfer = Transfer::new(self.device, [p, r], None)?;
        self.levels.push(Level { a, relaxation, transfer });
        self.n_above_known = 1;
        Ok(Some(coarse))
    }

    /// As [`Builder::on_device`], from a level with these nodes on, none for the first of all levels.
    pub fn on_device_from(
        &mut self,
        mut a: Csr<H, D>,
        mut nodes: Option<Nodes<D>>,
    ) -> Result<Option<(Rows<H>, NearNullspace)>, AmgError> {
        let n_before = self.levels.len();
        while !self.is_for_host(&a) && self.number() + 1 < self.config.max_levels {
            let number = self.n_coarsened();
            let by = match (self.known.groups.get(number), self.known.graph) {
                (Some(Groups::OnDevice(parts)), _) => Grouping::Known(parts),
                (_, Some(graph)) if number == 0 => Grouping::Graph(graph),
                _ => Grouping::Connections,
            };
            let thresholds = thresholds_of(self.config.strength, number);
            let made = self.device.amg_coarsen(&a, nodes.as_ref(), thresholds, self.config, by)?;
            let Some(made) = made.filter(|made| made.parts.n as f64 <= LEAST_GAIN * a.n_rows() as f64) else {
                break;
            };
            let (coarse, of_coarse) = self.add(LevelMatrix::whole(a), made)?;
            (a, nodes) = (coarse, Some(of_coarse));
        }
        let Some(Nodes { weights, from_doubtful }) = nodes.filter(|_| self.levels.len() > n_before) else {
            let b = NearNullspace::constants(a.n_rows(), 1);
            return match self.n_coarsened() == 0 && self.n_above_known > 0 {
                true => Ok(Some((Rows::as_is(&a)?, b))),
                false => Ok(None),
            };
        };
        let marks = from_doubtful.map_or(Ok(Vec::new()), |marks| marks.to_host())?;
        self.inherited = marks.into_iter().map(|mark| mark != 0).collect();
        Ok(Some((Rows::as_is(&a)?, NearNullspace::of_weights(weights.to_host()?))))
    }

    /// As [`Builder::on_device`] with several vectors as near-nullspace.
    pub fn nodes_on_device<T: Scalar>(
        &mut self,
        a: &Csr<T, D>,
        b: &NearNullspace,
    ) -> Result<Option<(Rows<H>, NearNullspace)>, AmgError> {
        if self.is_for_host(a) || self.config.smoother.has_patches() || self.known.graph.is_some() {
            return Ok(None);
        }
        let Some((mut a, scale)) = self.device.amg_scaled(a)? else { return Ok(None) };
        self.scale = scale;
        if self.rescaling[0] {
            match self.device.amg_is_lopsided(&a)? {
                Some(is_lopsided) => self.rescaling[1] = is_lopsided,
                None => return Ok(None),
            }
            if self.rescaling[1] {
                return Ok(None);
            }
        }
        offload_for_setup(&mut a)?;
        let (n_vectors, mut block) = (b.n_vectors, self.config.block_size);
        let mut of_coarse = None;
        if let Some(space) = &self.config.coarse_space {
            match self.above_known_on_device(a, block)? {
                Some(coarse) => (a, of_coarse) = (coarse, Some(space.near_nullspace(b).values)),
                None => return Ok(None),
            }
        }
        while !self.is_for_host(&a) && self.number() + 1 < self.config.max_levels {
            let number = self.n_coarsened();
            let by = match self.known.groups.get(number) {
                Some(Groups::OnDevice(parts)) => Grouping::Known(parts),
                _ => Grouping::Connections,
            };
            let thresholds = thresholds_of(self.config.strength, number);
            let values = of_coarse.as_ref().unwrap_or(&b.values);
            let made = self.device.amg_coarsen_nodes(&a, values, block, thresholds, self.config, by)?;
            let most = STALLED * a.n_rows() as f64;
            let Some(made) = made.filter(|made| (made.parts.n * n_vectors) as f64 <= most) else { break };
            let (coarse, values) = self.add(LevelMatrix::whole(a), made)?;
            (a, of_coarse, block) = (coarse, Some(values), n_vectors);
        }
        let Some(values) = of_coarse else { return Ok(None) };
        Ok(Some((Rows::as_is(&a)?, NearNullspace { n_vectors, values })))
    }

    /// Adds the levels that the device sets up from a level that ranks gathered.
    pub fn on_device_again(
        &mut self,
        a: &Rows<H>,
        b: &NearNullspace,
    ) -> Result<Option<(Rows<H>, NearNullspace)>, AmgError> {
        let is_here = self.device.amg_is_set_up_here();
        let Some(weights) = b.weights().filter(|_| is_here) else { return Ok(None) };
        let weights = Buffer::from_vec(self.device, weights)?;
        let marks: Vec<u32> = self.inherited.iter().map(|&mark| u32::from(mark)).collect();
        let from_doubtful = match marks.is_empty() {
            true => None,
            false => Some(Buffer::from_vec(self.device, marks)?),
        };
        let nodes = (self.n_coarsened() > 0).then_some(Nodes { weights, from_doubtful });
        self.on_device_from(a.clone().into_device(self.device)?, nodes)
    }

    /// Converts the matrices of all levels to the format of the settings.
    pub fn convert(&mut self) -> Result<(), LinalgError> {
        let levels = std::mem::take(&mut self.levels).into_iter();
        self.levels = levels.map(|level| level.in_format(self.config)).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Returns whether a matrix is too small for a device, or the coarsest.
    fn is_for_host<T: Scalar>(&self, a: &Csr<T, D>) -> bool {
        let [few_rows, few_entries] = FEW;
        a.n_rows() <= self.config.coarse_rows || (a.n_rows() <= few_rows && a.n_nonzeros() <= few_entries)
    }

    /// Adds a level that the device has set up; returns the matrix of the next one and its nodes. Collective.
    pub fn add<A, N>(
        &mut self,
        a: LevelMatrix<H, D>,
        made: Coarsened<H, D, A, N>,
    ) -> Result<(A, N), AmgError> {
        let Coarsened { inverse_diagonal, patched, largest, p, r, coarse, halo, parts, nodes } = made;
        if let Some(order) = &parts.order {
            self.reorder(Arc::clone(&order.order))?;
        }
        let (a, relaxation) = match patched {
            Some(PatchedLevel { a, smoother }) => {
                (LevelMatrix::whole(a), Relaxation::Patches(Box::new(smoother)))
            }
            None => (a, Relaxation::polynomial(self.config.smoother, inverse_diagonal, largest)),
        };
        self.push_shape(&a, parts.n, relaxation.n_patches(), p.n_nonzeros())?;
        self.groups.push(Groups::OnDevice(parts));
        // They are those of the level that is set up on the device.
        self.terms = None;
        let transfer = Transfer::new(self.device, [p, r], halo)?;
        self.levels.push(Level { a, relaxation, transfer });
        Ok((coarse, nodes))
    }

    /// Adds the sizes of a level, from those on this rank. Collective.
    pub fn push_shape(
        &mut self,
        a: &LevelMatrix<H, D>,
        n_aggregates: usize,
        n_patches: usize,
        n_prolongator: usize,
    ) -> Result<(), LinalgError> {
        let [n_rows, n_nonzeros, n_aggregates, n_prolongator] =
            a.totals([a.n_rows(), a.n_stored(), n_aggregates, n_prolongator])?;
        self.shapes.push(LevelShape { n_rows, n_nonzeros, n_aggregates, n_patches, n_prolongator });
        Ok(())
    }

    /// Returns the number of the level that is next to be set up.
    pub fn number(&self) -> usize {
        self.shapes.len()
    }

    /// Returns the number of levels whose next one was found by aggregation.
    pub fn n_coarsened(&self) -> usize {
        self.number() - self.n_above_known
    }

    /// Adds the levels from a matrix of which the rank has all rows, and returns the coarsest one.
    pub fn run(&mut self, a: Rows<H>, b: NearNullspace) -> Result<Coarsest<H, D>, AmgError> {
        let mut next = self.below_known((RankMatrix::whole(a)?, b))?;
        loop {
            let fine = self.checked(next.0, next.1)?;
            let is_small = fine.matrix.n_owned() <= self.config.coarse_rows;
            if is_small || self.number() + 1 == self.config.max_levels {
                return self.end(fine);
            }
            next = match self.coarsen(fine)? {
                Step::Next(matrix, b) => (matrix, b),
                Step::Kept(fine) => {
                    self.is_stalled = fine.matrix.n_owned() > MOST_COARSE_ROWS;
                    return self.end(fine);
                }
            };
        }
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
    /// Collective.
    pub fn close(&mut self, order: Option<&[u32]>) -> Result<(), LinalgError> {
        let device = self.device;
        let Some(OpenLevel { a, relaxation, mut prolongation, mut restriction, halo }) = self.open.take()
        else {
            if let Some(order) = order {
                self.reorder(Arc::new(RowOrder::new(device, order)?))?;
            }
            return Ok(());
        };
        if let Some(order) = order {
            restriction = restriction.with_rows(order);
            prolongation = restriction.transpose();
        }
        let both = [prolongation.into_device(device)?, restriction.into_device(device)?];
        self.levels.push(Level { a, relaxation, transfer: Transfer::new(device, both, halo)? });
        Ok(())
    }

    /// Reorders the transfers from the level above, or the map to the finest level, by the permutation of the
    /// rows of the next level.
    fn reorder(&mut self, order: Arc<RowOrder<D>>) -> Result<(), LinalgError> {
        match self.levels.last_mut() {
            Some(Level { transfer, .. }) => {
                (transfer.restriction, transfer.prolongation) =
                    self.device.patch_reordered(&transfer.restriction, &order.rows)?;
            }
            None => self.order = Some(order),
        }
        Ok(())
    }

    fn end(&mut self, fine: Fine<H>) -> Result<Coarsest<H, D>, AmgError> {
        self.close(None)?;
        let Fine { matrix, block, diagonal, b, .. } = fine;
        let (n_rows, n_nonzeros) = (matrix.n_owned(), matrix.n_nonzeros());
        let mut shape = LevelShape { n_rows, n_nonzeros, n_aggregates: 0, n_patches: 0, n_prolongator: 0 };
        if n_rows <= MOST_COARSE_ROWS {
            self.shapes.push(shape);
            let is_only = self.number() == 1;
            let coarse::Inverse { matrix, n_zero } = coarse::inverse(&matrix.rows, Some(&b), is_only)
                .map_err(|(row, pivot)| AmgError::Indefinite { n_rows, row, pivot })?;
            if b.n_vectors > 1 && !is_only {
                coarse::check_precision(&diagonal, &matrix)?;
            }
            self.n_zero += n_zero;
            return Ok(Coarsest::Direct(matrix.into_device(self.device)?));
        }
        let (smoother, scaling) = (self.config.smoother, Scaling::new(&matrix, &diagonal, block)?);
        let patches = smoother.has_patches().then(|| Patches::in_order(n_rows, 1));
        let level = (&matrix.rows, &*diagonal);
        let relaxation = Relaxation::new(self.device, smoother, level, patches.as_ref(), scaling)?;
        shape.n_patches = relaxation.n_patches();
        self.shapes.push(shape);
        let a = Box::new(matrix.into_device(self.device)?);
        Ok(Coarsest::Smoothed { relaxation, a })
    }
}

/// Returns the thresholds of strong connections and of entries that smooth prolongators for θ, on the level with this number.
pub(crate) fn thresholds_of(theta: f64, number: usize) -> [f64; 2] {
    let of_groups = if number == 0 { theta } else { COARSER * theta };
    [of_groups, SMOOTHED * WEAKER.powi(number as i32) * theta]
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

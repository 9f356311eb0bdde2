//! Residual, tangent, diagonal and matrix on CPUs, for every form and element.
//!
//! Cells are evaluated in batches of [`LANES`](basis::LANES), one per SIMD lane. Functions are evaluated at the points
//! (sum factorization on tensor cells, tables on simplices), the programs of the integrand run over points × lanes, and
//! the transposed evaluation leaves one number per cell and shape function. These are summed for each unknown in the
//! order of the cells, so results have the same bits for any number of threads. Facets, which are few, are summed after
//! them by the loops of the reference.
//!
//! Products of linear forms on simplices whose tangent is constant in each cell need neither points nor programs: see
//! [`bernstein`].

mod assembly;
mod basis;
#[allow(unsafe_code)]
mod bernstein;
mod cells;
mod constant;
#[allow(unsafe_code)]
mod gather;
mod geometry;
mod linear;
mod metric;
mod stored;

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use femtile_device::{Cpu, parallel};
use femtile_form::{Domain, Input, Integrand};

use crate::discrete_form::{DiscreteForm, State};
use crate::error::OperatorError;
use crate::reference::{self, SiteIntegral};
use crate::sites::{Site, for_sites};
pub use assembly::Pattern;
use basis::Basis;
pub(crate) use basis::{LANES, Lanes};
pub(crate) use cells::{CellScratch, Job, Product};
use geometry::Geometry;
use stored::LastTangent;

/// Batches that a thread takes at a time.
pub(crate) const BATCHES: usize = 16;

/// Degrees of freedom whose sums a thread computes at a time.
const DOFS: usize = 1 << 12;

/// A discrete form, prepared for evaluation on a CPU.
pub struct CpuOperator<'a> {
    discrete: DiscreteForm<'a>,
    pub(crate) cpu: Cpu,
    pub(crate) basis: Basis,
    pub(crate) geometry: Geometry,
    /// Degrees of freedom of the cells: `[n_cells][n]`.
    pub(crate) dofs: Vec<u32>,
    /// For each degree of freedom the places in `dofs`, ascending.
    pub(crate) places: Places,
    /// Sites of each integral over facets.
    pub(crate) facets: Vec<(&'a Integrand, &'static str, Vec<Site>)>,
    /// Integrands over the cells.
    pub(crate) cells: Vec<&'a Integrand>,
    /// For each of them the stored tangent of its products.
    stored: Vec<LastTangent>,
    /// Workspace of products: `[n_batches][n_components][n]`.
    found: Mutex<Vec<Lanes>>,
}

/// The transposed list of degrees of freedom.
pub(crate) struct Places {
    pub(crate) offsets: Vec<u32>,
    pub(crate) places: Vec<u32>,
}

impl Places {
    fn new(dofs: &[u32], n_dofs: usize) -> Self {
        match parallel::n_threads() {
            1 => Self::in_order(dofs, n_dofs),
            _ => Self::by_threads(dofs, n_dofs),
        }
    }

    fn in_order(dofs: &[u32], n_dofs: usize) -> Self {
        let mut offsets = vec![0; n_dofs + 1];
        dofs.iter().for_each(|&dof| offsets[dof as usize + 1] += 1);
        (0..n_dofs).for_each(|dof| offsets[dof + 1] += offsets[dof]);
        let mut next = offsets.clone();
        let mut places = vec![0; dofs.len()];
        for (place, &dof) in dofs.iter().enumerate() {
            places[next[dof as usize] as usize] = place as u32;
            next[dof as usize] += 1;
        }
        Self { offsets, places }
    }

    /// Threads take places in any order; those of each degree of freedom are sorted at last.
    fn by_threads(dofs: &[u32], n_dofs: usize) -> Self {
        let next = parallel::map(n_dofs, DOFS, |_| AtomicU32::new(0));
        parallel::for_each(dofs.len(), DOFS, |place| {
            next[dofs[place] as usize].fetch_add(1, Ordering::Relaxed);
        });
        let mut offsets = vec![0; n_dofs + 1];
        for (dof, next) in next.iter().enumerate() {
            offsets[dof + 1] = offsets[dof] + next.swap(offsets[dof], Ordering::Relaxed);
        }
        let places = parallel::map(dofs.len(), DOFS, |_| AtomicU32::new(0));
        parallel::for_each(dofs.len(), DOFS, |place| {
            let at = next[dofs[place] as usize].fetch_add(1, Ordering::Relaxed);
            places[at as usize].store(place as u32, Ordering::Relaxed);
        });
        let mut places: Vec<u32> = places.into_iter().map(AtomicU32::into_inner).collect();
        let mut rest = places.as_mut_slice();
        let mut ranges = Vec::new();
        for first in (0..n_dofs).step_by(DOFS) {
            let last = (first + DOFS).min(n_dofs);
            let of_range =
                rest.split_off_mut(..(offsets[last] - offsets[first]) as usize).unwrap_or_default();
            ranges.push((first..last, of_range));
        }
        parallel::for_each_item(ranges, 1, |(dofs, places): (Range<usize>, &mut [u32])| {
            let begin = offsets[dofs.start];
            for dof in dofs {
                places[(offsets[dof] - begin) as usize..(offsets[dof + 1] - begin) as usize].sort_unstable();
            }
        });
        Self { offsets, places }
    }

    pub(crate) fn of(&self, dof: usize) -> &[u32] {
        &self.places[self.offsets[dof] as usize..self.offsets[dof + 1] as usize]
    }
}

impl<'a> CpuOperator<'a> {
    /// Prepares a discrete form: evaluates the geometry of all cells.
    ///
    /// # Cost
    /// Keeps $8(d^2 + 1)$ bytes per quadrature point, on simplices $8(d^2 + n_q)$ bytes per cell, for the dimension d of space, and 8
    /// bytes per cell and shape function. Products on several threads keep 8 more bytes per cell, shape function and component; those of
    /// linear scalar diffusion and reaction keep a metric of 48 or 56 bytes per point of hexahedra and per tetrahedron with constant
    /// coefficients.
    /// Tangents of several components that are constant in each cell keep 8 bytes per entry and cell, if entries differ from cell to cell.
    /// # Errors
    /// [`OperatorError::Space`] for folded and degenerate cells, [`OperatorError::Mismatch`] for more than 2³² pairs of a
    /// cell and a shape function.
    pub fn new(discrete: DiscreteForm<'a>, cpu: &Cpu) -> Result<Self, OperatorError> {
        cpu.install(|| Self::prepare(discrete, cpu))
    }

    fn prepare(discrete: DiscreteForm<'a>, cpu: &Cpu) -> Result<Self, OperatorError> {
        let space = discrete.space();
        let basis = Basis::new(space.element(), discrete.form().dimension());
        let mut cells = Vec::new();
        let mut facets = Vec::new();
        for integral in discrete.form().integrals() {
            if integral.domain == Domain::Cells {
                cells.push(&integral.integrand);
                continue;
            }
            let mut sites = Vec::new();
            for_sites(&discrete, &integral.domain, &mut |site| {
                sites.push(site.clone());
                Ok(())
            })?;
            facets.push((&integral.integrand, integral.domain.name(), sites));
        }
        let needs_points = cells.iter().any(|integrand| {
            let inputs = integrand.inputs().iter();
            inputs.enumerate().any(|(at, input)| match input {
                Input::Coordinate(_) => {
                    let programs = [integrand.residual(), integrand.tangent(), integrand.derivative()];
                    programs.into_iter().chain(integrand.energy()).any(|program| program.reads(at))
                }
                Input::Point(_) => true,
                _ => false,
            })
        });
        let n_places = space.n_cells() * basis.n;
        if u32::try_from(n_places).is_err() {
            let message =
                format!("{n_places} pairs of a cell and a shape function; at most 2^32 are supported");
            return Err(OperatorError::Mismatch(message));
        }
        let geometry = Geometry::new(space, &basis, needs_points)?;
        let mut dofs = vec![0; n_places];
        parallel::for_chunks_mut(&mut dofs, basis.n, |begin, dofs| space.cell_dofs(begin / basis.n, dofs));
        // Kernels rely on it.
        if !parallel::all(n_places, DOFS, |place| (dofs[place] as usize) < space.n_dofs()) {
            return Err(OperatorError::Mismatch("degrees of freedom beyond those of the space".into()));
        }
        let places = Places::new(&dofs, space.n_dofs());
        let stored = cells.iter().map(|_| LastTangent::default()).collect();
        let (cpu, found) = (cpu.clone(), Mutex::default());
        Ok(Self { discrete, cpu, basis, geometry, dofs, places, facets, cells, stored, found })
    }

    /// Returns the discrete form.
    pub fn discrete(&self) -> &DiscreteForm<'a> {
        &self.discrete
    }

    /// Returns the bytes that a product reads besides vectors: numbers of unknowns, and the geometry, or the tangent once the first
    /// product has stored it.
    pub fn bytes(&self) -> usize {
        let numbers = 4 * (self.dofs.len() + self.places.places.len() + self.places.offsets.len());
        let stored = self.stored.iter().map(|last| {
            let last = last.lock().unwrap_or_else(PoisonError::into_inner);
            last.as_ref().map_or(0, |stored| stored.bytes(self))
        });
        match stored.sum::<usize>() {
            0 => numbers + self.geometry.bytes(),
            stored => numbers + stored,
        }
    }

    /// Computes the residual $r_i = R(u; \varphi_i)$.
    ///
    /// # Shapes
    /// `r: [n_unknowns]`
    /// # Errors
    /// [`OperatorError::Length`], and [`femtile_form::FormError::IntegrandNotFinite`] with the first point at which the
    /// integrand is not finite.
    pub fn residual(&self, state: &State<'_>, r: &mut [f64]) -> Result<(), OperatorError> {
        if !self.residual_is_finite(state, r)? {
            // The reference finds the place of a value that is not finite.
            reference::residual(&self.discrete, state, &mut vec![0.0; r.len()])?;
        }
        Ok(())
    }

    /// Computes the residual as [`Self::residual`], and returns whether it is finite, without a search for the place where it is
    /// not: for states that are only tried.
    ///
    /// # Errors
    /// [`OperatorError::Length`]; facets report values that are not finite.
    pub fn residual_is_finite(&self, state: &State<'_>, r: &mut [f64]) -> Result<bool, OperatorError> {
        self.discrete.check_state(state)?;
        self.discrete.check_length("r", r, false)?;
        self.cpu.install(|| self.sum_cells(Product::Residual, state, &[], r))?;
        for (integrand, domain, sites) in &self.facets {
            self.on_facets(integrand, domain, state).add_residual(sites, r)?;
        }
        Ok(r.iter().all(|value| value.is_finite()))
    }

    /// Computes the product of the tangent with a direction, $y_i = R'(u; \delta u, \varphi_i)$.
    ///
    /// # Shapes
    /// `y, direction: [n_unknowns]`
    /// # Cost
    /// Per cell the gather, evaluation, and transposed evaluation of all components, one run of the tangent's program per
    /// point, and 16 bytes per unknown of the cell for the sums.
    /// # Errors
    /// [`OperatorError::Length`]; facets report values that are not finite.
    pub fn apply(&self, state: &State<'_>, direction: &[f64], y: &mut [f64]) -> Result<(), OperatorError> {
        self.discrete.check_state(state)?;
        self.discrete.check_length("direction", direction, false)?;
        self.discrete.check_length("y", y, false)?;
        self.cpu.install(|| self.sum_cells(Product::Tangent, state, direction, y))?;
        for (integrand, domain, sites) in &self.facets {
            self.on_facets(integrand, domain, state).add_product(sites, direction, y)?;
        }
        Ok(())
    }

    /// Returns the sum of the energies of the cells, if the equation has a density.
    ///
    /// # Errors
    /// [`OperatorError::Length`], and [`femtile_form::FormError::IntegrandNotFinite`] with the first point at which the
    /// density is not finite.
    pub fn energy(&self, state: &State<'_>) -> Result<f64, OperatorError> {
        self.discrete.check_state(state)?;
        let n_batches = self.discrete.space().n_cells().div_ceil(LANES);
        let mut sum = 0.0;
        for integrand in self.cells.iter().filter(|integrand| integrand.energy().is_some()) {
            let job = Job::new(self, integrand, Product::Energy, state, &[]);
            let of_batch = |scratch: &mut CellScratch, batch| job.energy(batch, scratch);
            let sums =
                self.cpu.install(|| parallel::map_with(n_batches, BATCHES, CellScratch::default, of_batch));
            sum += sums.iter().sum::<f64>();
        }
        match sum.is_finite() {
            true => Ok(sum),
            // The reference finds the place of a value that is not finite.
            false => reference::energy(&self.discrete, state),
        }
    }

    pub(crate) fn on_facets<'s>(
        &'s self,
        integrand: &'s Integrand,
        domain: &'static str,
        state: &'s State<'s>,
    ) -> SiteIntegral<'s> {
        SiteIntegral { discrete: &self.discrete, integrand, domain, state }
    }

    /// Computes products of all cells and sums them for each unknown.
    fn sum_cells(
        &self,
        product: Product,
        state: &State<'_>,
        direction: &[f64],
        y: &mut [f64],
    ) -> Result<(), OperatorError> {
        parallel::for_chunks_mut(y, DOFS, |_, y| y.fill(0.0));
        for integrand in &self.cells {
            let job = Job::new(self, integrand, product, state, direction);
            match parallel::n_threads() {
                1 => self.add_in_order(&job, y),
                _ => self.add_by_unknowns(&job, y),
            }
        }
        Ok(())
    }

    /// Adds the contributions of each cell to its unknowns, one cell after another.
    fn add_in_order(&self, job: &Job<'_, '_>, y: &mut [f64]) {
        let (n, n_components) = (self.basis.n, self.discrete.form().n_components());
        let mut found = vec![[0.0; LANES]; n * n_components];
        let mut scratch = CellScratch::default();
        for batch in 0..self.discrete.space().n_cells().div_ceil(LANES) {
            job.run(batch, &mut found, &mut scratch);
            self.scatter_add(batch, &found, y);
        }
    }

    /// Computes the contributions of all cells, then sums those to each unknown in the order of the cells: the same bits as
    /// [`Self::add_in_order`].
    fn add_by_unknowns(&self, job: &Job<'_, '_>, y: &mut [f64]) {
        let (n, n_components) = (self.basis.n, self.discrete.form().n_components());
        let per_batch = n * n_components;
        // Products at the same time have workspaces of their own.
        let mut own = Vec::new();
        let mut kept = match self.found.try_lock() {
            Ok(kept) => Some(kept),
            Err(TryLockError::Poisoned(kept)) => Some(kept.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let found = kept.as_deref_mut().unwrap_or(&mut own);
        found.resize(self.discrete.space().n_cells().div_ceil(LANES) * per_batch, [0.0; LANES]);
        let chunks: Vec<(usize, &mut [Lanes])> = found.chunks_mut(BATCHES * per_batch).enumerate().collect();
        parallel::for_each_item_with(chunks, 1, CellScratch::default, |scratch, (chunk, found)| {
            for (i, found) in found.chunks_exact_mut(per_batch).enumerate() {
                job.run(chunk * BATCHES + i, found, scratch);
            }
        });
        parallel::for_chunks_mut(y, DOFS * n_components, |begin, y| self.add_places(begin, found, y));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn places_are_the_same_for_any_number_of_threads() {
        for (n, n_dofs) in [(0, 0), (1, 1), (20_011, 7), (50_000, 20_000)] {
            let dofs: Vec<u32> = (0..n).map(|i| (i * i % n_dofs) as u32).collect();
            let expected = Places::in_order(&dofs, n_dofs);
            for threads in [1, 3] {
                let found = Cpu::new(threads).unwrap().install(|| Places::by_threads(&dofs, n_dofs));
                assert!(
                    found.offsets == expected.offsets && found.places == expected.places,
                    "{n}, {threads}"
                );
            }
        }
    }
}

//! Distributed product with an operator that reads ghosts from a separate vector.

use std::sync::{Arc, Mutex, PoisonError};

use femtile_device::{Buffer, Scalar};
use femtile_linalg::hooks::{Hook, MergedHook, MergedOperator, MergedRows};
use femtile_linalg::{GhostedOperator, LinalgError, LinearOperator, need};

use crate::{Halo, RankKernels};

/// The product with the owned rows of an operator that reads ghosts from a separate vector.
///
/// Values are sent before [`Hook::pre`] is called, so `pre` must not change x. [`MergedHook`] may.
///
/// # Cost
/// The cost of the operator, and [`Halo::n_sent`] values sent.
pub struct GhostedProduct<T: Scalar, D: RankKernels<T>> {
    rows: Box<dyn GhostedOperator<T, D>>,
    halo: Arc<Halo>,
    link: D::Link,
    ghosts: Mutex<Buffer<T, D>>,
}

impl<T: Scalar, D: RankKernels<T>> GhostedProduct<T, D> {
    /// Takes the owned rows and the halo of their ghosts. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Length`] if their numbers of unknowns differ; errors of the device.
    pub fn new(rows: Box<dyn GhostedOperator<T, D>>, halo: Arc<Halo>) -> Result<Self, LinalgError> {
        need("rows", halo.n_owned(), rows.n_owned())?;
        need("ghosts", halo.n_ghosts(), rows.n_ghosts())?;
        let ghosts = Mutex::new(Buffer::zeros(rows.device(), halo.n_ghosts())?);
        let link = rows.device().link(&halo)?;
        Ok(Self { rows, halo, link, ghosts })
    }
}

impl<T: Scalar, D: RankKernels<T>> LinearOperator<T, D> for GhostedProduct<T, D> {
    fn n_rows(&self) -> usize {
        self.halo.n_owned()
    }

    fn n_cols(&self) -> usize {
        self.n_rows()
    }

    fn device(&self) -> &D {
        self.rows.device()
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, D>,
        x: &Buffer<T, D>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        let mut ghosts = self.ghosts.lock().unwrap_or_else(PoisonError::into_inner);
        self.device().import((&self.halo, &self.link), &mut ghosts, x, &mut || Ok(()))?;
        self.rows.apply_ghosted(y, x, &ghosts, hook)
    }

    fn merged(&self) -> Option<&dyn MergedOperator<T, D>> {
        self.rows.merged().map(|_| self as _)
    }
}

impl<T: Scalar, D: RankKernels<T>> GhostedProduct<T, D> {
    /// Returns the rows with merged vector updates; an error if the operator has none.
    fn merged_rows(&self) -> Result<&dyn MergedRows<T, D>, LinalgError> {
        self.rows.merged().ok_or_else(|| LinalgError::Setting {
            field: "operator",
            message: "has no loop that updates could be merged into".into(),
        })
    }
}

// SAFETY: the two parts of the rows, one after the other, keep the contract; between them x is read where `pre` has been.
unsafe impl<T: Scalar, D: RankKernels<T>> MergedOperator<T, D> for GhostedProduct<T, D> {
    fn n_tiles(&self) -> usize {
        self.rows.merged().map_or(0, MergedRows::n_tiles)
    }

    fn apply_merged(
        &self,
        y: &mut Buffer<T, D>,
        x: &mut Buffer<T, D>,
        hook: &dyn MergedHook<T>,
    ) -> Result<(), LinalgError> {
        let rows = self.merged_rows()?;
        let mut ghosts = self.ghosts.lock().unwrap_or_else(PoisonError::into_inner);
        rows.begin_merged(y, x, hook)?;
        self.device().import((&self.halo, &self.link), &mut ghosts, x, &mut || Ok(()))?;
        rows.finish_merged(y, x, &ghosts, hook)
    }
}

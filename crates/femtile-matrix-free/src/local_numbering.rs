//! The unknowns of the part of a mesh that a rank has, in the order of its vectors.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use femtile_linalg::{LinalgError, need};
use femtile_space::TensorSpace;
use rayon::prelude::*;

/// Numbers that a thread checks at least.
const NUMBERS: usize = 1 << 14;

/// The positions in vectors of the unknowns of a part of a mesh: owned unknowns come first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalNumbering<'a> {
    pub of: &'a [u32],
    pub n_owned: usize,
}

impl LocalNumbering<'_> {
    /// Refuses numbers that are not one position per unknown, or not consecutive within an entity.
    pub fn check(&self, space: &TensorSpace<'_>) -> Result<(), LinalgError> {
        let n = space.n_dofs();
        need("numbers", n, self.of.len())?;
        need("owned", self.n_owned.min(n), self.n_owned)?;
        let seen: Vec<AtomicBool> = (0..n).map(|_| AtomicBool::new(false)).collect();
        let is_new = |&number: &u32| seen.get(number as usize).is_some_and(|seen| !seen.swap(true, Relaxed));
        if !self.of.par_iter().with_min_len(NUMBERS).all(is_new) {
            let message = "a number is beyond the unknowns, or given twice".into();
            return Err(LinalgError::Setting { field: "numbers", message });
        }
        let lengths = lengths(space);
        let is_run = |(&first, &len): (&u32, &u32)| {
            let (begin, end) = (first as usize, first as usize + len as usize);
            let run = &self.of[begin..end];
            let is_whole = run.first().is_none_or(|&number| {
                let end = number as usize + run.len();
                end <= n && (end <= self.n_owned || number as usize >= self.n_owned)
            });
            is_whole && run.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1))
        };
        // An entity without unknowns may begin anywhere.
        let of_cell = |position: usize| {
            space.firsts(position).iter().zip(&lengths).filter(|(_, len)| **len > 0).all(is_run)
        };
        match (0..space.n_cells()).into_par_iter().all(of_cell) {
            true => Ok(()),
            false => Err(LinalgError::Setting {
                field: "numbers",
                message: "the unknowns of a vertex, edge, face or cell do not follow each other".into(),
            }),
        }
    }
}

/// Returns the number of unknowns of each entity of a cell.
pub(crate) fn lengths(space: &TensorSpace<'_>) -> Vec<u32> {
    let d = space.dimension() as u32;
    let of_entity = |entity: usize| {
        let inner = (0..d).filter(|&axis| entity / 3usize.pow(axis) % 3 == 1).count();
        (space.degree() as u32 - 1).pow(inner as u32)
    };
    (0..3usize.pow(d)).map(of_entity).collect()
}

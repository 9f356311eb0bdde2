//! Patches of cells: lists of their unknowns, and of the sums that several patches have.

use femtile_device::parallel;
use femtile_space::{Space, along_curve};

/// Marks constrained unknowns, as `CONSTRAINED` of the kernel.
const CONSTRAINED: u32 = 1 << 31;

/// The cells of a space in patches of consecutive cells along a space-filling curve.
///
/// A patch keeps its unknowns in ascending order: those that no other patch has, then the others. The sums of the latter are
/// separate, one for each patch, and follow each other in the order of the patches.
#[derive(Debug)]
pub(super) struct Patches {
    /// Positions of the cells in the space.
    pub order: Vec<u32>,
    /// First unknown, number of own ones, number of all, and first separate sum: `[n_patches][4]`.
    pub words: Vec<u32>,
    /// Unknowns of all patches, with a mark on constrained ones.
    pub dofs: Vec<u32>,
    /// For each of them the end of its places.
    pub ends: Vec<u16>,
    /// Places of unknowns in the shared memory of a block: `[n_patches][n_nodes × n_cells of a patch]`.
    pub places: Vec<u16>,
    /// Separate sums of all patches.
    pub n_shares: usize,
    /// Unknowns with separate sums, and those of no cell.
    pub rows: Vec<u32>,
    /// For each of them its separate sums in `shares`.
    pub begins: Vec<u32>,
    pub shares: Vec<u32>,
}

impl Patches {
    /// Divides the cells of a space into patches of `n_cells`, whose places are those of a field of `components`.
    pub fn new(space: &Space<'_>, n_cells: usize, components: usize, constrained: &[u32]) -> Self {
        let (n_dofs, n_nodes) = (space.n_dofs(), space.element().n_dofs());
        let order = along_curve(space.mesh());
        let mut is_constrained = vec![false; n_dofs];
        constrained.iter().for_each(|&dof| is_constrained[dof as usize] = true);
        // Unknowns with their places, ascending.
        let patches: Vec<&[u32]> = order.chunks(n_cells).collect();
        let entries: Vec<Vec<(u32, u16)>> = parallel::map(patches.len(), 1, |patch| {
            let mut dofs = vec![0; n_nodes];
            let mut entries = Vec::with_capacity(patches[patch].len() * n_nodes);
            for (cell, &position) in patches[patch].iter().enumerate() {
                space.cell_dofs(position as usize, &mut dofs);
                let place = |node: usize| (node * components * n_cells + cell) as u16;
                entries.extend(dofs.iter().enumerate().map(|(node, &dof)| (dof, place(node))));
            }
            entries.sort_unstable();
            entries
        });
        let mut n_visits = vec![0u32; n_dofs];
        for entries in &entries {
            entries.chunk_by(|a, b| a.0 == b.0).for_each(|of_dof| n_visits[of_dof[0].0 as usize] += 1);
        }
        let is_row = |dof: usize| n_visits[dof] != 1 && !is_constrained[dof];
        let rows: Vec<u32> = (0..n_dofs).filter(|&dof| is_row(dof)).map(|dof| dof as u32).collect();
        let mut begins = vec![0; rows.len() + 1];
        let mut next = vec![0u32; n_dofs];
        for (row, &dof) in rows.iter().enumerate() {
            next[dof as usize] = begins[row];
            begins[row + 1] = begins[row] + n_visits[dof as usize];
        }
        let n_shares = begins[rows.len()] as usize;
        let mut all = Self {
            words: Vec::with_capacity(4 * entries.len()),
            dofs: Vec::new(),
            ends: Vec::new(),
            places: Vec::with_capacity(entries.len() * n_nodes * n_cells),
            n_shares,
            rows,
            begins,
            shares: vec![0; n_shares],
            order: Vec::new(),
        };
        let mut first_share = 0;
        for entries in entries {
            let first = all.dofs.len();
            let is_shared = |of_dof: &&[(u32, u16)]| is_row(of_dof[0].0 as usize);
            let (shared, own): (Vec<_>, Vec<_>) =
                entries.chunk_by(|a, b| a.0 == b.0).partition(|of_dof| is_shared(of_dof));
            let begin = all.places.len();
            for of_dof in own.iter().chain(&shared) {
                let dof = of_dof[0].0;
                all.dofs.push(if is_constrained[dof as usize] { dof | CONSTRAINED } else { dof });
                all.places.extend(of_dof.iter().map(|(_, place)| place));
                all.ends.push((all.places.len() - begin) as u16);
            }
            all.places.resize(begin + n_nodes * n_cells, 0);
            let n = own.len() + shared.len();
            all.words.extend([first as u32, own.len() as u32, n as u32, first_share]);
            for of_dof in &shared {
                let next = &mut next[of_dof[0].0 as usize];
                all.shares[*next as usize] = first_share;
                *next += 1;
                first_share += 1;
            }
        }
        drop(patches);
        Self { order, ..all }
    }

    /// Returns the number of patches.
    pub fn len(&self) -> usize {
        self.words.len() / 4
    }

    /// Returns the bytes of the lists.
    pub fn bytes(&self) -> usize {
        let words =
            self.words.len() + self.dofs.len() + self.rows.len() + self.begins.len() + self.shares.len();
        size_of::<u32>() * words + size_of::<u16>() * (self.ends.len() + self.places.len())
    }
}

//! First degree of freedom of each entity.

use std::ops::Range;

use super::entities;

/// Cells that are visited together, and the degrees of freedom that they meet first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Their positions in the order of visits.
    pub cells: Range<usize>,
    /// Degrees of freedom that no group before touches.
    pub dofs: Range<usize>,
    /// How many of these, the first ones, no group after touches either.
    pub n_inner: usize,
}

/// Cells of a group are a multiple of this, which every number of lanes divides.
pub(super) const LANES: usize = 16;

/// Cells of a group: some thousand unknowns, so that their part of a few vectors stays in a cache.
///
/// # Source
/// `[kronbichler2022]`, equation (9), for one component.
fn cells_of_group(degree: usize, d: usize) -> usize {
    (1024 * 8 / (degree + 1).pow(d as u32)).max(1).next_multiple_of(LANES)
}

/// Numbers the entities of all cells, `[n_cells][3^d]`, group by group: in each group first what it alone touches, then
/// what later groups touch as well. The numbers of entities become those of their first degrees of freedom.
///
/// # Source
/// `[kronbichler2022]`, section 5.3.
pub(super) fn number(entities: &mut [u32], n_entities: usize, degree: usize, d: usize) -> Vec<Group> {
    let per_cell = 3usize.pow(d as u32);
    let n_cells = entities.len() / per_cell;
    let n_dofs_of: Vec<u32> =
        (0..per_cell).map(|local| (degree - 1).pow(entities::dimension(local, d) as u32) as u32).collect();
    let size = cells_of_group(degree, d);
    let mut last = vec![0u32; n_entities];
    for (group, cells) in entities.chunks(size * per_cell).enumerate() {
        cells.iter().for_each(|&entity| last[entity as usize] = group as u32);
    }
    let mut first = vec![u32::MAX; n_entities];
    let (mut groups, mut next) = (Vec::new(), 0u32);
    for (group, cells) in entities.chunks(size * per_cell).enumerate() {
        let begin = next;
        let mut take = |is_wanted: &dyn Fn(u32) -> bool| {
            for cell in cells.chunks_exact(per_cell) {
                for (&entity, n) in cell.iter().zip(&n_dofs_of) {
                    if first[entity as usize] == u32::MAX && is_wanted(last[entity as usize]) {
                        first[entity as usize] = next;
                        next += n;
                    }
                }
            }
            next
        };
        let inner = take(&|last| last == group as u32);
        let end = take(&|_| true);
        groups.push(Group {
            cells: group * size..((group + 1) * size).min(n_cells),
            dofs: begin as usize..end as usize,
            n_inner: (inner - begin) as usize,
        });
    }
    entities.iter_mut().for_each(|entity| *entity = first[*entity as usize]);
    groups
}

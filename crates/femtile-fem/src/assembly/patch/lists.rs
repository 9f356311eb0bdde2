//! A mesh numbered patch by patch, the elements that each patch has, and the upper half of the pattern.

use femtile_mesh::{Mesh, Patches};
use femtile_sparse::csr::HostOffsets;
use rayon::prelude::*;

use crate::assembly::sparsity::Sparsity;

/// What is known of patches: nodes numbered anew, patch after patch, and elements sorted by the patch of
/// their first node, `[fu2014]`, Figs. 1 and 2.
#[derive(Debug)]
pub(super) struct Lists {
    /// The node of the mesh at each new number.
    pub order: Vec<u32>,
    /// Where the nodes of each patch begin, and the end of the last.
    pub rows: Vec<u32>,
    /// Where the elements of each patch begin, and the end of the last.
    pub elements: Vec<u32>,
    /// The cell of each element, ascending in a patch.
    pub cells: Vec<u32>,
    /// The new numbers of the first corners of all elements, then of the second ones and so on.
    pub corners: Vec<u32>,
    /// Where the rows of the upper half begin.
    pub offsets: HostOffsets,
    /// Columns of the upper half, ascending in each row, the diagonal first.
    pub columns: Vec<u32>,
    /// The rows to which elements of other patches add something, ascending.
    pub rim: Vec<u32>,
}

impl Lists {
    /// # Cost
    /// A sort of the cells and one of each row; about 30 bytes a cell and 4 a non-zero.
    pub fn new(mesh: &Mesh, pattern: &Sparsity, patches: &Patches) -> Self {
        let nodes = |patch: usize| patches.nodes(patch);
        let order: Vec<u32> = (0..patches.len()).flat_map(nodes).copied().collect();
        let (mut new_number, mut patch_of) = (vec![0; order.len()], vec![0; order.len()]);
        let mut rows = vec![0];
        for patch in 0..patches.len() {
            let first = rows[patch];
            for (new, &node) in (first..).zip(nodes(patch)) {
                (new_number[node as usize], patch_of[node as usize]) = (new, patch as u32);
            }
            rows.push(first + nodes(patch).len() as u32);
        }
        let (elements, cells) = owned(mesh, &patch_of, patches.len());
        let corner = |a: usize, cell: u32| new_number[mesh.cell(cell as usize)[a] as usize];
        let corners: Vec<u32> = (0..mesh.kind.n_nodes())
            .flat_map(|a| cells.iter().map(move |&cell| (a, cell)))
            .map(|(a, cell)| corner(a, cell))
            .collect();
        let (offsets, columns) = upper(pattern, &order, &new_number, &rows);
        let rim = rim(&rows, &elements, &corners);
        Self { order, rows, elements, cells, corners, offsets, columns, rim }
    }

    /// Number of patches.
    pub fn n_patches(&self) -> usize {
        self.rows.len() - 1
    }

    /// Elements of the patch with the most.
    pub fn most_elements(&self) -> usize {
        self.elements.windows(2).map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0)
    }

    /// Bytes of shared memory that the largest patch needs: values, right side, columns and starts of its
    /// rows, where the coordinates of its nodes lie before.
    pub fn shared_bytes(&self) -> usize {
        let bytes = |ends: &[u32]| {
            let [begin, end] = [ends[0], ends[1]].map(|row| row as usize);
            let (n_rows, n_entries) = (end - begin, self.offsets.get(end) - self.offsets.get(begin));
            (12 * n_entries + 12 * n_rows + 4).max(24 * n_rows)
        };
        self.rows.windows(2).map(bytes).max().unwrap_or(0)
    }

    /// The coordinates in the new numbering: those of the first axis, then of the second and the third.
    pub fn coordinates(&self, mesh: &Mesh) -> Vec<f64> {
        let axis = |axis: usize| self.order.iter().map(move |&node| mesh.points[node as usize][axis]);
        (0..3).flat_map(axis).collect()
    }
}

/// Where the elements of each patch begin, and the cells sorted by the patch of their first node.
fn owned(mesh: &Mesh, patch_of: &[u32], n_patches: usize) -> (Vec<u32>, Vec<u32>) {
    let patch = |cell: u32| patch_of[mesh.cell(cell as usize)[0] as usize];
    let mut cells: Vec<u32> = (0..mesh.n_cells() as u32).collect();
    cells.par_sort_by_key(|&cell| patch(cell));
    let begin = |p: u32| cells.partition_point(|&cell| patch(cell) < p) as u32;
    ((0..=n_patches as u32).map(begin).collect(), cells)
}

/// The upper half of a pattern in the new numbering, patch by patch.
fn upper(pattern: &Sparsity, order: &[u32], new_number: &[u32], rows: &[u32]) -> (HostOffsets, Vec<u32>) {
    let of_patch = |ends: &[u32]| {
        let (mut lengths, mut columns) = (Vec::new(), Vec::new());
        for row in ends[0]..ends[1] {
            let begin = columns.len();
            let of_row = pattern.row(order[row as usize] as usize).iter();
            columns.extend(of_row.map(|&node| new_number[node as usize]).filter(|&column| column >= row));
            columns[begin..].sort_unstable();
            lengths.push(columns.len() - begin);
        }
        (lengths, columns)
    };
    let (lengths, columns): (Vec<_>, Vec<_>) = rows.par_windows(2).map(of_patch).unzip();
    (HostOffsets::from_row_lengths(lengths.concat().into_iter()), columns.concat())
}

/// The nodes that are corners of an element of another patch.
fn rim(rows: &[u32], elements: &[u32], corners: &[u32]) -> Vec<u32> {
    let n_elements = elements.last().map_or(0, |&end| end as usize);
    let mut is_on_rim = vec![false; rows.last().map_or(0, |&end| end as usize)];
    for of_corner in corners.chunks_exact(n_elements.max(1)) {
        for (own, elements) in rows.windows(2).zip(elements.windows(2)) {
            let nodes = of_corner[elements[0] as usize..elements[1] as usize].iter();
            let foreign = nodes.filter(|&node| !(own[0]..own[1]).contains(node));
            foreign.for_each(|&node| is_on_rim[node as usize] = true);
        }
    }
    (0..).zip(is_on_rim).filter(|(_, is_on_rim)| *is_on_rim).map(|(row, _)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::sparsity::pattern;
    use femtile_mesh::CellKind;

    /// Two patches of two nodes on a strip of two triangles.
    ///
    /// Nodes 0 and 2 lie on the left and become 0 and 1; nodes 1 and 3 become 2 and 3.
    fn strip() -> (Mesh, Lists) {
        let points = vec![[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [3.0, 1.0, 0.0]];
        let mesh = Mesh::new(points, CellKind::Triangle, vec![3, 2, 1, 0, 1, 2]).unwrap();
        let patches = Patches::by_bisection(&mesh, 2);
        let lists = Lists::new(&mesh, &pattern(&mesh).unwrap().1, &patches);
        (mesh, lists)
    }

    #[test]
    fn nodes_and_elements_are_sorted_by_patches_corner_by_corner() {
        let (mesh, lists) = strip();
        assert_eq!((&lists.order[..], &lists.rows[..]), (&[0, 2, 1, 3][..], &[0, 2, 4][..]));
        assert_eq!((&lists.cells[..], &lists.elements[..]), (&[1, 0][..], &[0, 1, 2][..]));
        assert_eq!(lists.corners, [0, 3, 2, 1, 1, 2]);
        assert_eq!(lists.coordinates(&mesh)[..8], [0.0, 0.0, 3.0, 3.0, 0.0, 1.0, 0.0, 1.0]);
        assert_eq!((lists.n_patches(), lists.most_elements()), (2, 1));
    }

    #[test]
    fn the_upper_half_has_the_diagonal_first_and_each_edge_once() {
        let (_, lists) = strip();
        assert_eq!(lists.offsets, HostOffsets::from(vec![0, 3, 6, 8, 9]));
        assert_eq!(lists.columns, [0, 1, 2, 1, 2, 3, 2, 3, 3]);
        assert_eq!(lists.shared_bytes(), 12 * 6 + 12 * 2 + 4);
    }

    #[test]
    fn rows_on_a_rim_are_those_of_corners_in_another_patch() {
        let (_, lists) = strip();
        // The element 0, 2, 1 of the first patch has a corner in the second, 3, 1, 2 of the second one in the
        // first.
        assert_eq!(lists.rim, [1, 2]);
    }
}

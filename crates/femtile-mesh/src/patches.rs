//! Nodes in patches: small sets of near nodes, as work in fast memory wants them.

use std::cmp::Ordering;

use femtile_device::parallel;

use crate::Mesh;

/// Disjoint sets of near nodes, of nearly the same size, that together are all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patches {
    /// Offsets of the nodes of each patch, and the end of the last.
    starts: Vec<u32>,
    nodes: Vec<u32>,
}

impl Patches {
    /// Patches of at most `size` nodes by recursive bisection of the coordinates.
    ///
    /// A set of nodes is cut across its longest extent so that both sides get about half of the patches. The same
    /// mesh gives the same patches on any machine.
    ///
    /// # Cost
    /// $O(n \log(n / \mathrm{size}))$, in parallel; 4 bytes per node.
    pub fn by_bisection(mesh: &Mesh, size: usize) -> Self {
        let n = mesh.n_nodes();
        let n_patches = n.div_ceil(size.max(1));
        let mut nodes: Vec<u32> = (0..n as u32).collect();
        bisect(&mesh.points, &mut nodes, n_patches);
        let starts = (0..=n_patches).map(|patch| first_of(patch, n, n_patches) as u32).collect();
        Self { starts, nodes }
    }

    /// Number of patches.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns whether there are no nodes at all.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The nodes of a patch, ascending.
    pub fn nodes(&self, patch: usize) -> &[u32] {
        &self.nodes[self.starts[patch] as usize..self.starts[patch + 1] as usize]
    }
}

/// Returns the first node of a patch when `n` nodes are divided evenly.
fn first_of(patch: usize, n: usize, n_patches: usize) -> usize {
    (n / n_patches.max(1)) * patch + patch.min(n % n_patches.max(1))
}

/// Below this number of nodes a thread continues alone.
const ALONE: usize = 1 << 12;

fn bisect(points: &[[f64; 3]], nodes: &mut [u32], n_patches: usize) {
    if n_patches <= 1 {
        nodes.sort_unstable();
        return;
    }
    let axis = longest_axis(points, nodes);
    let coordinate = |node: u32| points[node as usize][axis];
    let by_coordinate = |a: &u32, b: &u32| match coordinate(*a).total_cmp(&coordinate(*b)) {
        Ordering::Equal => a.cmp(b),
        unequal => unequal,
    };
    // The larger patches come first at every level, so that sizes agree with `first_of`.
    let half = n_patches / 2;
    let middle = first_of(half, nodes.len(), n_patches);
    nodes.select_nth_unstable_by(middle, by_coordinate);
    let is_small = nodes.len() < ALONE;
    let (low, high) = nodes.split_at_mut(middle);
    if is_small {
        bisect(points, low, half);
        bisect(points, high, n_patches - half);
    } else {
        parallel::join(|| bisect(points, low, half), || bisect(points, high, n_patches - half));
    }
}

fn longest_axis(points: &[[f64; 3]], nodes: &[u32]) -> usize {
    let (mut lower, mut upper) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for &node in nodes {
        for axis in 0..3 {
            lower[axis] = lower[axis].min(points[node as usize][axis]);
            upper[axis] = upper[axis].max(points[node as usize][axis]);
        }
    }
    let extent = |axis: &usize| upper[*axis] - lower[*axis];
    (0..3).max_by(|a, b| extent(a).total_cmp(&extent(b)).then(b.cmp(a))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{BoxConfig, box_mesh};

    fn cube(cells: [usize; 3]) -> Mesh {
        box_mesh(&BoxConfig { cells, ..BoxConfig::default() }).unwrap()
    }

    #[test]
    fn every_node_is_in_one_patch_and_sizes_differ_by_one_at_most() {
        for (cells, size) in
            [([1, 1, 1], 1), ([3, 4, 5], 7), ([6, 6, 6], 128), ([2, 2, 2], 1000), ([9, 2, 1], 2)]
        {
            let mesh = cube(cells);
            let patches = Patches::by_bisection(&mesh, size);
            let sizes: Vec<usize> = (0..patches.len()).map(|p| patches.nodes(p).len()).collect();
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(*most <= size && most - least <= 1, "{sizes:?}");
            let mut all: Vec<u32> = (0..patches.len()).flat_map(|p| patches.nodes(p).to_vec()).collect();
            all.sort_unstable();
            assert_eq!(all, (0..mesh.n_nodes() as u32).collect::<Vec<_>>());
            assert!((0..patches.len()).all(|p| patches.nodes(p).is_sorted()));
        }
    }

    #[test]
    fn patches_of_a_cube_are_cubes() {
        let mesh = cube([7, 7, 7]);
        let patches = Patches::by_bisection(&mesh, 64);
        assert_eq!(patches.len(), 8);
        for patch in 0..8 {
            for axis in 0..3 {
                let at = patches.nodes(patch).iter().map(|&node| mesh.points[node as usize][axis]);
                let (low, high) = at.fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(x), h.max(x)));
                assert!((high - low - 3.0 / 7.0).abs() < 1e-12);
            }
        }
    }
}

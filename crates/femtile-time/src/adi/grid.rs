use femtile_tridiagonal::BatchLayout;

use crate::TimeError;

/// The nodes of a box: evenly spaced along each axis, those of x next to each other in memory.
///
/// An axis with sides has nodes on both; a periodic one has none on its upper side, which is the lower one again.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    dimension: usize,
    nodes: [usize; 3],
    lower: [f64; 3],
    upper: [f64; 3],
    spacing: [f64; 3],
    periodic: [bool; 3],
}

/// Nodes that an axis has at least.
pub const MIN_NODES: usize = 3;
/// Nodes that an axis has at most, so that every node of a line is known by 32 bits.
pub const MAX_NODES: usize = 1 << 30;

impl Grid {
    /// A grid in one to three dimensions.
    ///
    /// # Errors
    /// [`TimeError::Setting`] when the numbers of axes differ, an axis has too few nodes or no length.
    pub fn new(nodes: &[usize], lower: &[f64], upper: &[f64], periodic: &[bool]) -> Result<Self, TimeError> {
        let dimension = nodes.len();
        if !(1..=3).contains(&dimension) {
            return Err(TimeError::setting("nodes", format!("{dimension} axes; a box has one to three")));
        }
        if [lower.len(), upper.len(), periodic.len()] != [dimension; 3] {
            let message = format!("{dimension} axes of nodes, but corners and sides of another number");
            return Err(TimeError::setting("nodes", message));
        }
        let mut grid = Self {
            dimension,
            nodes: [1; 3],
            lower: [0.0; 3],
            upper: [0.0; 3],
            spacing: [1.0; 3],
            periodic: [false; 3],
        };
        for axis in 0..dimension {
            let (n, from, to) = (nodes[axis], lower[axis], upper[axis]);
            if !(MIN_NODES..=MAX_NODES).contains(&n) {
                let message = format!("{n} nodes along {}; take {MIN_NODES} to {MAX_NODES}", AXES[axis]);
                return Err(TimeError::setting("nodes", message));
            }
            if !(to > from && (to - from).is_finite()) {
                let message = format!("{to} is not above {from}, the lower end of {}", AXES[axis]);
                return Err(TimeError::setting("upper", message));
            }
            let intervals = if periodic[axis] { n } else { n - 1 };
            (grid.nodes[axis], grid.lower[axis], grid.upper[axis]) = (n, from, to);
            (grid.spacing[axis], grid.periodic[axis]) = ((to - from) / intervals as f64, periodic[axis]);
        }
        match grid.nodes.iter().try_fold(1_usize, |product, &n| product.checked_mul(n)) {
            Some(n) if n < usize::MAX / 64 => Ok(grid),
            _ => Err(TimeError::setting("nodes", "more nodes than memory has addresses")),
        }
    }

    /// Number of axes: 1, 2 or 3.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Nodes along x, y, z; 1 along an axis that is not there.
    pub fn nodes(&self) -> [usize; 3] {
        self.nodes
    }

    /// Number of all nodes.
    pub fn n_nodes(&self) -> usize {
        self.nodes.iter().product()
    }

    /// Distance of neighbours along x, y, z.
    pub fn spacing(&self) -> [f64; 3] {
        self.spacing
    }

    /// The corner with the smallest coordinates.
    pub fn lower(&self) -> [f64; 3] {
        self.lower
    }

    /// The corner with the largest coordinates.
    pub fn upper(&self) -> [f64; 3] {
        self.upper
    }

    /// Which axes close on themselves.
    pub fn periodic(&self) -> [bool; 3] {
        self.periodic
    }

    /// From a node to its neighbour along x, y, z in memory.
    pub fn strides(&self) -> [usize; 3] {
        [1, self.nodes[0], self.nodes[0] * self.nodes[1]]
    }

    /// Place of a node in memory.
    pub fn index(&self, node: [usize; 3]) -> usize {
        node[0] + self.nodes[0] * (node[1] + self.nodes[1] * node[2])
    }

    /// Coordinate of the nodes with number `i` along an axis.
    pub fn coordinate(&self, axis: usize, i: usize) -> f64 {
        self.lower[axis] + i as f64 * self.spacing[axis]
    }

    /// Coordinate halfway between the nodes `i - 1` and `i` along an axis, never outside of the box unless the axis
    /// is periodic.
    pub fn half_coordinate(&self, axis: usize, i: usize) -> f64 {
        let middle = self.lower[axis] + (i as f64 - 0.5) * self.spacing[axis];
        if self.periodic[axis] { middle } else { middle.clamp(self.lower[axis], self.upper[axis]) }
    }

    /// The point of a node.
    pub fn point(&self, node: [usize; 3]) -> [f64; 3] {
        std::array::from_fn(|axis| self.coordinate(axis, node[axis]))
    }

    /// The node with this row on this line along an axis, lines being numbered in the order of memory.
    pub fn node(&self, axis: usize, line: usize, row: usize) -> [usize; 3] {
        let [nx, ny, _] = self.nodes;
        match axis {
            0 => [row, line % ny, line / ny],
            1 => [line % nx, row, line / nx],
            _ => [line % nx, line / nx, row],
        }
    }

    /// All nodes in the order of memory.
    pub fn all(&self) -> impl Iterator<Item = [usize; 3]> + use<> {
        let [nx, ny, nz] = self.nodes;
        (0..nz).flat_map(move |k| (0..ny).flat_map(move |j| (0..nx).map(move |i| [i, j, k])))
    }

    /// How arrays of values at the nodes lie, the last axis first.
    pub(crate) fn layout(&self) -> Result<BatchLayout, TimeError> {
        let shape: Vec<usize> = self.nodes[..self.dimension].iter().rev().copied().collect();
        Ok(BatchLayout::contiguous(&shape)?)
    }

    /// The axis of [`Grid::layout`] that is `axis` of the box.
    pub(crate) fn layout_axis(&self, axis: usize) -> usize {
        self.dimension - 1 - axis
    }
}

/// Names of the axes.
pub(crate) const AXES: [&str; 3] = ["x", "y", "z"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_grid_are_those_of_its_layout() {
        let grid = Grid::new(&[3, 4, 5], &[0.0; 3], &[1.0; 3], &[false; 3]).unwrap();
        let layout = grid.layout().unwrap();
        for axis in 0..3 {
            let lines = layout.lines(grid.layout_axis(axis)).unwrap();
            assert_eq!(lines.length, grid.nodes()[axis]);
            for line in 0..lines.n_lines() {
                for row in 0..lines.length {
                    let place = lines.start(line) + row * lines.stride;
                    assert_eq!(grid.index(grid.node(axis, line, row)), place);
                }
            }
        }
    }

    #[test]
    fn a_periodic_axis_has_no_node_on_its_upper_side() {
        let grid = Grid::new(&[4, 5], &[0.0, 0.0], &[1.0, 1.0], &[true, false]).unwrap();
        assert_eq!((grid.coordinate(0, 3), grid.coordinate(1, 4)), (0.75, 1.0));
        assert_eq!((grid.half_coordinate(0, 0), grid.half_coordinate(1, 0)), (-0.125, 0.0));
    }

    #[test]
    fn boxes_without_room_are_refused() {
        assert!(Grid::new(&[2, 4], &[0.0; 2], &[1.0; 2], &[false; 2]).is_err());
        assert!(Grid::new(&[4, 4], &[0.0; 2], &[1.0, 0.0], &[false; 2]).is_err());
        assert!(Grid::new(&[4, 4], &[0.0; 2], &[1.0, f64::NAN], &[false; 2]).is_err());
        assert!(Grid::new(&[4; 4], &[0.0; 4], &[1.0; 4], &[false; 4]).is_err());
        assert!(Grid::new(&[1 << 29; 3], &[0.0; 3], &[1.0; 3], &[false; 3]).is_err());
    }
}

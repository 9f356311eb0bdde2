use femtile_tridiagonal::BatchLayout;

use crate::TimeError;

/// A uniform grid on a box; x is the contiguous axis.
///
/// A non-periodic axis has nodes on both sides; a periodic axis has none on its upper side.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    dimension: usize,
    nodes: [usize; 3],
    lower: [f64; 3],
    upper: [f64; 3],
    spacing: [f64; 3],
    periodic: [bool; 3],
}

/// Fewest nodes of an axis.
pub const MIN_NODES: usize = 3;
/// Most nodes of an axis, so that 32 bits number the nodes of a line.
pub const MAX_NODES: usize = 1 << 30;

impl Grid {
    /// Creates a grid in one to three dimensions.
    ///
    /// # Errors
    /// [`TimeError::Setting`] when the numbers of axes differ, an axis has too few nodes or zero length.
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

    /// Returns the number of axes: 1, 2 or 3.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Returns the numbers of nodes along x, y, z; 1 along missing axes.
    pub fn nodes(&self) -> [usize; 3] {
        self.nodes
    }

    /// Returns the number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.nodes.iter().product()
    }

    /// Returns the grid spacing along x, y, z.
    pub fn spacing(&self) -> [f64; 3] {
        self.spacing
    }

    /// Returns the corner with the smallest coordinates.
    pub fn lower(&self) -> [f64; 3] {
        self.lower
    }

    /// Returns the corner with the largest coordinates.
    pub fn upper(&self) -> [f64; 3] {
        self.upper
    }

    /// Returns the periodic axes.
    pub fn periodic(&self) -> [bool; 3] {
        self.periodic
    }

    /// Returns the strides along x, y, z.
    pub fn strides(&self) -> [usize; 3] {
        [1, self.nodes[0], self.nodes[0] * self.nodes[1]]
    }

    /// Returns the index of a node in memory.
    pub fn index(&self, node: [usize; 3]) -> usize {
        node[0] + self.nodes[0] * (node[1] + self.nodes[1] * node[2])
    }

    /// Returns the coordinate of node `i` along an axis.
    pub fn coordinate(&self, axis: usize, i: usize) -> f64 {
        self.lower[axis] + i as f64 * self.spacing[axis]
    }

    /// Returns the coordinate halfway between nodes `i - 1` and `i` along an axis, clamped to the box unless the axis is
    /// periodic.
    pub fn half_coordinate(&self, axis: usize, i: usize) -> f64 {
        let middle = self.lower[axis] + (i as f64 - 0.5) * self.spacing[axis];
        if self.periodic[axis] { middle } else { middle.clamp(self.lower[axis], self.upper[axis]) }
    }

    /// Returns the coordinates of a node.
    pub fn point(&self, node: [usize; 3]) -> [f64; 3] {
        std::array::from_fn(|axis| self.coordinate(axis, node[axis]))
    }

    /// Returns the node at a row of a line along an axis; lines are numbered in memory order.
    pub fn node(&self, axis: usize, line: usize, row: usize) -> [usize; 3] {
        let [nx, ny, _] = self.nodes;
        match axis {
            0 => [row, line % ny, line / ny],
            1 => [line % nx, row, line / nx],
            _ => [line % nx, line / nx, row],
        }
    }

    /// Returns all nodes in memory order.
    pub fn all(&self) -> impl Iterator<Item = [usize; 3]> + use<> {
        let [nx, ny, nz] = self.nodes;
        (0..nz).flat_map(move |k| (0..ny).flat_map(move |j| (0..nx).map(move |i| [i, j, k])))
    }

    /// Returns the layout of nodal arrays, slowest axis first.
    pub(crate) fn layout(&self) -> Result<BatchLayout, TimeError> {
        let shape: Vec<usize> = self.nodes[..self.dimension].iter().rev().copied().collect();
        Ok(BatchLayout::contiguous(&shape)?)
    }

    /// Returns the axis of [`Grid::layout`] for `axis` of the box.
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

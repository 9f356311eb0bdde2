use std::ops::Range;
use std::sync::Arc;

use femtile_device::parallel;

use crate::MultigridError;
use crate::grid::{BoxGrid, all, place};

/// Largest deviation of corners from a straight line along an axis, relative to the box, that counts as rounding.
const STRAIGHT: f64 = 1e-12;

/// Corners of n_x × n_y × n_z mapped cells, and a coefficient per cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CellGeometry {
    dimension: usize,
    /// Cells along each axis; 1 for an absent axis.
    cells: [usize; 3],
    /// `[n_z + 1][n_y + 1][n_x + 1]`; a single layer in two dimensions.
    corners: Vec<[f64; 3]>,
    /// `[n_z][n_y][n_x]`.
    coefficients: Vec<f64>,
    /// Whether cells are axis-parallel rectangles.
    is_rectangular: bool,
    /// Whether these are layers of cells that are not rectangles with coefficient one.
    is_of_mapped: bool,
    /// The finer grid that this one was coarsened from.
    finer: Option<Arc<BoxGrid>>,
}

impl CellGeometry {
    /// Cells along each of two or three axes, with corners and coefficients.
    ///
    /// # Errors
    /// [`MultigridError::Entries`] for lists of the wrong length; [`MultigridError::Coefficient`] and
    /// [`MultigridError::Inverted`] name the cell.
    pub fn new(
        cells: &[usize],
        corners: Vec<[f64; 3]>,
        coefficients: Vec<f64>,
    ) -> Result<Self, MultigridError> {
        let dimension = cells.len();
        let cells = std::array::from_fn(|axis| cells.get(axis).copied().unwrap_or(1));
        let mut geometry = Self {
            dimension,
            cells,
            corners,
            coefficients,
            is_rectangular: false,
            is_of_mapped: false,
            finer: None,
        };
        geometry.check()?;
        geometry.is_rectangular = geometry.rows_are_straight();
        Ok(geometry)
    }

    /// Rectangles of these positive widths with coefficient one; no widths along an absent axis.
    pub fn of_widths(widths: &[Vec<f64>; 3]) -> Self {
        let ends = widths.each_ref().map(|widths| {
            let end = |end: &mut f64, width: &f64| {
                *end += width;
                Some(*end)
            };
            std::iter::once(0.0).chain(widths.iter().scan(0.0, end)).collect::<Vec<f64>>()
        });
        let cells = widths.each_ref().map(|widths| widths.len().max(1));
        Self {
            dimension: widths.iter().filter(|widths| !widths.is_empty()).count(),
            corners: all(ends.each_ref().map(Vec::len))
                .map(|at| [0, 1, 2].map(|axis| ends[axis][at[axis]]))
                .collect(),
            coefficients: vec![1.0; cells.iter().product()],
            cells,
            is_rectangular: true,
            is_of_mapped: false,
            finer: None,
        }
    }

    fn check(&self) -> Result<(), MultigridError> {
        let n_corners = self.n_corners().iter().product();
        let n_cells = self.cells.iter().product();
        for (field, expected, found) in
            [("corners", n_corners, self.corners.len()), ("coefficients", n_cells, self.coefficients.len())]
        {
            if expected != found {
                return Err(MultigridError::Entries { field, expected, found });
            }
        }
        for (cell, &coefficient) in all(self.cells).zip(&self.coefficients) {
            if !(coefficient > 0.0 && coefficient.is_finite()) {
                return Err(MultigridError::Coefficient { cell, coefficient });
            }
        }
        self.inverted().map_or(Ok(()), |cell| Err(MultigridError::Inverted { cell }))
    }

    /// Returns a cell whose Jacobian determinant is not positive at its corners and centre.
    fn inverted(&self) -> Option<[usize; 3]> {
        let places = || all([2; 3]).map(|at| at.map(|at| at as f64)).chain([[0.5; 3]]);
        let is_sound = |cell: [usize; 3]| {
            let map = self.map(cell);
            places().all(|at| map.determinant(at) > 0.0)
        };
        let are_sound =
            parallel::all(self.cells.iter().product(), 256, |number| is_sound(place(self.cells, number)));
        if are_sound { None } else { all(self.cells).find(|cell| !is_sound(*cell)) }
    }

    fn rows_are_straight(&self) -> bool {
        let n = self.n_corners();
        let lines = [0, 1, 2].map(|axis| self.line(axis));
        (0..self.dimension).all(|axis| {
            let line = &lines[axis];
            let extent = (line[line.len() - 1] - line[0]).abs();
            all(n)
                .zip(&self.corners)
                .all(|(at, corner)| (corner[axis] - line[at[axis]]).abs() <= STRAIGHT * extent)
        })
    }

    /// Returns the coordinates along an axis of the corners on its first line.
    fn line(&self, axis: usize) -> Vec<f64> {
        let corner = |i: usize| {
            let mut at = [0; 3];
            at[axis] = i;
            self.corner(at)[axis]
        };
        (0..self.n_corners()[axis]).map(corner).collect()
    }

    /// Returns the widths of the cells along an axis; for cells other than rectangles, mean widths. Widths equal up to
    /// rounding are made equal.
    pub fn widths(&self, axis: usize) -> Vec<f64> {
        if axis >= self.dimension {
            return Vec::new();
        }
        if !self.is_plain() {
            return vec![self.mean_length(axis); self.cells[axis]];
        }
        let mut known: Vec<f64> = Vec::new();
        let width = |ends: &[f64]| {
            let width = ends[1] - ends[0];
            let is_same = |known: &&f64| (*known - width).abs() <= 1e-10 * width;
            known.iter().find(is_same).copied().unwrap_or_else(|| {
                known.push(width);
                width
            })
        };
        self.line(axis).windows(2).map(width).collect()
    }

    /// Returns the mean edge length along an axis.
    fn mean_length(&self, axis: usize) -> f64 {
        let mut n = self.n_corners();
        n[axis] -= 1;
        let length = |mut at: [usize; 3]| {
            let begin = self.corner(at);
            at[axis] += 1;
            let end = self.corner(at);
            (0..3).map(|i| (end[i] - begin[i]).powi(2)).sum::<f64>().sqrt()
        };
        all(n).map(length).sum::<f64>() / n.iter().product::<usize>() as f64
    }

    /// Returns whether cells are axis-parallel rectangles.
    pub fn is_rectangular(&self) -> bool {
        self.is_rectangular
    }

    /// Returns whether cells are rectangles with coefficient one.
    pub fn is_plain(&self) -> bool {
        self.is_rectangular
            && !self.is_of_mapped
            && self.coefficients.iter().all(|&coefficient| coefficient == 1.0)
    }

    /// Returns the number of cells along each axis; 1 for an absent axis.
    pub fn cells(&self) -> [usize; 3] {
        self.cells
    }

    /// Returns the number of corners along each axis.
    pub fn n_corners(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.cells[axis] + usize::from(axis < self.dimension))
    }

    /// Returns the distance in corner numbers between neighbours along each axis; 0 for an absent axis.
    pub fn corner_strides(&self) -> [usize; 3] {
        let [n, m, _] = self.n_corners();
        [1, n, if self.dimension == 3 { n * m } else { 0 }]
    }

    fn corner(&self, at: [usize; 3]) -> [f64; 3] {
        let [n, m, _] = self.n_corners();
        self.corners[(at[2] * m + at[1]) * n + at[0]]
    }

    /// Returns the coefficient of a cell.
    pub fn coefficient(&self, cell: [usize; 3]) -> f64 {
        let [n, m, _] = self.cells;
        self.coefficients[(cell[2] * m + cell[1]) * n + cell[0]]
    }

    /// Returns the map of the unit cube to a cell; a quadrilateral is a prism of height one.
    pub fn map(&self, cell: [usize; 3]) -> CellMap {
        let corners = std::array::from_fn(|bits| {
            let up = [0, 1, 2].map(|axis| bits >> axis & 1);
            if self.dimension == 3 {
                return self.corner([0, 1, 2].map(|axis| cell[axis] + up[axis]));
            }
            let [x, y, _] = self.corner([cell[0] + up[0], cell[1] + up[1], 0]);
            [x, y, up[2] as f64]
        });
        CellMap { corners }
    }

    /// Halves every cell along every axis in reference coordinates.
    pub fn refined(&self) -> Self {
        let coarse = self.n_corners();
        let cells = std::array::from_fn(|axis| if axis < self.dimension { 2 * self.cells[axis] } else { 1 });
        let fine = coarse.map(|n| 2 * n - 1);
        let corner = |at: [usize; 3]| {
            // The new corner is the mean of these.
            let [low, high] = [0, 1].map(|up| at.map(|at| (at + up) / 2));
            let near = (0..8)
                .map(|bits: usize| self.corner([0, 1, 2].map(|axis| [low, high][bits >> axis & 1][axis])));
            near.fold([0.0; 3], |sum, near| [0, 1, 2].map(|i| sum[i] + 0.125 * near[i]))
        };
        Self {
            cells,
            corners: all(fine).map(corner).collect(),
            coefficients: all(cells)
                .map(|at| self.coefficient([0, 1, 2].map(|axis| at[axis] * self.cells[axis] / cells[axis])))
                .collect(),
            finer: None,
            dimension: self.dimension,
            is_rectangular: self.is_rectangular,
            is_of_mapped: self.is_of_mapped,
        }
    }

    /// Coarsens by `factors`, 1 or 2 cells along each axis: keeps the outer corners and uses mean
    /// coefficients. None if a joined cell would be inverted.
    pub fn coarsened(&self, finer: &BoxGrid, factors: [usize; 3]) -> Option<Self> {
        let cells = [0, 1, 2].map(|axis| self.cells[axis] / factors[axis]);
        let mut coarse = Self {
            cells,
            corners: Vec::new(),
            coefficients: Vec::new(),
            finer: Some(Arc::new(finer.clone())),
            dimension: self.dimension,
            is_rectangular: self.is_rectangular,
            is_of_mapped: self.is_of_mapped,
        };
        let first = |at: [usize; 3]| [0, 1, 2].map(|axis| factors[axis] * at[axis]);
        coarse.corners = all(coarse.n_corners()).map(|at| self.corner(first(at))).collect();
        let mean = |at: [usize; 3]| {
            let first = first(at);
            let (parts, n) = (all(factors), factors.iter().product::<usize>() as f64);
            parts.map(|part| self.coefficient([0, 1, 2].map(|axis| first[axis] + part[axis]))).sum::<f64>()
                / n
        };
        coarse.coefficients = all(cells).map(mean).collect();
        coarse.inverted().is_none().then_some(coarse)
    }

    /// Takes layers of cells across the last axis.
    pub fn layers(&self, cells: Range<usize>) -> Self {
        let last = self.dimension - 1;
        let along = |n: [usize; 3]| n[..last].iter().product::<usize>();
        let (of_corners, of_cells) = (along(self.n_corners()), along(self.cells));
        let mut numbers = self.cells;
        numbers[last] = cells.len();
        Self {
            cells: numbers,
            corners: self.corners[of_corners * cells.start..of_corners * (cells.end + 1)].to_vec(),
            coefficients: self.coefficients[of_cells * cells.start..of_cells * cells.end].to_vec(),
            finer: None,
            dimension: self.dimension,
            is_rectangular: self.is_rectangular,
            is_of_mapped: !self.is_plain(),
        }
    }

    /// Returns the finer grid that this one was coarsened from.
    pub fn finer(&self) -> Option<&BoxGrid> {
        self.finer.as_deref()
    }
}

/// A multilinear map, by the images of the corners of the unit cube; bits of an index are the axes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellMap {
    corners: [[f64; 3]; 8],
}

impl CellMap {
    /// Returns the image of a point of the unit cube.
    pub fn point(&self, at: [f64; 3]) -> [f64; 3] {
        self.sum(|axis, up| if up { at[axis] } else { 1.0 - at[axis] })
    }

    /// Returns the columns of $J = \partial x / \partial \hat x$.
    pub fn columns(&self, at: [f64; 3]) -> [[f64; 3]; 3] {
        [0, 1, 2].map(|along| {
            self.sum(|axis, up| match (axis == along, up) {
                (true, true) => 1.0,
                (true, false) => -1.0,
                (false, true) => at[axis],
                (false, false) => 1.0 - at[axis],
            })
        })
    }

    fn sum(&self, factor: impl Fn(usize, bool) -> f64) -> [f64; 3] {
        let mut sum = [0.0; 3];
        for (bits, corner) in self.corners.iter().enumerate() {
            let product: f64 = (0..3).map(|axis| factor(axis, bits >> axis & 1 == 1)).product();
            (0..3).for_each(|i| sum[i] += product * corner[i]);
        }
        sum
    }

    /// Returns $\det J$.
    pub fn determinant(&self, at: [f64; 3]) -> f64 {
        let [x, y, z] = self.columns(at);
        dot(x, cross(y, z))
    }

    /// Returns $G = \det J\, J^{-1} J^{-\mathsf{T}}$ at a point of the unit cube.
    pub fn metric(&self, at: [f64; 3]) -> [[f64; 3]; 3] {
        let [x, y, z] = self.columns(at);
        let rows = [cross(y, z), cross(z, x), cross(x, y)];
        let determinant = dot(x, rows[0]);
        rows.map(|row| rows.map(|other| dot(row, other) / determinant))
    }

    /// Returns the coefficients of the products of powers of $2 \hat x - 1$ in twice the map, relative to its first
    /// corner.
    pub fn powers(&self) -> [[f64; 3]; 8] {
        let origin = self.corners[0];
        std::array::from_fn(|powers| {
            let mut sum = [0.0; 3];
            for (bits, corner) in self.corners.iter().enumerate() {
                let sign = if (powers & !bits).count_ones() % 2 == 1 { -0.25 } else { 0.25 };
                (0..3).for_each(|i| sum[i] += sign * (corner[i] - origin[i]));
            }
            sum
        })
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

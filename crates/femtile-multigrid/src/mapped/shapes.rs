use femtile_sum_factorization::SumFactorization;

use super::geometry::{CellGeometry, CellMap};
use crate::grid::all;

/// Geometry factors and coefficients of cells, as products need them.
#[derive(Debug, Clone)]
pub(crate) struct Shapes<T> {
    /// Data by first corner of a cell; zeros for corners that are the first of no cell.
    entries: Vec<T>,
    kind: ShapeKind,
}

/// The kind of data of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShapeKind {
    /// Rectangles: $c\, |J| / h_a^2$ along each axis, and a zero.
    Rectangular,
    /// Coefficients of the powers in the map, and c: 25 numbers, 9 in two dimensions.
    Bilinear,
    Trilinear,
}

impl ShapeKind {
    /// Returns the kind for cells; the compact kind for rectangles if `has_cubes`.
    pub fn of(geometry: &CellGeometry, dimension: usize, has_cubes: bool) -> Self {
        match (dimension, geometry.is_rectangular() && has_cubes) {
            (2, _) => Self::Bilinear,
            (_, true) => Self::Rectangular,
            _ => Self::Trilinear,
        }
    }

    /// Returns the numbers per cell.
    pub fn len(self) -> usize {
        match self {
            Self::Rectangular => 4,
            Self::Bilinear => 9,
            Self::Trilinear => 25,
        }
    }

    /// Returns the data of a cell with coefficient c.
    pub fn numbers(self, map: &CellMap, c: f64) -> Vec<f64> {
        match self {
            Self::Rectangular => {
                let metric = map.metric([0.5; 3]);
                (0..3).map(|axis| c * metric[axis][axis]).chain([0.0]).collect()
            }
            Self::Bilinear => map.powers()[..4].iter().flat_map(|x| [x[0], x[1]]).chain([c]).collect(),
            Self::Trilinear => map.powers().into_iter().flatten().chain([c]).collect(),
        }
    }
}

impl<T: SumFactorization> Shapes<T> {
    /// Computes the data of all cells.
    pub fn new(geometry: &CellGeometry, kind: ShapeKind) -> Self {
        let (n, strides) = (geometry.n_corners(), geometry.corner_strides());
        let mut entries = vec![T::ZERO; n.iter().product::<usize>() * kind.len()];
        for cell in all(geometry.cells()) {
            let first: usize = (0..3).map(|axis| strides[axis] * cell[axis]).sum();
            let of_cell = kind.numbers(&geometry.map(cell), geometry.coefficient(cell));
            let to = &mut entries[first * kind.len()..][..kind.len()];
            to.iter_mut().zip(of_cell).for_each(|(to, value)| *to = T::from_f64(value));
        }
        Self { entries, kind }
    }

    /// Returns the kind of data.
    pub fn kind(&self) -> ShapeKind {
        self.kind
    }

    /// Returns the data of the cell with this first corner.
    pub fn of(&self, corner: usize) -> &[T] {
        let n = self.kind.len();
        &self.entries[corner * n..][..n]
    }

    /// Gathers the data of cells at `offset` from these corners: `[len][lanes]`; unused lanes repeat the last cell.
    pub fn load(&self, corners: &[u32], offset: usize, n_lanes: usize, to: &mut Vec<T>) {
        let n = self.kind.len();
        to.resize(n * n_lanes, T::ZERO);
        for lane in 0..n_lanes {
            let corner = corners[lane.min(corners.len() - 1)] as usize + offset;
            for (to, &entry) in to.iter_mut().skip(lane).step_by(n_lanes).zip(self.of(corner)) {
                *to = entry;
            }
        }
    }
}

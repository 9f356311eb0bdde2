use femtile_sum_factorization::SumFactorization;

use super::geometry::CellGeometry;
use crate::grid::all;

/// What the products of cells need of their shapes and coefficients.
#[derive(Debug, Clone)]
pub(crate) struct Shapes<T> {
    /// Of the cells at each corner, by the number of their first one; of corners that are the first of none, zeros.
    entries: Vec<T>,
    kind: ShapeKind,
}

/// What there is of each cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShapeKind {
    /// Of boxes of three axes: $c\, |J| / h_a^2$ along each, and zero.
    Rectangular,
    /// Factors of the powers in the map, and c: 25 numbers, or 9 in two dimensions.
    Bilinear,
    Trilinear,
}

impl ShapeKind {
    /// Numbers of a cell.
    pub fn len(self) -> usize {
        match self {
            Self::Rectangular => 4,
            Self::Bilinear => 9,
            Self::Trilinear => 25,
        }
    }
}

impl<T: SumFactorization> Shapes<T> {
    /// Of all cells; of rectangular ones by their lengths where `has_cubes`.
    pub fn new(geometry: &CellGeometry, dimension: usize, has_cubes: bool) -> Self {
        let kind = match (dimension, geometry.is_rectangular() && has_cubes) {
            (2, _) => ShapeKind::Bilinear,
            (_, true) => ShapeKind::Rectangular,
            _ => ShapeKind::Trilinear,
        };
        let (n, strides) = (geometry.n_corners(), geometry.corner_strides());
        let mut entries = vec![T::ZERO; n.iter().product::<usize>() * kind.len()];
        for cell in all(geometry.cells()) {
            let first: usize = (0..3).map(|axis| strides[axis] * cell[axis]).sum();
            let (map, c) = (geometry.map(cell), geometry.coefficient(cell));
            let of_cell: Vec<f64> = match kind {
                ShapeKind::Rectangular => {
                    let metric = map.metric();
                    (0..3).map(|axis| c * metric[axis][axis]).chain([0.0]).collect()
                }
                ShapeKind::Bilinear => {
                    map.powers()[..4].iter().flat_map(|x| [x[0], x[1]]).chain([c]).collect()
                }
                ShapeKind::Trilinear => map.powers().into_iter().flatten().chain([c]).collect(),
            };
            let to = &mut entries[first * kind.len()..][..kind.len()];
            to.iter_mut().zip(of_cell).for_each(|(to, value)| *to = T::from_f64(value));
        }
        Self { entries, kind }
    }

    /// What there is of each cell.
    pub fn kind(&self) -> ShapeKind {
        self.kind
    }

    /// Of the cell with this first corner.
    pub fn of(&self, corner: usize) -> &[T] {
        let n = self.kind.len();
        &self.entries[corner * n..][..n]
    }

    /// Of cells side by side that lie `offset` beyond these corners: `[len][lanes]`; lanes without a cell have the last one.
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

use std::collections::HashMap;

use femtile_device::Cpu;
use femtile_tensor::Contract;

use super::cholesky::Cholesky;
use super::local::inner;
use crate::grid::{BoxGrid, all};
use crate::mapped::{Geometry, MappedCells, ProductRoom};

/// Coefficients in a patch whose ratio is larger jump.
const JUMP: f64 = 4.0;
/// The most bytes that the factors of a grid may take.
const MOST_BYTES: usize = 1 << 30;
/// Shapes of patches that differ by less than this share are one.
const ROUNDING: f64 = 1e-9;

/// Factors of the matrices of patches in which coefficients jump; one for all patches that are alike but for their size.
#[derive(Debug, Clone)]
pub(crate) struct ExactPatches<T> {
    /// Which factor a patch has, by the number of its first corner, and what its matrix is one over in units of the factored one.
    of_patches: HashMap<u32, (u32, T)>,
    factors: Vec<Cholesky<T>>,
}

/// The solve of a patch.
pub(crate) struct ExactSolve<'a, T> {
    factor: &'a Cholesky<T>,
    scale: T,
}

impl<T: Contract> ExactSolve<'_, T> {
    /// From the residual of a patch to its correction.
    pub fn solve(&self, r: &mut [T]) {
        self.factor.solve(r);
        r.iter_mut().for_each(|r| *r *= self.scale);
    }
}

impl<T: Contract> ExactPatches<T> {
    pub fn new(cpu: &Cpu, grid: &BoxGrid, geometry: &Geometry) -> Self {
        let local = LocalMatrices::new(grid, geometry);
        let (mut known, mut factors) = (HashMap::new(), Vec::new());
        let mut of_patches = HashMap::new();
        let mut room = ProductRoom::default();
        for first in all([0, 1, 2].map(|axis| geometry.cells()[axis] + 1 - local.along[axis])) {
            let cells = local.cells_at(first);
            if !jumps(geometry, &cells) {
                continue;
            }
            let corner = local.corner(first);
            let (key, size) = local.key(&cells);
            if !known.contains_key(&key) {
                if (factors.len() + 1) * local.n_inside().pow(2) * size_of::<T>() > MOST_BYTES {
                    continue;
                }
                known.insert(key.clone(), (factors.len() as u32, size));
                factors.push(local.factor(cpu, &cells, &mut room).to());
            }
            let (kind, of_kind) = known[&key];
            of_patches.insert(corner, (kind, T::from_f64(of_kind / size)));
        }
        Self { of_patches, factors }
    }

    /// The exact solve of the patch with this first corner, where it has one.
    pub fn of(&self, corner: u32) -> Option<ExactSolve<'_, T>> {
        let &(kind, scale) = self.of_patches.get(&corner)?;
        Some(ExactSolve { factor: &self.factors[kind as usize], scale })
    }
}

/// Whether coefficients of these cells jump.
fn jumps(geometry: &Geometry, cells: &[[usize; 3]]) -> bool {
    let of = || cells.iter().map(|&cell| geometry.coefficient(cell));
    of().fold(0.0, f64::max) > JUMP * of().fold(f64::INFINITY, f64::min)
}

/// The matrices of patches from those of their cells.
struct LocalMatrices<'a> {
    geometry: &'a Geometry,
    cells: MappedCells<f64>,
    degree: usize,
    /// Cells of a patch along each axis, and nodes.
    along: [usize; 3],
    nodes: [usize; 3],
}

impl<'a> LocalMatrices<'a> {
    fn new(grid: &BoxGrid, geometry: &'a Geometry) -> Self {
        let has = [0, 1, 2].map(|axis| !grid.widths(axis).is_empty());
        let of = |with: usize| has.map(|has| if has { with } else { 1 });
        Self {
            geometry,
            cells: MappedCells::new(grid, geometry),
            degree: grid.degree(),
            along: of(2),
            nodes: of(2 * grid.degree() + 1),
        }
    }

    fn n_inside(&self) -> usize {
        self.nodes.map(inner).iter().product()
    }

    fn cells_at(&self, first: [usize; 3]) -> Vec<[usize; 3]> {
        all(self.along).map(|part| [0, 1, 2].map(|axis| first[axis] + part[axis])).collect()
    }

    fn corner(&self, cell: [usize; 3]) -> u32 {
        let strides = self.geometry.corner_strides();
        (0..3).map(|axis| strides[axis] * cell[axis]).sum::<usize>() as u32
    }

    /// The shapes of cells in units of the first one, and its size, with which matrices grow.
    fn key(&self, cells: &[[usize; 3]]) -> (Vec<i64>, f64) {
        let maps: Vec<_> = cells.iter().map(|&cell| self.geometry.map(cell)).collect();
        let d = self.along.iter().filter(|n| **n > 1).count();
        let length = maps[0].determinant([0.5; 3]).abs().powf(1.0 / d as f64);
        let of_first = self.geometry.coefficient(cells[0]);
        let powers = maps.iter().flat_map(|map| map.powers().into_iter().take(1 << d).skip(1));
        let lengths = powers.flat_map(|power| power.into_iter().take(d)).map(|power| power / length);
        let coefficients = cells.iter().map(|&cell| (self.geometry.coefficient(cell) / of_first).ln());
        let rounded = lengths.chain(coefficients).map(|entry| (entry / ROUNDING).round() as i64);
        (rounded.collect(), of_first * length.powi(d as i32 - 2))
    }

    /// The factor of the matrix of the nodes inside.
    fn factor(&self, cpu: &Cpu, cells: &[[usize; 3]], room: &mut ProductRoom<f64>) -> Cholesky<f64> {
        let (n, [i_x, i_y, _]) = (self.n_inside(), self.nodes.map(inner));
        let mut rows = vec![0.0; n * n];
        let of_cell: Vec<[usize; 3]> =
            all(self.along.map(|n| if n > 1 { self.degree + 1 } else { 1 })).collect();
        for (&cell, part) in cells.iter().zip(all(self.along)) {
            let shape = self.cells.shapes.of(self.corner(cell) as usize);
            let matrix = self.cells.product.matrix(cpu, shape, room);
            let place = |at: &[usize; 3]| {
                let mut inside = [0; 3];
                for axis in (0..3).filter(|axis| self.nodes[*axis] > 1) {
                    let of_patch = at[axis] + self.degree * part[axis];
                    let is_inside = of_patch > 0 && of_patch + 1 < self.nodes[axis];
                    inside[axis] = if is_inside { of_patch - 1 } else { return None };
                }
                Some((inside[2] * i_y + inside[1]) * i_x + inside[0])
            };
            let places: Vec<Option<usize>> = of_cell.iter().map(place).collect();
            for (row, entries) in places.iter().zip(matrix.chunks_exact(places.len())) {
                let Some(row) = *row else { continue };
                for (column, entry) in places.iter().zip(entries) {
                    if let Some(column) = column.filter(|column| *column <= row) {
                        rows[row * n + n - 1 + column - row] += entry;
                    }
                }
            }
        }
        Cholesky::new(n, rows)
    }
}

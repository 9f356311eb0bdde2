use std::collections::HashMap;
use std::ops::Range;

use femtile_device::{Cpu, parallel};
use femtile_sum_factorization::SumFactorization;

use super::cholesky::Cholesky;
use super::mapped_patch::cells_of;
use crate::axis::unknowns;
use crate::cell_patches::{Span, Spans, vertex_patches};
use crate::grid::{BoxGrid, all};
use crate::mapped::{CellGeometry, CellProduct, ProductWorkspace, ShapeKind, kind_of};

/// Ratio of coefficients in a patch from which they count as a jump.
const JUMP: f64 = 4.0;
/// Ratio of widths in a patch of rectangles from which they count as one.
const WIDER: f64 = 1.2;
/// Most bytes of all factors, or inverses, of a grid.
pub(crate) const MOST_BYTES: usize = 1 << 30;
/// Relative difference below which patch shapes count as equal.
const ROUNDING: f64 = 1e-9;

/// Cholesky factors of patches with coefficient jumps; one factor for all patches of the same shape up to scaling.
#[derive(Debug, Clone)]
pub(crate) struct ExactPatches<T> {
    /// The factor of a patch, by the number of its vertex, and the reciprocal of its scale.
    of_patches: HashMap<u32, (u32, T)>,
    factors: Vec<Cholesky<T>>,
}

/// The local solve of a patch.
pub(crate) struct ExactSolve<'a, T> {
    factor: &'a Cholesky<T>,
    scale: T,
}

impl<T: SumFactorization> ExactSolve<'_, T> {
    /// Turns a residual into a correction.
    pub fn solve(&self, r: &mut [T]) {
        self.factor.solve(r);
        r.iter_mut().for_each(|r| *r *= self.scale);
    }
}

impl<T: SumFactorization> ExactPatches<T> {
    pub fn new(cpu: &Cpu, grid: &BoxGrid, geometry: &CellGeometry, spans: &Spans) -> Self {
        let found =
            JumpPatches::new((grid, geometry), (spans, grid.thin_axes()), MOST_BYTES / size_of::<T>());
        let corner = |cell: [usize; 3]| number_of(geometry, cell);
        let of_patches =
            found.patches.iter().map(|patch| (corner(patch.vertex), (patch.kind, T::from_f64(patch.scale))));
        Self {
            of_patches: of_patches.collect(),
            factors: found.factored(cpu, (grid, geometry), spans, |factor| factor.to()),
        }
    }

    /// Returns the exact local solve of the patch around a vertex, if it has one.
    pub fn of(&self, corner: u32) -> Option<ExactSolve<'_, T>> {
        let &(kind, scale) = self.of_patches.get(&corner)?;
        Some(ExactSolve { factor: &self.factors[kind as usize], scale })
    }
}

/// A patch with a jump.
pub(crate) struct JumpPatch {
    /// The vertex, by its index along each axis.
    pub vertex: [usize; 3],
    pub kind: u32,
    /// Its inverse is that of its kind times this.
    pub scale: f64,
}

/// The patches with jumps of coefficients, or of the widths of rectangles with coefficient one, and their
/// kinds. Patches of the same shape up to scaling share a kind.
pub(crate) struct JumpPatches {
    pub patches: Vec<JumpPatch>,
    /// The first patch of each kind, by its place among the spans.
    kinds: Vec<[usize; 3]>,
}

impl JumpPatches {
    /// Finds patches with jumps, and kinds of patches as long as their matrices have at most `most` numbers
    /// in all. Patches of further kinds are left out. On the layers of a distributed grid all patches are
    /// left out if there are more kinds: other ranks would otherwise leave out different patches of the
    /// shared ones.
    pub fn new(
        (grid, geometry): (&BoxGrid, &CellGeometry),
        (spans, thin): (&Spans, [bool; 3]),
        most: usize,
    ) -> Self {
        let (found, _) = Self::find((grid, geometry), spans, most);
        if found.patches.is_empty() || std::ptr::eq(grid.whole(), grid) {
            return found;
        }
        let whole = grid.whole();
        let (_, is_complete) = Self::find((whole, &whole.geometry()), &vertex_patches(whole, thin), most);
        if is_complete { found } else { Self { patches: Vec::new(), kinds: Vec::new() } }
    }

    /// Finds patches, and whether they are all of them.
    fn find((grid, geometry): (&BoxGrid, &CellGeometry), spans: &Spans, most: usize) -> (Self, bool) {
        let mut is_complete = true;
        let local = LocalMatrices::new(grid, geometry);
        let (mut known, mut found) = (HashMap::new(), Self { patches: Vec::new(), kinds: Vec::new() });
        let mut n_numbers = 0;
        if grid.mapping().is_some() && !jumps(geometry, all(geometry.cells())) {
            return (found, true);
        }
        for at in all(spans.each_ref().map(Vec::len)) {
            let spans = [0, 1, 2].map(|axis| &spans[axis][at[axis]]);
            let cells = cells_of(spans);
            if !jumps(geometry, cells.iter().copied()) && !has_unequal_widths(grid, spans) {
                continue;
            }
            let (key, size) = local.key(spans, &cells);
            if !known.contains_key(&key) {
                if n_numbers + local.n_inside(spans).pow(2) > most {
                    is_complete = false;
                    continue;
                }
                known.insert(key.clone(), (found.kinds.len() as u32, size));
                n_numbers += local.n_inside(spans).pow(2);
                found.kinds.push(at);
            }
            let (kind, of_kind) = known[&key];
            found.patches.push(JumpPatch { vertex: spans.map(Span::vertex), kind, scale: of_kind / size });
        }
        (found, is_complete)
    }

    /// Applies `of` to the factor of the matrix of each kind.
    pub fn factored<R: Send>(
        &self,
        cpu: &Cpu,
        (grid, geometry): (&BoxGrid, &CellGeometry),
        spans: &Spans,
        of: impl Fn(Cholesky<f64>) -> R + Sync,
    ) -> Vec<R> {
        let local = LocalMatrices::new(grid, geometry);
        let product = CellProduct::new(grid.degree(), local.kind);
        parallel::map(self.kinds.len(), 1, |kind| {
            let spans = [0, 1, 2].map(|axis| &spans[axis][self.kinds[kind][axis]]);
            of(local.factor(cpu, spans, &cells_of(spans), &product))
        })
    }
}

/// Returns the number of a corner.
fn number_of(geometry: &CellGeometry, at: [usize; 3]) -> u32 {
    let strides = geometry.corner_strides();
    (0..3).map(|axis| strides[axis] * at[axis]).sum::<usize>() as u32
}

/// Returns whether coefficients of these cells jump.
fn jumps(geometry: &CellGeometry, cells: impl Iterator<Item = [usize; 3]>) -> bool {
    let (mut least, mut largest) = (f64::INFINITY, 0.0_f64);
    for coefficient in cells.map(|cell| geometry.coefficient(cell)) {
        (least, largest) = (least.min(coefficient), largest.max(coefficient));
    }
    largest > JUMP * least
}

/// Returns whether widths of rectangles with coefficient one jump along an axis.
fn has_unequal_widths(grid: &BoxGrid, spans: [&Span; 3]) -> bool {
    let jumps = |axis: usize| {
        let widths = &grid.widths(axis)[spans[axis].cells.clone()];
        let of = |pick: fn(f64, f64) -> f64, start| widths.iter().copied().fold(start, pick);
        of(f64::max, 0.0) > WIDER * of(f64::min, f64::INFINITY)
    };
    grid.mapping().is_none() && (0..3).any(jumps)
}

/// Assembly of patch matrices from cell matrices.
struct LocalMatrices<'a> {
    geometry: &'a CellGeometry,
    kind: ShapeKind,
    degree: usize,
    dimension: usize,
}

impl<'a> LocalMatrices<'a> {
    fn new(grid: &BoxGrid, geometry: &'a CellGeometry) -> Self {
        Self { geometry, kind: kind_of(grid, geometry), degree: grid.degree(), dimension: grid.dimension() }
    }

    /// Returns the inner nodes of a patch along each axis.
    fn own(&self, spans: [&Span; 3]) -> [Range<usize>; 3] {
        spans.map(|span| unknowns(self.degree * span.cells.len() + 1, span.open))
    }

    fn n_inside(&self, spans: [&Span; 3]) -> usize {
        self.own(spans).iter().map(ExactSizeIterator::len).product()
    }

    /// Returns open ends and cell shapes relative to the first cell as a key, and the size, which scales the matrix.
    fn key(&self, spans: [&Span; 3], cells: &[[usize; 3]]) -> (Vec<i64>, f64) {
        let maps: Vec<_> = cells.iter().map(|&cell| self.geometry.map(cell)).collect();
        let d = self.dimension;
        let length = maps[0].determinant([0.5; 3]).abs().powf(1.0 / d as f64);
        let of_first = self.geometry.coefficient(cells[0]);
        let powers = maps.iter().flat_map(|map| map.powers().into_iter().take(1 << d).skip(1));
        let lengths = powers.flat_map(|power| power.into_iter().take(d)).map(|power| power / length);
        let coefficients = cells.iter().map(|&cell| (self.geometry.coefficient(cell) / of_first).ln());
        let rounded = lengths.chain(coefficients).map(|entry| (entry / ROUNDING).round() as i64);
        let open = spans.into_iter().flat_map(|span| span.open).map(i64::from);
        (open.chain(rounded).collect(), of_first * length.powi(d as i32 - 2))
    }

    /// Factors the matrix of the inner nodes.
    fn factor(
        &self,
        cpu: &Cpu,
        spans: [&Span; 3],
        cells: &[[usize; 3]],
        product: &CellProduct<f64>,
    ) -> Cholesky<f64> {
        let (n, own) = (self.n_inside(spans), self.own(spans));
        let mut workspace = ProductWorkspace::default();
        let mut rows = vec![0.0; n * n];
        let has = spans.map(|span| !span.cells.is_empty());
        let of_cell: Vec<[usize; 3]> = all(has.map(|has| if has { self.degree + 1 } else { 1 })).collect();
        for &cell in cells {
            let shape = self.kind.numbers(&self.geometry.map(cell), self.geometry.coefficient(cell));
            let matrix = product.matrix(cpu, &shape, &mut workspace);
            let place = |at: &[usize; 3]| {
                let of_patch =
                    [0, 1, 2].map(|axis| at[axis] + self.degree * (cell[axis] - spans[axis].cells.start));
                let is_inside = (0..3).all(|axis| own[axis].contains(&of_patch[axis]));
                is_inside.then(|| {
                    let [x, y, z] = [0, 1, 2].map(|axis| of_patch[axis] - own[axis].start);
                    (z * own[1].len() + y) * own[0].len() + x
                })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_leave_out_all_kinds_where_the_grid_has_more_than_fit() {
        let n = [4, 4, 12];
        let corners = all(n.map(|n| n + 1)).map(|at| at.map(|at| at as f64)).collect();
        // In the upper half only, so that the lower layers have fewer kinds.
        let coefficient =
            |[x, y, z]: [usize; 3]| if z < 6 { 1.0 } else { 1.0 + 10.0 * ((x * y + z) % 7) as f64 };
        let grid = BoxGrid::mapped(1, &n, corners, all(n).map(coefficient).collect()).unwrap();
        let count = |grid: &BoxGrid, most: usize| {
            let spans = vertex_patches(grid, [false; 3]);
            JumpPatches::new((grid, &grid.geometry()), (&spans, [false; 3]), most).patches.len()
        };
        let upper = grid.layers(6..12);
        let few = count(&grid, 3);
        assert!(few > 0 && few < count(&grid, usize::MAX));
        assert!(count(&upper, usize::MAX) > 0);
        assert_eq!(count(&upper, 3), 0);
    }
}
